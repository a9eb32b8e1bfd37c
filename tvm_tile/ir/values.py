"""SSA tile values and the memories that loads and stores touch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tvm_tile.ir.span import Span

if TYPE_CHECKING:
    from tvm_tile.ir.index import AddressMap

__all__ = ["Memory", "TileType", "Value", "row_major_strides"]


@dataclass(frozen=True)
class TileType:
    """Shape and dtype of a tile value; shape ``()`` is a scalar."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Value:
    """An SSA value: defined once, immutable, a tile or a scalar.

    Attributes
    ----------
    id
        Unique in its program; canonical programs number values in program order.
    type
        Shape and dtype. Loop indices are ``int64[]``.
    name
        Python name at the definition, for printing and schedules; may be empty.
    """

    id: int
    type: TileType
    name: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"%{self.name}.{self.id}" if self.name else f"%{self.id}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the tile."""
        return self.type.shape

    @property
    def dtype(self) -> str:
        """Element type."""
        return self.type.dtype


def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a dense row-major array."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True)
class Memory:
    """An addressable array: a tensor parameter of the program, or explicit memory.

    Attributes
    ----------
    name
        Unique in its program.
    shape
        Extents in elements.
    dtype
        Element type.
    strides
        Strides in elements, or ``None`` for dense row-major. Axes of extent 0 or 1 have no
        meaningful stride; :func:`dense_or_strides` normalizes them away.
    scope
        ``"param"`` for tensor parameters; else the memory space of an allocation: ``"local"``,
        ``"shared"``, ``"global"`` or a target's own.
    layout
        Address of each element in an allocation, in place of strides; ``None`` for strides or row-major.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None
    scope: str = "param"
    layout: AddressMap | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"@{self.name}"

    @property
    def element_strides(self) -> tuple[int, ...]:
        """Strides in elements, given or row-major."""
        return row_major_strides(self.shape) if self.strides is None else self.strides

    @staticmethod
    def dense_or_strides(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """Normalize strides: ``None`` if the array is dense row-major as far as can be observed."""
        if strides is None or 0 in shape:
            return None
        dense = row_major_strides(shape)
        kept = tuple(d if n == 1 else s for n, s, d in zip(shape, strides, dense, strict=True))
        return None if kept == dense else kept
