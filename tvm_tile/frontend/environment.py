"""What a function reads from outside of itself, as a comparable key.

The key is a flat tuple: a walk over the globals, closure cells and defaults that the function and its helpers
name, which writes down each value it meets. Containers count by what they hold, objects and modules by those
of their attributes that the code names, all else by identity.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import sys
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Set
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tvm_tile.frontend.positions import is_library_file

__all__ = ["captured_state"]

#: A state of more entries is no key: comparing it costs more than a call may.
_MAX_ENTRIES = 4000
_MAX_ITEMS = 1000
_MAX_DEPTH = 30
_MAX_ARRAY_BYTES = 64 * 1024

_BY_VALUE = frozenset((bool, int, str, bytes, type(None), type(Ellipsis), range))
# By text: NaN equals itself, and 0.0 and -0.0 differ.
_BY_TEXT = frozenset((float, complex))
# Immutable, or read by the program as what they are.
_BY_IDENTITY = (BuiltinFunctionType, np.dtype, np.ufunc, enum.Enum)
# Code that names one of these may read attributes that it does not name.
_READERS = frozenset(("vars", "getattr", "attrgetter", "__dict__", "asdict", "astuple", "replace", "fields"))
_MISSING = object()
# Their names stay what they are.
_CONSTANT_MODULES = frozenset(("tvm_tile", "tvm_tile.frontend", "numpy", "math"))


class _NoKeyError(Exception):
    """The state is too large, or cannot be told from another one."""


class _NoKey:
    """In place of a state that is no key: equal to nothing and not hashable."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False


def captured_state(function: FunctionType) -> tuple[Any, ...]:
    """What a function, and the functions it calls, read from their surroundings.

    Globals, closure cells and defaults. Plain values, lists, dicts, sets and arrays count by value; objects,
    classes and the user's modules by identity and the attributes that the code names; all else by identity.

    Returns
    -------
    tuple
        Equal and hashable for equal states. A state that is too large to compare, or holds a large array, is
        not hashable and equals no other.
    """
    reader = _Reader()
    try:
        reader.function(function, 0)
    except (_NoKeyError, RecursionError):
        return (_NoKey(),)
    return tuple(reader.found)


@dataclasses.dataclass(eq=False)
class _Plan:
    """What the text of some code names."""

    globals: tuple[str, ...]
    imports: tuple[str, ...]
    attributes: tuple[str, ...]
    reads_all: bool
    # Whose methods are counted in already.
    kinds: frozenset[type] = frozenset()
    # With what the methods of a class name: for its objects, and for the class itself, which makes some.
    for_objects: weakref.WeakKeyDictionary[type, _Plan] = dataclasses.field(
        default_factory=weakref.WeakKeyDictionary
    )
    for_class: weakref.WeakKeyDictionary[type, _Plan] = dataclasses.field(
        default_factory=weakref.WeakKeyDictionary
    )


# By identity, since equal code may come from two places; the entry keeps the code alive.
_plans: dict[int, tuple[CodeType, _Plan]] = {}


def _plan_of(code: CodeType) -> _Plan:
    entry = _plans.get(id(code))
    if entry is None:
        loaded: dict[str, None] = {}
        imports: dict[str, None] = {}
        attributes: dict[str, None] = {}
        reads_all = False
        for part in _codes(code):
            for instruction in dis.get_instructions(part):
                if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
                    loaded[instruction.argval] = None
                elif instruction.opname == "IMPORT_NAME":
                    imports[instruction.argval] = None
            attributes |= dict.fromkeys(name for name in part.co_names if not name.startswith("__"))
            # getattr and class patterns name attributes by strings.
            for constant in part.co_consts:
                words = constant if isinstance(constant, tuple) else (constant,)
                attributes |= dict.fromkeys(w for w in words if isinstance(w, str) and w.isidentifier())
            reads_all = reads_all or not _READERS.isdisjoint(part.co_names)
        plan = _Plan(tuple(loaded), tuple(imports), tuple(attributes), reads_all)
        entry = _plans[id(code)] = (code, plan)
    return entry[1]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _plan_with_methods(plan: _Plan, kind: type, *, of_class: bool) -> _Plan:
    """The plan for an object or class: methods read attributes too, and operators are called unnamed."""
    if kind in plan.kinds and not of_class:
        return plan
    plans = plan.for_class if of_class else plan.for_objects
    known = plans.get(kind)
    if known is None:
        attributes = dict.fromkeys(plan.attributes)
        reads_all = plan.reads_all
        for name, method in _user_methods(kind):
            if of_class or name != "__init__":
                inner = _plan_of(method.__code__)
                attributes |= dict.fromkeys(inner.attributes)
                reads_all = reads_all or inner.reads_all
                if name.startswith("__"):
                    attributes[name] = None
        known = _Plan((), (), tuple(attributes), reads_all, plan.kinds | {kind})
        plans[kind] = known
    return known


