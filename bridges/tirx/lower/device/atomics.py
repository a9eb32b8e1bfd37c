"""Atomic updates on devices: functions of the dialect where it has them, else compare-and-exchange loops.

Loops work on whole words of 32 or 64 bits. A narrower element is part of an aligned word of 32 bits, whose
other part is written back as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.tirx import BufferStore, Cast, IfThenElse, IntImm, While, call_extern, call_pure_extern

from tvm_tile.bridges.tirx.lower.builder import Body, Builder, sequence
from tvm_tile.bridges.tirx.lower.elements.elementwise import apply
from tvm_tile.bridges.tirx.lower.memories.memory import from_storage, subscripts_of, to_storage
from tvm_tile.bridges.tirx.lower.scalars import int64
from tvm_tile.bridges.tirx.lower.values import Index
from tvm_tile.errors import UnsupportedError
from tvm_tile.ir.dtypes import bits, is_float
from tvm_tile.ir.values import Memory

__all__ = ["update_on_device"]

Keep = Callable[[Any], Any]


def update_on_device(body: Body, fn: str, memory: Memory, index: Index, operand: Any, keep: Keep) -> None:
    """Emit one update.

    Parameters
    ----------
    body
        Receives the statements.
    fn
        ``add``, ``maximum`` or ``minimum``.
    memory, index
        The element, which is in bounds.
    operand
        Register expression.
    keep
        Makes the statement that takes what was there before, as a register expression.
    """
    builder = body.builder
    buffer = builder.buffers[memory]
    element = tirx.BufferLoad(buffer, subscripts_of(memory, index, builder))
    if any(allocation.buffer.name == buffer.name for allocation in builder.allocations):
        _update_private(body, fn, memory.dtype, element, operand, keep)
        return
    native = _native(builder.machine.kind, fn, memory.dtype)
    if native is not None:
        builder.emit(keep(native(tirx.address_of(element), operand)))
    else:
        _update_in_loop(body, fn, memory.dtype, tirx.address_of(element), operand, keep)


def _update_private(body: Body, fn: str, dtype: str, element: Any, operand: Any, keep: Keep) -> None:
    """Memory of one thread, whose instances run one after the other."""
    stored = str(element.ty.dtype)
    old = body.name(from_storage(element, dtype, body.has_float16), str(operand.ty.dtype))
    joined = apply(fn, dtype, [old, operand], body, body.fma)
    body.builder.emit(BufferStore(element.source, to_storage(joined, dtype, stored, body), element.indices))
    body.builder.emit(keep(old))


def _native(kind: str, fn: str, dtype: str) -> Callable[[Any, Any], Any] | None:
    """The dialect's own function of a pointer and an operand, if it has one for the dtype."""
    signed = not dtype.startswith("u")
    if kind == "cuda":
        name = {"add": "atomicAdd", "maximum": "atomicMax", "minimum": "atomicMin"}[fn]
        if dtype in ("int32", "uint32"):
            return lambda pointer, value: call_extern(dtype, name, pointer, value)
        if dtype in ("int64", "uint64"):
            # Its 64-bit types are the long long ones, and sums have no sign.
            c_type = "long long" if signed and fn != "add" else "unsigned long long"
            return lambda pointer, value: call_extern(
                dtype, name, _pointer(pointer, f"({c_type}*)"), call_pure_extern(dtype, f"({c_type})", value)
            )
        if dtype in ("float32", "float64") and fn == "add":
            return lambda pointer, value: call_extern(dtype, name, pointer, value)
        return None
    if kind == "opencl" and dtype in ("int32", "uint32", "int64", "uint64"):
        prefix = "atomic" if bits(dtype) == 32 else "atom"
        # In parentheses, since TVM writes a function of its own for calls of ``atomic_add``.
        name = f"({prefix}_{_SHORT[fn]})"
        return lambda pointer, value: call_extern(dtype, name, pointer, value)
    if kind == "metal" and dtype in ("int32", "uint32"):
        name = f"atomic_fetch_{_SHORT[fn]}_explicit"
        c_type = "(device atomic_int*)" if signed else "(device atomic_uint*)"
        return lambda pointer, value: call_extern(dtype, name, _pointer(pointer, c_type), value, _RELAXED)
    return None


_SHORT = {"add": "add", "maximum": "max", "minimum": "min"}
_RELAXED = call_pure_extern("int32", "memory_order", IntImm("int32", 0))


def _pointer(pointer: Any, cast: str) -> Any:
    # Not of a pointer type to TVM, which would cast it once more, to one of a private pointer.
    return call_pure_extern("uint64", cast, pointer)


