"""What building gives for one program and one target, shared by all executables that are made of it."""

from __future__ import annotations

import threading
from functools import cached_property
from pathlib import Path
from typing import Any

import tvm
from tvm import tirx
from tvm.target import Target

from tvm_tile.bridges.runtime.code import Code, describe, generate, generate_or_look_up, in_memory, loaded
from tvm_tile.bridges.runtime.features import check_machine, check_target
from tvm_tile.bridges.runtime.library import pack, unpack, write_atomically
from tvm_tile.bridges.runtime.linking import SUFFIX, link, object_code
from tvm_tile.bridges.runtime.symbols import check_symbols
from tvm_tile.bridges.tirx.pipeline import mark_requires_pipeline, needs_pipeline
from tvm_tile.errors import ArgumentError, CaptureError, UnsupportedError
from tvm_tile.ir.dtypes import bits
from tvm_tile.ir.parser import parse_program
from tvm_tile.ir.regions import Program

__all__ = ["Artifact", "compile_program", "load_artifact", "lower_to_module"]

#: Code generation is one at a time; TVM does not promise that its passes may run side by side.
_compiling = threading.RLock()


class Artifact:
    """Code of a program for a CPU.

    Parameters
    ----------
    program
        As it was lowered.
    target
        What it was lowered for.
    code
        Its function asserts that written parameters share no memory with others.
    alignments
        Bytes to which the code needs each tensor parameter to be aligned, by position.
    aliasing
        Code that leaves aliasing to its caller; made on first use where it is not given.
    debug
        Whether the code has the checks of a debug build.
    """

    def __init__(
        self,
        program: Program,
        target: Target,
        code: Code,
        alignments: tuple[int, ...],
        aliasing: Code | None = None,
        debug: bool = False,
    ) -> None:
        self.program = program
        self.target = target
        self.alignments = alignments
        self.debug = debug
        self._code = code
        self._aliasing = aliasing

    @property
    def function(self) -> Any:
        """The generated function; it asserts that written parameters share no memory with others."""
        return self._code.function

    @property
    def library(self) -> Any:
        """``tvm.runtime.Module`` with the generated code."""
        return self._code.library

    @cached_property
    def module(self) -> tvm.IRModule:
        """The TIRx module. Code that was kept from another process comes without; it is lowered again."""
        with _compiling:
            return lower_to_module(self.program, self.target, debug=self.debug)

    def aliasing_function(self) -> Any:
        """The same program compiled to leave aliasing of its parameters to the caller, on first use."""
        with _compiling:
            if self._aliasing is None:
                self._aliasing, _ = _code_of(self.program, self.target, noalias=False, debug=self.debug)
        return self._aliasing.function

    def source(self, kind: str) -> str:
        """LLVM IR (``"ll"``) or assembly (``"asm"``)."""
        return self._code.source(kind)

    def save(self, path: Path) -> None:
        """Write a shared library that :func:`load_artifact` reads.

        Raises
        ------
        ArgumentError
            The suffix is not that of a shared library, or the file cannot be written.
        UnsupportedError
            There is no linker.
        """
        if path.suffix != SUFFIX:
            raise ArgumentError(
                f"{str(path)!r} does not end in {SUFFIX}, as shared libraries do here",
                suggestion=f"exe.save({str(path.with_suffix(SUFFIX))!r})" if path.name else f"out{SUFFIX}",
            )
        if self.debug:
            raise UnsupportedError(
                f"{self.program.name} was built with debug=True, whose messages show source that a library "
                "does not hold",
                suggestion="save tt.build(program, target)",
            )
        with _compiling:
            module = lower_to_module(self.program, self.target)
            name, alignments = _function_name(module), _alignments(self.program, module)
            aliasing = None
            if _may_alias(self.program):
                other = lower_to_module(self.program, self.target, noalias=False)
                aliasing = f"{name}_aliasing"
                ((_, function),) = other.functions_items()
                module.update_func(tvm.ir.GlobalVar(aliasing), function.with_attr("global_symbol", aliasing))
            generated = generate(module, self.target)
            library = link(object_code(generated))
            description = describe(self.program, self.target, alignments, generated, name, aliasing)
        try:
            write_atomically(path, pack(library, description))
        except OSError as error:
            raise ArgumentError(
                f"{str(path)!r} cannot be written: {error.strerror}",
                suggestion="save to a folder that exists and is yours",
            ) from error


