"""``tvm-tile show FILE:kernel --args ...``: print a kernel's program, its TIRx and its code."""

from __future__ import annotations

import argparse
import ast
import re
from typing import TYPE_CHECKING, Any

from tvm_tile.cli.kernels import load_kernel
from tvm_tile.errors import ArgumentError

if TYPE_CHECKING:
    from tvm_tile.frontend.kernel import Kernel

__all__ = ["add_parser", "parse_argument", "parse_constant"]

_SPEC = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d\s,]*)\]")


def add_parser(commands: Any) -> None:
    """Enter the command."""
    parser = commands.add_parser(
        "show",
        help="print the program and the TIRx of a kernel",
        description="Specialize a kernel for the given arguments; print its program, its TIRx, its code.",
    )
    parser.add_argument("kernel", metavar="FILE:KERNEL", help="a Python file and the name of a kernel in it")
    parser.add_argument(
        "--args",
        nargs="*",
        default=[],
        metavar="ARG",
        help="one a parameter: 'float32[20,18]' for a tensor, a number for a run-time scalar",
    )
    parser.add_argument("--const", nargs="*", default=[], metavar="NAME=VALUE", help="compile-time constants")
    parser.add_argument("--target", default="llvm", help="target of the lowering (default: llvm)")
    parser.add_argument(
        "--only", choices=("program", "tirx", "code"), help="one part; without it: program and TIRx"
    )
    parser.set_defaults(run=run)


def parse_argument(text: str) -> Any:
    """A ``tt.spec`` from ``dtype[shape]``, or a number.

    Raises
    ------
    ArgumentError
        It is neither.
    """
    from tvm_tile.frontend import spec

    match = _SPEC.fullmatch(text.strip())
    if match:
        shape = tuple(int(extent) for extent in match["shape"].split(",") if extent.strip())
        return spec(shape, match["dtype"])
    try:
        number = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        number = None
    if not isinstance(number, (bool, int, float)):
        raise ArgumentError(
            f"argument {text!r} is neither a tensor nor a number",
            suggestion="write a tensor as 'float32[20,18]' (quoted, for the shell)",
        )
    return number


def parse_constant(text: str) -> tuple[str, Any]:
    """Name and value of ``NAME=VALUE``; a value that is no Python literal is a string.

    Raises
    ------
    ArgumentError
        There is no ``=``, or the name is not an identifier.
    """
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise ArgumentError(f"constant {text!r} is not NAME=VALUE", suggestion="--const bm=32 causal=True")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def run(options: argparse.Namespace) -> int:
    """Print what was asked for."""
    from tvm_tile.build import build, lower

    kernel: Kernel = load_kernel(options.kernel)
    arguments = [parse_argument(text) for text in options.args]
    program = kernel.trace(*arguments, **dict(parse_constant(text) for text in options.const))
    if options.only in (None, "program"):
        print(program)
    if options.only in (None, "tirx"):
        print(lower(program, options.target).script())
    if options.only == "code":
        print(build(program, options.target).source())
    return 0
