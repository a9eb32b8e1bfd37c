"""``tt.load``: a tile from memory inside a kernel, a saved executable from a file outside."""

from __future__ import annotations

import os
from typing import Any

from tvm_tile.errors import ArgumentError

__all__ = ["load"]


def load(source: Any, *args: Any, **options: Any) -> Any:
    """Read a part of memory in a kernel, or a saved executable from a file.

    Parameters
    ----------
    source : ref, tensor or path
        ``A.at[idx]`` or ``A`` in a kernel: see :func:`tvm_tile.frontend.tensor.load`. A path that
        ``Executable.save`` wrote: see :func:`tvm_tile.build.load`.
    *args, **options
        ``fill``, ``bounds`` and ``mask`` of the part.

    Returns
    -------
    Tile or Executable

    Raises
    ------
    ArgumentError
        The file cannot be read as an executable, or something is given beside its path.
    CaptureError
        The source is neither memory nor a path.
    """
    if isinstance(source, (str, bytes, os.PathLike)):
        from tvm_tile.build import load as load_executable

        if args or options:
            raise ArgumentError(
                f"tt.load of the file {os.fspath(source)!r:.60} takes nothing beside the path",
                suggestion="fill, bounds and mask are for parts of memory: tt.load(A.at[idx], fill=0)",
            )
        # Names of files as bytes are refused there, with a word on it.
        path: Any = source
        return load_executable(path)
    from tvm_tile.frontend.tensor import load as load_part

    return load_part(source, *args, **options)
