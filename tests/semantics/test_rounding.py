"""Conversions and the fused multiply-add round once."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_tile.ir.dtypes import DTYPES, FLOATS, SIGNED, STORAGE_ONLY, UNSIGNED, numpy_dtype
from tvm_tile.ir.ops import Number
from tvm_tile.semantics.rounding import cast, constant, fused_multiply_add

INTEGERS = SIGNED + UNSIGNED
SMALL = ("float16", "bfloat16", *STORAGE_ONLY)
#: Explicit significand bits and exponent of the smallest subnormal.
FORMAT = {
    "float16": (10, -24),
    "bfloat16": (7, -133),
    "float32": (23, -149),
    "float64": (52, -1074),
    "float8_e4m3fn": (3, -9),
    "float8_e5m2": (2, -16),
}


def nearest(value: Fraction, dtype: str) -> float:
    """Round an exact value to nearest even in a format; overflow is left to the caller."""
    fraction_bits, smallest = FORMAT[dtype]
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - fraction_bits, smallest)
    steps = magnitude / unit
    whole = math.floor(steps)
    rest = steps - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    try:
        rounded = float(whole * unit)
    except OverflowError:
        rounded = math.inf
    return -rounded if value < 0 else rounded


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", *STORAGE_ONLY])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_float64_rounds_to_nearest_even_once(dtype, data):
    fraction_bits, smallest = FORMAT[dtype]
    top = {"float8_e4m3fn": 7, "float8_e5m2": 14, "float16": 14}.get(dtype, 100)
    exponent = data.draw(st.integers(smallest - 2, top))
    steps = data.draw(st.integers(0, 2 ** (fraction_bits + 2)))
    nudge = data.draw(st.sampled_from([0.0, 2.0**-45, -(2.0**-45), 2.0**-25, -(2.0**-25)]))
    # Points on and right beside the boundaries between two neighbours, where double rounding shows.
    value = math.ldexp((1 + steps / 2 ** (fraction_bits + 2)) * (1 + nudge), exponent)
    for signed in (value, -value):
        got = float(cast(np.array(signed), dtype))
        assert got == nearest(Fraction(signed), dtype), (signed, dtype)


def test_rounding_by_way_of_float32_would_differ():
    value = np.array([1 + 2.0**-8 + 2.0**-40])
    assert float(cast(value, "bfloat16")[0]) == 1 + 2.0**-7
    assert float(value.astype(ml_dtypes.bfloat16)[0]) == 1.0


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", *STORAGE_ONLY])
def test_integers_round_to_nearest_even_once(source, dtype):
    info = np.iinfo(source)
    rng = np.random.default_rng(0)
    powers = [
        2**k + d for k in range(8, 63) for d in (-1, 0, 1, 2 ** (k - 8), 2 ** (k - 8) + 1, 2 ** (k - 8) - 1)
    ]
    picks = [*range(-5, 6), *powers, *(-p for p in powers), *map(int, rng.integers(0, 2**62, 50))]
    inside = [p for p in picks if info.min <= p <= info.max]
    limit = {"float16": 65504, "float8_e4m3fn": 448, "float8_e5m2": 57344}.get(dtype, math.inf)
    inside = [p for p in inside if abs(p) <= limit]
    got = cast(np.array(inside, source), dtype).astype(np.float64)
    assert got.tolist() == [nearest(Fraction(p), dtype) for p in inside]


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_floats_saturate_into_integers_and_nan_gives_zero(source, dtype):
    info = np.iinfo(dtype)
    near = [float(info.max), float(info.min), 2.0**info.bits, 2.0 ** (info.bits - 1), 2.0 ** (info.bits - 2)]
    raw = [0.0, -0.0, 0.99, -0.99, 1.5, -1.5, 100.7, np.inf, -np.inf, np.nan, *near, *(-v for v in near)]
    with np.errstate(over="ignore"):
        x = np.array(raw).astype(numpy_dtype(source))
    wide = x.astype(np.float64)
    # Python compares a float with an int exactly; NumPy would round the int first.
    want = [
        0 if math.isnan(v) else info.max if v > info.max else info.min if v < info.min else int(v)
        for v in wide.tolist()
    ]
    with np.errstate(all="ignore"):
        got = cast(x, dtype)
    assert got.dtype == np.dtype(dtype)
    assert got.tolist() == want


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_into_integers(dtype):
    values = [0, 1, -1, 127, 128, 255, 256, -129, 2**31, 2**63 - 1, -(2**63)]
    got = cast(np.array(values, np.int64), dtype)
    width = np.iinfo(dtype).bits
    assert [int(g) % 2**width for g in got] == [v % 2**width for v in values]


@pytest.mark.parametrize("source", DTYPES)
def test_everything_becomes_bool_by_comparison_with_zero(source):
    values = np.array([0, 1, 3]).astype(numpy_dtype(source))
    assert cast(values, "bool").tolist() == [False, True, True]


@pytest.mark.parametrize("source", [*FLOATS, *STORAGE_ONLY])
def test_nan_and_signed_zero_as_bool(source):
    values = np.array([np.nan, -0.0]).astype(numpy_dtype(source))
    assert cast(values, "bool").tolist() == [True, False]


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_pair_of_dtypes_converts_small_values_and_keeps_the_shape(source, dtype):
    x = np.array([[0, 1]]).astype(numpy_dtype(source))
    got = cast(x, dtype)
    assert got.shape == (1, 2)
    assert got.dtype == numpy_dtype(dtype)
    assert got.astype(np.float64).tolist() == [[0.0, 1.0]]


def test_float8_overflow_is_what_ml_dtypes_does():
    x = np.array([448.0, 463.9, 464.1, 1e9, -1e9, np.inf])
    with np.errstate(all="ignore"):
        e4m3 = cast(x, "float8_e4m3fn").astype(np.float64)
        e5m2 = cast(np.array([57344.0, 61439.0, 61441.0, 1e9, -1e9, np.inf]), "float8_e5m2").astype(
            np.float64
        )
    assert e4m3[:2].tolist() == [448.0, 448.0]
    assert np.isnan(e4m3[2:]).all()
    assert e5m2.tolist() == [57344.0, 57344.0, np.inf, np.inf, -np.inf, np.inf]


@pytest.mark.parametrize("dtype", FLOATS)
def test_float16_overflow_gives_infinity_and_infinities_stay(dtype):
    with np.errstate(all="ignore"):
        got = cast(np.array([1e300, -np.inf]), dtype).astype(np.float64)
    assert got.tolist() == [1e300 if dtype == "float64" else np.inf, -np.inf]


def floats(dtype: str) -> st.SearchStrategy[float]:
    width = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16}[dtype]
    base = st.floats(width=width, allow_nan=False, allow_infinity=False)
    return (
        base.map(lambda v: float(np.float32(v).astype(ml_dtypes.bfloat16))) if dtype == "bfloat16" else base
    )


@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_fused_multiply_add_rounds_once(dtype, data):
    a, b, c = (data.draw(floats(dtype)) for _ in range(3))
    if data.draw(st.booleans()):
        # Near cancellation, where the low half of the product decides.
        with np.errstate(all="ignore"):
            c = float(cast(np.array(-a * b), dtype))
        if not math.isfinite(c):
            return
    x, y, z = (cast(np.array(v), dtype) for v in (a, b, c))
    with np.errstate(all="ignore"):
        got = float(fused_multiply_add(x, y, z))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    want = nearest(exact, dtype)
    largest = float(ml_dtypes.finfo(numpy_dtype(dtype)).max)
    assert got == (want if abs(want) <= largest else math.copysign(math.inf, want))


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_the_product_first_would_differ(dtype):
    eps = float(ml_dtypes.finfo(numpy_dtype(dtype)).eps)
    a, b, c = (np.array([v]).astype(numpy_dtype(dtype)) for v in (1 + eps, 1 - eps, -1.0))
    assert float(fused_multiply_add(a, b, c)[0]) == -(eps**2)
    assert float((a * b + c)[0]) != -(eps**2)


@pytest.mark.parametrize(("p", "q"), [(1, 1), (1, 3)])
def test_a_tiny_addend_decides_a_product_in_the_middle_of_two_bfloat16_values(p, q):
    """Float64 cannot hold such a sum: its rounding alone would fall back to the tie, to even."""
    product = (1 + p / 16) * (1 + q / 16)
    low, high = product - 2.0**-8, product + 2.0**-8
    x, y, tiny = (np.array([v]).astype(ml_dtypes.bfloat16) for v in (1 + p / 16, 1 + q / 16, 2.0**-120))
    assert [float(v.astype(ml_dtypes.bfloat16)) for v in np.array([low, high])] == [low, high]
    assert float(fused_multiply_add(x, y, tiny)[0]) == high
    assert float(fused_multiply_add(x, y, -tiny)[0]) == low


@pytest.mark.parametrize("dtype", FLOATS)
def test_fused_multiply_add_of_infinities_and_zeros(dtype):
    big = float(ml_dtypes.finfo(numpy_dtype(dtype)).max)
    rows = [
        (np.inf, 0.0, 1.0, np.nan),
        (np.inf, 1.0, -np.inf, np.nan),
        (big, big, -np.inf, -np.inf),
        (big, 2.0, -big, big),
        (1.0, 1.0, np.nan, np.nan),
        (big, big, 0.0, np.inf),
        (0.0, -1.0, -0.0, -0.0),
        (0.0, 1.0, -0.0, 0.0),
        (1.0, 1.0, -1.0, 0.0),
    ]
    a, b, c = (np.array([row[k] for row in rows]).astype(numpy_dtype(dtype)) for k in range(3))
    with np.errstate(all="ignore"):
        got = fused_multiply_add(a, b, c).astype(np.float64)
    want = np.array([row[3] for row in rows])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[6:]), np.signbit(want[6:]))


@pytest.mark.parametrize(
    ("text", "dtype", "want"),
    [
        ("300", "int8", 44),
        ("-1", "uint8", 255),
        ("200", "int8", -56),
        ("18446744073709551615", "uint64", 2**64 - 1),
        ("True", "bool", True),
        ("True", "float32", 1.0),
        ("nan", "int32", 0),
        ("0.1", "float32", float(np.float32(0.1))),
        ("1e400", "float16", math.inf),
        ("-0.0", "bfloat16", -0.0),
        ("16777217", "float32", 16777216.0),
        ("9007199791611905", "float32", 9007200328482816.0),
    ],
)
def test_literals(text, dtype, want):
    with np.errstate(all="ignore"):
        got = constant(Number(text), dtype)
    assert got.shape == ()
    assert got.dtype == numpy_dtype(dtype)
    assert got.astype(object) == want