def load_artifact(path: Path) -> Artifact:
    """The artifact in a file that :meth:`Artifact.save` wrote.

    Raises
    ------
    ArgumentError
        There is no such file, or it is none of ours, or damaged.
    UnsupportedError
        It was written by another version, or does not run on this machine.
    """
    name = repr(str(path))
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            # Reading a device or a pipe may never end.
            raise ArgumentError(f"{name} is no file", suggestion="give the path that exe.save(path) got")
        data = path.read_bytes()
    except OSError as error:
        raise ArgumentError(
            f"{name} cannot be read: {error.strerror}", suggestion="give the path that exe.save(path) got"
        ) from error
    library, description = unpack(data, name)
    check_machine(name, description.system, description.architecture, description.features)
    if description.tvm != str(tvm.__version__):
        raise UnsupportedError(
            f"{name} was saved with TVM {description.tvm}, and this is TVM {tvm.__version__}",
            suggestion="build and save the program with the TVM that loads it",
        )
    try:
        program = parse_program(description.program, str(path))
    except CaptureError as error:
        raise UnsupportedError(
            f"{name} holds a program that this version does not read: {error.message}",
            suggestion="build and save the program with the version that loads it",
        ) from error
    code, aliasing = loaded(library, description, name)
    return Artifact(program, Target(description.target), code, description.alignments, aliasing)


def lower_to_module(
    program: Program, target: Target, *, noalias: bool = True, debug: bool = False
) -> tvm.IRModule:
    """The TIRx module of a program, with one function.

    Plain ``tvm.compile(module, target)`` builds it rightly, or raises where only our pipeline can.

    Raises
    ------
    UnsupportedError
        The target has no mapping.
    """
    from tvm_tile.bridges.tirx.lower import lower_program

    func = lower_program(program, target, noalias=noalias, debug=debug)
    if needs_pipeline(func):
        func = mark_requires_pipeline(func)
    return tvm.IRModule({str(func.attrs["global_symbol"]): func})


def compile_program(program: Program, target: Target, debug: bool = False) -> Artifact:
    """Code for a program, generated or found in the cache on disk."""
    with _compiling:
        if target.kind.name == "llvm":
            check_target(target)
            check_symbols(program)
        code, alignments = _code_of(program, target, debug=debug)
    return Artifact(program, target, code, alignments, debug=debug)


def _code_of(
    program: Program, target: Target, *, noalias: bool = True, debug: bool = False
) -> tuple[Code, tuple[int, ...]]:
    def lower() -> tuple[tvm.IRModule, str, tuple[int, ...]]:
        module = lower_to_module(program, target, noalias=noalias, debug=debug)
        return module, _function_name(module), _alignments(program, module)

    if debug:
        # Its messages have source positions, which are no part of what a program is known by.
        module, name, alignments = lower()
        return in_memory(generate(module, target), name), alignments
    return generate_or_look_up(program, target, "noalias" if noalias else "aliasing", lower)


def _function_name(module: tvm.IRModule) -> str:
    ((variable, _),) = module.functions_items()
    return str(variable.name_hint)


def _alignments(program: Program, module: tvm.IRModule) -> tuple[int, ...]:
    """The widest of each buffer's own alignment and the element, as the guards in the function check it."""
    ((_, func),) = module.functions_items()
    buffers = [param for param in func.params if tirx.is_buffer_var(param)]
    return tuple(
        max(int(buffer.ty.data_alignment), bits(memory.dtype) // 8)
        for memory, buffer in zip(program.tensors, buffers, strict=True)
    )


def _may_alias(program: Program) -> bool:
    """Whether two arguments of the program, one of them written, could share memory."""
    return len(program.tensors) > 1 and bool(program.writes)
