"""Assertions at the head of generated functions, in handwritten functions that TVM calls directly."""

import numpy as np
import pytest
import tvm
from tvm import tirx
from tvm.tirx.buffer import decl_buffer
from tvm.tirx.layout import S, TileLayout

from tvm_tile.bridges.tirx.pipeline import PIPELINE
from tvm_tile.bridges.tirx.prologue import GUARD_PREFIX, argument_guards, byte_range
from tvm_tile.ir.dtypes import DTYPES, bits, numpy_dtype
from tvm_tile.ir.index import IndexConst
from tvm_tile.ir.ops import Full, Load, Number, Slice, Store, View
from tvm_tile.ir.regions import Block, Program
from tvm_tile.ir.values import Memory, TileType, Value


def compiled(program: Program, *, noalias=True, groups=(), alignment=None, pipeline=PIPELINE):
    """A function with the guards of a program that then sets the last parameter's first element to 1."""
    buffers = {
        m: decl_buffer(
            m.shape,
            m.dtype,
            m.name,
            strides=list(m.element_strides),
            data_alignment=alignment or bits(m.dtype) // 8,
            layout=TileLayout(S[m.shape : m.element_strides]),
        )
        for m in program.tensors
    }
    last = program.tensors[-1]
    guards = argument_guards(program, buffers, noalias, groups=groups)
    if 0 in last.shape:
        store = tirx.Evaluate(tirx.const(0, "int32"))
    else:
        one = (
            tirx.const(1, last.dtype)
            if bits(last.dtype) > 8 or last.dtype != "bool"
            else tirx.const(True, "bool")
        )
        store = tirx.BufferStore(buffers[last], one, [0] * len(last.shape))
    attrs = {"global_symbol": "f", **({"tirx.noalias": True} if noalias else {})}
    body = tirx.SeqStmt([*guards, store]) if guards else store
    function = tirx.PrimFunc(list(buffers.values()), body, attrs=tvm.ir.make_node("ir.DictAttrs", **attrs))
    return tvm.compile(function, {"kind": "llvm"}, tir_pipeline=pipeline)["f"]


@pytest.mark.parametrize("pipeline", ["tirx", "default", PIPELINE])
def test_overlapping_and_disjoint_arguments(copy_program, pipeline):
    f = compiled(copy_program((4, 3)), pipeline=pipeline)
    memory = np.zeros((12, 3), "float32")
    f(memory[:4], memory[4:8])
    f(memory[4:8], memory[:4])
    for start in (0, 1, 3):
        with pytest.raises(ValueError, match=f"{GUARD_PREFIX}: parameters A and B overlap"):
            f(memory[:4], memory[start : start + 4])


@pytest.mark.parametrize(
    "dtype", [d for d in DTYPES if d not in ("bfloat16", "float8_e4m3fn", "float8_e5m2")]
)
def test_alignment_of_every_dtype(copy_program, dtype):
    f = compiled(copy_program((5,), dtype))
    itemsize = bits(dtype) // 8
    storage = np.zeros(16 * itemsize, np.uint8)
    aligned = storage[: 5 * itemsize].view(numpy_dtype(dtype))
    out = np.zeros(5, numpy_dtype(dtype))
    f(aligned, out)
    assert out[0] == 1
    for shift in range(1, itemsize):
        array = storage[shift : shift + 5 * itemsize].view(numpy_dtype(dtype))
        with pytest.raises(ValueError, match=f"parameter A is not aligned to {itemsize} bytes"):
            f(array, out)
        with pytest.raises(ValueError, match=f"parameter B is not aligned to {itemsize} bytes"):
            f(out, array)


def test_wider_alignment_that_the_buffer_declares_is_checked(copy_program):
    f = compiled(copy_program((4,)), alignment=64)
    storage = np.zeros(400, np.uint8)
    start = -storage.ctypes.data % 64
    at = [storage[start + k : start + k + 16].view("float32") for k in (0, 64, 132)]
    f(at[0], at[1])
    with pytest.raises(ValueError, match="parameter B is not aligned to 64 bytes"):
        f(at[0], at[2])


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_ml_dtypes_compile(copy_program, dtype):
    compiled(copy_program((5,), dtype))


def test_reversed_and_broadcast_arguments_span_what_they_reach(copy_program):
    memory = np.arange(12, dtype="float32")
    f = compiled(copy_program((4,), a_strides=(-1,)))
    f(memory[3::-1], memory[4:8])
    f(memory[7:3:-1], memory[:4])
    with pytest.raises(ValueError, match="overlap"):
        f(memory[4:0:-1], memory[4:8])
    g = compiled(copy_program((4,), a_strides=(0,)))
    one = np.lib.stride_tricks.as_strided(memory[3:], (4,), (0,))
    g(one, memory[4:8])
    with pytest.raises(ValueError, match="overlap"):
        g(one, memory[:4])


