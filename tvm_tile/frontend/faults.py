"""Exceptions of the user's own Python during capture, as errors of this package with a place."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from tvm_tile.errors import ArgumentError, CaptureError, TileError
from tvm_tile.frontend.positions import is_library_file, span_of_traceback, was_converted
from tvm_tile.frontend.trace import Trace
from tvm_tile.ir.span import Span

__all__ = ["translated"]

_NAME = re.compile(r"variable '(\w+)'|name '(\w+)'")


@contextmanager
def translated(trace: Trace) -> Iterator[None]:
    """Turn what the user's code raises into errors with a place.

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
            error.span = span_of_traceback(error.__traceback__)
        raise
    except AssertionError as error:
        span = span_of_traceback(error.__traceback__)
        if not _raised_by_user(error.__traceback__):
            raise
        raise ArgumentError(
            str(error) or _assertion(span),
            span=span,
            suggestion="pass arguments that meet the kernel's assertion",
        ) from error
    except NameError as error:
        span = span_of_traceback(error.__traceback__)
        found = _NAME.search(str(error))
        name = (found[1] or found[2]) if found else ""
        if name in trace.vanished:
            raise CaptureError(
                trace.vanished[name], span=span, suggestion=f"assign {name} on every path to where it is read"
            ) from error
        raise CaptureError(f"NameError: {error}", span=span, suggestion="define the name") from error
    except Exception as error:
        raise CaptureError(
            f"{type(error).__name__}: {error}",
            span=span_of_traceback(error.__traceback__),
            suggestion="fix the Python of the kernel; its cause is chained to this error",
        ) from error


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
