import pytest

import tvm_tile as tt


def interpreted(kernel, /, *arrays, **constants):
    tt.interpret(kernel.trace(*arrays, **constants), *arrays)


def built(kernel, /, *arrays, **constants):
    tt.build(kernel.trace(*arrays, **constants), "llvm")(*arrays)


def on_device(kernel, /, *arrays, **constants):
    tt.build(kernel.trace(*arrays, **constants), "opencl")(*arrays)


@pytest.fixture(
    params=[
        pytest.param(interpreted, id="interpreter"),
        pytest.param(built, id="llvm"),
        pytest.param(on_device, id="opencl", marks=pytest.mark.slow),
    ]
)
def execute(request):
    """Runs a kernel on arrays, in place: its meaning, then generated code."""
    return request.param
