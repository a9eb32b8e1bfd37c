"""Capture of whole kernels: the program of a source, once for given arguments."""

# Kernels write what the rules for plain Python advise against.
# ruff: noqa: F821

import subprocess
import sys
import threading

import numpy as np
import pytest

import tvm_tile.frontend as tt
from tvm_tile.errors import ArgumentError, CaptureError, IllegalError, UnsupportedError
from tvm_tile.ir.ops import Elementwise, Load, Mma, Stage, Store
from tvm_tile.ir.regions import If, Parallel, Pipeline, Program, Reduce, Serial
from tvm_tile.ir.structure import walk

F4 = tt.spec((16,), "float32")


@tt.kernel
def gemm(A, B, C, *, bm=16, bn=16, bk=16):
    """Matrix product."""
    assert A.shape[1] == B.shape[0], "inner extents differ"
    for i, j in tt.parallel(tt.cdiv(A.shape[0], bm), tt.cdiv(B.shape[1], bn)):
        acc = tt.zeros((bm, bn), "float32")
        for k in tt.pipeline(tt.cdiv(A.shape[1], bk)):
            tt.stage("load")
            a = A[tt.ds(i * bm, bm), tt.ds(k * bk, bk)]
            b = B[tt.ds(k * bk, bk), tt.ds(j * bn, bn)]
            tt.stage("compute")
            acc = tt.mma(a, b, acc)
        C[tt.ds(i * bm, bm), tt.ds(j * bn, bn)] = acc


GEMM = """\
kernel gemm(@A: float32[20, 18], @B: float32[18, 24], @C: float32[20, 24]) {
  parallel %i.0, %j.1 in (3, 2) {
    %acc.2: float32[8, 16] = full 0.0
    %acc.8: float32[8, 16] = pipeline %k.3 in (2) carry (%acc.4 = %acc.2) {
      stage "load"
      %a.5: float32[8, 16] = load @A[%i.0 * 8 :+ 8, %k.3 * 16 :+ 16]
      %b.6: float32[16, 16] = load @B[%k.3 * 16 :+ 16, %j.1 * 16 :+ 16]
      stage "compute"
      %acc.7: float32[8, 16] = mma %a.5, %b.6, %acc.4
      yield %acc.7
    }
    store @C[%i.0 * 8 :+ 8, %j.1 * 16 :+ 16], %acc.8
  }
}
"""


def specs(m=20, n=24, k=18, dtype="float32"):
    return tt.spec((m, k), dtype), tt.spec((k, n), dtype), tt.spec((m, n), "float32")


def kinds(program: Program) -> list[str]:
    return [type(s).__name__ for s in walk(program)]


def test_gemm_prints_as_written():
    assert str(gemm.trace(*specs(), bm=8)).strip() == GEMM.strip()


def test_arrays_and_specs_give_equal_programs():
    a, b, c = np.zeros((20, 18), "f4"), np.zeros((18, 24), "f4"), np.zeros((20, 24), "f4")
    assert gemm.trace(a, b, c, bm=8) == gemm.trace(*specs(), bm=8)
    assert gemm.trace(a, b, c, bm=8) != gemm.trace(*specs(), bm=16)
    assert gemm.trace(a.T.copy().T, b, c, bm=8) != gemm.trace(*specs(), bm=8)


def test_failed_assertion_is_an_argument_error(refused):
    a, _, c = specs()
    other = tt.spec((17, 24), "float32")
    refused(
        ArgumentError, lambda: gemm.trace(a, other, c), "inner extents differ", at="A.shape[1] == B.shape[0]"
    )


def test_assertion_without_message_shows_its_text(refused):
    @tt.kernel
    def k(X):
        assert X.dtype == "float32"

    k.trace(F4)
    refused(
        ArgumentError,
        lambda: k.trace(tt.spec((16,), "int32")),
        "X.dtype == 'float32'",
        at='X.dtype == "float32"',
    )


def test_every_operation_has_its_expression_as_span():
    program = gemm.trace(*specs())
    with open(__file__) as file:
        lines = file.read().splitlines()

    def text(statement):
        span = statement.span
        assert span.file == __file__
        return lines[span.line - 1][span.column - 1 : span.end_column - 1]

    texts = {type(s): text(s) for s in walk(program)}
    assert texts[Mma] == "tt.mma(a, b, acc)"
    assert texts[Load] == "B[tt.ds(k * bk, bk), tt.ds(j * bn, bn)]"
    assert texts[Pipeline] == "tt.pipeline(tt.cdiv(A.shape[1], bk))"
    assert texts[Stage] == 'tt.stage("compute")'
    assert texts[Store].startswith("C[tt.ds(i * bm, bm)")


