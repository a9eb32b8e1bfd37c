"""Deep nesting is captured, or refused as what it is."""

import numpy as np
import pytest

import tvm_tile.frontend as tt
from tvm_tile.errors import CaptureError
from tvm_tile.ir.parser import parse_program
from tvm_tile.semantics.interpreter import interpret


def kernel_of(text):
    namespace = {"tt": tt}
    exec(text, namespace)
    return tt.kernel(namespace["k"], source=text)


def test_many_nested_branches_are_captured():
    lines = ["def k(X):", "    for i in tt.parallel(4):"]
    lines += ["    " * (2 + depth) + "if X[i] > 0:" for depth in range(15)]
    lines.append("    " * 17 + "X[i] = 1.0")
    assert kernel_of("\n".join(lines) + "\n").trace(np.zeros(4)).tensors[0].name == "X"


@pytest.mark.parametrize(
    "body",
    [
        "    X[:] = X[:]" + "+1" * 1500,
        "    s = tt.zeros((), 'float64')\n    def f(n, s):\n        if n == 0:\n            return s + 1\n"
        "        for i in tt.serial(1):\n            s = f(n - 1, s)\n        return s\n    X[0] = f(300, s)",
    ],
    ids=["expression", "regions"],
)
def test_what_nests_too_deeply_is_refused(body):
    with pytest.raises(CaptureError) as caught:
        kernel_of(f"def k(X):\n{body}\n").trace(np.zeros(4))
    assert caught.value.span is not None
    assert "recursion" in str(caught.value).lower() or "nest too deeply" in str(caught.value)


@pytest.mark.parametrize(
    "step",
    [lambda j: (j * 3 + 1) % 8, lambda j: (j + j) % 8 + j // 3],
    ids=["chain", "doubling"],
)
def test_indices_of_many_steps_stay_small(step):
    """An expression that uses itself twice is a tree of twice the size: after 40 steps it would not fit."""

    def place(i):
        for _ in range(40):
            i = step(i)
        return i % 8

    @tt.kernel
    def kernel(X, Y):
        for i in tt.parallel(8):
            Y[i] = X[place(i)]

    x, y = np.arange(8.0), np.zeros(8)
    program = kernel.trace(x, y)
    assert len(str(program)) < 50_000
    assert parse_program(str(program)) == program
    interpret(program, x, y)
    np.testing.assert_array_equal(y, [place(i) for i in range(8)])
