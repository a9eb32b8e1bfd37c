"""From a program to a TIRx function for a CPU."""

from __future__ import annotations

import re
from typing import Any

from tvm.target import Target
from tvm.tirx import Cast, PrimFunc, Var

from tvm_tile.bridges.tirx.lower.builder import Body, Builder, sequence
from tvm_tile.bridges.tirx.lower.casts import rounded
from tvm_tile.bridges.tirx.lower.machine import machine_of
from tvm_tile.bridges.tirx.lower.memory import declare
from tvm_tile.bridges.tirx.lower.operations import Environment, note_integer
from tvm_tile.bridges.tirx.lower.regions import emit_block
from tvm_tile.bridges.tirx.lower.scalars import register_dtype
from tvm_tile.bridges.tirx.lower.unread import drop_unread_temporaries
from tvm_tile.bridges.tirx.lower.uses import prune
from tvm_tile.bridges.tirx.lower.values import Scalar
from tvm_tile.bridges.tirx.prologue import argument_guards
from tvm_tile.errors import UnsupportedError
from tvm_tile.ir.dtypes import STORAGE_ONLY, is_bool
from tvm_tile.ir.regions import Loop, Program
from tvm_tile.ir.structure import walk
from tvm_tile.ir.values import Memory, Value

__all__ = ["lower_program"]


def lower_program(program: Program, target: Target, *, noalias: bool = True) -> PrimFunc:
    """The TIRx function that runs a program on a CPU.

    Parameters
    ----------
    program
        A valid program.
    target
        A target of kind ``llvm``; its features give the vector width.
    noalias
        Whether the function may assume that different tensor parameters share no memory.

    Returns
    -------
    tvm.tirx.PrimFunc
        Named as the program, with its tensors and scalars as parameters in order. It compiles alike
        with the pipelines ``"tirx"`` and ``"default"``. A scalar of a 16-bit float type is passed as
        ``float32``.

    Raises
    ------
    UnsupportedError
        The program uses an element type that is not lowered, or the target is not a CPU.
    """
    machine = machine_of(target)
    _check_dtypes(program)
    builder = Builder(machine, noalias, program.fma)
    env: Environment = {}
    name = re.sub(r"\W", "_", program.name) or "kernel"
    params: list[Any] = []
    declared: dict[Memory, Any] = {}
    with builder.frame() as statements:
        for param in program.params:
            if isinstance(param, Memory):
                buffer, view = declare(param, builder.unique(param.name))
                declared[param] = buffer
                builder.buffers[param] = buffer
                if view is not None:
                    builder.emit(view)
                    builder.buffers[param] = view.buffer
                params.append(buffer)
            else:
                params.append(_scalar_parameter(builder, param, env))
        emit_block(builder, prune(program.body, ()), (), (), env)
    body = sequence([*argument_guards(program, declared, noalias), *statements])
    function = drop_unread_temporaries(PrimFunc(params, body)).with_attr("global_symbol", name)
    return function.with_attr("tirx.noalias", True) if noalias else function


def _scalar_parameter(builder: Builder, value: Value, env: Environment) -> Any:
    """A run-time scalar, held in its register dtype."""
    register = register_dtype(value.dtype)
    hint = value.name or "scalar"
    var = Var(builder.unique(hint), "bool" if is_bool(value.dtype) else register)
    given = Cast("uint8", var) if is_bool(value.dtype) else var
    if register != value.dtype and not is_bool(value.dtype):
        given = rounded(var, value.dtype, Body(builder))
    env[value] = Scalar(value.type, builder.hold(hint, given, register))
    note_integer(builder, value, env[value])
    return var


def _check_dtypes(program: Program) -> None:
    """Refuse element types that are not lowered, by the name of what has them."""
    remedy = "convert the array to float16 before the call, or run the program with tvm_tile.interpret"
    for memory in program.tensors:
        if memory.dtype in STORAGE_ONLY:
            raise UnsupportedError(
                f"parameter {memory.name} has dtype {memory.dtype}, which has no code generation for CPUs",
                span=memory.span,
                suggestion=remedy,
            )
    for statement in walk(program.body):
        inner = (*statement.indices, *statement.args) if isinstance(statement, Loop) else ()
        for value in (*statement.results, *inner):
            if value.dtype in STORAGE_ONLY:
                raise UnsupportedError(
                    f"value {value} has dtype {value.dtype}, which has no code generation for CPUs",
                    span=value.span or statement.span,
                    suggestion=remedy,
                )
