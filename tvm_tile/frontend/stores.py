"""What a store takes: values that fit the part of memory in shape, and its dtype without narrowing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm_tile.errors import OperandError
from tvm_tile.frontend.described import described
from tvm_tile.frontend.index import Index, IndexCompare
from tvm_tile.frontend.operands import adapted, broadcast, converted, filled, is_number, is_weak, tile_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.tile import Operators, Tile
from tvm_tile.frontend.trace import require_trace
from tvm_tile.ir.dtypes import is_bool, is_float, is_integer, is_narrowing
from tvm_tile.ir.typing import TypeFault, broadcast_shapes

__all__ = ["storable"]


def storable(x: Any, shape: tuple[int, ...], dtype: str, into: str) -> Tile:
    """A value for memory, or for a state, of a shape and dtype: broadcast, and widened but never narrowed.

    Raises
    ------
    OperandError
        It would be narrowed, or does not broadcast.
    """
    if isinstance(x, Operators):
        _check_fits(x, shape, into)
    if isinstance(x, Index):
        return (
            broadcast(converted(tile_of(x), dtype), shape)
            if not is_bool(dtype)
            else _narrowed(x, "int64", dtype, into)
        )
    if is_number(x) and not isinstance(x, (np.generic, np.ndarray)):
        if isinstance(x, float) and not is_float(dtype):
            return _narrowed(x, "float64", dtype, into)
        if is_integer(_weak_dtype(x)) and is_bool(dtype):
            return _narrowed(x, "int64", dtype, into)
        return filled(require_trace("a tile operation"), shape, x, dtype)
    tile = tile_of(x)
    if is_weak(tile) and (is_float(dtype) or (is_integer(dtype) and is_integer(tile.dtype))):
        return broadcast(adapted(tile, dtype), shape)
    if is_narrowing(tile.dtype, dtype):
        return _narrowed(tile, tile.dtype, dtype, into)
    return broadcast(converted(tile, dtype), shape)


def _check_fits(x: Operators, shape: tuple[int, ...], into: str) -> None:
    given: tuple[int, ...] = x.shape if isinstance(x, (Tile, Index, IndexCompare)) else ()
    try:
        if broadcast_shapes(given, shape) == shape:
            return
    except TypeFault:
        pass
    differing = [
        f"{n} and {m}" for n, m in zip(reversed(given), reversed(shape), strict=False) if n not in (1, m)
    ]
    name = into.split("'")[1] if "'" in into else "Y"
    if len(given) > len(shape) and not shape:
        remedy = f"store it to as many elements, such as {name}[tt.ds(start, {given[0]})] = ..., or reduce it"
    elif differing:
        remedy = f"take as many elements on both sides: sizes {', '.join(reversed(differing))} differ"
    else:
        remedy = "store it to a part with as many axes, or reshape it"
    raise OperandError(
        f"{x._describe()} of shape {given} does not fit the part of shape {shape} of {into}",
        span=current_span(),
        suggestion=remedy,
    )


def _weak_dtype(x: Any) -> str:
    return "bool" if isinstance(x, bool) else "float64" if isinstance(x, float) else "int64"


def _narrowed(x: Any, source: str, dtype: str, into: str) -> Tile:
    what = described(x)
    remedy = f'convert it explicitly with .astype("{dtype}")'
    if not isinstance(x, (Operators, np.generic, np.ndarray)):
        # A number of Python has no astype.
        if is_bool(dtype):
            remedy = "write True or False"
        elif isinstance(x, float) and math.isfinite(x):
            remedy = f"write an int, such as {int(x)}"
        else:
            remedy = f'write a number that {dtype} holds, or store to a tensor of dtype "{source}"'
    raise OperandError(
        f"{what} has dtype {source}, which {into} of dtype {dtype} cannot hold without narrowing",
        span=current_span(),
        suggestion=remedy,
    )
