"""Debug builds on a CPU: promises and guard zones are checked, and the message says where."""

import ctypes
import subprocess

import numpy as np
import pytest
import tvm

from tvm_tile.bridges.tirx.lower import lower_program
from tvm_tile.bridges.tirx.prologue import DEBUG_PREFIX
from tvm_tile.bridges.tirx.target import host_target
from tvm_tile.ir.index import IndexBinary, IndexConst, IndexVar
from tvm_tile.ir.ops import Alloc, Extern
from tvm_tile.ir.regions import Parallel
from tvm_tile.ir.span import Span
from tvm_tile.ir.values import Memory

PIPELINES = ("tirx", "default")
HERE = Span("kernel.py", 12, 5, 12, 20)


def build(program, pipeline="tirx", debug=True):
    target = host_target()
    function = lower_program(program, target, debug=debug)
    options = {"tir_pipeline": pipeline} if pipeline != "default" else {}
    return tvm.compile(tvm.IRModule({"kernel": function}), target=target, **options)["kernel"]


def plus(i, n):
    return IndexBinary("+", IndexVar(i), IndexConst(n))


def promise(a, kind, shift):
    """Each instance copies a window of four elements, of which it promises that they are in bounds."""
    A, C = Memory("A", (40,), "float32"), Memory("C", (40,), "float32")

    def body(i):
        at = plus(i, shift)
        if kind == "load":
            a.store(a.load(A, (at, 4), bounds="assume", span=HERE), C, (IndexVar(i), 4))
        else:
            a.store(a.load(A, (IndexVar(i), 4)), C, (at, 4), bounds="assume", span=HERE)

    a.loop((30,), body, kind=Parallel)
    return a.program(A, C)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("kind", ["load", "store"])
@pytest.mark.parametrize("shift", [-1, 0, 7, 8])
def test_a_broken_promise_raises_and_names_the_place(assembler, kind, shift, pipeline):
    function = build(promise(assembler, kind, shift), pipeline)
    x, y = np.arange(40, dtype="float32"), np.zeros(40, "float32")
    if 0 <= shift <= 7:
        function(x, y)
        assert y.any()
        return
    memory = "A" if kind == "load" else "C"
    with pytest.raises(ValueError, match=rf"{DEBUG_PREFIX}: kernel.py:12: access out of bounds of {memory}"):
        function(x, y)


@pytest.mark.parametrize("kind", ["load", "store"])
def test_a_mask_is_part_of_the_promise(assembler, kind):
    a = assembler
    A, M, C = Memory("A", (20,), "float32"), Memory("M", (20,), "bool"), Memory("C", (20,), "float32")
    mask = a.load(M)
    if kind == "load":
        a.store(a.load(A, (-3, 20), bounds="assume", mask=mask, span=HERE), C)
    else:
        a.store(a.load(A), C, (-3, 20), bounds="assume", mask=mask, span=HERE)
    function = build(a.program(A, M, C))
    x, y, m = np.ones(20, "float32"), np.zeros(20, "float32"), np.arange(20) >= 3
    function(x, m, y)
    assert y.sum() == 17
    m[1] = True
    with pytest.raises(ValueError, match=r"kernel\.py:12"):
        function(x, m, y)


def test_without_debug_there_are_no_checks(assembler):
    text = lower_program(promise(assembler, "load", 8), host_target()).script()
    assert DEBUG_PREFIX not in text
    checked = lower_program(promise(type(assembler)(), "load", 8), host_target(), debug=True).script()
    assert DEBUG_PREFIX in checked


SOURCE = """
#include <stdint.h>
void tvm_tile_test_write(uint8_t *data, int64_t at) { data[at] ^= 0x10; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extern")
    (folder / "write.c").write_text(SOURCE)
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(folder / "write.so"), str(folder / "write.c")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "write.so"), mode=ctypes.RTLD_GLOBAL)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "float32", "uint64", "float8_e5m2"])
@pytest.mark.parametrize(
    ("at", "zone"), [(-1, "before its first"), (0, None), (1, None), (2, "after its last")]
)
def test_guard_zones_around_explicit_memory_are_checked(assembler, library, dtype, at, zone, pipeline):
    """``at``: -1 and 2 are the bytes just before and after the memory, 0 and 1 its first and last."""
    a = assembler
    C = Memory("C", (), "int32")
    size = 5 * {"bool": 1, "int8": 1, "float8_e5m2": 1, "float16": 2, "bfloat16": 2}.get(dtype, 4)
    size = 40 if dtype == "uint64" else size
    byte = {-1: -1, 0: 0, 1: size - 1, 2: size}[at]

    def body(i):
        T = Memory("scratch", (5,), dtype, scope="local", span=HERE)
        a.emit(Alloc(T))
        a.emit(Extern("tvm_tile_test_write", (a.view(T), a.full((), byte, "int64")), (T,), (T,)))

    a.loop((3,), body, kind=Parallel)
    a.store(a.full((), 1, "int32"), C)
    function, done = build(a.program(C), pipeline), np.zeros((), "int32")
    if zone is None:
        function(done)
        assert done == 1
        return
    with pytest.raises(ValueError, match=f"{DEBUG_PREFIX}: kernel.py:12: memory scratch .*{zone} element"):
        function(done)


@pytest.mark.parametrize("start", [0, 3, 4, -1])
def test_the_view_that_a_call_gets_must_be_in_bounds(assembler, library, start):
    a = assembler
    A = Memory("A", (8,), "uint8")
    count = a.full((), 0, "int64")
    a.emit(Extern("tvm_tile_test_write", (a.view(A, (start, 5)), count), (A,), (A,), span=HERE))
    function, data = build(a.program(A)), np.zeros(8, "uint8")
    if 0 <= start <= 3:
        function(data)
        assert data[start] == 0x10
        return
    with pytest.raises(ValueError, match=r"kernel\.py:12: argument of tvm_tile_test_write"):
        function(data)
