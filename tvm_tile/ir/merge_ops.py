"""Tile operations that combine elements with a merge: reductions over axes, and scans along one."""

from __future__ import annotations

from dataclasses import dataclass

from tvm_tile.ir.ops import Op
from tvm_tile.ir.regions import Merge
from tvm_tile.ir.values import Value

__all__ = ["MergeReduce", "Scan"]


@dataclass(frozen=True)
class MergeReduce(Op):
    """Reduction of tiles over axes with a merge.

    The operands have one shape. A state is shaped as the operands without the axes, and so are the
    parameters of the merge's functions: ``lift`` takes one element of each operand, side by side for all
    fibres at once, to a state; without it the elements are the states. The fibre runs through the axes in
    their order in the operand, the last one fastest. Seeds join once, on the left; an empty fibre gives the
    seed, or else the identity. ``where`` omits contributions.
    """

    outputs: tuple[Value, ...]
    operands: tuple[Value, ...]
    axes: tuple[int, ...]
    merge: Merge
    policy: str = "unordered_tree"
    seeds: tuple[Value, ...] = ()
    where: Value | None = None


@dataclass(frozen=True)
class Scan(Op):
    """All prefixes of a reduction along one axis; contributions are never permuted.

    States, the merge's functions and seeds are as in :class:`MergeReduce`. An output has the operands'
    shape: position ``i`` holds the combination of the contributions up to ``i``, or of those before ``i`` if
    ``exclusive``, where the first is the seed or the identity. ``policy`` is ``ordered_tree``, which may
    regroup, or ``fold_left``.
    """

    outputs: tuple[Value, ...]
    operands: tuple[Value, ...]
    axis: int
    merge: Merge
    exclusive: bool = False
    policy: str = "ordered_tree"
    seeds: tuple[Value, ...] = ()
