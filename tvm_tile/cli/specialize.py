"""Arguments and constants on the command line, and the program of a kernel that is specialized for them."""

from __future__ import annotations

import argparse
import ast
import difflib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tvm_tile.cli.kernels import load_kernel, split_reference
from tvm_tile.errors import ArgumentError

if TYPE_CHECKING:
    from tvm_tile.frontend.kernel import Kernel
    from tvm_tile.ir.regions import Program

__all__ = [
    "add_arguments",
    "given_arguments",
    "parse_argument",
    "parse_constant",
    "parse_named",
    "program_of",
]

T = TypeVar("T")

_SPEC = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d\s,]*)\]")

#: Floats as Python prints them, for which it has no literals.
_NOT_FINITE = re.compile(r"[+-]?inf|nan")
_NO_LITERAL = object()


def add_arguments(parser: argparse.ArgumentParser, argument: Callable[[str], Any] | None = None) -> None:
    """Enter the kernel, its arguments and its constants.

    Parameters
    ----------
    argument
        Reads the text of one argument; by default :func:`parse_argument`.
    """
    read = argument or parse_argument
    parser.add_argument(
        "kernel",
        metavar="FILE:KERNEL",
        type=_usage(_reference),
        help="a Python file and the name of a kernel in it",
    )
    parser.add_argument(
        "--args",
        nargs="*",
        default=[],
        type=_usage(read),
        metavar="ARG",
        help="arguments in order: 'float32[20,18]' for a tensor, a number for a run-time scalar",
    )
    parser.add_argument(
        "--spec",
        nargs="*",
        action="extend",
        default=[],
        type=_usage(lambda text: parse_named(text, read)),
        metavar="NAME=ARG",
        help="arguments by name, such as 'A=float32[20,18]' alpha=2.0",
    )
    parser.add_argument(
        "--const",
        nargs="*",
        action="extend",
        default=[],
        type=_usage(parse_constant),
        metavar="NAME=VALUE",
        help="compile-time constants",
    )
    parser.add_argument("--target", default="llvm", help="target of the code (default: llvm, this machine)")


def _usage(read: Callable[[str], T]) -> Callable[[str], T]:
    """Reader for argparse: text that does not parse is bad usage, not a finding about a program."""

    def reader(text: str) -> T:
        try:
            return read(text)
        except ArgumentError as error:
            remedy = f" (try: {error.suggestion})" if error.suggestion else ""
            raise argparse.ArgumentTypeError(error.message + remedy) from error

    return reader


def _reference(text: str) -> str:
    split_reference(text)
    return text


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
    number = _literal(text)
    if not isinstance(number, (bool, int, float)):
        raise ArgumentError(
            f"argument {text!r} is neither a tensor nor a number",
            suggestion="write a tensor as 'float32[20,18]' (quoted, for the shell)",
        )
    return number


def _literal(text: str) -> Any:
    """The value of a Python literal, or of a float that has none; ``_NO_LITERAL`` for other text."""
    if _NOT_FINITE.fullmatch(text.strip()):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        # Keys that cannot be hashed, and brackets nested too deep for the parser, are no literals either.
        return _NO_LITERAL


def parse_named(text: str, argument: Callable[[str], Any] = parse_argument) -> tuple[str, Any]:
    """Name and argument of ``NAME=ARG``.

    Raises
    ------
    ArgumentError
        There is no ``=``, the name is not an identifier, or the argument is none.
    """
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise ArgumentError(f"{text!r} is not NAME=ARG", suggestion="--spec 'A=float32[20,18]'")
    return name, argument(value)


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
    literal = _literal(value)
    return name, value if literal is _NO_LITERAL else literal


def given_arguments(options: argparse.Namespace) -> tuple[Kernel, tuple[Any, ...], dict[str, Any]]:
    """The kernel, its arguments in order, and its constants with their defaults.

    Raises
    ------
    ArgumentError
        There is no such kernel, or an argument is missing, unknown or given twice.
    """
    kernel = load_kernel(options.kernel)
    named: dict[str, Any] = {}
    for name, value in (*options.spec, *options.const):
        if name in named:
            raise ArgumentError(f"{name} is given twice", suggestion=f"give {name} once")
        named[name] = value
    _check_names(kernel, options, named)
    arguments, constants = kernel.bind(tuple(options.args), named)
    return kernel, arguments, constants


def _check_names(kernel: Kernel, options: argparse.Namespace, named: dict[str, Any]) -> None:
    """Refuse names that the kernel does not have, and too few arguments, in terms of the options."""
    parameters, constants = kernel.signature.parameters, kernel.signature.constants
    listed = f"its parameters are {', '.join(parameters) or 'none'}"
    if constants:
        listed += f", its constants {', '.join(constants)}"
    for option, pairs in (("--spec", options.spec), ("--const", options.const)):
        unknown = [name for name, _ in pairs if name not in parameters and name not in constants]
        if unknown:
            known = (*parameters, *constants)
            near = difflib.get_close_matches(unknown[0], known, 1)
            raise ArgumentError(
                f"{option} names {', '.join(unknown)}, which kernel {kernel.name} does not have; {listed}",
                span=kernel.span,
                suggestion=f"{option} {near[0]}=..." if near else f"leave {unknown[0]} out",
            )
    missing = [name for name in parameters[len(options.args) :] if name not in named]
    if missing:
        tensor = "float32[64]"
        raise ArgumentError(
            f"kernel {kernel.name} takes {', '.join(parameters)}; {', '.join(missing)} missing",
            span=kernel.span,
            suggestion=f"give shapes in order, --args {' '.join([repr(tensor)] * len(parameters))}, "
            f"or by name, --spec {' '.join(repr(f'{name}={tensor}') for name in missing)}",
        )


def program_of(options: argparse.Namespace) -> Program:
    """The program of the kernel for what was given."""
    kernel, arguments, constants = given_arguments(options)
    return kernel.trace(*arguments, **constants)
