"""Merges of reduction states, declared or of the language, and their capture as pure functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.described import described
from tvm_tile.frontend.function_merges import check_states, function_of
from tvm_tile.frontend.index import Index
from tvm_tile.frontend.operands import broadcast, converted, filled, is_number, tile_of, value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import Trace
from tvm_tile.ir import regions as ir
from tvm_tile.ir.dtypes import is_float
from tvm_tile.ir.functions import identity_of
from tvm_tile.ir.index import IndexVar
from tvm_tile.ir.ops import Elementwise, Full, Number
from tvm_tile.ir.values import TileType, Value

__all__ = ["ElementMerge", "Merge", "build_merge", "function_merge", "merge_argument", "merge_of_elements"]

#: Name and type of each state.
States = tuple[tuple[str, TileType], ...]


# Its __init__ is written out, so that errors point at the user's line and not into generated code.
@dataclass(frozen=True, eq=False, init=False)
class Merge:
    """How two partial states of a reduction combine, with the laws it obeys.

    A state is a tile, or a tuple of tiles: in a :func:`reduce` loop in the order of their first assignment
    before it, in :func:`reduce_tile` and :func:`scan` one an operand, or what ``lift`` gives.

    Parameters
    ----------
    fn : function of two states
        Left and right partial state to their combination, with tile operations only.
    identity : number, tile, a tuple of them, or a function without parameters that gives such
        The state that combines with any other to that other.
    lift : function, optional
        The state of one contribution: of the loop's indices in a :func:`reduce` loop, where by default it is
        the body run from the identity; of one element of each operand in :func:`reduce_tile` and
        :func:`scan`, where by default the elements are the states.
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
    lift: Callable[..., Any] | None
    associative: bool
    commutative: bool
    exact: bool

    def __init__(
        self,
        fn: Callable[[Any, Any], Any],
        identity: Any,
        lift: Callable[..., Any] | None = None,
        associative: bool = True,
        commutative: bool = False,
        exact: bool = False,
    ) -> None:
        for name, function in (("fn", fn), ("lift", lift)):
            if not callable(function) and not (name == "lift" and function is None):
                raise CaptureError(
                    f"{name}={described(function)} of a merge is no function",
                    span=current_span(),
                    suggestion="tt.Merge(lambda left, right: left + right, 0.0)",
                )
        laws = {"associative": associative, "commutative": commutative, "exact": exact}
        for name, value in {"fn": fn, "identity": identity, "lift": lift, **laws}.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False, init=False)
class ElementMerge(Merge):
    """A merge of the language: its laws are known, its lift takes elements, its identity depends on dtypes.

    :data:`welford` takes one operand to the states count, mean and m2 (sum of squared deviations);
    :data:`logsumexp` one operand to max and sum (of ``exp(x - max)``); :data:`argmax_pair` two operands,
    values and their positions, to value and index. Each has its own documentation.

    Attributes
    ----------
    name
        As it is written, without ``tt.``
    states
        Names of the states.
    operands
        How many operands it takes in :func:`reduce_tile` and :func:`scan`.
    identity_of
        From the dtypes of the states to the identity.
    """

    name: str
    states: tuple[str, ...]
    operands: int
    identity_of: Callable[[tuple[str, ...]], tuple[float | int, ...]]

    def __init__(
        self,
        name: str,
        fn: Callable[[Any, Any], Any],
        identity_of: Callable[[tuple[str, ...]], tuple[float | int, ...]],
        lift: Callable[..., Any] | None,
        *,
        states: tuple[str, ...],
        operands: int,
        doc: str,
        exact: bool = False,
    ) -> None:
        super().__init__(fn, None, lift, commutative=True, exact=exact)
        own = {"name": name, "states": states, "operands": operands, "identity_of": identity_of}
        # Of the instance: it is what a user asks help() for.
        own["__doc__"] = doc
        for field, value in own.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"tt.{self.name}"


def merge_argument(merge: Any) -> Any:
    """A ``merge=`` argument, checked: a :class:`Merge`, or a function of the language that is one.

    Raises
    ------
    CaptureError
        It is neither.
    """
    if not isinstance(merge, Merge) and function_of(merge) is None:
        raise CaptureError(
            f"merge={described(merge)} is no tt.Merge",
            span=current_span(),
            suggestion="tt.Merge(fn, identity), or a function of the language such as tt.max",
        )
    return merge


