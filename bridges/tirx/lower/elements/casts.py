"""Conversions between element types, by the meaning of the language and without undefined behaviour.

All functions take and give expressions of *register* dtypes (see
:func:`~tvm_tile.bridges.tirx.lower.scalars.register_dtype`). Integer results that may have wrapped are made
:func:`opaque`: TVM's bounds analysis takes a cast for value-preserving and would draw false conclusions
from it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from tvm import tirx
from tvm.tirx import Cast, IntImm, Select

from tvm_tile.bridges.tirx.lower.elements.elementary import isnan
from tvm_tile.bridges.tirx.lower.elements.float8 import rounded_to_float8
from tvm_tile.bridges.tirx.lower.elements.halves import rounded_to_half
from tvm_tile.bridges.tirx.lower.scalars import literal, register_dtype
from tvm_tile.ir.dtypes import STORAGE_ONLY, bits, is_bool, is_float, numpy_dtype

__all__ = [
    "Registers",
    "compare",
    "convert",
    "is_zero",
    "narrowed",
    "opaque",
    "rounded",
    "settled",
    "to_odd",
    "truth",
]


class Registers(Protocol):
    """Where an expression that is needed more than once is put."""

    @property
    def has_float16(self) -> bool:
        """Whether the code generator converts to and from float16."""

    @property
    def has_float64(self) -> bool:
        """Whether the target computes in float64."""

    def name(self, value: Any, dtype: str, hint: str = "") -> Any:
        """The value as an expression that costs nothing to repeat."""

    def copy(self, value: Any, dtype: str) -> Any:
        """A new register that holds the value and may be overwritten."""

    def repeat(self, count: int, body: Any) -> None:
        """Run ``body(step)`` for ``step`` = 0 ... count - 1; it may assign with :meth:`assign`."""

    def assign(self, register: Any, value: Any) -> None:
        """Overwrite what :meth:`copy` gave."""


def truth(condition: Any) -> Any:
    """A TVM condition as a truth value, 0 or 1."""
    return Cast("uint8", condition)


def compare(build: Any, a: Any, b: Any, dtype: str) -> Any:
    """``build(a, b)`` for data of a dtype: ``tirx.LT`` and the like, as a TVM condition.

    Integers of 32 and 64 bits are compared as 128-bit ones. TVM reasons about the others as about
    indices, and does not think that one can be the smallest integer of its type.
    """
    if dtype in ("int32", "int64", "uint32", "uint64"):
        return build(Cast("int128", a), Cast("int128", b))
    return build(a, b)


def opaque(value: Any, dtype: str) -> Any:
    """The same integer, with nothing known about its range or its value before LLVM sees it."""
    return tirx.BitwiseOr(value, IntImm(dtype, 0))


def settled(value: Any, dtype: str) -> Any:
    """The operand of integer arithmetic: a literal becomes opaque, since TVM's folding does not wrap."""
    return opaque(value, dtype) if isinstance(value, IntImm) else value


def narrowed(value: Any, dtype: str) -> Any:
    """An integer modulo the width of another dtype."""
    return opaque(Cast(dtype, value), dtype)


def is_zero(value: Any) -> Any:
    """Whether a named float is a zero, as a truth value; NaN is not."""
    zero = literal(0.0, str(value.ty.dtype))
    return tirx.bitwise_and(truth(tirx.LE(value, zero)), truth(tirx.LE(zero, value)))


def rounded(value: Any, dtype: str, registers: Registers) -> Any:
    """A float32 rounded to nearest even to a narrower format; other dtypes are left as they are."""
    if dtype in STORAGE_ONLY:
        return rounded_to_float8(value, dtype, registers)
    if dtype == "float16":
        if registers.has_float16:
            return Cast("float32", Cast("float16", value))
        return rounded_to_half(value, registers)
    if dtype == "bfloat16":
        value = registers.name(value, "float32")
        word = tirx.reinterpret("uint32", value)
        odd = tirx.bitwise_and(tirx.shift_right(word, IntImm("uint32", 16)), IntImm("uint32", 1))
        nearest = word + (odd + IntImm("uint32", 0x7FFF))
        quiet = tirx.bitwise_or(word, IntImm("uint32", 0x400000))
        kept = Select(isnan(value), quiet, nearest)
        return tirx.reinterpret("float32", tirx.bitwise_and(kept, IntImm("uint32", 0xFFFF0000)))
    return value


def to_odd(value: Any, registers: Registers) -> Any:
    """A float64 as a float32, rounded to odd, so that a second rounding is still to nearest.

    An inexact result gets its last bit set; the narrow formats drop many more bits than that one.
    """
    value = registers.name(value, "float64")
    near = registers.name(Cast("float32", value), "float32")
    back = registers.name(Cast("float64", near), "float64")
    word = registers.name(tirx.reinterpret("int32", near), "int32")
    past = Select(tirx.LT(tirx.abs(value), tirx.abs(back)), word - IntImm("int32", 1), word)
    exact = tirx.bitwise_and(truth(tirx.LE(value, back)), truth(tirx.LE(back, value)))
    odd = tirx.bitwise_or(registers.name(past, "int32"), IntImm("int32", 1))
    return tirx.reinterpret("float32", Select(tirx.NE(exact, IntImm("uint8", 0)), word, odd))


