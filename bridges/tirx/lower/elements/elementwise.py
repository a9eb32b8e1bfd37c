"""The elementwise functions on register expressions, with the meaning of the language.

Three properties of TVM's code generation shape this module:

* Signed and unsigned additions of 32 bits and more are marked as not overflowing, so wrapping
  arithmetic is done in a wider type and cut; LLVM narrows it again.
* The simplifier cancels floats (``x - x``, ``(x + y) - y``, ``x == x``) and negates comparisons as if there
  were no NaN. No float subtraction and no float equality is ever built, and comparisons become bytes.
* LLVM contracts a product and a sum; where the program forbids that, products pass
  ``llvm.arithmetic.fence``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import tirx
from tvm.tirx import Cast, IntImm, Select, call_llvm_pure_intrin

from tvm_tile.bridges.tirx.lower.elements.casts import (
    Registers,
    compare,
    is_zero,
    narrowed,
    opaque,
    rounded,
    settled,
    to_odd,
    truth,
)
from tvm_tile.bridges.tirx.lower.elements.elementary import ELEMENTARY, isnan, maximum, minimum
from tvm_tile.bridges.tirx.lower.scalars import literal, register_dtype
from tvm_tile.ir.dtypes import bits, is_bool, is_float, numpy_dtype

__all__ = ["apply", "is_nan", "multiply_add", "runs_in_lanes"]

_COMPARISONS = {
    "less": tirx.LT,
    "less_equal": tirx.LE,
    "greater": tirx.GT,
    "greater_equal": tirx.GE,
}
_EXACT = ("negative", "abs", "floor", "ceil", "round", "maximum", "minimum")


def apply(fn: str, dtype: str, operands: Sequence[Any], registers: Registers, fma: bool) -> Any:
    """``fn`` on operands of a dtype.

    Parameters
    ----------
    fn
        Name in :mod:`tvm_tile.ir.functions`.
    dtype
        Element type of the operands (of the last two for ``where``).
    operands
        Register expressions.
    registers
        Takes what is used more than once.
    fma
        Whether a product may be contracted with a sum.
    """
    if fn == "where":
        condition, a, b = operands
        return Select(tirx.NE(condition, IntImm("uint8", 0)), a, b)
    if is_bool(dtype):
        return _boolean(fn, operands)
    if is_float(dtype):
        if fn in _COMPARISONS or fn in ("equal", "not_equal", "isnan", "isinf"):
            return _float_test(fn, dtype, operands, registers)
        result = _float(fn, dtype, operands, registers, fma)
        return result if fn in _EXACT else rounded(result, dtype, registers)
    return _integer(fn, dtype, [settled(x, dtype) for x in operands], registers)


def runs_in_lanes(fn: str, dtype: str) -> bool:
    """Whether vectors of the function are worth it; the others are one call or division a lane."""
    if fn in ("floor_divide", "remainder"):
        return False
    if is_float(dtype):
        return fn not in ("power", "sin", "cos") and not (dtype == "float64" and fn in ELEMENTARY)
    return True


def is_nan(value: Any, dtype: str) -> Any:
    """Whether an element is NaN, as a truth value; never for what is not a float."""
    return truth(isnan(value)) if is_float(dtype) else IntImm("uint8", 0)


def multiply_add(a: Any, b: Any, c: Any, dtype: str, registers: Registers, fma: bool) -> Any:
    """``a * b + c`` in a dtype, in one rounding if contraction is allowed."""
    if is_float(dtype):
        product = a * b
        if not fma:
            product = _fenced(rounded(product, dtype, registers), register_dtype(dtype))
        return rounded(product + c, dtype, registers)
    return _wrapping("+", dtype, _wrapping("*", dtype, a, b), c)


def _boolean(fn: str, operands: Sequence[Any]) -> Any:
    one = IntImm("uint8", 1)
    match fn, operands:
        case ("and" | "minimum", (a, b)):
            return tirx.bitwise_and(a, b)
        case ("or" | "maximum", (a, b)):
            return tirx.bitwise_or(a, b)
        case ("xor" | "not_equal", (a, b)):
            return tirx.bitwise_xor(a, b)
        case "equal", (a, b):
            return tirx.bitwise_xor(tirx.bitwise_xor(a, b), one)
        case "invert", (a,):
            return tirx.bitwise_xor(a, one)
        case _, (a, b) if fn in _COMPARISONS:
            return truth(_COMPARISONS[fn](a, b))
    raise ValueError(f"{fn} does not take bool")


def _float_test(fn: str, dtype: str, operands: Sequence[Any], registers: Registers) -> Any:
    register = register_dtype(dtype)
    match fn:
        case "isnan":
            return truth(isnan(registers.name(operands[0], register)))
        case "isinf":
            return truth(tirx.LE(literal(float("inf"), register), tirx.abs(operands[0])))
        case "equal" | "not_equal":
            a, b = (registers.name(x, register) for x in operands)
            equal = tirx.bitwise_and(truth(tirx.LE(a, b)), truth(tirx.LE(b, a)))
            return equal if fn == "equal" else tirx.bitwise_xor(equal, IntImm("uint8", 1))
    return truth(_COMPARISONS[fn](*operands))


def _fenced(value: Any, register: str) -> Any:
    return call_llvm_pure_intrin(register, "llvm.arithmetic.fence", value)


def _float(fn: str, dtype: str, operands: Sequence[Any], registers: Registers, fma: bool) -> Any:
    register = register_dtype(dtype)
    minus_one = literal(-1.0, register)
    if fn in ELEMENTARY:
        return ELEMENTARY[fn](registers.name(operands[0], register))
    match fn, operands:
        case "add", (a, b):
            return a + b
        case "subtract", (a, b):
            return a + b * minus_one
        case "multiply", (a, b):
            return a * b if fma else _fenced(a * b, register)
        case "divide", (a, b):
            return tirx.Div(a, b)
        case "negative", (a,):
            return a * minus_one
        case "abs", (a,):
            return tirx.abs(a)
        case "maximum", (a, b):
            return maximum(registers.name(a, register), registers.name(b, register))
        case "minimum", (a, b):
            return minimum(registers.name(a, register), registers.name(b, register))
        case "sqrt", (a,):
            return tirx.sqrt(a)
        case "rsqrt", (a,):
            return tirx.Div(literal(1.0, register), tirx.sqrt(a))
        case "sin", (a,):
            return tirx.sin(a)
        case "cos", (a,):
            return tirx.cos(a)
        case "floor", (a,):
            return tirx.floor(a)
        case "ceil", (a,):
            return tirx.ceil(a)
        case "round", (a,):
            return call_llvm_pure_intrin(register, "llvm.rint", a)
        case "power", (a, b):
            return tirx.pow(a, b)
        case "fma", (a, b, c):
            return _fused(a, b, c, dtype, registers)
        case (("floor_divide" | "remainder"), (a, b)):
            return _float_division(fn, register, a, b, registers)
    raise ValueError(f"{fn} does not take {dtype}")


def _fused(a: Any, b: Any, c: Any, dtype: str, registers: Registers) -> Any:
    """``a * b + c`` with one rounding, which for the narrow formats is the caller's."""
    register = register_dtype(dtype)
    if register == dtype:
        return call_llvm_pure_intrin(register, "llvm.fma", a, b, c)
    # The product is exact in the wide type; the error of the sum, found exactly too, decides its last bit.
    # Without float64 that is true of float16 only.
    wide, whole = ("float64", "int64") if registers.has_float64 else ("float32", "int32")
    product = registers.name(Cast(wide, a) * Cast(wide, b), wide)
    addend = registers.name(Cast(wide, c), wide)
    minus_one = literal(-1.0, wide)
    total = registers.name(product + addend, wide)
    share = registers.name(total + product * minus_one, wide)
    rest = registers.name(total + share * minus_one, wide)
    lost = registers.name((product + rest * minus_one) + (addend + share * minus_one), wide)
    word = registers.name(tirx.reinterpret(whole, total), whole)
    zero = literal(0.0, wide)
    opposite = tirx.bitwise_xor(truth(tirx.LT(total, zero)), truth(tirx.LT(lost, zero)))
    toward_zero = Select(tirx.NE(opposite, IntImm("uint8", 0)), word - IntImm(whole, 1), word)
    odd = tirx.bitwise_or(registers.name(toward_zero, whole), IntImm(whole, 1))
    # Of an infinite total ``lost`` is NaN, and TVM rewrites `x < 0 or 0 < x` to `x != 0`, which NaN fulfils.
    inexact = tirx.bitwise_or(truth(tirx.LT(lost, zero)), truth(tirx.LT(zero, lost)))
    result = tirx.reinterpret(wide, Select(tirx.NE(inexact, IntImm("uint8", 0)), odd, word))
    return to_odd(result, registers) if wide == "float64" else result


