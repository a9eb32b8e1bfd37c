"""Laws of region reductions: merges that follow from a body's form, and which policies they admit."""

from __future__ import annotations

from collections.abc import Callable

from tvm_tile.ir.dependence import dependent_values, domain_values
from tvm_tile.ir.dtypes import is_float
from tvm_tile.ir.functions import REDUCIBLE, identity_of
from tvm_tile.ir.ops import Elementwise, Full, Mma, Number
from tvm_tile.ir.regions import Block, If, Lambda, Loop, Merge, Reduce
from tvm_tile.ir.values import TileType, Value

__all__ = ["TREES", "check_policy", "derive_merge"]

#: Policies that regroup contributions and so need a merge.
TREES = ("unordered_tree", "ordered_tree")

#: Stands for "no contribution yet" where an elementwise function's name would be.
_UNCHANGED = ""


def derive_merge(
    args: tuple[Value, ...], body: Block, yields: tuple[Value, ...], fresh: Callable[[TileType], Value]
) -> Merge | None:
    """The merge that follows from a reduction body in which every state's update is ``s = s op e``.

    ``e`` may not depend on any state and ``op`` is one of ``add multiply maximum minimum and or xor``.
    A matrix product accumulated into the state is an addition. An update in one arm of a branch, or
    in both with the same ``op``, is a masked contribution; a nested loop that carries the state and
    updates it with the same ``op`` is a sequence of contributions.

    Parameters
    ----------
    args
        The states as the body sees them.
    body
        The region's body.
    yields
        The states' next values, one an arg.
    fresh
        Makes a new value of a type, with an id that is unused in the program.

    Returns
    -------
    Merge or None
        The derived merge, ``exact`` if no state is a rounded sum or product; ``None`` where the body
        has another form.
    """
    updates = _Updates(args, body)
    functions: list[str] = []
    for arg, value in zip(args, yields, strict=True):
        state, fn = updates.of.get(value, (None, _UNCHANGED))
        if state != arg or fn == _UNCHANGED:
            return None
        functions.append(fn)
    if not functions:
        return None
    return _builtin_merge(tuple(functions), tuple(arg.type for arg in args), fresh)


class _Updates:
    """Which values of a reduction body are ``state op e op ...``.

    Attributes
    ----------
    of
        From such a value to its state, and the name of the one ``op``. A state carried by a nested loop
        is a state of its own within that loop.
    """

    def __init__(self, states: tuple[Value, ...], body: Block) -> None:
        self._dependent = dependent_values(body, states)
        self.of: dict[Value, tuple[Value, str]] = {state: (state, _UNCHANGED) for state in states}
        self._block(body)

    def _block(self, block: Block) -> None:
        for statement in block.statements:
            match statement:
                case Elementwise(result=result, fn=fn, operands=(a, b)) if fn in REDUCIBLE:
                    # The reducible functions commute, so the state may stand on either side.
                    if b not in self._dependent:
                        self._contribute(result, fn, a)
                    elif a not in self._dependent:
                        self._contribute(result, fn, b)
                case Mma(result=result, a=a, b=b, acc=acc) if self._dependent.isdisjoint((a, b)):
                    self._contribute(result, "add", acc)
                case If():
                    self._branch(statement)
                case Loop():
                    self._loop(statement)

    def _contribute(self, result: Value, fn: str, before: Value) -> None:
        if before in self.of:
            state, earlier = self.of[before]
            both = _same(earlier, fn)
            if both is not None:
                self.of[result] = (state, both)

    def _branch(self, branch: If) -> None:
        self._block(branch.then)
        self._block(branch.orelse)
        if branch.condition in self._dependent:
            return
        for result, then, orelse in zip(branch.results, branch.then_yields, branch.else_yields, strict=True):
            if then in self.of and orelse in self.of:
                (state, fn), (other_state, other_fn) = self.of[then], self.of[orelse]
                both = _same(fn, other_fn)
                if state == other_state and both is not None:
                    self.of[result] = (state, both)

    def _loop(self, loop: Loop) -> None:
        self.of.update({arg: (arg, _UNCHANGED) for arg in loop.args})
        self._block(loop.body)
        if not self._dependent.isdisjoint(domain_values(loop.domain)):
            return
        for k, arg in enumerate(loop.args):
            state, fn = self.of.get(loop.yields[k], (None, _UNCHANGED))
            if state == arg and (fn == _UNCHANGED or _keeps_update(loop, k, fn)):
                self._contribute(loop.results[k], fn, loop.inits[k])


def _keeps_update(loop: Loop, k: int, fn: str) -> bool:
    """Whether a loop's result is its body's updates joined by ``fn``: a tree may merge by other rules."""
    if not isinstance(loop, Reduce) or loop.policy not in TREES:
        return True
    merge = loop.merge
    # A declared merge may combine in any way, or lift other contributions than the body's.
    if merge is None or merge.builtin is None or merge.provenance != "derived":
        return False
    return merge.builtin[k] == fn


def _same(a: str, b: str) -> str | None:
    """The one function of two series of contributions, or ``None`` if they differ."""
    if _UNCHANGED in (a, b):
        return a or b
    return a if a == b else None


def _builtin_merge(
    functions: tuple[str, ...], types: tuple[TileType, ...], fresh: Callable[[TileType], Value]
) -> Merge:
    units = [
        Full(fresh(t), Number.of(identity_of(fn, t.dtype))) for fn, t in zip(functions, types, strict=True)
    ]
    left = tuple(fresh(t) for t in types)
    right = tuple(fresh(t) for t in types)
    joined = [
        Elementwise(fresh(t), fn, (a, b)) for fn, t, a, b in zip(functions, types, left, right, strict=True)
    ]
    rounds = any(
        fn in ("add", "multiply") and is_float(t.dtype) for fn, t in zip(functions, types, strict=True)
    )
    return Merge(
        combine=Lambda((*left, *right), Block(tuple(joined)), tuple(op.result for op in joined)),
        identity=Lambda((), Block(tuple(units)), tuple(op.result for op in units)),
        associative=True,
        commutative=True,
        exact=not rounds,
        provenance="derived",
        builtin=functions,
    )


def check_policy(policy: str, merge: Merge | None, states: str) -> list[tuple[str, str]]:
    """What forbids a reduction's policy, as pairs of a message and a suggestion; empty if it is admitted.

    Parameters
    ----------
    policy
        The policy asked for.
    merge
        How partial states combine, if that is known.
    states
        Names of the states, for the message.
    """
    if policy not in TREES:
        return []
    if merge is None:
        return [
            (
                f"policy {policy!r} regroups contributions, but the update of {states} has no known merge",
                "write the update as `s = s op e` with op one of + * & | ^ tt.maximum tt.minimum, "
                'give merge= (such as tt.add), or keep the order of the source with policy="fold_left"',
            )
        ]
    if not merge.associative:
        return [
            (
                f"policy {policy!r} regroups contributions, but the merge of {states} is not associative",
                'keep the order of the source with policy="fold_left"',
            )
        ]
    if policy == "unordered_tree" and not merge.commutative:
        return [
            (
                f"policy {policy!r} permutes contributions, but the merge of {states} is not commutative",
                'keep the order of the contributions with policy="ordered_tree"',
            )
        ]
    return []
