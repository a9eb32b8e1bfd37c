"""Index expressions and predicates: the integer arithmetic of subscripts, extents and domains.

Small immutable trees over constants and integer scalar values. The constructor functions fold
constants and unit elements; :func:`as_linear` gives the linear normal form that proofs and code
generation use. All arithmetic is exact here and 64 bits wide in generated code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvm_tile.ir.values import TileType, Value

__all__ = [
    "AddressMap",
    "And",
    "BoolConst",
    "Comparison",
    "IndexBinary",
    "IndexConst",
    "IndexExpr",
    "IndexVar",
    "Not",
    "Or",
    "Predicate",
    "add",
    "apply_integer",
    "as_linear",
    "compare",
    "compare_integers",
    "conjunction",
    "constant_of",
    "disjunction",
    "floordiv",
    "free_values",
    "interval",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "negation",
    "sub",
    "substitute_index",
    "substitute_predicate",
]

Interval = tuple[int | None, int | None]


@dataclass(frozen=True)
class IndexConst:
    """An integer literal."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class IndexVar:
    """An integer scalar value: a loop index, or any computed scalar."""

    value: Value

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class IndexBinary:
    """``op`` is one of ``+ - * // % min max``; ``//`` and ``%`` round to minus infinity."""

    op: str
    a: IndexExpr
    b: IndexExpr

    def __str__(self) -> str:
        if self.op in ("min", "max"):
            return f"{self.op}({self.a}, {self.b})"
        return f"({self.a} {self.op} {self.b})"


IndexExpr = IndexConst | IndexVar | IndexBinary


@dataclass(frozen=True)
class AddressMap:
    """Where the elements of a memory lie: an address, in elements, for each index.

    Attributes
    ----------
    axes
        Stand for the index along each axis, in ``address`` only: ``int64`` scalars with the ids
        -1, -2, ..., as :meth:`axis` makes them.
    address
        The address of an element; different elements have different ones.
    size
        Addresses are in ``range(size)``.
    """

    axes: tuple[Value, ...]
    address: IndexExpr
    size: int

    @staticmethod
    def axis(position: int) -> Value:
        """The value that stands for the index along an axis."""
        return Value(-1 - position, TileType((), "int64"), f"i{position}")


@dataclass(frozen=True)
class BoolConst:
    """A literal truth value."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True)
class Comparison:
    """``op`` is one of ``< <= > >= == !=``."""

    op: str
    a: IndexExpr
    b: IndexExpr

    def __str__(self) -> str:
        return f"({self.a} {self.op} {self.b})"


@dataclass(frozen=True)
class And:
    """Both hold."""

    a: Predicate
    b: Predicate

    def __str__(self) -> str:
        return f"({self.a} and {self.b})"


@dataclass(frozen=True)
class Or:
    """At least one holds."""

    a: Predicate
    b: Predicate

    def __str__(self) -> str:
        return f"({self.a} or {self.b})"


@dataclass(frozen=True)
class Not:
    """It does not hold."""

    a: Predicate

    def __str__(self) -> str:
        return f"(not {self.a})"


Predicate = BoolConst | Comparison | And | Or | Not


def apply_integer(op: str, a: int, b: int) -> int:
    """The meaning of an index operator on integers; division by zero gives 0, as for tiles."""
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return a // b if b else 0
        case "%":
            return a % b if b else 0
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
    raise ValueError(f"unknown index operator {op!r}")


def _binary(op: str, a: IndexExpr, b: IndexExpr) -> IndexExpr:
    if isinstance(a, IndexConst) and isinstance(b, IndexConst):
        return IndexConst(apply_integer(op, a.value, b.value))
    return IndexBinary(op, a, b)


def add(a: IndexExpr, b: IndexExpr) -> IndexExpr:
    """``a + b``, folded."""
    if a == IndexConst(0):
        return b
    return a if b == IndexConst(0) else _binary("+", a, b)


def sub(a: IndexExpr, b: IndexExpr) -> IndexExpr:
    """``a - b``, folded."""
    if a == b:
        return IndexConst(0)
    return a if b == IndexConst(0) else _binary("-", a, b)


def mul(a: IndexExpr, b: IndexExpr) -> IndexExpr:
    """``a * b``, folded."""
    if IndexConst(0) in (a, b):
        return IndexConst(0)
    if a == IndexConst(1):
        return b
    return a if b == IndexConst(1) else _binary("*", a, b)


def floordiv(a: IndexExpr, b: IndexExpr) -> IndexExpr:
    """``a // b`` rounded to minus infinity; ``a // 0`` is 0."""
    return a if b == IndexConst(1) else _binary("//", a, b)


def mod(a: IndexExpr, b: IndexExpr) -> IndexExpr:
    """``a % b`` with the sign of ``b``; ``a % 0`` is 0."""
    return IndexConst(0) if b == IndexConst(1) else _binary("%", a, b)


def minimum(a: IndexExpr, b: IndexExpr) -> IndexExpr:
    """The smaller one, folded."""
    return a if a == b else _binary("min", a, b)


def maximum(a: IndexExpr, b: IndexExpr) -> IndexExpr:
    """The larger one, folded."""
    return a if a == b else _binary("max", a, b)


def compare_integers(op: str, a: int, b: int) -> bool:
    """The meaning of a comparison on integers."""
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op]


def compare(op: str, a: IndexExpr, b: IndexExpr) -> Predicate:
    """``a op b``, folded if both are constant."""
    if isinstance(a, IndexConst) and isinstance(b, IndexConst):
        return BoolConst(compare_integers(op, a.value, b.value))
    return Comparison(op, a, b)


