"""Finding the kernel that ``FILE:kernel`` names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tvm_tile.errors import ArgumentError

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
    except (Exception, SystemExit) as error:
        raise ArgumentError(
            f"{path_text} does not import: {type(error).__name__}: {error}",
            suggestion='keep what the file does as a script below if __name__ == "__main__":'
            if isinstance(error, SystemExit)
            else None,
        ) from error
    kernels = {key: value for key, value in vars(module).items() if isinstance(value, Kernel)}
    if name not in kernels:
        known = ", ".join(kernels) or "none"
        raise ArgumentError(f"{path_text} has no kernel {name!r}", suggestion=f"its kernels: {known}")
    return kernels[name]