def _user_methods(kind: type) -> Iterator[tuple[str, FunctionType]]:
    for base in kind.__mro__:
        for name, member in vars(base).items():
            inner = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if isinstance(inner, FunctionType) and _is_user(inner):
                yield name, inner


def _is_user(function: FunctionType) -> bool:
    # What dataclasses and named tuples generate stands in "<string>" and reads nothing else.
    return not is_library_file(function.__code__.co_filename)


def _is_library(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is None or is_library_file(file)


class _Reader:
    """One walk.

    Attributes
    ----------
    found
        The key so far; each value starts with its type, and each container with its length.
    """

    def __init__(self) -> None:
        self.found: list[Any] = []
        # By identity, and by the plan that says which attributes count. Holds the object, so that its
        # address stays its own.
        self._seen: dict[tuple[int, int], Any] = {}

    def function(self, function: FunctionType, depth: int) -> None:
        code, found = function.__code__, self.found
        if self._met(function, None):
            return
        found.append(function)
        found.append(code)
        plan = _plan_of(code)
        if code.co_freevars:
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
                found.append(name)
                try:
                    value = cell.cell_contents
                except ValueError:
                    # Assigned later in the enclosing function.
                    found.append(_MISSING)
                    continue
                self._value(value, plan, depth)
        namespace = function.__globals__
        for name in plan.globals:
            if name in namespace:
                found.append(name)
                self._value(namespace[name], plan, depth)
        for name in plan.imports:
            module = sys.modules.get(name)
            if module is not None:
                self._value(module, plan, depth)
        if function.__defaults__:
            self._value(function.__defaults__, plan, depth)
        if function.__kwdefaults__:
            self._value(function.__kwdefaults__, plan, depth)
        if function.__dict__:
            self._attributes(function, function.__dict__, plan, depth)

    def _met(self, value: Any, plan: _Plan | None) -> bool:
        key = (id(value), id(plan))
        if key in self._seen:
            self.found.append(_Identity(value))
            return True
        self._seen[key] = value
        return False

    def _value(self, value: Any, plan: _Plan, depth: int) -> None:
        found, kind = self.found, type(value)
        if kind in _BY_VALUE:
            found.append(kind)
            found.append(value)
        elif kind in _BY_TEXT or isinstance(value, np.generic):
            found.append(kind)
            found.append(repr(value))
        elif kind is ModuleType:
            found.append(value)
            if value.__name__ not in _CONSTANT_MODULES and not self._met(value, plan):
                self._module(value, plan, depth + 1)
        else:
            if len(found) > _MAX_ENTRIES or depth > _MAX_DEPTH:
                raise _NoKeyError
            self._structured(value, kind, plan, depth + 1)

    def _structured(self, value: Any, kind: type, plan: _Plan, depth: int) -> None:
        match value:
            case FunctionType():
                if is_library_file(value.__code__.co_filename):
                    self.found.append(value)
                else:
                    self.function(value, depth)
            case MethodType():
                self._value(value.__func__, plan, depth)
                self._value(value.__self__, plan, depth)
            case functools.partial():
                self.found.append(kind)
                for part in (value.func, value.args, value.keywords):
                    self._value(part, plan, depth)
            case np.ndarray():
                self._array(value)
            case list() | tuple() | Set() | deque():
                self._items(value, kind, plan, depth)
            case Mapping():
                self._mapping(value, kind, plan, depth)
            case _ if isinstance(value, _BY_IDENTITY):
                self.found.append(_Identity(value))
            case _ if hasattr(kind, "__dlpack__") or hasattr(kind, "__array_interface__"):
                # Its elements may change and are not ours to read.
                raise _NoKeyError
            case _:
                self._object(value, kind, plan, depth)

    def _module(self, module: ModuleType, plan: _Plan, depth: int) -> None:
        own = vars(module)
        if not _is_library(module):
            self._attributes(module, own, plan, depth)
            return
        for name in plan.attributes:
            # Of libraries, only what is data: functions and objects there stay what they are.
            held = own.get("environ" if name == "getenv" else name)
            if isinstance(held, (bool, int, float, str, list, tuple, dict, Mapping)):
                self.found.append(name)
                self._value(held, plan, depth)

    def _array(self, array: np.ndarray[Any, Any]) -> None:
        if array.nbytes > _MAX_ARRAY_BYTES or array.dtype.hasobject:
            raise _NoKeyError
        self.found += (type(array), array.shape, array.strides, array.dtype, array.tobytes())

    def _items(self, value: Any, kind: type, plan: _Plan, depth: int) -> None:
        if self._met(value, plan):
            return
        if len(value) > _MAX_ITEMS:
            raise _NoKeyError
        self.found += (kind, len(value))
        # Sets in the order in which the kernel would see their elements.
        for item in list(value):
            self._value(item, plan, depth)
        self._more(value, kind, plan, depth)

    def _mapping(self, value: Mapping[Any, Any], kind: type, plan: _Plan, depth: int) -> None:
        if self._met(value, plan):
            return
        if len(value) > _MAX_ITEMS:
            raise _NoKeyError
        self.found += (kind, len(value))
        for key, item in list(value.items()):
            self._value(key, plan, depth)
            self._value(item, plan, depth)
        self._more(value, kind, plan, depth)

    def _more(self, value: Any, kind: type, plan: _Plan, depth: int) -> None:
        """Attributes of a container of a class of its own."""
        if kind.__module__ not in ("builtins", "collections"):
            self._members(value, kind, plan, depth)

    def _object(self, value: Any, kind: type, plan: _Plan, depth: int) -> None:
        if self._met(value, plan):
            return
        self.found.append(_Identity(value))
        if isinstance(value, type):
            plan = _plan_with_methods(plan, value, of_class=True)
            for name in plan.attributes:
                self._attribute(value, name, plan, depth)
            return
        self._members(value, kind, plan, depth)

    def _members(self, value: Any, kind: type, plan: _Plan, depth: int) -> None:
        own = getattr(value, "__dict__", None)
        if kind.__module__.startswith("tvm_tile."):
            # The package reads all of its own records; kernels are their functions.
            function = getattr(value, "__wrapped__", None)
            if isinstance(function, FunctionType):
                self.function(function, depth)
            elif isinstance(own, dict):
                self._value(own, plan, depth)
            return
        plan = _plan_with_methods(plan, kind, of_class=False)
        if isinstance(own, dict):
            self._attributes(value, own, plan, depth)
            wrapped = own.get("__wrapped__")
            if wrapped is not None:
                self._value(wrapped, plan, depth)
        dynamic = hasattr(kind, "__getattr__")
        for name in plan.attributes:
            if (not isinstance(own, dict) or name not in own) and (dynamic or hasattr(kind, name)):
                self._attribute(value, name, plan, depth)

    def _attributes(self, value: Any, own: Mapping[str, Any], plan: _Plan, depth: int) -> None:
        """Entries of an object's or a module's own dictionary that the code names."""
        names = own if plan.reads_all and not isinstance(value, ModuleType) else plan.attributes
        for name in list(names):
            if name in own and name != "__dict__":
                self.found.append(name)
                self._value(own[name], plan, depth)

    def _attribute(self, value: Any, name: str, plan: _Plan, depth: int) -> None:
        """An attribute by way of the class: a class attribute, slot, method or property."""
        try:
            attribute = getattr(value, name, _MISSING)
        except Exception as error:
            # The kernel may not come by here; if it does, it gets the same error.
            self.found += (name, type(error))
            return
        if attribute is _MISSING:
            return
        inner = attribute.__func__ if isinstance(attribute, MethodType) else attribute
        if isinstance(inner, FunctionType):
            if not is_library_file(inner.__code__.co_filename):
                self.found.append(name)
                self.function(inner, depth)
        elif type(inner).__name__ not in _DESCRIPTORS:
            self.found.append(name)
            self._value(attribute, plan, depth)


# Methods and slots of built-in classes, as the class or the object gives them.
_DESCRIPTORS = frozenset(
    (
        *("method-wrapper", "wrapper_descriptor", "method_descriptor", "classmethod_descriptor"),
        *("builtin_function_or_method", "getset_descriptor", "member_descriptor", "mappingproxy"),
    )
)


class _Identity:
    """Equal for the very same object only, which it keeps alive so that its address stays its own."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
