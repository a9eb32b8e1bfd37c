"""Tiles from pieces: joined along an axis, cut along one, elements picked by position, a part replaced."""

from __future__ import annotations

import operator
from typing import Any

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.described import counted, described, items_of
from tvm_tile.frontend.function_merges import combine_argument
from tvm_tile.frontend.operands import adapted, broadcast, common_dtype, is_number, tile_of, value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.shape import normalized_axis, reshaped
from tvm_tile.frontend.stores import storable
from tvm_tile.frontend.subscripts import extract, resolve_subscripts
from tvm_tile.frontend.tensor import fill_literal
from tvm_tile.frontend.tile import Tile
from tvm_tile.ir.dtypes import is_integer
from tvm_tile.ir.ops import Concat, Gather, Insert, subscript_shape
from tvm_tile.ir.typing import TypeFault, broadcast_shapes
from tvm_tile.ir.values import TileType

__all__ = ["concat", "gather", "split", "update"]


def concat(tiles: Any, axis: Any = 0) -> Tile:
    """Join tiles along an axis, as :func:`numpy.concatenate` does.

    Parameters
    ----------
    tiles : sequence of tile
        One at least, of one rank of 1 or more, with equal extents in the other axes.
    axis : int
        Axis along which they follow one another.

    Returns
    -------
    Tile
        Of the promoted dtype; its extent along the axis is the sum of theirs.

    Raises
    ------
    OperandError
        No tiles, or their ranks, other extents or dtypes do not fit.
    """
    span = current_span()
    items = items_of(tiles)
    if items is None:
        raise OperandError(
            f"tt.concat takes a sequence of tiles, not {described(tiles)}",
            span=span,
            suggestion="write them in one tuple: tt.concat((a, b), axis=0)",
        )
    parts = [tile_of(part) for part in items]
    if not parts:
        raise OperandError("tt.concat of no tiles", span=span, suggestion="give one tile at least")
    first = parts[0]
    if first.ndim == 0:
        raise OperandError(
            f"{first._describe()} is a scalar and has no axis to join along",
            span=span,
            suggestion="give it one: x[None]",
        )
    along = normalized_axis(axis, first.ndim, first._describe())
    for part in parts[1:]:
        if part.ndim != first.ndim or any(
            a != b for d, (a, b) in enumerate(zip(part.shape, first.shape, strict=True)) if d != along
        ):
            raise OperandError(
                f"{part._describe()} does not join {first._describe()} along axis {along}: "
                f"shapes {part.shape} and {first.shape} differ in another axis",
                span=span,
                suggestion="give all tiles the same extents but for that axis",
            )
    dtype = common_dtype(*parts)
    parts = [adapted(part, dtype) for part in parts]
    if len(parts) == 1:
        return parts[0]
    total = sum(part.shape[along] for part in parts)
    shape = (*first.shape[:along], total, *first.shape[along + 1 :])
    return first.trace.emit(Concat, TileType(shape, dtype), operands=tuple(map(value_of, parts)), axis=along)