def _float_division(fn: str, register: str, a: Any, b: Any, registers: Registers) -> Any:
    """``floor_divide`` and ``remainder`` as NumPy defines them, from the exact remainder."""
    a, b = registers.name(a, register), registers.name(b, register)
    zero, minus_one = literal(0.0, register), literal(-1.0, register)
    rest = registers.name(tirx.Mod(a, b), register)
    opposite = tirx.bitwise_xor(truth(tirx.LT(b, zero)), truth(tirx.LT(rest, zero)))
    nonzero = tirx.bitwise_xor(is_zero(rest), IntImm("uint8", 1))
    moved = registers.name(tirx.bitwise_and(opposite, nonzero), "uint8")
    fixed = registers.name(
        rest + Select(tirx.NE(moved, IntImm("uint8", 0)), b, literal(-0.0, register)), register
    )
    if fn == "remainder":
        signed_zero = tirx.copysign(zero, b)
        return Select(tirx.NE(is_zero(rest), IntImm("uint8", 0)), signed_zero, fixed)
    quotient = registers.name(tirx.Div(a + rest * minus_one, b), register)
    quotient = registers.name(
        quotient + Select(tirx.NE(moved, IntImm("uint8", 0)), minus_one, literal(-0.0, register)), register
    )
    whole = registers.name(tirx.floor(quotient), register)
    gap = quotient + whole * minus_one
    nearest = whole + Select(
        tirx.LT(literal(0.5, register), gap), literal(1.0, register), literal(-0.0, register)
    )
    plain = registers.name(tirx.Div(a, b), register)
    snapped = Select(tirx.NE(is_zero(quotient), IntImm("uint8", 0)), tirx.copysign(zero, plain), nearest)
    return Select(tirx.NE(is_zero(b), IntImm("uint8", 0)), plain, registers.name(snapped, register))


