"""The callable that ``tt.build`` gives: a fast path, and the careful one behind it.

The generated function itself checks number, device, dtype, shape, strides, alignment and overlap of its
arguments in a few hundred nanoseconds. So arguments of types that are known to be safe there go to it as
they are; only when it refuses, or a type is new, are the arguments looked at one by one, to run the
program all the same or to say what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike, fsencode, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_tile.bridges.runtime.arguments import Placed, bind_arguments, scalar_converter
from tvm_tile.bridges.runtime.dlpack import FOREIGN_CODES, array_at, tensor_of
from tvm_tile.bridges.runtime.overlap import find_overlap, overlaps_itself
from tvm_tile.bridges.runtime.staging import stage
from tvm_tile.bridges.runtime.threads import apply_to_calling_thread
from tvm_tile.bridges.runtime.timing import Timing, measure
from tvm_tile.errors import ArgumentError
from tvm_tile.ir.dtypes import bits, numpy_dtype
from tvm_tile.ir.regions import Program
from tvm_tile.ir.values import Memory, Value
from tvm_tile.relations.proof import Proof
from tvm_tile.semantics.torch_tensors import is_torch_tensor

if TYPE_CHECKING:
    import tvm
    from tvm.target import Target

    from tvm_tile.bridges.runtime.artifact import Artifact
    from tvm_tile.bridges.runtime.device import DeviceArtifact

__all__ = ["Executable", "load"]

_Step = Callable[[Any], Any] | None

#: What the generated function raises, before it does anything, on arguments that it does not take.
_REFUSALS = (BufferError, TypeError, ValueError)

_SOURCE_KINDS = ("ll", "asm")


class _NotAsIs(TypeError):
    """An argument needs the careful path."""


class Executable:
    """A built program. Call it with the program's arguments, in order; it runs in place.

    Arguments are NumPy arrays, torch CPU tensors, TVM tensors or anything else in CPU memory with
    ``__dlpack__``, and Python or NumPy numbers for run-time scalars. Memory is used where it is; only
    arrays with unaligned elements are copied and copied back.

    Raises
    ------
    ArgumentError
        On a call: what does not fit, with the name of the parameter. On construction: the program writes
        a parameter whose own elements overlap.
    """

    #: Whether calls check what the program promises.
    _is_debug = False

    _artifact: Any

    def __init__(self, program: Program, artifact: Artifact | DeviceArtifact) -> None:
        self._program = program
        self._artifact = artifact
        self._function: Any = artifact.function
        self._written = program.writes
        self._alignments = {m.name: n for m, n in zip(program.tensors, artifact.alignments, strict=True)}
        # From the types of the arguments to what is done with each before the call; None is nothing at all.
        self._plans: dict[tuple[type, ...], tuple[_Step, ...] | None] = {}
        self._proofs: dict[tuple[frozenset[str], ...], Proof] = {}
        for memory in program.tensors:
            if memory in self._written and overlaps_itself(memory):
                raise ArgumentError(
                    f"parameter {memory.name} is written by the program, but elements of an array with shape "
                    f"{memory.shape} and strides {memory.element_strides} overlap",
                    suggestion=f"{memory.name}.copy()",
                )

    def __call__(self, *arguments: Any, **named: Any) -> None:
        """Run in place."""
        if named:
            self._refuse_named(named)
        apply_to_calling_thread()
        try:
            plan = self._plans[tuple(map(type, arguments))]
        except KeyError:
            return self._call_checked(arguments, None)
        try:
            if plan is None:
                self._function(*arguments)
            else:
                self._function(
                    *[
                        argument if step is None else step(argument)
                        for step, argument in zip(plan, arguments, strict=True)
                    ]
                )
        except _REFUSALS as refusal:
            return self._call_checked(arguments, refusal)
        return None

    def _refuse_named(self, named: dict[str, Any]) -> None:
        if named:
            raise ArgumentError(
                f"{self._program.name} takes arguments by position; got {', '.join(map(repr, named))} "
                "by name",
                suggestion="give compile-time constants to kernel.trace(...); they are fixed in the program",
            )

    def _call_checked(self, arguments: Sequence[Any], refusal: Exception | None) -> None:
        """Look at every argument, then run or say what does not fit."""
        bound = bind_arguments(self._program, arguments)
        overlap = find_overlap([b for b in bound if isinstance(b, Placed)], self._written)
        function = self._function
        if overlap.groups:
            self._require_alias_proof(overlap.groups)
        if overlap.groups or overlap.interleaved:
            function = self._artifact.aliasing_function()
        staging = stage(bound, self._written, self._alignments)
        if refusal is not None and not staging.changed and function is self._function:
            raise refusal
        function(*staging.operands)
        staging.copy_back()
        if refusal is None or any(_is_read_only(argument) for argument in arguments):
            self._remember(arguments)

    def _require_alias_proof(self, groups: tuple[frozenset[str], ...]) -> None:
        from tvm_tile.semantics.aliasing import prove_alias_pattern

        proof = self._proofs.get(groups)
        if proof is None:
            proof = self._proofs[groups] = prove_alias_pattern(self._program, groups)
        if not proof.is_proved:
            names = "; ".join(" and ".join(sorted(group)) for group in groups)
            raise ArgumentError(
                f"parameters {names} got identical views of one array, the program writes it, and that this "
                f"causes no conflict is {proof}",
                obligation="noninterference under aliasing",
                suggestion="pass a copy",
            )

    def _remember(self, arguments: Sequence[Any]) -> None:
        """Let arguments of these types go straight to the generated function, if it is safe with them."""
        import tvm_ffi

        steps: list[_Step] = []
        for param, argument in zip(self._program.params, arguments, strict=True):
            if isinstance(param, Value):
                steps.append(scalar_converter(param))
            elif type(argument) is np.ndarray:
                if param.dtype in FOREIGN_CODES or _is_read_only(argument):
                    steps.append(_export(param, param in self._written))
                else:
                    steps.append(None)
            elif isinstance(argument, tvm_ffi.Tensor):
                steps.append(None)
            elif is_torch_tensor(argument):
                steps.append(_take_torch(param in self._written))
            else:
                return
        self._plans[tuple(map(type, arguments))] = tuple(steps) if any(steps) else None

    @property
    def program(self) -> Program:
        """The program that was built."""
        return self._program

    @property
    def target(self) -> Target:
        """What it was built for."""
        return self._artifact.target

    @property
    def mod(self) -> tvm.IRModule:
        """The TIRx module that the code was generated from."""
        return self._artifact.module

    @property
    def function(self) -> Any:
        """The generated function with nothing around it; it takes TVM tensors and what converts to them."""
        return self._function

    def source(self, kind: str | None = None) -> str:
        """Generated text.

        Parameters
        ----------
        kind
            ``"ll"`` for LLVM IR (the default) or ``"asm"`` for assembly.
        """
        if kind is None:
            kind = _SOURCE_KINDS[0]
        if kind not in _SOURCE_KINDS:
            raise ArgumentError(
                f"there is no source of kind {kind!r} for {self.target.kind.name}",
                suggestion=f"one of the kinds {', '.join(map(repr, _SOURCE_KINDS))}",
            )
        return str(self._artifact.source(kind))

    def save(self, path: str | PathLike[str]) -> None:
        """Write a shared library that :func:`tvm_tile.load` makes this executable of, in any process.

        Parameters
        ----------
        path
            Ends in ``.so`` (``.dylib`` on macOS). A file that is there is replaced in one step; processes
            that run code from it keep the old one.

        Raises
        ------
        ArgumentError
            The path does not end so, or cannot be written.
        UnsupportedError
            Code for this target, or a debug build, cannot be saved; or there is no linker.
        """
        self._artifact.save(_path(path))

    def bench(self, *arguments: Any, repeat: int = 20, **named: Any) -> Timing:
        """Time calls with these arguments.

        The calls run in place, as any call does: a program that reads what it writes goes on from its own
        results. Pass copies where that matters.

        Parameters
        ----------
        arguments
            As for a call.
        repeat
            Number of runs after the warm-up. Runs of less than 0.2 ms are made of several calls.

        Raises
        ------
        ArgumentError
            As a call; or ``repeat`` is no positive integer.
        """
        self._refuse_named(named)
        return measure(self, arguments, repeat)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are built from the program, or take the code of an equal one that was."""
        return _rebuilt, (self._program, str(self.target), self._is_debug)

    def __repr__(self) -> str:
        params = ", ".join(
            f"{p.name} {p.dtype}{list(p.shape)}" if isinstance(p, Memory) else f"{p.name or p} {p.dtype}"
            for p in self._program.params
        )
        return f"<Executable {self._program.name}({params}) for {self.target.kind.name}>"


