"""Reductions of tiles with any merge, and scans: all prefixes of a reduction."""

from __future__ import annotations

from typing import Any

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.arithmetic import common_shape
from tvm_tile.frontend.described import described
from tvm_tile.frontend.elementwise import add, maximum
from tvm_tile.frontend.function_merges import function_of
from tvm_tile.frontend.merges import ElementMerge, merge_argument, merge_of_elements
from tvm_tile.frontend.operands import broadcast, converted, dtype_argument, tile_of, value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.reductions import check_policy_name, contribution_mask, reduced_axes
from tvm_tile.frontend.shape import normalized_axis, reshaped
from tvm_tile.frontend.stores import storable
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import Trace
from tvm_tile.ir.dtypes import accumulation_dtype, is_bool, is_float, is_narrowing
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.typing import reduced_shape
from tvm_tile.ir.values import TileType, Value

__all__ = ["cummax", "cumsum", "reduce_tile", "scan"]

_SCAN_POLICIES = ("ordered_tree", "fold_left")


def reduce_tile(
    x: Any, axis: Any, merge: Any, policy: str = "unordered_tree", seed: Any = None, where: Any = None
) -> Any:
    """Reduce tiles over axes with a merge.

    Parameters
    ----------
    x : tile or tuple of tiles
        Contributions; several operands broadcast to one shape.
    axis : int, sequence of int or None
        Axes to reduce, ``None`` for all. A fibre runs through them in their order, the last one fastest.
    merge : Merge or function
        A :class:`Merge`, whose functions work on tiles of the shape of ``x`` without the axes: all fibres
        side by side. Or a function of the language, such as :func:`max` or :func:`add`, for each operand by
        itself; sums and products then have the dtypes of :func:`sum`. Merges of the language with several
        states are :data:`welford` (count, mean, m2), :data:`logsumexp` (max, sum) and :data:`argmax_pair`
        (value, index; of two operands).
    policy : {"unordered_tree", "ordered_tree", "fold_left", "fold_right"}
        Which groupings and orders are admitted.
    seed : number, tile, or a tuple of them, optional
        One a state: joins once, on the left.
    where : bool tile, optional
        Broadcasts to ``x``; contributions where it is false are omitted.

    Returns
    -------
    Tile or tuple of Tile
        The states. An empty fibre gives the seed, or else the identity.

    Raises
    ------
    OperandError
        Shapes, dtypes or the number of operands do not fit.
    CaptureError
        ``merge`` is none, or its functions give other states than they take.
    """
    check_policy_name(policy)
    tiles, fn = _operands(x, merge)
    axes = reduced_axes(tiles[0], axis)
    mask = None if where is None else contribution_mask(tiles[0], where)
    if not axes:
        # Each element is a fibre of its own.
        axes = (tiles[0].ndim,)
        tiles = [reshaped(tile, (*tile.shape, 1)) for tile in tiles]
        mask = None if mask is None else reshaped(mask, tiles[0].shape)
    working = _widened(tiles, fn)
    trace = tiles[0].trace
    fibres = reduced_shape(tiles[0].shape, axes, False)
    elements = tuple(TileType(fibres, tile.dtype) for tile in working)
    built, states = merge_of_elements(trace, merge, elements, _prepared)
    outputs = trace.emit_all(
        MergeReduce,
        states,
        operands=tuple(map(value_of, working)),
        axes=axes,
        merge=built,
        policy=policy,
        seeds=_seeds(seed, states),
        where=None if mask is None else value_of(mask),
    )
    return _states(_results(outputs, tiles, fn), merge, trace)


def scan(
    x: Any, axis: int, merge: Any, exclusive: bool = False, seed: Any = None, policy: str = "ordered_tree"
) -> Any:
    """All prefixes of a reduction along one axis; contributions are never permuted.

    Parameters
    ----------
    x, merge
        As for :func:`reduce_tile`.
    axis : int
        Axis to go along.
    exclusive : bool
        Position ``i`` holds the combination of the contributions before ``i``, not up to it.
    seed : number, tile, or a tuple of them, optional
        One a state, of the shape of ``x`` without the axis: joins every prefix on the left.
    policy : {"ordered_tree", "fold_left"}
        Whether contributions may be regrouped.

    Returns
    -------
    Tile or tuple of Tile
        The states, each of the shape of ``x``.

    Raises
    ------
    OperandError
        Shapes, dtypes or the number of operands do not fit.
    CaptureError
        ``merge`` is none, its functions give other states than they take, or the policy permutes.
    """
    if not isinstance(policy, str) or policy not in _SCAN_POLICIES:
        raise CaptureError(
            f"policy={described(policy)} of a scan is not one of {', '.join(_SCAN_POLICIES)}",
            span=current_span(),
            suggestion="leave it out for the default, ordered_tree; a scan never permutes",
        )
    tiles, fn = _operands(x, merge)
    return _scanned(
        tiles, normalized_axis(axis, tiles[0].ndim, tiles[0]._describe()), merge, exclusive, seed, policy, fn
    )