def _integer(fn: str, dtype: str, operands: Sequence[Any], registers: Registers) -> Any:
    signed = not dtype.startswith("u")
    match fn, operands:
        case "add", (a, b):
            return _wrapping("+", dtype, a, b)
        case "subtract", (a, b):
            return _wrapping("-", dtype, a, b)
        case "multiply", (a, b):
            return _wrapping("*", dtype, a, b)
        case (("floor_divide" | "remainder"), (a, b)):
            return _integer_division(fn, dtype, registers.name(a, dtype), registers.name(b, dtype), registers)
        case "power", (a, b):
            return _integer_power(dtype, a, registers.name(b, dtype), registers)
        case "maximum", (a, b):
            a, b = registers.name(a, dtype), registers.name(b, dtype)
            return Select(compare(tirx.LT, a, b, dtype), b, a)
        case "minimum", (a, b):
            a, b = registers.name(a, dtype), registers.name(b, dtype)
            return Select(compare(tirx.LT, b, a, dtype), b, a)
        case "and", (a, b):
            return opaque(tirx.bitwise_and(a, b), dtype)
        case "or", (a, b):
            return opaque(tirx.bitwise_or(a, b), dtype)
        case "xor", (a, b):
            return opaque(tirx.bitwise_xor(a, b), dtype)
        case "invert", (a,):
            return opaque(tirx.bitwise_not(a), dtype)
        case "negative", (a,):
            return _wrapping("-", dtype, literal(0, dtype), a)
        case "abs", (a,):
            if not signed:
                return a
            a = registers.name(a, dtype)
            return opaque(
                Select(
                    compare(tirx.LT, a, literal(0, dtype), dtype),
                    _wrapping("-", dtype, literal(0, dtype), a),
                    a,
                ),
                dtype,
            )
        case (("left_shift" | "right_shift"), (a, b)):
            return _shift(fn, dtype, registers.name(a, dtype), registers.name(b, dtype))
        case "equal", (a, b):
            return truth(compare(tirx.EQ, a, b, dtype))
        case "not_equal", (a, b):
            return truth(compare(tirx.NE, a, b, dtype))
        case _, (a, b) if fn in _COMPARISONS:
            return truth(compare(_COMPARISONS[fn], a, b, dtype))
    raise ValueError(f"{fn} does not take {dtype}")


