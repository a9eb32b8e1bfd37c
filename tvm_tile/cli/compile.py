"""``tvm-tile build FILE:kernel --spec ... -o out.so``: generate code, and keep it as a shared library."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tvm_tile.cli.specialize import add_arguments, program_of

__all__ = ["add_parser"]


def add_parser(commands: Any) -> None:
    """Enter the command."""
    parser = commands.add_parser(
        "build",
        help="generate code for a kernel",
        description="Specialize a kernel for the given arguments and generate code. With -o it is written to "
        "a shared library that tt.load(path) reads in any process.",
        epilog="example: tvm-tile build kernels.py:gemm --spec 'A=float32[64,32]' 'B=float32[32,48]' "
        "'C=float32[64,48]' --const bm=32 -o gemm.so",
    )
    add_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="OUT.so", help="write a shared library")
    parser.add_argument("--debug", action="store_true", help="with the checks of a debug build")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Build, and say what came out."""
    from tvm_tile.build import build

    executable = build(program_of(options), options.target, debug=options.debug)
    if options.output is not None:
        executable.save(options.output)
    print(executable)
    if options.output is not None:
        print(f"{options.output}: {options.output.stat().st_size} bytes")
    return 0
