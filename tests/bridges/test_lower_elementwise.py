"""Every elementwise function and every cast on every dtype, on all pairs of special values."""

import itertools
import zlib

import ml_dtypes
import numpy as np
import pytest

from tvm_tile.ir.dtypes import DTYPES, STORAGE_ONLY, is_bool, is_float, numpy_dtype
from tvm_tile.ir.functions import FUNCTIONS
from tvm_tile.ir.index import IndexConst
from tvm_tile.ir.ops import Broadcast, Cast, Elementwise, Full, Load, Number, Point, Slice, Store, View
from tvm_tile.ir.regions import Block, Program
from tvm_tile.ir.typing import elementwise_type
from tvm_tile.ir.values import Memory, TileType, Value
from tvm_tile.semantics.interpreter import interpret

COMPUTED = [dtype for dtype in DTYPES if dtype not in STORAGE_ONLY]
PIPELINES = ("tirx", "default")

#: Computed by a polynomial or a library in the working precision; the others must agree exactly.
APPROXIMATE = ("exp", "exp2", "log", "log2", "tanh", "erf", "sigmoid", "sin", "cos", "power", "rsqrt")
TOLERANCE = {"float16": 1.5e-3, "bfloat16": 1e-2, "float32": 2e-6, "float64": 1e-13}


def kind(dtype: str) -> str:
    if is_bool(dtype):
        return "bool"
    return "float" if is_float(dtype) else "uint" if dtype.startswith("u") else "int"


def special_values(dtype: str, rng: np.random.Generator) -> np.ndarray:
    if is_bool(dtype):
        return np.array([False, True])
    if is_float(dtype):
        info = ml_dtypes.finfo(numpy_dtype(dtype))
        values = [
            0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, 3.0, -7.25, 1e-3, np.inf, -np.inf, np.nan,
            float(info.max), float(info.smallest_normal), 100.0, -88.5, *(rng.standard_normal(6) * 5),
        ]  # fmt: skip
        return np.array(values).astype(numpy_dtype(dtype))
    info = np.iinfo(numpy_dtype(dtype))
    values = [0, 1, 2, 3, 5, 7, 31, info.bits - 1, info.bits, info.max, info.max - 1, info.min, info.min + 1]
    values += [-1, -2, -3, -7] if info.min < 0 else []
    values += [int(v) for v in rng.integers(max(info.min, -(2**63)), min(info.max, 2**63 - 1), 5)]
    return np.array(values, dtype=object).astype(numpy_dtype(dtype))


