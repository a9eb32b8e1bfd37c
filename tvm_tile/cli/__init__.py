"""The command line ``tvm-tile``: one module a command, :func:`main` chooses.

Exit codes: 0 success, 1 a finding (printed as one line with its source position), 2 bad usage.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final, TextIO

from tvm_tile.cli import compile, demo, doctor, execute, show
from tvm_tile.errors import TileError

__all__ = ["main"]

#: What shells take as "ended by Ctrl-C".
_INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="tvm-tile", description="Tile programs: show, build and run them.")
    parser.add_argument("--version", action="version", version=f"tvm-tile {version('tvm-tile')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (demo, show, execute, compile, doctor):
        command.add_parser(commands)
    _prepare(sys.stdout)
    _prepare(sys.stderr)
    options = parser.parse_args(argv)
    try:
        code = int(options.run(options))
        # What cannot be written is to fail here, not when the interpreter ends.
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except TileError as error:
        where = f"{error.span}: " if error.span is not None else ""
        remedy = f" (try: {error.suggestion})" if error.suggestion else ""
        line = " ".join(f"{error.message}{remedy}".split())
        print(f"{where}{type(error).__name__}: {line}", file=sys.stderr)
        return 1
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            # Rich ends so, having dropped the output itself.
            return 0
        # Of the kernel's own Python, while it was traced.
        print(
            f"SystemExit: the kernel's Python ended the process with {stop.code!r} (try: raise an exception "
            "that says why)",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output (a pager, `head`) has gone; nothing is left to say to it.
        _drop_output()
        return 0
    except MemoryError as error:
        print(f"MemoryError: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        _drop_output()
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _prepare(stream: TextIO | None) -> None:
    """Let names that the terminal has no characters for be shown by their codes; a closed stream is none."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Send what is still in the buffer of standard output nowhere; flushing it at exit would fail again."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 it is to stay open until the process ends
