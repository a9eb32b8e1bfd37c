"""Reading and writing rectangular views with lanes that may lie out of bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tvm_tile.ir.index import (
    And,
    BoolConst,
    Comparison,
    IndexBinary,
    IndexConst,
    IndexExpr,
    IndexVar,
    Not,
    Or,
    Predicate,
    apply_integer,
    compare_integers,
)
from tvm_tile.ir.ops import Point, Subscript
from tvm_tile.ir.values import Value
from tvm_tile.semantics.rounding import Array

__all__ = [
    "Window",
    "evaluate_index",
    "evaluate_predicate",
    "part_of",
    "read_window",
    "window_of",
    "write_window",
]

ValueOf = Callable[[Value], int]


def evaluate_index(expression: IndexExpr, value_of: ValueOf) -> int:
    """The exact integer an index expression has when its values are known."""
    match expression:
        case IndexConst(value):
            return value
        case IndexVar(value):
            return value_of(value)
        case IndexBinary(op, a, b):
            return apply_integer(op, evaluate_index(a, value_of), evaluate_index(b, value_of))


def evaluate_predicate(predicate: Predicate, value_of: ValueOf) -> bool:
    """The truth of a predicate when its values are known."""
    match predicate:
        case BoolConst(value):
            return value
        case Comparison(op, a, b):
            return compare_integers(op, evaluate_index(a, value_of), evaluate_index(b, value_of))
        case And(a, b):
            return evaluate_predicate(a, value_of) and evaluate_predicate(b, value_of)
        case Or(a, b):
            return evaluate_predicate(a, value_of) or evaluate_predicate(b, value_of)
        case Not(a):
            return not evaluate_predicate(a, value_of)


@dataclass(frozen=True)
class Window:
    """The part of a view that lies in bounds.

    Lanes of one axis are an arithmetic progression, so those in bounds are an interval, and basic
    slicing reaches them on both sides.

    Attributes
    ----------
    shape
        Shape of the whole view.
    memory
        Index into the memory: an int or a slice an axis.
    lanes
        Index into the view: a slice for each axis it keeps.
    complete
        Whether every lane is in bounds.
    empty
        Whether no lane is.
    starts, steps
        Of each axis of the memory; a dropped axis has step 0.
    """

    shape: tuple[int, ...]
    memory: tuple[int | slice, ...]
    lanes: tuple[slice, ...]
    complete: bool
    empty: bool
    starts: tuple[int, ...]
    steps: tuple[int, ...]

    def element(self, lane: tuple[int, ...]) -> tuple[int, ...]:
        """Coordinates in the memory of a lane of the view, in bounds or not."""
        kept = iter(lane)
        return tuple(
            start if isinstance(index, int) else start + step * next(kept)
            for index, start, step in zip(self.memory, self.starts, self.steps, strict=True)
        )


def window_of(shape: tuple[int, ...], subscripts: tuple[Subscript, ...], value_of: ValueOf) -> Window:
    """Resolve subscripts on an array of a shape."""
    memory: list[int | slice] = []
    lanes: list[slice] = []
    view_shape: list[int] = []
    starts: list[int] = []
    steps: list[int] = []
    complete, empty = True, False
    for extent, subscript in zip(shape, subscripts, strict=True):
        if isinstance(subscript, Point):
            index = evaluate_index(subscript.index, value_of)
            if not 0 <= index < extent:
                complete, empty = False, True
            memory.append(index)
            starts.append(index)
            steps.append(0)
            continue
        start, size, step = evaluate_index(subscript.start, value_of), subscript.size, subscript.step
        low, high = _lanes_in_bounds(start, size, step, extent)
        complete = complete and high - low == size
        empty = empty or low == high
        memory.append(_progression(start + low * step, high - low, step))
        lanes.append(slice(low, high))
        view_shape.append(size)
        starts.append(start)
        steps.append(step)
    return Window(
        tuple(view_shape), tuple(memory), tuple(lanes), complete, empty, tuple(starts), tuple(steps)
    )


def _lanes_in_bounds(start: int, size: int, step: int, extent: int) -> tuple[int, int]:
    """Half-open interval of the lanes ``l`` with ``0 <= start + l * step < extent``."""
    if step > 0:
        low, high = max(0, -(start // step)), min(size, (extent - 1 - start) // step + 1)
    else:
        low, high = max(0, -((extent - 1 - start) // -step)), min(size, start // -step + 1)
    return (low, high) if low < high else (0, 0)


def _progression(first: int, count: int, step: int) -> slice:
    if count == 0:
        return slice(0, 0)
    stop = first + count * step
    return slice(first, stop if stop >= 0 else None, step)


def part_of(array: Array, index: tuple[int | slice, ...]) -> Array:
    """Basic indexing that gives a view of the array, of a single element too."""
    return array[(*index, Ellipsis)]


def read_window(array: Array, window: Window, fill: Array, mask: Array | None = None) -> Array:
    """A snapshot of a view; lanes out of bounds or masked off hold ``fill``, a scalar of the dtype."""
    if window.complete:
        snapshot = part_of(array, window.memory).copy()
    else:
        snapshot = np.full(window.shape, fill, array.dtype)
        if not window.empty:
            part_of(snapshot, window.lanes)[...] = part_of(array, window.memory)
    if snapshot.dtype == np.bool_:
        # A byte that is neither 0 nor 1 is true; NumPy would hand it on as it is.
        snapshot = snapshot.view(np.uint8) != 0
    return snapshot if mask is None else np.where(mask, snapshot, fill)


def write_window(array: Array, window: Window, value: Array, mask: Array | None = None) -> None:
    """Write a view in place; lanes out of bounds or masked off are dropped."""
    if window.empty:
        return
    target, part = part_of(array, window.memory), part_of(value, window.lanes)
    if mask is None:
        target[...] = part
    else:
        np.copyto(target, part, where=part_of(mask, window.lanes))
