"""Tile values as sources of elements: what a loop body evaluates at an index.

A source is either storage (:class:`Stored`) or an expression over other sources, evaluated where it is
read. Indices are index expressions of the IR over the axes of the loop nest, so that bounds can be
proved and lanes recognized with the tools of :mod:`tvm_tile.ir.index`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.casts import convert
from tvm_tile.bridges.tirx.lower.elementwise import apply, runs_in_lanes
from tvm_tile.bridges.tirx.lower.scalars import divide_index, int64, linear, literal, register_dtype
from tvm_tile.ir.dtypes import bits
from tvm_tile.ir.index import IndexConst, IndexExpr, add, as_linear, interval, mul
from tvm_tile.ir.ops import Number
from tvm_tile.ir.values import TileType, row_major_strides

__all__ = [
    "Applied",
    "Casted",
    "Check",
    "Index",
    "IndexValue",
    "Literal",
    "Positions",
    "Scalar",
    "Source",
    "Stored",
    "Viewed",
    "broadcast",
    "flat_index",
    "inside_of",
    "reshaped",
    "transposed",
    "unproved",
]

Index = tuple[IndexExpr, ...]

#: Past every array.
_FAR = 1 << 60


@dataclass(frozen=True)
class Check:
    """A position that lies in ``[0, extent)`` for a memory access to be in bounds."""

    position: IndexExpr
    extent: int


@dataclass(frozen=True, eq=False)
class Source:
    """Elements of one type, computed on demand."""

    type: TileType

    def element(self, index: Index, body: Body) -> Any:
        """The element at an index, as an expression of the register dtype."""
        raise NotImplementedError

    @property
    def reads(self) -> Mapping[str, bool]:
        """Names of the temporaries it reads, and whether only at the element's own position."""
        return {}

    def checks(self, index: Index) -> tuple[Check, ...]:
        """Bounds that an access at this index relies on."""
        return ()

    @property
    def vectorizes(self) -> bool:
        """Whether lanes may be computed together."""
        return True

    @property
    def width(self) -> int:
        """Size in bytes of the widest element on the way."""
        return bits(register_dtype(self.type.dtype)) // 8

    def flattened(self) -> Source | None:
        """The same elements on one row-major axis, if that is as easy to evaluate."""
        return None

    def _flat_type(self) -> TileType:
        return TileType((self.type.size,), self.type.dtype)


@dataclass(frozen=True, eq=False)
class Literal(Source):
    """Every element is one number."""

    value: Number

    def element(self, index: Index, body: Body) -> Any:
        return literal(self.value.value, self.type.dtype)

    def flattened(self) -> Source:
        return Literal(self._flat_type(), self.value)


@dataclass(frozen=True, eq=False)
class Scalar(Source):
    """Every element is one expression, evaluated already."""

    value: Any

    def element(self, index: Index, body: Body) -> Any:
        return self.value

    def flattened(self) -> Source:
        return Scalar(self._flat_type(), self.value)


@dataclass(frozen=True, eq=False)
class Positions(Source):
    """``0, 1, ..., n-1``."""

    def element(self, index: Index, body: Body) -> Any:
        position = body.builder.index(index[0])
        return convert(position, "int64", self.type.dtype, body)

    def flattened(self) -> Source:
        return self


@dataclass(frozen=True, eq=False)
class IndexValue(Source):
    """An index expression as an ``int64`` scalar."""

    value: IndexExpr

    def element(self, index: Index, body: Body) -> Any:
        return body.builder.index(self.value)


@dataclass(frozen=True, eq=False)
class Stored(Source):
    """A dense row-major temporary."""

    buffer: Any

    def element(self, index: Index, body: Body) -> Any:
        return self.buffer[body.builder.index(flat_index(index, self.type.shape))]

    @property
    def reads(self) -> Mapping[str, bool]:
        return {self.buffer.name: True}

    def flattened(self) -> Source:
        return Stored(self._flat_type(), self.buffer)


