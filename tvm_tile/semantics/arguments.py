"""Arguments of a reference run: arrays viewed without a copy, run-time scalars, and which arrays alias."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_tile.errors import ArgumentError
from tvm_tile.ir.dtypes import FLOATS, STORAGE_ONLY, is_bool, is_float, is_integer, numpy_dtype
from tvm_tile.ir.regions import Program
from tvm_tile.ir.values import Memory, Value
from tvm_tile.semantics.rounding import Array, cast
from tvm_tile.semantics.sharing import share_an_element
from tvm_tile.semantics.torch_tensors import is_torch_tensor, plain_tensor

__all__ = ["Arguments", "bind_arguments"]


@dataclass(frozen=True)
class Arguments:
    """Checked arguments of one call.

    Attributes
    ----------
    arrays
        From tensor parameter names to arrays that share memory with the caller's.
    scalars
        From ids of scalar parameters to 0-d arrays of their dtype.
    aliases
        Names that were passed the very same array, where the program writes one of them.
    """

    arrays: dict[str, Array]
    scalars: dict[int, Array]
    aliases: tuple[frozenset[str], ...]


def bind_arguments(program: Program, given: Sequence[Any]) -> Arguments:
    """Match arguments with parameters, in call order.

    Raises
    ------
    ArgumentError
        Wrong number of arguments; or an argument of wrong kind, shape or dtype, not writable though the
        program writes it, not viewable without a copy, or overlapping another one that is not identical
        while one of them is written.
    """
    if len(given) != len(program.params):
        names = ", ".join(p.name or str(p) for p in program.params)
        raise ArgumentError(
            f"{program.name} takes {len(program.params)} arguments ({names}), not {len(given)}",
            suggestion=f"pass one array or number each for {names}; constants are in the program already",
        )
    written = {memory.name for memory in program.writes}
    arrays: dict[str, Array] = {}
    scalars: dict[int, Array] = {}
    for param, argument in zip(program.params, given, strict=True):
        if isinstance(param, Value):
            scalars[param.id] = _scalar(param, argument)
        else:
            arrays[param.name] = _tensor(param, argument, written=param.name in written)
    return Arguments(arrays, scalars, _aliases(arrays, written))


def _scalar(param: Value, argument: Any) -> Array:
    name, dtype = param.name or str(param), param.dtype
    if isinstance(argument, np.ndarray) and argument.ndim == 0:
        argument = argument[()]
    if is_bool(dtype) and isinstance(argument, (bool, np.bool_)):
        return np.asarray(bool(argument))
    if is_float(dtype) and _is_real(argument):
        try:
            return cast(np.asarray(float(argument)), dtype)
        except OverflowError:
            raise ArgumentError(
                f"argument {name} expects {dtype}, which does not hold {argument}",
                suggestion=f"pass a number that {dtype} holds, or annotate {name} with a wider dtype",
            ) from None
    if is_integer(dtype) and isinstance(argument, numbers.Integral) and not isinstance(argument, bool):
        info = np.iinfo(numpy_dtype(dtype))
        if not info.min <= int(argument) <= info.max:
            raise ArgumentError(
                f"argument {name} expects {dtype}, which does not hold {argument}",
                suggestion=f"pass a number from {info.min} to {info.max}, or give {name} a wider dtype",
            )
        return np.asarray(int(argument), dtype=numpy_dtype(dtype))
    raise ArgumentError(
        f"argument {name} expects a {dtype} scalar, got {argument!r} ({type(argument).__name__})",
        suggestion=f"pass a Python number or numpy.{dtype}",
    )


def _is_real(argument: Any) -> bool:
    """Whether it is a real number: of Python, of NumPy or of ``ml_dtypes``, but no truth value."""
    if isinstance(argument, numbers.Real):
        return not isinstance(argument, bool)
    return isinstance(argument, np.generic) and str(argument.dtype) in (*FLOATS, *STORAGE_ONLY)


def _tensor(param: Memory, argument: Any, *, written: bool) -> Array:
    array = _view_of(param, argument, written=written)
    if array.shape != param.shape:
        raise ArgumentError(
            f"argument {param.name} expects shape {param.shape}, got {array.shape}",
            suggestion=f"pass an array of shape {param.shape}, or trace the kernel for {array.shape}",
        )
    if array.dtype != numpy_dtype(param.dtype):
        raise ArgumentError(
            f"argument {param.name} expects dtype {param.dtype}, got {array.dtype}",
            suggestion=f"convert it with {param.name}.astype({param.dtype!r}), or trace the kernel for it",
        )
    if written:
        if not array.flags.writeable:
            raise ArgumentError(
                f"argument {param.name} is written by {param.name}[...] = ..., but the array is read-only",
                suggestion="pass a writable array",
            )
        if _overlaps_itself(array):
            raise ArgumentError(
                f"argument {param.name} is written, but elements of the array share memory "
                f"(shape {array.shape}, strides {array.strides} bytes)",
                suggestion=f"pass {param.name}.copy()",
            )
    return array


def _view_of(param: Memory, argument: Any, *, written: bool) -> Array:
    if isinstance(argument, np.ma.MaskedArray):
        raise ArgumentError(
            f"argument {param.name} is a masked array, whose mask would be ignored",
            suggestion=f"{param.name}.filled(0)",
        )
    if isinstance(argument, np.ndarray):
        return argument.view(np.ndarray)
    expected = f"a {param.dtype} array of shape {param.shape}"
    if not hasattr(argument, "__dlpack__"):
        raise ArgumentError(
            f"argument {param.name} expects {expected}, got {argument!r:.80} ({type(argument).__name__})",
            suggestion="pass a NumPy array, or an object with __dlpack__ in CPU memory",
        )
    if is_torch_tensor(argument):
        argument = plain_tensor(param.name, param.dtype, argument, written=written)
    try:
        view = np.from_dlpack(argument)
    except (RuntimeError, BufferError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"argument {param.name} expects {expected}; NumPy cannot view the given "
            f"{type(argument).__name__} without a copy: {error}",
            suggestion="pass it as a NumPy array in CPU memory",
        ) from error
    if written and not view.flags.writeable and hasattr(argument, "__array__"):
        # DLPack before version 1.0 cannot say that a tensor is writable, so NumPy assumes it is not.
        direct = np.asarray(argument)
        if direct.flags.writeable and _same_place(direct, view):
            return direct
    return view


def _same_place(a: Array, b: Array) -> bool:
    """Whether two arrays are the same elements at the same addresses."""
    if a.shape != b.shape or a.dtype != b.dtype or a.ctypes.data != b.ctypes.data:
        return False
    return all(n == 1 or s == t for n, s, t in zip(a.shape, a.strides, b.strides, strict=True))


def _overlaps_itself(array: Array) -> bool:
    """Whether two elements of an array share bytes."""
    if array.size == 0:
        return False
    reach = array.itemsize
    axes = [(abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1]
    for stride, extent in sorted(axes):
        if stride < reach:
            break
        reach += stride * (extent - 1)
    else:
        return False
    # Axes interleave; look at the addresses themselves.
    addresses = np.zeros((), np.int64)
    for stride, extent in zip(array.strides, array.shape, strict=True):
        addresses = np.add.outer(addresses, np.arange(extent) * stride)
    return bool((np.diff(np.sort(addresses, axis=None)) < array.itemsize).any())


def _aliases(arrays: dict[str, Array], written: set[str]) -> tuple[frozenset[str], ...]:
    groups: list[set[str]] = []
    names = list(arrays)
    for k, b in enumerate(names):
        for a in names[:k]:
            if not (a in written or b in written) or not np.may_share_memory(arrays[a], arrays[b]):
                continue
            if _same_place(arrays[a], arrays[b]):
                group = next((g for g in groups if a in g or b in g), None)
                if group is None:
                    groups.append({a, b})
                else:
                    group |= {a, b}
            elif share_an_element(arrays[a], arrays[b]) is not False:
                # What takes too long to decide counts as an overlap.
                raise ArgumentError(
                    f"arguments {a} and {b} overlap without being the same array, and "
                    f"{a if a in written else b} is written",
                    obligation="noninterference",
                    suggestion=f"pass a copy of {a if a not in written else b}, or the same array for both",
                )
    return tuple(frozenset(group) for group in groups)
