"""The program under construction: the current trace, its scopes, fresh values and emitted statements.

One :class:`Trace` captures one kernel. Statements go to the innermost open :class:`Scope`; a value may
be used in the scope that defines it and below.
"""

from __future__ import annotations

import contextvars
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.positions import current_span
from tvm_tile.ir.dtypes import STORAGE_ONLY
from tvm_tile.ir.index import IndexExpr, Predicate, free_values
from tvm_tile.ir.ops import Alloc, Atomic, Elementwise, Extern, Iota, Load, Mma, Op, Store
from tvm_tile.ir.regions import Block, If, Statement
from tvm_tile.ir.span import Span
from tvm_tile.ir.typing import TypeFault, expected_type
from tvm_tile.ir.uses import uses_of
from tvm_tile.ir.values import TileType, Value

if TYPE_CHECKING:
    from tvm_tile.frontend.tile import Tile

__all__ = ["Scope", "Trace", "active_trace", "require_trace"]

#: What reads or writes memory other than by a load, or makes it.
_EFFECTS = (Store, Alloc, Atomic, Extern)

#: So many statements are rarely meant; the capture of a kernel that has more says so once.
_MANY_STATEMENTS = 2000

_log = logging.getLogger(__name__)

_active: contextvars.ContextVar[Trace | None] = contextvars.ContextVar("tvm_tile_trace", default=None)


@dataclass(eq=False)
class Scope:
    """A block under construction.

    Attributes
    ----------
    kind
        ``kernel``, ``parallel``, ``serial``, ``pipeline``, ``reduce``, ``branch``, ``merge``, ``map`` or
        ``layout``.
    """

    kind: str
    parent: Scope | None = None
    span: Span | None = None
    statements: list[Statement] = field(default_factory=list)

    def encloses(self, other: Scope | None) -> bool:
        """Whether ``other`` is this scope or lies within it."""
        while other is not None:
            if other is self:
                return True
            other = other.parent
        return False

    def inside(self, kind: str) -> bool:
        """Whether this scope is of a kind, or lies within one."""
        return self.kind == kind or (self.parent is not None and self.parent.inside(kind))

    @property
    def block(self) -> Block:
        """The statements so far."""
        return Block(tuple(self.statements))


class Trace:
    """One capture.

    Attributes
    ----------
    scope
        The innermost open scope, where statements go.
    names
        Python names of values by id; the first name a value gets stays.
    vanished
        Why a name that a region or a branch unbound cannot be read any more, by name.
    seedless
        Those reasons in ``vanished`` that are a missing value before a loop, by name.
    remedies
        What to do about a reason in ``vanished``, where that is particular.
    constants
        Values of the kernel's compile-time constants, for messages.
    provisional
        Ids of what made weak tiles in their own dtype; it is dropped where only other dtypes are asked for.
    texts
        Source texts that kernels were given, by the file name of their code; helpers are looked up there too.
    memories
        Names of the memories so far, which are unique.
    rebound
        Where names of memories were given another value, by name.
    index_tuples
        Tuples of indices that one loop variable holds, with what to write instead where it is no index.
    state_tuples
        Tuples of states that a reduction gave, with the names of the states.
    """

    def __init__(self, name: str, *, fma: bool = True) -> None:
        self.name = name
        self.fma = fma
        self.root = Scope("kernel")
        self.scope = self.root
        self.names: dict[int, str] = {}
        self.vanished: dict[str, str] = {}
        self.seedless: dict[str, str] = {}
        self.remedies: dict[str, str] = {}
        self.texts: list[tuple[str, str]] = []
        self.constants: dict[str, Any] = {}
        self.provisional: set[int] = set()
        self.memories: set[str] = set()
        self.rebound: dict[str, Span | None] = {}
        self.index_tuples: list[tuple[tuple[Any, ...], str]] = []
        self.state_tuples: list[tuple[tuple[Any, ...], tuple[str, ...]]] = []
        self._appended = 0
        self._defined_in: dict[int, Scope] = {}
        self._count = 0

    @contextmanager
    def activate(self) -> Iterator[Trace]:
        """Make this the current trace of the thread (or task) for a while."""
        token = _active.set(self)
        try:
            yield self
        finally:
            _active.reset(token)

    @contextmanager
    def provisionally(self) -> Iterator[None]:
        """Mark what is emitted as :attr:`provisional`."""
        first = self._count
        yield
        self.provisional.update(range(first, self._count))

    @contextmanager
    def open_scope(self, kind: str) -> Iterator[Scope]:
        """Collect statements in a new scope."""
        before = self.scope
        self.scope = Scope(kind, before, current_span())
        try:
            yield self.scope
        finally:
            self.scope = before

    def fresh(
        self, type: TileType, name: str = "", *, scope: Scope | None = None, span: Span | None = None
    ) -> Value:
        """A new value, defined in the current scope unless another is given."""
        value = Value(self._count, type, name, span)
        self._count += 1
        self._defined_in[value.id] = self.scope if scope is None else scope
        return value

    def define(self, value: Value, scope: Scope) -> None:
        """Make a value that is no result of a statement visible in a scope."""
        self._defined_in[value.id] = scope

    def append(self, statement: Statement) -> None:
        """Add a statement to the current scope.

        Raises
        ------
        CaptureError
            A merge is a pure function: it cannot store, and has no regions. Nor does the function of
            :func:`tvm_tile.map` touch memory.
        """
        effect = isinstance(statement, _EFFECTS)
        if self.scope.inside("map") and (effect or isinstance(statement, Load)):
            raise CaptureError(
                "the function of tt.map computes with its elements alone: it has no loads and no stores",
                span=statement.span,
                suggestion="load tiles before tt.map and pass them as operands, and store its result",
            )
        if (effect or not isinstance(statement, Op | If)) and self.scope.inside("merge"):
            raise CaptureError(
                "a merge function is pure: it has no stores and no region loops",
                span=statement.span,
                suggestion="compute with tile operations, and store after the reduction",
            )
        self.scope.statements.append(statement)
        self._appended += 1
        if self._appended == _MANY_STATEMENTS:
            self._warn_of_unrolling()

    def _warn_of_unrolling(self) -> None:
        lines: Counter[tuple[str, int]] = Counter()
        scope: Scope | None = self.scope
        while scope is not None:
            lines.update((s.span.file, s.span.line) for s in scope.statements if s.span is not None)
            scope = scope.parent
        if lines:
            (file, line), count = lines.most_common(1)[0]
            _log.warning(
                "kernel %s has %d statements so far, %d of them from %s:%d; a Python loop is unrolled: "
                "loop with tt.serial or tt.parallel to capture its body once",
                self.name,
                self._appended,
                count,
                file,
                line,
            )

    def emit(self, operation: type[Op], type: TileType, /, **fields: Any) -> Tile:
        """Add an operation with a result of a type; its operands' fit is checked.

        Raises
        ------
        OperandError
            Shapes or dtypes do not fit.
        """
        from tvm_tile.frontend.tile import Tile

        span = current_span()
        result = self.fresh(type, span=span)
        op = operation(result=result, span=span, **fields)  # type: ignore[call-arg]
        try:
            expected = expected_type(op)
        except TypeFault as fault:
            raise OperandError(str(fault), span=span, suggestion=_fitting(op)) from None
        if expected is not None and expected != type:
            raise AssertionError(f"{op} gives {expected}, not {type}")
        self.append(op)
        return Tile(self, result)

    def emit_all(
        self, operation: type[Op], types: tuple[TileType, ...], /, **fields: Any
    ) -> tuple[Tile, ...]:
        """Add an operation with several results, of these types."""
        from tvm_tile.frontend.tile import Tile

        span = current_span()
        outputs = tuple(self.fresh(type, span=span) for type in types)
        self.append(operation(outputs=outputs, span=span, **fields))  # type: ignore[call-arg]
        return tuple(Tile(self, value) for value in outputs)

    def unique_memory(self, name: str) -> str:
        """A name for a new memory: the given one, with a number behind it if that is taken."""
        found, number = name, 1
        while found in self.memories:
            number += 1
            found = f"{name}_{number}"
        self.memories.add(found)
        return found

    def check_visible(self, value: Value) -> None:
        """Refuse a value that the current scope cannot see.

        Raises
        ------
        CaptureError
            The value belongs to a region, branch arm or merge that has ended.
        """
        scope = self._defined_in[value.id]
        if not scope.encloses(self.scope):
            name = self.names.get(value.id, value.name)
            where = f" at line {scope.span.line}" if scope.span is not None else ""
            raise CaptureError(
                f"{repr(name) if name else 'this value'} ({value.type}) belongs to the {scope.kind} body"
                f"{where} and cannot be read outside of it",
                span=current_span(),
                suggestion="assign a name before the region and assign it again inside, which carries it out",
            )

    def check_index(self, expression: IndexExpr | Predicate) -> None:
        """Refuse an index expression over values that the current scope cannot see."""
        for value in free_values(expression):
            self.check_visible(value)


