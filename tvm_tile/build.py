"""From a program to generated code and calls of it: where frontend, lowering and runtime meet.

TVM is imported by the first function that needs it, so that importing this module stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm_tile.bridges.runtime.executable import Executable
from tvm_tile.bridges.runtime.jit import cache_clear, cache_info, executable_of, run_kernel
from tvm_tile.bridges.runtime.threads import get_num_threads, set_num_threads
from tvm_tile.errors import UnsupportedError
from tvm_tile.frontend.kernel import set_launcher
from tvm_tile.ir.regions import Program
from tvm_tile.ir.verifier import verify

if TYPE_CHECKING:
    import tvm

__all__ = [
    "Executable",
    "build",
    "cache_clear",
    "cache_info",
    "get_num_threads",
    "lower",
    "run_kernel",
    "set_num_threads",
]


def lower(program: Program, target: Any = "llvm") -> tvm.IRModule:
    """Lower a program to a TIRx module.

    Parameters
    ----------
    program
        A traced or parsed program.
    target
        A short name (``"llvm"`` is this host), or anything that ``tvm.target.Target`` takes.

    Returns
    -------
    tvm.IRModule
        Plain ``tvm.compile(module, target)`` builds it rightly, or raises where it cannot.

    Raises
    ------
    ArgumentError
        Not a program, or not a target.
    IllegalError
        The program has faults.
    UnsupportedError
        The target has no mapping.
    """
    from tvm_tile.bridges.runtime.artifact import lower_to_module
    from tvm_tile.bridges.tirx.target import resolve_target

    verify(program)
    return lower_to_module(program, resolve_target(target))


def build(program: Program, target: Any = "llvm", debug: bool = False) -> Executable:
    """Generate code for a program.

    Parameters
    ----------
    program
        A traced or parsed program.
    target
        As for :func:`lower`.
    debug
        Not available; the checks of a debug run are those of the interpreter.

    Raises
    ------
    ArgumentError
        Not a program, or not a target; or the program writes a parameter whose elements overlap.
    IllegalError
        The program has faults.
    UnsupportedError
        The target has no mapping, or ``debug``.
    """
    verify(program)
    if debug:
        raise UnsupportedError(
            "generated code has no debug checks", suggestion="tt.interpret(program, *arrays, debug=True)"
        )
    from tvm_tile.bridges.tirx.target import resolve_target

    return executable_of(program, resolve_target(target))


set_launcher(run_kernel)
