"""First mistakes: each error's remedy, followed literally, gives a kernel that works."""

import inspect
import logging

import numpy as np
import pytest

import tvm_tile as public
import tvm_tile.frontend as tt
from tvm_tile.errors import ArgumentError, CaptureError, OperandError
from tvm_tile.semantics.interpreter import interpret

F16 = tt.spec((16,), "float32")
I16 = tt.spec((16,), "int32")
M44 = tt.spec((4, 4), "float32")
TABLE = np.arange(16, dtype="f4")
WEIGHTS = (1.0, 2.0, 3.0)
BY_NUMBER = {0: 1.0, 1: 2.0}


def ran(kernel, *arrays):
    interpret(kernel.trace(*arrays), *arrays)
    return arrays


def numbers(n=16):
    return np.random.default_rng(3).standard_normal(n).astype("f4")


def test_a_return_in_a_loop_is_a_store(refused):
    @tt.kernel  # noqa: RET503 the slip under test
    def k(X, out):
        for i in tt.serial(4):
            return X[i]

    @tt.kernel
    def stored(X, out):
        for i in tt.serial(4):
            out[i] = X[i]

    refused(CaptureError, lambda: k.trace(F16, F16), "out[i] = ...", at="return X[i]")
    x = numbers()
    assert np.array_equal(ran(stored, x, np.zeros(4, "f4"))[1], x[:4])


def test_a_returned_value_is_shown_at_its_return(refused):
    @tt.kernel
    def k(X, out):
        y = X[:] * 2.0
        return y + 1.0

    @tt.kernel
    def stored(X, out):
        y = X[:] * 2.0
        out[...] = y + 1.0

    refused(CaptureError, lambda: k.trace(F16, F16), "out[...] = y + 1.0", at="return y + 1.0")
    x = numbers()
    assert np.array_equal(ran(stored, x, np.zeros_like(x))[1], x * 2 + 1)


def test_continue_is_an_if_around_the_rest(refused):
    @tt.kernel
    def k(X, out):
        for i in tt.serial(16):
            if X[i] < 0:
                continue
            out[i] = X[i]

    @tt.kernel
    def branched(X, out):
        for i in tt.serial(16):
            if X[i] >= 0:
                out[i] = X[i]

    refused(CaptureError, lambda: k.trace(F16, F16), "rest of the body under an `if`", at="continue")
    x = numbers()
    assert np.array_equal(ran(branched, x, np.zeros_like(x))[1], np.where(x >= 0, x, 0))


def test_break_is_a_flag(refused):
    @tt.kernel
    def k(X, out):
        for i in tt.serial(16):
            if X[i] > 1:
                break
            out[i] = X[i]

    @tt.kernel
    def flagged(X, out):
        done = tt.zeros((), "bool")
        for i in tt.serial(16):
            done = done | (X[i] > 1)
            if ~done:
                out[i] = X[i]

    refused(CaptureError, lambda: k.trace(F16, F16), 'tt.zeros((), "bool")', "if ~done:", at="break")
    x = np.array([0.5, -1, 0.25, 2, 0.5, *[0] * 11], "f4")
    assert ran(flagged, x, np.zeros_like(x))[1].tolist() == [0.5, -1, 0.25, *[0] * 13]


def test_a_tile_of_a_parallel_instance_is_stored_or_collected(refused):
    @tt.kernel
    def k(X, out):
        for i in tt.parallel(16):
            v = X[i]
        out[0] = v

    @tt.kernel
    def in_order(X, out):
        for i in tt.serial(16):
            v = X[i]
        out[0] = v

    @tt.kernel
    def collected(X, out):
        acc = tt.zeros((16,), "float32")
        for i in tt.parallel(16):
            v = X[i]
            acc = tt.update(acc, i, v)
        out[:] = acc

    refused(CaptureError, lambda: k.trace(F16, F16), "out[i] = v", "acc = tt.update(acc, i, v)")
    # A sequential loop has a last iteration.
    refused(CaptureError, lambda: in_order.trace(F16, F16), 'v = tt.zeros((), "float32")')
    x = numbers()
    assert np.array_equal(ran(collected, x, np.zeros_like(x))[1], x)


