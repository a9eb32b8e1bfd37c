"""Tile operations: the leaves of the region tree.

Every op is a frozen record with explicit operands, its results, and explicit effects. Shapes
of elementwise operands are equal (the frontend inserts :class:`Broadcast`) and dtype changes are
explicit (:class:`Cast`), so that an op never converts anything silently. Operations that hold a merge
are in :mod:`tvm_tile.ir.merge_ops`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm_tile.ir.index import IndexExpr
from tvm_tile.ir.span import Span
from tvm_tile.ir.values import Memory, Value

__all__ = [
    "Alloc",
    "ArgReduce",
    "Atomic",
    "Broadcast",
    "Cast",
    "Concat",
    "Elementwise",
    "Extern",
    "Extract",
    "FromIndex",
    "Full",
    "Gather",
    "Insert",
    "Iota",
    "Load",
    "Mma",
    "Number",
    "Op",
    "Point",
    "ReduceTile",
    "Reshape",
    "Slice",
    "Stage",
    "Store",
    "Transpose",
    "View",
]

POLICIES = ("unordered_tree", "ordered_tree", "fold_left", "fold_right")


@dataclass(frozen=True)
class Number:
    """A literal, kept as text so that NaN equals itself and -0.0 differs from 0.0."""

    text: str

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, value: bool | int | float) -> Number:
        """The literal of a Python number or a NumPy scalar."""
        # The text of a NumPy scalar, or of an enum, would name its type.
        if isinstance(value, (bool, np.bool_)):
            return cls(repr(bool(value)))
        return cls(repr(int(value) if isinstance(value, (int, np.integer)) else float(value)))

    @property
    def value(self) -> bool | int | float:
        """The Python number."""
        if self.text in ("True", "False"):
            return self.text == "True"
        try:
            return int(self.text)
        except ValueError:
            return float(self.text)


@dataclass(frozen=True)
class Point:
    """A subscript that selects one index and drops the axis."""

    index: IndexExpr

    def __str__(self) -> str:
        return str(self.index)


@dataclass(frozen=True)
class Slice:
    """A subscript that keeps the axis: ``size`` elements from ``start``, ``step`` apart."""

    start: IndexExpr
    size: int
    step: int = 1

    def __str__(self) -> str:
        tail = "" if self.step == 1 else f" by {self.step}"
        return f"{self.start} :+ {self.size}{tail}"


Subscript = Point | Slice


def subscript_shape(subscripts: tuple[Subscript, ...]) -> tuple[int, ...]:
    """Shape that a full list of subscripts selects."""
    return tuple(s.size for s in subscripts if isinstance(s, Slice))


@dataclass(frozen=True)
class View:
    """A rectangular part of a memory, one subscript an axis."""

    memory: Memory
    subscripts: tuple[Subscript, ...]

    def __str__(self) -> str:
        return f"{self.memory}[{', '.join(map(str, self.subscripts))}]"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tile that a load of it gives."""
        return subscript_shape(self.subscripts)


@dataclass(frozen=True)
class Op:
    """Base of all leaf operations."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def results(self) -> tuple[Value, ...]:
        """The values it defines: its ``result``, or its ``outputs`` if it may have several."""
        outputs: tuple[Value, ...] | None = getattr(self, "outputs", None)
        if outputs is not None:
            return outputs
        result: Any = getattr(self, "result", None)
        return () if result is None else (result,)


@dataclass(frozen=True)
class Full(Op):
    """Every element is the literal."""

    result: Value
    value: Number


@dataclass(frozen=True)
class FromIndex(Op):
    """An index expression as an ``int64`` scalar value."""

    result: Value
    index: IndexExpr


@dataclass(frozen=True)
class Iota(Op):
    """``0, 1, ..., n-1`` in one dimension."""

    result: Value


@dataclass(frozen=True)
class Elementwise(Op):
    """``fn`` applied element by element; see :mod:`tvm_tile.ir.functions` for the functions."""

    result: Value
    fn: str
    operands: tuple[Value, ...]


@dataclass(frozen=True)
class Cast(Op):
    """Conversion to the result's dtype, rounding to nearest even; float → int saturates, NaN gives 0."""

    result: Value
    operand: Value


@dataclass(frozen=True)
class Broadcast(Op):
    """NumPy broadcasting of the operand to the result's shape (axes align at the end)."""

    result: Value
    operand: Value


