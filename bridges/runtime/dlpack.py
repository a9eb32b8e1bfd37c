"""The corners of DLPack that NumPy and TVM leave open: ml_dtypes element types and read-only producers.

Here and in its neighbours TVM is imported by the functions that need it: ``import tvm_tile`` loads these
modules, and not TVM.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tvm_tile.ir.dtypes import bits

__all__ = ["FOREIGN_CODES", "array_at", "is_read_only", "tensor_of"]

#: DLPack's type codes of the element types that NumPy itself cannot export.
FOREIGN_CODES = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e5m2": 12}

_READ_ONLY_FLAG = 1

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _DLTensor(ctypes.Structure):
    """``DLTensor`` of the DLPack standard."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _ManagedVersioned(ctypes.Structure):
    """The head of ``DLManagedTensorVersioned``, up to its flags."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
    )


class _Interface:
    """Memory at an address, for NumPy; keeps its owner alive."""

    def __init__(self, description: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = description
        self.owner = owner


def array_at(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, owner: Any
) -> np.ndarray:
    """A writable array of raw unsigned elements over memory that someone else owns.

    The memory may be unaligned, or belong to a read-only array: whoever asks for this view promises to
    write only what may be written. ``strides`` are in bytes.
    """
    description = {
        "data": (address, False),
        "shape": shape,
        "strides": strides,
        "typestr": f"|u{itemsize}" if itemsize == 1 else np.dtype(f"u{itemsize}").str,
        "version": 3,
    }
    return np.asarray(_Interface(description, owner))


def tensor_of(raw: np.ndarray, dtype: str) -> Any:
    """A TVM tensor of any element type over an array of the same width; nothing is copied."""
    import tvm_ffi

    view = raw if dtype in FOREIGN_CODES else raw.view(dtype)
    capsule = view.__dlpack__()
    if dtype in FOREIGN_CODES:
        tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
        tensor.code, tensor.bits = FOREIGN_CODES[dtype], bits(dtype)
    return tvm_ffi.from_dlpack(capsule)


def is_read_only(producer: Any) -> bool:
    """Whether a DLPack producer says that its memory must not be written; old ones cannot say so."""
    try:
        capsule = producer.__dlpack__(max_version=(1, 0))
        pointer = _capsule_pointer(capsule, b"dltensor_versioned")
    except (TypeError, ValueError, BufferError):
        return False
    return bool(_ManagedVersioned.from_address(pointer).flags & _READ_ONLY_FLAG)