def from_array(X, out):
    for i in tt.parallel(4):
        out[i] = TABLE[i]


def from_tuple(X, out):
    for i in tt.parallel(4):
        out[i] = WEIGHTS[i]


def from_dict(X, out):
    for i in tt.parallel(4):
        out[i] = BY_NUMBER[i]


def by_a_loaded_number(X, out):
    out[0] = TABLE[X[0]]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (from_array, "TABLE"),
        (from_tuple, "WEIGHTS"),
        (from_dict, "the values of BY_NUMBER"),
        (by_a_loaded_number, "TABLE"),
    ],
)
def test_arrays_of_python_are_passed_as_tensors(refused, function, name):
    kernel = tt.kernel(function)
    refused(CaptureError, lambda: kernel.trace(I16, F16), f"pass {name} as a tensor parameter")


def test_an_array_of_python_takes_a_known_subscript():
    @tt.kernel
    def k(out):
        for i in range(3):
            out[i] = TABLE[i] + WEIGHTS[i]

    assert ran(k, np.zeros(3, "f4"))[0].tolist() == [1.0, 3.0, 5.0]


def test_a_forgotten_seed_is_spelled_with_its_dtype(refused):
    @tt.kernel
    def scalars(X, out):
        for i in tt.reduce(16):
            s = s + X[i]  # noqa: F821
        out[0] = s

    @tt.kernel
    def rows(X, out):
        for i in tt.serial(4):
            p *= X[i]  # noqa: F821
        out[...] = p

    @tt.kernel
    def seeded(X, out):
        p = tt.ones((4,), "float32")
        for i in tt.serial(4):
            p *= X[i]
        out[...] = p

    refused(CaptureError, lambda: scalars.trace(I16, I16), 's = tt.zeros((), "int32")', at="s")
    refused(CaptureError, lambda: rows.trace(M44, tt.spec(4, "float32")), 'p = tt.ones((4,), "float32")')
    x = numbers().reshape(4, 4)
    assert np.allclose(ran(seeded, x, np.zeros(4, "f4"))[1], x.prod(0))


@pytest.mark.parametrize(("value", "dtype"), [(3, "int64"), (0.5, "float32"), (np.float64(2), "float32")])
def test_a_number_for_a_tensor_names_scalars_and_constants(refused, value, dtype):
    @tt.kernel
    def k(X, n: int):
        X[:] = X[:] * n

    refused(ArgumentError, lambda: k.trace(F16, value), f'n: tt.Scalar["{dtype}"]', "keyword-only (*, n)")


def test_an_array_like_nothing_known_is_not_told_about_scalars():
    @tt.kernel
    def k(X, n):
        X[:] = X[:] * n

    with pytest.raises(ArgumentError) as info:
        k.trace(F16, "3")
    assert "Scalar" not in str(info.value)


def test_a_load_with_options_keeps_its_subscripts(refused):
    @tt.kernel
    def k(X, out):
        for i in tt.serial(16):
            out[i] = X[i - 1].load(fill=1.0)

    @tt.kernel
    def by_ref(X, out):
        for i in tt.serial(16):
            out[i] = X.at[i - 1].load(fill=1.0)

    refused(CaptureError, lambda: k.trace(F16, F16), "X.at[i - 1].load(fill=1.0)")
    x = numbers()
    assert np.array_equal(ran(by_ref, x, np.zeros_like(x))[1], [1, *x[:-1]])


def test_a_range_with_a_start_is_two_extents(refused):
    @tt.kernel
    def subscripted(X, out):
        for i in tt.serial(1, 10):
            out[i] = X[i]

    @tt.kernel
    def computed(X, out):
        for i in tt.serial(1, 10):
            out[i - 1] = X[0]

    @tt.kernel
    def shifted(X, out):
        for i in tt.serial(9):
            out[i + 1] = X[i + 1]

    words = ("2 extents and one variable", "tt.serial(9)", "i + 1")
    refused(CaptureError, lambda: computed.trace(F16, F16), *words)
    refused(OperandError, lambda: subscripted.trace(F16, F16), "with 1 axis of shape", *words)
    x = numbers()
    assert np.array_equal(ran(shifted, x, np.zeros_like(x))[1][1:10], x[1:10])