def conjunction(a: Predicate, b: Predicate) -> Predicate:
    """``a and b``, folded."""
    if isinstance(a, BoolConst):
        return b if a.value else a
    if isinstance(b, BoolConst):
        return a if b.value else b
    return And(a, b)


def disjunction(a: Predicate, b: Predicate) -> Predicate:
    """``a or b``, folded."""
    if isinstance(a, BoolConst):
        return a if a.value else b
    if isinstance(b, BoolConst):
        return b if b.value else a
    return Or(a, b)


def negation(a: Predicate) -> Predicate:
    """``not a``, folded."""
    if isinstance(a, BoolConst):
        return BoolConst(not a.value)
    return a.a if isinstance(a, Not) else Not(a)


def constant_of(e: IndexExpr) -> int | None:
    """The integer an expression always has, or ``None``."""
    terms, constant = as_linear(e)
    return None if terms else constant


def as_linear(e: IndexExpr) -> tuple[dict[IndexExpr, int], int]:
    """Linear normal form: coefficients of atoms (variables, or opaque subtrees) and a constant."""
    if isinstance(e, IndexConst):
        return {}, e.value
    if isinstance(e, IndexBinary) and e.op in ("+", "-"):
        terms, constant = as_linear(e.a)
        terms = dict(terms)
        sign = 1 if e.op == "+" else -1
        more, other = as_linear(e.b)
        for atom, factor in more.items():
            terms[atom] = terms.get(atom, 0) + sign * factor
            if not terms[atom]:
                del terms[atom]
        return terms, constant + sign * other
    if isinstance(e, IndexBinary) and e.op == "*":
        (ta, ca), (tb, cb) = as_linear(e.a), as_linear(e.b)
        if not ta:
            ta, ca, tb, cb = tb, cb, ta, ca
        if not tb:
            return ({atom: f * cb for atom, f in ta.items()} if cb else {}), ca * cb
    return {e: 1}, 0


def interval(e: IndexExpr, bounds: Mapping[Value, Interval]) -> Interval:
    """Inclusive range of an expression when each value lies in its range; ``None`` is unbounded."""
    match e:
        case IndexConst(value):
            return value, value
        case IndexVar(value):
            return bounds.get(value, (None, None))
        case IndexBinary("+" | "-" | "*"):
            return _linear_interval(e, bounds)
        case IndexBinary(op, a, b):
            (la, ha), (lb, hb) = interval(a, bounds), interval(b, bounds)
            match op:
                case "min":
                    low = None if la is None or lb is None else min(la, lb)
                    highs = [h for h in (ha, hb) if h is not None]
                    return low, min(highs, default=None)
                case "max":
                    lows = [v for v in (la, lb) if v is not None]
                    return max(lows, default=None), None if ha is None or hb is None else max(ha, hb)
                case "//" if lb is not None and lb == hb and lb > 0:
                    return None if la is None else la // lb, None if ha is None else ha // lb
                case "%" if lb is not None and lb == hb and lb > 0:
                    if la is not None and ha is not None and la // lb == ha // lb:
                        return la % lb, ha % lb
                    return 0, lb - 1
    return None, None


def _linear_interval(e: IndexExpr, bounds: Mapping[Value, Interval]) -> Interval:
    terms, constant = as_linear(e)
    low: int | None = constant
    high: int | None = constant
    for atom, factor in terms.items():
        if isinstance(atom, IndexBinary) and atom.op == "*":
            ends = [interval(atom.a, bounds), interval(atom.b, bounds)]
            if any(end is None for pair in ends for end in pair):
                return None, None
            products = [x * y for x in ends[0] for y in ends[1]]  # type: ignore[operator]
            span: Interval = (min(products), max(products))
        else:
            span = interval(atom, bounds)
        below, above = span if factor > 0 else (span[1], span[0])
        low = None if low is None or below is None else low + factor * below
        high = None if high is None or above is None else high + factor * above
    return low, high


def free_values(e: IndexExpr | Predicate) -> frozenset[Value]:
    """The values an expression or predicate reads."""
    match e:
        case IndexVar(value):
            return frozenset((value,))
        case IndexBinary(_, a, b) | Comparison(_, a, b) | And(a, b) | Or(a, b):
            return free_values(a) | free_values(b)
        case Not(a):
            return free_values(a)
    return frozenset()


_FOLD = {"+": add, "-": sub, "*": mul, "//": floordiv, "%": mod, "min": minimum, "max": maximum}


def substitute_index(e: IndexExpr, mapping: Mapping[Value, IndexExpr]) -> IndexExpr:
    """Replace values in an index expression by expressions, folding on the way."""
    match e:
        case IndexVar(value):
            return mapping.get(value, e)
        case IndexBinary(op, a, b):
            return _FOLD[op](substitute_index(a, mapping), substitute_index(b, mapping))
    return e


def substitute_predicate(e: Predicate, mapping: Mapping[Value, IndexExpr]) -> Predicate:
    """Replace values in a predicate by index expressions, folding on the way."""
    match e:
        case Comparison(op, a, b):
            return compare(op, substitute_index(a, mapping), substitute_index(b, mapping))
        case And(a, b):
            return conjunction(substitute_predicate(a, mapping), substitute_predicate(b, mapping))
        case Or(a, b):
            return disjunction(substitute_predicate(a, mapping), substitute_predicate(b, mapping))
        case Not(a):
            return negation(substitute_predicate(a, mapping))
    return e
