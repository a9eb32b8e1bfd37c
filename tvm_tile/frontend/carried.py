"""Names that hold Python objects across captured bodies: what may change, and what a change would lose.

A body is captured once, so a Python object that it rebinds, or a list that it fills with tiles, would not
see the other iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tvm_tile.errors import CaptureError
from tvm_tile.frontend.described import described
from tvm_tile.frontend.index import Index, IndexCompare
from tvm_tile.frontend.tile import Tile
from tvm_tile.ir.span import Span

__all__ = ["UNBOUND", "Container", "check_containers", "containers", "same_object", "shown"]


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
    return x._describe() if isinstance(x, _TRACERS) else described(x)


@dataclass(frozen=True)
class Container:
    """A list, dict or plain object that a name holds, with its contents at some time.

    Attributes
    ----------
    outside
        Whether it comes from outside of the kernel, so that it may keep what it is given for inspection.
    """

    name: str
    value: Any
    contents: dict[Any, Any]
    outside: bool


def containers(env: Mapping[str, Any], outside: frozenset[str]) -> list[Container]:
    """The containers that local names hold; ``outside`` names those from around the kernel."""
    found = []
    for name, value in env.items():
        contents = _contents(value)
        if contents is not None and not name.startswith("__tt"):
            found.append(Container(name, value, contents, name in outside))
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


def check_containers(before: list[Container], what: str, why: str, span: Span | None) -> None:
    """Refuse a captured body that put tiles into a list, dict or object from outside of it.

    Parameters
    ----------
    before
        From :func:`containers`, at the start of the body.
    what, why
        The body, and the reason that such a change would lose something.
    span
        Its place.

    Raises
    ------
    CaptureError
        It did.
    """
    for container in before:
        for key, item in (_contents(container.value) or {}).items():
            old = container.contents.get(key, UNBOUND)
            if not isinstance(item, _TRACERS) or old is item:
                continue
            replaces = isinstance(old, _TRACERS) and old.trace is item.trace
            if replaces or not container.outside:
                is_plain = isinstance(container.value, (list, dict))
                place = f"{container.name}[{key!r}]" if is_plain else f"{container.name}.{key}"
                raise CaptureError(
                    f"{what} puts {shown(item)} into {place}, but {why}",
                    span=span,
                    suggestion="carry the tile in a local name of its own, assigned before and in the body",
                )
