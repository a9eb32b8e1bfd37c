"""Source positions of running code: which frames are the user's, and where in its file one stands."""

from __future__ import annotations

import functools
import linecache
import os
import sys
import sysconfig
from types import CodeType, FrameType, TracebackType
from typing import Any

from tvm_tile.ir.span import Span

__all__ = [
    "current_span",
    "is_library_file",
    "locals_of_user",
    "register_converted",
    "span_at",
    "span_of_columns",
    "span_of_traceback",
    "was_converted",
]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The kernel library is written in the language itself, so its frames count as a user's.
_KERNEL_LIBRARY = os.path.join(_PACKAGE, "contrib") + os.sep
# Packages of ours that a source tree keeps beside this one.
_BESIDE = ("tvm_tile.bridges", "tvm_tile.schedules")
_STANDARD = tuple(os.path.abspath(sysconfig.get_path(kind)) + os.sep for kind in ("stdlib", "platstdlib"))
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

# By identity: equal code objects of two files would be confused otherwise. The object is kept alive
# so that its id stays its own.
_converted: dict[int, CodeType] = {}


def register_converted(code: CodeType) -> None:
    """Remember a rewritten code object, nested ones included."""
    _converted[id(code)] = code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            register_converted(constant)


def was_converted(code: CodeType) -> bool:
    """Whether the code object was made by rewriting a user's function."""
    return id(code) in _converted


@functools.cache
def is_library_file(file: str) -> bool:
    """Whether a file belongs to this package, the standard library or an installed distribution."""
    if file.startswith("<frozen "):
        return True
    path = os.path.abspath(file)
    if path.startswith(_KERNEL_LIBRARY):
        return False
    if path.startswith((_PACKAGE + os.sep, *_folders_beside())) or any(part in path for part in _INSTALLED):
        return True
    return not file.startswith("<") and path.startswith(_STANDARD)


def _folders_beside() -> tuple[str, ...]:
    """Folders of the packages whose code may run, being imported."""
    packages = [sys.modules[name] for name in _BESIDE if name in sys.modules]
    return tuple(os.path.abspath(folder) + os.sep for package in packages for folder in package.__path__)


def _is_user_code(code: CodeType) -> bool:
    return was_converted(code) or not is_library_file(code.co_filename)


def span_of_columns(file: str, line: int, start: int, end_line: int, end: int) -> Span:
    """A span from lines and UTF-8 byte offsets, as the compiler counts them."""
    return Span(file, line, _character(file, line, start), end_line, _character(file, end_line, end))


def _character(file: str, line: int, offset: int) -> int:
    text = linecache.getline(file, line)
    return len(text.encode()[:offset].decode(errors="ignore")) + 1 if text else offset + 1


@functools.lru_cache(maxsize=64)
def _positions(
    code: CodeType, table: bytes
) -> tuple[tuple[int | None, int | None, int | None, int | None], ...]:
    # Python decodes them from the start; a long body would be decoded once an operation. The table takes
    # part in the key because code objects may compare equal without it.
    return tuple(code.co_positions())


def span_at(code: CodeType, instruction: int) -> Span | None:
    """Where the instruction at a byte offset of a code object comes from."""
    if instruction < 0:
        return Span(code.co_filename, code.co_firstlineno, 1, code.co_firstlineno, 1)
    positions = _positions(code, code.co_linetable)
    place = instruction // 2
    line, end_line, start, end = positions[place] if place < len(positions) else (None, None, None, None)
    if line is None:
        return None
    if end_line is None or start is None or end is None:
        return Span(code.co_filename, line, 1, line, 1)
    return span_of_columns(code.co_filename, line, start, end_line, end)


def current_span() -> Span | None:
    """The expression that the innermost user frame is evaluating."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_user_code(frame.f_code):
            return span_at(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


def locals_of_user() -> dict[str, Any]:
    """What the names of the innermost user frame stand for."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_user_code(frame.f_code):
            return dict(frame.f_locals)
        frame = frame.f_back
    return {}


def span_of_traceback(traceback: TracebackType | None) -> Span | None:
    """The expression at which the innermost user frame of a traceback failed."""
    found = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if _is_user_code(code):
            found = span_at(code, traceback.tb_lasti) or found
        traceback = traceback.tb_next
    return found
