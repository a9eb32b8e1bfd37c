"""Capture of ``for`` statements: a region's body once, with its carried state; a Python loop as it is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.bodies import Body, Place
from tvm_tile.frontend.carried import UNBOUND, Container, check_containers, containers, same_object, shown
from tvm_tile.frontend.described import described
from tvm_tile.frontend.index import Index, as_predicate
from tvm_tile.frontend.merges import build_merge
from tvm_tile.frontend.operands import adapted, converted, filled, is_number, is_weak, tile_of, value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.regions import Region
from tvm_tile.frontend.tile import Operators, Tile
from tvm_tile.frontend.trace import Scope, Trace
from tvm_tile.frontend.updates import check_updates
from tvm_tile.ir import regions as ir
from tvm_tile.ir.dtypes import is_float, is_integer, is_narrowing
from tvm_tile.ir.index import BoolConst, IndexVar, constant_of
from tvm_tile.ir.reductions import TREES, derive_merge
from tvm_tile.ir.structure import map_values
from tvm_tile.ir.values import TileType, Value

__all__ = ["PythonLoop", "RegionLoop"]

_INDEX = TileType((), "int64")


class PythonLoop:
    """A loop over a Python iterable: it runs during capture."""

    is_region = False

    def __init__(self, iterable: Iterable[Any]) -> None:
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable)


@dataclass(frozen=True)
class _State:
    """A name that the body may carry from one iteration to the next."""

    name: str
    before: Tile | Index
    arg: Value


class RegionLoop:
    """A region loop: it yields its indices once, and closes the region in :meth:`finish`."""

    is_region = True

    def __init__(
        self, trace: Trace, region: Region, body: Body, place: Place, call: Callable[[Any], Any]
    ) -> None:
        self._trace = trace
        self._region = region
        self._body = body
        self._call = call
        self._span = region.span
        self._what = f"the tt.{region.kind} loop at line {body.line}"
        for jump in body.jumps:
            raise CaptureError(
                f"{jump.keyword} inside the body of {self._what}",
                span=jump.span(place.file),
                suggestion=jump.remedy,
            )
        axes = len(region.extents)
        if body.target_count not in (None, axes) and not (body.target_count == 1 and axes > 1):
            raise CaptureError(
                f"{self._what} has {axes} extent{'s' if axes > 1 else ''}, "
                f"but {body.target_count} loop variables",
                span=current_span(),
                suggestion="give one variable an extent",
            )
        self._place = place
        self._scope = Scope(region.kind, trace.scope, self._span)
        self._indices: tuple[Value, ...] = ()
        self._where: Any = None
        self._before: dict[str, Any] = {}
        self._containers: list[Container] = []
        self._states: list[_State] = []
        self._after: dict[str, Any] = {}

    def __iter__(self) -> Iterator[Any]:
        trace = self._trace
        names = self._body.targets if len(self._body.targets) == len(self._region.extents) else ()
        self._indices = tuple(
            trace.fresh(_INDEX, names[k] if names else "", scope=self._scope, span=self._span)
            for k in range(len(self._region.extents))
        )
        indices = tuple(Index(trace, IndexVar(value)) for value in self._indices)
        trace.scope = self._scope
        self._where = self._predicate(indices)
        if len(indices) > 1 and self._body.target_count == 1:
            trace.index_tuples.append((indices, self._domain_remedy()))
        yield indices[0] if len(indices) == 1 else indices

    def _domain_remedy(self) -> str:
        """What is meant by several extents and one variable, where that variable is taken for an index."""
        kind, name, axes = self._region.kind, self._body.targets[0], len(self._region.extents)
        each = ", ".join(f"{name}{k}" for k in range(axes))
        remedy = (
            f"{self._what} has {axes} extents and one variable, {name}, a tuple of {axes} indices: "
            f"name one an extent, for {each} in tt.{kind}(...)"
        )
        match [constant_of(extent) for extent in self._region.extents]:
            case [int(first), int(last)] if first < last:
                remedy += (
                    f"; domains start at 0: for {name} from {first} to {last - 1}, write "
                    f"tt.{kind}({last - first}) and {name} + {first}"
                )
        return remedy

    def _predicate(self, indices: tuple[Index, ...]) -> Any:
        if self._region.where is None:
            return None
        try:
            inspect.signature(self._region.where).bind(*indices)
        except TypeError as error:
            variables = ", ".join(self._body.targets) or "i"
            raise CaptureError(
                f"where= of {self._what} takes other parameters than its {len(indices)} "
                f"ind{'ices' if len(indices) > 1 else 'ex'}: {error}",
                span=self._span,
                suggestion=f"take one index an extent: where=lambda {variables}: ...",
            ) from None
        except ValueError:
            # A built-in function that does not say what it takes.
            pass
        with self._trace.open_scope("merge") as scope:
            result = self._call(self._region.where)(*indices)
        predicate = as_predicate(result)
        if predicate is None or scope.statements:
            raise CaptureError(
                f"where= of {self._what} gives {shown(result)}, which is no comparison of indices",
                span=self._span,
                suggestion="compare indices and integers, joined with & | ~: where=lambda i, j: j <= i",
            )
        return None if predicate == BoolConst(True) else predicate

    def begin(self, env: Mapping[str, Any]) -> tuple[Any, ...]:
        """The values that assigned names have at the start of an iteration."""
        for name, jump in self._body.deletions.items():
            if name in env:
                raise CaptureError(
                    f"del of {name!r}, which is defined outside of {self._what}",
                    span=jump.span(self._place.file),
                    suggestion="leave the name alone; values need no freeing",
                )
        self._containers = containers(
            {n: v for n, v in env.items() if n not in self._body.targets}, self._place.outside
        )
        return tuple(self._begin(name, env.get(name, UNBOUND)) for name in self._body.names)

    def _begin(self, name: str, value: Any) -> Any:
        self._before[name] = value
        trace = self._trace
        if value is UNBOUND:
            line = self._body.first_line.get(name, self._body.line)
            trace.vanished[name] = (
                f"{name!r} is read before its assignment at line {line}; a value of the iteration before "
                f"exists only for names that are assigned before {self._what}"
            )
            trace.seedless[name] = trace.vanished[name]
            return UNBOUND
        if isinstance(value, Tile):
            value_of(value)
            arg = trace.fresh(value.type, name, scope=self._scope, span=value.value.span)
            self._states.append(_State(name, value, arg))
            return Tile(trace, arg)
        if isinstance(value, Index):
            trace.check_index(value.expression)
            arg = trace.fresh(_INDEX, name, scope=self._scope, span=self._span)
            self._states.append(_State(name, value, arg))
            # In a reduction an update is an operation on a state, from which its merge is derived.
            return Tile(trace, arg) if self._region.kind == "reduce" else Index(trace, IndexVar(arg))
        return value

    def end(self, env: Mapping[str, Any]) -> None:
        """Take the values that assigned names have at the end of the iteration."""
        check_containers(
            self._containers, self._what, "is captured once, so other iterations would be lost", self._span
        )
        carried = {state.name for state in self._states}
        for name in self._body.names:
            value = env.get(name, UNBOUND)
            self._after[name] = value
            before = self._before[name]
            if name in carried or before is UNBOUND or same_object(before, value) or name in self._body.local:
                continue
            if value is UNBOUND:
                continue
            self._refuse_python_state(name, before, value)

    def _refuse_python_state(self, name: str, before: Any, after: Any) -> None:
        span = after.value.span if isinstance(after, Tile) else self._span
        if is_number(before):
            dtype = (
                after.dtype
                if isinstance(after, Operators) and hasattr(after, "dtype")
                else (
                    "bool"
                    if isinstance(before, bool)
                    else "float32"
                    if isinstance(before, float)
                    else "int64"
                )
            )
            shape = getattr(after, "shape", ())
            raise CaptureError(
                f"{name!r} is the Python number {described(before)} before {self._what} "
                f"and {shown(after)} after one iteration",
                span=span or self._span,
                suggestion=f'start from a tile: {name} = tt.full({shape}, {described(before)}, "{dtype}")',
            )
        raise CaptureError(
            f"{name!r} holds {shown(before)} before {self._what} and {shown(after)} after one iteration; "
            "only tiles and indices are carried",
            span=span or self._span,
            suggestion="carry tiles in names of their own, and choose tensors by an index",
        )

    def finish(self, env: Mapping[str, Any]) -> tuple[Any, ...]:
        """Close the region; the values that names have after it."""
        trace = self._trace
        changed: list[tuple[_State, Value]] = []
        unchanged: dict[int, _State] = {}
        for state in self._states:
            after = self._next_value(state)
            if after is None or after == state.arg:
                unchanged[state.arg.id] = state
            else:
                changed.append((state, after))
        outer = self._scope.parent
        assert outer is not None
        trace.scope = outer
        inits = tuple(value_of(tile_of(state.before)) for state, _ in changed)
        body, where, yields = self._substituted(unchanged, tuple(value for _, value in changed))
        results = tuple(trace.fresh(state.arg.type, state.name, span=value.span) for state, value in changed)
        fields: dict[str, Any] = {
            "domain": ir.Domain(self._region.extents, where),
            "indices": self._indices,
            "body": body,
            "inits": inits,
            "args": tuple(state.arg for state, _ in changed),
            "yields": yields,
            "results": results,
            "span": self._span,
        }
        trace.append(self._statement(fields))
        after_values: dict[str, Any] = {}
        for (state, _), result in zip(changed, results, strict=True):
            is_tile = isinstance(state.before, Tile)
            after_values[state.name] = Tile(trace, result) if is_tile else Index(trace, IndexVar(result))
        after_values |= {state.name: state.before for state in unchanged.values()}
        return tuple(
            self._after_value(name, after_values) for name in (*self._body.names, *self._body.targets)
        )

    def _next_value(self, state: _State) -> Value | None:
        """A state's value for the next iteration; ``None`` if it has lost its name."""
        after, type = self._after[state.name], state.arg.type
        if after is UNBOUND:
            reason = self._trace.vanished.get(state.name)
            if reason is not None and state.name not in self._body.local:
                raise CaptureError(f"{reason}, but {self._what} carries it", span=self._span)
            return None
        if isinstance(after, Tile):
            if is_weak(after) and after.dtype != type.dtype and is_float(type.dtype):
                after = adapted(after, type.dtype)
            value = value_of(after)
            if value.type == type:
                return value
            is_integer_scalar = value.shape == () and is_integer(value.dtype)
            if (
                isinstance(state.before, Index)
                and is_integer_scalar
                and not is_narrowing(value.dtype, "int64")
            ):
                return value_of(converted(after, "int64"))
        elif isinstance(after, Index) and type == _INDEX:
            return value_of(tile_of(after))
        elif is_number(after) and type.shape == ():
            return value_of(filled(self._trace, (), after, type.dtype))
        elif not isinstance(after, Operators) and not is_number(after):
            raise CaptureError(
                f"{state.name!r} is {shown(state.before)} before {self._what} "
                f"and {shown(after)} after one iteration",
                span=self._span,
                suggestion="keep it a tile of the same shape and dtype",
            )
        span = after.value.span if isinstance(after, Tile) else self._span
        found = after.type if isinstance(after, Tile) else shown(after)
        shape = getattr(after, "shape", ())
        if shape != type.shape:
            remedy = (
                f"keep one shape: start from one of shape {shape}, such as "
                f'{state.name} = tt.zeros({shape}, "{type.dtype}"), or reduce the update to {type.shape}'
            )
        else:
            remedy = f'keep one type: convert with .astype("{type.dtype}"), or start from another'
        raise OperandError(
            f"{state.name!r} is {type} before {self._what} and {found} after one iteration",
            span=span,
            suggestion=remedy,
        )

    def _substituted(
        self, unchanged: dict[int, _State], yields: tuple[Value, ...]
    ) -> tuple[ir.Block, Any, tuple[Value, ...]]:
        """The body with the args of unchanged states replaced by what they stand for."""
        found: dict[int, Value] = {}

        def outside(value: Value) -> Value:
            state = unchanged.get(value.id)
            if state is None:
                return value
            if value.id not in found:
                found[value.id] = value_of(tile_of(state.before))
            return found[value.id]

        if not unchanged:
            return self._scope.block, self._where, yields
        return map_values((self._scope.block, self._where, yields), outside)

    def _statement(self, fields: dict[str, Any]) -> ir.Loop:
        options = self._region.options
        match self._region.kind:
            case "parallel":
                region = ir.Parallel(**fields, **options)
                check_updates(region, self._what)
                return region
            case "serial":
                return ir.Serial(**fields)
            case "pipeline":
                return ir.Pipeline(**fields, **options)
        policy, declared = options["policy"], options["merge"]
        merge = None
        args, indices = fields["args"], fields["indices"]
        if declared is not None:
            states = tuple((arg.name, arg.type) for arg in args)
            merge = build_merge(self._trace, declared, states, indices, self._call)
        elif policy in TREES and args:
            # What a derived merge defines belongs to it alone.
            inside = Scope("merge", self._trace.scope, self._span)
            fresh = functools.partial(self._trace.fresh, scope=inside)
            merge = derive_merge(args, fields["body"], fields["yields"], fresh)
        return ir.Reduce(**fields, policy=policy, merge=merge)

    def _after_value(self, name: str, values: dict[str, Any]) -> Any:
        trace, line = self._trace, self._body.line
        if name in self._body.targets:
            reason = f"{name!r} is a variable of {self._what} and has no value after it"
            trace.vanished[name] = reason
            trace.remedies[reason] = "compute it from the extent, or carry what you need in a name of its own"
            return UNBOUND
        if name in values and self._after[name] is not UNBOUND:
            return values[name]
        before = self._before[name]
        if before is not UNBOUND and same_object(before, self._after[name]):
            return before
        line = self._body.first_line.get(name, line)
        reason = (
            f"{name!r} is assigned at line {line} inside {self._what} and is local to one iteration; "
            "to carry it out, assign it before the loop too"
        )
        trace.vanished[name] = reason
        after = self._after[name]
        if isinstance(after, Tile):
            # A whole tile of each parallel instance is no value after the loop.
            trace.remedies[reason] = (
                f"use {name} inside the loop, or store it to a tensor there (out[i] = {name}); to collect "
                f"parts in a tile, acc = tt.update(acc, i, {name})"
                if self._region.kind == "parallel"
                else f'start from a tile before the loop: {name} = tt.zeros({after.shape}, "{after.dtype}")'
            )
        return UNBOUND
