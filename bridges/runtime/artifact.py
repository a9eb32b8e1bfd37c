"""Generated code of one program for one target, shared by all executables that are made of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import tirx
from tvm.target import Target

from tvm_tile.bridges.tirx.pipeline import PIPELINE, mark_requires_pipeline, needs_pipeline
from tvm_tile.errors import UnsupportedError
from tvm_tile.ir.dtypes import bits
from tvm_tile.ir.regions import Program

__all__ = ["Artifact", "compile_program", "lower_to_module"]

_SUPPORTED_KINDS = ("llvm",)

#: Code generation is one at a time; TVM does not promise that its passes may run side by side.
_compiling = threading.RLock()


@dataclass(frozen=True)
class Artifact:
    """What code generation gives for a program.

    Attributes
    ----------
    program
        As it was lowered.
    module
        The TIRx module.
    library
        ``tvm.runtime.Module`` with the generated code.
    function
        The generated function; it asserts that written parameters share no memory with others.
    alignments
        Bytes to which the code needs each tensor parameter to be aligned, by position.
    """

    program: Program
    target: Target
    module: tvm.IRModule
    library: Any
    function: Any
    alignments: tuple[int, ...]
    _aliasing: list[Any] = field(default_factory=list, repr=False, compare=False)

    def aliasing_function(self) -> Any:
        """The same program compiled to leave aliasing of its parameters to the caller, on first use."""
        with _compiling:
            if not self._aliasing:
                module = lower_to_module(self.program, self.target, noalias=False)
                library, function = _generate(module, self.target)
                self._aliasing.append((library, function))
        return self._aliasing[0][1]


def lower_to_module(program: Program, target: Target, *, noalias: bool = True) -> tvm.IRModule:
    """The TIRx module of a program, with one function.

    Plain ``tvm.compile(module, target)`` builds it rightly, or raises where only our pipeline can.

    Raises
    ------
    UnsupportedError
        The target has no mapping.
    """
    from tvm_tile.bridges.tirx.lower import lower_program

    if target.kind.name not in _SUPPORTED_KINDS:
        raise UnsupportedError(
            f"no reference mapping for {target.kind.name} yet",
            suggestion=f"one of the targets {', '.join(map(repr, _SUPPORTED_KINDS))}",
        )
    func = lower_program(program, target, noalias=noalias)
    if needs_pipeline(func):
        func = mark_requires_pipeline(func)
    return tvm.IRModule({str(func.attrs["global_symbol"]): func})


def compile_program(program: Program, target: Target) -> Artifact:
    """Lower a program and generate code for it."""
    with _compiling:
        module = lower_to_module(program, target)
        library, function = _generate(module, target)
    ((_, func),) = module.functions_items()
    # The widest of the buffer's own alignment and the element, as the guards in the function check it.
    buffers = [param for param in func.params if tirx.is_buffer_var(param)]
    alignments = tuple(
        max(int(buffer.ty.data_alignment), bits(memory.dtype) // 8)
        for memory, buffer in zip(program.tensors, buffers, strict=True)
    )
    return Artifact(program, target, module, library, function, alignments)


def _generate(module: tvm.IRModule, target: Target) -> tuple[Any, Any]:
    library = tvm.compile(module, target=target, tir_pipeline=PIPELINE).jit()
    ((variable, _),) = module.functions_items()
    try:
        function = library.get_function(variable.name_hint, query_imports=True)
    except tvm.error.InternalError as error:
        if "architecture mismatch" not in str(error):
            raise
        raise UnsupportedError(
            f"code for {target} does not run on this machine",
            suggestion="tvm.compile(tt.lower(program, target), target) generates it without loading it",
        ) from error
    return library, function
