"""Programs built for devices: generated text, its launches, and calls where something can run them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import tvm
from tvm.target import Target

from tvm_tile.bridges.opencl.runner import Runner
from tvm_tile.bridges.runtime.arguments import Placed, bind_arguments
from tvm_tile.bridges.runtime.executable import Executable
from tvm_tile.bridges.runtime.overlap import find_overlap
from tvm_tile.bridges.runtime.packing import pack_arguments, packed
from tvm_tile.bridges.tirx.device import DeviceCode, Launch, Temporary, device_code
from tvm_tile.bridges.tirx.lower.scalars import register_dtype
from tvm_tile.errors import ArgumentError, UnsupportedError
from tvm_tile.ir.dtypes import bits, is_bool, numpy_dtype
from tvm_tile.ir.regions import Program
from tvm_tile.ir.values import Value

__all__ = ["DeviceArtifact", "DeviceExecutable"]

#: Kinds of source, the default first.
_SOURCE_KINDS = {"cuda": ("cuda", "ptx", "cubin"), "metal": ("metal",), "opencl": ("opencl",)}

_compiling = threading.RLock()


class DeviceArtifact:
    """Device code of a program on dense parameters.

    Parameters
    ----------
    program
        With parameters of any strides.
    target
        A device, with a host.
    lower
        Makes the TIRx module of a program for a target; takes ``noalias``.
    """

    def __init__(self, program: Program, target: Target, lower: Callable[..., tvm.IRModule]) -> None:
        self.program = program
        self.target = target
        self.function = None
        self.alignments = (1,) * len(program.tensors)
        self._lower = lower
        self._packed = packed(program)
        with _compiling:
            self.module = lower(self._packed, target)
            self.code = self._generate(self.module)
        self._runner: Runner | None = None
        self._aliasing_runner: Runner | None = None

    def _generate(self, module: tvm.IRModule) -> DeviceCode:
        names = [param.name or str(param) for param in self.program.params]
        return device_code(module, names, self.target)

    @cached_property
    def runner(self) -> Runner:
        """Runs the code, which assumes that parameters share no memory."""
        return Runner(self.code, self.program.name, self.program.fma)

    @cached_property
    def aliasing_runner(self) -> Runner:
        """Runs code that leaves aliasing of its parameters to the caller."""
        with _compiling:
            code = self._generate(self._lower(self._packed, self.target, noalias=False))
        return Runner(code, self.program.name, self.program.fma)

    def source(self, kind: str) -> Any:
        """Text of the kernels, or what ``nvcc`` makes of it."""
        if kind in ("ptx", "cubin"):
            from tvm_tile.bridges.cuda.nvcc import compile_text

            return compile_text(self.code.text, kind, str(self.target.attrs["arch"]))
        return self.code.text


class DeviceExecutable(Executable):
    """A program built for a device. OpenCL code runs, on arrays of the host; results come in place.

    Arguments are those of :class:`~tvm_tile.bridges.runtime.executable.Executable`. They are copied to the
    device and, where the program writes them, back.
    """

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of a call, in order."""
        return self._artifact.code.launches  # type: ignore[no-any-return]

    @property
    def temporaries(self) -> tuple[Temporary, ...]:
        """Global memory that the launches of one call share."""
        return self._artifact.code.temporaries  # type: ignore[no-any-return]

    def __call__(self, *arguments: Any, **named: Any) -> None:
        """Run in place.

        Raises
        ------
        ArgumentError
            What does not fit, with the name of the parameter.
        UnsupportedError
            There is no device of this kind here.
        """
        if named:
            self._refuse_named(named)
        bound = bind_arguments(self._program, arguments)
        tensors = [b for b in bound if isinstance(b, Placed)]
        overlap = find_overlap(tensors, self._written)
        if overlap.groups:
            self._require_alias_proof(overlap.groups)
        kind = self.target.kind.name
        if kind != "opencl":
            raise UnsupportedError(
                f"{self._program.name} is built for {kind}, which does not run here",
                suggestion='tt.build(program, "opencl"), or exe.source() in a host program of your own',
            )
        runner = self._artifact.aliasing_runner if overlap.groups else self._artifact.runner
        written = [memory.name for memory in self._program.tensors if memory in self._written]
        operands = pack_arguments(tensors)
        runner.run(operands.arrays, self._scalars(bound), written)
        operands.unpack(written)

    def _scalars(self, bound: Sequence[Any]) -> dict[str, np.generic]:
        """Run-time scalars as kernels take them."""
        scalars: dict[str, np.generic] = {}
        for param, value in zip(self._program.params, bound, strict=True):
            if isinstance(param, Value):
                dtype = "int32" if is_bool(param.dtype) else register_dtype(param.dtype)
                # What was checked may be the bits of a large unsigned number, or beyond the largest float.
                number = value % 2 ** bits(param.dtype) if param.dtype.startswith("uint") else value
                with np.errstate(over="ignore"):
                    # Rounded once, to its own dtype, which the wider one of a register holds exactly.
                    rounded = np.asarray(number).astype(numpy_dtype(param.dtype))
                scalars[param.name or str(param)] = np.dtype(dtype).type(rounded)
        return scalars

    def source(self, kind: str | None = None) -> Any:
        """Generated text.

        Parameters
        ----------
        kind
            ``None`` for the text of the kernels. For CUDA also ``"ptx"``, and ``"cubin"``, which gives bytes;
            both need ``nvcc`` on the path, and are for the architecture of the target.
        """
        kinds = _SOURCE_KINDS[self.target.kind.name]
        if kind is not None and kind not in kinds:
            raise ArgumentError(
                f"there is no source of kind {kind!r} for {self.target.kind.name}",
                suggestion=f"one of the kinds {', '.join(map(repr, kinds))}",
            )
        return self._artifact.source(kind or kinds[0])

    def save(self, path: str | PathLike[str]) -> None:
        """Not available: there is no format for device code yet."""
        raise UnsupportedError(
            f"code for {self.target.kind.name} is not saved",
            suggestion="write exe.source() to a file",
        )
