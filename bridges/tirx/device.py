"""Device code of a lowered module: text, the launches that the host makes in order, and what they share.

All of it is read from what TVM's pipeline makes of the module, so that names and the order of arguments are
those of the generated kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.target import Target
from tvm.tirx import AllocBuffer, AttrStmt, DeclBuffer
from tvm.tirx.build import codegen_build, split_host_device_mods
from tvm_ffi.structural import WalkResult

from tvm_tile.bridges.tirx.pipeline import PIPELINE
from tvm_tile.ir.dtypes import bits

__all__ = ["DeviceCode", "Launch", "Temporary", "device_code"]

_LAUNCH = "tirx.call_ffi_kernel"
_NO_ALIASES = "tirx.noalias"


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.

    Attributes
    ----------
    kernel
        Name of the function in the generated text.
    grid, block
        Blocks, and threads of a block, along the axes x, y and z.
    arguments
        Names of parameters of the program and of temporaries, in the order of the kernel's signature.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Temporary:
    """Global memory that lives as long as a call: ``size`` elements, not initialized."""

    name: str
    dtype: str
    size: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * bits(self.dtype) // 8


@dataclass(frozen=True)
class DeviceCode:
    """What a device needs to run a program.

    Attributes
    ----------
    text
        Source of all kernels; empty if there are none.
    launches
        In the order in which they run, one after the other.
    temporaries
        What launches leave for later ones, and the workspaces of threads.
    """

    text: str
    launches: tuple[Launch, ...]
    temporaries: tuple[Temporary, ...]

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels, each once."""
        return tuple(dict.fromkeys(launch.kernel for launch in self.launches))


def device_code(module: tvm.IRModule, names: Sequence[str], target: Target) -> DeviceCode:
    """Generate the device code of a module with one function.

    Parameters
    ----------
    module
        As :func:`~tvm_tile.bridges.tirx.lower.lower_program` made its function.
    names
        Names of the program's parameters, in order.
    target
        A device, with a host.
    """
    ((_, function),) = module.functions_items()
    public = {str(param.name): name for param, name in zip(function.params, names, strict=True)}
    public |= _aliases(function.body, public)
    host, device = _split(module, target)
    launches = tuple(_launches(host, device, public))
    temporaries = tuple(_temporaries(function.body))
    return DeviceCode(_text(device, target), launches, temporaries)


def _split(module: tvm.IRModule, target: Target) -> tuple[Any, tvm.IRModule]:
    """The host function, and the module of the kernels."""
    bound = tirx.transform.BindTarget(target.with_host(target.host))(module)
    pipeline, _, finalize_device = tirx.get_tir_pipeline(PIPELINE)
    # Common subexpressions of several kernels would be computed on the host, as more arguments.
    with tvm.transform.PassContext(disabled_pass=["tirx.CommonSubexprElim"]):
        host, devices = split_host_device_mods(pipeline(bound))
    ((_, function),) = host.functions_items()
    (kernels,) = devices.values() or (tvm.IRModule(),)
    return function, finalize_device()(_with_aliasing_of(module, kernels))


def _with_aliasing_of(module: tvm.IRModule, kernels: tvm.IRModule) -> tvm.IRModule:
    """Kernels that promise to their compiler what the program's function does.

    TVM gives every kernel the promise that its arguments share no memory.
    """
    ((_, function),) = module.functions_items()
    if function.attrs.get(_NO_ALIASES, False):
        return kernels
    return tvm.IRModule({var: kernel.without_attr(_NO_ALIASES) for var, kernel in kernels.functions_items()})


#: Pragmas that TVM leaves out, by a word whose presence in the text says that they are needed.
_EXTENSIONS = {
    "atom_": ("cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"),
}


def _text(device: tvm.IRModule, target: Target) -> str:
    if not len(device.functions):
        return ""
    text = str(codegen_build(device, target).inspect_source())
    if target.kind.name == "opencl":
        for word, names in _EXTENSIONS.items():
            if word in text:
                pragmas = [f"#pragma OPENCL EXTENSION {name} : enable\n" for name in names]
                text = "".join(pragmas) + text
    return text


def _aliases(body: Any, public: dict[str, str]) -> dict[str, str]:
    """Views of parameters by the parameter's public name."""
    aliases: dict[str, str] = {}

    def look(node: Any) -> None:
        found: list[str] = []
        tvm_ffi.structural_walk(node.data, (tvm.ir.Var, lambda var: found.append(str(var.name))))
        for name in found:
            if name in public:
                aliases[str(node.buffer.name)] = public[name]

    tvm_ffi.structural_walk(body, (DeclBuffer, look))
    return aliases


def _launches(host: Any, device: tvm.IRModule, public: dict[str, str]) -> list[Launch]:
    kernels = {str(function.attrs["global_symbol"]): function for _, function in device.functions_items()}
    launches: list[Launch] = []

    def look(call: Any) -> None:
        if str(getattr(call.op, "name", "")) != _LAUNCH:
            return
        name = str(call.args[0].value)
        kernel = kernels[name]
        arguments = []
        for param in kernel.params:
            own = str(param.name)
            if not hasattr(param.ty, "dtype"):
                own = own.removesuffix("_ptr")
            arguments.append(public.get(own, own))
        extents = call.args[1 + len(arguments) :]
        axes = [str(tag) for tag in kernel.attrs["tirx.kernel_launch_params"]]
        sizes = {tag: int(extent) for tag, extent in zip(axes, extents, strict=True)}
        grid, block = (
            tuple(sizes.get(f"{what}Idx.{axis}", 1) for axis in "xyz") for what in ("block", "thread")
        )
        launches.append(Launch(name, grid, block, tuple(arguments)))  # type: ignore[arg-type]

    tvm_ffi.structural_walk(host.body, (Call, look))
    return launches


def _temporaries(body: Any) -> list[Temporary]:
    """Allocations outside of kernels."""
    found: list[Temporary] = []

    def kernel(node: Any) -> Any:
        return WalkResult.SKIP if str(node.attr_key) == "thread_extent" else None

    def allocation(node: Any) -> None:
        buffer = node.buffer
        size = 1
        for extent in buffer.ty.shape:
            size *= int(extent)
        found.append(Temporary(str(buffer.name), str(buffer.ty.dtype), size))

    tvm_ffi.structural_walk(body, [(AttrStmt, kernel), (AllocBuffer, allocation)], order="pre")
    return found
