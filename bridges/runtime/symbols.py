"""Whether the opaque functions that a program calls are in this process."""

from __future__ import annotations

import ctypes

from tvm_tile.errors import UnsupportedError
from tvm_tile.ir.ops import Extern
from tvm_tile.ir.regions import Program
from tvm_tile.ir.structure import walk

__all__ = ["check_symbols"]


def check_symbols(program: Program) -> None:
    """Refuse a program that calls a function which is not there; the call would end the process.

    Raises
    ------
    UnsupportedError
        Names the symbol.
    """
    process = ctypes.CDLL(None)
    for statement in walk(program.body):
        if isinstance(statement, Extern) and not hasattr(process, statement.symbol):
            raise UnsupportedError(
                f"{program.name} calls {statement.symbol}, and this process has no such function",
                span=statement.span,
                suggestion="load the library that defines it first: ctypes.CDLL(path, ctypes.RTLD_GLOBAL)",
            )
