"""Deep nesting is captured, or refused as what it is."""

import numpy as np
import pytest

import tvm_tile.frontend as tt
from tvm_tile.errors import CaptureError


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
        "    for i in tt.parallel(4):\n        j = i\n        for z in range(3000):\n"
        "            j = (j * 3 + 1) % 4\n        X[j] = 1.0",
        "    s = tt.zeros((), 'float64')\n    def f(n, s):\n        if n == 0:\n            return s + 1\n"
        "        for i in tt.serial(1):\n            s = f(n - 1, s)\n        return s\n    X[0] = f(300, s)",
    ],
    ids=["expression", "index", "regions"],
)
def test_what_nests_too_deeply_is_refused(body):
    with pytest.raises(CaptureError) as caught:
        kernel_of(f"def k(X):\n{body}\n").trace(np.zeros(4))
    assert caught.value.span is not None
    assert "recursion" in str(caught.value).lower() or "nest too deeply" in str(caught.value)
