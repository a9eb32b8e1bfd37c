"""Divisions in subscripts by divisors that may be negative or zero, computed once, before their statement.

The code of such a division holds its operands several times, and a subscript appears in bounds tests,
loop limits and addresses. Put into a register, it is there once, however deeply divisions nest.
"""

from __future__ import annotations

import dataclasses

from tvm_tile.bridges.tirx.lower.builder import Builder
from tvm_tile.bridges.tirx.lower.scalars import is_plain_division
from tvm_tile.ir.index import IndexBinary, IndexExpr, IndexVar, interval
from tvm_tile.ir.ops import Extract, FromIndex, Load, Point, Slice, Store
from tvm_tile.ir.regions import Loop, Statement

__all__ = ["settle_divisions"]


def settle_divisions(builder: Builder, statement: Statement) -> Statement:
    """The statement with such divisions replaced by values of registers, whose computation is emitted."""
    match statement:
        case Load(view=view) | Store(view=view):
            view = dataclasses.replace(view, subscripts=_subscripts(builder, view.subscripts))
            return dataclasses.replace(statement, view=view)
        case Extract(subscripts=subscripts):
            return dataclasses.replace(statement, subscripts=_subscripts(builder, subscripts))
        case FromIndex(index=index):
            return dataclasses.replace(statement, index=_settled(builder, index))
        case Loop(domain=domain):
            extents = tuple(_settled(builder, extent) for extent in domain.extents)
            return dataclasses.replace(statement, domain=dataclasses.replace(domain, extents=extents))
    return statement


def _subscripts(builder: Builder, subscripts: tuple[Point | Slice, ...]) -> tuple[Point | Slice, ...]:
    return tuple(
        Point(_settled(builder, s.index))
        if isinstance(s, Point)
        else dataclasses.replace(s, start=_settled(builder, s.start))
        for s in subscripts
    )


def _settled(builder: Builder, e: IndexExpr) -> IndexExpr:
    if not isinstance(e, IndexBinary):
        return e
    e = IndexBinary(e.op, _settled(builder, e.a), _settled(builder, e.b))
    if is_plain_division(e) or e.op not in ("//", "%"):
        return e
    value = builder.scalar("quotient" if e.op == "//" else "remainder", interval(e, builder.bounds))
    builder.integers[value] = builder.hold(value.name, builder.index(builder.resolve(e)), "int64")
    return IndexVar(value)
