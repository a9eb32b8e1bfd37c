"""What rewritten functions call while they are captured."""

from __future__ import annotations

from typing import Any

from tvm_tile.errors import CaptureError
from tvm_tile.frontend.bodies import Body, Place
from tvm_tile.frontend.branches import PYTHON_BRANCHES, Choice, PythonBranch, TileBranch
from tvm_tile.frontend.carried import UNBOUND
from tvm_tile.frontend.convert import callable_for_capture
from tvm_tile.frontend.index import Index, IndexCompare
from tvm_tile.frontend.loops import PythonLoop, RegionLoop
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.regions import Region, parallel, pipeline, reduce, serial
from tvm_tile.frontend.statements import is_pure, refuse_unused_result
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import Scope, active_trace, require_trace

__all__ = ["Runtime", "prepared"]


_REGIONS = (parallel, pipeline, reduce, serial)


def prepared(function: Any) -> Any:
    """What to call in place of a function during capture."""
    return callable_for_capture(function, Runtime)


def prepared_alone(function: Any) -> Any:
    """What to call in place of a function whose result the statement that calls it throws away."""
    if not is_pure(function):
        return prepared(function)
    called = prepared(function)

    def checked(*args: Any, **options: Any) -> None:
        result = called(*args, **options)
        # Errors of the call itself come first.
        if result is not None and active_trace() is not None:
            refuse_unused_result(function)

    return checked


class Runtime:
    """The hooks of one rewritten function.

    Parameters
    ----------
    bodies
        Facts about its ``for`` and ``if`` statements, by number.
    place
        Where it stands.
    """

    UNBOUND = UNBOUND
    locals = staticmethod(locals)
    call = staticmethod(prepared)
    call_alone = staticmethod(prepared_alone)

    def __init__(self, bodies: tuple[Body, ...], place: Place) -> None:
        self._bodies = bodies
        self._place = place
        self._choices: list[Choice] = []

    def loop(self, iterable: Any, number: int) -> PythonLoop | RegionLoop:
        """The loop of a ``for`` statement."""
        if isinstance(iterable, Region):
            trace = require_trace(f"tt.{iterable.kind}")
            return RegionLoop(trace, iterable, self._bodies[number], self._place, prepared)
        if any(iterable is region for region in _REGIONS):
            raise CaptureError(
                f"tt.{iterable.__name__} is not called",
                span=current_span(),
                suggestion=f"give it an extent: tt.{iterable.__name__}(n)",
            )
        return PythonLoop(iterable)

    def branch(self, condition: Any, number: int) -> PythonBranch | TileBranch:
        """The branch of an ``if`` statement."""
        if isinstance(condition, (Tile, IndexCompare)):
            trace = require_trace(condition._describe())
            return TileBranch(trace, condition, self._bodies[number], self._place)
        return PYTHON_BRANCHES[bool(condition)]

    def condition(self, condition: Any) -> Choice:
        """Begin a conditional expression: it selects in the function of ``tt.map``, else Python chooses."""
        trace = active_trace()
        if (
            isinstance(condition, (Tile, IndexCompare))
            and trace is not None
            and trace.scope.inside("map")
            and condition.shape == ()
        ):
            choice = Choice(condition)
        else:
            choice = Choice(bool(condition))
        self._choices.append(choice)
        return choice

    def then(self) -> bool:
        """Whether the conditional expression at hand evaluates its first value."""
        return self._choices[-1].takes(True)

    def orelse(self) -> bool:
        """Whether the conditional expression at hand evaluates its second value."""
        return self._choices[-1].takes(False)

    def chosen(self, choice: Choice, then: Any, orelse: Any) -> Any:
        """End a conditional expression."""
        # What an exception has left open within it goes too.
        del self._choices[self._choices.index(choice) :]
        return choice.of(then, orelse)

    def named(self, name: str, value: Any) -> Any:
        """Give a value the name that it is assigned to, unless it has one."""
        trace = active_trace()
        if trace is not None and name in trace.memories and isinstance(value, Tile):
            trace.rebound.setdefault(name, current_span())
        if trace is not None and isinstance(value, Tile) and value.trace is trace and not value.value.name:
            trace.names.setdefault(value.value.id, name)
        return value

    def named_all(self, names: tuple[str, ...], values: Any) -> Any:
        """Give the values of a tuple the names that they are assigned to."""
        if isinstance(values, (tuple, list)) and len(values) == len(names):
            for name, value in zip(names, values, strict=True):
                self.named(name, value)
        return values

    def rebind(self, name: str, value: Any) -> Any:
        """Refuse to assign a tile of a region or branch to a global or nonlocal name.

        Raises
        ------
        CaptureError
            The body is captured once, so the assignment would not see the other iterations.
        """
        trace = active_trace()
        if (
            trace is not None
            and trace.scope is not trace.root
            and isinstance(value, (Tile, Index, IndexCompare))
        ):
            raise CaptureError(
                f"global or nonlocal {name!r} is assigned {value._describe()} "
                f"inside a {trace.scope.kind} body, which is captured once",
                span=current_span(),
                suggestion="return the value and assign a local name in the body",
            )
        return self.named(name, value)

    def mark(self) -> Scope | None:
        """The present scope, for :meth:`unwind`."""
        trace = active_trace()
        return None if trace is None else trace.scope

    def unwind(self, mark: Scope | None) -> None:
        """Leave the scopes that an exception has left open."""
        trace = active_trace()
        if trace is not None and mark is not None:
            trace.scope = mark
