"""The TIR pipeline ``"tvm_tile"``, and the mark on functions that no other pipeline compiles rightly.

TVM's default pipeline ignores every ``TileLayout`` and compiles on as if buffers were row-major. A
function for which that matters carries a mark that only our pipeline removes; any other one raises when
it lowers the mark. All builds of this project go through our pipeline: TVM's ``"tirx"`` after that, and
TVM's ``"s_tir"`` for the functions of that dialect which a module may also hold.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.tirx.compilation_pipeline import register_tir_pipeline, tirx_pipeline
from tvm.tirx.layout import S, TileLayout

from tvm_tile.bridges.tirx.mixture import mixed_pipeline
from tvm_tile.bridges.tirx.operators import REQUIRES_PIPELINE, requires_pipeline
from tvm_tile.ir.values import row_major_strides

__all__ = ["PIPELINE", "is_marked", "mark_requires_pipeline", "needs_pipeline", "register_pipeline"]

#: Name under which the pipeline is registered, for ``tvm.compile(..., tir_pipeline=PIPELINE)``.
PIPELINE = "tvm_tile"


def register_pipeline() -> None:
    """Register the pipeline with TVM; more than once is harmless."""
    register_tir_pipeline(PIPELINE, mixed_pipeline(PIPELINE, _pipeline))


def _pipeline() -> tuple[Any, Any, Any]:
    """Module pass, host finalization and device finalization, as TVM's registry wants them."""
    tirx_pass, finalize_host, finalize_device = tirx_pipeline()

    def run(mod: tvm.IRModule, _context: Any) -> tvm.IRModule:
        unmarked = {
            var: _without_mark(func) if isinstance(func, tirx.PrimFunc) else func
            for var, func in mod.functions_items()
        }
        return tirx_pass(tvm.IRModule(unmarked, attrs=mod.attrs))

    module_pass = tvm.transform.module_pass(run, opt_level=0, name=PIPELINE)
    return module_pass, finalize_host, finalize_device


def mark_requires_pipeline(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with a mark that makes every pipeline but ours raise instead of compiling it wrongly."""
    if is_marked(func):
        return func
    body = list(func.body.seq) if isinstance(func.body, tirx.SeqStmt) else [func.body]
    return func.with_body(tirx.SeqStmt([tirx.Evaluate(requires_pipeline(PIPELINE)), *body]))


def is_marked(func: tirx.PrimFunc) -> bool:
    """Whether the function carries the mark."""
    found = tvm_ffi.structural_walk(
        func.body,
        (tirx.Evaluate, lambda node: tvm_ffi.VisitInterrupt(node) if _is_mark(node) else None),
    )
    return found is not None


def _is_mark(node: Any) -> bool:
    return isinstance(node.value, tvm.ir.Call) and getattr(node.value.op, "name", None) == REQUIRES_PIPELINE


def _without_mark(func: tirx.PrimFunc) -> tirx.PrimFunc:
    if not is_marked(func):
        return func
    no_op = tirx.Evaluate(tirx.const(0, "int32"))
    body = tvm_ffi.structural_map(func.body, (tirx.Evaluate, lambda node: no_op if _is_mark(node) else node))
    return func.with_body(body)


def needs_pipeline(func: tirx.PrimFunc) -> bool:
    """Whether some buffer of the function has a layout that differs from its strides.

    TVM's default pipeline addresses a buffer by its strides (row-major without), ``"tirx"`` by its
    layout and never by its strides. The two are compared by where they put each element, not by TVM's
    canonical forms. What cannot be compared here, symbolic or swizzled, counts as different.
    """
    found: list[Any] = []

    def look(var: Any) -> None:
        if tirx.is_buffer_var(var) and not _layout_agrees_with_strides(var.ty):
            found.append(var)

    for param in func.params:
        look(param)
    tvm_ffi.structural_walk(func.body, (tvm.ir.Var, look))
    return bool(found)


def _layout_agrees_with_strides(buffer_type: Any) -> bool:
    layout, shape, strides = buffer_type.layout, tuple(buffer_type.shape), tuple(buffer_type.strides)
    if layout is None:
        return True
    # An array without elements is never addressed.
    if any(isinstance(extent, tirx.IntImm) and int(extent) == 0 for extent in shape):
        return True
    if not isinstance(layout, TileLayout):
        return False
    if shape and not strides and tvm_ffi.structural_equal(layout, TileLayout(S[shape])):
        return True
    numbers = [*shape, *strides, *(part for it in layout.shard for part in (it.extent, it.stride))]
    if not all(isinstance(number, tirx.IntImm) for number in numbers):
        return False
    if any(it.axis.name != "m" for it in layout.shard if int(it.extent) != 1):
        return False
    if any(int(it.extent) != 1 for it in layout.replica) or len(layout.offset):
        return False
    extents = tuple(map(int, shape))
    steps = tuple(map(int, strides)) if strides else row_major_strides(extents)
    shard = [(int(it.extent), int(it.stride)) for it in layout.shard]
    return _same_digits(list(zip(extents, steps, strict=True)), shard)


def _same_digits(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> bool:
    """Whether two mixed-radix maps of ``(extent, stride)``, innermost last, are the same map.

    Compares digit by digit from the inside, splitting the longer digit. Extents that do not divide one
    another are taken to differ.
    """
    a, b = ([digit for digit in digits if digit[0] != 1] for digits in (a, b))
    while a and b:
        (extent_a, stride_a), (extent_b, stride_b) = a.pop(), b.pop()
        inner = min(extent_a, extent_b)
        if stride_a != stride_b or inner == 0 or extent_a % inner or extent_b % inner:
            return inner == 0
        if extent_a > inner:
            a.append((extent_a // inner, stride_a * inner))
        if extent_b > inner:
            b.append((extent_b // inner, stride_b * inner))
    return not a and not b
