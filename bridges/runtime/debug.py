"""Calls of debug builds: the program runs on copies between guard zones, and failed checks become errors.

The generated code checks the promises that it relies on and stops at the first that is broken. What it
cannot see, such as an opaque function that writes past the end of its argument, shows after the call: each
argument is a copy with a known pattern around it and between its elements, which must still be there.
Nothing goes back to the caller's arrays unless all of that holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from tvm_tile.bridges.runtime.arguments import Placed, bind_arguments
from tvm_tile.bridges.runtime.dlpack import array_at, tensor_of
from tvm_tile.bridges.runtime.executable import Executable
from tvm_tile.bridges.runtime.overlap import find_overlap
from tvm_tile.bridges.runtime.threads import apply_to_calling_thread
from tvm_tile.bridges.tirx.prologue import DEBUG_PREFIX
from tvm_tile.errors import IllegalError
from tvm_tile.ir.regions import Program
from tvm_tile.ir.span import Span
from tvm_tile.ir.structure import walk

__all__ = ["DebugExecutable", "GuardedCopy"]

#: Bytes of the guard zone on each side of a copy.
_ZONE = 1 << 16
#: Byte that guard zones and gaps between elements hold; as a float of any width it is small and odd.
_PATTERN = 0xA5

_POSITION = re.compile(r"(?P<file>.+):(?P<line>\d+): (?P<what>.*)", re.DOTALL)


class GuardedCopy:
    """A copy of an argument between guard zones.

    Parameters
    ----------
    placed
        The argument.
    alignment
        Bytes to which the first element of the copy is aligned.
    written
        Whether the program writes it, under this name or that of an identical view.
    """

    def __init__(self, placed: Placed, alignment: int, written: bool = True) -> None:
        memory, itemsize = placed.memory, placed.itemsize
        self.placed = placed
        self.written = written
        strides = tuple(s * itemsize for s in memory.element_strides)
        reach = [max(n - 1, 0) * s for n, s in zip(memory.shape, strides, strict=True)]
        before = -sum(r for r in reach if r < 0)
        size = 0 if placed.is_empty else before + sum(r for r in reach if r > 0) + itemsize
        self._storage = np.full(size + 2 * _ZONE + alignment, _PATTERN, np.uint8)
        first = self._storage.__array_interface__["data"][0] + _ZONE + before
        address = first + -first % alignment
        #: The elements, as unsigned numbers.
        self.elements = array_at(address, memory.shape, strides, itemsize, self._storage)
        self.original = array_at(
            placed.address, memory.shape, placed.relevant_strides, itemsize, placed.argument
        )
        if not placed.is_empty:
            self.elements[...] = self.original
        self.operand = tensor_of(self.elements, memory.dtype)

    def is_changed(self) -> bool:
        """Whether an element differs from the caller's."""
        return not self.placed.is_empty and not np.array_equal(self.elements, self.original)

    def is_breached(self) -> bool:
        """Whether something was written beside the elements; their own values are kept."""
        values = self.elements.copy()
        self.elements[...] = np.frombuffer(bytes([_PATTERN]) * self.elements.itemsize, self.elements.dtype)[0]
        breached = bool((self._storage != _PATTERN).any())
        self.elements[...] = values
        return breached


class DebugExecutable(Executable):
    """An executable whose calls check what the program promises, at several times the cost.

    Raises
    ------
    IllegalError
        On a call: a promise is broken, by the position in the source; or something was written outside of
        an argument. The caller's arrays are then as they were.
    """

    _is_debug = True

    def __call__(self, *arguments: Any, **named: Any) -> None:
        """Run in place."""
        self._refuse_named(named)
        apply_to_calling_thread()
        bound = bind_arguments(self.program, arguments)
        overlap = find_overlap([b for b in bound if isinstance(b, Placed)], self._written)
        function = self._function
        if overlap.groups:
            self._require_alias_proof(overlap.groups)
            function = self._artifact.aliasing_function()
        copies, operands = self._copies(bound, overlap.groups)
        try:
            function(*operands)
        except Exception as error:
            _translate(error, self.program)
        self._inspect(copies)
        for copy in copies:
            if copy.written:
                copy.original[...] = copy.elements

    def _copies(
        self, bound: Sequence[Any], groups: tuple[frozenset[str], ...]
    ) -> tuple[list[GuardedCopy], list[Any]]:
        copies: list[GuardedCopy] = []
        operands: list[Any] = []
        # Identical views share one copy, or a write through one name would not be seen through the other.
        shared: dict[frozenset[str], GuardedCopy] = {}
        for placed in bound:
            if not isinstance(placed, Placed):
                operands.append(placed)
                continue
            name = placed.memory.name
            group = next((g for g in groups if name in g), frozenset((name,)))
            if group not in shared:
                written = any(memory.name in group for memory in self._written)
                shared[group] = GuardedCopy(placed, self._alignments[name], written)
                copies.append(shared[group])
            operands.append(shared[group].operand)
        return copies, operands

    def _inspect(self, copies: Sequence[GuardedCopy]) -> None:
        for copy in copies:
            memory = copy.placed.memory
            if copy.is_breached():
                raise IllegalError(
                    f"{self.program.name} wrote outside of parameter {memory.name}, beside the elements of "
                    f"its shape {memory.shape} and strides {memory.element_strides}",
                    span=memory.span or self.program.span,
                    obligation="accesses are in bounds",
                    suggestion='drop bounds="assume", or correct the opaque function that gets it',
                )
            if not copy.written and copy.is_changed():
                raise IllegalError(
                    f"{self.program.name} changed parameter {memory.name}, which it does not write",
                    span=memory.span or self.program.span,
                    obligation="declared effects of opaque functions",
                    suggestion=f"name {memory.name} in writes=[...] of the tt.extern that writes it",
                )


def _translate(error: Exception, program: Program) -> NoReturn:
    """Raise what a failed check means; what is none goes on as it is."""
    text = str(error)
    if DEBUG_PREFIX not in text:
        raise error
    # An error from a worker thread comes with TVM's own words around the message.
    message = text.split(DEBUG_PREFIX + ": ", 1)[-1].strip().splitlines()[0]
    match = _POSITION.match(message)
    span = None
    if match is not None:
        span, message = _span_at(program, match["file"], int(match["line"])), match["what"]
    raise IllegalError(
        f"{program.name}: {message}",
        span=span,
        obligation="promises of the program",
        suggestion="tt.interpret(program, *arrays, debug=True) shows the instance and the values",
    ) from error


def _span_at(program: Program, file: str, line: int) -> Span:
    """The span of the first statement at a line, or else the line itself."""
    for statement in walk(program):
        span = statement.span
        if span is not None and (span.file, span.line) == (file, line):
            return span
    return Span(file, line, 1, line, 2)
