"""Partial updates of outer tiles in a parallel region, rewritten as stores into the tile after the region.

The tile after the region starts as a copy of the one before. Where every insert of an instance is part of
the value it yields, each is stored there at once; the inserts themselves remain only where an instance
reads its own version. Otherwise, and where several instances' values combine, an instance carries beside
its version a mask of what it wrote, and stores what the mask says at its end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm_tile.bridges.tirx.lower.uses import free_values_of
from tvm_tile.ir.index import IndexConst
from tvm_tile.ir.ops import Elementwise, Full, Insert, Load, Number, Slice, Store, View
from tvm_tile.ir.patches import Patches
from tvm_tile.ir.regions import Block, If, Loop, Parallel, Reduce, Statement
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["Target", "combining", "with_stores"]

Fresh = Callable[[str, TileType], Value]


@dataclass(frozen=True)
class Target:
    """The tile after the region, as memory, and what some instance has written of it if values combine."""

    memory: Memory
    written: Memory | None = None


def combining(region: Parallel, k: int) -> str | None:
    """The function that joins the values of several instances for one element of a patched state."""
    names = {insert.combine for insert in Patches(region.body, region.args[k]).inserts_of(region.yields[k])}
    return names.pop() if len(names) == 1 else None


def with_stores(region: Parallel, k: int, target: Target, fresh: Fresh) -> Block:
    """The region's body with a patched state's updates stored into its target."""
    entry, exit = region.args[k], region.yields[k]
    chain = _Chain()
    start = chain.follow(region.body, exit, nested=False)
    combine = combining(region, k)
    if start == entry and target.written is None:
        return chain.stored(region.body, lambda insert: [_stored(insert, target)])
    if start == entry and combine is not None and [*chain.inserts.values()] == [False]:
        written = target.written
        assert written is not None

        def joined(insert: Insert) -> list[Statement]:
            return _join(insert.subscripts, insert.value, None, target.memory, written, combine, fresh)

        return chain.stored(region.body, joined)
    return _with_mask(region.body, entry, exit, target, combine, fresh)


@dataclass
class _Chain:
    """A series of updates in which each version is made from the one before, and all reach the end.

    Attributes
    ----------
    inserts
        The inserts, and whether each is in a nested loop.
    versions
        The values on the way.
    """

    inserts: dict[Insert, bool] = field(default_factory=dict)
    versions: set[Value] = field(default_factory=set)

    def follow(self, block: Block, exit: Value, nested: bool) -> Value | None:
        """Go back from a value to where the block takes it from; ``None`` if the updates fork."""
        producers = {result: statement for statement in block.statements for result in statement.results}
        value = exit
        while value in producers:
            statement = producers[value]
            before: Value | None
            match statement:
                case Insert(operand=operand):
                    self.inserts[statement] = nested
                    before = operand
                case If(results=results):
                    k = results.index(value)
                    before = self.follow(statement.then, statement.then_yields[k], nested)
                    if before != self.follow(statement.orelse, statement.else_yields[k], nested):
                        return None
                case Loop(results=results) if not isinstance(statement, Reduce):
                    k = results.index(value)
                    if self.follow(statement.body, statement.yields[k], True) != statement.args[k]:
                        return None
                    self.versions.add(statement.args[k])
                    before = statement.inits[k]
                case _:
                    return None
            if before is None:
                return None
            self.versions.add(value)
            value = before
        return value

    def stored(self, block: Block, store: Callable[[Insert], list[Statement]]) -> Block:
        """The block with a store for each insert, which stays only if some version is read."""
        bare = self._rewritten(block, store, keep=False)
        if self.versions.isdisjoint(free_values_of(bare)):
            return bare
        return self._rewritten(block, store, keep=True)

    def _rewritten(self, block: Block, store: Callable[[Insert], list[Statement]], keep: bool) -> Block:
        statements: list[Statement] = []
        for statement in block.statements:
            kept = [k for k, value in enumerate(statement.results) if keep or value not in self.versions]
            match statement:
                case Insert() if statement in self.inserts:
                    statements += [*([statement] if keep else []), *store(statement)]
                case If():
                    changes: dict[str, Any] = {
                        name: tuple(getattr(statement, name)[k] for k in kept)
                        for name in ("then_yields", "else_yields", "results")
                    }
                    then = self._rewritten(statement.then, store, keep)
                    orelse = self._rewritten(statement.orelse, store, keep)
                    statements.append(dataclasses.replace(statement, then=then, orelse=orelse, **changes))
                case Loop():
                    changes = {
                        name: tuple(getattr(statement, name)[k] for k in kept)
                        for name in ("inits", "args", "yields", "results")
                    }
                    body = self._rewritten(statement.body, store, keep)
                    statements.append(dataclasses.replace(statement, body=body, **changes))
                case _:
                    statements.append(statement)
        return Block(tuple(statements))


def _stored(insert: Insert, target: Target) -> Statement:
    return Store(View(target.memory, insert.subscripts), insert.value, span=insert.span)


def _whole(memory: Memory) -> View:
    return View(memory, tuple(Slice(IndexConst(0), n) for n in memory.shape))


def _join(
    subscripts: tuple[object, ...], value: Value, mask: Value | None,
    memory: Memory, written: Memory, combine: str, fresh: Fresh,
) -> list[Statement]:  # fmt: skip
    """Statements that join an instance's value with those of the instances before it."""
    view, seen = View(memory, subscripts), View(written, subscripts)  # type: ignore[arg-type]
    truth = TileType(value.shape, "bool")
    before, total, new = (fresh(value.name, value.type) for _ in range(3))
    earlier, true = fresh("written", truth), fresh("true", truth)
    return [
        Load(before, view),
        Load(earlier, seen),
        Elementwise(total, combine, (before, value)),
        Elementwise(new, "where", (earlier, total, value)),
        Store(view, new, mask=mask),
        Full(true, Number("True")),
        Store(seen, true, mask=mask),
    ]