def test_columns_count_characters_not_bytes(refused):
    @tt.kernel
    def k(X):
        größe = "äöü"
        X[0] = X[1] + größe

    refused(CaptureError, lambda: k.trace(F4), "'äöü'", at="X[1] + größe")


def test_body_is_captured_once():
    count = []

    @tt.kernel
    def k(X):
        for i in tt.parallel(4):
            count.append("outer")
            for _ in tt.serial(5):
                count.append("inner")
                X[i] = 1.0

    k.trace(F4)
    assert count == ["outer", "inner"]


def test_the_rest_of_python_runs_during_capture():
    table = {"scale": 2.0, "shift": 1.0}

    @tt.kernel
    def k(X, *, relu=True):
        parts = [X[q] * table["scale"] for q in range(3)]
        for number, part in enumerate(parts):
            if number == 1:
                continue
            if number > 1 and not relu:
                break
            X[number] = part + table["shift"] if relu else part
        else:
            X[15] = 0.0
        n = 0
        while n < 2:
            n += 1
        match n:
            case 2:
                X[14] = float(n)
            case _:
                raise AssertionError
        try:
            raise KeyError("x")
        except KeyError:
            X[13] = 3.0

    stores = [s for s in walk(k.trace(F4)) if isinstance(s, Store)]
    assert [str(s.view.subscripts[0]) for s in stores] == ["0", "2", "15", "14", "13"]
    stores = [s for s in walk(k.trace(F4, relu=False)) if isinstance(s, Store)]
    assert [str(s.view.subscripts[0]) for s in stores] == ["0", "14", "13"]


def test_exception_of_the_user_has_place_and_cause(refused):
    def helper(x):
        return x / 0

    @tt.kernel
    def k(X):
        for i in tt.parallel(4):
            X[i] = helper(1)

    error = refused(CaptureError, lambda: k.trace(F4), "ZeroDivisionError", "division by zero", at="x / 0")
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_keyboard_interrupt_passes_through():
    @tt.kernel
    def k(X):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        k.trace(F4)


def test_error_in_a_region_leaves_no_capture_behind(refused):
    @tt.kernel
    def k(X, *, fail=True):
        for i in tt.parallel(4):
            if fail:
                raise ValueError("no")
            X[i] = 0.0

    refused(CaptureError, lambda: k.trace(F4), "no", at='raise ValueError("no")')
    assert kinds(k.trace(F4, fail=False)) == ["Parallel", "Full", "Store"]
    refused(
        CaptureError,
        lambda: tt.zeros(4, "float32"),
        "while a kernel is captured",
        at='tt.zeros(4, "float32")',
    )


def test_caught_error_unwinds_to_the_scope_of_the_try():
    @tt.kernel
    def k(X):
        try:
            for _ in tt.parallel(4):
                raise ValueError("no")
        except ValueError:
            X[0] = 1.0

    assert kinds(k.trace(F4)) == ["Full", "Store"]


def test_operations_outside_a_kernel_are_refused(refused):
    for call in (
        lambda: tt.zeros((2,), "float32"),
        lambda: tt.parallel(4),
        lambda: tt.stage("x"),
        lambda: tt.exp(1.0),
        lambda: tt.iota(4, "int32"),
        lambda: tt.sum(1.0),
        lambda: tt.fma(1.0, 2.0, 3.0),
    ):
        refused(CaptureError, call, "while a kernel is captured")


def test_tile_of_another_capture_is_refused(refused):
    kept = []

    @tt.kernel
    def first(X):
        kept.append(X[0])
        kept.append(X)

    @tt.kernel
    def second(X, *, what):
        X[1] = kept[what] if what == 0 else kept[what][0]

    first.trace(F4)
    refused(CaptureError, lambda: second.trace(F4, what=0), "capture of kernel 'first'", at="X[1]")
    refused(CaptureError, lambda: second.trace(F4, what=1), "parameter of kernel 'first'", at="kept[what][0]")
    refused(CaptureError, lambda: kept[0] + 1, "while a kernel is captured", at="kept[0] + 1")


def test_capture_inside_a_capture():
    inner_programs = []

    @tt.kernel
    def inner(X):
        X[0] = 1.0

    @tt.kernel
    def outer(X):
        for i in tt.parallel(4):
            inner_programs.append(inner.trace(F4))
            X[i] = 2.0

    assert kinds(outer.trace(F4)) == ["Parallel", "Full", "Store"]
    assert kinds(inner_programs[0]) == ["Full", "Store"]


def test_threads_capture_independently():
    programs = [None] * 8

    def work(number):
        programs[number] = str(gemm.trace(*specs(m=16 + number), bm=8))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert programs == [str(gemm.trace(*specs(m=16 + n), bm=8)) for n in range(8)]


