"""Declared merges of reduction states, and their capture as pure functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.index import Index
from tvm_tile.frontend.operands import converted, filled, is_number, tile_of, value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import Trace
from tvm_tile.ir import regions as ir
from tvm_tile.ir.index import IndexVar
from tvm_tile.ir.values import TileType, Value

__all__ = ["Merge", "build_merge"]


@dataclass(frozen=True, eq=False)
class Merge:
    """How two partial states of a reduction combine, with the laws it obeys.

    A state is a tile, or a tuple of tiles in the order of their first assignment before the loop.

    Parameters
    ----------
    fn : function of two states
        Left and right partial state to their combination, with tile operations only.
    identity : number, tile, a tuple of them, or a function without parameters that gives such
        The state that combines with any other to that other.
    lift : function of the loop's indices, optional
        The state of one contribution. By default the loop's body run from the identity.
    associative, commutative, exact : bool
        Laws: regrouping and permuting are admitted by the first two; ``exact`` says that they hold without
        rounding.

    Raises
    ------
    CaptureError
        ``fn`` or ``lift`` is no function.
    """

    fn: Callable[[Any, Any], Any]
    identity: Any
    lift: Callable[..., Any] | None = None
    associative: bool = True
    commutative: bool = False
    exact: bool = False

    def __post_init__(self) -> None:
        for name, function in (("fn", self.fn), ("lift", self.lift)):
            if not callable(function) and not (name == "lift" and function is None):
                raise CaptureError(
                    f"{name}={function!r:.60} of a merge is no function",
                    span=current_span(),
                    suggestion="tt.Merge(lambda left, right: left + right, 0.0)",
                )


def build_merge(
    trace: Trace,
    merge: Merge,
    states: tuple[tuple[str, TileType], ...],
    indices: tuple[Value, ...],
    call: Callable[[Any], Any],
) -> ir.Merge:
    """The IR of a declared merge for the states of a region.

    Parameters
    ----------
    states
        Names and types of the states.
    indices
        The region's coordinates.
    call
        Prepares a user's function for a call during capture.

    Raises
    ------
    OperandError
        A function's result does not have the states' types.
    CaptureError
        It has another number of states.
    """
    types = tuple(type for _, type in states)

    def combine(parameters: tuple[Value, ...]) -> Any:
        sides = [Tile(trace, value) for value in parameters]
        left, right = sides[: len(types)], sides[len(types) :]
        return call(merge.fn)(_state(left), _state(right))

    def lifted(parameters: tuple[Value, ...]) -> Any:
        assert merge.lift is not None
        return call(merge.lift)(*(Index(trace, IndexVar(value)) for value in parameters))

    def identity(_: tuple[Value, ...]) -> Any:
        is_function = callable(merge.identity) and not isinstance(merge.identity, Tile)
        return call(merge.identity)() if is_function else merge.identity

    return ir.Merge(
        combine=_lambda(trace, (*types, *types), combine, "fn", states),
        identity=_lambda(trace, (), identity, "identity", states),
        lift=None
        if merge.lift is None
        else _lambda(trace, tuple(i.type for i in indices), lifted, "lift", states),
        associative=merge.associative,
        commutative=merge.commutative,
        exact=merge.exact,
    )


def _state(tiles: list[Tile]) -> Any:
    return tiles[0] if len(tiles) == 1 else tuple(tiles)


def _lambda(
    trace: Trace,
    parameters: tuple[TileType, ...],
    run: Callable[[tuple[Value, ...]], Any],
    part: str,
    states: tuple[tuple[str, TileType], ...],
) -> ir.Lambda:
    with trace.open_scope("merge") as scope:
        values = tuple(trace.fresh(type) for type in parameters)
        result = run(values)
        items = result if isinstance(result, (tuple, list)) else (result,)
        names = ", ".join(name for name, _ in states)
        if len(items) != len(states):
            raise CaptureError(
                f"{part} of a merge gives {len(items)} states for the {len(states)} of the loop ({names})",
                span=current_span(),
                suggestion="give one value a state, in the order of their first assignment before the loop",
            )
        yields = tuple(
            _as_state(trace, item, name, type, part) for item, (name, type) in zip(items, states, strict=True)
        )
        return ir.Lambda(values, scope.block, yields)


def _as_state(trace: Trace, item: Any, name: str, type: TileType, part: str) -> Value:
    if is_number(item):
        return value_of(filled(trace, type.shape, item, type.dtype))
    tile = converted(tile_of(item), "int64") if isinstance(item, Index) else tile_of(item)
    if tile.type != type:
        raise OperandError(
            f"{part} of a merge gives {tile.type} for state {name!r}, which is {type}",
            span=current_span(),
            suggestion=f'give it the state\'s shape and dtype, such as .astype("{type.dtype}")',
        )
    return value_of(tile)
