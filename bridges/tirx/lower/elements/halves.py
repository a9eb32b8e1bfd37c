"""Float16 by integer arithmetic, for devices whose compilers may lack it: from words to float32 and back."""

from __future__ import annotations

from typing import Any, Protocol

from tvm import tirx
from tvm.tirx import Cast, FloatImm, IntImm, Select

__all__ = ["decoded_half", "encoded_half", "rounded_to_half"]

_INFINITY = 0x7F800000
_QUIET = 0x7FC00000
#: Fraction bits of a float32 that a float16 has not.
_DROPPED = 13
#: The exponent fields of the same number differ by this.
_REBIAS = 112
#: Bits of 2**-14, the smallest normal float16, and of the largest float16, as float32.
_SMALLEST_NORMAL = (127 - 14) << 23
_LARGEST = 0x477FE000
#: The float32 whose last bit is worth 2**-24, the distance of subnormal float16 numbers, and its bits.
_ALIGNED, _ALIGNED_WORD = 0.5, 126 << 23
_QUANTUM = 2.0**-24


class _Names(Protocol):
    def name(self, value: Any, dtype: str, hint: str = "") -> Any: ...


def _i32(value: int) -> Any:
    return IntImm("int32", value)


def _u32(value: int) -> Any:
    return IntImm("uint32", value)


def decoded_half(word: Any) -> Any:
    """The float32 value of a float16's word, a ``uint16`` expression."""
    size = tirx.bitwise_and(Cast("int32", word), _i32(0x7FFF))
    small = tirx.reinterpret("int32", Cast("float32", size) * FloatImm("float32", _QUANTUM))
    normal = tirx.shift_left(size, _i32(_DROPPED)) + _i32(_REBIAS << 23)
    special = tirx.bitwise_or(tirx.shift_left(size, _i32(_DROPPED)), _i32(_INFINITY))
    value = Select(tirx.LT(size, _i32(0x400)), small, Select(tirx.LT(size, _i32(0x7C00)), normal, special))
    sign = tirx.shift_left(tirx.bitwise_and(Cast("uint32", word), _u32(0x8000)), _u32(16))
    return tirx.reinterpret("float32", tirx.bitwise_or(tirx.reinterpret("uint32", value), sign))


def _magnitude(value: Any, registers: _Names) -> tuple[Any, Any]:
    """Bits of the absolute value, as ``int32``, and the sign bit, as ``uint32``."""
    word = registers.name(tirx.reinterpret("uint32", registers.name(value, "float32")), "uint32")
    size = tirx.reinterpret("int32", tirx.bitwise_and(word, _u32(0x7FFFFFFF)))
    return registers.name(size, "int32"), tirx.bitwise_and(word, _u32(0x80000000))


def _quanta(size: Any, registers: _Names) -> Any:
    """A magnitude below the smallest normal number in quanta, rounded to nearest even by one addition."""
    total = tirx.reinterpret("float32", size) + FloatImm("float32", _ALIGNED)
    return registers.name(tirx.reinterpret("int32", total) - _i32(_ALIGNED_WORD), "int32")


def rounded_to_half(value: Any, registers: _Names) -> Any:
    """A float32 rounded to nearest even to a float16, kept as float32."""
    size, sign = _magnitude(value, registers)
    odd = tirx.bitwise_and(tirx.shift_right(size, _i32(_DROPPED)), _i32(1))
    finite = Select(tirx.LT(size, _i32(_INFINITY)), size, _i32(0))
    lifted = finite + (odd + _i32((1 << (_DROPPED - 1)) - 1))
    near = registers.name(tirx.bitwise_and(lifted, _i32(-(1 << _DROPPED))), "int32")
    quanta = Cast("float32", _quanta(size, registers)) * FloatImm("float32", _QUANTUM)
    word = Select(tirx.LT(size, _i32(_SMALLEST_NORMAL)), tirx.reinterpret("int32", quanta), near)
    word = Select(tirx.LT(_i32(_LARGEST), near), _i32(_INFINITY), word)
    word = Select(tirx.LE(_i32(_INFINITY), size), _i32(_INFINITY), word)
    word = Select(tirx.LT(_i32(_INFINITY), size), _i32(_QUIET), word)
    return tirx.reinterpret("float32", tirx.bitwise_or(tirx.reinterpret("uint32", word), sign))


def encoded_half(value: Any, registers: _Names) -> Any:
    """The word, a ``uint16`` expression, of a float32 that a float16 can hold."""
    size, sign = _magnitude(value, registers)
    normal = tirx.shift_right(size, _i32(_DROPPED)) - _i32(_REBIAS << 10)
    code = Select(tirx.LT(size, _i32(_SMALLEST_NORMAL)), _quanta(size, registers), normal)
    code = Select(tirx.LE(_i32(_INFINITY), size), _i32(0x7C00), code)
    code = Select(tirx.LT(_i32(_INFINITY), size), _i32(0x7E00), code)
    top = tirx.shift_right(sign, _u32(16))
    return Cast("uint16", tirx.bitwise_or(tirx.reinterpret("uint32", code), top))
