"""Order along the last axis: sorted rows, the largest elements, the position of the largest."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.order import highest, lowest
from tvm_tile.contrib.kernels.rows import block_width, row_block, row_extents, row_index

__all__ = ["argmax", "sort", "topk"]


@tt.kernel
def sort(X: Any, Y: Any, indices: Any) -> None:
    """Each row in ascending order, and where its elements come from: ``Y[..., i] = X[..., indices[..., i]]``.

    A row is one tile, filled up to a power of two, that a bitonic network sorts (Batcher, Sorting networks
    and their applications, 1968): stage ``s`` merges runs of ``2**s`` elements that alternate in direction,
    in rounds that exchange partners ``2**s, ..., 2, 1`` apart.

    Parameters
    ----------
    X
        Shape ``(..., D)``; floats or integers.
    Y
        Output, same shape and dtype; may be the same array.
    indices
        Output, same shape, an integer dtype.

    Notes
    -----
    Stable: equal elements, -0.0 and 0.0 among them, keep their order. NaNs come last, in their order.
    """
    assert X.shape == Y.shape == indices.shape, (
        f"X {X.shape}, Y {Y.shape} and indices {indices.shape} must have one shape"
    )
    assert X.dtype == Y.dtype, f"X is {X.dtype}, Y is {Y.dtype}"
    assert "int" in indices.dtype, f"indices are {indices.dtype}, not integers"
    rows, D = row_extents(X), X.shape[-1]
    stages = max(0, D - 1).bit_length()
    size = 1 << stages
    lane = tt.iota(size, "int32")
    for row in tt.parallel(*rows):
        at = row_block(X, row, 0, size)
        # What fills the tile up has the last positions, and no element comes after it.
        key = X.at[at].load(fill=float("nan") if "float" in X.dtype else highest(X.dtype))
        position = lane
        for stage in tt.serial(stages):
            for done in tt.serial(stage + 1):
                partner = lane ^ (1 << tt.cast(stage - done, "int32"))
                other, place = tt.gather(key, partner), tt.gather(position, partner)
                first = _above(other, key) | (~_above(key, other) & (position < place))
                rising = (lane >> tt.cast(stage + 1, "int32")) & 1 == 0
                keep = first == (rising == (lane < partner))
                key, position = tt.where(keep, key, other), tt.where(keep, position, place)
        Y[at] = key
        indices[at] = position.astype(indices.dtype)


@tt.kernel
def topk(X: Any, values: Any, indices: Any, *, k: int, block: int = 32) -> None:
    """The ``k`` largest elements of each row, largest first, and their positions.

    The best so far are carried over blocks of the row, in order; an element of a block that beats the least
    of them enters at its place. Few do, once the first blocks are through.

    Parameters
    ----------
    X
        Shape ``(..., D)``; floats or integers.
    values
        Output, shape ``(..., k)``, same dtype.
    indices
        Output, shape ``(..., k)``, an integer dtype.
    k
        How many; at most ``D``.
    block
        Elements of a row that are handled at a time.

    Notes
    -----
    Equal elements go by the smaller position. NaN counts as the largest, as in torch.
    """
    rows, D = row_extents(X), X.shape[-1]
    assert 0 <= k <= D, f"k={k} of rows of {D} elements"
    assert values.shape == indices.shape == (*X.shape[:-1], k), (
        f"values {values.shape} and indices {indices.shape} must have shape {(*X.shape[:-1], k)}"
    )
    assert X.dtype == values.dtype, f"X is {X.dtype}, values are {values.dtype}"
    assert "int" in indices.dtype, f"indices are {indices.dtype}, not integers"
    width = block_width(X, block)
    slot, lane = tt.iota(k, "int32"), tt.iota(width, "int32")
    for row in tt.parallel(*rows):
        best = tt.zeros((k,), X.dtype)
        chosen = tt.full((k,), -1, "int32")
        for j in tt.serial(tt.cdiv(D, width)):
            x = X[row_block(X, row, j, width)]
            position = tt.cast(j * width, "int32") + lane
            waiting = (chosen[k - 1] < 0) | _above(x, best[k - 1])
            waiting = waiting & (position < D)
            for _ in tt.serial(tt.sum(waiting)):
                first = tt.min(tt.where(waiting, lane, width))
                beaten = (chosen < 0) | _above(x[first], best)
                place = tt.sum((~beaten).astype("int32"))
                # Those that it beats move down by one, and it takes the place before them.
                best = tt.where(beaten, tt.gather(best, slot - 1), best)
                chosen = tt.where(beaten, tt.gather(chosen, slot - 1), chosen)
                best = tt.where(slot == place, x[first], best)
                chosen = tt.where(slot == place, position[first], chosen)
                waiting = waiting & (lane != first)
        at = row_block(X, row, 0, k)
        values[at] = best
        indices[at] = chosen.astype(indices.dtype)


def _above(a: Any, b: Any) -> Any:
    """Whether ``a`` is larger than ``b``, where NaN is larger than every number."""
    return (a > b) | (tt.isnan(a) & ~tt.isnan(b))


@tt.kernel
def argmax(X: Any, Y: Any, *, lanes: int = 128) -> None:
    """Position of the first largest element of each row.

    Each lane finds the first largest of every ``lanes``-th element; what they hold is compared at the end.

    Parameters
    ----------
    X
        Shape ``(..., D)`` with ``D > 0``; floats or integers.
    Y
        Output, shape ``(...)``; an integer dtype, such as int32.
    lanes
        Elements of a row that are handled at a time.

    Notes
    -----
    The first NaN wins, else the first of the largest, as in ``numpy.argmax``.
    """
    rows, D = row_extents(X), X.shape[-1]
    assert Y.shape == X.shape[:-1], f"Y has shape {Y.shape}, X has rows {X.shape[:-1]}"
    assert "int" in Y.dtype, f"Y is {Y.dtype}, not an integer dtype"
    assert D > 0, f"the empty rows of X {X.shape} have no largest element"
    width = block_width(X, lanes)
    least = lowest(X.dtype)
    for row in tt.parallel(*rows):
        best = X[row_block(X, row, 0, width)]
        turn = tt.zeros((width,), "int32")
        for j in tt.serial(tt.cdiv(D, width)):
            x = X.at[row_block(X, row, j, width)].load(fill=least)
            larger = _above(x, best)
            best = tt.where(larger, x, best)
            turn = tt.where(larger, tt.cast(j, "int32"), turn)
        position = turn.astype("int64") * width + tt.iota(width, "int64")
        # If the maximum is NaN nothing equals it.
        winners = (best == tt.max(best)) | tt.isnan(best)
        Y[row_index(X, row)] = tt.min(position, where=winners).astype(Y.dtype)
