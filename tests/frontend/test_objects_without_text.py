"""Objects whose text cannot be had, and other odd ones, end in errors of this package."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.errors import ArgumentError, CaptureError, OperandError

X = np.zeros(4, "f4")
HUGE = 10**5000


class Mute:
    """Its text cannot be had."""

    def __repr__(self):
        raise RuntimeError("no text")

    __str__ = __repr__


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


def uses():
    def raising(X, Y, c):
        raise MuteError

    def operand(X, Y, c):
        for i in tt.parallel(4):
            Y[i] = X[i] + c

    def subscript(X, Y, c):
        for i in tt.parallel(4):
            Y[i] = X[c]

    def extent(X, Y, c):
        for i in tt.parallel(c):
            Y[i] = X[i]

    def store(X, Y, c):
        for i in tt.parallel(4):
            Y[i] = c

    def dtype(X, Y, c):
        tt.zeros((), c)

    def carried(X, Y, c):
        z = c
        for i in tt.serial(4):
            z = X[i]
        Y[0] = z

    def size(X, Y, c):
        tt.ds(0, c)

    def merge(X, Y, c):
        tt.reduce_tile(X[:], 0, c)

    return raising, operand, subscript, extent, store, dtype, carried, size, merge


@pytest.mark.parametrize("constant", [Mute(), HUGE, -HUGE], ids=["mute", "huge", "-huge"])
@pytest.mark.parametrize("use", uses(), ids=lambda use: use.__name__)
def test_a_constant_without_text_is_refused_with_a_place(use, constant):
    @tt.kernel
    def k(X, Y, *, c):
        use(X, Y, c)

    with pytest.raises(CaptureError) as caught:
        k.trace(X, X, c=constant)
    assert caught.value.span is not None
    assert str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda k: k.trace(X, Mute()),
        lambda k: k.trace(Mute(), X),
        lambda k: k.trace(X, X, d=Mute()),
        lambda k: tt.spec(Mute(), "float32"),
        lambda k: tt.spec((3,), Mute()),
        lambda k: tt.Scalar[Mute()],
    ],
)
def test_arguments_without_text_are_refused(call):
    @tt.kernel
    def k(A, B):
        A[0] = B[0]

    with pytest.raises(ArgumentError) as caught:
        call(k)
    assert str(caught.value)


@pytest.mark.parametrize("make", [tt.kernel, lambda x: tt.Merge(x, 0)])
def test_objects_without_text_are_no_functions(make):
    with pytest.raises(CaptureError, match="Mute without text"):
        make(Mute())


def test_a_number_beyond_floats_is_described_by_its_bits(refused):
    @tt.kernel
    def k(A):
        A[0] = A[0] + HUGE

    refused(OperandError, lambda: k.trace(X), "16610 bits", "float32", at="A[0] + HUGE")


@pytest.mark.parametrize("index", [2**63, -(2**63) - 1])
def test_indices_have_64_bits(refused, index):
    @tt.kernel
    def k(A):
        for i in tt.parallel(2):
            A[0] = A[i + index]

    refused(CaptureError, lambda: k.trace(X), "64 bits")


def test_an_alias_of_scalar_in_the_function_around_is_an_annotation():
    Factor = tt.Scalar["float32"]
    Any = tt.Scalar

    @tt.kernel
    def k(A, alpha: Factor, beta: Any["int32"]):  # noqa: F821, UP037 the text is a dtype
        A[0] = alpha

    assert k.signature.scalars == {"alpha": "float32", "beta": "int32"}


def test_an_excerpt_shows_a_part_of_a_very_long_line():
    padding = ", ".join(["X[0]"] * 400)
    source = f"def k(X):\n    parts = [{padding}, X[9, 9], {padding}]\n"
    namespace = {"tt": tt}
    name = "<a very long line>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), namespace)
    with pytest.raises(OperandError) as caught:
        tt.kernel(namespace["k"]).trace(X)
    lines = str(caught.value).splitlines()
    assert "X[9, 9]" in lines[1]
    assert len(lines[1]) < 250
    assert lines[1][lines[2].index("^") :].startswith("X[9, 9]")


@pytest.mark.parametrize(
    ("function", "counterpart"),
    [
        (lambda x: np.take(x, 0), "tt.gather"),
        (lambda x: np.take_along_axis(x, x, 0), "tt.gather"),
        (lambda x: np.concatenate((x, x)), "tt.concat"),
        (lambda x: np.stack((x, x)), "tt.concat"),
        (lambda x: np.split(x, 2), "tt.split"),
        (lambda x: np.einsum("i,i", x, x), "tt.einsum"),
        (lambda x: np.outer(x, x), "a[:, None]"),
        (lambda x: np.var(x), "tt.welford"),
        (lambda x: np.logaddexp.reduce(x), "tt"),
        (lambda x: np.multiply.accumulate(x), "tt.scan(x, axis, tt.prod)"),
        (lambda x: np.cumprod(x), "tt.scan(x, axis, tt.prod)"),
    ],
)
def test_numpy_functions_name_what_the_language_has(refused, function, counterpart):
    @tt.kernel
    def k(A):
        A[:] = function(A[:])

    refused(CaptureError, lambda: k.trace(X), "NumPy's", counterpart)
