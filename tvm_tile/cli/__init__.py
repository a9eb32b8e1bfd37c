"""The command line ``tvm-tile``: one module a command, :func:`main` chooses.

Exit codes: 0 success, 1 a finding (printed as one line with its source position), 2 bad usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from tvm_tile.cli import compile, demo, doctor, execute, show
from tvm_tile.errors import TileError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="tvm-tile", description="Tile programs: show, build and run them.")
    parser.add_argument("--version", action="version", version=f"tvm-tile {version('tvm-tile')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (demo, show, execute, compile, doctor):
        command.add_parser(commands)
    options = parser.parse_args(argv)
    try:
        code = int(options.run(options))
        # What cannot be written is to fail here, not when the interpreter ends.
        sys.stdout.flush()
        return code
    except TileError as error:
        where = f"{error.span}: " if error.span is not None else ""
        remedy = f" (try: {error.suggestion})" if error.suggestion else ""
        line = " ".join(f"{error.message}{remedy}".split())
        print(f"{where}{type(error).__name__}: {line}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output (a pager, `head`) has gone; nothing is left to say to it.
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _drop_output() -> None:
    """Send what is still in the buffer of standard output nowhere; flushing it at exit would fail again."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 it is to stay open until the process ends
