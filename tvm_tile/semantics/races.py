"""Static check that the instances of a parallel region do not conflict on memory.

``parallel`` promises noninterference, and generated code relies on the promise without a proof of it. A
promise that is certainly broken is refused all the same: two instances touch one element, and one writes it,
whatever the data is. What depends on data, or takes too long to decide, is left to a debug run of the
interpreter.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, islice

from tvm_tile.errors import IllegalError
from tvm_tile.ir.ops import Alloc, Atomic, Insert
from tvm_tile.ir.regions import Parallel, Program
from tvm_tile.ir.structure import walk
from tvm_tile.ir.values import Memory
from tvm_tile.semantics.footprints import Access, accesses_of
from tvm_tile.semantics.separation import separate

__all__ = ["RACE_REMEDY", "check_races"]

RACE_REMEDY = (
    "let each instance write its own elements; accumulate with tt.reduce, or with tt.atomic_add; "
    "or make the loop tt.serial"
)

#: Questions of one program, and the budget of each in isl operations.
_QUESTIONS = 256
_OPERATIONS = 20_000


def check_races(program: Program) -> None:
    """Refuse accesses of distinct instances that certainly conflict.

    Raises
    ------
    IllegalError
        The message names the memory, and the counterexample both instances and the element.
    """
    for a, b, depth in islice(_questions(program), _QUESTIONS):
        answer = separate(program, a, b, depth, _OPERATIONS)
        # One that needs certain run-time scalars may never happen.
        if answer.is_disproved and not answer.counterexample.context:
            name = a.memory.name
            raise IllegalError(
                f"two instances of one parallel region touch one element of {name}, and one writes it",
                span=(b if b.writes else a).op.span,
                obligation="noninterference",
                counterexample=answer.counterexample,
                suggestion=RACE_REMEDY,
            )


def _questions(program: Program) -> Iterator[tuple[Access, Access, int]]:
    """Pairs of accesses to one memory, one a write, with the depth of a parallel region around both."""
    regions = [s for s in walk(program) if isinstance(s, Parallel)]
    if not regions:
        return
    private = {id(region): _allocated_in(region) for region in regions}
    by_memory: dict[str, list[Access]] = {}
    for access in accesses_of(program):
        if not isinstance(access.op, Insert):
            by_memory.setdefault(access.memory.name, []).append(access)
    for accesses in by_memory.values():
        if not any(access.writes for access in accesses):
            continue
        for a, b in combinations_with_replacement(accesses, 2):
            if not (a.writes or b.writes) or (isinstance(a.op, Atomic) and isinstance(b.op, Atomic)):
                continue
            for depth, (one, other) in enumerate(zip(a.path, b.path, strict=False)):
                if one.loop is not other.loop:
                    break
                if isinstance(one.loop, Parallel) and a.memory not in private[id(one.loop)]:
                    yield a, b, depth


def _allocated_in(region: Parallel) -> frozenset[Memory]:
    """Memory of which each instance has its own."""
    return frozenset(s.memory for s in walk(region.body) if isinstance(s, Alloc))
