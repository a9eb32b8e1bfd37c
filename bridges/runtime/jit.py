"""Calling a kernel: specialize, build and run, with both results kept.

Two caches in memory. The first is keyed by what specialization sees: the kernel, the arrays' shapes,
strides and dtypes, the constants, and what the kernel's Python source captures. A hit costs a few
microseconds and traces nothing. The second is keyed by the structure of the traced program, so kernels that
come to the same program share its code; what it does not hold may be on disk
(:mod:`~tvm_tile.bridges.runtime.disk_cache`).
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_tile.bridges.runtime.cache import CacheInfo, CircularError, OnceCache
from tvm_tile.bridges.runtime.executable import Executable
from tvm_tile.errors import CaptureError, UnsupportedError
from tvm_tile.ir.regions import Program

if TYPE_CHECKING:
    from tvm.target import Target

    from tvm_tile.bridges.runtime.artifact import Artifact
    from tvm_tile.bridges.runtime.device import DeviceArtifact
    from tvm_tile.frontend.kernel import Kernel

__all__ = ["cache_clear", "cache_info", "executable_of", "run_kernel"]

# An entry keeps about a megabyte of generated code alive.
_specializations: OnceCache[tuple[Any, Executable]] = OnceCache(256)
_artifacts: OnceCache[Artifact] = OnceCache(256)
_device_artifacts: OnceCache[DeviceArtifact] = OnceCache(256)

_TARGET = "llvm"

#: Types whose values never change. Subclasses may hold more than the value, and enumerators what can change.
_IMMUTABLE = frozenset((int, bool, str, bytes, type(None)))


class _NoKeyError(Exception):
    """Something that cannot stand in a key: it could change without the key noticing."""


def run_kernel(kernel: Kernel, args: Sequence[Any], constants: Mapping[str, Any]) -> None:
    """Run a kernel in place on arrays and numbers, specializing and building where that was not done before.

    Parameters
    ----------
    kernel
        The kernel that is called.
    args
        Positional arguments.
    constants
        Keyword arguments: the compile-time constants, and arguments that are passed by name.
    """
    if len(args) != len(kernel.signature.parameters):
        args, constants = kernel.bind(tuple(args), dict(constants))
    try:
        # The id is that of a living kernel, as its entry holds it.
        key: Hashable | None = (
            id(kernel),
            tuple([_signature(argument) for argument in args]),
            tuple([(name, _frozen(value)) for name, value in constants.items()]) if constants else (),
            kernel.captured_state(),
        )
        hash(key)
    except (_NoKeyError, TypeError):
        key = None
    if key is None:
        # Outside of the handler, so that errors of the kernel do not seem to come from it.
        _specialize(kernel, args, constants)(*args)
        return
    try:
        _, executable = _specializations.get(key, lambda: (kernel, _specialize(kernel, args, constants)))
    except CircularError as error:
        raise CaptureError(
            f"kernel {kernel.name} calls itself: it is to run on arrays like those for which it is traced",
            suggestion="call another kernel, or this one with other constants on parts of its parameters",
        ) from error
    executable(*args)


def _specialize(kernel: Kernel, args: Sequence[Any], constants: Mapping[str, Any]) -> Executable:
    from tvm_tile.bridges.tirx.target import resolve_target
    from tvm_tile.semantics.legality import verify

    program = kernel.trace(*map(_traceable, args), **constants)
    verify(program)
    return executable_of(program, resolve_target(_TARGET))


def executable_of(program: Program, target: Target, debug: bool = False) -> Executable:
    """Executable of a verified program, of code that an equal program may have been built to before.

    Names are no part of a program's structure, but of its code: messages and functions show them. Debug
    builds show positions too, and are never shared.

    Raises
    ------
    IllegalError
        The target's options reorder arithmetic that has an order.
    UnsupportedError
        The target has no mapping, or options that change the meaning of code; or no debug builds.
    """
    from tvm_tile.bridges.runtime.artifact import compile_program
    from tvm_tile.bridges.tirx.lower.machine import is_device
    from tvm_tile.bridges.tirx.target_options import check_arithmetic

    check_arithmetic(program, target)
    if debug:
        from tvm_tile.bridges.runtime.debug import DebugExecutable

        if target.kind.name != "llvm":
            raise UnsupportedError(
                f"there are no debug builds for {target.kind.name}",
                suggestion='tt.build(program, "llvm", debug=True), or tt.interpret(..., debug=True)',
            )
        return DebugExecutable(program, compile_program(program, target, debug=True))
    names = (program.name, *(param.name for param in program.params))
    key = (program.structural_hash(), names, str(target))
    if is_device(target):
        from tvm_tile.bridges.runtime.artifact import lower_to_module
        from tvm_tile.bridges.runtime.device import DeviceArtifact, DeviceExecutable

        built = _device_artifacts.get(key, lambda: DeviceArtifact(program, target, lower_to_module))
        return DeviceExecutable(program, built)
    return Executable(program, _artifacts.get(key, lambda: compile_program(program, target)))


def cache_info() -> dict[str, CacheInfo]:
    """Counts of the two caches, ``"specializations"`` and ``"programs"``."""
    return {"specializations": _specializations.info(), "programs": _artifacts.info()}


def cache_clear() -> None:
    """Drop all specializations and generated code; executables in use stay valid."""
    _specializations.clear()
    _artifacts.clear()
    _device_artifacts.clear()


def _signature(argument: Any) -> Hashable:
    """What specialization sees of an argument."""
    kind: type = type(argument)
    if kind is np.ndarray:
        return argument.shape, argument.strides, argument.dtype
    if kind in (int, float, bool) or isinstance(argument, np.generic):
        return kind
    module = kind.__module__
    if module.startswith("torch"):
        try:
            return kind, argument.shape, argument.stride(), argument.dtype
        except RuntimeError:
            # A sparse tensor has no strides.
            raise _NoKeyError from None
    if module.startswith(("tvm.", "tvm_ffi.")) and hasattr(argument, "strides"):
        return kind, argument.shape, argument.strides, argument.dtype
    raise _NoKeyError


def _frozen(value: Any) -> Hashable:
    """A constant as part of a key: equal only for constants that are the same in every way that matters."""
    kind = type(value)
    if kind in _IMMUTABLE or isinstance(value, np.dtype):
        return kind, value
    if kind in (float, complex) or isinstance(value, np.generic):
        # Equal floats may differ: 0.0 and -0.0; and a NaN differs from itself.
        return kind, repr(value)
    if kind in (tuple, list):
        return kind, tuple(map(_frozen, value))
    if kind is dict:
        return dict, tuple((_frozen(key), _frozen(item)) for key, item in value.items())
    if isinstance(value, enum.Enum) and not _has_state(value):
        return kind, value.name, _frozen(value.value)
    if isinstance(value, type) and (
        value.__module__ in ("numpy", "ml_dtypes") or value in _IMMUTABLE | {float, complex}
    ):
        # A dtype by its class. Classes of the user can change.
        return type, value
    raise _NoKeyError


def _has_state(member: enum.Enum) -> bool:
    """Whether an enumerator has attributes of its own, beside those that every one has."""
    return any(not name.startswith("_") for name in vars(member))


def _traceable(argument: Any) -> Any:
    """What to specialize with; an array whose strides are no whole elements runs from a dense copy."""
    if isinstance(argument, np.ndarray) and argument.dtype.itemsize:
        axes = zip(argument.shape, argument.strides, strict=True)
        odd = any(stride % argument.dtype.itemsize for extent, stride in axes if extent > 1)
        if odd and argument.size:
            return np.empty(argument.shape, argument.dtype)
    return argument
