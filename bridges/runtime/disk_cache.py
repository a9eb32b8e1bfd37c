"""Generated code kept between processes, in one folder of the user.

An entry is one file in the format of :mod:`~tvm_tile.bridges.runtime.library`, named by its key: whatever
the code depends on. Files appear by renaming and are checked before use, so any number of processes may
share the folder; one that finds a damaged file builds anew. The least recently used files go when the
folder outgrows its limit. A folder that cannot be used is reported once and done without.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import platform
import secrets
import time
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import platformdirs

from tvm_tile.bridges.runtime.library import FORMAT_VERSION, Description, pack, unpack, write_atomically
from tvm_tile.errors import ArgumentError, TileError
from tvm_tile.ir.regions import Program

__all__ = [
    "DEFAULT_LIMIT",
    "FOLDER_VARIABLE",
    "LIMIT_VARIABLE",
    "FolderInfo",
    "clear",
    "entry_key",
    "folder",
    "folder_info",
    "limit",
    "look_up",
    "store",
]

FOLDER_VARIABLE = "TVM_TILE_CACHE_DIR"
LIMIT_VARIABLE = "TVM_TILE_CACHE_SIZE"

#: Bytes that all entries together may take.
DEFAULT_LIMIT = 512 * 2**20

_SUFFIX = ".tile"
#: Seconds after which a file that was never renamed belongs to a process that ended.
_ABANDONED = 3600.0

#: Folders of the package on which generated code depends, beside that of the lowering.
_SOURCES = ("ir", "semantics", "target")

#: Source that was changed after this process had started may not be what it runs.
_STARTED = time.time()

_log = logging.getLogger("tvm_tile.runtime.disk_cache")


@dataclass(frozen=True)
class FolderInfo:
    """What is in the cache's folder; sizes in bytes."""

    folder: Path
    entries: int
    size: int
    limit: int


def folder() -> Path:
    """Where entries are: the environment variable ``TVM_TILE_CACHE_DIR``, else the user's cache folder."""
    given = os.environ.get(FOLDER_VARIABLE, "").strip()
    if not given:
        given = platformdirs.user_cache_dir("tvm-tile", appauthor=False)
    return Path(os.path.expanduser(given))


def _require_home(place: Path) -> None:
    """Refuse a home that is not known, rather than make a folder named ``~`` in the current one."""
    if place.parts[0].startswith("~"):
        raise FileNotFoundError(errno.ENOENT, "the home folder is not known")


def limit() -> int:
    """Bytes that the entries may take: the environment variable ``TVM_TILE_CACHE_SIZE``; 0 is no cache.

    Raises
    ------
    ArgumentError
        The variable is no integer of 0 or more.
    """
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_LIMIT
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ArgumentError(
            f"the environment variable {LIMIT_VARIABLE} must be a number of bytes, not {text!r:.60}",
            suggestion=f"{LIMIT_VARIABLE}={DEFAULT_LIMIT}, 0 for no cache, or unset it",
        )
    return int(text)


def entry_key(program: Program, target: str, variant: str) -> str:
    """Name of the entry for the code of a program: a digest of everything that the code depends on.

    Parameters
    ----------
    variant
        Which of the functions that can be generated for the program.
    """
    # Names are no part of a program's structure, but of its code: messages and functions show them.
    names = (program.name, *(param.name for param in program.params))
    parts = (program.structural_hash(), repr(names), target, variant, *_surroundings())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _surroundings() -> tuple[str, ...]:
    """Versions and machine; and our own source, which changes between versions while it is worked on."""
    import tvm_tile

    digest = hashlib.sha256()
    changed = 0.0
    package = Path(tvm_tile.__file__).parent
    for root in (Path(__file__).resolve().parents[1] / "tirx", *(package / name for name in _SOURCES)):
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
            changed = max(changed, path.stat().st_mtime)
    if changed > _STARTED:
        digest.update(secrets.token_bytes(16))
    versions = [f"{name} {version(name)}" for name in ("tvm-tile", "apache-tvm", "apache-tvm-ffi")]
    machine = (platform.system(), platform.machine())
    return (*versions, f"format {FORMAT_VERSION}", *machine, digest.hexdigest())


def look_up(key: str) -> tuple[bytes, Description] | None:
    """The entry of a key, or ``None``; an entry that is damaged is removed."""
    if limit() == 0:
        return None
    path = folder() / (key + _SUFFIX)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _report(error)
        return None
    try:
        entry = unpack(data, path.name)
    except TileError as error:
        _log.warning("%s; building anew", error.message)
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    # The time of last use decides what goes first. A folder that is read-only can be read all the same.
    with contextlib.suppress(OSError):
        os.utime(path)
    return entry


def store(key: str, library: bytes, description: Description) -> None:
    """Keep an entry, and remove others where the limit asks for it; a folder that fails is reported once."""
    allowed = limit()
    data = pack(library, description)
    if len(data) > allowed:
        return
    place = folder()
    try:
        _require_home(place)
        place.mkdir(parents=True, exist_ok=True)
        _make_room(place, allowed - len(data))
        write_atomically(place / (key + _SUFFIX), data)
    except OSError as error:
        _report(error)


def folder_info() -> FolderInfo:
    """Count what is there."""
    found = _entries(folder())
    return FolderInfo(folder(), len(found), sum(size for _, size, _ in found), limit())


def clear() -> FolderInfo:
    """Remove all entries, and say what there was.

    Raises
    ------
    ArgumentError
        An entry cannot be removed.
    """
    before = folder_info()
    for _, _, path in _entries(before.folder):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ArgumentError(
                f"the cache entry {path} cannot be removed: {error.strerror}",
                suggestion=f"set {FOLDER_VARIABLE} to a folder of your own",
            ) from error
    return before


def _entries(place: Path) -> list[tuple[float, int, Path]]:
    """Time of last use, size and path of each entry, oldest first; others may remove some meanwhile."""
    found = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(place) as listing:
        for item in listing:
            if item.name.endswith(_SUFFIX):
                with contextlib.suppress(FileNotFoundError):
                    status = item.stat()
                    found.append((status.st_mtime, status.st_size, Path(item.path)))
    return sorted(found)


def _make_room(place: Path, room: int) -> None:
    found = _entries(place)
    total = sum(size for _, size, _ in found)
    for _, size, path in found:
        if total <= room:
            break
        path.unlink(missing_ok=True)
        total -= size
    for path in place.glob(".*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _ABANDONED:
                path.unlink()


@cache
def _reported() -> set[Path]:
    return set()


def _report(error: OSError) -> None:
    """Say once for each folder that generated code is not kept."""
    if folder() not in _reported():
        _reported().add(folder())
        _log.warning(
            "generated code is not kept in %s: %s; set %s to another folder",
            folder(),
            error.strerror,
            FOLDER_VARIABLE,
        )
