"""Views of tiles: other positions of the same elements, computed where they are read."""

from __future__ import annotations

# ruff: noqa: D102 -- the methods of a source are documented at `Source`.
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx import Select

from tvm_tile.bridges.tirx.lower.bounds import Check, inside_of
from tvm_tile.bridges.tirx.lower.builder import Body, Builder
from tvm_tile.bridges.tirx.lower.scalars import as_int64, divide_index, int64, literal
from tvm_tile.bridges.tirx.lower.values import Index, Literal, Source, Stored, flat_index
from tvm_tile.ir.index import IndexConst, IndexExpr, IndexVar
from tvm_tile.ir.ops import Number
from tvm_tile.ir.values import TileType, row_major_strides

__all__ = ["Gathered", "Viewed", "broadcast", "reshaped", "transposed"]


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


@dataclass(frozen=True, eq=False)
class Gathered(Source):
    """Elements of a source at positions along an axis that another source gives.

    The operand must need no bounds tests.
    """

    operand: Source
    positions: Source
    axis: int
    fill: Number

    def element(self, index: Index, body: Body) -> Any:
        shape = self.operand.type.shape
        fill = literal(self.fill.value, self.type.dtype)
        given = self.positions.element(index, body)
        if shape[self.axis] == 0:
            return fill
        position = body.name(as_int64(given, self.positions.type.dtype), "int64", "position")
        inside = tirx.And(tirx.LE(int64(0), position), tirx.LT(position, int64(shape[self.axis])))
        # What is out of bounds reads the first element of the fibre, so that lanes need no branch.
        kept = body.builder.axis("position", shape[self.axis])
        body.builder.integers[kept] = body.name(Select(inside, position, int64(0)), "int64", "position")
        place = (*index[: self.axis], IndexVar(kept), *index[self.axis + 1 :])
        return Select(inside, self.operand.element(place, body), fill)

    @property
    def reads(self) -> Mapping[str, bool]:
        return {**self.positions.reads, **dict.fromkeys(self.operand.reads, False)}

    def checks(self, index: Index) -> tuple[Check, ...]:
        return self.positions.checks(index)

    @property
    def vectorizes(self) -> bool:
        return self.positions.vectorizes and self.operand.vectorizes

    @property
    def width(self) -> int:
        return max(8, self.positions.width, self.operand.width)


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