def test_kernel_called_in_a_kernel_is_put_there():
    @tt.kernel
    def scale(X, factor: tt.Scalar["float32"], *, n=4):
        for i in tt.parallel(n):
            X[i] = X[i] * factor

    @tt.kernel
    def twice(X, Y):
        scale(X, 2.0)
        scale(Y, X[0], n=2)

    program = twice.trace(F4, F4)
    assert [type(s).__name__ for s in program.body.statements] == ["Full", "Parallel", "Load", "Parallel"]


def test_kernel_called_in_a_kernel_needs_tensors(refused):
    @tt.kernel
    def scale(X):
        X[0] = 1.0

    @tt.kernel
    def bad(X):
        scale(X[0:4])

    @tt.kernel
    def missing(X, Y):
        scale(X, Y)

    @tt.kernel(fma=False)
    def strict(X):
        scale(X)

    refused(
        ArgumentError, lambda: bad.trace(F4), "argument X of kernel scale", "not a tensor", at="scale(X[0:4])"
    )
    refused(ArgumentError, lambda: missing.trace(F4, F4), "takes 1 argument (X)")
    refused(CaptureError, lambda: strict.trace(F4), "fma", at="scale(X)")


def test_fma_goes_to_the_program():
    @tt.kernel(fma=False)
    def k(X):
        X[0] = 1.0

    assert not k.trace(F4).fma
    assert gemm.trace(*specs()).fma


def test_calling_needs_a_launcher(monkeypatch, refused):
    seen = []
    # The attribute of the package is the decorator, not the module.
    monkeypatch.setattr(sys.modules["tvm_tile.frontend.kernel"], "_launcher", None)
    refused(UnsupportedError, lambda: gemm(1, 2, 3), "gemm")
    tt.set_launcher(lambda kernel, args, constants: seen.append((kernel, args, constants)))
    gemm(1, 2, 3, bm=4)
    assert seen == [(gemm, (1, 2, 3), {"bm": 4})]


def test_kernel_keeps_name_and_docstring():
    assert gemm.__name__ == gemm.name == "gemm"
    assert gemm.__doc__ == "Matrix product."
    assert gemm.signature.tensors == ("A", "B", "C")
    assert gemm.signature.constants == {"bm": 16, "bn": 16, "bk": 16}


def test_returned_value_is_refused(refused):
    @tt.kernel
    def k(X):
        return X[0]

    refused(CaptureError, lambda: k.trace(F4), "returns")


def test_verifier_sees_the_program(refused):
    @tt.kernel
    def k(X):
        T = tt.zeros((4,), "float32")
        for i in tt.parallel(4):
            T = X[tt.ds(i, 4)]
        X[0:4] = T

    error = refused(IllegalError, lambda: k.trace(F4), "T", at="X[tt.ds(i, 4)]")
    assert error.obligation == "competing whole-tile writes"


def test_whole_tile_assignment_in_parallel_that_does_not_depend_on_the_instance():
    @tt.kernel
    def k(X):
        T = tt.zeros((4,), "float32")
        for i in tt.parallel(4):
            T = tt.exp(T) + 1.0
            X[i] = 2.0
        X[0:4] = T

    (loop,) = [s for s in walk(k.trace(F4)) if isinstance(s, Parallel)]
    assert len(loop.args) == 1


def test_regions_nest_and_follow_one_another():
    @tt.kernel
    def k(X, Y):
        for i in tt.parallel(4):
            s = tt.zeros((), "float32")
            for r in tt.reduce(4):
                s = s + X[i * 4 + r]
            t = tt.zeros((), "float32")
            for j in tt.serial(2):
                for r in tt.reduce(3, policy="fold_right"):
                    t = t * 0.5 + X[j + r]
            Y[i] = s + t
        for i in tt.parallel(4):
            Y[i] = Y[i] + 1.0

    program = k.trace(F4, F4)
    first, second = program.body.statements
    assert isinstance(first, Parallel)
    assert isinstance(second, Parallel)
    inner = [s for s in first.body.statements if not isinstance(s, (Elementwise, Load))]
    assert [type(s) for s in inner if isinstance(s, (Reduce, Serial))] == [Reduce, Serial]
    (serial,) = [s for s in inner if isinstance(s, Serial)]
    (fold,) = [s for s in serial.body.statements if isinstance(s, Reduce)]
    assert fold.policy == "fold_right"
    assert fold.inits == serial.args
    assert serial.yields == fold.results
    assert not [s for s in walk(program) if isinstance(s, If)]


def test_capture_does_not_need_the_code_generators():
    code = "import sys, tvm_tile.frontend; sys.exit('tvm' in sys.modules or 'islpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
