"""Temporaries that nothing reads, once TVM has simplified the arithmetic that did.

TVM's ``StorageRewrite`` lets a value take over the storage of one that is read for the last time in the same
statement. It checks the reads, and so a temporary that is only written passes: its stores then destroy the
new value. ``x - x`` in a program is enough to get there, since simplification drops both reads. So the
function is simplified here, and the stores go with their readers.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Op, TensorLoad
from tvm.tirx import AllocBuffer, BufferStore, Evaluate, IntImm, PrimFunc
from tvm_ffi.structural import WalkResult

__all__ = ["drop_unread_temporaries"]


def drop_unread_temporaries(function: PrimFunc) -> PrimFunc:
    """Simplify a function, and remove allocated buffers that no result depends on, with their stores."""
    function = _apply(tirx.transform.StmtSimplify(), function)
    unread = _unread(function.body)
    if not unread:
        return function
    body = tvm_ffi.structural_map(function.body, ((AllocBuffer, BufferStore), _dropper(unread)))
    # Loops around dropped stores go, too.
    return _apply(tirx.transform.RemoveNoOp(), function.with_body(body))


def _unread(body: Any) -> set[str]:
    allocated: set[str] = set()
    tvm_ffi.structural_walk(body, (AllocBuffer, lambda node: allocated.add(_identity(node.buffer))))
    needed: set[str] = set()
    needs: dict[str, set[str]] = {name: set() for name in allocated}

    def loads(node: Any, into: set[str]) -> None:
        tvm_ffi.structural_walk(node, (TensorLoad, lambda load: into.add(_identity(load.source))))

    def store(node: Any) -> WalkResult:
        # What is stored to a temporary counts only if that temporary does, or if storing it does more.
        into = needed if _acts(node.value) else needs.get(_identity(node.buffer), needed)
        loads(node.value, into)
        for index in node.indices:
            loads(index, into)
        return WalkResult.SKIP

    callbacks = [(BufferStore, store), (TensorLoad, lambda node: needed.add(_identity(node.source)))]
    tvm_ffi.structural_walk(body, callbacks, order="pre")
    pending = list(needed)
    while pending:
        found = needs.get(pending.pop(), set()) - needed
        needed |= found
        pending += found
    return allocated - needed


def _apply(transform: Any, function: PrimFunc) -> PrimFunc:
    return transform(tvm.IRModule({"main": function}))["main"]


def _identity(buffer: Any) -> str:
    # The builder makes names unique in a function.
    return str(buffer.name)


def _dropper(unread: set[str]) -> Any:
    def drop(node: Any) -> Any:
        if _identity(node.buffer) not in unread:
            return node
        if isinstance(node, BufferStore) and _acts(node.value):
            return Evaluate(node.value)
        return Evaluate(IntImm("int32", 0))

    return drop


def _acts(value: Any) -> bool:
    """Whether evaluating an expression shows, as that of an atomic update does."""

    def look(call: Any) -> Any:
        effect = call.op.get_attr("TCallEffectKind") if isinstance(call.op, Op) else None
        pure = effect is not None and int(effect) <= tirx.CallEffectKind.ReadState.value
        return None if pure else tvm_ffi.VisitInterrupt(call)

    return tvm_ffi.structural_walk(value, (Call, look)) is not None