def test_a_tuple_of_indices_subscripts_as_many_axes():
    @tt.kernel
    def k(X, out):
        for i in tt.parallel(4, 4):
            out[i] = X[i] + 1.0

    x = numbers().reshape(4, 4)
    assert np.array_equal(ran(k, x, np.zeros_like(x))[1], x + 1)


def test_a_return_in_a_branch_of_a_mapped_function_names_the_way_out(refused):
    def relu(x):
        if x > 0:
            return x
        return 0.0

    def chosen(x):
        y = x
        if x <= 0:
            y = 0.0
        return y

    @tt.kernel
    def k(X, out):
        out[:] = tt.map(relu, X[:])

    @tt.kernel
    def branched(X, out):
        out[:] = tt.map(chosen, X[:])

    refused(CaptureError, lambda: k.trace(F16, F16), "assign in both arms", at="return x")
    x = numbers()
    assert np.array_equal(ran(branched, x, np.zeros_like(x))[1], np.maximum(x, 0))


def test_an_update_whose_result_is_dropped(refused):
    @tt.kernel
    def k(X, out):
        acc = tt.zeros((16,), "float32")
        for i in tt.parallel(16):
            tt.update(acc, i, X[i])
        out[:] = acc

    @tt.kernel
    def assigned(X, out):
        acc = tt.zeros((16,), "float32")
        for i in tt.parallel(16):
            acc[i] = X[i]
        out[:] = acc

    @tt.kernel
    def of_parts(X, out):
        acc = tt.zeros((4, 4), "float32")
        acc[1, 1:] += X[tt.ds(0, 3)]
        out[...] = acc

    @tt.kernel
    def updated(X, out):
        acc = tt.zeros((4, 4), "float32")
        acc = tt.update(acc, (1, slice(1, None)), acc[1, 1:] + X[tt.ds(0, 3)])
        out[...] = acc

    remedy = "acc = tt.update(acc, i, X[i])"
    refused(CaptureError, lambda: k.trace(F16, F16), "tt.update is not used", remedy)
    refused(CaptureError, lambda: assigned.trace(F16, F16), remedy)
    written = "acc = tt.update(acc, (1, slice(1, None)), acc[1, 1:] + X[tt.ds(0, 3)])"
    refused(CaptureError, lambda: of_parts.trace(F16, M44), written)
    x = numbers()
    want = np.zeros((4, 4), "f4")
    want[1, 1:] += x[:3]
    assert np.array_equal(ran(updated, x, np.zeros((4, 4), "f4"))[1], want)


def test_a_pure_function_or_method_alone_is_refused(refused):
    @tt.kernel
    def function(X):
        tt.exp(X[:])

    @tt.kernel
    def method(X):
        X[:].astype("float64")

    refused(CaptureError, lambda: function.trace(F16), "y = tt.exp(X[:])", at="tt.exp(X[:])")
    refused(CaptureError, lambda: method.trace(F16), ".astype is not used")


def test_statements_with_an_effect_stay():
    def stores(tensor, value):
        tensor[0] = value
        return value

    @tt.kernel
    def k(X, n):
        """A kernel's text is a statement too."""
        seen = []
        tt.atomic_add(n.at[0], 1)
        X.at[1].store(3.0)
        stores(X, 2.0)
        seen.append(1)
        X[:]
        for _ in tt.pipeline(2):
            tt.stage("first")
            tt.atomic_add(n.at[0], 1)

    x, n = ran(k, np.zeros(4, "f4"), np.zeros(1, "i4"))
    assert x.tolist() == [2, 3, 0, 0]
    assert n.tolist() == [3]


