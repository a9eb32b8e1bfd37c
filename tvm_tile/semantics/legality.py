"""What a program must fulfil beyond its structure before it is run or built."""

from __future__ import annotations

from tvm_tile.ir.regions import Program
from tvm_tile.ir.verifier import verify as verify_structure

__all__ = ["verify"]


def verify(program: Program) -> None:
    """Check a program.

    Raises
    ------
    ArgumentError
        Not a program.
    IllegalError
        The program has faults, a merge breaks a law that it claims, or instances of a parallel region
        certainly update one element of a tile.
    """
    verify_structure(program)
