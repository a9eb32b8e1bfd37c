"""Calling kernels: what makes a specialization, what two calls share, and what they must not."""

import enum
import threading

import numpy as np
import pytest

from tvm_tile.bridges.runtime import artifact
from tvm_tile.build import cache_clear, cache_info
from tvm_tile.errors import ArgumentError, CaptureError, TileError
from tvm_tile.frontend import Scalar, ds, kernel, parallel

FACTOR = 1.0


@kernel
def scaled(X, Y, *, factor=2.0):
    for i in parallel(X.shape[0]):
        Y[ds(i, 1)] = X[ds(i, 1)] * factor


@kernel
def shifted(X, s: Scalar["float32"], Y):  # noqa: F821
    for i in parallel(X.shape[0]):
        Y[ds(i, 1)] = X[ds(i, 1)] + s


@kernel
def by_global(X, Y):
    for i in parallel(X.shape[0]):
        Y[ds(i, 1)] = X[ds(i, 1)] * FACTOR


@pytest.fixture(autouse=True)
def _empty_caches():
    cache_clear()


def counts():
    info = cache_info()
    return info["specializations"].misses, info["programs"].misses


def numbers(n, dtype="float32"):
    return np.arange(1, n + 1).astype(dtype)


def test_a_second_call_with_like_arguments_traces_and_builds_nothing():
    for _ in range(3):
        x, y = numbers(5), np.zeros(5, "float32")
        scaled(x, y)
        np.testing.assert_array_equal(y, x * 2)
    assert counts() == (1, 1)
    assert cache_info()["specializations"].hits == 2


def test_shape_dtype_and_strides_specialize():
    for x in (numbers(5), numbers(6), numbers(5, "float64"), numbers(10)[::2], numbers(5)[::-1]):
        y = np.zeros(len(x), x.dtype)
        scaled(x, y)
        np.testing.assert_array_equal(y, x * 2)
    assert counts() == (5, 5)


def test_strides_that_mean_nothing_share_the_code():
    x = np.lib.stride_tricks.as_strided(numbers(4), (1,), (400,))
    for a in (x, numbers(1)):
        scaled(a, np.zeros(1, "float32"))
    assert counts() == (2, 1)


@pytest.mark.parametrize("constants", [(0.0, -0.0), (1, 1.0), (float("inf"), float("nan"))])
def test_constants_that_only_look_alike_are_told_apart(constants):
    for factor in (*constants, *constants):
        x, y = numbers(3), np.zeros(3, "float32")
        scaled(x, y, factor=factor)
        np.testing.assert_array_equal(y, x * np.float32(factor))
        assert np.signbit(y[0]) == np.signbit(np.float32(factor))
    assert counts()[0] == 2


def test_a_default_constant_and_the_same_given_share_the_code():
    scaled(numbers(3), np.zeros(3, "float32"))
    scaled(numbers(3), np.zeros(3, "float32"), factor=2.0)
    assert counts() == (2, 1)


def test_arguments_by_name():
    y = np.zeros(3, "float32")
    for _ in range(2):
        scaled(Y=y, X=numbers(3), factor=3.0)
        np.testing.assert_array_equal(y, numbers(3) * 3)
    with pytest.raises(ArgumentError, match="missing"):
        scaled(Y=y)


def test_run_time_scalars_do_not_specialize():
    y = np.zeros(3, "float32")
    for s in (1.0, 2.5, -3.0):
        shifted(numbers(3), s, y)
        np.testing.assert_array_equal(y, numbers(3) + np.float32(s))
    assert counts() == (1, 1)
    with pytest.raises(ArgumentError, match="s"):
        shifted(numbers(3), "text", y)


def test_a_changed_global_makes_another_program(monkeypatch):
    for value in (1.0, 3.0, 1.0):
        monkeypatch.setitem(globals(), "FACTOR", value)
        y = np.zeros(3, "float32")
        by_global(numbers(3), y)
        np.testing.assert_array_equal(y, numbers(3) * value)
    assert counts() == (2, 2)


def test_constants_that_may_change_are_never_trusted():
    class Options:
        factor = 2.0

        def __rmul__(self, tile):
            return tile * self.factor

    options, y = Options(), np.zeros(3, "float32")

    @kernel
    def by_object(X, Y, *, options):
        for i in parallel(X.shape[0]):
            Y[ds(i, 1)] = X[ds(i, 1)] * options.factor

    for factor in (2.0, 5.0):
        options.factor = factor
        by_object(numbers(3), y, options=options)
        np.testing.assert_array_equal(y, numbers(3) * factor)
    assert counts() == (0, 2)


def test_classes_are_never_trusted_to_stay_as_they_are():
    """Symptom: code for the old class attribute ran; the key had the class by its identity."""

    class Options:
        factor = 2.0

    @kernel
    def by_class(X, Y, *, options):
        for i in parallel(X.shape[0]):
            Y[ds(i, 1)] = X[ds(i, 1)] * options.factor

    y = np.zeros(3, "float32")
    for factor in (2.0, 5.0):
        Options.factor = factor
        by_class(numbers(3), y, options=Options)
        np.testing.assert_array_equal(y, numbers(3) * factor)


