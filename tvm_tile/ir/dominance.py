"""Definitions and uses: one definition an id, in scope at each use, and the same value there."""

from __future__ import annotations

from collections.abc import Iterator

from tvm_tile.ir.faults import Fault
from tvm_tile.ir.index import free_values
from tvm_tile.ir.ops import Load, Store
from tvm_tile.ir.regions import Block, If, Loop, Program, Reduce, Statement
from tvm_tile.ir.span import Span
from tvm_tile.ir.structure import walk
from tvm_tile.ir.uses import merge_parts, uses_of
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
        self._memories = {memory.name: memory for memory in program.tensors}
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
        declared = self._memories.get(memory.name)
        if declared is None:
            known = ", ".join(map(str, self._memories.values())) or "none"
            message = f"memory {memory} is not a parameter of the program; the tensor parameters are {known}"
        elif declared != memory:
            message = f"memory {memory} is used as {_shown(memory)} but declared as {_shown(declared)}"
        else:
            return
        self.faults.append(Fault(message, span, "memory", f"use a declared memory instead of {memory}"))

    def _block(self, block: Block, yields: tuple[Value, ...] = (), span: Span | None = None) -> None:
        for statement in block.statements:
            self._statement(statement)
        for value in yields:
            self._use(value, span)

    def _statement(self, statement: Statement) -> None:
        span = statement.span
        match statement:
            case If():
                self._use(statement.condition, span)
                self._scoped((), statement.then, statement.then_yields, span)
                self._scoped((), statement.orelse, statement.else_yields, span)
            case Loop():
                self._loop(statement)
            case _:
                if isinstance(statement, (Load, Store)):
                    self._memory(statement.view.memory, span)
                for use in uses_of(statement):
                    self._use(use.value, span)
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
        if isinstance(loop, Reduce) and loop.merge is not None:
            for _, part in merge_parts(loop.merge):
                self._scoped(part.params, part.body, part.yields, loop.span)


def _all_definitions(program: Program) -> Iterator[Value]:
    yield from program.scalars
    for statement in walk(program):
        yield from statement.results
        if isinstance(statement, Loop):
            yield from (*statement.indices, *statement.args)
        if isinstance(statement, Reduce) and statement.merge is not None:
            for _, part in merge_parts(statement.merge):
                yield from part.params


def _shown(memory: Memory) -> str:
    strides = "" if memory.strides is None else f" with strides {memory.strides}"
    scope = "" if memory.scope == "param" else f" in {memory.scope}"
    return f"{TileType(memory.shape, memory.dtype)}{strides}{scope}"
