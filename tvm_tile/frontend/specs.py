"""Arguments as a capture sees them: shapes, dtypes and strides of arrays, and annotations of scalars."""

from __future__ import annotations

import difflib
import operator
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_tile.errors import ArgumentError, TileError
from tvm_tile.frontend.described import described
from tvm_tile.frontend.positions import current_span
from tvm_tile.ir.dtypes import (
    DTYPES,
    STORAGE_ONLY,
    canonical_dtype,
    is_bool,
    is_float,
    is_integer,
    numpy_dtype,
)
from tvm_tile.ir.op_rules import LARGEST_SIZE, memory_fault
from tvm_tile.ir.values import Memory

__all__ = ["Scalar", "Spec", "check_scalar", "memory_of", "scalar_dtype", "spec"]


@dataclass(frozen=True)
class Spec:
    """Shape, dtype and strides of a tensor argument, without data.

    Attributes
    ----------
    strides
        In elements; ``None`` for dense row-major.
    """

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None


def spec(shape: Any, dtype: Any, strides: Any = None) -> Spec:
    """Stand in for an array in :meth:`Kernel.trace`.

    Parameters
    ----------
    shape : int or sequence of int
        Extents, in elements.
    dtype
        Name, NumPy dtype or type, or torch dtype.
    strides : sequence of int, optional
        Distance along each axis, in elements; by default dense row-major.

    Raises
    ------
    ArgumentError
        An extent is negative or no int, the dtype is unknown, or the strides do not fit the shape.
    """
    extents = _ints(shape, "shape")
    if any(n < 0 for n in extents):
        raise ArgumentError(f"shape {extents} has a negative extent", suggestion="use extents of 0 or more")
    steps = None if strides is None else _ints(strides, "strides")
    if steps is not None and len(steps) != len(extents):
        raise ArgumentError(
            f"strides {steps} for shape {extents}", suggestion="give one stride an axis, in elements"
        )
    return Spec(extents, _dtype(dtype, "a spec"), steps)


def _ints(items: Any, what: str) -> tuple[int, ...]:
    try:
        given = tuple(items) if hasattr(items, "__iter__") else (items,)
        return tuple(operator.index(item) for item in given)
    except TypeError:
        raise ArgumentError(
            f"{what} {described(items, 80)} is no sequence of ints", suggestion="such as (64, 32)"
        ) from None


def _dtype(dtype: Any, what: str) -> str:
    try:
        return canonical_dtype(dtype)
    except TypeError as error:
        near = difflib.get_close_matches(dtype if isinstance(dtype, str) else described(dtype), DTYPES, 1)
        remedy = f'did you mean "{near[0]}"?' if near else "convert it with astype"
        raise ArgumentError(f"{what}: {error}", suggestion=remedy) from None


