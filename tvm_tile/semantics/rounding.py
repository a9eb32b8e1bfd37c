"""Conversions between element types, and the fused multiply-add: where values are rounded, and once.

NumPy and ``ml_dtypes`` convert float64 to bfloat16 and float8 by way of float32, which rounds twice.
Rounding to *odd* on the way keeps the sticky information, so that the second rounding is the only one
that counts (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using
rounding to odd", IEEE Transactions on Computers, 2008).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tvm_tile.ir.dtypes import (
    STORAGE_ONLY,
    bits,
    canonical_dtype,
    is_bool,
    is_float,
    is_integer,
    numpy_dtype,
)
from tvm_tile.ir.ops import Number

__all__ = ["Array", "cast", "constant", "fused_multiply_add"]

Array = np.ndarray[Any, Any]


def cast(x: Array, dtype: str) -> Array:
    """Convert a tile to another dtype with one rounding to nearest even.

    Float → int truncates and saturates, NaN gives 0. Float → bool is ``!= 0``. Int → int wraps. Float8
    overflow is what ``ml_dtypes`` does: ``float8_e4m3fn`` has no infinity and gives NaN beyond 464,
    ``float8_e5m2`` gives infinity beyond 61440.

    Parameters
    ----------
    x
        Array of any supported dtype and any shape.
    dtype
        Canonical name of the target dtype.

    Returns
    -------
    Array
        ``x`` itself if the dtype is the same, else a new array of the same shape.
    """
    source = canonical_dtype(x.dtype)
    if source == dtype:
        return x
    target = numpy_dtype(dtype)
    if is_bool(dtype):
        return np.asarray(_widened(x, source) != 0)
    if is_integer(dtype):
        return _saturated(x, source, dtype) if is_float(source) else x.astype(target)
    if dtype == "bfloat16" or dtype in STORAGE_ONLY:
        return _to_small_float(x, source).astype(target)
    return _widened(x, source).astype(target)


def _widened(x: Array, source: str) -> Array:
    """The same values in a dtype that NumPy itself converts rightly."""
    return x.astype(np.float32) if source == "bfloat16" or source in STORAGE_ONLY else x


def _saturated(x: Array, source: str, dtype: str) -> Array:
    wide = _widened(x, source).astype(np.float64)
    target = numpy_dtype(dtype)
    info = np.iinfo(target)
    # The exclusive upper end is a power of two and so exact in float64, where info.max may not be.
    above = wide >= math.ldexp(1.0, int(info.max).bit_length())
    below = wide <= float(info.min)
    inside = np.where(above | below | np.isnan(wide), 0.0, wide).astype(target)
    return np.where(above, target.type(info.max), np.where(below, target.type(info.min), inside))


def _to_small_float(x: Array, source: str) -> Array:
    """Float32 values that round to nearest in a float of at most 11 bits as the values of ``x`` do."""
    if source in ("int64", "uint64", "int32", "uint32"):
        return _odd_float32(_odd_float64_of_integers(x))
    if source == "float64":
        return _odd_float32(x)
    return _widened(x, source).astype(np.float32)


def _odd_float64_of_integers(x: Array) -> Array:
    """Float64 values on the same side of every short float's rounding boundaries as the integers."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    low = x & x.dtype.type(0xFFFF)
    sticky = np.where(low != 0, x.dtype.type(0x10000), x.dtype.type(0))
    large = np.asarray((x > 2**52) | (x < -(2**52)) if x.dtype.kind == "i" else x > 2**52)
    return np.where(large, (x - low) | sticky, x).astype(np.float64)


def _odd_float32(x: Array) -> Array:
    """Float64 rounded to float32, to the neighbour with an odd last bit where inexact."""
    near = np.asarray(x.astype(np.float32))
    back = near.astype(np.float64)
    even = (near.view(np.uint32) & 1) == 0
    toward = np.where(back < x, np.float32(np.inf), np.float32(-np.inf))
    return np.where((back != x) & ~np.isnan(x) & even, np.nextafter(near, toward), near)


def _odd_sum(a: Array, b: Array) -> Array:
    """``a + b`` in float64, rounded to odd; the operands may not overflow."""
    total = np.asarray(a + b)
    shadow = total - a
    error = (a - (total - shadow)) + (b - shadow)
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.where(np.isfinite(total) & (error != 0) & even, np.nextafter(total, toward), total)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` with one rounding, in the common dtype of the three tiles.

    The product of two floats of at most 24 bits is exact in float64; the sum is rounded to odd there and
    to nearest once. Float64 itself goes element by element through exact rationals.
    """
    dtype = canonical_dtype(a.dtype)
    if dtype == "float64":
        # The object array that comes back holds Python floats, one an element.
        return np.asarray(np.frompyfunc(_fma_float64, 3, 1)(a, b, c)).astype(np.float64)
    wide = [cast(x, "float64") for x in (a, b, c)]
    return cast(_odd_sum(np.asarray(wide[0] * wide[1]), wide[2]), dtype)


def _fma_float64(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        # Zero operands keep IEEE's signs; an exact cancellation of nonzero terms is +0.
        return a * b + c if a == 0 or b == 0 else 0.0
    try:
        rounded = abs(exact.numerator) / exact.denominator
    except OverflowError:
        rounded = math.inf
    return rounded if exact > 0 else -rounded


def constant(number: Number, dtype: str) -> Array:
    """A literal as a scalar of a dtype; an integer literal wraps into an integer dtype."""
    value = number.value
    if isinstance(value, int) and not isinstance(value, bool):
        if is_integer(dtype):
            width = bits(dtype)
            value &= (1 << width) - 1
            if np.iinfo(numpy_dtype(dtype)).min < 0 and value >> (width - 1):
                value -= 1 << width
            return np.asarray(value, dtype=numpy_dtype(dtype))
        if not -(2**63) <= value < 2**64:
            value = float(value)
    return cast(np.asarray(value), dtype)