@dataclass(frozen=True)
class Reshape(Op):
    """Row-major reinterpretation with the same number of elements."""

    result: Value
    operand: Value


@dataclass(frozen=True)
class Transpose(Op):
    """``result.shape[d] == operand.shape[permutation[d]]``."""

    result: Value
    operand: Value
    permutation: tuple[int, ...]


@dataclass(frozen=True)
class Extract(Op):
    """A rectangular part of a tile; elements outside of it are 0, as in a load."""

    result: Value
    operand: Value
    subscripts: tuple[Subscript, ...]


@dataclass(frozen=True)
class Insert(Op):
    """The operand with a rectangular part replaced; what lies outside of the operand is dropped.

    Over a carried state of a :class:`~tvm_tile.ir.regions.Parallel` it is the instance's patch: see
    :mod:`tvm_tile.ir.patches`. ``combine`` names the elementwise function that joins the values of several
    instances for one element; without it two instances may not write one.
    """

    result: Value
    operand: Value
    subscripts: tuple[Subscript, ...]
    value: Value
    combine: str | None = None


@dataclass(frozen=True)
class Concat(Op):
    """Tiles joined along an axis; the other extents are equal."""

    result: Value
    operands: tuple[Value, ...]
    axis: int


@dataclass(frozen=True)
class Gather(Op):
    """Elements along an axis by position: as ``numpy.take_along_axis`` without negative positions.

    ``index`` has the result's shape, and the operand too but for ``axis``. A position outside of the
    operand, a negative one included, gives ``fill``.
    """

    result: Value
    operand: Value
    index: Value
    axis: int
    fill: Number = Number("0")


@dataclass(frozen=True)
class Mma(Op):
    """``acc + a @ b`` with batch axes as in ``numpy.matmul``, accumulated in ``acc``'s dtype.

    ``ordered`` keeps the contraction order; otherwise it is an ``unordered_tree``.
    """

    result: Value
    a: Value
    b: Value
    acc: Value
    ordered: bool = False


@dataclass(frozen=True)
class ReduceTile(Op):
    """Reduction of a tile over axes with a built-in combiner, accumulated in the result's dtype.

    ``combiner`` is ``add multiply maximum minimum and or``; ``where`` omits contributions.
    """

    result: Value
    operand: Value
    axes: tuple[int, ...]
    combiner: str
    keepdims: bool
    policy: str
    where: Value | None = None


@dataclass(frozen=True)
class ArgReduce(Op):
    """Index (``int32``) of the first extremum along an axis; the first NaN wins.

    ``kind`` is ``argmax`` or ``argmin``. ``where`` omits contributions; a fibre with none left is
    position 0.
    """

    result: Value
    operand: Value
    axis: int
    kind: str
    keepdims: bool
    where: Value | None = None


@dataclass(frozen=True)
class Load(Op):
    """A snapshot of a view. A lane out of bounds, or masked off, holds ``fill``."""

    result: Value
    view: View
    fill: Number = Number("0")
    bounds: str = "fill"
    mask: Value | None = None


@dataclass(frozen=True)
class Store(Op):
    """Write a view. Lanes out of bounds, or masked off, are dropped."""

    view: View
    value: Value
    bounds: str = "fill"
    mask: Value | None = None


@dataclass(frozen=True)
class Alloc(Op):
    """Starts the life of an explicit memory; it ends with the enclosing block.

    Every execution makes a new one, whose elements are not initialized.
    """

    memory: Memory


@dataclass(frozen=True)
class Atomic(Op):
    """Read, combine and write each element of a view as one step; the result holds what was read.

    ``fn`` is ``add``, ``maximum`` or ``minimum``. Lanes out of bounds, or masked off, write nothing and
    give 0. Atomics of different instances on one element do not conflict with one another.
    """

    result: Value
    view: View
    value: Value
    fn: str
    mask: Value | None = None


@dataclass(frozen=True)
class Extern(Op):
    """Call of an opaque C function: ``void symbol(...)``.

    A view passes the address of its first element, which must be in bounds; a scalar value passes itself.
    It may read all of the memories in ``reads`` and write all of those in ``writes``.
    """

    symbol: str
    operands: tuple[View | Value, ...]
    reads: tuple[Memory, ...]
    writes: tuple[Memory, ...]


@dataclass(frozen=True)
class Stage(Op):
    """Starts a named stage of the enclosing pipeline's body."""

    name: str
