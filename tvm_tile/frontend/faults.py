"""Exceptions of the user's own Python during capture, as errors of this package with a place."""

from __future__ import annotations

import ast
import difflib
import inspect
import linecache
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType, TracebackType
from typing import Any

from tvm_tile.errors import ArgumentError, CaptureError, TileError
from tvm_tile.frontend.constructs import call_at, in_keyword, loaded_ref, subscripted, value_assigned_at
from tvm_tile.frontend.counterparts import function_remedy, name_remedy
from tvm_tile.frontend.described import described, message_of
from tvm_tile.frontend.index import Index, IndexCompare
from tvm_tile.frontend.positions import is_library_file, span_of_traceback, was_converted
from tvm_tile.frontend.tensor import Ref, Tensor
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import Trace
from tvm_tile.ir.span import Span

__all__ = ["translated"]

_METHOD = re.compile(r"(\w+)\.(\w+)\(\)")
_TRACERS = {kind.__name__: kind for kind in (Index, IndexCompare, Ref, Tensor, Tile)}
# Attributes of tracers that are no part of the language.
_INTERNAL = frozenset(
    ("trace", "weak", "value", "type", "expression", "predicate", "memory", "view", "tensor")
)
_NAME = re.compile(r"variable '(\w+)'|name '(\w+)'")


@contextmanager
def translated(trace: Trace, kernel: Span) -> Iterator[None]:
    """Turn what the user's code raises into errors with a place, that of the kernel if none is nearer.

    Raises
    ------
    ArgumentError
        From a failed ``assert`` of the user.
    CaptureError
        From any other exception; its cause is the original.
    """
    try:
        yield
    except TileError as error:
        if error.span is None:
            error.span = span_of_traceback(error.__traceback__) or kernel
        raise
    except AssertionError as error:
        span = span_of_traceback(error.__traceback__) or kernel
        if not _raised_by_user(error.__traceback__):
            raise
        raise ArgumentError(
            message_of(error) or _assertion(span),
            span=span,
            suggestion="pass arguments that meet the kernel's assertion",
        ) from error
    except NameError as error:
        span = span_of_traceback(error.__traceback__) or kernel
        found = _NAME.search(message_of(error))
        name = (found[1] or found[2]) if found else ""
        if name in trace.vanished:
            reason = trace.vanished[name]
            if trace.seedless.get(name) == reason:
                trace.remedies[reason] = _seed(name, span, error.__traceback__)
            raise CaptureError(
                reason,
                span=span,
                suggestion=trace.remedies.get(reason, f"assign {name} on every path to where it is read"),
            ) from error
        if in_keyword(span, "where"):
            raise CaptureError(
                f"where= reads the loop variable {name!r} before the loop has one",
                span=span,
                suggestion=f"pass a function of the indices: where=lambda {name}: ...",
            ) from error
        raise CaptureError(
            f"NameError: {message_of(error)}", span=span, suggestion="define the name"
        ) from error
    except Exception as error:
        span = span_of_traceback(error.__traceback__) or kernel
        remedy = _of_index_tuple(error, trace) or _remedy(error, span)
        message = f"{type(error).__name__}: {message_of(error)}"
        given = ", ".join(f"{name}={described(value, 40)}" for name, value in trace.constants.items())
        if remedy is None and given:
            message += f" (with the constants {given})"
            remedy = f"check the constants {given}, or the Python of the kernel; the cause is chained"
        raise CaptureError(
            message,
            span=span,
            suggestion=remedy or "fix the Python of the kernel; its cause is chained to this error",
        ) from error


def _remedy(error: Exception, span: Span | None) -> str | None:
    """One thing to try where the language was called by a wrong name or with wrong arguments."""
    if isinstance(error, AttributeError):
        return _attribute_remedy(error, span)
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], (Tile, Index)):
        name = subscripted(span)
        return f"pass the values of {name} as a tensor parameter, and load from that" if name else None
    if isinstance(error, TypeError):
        return _call_remedy(error, span)
    return None


def _of_index_tuple(error: Exception, trace: Trace) -> str | None:
    """What is meant where the tuple of indices of one loop variable is computed with."""
    frame = _user_frame(error.__traceback__)
    if not isinstance(error, TypeError) or "tuple" not in message_of(error) or frame is None:
        return None
    held = [value for value in frame.f_locals.values() if isinstance(value, tuple)]
    return next((remedy for indices, remedy in trace.index_tuples if any(indices is v for v in held)), None)


