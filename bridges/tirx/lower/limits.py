"""What a kind of target cannot hold, refused by name before anything is lowered."""

from __future__ import annotations

from tvm_tile.bridges.tirx.lower.machine import Machine
from tvm_tile.errors import IllegalError, UnsupportedError
from tvm_tile.ir.dtypes import bits
from tvm_tile.ir.ops import Alloc, Atomic, Elementwise, Extern, View
from tvm_tile.ir.regions import Block, If, Loop, Parallel, Program
from tvm_tile.ir.structure import walk
from tvm_tile.ir.values import Memory, Value
from tvm_tile.target.memories import MEMORIES
from tvm_tile.target.scopes import contains, scopes_of

__all__ = ["check_support"]


def check_support(program: Program, machine: Machine) -> None:
    """Refuse what the target lacks, or what the reference mapping does not honour.

    Raises
    ------
    IllegalError
        A region is bound to a scope that does not lie within the scope of the region around it.
    UnsupportedError
        Names the parameter, value or statement, why, and a remedy.
    """
    _check_bindings(program.body, machine.kind, None, True)
    _check_memories(program, machine.kind)
    if not machine.is_device:
        return
    if machine.kind == "metal":
        _check_metal(program)
    for statement in walk(program.body):
        if isinstance(statement, Extern):
            raise UnsupportedError(
                f"the C function {statement.symbol} cannot be called from a kernel on {machine.kind}",
                span=statement.span,
                suggestion='build for "llvm"',
            )


#: Scopes to which the reference mapping binds the outermost regions.
_OUTERMOST = {"llvm": ("worker",), "cuda": ("block", "thread"), "metal": ("block", "thread")}
_OUTERMOST["opencl"] = _OUTERMOST["metal"]


def _check_bindings(block: Block, kind: str, outer: str | None, outermost: bool) -> None:
    for statement in block.statements:
        if isinstance(statement, If):
            _check_bindings(statement.then, kind, outer, False)
            _check_bindings(statement.orelse, kind, outer, False)
        elif isinstance(statement, Loop):
            bind = statement.bind if isinstance(statement, Parallel) else None
            if bind is not None:
                _check_binding(statement, bind, kind, outer, outermost)
            _check_bindings(statement.body, kind, bind or outer, False)


def _check_binding(region: Loop, bind: str, kind: str, outer: str | None, outermost: bool) -> None:
    if bind not in scopes_of(kind):
        raise UnsupportedError(
            f"a region is bound to the scope {bind!r}, which {kind} does not have",
            span=region.span,
            suggestion=f"one of the scopes {', '.join(map(repr, scopes_of(kind)))}, or leave bind out",
        )
    if outer is not None and not contains(kind, outer, bind):
        raise IllegalError(
            f"a region is bound to {bind!r} within one that is bound to {outer!r}, which is not made of such",
            span=region.span,
            obligation="binding",
            suggestion="bind the inner region to a scope within the outer one's, or leave bind out",
        )
    if not outermost or region.results or bind not in _OUTERMOST[kind]:
        raise UnsupportedError(
            f"the mapping of this program to {kind} does not bind this region to {bind!r}",
            span=region.span,
            suggestion=f"leave bind out; outermost regions without results may be bound to "
            f"{' or '.join(map(repr, _OUTERMOST[kind]))}",
        )


def _check_memories(program: Program, kind: str) -> None:
    for statement in walk(program.body):
        if isinstance(statement, Alloc) and statement.memory.scope not in MEMORIES[kind]:
            memory = statement.memory
            raise UnsupportedError(
                f"memory {memory.name} is allocated in {memory.scope!r}, which {kind} does not have",
                span=statement.span,
                suggestion=f"one of the memories {', '.join(map(repr, MEMORIES[kind]))}",
            )


def _check_metal(program: Program) -> None:
    _check_doubles(program)
    for statement in walk(program.body):
        match statement:
            case Atomic(view=View(memory=memory), fn=fn) if bits(memory.dtype) != 32:
                raise UnsupportedError(
                    f"atomic_{fn} updates {memory.name}, whose elements are {memory.dtype}; Metal updates "
                    "only 32 bits atomically",
                    span=statement.span,
                    suggestion="use int32, uint32 or float32",
                )
            case Elementwise(fn="fma", result=Value(type=type)) if type.dtype == "bfloat16":
                raise UnsupportedError(
                    f"fma gives {statement.result}, which is bfloat16; rounding once needs float64, which "
                    "Metal does not have",
                    span=statement.span,
                    suggestion='use float32: x.astype("float32")',
                )


def _check_doubles(program: Program) -> None:
    remedy = "use float32"
    for param in program.params:
        if param.dtype == "float64":
            name = param.name if isinstance(param, Memory) else param.name or str(param)
            raise UnsupportedError(
                f"parameter {name} is float64, which Metal does not have", span=param.span, suggestion=remedy
            )
    for statement in walk(program.body):
        inner = (*statement.indices, *statement.args) if isinstance(statement, Loop) else ()
        for value in (*statement.results, *inner):
            if value.dtype == "float64":
                raise UnsupportedError(
                    f"value {value} is float64, which Metal does not have",
                    span=value.span or statement.span,
                    suggestion=remedy,
                )
