"""Live Python functions made ready for capture: same closure cells, globals and defaults, rewritten body."""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from tvm_tile.errors import CaptureError
from tvm_tile.frontend.bodies import Body, Place
from tvm_tile.frontend.positions import is_library_file, register_converted, was_converted
from tvm_tile.frontend.rewrite import RUNTIME, rewritten
from tvm_tile.frontend.source import Definition, SourceNotFoundError, definition_in_text, definition_of
from tvm_tile.frontend.trace import active_trace

__all__ = ["callable_for_capture", "converted_function"]

#: Makes the object that a rewritten body calls.
RuntimeFactory = Callable[[tuple[Body, ...], Place], object]

# Flags of generators, coroutines and what is iterable like them.
_GENERATORS = 0x20 | 0x80 | 0x100 | 0x200
_FUTURE = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag, __future__.all_feature_names, 0
)
# By the identity of the code, which the entry keeps alive: equal code may come from two files.
_cache: dict[tuple[int, str], tuple[CodeType, CodeType, tuple[Body, ...]]] = {}
_unconvertible: dict[int, CodeType] = {}


def converted_function(
    function: FunctionType, definition: Definition, runtime: RuntimeFactory
) -> FunctionType:
    """The function rewritten for capture.

    Parameters
    ----------
    function
        The live function; its globals, closure cells and defaults are shared.
    definition
        Its syntax tree.
    runtime
        Makes the object that the rewritten body calls, from the facts about its bodies and its file.
    """
    original = function.__code__
    key = (id(original), definition.file)
    entry = _cache.get(key)
    if entry is None:
        entry = _cache[key] = (original, *_compiled(original, definition))
    _, code, bodies = entry
    cells = dict(zip(original.co_freevars, function.__closure__ or (), strict=True))
    place = Place(definition.file, frozenset(original.co_freevars))
    cells[RUNTIME] = CellType(runtime(bodies, place))
    closure = tuple(cells[name] for name in code.co_freevars)
    result = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    result.__qualname__ = function.__qualname__
    result.__module__ = function.__module__
    result.__dict__.update(function.__dict__)
    return result


def _compiled(original: CodeType, definition: Definition) -> tuple[CodeType, tuple[Body, ...]]:
    assert isinstance(definition.node, (ast.FunctionDef, ast.Lambda))
    node, bodies = rewritten(definition.node)
    inner: ast.stmt = ast.Expr(node) if isinstance(node, ast.Lambda) else node
    if definition.class_name is not None:
        # Private names are mangled by the class around them; the class itself is never made.
        inner = ast.ClassDef(definition.class_name, [], [], [inner], [])
    # The definition below must not capture a global of its own name, as in recursion.
    bound = original.co_name if definition.class_name is None else definition.class_name
    keep: list[ast.stmt] = (
        [] if bound in original.co_freevars or bound == "<lambda>" else [ast.Global([bound])]
    )
    parameters = [ast.arg(name) for name in dict.fromkeys((*original.co_freevars, RUNTIME))]
    outer = ast.FunctionDef(
        "__tt_outer__",
        ast.arguments([], parameters, None, [], [], None, []),
        [*keep, inner],
        [],
        lineno=1,
        col_offset=0,
    )
    module = ast.fix_missing_locations(ast.Module([outer], []))
    flags = original.co_flags & _FUTURE
    try:
        compiled = compile(module, definition.file, "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, RecursionError) as error:
        # What is captured has more nested blocks than the source: a branch takes one, and Python ends at 20.
        raise CaptureError(
            f"{definition.path[-1]} nests too deeply to be captured: {error}",
            span=definition.span,
            suggestion="move inner loops and branches into a helper function",
        ) from error
    code = _find(compiled, original.co_name, definition.class_name)
    register_converted(code)
    return code, bodies


def _find(code: CodeType, name: str, class_name: str | None) -> CodeType:
    path = ["__tt_outer__", *([class_name] if class_name is not None else []), name]
    for part in path:
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == part)
    return code


def callable_for_capture(function: Any, runtime: RuntimeFactory) -> Any:
    """What to call in place of a function during capture.

    User-defined Python functions with source are converted, through methods, :class:`functools.partial`
    and objects with ``__call__``; everything else is called as it is.
    """
    match function:
        case FunctionType():
            definition = _convertible(function)
            return function if definition is None else converted_function(function, definition, runtime)
        case MethodType():
            return MethodType(callable_for_capture(function.__func__, runtime), function.__self__)
        case functools.partial():
            inner = callable_for_capture(function.func, runtime)
            return functools.partial(inner, *function.args, **function.keywords)
    # These call a function for each item; what they are given is converted too.
    if any(function is each for each in (map, filter, functools.reduce)):
        return _with_converted_argument(function, runtime)
    method = inspect.getattr_static(type(function), "__call__", None)
    if isinstance(method, FunctionType) and not is_library_file(method.__code__.co_filename):
        return MethodType(callable_for_capture(method, runtime), function)
    return function


def _with_converted_argument(function: Any, runtime: RuntimeFactory) -> Any:
    def call(first: Any, *rest: Any) -> Any:
        return function(callable_for_capture(first, runtime), *rest)

    return call


def _convertible(function: FunctionType) -> Definition | None:
    code = function.__code__
    if was_converted(code) or code.co_flags & _GENERATORS or id(code) in _unconvertible:
        return None
    definition = None
    if not is_library_file(code.co_filename) or _uses_language(function):
        try:
            return definition_of(function)
        except SourceNotFoundError:
            trace = active_trace()
            for file, text in trace.texts if trace is not None else ():
                if file == code.co_filename:
                    definition = _in_text(function, text) or definition
    if definition is None:
        # It runs as plain Python, where a region loop or a branch on a tile explains itself.
        _unconvertible[id(code)] = code
    return definition


def _in_text(function: FunctionType, text: str) -> Definition | None:
    try:
        return definition_in_text(function, text)
    except CaptureError:
        return None


def _uses_language(function: FunctionType) -> bool:
    """Whether a function of an installed distribution lives in a module that imports this package."""
    if (function.__module__ or "").split(".")[0] == "tvm_tile":
        return False
    for value in list(function.__globals__.values()):
        module = (
            getattr(value, "__name__", None)
            if isinstance(value, type(ast))
            else getattr(value, "__module__", None)
        )
        if isinstance(module, str) and module.split(".")[0] == "tvm_tile":
            return True
    return False
