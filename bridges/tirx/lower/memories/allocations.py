"""Explicit memory: one buffer for each, a new life at each execution, and guard zones in debug builds.

A block that makes memories ends their lives; a debug build then looks whether the words around them are
still what it put there.
"""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import BufferLoad, BufferStore, IntImm

from tvm_tile.bridges.tirx.lower.builder import Builder
from tvm_tile.bridges.tirx.lower.memories.addresses import GUARD_ELEMENTS, buffer_size
from tvm_tile.bridges.tirx.lower.scalars import int64
from tvm_tile.bridges.tirx.lower.tiles.parts import position_of
from tvm_tile.bridges.tirx.prologue import debug_assertion
from tvm_tile.ir.dtypes import STORAGE_ONLY, bits
from tvm_tile.ir.values import Memory

__all__ = ["allocate_memory", "check_guards"]

#: How elements are held that TVM's passes would rewrite, and not always rightly: as their bits.
_WORDS = {"bool": "uint8", "bfloat16": "uint16"} | dict.fromkeys(STORAGE_ONLY, "uint8")

#: Byte that fills guard zones; as a float it is an odd number, as an integer neither 0 nor -1.
_PATTERN = 0xA5


def allocate_memory(builder: Builder, memory: Memory) -> None:
    """Give a memory its buffer; elements are not initialized."""
    size = buffer_size(memory)
    if builder.debug:
        size += 2 * GUARD_ELEMENTS
    builder.buffers[memory] = builder.allocate(memory.name, size, _WORDS.get(memory.dtype, memory.dtype))
    if builder.debug:
        _over_guards(builder, memory, fill=True)


def check_guards(builder: Builder, memory: Memory) -> None:
    """Assert, at the end of a memory's life, that nothing was written around it."""
    _over_guards(builder, memory, fill=False)


def _over_guards(builder: Builder, memory: Memory, fill: bool) -> None:
    buffer = builder.buffers[memory]
    dtype = str(buffer.dtype)
    word = f"uint{bits(dtype)}"
    pattern = int.from_bytes(bytes([_PATTERN]) * (bits(dtype) // 8), "little")
    # Literals are integers of 64 bits with a sign.
    literal = (
        tirx.reinterpret(word, int64(pattern - (1 << 64))) if word == "uint64" else IntImm(word, pattern)
    )
    where = position_of(memory.span)
    for zone, start in (("before its first", 0), ("after its last", GUARD_ELEMENTS + buffer_size(memory))):
        step = builder.variable("guard")
        at = step + int64(start)
        with builder.block() as statements:
            if fill:
                builder.emit(BufferStore(buffer, _as(literal, dtype), [at]))
            else:
                kept = tirx.EQ(_as(BufferLoad(buffer, [at]), word), literal)
                message = f"{where}: memory {memory.name} was written out of bounds, {zone} element"
                builder.emit(debug_assertion(kept, message))
        builder.emit(builder.loop(step, GUARD_ELEMENTS, statements))


def _as(value: object, dtype: str) -> object:
    return value if str(value.ty.dtype) == dtype else tirx.reinterpret(dtype, value)  # type: ignore[attr-defined]
