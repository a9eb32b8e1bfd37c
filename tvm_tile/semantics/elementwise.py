"""The meaning of every elementwise function on every dtype.

Operands are arrays of one shape and one dtype, as the IR demands. Callers suppress NumPy's floating-point
warnings (:func:`numpy.errstate`): overflow and invalid operations have defined results here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tvm_tile.ir.dtypes import STORAGE_ONLY, canonical_dtype, is_bool, is_float
from tvm_tile.ir.functions import FUNCTIONS
from tvm_tile.semantics.rounding import Array, cast, fused_multiply_add

__all__ = ["apply_elementwise"]

_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")

#: Functions that NumPy rounds correctly in the operands' own dtype, or that are exact.
_DIRECT: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "negative": np.negative,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "sqrt": np.sqrt,
    "isnan": np.isnan,
    "isinf": np.isinf,
    **{name: getattr(np, name) for name in _COMPARISONS},
}

_BITWISE: dict[str, Callable[..., Array]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    # NumPy's invert of a bool is the logical one.
    "invert": np.invert,
}


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x)).astype(np.float64)


def _sigmoid(x: Array) -> Array:
    # The exponential of a number that is not positive cannot overflow.
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, decay) / (1.0 + decay)


#: Functions computed in float64 and rounded once to the operands' dtype.
_WIDE: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": _erf,
    "sigmoid": _sigmoid,
    "power": np.power,
}


def apply_elementwise(fn: str, *operands: Array) -> Array:
    """Apply an elementwise function.

    Parameters
    ----------
    fn
        A name of :data:`tvm_tile.ir.functions.FUNCTIONS`.
    operands
        Arrays of equal shape; of one dtype, but for the condition of ``where``.

    Returns
    -------
    Array
        A new array: bool for comparisons and tests, else of the operands' dtype. Transcendental functions
        of float16, bfloat16 and float32 are computed in float64 and rounded once, so that they are almost
        always correctly rounded; those of float64 are as good as NumPy's.

    Raises
    ------
    ValueError
        The function is unknown, or not defined for the dtype.
    """
    dtype = canonical_dtype(operands[-1].dtype)
    function = FUNCTIONS.get(fn)
    if fn == "where":
        return np.where(*operands)
    if function is None or dtype in STORAGE_ONLY or _kind(dtype) not in function.kinds:
        raise ValueError(f"elementwise function {fn!r} is not defined for {dtype}")
    if fn == "fma":
        return fused_multiply_add(*operands)
    return _on_floats(fn, operands, dtype) if is_float(dtype) else _on_integers(fn, operands)


def _kind(dtype: str) -> str:
    if is_float(dtype):
        return "float"
    return "bool" if is_bool(dtype) else "uint" if dtype.startswith("u") else "int"


def _on_floats(fn: str, operands: tuple[Array, ...], dtype: str) -> Array:
    if fn in _WIDE:
        return cast(np.asarray(_WIDE[fn](*(cast(x, "float64") for x in operands))), dtype)
    if dtype != "bfloat16":
        return np.asarray(_DIRECT[fn](*operands))
    # Float32 has more than twice bfloat16's bits, so rounding + - * / and sqrt twice is rounding once.
    result = np.asarray(_DIRECT[fn](*(cast(x, "float32") for x in operands)))
    return result if result.dtype == np.bool_ else cast(result, dtype)


def _on_integers(fn: str, operands: tuple[Array, ...]) -> Array:
    match fn:
        case "power":
            return _integer_power(*operands)
        case "left_shift" | "right_shift":
            return _shift(fn, *operands)
    return np.asarray((_BITWISE.get(fn) or _DIRECT[fn])(*operands))


def _integer_power(base: Array, exponent: Array) -> Array:
    """Wrapping power; a negative exponent gives 0 except on the bases 1 and -1."""
    zero, one = base.dtype.type(0), base.dtype.type(1)
    negative = exponent < 0
    power = np.power(base, np.where(negative, zero, exponent))
    alternating = np.where(exponent & one == 0, one, base)
    inverse = np.where(base == one, one, np.where(base == np.negative(one), alternating, zero))
    return np.where(negative, inverse, power)


def _shift(fn: str, x: Array, count: Array) -> Array:
    """A shift by the width or more, or by a negative count, gives 0 or, to the right, the sign."""
    zero = x.dtype.type(0)
    too_far = (count < 0) | (count >= x.dtype.itemsize * 8)
    near = np.where(too_far, zero, count)
    if fn == "left_shift":
        return np.where(too_far, zero, np.left_shift(x, near))
    signs = np.where(x < 0, np.invert(zero), zero)
    return np.where(too_far, signs, np.right_shift(x, near))
