"""Calls of opaque C functions, by their symbol in this process."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm_tile.errors import UnsupportedError
from tvm_tile.ir.span import Span
from tvm_tile.semantics.rounding import Array

__all__ = ["call_extern"]

_C_TYPES: dict[str, Any] = {
    "bool": ctypes.c_uint8,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


def call_extern(symbol: str, arguments: Sequence[int | Array], span: Span | None = None) -> None:
    """Call ``void symbol(...)``.

    Parameters
    ----------
    arguments
        Addresses, and scalars as arrays of shape ``()``, which are passed by value as their C type.

    Raises
    ------
    UnsupportedError
        No library of this process defines the symbol.
    """
    try:
        function = getattr(ctypes.CDLL(None), symbol)
    except AttributeError:
        raise UnsupportedError(
            f"no library of this process defines the C function {symbol!r}",
            span=span,
            suggestion="load the library that has it first: ctypes.CDLL(path, ctypes.RTLD_GLOBAL)",
        ) from None
    passed: list[Any] = []
    for argument in arguments:
        if isinstance(argument, (np.ndarray, np.generic)):
            passed.append(_C_TYPES[str(argument.dtype)](argument.item()))
        else:
            passed.append(ctypes.c_void_p(argument))
    function.restype = None
    function.argtypes = [type(item) for item in passed]
    function(*passed)
