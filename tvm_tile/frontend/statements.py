"""Statements that call a function of the language and throw its result away."""

from __future__ import annotations

import ast
from types import MethodType
from typing import Any, Never

from tvm_tile.errors import CaptureError
from tvm_tile.frontend.constructs import call_at
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.tile import Tile

__all__ = ["is_pure", "refuse_unused_result"]

#: Functions of the language that do something besides giving a result, or give no tile.
_NOT_TILES = frozenset(
    (
        *(
            "kernel",
            "set_launcher",
            "spec",
            "Scalar",
            "Merge",
            "MmaPolicy",
            "stage",
            "extern",
            "alloc",
            "load",
        ),
        *("atomic_add", "atomic_max", "atomic_min", "parallel", "serial", "pipeline", "reduce", "cdiv", "ds"),
    )
)


def is_pure(function: Any) -> bool:
    """Whether calling it has no effect but its result: a tile function, or a method of a tile."""
    import tvm_tile.frontend as language

    if isinstance(function, MethodType):
        return isinstance(function.__self__, Tile)
    name = getattr(function, "__name__", None)
    return (
        isinstance(name, str)
        and name in language.__all__
        and name not in _NOT_TILES
        and getattr(language, name) is function
    )


def refuse_unused_result(function: Any) -> Never:
    """Refuse the statement that is running, which only calls a pure function.

    Raises
    ------
    CaptureError
        Always; its remedy is the same call with its result assigned.
    """
    span = current_span()
    call = call_at(span)
    name = f"tt.{function.__name__}" if not isinstance(function, MethodType) else f".{function.__name__}"
    remedy = "assign it to a name, or leave the statement out"
    match call:
        case ast.Call(args=[ast.Name(id=first), *_]) if function.__name__ == "update":
            remedy = f"a tile never changes: {first} = {ast.unparse(call)}"
        case ast.Call():
            remedy = f"assign it, y = {ast.unparse(call)}, or leave the statement out"
    raise CaptureError(f"the result of {name} is not used", span=span, suggestion=remedy)
