"""Our TIR pipeline, and the mark on functions that TVM's default pipeline would compile wrongly."""

import subprocess
import sys

import numpy as np
import pytest
import tvm
from tvm import tirx
from tvm.tirx.buffer import decl_buffer
from tvm.tirx.layout import R, S, TileLayout

from tvm_tile.bridges.tirx.pipeline import PIPELINE, is_marked, mark_requires_pipeline, needs_pipeline
from tvm_tile.errors import UnsupportedError

LLVM = {"kind": "llvm"}
SHAPE = (4, 6)
TRANSPOSED = TileLayout(S[(4, 6) : (1, 4)])


def copy_function(layout: object, strides: object = None, shape: tuple[int, int] = SHAPE) -> tirx.PrimFunc:
    """``B[i, j] = A[i, j]`` with a layout on B."""
    A = decl_buffer(shape, "float32", "A", data_alignment=4)
    B = decl_buffer(shape, "float32", "B", data_alignment=4, layout=layout, strides=strides)
    i, j = tirx.Var("i", "int32"), tirx.Var("j", "int32")
    body = tirx.BufferStore(B, tirx.BufferLoad(A, [i, j]), [i, j])
    for var, extent in ((j, shape[1]), (i, shape[0])):
        body = tirx.For(var, 0, extent, tirx.ForKind.SERIAL, body)
    return tirx.PrimFunc([A, B], body, attrs=tvm.ir.make_node("ir.DictAttrs", global_symbol="copy"))


def run(function: tirx.PrimFunc, **options: object) -> tuple[np.ndarray, np.ndarray]:
    a = np.arange(24, dtype="float32").reshape(SHAPE)
    b = np.zeros(SHAPE, "float32")
    tvm.compile(function, LLVM, **options)["copy"](a, b)
    return a, b


def test_tvm_default_pipeline_ignores_a_layout_without_a_word():
    # A fact of TVM that the mark exists for; if this fails, TVM has changed.
    a, b = run(copy_function(TRANSPOSED))
    np.testing.assert_array_equal(b, a)


def test_tvm_tirx_pipeline_ignores_strides_without_a_word():
    # Why needs_pipeline compares layouts with strides, and why both are to be given.
    function = copy_function(TileLayout(S[SHAPE]), strides=[1, 4])
    a = np.arange(24, dtype="float32").reshape(SHAPE)
    storage = np.zeros(24, "float32")
    tvm.compile(function, LLVM, tir_pipeline="tirx")["copy"](a, storage.reshape(6, 4).T)
    np.testing.assert_array_equal(storage, a.ravel())


def test_our_pipeline_applies_the_layout_with_and_without_the_mark():
    for function in (copy_function(TRANSPOSED), mark_requires_pipeline(copy_function(TRANSPOSED))):
        a, b = run(function, tir_pipeline=PIPELINE)
        np.testing.assert_array_equal(b.ravel(), a.T.ravel())