@dataclass(frozen=True, eq=False)
class Applied(Source):
    """An elementwise function of sources of the same shape."""

    fn: str
    operands: tuple[Source, ...]
    shared: bool = False

    def element(self, index: Index, body: Body) -> Any:
        def compute() -> Any:
            values: dict[int, Any] = {}
            for operand in self.operands:
                if id(operand) not in values:
                    value = operand.element(index, body)
                    if self.operands.count(operand) > 1:
                        value = body.name(value, register_dtype(operand.type.dtype))
                    values[id(operand)] = value
            dtype = self.operands[-1].type.dtype
            return apply(self.fn, dtype, [values[id(o)] for o in self.operands], body, body.fma)

        return _once(self, index, body, compute)

    @property
    def reads(self) -> Mapping[str, bool]:
        return _merged(*(operand.reads for operand in self.operands))

    def checks(self, index: Index) -> tuple[Check, ...]:
        return tuple(check for operand in self.operands for check in operand.checks(index))

    @property
    def vectorizes(self) -> bool:
        apart = runs_in_lanes(self.fn, self.operands[-1].type.dtype)
        return apart and all(operand.vectorizes for operand in self.operands)

    @property
    def width(self) -> int:
        wide = self.fn == "fma" and self.type.dtype in ("float16", "bfloat16")
        own = 8 if wide else bits(register_dtype(self.type.dtype)) // 8
        return max(own, *(operand.width for operand in self.operands))

    def flattened(self) -> Source | None:
        flat = tuple(operand.flattened() for operand in self.operands)
        if any(operand is None for operand in flat):
            return None
        if self.shared:
            return None
        same = {id(a): b for a, b in zip(self.operands, flat, strict=True)}
        return Applied(self._flat_type(), self.fn, tuple(same[id(o)] for o in self.operands))  # type: ignore[misc]


@dataclass(frozen=True, eq=False)
class Casted(Source):
    """A conversion of another source."""

    operand: Source
    shared: bool = False

    def element(self, index: Index, body: Body) -> Any:
        def compute() -> Any:
            return convert(self.operand.element(index, body), self.operand.type.dtype, self.type.dtype, body)

        return _once(self, index, body, compute)

    @property
    def reads(self) -> Mapping[str, bool]:
        return self.operand.reads

    def checks(self, index: Index) -> tuple[Check, ...]:
        return self.operand.checks(index)

    @property
    def vectorizes(self) -> bool:
        return self.operand.vectorizes

    @property
    def width(self) -> int:
        source = self.operand.type.dtype
        wide = self.type.dtype in ("float16", "bfloat16") and bits(source) >= 32 and source != "float32"
        own = 8 if wide else bits(register_dtype(self.type.dtype)) // 8
        return max(own, self.operand.width)

    def flattened(self) -> Source | None:
        flat = self.operand.flattened()
        return None if flat is None or self.shared else Casted(self._flat_type(), flat)


@dataclass(frozen=True, eq=False)
class Viewed(Source):
    """Another source read at positions computed from the index."""

    operand: Source
    place: Callable[[Index], Index]
    #: Positions that must be in bounds of the operand; an element out of bounds is 0.
    limits: Callable[[Index], tuple[Check, ...]] | None = None
    same_order: bool = False

    def element(self, index: Index, body: Body) -> Any:
        value = self.operand.element(self.place(index), body)
        if self.limits is None or not body.guarded:
            return value
        inside = inside_of(self.limits(index), body.builder)
        return value if inside is None else tirx.if_then_else(inside, value, literal(0, self.type.dtype))

    @property
    def reads(self) -> Mapping[str, bool]:
        return {buffer: self.same_order and exact for buffer, exact in self.operand.reads.items()}

    def checks(self, index: Index) -> tuple[Check, ...]:
        own = () if self.limits is None else self.limits(index)
        return (*own, *self.operand.checks(self.place(index)))

    @property
    def vectorizes(self) -> bool:
        return self.operand.vectorizes

    @property
    def width(self) -> int:
        return self.operand.width

    def flattened(self) -> Source | None:
        if self.limits is not None:
            return None
        if isinstance(self.operand, Literal):
            return Literal(self._flat_type(), self.operand.value)
        if not self.operand.type.shape:
            return Viewed(self._flat_type(), self.operand, lambda _: ())
        return self.operand.flattened() if self.same_order else None