def convert(value: Any, source: str, target: str, registers: Registers) -> Any:
    """Convert an element; both dtypes are those of the language, the expressions are registers."""
    if source == target:
        return value
    if not is_float(source):
        value = settled(value, register_dtype(source))
    if is_bool(target):
        if is_float(source):
            return tirx.bitwise_xor(
                is_zero(registers.name(value, register_dtype(source))), IntImm("uint8", 1)
            )
        return truth(compare(tirx.NE, value, literal(0, source), source))
    if is_float(source):
        if is_float(target):
            return _float_to_float(value, source, target, registers)
        return _float_to_integer(value, register_dtype(source), target, registers)
    if is_float(target):
        return _integer_to_float(value, source, target, registers)
    return _integer_to_integer(value, source, target)


def _integer_to_integer(value: Any, source: str, target: str) -> Any:
    if is_bool(source):
        return Cast(target, value)
    if bits(target) > bits(source) and (source.startswith("u") or not target.startswith("u")):
        return Cast(target, value)
    # Not a reinterpretation: TVM may give a loop variable fewer bits than it was made with.
    return narrowed(value, target)


def _integer_to_float(value: Any, source: str, target: str, registers: Registers) -> Any:
    if is_bool(source) or target in ("float32", "float64"):
        return Cast(register_dtype(target), value)
    width = bits(source)
    if width <= 16:
        return rounded(Cast("float32", value), target, registers)
    if not registers.has_float64:
        return rounded(_integer_to_odd_float32(value, source, registers), target, registers)
    if width == 64:
        # 53 bits of a float64 do not hold it; what is cut off here only has to stay visible as inexact.
        value = registers.name(value, source)
        low = tirx.bitwise_and(value, IntImm(source, 0xFFFF))
        sticky = Select(tirx.NE(low, IntImm(source, 0)), IntImm(source, 0x10000), IntImm(source, 0))
        high = tirx.shift_left(tirx.shift_right(value, IntImm(source, 16)), IntImm(source, 16))
        magnitude = tirx.bitwise_or(high, sticky)
        small = compare(tirx.LT, value, IntImm(source, 1 << 52), source)
        if source == "int64":
            small = tirx.And(small, compare(tirx.LE, IntImm(source, -(1 << 52)), value, source))
        value = Select(small, value, opaque(magnitude, source))
    return rounded(to_odd(Cast("float64", value), registers), target, registers)


def _integer_to_odd_float32(value: Any, source: str, registers: Registers) -> Any:
    """An integer as a float32 of 24 bits: exactly, or with what it lost visible in its last bits.

    Twelve bits at a time are cut off, as long as more than 24 are left; the narrow formats have fewer.
    """
    zero = literal(0, source)
    for cut in range(12, 12 * (bits(source) // 12), 12):
        value = registers.name(value, source)
        one = literal(1 << cut, source)
        lost = compare(tirx.NE, tirx.bitwise_and(value, literal((1 << cut) - 1, source)), zero, source)
        high = tirx.shift_left(tirx.shift_right(value, literal(cut, source)), literal(cut, source))
        shortened = opaque(tirx.bitwise_or(high, Select(lost, one, zero)), source)
        limit = 1 << (cut + 12)
        large = compare(tirx.LE, literal(limit, source), value, source)
        if not source.startswith("u"):
            large = tirx.Or(large, compare(tirx.LT, value, literal(-limit, source), source))
        value = Select(large, shortened, value)
    return Cast("float32", registers.name(value, source))


def _float_to_float(value: Any, source: str, target: str, registers: Registers) -> Any:
    if source == "float64":
        if target == "float32":
            return Cast("float32", value)
        return rounded(to_odd(value, registers), target, registers)
    if target == "float64":
        return Cast("float64", value)
    return value if target == "float32" else rounded(value, target, registers)


def _float_to_integer(value: Any, register: str, target: str, registers: Registers) -> Any:
    """Truncate; NaN gives 0 and what does not fit the nearest integer that does."""
    info = np.iinfo(numpy_dtype(target))
    value = registers.name(value, register)
    low = literal(float(info.min), register)
    beyond = literal(2.0 ** (bits(target) - (0 if target.startswith("u") else 1)), register)
    fits = Select(
        tirx.LT(low, value),
        Select(tirx.LT(value, beyond), value, literal(0.0, register)),
        literal(0.0, register),
    )
    # In a register of its own: the simplifier reads the else arm of a comparison as its negation, NaN or not.
    inside = registers.name(Cast(target, registers.name(fits, register)), target)
    top = Select(tirx.LE(beyond, value), literal(int(info.max), target), inside)
    return Select(tirx.LE(value, low), literal(int(info.min), target), registers.name(top, target))