class Rows:
    """A program under construction whose results are rows of one output array a dtype."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.ops: list = []
        self.rows: dict[str, list[tuple[str, Value]]] = {}
        self._ids = itertools.count()

    def value(self, dtype: str, shape: tuple[int, ...] | None = None) -> Value:
        return Value(next(self._ids), TileType((self.size,) if shape is None else shape, dtype))

    def load(self, memory: Memory) -> Value:
        result = self.value(memory.dtype)
        self.ops.append(Load(result, View(memory, (Slice(IndexConst(0), self.size),))))
        return result

    def add(self, label: str, op: type, dtype: str, *fields: object) -> None:
        result = self.value(dtype)
        self.ops.append(op(result, *fields))
        self.rows.setdefault(dtype, []).append((label, result))

    def program(self, name: str, inputs: list[Memory], fma: bool) -> tuple[Program, list[Memory]]:
        outputs = [Memory(f"out_{dtype}", (len(rows), self.size), dtype) for dtype, rows in self.rows.items()]
        for memory in outputs:
            for row, (_, value) in enumerate(self.rows[memory.dtype]):
                view = View(memory, (Point(IndexConst(row)), Slice(IndexConst(0), self.size)))
                self.ops.append(Store(view, value))
        return Program(name, (*inputs, *outputs), Block(tuple(self.ops)), fma=fma), outputs


def all_functions(dtype: str, size: int, fma: bool) -> tuple[Program, list[Memory], dict]:
    rows = Rows(size)
    inputs = [Memory(name, (size,), dtype) for name in "ABC"]
    condition = Memory("M", (size,), "bool")
    for fn, function in FUNCTIONS.items():
        if kind(dtype) not in function.kinds:
            continue
        operands = [rows.load(memory) for memory in inputs[: function.arity]]
        if fn == "where":
            operands = [rows.load(condition), *operands[:2]]
        result = elementwise_type(fn, tuple(v.type for v in operands))
        rows.add(fn, Elementwise, result.dtype, fn, tuple(operands))
    for target in COMPUTED:
        rows.add(f"cast to {target}", Cast, target, rows.load(inputs[0]))
    program, outputs = rows.program(f"all_{dtype}", [*inputs, condition], fma)
    return program, outputs, rows.rows


@pytest.mark.parametrize("dtype", COMPUTED)
def test_every_function_and_cast_agrees_with_the_interpreter(dtype, run):
    rng = np.random.default_rng(zlib.crc32(dtype.encode()))
    values = special_values(dtype, rng)
    a, b = (np.array(x) for x in zip(*itertools.product(values, values), strict=True))
    c, m = rng.permutation(a), rng.random(a.size) > 0.5
    default_too = dtype in ("bool", "int32", "uint32", "int64", "bfloat16", "float32")
    for pipeline, fma in zip(PIPELINES if default_too else PIPELINES[:1], (True, False), strict=False):
        program, outputs, rows = all_functions(dtype, a.size, fma)
        expected = [np.zeros(memory.shape, numpy_dtype(memory.dtype)) for memory in outputs]
        got = run(program, a, b, c, m, *expected, pipeline=pipeline)[4:]
        interpret(program, a, b, c, m, *expected)
        for memory, want, have in zip(outputs, expected, got, strict=True):
            for row, (label, _) in enumerate(rows[memory.dtype]):
                wrong = differences(label, memory.dtype, want[row], have[row])
                assert not wrong.any(), describe(pipeline, label, wrong, a, b, c, want[row], have[row])


def differences(label: str, dtype: str, want: np.ndarray, have: np.ndarray) -> np.ndarray:
    if not is_float(dtype):
        return want != have
    want, have = want.astype(np.float64), have.astype(np.float64)
    same = (want == have) | (np.isnan(want) & np.isnan(have))
    if label in APPROXIMATE:
        return ~(same | np.isclose(want, have, rtol=TOLERANCE[dtype], atol=1e-7))
    if label not in ("maximum", "minimum"):
        same &= ~((want == 0) & (np.signbit(want) != np.signbit(have)))
    return ~same


def describe(pipeline: str, label: str, wrong: np.ndarray, *arrays: np.ndarray) -> str:
    at = np.flatnonzero(wrong)[:5]
    return f"{label} with {pipeline}: a, b, c, want, have = {[tuple(x[i] for x in arrays) for i in at]}"


def test_a_wrong_result_would_be_seen():
    want = np.array([1.0, np.nan, 0.0, 2.0])
    assert differences("add", "float32", want, np.array([1.0, 0.0, -0.0, 2.0])).tolist() == [
        False,
        True,
        True,
        False,
    ]
    assert differences("exp", "float32", want, np.array([1.0, np.nan, 0.0, 2.0 + 1e-5])).tolist() == [
        False,
        False,
        False,
        True,
    ]


def repeated_operands(dtype: str, size: int) -> tuple[Program, list[Memory], dict]:
    """Functions of one value with itself, and of literals, which a simplifier likes to cancel."""
    rows = Rows(size)
    A = Memory("A", (size,), dtype)
    zero, one = rows.value(dtype, ()), rows.value(dtype, ())
    rows.ops += [Full(zero, Number("0")), Full(one, Number("1"))]
    wide = []
    for scalar in (zero, one):
        tile = rows.value(dtype)
        rows.ops.append(Broadcast(tile, scalar))
        wide.append(tile)
    pairs = [
        "add",
        "subtract",
        "multiply",
        "floor_divide",
        "remainder",
        "maximum",
        "equal",
        "not_equal",
        "less",
        "less_equal",
    ]
    pairs += ["divide"] if is_float(dtype) else []
    for fn in pairs:
        x = rows.load(A)
        result = "bool" if FUNCTIONS[fn].boolean else dtype
        rows.add(f"{fn}(x, x)", Elementwise, result, fn, (x, x))
        for text, literal in (("0", wide[0]), ("1", wide[1])):
            rows.add(f"{fn}(x, {text})", Elementwise, result, fn, (x, literal))
            rows.add(f"{fn}({text}, x)", Elementwise, result, fn, (literal, x))
            rows.add(f"{fn}({text}, 0)", Elementwise, result, fn, (literal, wide[0]))
    x, y = rows.load(A), rows.value(dtype)
    rows.ops.append(Elementwise(y, "add", (x, wide[1])))
    rows.add("(x + 1) - x", Elementwise, dtype, "subtract", (y, x))
    program, outputs = rows.program(f"repeated_{dtype}", [A], fma=True)
    return program, outputs, rows.rows


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64", "uint32", "uint64"])
def test_nothing_is_cancelled_that_nan_or_wrapping_forbids(dtype, run):
    values = special_values(dtype, np.random.default_rng(0))
    for pipeline in PIPELINES:
        program, outputs, rows = repeated_operands(dtype, values.size)
        expected = [np.zeros(memory.shape, numpy_dtype(memory.dtype)) for memory in outputs]
        got = run(program, values, *expected, pipeline=pipeline)[1:]
        interpret(program, values, *expected)
        for memory, want, have in zip(outputs, expected, got, strict=True):
            for row, (label, _) in enumerate(rows[memory.dtype]):
                wrong = differences(label.partition("(")[0], memory.dtype, want[row], have[row])
                assert not wrong.any(), describe(pipeline, label, wrong, values, want[row], have[row])
