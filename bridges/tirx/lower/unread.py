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
from tvm.ir import TensorLoad
from tvm.tirx import AllocBuffer, BufferStore, Evaluate, IntImm, PrimFunc

__all__ = ["drop_unread_temporaries"]


def drop_unread_temporaries(function: PrimFunc) -> PrimFunc:
    """Simplify a function, and remove allocated buffers that are never loaded together with their stores."""
    function = _apply(tirx.transform.StmtSimplify(), function)
    body = function.body
    while unread := _unread(body):
        body = tvm_ffi.structural_map(body, ((AllocBuffer, BufferStore), _dropper(unread)))
    if body.same_as(function.body):
        return function
    # Loops around dropped stores go, too.
    return _apply(tirx.transform.RemoveNoOp(), function.with_body(body))


def _unread(body: Any) -> set[str]:
    allocated: set[str] = set()
    loaded: set[str] = set()
    tvm_ffi.structural_walk(
        body,
        [
            (AllocBuffer, lambda node: allocated.add(_identity(node.buffer))),
            (TensorLoad, lambda node: loaded.add(_identity(node.source))),
        ],
    )
    return allocated - loaded


def _apply(transform: Any, function: PrimFunc) -> PrimFunc:
    return transform(tvm.IRModule({"main": function}))["main"]


def _identity(buffer: Any) -> str:
    # The builder makes names unique in a function.
    return str(buffer.name)


def _dropper(unread: set[str]) -> Any:
    def drop(node: Any) -> Any:
        return Evaluate(IntImm("int32", 0)) if _identity(node.buffer) in unread else node

    return drop
