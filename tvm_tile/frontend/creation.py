"""Tiles made from numbers alone."""

from __future__ import annotations

from typing import Any

from tvm_tile.frontend.arithmetic import apply
from tvm_tile.frontend.operands import broadcast, converted, dtype_argument, filled, is_number, tile_of
from tvm_tile.frontend.shape import reshaped, shape_argument
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import require_trace
from tvm_tile.ir.dtypes import is_integer
from tvm_tile.ir.ops import Iota
from tvm_tile.ir.values import TileType

__all__ = ["eye", "full", "iota", "ones", "zeros"]


def full(shape: Any, value: Any, dtype: Any) -> Tile:
    """A tile with the same value everywhere.

    Parameters
    ----------
    shape : int or sequence of int
        Extents; ``()`` makes a scalar.
    value : number, index or scalar tile
        The value. A number must fit the dtype; a tile is converted to it.
    dtype
        Element type.

    Raises
    ------
    OperandError
        The number does not fit the dtype, or the value does not broadcast.
    """
    return _filled("tt.full", shape, value, dtype)


def _filled(what: str, shape: Any, value: Any, dtype: Any) -> Tile:
    trace = require_trace(what)
    extents, dtype = shape_argument(shape), dtype_argument(dtype)
    if is_number(value):
        return filled(trace, extents, value, dtype)
    return broadcast(converted(tile_of(value), dtype), extents)


def zeros(shape: Any, dtype: Any) -> Tile:
    """A tile of zeros.

    Parameters
    ----------
    shape : int or sequence of int
        Extents; ``()`` makes a scalar.
    dtype
        Element type.
    """
    return _filled("tt.zeros", shape, 0, dtype)


def ones(shape: Any, dtype: Any) -> Tile:
    """A tile of ones.

    Parameters
    ----------
    shape : int or sequence of int
        Extents; ``()`` makes a scalar.
    dtype
        Element type.
    """
    return _filled("tt.ones", shape, 1, dtype)


def iota(n: int, dtype: Any) -> Tile:
    """``0, 1, ..., n-1`` in one axis.

    Parameters
    ----------
    n : int
        Static extent.
    dtype
        Element type; numbers beyond its range wrap, or round, as in a conversion from ``int64``.
    """
    trace = require_trace("tt.iota")
    dtype = dtype_argument(dtype)
    shape = shape_argument(n)
    direct = dtype if is_integer(dtype) or dtype in ("float32", "float64") else "int64"
    return converted(trace.emit(Iota, TileType(shape, direct)), dtype)


def eye(n: int, dtype: Any) -> Tile:
    """The ``n`` by ``n`` identity matrix.

    Parameters
    ----------
    n : int
        Static extent.
    dtype
        Element type.
    """
    require_trace("tt.eye")
    dtype = dtype_argument(dtype)
    positions = iota(n, "int32")
    extent = positions.shape[0]
    diagonal = apply("equal", reshaped(positions, (extent, 1)), reshaped(positions, (1, extent)))
    return converted(diagonal, dtype)
