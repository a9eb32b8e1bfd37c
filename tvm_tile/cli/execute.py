"""``tvm-tile run FILE:kernel --spec ...``: run a kernel on arrays from files or on random numbers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from tvm_tile.cli.specialize import add_arguments, given_arguments, parse_argument
from tvm_tile.errors import ArgumentError, UnsupportedError
from tvm_tile.frontend.specs import Spec
from tvm_tile.ir.dtypes import is_bool, is_integer, numpy_dtype
from tvm_tile.ir.values import Memory, Value

__all__ = ["add_parser", "array_for", "read_argument"]

Array = np.ndarray[Any, Any]

#: Random integers are from this range, so that sums and products of a few fit any dtype.
_LARGEST = 8


def add_parser(commands: Any) -> None:
    """Enter the command."""
    parser = commands.add_parser(
        "run",
        help="run a kernel on arrays from files or on random numbers",
        description="Specialize a kernel for the given arguments, build it and run it once. A tensor that is "
        "given as dtype[shape] holds random numbers, one that is given as a .npy file what is in the file. "
        "Prints a line for each tensor that the kernel writes.",
        epilog="example: tvm-tile run kernels.py:softmax --spec X=scores.npy 'Y=float32[64,1000]' "
        "--save Y=probabilities.npy",
    )
    add_arguments(parser, read_argument)
    parser.add_argument("--seed", type=_seed, default=0, help="of the random numbers (default: 0)")
    parser.add_argument(
        "--save",
        nargs="*",
        action="extend",
        default=[],
        metavar="NAME=FILE.npy",
        help="write tensors to files after the run",
    )
    parser.add_argument(
        "--interpret", action="store_true", help="run the reference interpreter, not generated code"
    )
    parser.add_argument("--debug", action="store_true", help="check what the kernel promises while it runs")
    parser.set_defaults(run=run)


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no integer of 0 or more")
    return int(text)


def read_argument(text: str) -> Any:
    """An array from a ``.npy`` file, or what :func:`~tvm_tile.cli.specialize.parse_argument` gives.

    Raises
    ------
    ArgumentError
        The file cannot be read, or the text is no argument.
    """
    if not text.endswith(".npy"):
        return parse_argument(text)
    try:
        array = np.load(text, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise ArgumentError(f"{text!r} is no readable .npy file: {error}") from error
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{text!r} is no .npy file but an archive of several")
    return array


def array_for(spec: Spec, rng: np.random.Generator) -> Array:
    """A new array of random numbers: normal for floats, small and not negative for integers."""
    if is_bool(spec.dtype):
        return rng.integers(0, 2, spec.shape).astype(np.bool_)
    if is_integer(spec.dtype):
        return rng.integers(0, _LARGEST, spec.shape).astype(numpy_dtype(spec.dtype))
    return rng.standard_normal(spec.shape).astype(numpy_dtype(spec.dtype))


def run(options: argparse.Namespace) -> int:
    """Run once in place, print what was written, and save what was asked for."""
    from tvm_tile.build import build
    from tvm_tile.semantics.interpreter import interpret

    kernel, given, constants = given_arguments(options)
    rng = np.random.default_rng(options.seed)
    program = kernel.trace(*given, **constants)
    arguments = [
        _made_up(param, item, rng) if isinstance(item, Spec) else item
        for param, item in zip(program.params, given, strict=True)
    ]
    tensors = {
        param.name: argument
        for param, argument in zip(program.params, arguments, strict=True)
        if isinstance(param, Memory)
    }
    files: dict[str, Path] = {}
    for text in options.save:
        name, path = _file_for(text, tensors)
        if name in files:
            raise ArgumentError(f"--save has {name} twice", suggestion=f"save {name} once")
        files[name] = path
    if options.interpret:
        interpret(program, *arguments, debug=options.debug)
    else:
        executable = build(program, options.target, debug=options.debug)
        try:
            executable(*arguments)
        except UnsupportedError as error:
            if options.target in ("llvm", "opencl"):
                raise
            raise UnsupportedError(
                error.message, span=error.span, suggestion="--target opencl, or --target llvm for this CPU"
            ) from error
    for memory in program.tensors:
        if memory in program.writes:
            print(f"{memory.name} {memory.dtype}{list(memory.shape)}: {_summary(tensors[memory.name])}")
    for name, path in files.items():
        try:
            np.save(path, tensors[name])
        except OSError as error:
            raise ArgumentError(f"{str(path)!r} cannot be written: {error.strerror}") from error
    return 0


def _made_up(param: Memory | Value, spec: Spec, rng: np.random.Generator) -> Any:
    """A random argument: an array, or a number for a run-time scalar."""
    try:
        array = array_for(spec, rng)
    except MemoryError as error:
        raise ArgumentError(
            f"argument {param.name} of shape {spec.shape} does not fit into memory",
            suggestion="a smaller one",
        ) from error
    return array if isinstance(param, Memory) else array[()]


def _file_for(text: str, tensors: dict[str, Array]) -> tuple[str, Path]:
    name, sign, path = text.partition("=")
    if not sign or name not in tensors or not path.endswith(".npy"):
        raise ArgumentError(
            f"--save {text!r} is not NAME=FILE.npy with the name of a tensor",
            suggestion=f"one of {', '.join(tensors)}",
        )
    return name, Path(path)


def _summary(array: Array) -> str:
    if array.size == 0:
        return "no elements"
    if array.dtype == np.bool_:
        return f"{int(array.sum())} of {array.size} true"
    numbers = array.astype(np.float64)
    # Infinities of both signs have no mean; that is said by the number.
    with np.errstate(all="ignore"):
        text = f"minimum {numbers.min():.6g}, maximum {numbers.max():.6g}, mean {numbers.mean():.6g}"
    missing = int(np.isnan(numbers).sum())
    return f"{text}, {missing} NaN" if missing else text