def test_empty_arguments_span_nothing(copy_program):
    assert byte_range(Memory("A", (0, 3), "float32")) is None
    f = compiled(copy_program((3, 0)))
    memory = np.lib.stride_tricks.as_strided(np.zeros(4, "float32"), (3, 0), (4, 4))
    f(memory, memory)


def test_byte_ranges():
    assert byte_range(Memory("A", (2, 3), "float64")) == (0, 48)
    assert byte_range(Memory("A", (2, 3), "float16", (-3, -1))) == (-10, 2)
    assert byte_range(Memory("A", (5, 2), "int32", (0, 4))) == (0, 20)
    assert byte_range(Memory("A", (), "int8")) == (0, 1)


def test_parameters_that_are_only_read_may_overlap(accumulate_program):
    f = compiled(accumulate_program(4))
    memory = np.zeros(12, "float32")
    f(memory[:4], memory[2:6], memory[8:])
    f(memory[:4], memory[:4], memory[4:8])
    with pytest.raises(ValueError, match="parameters B and C overlap"):
        f(memory[:4], memory[2:6], memory[4:8])


def test_groups_may_be_identical_but_not_shifted(accumulate_program):
    program = accumulate_program(4)
    A, _, C = program.tensors
    f = compiled(program, noalias=False, groups=[frozenset((A, C))])
    memory = np.zeros(16, "float32")
    f(memory[:4], memory[4:8], memory[:4])
    f(memory[:4], memory[4:8], memory[8:12])
    with pytest.raises(ValueError, match="parameters A and C overlap"):
        f(memory[:4], memory[4:8], memory[1:5])
    with pytest.raises(ValueError, match="parameters B and C overlap"):
        f(memory[:4], memory[4:8], memory[4:8])


def test_without_noalias_and_groups_aliasing_is_left_to_the_caller(copy_program):
    f = compiled(copy_program((4,)), noalias=False)
    memory = np.zeros(8, "float32")
    f(memory[:4], memory[:4])
    with pytest.raises(ValueError, match="noalias"):
        argument_guards(copy_program((4,)), {}, True, groups=[frozenset()])


def test_guards_survive_the_text_round_trip(copy_program):
    program = copy_program((4,))
    buffers = {m: decl_buffer(m.shape, m.dtype, m.name, data_alignment=4) for m in program.tensors}
    body = tirx.SeqStmt([*argument_guards(program, buffers, True), tirx.Evaluate(tirx.const(0, "int32"))])
    function = tirx.PrimFunc(list(buffers.values()), body)
    again = tvm.script.from_source(function.script())
    assert "T.tvm_tile.address(A.data)" in again.script()


def many(count, written):
    """A program of ``count`` parameters of which it writes the last ``written``, each from the one before."""
    memories = [Memory(f"P{k}", (4,), "float32") for k in range(count)]
    body = []
    for k in range(count - written, count):
        value, all_of = Value(k, TileType((4,), "float32")), (Slice(IndexConst(0), 4),)
        body += [Load(value, View(memories[k - 1], all_of)), Store(View(memories[k], all_of), value)]
    return Program("many", tuple(memories), Block(tuple(body)))


@pytest.mark.parametrize("written", [1, 3, 20])
def test_many_parameters_are_all_compared(written):
    """Their pairs are compared in a loop: one assertion each took minutes to compile."""
    program = many(21, written)
    f = compiled(program)
    storage = np.zeros((22, 4), "float32")
    arguments = list(storage[:21])
    f(*arguments)
    shifted = storage.ravel()[2:6]
    for k in range(21):
        for other in (0, 7, 18, 20):
            if k == other:
                continue
            changed = list(arguments)
            changed[k] = arguments[other]
            if max(k, other) >= 21 - written:
                with pytest.raises(ValueError, match=f"{GUARD_PREFIX}: .* overlap"):
                    f(*changed)
            else:
                f(*changed)
    with pytest.raises(ValueError, match="overlap"):
        f(*arguments[:20], shifted)


def test_empty_parameters_among_many_overlap_nothing():
    memories = [Memory(f"P{k}", (0,) if k % 2 else (4,), "float32") for k in range(40)]
    body = []
    for k in range(0, 40, 2):
        value, all_of = Value(k, TileType((4,), "float32")), (Slice(IndexConst(0), 4),)
        body += [Full(value, Number("1.0")), Store(View(memories[k], all_of), value)]
    f = compiled(Program("many", tuple(memories), Block(tuple(body))))
    storage = np.zeros((40, 4), "float32")
    arguments = [row[:0] if k % 2 else row for k, row in enumerate(storage)]
    arguments[3] = arguments[2][:0]
    f(*arguments)
