"""Reductions and scans of tiles with a merge: contributions are states of all fibres side by side."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tvm_tile.ir.regions import Lambda, Merge
from tvm_tile.semantics.elementwise import apply_elementwise
from tvm_tile.semantics.orders import Orders
from tvm_tile.semantics.rounding import Array

__all__ = ["State", "combined", "merge_reduce", "merge_scan"]

State = tuple[Array, ...]

#: Runs a function of a merge.
Call = Callable[[Lambda, State], State]


def combined(merge: Merge, left: State, right: State, call: Call) -> State:
    """Two partial states as one."""
    if merge.builtin is not None:
        return tuple(apply_elementwise(fn, a, b) for fn, a, b in zip(merge.builtin, left, right, strict=True))
    return call(merge.combine, (*left, *right))


@dataclass(frozen=True)
class _Partial:
    """The states of all fibres, and in which of them there is a contribution; ``None`` for all."""

    state: State
    counted: Array | None = None


def merge_reduce(
    operands: Sequence[Array],
    axes: tuple[int, ...],
    merge: Merge,
    *,
    policy: str,
    seeds: State,
    where: Array | None,
    orders: Orders,
    call: Call,
) -> State:
    """Reduce axes away.

    Parameters
    ----------
    operands
        Tiles of one shape.
    axes
        The contributions of a fibre are in lexicographic order of these axes, in their order in the operand.
    seeds
        A state for all fibres that joins once on the left, or nothing.
    where
        Contributions to count, or all.
    call
        Runs a function of the merge.

    Returns
    -------
    tuple of Array
        The states, of the operands' shape without the axes.
    """
    axes = tuple(sorted(axes))
    identity = call(merge.identity, ())
    start = seeds or identity
    leaves = _leaves([_contributions(x, axes) for x in operands], merge, call)
    masks = None if where is None else _contributions(where, axes)
    parts = [_Partial(leaf, None if masks is None else masks[k]) for k, leaf in enumerate(leaves)]

    def join(left: _Partial, right: _Partial) -> _Partial:
        return _joined(merge, left, right, call)

    if policy == "fold_right":
        parts.reverse()
    if policy in ("fold_left", "fold_right") or not orders.regroups:
        return functools.reduce(join, parts, _Partial(start)).state
    if not parts:
        return start
    total = orders.tree(parts, join, permute=policy == "unordered_tree")
    return join(_Partial(start), total).state


def merge_scan(
    operands: Sequence[Array],
    axis: int,
    merge: Merge,
    *,
    policy: str,
    exclusive: bool,
    seeds: State,
    orders: Orders,
    call: Call,
) -> State:
    """All prefixes along an axis; see :class:`tvm_tile.ir.merge_ops.Scan`.

    Returns
    -------
    tuple of Array
        One a state, of the operands' shape.
    """
    identity = call(merge.identity, ())
    start = seeds or identity
    leaves = _leaves([np.moveaxis(x, axis, 0) for x in operands], merge, call)
    states = [start]
    for k, leaf in enumerate(leaves):
        if policy == "fold_left" or not orders.regroups:
            states.append(combined(merge, states[-1], leaf, call))
        else:
            prefix = orders.tree(
                leaves[: k + 1], lambda left, right: combined(merge, left, right, call), permute=False
            )
            states.append(combined(merge, start, prefix, call))
    shown = states[:-1] if exclusive else states[1:]
    shape = operands[0].shape
    outputs = []
    for k, part in enumerate(identity):
        out = np.empty(shape, part.dtype)
        along = np.moveaxis(out, axis, 0)
        for position, state in enumerate(shown):
            along[position] = state[k]
        outputs.append(out)
    return tuple(outputs)


def _contributions(x: Array, axes: tuple[int, ...]) -> Array:
    """The reduced axes flattened to the first one, the others behind it."""
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    return x.transpose(axes + kept).reshape((count, *(x.shape[axis] for axis in kept)))


def _leaves(contributions: Sequence[Array], merge: Merge, call: Call) -> list[State]:
    elements: list[State] = [
        tuple(np.asarray(part) for part in leaf) for leaf in zip(*contributions, strict=True)
    ]
    if merge.lift is None:
        return elements
    return [call(merge.lift, leaf) for leaf in elements]


def _joined(merge: Merge, left: _Partial, right: _Partial, call: Call) -> _Partial:
    both = combined(merge, left.state, right.state, call)
    if left.counted is None and right.counted is None:
        return _Partial(both)
    here: Array = np.asarray(True if left.counted is None else left.counted)
    there: Array = np.asarray(True if right.counted is None else right.counted)
    one = (np.where(here, a, b) for a, b in zip(left.state, right.state, strict=True))
    state = tuple(np.where(here & there, whole, part) for whole, part in zip(both, one, strict=True))
    return _Partial(state, None if left.counted is None else here | there)
