"""Atomic updates of memory elements, element by element, each one step for all threads.

Each kind of target has one function that makes the expression for a single element; on a CPU it calls LLVM
functions that are written out here and inlined.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.ir import StringImm
from tvm.tirx import AttrStmt, BufferStore, Cast, IfThenElse, IntImm

from tvm_tile.bridges.tirx.lower.bounds import Check, inside_of
from tvm_tile.bridges.tirx.lower.builder import Body, Builder, sequence
from tvm_tile.bridges.tirx.lower.device.atomics import update_on_device
from tvm_tile.bridges.tirx.lower.loops import element_loops
from tvm_tile.bridges.tirx.lower.memories.calls import element_pointer
from tvm_tile.bridges.tirx.lower.memories.memory import view_index, viewed_at
from tvm_tile.bridges.tirx.lower.scalars import literal, register_dtype
from tvm_tile.bridges.tirx.lower.values import Index, Source, flat_index
from tvm_tile.ir.dtypes import bits, is_float
from tvm_tile.ir.ops import Atomic, View
from tvm_tile.ir.values import Value

__all__ = ["update_atomically"]


def update_atomically(builder: Builder, op: Atomic, env: dict[Value, Source], out: Any) -> None:
    """Emit an :class:`~tvm_tile.ir.ops.Atomic`; the old elements go into a dense temporary."""
    view = op.view
    memory = view.memory
    value = env[op.value]
    mask = None if op.mask is None else env[op.mask]
    place = view_index(view, builder)
    limits = viewed_at(view, place)
    register = register_dtype(memory.dtype)

    def checks(index: Index) -> tuple[Check, ...]:
        return (*limits(index), *value.checks(index), *(() if mask is None else mask.checks(index)))

    def sink(index: Index, body: Body) -> None:
        at = [builder.index(flat_index(index, view.shape))]
        operand = body.name(value.element(index, body), register)
        condition = inside_of(limits(index), builder)
        if mask is not None:
            wanted = tirx.NE(mask.element(index, body), IntImm("uint8", 0))
            condition = wanted if condition is None else tirx.And(condition, wanted)
        if 0 in memory.shape:
            builder.emit(BufferStore(out, literal(0, memory.dtype), at))
            return
        with builder.block() as statements:
            _update(body, op.fn, view, place(index), operand, lambda old: BufferStore(out, old, at))
        otherwise = BufferStore(out, literal(0, memory.dtype), at)
        builder.emit(
            sequence(statements)
            if condition is None
            else IfThenElse(condition, sequence(statements), otherwise)
        )

    element_loops(
        builder,
        view.shape,
        sink,
        width=max(value.width, bits(memory.dtype) // 8),
        checks=checks,
        vectorize=False,
    )


def _update(body: Body, fn: str, view: View, index: Index, operand: Any, keep: Any) -> None:
    """Emit one update; ``keep(old)`` makes the statement that takes what was there before."""
    if body.builder.machine.is_device:
        update_on_device(body, fn, view.memory, index, operand, keep)
    else:
        pointer = element_pointer(body.builder, view, index)
        _update_on_llvm(body.builder, fn, view.memory.dtype, pointer, operand, keep)


def _update_on_llvm(builder: Builder, fn: str, dtype: str, pointer: Any, operand: Any, keep: Any) -> None:
    name, text = _llvm_function(fn, dtype)
    if dtype == "float16":
        bits16 = tirx.reinterpret("uint16", Cast("float16", operand))
        old = Cast("float32", tirx.reinterpret("float16", tirx.call_extern("uint16", name, pointer, bits16)))
    elif dtype == "bfloat16":
        upper = tirx.shift_right(tirx.reinterpret("uint32", operand), IntImm("uint32", 16))
        word = Cast("uint32", tirx.call_extern("uint16", name, pointer, Cast("uint16", upper)))
        old = tirx.reinterpret("float32", tirx.shift_left(word, IntImm("uint32", 16)))
    else:
        old = tirx.call_extern(dtype, name, pointer, operand)
    builder.emit(AttrStmt(IntImm("int32", 0), "pragma_import_llvm", StringImm(text), keep(old)))


_LLVM_TYPES = {"float16": "i16", "bfloat16": "i16", "float32": "float", "float64": "double"}


def _llvm_function(fn: str, dtype: str) -> tuple[str, str]:
    """Name and definition; the same function in several modules or places is one."""
    name = f"tvm_tile_atomic_{fn}_{dtype}"
    kind = _LLVM_TYPES.get(dtype, f"i{bits(dtype)}")
    if dtype in ("float16", "bfloat16"):
        body = _exchange_loop(fn, dtype)
    else:
        body = (
            f"  %old = atomicrmw {_read_modify_write(fn, dtype)} ptr %p, {kind} %v seq_cst\n  ret {kind} %old"
        )
    head = f"define linkonce_odr {kind} @{name}(ptr %p, {kind} %v) alwaysinline nounwind"
    return name, f"{head} {{\nentry:\n{body}\n}}\n"


def _read_modify_write(fn: str, dtype: str) -> str:
    if is_float(dtype):
        # "maximum" and "minimum" are those of IEEE 754-2019, which propagate NaN.
        return {"add": "fadd", "maximum": "fmaximum", "minimum": "fminimum"}[fn]
    sign = "u" if dtype.startswith("u") else ""
    return {"add": "add", "maximum": f"{sign}max", "minimum": f"{sign}min"}[fn]


def _exchange_loop(fn: str, dtype: str) -> str:
    """Compare-exchange around arithmetic in float32, rounded once to nearest even."""
    return f"""  {_widen("%b", "%v", dtype)}
  %first = load atomic i16, ptr %p monotonic, align 2
  br label %again
again:
  %seen = phi i16 [ %first, %entry ], [ %now, %again ]
  {_widen("%a", "%seen", dtype)}
{_combined(fn)}
{_narrow(dtype)}
  %pair = cmpxchg ptr %p, i16 %seen, i16 %next seq_cst monotonic
  %now = extractvalue {{ i16, i1 }} %pair, 0
  %done = extractvalue {{ i16, i1 }} %pair, 1
  br i1 %done, label %out, label %again
out:
  ret i16 %seen"""


def _widen(result: str, word: str, dtype: str) -> str:
    if dtype == "float16":
        return f"{result}.h = bitcast i16 {word} to half\n  {result} = fpext half {result}.h to float"
    return (
        f"{result}.w = zext i16 {word} to i32\n  {result}.s = shl i32 {result}.w, 16\n"
        f"  {result} = bitcast i32 {result}.s to float"
    )


def _combined(fn: str) -> str:
    if fn == "add":
        return "  %c = fadd float %a, %b"
    order = "ogt" if fn == "maximum" else "olt"
    return f"""  %nan = fcmp uno float %a, %a
  %better = fcmp {order} float %a, %b
  %keep = or i1 %nan, %better
  %c = select i1 %keep, float %a, float %b"""


def _narrow(dtype: str) -> str:
    if dtype == "float16":
        return "  %half = fptrunc float %c to half\n  %next = bitcast half %half to i16"
    return """  %word = bitcast float %c to i32
  %top = lshr i32 %word, 16
  %odd = and i32 %top, 1
  %bias = add i32 %odd, 32767
  %up = add i32 %word, %bias
  %quiet = or i32 %word, 4194304
  %isnan = fcmp uno float %c, %c
  %kept = select i1 %isnan, i32 %quiet, i32 %up
  %near = lshr i32 %kept, 16
  %next = trunc i32 %near to i16"""
