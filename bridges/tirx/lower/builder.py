"""The state of one lowering: names, allocations, statements under construction, and loop bodies.

A :class:`Builder` collects statements into the innermost open block. Temporaries belong to a *frame*:
the function, or one instance of an outermost parallel region, at whose head they are allocated.
A :class:`Body` is the inside of one innermost loop, where elements are computed in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import AllocBuffer, BufferStore, For, ForKind, IfThenElse, SeqStmt, Var
from tvm.tirx.buffer import decl_buffer

from tvm_tile.bridges.tirx.lower.machine import Machine
from tvm_tile.bridges.tirx.lower.scalars import int64, lower_index, lower_predicate
from tvm_tile.ir.dtypes import bits
from tvm_tile.ir.index import IndexExpr, Interval, Predicate, substitute_index
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["Body", "Builder", "sequence"]


def sequence(statements: list[Any]) -> Any:
    """One statement for a list of them."""
    if not statements:
        return tirx.Evaluate(int64(0))
    return statements[0] if len(statements) == 1 else SeqStmt(statements)


@dataclass
class Builder:
    """Everything that lowering one program accumulates.

    Attributes
    ----------
    machine
        Vector width and registers of the target.
    noalias
        Whether different parameters never share memory.
    fma
        Whether products may be contracted with sums.
    buffers
        The parameter buffers.
    integers
        ``int64`` expressions of integer scalar values that indices may read.
    bounds
        Known ranges of integer scalars.
    definitions
        Index expressions that scalar values stand for.
    debug
        Whether promises of the program are checked when it runs.
    """

    machine: Machine
    noalias: bool
    fma: bool
    buffers: dict[Memory, Any] = field(default_factory=dict)
    integers: dict[Value, Any] = field(default_factory=dict)
    bounds: dict[Value, Interval] = field(default_factory=dict)
    definitions: dict[Value, IndexExpr] = field(default_factory=dict)
    debug: bool = False
    _names: dict[str, int] = field(default_factory=dict)
    _blocks: list[list[Any]] = field(default_factory=lambda: [[]])
    _frames: list[list[Any]] = field(default_factory=lambda: [[]])
    _axes: int = 0

    def unique(self, hint: str) -> str:
        """A name not given before, made from a hint."""
        stem = self.machine.identifier(hint) or "t"
        count = self._names.get(stem)
        self._names[stem] = 1 if count is None else count + 1
        return stem if count is None else self.unique(f"{stem}_{count}")

    def emit(self, statement: Any) -> None:
        """Append a statement to the innermost open block."""
        self._blocks[-1].append(statement)

    @contextmanager
    def block(self) -> Iterator[list[Any]]:
        """Collect the statements emitted inside into the list that is given."""
        self._blocks.append([])
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()

    @contextmanager
    def frame(self) -> Iterator[list[Any]]:
        """As :meth:`block`; temporaries made inside are allocated at its head."""
        self._frames.append([])
        try:
            with self.block() as statements:
                yield statements
            statements[:0] = self._frames[-1]
        finally:
            self._frames.pop()

    @property
    def in_instance(self) -> bool:
        """Whether the code being built is inside an outermost parallel region."""
        return len(self._frames) > 2

    def allocate(self, hint: str, size: int, register: str) -> Any:
        """A dense temporary of ``size`` elements of a register dtype."""
        dtype = self.machine.storage(register)
        # Devices would pad each one to TVM's alignment of 64 bytes.
        options = {"data_alignment": bits(dtype) // 8} if self.machine.is_device else {}
        shape = [int64(max(size, 1))]
        buffer = decl_buffer(shape, dtype, self.unique(hint), scope=self.machine.scope, **options)
        self._frames[-1].append(AllocBuffer(buffer))
        return buffer

    @property
    def allocations(self) -> tuple[Any, ...]:
        """Statements that allocate the temporaries of the innermost frame."""
        return tuple(self._frames[-1])

    def allocate_global(self, hint: str, size: int, register: str) -> Any:
        """As :meth:`allocate`, in memory that all launches of a function on a device share."""
        buffer = decl_buffer([int64(max(size, 1))], self.machine.storage(register), self.unique(hint))
        self._frames[1].append(AllocBuffer(buffer))
        return buffer

    def value(self, hint: str, type: TileType) -> Value:
        """A fresh value, for statements that the lowering itself makes."""
        self._axes -= 1
        return Value(self._axes, type, hint)

    def scalar(self, hint: str, bounds: Interval) -> Value:
        """A fresh integer scalar value within bounds; its expression is for the caller to enter."""
        self._axes -= 1
        value = Value(self._axes, TileType((), "int64"), hint)
        self.bounds[value] = bounds
        return value

    def axis(self, hint: str, extent: int) -> Value:
        """A fresh index value for a loop over ``range(extent)``."""
        return self.scalar(hint, (0, max(extent - 1, 0)))

    def variable(self, hint: str) -> Any:
        """A fresh ``int64`` loop variable."""
        return Var(self.unique(hint), "int64")

    def loop(self, variable: Any, extent: Any, statements: list[Any], kind: ForKind = ForKind.SERIAL) -> Any:
        """A loop from zero."""
        if isinstance(extent, int) and extent == 1 << 31:
            # TVM gives the variable 32 bits, which hold the last index, and then fails on the extent.
            statements = [IfThenElse(tirx.LT(variable, int64(extent)), sequence(statements), None)]
            extent += 1
        trips = int64(extent) if isinstance(extent, int) else extent
        return For(variable, int64(0), trips, kind, sequence(statements))

    def resolve(self, e: IndexExpr) -> IndexExpr:
        """The expression with scalars that stand for index expressions replaced by these."""
        return substitute_index(e, self.definitions) if self.definitions else e

    def integer(self, value: Value) -> Any:
        """The ``int64`` expression of an integer scalar value."""
        return self.integers[value]

    def index(self, e: IndexExpr) -> Any:
        """An index expression as an ``int64`` expression."""
        return lower_index(e, self.integer)

    def predicate(self, p: Predicate) -> Any:
        """A predicate as a ``bool`` expression."""
        return lower_predicate(p, self.integer)

    def hold(self, hint: str, value: Any, register: str) -> Any:
        """Evaluate an expression now, into a temporary of its own; gives the expression that reads it.

        A variable binding would do, but TVM's analyzer substitutes pure bindings into all their uses.
        """
        buffer = self.allocate(hint, 1, register)
        self.emit(BufferStore(buffer, value, [int64(0)]))
        return buffer[int64(0)]


class Body:
    """The inside of an innermost loop: computes elements, vectors of them if ``lanes`` is not 1.

    Registers are small buffers, indexed by the lane; LLVM promotes them.

    Parameters
    ----------
    builder
        Receives the statements.
    lane
        Variable of the vectorized loop around, or ``None``.
    lanes
        Its extent.
    guarded
        Whether memory accesses test their bounds.
    """

    def __init__(self, builder: Builder, lane: Any = None, lanes: int = 1, guarded: bool = True) -> None:
        self.builder = builder
        self.lanes = lanes
        self.guarded = guarded
        self.fma = builder.fma
        self.has_float16 = not builder.machine.is_device
        self.has_float64 = builder.machine.kind != "metal"
        self._lane = int64(0) if lane is None else lane
        self._memo: list[dict[Any, Any]] = [{}]
        self._registers: set[str] = set()

    def name(self, value: Any, dtype: str, hint: str = "t") -> Any:
        """The value as an expression that costs nothing to repeat."""
        if isinstance(value, (tirx.IntImm, tirx.FloatImm, Var)):
            return value
        if isinstance(value, TensorLoad) and value.source.name in self._registers:
            return value
        return self.copy(value, dtype, hint)

    def copy(self, value: Any, dtype: str, hint: str = "t") -> Any:
        """A new register that holds the value and may be overwritten."""
        buffer = self.builder.allocate(hint, self.lanes, dtype)
        self._registers.add(buffer.name)
        self.builder.emit(BufferStore(buffer, value, [self._lane]))
        return buffer[self._lane]

    def assign(self, register: Any, value: Any) -> None:
        """Overwrite what :meth:`copy` gave."""
        self.builder.emit(BufferStore(register.source, value, [self._lane]))

    def repeat(self, count: int, body: Callable[[Any], None]) -> None:
        """Run ``body(step)`` for each step of a serial loop."""
        step = self.builder.variable("step")
        with self.scope() as statements:
            body(step)
        self.builder.emit(self.builder.loop(step, count, statements))

    @contextmanager
    def scope(self) -> Iterator[list[Any]]:
        """Collect statements of a nested loop; what is remembered inside is forgotten after it."""
        self._memo.append({})
        try:
            with self.builder.block() as statements:
                yield statements
        finally:
            self._memo.pop()

    def remembered(self, key: Any) -> Any | None:
        """The register that :meth:`remember` stored under a key and that is still valid here."""
        for memo in reversed(self._memo):
            if key in memo:
                return memo[key]
        return None

    def remember(self, key: Any, value: Any) -> None:
        """Keep a register for a later use in this loop body."""
        self._memo[-1][key] = value
