"""Adding a tile kernel to a Relax program that is being built."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx

from tvm_tile.bridges.relax.destinations import check_destinations
from tvm_tile.bridges.relax.function import called_function
from tvm_tile.build import lower
from tvm_tile.errors import ArgumentError, UnsupportedError
from tvm_tile.frontend.kernel import Kernel
from tvm_tile.frontend.specs import Spec, check_scalar, spec
from tvm_tile.ir.dtypes import DTYPES, is_float
from tvm_tile.ir.values import Memory

__all__ = ["call"]

_LARGEST_INTEGER = 2**63 - 1


def call(kernel: Kernel, /, *args: Any, **constants: Any) -> Any:
    """Call a tile kernel in the Relax program that the current ``relax.BlockBuilder`` builds.

    The kernel is specialized to the shapes and dtypes of its arguments, lowered for the current
    ``tvm.target.Target`` (this host's CPU without one) and added to the builder's module, once for all calls
    that come to the same function. ``tvm.compile`` then builds that module with its default pipelines, or
    with ``tir_pipeline="tvm_tile"``, which compiles tile kernels as :func:`tvm_tile.build` does.

    Parameters
    ----------
    kernel
        Made by ``tt.kernel``. It must not write its inputs, nor read an output, which is not initialized,
        before it has written all of it.
    *args
        One for each positional parameter. A tensor parameter takes a Relax tensor of known shape, an
        input, or ``tt.spec(shape, dtype)``, an output. A run-time scalar takes a number or a primitive
        expression of its dtype.
    **constants
        Compile-time constants.

    Returns
    -------
    relax.Var or tuple of relax.Var
        The value of the output, or of each one if there are several.

    Raises
    ------
    ArgumentError
        No function is being built, or the arguments do not fit the parameters.
    IllegalError
        The kernel writes an input, reads an output too early, or leaves elements of one unwritten whatever
        its data are.
    UnsupportedError
        A shape is not known, or the target has no mapping.

    Examples
    --------
    >>> with builder.function("main", [A, B]):
    ...     C = tt.relax.call(kernels.gemm, A, B, tt.spec((m, n), "float32"))
    ...     builder.emit_func_output(relax.op.nn.relu(C))
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentError(
            f"tt.relax.call takes a kernel, not {type(kernel).__name__} {kernel!r:.60}",
            suggestion="decorate the function with @tt.kernel",
        )
    builder = relax.BlockBuilder.current()
    if builder is None:
        raise ArgumentError(
            f"kernel {kernel.name} is called in a Relax program, but none is being built here",
            suggestion='call it inside: with relax.BlockBuilder().function("main", [...]):',
        )
    arguments, given = kernel.bind(args, constants)
    scalars = kernel.signature.scalars
    inputs: dict[int, Any] = {}
    outputs: dict[int, Spec] = {}
    traced: list[Any] = []
    for position, (name, argument) in enumerate(zip(kernel.signature.parameters, arguments, strict=True)):
        if name in scalars:
            inputs[position], stand_in = _scalar(builder, name, argument, scalars[name])
        elif isinstance(argument, Spec):
            outputs[position] = stand_in = _output(name, argument)
        else:
            inputs[position], stand_in = _input(builder, name, argument)
        traced.append(stand_in)
    if not outputs:
        raise ArgumentError(
            f"no argument of kernel {kernel.name} is an output, so that its call has no value",
            suggestion='mark each output: tt.spec(shape, "float32")',
        )

    program = kernel.trace(*traced, **given)
    check_destinations(program, frozenset(p for k in outputs if isinstance(p := program.params[k], Memory)))
    module = lower(program, tvm.target.Target.current(allow_none=True) or "llvm")
    function = called_function(module, (*inputs, *outputs))
    given_inputs = [
        _as_declared(value, param)
        for value, param in zip(inputs.values(), function.params[: len(inputs)], strict=True)
    ]
    types = [relax.TensorType(output.shape, output.dtype) for output in outputs.values()]
    callee = builder.add_func(function, kernel.name)
    result = builder.emit(relax.call_tir(callee, given_inputs, types), kernel.name)
    if len(types) == 1:
        return result
    names = [kernel.signature.parameters[k] for k in outputs]
    return tuple(builder.emit(relax.TupleGetItem(result, k), name) for k, name in enumerate(names))


def _output(name: str, given: Spec) -> Spec:
    if Memory.dense_or_strides(given.shape, given.strides) is not None:
        raise ArgumentError(
            f"output {name} has strides {given.strides}; tensors of a Relax program are dense and row-major",
            suggestion=f'tt.spec({given.shape}, "{given.dtype}")',
        )
    return given


def _input(builder: Any, name: str, argument: Any) -> tuple[Any, Spec]:
    """An input as an expression whose type is known, and what the kernel is traced with."""
    if isinstance(argument, (np.ndarray, tvm.runtime.Tensor)):
        raise ArgumentError(
            f"argument {name} is an array, {argument.dtype}{list(argument.shape)}, "
            "which is no part of the Relax program",
            suggestion=f"make it a constant of the program, relax.const({name}), or a parameter",
        )
    if not isinstance(argument, tvm.ir.Expr):
        raise ArgumentError(
            f"argument {name} is {type(argument).__name__} {argument!r:.60}, which is no Relax expression",
            suggestion="pass a Relax expression for an input, tt.spec(shape, dtype) for an output",
        )
    expression = builder.normalize(argument)
    tensor = expression.ty
    if not isinstance(tensor, relax.TensorType):
        raise ArgumentError(
            f"argument {name} is a Relax expression of type {tensor}, not a tensor",
            suggestion="pass its elements one by one" if isinstance(tensor, relax.TupleType) else None,
        )
    dtype = str(tensor.dtype) if tensor.dtype is not None else ""
    if dtype not in DTYPES:
        raise UnsupportedError(
            f"argument {name} has element type {dtype or 'unknown'}, of which there are no tiles",
            suggestion=f"convert it: relax.op.astype({name}, dtype), with one of {', '.join(DTYPES)}",
        )
    dims = tuple(tensor.shape.values) if isinstance(tensor.shape, relax.ShapeExpr) else None
    if dims is None or not all(isinstance(n, tirx.IntImm) for n in dims):
        shown = "an unknown shape" if dims is None else f"the symbolic shape ({_written(dims)})"
        raise UnsupportedError(
            f"argument {name} has {shown}; a kernel is specialized to sizes that are known",
            suggestion=f'give {name} a static shape: relax.TensorType((64, 32), "{dtype}"), '
            "or bind the variables: relax.transform.BindSymbolicVars",
        )
    return expression, spec(tuple(int(n) for n in dims), dtype)


def _written(dims: tuple[Any, ...]) -> str:
    return ", ".join(str(int(n) if isinstance(n, tirx.IntImm) else n) for n in dims)


def _scalar(builder: Any, name: str, argument: Any, dtype: str) -> tuple[Any, Any]:
    """A run-time scalar, number or expression, and what the kernel is traced with."""
    if not isinstance(argument, tvm.ir.Expr):
        check_scalar(name, argument, dtype)
        if dtype == "uint64" and argument > _LARGEST_INTEGER:
            raise UnsupportedError(
                f"argument {name} is {argument}, and TVM's VM holds integers up to {_LARGEST_INTEGER}",
                suggestion="make it a compile-time constant of the kernel",
            )
        return argument, argument
    found = builder.normalize(argument).ty
    if not isinstance(found, tvm.ir.PrimType) or str(found.dtype) != dtype:
        raise ArgumentError(
            f"argument {name} is a Relax expression of type {found}, not a {dtype} scalar",
            suggestion=f'pass a number, or relax.Var("{name}", tvm.ir.PrimType("{dtype}"))',
        )
    if dtype == "bfloat16":
        raise UnsupportedError(
            f"argument {name} is a bfloat16 scalar, and TVM's VM passes none",
            suggestion='pass a number, or take a tt.Scalar["float32"] and cast it in the kernel',
        )
    return argument, spec((), dtype)


def _as_declared(value: Any, param: Any) -> Any:
    """A scalar in the dtype in which the function takes it; tensors as they are."""
    if tirx.is_buffer_var(param):
        return value
    dtype = str(param.ty.dtype)
    if isinstance(value, tvm.ir.Expr):
        return value if str(value.ty.dtype) == dtype else tirx.Cast(dtype, value)
    number = value.item() if hasattr(value, "item") else value
    if is_float(dtype) and isinstance(number, int) and abs(number) > sys.float_info.max:
        # An integer beyond the largest float, as in other calls.
        number = math.inf if number > 0 else -math.inf
    return tirx.const(number, dtype)