def test_a_tensor_parameter_that_is_only_rebound(refused):
    @tt.kernel
    def k(X, out):
        out = X[:] + 1.0  # noqa: F841 the slip under test

    @tt.kernel
    def stored(X, out):
        out[...] = X[:] + 1.0

    refused(CaptureError, lambda: k.trace(F16, F16), "'out' is given another value", "out[...] = ...")
    x = numbers()
    assert np.array_equal(ran(stored, x, np.zeros_like(x))[1], x + 1)


def test_rebinding_a_loaded_tensor_or_one_that_a_variant_leaves_out_is_legal():
    @tt.kernel
    def k(X, bias, out, *, with_bias=False):
        X = X[:]
        bias = bias[:] if with_bias else tt.zeros(X.shape, "float32")
        out[:] = X + bias

    x = numbers()
    assert np.array_equal(ran(k, x, np.ones_like(x), np.zeros_like(x))[2], x)


@pytest.mark.parametrize(
    ("merge", "words"),
    [
        (public.welford, ("one operand", "count", "mean", "m2", "lifted", "empty fibre")),
        (public.logsumexp, ("one operand", "max", "sum", "lifted", "empty fibre")),
        (public.argmax_pair, ("two operands", "value", "index", "lift", "empty fibre")),
    ],
)
def test_merges_of_the_language_have_documentation(merge, words):
    text = inspect.getdoc(merge)
    assert all(word in text for word in words)
    assert merge.name in inspect.getdoc(public.reduce_tile)


def test_a_tuple_of_states_is_unpacked(refused):
    @tt.kernel
    def stored(X, out):
        out[0] = tt.reduce_tile(X[:], 0, tt.logsumexp)

    @tt.kernel
    def computed(X, out):
        state = tt.reduce_tile(X[:], 0, tt.welford)
        out[0] = X[0] + state

    @tt.kernel
    def unpacked(X, out):
        top, total = tt.reduce_tile(X[:], 0, tt.logsumexp)
        out[0] = top + tt.log(total)

    refused(OperandError, lambda: stored.trace(F16, F16), "max, sum = tt.reduce_tile(...)")
    refused(OperandError, lambda: computed.trace(F16, F16), "count, mean, m2 = tt.reduce_tile(...)")
    x = numbers()
    assert np.allclose(ran(unpacked, x, np.zeros(1, "f4"))[1], np.log(np.exp(x.astype("f8")).sum()))


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("relu", "tt.maximum(x, 0)"),
        ("clip", "tt.minimum(tt.maximum(x, low), high)"),
        ("clamp", "tt.minimum(tt.maximum(x, low), high)"),
        ("prange", "tt.parallel"),
        ("arange", "tt.iota"),
        ("dot", "tt.mma"),
        ("program_id", "tt.parallel"),
        ("store", "A[idx] = value"),
        ("select", "tt.where"),
        ("print", "tt.interpret"),
        ("maxium", "did you mean tt.maximum?"),
        ("qqqq", "help(tvm_tile)"),
    ],
)
def test_names_of_other_systems_have_a_counterpart(refused, name, remedy):
    @tt.kernel
    def k(X):
        X[:] = getattr(tt, name)(X[:])

    error = refused(CaptureError, lambda: k.trace(F16), remedy)
    assert error.suggestion.count(", ") < 10


def test_a_program_is_not_called(refused):
    @tt.kernel
    def k(X):
        X[:] = X[:] + 1.0

    program = k.trace(F16)
    refused(ArgumentError, lambda: program(numbers()), "program k is not called", "tt.build(program)(...)")


def test_a_long_unrolled_loop_is_warned_of_once(caplog):
    @tt.kernel
    def k(X, *, n):
        for i in range(n):
            X[i] = X[i] * 2.0

    with caplog.at_level(logging.WARNING, "tvm_tile"):
        k.trace(tt.spec((600,), "float32"), n=200)
        assert not caplog.records
        k.trace(tt.spec((3000,), "float32"), n=1500)
    (record,) = caplog.records
    line = inspect.getsourcelines(k.function)[1] + 3
    assert f"test_newcomers.py:{line}" in record.getMessage()
    assert "tt.serial" in record.getMessage()
