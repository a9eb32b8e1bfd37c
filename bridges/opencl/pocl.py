"""A fault of PoCL 3.0 on processors that are newer than it.

The wheel's LLVM calls a processor that it does not know ``generic``, and PoCL hands that name to Clang, which
does not take it, so that no kernel compiles. There is no option or environment variable for the name. It is
a string in PoCL's record of the device, next to the target triple; where exactly those two strings are found
side by side, the name is replaced by the one of the x86-64 level that the processor has.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from itertools import pairwise
from typing import Any

from tvm_tile.bridges.tirx.target import reported_flags

__all__ = ["name_unknown_processor"]

_TRIPLE, _UNKNOWN = b"x86_64-", b"generic\0"
#: Bytes of the record that are searched.
_RECORD = 4096

#: Levels of x86-64 with the flags by which Linux reports what is in them, and not in those below.
_LEVELS = (
    (b"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    (b"x86-64-v3", {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}),
    (b"x86-64-v2", {"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
)

#: The names that records point to, for as long as the process lives.
_names: list[Any] = []


def name_unknown_processor(device: Any) -> None:
    """Give the processor of a PoCL device a name that its compiler knows, if it has none.

    Parameters
    ----------
    device
        A ``pyopencl.Device``, before anything is compiled for it.
    """
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return
    if "PoCL" not in device.version:
        return
    record = int(device.int_ptr)
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        offset = _offset_of_name(memory, record)
    finally:
        os.close(memory)
    if offset is None:
        return
    name = ctypes.create_string_buffer(_level())
    _names.append(name)
    ctypes.c_uint64.from_address(record + offset).value = ctypes.addressof(name)


def _offset_of_name(memory: int, record: int) -> int | None:
    """Where the record points to the unknown name, right after the triple."""
    words = struct.unpack(f"<{_RECORD // 8}Q", _read(memory, record, _RECORD) or bytes(_RECORD))
    for k, (triple, name) in enumerate(pairwise(words)):
        if (_read(memory, name, len(_UNKNOWN)), _read(memory, triple, len(_TRIPLE))) == (_UNKNOWN, _TRIPLE):
            return 8 * (k + 1)
    return None


def _read(memory: int, address: int, size: int) -> bytes:
    """Bytes of this process, or none where there is no memory."""
    if not 1 << 12 <= address < 1 << 47:
        return b""
    try:
        return os.pread(memory, size, address)
    except OSError:
        return b""


def _level() -> bytes:
    flags = reported_flags()
    for k, (name, _) in enumerate(_LEVELS):
        if all(needed <= flags for _, needed in _LEVELS[k:]):
            return name
    return b"x86-64"
