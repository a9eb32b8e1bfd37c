"""What a program must fulfil beyond its structure before it is run or built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tvm_tile.errors import IllegalError
from tvm_tile.ir.dtypes import is_float
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import Full, Mma, ReduceTile
from tvm_tile.ir.reductions import TREES
from tvm_tile.ir.regions import Merge, Program, Reduce
from tvm_tile.ir.span import Span
from tvm_tile.ir.structure import walk
from tvm_tile.ir.values import Value
from tvm_tile.ir.verifier import verify as verify_structure
from tvm_tile.semantics.contributions import Contribution, contribution_of_body, contribution_of_lift
from tvm_tile.semantics.disjointness import check_patches
from tvm_tile.semantics.laws import laws_of
from tvm_tile.semantics.races import check_races

__all__ = ["OrderedFold", "ordered_folds", "verify", "verify_meaning"]


def verify(program: Program) -> None:
    """Check a program.

    Raises
    ------
    ArgumentError
        Not a program.
    IllegalError
        The program has faults, all of which the message lists; or a merge breaks a law that its policy relies
        on; or two instances of a parallel region certainly conflict: they update one element of a tile, or
        touch one element of a memory that one of them writes.
    """
    verify_meaning(program)
    check_races(program)


def verify_meaning(program: Program) -> None:
    """Check what gives a program its meaning; raises as :func:`verify`.

    A race on memory is not looked for: the interpreter can run it, in one order, to show what it does.
    """
    verify_structure(program)
    literals = {s.result: s for s in walk(program) if isinstance(s, Full)}
    for statement in walk(program):
        if isinstance(statement, Reduce) and statement.args and statement.merge is not None:
            states = ", ".join(arg.name or str(arg) for arg in statement.args)
            contribution = _contribution(statement, statement.merge, literals)
            _check_laws(statement.merge, statement.policy, states, statement.span, contribution)
        elif isinstance(statement, (MergeReduce, Scan)):
            states = ", ".join(value.name or str(value) for value in statement.outputs)
            _check_laws(statement.merge, statement.policy, states, statement.span)
    check_patches(program)


def _contribution(region: Reduce, merge: Merge, literals: dict[Value, Full]) -> Contribution | None:
    if merge.lift is not None:
        return contribution_of_lift(merge.lift, indices=merge.lift.params)
    if not all(init in literals for init in region.inits):
        # A seed that is known only when the program runs may be any state.
        return None
    return contribution_of_body(region, tuple(literals[init] for init in region.inits))


def _check_laws(
    merge: Merge, policy: str, states: str, span: Span | None, contribution: Contribution | None = None
) -> None:
    if policy not in TREES or merge.builtin is not None:
        return
    laws = laws_of(merge, contribution)
    fold = 'keep the order of the source with policy="fold_left"'
    needed = [
        (laws.associative, "is not associative", fold),
        (
            laws.identity,
            "does not have the identity that it names",
            f"give the identity of fn, or lift= to states that it holds for, or {fold}",
        ),
    ]
    if policy == "unordered_tree":
        ordered = 'keep the order of the contributions with policy="ordered_tree"'
        needed.append((laws.commutative, "is not commutative", ordered))
    for proof, problem, remedy in needed:
        if proof.is_disproved:
            raise IllegalError(
                f"policy {policy!r} relies on laws that the merge of {states} claims, but it {problem}",
                span=span,
                obligation="merge laws",
                counterexample=proof.counterexample,
                suggestion=remedy,
            )


@dataclass(frozen=True)
class OrderedFold:
    """A computation on floats whose order the program fixes.

    Attributes
    ----------
    what
        In words, with the names of its states.
    policy
        What fixes the order.
    """

    what: str
    policy: str
    span: Span | None


def ordered_folds(program: Program) -> Iterator[OrderedFold]:
    """Reductions, scans and products that a compiler may not reorder, though other policies would let it."""
    for statement in walk(program):
        match statement:
            case Reduce(policy=policy, args=args) if policy != "unordered_tree":
                values = args
            case MergeReduce(policy=policy, outputs=values) if policy != "unordered_tree":
                pass
            case ReduceTile(policy=policy, result=result) if policy != "unordered_tree":
                values = (result,)
            case Scan(policy=policy, outputs=values):
                pass
            case Mma(ordered=True, result=result):
                policy, values = "ordered", (result,)
            case _:
                continue
        if any(is_float(value.dtype) for value in values):
            names = ", ".join(value.name or str(value) for value in values)
            yield OrderedFold(f"the reduction of {names}", policy, statement.span)
