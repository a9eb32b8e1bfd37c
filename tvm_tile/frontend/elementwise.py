"""Elementwise functions with NumPy's broadcasting and promotion."""

from __future__ import annotations

from typing import Any

from tvm_tile.errors import OperandError
from tvm_tile.frontend.arithmetic import apply
from tvm_tile.frontend.operands import converted, dtype_argument, filled, is_number, literal, tile_of
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import require_trace

__all__ = [
    "abs",
    "cast",
    "ceil",
    "cos",
    "erf",
    "exp",
    "exp2",
    "floor",
    "fma",
    "isinf",
    "isnan",
    "log",
    "log2",
    "maximum",
    "minimum",
    "power",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sqrt",
    "tanh",
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
    return apply("where", condition, x, y)  # type: ignore[no-any-return]


def exp(x: Any) -> Tile:
    """e to the power of each element; ints compute in the float that NumPy takes."""
    return apply("exp", x)  # type: ignore[no-any-return]


def exp2(x: Any) -> Tile:
    """2 to the power of each element."""
    return apply("exp2", x)  # type: ignore[no-any-return]


def log(x: Any) -> Tile:
    """Natural logarithm; of 0 it is -inf, of a negative number NaN."""
    return apply("log", x)  # type: ignore[no-any-return]


def log2(x: Any) -> Tile:
    """Logarithm to base 2."""
    return apply("log2", x)  # type: ignore[no-any-return]


def sqrt(x: Any) -> Tile:
    """Square root, correctly rounded; of a negative number NaN."""
    return apply("sqrt", x)  # type: ignore[no-any-return]


def rsqrt(x: Any) -> Tile:
    """Reciprocal of the square root."""
    return apply("rsqrt", x)  # type: ignore[no-any-return]


def sin(x: Any) -> Tile:
    """Sine of radians."""
    return apply("sin", x)  # type: ignore[no-any-return]


def cos(x: Any) -> Tile:
    """Cosine of radians."""
    return apply("cos", x)  # type: ignore[no-any-return]


def tanh(x: Any) -> Tile:
    """Hyperbolic tangent."""
    return apply("tanh", x)  # type: ignore[no-any-return]


def erf(x: Any) -> Tile:
    """Gauss error function."""
    return apply("erf", x)  # type: ignore[no-any-return]


def sigmoid(x: Any) -> Tile:
    """``1 / (1 + exp(-x))`` without overflow."""
    return apply("sigmoid", x)  # type: ignore[no-any-return]


def abs(x: Any) -> Tile:
    """Absolute value; that of the least integer wraps to itself."""
    return apply("abs", x)  # type: ignore[no-any-return]


def floor(x: Any) -> Tile:
    """Largest whole number not above; ints stay as they are."""
    return apply("floor", x)  # type: ignore[no-any-return]


def ceil(x: Any) -> Tile:
    """Smallest whole number not below; ints stay as they are."""
    return apply("ceil", x)  # type: ignore[no-any-return]


def round(x: Any) -> Tile:
    """Nearest whole number, halves to even; ints stay as they are."""
    return apply("round", x)  # type: ignore[no-any-return]


def isnan(x: Any) -> Tile:
    """Whether each element is NaN."""
    return apply("isnan", x)  # type: ignore[no-any-return]


def isinf(x: Any) -> Tile:
    """Whether each element is an infinity of either sign."""
    return apply("isinf", x)  # type: ignore[no-any-return]


def maximum(x: Any, y: Any) -> Any:
    """The larger of each two elements; NaN if either is.

    Of two indices (or an index and an int) it is an index, exact and usable in subscripts and extents; of
    two Python ints it is a Python int.
    """
    return _extremum("maximum", x, y)


def minimum(x: Any, y: Any) -> Any:
    """The smaller of each two elements; NaN if either is.

    Of two indices (or an index and an int) it is an index, exact and usable in subscripts and extents; of
    two Python ints it is a Python int.
    """
    return _extremum("minimum", x, y)


def _extremum(fn: str, x: Any, y: Any) -> Any:
    if type(x) is int and type(y) is int:
        return (x if x >= y else y) if fn == "maximum" else (x if x <= y else y)
    return apply(fn, x, y)


def power(x: Any, y: Any) -> Tile:
    """``x ** y``; integers wrap, and a negative integer exponent gives 0 except for the bases 1 and -1."""
    return apply("power", x, y)  # type: ignore[no-any-return]


def fma(x: Any, y: Any, z: Any) -> Tile:
    """``x * y + z`` with one rounding.

    Raises
    ------
    OperandError
        The promoted dtype is no float.
    """
    require_trace("fma")
    return apply("fma", x, y, z)  # type: ignore[no-any-return]


def _holds(x: Any, dtype: str) -> bool:
    try:
        literal(x, dtype)
    except OperandError:
        return False
    return True
