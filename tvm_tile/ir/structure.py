"""Generic structure of the IR: walking, value substitution, canonical numbering, hashing.

Nodes are frozen dataclasses, so these four need no case per node class.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

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
from tvm_tile.ir.ops import Number, Op
from tvm_tile.ir.regions import Block, If, Lambda, Loop, Merge, Program, Reduce, Statement
from tvm_tile.ir.span import Span
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["fields_of", "map_values", "operands_of", "renumber", "structural_hash", "walk"]

T = TypeVar("T")

_INDEX_NODES = (IndexConst, IndexVar, IndexBinary, BoolConst, Comparison, And, Or, Not)


def fields_of(node: Any) -> Iterator[Any]:
    """Field values of a node in declaration order, spans left out."""
    for f in dataclasses.fields(node):
        if f.name != "span":
            yield getattr(node, f.name)


def walk(node: Any) -> Iterator[Statement]:
    """Every statement below a block, statement, merge or program, outer before inner, in program order."""
    if isinstance(node, tuple):
        for item in node:
            yield from walk(item)
    elif isinstance(node, (MergeReduce, Scan)):
        yield node
        yield from walk(node.merge)
    elif isinstance(node, Op):
        yield node
    elif isinstance(node, (If, Loop)):
        yield node
        for child in fields_of(node):
            yield from walk(child)
    elif isinstance(node, (Block, Lambda, Merge, Program)):
        for child in fields_of(node):
            yield from walk(child)


def operands_of(node: Any) -> tuple[Value, ...]:
    """Values a statement reads itself, in order; what its nested blocks read is not included.

    The loop inits and yields, the predicate and the extents count; a region's own parameters
    (indices, args, merge parameters) do not.
    """
    found: list[Value] = []
    defined = set(node.results)
    if isinstance(node, Loop):
        defined |= {*node.indices, *node.args}

    def visit(item: Any) -> None:
        if isinstance(item, Value):
            if item not in defined:
                found.append(item)
        elif isinstance(item, _INDEX_NODES):
            found.extend(sorted(free_values(item) - defined, key=lambda v: v.id))
        elif isinstance(item, tuple):
            for part in item:
                visit(part)
        elif dataclasses.is_dataclass(item) and not isinstance(
            item, (Block, Merge, Lambda, Memory, Number, TileType, Span)
        ):
            for part in fields_of(item):
                visit(part)

    for part in fields_of(node):
        visit(part)
    return tuple(found)


def map_values(node: T, fn: Callable[[Value], Value]) -> T:
    """Rebuild a node with every value, definitions included, replaced by ``fn(value)``.

    ``fn`` is called in field order, so definitions of a region's parameters come before its body.
    """
    return _rebuild(node, fn)  # type: ignore[no-any-return]


def _rebuild(node: Any, fn: Callable[[Value], Value]) -> Any:
    if isinstance(node, Value):
        return fn(node)
    if isinstance(node, tuple):
        rebuilt = tuple(_rebuild(item, fn) for item in node)
        return node if all(a is b for a, b in zip(node, rebuilt, strict=True)) else rebuilt
    if isinstance(node, (Memory, Number, TileType, Span)) or not dataclasses.is_dataclass(node):
        return node
    changed = {}
    for f in dataclasses.fields(node):
        if f.name == "span":
            continue
        old = getattr(node, f.name)
        new = _rebuild(old, fn)
        if new is not old:
            changed[f.name] = new
    return dataclasses.replace(node, **changed) if changed else node  # type: ignore[type-var]


def renumber(program: Program, names: dict[int, str] | None = None) -> Program:
    """Number the values 0, 1, 2, ... in program order, and rename those whose old id is in ``names``."""
    names = names or {}
    seen: dict[int, Value] = {}

    def define(value: Value) -> None:
        seen[value.id] = dataclasses.replace(value, id=len(seen), name=names.get(value.id, value.name))

    for param in program.params:
        if isinstance(param, Value):
            define(param)
    _define_in_order(program.body, define)
    return map_values(program, lambda v: seen.get(v.id, v))


def _define_in_order(node: Any, define: Callable[[Value], None]) -> None:
    """Visit definitions in the order in which the printed program shows them."""
    match node:
        case Block(statements):
            for statement in statements:
                _define_in_order(statement, define)
        case Lambda(params, body):
            for value in params:
                define(value)
            _define_in_order(body, define)
        case Merge(combine, identity, lift):
            for part in (identity, lift, combine):
                if part is not None:
                    _define_in_order(part, define)
        case If(then=then, orelse=orelse, results=results):
            _define_in_order(then, define)
            _define_in_order(orelse, define)
            for value in results:
                define(value)
        case Loop(indices=indices, args=args, body=body, results=results):
            for value in (*indices, *args):
                define(value)
            _define_in_order(body, define)
            if isinstance(node, Reduce) and node.merge is not None:
                _define_in_order(node.merge, define)
            for value in results:
                define(value)
        case MergeReduce(merge=merge) | Scan(merge=merge):
            _define_in_order(merge, define)
            for value in node.results:
                define(value)
        case _:
            for value in node.results:
                define(value)


def structural_hash(program: Program) -> str:
    """Hex digest that ignores names (of values, memories and the program), value numbering and spans."""
    memories = {m: i for i, m in enumerate(program.tensors)}
    digest = hashlib.sha256()

    def feed(node: Any) -> None:
        if isinstance(node, Value):
            digest.update(f"v{node.id}:{node.type};".encode())
        elif isinstance(node, Memory):
            index = memories.setdefault(node, len(memories))
            digest.update(f"m{index}:{node.shape}:{node.dtype}:{node.strides}:{node.scope};".encode())
            feed(node.layout)
        elif isinstance(node, tuple):
            digest.update(f"({len(node)}".encode())
            for item in node:
                feed(item)
        elif dataclasses.is_dataclass(node):
            digest.update(f"<{type(node).__name__} ".encode())
            for f in dataclasses.fields(node):
                if f.name != "span" and not (isinstance(node, Program) and f.name == "name"):
                    feed(getattr(node, f.name))
            digest.update(b">")
        else:
            digest.update(f"{type(node).__name__}={node!r};".encode())

    feed(renumber(program))
    return digest.hexdigest()
