"""Operators and elementwise functions: promotion as in NumPy, weak Python numbers, broadcasting."""

# Kernels write what the rules for plain Python advise against.
# ruff: noqa: RUF005

import operator

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm_tile.frontend as tt
from tvm_tile.errors import ArgumentError, CaptureError, OperandError
from tvm_tile.ir.dtypes import SIGNED, UNSIGNED
from tvm_tile.ir.ops import Broadcast, Cast, Elementwise, FromIndex, Full
from tvm_tile.ir.structure import walk
from tvm_tile.semantics.interpreter import interpret

NUMPY = ("bool", *SIGNED, *UNSIGNED, "float16", "float32", "float64")

BINARY = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
UNARY = (
    "exp",
    "exp2",
    "log",
    "log2",
    "sqrt",
    "sin",
    "cos",
    "tanh",
    "abs",
    "floor",
    "ceil",
    "round",
    "isnan",
    "isinf",
)


def result_of(fn, *dtypes, shape=(3,)):
    """What a function of tiles of some dtypes gives, and the program that computes it."""
    got = []

    @tt.kernel
    def k(X, Y):
        got.append(fn(X[...], Y[...]))

    specs = [tt.spec(shape, d) for d in dtypes]
    program = k.trace(*specs, *([tt.spec((1,), "bool")] * (2 - len(specs))))
    return got[0], program


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(BINARY)), st.sampled_from(NUMPY), st.sampled_from(NUMPY))
def test_dtype_of_an_operator_is_that_of_numpy(name, a, b):
    fn = BINARY[name]
    try:
        expected = fn(np.ones(3, a), np.ones(3, b)).dtype.name
    except TypeError:
        with pytest.raises(OperandError):
            result_of(fn, a, b)
        return
    tile, _ = result_of(fn, a, b)
    assert (tile.dtype, tile.shape) == (expected, (3,))


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(BINARY)),
    st.sampled_from(NUMPY),
    st.sampled_from(
        (True, 1, 2.5, np.float32(2), np.int8(3), np.float64(1.5), np.uint16(1), np.array(2.0, "f2"))
    ),
    st.booleans(),
)
def test_dtype_with_a_number_is_that_of_numpy(name, dtype, number, left):
    def fn(x):
        return BINARY[name](number, x) if left else BINARY[name](x, number)

    try:
        expected = fn(np.ones(3, dtype)).dtype.name
    except TypeError:
        with pytest.raises(OperandError):
            result_of(lambda x, _: fn(x), dtype)
        return
    tile, _ = result_of(lambda x, _: fn(x), dtype)
    assert tile.dtype == expected


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", NUMPY)
def test_dtype_of_a_function_is_that_of_numpy(name, dtype):
    tile, _ = result_of(lambda x, _: getattr(tt, name)(x), dtype)
    numpy_name = {"abs": "abs", "round": "rint"}.get(name, name)
    # NumPy's rint gives integers a float type, its round does not.
    expected = dtype if name == "round" else getattr(np, numpy_name)(np.ones(3, dtype)).dtype.name
    assert tile.dtype == expected


def test_every_function_emits_its_own_operation():
    for name in (
        "exp",
        "exp2",
        "log",
        "log2",
        "sqrt",
        "rsqrt",
        "sin",
        "cos",
        "tanh",
        "erf",
        "sigmoid",
        "floor",
        "ceil",
        "round",
        "abs",
        "isnan",
        "isinf",
    ):
        _, program = result_of(lambda x, _, name=name: getattr(tt, name)(x), "float32")
        assert [s.fn for s in walk(program) if isinstance(s, Elementwise)] == [name]
    for name in ("maximum", "minimum", "power"):
        _, program = result_of(lambda x, y, name=name: getattr(tt, name)(x, y), "float32", "float32")
        assert [s.fn for s in walk(program) if isinstance(s, Elementwise)] == [name]
    _, program = result_of(lambda x, y: tt.fma(x, y, 1.0), "float32", "float32")
    assert [s.fn for s in walk(program) if isinstance(s, Elementwise)] == ["fma"]
    for name, fn in BINARY.items():
        dtype = "float32" if name == "divide" else "int32"
        _, program = result_of(fn, dtype, dtype)
        assert [s.fn for s in walk(program) if isinstance(s, Elementwise)] == [name]