def _wrapping(op: str, dtype: str, a: Any, b: Any) -> Any:
    """Addition, subtraction or multiplication modulo two to the width."""
    build: Callable[[Any, Any], Any] = {"+": tirx.Add, "-": tirx.Sub, "*": tirx.Mul}[op]
    width = bits(dtype)
    if width < 32:
        return opaque(build(a, b), dtype)
    if width == 32:
        wide = "uint64" if dtype == "uint32" and op == "*" else "int64"
        return narrowed(build(Cast(wide, a), Cast(wide, b)), dtype)
    if dtype == "uint64":
        a, b = settled(a, dtype), settled(b, dtype)
        a, b = tirx.reinterpret("int64", a), tirx.reinterpret("int64", b)
    return narrowed(build(Cast("int128", a), Cast("int128", b)), dtype)


def _integer_division(fn: str, dtype: str, a: Any, b: Any, registers: Registers) -> Any:
    zero, one = literal(0, dtype), literal(1, dtype)
    unsafe = compare(tirx.EQ, b, zero, dtype)
    if dtype.startswith("u"):
        safe = registers.name(Select(unsafe, one, b), dtype)
        result = tirx.truncdiv(a, safe) if fn == "floor_divide" else tirx.truncmod(a, safe)
        return Select(unsafe, zero, opaque(result, dtype))
    least = literal(int(np.iinfo(numpy_dtype(dtype)).min), dtype)
    unsafe = tirx.Or(
        unsafe, tirx.And(compare(tirx.EQ, b, literal(-1, dtype), dtype), compare(tirx.EQ, a, least, dtype))
    )
    # Dividing by 1 instead gives the wrapped quotient and the remainder 0 of the overflowing case.
    safe = registers.name(Select(unsafe, one, b), dtype)
    rest = registers.name(opaque(tirx.truncmod(a, safe), dtype), dtype)
    opposite = compare(tirx.LT, opaque(tirx.bitwise_xor(rest, safe), dtype), zero, dtype)
    moved = tirx.And(compare(tirx.NE, rest, zero, dtype), opposite)
    if fn == "floor_divide":
        quotient = registers.name(opaque(tirx.truncdiv(a, safe), dtype), dtype)
        result = Select(moved, _wrapping("-", dtype, quotient, one), quotient)
    else:
        result = Select(moved, _wrapping("+", dtype, rest, b), rest)
    return Select(compare(tirx.EQ, b, zero, dtype), zero, result)


def _integer_power(dtype: str, a: Any, exponent: Any, registers: Registers) -> Any:
    """Square and multiply; a negative exponent gives 0 unless the base is 1 or -1."""
    zero, one = literal(0, dtype), literal(1, dtype)
    base = registers.name(a, dtype)
    square = registers.copy(base, dtype)
    rest = registers.copy(exponent, dtype)
    total = registers.copy(one, dtype)

    def step(_: Any) -> None:
        odd = compare(tirx.NE, tirx.bitwise_and(rest, one), zero, dtype)
        registers.assign(total, Select(odd, _wrapping("*", dtype, total, square), total))
        registers.assign(square, _wrapping("*", dtype, square, square))
        registers.assign(rest, opaque(tirx.shift_right(rest, one), dtype))

    registers.repeat(bits(dtype), step)
    if dtype.startswith("u"):
        return total
    parity = compare(tirx.NE, tirx.bitwise_and(exponent, one), zero, dtype)
    flipped = Select(parity, base, one)
    minus = Select(compare(tirx.EQ, base, literal(-1, dtype), dtype), flipped, zero)
    inverse = Select(compare(tirx.EQ, base, one, dtype), one, minus)
    return Select(compare(tirx.LT, exponent, zero, dtype), inverse, total)


def _shift(fn: str, dtype: str, a: Any, count: Any) -> Any:
    width = bits(dtype)
    zero = literal(0, dtype)
    fits = compare(tirx.LT, count, literal(width, dtype), dtype)
    if not dtype.startswith("u"):
        fits = tirx.And(compare(tirx.LE, zero, count, dtype), fits)
    if fn == "left_shift":
        return Select(fits, opaque(tirx.shift_left(a, Select(fits, count, zero)), dtype), zero)
    if dtype.startswith("u"):
        return Select(fits, tirx.shift_right(a, Select(fits, count, zero)), zero)
    return opaque(tirx.shift_right(a, Select(fits, count, literal(width - 1, dtype))), dtype)
