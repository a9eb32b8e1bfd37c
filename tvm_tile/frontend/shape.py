"""Operations that change a tile's shape and keep its elements."""

from __future__ import annotations

import math
import operator
from typing import Any

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend import operands
from tvm_tile.frontend.constructs import called_name
from tvm_tile.frontend.described import counted, described, items_of
from tvm_tile.frontend.index import Index
from tvm_tile.frontend.operands import like_weak, tile_of, value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.tile import Operators, Tile
from tvm_tile.ir.ops import Reshape, Transpose
from tvm_tile.ir.values import TileType

__all__ = ["broadcast_to", "normalized_axis", "reshape", "shape_argument", "transpose"]


def shape_argument(shape: Any, *, free: bool = False) -> tuple[int, ...]:
    """A static shape from an int or a sequence of ints.

    Parameters
    ----------
    free
        Whether one extent may be -1, to be found from the others.

    Raises
    ------
    CaptureError
        An extent is not a static int, or is negative.
    """
    items = items_of(shape)
    extents = []
    for item in (shape,) if items is None else items:
        if isinstance(item, (Index, Tile)):
            raise CaptureError(
                f"a tile's shape is static, but {item._describe()} is known only when the program runs",
                span=current_span(),
                suggestion="take a static size and mask the rest, or loop over a region of that extent",
            )
        try:
            extent = operator.index(item)
        except TypeError:
            shown = described(item)
            raise CaptureError(
                f"extent {shown} is no int",
                span=current_span(),
                suggestion=f"write a whole number, such as {_whole(item)}",
            ) from None
        if extent < 0 and not (free and extent == -1):
            raise CaptureError(
                f"extent {described(extent)} is negative",
                span=current_span(),
                suggestion="use an extent of 0 or more",
            )
        if extent >= 2**63:
            raise CaptureError(
                f"extent {described(extent)} does not fit 64 bits",
                span=current_span(),
                suggestion="use extents of less than 2**63",
            )
        extents.append(extent)
    return tuple(extents)


def _whole(item: Any) -> str:
    try:
        return str(int(float(item)))
    except (TypeError, ValueError, OverflowError, CaptureError):
        return "16"


def normalized_axis(axis: Any, rank: int, what: str) -> int:
    """An axis from 0, counted from the end if negative.

    Raises
    ------
    OperandError
        There is no such axis.
    """
    try:
        number = operator.index(axis)
    except (TypeError, CaptureError):
        span = current_span()
        shown = described(axis)
        name = called_name(span)
        remedy = "give an int, such as axis=0; contributions are left out by where=, a bool tile"
        if name in ("max", "min") and isinstance(axis, (float, Operators)):
            remedy = f"use tt.{name}imum for the {name} of two values"
        elif isinstance(axis, (tuple, list)):
            remedy = f"tt.{name} takes one axis; leave it out for the flattened tile, or tt.reshape first"
        raise OperandError(f"the axis {shown} of {what} is no int", span=span, suggestion=remedy) from None
    if not -rank <= number < rank:
        raise OperandError(
            f"{what} has {rank} ax{'i' if rank == 1 else 'e'}s and no axis {number}",
            span=current_span(),
            suggestion=f"use an axis from {-rank} to {rank - 1}" if rank else "leave axis out",
        )
    return number % rank


def transpose(x: Any, axes: Any = None) -> Tile:
    """Permute the axes.

    Parameters
    ----------
    x : tile
        Of any rank.
    axes : sequence of int, optional
        Axis ``d`` of the result is axis ``axes[d]`` of ``x``; by default all axes are reversed.

    Raises
    ------
    OperandError
        ``axes`` is no permutation.
    """
    tile = tile_of(x)
    rank = tile.ndim
    if axes is None:
        permutation = tuple(reversed(range(rank)))
    else:
        given = items_of(axes)
        if given is None:
            raise OperandError(
                f"axes={described(axes)} of tt.transpose is no sequence of ints",
                span=current_span(),
                suggestion=f"name every axis once, such as {tuple(reversed(range(rank)))}",
            )
        permutation = tuple(normalized_axis(axis, rank, tile._describe()) for axis in given)
    if permutation == tuple(range(rank)):
        return tile
    if sorted(permutation) != list(range(rank)):
        raise OperandError(
            f"{permutation} does not permute the {counted(rank, 'axis', 'axes')} of {tile._describe()}",
            span=current_span(),
            suggestion="name every axis once",
        )
    shape = tuple(tile.shape[axis] for axis in permutation)
    return like_weak(
        tile,
        lambda t: t.trace.emit(
            Transpose, TileType(shape, t.dtype), operand=value_of(t), permutation=permutation
        ),
    )


def reshape(x: Any, shape: Any) -> Tile:
    """Row-major reinterpretation with the same number of elements.

    Parameters
    ----------
    x : tile
        Of any shape.
    shape : int or sequence of int
        One extent may be -1.

    Raises
    ------
    OperandError
        The number of elements differs.
    """
    tile = tile_of(x)
    wanted = shape_argument(shape, free=True)
    known = math.prod(n for n in wanted if n != -1)
    fits = wanted.count(-1) < 2
    if fits and -1 in wanted:
        fits = known > 0 and tile.size % known == 0
        wanted = tuple(tile.size // known if n == -1 and fits else n for n in wanted)
    if not fits or math.prod(wanted) != tile.size:
        raise OperandError(
            f"{tile._describe()} has {tile.size} elements and does not reshape to {wanted}",
            span=current_span(),
            suggestion="keep the number of elements",
        )
    return reshaped(tile, wanted)


def reshaped(tile: Tile, shape: tuple[int, ...]) -> Tile:
    """The tile in a shape of the same size."""
    if shape == tile.shape:
        return tile
    return like_weak(tile, lambda t: t.trace.emit(Reshape, TileType(shape, t.dtype), operand=value_of(t)))


def broadcast_to(x: Any, shape: Any) -> Tile:
    """Repeat along new axes and along axes of extent 1.

    Parameters
    ----------
    x : tile, index or number
        What to repeat.
    shape : int or sequence of int
        Extents of the result; axes align at the end.

    Raises
    ------
    OperandError
        The shape of ``x`` does not broadcast to it.
    """
    return operands.broadcast(tile_of(x), shape_argument(shape))