def _update_in_loop(body: Body, fn: str, dtype: str, pointer: Any, operand: Any, keep: Keep) -> None:
    builder = body.builder
    kind = builder.machine.kind
    width = bits(dtype)
    word = "uint64" if width == 64 else "uint32"
    if kind == "metal" and width != 32:
        raise UnsupportedError(
            f"Metal has no atomic update of {dtype}", suggestion="atomic updates of int32, uint32 or float32"
        )
    shift: Any = None
    if width < 32:
        address = builder.hold("address", call_pure_extern("uint64", _address_cast(kind), pointer), "uint64")
        place = tirx.bitwise_and(address, IntImm("uint64", 3))
        shift = builder.hold("shift", Cast("uint32", place) * IntImm("uint32", 8), "uint32")
        pointer = tirx.bitwise_xor(address, place)
    pointer = _pointer(pointer, _word_cast(kind, word))
    seen = builder.hold("seen", IntImm(word, 0), word)
    open_ = builder.hold("open", IntImm("uint8", 1), "uint8")
    builder.emit(BufferStore(seen.source, _current(kind, word, pointer), [int64(0)]))
    with body.scope() as statements:
        old = _element(seen, dtype, shift, body)
        joined = apply(fn, dtype, [old, operand], body, body.fma)
        wanted = body.name(_replaced(seen, joined, dtype, shift, body), word)
        found, done = _exchange(builder, word, pointer, seen, wanted)
        builder.emit(IfThenElse(done, BufferStore(open_.source, IntImm("uint8", 0), [int64(0)]), None))
        builder.emit(BufferStore(seen.source, found, [int64(0)]))
    builder.emit(While(tirx.NE(open_, IntImm("uint8", 0)), sequence(statements)))
    with body.scope() as after:
        old = _element(seen, dtype, shift, body)
        after.append(keep(old))
    for statement in after:
        builder.emit(statement)


def _element(word: Any, dtype: str, shift: Any, body: Body) -> Any:
    """The element in a word, as a register expression."""
    width = bits(dtype)
    if width >= 32:
        return body.name(tirx.reinterpret(dtype, word), dtype)
    narrow = body.name(Cast(f"uint{width}", tirx.shift_right(word, shift)), f"uint{width}")
    if is_float(dtype):
        return body.name(from_storage(narrow, dtype, body.has_float16), "float32")
    return body.name(tirx.reinterpret(dtype, narrow), dtype)


def _replaced(word: Any, value: Any, dtype: str, shift: Any, body: Body) -> Any:
    """The word with another element."""
    width = bits(dtype)
    whole = str(word.ty.dtype)
    if width >= 32:
        return tirx.reinterpret(whole, value)
    narrow = f"uint{width}"
    code = to_storage(value, dtype, narrow, body) if is_float(dtype) else tirx.reinterpret(narrow, value)
    part = body.name(Cast("uint32", body.name(code, narrow)), "uint32")
    mask = tirx.shift_left(IntImm("uint32", (1 << width) - 1), shift)
    return tirx.bitwise_or(tirx.bitwise_and(word, tirx.bitwise_not(mask)), tirx.shift_left(part, shift))


def _current(kind: str, word: str, pointer: Any) -> Any:
    """The word that is there, by an exchange of zero for zero where there is no other way to read it."""
    zero = IntImm(word, 0)
    match kind:
        case "cuda":
            return call_extern(word, "atomicCAS", pointer, zero, zero)
        case "opencl":
            return call_extern(word, _opencl_exchange(word), pointer, zero, zero)
    return call_extern(word, "atomic_load_explicit", pointer, _RELAXED)


def _exchange(builder: Builder, word: str, pointer: Any, expected: Any, wanted: Any) -> tuple[Any, Any]:
    """Compare and exchange: the word that was there, and whether it was the expected one."""
    kind = builder.machine.kind
    if kind == "metal":
        found = builder.hold("found", expected, word)
        call = call_extern(
            "bool", "atomic_compare_exchange_weak_explicit", pointer, tirx.address_of(found), wanted,
            _RELAXED, _RELAXED,
        )  # fmt: skip
        success = builder.hold("success", Cast("uint8", call), "uint8")
        return found, tirx.NE(success, IntImm("uint8", 0))
    name = "atomicCAS" if kind == "cuda" else _opencl_exchange(word)
    found = builder.hold("found", call_extern(word, name, pointer, expected, wanted), word)
    return found, tirx.EQ(found, expected)


def _opencl_exchange(word: str) -> str:
    return "atomic_cmpxchg" if word == "uint32" else "atom_cmpxchg"


def _address_cast(kind: str) -> str:
    return "(ulong)" if kind == "opencl" else "(uint64_t)"


def _word_cast(kind: str, word: str) -> str:
    if kind == "metal":
        return "(device atomic_uint*)"
    if kind == "opencl":
        return "(volatile __global uint*)" if word == "uint32" else "(volatile __global ulong*)"
    return "(unsigned int*)" if word == "uint32" else "(unsigned long long*)"
