"""Divisions in subscripts that are computed once, before their statement.

These are divisions by divisors that may be negative or zero, and those that nest deeply. The code of a
division holds its operands several times, and a subscript appears in bounds tests, loop limits and
addresses. Put into a register, it is there once, however deeply divisions nest.
"""

from __future__ import annotations

import dataclasses

from tvm_tile.bridges.tirx.lower.builder import Builder
from tvm_tile.bridges.tirx.lower.scalars import is_plain_division
from tvm_tile.ir.index import IndexBinary, IndexExpr, IndexVar, interval
from tvm_tile.ir.ops import Atomic, Extern, Extract, FromIndex, Insert, Load, Point, Slice, Store, View
from tvm_tile.ir.regions import Loop, Statement

__all__ = ["settle_divisions"]

#: So many divisions by positive constants stay in one expression: TVM's work on it doubles with each.
_MOST_NESTED = 3


def settle_divisions(builder: Builder, statement: Statement) -> Statement:
    """The statement with such divisions replaced by values of registers, whose computation is emitted."""
    match statement:
        case Load(view=view) | Store(view=view) | Atomic(view=view):
            return dataclasses.replace(statement, view=_view(builder, view))
        case Extern(operands=operands):
            settled = tuple(_view(builder, v) if isinstance(v, View) else v for v in operands)
            return dataclasses.replace(statement, operands=settled)
        case Extract(subscripts=subscripts) | Insert(subscripts=subscripts):
            return dataclasses.replace(statement, subscripts=_subscripts(builder, subscripts))
        case FromIndex(index=index):
            return dataclasses.replace(statement, index=_settled(builder, index))
        case Loop(domain=domain):
            extents = tuple(_settled(builder, extent) for extent in domain.extents)
            return dataclasses.replace(statement, domain=dataclasses.replace(domain, extents=extents))
    return statement


def _view(builder: Builder, view: View) -> View:
    return dataclasses.replace(view, subscripts=_subscripts(builder, view.subscripts))


def _subscripts(builder: Builder, subscripts: tuple[Point | Slice, ...]) -> tuple[Point | Slice, ...]:
    return tuple(
        Point(_settled(builder, s.index))
        if isinstance(s, Point)
        else dataclasses.replace(s, start=_settled(builder, s.start))
        for s in subscripts
    )


def _settled(builder: Builder, e: IndexExpr) -> IndexExpr:
    return _settled_with_depth(builder, builder.resolve(e))[0]


def _settled_with_depth(builder: Builder, e: IndexExpr) -> tuple[IndexExpr, int]:
    """The expression, and how many divisions nest in it."""
    if not isinstance(e, IndexBinary):
        return e, 0
    (a, depth_a), (b, depth_b) = _settled_with_depth(builder, e.a), _settled_with_depth(builder, e.b)
    e, depth = IndexBinary(e.op, a, b), max(depth_a, depth_b)
    if e.op not in ("//", "%"):
        return e, depth
    if is_plain_division(e) and depth < _MOST_NESTED:
        return e, depth + 1
    value = builder.scalar("quotient" if e.op == "//" else "remainder", interval(e, builder.bounds))
    builder.integers[value] = builder.hold(value.name, builder.index(e), "int64")
    return IndexVar(value), 0
