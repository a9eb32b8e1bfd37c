"""From a program to generated code and calls of it: where frontend, lowering and runtime meet.

TVM is imported by the first function that needs it, so that importing this module stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm_tile.bridges.runtime.executable import Executable, load
from tvm_tile.bridges.runtime.jit import cache_clear, cache_info, executable_of, run_kernel
from tvm_tile.bridges.runtime.threads import get_num_threads, set_num_threads
from tvm_tile.frontend.kernel import set_launcher
from tvm_tile.ir.regions import Program
from tvm_tile.semantics.legality import verify

if TYPE_CHECKING:
    import tvm

__all__ = [
    "Executable",
    "build",
    "cache_clear",
    "cache_info",
    "get_num_threads",
    "load",
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
        The program has faults, claims a law that does not hold, or the target's options reorder a fold of it
        that has an order.
    UnsupportedError
        The target has no mapping.
    """
    from tvm_tile.bridges.runtime.artifact import lower_to_module
    from tvm_tile.bridges.tirx.target import resolve_target
    from tvm_tile.bridges.tirx.target_options import check_arithmetic

    verify(program)
    resolved = resolve_target(target)
    check_arithmetic(program, resolved)
    return lower_to_module(program, resolved)


def build(program: Program, target: Any = "llvm", debug: bool = False) -> Executable:
    """Generate code for a program.

    Parameters
    ----------
    program
        A traced or parsed program.
    target
        As for :func:`lower`.
    debug
        Check on every call what the program promises: ``bounds="assume"``, and that opaque functions write
        only what they declare and nothing beside it. Reads of memory that was not written are found by
        ``tt.interpret(..., debug=True)``. Calls run on guarded copies and take several times as long; code
        is not kept on disk. On ``llvm`` only.

    Returns
    -------
    Executable
        Its code comes from the cache on disk where an equal program was built before for the same target.

    Raises
    ------
    ArgumentError
        Not a program, or not a target; or the program writes a parameter whose elements overlap.
    IllegalError
        The program has faults, claims a law that does not hold, or the target's options reorder a fold of it
        that has an order.
    UnsupportedError
        The target has no mapping, does not run here, has options that the language does not permit, or has
        no debug builds.
    """
    verify(program)
    from tvm_tile.bridges.tirx.target import resolve_target

    return executable_of(program, resolve_target(target), debug)


set_launcher(run_kernel)
