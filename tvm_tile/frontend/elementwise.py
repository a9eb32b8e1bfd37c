"""Conversion, selection and elementwise functions of several operands, with NumPy's broadcasting."""

from __future__ import annotations

from typing import Any

from tvm_tile.errors import OperandError
from tvm_tile.frontend.arithmetic import applied, apply
from tvm_tile.frontend.operands import converted, dtype_argument, filled, is_number, literal, tile_of
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import require_trace

__all__ = [
    "add",
    "cast",
    "fma",
    "maximum",
    "minimum",
    "power",
    "where",
]


def cast(x: Any, dtype: Any) -> Tile:
    """Convert the elements to a dtype; the same as ``x.astype(dtype)``.

    Parameters
    ----------
    x : tile, index or number
        What to convert.
    dtype
        Name, NumPy dtype or type, or torch dtype.

    Returns
    -------
    Tile
        Of ``x``'s shape. Narrower floats round to nearest even; float to int truncates and saturates, and
        NaN gives 0; anything but 0 is true.

    Raises
    ------
    OperandError
        There is no such dtype.
    """
    dtype = dtype_argument(dtype)
    # A literal that the dtype holds needs no conversion when the program runs.
    if is_number(x) and _holds(x, dtype):
        return filled(require_trace("tt.cast"), (), x, dtype)
    return converted(tile_of(x), dtype)


def add(x: Any, y: Any) -> Any:
    """``x + y`` element by element; as a merge, the sum.

    Parameters
    ----------
    x, y : tile, index or number
        Operands. Of bool it is `or`, as in NumPy.

    Returns
    -------
    Tile, index or number
        What ``x + y`` gives: of indices an index, of Python numbers a number.

    Raises
    ------
    OperandError
        Shapes do not broadcast, or the dtypes have no common one.
    """
    if isinstance(x, (int, float)) and isinstance(y, (int, float)):
        return x + y
    return apply("add", x, y)


def where(condition: Any, x: Any, y: Any) -> Tile:
    """``x`` where the condition holds, else ``y``.

    Parameters
    ----------
    condition : tile, index comparison or bool
        Truth values; numbers count as true unless 0.
    x, y : tile, index or number
        Both are evaluated.

    Returns
    -------
    Tile
        Of the broadcast shape and the promoted dtype of ``x`` and ``y``.

    Raises
    ------
    OperandError
        Shapes do not broadcast, or the dtypes have no common one.
    """
    return applied("where", condition, x, y)


def maximum(x: Any, y: Any) -> Any:
    """The larger of each two elements; NaN if either is.

    Parameters
    ----------
    x, y : tile, index or number
        Operands.

    Returns
    -------
    Tile, index or int
        Of indices, or an index and an int, it is an index: exact, and fit for subscripts and extents. Of two
        Python ints it is a Python int.

    Raises
    ------
    OperandError
        Shapes do not broadcast, or the dtypes have no common one.
    """
    return _extremum("maximum", x, y)


def minimum(x: Any, y: Any) -> Any:
    """The smaller of each two elements; NaN if either is.

    Parameters
    ----------
    x, y : tile, index or number
        Operands.

    Returns
    -------
    Tile, index or int
        Of indices, or an index and an int, it is an index: exact, and fit for subscripts and extents. Of two
        Python ints it is a Python int.

    Raises
    ------
    OperandError
        Shapes do not broadcast, or the dtypes have no common one.
    """
    return _extremum("minimum", x, y)


def _extremum(fn: str, x: Any, y: Any) -> Any:
    if type(x) is int and type(y) is int:
        return (x if x >= y else y) if fn == "maximum" else (x if x <= y else y)
    return apply(fn, x, y)


def power(x: Any, y: Any) -> Tile:
    """``x ** y`` element by element.

    Parameters
    ----------
    x, y : tile, index or number
        Base and exponent. Integers wrap; a negative integer exponent gives 0, except for the bases 1 and -1.

    Returns
    -------
    Tile
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    OperandError
        Shapes do not broadcast, or the dtypes have no common one.
    """
    return applied("power", x, y)


def fma(x: Any, y: Any, z: Any) -> Tile:
    """``x * y + z`` element by element, with one rounding.

    Parameters
    ----------
    x, y, z : tile, index or number
        Factors and addend.

    Returns
    -------
    Tile
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    OperandError
        Shapes do not broadcast, or the promoted dtype is no float.
    """
    return applied("fma", x, y, z)


def _holds(x: Any, dtype: str) -> bool:
    try:
        literal(x, dtype)
    except OperandError:
        return False
    return True
