"""The 8-bit floats on a CPU: every code, and every source type, as ``ml_dtypes`` has it."""

import ml_dtypes
import numpy as np
import pytest

from tvm_tile.bridges.runtime.dlpack import tensor_of
from tvm_tile.ir.ops import Number
from tvm_tile.ir.values import Memory
from tvm_tile.semantics.rounding import cast

FORMATS = ("float8_e4m3fn", "float8_e5m2")
OTHERS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64",
)  # fmt: skip
RNG = np.random.default_rng(8)


@pytest.fixture
def converted(compiled, assembler):
    """``converted(x, dtype)`` runs a cast of a whole array."""

    def run(x, dtype, pipeline="tirx"):
        source = Memory("X", x.shape, str(x.dtype))
        target = Memory("Y", x.shape, dtype)
        assembler.store(assembler.cast(assembler.load(source), dtype), target)
        y = np.zeros(x.shape, getattr(ml_dtypes, dtype, dtype))
        compiled(assembler.program(source, target), pipeline)(*(_tensor(a) for a in (x, y)))
        return y

    return run


def _tensor(x):
    raw = x.view(f"u{x.dtype.itemsize}") if x.dtype.name in ("bfloat16", *FORMATS) else x
    return tensor_of(raw, x.dtype.name) if x.dtype.name in ("bfloat16", *FORMATS) else x


def _bits(x):
    return x if x.dtype == bool else x.view(f"u{x.dtype.itemsize}")


@pytest.mark.parametrize("pipeline", ["tirx", "default"])
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("target", ["float32", "float64", "float16", "bfloat16"])
def test_every_code_becomes_its_number(converted, dtype, target, pipeline):
    codes = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, dtype))
    with np.errstate(invalid="ignore"):  # NaN codes become signalling ones
        found = converted(codes, target, pipeline).astype(np.float64)
    expected = codes.astype(np.float32).astype(np.float64)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("target", [*OTHERS[:9], *FORMATS])
def test_every_code_becomes_an_integer_or_a_code(converted, dtype, target):
    codes = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, dtype))
    found, expected = converted(codes, target), cast(codes, target)
    if target == dtype:
        np.testing.assert_array_equal(_bits(found), _bits(codes))
        return
    if target in FORMATS:
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(found, expected)


def _samples(source, dtype):
    """Neighbours and midpoints of all numbers of a format, specials, and random numbers."""
    numbers = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, dtype)).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    middles = (numbers[1:] + numbers[:-1]) / 2
    points = np.concatenate([numbers, middles, [464, -464, 480, 61440, -61440, 65536, 1e30, 0.0, -0.0]])
    near = np.concatenate([points, points * (1 + 2.0**-20), points * (1 - 2.0**-20), points + 2.0**-40])
    fine = np.concatenate([near, near * (1 + 2.0**-45), near * (1 - 2.0**-45)])
    wild = RNG.standard_normal(300) * 2.0 ** RNG.integers(-20, 20, 300)
    with np.errstate(over="ignore"):
        if source.startswith("float") or source == "bfloat16":
            values = np.concatenate([fine, wild, [np.nan, np.inf, -np.inf, 1e-45, 1e-310]])
            return values.astype(getattr(ml_dtypes, source, source))
    info = np.iinfo(source)
    whole = np.concatenate([np.arange(-600, 600), [57344, 61439, 61440, 61441, 65535, 65536, 2**40 + 1]])
    odd = RNG.integers(max(info.min, -(2**62)), min(info.max, 2**62), 200)
    kept = [int(v) for v in (*whole, *odd, info.min, info.max) if info.min <= int(v) <= info.max]
    return np.array(kept, source)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("source", OTHERS[1:])
def test_casts_round_once_to_nearest_even(converted, source, dtype):
    x = _samples(source, dtype)
    found, expected = converted(x, dtype), cast(x, dtype)
    special = np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), special)
    np.testing.assert_array_equal(_bits(found)[~special], _bits(expected)[~special])


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_nan_keeps_its_sign_and_its_code(converted, dtype):
    x = np.array([np.nan, -np.nan, 1e30, -1e30, np.inf, -np.inf], "float32")
    np.testing.assert_array_equal(_bits(converted(x, dtype)), _bits(x.astype(getattr(ml_dtypes, dtype))))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("size", [0, 1, 67])
def test_windows_out_of_bounds_hold_the_fill(compiled, assembler, dtype, size):
    source, target = Memory("X", (size,), dtype), Memory("Y", (size + 9,), dtype)
    part = assembler.load(source, (-4, size + 9), fill=Number.of(1.5))
    assembler.store(part, target)
    x = RNG.integers(0, 256, size).astype(np.uint8).view(getattr(ml_dtypes, dtype))
    y = np.zeros(size + 9, x.dtype)
    compiled(assembler.program(source, target))(_tensor(x), _tensor(y))
    fill = _bits(np.array(1.5, x.dtype))
    np.testing.assert_array_equal(_bits(y), np.pad(_bits(x), (4, 5), constant_values=fill))


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        ("float8_e4m3fn", 1.0625 + 2**-40, 1.125),
        ("float8_e5m2", 1.125 + 2**-40, 1.25),
        ("bfloat16", 1 + 2**-8 + 2**-40, 1 + 2**-7),
        ("float8_e4m3fn", 1e9, np.nan),
        ("float8_e5m2", -1e9, -np.inf),
        ("float8_e5m2", -0.0, -0.0),
    ],
)
def test_literals_round_once(compiled, assembler, dtype, number, expected):
    target = Memory("Y", (3,), "float32")
    assembler.store(assembler.cast(assembler.full((3,), number, dtype), "float32"), target)
    found = np.zeros(3, "float32")
    compiled(assembler.program(target))(found)
    np.testing.assert_array_equal(found, np.full(3, expected, "float32"))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(np.float32(expected)))
