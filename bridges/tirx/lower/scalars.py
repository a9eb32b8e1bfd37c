"""Integer expressions in generated code: index expressions, predicates and literals.

Everything that addresses memory is 64 bits wide, so that nothing wraps above 2**31 elements. TVM's
simplifier treats 32- and 64-bit integers as mathematical ones; that is right for the index arithmetic
made here, and the reason why user data never goes through these functions (see
:mod:`tvm_tile.bridges.tirx.lower.elements.elementwise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tvm import tirx
from tvm.tirx import Cast, FloatImm, IntImm, call_intrin

from tvm_tile.errors import UnsupportedError
from tvm_tile.ir.dtypes import STORAGE_ONLY, bits, is_bool, is_float, numpy_dtype
from tvm_tile.ir.index import (
    And,
    BoolConst,
    Comparison,
    IndexBinary,
    IndexConst,
    IndexExpr,
    IndexVar,
    Interval,
    Not,
    Or,
    Predicate,
    as_linear,
    floordiv,
    interval,
    mod,
)
from tvm_tile.ir.ops import Number
from tvm_tile.ir.values import Value
from tvm_tile.semantics.rounding import constant

__all__ = [
    "divide_index",
    "int64",
    "is_plain_division",
    "linear",
    "literal",
    "lower_index",
    "lower_predicate",
    "register_dtype",
]

#: Lowers an integer scalar value to an ``int64`` expression.
Lookup = Callable[[Value], Any]


def register_dtype(dtype: str) -> str:
    """The dtype in which an element of a tile lives in expressions and in temporaries.

    Truth values are bytes of 0 or 1 (TVM's simplifier negates comparisons as if there were no NaN),
    and the 16-bit and 8-bit floats are float32 numbers that the narrow format can hold.
    """
    if is_bool(dtype):
        return "uint8"
    return "float32" if dtype in ("float16", "bfloat16", *STORAGE_ONLY) else dtype


def int64(value: int) -> Any:
    """An ``int64`` literal."""
    return IntImm("int64", value)


def literal(number: bool | int | float, dtype: str) -> Any:
    """A number rounded to a dtype, as a literal of its register dtype.

    A zero is spelled as a call, which LLVM folds: TVM would fold ``x * 0.0`` to zero and ``x + 0.0`` to
    ``x``.
    """
    if is_bool(dtype):
        return IntImm("uint8", int(bool(number)))
    if not is_float(dtype):
        return _integer_literal(number, dtype)
    with np.errstate(over="ignore"):
        rounded = float(constant(Number.of(number), dtype))
    register = register_dtype(dtype)
    if rounded == 0.0:
        zero = call_intrin(register, "tirx.fabs", FloatImm(register, 0.0))
        return zero if math.copysign(1.0, rounded) > 0 else zero * FloatImm(register, -1.0)
    return FloatImm(register, rounded)


def _integer_literal(number: bool | int | float, dtype: str) -> Any:
    if isinstance(number, float):
        if math.isnan(number):
            number = 0
        info = np.iinfo(numpy_dtype(dtype))
        number = int(info.max) if number >= info.max else int(info.min) if number <= info.min else int(number)
    width = bits(dtype)
    wrapped = int(number) & ((1 << width) - 1)
    if dtype == "uint64" and wrapped >= 1 << 63:
        return tirx.reinterpret(dtype, int64(wrapped - (1 << 64)))
    if not dtype.startswith("u") and wrapped >= 1 << (width - 1):
        wrapped -= 1 << width
    return IntImm(dtype, wrapped)


def lower_index(e: IndexExpr, lookup: Lookup) -> Any:
    """An index expression as an ``int64`` expression; division by zero gives 0."""
    match e:
        case IndexConst(value):
            return int64(value)
        case IndexVar(value):
            return lookup(value)
        case IndexBinary(op, a, b):
            if _nested_divisions(e) > _MOST_DIVISIONS:
                raise UnsupportedError(
                    f"the predicate on {e} nests more than {_MOST_DIVISIONS} divisions by what may be "
                    "negative or zero",
                    suggestion="compute a part of it as a tile scalar: tt.full((), 0, 'int64') + part",
                )
            lowered = lower_index(a, lookup), lower_index(b, lookup)
            plain = op not in ("//", "%") or is_plain_division(e)
            return _binary(op, *lowered) if plain else _divide_by_any(op, *lowered)
    raise TypeError(f"not an index expression: {e!r}")


def is_plain_division(e: IndexBinary) -> bool:
    """Whether it divides a sum without negative terms by a positive constant.

    With a negative one TVM may lose a constant: in a buffer offset ``(1 - i) % 2`` becomes ``i % -2 * -1``.
    """
    divides = e.op in ("//", "%") and isinstance(e.b, IndexConst) and e.b.value > 0
    return divides and not _has_negative_term(e.a)


def _has_negative_term(e: IndexExpr) -> bool:
    terms, _ = as_linear(e)
    return any(
        factor < 0
        or (isinstance(atom, IndexBinary) and (_has_negative_term(atom.a) or _has_negative_term(atom.b)))
        for atom, factor in terms.items()
    )


#: The code of another division holds its operands several times, so nesting multiplies its size.
_MOST_DIVISIONS = 2


def _nested_divisions(e: IndexExpr) -> int:
    """Length of the longest chain of divisions that are not plain."""
    if not isinstance(e, IndexBinary):
        return 0
    deepest = max(_nested_divisions(e.a), _nested_divisions(e.b))
    return deepest + (e.op in ("//", "%") and not is_plain_division(e))


def _binary(op: str, a: Any, b: Any) -> Any:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "min":
            return tirx.min(a, b)
        case "max":
            return tirx.max(a, b)
    return tirx.floordiv(a, b) if op == "//" else tirx.floormod(a, b)


def _divide_by_any(op: str, a: Any, b: Any) -> Any:
    """Floor division by a divisor that may be negative or zero.

    TVM's own lowering of that binds a variable, and fails where the expression stands twice. A processor
    traps on zero, and on the smallest integer by -1: these divide by 1, and the result is put right after.
    All without a ``Select``, since TVM would take the guard off the divisor where a condition implies it, and
    then divide on both sides of the condition.
    """
    nonzero, minus = (Cast("int64", test) for test in (tirx.NE(b, int64(0)), tirx.EQ(b, int64(-1))))
    divisor = b + (int64(1) - nonzero) + minus * int64(2)
    quotient, rest = tirx.truncdiv(a, divisor), tirx.truncmod(a, divisor)
    signs = (Cast("int64", tirx.LT(operand, int64(0))) for operand in (rest, b))
    below = Cast("int64", tirx.NE(rest, int64(0))) * Cast("int64", tirx.NE(*signs))
    if op == "//":
        return (quotient - below) * nonzero * (int64(1) - minus * int64(2))
    return (rest + below * b) * nonzero


def lower_predicate(p: Predicate, lookup: Lookup) -> Any:
    """A predicate over integers as a ``bool`` expression."""
    match p:
        case BoolConst(value):
            return IntImm("bool", int(value))
        case Comparison(op, a, b):
            build = {"<": tirx.LT, "<=": tirx.LE, ">": tirx.GT, ">=": tirx.GE, "==": tirx.EQ, "!=": tirx.NE}[
                op
            ]
            return build(lower_index(a, lookup), lower_index(b, lookup))
        case And(a, b):
            return tirx.And(lower_predicate(a, lookup), lower_predicate(b, lookup))
        case Or(a, b):
            return tirx.Or(lower_predicate(a, lookup), lower_predicate(b, lookup))
        case Not(a):
            return tirx.Not(lower_predicate(a, lookup))
    raise TypeError(f"not a predicate: {p!r}")


def as_int64(value: Any, dtype: str) -> Any:
    """An integer of a data dtype as an index; what does not fit is past every array all the same."""
    if dtype == "int64":
        return value
    if dtype == "uint64":
        return Cast("int64", tirx.min(value, IntImm("uint64", (1 << 63) - 1)))
    return Cast("int64", value)


def linear(terms: Mapping[IndexExpr, int], constant: int) -> IndexExpr:
    """The index expression of a linear normal form."""
    total: IndexExpr | None = IndexConst(constant) if constant else None
    for atom, factor in terms.items():
        term = atom if factor == 1 else IndexBinary("*", atom, IndexConst(factor))
        total = term if total is None else IndexBinary("+", total, term)
    return IndexConst(0) if total is None else total


def divide_index(e: IndexExpr, divisor: int, bounds: Mapping[Value, Interval]) -> tuple[IndexExpr, IndexExpr]:
    """Quotient and remainder of an expression by a positive constant, without a division where it can be."""
    terms, constant = as_linear(e)
    whole = {atom: factor // divisor for atom, factor in terms.items() if factor % divisor == 0}
    part = {atom: factor for atom, factor in terms.items() if factor % divisor}
    rest = linear(part, constant % divisor)
    quotient = linear(whole, constant // divisor)
    low, high = interval(rest, bounds)
    if low is not None and high is not None and low >= 0 and high < divisor:
        return quotient, rest
    if quotient == IndexConst(0):
        return floordiv(rest, IndexConst(divisor)), mod(rest, IndexConst(divisor))
    return IndexBinary("+", quotient, floordiv(rest, IndexConst(divisor))), mod(rest, IndexConst(divisor))
