"""Capture of ``if`` statements: both arms under a tile's truth value, one arm under a Python value."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from tvm_tile.errors import CaptureError, TileError
from tvm_tile.frontend.arithmetic import apply
from tvm_tile.frontend.bodies import Body, Place
from tvm_tile.frontend.carried import UNBOUND, Container, check_containers, containers, same_object, shown
from tvm_tile.frontend.described import described
from tvm_tile.frontend.index import Index, IndexCompare
from tvm_tile.frontend.operands import (
    adapted,
    common_dtype,
    converted,
    filled,
    is_number,
    is_weak,
    tile_of,
    value_of,
)
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import Scope, Trace
from tvm_tile.ir import regions as ir
from tvm_tile.ir.dtypes import is_float
from tvm_tile.ir.values import Value

__all__ = ["PYTHON_BRANCHES", "Choice", "PythonBranch", "TileBranch"]


class PythonBranch:
    """A branch on a Python value: it is taken during capture."""

    is_tile = False

    def __init__(self, truth: bool) -> None:
        self.then = truth
        self.orelse = not truth


PYTHON_BRANCHES = {truth: PythonBranch(truth) for truth in (False, True)}


class Choice:
    """A conditional expression: on a Python value it takes one side, on a scalar it selects."""

    def __init__(self, condition: Any) -> None:
        self._condition = condition

    def takes(self, side: bool) -> bool:
        """Whether a side is evaluated."""
        return not isinstance(self._condition, bool) or self._condition == side

    def of(self, then: Any, orelse: Any) -> Any:
        """The value."""
        if isinstance(self._condition, bool):
            return then if self._condition else orelse
        if isinstance(then, tuple) and isinstance(orelse, tuple) and len(then) == len(orelse):
            return tuple(self.of(a, b) for a, b in zip(then, orelse, strict=True))
        return apply("where", self._condition, then, orelse)


class TileBranch:
    """A branch of the program: both arms are captured."""

    is_tile = True
    then = True
    orelse = True

    def __init__(self, trace: Trace, condition: Tile | IndexCompare, body: Body, place: Place) -> None:
        self._trace = trace
        self._span = current_span()
        self._body = body
        self._place = place
        self._what = f"the branch at line {body.line}"
        for jump in body.jumps:
            raise CaptureError(
                f"{jump.keyword} inside {self._what}, whose condition is known only when the program runs",
                span=jump.span(place.file),
                suggestion="assign in both arms and go on after the branch",
            )
        if isinstance(condition, Tile) and condition.type.shape != ():
            raise CaptureError(
                f"{self._what} needs a bool scalar, not {condition._describe()}",
                span=self._span,
                suggestion="select elements with tt.where, or reduce with tt.any or tt.all",
            )
        if condition.dtype != "bool":
            raise CaptureError(
                f"{self._what} needs a bool scalar, not {condition._describe()}",
                span=self._span,
                suggestion="compare it: x != 0",
            )
        self._condition = value_of(tile_of(condition))
        self._arms = (Scope("branch", trace.scope, self._span), Scope("branch", trace.scope, self._span))
        self._before: dict[str, Any] = {}
        self._after_then: dict[str, Any] = {}
        self._containers: list[Container] = []

    def open(self, env: Mapping[str, Any]) -> None:
        """Begin the first arm."""
        for name, jump in self._body.deletions.items():
            if name in env:
                raise CaptureError(
                    f"del of {name!r}, which is defined outside of {self._what}",
                    span=jump.span(self._place.file),
                    suggestion="leave the name alone; values need no freeing",
                )
        self._before = {name: env.get(name, UNBOUND) for name in self._body.names}
        self._containers = containers(env, self._place.outside)
        self._trace.scope = self._arms[0]

    def switch(self, env: Mapping[str, Any]) -> tuple[Any, ...]:
        """Begin the second arm, from the values that names had before the branch."""
        self._after_then = {name: env.get(name, UNBOUND) for name in self._body.names}
        self._trace.scope = self._arms[1]
        return tuple(self._before.values())

    def close(self, env: Mapping[str, Any]) -> tuple[Any, ...]:
        """End the second arm; the values that names have after the branch."""
        check_containers(
            self._containers, self._what, "both arms are captured, one after the other", self._span
        )
        trace, outer = self._trace, self._arms[0].parent
        assert outer is not None
        joined = {
            name: self._join(name, self._after_then[name], env.get(name, UNBOUND))
            for name in self._body.names
        }
        trace.scope = outer
        values: dict[str, Any] = {}
        results, then_yields, else_yields = [], [], []
        for name, value in joined.items():
            if not isinstance(value, tuple):
                values[name] = value[0] if isinstance(value, list) else value
                continue
            then, orelse = value
            result = trace.fresh(then.type, name, span=self._span)
            results.append(result)
            then_yields.append(then)
            else_yields.append(orelse)
            tile = Tile(trace, result)
            both = (self._after_then[name], env.get(name))
            if is_float(result.dtype) and all(map(is_weak, both)):
                tile.weak = functools.partial(converted, Tile(trace, result))
            values[name] = tile
        then_block, else_block = (arm.block for arm in self._arms)
        if results or then_block.statements or else_block.statements:
            trace.append(
                ir.If(
                    self._condition,
                    then_block,
                    else_block,
                    tuple(then_yields),
                    tuple(else_yields),
                    tuple(results),
                    span=self._span,
                )
            )
        return tuple(values.values())

    def _join(self, name: str, then: Any, orelse: Any) -> Any:
        """Both arms' values to yield as a pair, or in a list the one object that both have."""
        if then is UNBOUND and orelse is UNBOUND:
            return UNBOUND
        line = self._body.first_line.get(name, self._body.line)
        if then is UNBOUND or orelse is UNBOUND:
            self._trace.vanished[name] = (
                f"{name!r} is assigned at line {line} in one arm of {self._what} only; "
                "assign it in both, or before"
            )
            return UNBOUND
        if same_object(then, orelse):
            return [then]
        numbers = is_number(then) and is_number(orelse)
        if numbers or not all(
            isinstance(x, (Tile, Index, IndexCompare)) or is_number(x) for x in (then, orelse)
        ):
            reason = (
                f"{name!r} is {shown(then)} in one arm of {self._what} and {shown(orelse)} in the other; "
                "only tiles join"
            )
            self._trace.vanished[name] = reason
            if numbers:
                before = self._before.get(name, UNBOUND)
                start = before if is_number(before) else then
                dtype = "bool" if isinstance(start, bool) else "float32"
                dtype = "int32" if all(type(n) is int for n in (then, orelse)) else dtype
                self._trace.remedies[reason] = (
                    f"start from a tile before the branch: {name} = tt.full((), {described(start)}, "
                    f'"{dtype}")'
                )
            else:
                self._trace.remedies[reason] = (
                    f"give {name} a tile in both arms, or select with tt.where outside of the branch"
                )
            return UNBOUND
        return self._join_tiles(name, then, orelse)

    def _join_tiles(self, name: str, then: Any, orelse: Any) -> Any:
        try:
            values = self._yields(then, orelse)
        except TileError as error:
            self._trace.vanished[name] = f"{name!r} has no common type after {self._what}: {error.message}"
            return UNBOUND
        if values[0].type != values[1].type:
            self._trace.vanished[name] = (
                f"{name!r} is {values[0].type} in one arm of {self._what} and {values[1].type} in the other; "
                "give it one shape and dtype"
            )
            return UNBOUND
        return values

    def _yields(self, then: Any, orelse: Any) -> tuple[Value, Value]:
        weak = [isinstance(x, Index) or is_number(x) for x in (then, orelse)]
        sides = []
        for arm, x, other in zip(self._arms, (then, orelse), (orelse, then), strict=True):
            self._trace.scope = arm
            if isinstance(x, Tile) and is_weak(x) and isinstance(other, Tile) and is_float(other.dtype):
                sides.append(value_of(adapted(x, other.dtype)))
            elif not any(weak) or not (isinstance(x, Index) or is_number(x)):
                sides.append(value_of(tile_of(x)))
            elif all(weak):
                sides.append(value_of(tile_of(x, common_dtype(then, orelse))))
            elif is_number(x):
                sides.append(value_of(filled(self._trace, other.shape, x, other.dtype)))
            else:
                sides.append(value_of(converted(tile_of(x), other.dtype)))
        return sides[0], sides[1]
