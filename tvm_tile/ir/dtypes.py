"""Element types: their names, NumPy counterparts and promotion.

A dtype is its canonical NumPy-style name, a plain string. Storage types (the float8 formats) can be
loaded, stored and cast, not computed with.
"""

from __future__ import annotations

import contextlib
from functools import cache
from typing import Any

import numpy as np

__all__ = [
    "DTYPES",
    "FLOATS",
    "SIGNED",
    "STORAGE_ONLY",
    "UNSIGNED",
    "accumulation_dtype",
    "bits",
    "canonical_dtype",
    "is_bool",
    "is_float",
    "is_integer",
    "is_narrowing",
    "numpy_dtype",
    "promote",
]

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
STORAGE_ONLY = ("float8_e4m3fn", "float8_e5m2")
DTYPES = ("bool", *SIGNED, *UNSIGNED, *FLOATS, *STORAGE_ONLY)

_ML_DTYPES = ("bfloat16", *STORAGE_ONLY)


@cache
def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of a canonical name; bfloat16 and float8 come from ``ml_dtypes``."""
    if dtype in _ML_DTYPES:
        import ml_dtypes

        special: np.dtype[Any] = np.dtype(getattr(ml_dtypes, dtype))
        return special
    return np.dtype(dtype)


def canonical_dtype(dtype: Any) -> str:
    """The canonical name of a dtype given as a name, a NumPy dtype or type, or a torch dtype.

    Raises
    ------
    TypeError
        The element type is not one of :data:`DTYPES`.
    """
    try:
        name = dtype if isinstance(dtype, str) else str(dtype)
    except Exception:  # Whatever the user's own text raises.
        kind = type(dtype).__name__
        raise TypeError(f"dtype, an object of {kind}, is not one of {', '.join(DTYPES)}") from None
    name = name.removeprefix("torch.")
    if name in DTYPES:
        return name
    # NumPy's answers to what is no dtype, to an object with one of its own, and to bad text of one.
    with contextlib.suppress(TypeError, ValueError, SyntaxError):
        name = np.dtype(dtype).name
    if name in DTYPES:
        return name
    raise TypeError(f"dtype {dtype!r} is not one of {', '.join(DTYPES)}")


def is_bool(dtype: str) -> bool:
    """Whether it is the truth-value type."""
    return dtype == "bool"


def is_float(dtype: str) -> bool:
    """Whether it is a floating-point type, storage-only formats included."""
    return dtype in FLOATS or dtype in STORAGE_ONLY


def is_integer(dtype: str) -> bool:
    """Whether it is a signed or unsigned integer type (bool is not)."""
    return dtype in SIGNED or dtype in UNSIGNED


def bits(dtype: str) -> int:
    """Width of one element in bits, as stored in memory."""
    return numpy_dtype(dtype).itemsize * 8


@cache
def promote(a: str, b: str) -> str:
    """NumPy promotion of two dtypes.

    Raises
    ------
    TypeError
        There is no common dtype: float16 with bfloat16, or a storage-only format in arithmetic.
    """
    if a == b:
        return a
    if {a, b} == {"float16", "bfloat16"}:
        raise TypeError("float16 and bfloat16 have no common dtype; cast one of them")
    if a in STORAGE_ONLY or b in STORAGE_ONLY:
        raise TypeError(f"{a} and {b} have no common dtype; float8 formats only load, store and cast")
    if "bfloat16" in (a, b):
        other = b if a == "bfloat16" else a
        if other in ("float32", "float64"):
            return other
        # NumPy widens small integers into float16 without loss; bfloat16 holds 8 bits exactly.
        if other in ("bool", "int8", "uint8"):
            return "bfloat16"
        return "float32" if other in ("int16", "uint16") else "float64"
    return np.promote_types(numpy_dtype(a), numpy_dtype(b)).name


@cache
def is_narrowing(source: str, target: str) -> bool:
    """Whether a conversion may lose values, so that it needs an explicit ``astype``."""
    if source == target:
        return False
    if target in STORAGE_ONLY:
        return True
    if source in STORAGE_ONLY:
        return not is_float(target)
    try:
        return promote(source, target) != target
    except TypeError:
        return True


def accumulation_dtype(dtype: str) -> str:
    """Dtype in which sums and products of this dtype are accumulated."""
    return {"int8": "int32", "int16": "int32", "float16": "float32", "bfloat16": "float32"}.get(dtype, dtype)
