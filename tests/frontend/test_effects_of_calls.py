"""Atomic updates and calls of opaque functions: what is captured, and what is refused."""

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.errors import CaptureError, IllegalError, OperandError
from tvm_tile.ir.ops import Atomic, Extern, View
from tvm_tile.ir.structure import walk

F = np.zeros((4, 6), "f4")


def found(program, kind):
    return [op for op in walk(program) if isinstance(op, kind)]


def interpreted(kernel, *arrays):
    copies = [array.copy() for array in arrays]
    program = kernel.trace(*copies)
    assert tt.parse(str(program)) == program
    tt.interpret(program, *copies)
    return copies


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "i4", "u8"])
def test_atomics_combine_what_all_instances_give(dtype):
    @tt.kernel
    def k(X, A, B, C):
        for i in tt.parallel(5):
            tt.atomic_add(A.at[i % 2], X[i])
            tt.atomic_max(B.at[0], X[i])
            tt.atomic_min(C.at[()] if C.ndim else C, X[i], mask=X[i] > 1)

    x = np.array([3, 1, 4, 1, 5], dtype)
    _, a, b, c = interpreted(k, x, np.array([10, 20], dtype), np.array([2], dtype), np.array(9, dtype))
    assert [a.tolist(), b.tolist(), c] == [[10 + 3 + 4 + 5, 22], [5], 3]


def test_an_atomic_gives_what_was_there():
    @tt.kernel
    def k(A, Y):
        for i in tt.serial(3):
            old = tt.atomic_add(A.at[tt.ds(0, 4), None], 1)
            assert old.shape == (4, 1)
            Y[i, :] = old[:, 0]

    a, y = interpreted(k, np.array([1, 2, 3], "i4"), np.zeros((3, 4), "i4"))
    assert a.tolist() == [4, 5, 6]
    # The fourth element is out of bounds: nothing is written, and 0 was there.
    assert y.tolist() == [[1, 2, 3, 0], [2, 3, 4, 0], [3, 4, 5, 0]]


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda A: tt.atomic_add(A[0, 0], 1.0), CaptureError, ("the value", "use A.at[idx]")),
        (lambda A: tt.atomic_max(A, 1.0), CaptureError, ("'A'", "(4, 6)", "A.at[i, j]")),
        (lambda A: tt.atomic_min(3, 1.0), CaptureError, ("not 3", "A.at[idx]")),
        (lambda A: tt.atomic_add(A.at[0], A[0, :][:, None] * A[0, :]), OperandError, ("(6, 6)",)),
        (lambda A: tt.atomic_add(A.at[0, 0], tt.full((), 1, "float64")), OperandError, ("narrowing",)),
        (lambda A: tt.atomic_add(A.at[0, 0], 1.0, mask=3), OperandError, ("mask",)),
        (lambda A: tt.atomic_add(tt.alloc((2,), "bool").at[0], True), OperandError, ("bool", "int32")),
        (lambda A: tt.atomic_add(tt.alloc((2,), "float8_e5m2").at[0], 1.0), OperandError, ("float8_e5m2",)),
    ],
)
def test_atomics_that_cannot_be_are_refused(refused, make, kind, words):
    @tt.kernel
    def k(A):
        make(A)

    refused(kind, lambda: k.trace(F), *words)


def test_atomics_have_no_place_in_reductions(refused):
    @tt.kernel
    def k(A):
        s = tt.zeros((), "float32")
        for _ in tt.reduce(4):
            s = s + tt.atomic_add(A.at[0, 0], 1.0)

    refused(IllegalError, lambda: k.trace(F), "reduction")


def test_a_call_passes_addresses_and_scalars():
    @tt.kernel
    def k(A, B, n: tt.Scalar["int32"]):  # noqa: F821 the text is a dtype
        m = tt.alloc((3,), "float64")
        for i in tt.parallel(2):
            tt.extern("touch", A.at[i, 2], B, m.at[1], n, i, i + 1, 2.5, 7, True, A[0, 0])
            tt.extern("declared", A.at[0, 0], B, reads=[A], writes=B.at[0])
            tt.extern("pure", n, reads=[], writes=())

    touch, declared, pure = found(k.trace(F, np.zeros(3, "i8"), np.int32(1)), Extern)
    views = [x for x in touch.operands if isinstance(x, View)]
    assert [str(view) for view in views[1:]] == ["@B[0 :+ 3]", "@m[1]"]
    scalars = [x.dtype for x in touch.operands if not isinstance(x, View)]
    assert scalars == ["int32", "int64", "int64", "float64", "int64", "bool", "float32"]
    assert [m.name for m in touch.reads] == [m.name for m in touch.writes] == ["A", "B", "m"]
    assert [m.name for m in (*declared.reads, *declared.writes)] == ["A", "B"]
    assert pure.reads == pure.writes == ()


def test_a_call_does_what_the_function_does():
    @tt.kernel
    def k(X, Y):
        for _ in tt.parallel(1):
            buffer = tt.alloc((6,), "float32")
            tt.extern("memcpy", buffer.at[0], X.at[1, 0], 24, reads=[X], writes=[buffer])
            Y[...] = buffer[...] * 2.0

    x = np.arange(12, dtype="f4").reshape(2, 6)
    np.testing.assert_array_equal(interpreted(k, x, np.zeros(6, "f4"))[1], x[1] * 2)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda A: tt.extern(3, A), CaptureError, ("by its name", "3")),
        (lambda A: tt.extern("two words", A), CaptureError, ("two words",)),
        (lambda A: tt.extern("f", A[...]), CaptureError, ("without address", "tt.alloc")),
        (lambda A: tt.extern("f", "text"), CaptureError, ("'text'", "A.at[idx]")),
        (lambda A: tt.extern("f", A[0, 0].astype("float16")), OperandError, ("C type", "float32")),
        (lambda A: tt.extern("f", A[0, 0].astype("bfloat16")), OperandError, ("C type",)),
        (lambda A: tt.extern("f", A, reads=[A[0]]), CaptureError, ("reads=", "memory")),
        (lambda A: tt.extern("f", A, writes=["A"]), CaptureError, ("writes=", "'A'")),
        (lambda A: tt.map(lambda a: tt.extern("f", a) or a, A[...]), CaptureError, ("no stores",)),
    ],
)
def test_calls_that_cannot_be_are_refused(refused, make, kind, words):
    @tt.kernel
    def k(A):
        make(A)

    refused(kind, lambda: k.trace(F), *words)


def test_atomics_are_captured_with_their_functions():
    @tt.kernel
    def k(A):
        for i in tt.parallel(2):
            tt.atomic_add(A.at[0, 0], 1)
            tt.atomic_max(A.at[i, :], i)
            tt.atomic_min(A.at[:, :], 1.5)

    assert [op.fn for op in found(k.trace(F), Atomic)] == ["add", "maximum", "minimum"]
