"""Every elementwise function against independent oracles: Python integers and float64."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

from tvm_tile.ir.dtypes import FLOATS, SIGNED, UNSIGNED, numpy_dtype
from tvm_tile.ir.functions import FUNCTIONS
from tvm_tile.semantics.elementwise import apply_elementwise

INTEGERS = SIGNED + UNSIGNED


@pytest.fixture(autouse=True)
def _defined_exceptions():
    with np.errstate(all="ignore"):
        yield


def wrap(value: int, dtype: str) -> int:
    width = np.iinfo(dtype).bits
    value %= 2**width
    return value - 2**width if np.iinfo(dtype).min < 0 and value >> (width - 1) else value


def corners(dtype: str) -> list[int]:
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    around = [low, low + 1, high, high - 1, high // 2 + 1, *range(9)]
    return around + ([-1, -2, -3, -7, -8] if low < 0 else [])


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    grid = [(a, b) for a in corners(dtype) for b in corners(dtype)]
    return np.array([a for a, _ in grid], dtype), np.array([b for _, b in grid], dtype), grid


def power(a: int, b: int, dtype: str) -> int:
    if b < 0:
        return 1 if a == 1 else 0 if a != -1 else 1 if b % 2 == 0 else -1
    return pow(a, b, 2 ** np.iinfo(dtype).bits)


INTEGER_ORACLES = {
    "add": lambda a, b, d: a + b,
    "subtract": lambda a, b, d: a - b,
    "multiply": lambda a, b, d: a * b,
    "floor_divide": lambda a, b, d: a // b if b else 0,
    "remainder": lambda a, b, d: a % b if b else 0,
    "power": power,
    "maximum": lambda a, b, d: max(a, b),
    "minimum": lambda a, b, d: min(a, b),
    "and": lambda a, b, d: a & b,
    "or": lambda a, b, d: a | b,
    "xor": lambda a, b, d: a ^ b,
    "left_shift": lambda a, b, d: a << b if 0 <= b < np.iinfo(d).bits else 0,
    "right_shift": lambda a, b, d: a >> b if 0 <= b < np.iinfo(d).bits else -1 if a < 0 else 0,
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("fn", INTEGER_ORACLES)
def test_integer_functions_wrap_and_never_trap(fn, dtype):
    x, y, grid = pairs(dtype)
    got = apply_elementwise(fn, x, y)
    assert got.dtype == np.dtype(dtype)
    assert got.tolist() == [wrap(INTEGER_ORACLES[fn](a, b, dtype), dtype) for a, b in grid]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_unary_integer_functions(dtype):
    x = np.array(corners(dtype), dtype)
    for fn, oracle in {"negative": operator.neg, "abs": abs, "invert": operator.inv}.items():
        got = apply_elementwise(fn, x)
        assert got.dtype == np.dtype(dtype)
        assert got.tolist() == [wrap(oracle(v), dtype) for v in corners(dtype)]


COMPARISONS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("fn", COMPARISONS)
def test_comparisons_give_bool(fn, dtype):
    values = [False, True] if dtype == "bool" else [0, 1, 2, 3]
    values = [*values, math.nan, math.inf, -0.0] if dtype in FLOATS else values
    x = np.array([v for v in values for _ in values]).astype(numpy_dtype(dtype))
    y = np.array([v for _ in values for v in values]).astype(numpy_dtype(dtype))
    got = apply_elementwise(fn, x, y)
    assert got.dtype == np.bool_
    assert got.tolist() == [COMPARISONS[fn](a, b) for a in values for b in values]


def test_logic_of_bools():
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert apply_elementwise("and", x, y).tolist() == [False, False, False, True]
    assert apply_elementwise("or", x, y).tolist() == [False, True, True, True]
    assert apply_elementwise("xor", x, y).tolist() == [False, True, True, False]
    assert apply_elementwise("invert", x).tolist() == [True, True, False, False]
    assert apply_elementwise("maximum", x, y).tolist() == [False, True, True, True]
    assert apply_elementwise("minimum", x, y).tolist() == [False, False, False, True]


UNARY = {
    "exp": math.exp,
    "exp2": lambda v: 2.0**v,
    "log": math.log,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "rsqrt": lambda v: 1 / math.sqrt(v),
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "abs": abs,
    "negative": operator.neg,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("fn", UNARY)
def test_float_functions_are_rounded_once_from_float64(fn, dtype):
    raw = [0.5, 1.5, 2.5, 0.1, 3.7, 9.0, 0.001]
    raw = raw if fn in ("log", "log2", "sqrt", "rsqrt") else [*raw, *(-v for v in raw)]
    x = np.array(raw).astype(numpy_dtype(dtype))
    exact = np.array([float(UNARY[fn](v)) for v in x.astype(np.float64).tolist()])
    got = apply_elementwise(fn, x)
    assert got.dtype == numpy_dtype(dtype)
    if dtype == "float64":
        np.testing.assert_allclose(got, exact, rtol=1e-15)
    else:
        # The float64 oracle is within an ulp of float64, so a correct rounding equals its rounding.
        assert got.tolist() == exact.astype(np.float32).astype(numpy_dtype(dtype)).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_functions_at_their_limits(dtype):
    def at(fn, *values):
        got = apply_elementwise(fn, *(np.array(v).astype(numpy_dtype(dtype)) for v in values))
        assert got.shape == ()
        return float(got)

    inf, nan = math.inf, math.nan
    assert at("exp", 1e4) == inf
    assert at("exp", -inf) == 0
    assert at("log", 0.0) == -inf
    assert math.isnan(at("log", -1.0))
    assert math.isnan(at("sqrt", -1.0))
    assert at("rsqrt", 0.0) == inf
    assert at("rsqrt", inf) == 0
    assert [at("sigmoid", v) for v in (inf, -inf, 1e4, -1e4, 0.0)] == [1, 0, 1, 0, 0.5]
    assert [at("tanh", v) for v in (inf, -inf)] == [1, -1]
    assert [at("erf", v) for v in (inf, -inf)] == [1, -1]
    assert at("erf", 0.5) == pytest.approx(0.5204998778130465, rel=2.0**-8)
    assert math.isnan(at("sin", inf))
    assert [at("round", v) for v in (0.5, 1.5, 2.5, -0.5)] == [0, 2, 2, 0]
    assert [at("divide", a, b) for a, b in ((1, 0.0), (-1, 0.0), (1, -0.0))] == [inf, -inf, -inf]
    assert math.isnan(at("divide", 0.0, 0.0))
    assert at("floor_divide", 1.0, 0.0) == inf
    assert math.isnan(at("remainder", 1.0, 0.0))
    assert [at("floor_divide", a, b) for a, b in ((7, 2), (-7, 2), (7, -2))] == [3, -4, -4]
    assert [at("remainder", a, b) for a, b in ((7, 2), (-7, 2), (7, -2))] == [1, 1, -1]
    assert [at("power", a, b) for a, b in ((2, 10), (2, -1), (0.0, 0.0), (4, 0.5))] == [1024, 0.5, 1, 2]
    for fn in ("maximum", "minimum", "add", "multiply"):
        assert math.isnan(at(fn, nan, 1.0))
        assert math.isnan(at(fn, 1.0, nan))
    assert (at("maximum", -inf, 1.0), at("minimum", inf, 1.0)) == (1, 1)
    assert [at("isnan", v) for v in (nan, 1.0, inf)] == [1, 0, 0]
    assert [at("isinf", v) for v in (inf, -inf, 1.0, nan)] == [1, 1, 0, 0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("fn", ["add", "subtract", "multiply", "divide"])
def test_arithmetic_of_short_floats_is_correctly_rounded(fn, dtype):
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(400) * 2.0 ** rng.integers(-6, 6, 400) for _ in range(2))
    x, y = x.astype(numpy_dtype(dtype)), y.astype(numpy_dtype(dtype))
    wide = getattr(np, fn)(x.astype(np.float64), y.astype(np.float64))
    # Rounding float64 sums and products of short floats twice is harmless: 53 >= 2 * 24 + 2.
    want = wide.astype(np.float32).astype(numpy_dtype(dtype)) if dtype == "bfloat16" else wide.astype(dtype)
    np.testing.assert_array_equal(apply_elementwise(fn, x, y).astype(np.float64), want.astype(np.float64))


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS, "float8_e5m2"])
def test_where_selects(dtype):
    x, y = np.array([1, 1, 1]).astype(numpy_dtype(dtype)), np.array([0, 0, 0]).astype(numpy_dtype(dtype))
    got = apply_elementwise("where", np.array([True, False, True]), x, y)
    assert got.dtype == numpy_dtype(dtype)
    assert got.astype(np.float64).tolist() == [1, 0, 1]


def test_every_function_runs_on_every_dtype_it_accepts_and_keeps_zero_elements():
    for function in FUNCTIONS.values():
        for kind, dtypes in {"bool": ("bool",), "int": SIGNED, "uint": UNSIGNED, "float": FLOATS}.items():
            if kind not in function.kinds:
                continue
            for dtype in dtypes:
                operands = [np.zeros((0, 3), numpy_dtype(dtype))] * function.arity
                if function.name == "where":
                    operands[0] = np.zeros((0, 3), np.bool_)
                got = apply_elementwise(function.name, *operands)
                assert got.shape == (0, 3)
                assert got.dtype == (np.bool_ if function.boolean else numpy_dtype(dtype))


@pytest.mark.parametrize(
    ("fn", "dtype"),
    [
        ("sqrt", "int32"),
        ("and", "float32"),
        ("add", "bool"),
        ("left_shift", "bool"),
        ("add", "float8_e5m2"),
        ("cube", "int8"),
    ],
)
def test_a_function_on_a_dtype_it_does_not_take_is_refused(fn, dtype):
    x = np.zeros(2, numpy_dtype(dtype))
    with pytest.raises(ValueError, match=fn):
        apply_elementwise(fn, x, x)


def test_no_operand_is_changed():
    for fn in ("add", "power", "floor_divide", "left_shift"):
        x, y = np.array([3, -3, 2], np.int8), np.array([-1, 2, 0], np.int8)
        before = x.copy(), y.copy()
        apply_elementwise(fn, x, y)
        np.testing.assert_array_equal((x, y), before)