def cumsum(x: Any, axis: Any = None, dtype: Any = None) -> Tile:
    """Running sums along an axis, as :func:`numpy.cumsum` gives them.

    Parameters
    ----------
    x : tile
        Contributions.
    axis : int, optional
        Axis to go along; by default the flattened tile.
    dtype : optional
        Dtype of the result. By default ``x``'s; ``int32`` for int8 and int16, ``int64`` for bool. float16 and
        bfloat16 accumulate in float32, and each sum is rounded once.

    Returns
    -------
    Tile
        Of the shape of ``x``, or of one axis without ``axis``. From a NaN on all sums are NaN.

    Raises
    ------
    OperandError
        The axis does not exist, or the dtype would narrow.
    """
    tile, along = _line(x, axis)
    if dtype is None:
        result: Tile = scan(tile, along, add)
        return result
    wanted = dtype_argument(dtype)
    if is_bool(tile.dtype):
        tile = converted(tile, "int64" if is_bool(wanted) else wanted)
    if is_float(wanted) != is_float(tile.dtype):
        # As in NumPy, contributions are converted first.
        tile = converted(tile, wanted)
    working = accumulation_dtype(wanted)
    if is_narrowing(tile.dtype, working):
        raise OperandError(
            f"sums of {tile._describe()} in {working} would narrow it",
            span=current_span(),
            suggestion=f'convert it first with .astype("{wanted}")',
        )
    summed: Tile = scan(converted(tile, working), along, add)
    return converted(summed, wanted)


def cummax(x: Any, axis: Any = None) -> Tile:
    """Running maxima along an axis, as ``numpy.maximum.accumulate`` gives them; from a NaN on all are NaN.

    Parameters
    ----------
    x : tile
        Elements to compare.
    axis : int, optional
        Axis to go along; by default the flattened tile.

    Raises
    ------
    OperandError
        The axis does not exist.
    """
    tile, along = _line(x, axis)
    result: Tile = scan(tile, along, maximum)
    return result


def _line(x: Any, axis: Any) -> tuple[Tile, int]:
    tile = tile_of(x)
    if axis is None:
        return reshaped(tile, (tile.size,)), 0
    return tile, normalized_axis(axis, tile.ndim, tile._describe())


def _operands(x: Any, merge: Any) -> tuple[list[Tile], str | None]:
    """The operands in one shape, and the function if the merge is one."""
    merge_argument(merge)
    tiles = [tile_of(part) for part in (x if isinstance(x, (tuple, list)) else (x,))]
    if not tiles:
        raise OperandError("there is no operand", span=current_span(), suggestion="give one tile at least")
    shape = common_shape(*tiles)
    return [broadcast(tile, shape) for tile in tiles], function_of(merge)


def _scanned(
    tiles: list[Tile], axis: int, merge: Any, exclusive: bool, seed: Any, policy: str, fn: str | None
) -> Any:
    working = _widened(tiles, fn)
    trace, shape = tiles[0].trace, tiles[0].shape
    fibres = reduced_shape(shape, (axis,), False)
    built, states = merge_of_elements(
        trace, merge, tuple(TileType(fibres, tile.dtype) for tile in working), _prepared
    )
    outputs = trace.emit_all(
        Scan,
        tuple(TileType(shape, state.dtype) for state in states),
        operands=tuple(map(value_of, working)),
        axis=axis,
        merge=built,
        exclusive=bool(exclusive),
        policy=policy,
        seeds=_seeds(seed, states),
    )
    return _states(_results(outputs, tiles, fn), merge, trace)


def _widened(tiles: list[Tile], fn: str | None) -> list[Tile]:
    """Contributions in the dtypes in which sums and products accumulate; others as they are."""
    if fn not in ("add", "multiply"):
        return tiles
    return [converted(t, "int64" if is_bool(t.dtype) else accumulation_dtype(t.dtype)) for t in tiles]


def _results(outputs: tuple[Tile, ...], tiles: list[Tile], fn: str | None) -> Any:
    """Sums and products of 16-bit floats rounded to their own dtype, once."""
    if fn in ("add", "multiply"):
        outputs = tuple(
            converted(out, tile.dtype) if is_float(tile.dtype) else out
            for out, tile in zip(outputs, tiles, strict=True)
        )
    return outputs[0] if len(outputs) == 1 else outputs


def _states(results: Any, merge: Any, trace: Trace) -> Any:
    """The results, remembered by the names of their states, for errors where they are taken for one tile."""
    if isinstance(results, tuple):
        names = tuple(f"s{k}" for k in range(len(results)))
        trace.state_tuples.append((results, merge.states if isinstance(merge, ElementMerge) else names))
    return results


def _seeds(seed: Any, states: tuple[TileType, ...]) -> tuple[Value, ...]:
    if seed is None:
        return ()
    parts = tuple(seed) if isinstance(seed, (tuple, list)) else (seed,)
    if len(parts) != len(states):
        raise OperandError(
            f"{len(parts)} seeds for {len(states)} states",
            span=current_span(),
            suggestion="give one value a state, in a tuple",
        )
    return tuple(
        value_of(storable(part, state.shape, state.dtype, f"state {k}"))
        for k, (part, state) in enumerate(zip(parts, states, strict=True))
    )


def _prepared(function: Any) -> Any:
    # The runtime of rewritten functions knows the merges; it is looked up at the first use.
    from tvm_tile.frontend.runtime import prepared

    return prepared(function)
