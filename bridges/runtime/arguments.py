"""Matching the arguments of a call with the parameters of a program, with an exact word on what does not fit.

This is the slow way of a call; it inspects every argument and never copies one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_tile.bridges.runtime.dlpack import is_read_only
from tvm_tile.errors import ArgumentError
from tvm_tile.ir.dtypes import bits, canonical_dtype, is_bool, is_float
from tvm_tile.ir.regions import Program
from tvm_tile.ir.values import Memory, Value
from tvm_tile.semantics.torch_tensors import is_torch_tensor, plain_tensor

__all__ = ["Placed", "bind_arguments", "place", "scalar_converter"]

_CPU = 1
_DEVICE_NAMES = {
    2: "cuda",
    3: "cuda_host",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    10: "rocm",
    13: "cuda_managed",
}

#: What Python or NumPy would convert to a number, and no reader would: truth values, text, durations, pairs.
_NO_NUMBERS = (bool, np.bool_, np.flexible, np.complexfloating, np.datetime64, np.timedelta64)

#: Numbers of at least this size round to an infinity in float16.
_HALF_OVERFLOWS = 65520.0


@dataclass(frozen=True)
class Placed:
    """A tensor argument by where its elements are.

    Attributes
    ----------
    memory
        The parameter.
    argument
        What was passed; keeps the memory alive.
    address
        Of the first element, in bytes.
    strides
        In bytes; what they are on axes of extent 1, or if there are no elements, means nothing.
    """

    memory: Memory
    argument: Any
    address: int
    strides: tuple[int, ...]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return bits(self.memory.dtype) // 8

    @property
    def is_empty(self) -> bool:
        """Whether there are no elements."""
        return 0 in self.memory.shape

    @property
    def relevant_strides(self) -> tuple[int, ...]:
        """Strides with those that mean nothing set to 0."""
        if self.is_empty:
            return (0,) * len(self.memory.shape)
        return tuple(s if n > 1 else 0 for n, s in zip(self.memory.shape, self.strides, strict=True))

    @property
    def byte_range(self) -> tuple[int, int]:
        """Addresses ``[low, high)`` between which all elements are."""
        reach = [(n - 1) * s for n, s in zip(self.memory.shape, self.relevant_strides, strict=True)]
        low = self.address + sum(r for r in reach if r < 0)
        return low, self.address + sum(r for r in reach if r > 0) + self.itemsize


def bind_arguments(program: Program, arguments: Sequence[Any]) -> list[Placed | bool | int | float]:
    """Match arguments with parameters, in call order: tensors by their place, scalars as Python numbers.

    Raises
    ------
    ArgumentError
        Names the parameter, what it expects, what it got and a remedy.
    """
    if len(arguments) != len(program.params):
        names = ", ".join(param.name or str(param) for param in program.params)
        raise ArgumentError(
            f"{program.name} takes {len(program.params)} arguments ({names}), got {len(arguments)}",
            suggestion=f"{program.name}({names})",
        )
    written = program.writes
    return [
        scalar_converter(param)(argument)
        if isinstance(param, Value)
        else place(param, argument, param in written)
        for param, argument in zip(program.params, arguments, strict=True)
    ]


def place(memory: Memory, argument: Any, written: bool) -> Placed:
    """Check one tensor argument: kind, device, dtype, shape, strides, and whether it can be written."""
    look = _place_array if isinstance(argument, np.ndarray) else _place_tensor
    placed = look(memory, argument, written)
    expected = tuple(s * placed.itemsize for s in memory.element_strides)
    odd = any(s % placed.itemsize for s in placed.relevant_strides)
    if not odd and placed.relevant_strides != Placed(memory, None, 0, expected).relevant_strides:
        got = tuple(s // placed.itemsize for s in placed.strides)
        raise ArgumentError(
            f"parameter {memory.name} expects strides {memory.element_strides} in elements, got {got}",
            suggestion=_contiguous(memory.name, argument)
            if memory.strides is None
            else f"trace the kernel with this array as {memory.name}",
        )
    return placed


def _contiguous(name: str, argument: Any) -> str:
    return f"{name}.contiguous()" if is_torch_tensor(argument) else f"np.ascontiguousarray({name})"


def _place_array(memory: Memory, array: np.ndarray, written: bool) -> Placed:
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(
            f"parameter {memory.name} got a masked array, whose mask would be ignored",
            suggestion=f"{memory.name}.filled(0)",
        )
    if not array.dtype.isnative:
        raise ArgumentError(
            f"parameter {memory.name} expects {memory.dtype}, got byte-swapped {array.dtype.str}",
            suggestion=f"{memory.name}.astype({memory.dtype!r})",
        )
    _check_dtype(memory, array.dtype)
    _check_shape(memory, array.shape)
    if written and not array.flags.writeable:
        raise ArgumentError(
            f"parameter {memory.name} is written by the program, but the array is read-only",
            suggestion=f"pass a writable array, such as {memory.name}.copy()",
        )
    return Placed(memory, array, array.__array_interface__["data"][0], array.strides)


def _place_tensor(memory: Memory, argument: Any, written: bool) -> Placed:
    import tvm_ffi

    expected = f"a {memory.dtype} array of shape {memory.shape}"
    # A class has the attribute too, but is no tensor.
    if not hasattr(argument, "__dlpack__") or isinstance(argument, type):
        raise ArgumentError(
            f"parameter {memory.name} expects {expected}, got {_describe(argument)}",
            suggestion="pass a NumPy array, a torch CPU tensor or a TVM tensor",
        )
    kind = type(argument).__name__
    exported = argument
    if is_torch_tensor(argument):
        exported = plain_tensor(memory.name, memory.dtype, argument, written=written)
    elif not isinstance(argument, tvm_ffi.Tensor):
        try:
            device_type = int(argument.__dlpack_device__()[0])
        except Exception as error:  # The producer's own, as below.
            raise ArgumentError(
                f"parameter {memory.name} expects {expected}, but the {kind} has no usable device: {error}",
                suggestion="pass it as a NumPy array",
            ) from error
        _check_device(memory, device_type)
        if written and is_read_only(argument):
            raise ArgumentError(
                f"parameter {memory.name} is written by the program, but the {kind} is read-only",
                suggestion="pass a writable array",
            )
    try:
        tensor = exported if isinstance(exported, tvm_ffi.Tensor) else tvm_ffi.from_dlpack(exported)
    except Exception as error:  # The producer's own; libraries differ in what they raise.
        raise ArgumentError(
            f"parameter {memory.name} expects {expected}, but the {kind} does not export its memory: {error}",
            suggestion="pass it as a NumPy array",
        ) from error
    _check_device(memory, int(tensor.device.dlpack_device_type()))
    try:
        dtype = str(tensor.dtype)
    except ValueError:
        # One that TVM has no name for, such as a complex one.
        dtype = str(getattr(argument, "dtype", "a type that TVM does not know")).removeprefix("torch.")
    _check_dtype(memory, dtype)
    _check_shape(memory, tuple(tensor.shape))
    itemsize = bits(memory.dtype) // 8
    return Placed(memory, tensor, tensor.data_ptr(), tuple(s * itemsize for s in tensor.strides))


def _check_device(memory: Memory, device_type: int) -> None:
    if device_type != _CPU:
        name = _DEVICE_NAMES.get(device_type, f"DLPack device {device_type}")
        raise ArgumentError(
            f"parameter {memory.name} expects memory of the CPU, got memory of {name}",
            suggestion="copy it to the CPU first",
        )


def _check_dtype(memory: Memory, dtype: Any) -> None:
    try:
        name = canonical_dtype(dtype)
    except TypeError:
        name = str(dtype)
    if name != memory.dtype:
        raise ArgumentError(
            f"parameter {memory.name} expects dtype {memory.dtype}, got {name}",
            suggestion=f"convert {memory.name} to {memory.dtype}, or trace the kernel with this array",
        )


def _check_shape(memory: Memory, shape: tuple[int, ...]) -> None:
    if len(shape) != len(memory.shape):
        raise ArgumentError(
            f"parameter {memory.name} expects {len(memory.shape)} axes, shape {memory.shape}, "
            f"got {len(shape)}, shape {shape}",
            suggestion="trace the kernel with this array",
        )
    if shape != memory.shape:
        raise ArgumentError(
            f"parameter {memory.name} expects shape {memory.shape}, got {shape}",
            suggestion="trace the kernel with this array",
        )


def scalar_converter(param: Value) -> Callable[[Any], bool | int | float]:
    """Function from an argument for a run-time scalar to the Python number that TVM gets."""
    name, dtype = param.name or str(param), param.dtype

    def refuse(argument: Any) -> ArgumentError:
        return ArgumentError(
            f"parameter {name} expects a {dtype} number, got {_describe(argument)}",
            suggestion=f"{'bool' if is_bool(dtype) else 'float' if is_float(dtype) else 'int'}(...)",
        )

    def to_bool(argument: Any) -> bool:
        if isinstance(argument, (bool, np.bool_)):
            return bool(argument)
        raise refuse(argument)

    def to_float(argument: Any) -> float:
        if isinstance(argument, (int, float, np.generic)) and not isinstance(argument, _NO_NUMBERS):
            try:
                return float(argument)
            except (TypeError, ValueError):
                raise refuse(argument) from None
            except OverflowError:
                # An integer beyond the largest float.
                return math.inf if int(argument) > 0 else -math.inf
        raise refuse(argument)

    def to_half(argument: Any) -> float:
        number = to_float(argument)
        # TVM would round to float32 first. What is beyond the largest half becomes infinite either way.
        return float(np.float16(number)) if abs(number) < _HALF_OVERFLOWS else number

    width = bits(dtype)
    signed = dtype.startswith("int")
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)

    def to_int(argument: Any) -> int:
        if isinstance(argument, _NO_NUMBERS) or not isinstance(argument, (int, np.integer)):
            raise refuse(argument)
        number = int(argument)
        if not low <= number <= high:
            raise ArgumentError(
                f"parameter {name} expects {dtype}, which holds {low} to {high}, got {number}",
                suggestion="pass a number in range, or annotate the parameter with a wider type",
            )
        # TVM passes integers as int64 and casts, so the upper half of uint64 goes by its bits.
        return number - (1 << 64) if number >= 1 << 63 else number

    if is_bool(dtype):
        return to_bool
    if is_float(dtype):
        return to_half if dtype == "float16" else to_float
    return to_int


def _describe(argument: Any) -> str:
    return f"{argument!r:.60} ({type(argument).__name__})"
