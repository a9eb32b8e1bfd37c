"""From object code to a shared library in memory of this process.

A library is always loaded from a private copy under a name that is used once. The system's loader knows
libraries by name, and would return the old one for a file that was saved again; and a file that someone
cuts short while its code runs would crash the process.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tvm_tile.errors import UnsupportedError

__all__ = ["SUFFIX", "link", "load_library", "object_code"]

#: Suffix of shared libraries here.
SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")

#: Compiler drivers that link, by preference.
_DRIVERS = ("cc", "gcc", "clang")


@cache
def _linker() -> tuple[str, ...] | None:
    """Command that links, up to the names of the files; ``None`` if there is none here.

    ``-z now`` makes an undefined symbol an error of loading; otherwise the first call of it ends the process.
    """
    # The linker alone takes 4 ms where a compiler driver takes 20.
    if sys.platform == "linux" and (linker := shutil.which("ld")):
        return linker, "-shared", "-z", "now"
    for name in _DRIVERS:
        if driver := shutil.which(name):
            return (driver, "-shared") if sys.platform == "darwin" else (driver, "-shared", "-Wl,-z,now")
    return None


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A folder for a moment; what the disk refuses is an error that names it."""
    try:
        with tempfile.TemporaryDirectory(prefix="tvm_tile_", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as error:
        raise UnsupportedError(
            f"temporary files cannot be written: {error}", suggestion="set TMPDIR to a folder with room"
        ) from error


def object_code(library: Any) -> bytes:
    """Position-independent object code of a module that LLVM generated.

    Raises
    ------
    UnsupportedError
        Temporary files cannot be written.
    """
    with _temporary_folder() as folder:
        path = folder / "code.o"
        library.write_to_file(str(path), "o")
        return path.read_bytes()


def link(code: bytes) -> bytes:
    """A shared library of object code.

    Raises
    ------
    UnsupportedError
        There is no linker, or it fails, or temporary files cannot be written.
    """
    command = _linker()
    if command is None:
        raise UnsupportedError(
            f"a shared library needs a linker, and none of ld, {', '.join(_DRIVERS)} is on the path",
            suggestion="install binutils or a C compiler",
        )
    with _temporary_folder() as folder:
        source, out = folder / "code.o", folder / ("code" + SUFFIX)
        source.write_bytes(code)
        done = subprocess.run([*command, "-o", str(out), str(source)], capture_output=True, text=True)
        if done.returncode != 0:
            raise UnsupportedError(f"the linker {command[0]} failed: {done.stderr.strip()[-500:]}")
        return out.read_bytes()


def load_library(library: bytes, name: str) -> Any:
    """``tvm.runtime.Module`` of a shared library given as bytes.

    Raises
    ------
    UnsupportedError
        The system does not load it: a symbol is missing, or the folder for temporary files forbids code.
    """
    import tvm

    with _temporary_folder() as folder:
        # The mapping stays when the name goes.
        path = folder / f"code{SUFFIX}"
        path.write_bytes(library)
        try:
            return tvm.runtime.load_module(str(path))
        except (RuntimeError, AttributeError) as error:
            reason = str(error).strip().splitlines()[-1].replace(str(path), name)
            raise UnsupportedError(
                f"the code in {name} cannot be loaded: {reason}",
                suggestion="load the library that defines the symbol first: ctypes.CDLL(path, RTLD_GLOBAL)"
                if "symbol" in reason
                else f"set TMPDIR to a folder from which code may run, other than {tempfile.gettempdir()}",
            ) from error
