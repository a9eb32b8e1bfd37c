"""Tracers of index arithmetic: loop variables, what is computed from them exactly, and their comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_tile.errors import OperandError
from tvm_tile.frontend.described import described
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.tile import Operators, Tile
from tvm_tile.frontend.trace import Trace
from tvm_tile.ir import index as ir_index
from tvm_tile.ir.dtypes import is_integer
from tvm_tile.ir.index import BoolConst, IndexBinary, IndexConst, IndexExpr, IndexVar, Predicate
from tvm_tile.ir.ops import FromIndex
from tvm_tile.ir.values import TileType

__all__ = [
    "Index",
    "IndexCompare",
    "as_predicate",
    "index_arithmetic",
    "index_comparison",
    "index_expression",
]

_ARITHMETIC: dict[str, Callable[[IndexExpr, IndexExpr], IndexExpr]] = {
    "add": ir_index.add,
    "subtract": ir_index.sub,
    "multiply": ir_index.mul,
    "floor_divide": ir_index.floordiv,
    "remainder": ir_index.mod,
    "minimum": ir_index.minimum,
    "maximum": ir_index.maximum,
}
_COMPARISONS = {
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}
#: Nodes of an index expression up to which it is not computed into a value of its own.
_LARGEST = 256
_LOGIC = {"and": ir_index.conjunction, "or": ir_index.disjunction}


class Index(Operators):
    """An integer that is known when the program runs: a loop variable or exact arithmetic on some.

    ``+ - * // %``, :func:`tvm_tile.minimum`, :func:`tvm_tile.maximum` and :func:`tvm_tile.cdiv` of
    indices and ints stay indices. As an operand of a tile operation it is a weak integer.
    """

    __slots__ = ("expression", "trace")

    #: As a tile.
    shape: tuple[int, ...] = ()
    dtype = "int64"
    ndim = 0

    def __init__(self, trace: Trace, expression: IndexExpr) -> None:
        self.trace = trace
        self.expression = expression

    def astype(self, dtype: Any) -> Tile:
        """A scalar tile of a dtype."""
        from tvm_tile.frontend.elementwise import cast

        return cast(self, dtype)

    def _describe(self) -> str:
        return f"index {self}"

    def __str__(self) -> str:
        return _named(self.trace, str(self.expression), self.expression)

    def __repr__(self) -> str:
        return f"<{self._describe()}>"


class IndexCompare(Operators):
    """A comparison of indices: a domain predicate in ``where=``, a bool scalar everywhere else."""

    __slots__ = ("predicate", "trace")

    shape: tuple[int, ...] = ()
    dtype = "bool"
    ndim = 0

    def __init__(self, trace: Trace, predicate: Predicate) -> None:
        self.trace = trace
        self.predicate = predicate

    def astype(self, dtype: Any) -> Tile:
        """A scalar tile of a dtype."""
        from tvm_tile.frontend.elementwise import cast

        return cast(self, dtype)

    def _describe(self) -> str:
        return f"index comparison {_named(self.trace, str(self.predicate), self.predicate)}"

    def __repr__(self) -> str:
        return f"<{self._describe()}>"


def _named(trace: Trace, text: str, expression: IndexExpr | Predicate) -> str:
    """The text of an expression in terms of the user's names."""
    for value in ir_index.free_values(expression):
        name = trace.names.get(value.id, value.name)
        if name:
            text = text.replace(str(value), name)
    return text


def index_expression(x: Any) -> IndexExpr | None:
    """The exact integer expression of an int, an index or an integer scalar tile; ``None`` for others.

    Raises
    ------
    OperandError
        The int has more than 64 bits.
    """
    if isinstance(x, (int, np.integer)) and not isinstance(x, (bool, np.bool_)):
        if not -(2**63) <= x < 2**63:
            raise OperandError(
                f"{described(x)} does not fit the 64 bits of index arithmetic",
                span=current_span(),
                suggestion="use ints of less than 2**63",
            )
        return IndexConst(int(x))
    if isinstance(x, Index):
        return x.expression
    if isinstance(x, Tile) and x.shape == () and is_integer(x.dtype):
        return IndexVar(x.value)
    return None


def index_arithmetic(fn: str, operands: tuple[Any, ...]) -> Any:
    """Exact arithmetic of indices and ints, or ``None`` where it is no such thing."""
    trace = next((x.trace for x in operands if isinstance(x, Index)), None)
    if trace is None or any(isinstance(x, Tile) for x in operands):
        return None
    expressions = [e for e in map(index_expression, operands) if e is not None]
    if len(expressions) < len(operands):
        return None
    if fn == "negative":
        result = ir_index.sub(IndexConst(0), expressions[0])
    elif fn in _ARITHMETIC:
        result = _ARITHMETIC[fn](*expressions)
    else:
        return None
    return result.value if isinstance(result, IndexConst) else Index(trace, _kept_small(trace, result))


def _kept_small(trace: Trace, expression: IndexExpr) -> IndexExpr:
    """The expression, or a value that holds it if it is large.

    Expressions are trees: one that uses itself twice doubles at every step.
    """
    pending, nodes = [expression], 0
    while pending:
        nodes += 1
        if nodes > _LARGEST:
            return IndexVar(trace.emit(FromIndex, TileType((), "int64"), index=expression).value)
        node = pending.pop()
        if isinstance(node, IndexBinary):
            pending += (node.a, node.b)
    return expression


def index_comparison(fn: str, operands: tuple[Any, ...]) -> Any:
    """A predicate from indices, ints and integer scalars, or ``None`` where it is no such thing."""
    trace = next((x.trace for x in operands if isinstance(x, (Index, IndexCompare))), None)
    if trace is None:
        return None
    if fn in _COMPARISONS:
        a, b = (None if _is_unsigned_word(x) else index_expression(x) for x in operands)
        if a is None or b is None:
            return None
        return _compared(trace, ir_index.compare(_COMPARISONS[fn], a, b))
    predicates = [p for p in map(as_predicate, operands) if p is not None]
    if len(predicates) < len(operands):
        return None
    if fn == "invert":
        return _compared(trace, ir_index.negation(predicates[0]))
    return _compared(trace, _LOGIC[fn](*predicates)) if fn in _LOGIC else None


def _is_unsigned_word(x: Any) -> bool:
    # Its values do not fit the signed 64 bits of index arithmetic.
    return isinstance(x, Tile) and x.dtype == "uint64"


def as_predicate(x: Any) -> Predicate | None:
    """The predicate of an index comparison or a Python bool; ``None`` for others."""
    if isinstance(x, (bool, np.bool_)):
        return BoolConst(bool(x))
    return x.predicate if isinstance(x, IndexCompare) else None


def _compared(trace: Trace, predicate: Predicate) -> Any:
    return predicate.value if isinstance(predicate, BoolConst) else IndexCompare(trace, predicate)
