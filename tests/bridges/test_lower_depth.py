"""Long chains and shared graphs of values build in time that grows with their length."""

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.bridges.tirx.lower.fusion import fuse
from tvm_tile.ir.ops import Elementwise
from tvm_tile.ir.regions import Parallel
from tvm_tile.ir.structure import walk

STEPS = {
    "chain": lambda x: x * 0.5 + 1.0,
    "square": lambda x: x * x * 0.5,
    "diamond": lambda x: x * 0.25 + (x + 1.0) * 0.5,
    "choice": lambda x: tt.where(x > 1.0, x * 0.5, x + 0.25),
    "views": lambda x: tt.reshape(tt.reshape(x, (2, 2)).T, (4,)) + x * 0.5,
}


def program_of(name, count):
    @tt.kernel
    def repeated(X, Y):
        for i in tt.parallel(2):
            x = X[tt.ds(4 * i, 4)]
            for _ in range(count):
                x = STEPS[name](x)
            Y[tt.ds(4 * i, 4)] = x

    return repeated.trace(tt.spec((8,), "float64"), tt.spec((8,), "float64"))


@pytest.mark.parametrize("target", ["llvm", "opencl"])
@pytest.mark.parametrize("name", STEPS)
def test_values_that_are_used_again_and_again_are_computed_once(name, target):
    """With a way for each use, 60 steps would have 2 to the power of 60 of them."""
    program = program_of(name, 60)
    x, y, want = np.linspace(0, 1, 8), np.zeros(8), np.zeros(8)
    tt.interpret(program, x, want)
    tt.build(program, target)(x, y)
    np.testing.assert_allclose(y, want, rtol=1e-12)


def test_a_chain_longer_than_the_stack_of_python_builds():
    program = program_of("chain", 600)
    x, y, want = np.linspace(0, 1, 8), np.zeros(8), np.zeros(8)
    tt.interpret(program, x, want)
    tt.build(program, "llvm")(x, y)
    np.testing.assert_allclose(y, want, rtol=1e-12)


def test_a_short_chain_needs_no_temporary_and_a_long_one_few():
    def stored(count):
        body = next(s for s in walk(program_of("chain", count)) if isinstance(s, Parallel)).body
        fusion = fuse(body, (), True)
        computed = [s.result for s in body.statements if isinstance(s, Elementwise) and s.result.shape]
        return sum(value not in fusion.inlined for value in computed)

    assert stored(20) == 0
    assert 0 < stored(600) <= 600 * 2 / 60
