"""Calls of opaque C functions: pointers, scalars by value, order, and debug checks."""

import ctypes
import subprocess

import numpy as np
import pytest

from tvm_tile.errors import UnsupportedError
from tvm_tile.ir.index import IndexVar
from tvm_tile.ir.ops import Alloc, Extern
from tvm_tile.ir.regions import Parallel
from tvm_tile.ir.values import Memory

PIPELINES = ("tirx", "default")

SOURCE = """
#include <stdint.h>
void tvm_tile_test_scalars(double *out, int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint32_t f,
                           int64_t g, uint64_t h, float x, double y, uint8_t truth) {
  out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f;
  out[6] = (double)g; out[7] = (double)h; out[8] = x; out[9] = y; out[10] = truth;
}
void tvm_tile_test_double(float *data, int64_t n) { for (int64_t i = 0; i < n; ++i) data[i] *= 2; }
static int64_t calls = 0;
void tvm_tile_test_count(void) { __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST); }
int64_t tvm_tile_test_calls(void) { int64_t n = calls; calls = 0; return n; }
void tvm_tile_test_flip(uint8_t *truths, int64_t n) {
  for (int64_t i = 0; i < n; ++i) truths[i] = !truths[i];
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extern")
    (folder / "functions.c").write_text(SOURCE)
    path = folder / "functions.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(path), str(folder / "functions.c")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_scalars_pass_by_value_as_their_c_types(compiled, assembler, library, pipeline):
    a = assembler
    types = {
        "int8": -128, "uint8": 200, "int16": -30000, "uint16": 60000, "int32": -(2**31), "uint32": 2**32 - 1,
        "int64": -(2**53), "uint64": 2**62, "float32": 1.5, "float64": 2.25, "bool": True,
    }  # fmt: skip
    params = [a.value((), dtype, dtype) for dtype in types]
    out = Memory("out", (12,), "float64")
    a.emit(Extern("tvm_tile_test_scalars", (a.view(out, (1, 11)), *params), (), (out,)))
    found = np.zeros(12)
    compiled(a.program(out, *params), pipeline)(found, *types.values())
    np.testing.assert_array_equal(found[1:], np.array([float(v) for v in types.values()]))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_calls_keep_their_place_among_loads_and_stores(compiled, assembler, library, pipeline):
    a = assembler
    C, D = Memory("C", (37,), "float32"), Memory("D", (37,), "float32")
    before = a.load(C)
    a.store(a.apply("add", before, a.full((37,), 1.0, "float32")), C)
    count = a.full((), 37, "int64")
    a.emit(Extern("tvm_tile_test_double", (a.view(C), count), (C,), (C,)))
    a.store(a.apply("add", before, a.load(C)), D)
    a.store(a.full((37,), 0.0, "float32"), C)
    c = np.arange(37, dtype="float32")
    d, expected = np.zeros(37, "float32"), c + (c + 1) * 2
    compiled(a.program(C, D), pipeline)(c, d)
    np.testing.assert_array_equal(d, expected)
    np.testing.assert_array_equal(c, 0)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_call_without_declared_effects_is_made_once_an_instance(compiled, assembler, library, pipeline):
    a = assembler

    def body(i):
        a.emit(Extern("tvm_tile_test_count", (), (), ()))

    a.loop((23,), body, kind=Parallel)
    compiled(a.program(), pipeline)()
    library.tvm_tile_test_calls.restype = ctypes.c_int64
    assert library.tvm_tile_test_calls() == 23


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_truth_values_are_bytes_and_views_start_at_their_first_element(
    compiled, assembler, library, pipeline
):
    a = assembler
    M = Memory("M", (4, 6), "bool")

    def body(i):
        a.emit(
            Extern("tvm_tile_test_flip", (a.view(M, IndexVar(i), (2, 3)), a.full((), 3, "int64")), (M,), (M,))
        )

    a.loop((4,), body)
    m = np.random.default_rng(0).random((4, 6)) > 0.5
    found, expected = m.copy(), m.copy()
    expected[:, 2:5] ^= True
    compiled(a.program(M), pipeline)(found)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("scope", ["param", "local"])
def test_memory_without_elements_has_an_address(compiled, assembler, library, scope, pipeline):
    a = assembler
    A, T = Memory("A", (0, 3), "float32"), Memory("T", (0, 3), "float32", scope="local")
    memory = A
    if scope == "local":
        a.emit(Alloc(T))
        memory = T
    a.emit(Extern("tvm_tile_test_double", (a.view(memory), a.full((), 0, "int64")), (memory,), (memory,)))
    compiled(a.program(A), pipeline)(np.zeros((0, 3), "float32"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_short_float_scalar_is_refused(compiled, assembler, dtype):
    a = assembler
    a.emit(Extern("tvm_tile_test_scalars", (a.full((), 1.0, dtype),), (), ()))
    with pytest.raises(UnsupportedError, match=f"{dtype} scalar"):
        compiled(a.program())