def test_reflected_operators_keep_the_order():
    _, program = result_of(lambda x, _: 1.0 - x, "float32")
    (op,) = [s for s in walk(program) if isinstance(s, Elementwise)]
    one = next(s for s in walk(program) if isinstance(s, Full))
    assert op.operands[0] == one.result


def test_bool_arithmetic_is_logic():
    for fn, name in ((operator.add, "or"), (operator.mul, "and")):
        _, program = result_of(fn, "bool", "bool")
        assert [s.fn for s in walk(program) if isinstance(s, Elementwise)] == [name]


def test_float16_with_bfloat16_is_refused(refused):
    error = refused(
        OperandError, lambda: result_of(lambda x, y: x + y, "float16", "bfloat16"), "cast", at="x + y"
    )
    assert isinstance(error, CaptureError)
    assert isinstance(error, ArgumentError)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("float32", "float32"),
        ("float64", "float64"),
        ("int8", "bfloat16"),
        ("bool", "bfloat16"),
        ("int16", "float32"),
    ],
)
def test_bfloat16_promotes(other, expected):
    assert result_of(lambda x, y: x * y, "bfloat16", other)[0].dtype == expected
    assert result_of(lambda x, _: x * 2.5 + 1, "bfloat16")[0].dtype == "bfloat16"
    assert result_of(lambda x, _: x * ml_dtypes.bfloat16(2.5), "float32")[0].dtype == "float32"


def test_float8_computes_only_after_a_cast(refused):
    refused(
        OperandError,
        lambda: result_of(lambda x, y: x + y, "float8_e5m2", "float8_e5m2"),
        "float8",
        at="x + y",
    )
    assert result_of(lambda x, _: x.astype("float32") + 1.0, "float8_e5m2")[0].dtype == "float32"
    assert result_of(lambda x, _: tt.full((2,), 1.0, "float8_e4m3fn"), "float32")[0].dtype == "float8_e4m3fn"


def test_bitwise_operators_refuse_floats(refused):
    refused(
        OperandError,
        lambda: result_of(lambda x, y: x & y, "float32", "float32"),
        "and",
        "float32",
        at="x & y",
    )
    refused(OperandError, lambda: result_of(lambda x, _: ~x, "float32"), "invert", at="~x")
    refused(OperandError, lambda: result_of(lambda x, _: x << 1, "float32"), "left_shift", at="x << 1")
    refused(OperandError, lambda: result_of(lambda x, y: x - y, "bool", "bool"), "subtract", at="x - y")
    refused(OperandError, lambda: result_of(lambda x, _: -x, "bool"), "negative", at="-x")
    refused(OperandError, lambda: result_of(lambda x, y: tt.fma(x, y, 1), "int32", "int32"), "fma")


@pytest.mark.parametrize(
    ("number", "dtype"), [(300, "int8"), (-1, "uint8"), (2**31, "int32"), (2**64, "uint64")]
)
def test_int_beyond_the_dtype_is_refused(refused, number, dtype):
    refused(
        OperandError,
        lambda: result_of(lambda x, _: x + number, dtype),
        str(number),
        dtype,
        "wider",
        at="x + number",
    )


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
@pytest.mark.parametrize("number", [300, -300])
@pytest.mark.parametrize("left", [True, False])
def test_comparison_with_an_int_beyond_the_dtype_is_decided(name, number, left):
    fn = BINARY[name]

    def compare(x):
        return fn(number, x) if left else fn(x, number)

    tile, program = result_of(lambda x, _: compare(x), "int8")
    (value,) = [s for s in walk(program) if isinstance(s, Full)]
    assert (tile.dtype, tile.shape) == ("bool", (3,))
    assert value.value.value == compare(np.ones(3, "i1"))[0]


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
@pytest.mark.parametrize("left", [True, False])
def test_signed_and_unsigned_words_compare_exactly(name, left):
    fn = BINARY[name]
    signed = np.array([-1, 2**53 + 1, 5, 2**62, -(2**63), 0])
    unsigned = np.array([2**64 - 1, 2**53, 5, 2**62 + 1, 2**63, 1], "u8")
    out = np.zeros(6, bool)

    @tt.kernel
    def k(A, B, Y):
        Y[...] = fn(A[...], B[...]) if left else fn(B[...], A[...])

    interpret(k.trace(signed, unsigned, out), signed, unsigned, out)
    pairs = list(zip(signed.tolist(), unsigned.tolist(), strict=True))
    assert out.tolist() == [fn(a, b) if left else fn(b, a) for a, b in pairs]


