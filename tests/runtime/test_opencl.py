"""Calls of OpenCL executables: arguments of every kind, results in place, and what is refused.

These tests need an OpenCL platform. The test extra installs one on x86-64 Linux; without it they fail.
"""

import os
import subprocess
import sys
import textwrap
import threading
import warnings

import ml_dtypes
import numpy as np
import pytest
import torch

import tvm_tile as tt
from tvm_tile.bridges.opencl import platform
from tvm_tile.ir.dtypes import DTYPES, numpy_dtype


@tt.kernel
def plus_one(X, Y):
    for i in tt.parallel(X.shape[0]):
        Y[i] = X[i] + 1


@tt.kernel
def weighted(X, Y, n: tt.Scalar["int64"], w: tt.Scalar["float32"], on: tt.Scalar["bool"]):  # noqa: F821
    for i in tt.parallel(n):
        Y[i] = tt.where(on, X[i] * w, X[i])


def built(*arrays, kernel=plus_one):
    return tt.build(kernel.trace(*arrays), "opencl")


@pytest.mark.parametrize("n", [0, 1, 7, 1000, 70_000])
def test_results_are_in_place(n):
    x, y = np.arange(n, dtype="f4"), np.full(n, -1, "f4")
    built(x, y)(x, y)
    np.testing.assert_array_equal(y, x + 1)


def test_an_executable_is_called_again():
    x, y = np.arange(5, dtype="f4"), np.zeros(5, "f4")
    exe = built(x, y)
    for _ in range(3):
        exe(x, y)
        x, y = y, x
    np.testing.assert_array_equal(x, np.arange(5) + 3)


@pytest.mark.parametrize("step", [2, -1, -3])
def test_strided_views(step):
    base, out = np.arange(30, dtype="f4"), np.full(30, 99, "f4")
    x, y = base[::step], out[::step]
    built(x, y)(x, y)
    np.testing.assert_array_equal(y, x + 1)
    untouched = np.ones(30, bool)
    untouched[::step] = False
    assert (out[untouched] == 99).all()


def test_a_broadcast_argument_is_read():
    x, y = np.broadcast_to(np.float32(4), (6,)), np.zeros(6, "f4")
    built(x, y)(x, y)
    assert (y == 5).all()


def test_a_transposed_matrix():
    @tt.kernel
    def copied(X, Y):
        for i in tt.parallel(X.shape[0]):
            Y[i] = X[i, :]

    x = np.arange(12, dtype="i4").reshape(3, 4).T
    y = np.zeros((3, 4), "i4").T
    built(x, y, kernel=copied)(x, y)
    np.testing.assert_array_equal(y, x)


def test_read_only_input():
    x, y = np.arange(4, dtype="f4"), np.zeros(4, "f4")
    x.flags.writeable = False
    built(x, y)(x, y)
    assert (y == x + 1).all()


def test_read_only_output_is_refused():
    x, y = np.arange(4, dtype="f4"), np.zeros(4, "f4")
    exe = built(x, y)
    y.flags.writeable = False
    with pytest.raises(tt.ArgumentError, match="read-only"):
        exe(x, y)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros(4, "f8"), "float32"),
        (np.zeros(5, "f4"), "shape"),
        (np.zeros(8, "f4")[::2], "strides"),
        ("text", "array"),
    ],
)
def test_arguments_that_do_not_fit(x, message):
    y = np.zeros(4, "f4")
    exe = built(y, y.copy())
    with pytest.raises(tt.ArgumentError, match=message):
        exe(x, y)
    with pytest.raises(tt.ArgumentError, match="by position"):
        exe(y, Y=y)
    with pytest.raises(tt.ArgumentError, match="2 arguments"):
        exe(y)


def test_torch_tensors():
    x, y = torch.arange(5, dtype=torch.float32), torch.zeros(5)
    built(x, y)(x, y)
    assert torch.equal(y, x + 1)


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("n", [0, 3, 5])
def test_run_time_scalars(n, on):
    x, y = np.arange(5, dtype="f4"), np.zeros(5, "f4")
    exe = built(x, y, 0, 0.0, False, kernel=weighted)
    exe(x, y, n, 2.5, on)
    expected = np.where(np.arange(5) < n, x * (2.5 if on else 1), 0)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("target", ["llvm", "opencl"])
def test_run_time_scalars_of_every_dtype_are_rounded_once(target):
    """Symptoms: OpenCL refused uint64 beyond 2**63 and warned of overflow; LLVM rounded halves twice."""
    dtypes = [dtype for dtype in DTYPES if not dtype.startswith("float8")]
    tie = 1 + 2.0**-11 + 2.0**-30
    values = {
        "bool": [True, False],
        "uint64": [2**64 - 1, 2**63],
        "float16": [tie, -tie, 65519.9999, 65520.0, -1e9, 2.0**-25, np.nan],
        "bfloat16": [1 + 2.0**-8 + 2.0**-30, 1e300],
        "float32": [1 + 2.0**-24 + 2.0**-50, 1e39, 10**400],
    }
    for dtype in dtypes:
        kind = tt.Scalar[dtype]

        @tt.kernel
        def held(s: kind, Y):
            Y[0] = s

        exe = tt.build(held.trace(1 if dtype != "bool" else True, tt.spec((1,), dtype)), target)
        info = np.iinfo(dtype) if dtype.startswith(("int", "uint")) else None
        for value in values.get(dtype, [info.min, info.max] if info else [0.1]):
            y = np.zeros(1, numpy_dtype(dtype))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                exe(value, y)
            with np.errstate(over="ignore"):
                expected = numpy_dtype(dtype).type(float("inf") if value == 10**400 else value)
            np.testing.assert_array_equal(y[0], expected, err_msg=f"{dtype} {value}")


