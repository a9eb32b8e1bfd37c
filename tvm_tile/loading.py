"""``tt.load``: a tile from memory inside a kernel, a saved executable from a file outside."""

from __future__ import annotations

import os
from typing import Any

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
        The file cannot be read as an executable.
    CaptureError
        The source is neither memory nor a path.
    """
    if isinstance(source, (str, bytes, os.PathLike)):
        from tvm_tile.build import load as load_executable

        return load_executable(source, *args, **options)
    from tvm_tile.frontend.tensor import load as load_part

    return load_part(source, *args, **options)