def test_literals_keep_their_value():
    for number in (0.1, -0.0, float("inf"), float("-inf"), 1e-45, 3):
        _, program = result_of(lambda x, _, number=number: x * number, "float32")
        (value,) = [s for s in walk(program) if isinstance(s, Full)]
        assert repr(value.value.value) == repr(float(number))
    _, program = result_of(lambda x, _: x * float("nan"), "float32")
    assert "nan" in str(program)


def test_shapes_broadcast_explicitly():
    got = []

    @tt.kernel
    def k(X):
        got.append(X[0:4][:, None] * X[0:3] + X[0])

    program = k.trace(tt.spec((8,), "float32"))
    assert got[0].shape == (4, 3)
    assert [s.result.shape for s in walk(program) if isinstance(s, Broadcast)] == [(4, 3)] * 3


def test_shapes_that_do_not_broadcast_are_refused(refused):
    @tt.kernel
    def k(X):
        left = X[0:4]
        X[0:4] = left + X[0:3]

    refused(
        OperandError, lambda: k.trace(tt.spec((8,), "float32")), "(4,)", "(3,)", "'left'", at="left + X[0:3]"
    )


def test_zero_extents_broadcast():
    got = []

    @tt.kernel
    def k(X):
        got.append(X[0:0] + 1.0)
        got.append(X[0:0][None] + X[0:1])

    k.trace(tt.spec((8,), "float32"))
    assert [x.shape for x in got] == [(0,), (1, 0)]


def test_cast_is_explicit_and_once():
    tile, program = result_of(lambda x, _: x.astype("float32").astype(np.float32), "float64")
    assert tile.dtype == "float32"
    assert sum(isinstance(s, Cast) for s in walk(program)) == 1
    tile, program = result_of(lambda x, _: tt.cast(3, "float16"), "float32")
    assert (tile.dtype, tile.shape) == ("float16", ())
    assert not [s for s in walk(program) if isinstance(s, Cast)]


def test_cast_of_a_number_that_does_not_fit_converts_when_the_program_runs():
    _, program = result_of(lambda x, _: tt.cast(2.5, "int32"), "float32")
    assert [s.result.dtype for s in walk(program) if isinstance(s, (Cast, Full))] == ["float64", "int32"]


def test_unknown_dtype_is_refused(refused):
    refused(
        OperandError,
        lambda: result_of(lambda x, _: x.astype("float31"), "float32"),
        "float31",
        at='x.astype("float31")',
    )
    refused(OperandError, lambda: result_of(lambda x, _: tt.zeros((), "complex64"), "float32"), "complex64")


def test_where_selects_and_promotes():
    tile, program = result_of(lambda x, y: tt.where(x > 0, y, 2.5), "float32", "int32")
    assert tile.dtype == "float64"
    assert [s.fn for s in walk(program) if isinstance(s, Elementwise)] == ["greater", "where"]
    assert result_of(lambda x, y: tt.where(x, y, 0), "float32", "int8")[0].dtype == "int8"
    assert result_of(lambda x, y: tt.where(True, x, y), "float32", "float64")[0].dtype == "float64"
    assert result_of(lambda x, y: tt.where(x > 0, 1, 2), "float32")[0].dtype == "int64"
    assert result_of(lambda x, y: tt.where(x > 0, 1.0, 2), "float32")[0].dtype == "float64"


def test_where_needs_shapes_that_broadcast(refused):
    fn = lambda x, y: tt.where(x[0:2] > 0, x, y)  # noqa: E731
    refused(
        OperandError,
        lambda: result_of(fn, "float32", "float32"),
        "(2,)",
        "(3,)",
        at="tt.where(x[0:2] > 0, x, y)",
    )


def test_index_is_a_weak_integer():
    got = []

    @tt.kernel
    def k(X, I):
        for i in tt.parallel(4):
            got.extend([X[0] * i, I[0] + i, i + 0.5, i / 2, i * True, X[0] > i, abs(i) + 1, i**2, i & 1])

    program = k.trace(tt.spec((8,), "float32"), tt.spec((8,), "int8"))
    assert [x.dtype for x in got] == [
        "float32",
        "int8",
        "float64",
        "float64",
        "int64",
        "bool",
        "int64",
        "int64",
        "int64",
    ]
    assert not [s for s in walk(program) if isinstance(s, FromIndex)]


