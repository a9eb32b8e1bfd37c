"""The structural verifier: reports every fault of a program, each with its place and one remedy.

The rules are in :mod:`~tvm_tile.ir.dominance` (definitions and uses), :mod:`~tvm_tile.ir.op_rules` and
:mod:`~tvm_tile.ir.region_rules`; parameters are checked here. What needs a proof about index sets, such
as noninterference, is not structural and not checked here.
"""

from __future__ import annotations

from collections.abc import Iterator

from tvm_tile.errors import ArgumentError, IllegalError
from tvm_tile.ir.dominance import dominance_faults
from tvm_tile.ir.faults import Fault
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.merge_rules import merge_op_faults
from tvm_tile.ir.op_rules import LARGEST_SIZE, memory_fault, op_faults, type_fault
from tvm_tile.ir.ops import Op
from tvm_tile.ir.region_rules import effect_faults, region_faults, stage_faults
from tvm_tile.ir.regions import Program
from tvm_tile.ir.structure import walk
from tvm_tile.ir.values import Memory, TileType

__all__ = ["Fault", "verify", "verify_program"]


def verify_program(program: Program) -> list[Fault]:
    """All structural faults of a program; empty if there are none."""
    faults = [*_param_faults(program), *dominance_faults(program)]
    for statement in walk(program):
        faults.extend(op_faults(statement) if isinstance(statement, Op) else region_faults(statement))
        if isinstance(statement, (MergeReduce, Scan)):
            faults.extend(merge_op_faults(statement))
    return [*faults, *stage_faults(program.body), *effect_faults(program.body)]


def verify(program: Program) -> None:
    """Check a program.

    Raises
    ------
    ArgumentError
        Not a program.
    IllegalError
        The program has faults; the message lists all of them, and the span is the first one's.
    """
    if not isinstance(program, Program):
        raise ArgumentError(
            f"expected a program, got {program!r:.80} ({type(program).__name__})",
            suggestion="kernel.trace(*arrays) gives one, and tt.parse(text)",
        )
    faults = verify_program(program)
    if not faults:
        return
    first = faults[0]
    message = first.message
    if len(faults) > 1:
        listed = "".join(f"\n  {number}. {fault}" for number, fault in enumerate(faults, 1))
        message = f"kernel {program.name} has {len(faults)} faults:{listed}"
    raise IllegalError(message, span=first.span, obligation=first.obligation, suggestion=first.suggestion)


def _param_faults(program: Program) -> Iterator[Fault]:
    seen: set[str] = set()
    for param in program.params:
        span = param.span or program.span
        problem = type_fault(TileType(param.shape, param.dtype))
        if problem is not None:
            yield Fault(f"parameter {param}: {problem}", span, "type", "use a dtype and extents that exist")
        if not isinstance(param, Memory):
            if param.shape != ():
                message = f"parameter {param} is a value of shape {param.shape}, not a scalar"
                yield Fault(message, span, "parameter", "pass it as a tensor")
            continue
        if param.name in seen:
            message = f"two memories have the name {param}"
            yield Fault(message, span, "memory", "give each memory its own name")
        seen.add(param.name)
        if param.strides is not None and len(param.strides) != len(param.shape):
            message = f"memory {param} of shape {param.shape} has the strides {param.strides}"
            yield Fault(message, span, "memory", "give one stride an axis")
        elif problem is None and memory_fault(param) is not None:
            message = f"memory {param}: {memory_fault(param)}"
            yield Fault(message, span, "memory", f"keep it below {LARGEST_SIZE} bytes")
