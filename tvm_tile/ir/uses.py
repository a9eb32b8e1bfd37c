"""Use lists: which statements read a value, and in which role."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from tvm_tile.ir.dependence import domain_values
from tvm_tile.ir.index import (
    And,
    BoolConst,
    Comparison,
    IndexBinary,
    IndexConst,
    IndexVar,
    Not,
    Or,
    free_values,
)
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import Alloc, Atomic, Extern, Load, Op, Point, Slice, Store, View
from tvm_tile.ir.regions import If, Lambda, Loop, Merge, Program, Reduce, Statement
from tvm_tile.ir.structure import walk
from tvm_tile.ir.values import Memory, Value

__all__ = ["Use", "index_values", "memories_of", "merge_of", "merge_parts", "use_lists", "uses_of"]

_TREES = (IndexConst, IndexVar, IndexBinary, BoolConst, Comparison, And, Or, Not)


@dataclasses.dataclass(frozen=True)
class Use:
    """One read of a value.

    Attributes
    ----------
    value
        The value as the user has it; equal to the definition in a legal program.
    user
        The statement that reads it itself, not one around it.
    role
        The field of the statement: ``"operands"``, ``"mask"``, ``"inits"``, ``"yields"``, ... For a merge
        it is ``"merge"``.
    """

    value: Value
    user: Statement
    role: str


def merge_parts(merge: Merge) -> tuple[tuple[str, Lambda], ...]:
    """The functions of a merge with their names, in the order in which they print."""
    parts = (("identity", merge.identity), ("lift", merge.lift), ("combine", merge.combine))
    return tuple((name, part) for name, part in parts if part is not None)


def merge_of(statement: Statement) -> Merge | None:
    """The merge that a statement holds, if any."""
    return statement.merge if isinstance(statement, (Reduce, MergeReduce, Scan)) else None


def memories_of(op: Op) -> tuple[Memory, ...]:
    """Memories that an op names, an allocation's own excepted."""
    match op:
        case Load(view=view) | Store(view=view) | Atomic(view=view):
            return (view.memory,)
        case Extern(operands=operands, reads=reads, writes=writes):
            views = tuple(item.memory for item in operands if isinstance(item, View))
            return tuple(dict.fromkeys((*views, *reads, *writes)))
    return ()


def index_values(node: Any) -> Iterator[Value]:
    """Values that an index expression, or those in subscripts or a view, read."""
    if isinstance(node, _TREES):
        yield from sorted(free_values(node), key=lambda v: v.id)
    elif isinstance(node, Point):
        yield from index_values(node.index)
    elif isinstance(node, Slice):
        yield from index_values(node.start)
    elif isinstance(node, View):
        yield from index_values(node.subscripts)
    elif isinstance(node, tuple):
        for item in node:
            yield from index_values(item)


def uses_of(statement: Statement) -> Iterator[Use]:
    """What a statement reads itself; statements nested in it have their own uses."""
    match statement:
        case Alloc():
            pass
        case Op():
            for f in dataclasses.fields(statement):
                content = getattr(statement, f.name)
                if f.name not in ("result", "outputs", "span"):
                    for value in (*_values(content), *index_values(content)):
                        yield Use(value, statement, f.name)
            yield from _merge_uses(statement)
        case If(condition=condition, then_yields=then_yields, else_yields=else_yields):
            yield Use(condition, statement, "condition")
            yield from (Use(value, statement, "then_yields") for value in then_yields)
            yield from (Use(value, statement, "else_yields") for value in else_yields)
        case Loop(domain=domain, inits=inits, yields=yields):
            for value in sorted(domain_values(domain), key=lambda v: v.id):
                yield Use(value, statement, "domain")
            yield from (Use(value, statement, "inits") for value in inits)
            yield from (Use(value, statement, "yields") for value in yields)
            yield from _merge_uses(statement)


def _merge_uses(statement: Statement) -> Iterator[Use]:
    merge = merge_of(statement)
    if merge is not None:
        for _, part in merge_parts(merge):
            yield from (Use(value, statement, "merge") for value in part.yields)


def _values(content: Any) -> Iterator[Value]:
    if isinstance(content, Value):
        yield content
    elif isinstance(content, tuple):
        yield from (item for item in content if isinstance(item, Value))


def use_lists(program: Program) -> dict[Value, tuple[Use, ...]]:
    """All uses of each value of a program, in program order; a value without uses has an empty tuple."""
    found: dict[int, list[Use]] = {}
    defined: dict[int, Value] = {value.id: value for value in program.scalars}
    for statement in walk(program):
        owned: tuple[Value, ...] = statement.results
        if isinstance(statement, Loop):
            owned = (*statement.indices, *statement.args, *owned)
        merge = merge_of(statement)
        if merge is not None:
            owned += tuple(value for _, part in merge_parts(merge) for value in part.params)
        defined.update((value.id, value) for value in owned)
        for use in uses_of(statement):
            found.setdefault(use.value.id, []).append(use)
    return {value: tuple(found.get(value.id, ())) for value in defined.values()}
