"""Scalar functions over the elements of tiles."""

from __future__ import annotations

from typing import Any

from tvm_tile.errors import CaptureError
from tvm_tile.frontend.arithmetic import common_shape
from tvm_tile.frontend.batching import Batching
from tvm_tile.frontend.described import described
from tvm_tile.frontend.index import Index, IndexCompare
from tvm_tile.frontend.operands import (
    adapted,
    broadcast,
    common_dtype,
    is_number,
    is_weak,
    tile_of,
    value_of,
)
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import require_trace
from tvm_tile.frontend.unused import without_unused
from tvm_tile.ir.values import TileType

__all__ = ["map"]


def map(fn: Any, *tiles: Any) -> Any:
    """Apply a function of scalars to each element.

    Parameters
    ----------
    fn : function
        Of one scalar an operand, to a scalar or a tuple of scalars. An ``if`` on them selects: both arms are
        evaluated, and so are both of ``x if condition else y``. It may read values from outside and loop over
        extents that do not depend on the elements, but has no loads and stores.
    *tiles : tile, index or number
        Operands; they broadcast. Numbers take the dtype that the others have together.

    Returns
    -------
    Tile or tuple of Tile
        Of the broadcast shape, one for each value that ``fn`` gives.

    Raises
    ------
    OperandError
        The operands do not broadcast.
    CaptureError
        ``fn`` is no function, gives no scalars, touches memory, or loops as often as an element says.
    """
    trace = require_trace("tt.map")
    span = current_span()
    if not callable(fn) or isinstance(fn, (Tile, Index, IndexCompare)):
        raise CaptureError(
            f"tt.map applies a function, not {described(fn)}",
            span=span,
            suggestion="put the function first: tt.map(lambda a, b: a * b, x, y)",
        )
    if not tiles:
        raise CaptureError(
            "tt.map has no operands", span=span, suggestion="pass tiles: tt.map(lambda a: a * a, x)"
        )
    dtype = common_dtype(*tiles)
    operands = [adapted(tile_of(x), dtype) if is_weak(x) else tile_of(x) for x in tiles]
    shape = common_shape(*operands)
    operands = [broadcast(x, shape) for x in operands]
    from tvm_tile.frontend.runtime import prepared

    with trace.open_scope("map") as scope:
        scalars = tuple(trace.fresh(TileType((), x.dtype)) for x in operands)
        result = prepared(fn)(*(Tile(trace, scalar) for scalar in scalars))
        several = isinstance(result, (tuple, list))
        results = [_scalar(item) for item in (result if several else (result,))]
        yields = [value_of(item) for item in results]
    block = without_unused(scope.block, trace.provisional - {value.id for value in yields})
    batching = Batching(trace, shape, dict(zip(scalars, operands, strict=True)))
    batching.block(block)
    mapped = tuple(broadcast(batching.full(value), shape) for value in yields)
    return mapped if several else mapped[0]


def _scalar(x: Any) -> Tile:
    if isinstance(x, (Tile, Index, IndexCompare)) or is_number(x):
        tile = tile_of(x)
        if tile.shape == ():
            return tile
    raise CaptureError(
        f"the function of tt.map gives {described(x)}, not a scalar",
        span=current_span(),
        suggestion="return a scalar, or a tuple of scalars",
    )
