"""Tile values as sources of elements: what a loop body evaluates at an index.

A source is either storage (:class:`Stored`) or an expression over other sources, evaluated where it is
read. Indices are index expressions of the IR over the axes of the loop nest, so that bounds can be
proved and lanes recognized with the tools of :mod:`tvm_tile.ir.index`.
"""

from __future__ import annotations

# ruff: noqa: D102 -- the methods of a source are documented at `Source`.
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tvm_tile.bridges.tirx.lower.bounds import Check
from tvm_tile.bridges.tirx.lower.builder import Body
from tvm_tile.bridges.tirx.lower.elements.casts import convert
from tvm_tile.bridges.tirx.lower.elements.elementwise import apply, runs_in_lanes
from tvm_tile.bridges.tirx.lower.scalars import literal, register_dtype
from tvm_tile.ir.dtypes import STORAGE_ONLY, bits
from tvm_tile.ir.index import IndexConst, IndexExpr, add, mul
from tvm_tile.ir.ops import Number
from tvm_tile.ir.values import TileType, row_major_strides

__all__ = [
    "Applied",
    "Casted",
    "Index",
    "IndexValue",
    "Literal",
    "Positions",
    "Scalar",
    "Source",
    "Stored",
    "flat_index",
]

Index = tuple[IndexExpr, ...]


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
    """An elementwise function of sources of the same shape.

    What is asked of it is answered once: the ways through a graph of shared operands double at every level.
    """

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

    @cached_property
    def reads(self) -> Mapping[str, bool]:
        return _merged(*(operand.reads for operand in self.operands))

    def checks(self, index: Index) -> tuple[Check, ...]:
        if index not in self._checks:
            found = (check for operand in self.operands for check in operand.checks(index))
            self._checks[index] = tuple(dict.fromkeys(found))
        return self._checks[index]

    @cached_property
    def _checks(self) -> dict[Index, tuple[Check, ...]]:
        return {}

    @cached_property
    def vectorizes(self) -> bool:
        apart = runs_in_lanes(self.fn, self.operands[-1].type.dtype)
        return apart and all(operand.vectorizes for operand in self.operands)

    @cached_property
    def width(self) -> int:
        wide = self.fn == "fma" and self.type.dtype in ("float16", "bfloat16")
        own = 8 if wide else bits(register_dtype(self.type.dtype)) // 8
        return max(own, *(operand.width for operand in self.operands))

    def flattened(self) -> Source | None:
        if self.shared:
            return None
        flat = tuple(operand.flattened() for operand in self.operands)
        if any(operand is None for operand in flat):
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
        narrow = self.type.dtype in ("float16", "bfloat16", *STORAGE_ONLY)
        wide = narrow and bits(source) >= 32 and source != "float32"
        own = 8 if wide else bits(register_dtype(self.type.dtype)) // 8
        return max(own, self.operand.width)

    def flattened(self) -> Source | None:
        flat = self.operand.flattened()
        return None if flat is None or self.shared else Casted(self._flat_type(), flat)


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