def split(x: Any, sections: Any, axis: Any = 0) -> tuple[Tile, ...]:
    """Cut a tile along an axis, as :func:`numpy.split` does.

    Parameters
    ----------
    x : tile
        Of rank 1 or more.
    sections : int or sequence of int
        An int is the number of equal parts; it must divide the extent. A sequence holds the positions of the
        cuts, not sizes: ``[2, 5]`` gives ``x[:2]``, ``x[2:5]`` and ``x[5:]``.
    axis : int
        Axis to cut.

    Returns
    -------
    tuple of Tile
        The parts in order.

    Raises
    ------
    OperandError
        The number of parts does not divide the extent, or the axis does not exist.
    """
    tile = tile_of(x)
    along = normalized_axis(axis, tile.ndim, tile._describe())
    extent = tile.shape[along]
    items = items_of(sections)
    if items is not None:
        cuts = [_static(cut) for cut in items]
    else:
        count = _static(sections)
        if count < 1 or extent % count:
            raise OperandError(
                f"axis {along} of {tile._describe()} has {extent} elements, which do not make {count} "
                "equal parts",
                span=current_span(),
                suggestion="take a divisor, or give the positions of the cuts: tt.split(x, [2, 5])",
            )
        cuts = [extent // count * k for k in range(1, count)]
    ends = zip([0, *cuts], [*cuts, extent], strict=True)
    return tuple(extract(tile, (*[slice(None)] * along, slice(start, stop))) for start, stop in ends)


def _static(x: Any) -> int:
    try:
        return operator.index(x)
    except (TypeError, CaptureError):
        raise OperandError(
            f"tt.split needs static ints, not {described(x)}",
            span=current_span(),
            suggestion="take a part that starts at an index with x[tt.ds(start, size)]",
        ) from None


def gather(x: Any, index: Any, axis: Any = 0, fill: Any = 0) -> Tile:
    """Pick elements along an axis by position, as :func:`numpy.take_along_axis` does.

    Parameters
    ----------
    x : tile
        Where to pick from.
    index : integer tile
        Positions, of the rank of ``x``; the axes other than ``axis`` broadcast with those of ``x``.
    axis : int
        Axis that the positions count along.
    fill : number
        Value for positions outside of ``x``; negative ones are outside too, unlike in NumPy.

    Returns
    -------
    Tile
        ``result[i, j] == x[i, index[i, j]]`` for ``axis=1``; along the axis it has the extent of ``index``.

    Raises
    ------
    OperandError
        The index is no integer tile, or ranks or extents do not fit.
    """
    tile, positions = tile_of(x), tile_of(index)
    span = current_span()
    if not is_integer(positions.dtype):
        raise OperandError(
            f"tt.gather picks by integers, and {positions._describe()} holds none",
            span=span,
            suggestion='convert it with .astype("int32"), or select with tt.where',
        )
    if positions.ndim != tile.ndim:
        raise OperandError(
            f"{positions._describe()} has {counted(positions.ndim, 'axis', 'axes')}, "
            f"{tile._describe()} has {tile.ndim}",
            span=span,
            suggestion="give the positions as many axes as the tile, such as index[None, :]",
        )
    along = normalized_axis(axis, tile.ndim, tile._describe())
    if not is_number(fill):
        raise OperandError(
            f"fill={described(fill)} is no number",
            span=span,
            suggestion="select what lies outside with tt.where(index < n, ..., ...)",
        )

    def others(shape: tuple[int, ...], extent: int) -> tuple[int, ...]:
        return (*shape[:along], extent, *shape[along + 1 :])

    try:
        around = broadcast_shapes(others(tile.shape, 1), others(positions.shape, 1))
    except TypeFault:
        raise OperandError(
            f"{positions._describe()} does not fit {tile._describe()} in the axes other than {along}",
            span=span,
            suggestion="give the positions extents there that are equal or 1",
        ) from None
    shape = others(around, positions.shape[along])
    return tile.trace.emit(
        Gather,
        TileType(shape, tile.dtype),
        operand=value_of(broadcast(tile, others(around, tile.shape[along]))),
        index=value_of(broadcast(positions, shape)),
        axis=along,
        fill=fill_literal(fill, tile.dtype),
    )


def update(x: Any, subscripts: Any, value: Any, combine: Any = None) -> Tile:
    """A tile with a part replaced; ``x`` itself does not change.

    ``T = tt.update(T, idx, v)`` for a tile ``T`` from outside of a :func:`parallel` loop is the instance's
    patch: every instance sees ``T`` as it was before the loop with its own updates, and after the loop each
    element has the value of the one instance that wrote it, or the one from before.

    Parameters
    ----------
    x : tile
        What to update.
    subscripts
        The part, as between the brackets of ``x[...]``: ints, indices, :func:`ds`, slices of static length.
        What lies outside of ``x`` is dropped.
    value : tile, index or number
        Broadcasts to the part; it is widened to the dtype of ``x`` but never narrowed.
    combine : optional
        :func:`add`, :func:`maximum`, :func:`minimum`, or a reduction such as :func:`prod`: joins what several
        instances of a parallel loop write to one element. Without it that is an error.

    Returns
    -------
    Tile
        Of the shape and dtype of ``x``.

    Raises
    ------
    OperandError
        The value would be narrowed or does not broadcast, or the subscripts do not fit.
    CaptureError
        ``combine`` is no function that combines.
    """
    tile = tile_of(x)
    fn = None if combine is None else combine_argument(combine, tile.dtype)
    resolved, shape = resolve_subscripts(subscripts, tile.shape, tile._describe(), new_axes=False)
    part = storable(value, shape, tile.dtype, tile._describe())
    return tile.trace.emit(
        Insert,
        tile.type,
        operand=value_of(tile),
        subscripts=resolved,
        value=value_of(reshaped(part, subscript_shape(resolved))),
        combine=fn,
    )