def unproved(checks: tuple[Check, ...], builder: Builder) -> tuple[Check, ...]:
    """The checks that the known ranges of their positions do not decide."""
    left: dict[Check, None] = {}
    for check in checks:
        low, high = interval(check.position, builder.bounds)
        if low is None or high is None or low < 0 or high >= check.extent:
            left[check] = None
    return tuple(left)


def inside_of(checks: tuple[Check, ...], builder: Builder) -> Any | None:
    """The run-time test of the checks that are not proved, or ``None`` if all are.

    A number read from memory is clamped first: what is added to it must not wrap.
    """
    test: Any | None = None
    for check in unproved(checks, builder):
        terms, constant = as_linear(check.position)
        known = {atom: f for atom, f in terms.items() if None not in interval(atom, builder.bounds)}
        start = builder.index(linear({atom: f for atom, f in terms.items() if atom not in known}, 0))
        offset = builder.index(linear(known, constant))
        if len(known) == len(terms):
            position = offset
        else:
            position = tirx.min(tirx.max(start, int64(-_FAR)), int64(_FAR)) + offset
        both = tirx.And(tirx.LE(int64(0), position), tirx.LT(position, int64(check.extent)))
        test = both if test is None else tirx.And(test, both)
    return test


def _once(source: Applied | Casted, index: Index, body: Body, compute: Callable[[], Any]) -> Any:
    """Compute a shared source into a register the first time it is read at an index."""
    if not source.shared:
        return compute()
    key = (id(source), index)
    value = body.remembered(key)
    if value is None:
        value = body.name(compute(), register_dtype(source.type.dtype))
        body.remember(key, value)
    return value


def _merged(*reads: Mapping[str, bool]) -> Mapping[str, bool]:
    merged: dict[str, bool] = {}
    for part in reads:
        for buffer, exact in part.items():
            merged[buffer] = merged.get(buffer, True) and exact
    return merged


def flat_index(index: Index, shape: tuple[int, ...]) -> IndexExpr:
    """Row-major position of an index in a dense array."""
    total: IndexExpr = IndexConst(0)
    for position, stride in zip(index, row_major_strides(shape), strict=True):
        total = add(total, mul(position, IndexConst(stride)))
    return total


def transposed(operand: Source, type: TileType, permutation: tuple[int, ...]) -> Source:
    """``result.shape[d] == operand.shape[permutation[d]]``."""
    if permutation == tuple(range(len(permutation))):
        return operand

    def place(index: Index) -> Index:
        positions = dict(zip(permutation, index, strict=True))
        return tuple(positions[axis] for axis in range(len(permutation)))

    return Viewed(type, operand, place)


def broadcast(operand: Source, type: TileType) -> Source:
    """NumPy broadcasting to a larger shape."""
    shape = operand.type.shape
    if shape == type.shape:
        return operand

    def place(index: Index) -> Index:
        tail = index[len(index) - len(shape) :]
        return tuple(IndexConst(0) if n == 1 else i for i, n in zip(tail, shape, strict=True))

    return Viewed(type, operand, place, same_order=operand.type.size == type.size)


def reshaped(operand: Source, type: TileType, builder: Builder) -> Source:
    """Row-major reinterpretation; axes of extent one come and go without arithmetic."""
    if isinstance(operand, Stored):
        return Stored(type, operand.buffer)
    shape = operand.type.shape
    kept = [axis for axis, n in enumerate(type.shape) if n != 1]
    if [n for n in shape if n != 1] == [type.shape[axis] for axis in kept]:

        def place(index: Index) -> Index:
            rest = iter([index[axis] for axis in kept])
            return tuple(IndexConst(0) if n == 1 else next(rest) for n in shape)

        return Viewed(type, operand, place, same_order=True)

    def divide(index: Index) -> Index:
        rest = flat_index(index, type.shape)
        positions: list[IndexExpr] = []
        for stride in row_major_strides(shape)[:-1]:
            quotient, rest = divide_index(rest, stride, builder.bounds)
            positions.append(quotient)
        return (*positions, rest) if shape else ()

    return Viewed(type, operand, divide, same_order=True)


