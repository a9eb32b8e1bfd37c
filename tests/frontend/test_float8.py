"""Eight-bit floats load, store, cast and move; everything else names the cast to write."""

import ml_dtypes
import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.errors import CaptureError

FORMATS = ("float8_e4m3fn", "float8_e5m2")


def array_of(name, values):
    return np.array(values, "f4").astype(getattr(ml_dtypes, name))


@pytest.mark.parametrize("name", FORMATS)
def test_float8_goes_through_loads_casts_and_stores(name):
    @tt.kernel
    def k(X, Y, Z):
        for _ in tt.parallel(1):
            x = X.at[tt.ds(-1, 5)].load(fill=2.0)
            Y[...] = x.astype("float32") * 2.0
            Z[...] = (tt.where(x.astype("float32") > 0, x, x).astype("float32") + 1.0).astype(name)
            Z[0] = tt.full((), 3.0, name)

    x = array_of(name, [1, -0.5, 3, 0.25])
    y, z = np.zeros(5, "f4"), array_of(name, [0] * 5)
    tt.interpret(k.trace(x, y, z), x, y, z)
    assert y.tolist() == [4, 2, -1, 6, 0.5]
    assert z.astype("f4").tolist() == [3, 2, 0.5, 4, 1.25]


@pytest.mark.parametrize("name", FORMATS)
def test_torch_tensors_of_float8_are_arguments(name):
    torch = pytest.importorskip("torch")

    @tt.kernel
    def k(X, Y):
        for _ in tt.parallel(1):
            Y[...] = X[...].astype("float32")

    tensor = torch.zeros(4, dtype=getattr(torch, name))
    program = k.trace(tensor, np.zeros(4, "f4"))
    assert program.tensors[0].dtype == name
    assert program == k.trace(tt.spec((4,), name), np.zeros(4, "f4"))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x + 1,
        lambda x: x * x,
        lambda x: -x,
        lambda x: abs(x),
        lambda x: x < x,
        lambda x: x + x.astype("float32"),
        tt.exp,
        tt.isnan,
        tt.sum,
        tt.max,
        tt.mean,
        tt.any,
        tt.argmax,
        tt.cumsum,
        tt.cummax,
        lambda x: tt.maximum(x, x),
        lambda x: tt.map(lambda v: v * 2, x),
        lambda x: tt.update(x, 0, x[0], combine=tt.max),
    ],
)
def test_arithmetic_on_float8_is_refused_with_the_cast_to_write(refused, name, compute):
    @tt.kernel
    def k(X):
        compute(X[...])

    refused(CaptureError, lambda: k.trace(array_of(name, [1, 2])), name, 'astype("float32")')