def _fitting(op: Op) -> str:
    """One thing to try where the operands of an operation do not fit it."""
    given = [use.value.dtype for use in uses_of(op)]
    if any(dtype in STORAGE_ONLY for dtype in given) and not isinstance(op, Mma):
        return 'convert with .astype("float32"), compute, and convert back'
    match op:
        case Mma(a=a, b=b):
            if len(a.shape) < 2 or len(b.shape) < 2:
                return "use tt.matmul, which takes vectors, or make matrices with x[None, :] and y[:, None]"
            return (
                "a is (..., M, K), b (..., K, N) and acc (..., M, N); "
                f"here K is {a.shape[-1]} and {b.shape[-2]}, M {a.shape[-2]} and N {b.shape[-1]}: "
                "take parts of fitting sizes, or tt.transpose"
            )
        case Elementwise(operands=(first, *_)) if first.dtype == "bool":
            return 'use ~ & | ^ on truth values, or convert with .astype("int32")'
        case Elementwise(fn="and" | "or" | "xor" | "invert"):
            return "compare first, so that both sides are bool: (x > 0) & (y > 0)"
        case Elementwise(operands=(first, *_)):
            other = "int32" if first.dtype.startswith(("float", "bfloat")) else "float32"
            return f'convert with .astype("{other}")'
        case Iota():
            return "make each axis with tt.iota(n, dtype), joined as rows[:, None] and columns[None, :]"
    return "give operands whose shapes and dtypes fit, by .astype and x[:, None]"


def active_trace() -> Trace | None:
    """The trace that is being captured in this thread, if any."""
    return _active.get()


def _called(what: str, span: Span | None) -> str:
    """The language's function that is called at a place, or else what asks for a capture."""
    import tvm_tile.frontend as language
    from tvm_tile.frontend.constructs import called_name

    name = called_name(span)
    return next((f"tt.{each}" for each in (name, what) if each in language.__all__), what)


def require_trace(what: str) -> Trace:
    """The current trace.

    Raises
    ------
    CaptureError
        No kernel is being captured.
    """
    trace = _active.get()
    if trace is None:
        span = current_span()
        raise CaptureError(
            f"{_called(what, span)} is only meaningful while a kernel is captured",
            span=span,
            suggestion="move it into a function decorated with tt.kernel",
        )
    return trace
