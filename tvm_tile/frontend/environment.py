"""What a function reads from outside of itself, as a comparable key."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tvm_tile.frontend.positions import is_library_file

__all__ = ["captured_state"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


def captured_state(function: FunctionType) -> tuple[Any, ...]:
    """Values of the globals and closure cells that a function, and the functions it calls, name.

    Plain values, and tuples of them, count by value; other objects by identity. Attributes of the user's
    modules count too. What containers and objects hold does not.
    """
    found: list[tuple[str, Any]] = []
    _collect(function, found, set())
    return tuple(found)


def _collect(function: FunctionType, found: list[tuple[str, Any]], seen: set[int]) -> None:
    if id(function) in seen:
        return
    seen.add(id(function))
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name, cell in cells.items():
        try:
            value = cell.cell_contents
        except ValueError:
            # Assigned later in the enclosing function.
            found.append((name, "unset"))
            continue
        _add(name, value, found, seen)
    names = dict.fromkeys(_names(function.__code__))
    for name in names:
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        if isinstance(value, ModuleType) and not _is_library(value):
            # Which of the names are its attributes is not known; more than needed does no harm.
            for attribute in names:
                if attribute in value.__dict__:
                    _add(f"{name}.{attribute}", value.__dict__[attribute], found, seen)
        _add(name, value, found, seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_library(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is None or is_library_file(file)


def _add(name: str, value: Any, found: list[tuple[str, Any]], seen: set[int]) -> None:
    found.append((name, _key(value)))
    inner = value.__func__ if isinstance(value, MethodType) else getattr(value, "__wrapped__", value)
    if isinstance(inner, FunctionType) and not is_library_file(inner.__code__.co_filename):
        _collect(inner, found, seen)
        defaults = (inner.__defaults__ or (), tuple((inner.__kwdefaults__ or {}).items()))
        found.append((f"{name} defaults", _key(defaults)))


def _key(value: Any) -> Any:
    if isinstance(value, tuple):
        return ("tuple", tuple(_key(item) for item in value))
    if isinstance(value, _PLAIN):
        # By text: NaN equals itself, and 1, 1.0 and True differ.
        return (type(value).__name__, repr(value))
    return _Identity(value)


class _Identity:
    """Equal for the very same object only, which it keeps alive so that its address stays its own."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
