"""From a program to a TIRx function: loops for a CPU, or launches of kernels on a device."""

from __future__ import annotations

from typing import Any

from tvm.target import Target
from tvm.tirx import NE, Cast, IntImm, PrimFunc, Var

from tvm_tile.bridges.tirx.lower.builder import Body, Builder, sequence
from tvm_tile.bridges.tirx.lower.device.launches import emit_launches
from tvm_tile.bridges.tirx.lower.elements.casts import rounded
from tvm_tile.bridges.tirx.lower.limits import check_support
from tvm_tile.bridges.tirx.lower.machine import machine_of
from tvm_tile.bridges.tirx.lower.memories.memory import declare, words_of
from tvm_tile.bridges.tirx.lower.operations import Environment, note_integer
from tvm_tile.bridges.tirx.lower.regions import emit_block
from tvm_tile.bridges.tirx.lower.scalars import register_dtype
from tvm_tile.bridges.tirx.lower.unread import drop_unread_temporaries
from tvm_tile.bridges.tirx.lower.uses import prune
from tvm_tile.bridges.tirx.lower.values import Scalar
from tvm_tile.bridges.tirx.prologue import argument_guards
from tvm_tile.ir.dtypes import is_bool
from tvm_tile.ir.regions import Program
from tvm_tile.ir.values import Memory, Value

__all__ = ["lower_program"]


def lower_program(program: Program, target: Target, *, noalias: bool = True, debug: bool = False) -> PrimFunc:
    """The TIRx function that runs a program.

    Parameters
    ----------
    program
        A valid program.
    target
        A target of kind ``llvm``, whose features give the vector width, or a device.
    noalias
        Whether the function may assume that different tensor parameters share no memory.
    debug
        Whether the function checks what the program promises, and the words around explicit memory. A
        failed check raises with a message that starts with
        :data:`~tvm_tile.bridges.tirx.prologue.DEBUG_PREFIX`.

    Returns
    -------
    tvm.tirx.PrimFunc
        Named as the program, with its tensors and scalars as parameters in order. It compiles alike
        with the pipelines ``"tirx"`` and ``"default"``. A scalar of a 16-bit float type is passed as
        ``float32``. The function for a device runs on the host, and launches kernels.

    Raises
    ------
    UnsupportedError
        There is no lowering for the target, or it lacks something that the program needs.
    """
    machine = machine_of(target)
    check_support(program, machine)
    builder = Builder(machine, noalias, program.fma, debug=debug)
    env: Environment = {}
    name = machine.identifier(program.name) or "kernel"
    params: list[Any] = []
    declared: dict[Memory, Any] = {}
    scalars: dict[Value, Any] = {}
    with builder.frame() as statements:
        for param in program.params:
            if isinstance(param, Memory):
                buffer, view = declare(param, builder.unique(param.name))
                declared[param] = buffer
                builder.buffers[param] = buffer
                if machine.is_device:
                    view = words_of(param, buffer, builder.unique(f"{param.name}_words"), machine)
                if view is not None:
                    builder.emit(view)
                    builder.buffers[param] = view.buffer
                params.append(buffer)
            else:
                scalars[param] = _scalar_parameter(builder, param)
                params.append(scalars[param])

        def enter(env: Environment) -> None:
            for value, var in scalars.items():
                _hold_scalar(builder, value, var, env)

        block = prune(program.body, ())
        if machine.is_device:
            emit_launches(builder, block, frozenset(scalars), enter)
        else:
            enter(env)
            emit_block(builder, block, (), (), env)
    # Metal and OpenCL pass handles of buffers, which have no address.
    guards = argument_guards(program, declared, noalias) if machine.kind in ("llvm", "cuda") else []
    body = sequence([*guards, *statements])
    function = drop_unread_temporaries(PrimFunc(params, body)).with_attr("global_symbol", name)
    return function.with_attr("tirx.noalias", True) if noalias else function


def _scalar_parameter(builder: Builder, value: Value) -> Any:
    """The variable of a run-time scalar. Kernels take no truth values."""
    truth = "int32" if builder.machine.is_device else "bool"
    dtype = truth if is_bool(value.dtype) else register_dtype(value.dtype)
    return Var(builder.unique(value.name or "scalar"), dtype)


def _hold_scalar(builder: Builder, value: Value, var: Any, env: Environment) -> None:
    """Put a run-time scalar into a register, rounded to its dtype."""
    register = register_dtype(value.dtype)
    if is_bool(value.dtype):
        given = Cast("uint8", NE(var, IntImm("int32", 0)) if builder.machine.is_device else var)
    else:
        given = var if register == value.dtype else rounded(var, value.dtype, Body(builder))
    env[value] = Scalar(value.type, builder.hold(value.name or "scalar", given, register))
    note_integer(builder, value, env[value])