class Scalar:
    """Annotation of a run-time scalar parameter: ``def k(X, alpha: tt.Scalar["float32"])``.

    Attributes
    ----------
    dtype
        Its element type.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = _scalar_dtype(dtype)

    def __class_getitem__(cls, dtype: Any) -> Scalar:
        return cls(dtype)

    def __repr__(self) -> str:
        return f'Scalar["{self.dtype}"]'


def _scalar_dtype(dtype: Any) -> str:
    known = ", ".join(name for name in DTYPES if name not in STORAGE_ONLY)
    try:
        # NumPy takes None for float64.
        name = "" if dtype is None else canonical_dtype(dtype)
    except TypeError:
        name = ""
    if not name or name in STORAGE_ONLY:
        raise ArgumentError(
            f"a tt.Scalar has one of the dtypes {known}, not {described(dtype)}",
            span=current_span(),
            suggestion=f'such as tt.Scalar["{_close(dtype, known)}"]',
        )
    return name


def _close(dtype: Any, known: str) -> str:
    near = difflib.get_close_matches(
        dtype if isinstance(dtype, str) else described(dtype), known.split(", "), 1
    )
    return near[0] if near else "float32"


_WRITTEN = re.compile(r"""(?:\w+\s*\.\s*)*Scalar(?:\s*\[\s*["']?([\w.]+)["']?\s*\])?""")


def scalar_dtype(annotation: Any, namespace: dict[str, Any]) -> str | None:
    """The dtype of a parameter annotated as a :class:`Scalar`; ``None`` for other parameters.

    Parameters
    ----------
    annotation
        An object, or text under ``from __future__ import annotations``.
    namespace
        Names that the text may use.

    Raises
    ------
    ArgumentError
        The dtype is unknown, or not given.
    """
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, dict(namespace))
        except TileError:
            raise
        except Exception:  # Whatever the user's own text raises.
            # Names of an enclosing function are not in reach; the spelling still tells.
            written = _WRITTEN.fullmatch(annotation.strip())
            if written is None:
                return None
            annotation = Scalar if written[1] is None else Scalar(written[1])
    if annotation is Scalar:
        raise ArgumentError("a tt.Scalar needs a dtype", suggestion='annotate it tt.Scalar["float32"]')
    return annotation.dtype if isinstance(annotation, Scalar) else None


def memory_of(name: str, argument: Any) -> Memory:
    """The tensor parameter that an argument stands for.

    Parameters
    ----------
    name
        Of the parameter.
    argument
        A :class:`Spec`, or an array: NumPy, torch, TVM or anything with ``shape``, ``dtype`` and DLPack.

    Raises
    ------
    ArgumentError
        It is no array, or one of an element type or layout that kernels cannot address.
    """
    if isinstance(argument, Spec):
        shape, dtype, strides = argument.shape, argument.dtype, argument.strides
    elif isinstance(argument, np.ndarray):
        shape, dtype, strides = _numpy(name, argument)
    elif (
        hasattr(argument, "shape")
        and hasattr(argument, "dtype")
        # NumPy's scalars, and the classes themselves, have the attributes without being arrays.
        and not isinstance(argument, (np.generic, type))
    ):
        shape, dtype, strides = _foreign(name, argument)
    else:
        remedy = "pass a NumPy array, a torch or TVM tensor, or tt.spec(shape, dtype)"
        if isinstance(argument, (bool, int, float, np.bool_, np.integer, np.floating)):
            kind = np.result_type(argument).kind
            scalar = "bool" if kind == "b" else "float32" if kind == "f" else "int64"
            remedy = (
                f'annotate it {name}: tt.Scalar["{scalar}"] for a run-time scalar, or make it keyword-only '
                f"(*, {name}) for a compile-time constant"
            )
        raise ArgumentError(
            f"argument {name} is no array but {type(argument).__name__} {described(argument)}",
            suggestion=remedy,
        )
    memory = Memory(name, shape, dtype, Memory.dense_or_strides(shape, strides))
    problem = memory_fault(memory)
    if problem is not None:
        raise ArgumentError(f"argument {name}: {problem}", suggestion=f"keep it below {LARGEST_SIZE} bytes")
    return memory


def _foreign(name: str, argument: Any) -> tuple[tuple[int, ...], str, tuple[int, ...] | None]:
    """Shape, dtype and strides of an array of another library."""
    known = isinstance(argument.dtype, (str, np.dtype, type))
    dtype = _dtype(argument.dtype if known else str(argument.dtype), f"argument {name}")
    try:
        shape = tuple(int(n) for n in argument.shape)
        return shape, dtype, _strides(name, argument, dtype)
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        # A sparse tensor has no strides, a symbolic one no numbers.
        raise ArgumentError(
            f"argument {name}, a {type(argument).__name__}, does not tell its shape and strides: {error}",
            suggestion="pass a NumPy array, or tt.spec(shape, dtype)",
        ) from error


def _numpy(name: str, array: np.ndarray[Any, Any]) -> tuple[tuple[int, ...], str, tuple[int, ...]]:
    if array.dtype.names is not None or array.dtype.hasobject:
        raise ArgumentError(
            f"argument {name} has dtype {array.dtype}, which is no number",
            suggestion="pass one array a field"
            if array.dtype.names is not None
            else f"convert it to numbers: {name}.astype(numpy.float32)",
        )
    if not array.dtype.isnative:
        raise ArgumentError(
            f"argument {name} has dtype {array.dtype.str}, whose byte order is not this machine's",
            suggestion=f"convert it: {name}.astype({name}.dtype.newbyteorder('='))",
        )
    dtype = _dtype(array.dtype, f"argument {name}")
    return array.shape, dtype, _in_elements(name, array.shape, array.strides, array.itemsize)


def _strides(name: str, argument: Any, dtype: str) -> tuple[int, ...] | None:
    """Strides in elements, or ``None`` for dense row-major."""
    if callable(getattr(argument, "stride", None)):
        return tuple(int(s) for s in argument.stride())
    for protocol in ("__array_interface__", "__cuda_array_interface__"):
        interface = getattr(argument, protocol, None)
        if isinstance(interface, dict):
            given = interface.get("strides")
            if given is None:
                return None
            return _in_elements(name, tuple(argument.shape), tuple(given), numpy_dtype(dtype).itemsize)
    # As in DLPack, the unit of all that speak no array interface is the element.
    given = getattr(argument, "strides", None)
    return None if given is None or callable(given) else tuple(int(s) for s in given)


def _in_elements(
    name: str, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, ...]:
    observed = [s for n, s in zip(shape, strides, strict=True) if n > 1]
    if 0 not in shape and any(s % itemsize for s in observed):
        raise ArgumentError(
            f"argument {name} has strides of {strides} bytes, no multiples of its {itemsize}-byte elements",
            suggestion=f"copy it: {name}.copy()",
        )
    return tuple(s // itemsize for s in strides)


def check_scalar(name: str, argument: Any, dtype: str) -> None:
    """Refuse an argument that a run-time scalar parameter cannot take.

    Raises
    ------
    ArgumentError
        It is no number, or not one of the dtype.
    """
    if isinstance(argument, Spec):
        fits = argument.shape == () and argument.dtype == dtype
    else:
        value = (
            argument.item()
            if isinstance(argument, (np.generic, np.ndarray)) and np.ndim(argument) == 0
            else argument
        )
        if is_bool(dtype):
            fits = isinstance(value, bool)
        elif is_float(dtype):
            fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        else:
            assert is_integer(dtype)
            info = np.iinfo(numpy_dtype(dtype))
            fits = isinstance(value, int) and not isinstance(value, bool) and info.min <= value <= info.max
    if not fits:
        raise ArgumentError(
            f"argument {name} is {described(argument)}, which is no {dtype} scalar",
            suggestion=f"pass a number that {dtype} holds",
        )