def test_index_arithmetic_stays_exact():
    got = []

    @tt.kernel
    def k(X):
        for i, j in tt.parallel(4, 5):
            got.append((i * 4 + j - 1) // 3 % 7)
            got.append(tt.minimum(i, 3) + tt.maximum(np.int64(2), j))
            got.append(-i + tt.cdiv(j, 2))
            got.append(divmod(i, 2)[1])
            got.append(i - i)
            got.append(tt.minimum(3, 4))

    k.trace(tt.spec((8,), "float32"))
    texts = [str(x) for x in got]
    assert texts[0] == "(((((i * 4) + j) - 1) // 3) % 7)"
    assert texts[1] == "(min(i, 3) + max(2, j))"
    assert texts[2] == "((0 - i) + ((j + 1) // 2))"
    assert texts[3:] == ["(i % 2)", "0", "3"]
    assert type(got[4]) is int


def test_computed_index_becomes_a_value_where_a_tile_is_needed():
    @tt.kernel
    def k(X):
        for i in tt.parallel(4):
            X[i] = X[i] * (i * 2 + 1)
            X[i] = i

    program = k.trace(tt.spec((8,), "float32"))
    assert sum(isinstance(s, FromIndex) for s in walk(program)) == 1
    assert sum(isinstance(s, Cast) for s in walk(program)) == 2


def test_numpy_scalar_is_strong(refused):
    assert result_of(lambda x, _: x * np.float64(2), "float32")[0].dtype == "float64"
    assert result_of(lambda x, _: np.float32(2) * x, "float16")[0].dtype == "float32"
    assert result_of(lambda x, _: x * np.array(2.0), "float32")[0].dtype == "float64"


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda x, y: x + np.ones(3), ("NumPy array", "parameter")),
        (lambda x, y: x + "a", ("'a'",)),
        (lambda x, y: x + None, ("NoneType",)),
        (lambda x, y: x + [1, 2, 3], ("list",)),
        (lambda x, y: x * 1j, ("complex",)),
    ],
)
def test_foreign_operand_is_refused(refused, fn, words):
    refused(CaptureError, lambda: result_of(fn, "float32"), *words)


def test_tensor_is_no_operand(refused):
    @tt.kernel
    def k(X):
        X[0] = tt.exp(X + 1.0)

    refused(
        CaptureError,
        lambda: k.trace(tt.spec((8,), "float32")),
        "tensor 'X' is memory",
        "X[...]",
        at="X + 1.0",
    )


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (bool, ("truth value",)),
        (int, ("int",)),
        (float, ("float",)),
        (complex, ("complex",)),
        (len, (".shape[0]",)),
        (list, ("iterated",)),
        (lambda x: 1 in x, ("tt.any",)),
        (lambda x: [1][x], ("tt.serial",)),
        (range, ("tt.serial",)),
        (np.asarray, ("NumPy array",)),
        (np.sum, ("NumPy",)),
        (lambda x: round(x, 2), ("decimals",)),
    ],
)
def test_python_cannot_look_into_a_tile_tensor_or_index(refused, use, words):
    @tt.kernel
    def k(X, *, what):
        for i in tt.serial(3):
            use({"tile": X[...], "tensor": X, "index": i}[what])

    for what in ("tile", "tensor", "index"):
        error = refused(CaptureError, lambda what=what: k.trace(tt.spec((8,), "float32"), what=what), *words)
        assert {"tile": "tile", "tensor": "tensor 'X'", "index": "index i"}[what] in str(error)


def test_python_rounding_functions():
    import math

    tiles = []

    @tt.kernel
    def k(X):
        x = X[...]
        tiles.extend([abs(x), round(x), math.floor(x), math.ceil(x), +x, divmod(x, 2.0)[0]])

    program = k.trace(tt.spec((8,), "float32"))
    names = [s.fn for s in walk(program) if isinstance(s, Elementwise)]
    assert names == ["abs", "round", "floor", "ceil", "floor_divide", "remainder"]


def test_maximum_of_tiles_and_python_max(refused):
    assert result_of(lambda x, y: tt.maximum(x, 0), "float32")[0].dtype == "float32"
    refused(CaptureError, lambda: result_of(lambda x, y: max(x, y), "float32", "float32"), "truth value")