def build_merge(
    trace: Trace, merge: Any, states: States, indices: tuple[Value, ...], call: Callable[[Any], Any]
) -> ir.Merge:
    """The IR of a merge for the states of a region.

    Parameters
    ----------
    merge
        From :func:`merge_argument`. A merge of the language has no lift here: contributions are the body's.
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
    fn = function_of(merge)
    if fn is not None:
        return _of_function(trace, fn, tuple(type for _, type in states))
    lift = None
    if merge.lift is not None and not isinstance(merge, ElementMerge):

        def lifted(parameters: tuple[Value, ...]) -> Any:
            return call(merge.lift)(*(Index(trace, IndexVar(value)) for value in parameters))

        lift = _lambda(trace, tuple(i.type for i in indices), lifted, "lift", states)
    return _declared(trace, merge, states, lift, call)


def merge_of_elements(
    trace: Trace, merge: Any, elements: tuple[TileType, ...], call: Callable[[Any], Any]
) -> tuple[ir.Merge, tuple[TileType, ...]]:
    """The IR of a merge for elements of operands, and the types of its states.

    Parameters
    ----------
    merge
        From :func:`merge_argument`.
    elements
        Type of one element of each operand, side by side for all fibres.
    call
        Prepares a user's function for a call during capture.

    Raises
    ------
    OperandError
        A function's result does not have the states' types, or there are too many or too few operands.
    CaptureError
        It has another number of states.
    """
    fn = function_of(merge)
    if fn is not None:
        return _of_function(trace, fn, elements), elements
    if isinstance(merge, ElementMerge) and len(elements) != merge.operands:
        raise OperandError(
            f"tt.{merge.name} takes {merge.operands} operand{'s' if merge.operands > 1 else ''}, "
            f"not {len(elements)}",
            span=current_span(),
            suggestion="pass one tile"
            if merge.operands == 1
            else "pass a tile and its positions: (x, tt.broadcast_to(tt.iota(n, 'int32'), x.shape))",
        )
    lift, types = None, elements
    if merge.lift is not None:
        lift = _element_lift(trace, merge, elements, call)
        types = tuple(value.type for value in lift.yields)
    names = (
        merge.states if isinstance(merge, ElementMerge) else tuple(f"state {k}" for k in range(len(types)))
    )
    states = tuple(zip(names, types, strict=False))
    if len(names) != len(types):
        states = tuple((f"state {k}", type) for k, type in enumerate(types))
    return _declared(trace, merge, states, lift, call), types


def _of_function(trace: Trace, fn: str, types: tuple[TileType, ...]) -> ir.Merge:
    for type in types:
        check_states(fn, type.dtype)
    return function_merge(trace, (fn,) * len(types), types)


def function_merge(trace: Trace, functions: tuple[str, ...], types: tuple[TileType, ...]) -> ir.Merge:
    """The merge that combines each state by an elementwise function of its own."""
    span = current_span()
    pairs = list(zip(functions, types, strict=True))
    with trace.open_scope("merge") as scope:
        units = [Full(trace.fresh(t), Number.of(identity_of(fn, t.dtype)), span=span) for fn, t in pairs]
        scope.statements.extend(units)
        identity = ir.Lambda((), scope.block, tuple(unit.result for unit in units))
    with trace.open_scope("merge") as scope:
        left, right = (tuple(trace.fresh(type) for type in types) for _ in range(2))
        joined = [
            Elementwise(trace.fresh(t), fn, (a, b), span=span)
            for (fn, t), a, b in zip(pairs, left, right, strict=True)
        ]
        scope.statements.extend(joined)
        combine = ir.Lambda((*left, *right), scope.block, tuple(op.result for op in joined))
    return ir.Merge(
        combine=combine,
        identity=identity,
        associative=True,
        commutative=True,
        exact=not any(fn in ("add", "multiply") and is_float(t.dtype) for fn, t in pairs),
        provenance="known",
        builtin=functions,
    )


def _declared(
    trace: Trace, merge: Merge, states: States, lift: ir.Lambda | None, call: Callable[[Any], Any]
) -> ir.Merge:
    types = tuple(type for _, type in states)

    def combine(parameters: tuple[Value, ...]) -> Any:
        sides = [Tile(trace, value) for value in parameters]
        left, right = sides[: len(types)], sides[len(types) :]
        return call(merge.fn)(_state(left), _state(right))

    def identity(_: tuple[Value, ...]) -> Any:
        if isinstance(merge, ElementMerge):
            return merge.identity_of(tuple(type.dtype for type in types))
        is_function = callable(merge.identity) and not isinstance(merge.identity, Tile)
        return call(merge.identity)() if is_function else merge.identity

    if isinstance(merge, ElementMerge):
        _check_count(len(merge.states), f"tt.{merge.name} has", states)
    return ir.Merge(
        combine=_lambda(trace, (*types, *types), combine, "fn", states),
        identity=_lambda(trace, (), identity, "identity", states),
        lift=lift,
        associative=merge.associative,
        commutative=merge.commutative,
        exact=merge.exact,
        provenance="known" if isinstance(merge, ElementMerge) else "declared",
    )


def _state(tiles: list[Tile]) -> Any:
    return tiles[0] if len(tiles) == 1 else tuple(tiles)


def _check_count(count: int, what: str, states: States) -> None:
    if count != len(states):
        names = ", ".join(name for name, _ in states)
        raise CaptureError(
            f"{what} {count} states for the {len(states)} of the reduction ({names})",
            span=current_span(),
            suggestion="give one value a state, in the order of their first assignment before the loop",
        )


def _lambda(
    trace: Trace,
    parameters: tuple[TileType, ...],
    run: Callable[[tuple[Value, ...]], Any],
    part: str,
    states: States,
) -> ir.Lambda:
    with trace.open_scope("merge") as scope:
        values = tuple(trace.fresh(type) for type in parameters)
        result = run(values)
        items = result if isinstance(result, (tuple, list)) else (result,)
        _check_count(len(items), f"{part} of a merge gives", states)
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
            f"{part} of a merge gives {tile.type} for {name!r}, which is {type}",
            span=current_span(),
            suggestion=f'give it the state\'s shape and dtype, such as .astype("{type.dtype}")',
        )
    return value_of(tile)


def _element_lift(
    trace: Trace, merge: Merge, elements: tuple[TileType, ...], call: Callable[[Any], Any]
) -> ir.Lambda:
    """The lift of elements; numbers that it gives take the dtype of the first operand."""
    assert merge.lift is not None
    with trace.open_scope("merge") as scope:
        values = tuple(trace.fresh(type) for type in elements)
        result = call(merge.lift)(*(Tile(trace, value) for value in values))
        items = result if isinstance(result, (tuple, list)) else (result,)
        first = elements[0]
        yields = tuple(
            filled(trace, first.shape, item, first.dtype)
            if is_number(item)
            else broadcast(tile_of(item), first.shape)
            for item in items
        )
        return ir.Lambda(values, scope.block, tuple(map(value_of, yields)))