def _with_mask(
    body: Block, entry: Value, exit: Value, target: Target, combine: str | None, fresh: Fresh
) -> Block:
    """The body with a mask beside every version, and one store at its end."""
    truth = TileType(entry.shape, "bool")
    nothing = fresh("written", truth)
    masks = {entry: nothing}
    versions = Patches(body, entry).of
    block = _masked_block(body, versions, masks, fresh)
    statements: list[Statement] = [Full(nothing, Number("False")), *block.statements]
    view = _whole(target.memory)
    if target.written is None or combine is None:
        statements.append(Store(view, exit, mask=masks[exit]))
    else:
        statements += _join(view.subscripts, exit, masks[exit], target.memory, target.written, combine, fresh)
    return Block(tuple(statements))


def _masked_block(
    block: Block, versions: dict[Value, tuple[Insert, ...]], masks: dict[Value, Value], fresh: Fresh
) -> Block:
    statements: list[Statement] = []
    for statement in block.statements:
        match statement:
            case Insert(result=result, operand=operand, value=value) if operand in masks:
                true = fresh("true", TileType(value.shape, "bool"))
                masks[result] = fresh("written", masks[operand].type)
                statements += [
                    statement,
                    Full(true, Number("True")),
                    # Instances of a nested region that combine may write one element: all say the same.
                    Insert(masks[result], masks[operand], statement.subscripts, true, "or"),
                ]
            case If(results=results):
                then = _masked_block(statement.then, versions, masks, fresh)
                orelse = _masked_block(statement.orelse, versions, masks, fresh)
                carried = [k for k, value in enumerate(results) if value in versions]
                a, b = statement.then_yields, statement.else_yields
                more = {results[k]: fresh("written", masks[a[k]].type) for k in carried}
                masks.update(more)
                statements.append(
                    dataclasses.replace(
                        statement,
                        then=then,
                        orelse=orelse,
                        then_yields=(*a, *(masks[a[k]] for k in carried)),
                        else_yields=(*b, *(masks[b[k]] for k in carried)),
                        results=(*results, *more.values()),
                    )
                )
            case Loop(results=results) if not isinstance(statement, Reduce):
                carried = [k for k, value in enumerate(results) if value in versions]
                args = {statement.args[k]: fresh("written", masks[statement.inits[k]].type) for k in carried}
                inits = tuple(masks[statement.inits[k]] for k in carried)
                masks.update(args)
                inner = _masked_block(statement.body, versions, masks, fresh)
                yields = tuple(masks[statement.yields[k]] for k in carried)
                more = {
                    results[k]: fresh("written", truth.type) for k, truth in zip(carried, inits, strict=True)
                }
                masks.update(more)
                statements.append(
                    dataclasses.replace(
                        statement,
                        body=inner,
                        inits=(*statement.inits, *inits),
                        args=(*statement.args, *args.values()),
                        yields=(*statement.yields, *yields),
                        results=(*results, *more.values()),
                    )
                )
            case _:
                statements.append(statement)
    return Block(tuple(statements))
