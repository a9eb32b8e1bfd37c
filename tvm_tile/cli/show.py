"""``tvm-tile show FILE:kernel --args ...``: print a kernel's program, its TIRx and its code."""

from __future__ import annotations

import argparse
from typing import Any

from tvm_tile.cli.specialize import add_arguments, program_of

__all__ = ["add_parser"]


def add_parser(commands: Any) -> None:
    """Enter the command."""
    parser = commands.add_parser(
        "show",
        help="print the program and the TIRx of a kernel",
        description="Specialize a kernel for the given arguments; print its program, its TIRx, its code.",
    )
    add_arguments(parser)
    parser.add_argument(
        "--only", choices=("program", "tirx", "code"), help="one part; without it: program and TIRx"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what was asked for."""
    from tvm_tile.build import build, lower

    program = program_of(options)
    if options.target != "llvm":
        from tvm_tile.bridges.tirx.target import resolve_target

        # The program does not depend on it, but a wrong one is a finding all the same.
        resolve_target(options.target)
    parts: list[str] = []
    if options.only in (None, "program"):
        parts.append(str(program))
    if options.only in (None, "tirx"):
        parts.append(lower(program, options.target).script())
    if options.only == "code":
        parts.append(str(build(program, options.target).source()))
    # All of them, or an error alone.
    print("\n".join(parts))
    return 0
