"""Finding the kernel that ``FILE:kernel`` names."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from tvm_tile.errors import ArgumentError, TileError
from tvm_tile.ir.span import Span

if TYPE_CHECKING:
    from tvm_tile.frontend.kernel import Kernel

__all__ = ["load_kernel", "split_reference"]


def split_reference(reference: str) -> tuple[str, str]:
    """Path and name of ``path/to/file.py:name``.

    Raises
    ------
    ArgumentError
        It is not of that form.
    """
    path, _, name = reference.rpartition(":")
    if not path or not name.isidentifier():
        raise ArgumentError(f"{reference!r} is not FILE:KERNEL", suggestion="kernels.py:gemm")
    return path, name


def load_kernel(reference: str) -> Kernel:
    """Import a Python file and return one of its kernels.

    Parameters
    ----------
    reference
        ``path/to/file.py:name``.

    Raises
    ------
    ArgumentError
        There is no such file or kernel, or the file does not import.
    """
    from tvm_tile.frontend.kernel import Kernel

    path_text, name = split_reference(reference)
    path = Path(path_text)
    if not path.is_file():
        raise ArgumentError(f"there is no file {path_text!r}", suggestion="give the path of a Python file")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise ArgumentError(f"{path_text!r} is not a Python file", suggestion="give a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    # The file may import its neighbours, as it could when run as a script.
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except (TileError, KeyboardInterrupt):
        raise
    except BaseException as error:  # Whatever the file raises.
        raise ArgumentError(
            f"{path_text} does not import: {type(error).__name__}: {_text(error)}",
            span=_position(error, str(path.resolve())),
            suggestion='keep what the file does as a script below if __name__ == "__main__":'
            if isinstance(error, SystemExit)
            else None,
        ) from error
    kernels = {key: value for key, value in vars(module).items() if isinstance(value, Kernel)}
    if name not in kernels:
        known = ", ".join(kernels) or "none"
        raise ArgumentError(f"{path_text} has no kernel {name!r}", suggestion=f"its kernels: {known}")
    return kernels[name]


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # An error that cannot say what it is.
        return "(its text cannot be shown)"


def _position(error: BaseException, file: str) -> Span | None:
    """The innermost place in a file where importing it failed."""
    if isinstance(error, SyntaxError) and error.filename == file and error.lineno:
        column = error.offset or 1
        return Span(file, error.lineno, column, error.lineno, column + 1)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == file and frame.lineno:
            column = (frame.colno or 0) + 1
            return Span(file, frame.lineno, column, frame.lineno, column + 1)
    return None
