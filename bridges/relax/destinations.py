"""Which programs are functions of values: inputs that are only read, outputs that start undefined.

A Relax program passes values. Its memory planner may put an input where another tensor still needs it, and
gives an output whatever memory is free. A tile program, which works in place, is a function of values if
it writes no input, writes all of its outputs, and reads nothing from an output before that.
"""

from __future__ import annotations

from dataclasses import replace

from tvm_tile.bridges.relax.coverage import prove_covered
from tvm_tile.errors import IllegalError
from tvm_tile.ir.effects import effects_of
from tvm_tile.ir.ops import Op
from tvm_tile.ir.regions import Block, Program, Statement
from tvm_tile.ir.structure import walk
from tvm_tile.ir.values import Memory

__all__ = ["check_destinations"]

_OBLIGATION = "a call in a Relax program is a function of its inputs"


def check_destinations(program: Program, outputs: frozenset[Memory]) -> None:
    """Refuse a program that is no function from its other tensor parameters to ``outputs``.

    Where it depends on data or on run-time scalars whether all elements of an output are written, the
    program is let pass; the elements that are not are undefined.

    Raises
    ------
    IllegalError
        It writes an input; or it leaves an output, or elements of it, unwritten; or it reads an output
        and is not proved to have written all of it before.
    """
    written = effects_of(program.body).writes
    for memory in program.tensors:
        if memory not in outputs and memory in written:
            raise IllegalError(
                f"kernel {program.name} writes its parameter {memory.name}, an input of this call",
                span=_first(program, memory, written=True).span,
                obligation=_OBLIGATION,
                suggestion=f"pass {_spec(memory)} for {memory.name} if it is an output; a kernel that works "
                "in place needs a parameter of its own for the new value",
            )
    for memory in program.tensors:
        if memory in outputs:
            _check_written(program, memory, memory in written)
            _check_unread(program, memory)


def _check_written(program: Program, memory: Memory, somewhere: bool) -> None:
    if not somewhere:
        raise IllegalError(
            f"kernel {program.name} does not write its parameter {memory.name}, an output of this call",
            span=program.span,
            obligation=_OBLIGATION,
            suggestion=f"pass a Relax expression for {memory.name} if it is an input",
        )
    covered = prove_covered(program, memory)
    if covered.is_disproved:
        position = ", ".join(map(str, covered.counterexample))
        raise IllegalError(
            f"kernel {program.name} leaves elements of its output {memory.name} unwritten, and nothing else "
            "initializes it in a Relax program",
            span=_first(program, memory, written=True).span,
            obligation=_OBLIGATION,
            counterexample=f"{memory.name}[{position}]",
            suggestion="store a value, such as 0, to the other elements",
        )


def _check_unread(program: Program, memory: Memory) -> None:
    """Refuse a program that may read what an output held at the start."""
    statements = program.body.statements
    for number, statement in enumerate(statements):
        if memory not in effects_of(statement).reads:
            continue
        earlier = replace(program, body=Block(statements[:number]))
        if prove_covered(earlier, memory).is_proved:
            return
        raise IllegalError(
            f"kernel {program.name} reads its output {memory.name}, which is not initialized in a Relax "
            "program",
            span=_first(program, memory, written=False).span,
            obligation=_OBLIGATION,
            suggestion=f"take what {memory.name} holds at the start as an input of its own; write all of "
            f"{memory.name} in a region before the one that reads it; or keep values in tiles",
        )


def _spec(memory: Memory) -> str:
    return f'tt.spec({memory.shape}, "{memory.dtype}")'


def _first(program: Program, memory: Memory, *, written: bool) -> Statement:
    """The first operation that writes a memory, or that reads it."""
    for statement in walk(program.body):
        if isinstance(statement, Op):
            effects = effects_of(statement)
            if memory in (effects.writes if written else effects.reads):
                return statement
    raise AssertionError(f"{memory.name} has an effect but no operation")