@pytest.mark.parametrize(
    "build",
    [
        lambda f: tvm.compile(f, LLVM),
        lambda f: tvm.compile(f, LLVM, tir_pipeline=None),
        lambda f: tvm.compile(f, LLVM, tir_pipeline="tirx"),
        lambda f: tvm.compile(tvm.IRModule({"copy": f}), LLVM),
        lambda f: tvm.tirx.build(f, LLVM),
        lambda f: tvm.compile(f, "c"),
    ],
    ids=["default", "none", "tirx", "module", "tirx.build", "c"],
)
def test_a_marked_function_fails_in_any_other_pipeline_and_names_ours(build):
    with pytest.raises(UnsupportedError, match=f'tir_pipeline="{PIPELINE}"'):
        build(mark_requires_pipeline(copy_function(TRANSPOSED)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_marked_function_fails_in_the_deprecated_tvm_build():
    with pytest.raises(UnsupportedError, match=PIPELINE):
        tvm.build(mark_requires_pipeline(copy_function(TRANSPOSED)), LLVM)


def test_an_unmarked_row_major_function_builds_anywhere():
    for options in ({}, {"tir_pipeline": "tirx"}, {"tir_pipeline": PIPELINE}):
        a, b = run(copy_function(TileLayout(S[SHAPE])), **options)
        np.testing.assert_array_equal(b, a)


def test_marking_twice_is_marking_once():
    function = copy_function(TRANSPOSED)
    marked = mark_requires_pipeline(function)
    assert is_marked(marked)
    assert not is_marked(function)
    assert mark_requires_pipeline(marked).same_as(marked)


def test_a_marked_function_survives_the_text_round_trip():
    marked = mark_requires_pipeline(copy_function(TRANSPOSED))
    again = tvm.script.from_source(marked.script())
    tvm.ir.assert_structural_equal(again, marked.with_attr("global_symbol", again.attrs["global_symbol"]))
    assert is_marked(again)


@pytest.mark.parametrize(
    ("layout", "strides", "shape"),
    [
        (None, None, (4, 6)),
        (TileLayout(S[4, 6]), None, (4, 6)),
        (TileLayout(S[24]), None, (4, 6)),
        (TileLayout(S[(4, 2, 3) : (6, 3, 1)]), None, (4, 6)),
        (TileLayout(S[(4, 6) : (1, 4)]), [1, 4], (4, 6)),
        (TileLayout(S[(4, 6) : (12, 1)]), [12, 1], (4, 6)),
        (TileLayout(S[(4, 6) : (-6, 1)]), [-6, 1], (4, 6)),
        (TileLayout(S[(1, 6) : (7, 1)]), None, (1, 6)),
    ],
)
def test_a_layout_that_says_what_the_strides_say_needs_no_pipeline(layout, strides, shape):
    assert not needs_pipeline(copy_function(layout, strides, shape))


@pytest.mark.parametrize(
    ("layout", "strides"),
    [
        (TRANSPOSED, None),
        (TileLayout(S[4, 6]), [1, 4]),
        (TileLayout(S[(4, 6) : (12, 1)]), None),
        (TileLayout(S[(4, 6) : (6, 1)] + 3), None),
        (TileLayout(S[(4, 6) : (6, 1)] + R[2:1]), None),
        (TileLayout(S[(4, 3, 2) : (6, 1, 3)]), None),
        (TileLayout(S[(4, 6) : (6 @ tvm.tirx.layout.laneid, 1)]), None),
    ],
)
def test_a_layout_that_differs_from_the_strides_needs_the_pipeline(layout, strides):
    assert needs_pipeline(copy_function(layout, strides))


def test_layouts_of_local_buffers_count():
    def function(layout):
        A = decl_buffer((4, 6), "float32", "A")
        T = decl_buffer((4, 6), "float32", "T", layout=layout)
        store = tirx.BufferStore(T, tirx.BufferLoad(A, [0, 0]), [0, 0])
        back = tirx.BufferStore(A, tirx.BufferLoad(T, [0, 0]), [0, 1])
        return tirx.PrimFunc([A], tirx.SeqStmt([tirx.AllocBuffer(T), store, back]))

    assert needs_pipeline(function(TRANSPOSED))
    assert not needs_pipeline(function(TileLayout(S[4, 6])))


@pytest.mark.parametrize(
    "first",
    ["tvm_tile", "tvm_tile.bridges", "tvm_tile.bridges.tirx.operators", "tvm_tile.bridges.runtime.artifact"],
)
def test_any_order_of_imports_registers_without_a_warning(first):
    code = (
        f"import warnings; warnings.simplefilter('error'); import {first}; import tvm; "
        "from tvm.tirx.compilation_pipeline import PIPELINE_MAP; assert 'tvm_tile' in PIPELINE_MAP"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_import_tvm_alone_registers_the_pipeline():
    code = (
        "import warnings; warnings.simplefilter('error'); import tvm, sys; "
        "from tvm.tirx.compilation_pipeline import PIPELINE_MAP; "
        "assert 'tvm_tile' in PIPELINE_MAP; tvm.ir.Op.get('tirx.tvm_tile_address')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
