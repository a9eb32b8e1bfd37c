"""Names that hold Python objects across captured bodies: what may change, and what a change would lose.

A body is captured once, so a Python object that it rebinds, or a list that it fills with tiles, would not
see the other iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tvm_tile.errors import CaptureError
from tvm_tile.frontend.index import Index, IndexCompare
from tvm_tile.frontend.tile import Tile
from tvm_tile.ir.span import Span

__all__ = ["UNBOUND", "check_containers", "containers", "same_object", "shown"]


class _Unbound:
    def __repr__(self) -> str:
        return "<unbound>"


#: Stands for a local name without value.
UNBOUND = _Unbound()

_TRACERS = (Tile, Index, IndexCompare)
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


def same_object(a: Any, b: Any) -> bool:
    """Whether two Python objects are the same one, or equal plain values."""
    if a is b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(same_object(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Tile) and isinstance(b, Tile):
        return a.value == b.value
    if isinstance(a, Index) and isinstance(b, Index):
        return a.expression == b.expression
    return type(a) is type(b) and isinstance(a, _PLAIN) and bool(a == b)


def shown(x: Any) -> str:
    """An object for an error message."""
    return x._describe() if isinstance(x, _TRACERS) else f"{x!r:.60}"


def containers(env: Mapping[str, Any]) -> list[tuple[str, Any, dict[Any, Any]]]:
    """Lists, dicts and plain objects that local names hold, with their present contents."""
    found = []
    for name, value in env.items():
        items = _contents(value)
        if items is not None and not name.startswith("__tt"):
            found.append((name, value, items))
    return found


def _contents(value: Any) -> dict[Any, Any] | None:
    match value:
        case list():
            return dict(enumerate(value))
        case dict():
            return dict(value)
        case type() | ModuleType() | FunctionType() | MethodType() | np.ndarray():
            return None
    module = type(value).__module__
    if isinstance(module, str) and module.split(".")[0] == "tvm_tile":
        return None
    attributes = getattr(value, "__dict__", None)
    return dict(attributes) if isinstance(attributes, dict) else None


def check_containers(before: list[tuple[str, Any, dict[Any, Any]]], what: str, span: Span | None) -> None:
    """Refuse a captured body that put tiles into a list, dict or object from outside of it.

    Raises
    ------
    CaptureError
        It did.
    """
    for name, value, old in before:
        for key, item in (_contents(value) or {}).items():
            if isinstance(item, _TRACERS) and old.get(key, UNBOUND) is not item:
                place = f"{name}.{key}" if not isinstance(value, (list, dict)) else f"{name}[{key!r}]"
                raise CaptureError(
                    f"{what} puts {shown(item)} into {place}, but is captured once, so other iterations would be lost",
                    span=span,
                    suggestion="carry the tile in a local name of its own, assigned before and in the body",
                )
