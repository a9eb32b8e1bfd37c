"""Explicit memory, atomic updates of views, and addresses for opaque functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvm_tile.errors import IllegalError
from tvm_tile.ir.dtypes import bits, numpy_dtype
from tvm_tile.ir.ops import View
from tvm_tile.ir.span import Span
from tvm_tile.ir.values import Memory, Value
from tvm_tile.semantics.elementwise import apply_elementwise
from tvm_tile.semantics.rounding import Array
from tvm_tile.semantics.views import Window, part_of, window_of

__all__ = ["address_of", "allocate", "update_window"]

#: Every byte of memory that nothing was stored to: NaN in most float formats, a large odd number in integers.
_POISON = 0x7F


def allocate(memory: Memory) -> Array:
    """A new array for an explicit memory, with its strides; a layout is placement and means nothing here."""
    if 0 in memory.shape:
        return np.zeros(memory.shape, numpy_dtype(memory.dtype))
    size = 1 + sum((n - 1) * step for n, step in zip(memory.shape, memory.element_strides, strict=True))
    width = bits(memory.dtype) // 8
    poison = np.full(size * width, 1 if memory.dtype == "bool" else _POISON, np.uint8)
    steps = tuple(step * width for step in memory.element_strides)
    # NumPy strides the words of an element type that is foreign to it, such as float8.
    words = np.lib.stride_tricks.as_strided(poison.view(f"u{width}"), memory.shape, steps)
    return words.view(numpy_dtype(memory.dtype))


def update_window(array: Array, window: Window, value: Array, fn: str, mask: Array | None) -> Array:
    """Combine a value into a view in place.

    Returns
    -------
    Array
        What the view held before; lanes out of bounds or masked off are left alone and give 0.
    """
    old = np.zeros(window.shape, array.dtype)
    if window.empty:
        return old
    target = part_of(array, window.memory)
    selected = np.True_ if mask is None else part_of(mask, window.lanes)
    np.copyto(part_of(old, window.lanes), target, where=selected)
    np.copyto(target, apply_elementwise(fn, target, part_of(value, window.lanes)), where=selected)
    return old


def address_of(array: Array, view: View, integer: Callable[[Value], int], span: Span | None) -> int:
    """Address of the first element of a view.

    Raises
    ------
    IllegalError
        The element is out of bounds.
    """
    window = window_of(array.shape, view.subscripts, integer)
    element = window.element((0,) * len(window.shape))
    if not all(0 <= c < n for c, n in zip(element, array.shape, strict=True)):
        raise IllegalError(
            f"element {element} of {view.memory.name} is passed to a C function, but is outside of its "
            f"extents {array.shape}",
            span=span,
            obligation="bounds",
            suggestion="pass the address of an element in bounds",
        )
    return int(array.__array_interface__["data"][0]) + sum(
        c * step for c, step in zip(element, array.strides, strict=True)
    )
