"""Definitions and uses: one definition an id, in scope at each use, and the same value there."""

from __future__ import annotations

from collections.abc import Iterator

from tvm_tile.ir.faults import Fault
from tvm_tile.ir.index import free_values
from tvm_tile.ir.ops import Alloc, Op
from tvm_tile.ir.regions import Block, If, Loop, Program, Statement
from tvm_tile.ir.span import Span
from tvm_tile.ir.structure import walk
from tvm_tile.ir.uses import memories_of, merge_of, merge_parts, uses_of
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["dominance_faults"]


def dominance_faults(program: Program) -> list[Fault]:
    """Faults of scoping, of use lists and of the memories that are used."""
    checker = _Checker(program)
    checker.program()
    return checker.faults


class _Checker:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._anywhere = {value.id for value in _all_definitions(program)}
        self._memories: list[dict[str, Memory]] = [{memory.name: memory for memory in program.tensors}]
        self._declared = dict(self._memories[0])
        self._earlier: dict[int, Value] = {}
        self._scopes: list[dict[int, Value]] = [{}]
        self.faults: list[Fault] = []

    def program(self) -> None:
        self._define(self._program.scalars, self._program.span)
        self._block(self._program.body)

    def _define(self, values: tuple[Value, ...], span: Span | None) -> None:
        for value in values:
            earlier = self._earlier.get(value.id)
            if earlier is not None:
                self.faults.append(
                    Fault(
                        f"value {value} is defined again: {earlier} has the same id",
                        value.span or span,
                        "single definition",
                        "number the values with renumber",
                    )
                )
            self._earlier[value.id] = self._scopes[-1][value.id] = value

    def _use(self, value: Value, span: Span | None) -> None:
        for scope in reversed(self._scopes):
            if value.id in scope:
                self._compare(value, scope[value.id], span)
                return
        if value.id in self._earlier:
            message = f"value {value} is used outside of the region that defines it"
            remedy = f"yield {value} as a result of that region"
        elif value.id in self._anywhere:
            message = f"value {value} is used before its definition"
            remedy = f"move the definition of {value} up, or carry it"
        else:
            message = f"value {value} is used but never defined"
            remedy = f"define {value} before this use"
        self.faults.append(Fault(message, span, "dominance", remedy))

    def _compare(self, use: Value, definition: Value, span: Span | None) -> None:
        if use.type != definition.type:
            message = f"value {use} is used as {use.type} but defined as {definition.type}"
        elif use.name != definition.name:
            message = f"value {use} is used under another name than its definition {definition}"
        else:
            return
        self.faults.append(Fault(message, span, "use list", "replace all uses when replacing a definition"))

    def _memory(self, memory: Memory, span: Span | None) -> None:
        visible = {name: found for scope in self._memories for name, found in scope.items()}
        declared = visible.get(memory.name)
        if declared is None and memory.name in self._declared:
            message = f"memory {memory} is used outside of the block that allocates it, or before"
        elif declared is None:
            known = ", ".join(map(str, visible.values())) or "none"
            message = (
                f"memory {memory} is neither a parameter nor allocated; the memories visible here are {known}"
            )
        elif declared != memory:
            message = f"memory {memory} is used as {_shown(memory)} but declared as {_shown(declared)}"
        else:
            return
        self.faults.append(Fault(message, span, "memory", f"use a declared memory instead of {memory}"))

    def _allocate(self, op: Alloc) -> None:
        memory = op.memory
        if memory.name in self._declared:
            message = f"two memories have the name {memory}"
            self.faults.append(Fault(message, op.span, "memory", "give each memory its own name"))
        self._declared[memory.name] = self._memories[-1][memory.name] = memory

    def _block(self, block: Block, yields: tuple[Value, ...] = (), span: Span | None = None) -> None:
        self._memories.append({})
        for statement in block.statements:
            self._statement(statement)
        for value in yields:
            self._use(value, span)
        self._memories.pop()

    def _statement(self, statement: Statement) -> None:
        span = statement.span
        match statement:
            case If():
                self._use(statement.condition, span)
                self._scoped((), statement.then, statement.then_yields, span)
                self._scoped((), statement.orelse, statement.else_yields, span)
            case Loop():
                self._loop(statement)
            case Alloc():
                self._allocate(statement)
            case Op():
                for memory in memories_of(statement):
                    self._memory(memory, span)
                for use in uses_of(statement):
                    if use.role != "merge":
                        self._use(use.value, span)
                self._merge(statement)
        self._define(statement.results, span)

    def _scoped(
        self, values: tuple[Value, ...], body: Block, yields: tuple[Value, ...], span: Span | None
    ) -> None:
        self._scopes.append({})
        self._define(values, span)
        self._block(body, yields, span)
        self._scopes.pop()

    def _loop(self, loop: Loop) -> None:
        where = frozenset() if loop.domain.where is None else free_values(loop.domain.where)
        extents = frozenset[Value]().union(*map(free_values, loop.domain.extents))
        for value in (*sorted(extents, key=lambda v: v.id), *loop.inits):
            self._use(value, loop.span)
        self._scopes.append({})
        self._define(loop.indices, loop.span)
        # The states are not visible yet: a domain does not change while its region runs.
        for value in sorted(where, key=lambda v: v.id):
            self._use(value, loop.span)
        self._define(loop.args, loop.span)
        self._block(loop.body, loop.yields, loop.span)
        self._scopes.pop()
        self._merge(loop)

    def _merge(self, statement: Statement) -> None:
        merge = merge_of(statement)
        if merge is not None:
            for _, part in merge_parts(merge):
                self._scoped(part.params, part.body, part.yields, statement.span)


def _all_definitions(program: Program) -> Iterator[Value]:
    yield from program.scalars
    for statement in walk(program):
        yield from statement.results
        if isinstance(statement, Loop):
            yield from (*statement.indices, *statement.args)
        merge = merge_of(statement)
        if merge is not None:
            for _, part in merge_parts(merge):
                yield from part.params


def _shown(memory: Memory) -> str:
    strides = "" if memory.strides is None else f" with strides {memory.strides}"
    scope = "" if memory.scope == "param" else f" in {memory.scope}"
    layout = "" if memory.layout is None else f" with the layout {memory.layout.address}"
    return f"{TileType(memory.shape, memory.dtype)}{strides}{scope}{layout}"