def test_identical_views_that_are_proved_harmless():
    x = np.arange(6, dtype="f4")
    y = x.copy()
    built(x, y)(x, x)
    np.testing.assert_array_equal(x, y + 1)


def test_identical_views_see_what_was_written_through_the_other_name():
    """Symptom: kernels promised their compiler that arguments share no memory, also where they do."""

    @tt.kernel
    def stepwise(X, Y, Z):
        for i in tt.parallel(X.shape[0]):
            Y[i] = X[i] + 1
            Z[i] = X[i] * 2

    @tt.kernel
    def backwards(X, Y, Z):
        n = X.shape[0]
        for i in tt.serial(n):
            Y[i] = X[n - 1 - i] + 1
            Z[i] = Y[i]

    x = np.arange(6, dtype="f4")
    for kernel in (stepwise, backwards):
        exe = built(x, x.copy(), x.copy(), kernel=kernel)
        assert "restrict" in exe.source()
        for pattern in ("000", "001", "010", "011"):
            got, expected = [x.copy(), x + 7], [x.copy(), x + 7]
            exe(*(got[int(number)] for number in pattern))
            tt.interpret(exe.program, *(expected[int(number)] for number in pattern))
            np.testing.assert_array_equal(got, expected, err_msg=f"{kernel} {pattern}")


def test_identical_views_that_are_not():
    @tt.kernel
    def shifted(X, Y):
        for i in tt.parallel(X.shape[0] - 1):
            Y[i] = X[i + 1]

    x = np.arange(6, dtype="f4")
    exe = built(x, x.copy(), kernel=shifted)
    with pytest.raises(tt.ArgumentError, match="identical views"):
        exe(x, x)


def test_views_that_overlap_in_part_are_refused():
    base = np.arange(7, dtype="f4")
    exe = built(base[:6], base[1:])
    with pytest.raises(tt.ArgumentError, match="overlap"):
        exe(base[:6], base[1:])


def test_interleaved_views():
    base = np.arange(12, dtype="f4")
    expected = base.copy()
    expected[1::2] = expected[::2] + 1
    exe = built(base[::2], base[1::2])
    exe(base[::2], base[1::2])
    np.testing.assert_array_equal(base, expected)


def test_an_overlapping_output_is_refused_when_built():
    x = np.zeros(4, "f4")
    y = np.lib.stride_tricks.as_strided(x, (4,), (0,))
    with pytest.raises(tt.ArgumentError, match="overlap"):
        built(x, y)


@pytest.mark.parametrize(
    "dtype", ["bool", "float16", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
)
def test_every_code_of_a_narrow_type_survives(dtype):
    @tt.kernel
    def copied(X, Y):
        for i in tt.parallel(X.shape[0]):
            Y[i] = X[i]

    width = np.dtype(dtype).itemsize
    codes = np.arange(2 if dtype == "bool" else 1 << (8 * width)).astype(f"u{width}")
    x, y = codes.view(dtype), np.zeros_like(codes).view(dtype)
    built(x, y, kernel=copied)(x, y)
    known = ~np.isnan(x.astype("f4"))
    np.testing.assert_array_equal(y.view(codes.dtype)[known], codes[known])
    assert np.isnan(y.astype("f4")[~known]).all()


def test_calls_from_several_threads():
    x = np.arange(1000, dtype="f4")
    exe = built(x, x.copy())
    outputs = [np.zeros_like(x) for _ in range(4)]
    inputs = [x * k for k in range(4)]
    threads = [threading.Thread(target=exe, args=pair) for pair in zip(inputs, outputs, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for given, got in zip(inputs, outputs, strict=True):
        np.testing.assert_array_equal(got, given + 1)


def test_without_pyopencl_a_call_says_what_to_install(monkeypatch):
    x, y = np.zeros(3, "f4"), np.zeros(3, "f4")
    exe = built(x, y)
    monkeypatch.setattr(platform, "_device", [])
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(tt.UnsupportedError, match=r'pip install "tvm-tile\[opencl\]"'):
        exe(x, y)


def test_without_a_platform_a_call_says_what_to_install(monkeypatch):
    import pyopencl

    x, y = np.zeros(3, "f4"), np.zeros(3, "f4")
    exe = built(x, y)
    monkeypatch.setattr(platform, "_device", [])
    monkeypatch.setattr(pyopencl, "get_platforms", list)
    with pytest.raises(tt.UnsupportedError, match=r'pip install "tvm-tile\[opencl\]"'):
        exe(x, y)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("opened", [False, True])
def test_a_forked_child_runs_unless_its_parent_had_opened_the_device(tmp_path, opened):
    """Symptom: a call in the child never ended."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import os, signal, sys
        import numpy as np
        import tvm_tile as tt

        @tt.kernel
        def plus_one(X, Y):
            Y[:] = X[:] + 1

        def run():
            y = np.zeros(3, "f4")
            try:
                exe(np.ones(3, "f4"), y)
                print(y.sum(), flush=True)
            except tt.UnsupportedError as error:
                print(error.message, flush=True)

        exe = tt.build(plus_one.trace(*[tt.spec((3,), "float32")] * 2), "opencl")
        if sys.argv[1] == "True":
            run()
        child = os.fork()
        if not child:
            signal.alarm(60)
            run()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        run()
    """)
    )
    done = subprocess.run([sys.executable, script, str(opened)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    child, parent = done.stdout.splitlines()[-2:]
    assert parent == "6.0"
    assert child.startswith("this process was forked") if opened else child == "6.0"


def test_timing():
    x, y = np.zeros(3, "f4"), np.zeros(3, "f4")
    assert built(x, y).bench(x, y, repeat=3).median > 0
