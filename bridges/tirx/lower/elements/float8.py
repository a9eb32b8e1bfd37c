"""The 8-bit floats: from codes to float32 registers, rounding, and back, in integer arithmetic.

``float8_e4m3fn`` has 4 exponent and 3 fraction bits, no infinity, and one NaN of each sign; what rounds
past its largest number becomes NaN. ``float8_e5m2`` is a float16 with 2 fraction bits. Both have gradual
underflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tvm import tirx
from tvm.tirx import Cast, FloatImm, IntImm, Select

__all__ = ["decoded", "encoded", "rounded_to_float8"]

_INFINITY = 0x7F800000
_NAN = 0x7FC00000


class _Names(Protocol):
    def name(self, value: Any, dtype: str, hint: str = "") -> Any: ...


@dataclass(frozen=True)
class _Format:
    """Fraction bits, exponent of the smallest normal number, code of the largest number, code of overflow."""

    fraction: int
    low: int
    largest: int
    infinity: int | None
    nan: int

    @property
    def dropped(self) -> int:
        """Fraction bits of a float32 that the format has not."""
        return 23 - self.fraction

    @property
    def rebias(self) -> int:
        """What the exponent fields of the same number differ by."""
        return 127 + self.low - 1

    @property
    def quantum(self) -> float:
        """Distance of numbers below the smallest normal one."""
        return float(2.0 ** (self.low - self.fraction))

    @property
    def aligned(self) -> float:
        """A float32 whose last bit is worth a quantum."""
        return float(2.0 ** (23 + self.low - self.fraction))

    @property
    def aligned_word(self) -> int:
        """Its bits."""
        return (127 + 23 + self.low - self.fraction) << 23

    @property
    def smallest_normal(self) -> int:
        """Bits of the smallest normal number as a float32."""
        return (127 + self.low) << 23

    def word(self, code: int) -> int:
        """Bits of a normal number as a float32."""
        return (code << self.dropped) + (self.rebias << 23)


_FORMATS = {
    "float8_e4m3fn": _Format(fraction=3, low=-6, largest=0x7E, infinity=None, nan=0x7F),
    "float8_e5m2": _Format(fraction=2, low=-14, largest=0x7B, infinity=0x7C, nan=0x7E),
}


def _i32(value: int) -> Any:
    return IntImm("int32", value)


def decoded(code: Any, dtype: str, registers: _Names) -> Any:
    """The float32 value of a code, a ``uint8`` expression."""
    form = _FORMATS[dtype]
    wide = registers.name(Cast("int32", code), "int32")
    size = registers.name(tirx.bitwise_and(wide, _i32(0x7F)), "int32")
    small = tirx.reinterpret("int32", Cast("float32", size) * FloatImm("float32", form.quantum))
    normal = tirx.shift_left(size, _i32(form.dropped)) + _i32(form.rebias << 23)
    word = Select(tirx.LT(size, _i32(1 << form.fraction)), small, normal)
    if form.infinity is not None:
        # A NaN keeps its fraction, so that a copy is the same code.
        special = _i32(_INFINITY) + tirx.shift_left(size - _i32(form.infinity), _i32(form.dropped))
        word = Select(tirx.LE(_i32(form.infinity), size), special, word)
    else:
        word = Select(tirx.LE(_i32(form.nan), size), _i32(_NAN), word)
    sign = tirx.shift_left(
        tirx.bitwise_and(Cast("uint32", code), IntImm("uint32", 0x80)), IntImm("uint32", 24)
    )
    return tirx.reinterpret("float32", tirx.bitwise_or(tirx.reinterpret("uint32", word), sign))


def _magnitude(value: Any, registers: _Names) -> tuple[Any, Any]:
    """Bits of the absolute value, as ``int32``, and the sign bit, as ``uint32``."""
    word = registers.name(tirx.reinterpret("uint32", value), "uint32")
    size = tirx.reinterpret("int32", tirx.bitwise_and(word, IntImm("uint32", 0x7FFFFFFF)))
    return registers.name(size, "int32"), tirx.bitwise_and(word, IntImm("uint32", 0x80000000))


def _quanta(size: Any, form: _Format, registers: _Names) -> Any:
    """A magnitude below the smallest normal number in quanta, rounded to nearest even.

    The sum with an aligned number is the one rounding; bits went through integers before it, so that it is
    not contracted with a product.
    """
    total = tirx.reinterpret("float32", size) + FloatImm("float32", form.aligned)
    return registers.name(tirx.reinterpret("int32", total) - _i32(form.aligned_word), "int32")


def rounded_to_float8(value: Any, dtype: str, registers: _Names) -> Any:
    """A float32 rounded to nearest even to the numbers of a format, kept as float32."""
    form = _FORMATS[dtype]
    size, sign = _magnitude(registers.name(value, "float32"), registers)
    odd = tirx.bitwise_and(tirx.shift_right(size, _i32(form.dropped)), _i32(1))
    finite = Select(tirx.LT(size, _i32(_INFINITY)), size, _i32(0))
    lifted = finite + (odd + _i32((1 << (form.dropped - 1)) - 1))
    near = registers.name(tirx.bitwise_and(lifted, _i32(-(1 << form.dropped))), "int32")
    small = tirx.reinterpret(
        "int32", Cast("float32", _quanta(size, form, registers)) * FloatImm("float32", form.quantum)
    )
    word = Select(tirx.LT(size, _i32(form.smallest_normal)), small, near)
    beyond = _INFINITY if form.infinity is not None else _NAN
    word = Select(tirx.LT(_i32(form.word(form.largest)), near), _i32(beyond), word)
    word = Select(tirx.LE(_i32(_INFINITY), size), _i32(beyond), word)
    word = Select(tirx.LT(_i32(_INFINITY), size), _i32(_NAN), word)
    return tirx.reinterpret("float32", tirx.bitwise_or(tirx.reinterpret("uint32", word), sign))


def encoded(value: Any, dtype: str, registers: _Names) -> Any:
    """The code, a ``uint8`` expression, of a float32 that the format can hold."""
    form = _FORMATS[dtype]
    size, sign = _magnitude(registers.name(value, "float32"), registers)
    normal = tirx.shift_right(size, _i32(form.dropped)) - _i32(form.rebias << form.fraction)
    small = _quanta(size, form, registers)
    code = Select(tirx.LT(size, _i32(form.smallest_normal)), small, normal)
    if form.infinity is None:
        code = Select(tirx.LT(_i32(_INFINITY), size), _i32(form.nan), code)
    else:
        special = _i32(form.infinity) + tirx.shift_right(size - _i32(_INFINITY), _i32(form.dropped))
        code = Select(tirx.LE(_i32(_INFINITY), size), special, code)
    top = tirx.shift_right(sign, IntImm("uint32", 24))
    low = tirx.bitwise_and(tirx.reinterpret("uint32", code), IntImm("uint32", 0x7F))
    return Cast("uint8", tirx.bitwise_or(low, top))
