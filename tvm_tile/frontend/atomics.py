"""Atomic updates of memory: read, combine and write as one step."""

from __future__ import annotations

from typing import Any

from tvm_tile.errors import OperandError
from tvm_tile.frontend.operands import value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.shape import reshaped
from tvm_tile.frontend.stores import storable
from tvm_tile.frontend.tensor import ref_of
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import require_trace
from tvm_tile.ir.dtypes import STORAGE_ONLY, is_bool
from tvm_tile.ir.ops import Atomic
from tvm_tile.ir.values import TileType

__all__ = ["atomic_add", "atomic_max", "atomic_min"]


def atomic_add(ref: Any, value: Any, mask: Any = None) -> Tile:
    """Add to each element of a part of memory, once an instance and in any order between instances.

    Parameters
    ----------
    ref : ref
        ``A.at[idx]``, or a tensor without axes.
    value : tile, index or number
        Broadcasts to the part; it is widened to its dtype but never narrowed. Integer sums wrap.
    mask : bool tile, optional
        Broadcasts to the part; elements where it is false, or out of bounds, are left alone.

    Returns
    -------
    Tile
        What was there before, of the part's shape and dtype; 0 where nothing was written.

    Raises
    ------
    CaptureError
        ``ref`` is a value, such as ``A[idx]``.
    OperandError
        The value would be narrowed or does not broadcast, or the memory holds bool or float8.
    """
    return _atomic("add", "tt.atomic_add", ref, value, mask)


def atomic_max(ref: Any, value: Any, mask: Any = None) -> Tile:
    """Raise each element of a part of memory to a value, as one step; NaN propagates.

    Parameters, result and errors are those of :func:`atomic_add`.
    """
    return _atomic("maximum", "tt.atomic_max", ref, value, mask)


def atomic_min(ref: Any, value: Any, mask: Any = None) -> Tile:
    """Lower each element of a part of memory to a value, as one step; NaN propagates.

    Parameters, result and errors are those of :func:`atomic_add`.
    """
    return _atomic("minimum", "tt.atomic_min", ref, value, mask)


def _atomic(fn: str, what: str, ref: Any, value: Any, mask: Any) -> Tile:
    trace = require_trace(what)
    part = ref_of(ref, what)
    if is_bool(part.dtype) or part.dtype in STORAGE_ONLY:
        raise OperandError(
            f"{what} does not take {part.dtype}, the dtype of {part.tensor._describe()}",
            span=current_span(),
            suggestion="keep what is updated in an int32 or float32 tensor",
        )
    given = storable(value, part.shape, part.dtype, part.tensor._describe())
    found = trace.emit(
        Atomic,
        TileType(part.view.shape, part.dtype),
        view=part.view,
        value=value_of(reshaped(given, part.view.shape)),
        fn=fn,
        mask=part.mask_value(mask),
    )
    return reshaped(found, part.shape)
