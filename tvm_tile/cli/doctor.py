"""``tvm-tile doctor``: which targets build and run on this machine."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version
from typing import Any

import numpy as np

from tvm_tile.errors import TileError
from tvm_tile.target.memories import MEMORIES
from tvm_tile.target.scopes import scopes_of

__all__ = ["add_parser", "examine"]

TARGETS = ("llvm", "cuda", "metal", "opencl")


def add_parser(commands: Any) -> None:
    """Enter the command."""
    parser = commands.add_parser(
        "doctor",
        help="say which targets build and run here",
        description="Build a small program for every target and run it where this machine can.",
    )
    parser.add_argument(
        "--clear-cache",
        action="store_true",
        help="remove all generated code kept on disk, and do nothing else",
    )
    parser.set_defaults(run=run)


def examine(target: str) -> tuple[str, str, str]:
    """Whether a probe program builds and runs for a target, and the reason where it does not."""
    from tvm_tile.build import build
    from tvm_tile.cli.probe import scale_and_shift

    x = np.arange(37, dtype=np.float32)
    y = np.zeros_like(x)
    try:
        executable = build(scale_and_shift.trace(x, y), target)
    except TileError as error:
        return "no", "no", error.message
    try:
        executable(x, y)
    except TileError as error:
        return "yes", "no", _missing(target) or error.message
    if not np.array_equal(y, x * 2 + 1):
        return "yes", "no", f"wrong result: element 1 is {y[1]}, not 3.0"
    return "yes", "yes", str(executable.target)


def _missing(target: str) -> str | None:
    """What this machine lacks to run code for a target, if that is known."""
    match target:
        case "cuda":
            import tvm

            return None if tvm.cuda(0).exist else "no CUDA device"
        case "metal":
            return None if platform.system() == "Darwin" else "needs a Mac"
    return None


def run(options: argparse.Namespace) -> int:
    """Print versions, threads, the cache and a table of targets; 1 if this host's CPU cannot run programs."""
    from tvm_tile.bridges.runtime import disk_cache

    if options.clear_cache:
        removed = disk_cache.clear()
        print(f"{removed.folder}: {removed.entries} entries, {_mebibytes(removed.size)} removed")
        return 0
    from rich.console import Console
    from rich.table import Table

    from tvm_tile.build import get_num_threads

    console = Console()
    packages = ("tvm-tile", "apache-tvm", "apache-tvm-ffi", "numpy")
    console.print(", ".join(f"{name} {version(name)}" for name in packages), soft_wrap=True)
    console.print(
        f"Python {platform.python_version()} on {platform.platform()}, {get_num_threads()} worker threads",
        soft_wrap=True,
    )
    kept = disk_cache.folder_info()
    console.print(
        f"generated code in {kept.folder}: {kept.entries} entries, {_mebibytes(kept.size)} of at most "
        f"{_mebibytes(kept.limit)}; tvm-tile doctor --clear-cache removes it",
        soft_wrap=True,
    )
    table = Table("target", "builds", "runs here", "detail")
    spaces = Table("target", "scopes, the outer ones first", "memories")
    results = {target: examine(target) for target in TARGETS}
    for target, row in results.items():
        table.add_row(target, *row)
        spaces.add_row(target, " ".join(scopes_of(target)), " ".join(MEMORIES[target]))
    console.print(table)
    console.print(spaces)
    return 0 if results["llvm"][1] == "yes" else 1


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