def _rebuilt(program: Program, target: str, debug: bool) -> Executable:
    """The executable of a program that travelled."""
    from tvm_tile.build import build

    return build(program, target, debug)


def load(path: str | PathLike[str]) -> Executable:
    """The executable that :meth:`Executable.save` wrote.

    It checks arguments, and names them, as the saved one does. Its program is read back from the library;
    positions in the source are not in there.

    Raises
    ------
    ArgumentError
        There is no such file; or it is not a library that was saved so, or not as it was written.
    UnsupportedError
        It was saved by another version, or for another machine, or a symbol that it needs is missing.
    """
    from tvm_tile.bridges.runtime.artifact import load_artifact

    artifact = load_artifact(_path(path))
    return Executable(artifact.program, artifact)


def _path(path: Any) -> Path:
    if isinstance(path, (str, PathLike)) and isinstance(fspath(path), str) and "\0" not in fspath(path):
        try:
            fsencode(path)
        except UnicodeEncodeError as error:
            raise ArgumentError(
                f"{path!r:.60} has characters that no file name here can have", suggestion='"gemm.so"'
            ) from error
        return Path(path)
    raise ArgumentError(f"a path is text or a pathlib.Path, not {path!r:.60}", suggestion='"gemm.so"')


def _is_read_only(argument: Any) -> bool:
    return type(argument) is np.ndarray and not argument.flags.writeable


def _export(memory: Memory, written: bool) -> Callable[[Any], Any]:
    """Step for NumPy arrays that NumPy does not export: read-only, or of an element type foreign to it."""
    dtype, itemsize = memory.dtype, bits(memory.dtype) // 8
    expected, raw, foreign = numpy_dtype(dtype), np.dtype(f"u{itemsize}"), dtype in FOREIGN_CODES

    def export(array: np.ndarray) -> Any:
        if array.dtype != expected:
            raise _NotAsIs
        if not array.flags.writeable:
            if written:
                raise _NotAsIs
            address = array.__array_interface__["data"][0]
            return tensor_of(array_at(address, array.shape, array.strides, itemsize, array), dtype)
        return tensor_of(array.view(raw), dtype) if foreign else array

    return export


def _take_torch(written: bool) -> Callable[[Any], Any]:
    """Step for torch tensors: what TVM would take without a word, or choke on, goes the careful path."""
    import torch

    strided = torch.strided

    def take(tensor: Any) -> Any:
        if not tensor.is_cpu or tensor.layout is not strided or tensor.is_neg() or tensor.is_quantized:
            raise _NotAsIs
        if tensor.is_nested:
            raise _NotAsIs
        if not tensor.requires_grad:
            return tensor
        if written:
            raise _NotAsIs
        return tensor.detach()

    return take