@pytest.mark.parametrize("base", [int, float, str, tuple, list, dict])
def test_subclasses_of_plain_values_may_hold_more_than_the_value(base):
    class Loaded(base):
        factor = 2.0

    @kernel
    def by_value(X, Y, *, value):
        for i in parallel(X.shape[0]):
            Y[ds(i, 1)] = X[ds(i, 1)] * value.factor

    value, y = Loaded(), np.zeros(3, "float32")
    for factor in (2.0, 5.0):
        value.factor = factor
        by_value(numbers(3), y, value=value)
        np.testing.assert_array_equal(y, numbers(3) * factor)


class Activation(enum.Enum):
    HALF = 0.5
    TWICE = 2


def test_enumerators_and_dtypes_are_constants():
    @kernel
    def by_member(X, Y, *, member, dtype):
        for i in parallel(X.shape[0]):
            Y[ds(i, 1)] = X[ds(i, 1)].astype(dtype).astype("float32") * float(member.value)

    for _ in range(2):
        for member in Activation:
            for dtype in (np.float32, np.dtype("float64"), "float32"):
                y = np.zeros(3, "float32")
                by_member(numbers(3), y, member=member, dtype=dtype)
                np.testing.assert_array_equal(y, numbers(3) * member.value)
    assert counts()[0] == 6


def test_an_enumerator_with_state_of_its_own_is_not_trusted():
    class Tuned(enum.Enum):
        ONLY = 1

    @kernel
    def by_member(X, Y, *, member):
        for i in parallel(X.shape[0]):
            Y[ds(i, 1)] = X[ds(i, 1)] * member.factor

    y = np.zeros(3, "float32")
    for factor in (2.0, 5.0):
        Tuned.ONLY.factor = factor
        by_member(numbers(3), y, member=Tuned.ONLY)
        np.testing.assert_array_equal(y, numbers(3) * factor)


def test_lists_are_constants_by_what_they_hold():
    @kernel
    def by_list(X, Y, *, factors):
        for i in parallel(X.shape[0]):
            Y[ds(i, 1)] = X[ds(i, 1)] * factors[0]

    factors, y = [2.0], np.zeros(3, "float32")
    for factor in (2.0, 5.0, 2.0):
        factors[0] = factor
        by_list(numbers(3), y, factors=factors)
        np.testing.assert_array_equal(y, numbers(3) * factor)
    assert counts() == (2, 2)


def test_kernels_that_come_to_one_program_share_the_code():
    def make():
        @kernel
        def twice(X, Y):
            for i in parallel(X.shape[0]):
                Y[ds(i, 1)] = X[ds(i, 1)] * 2.0

        return twice

    for _ in range(3):
        y = np.zeros(3, "float32")
        make()(numbers(3), y)
        np.testing.assert_array_equal(y, numbers(3) * 2)
    assert counts() == (3, 1)


def test_fields_of_records_run_from_a_dense_copy():
    records = np.zeros(5, np.dtype([("a", "i1"), ("b", "f4")]))
    records["b"] = numbers(5)
    y = np.zeros(5, "float32")
    scaled(records["b"], y)
    np.testing.assert_array_equal(y, numbers(5) * 2)
    scaled(y, records["b"])
    np.testing.assert_array_equal(records["b"], numbers(5) * 4)
    assert not records["a"].any()


def test_one_array_for_input_and_output():
    x = numbers(4)
    scaled(x, x)
    np.testing.assert_array_equal(x, numbers(4) * 2)
    with pytest.raises(ArgumentError, match="share elements"):
        scaled(x[:3], x[1:])


def test_a_kernel_that_runs_itself_while_it_is_traced_is_refused_and_another_is_not():
    """Symptom: it waited for itself without end."""
    x, y = np.ones(4, "float32"), np.zeros(4, "float32")

    @kernel
    def inner(X, Y):
        Y[ds(0, 4)] = X[ds(0, 4)] * 3.0

    @kernel
    def outer(X, Y, *, own):
        (outer if own else inner)(x, y, **({"own": own} if own else {}))
        Y[ds(0, 4)] = X[ds(0, 4)] * float(y[0])

    with pytest.raises(CaptureError, match="kernel outer calls itself") as caught:
        outer(x, y, own=True)
    assert caught.value.span.file == __file__
    outer(x, y, own=False)
    np.testing.assert_array_equal(y, np.full(4, 3, "float32"))


def test_failures_are_not_kept():
    for _ in range(2):
        with pytest.raises(TileError):
            scaled(numbers(3), np.zeros((3, 2), "float32"), factor="text")
    assert cache_info()["specializations"].currsize == 0


def test_threads_compile_once_and_all_run(monkeypatch):
    compiled = []
    original = artifact.compile_program

    def counted(program, target):
        compiled.append(program.name)
        return original(program, target)

    monkeypatch.setattr(artifact, "compile_program", counted)
    results = [np.zeros(7, "float32") for _ in range(4)]
    barrier = threading.Barrier(4)

    def call(y):
        barrier.wait()
        for _ in range(20):
            scaled(numbers(7), y)

    workers = [threading.Thread(target=call, args=(y,)) for y in results]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    for y in results:
        np.testing.assert_array_equal(y, numbers(7) * 2)
    assert compiled == ["scaled"]