def _user_frame(traceback: TracebackType | None) -> FrameType | None:
    """The innermost frame of the user's code."""
    found = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if was_converted(code) or not is_library_file(code.co_filename):
            found = traceback.tb_frame
        traceback = traceback.tb_next
    return found


def _seed(name: str, span: Span | None, traceback: TracebackType | None) -> str:
    """The value before the loop that an accumulated name lacks, of the dtype that its contributions have."""
    frame, value = _user_frame(traceback), value_assigned_at(span)
    shape: tuple[int, ...] = ()
    dtype, function = "float32", "zeros"
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        function = "ones"
    nodes = [n for n in ast.walk(value) if isinstance(n, ast.Subscript)] if value is not None else []
    for node in nodes:
        tensor = None if frame is None else _resolved(node.value, frame)
        if isinstance(tensor, Tensor):
            dtype = tensor.dtype
            places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            # Of points alone the rest is known without looking at what they are.
            if all(isinstance(place, (ast.Name, ast.BinOp, ast.Constant)) for place in places):
                shape = tensor.shape[len(places) :]
            break
    return f'give it a value before the loop: {name} = tt.{function}({shape}, "{dtype}")'


def _attribute_remedy(error: AttributeError, span: Span | None) -> str | None:
    thing, name = error.obj, error.name
    if name is None:
        return None
    if isinstance(thing, ModuleType):
        if not thing.__name__.startswith("tvm_tile"):
            return None
        return name_remedy(name, [n for n in getattr(thing, "__all__", ()) if not n.startswith("_")])
    if not type(thing).__module__.startswith("tvm_tile."):
        return None
    ref = loaded_ref(span) if isinstance(thing, Tile) and name in ("load", "store") else None
    frame = _user_frame(error.__traceback__)
    if ref is not None and frame is not None and isinstance(_resolved(ref[0], frame), Tensor):
        return f"name the part by .at: {ref[1]}"
    known = [n for n in dir(thing) if not n.startswith("_") and n not in _INTERNAL]
    near = difflib.get_close_matches(name, known, 1)
    if near:
        return f"did you mean .{near[0]}?"
    remedy = function_remedy(name)
    if remedy == f"use tt.{name}":
        loaded = "A[...]" if type(thing).__name__ == "Tensor" else "x"
        return f"use tt.{name}({loaded})"
    return remedy if remedy.startswith("use ") else f"it has {', '.join(known)}"


def _call_remedy(error: TypeError, span: Span | None) -> str | None:
    """The signature of a function of the language that was called with wrong arguments."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    call = call_at(span)
    if traceback is None or call is None or not _raised_by_user(error.__traceback__):
        return None
    method = _METHOD.match(message_of(error))
    function = _resolved(call.func, traceback.tb_frame)
    if function is None and method is not None and method[1] in _TRACERS:
        function = getattr(_TRACERS[method[1]], method[2], None)
    if not (getattr(function, "__module__", None) or "").startswith("tvm_tile.") or not callable(function):
        return "index it: A.at[idx] is a ref" if type(function).__name__ == "_At" else None
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters = [p.replace(annotation=p.empty) for n, p in signature.parameters.items() if n != "self"]
    shown = signature.replace(parameters=parameters, return_annotation=signature.empty)
    return f"call it as {ast.unparse(call.func)}{shown}"


def _resolved(expression: ast.expr, frame: FrameType) -> Any:
    match expression:
        case ast.Name(id=name):
            return frame.f_locals.get(name, frame.f_globals.get(name))
        case ast.Attribute(value=value, attr=name):
            return getattr(_resolved(value, frame), name, None)
    return None


def _raised_by_user(traceback: TracebackType | None) -> bool:
    code = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        traceback = traceback.tb_next
    return code is not None and (was_converted(code) or not is_library_file(code.co_filename))


def _assertion(span: Span | None) -> str:
    """The text of a failed assertion without message."""
    if span is None:
        return "an assertion of the kernel fails"
    lines = [linecache.getline(span.file, n) for n in range(span.line, span.end_line + 1)]
    try:
        test = ast.parse("".join(lines).strip()).body[0]
    except (SyntaxError, IndexError):
        return f"assertion fails: {''.join(lines).strip()}"
    return f"assertion fails: {ast.unparse(test.test)}" if isinstance(test, ast.Assert) else "assertion fails"
