"""Elementary functions as expressions, against float64 references, in every form and pipeline."""

import math
import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import tirx
from tvm.tirx import AllocBuffer, BufferLoad, BufferStore, For, ForKind, PrimFunc, Ramp, SeqStmt, Var
from tvm.tirx.buffer import decl_buffer

from tvm_tile.bridges.tirx.lower.elements import elementary
from tvm_tile.bridges.tirx.lower.elements.elementary import ELEMENTARY, isnan, maximum, minimum

LANES = 16
FORMS = ("scalar", "vector", "vectorized loop")
PIPELINES = ("tirx", None)
NAMES = tuple(ELEMENTARY)
PLAIN = {"kind": "llvm"}
HOST = {"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu()}


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def erf(x):
    return np.fromiter(map(math.erf, x.tolist()), np.float64, x.size)


REFERENCE = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "tanh": np.tanh,
    "erf": erf,
    "sigmoid": sigmoid,
}


@cache
def compiled(build, dtypes, result, extent, form="vector", pipeline="tirx", target="host"):
    """A function of buffers that applies `build` to each element, or to each 16 of them."""
    operands = [decl_buffer((extent,), dtype) for dtype in dtypes]
    output = decl_buffer((extent,), result)
    i, lane = Var("i", "int32"), Var("lane", "int32")
    index = {"scalar": i, "vector": Ramp(i * LANES, 1, LANES), "vectorized loop": i * LANES + lane}[form]
    body = BufferStore(output, build(*[BufferLoad(operand, [index]) for operand in operands]), [index])
    if form == "vectorized loop":
        body = For(lane, 0, LANES, ForKind.VECTORIZED, body)
    loop = For(i, 0, extent if form == "scalar" else extent // LANES, ForKind.SERIAL, body)
    return build_function(PrimFunc([*operands, output], loop), pipeline, HOST if target == "host" else PLAIN)


def build_function(function, pipeline, target):
    function = function.with_attr({"global_symbol": "main", "tirx.noalias": True})
    return tvm.compile(function, target=target, **({"tir_pipeline": pipeline} if pipeline else {}))


def apply(build, *operands, result=None, form="vector", pipeline="tirx", target="host"):
    """The elements of `build` on NumPy arrays of one length, through a compiled function."""
    extent = -(-operands[0].size // LANES) * LANES
    padded = [np.concatenate([x, np.ones(extent - x.size, x.dtype)]) for x in operands]
    result = np.dtype(result or operands[0].dtype)
    executable = compiled(
        build, tuple(x.dtype.name for x in padded), result.name, extent, form, pipeline, target
    )
    output = tvm.runtime.tensor(np.zeros(extent, result))
    executable.mod["main"](*[tvm.runtime.tensor(x) for x in padded], output)
    return output.numpy()[: operands[0].size]


def reference(name, x):
    with np.errstate(all="ignore"):
        return REFERENCE[name](x.astype(np.float64))


def ulps(value, exact, precision=24, smallest=-149, largest=128):
    """Distance to float64 results in last places of a narrower format; infinite where only one is NaN."""
    with np.errstate(all="ignore"):
        beyond = 2.0**largest
        value = np.clip(value.astype(np.float64), -beyond, beyond)
        exact = np.clip(exact, -beyond, beyond)
        exponent = np.minimum(np.frexp(np.abs(exact))[1], largest)
        unit = np.ldexp(1.0, np.maximum(exponent - precision, smallest))
        distance = np.abs(value - exact) / unit
    distance[np.isnan(value) & np.isnan(exact)] = 0
    return np.where(np.isnan(distance), np.inf, distance)


def bit_patterns(stride, start=0):
    return np.arange(start, 2**32, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


SPECIAL = np.concatenate(
    [
        np.array([0.0, np.inf, np.nan, 1e-45, 1e-40, 1.1754942e-38, 1.1754944e-38, 3.4028235e38], np.float32),
        np.array([0.5, 0.625, 1.0, 2.0, 3.93, 9.02, 17.4, 87.4, 88.72283, 88.73, 103.97, 104.0], np.float32),
        np.array([126.0, 127.99999, 128.0, 148.5, 149.0, 149.5, 150.0, 151.0, 1e10], np.float32),
    ]
)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_within_two_ulp_over_all_bit_patterns(name):
    x = bit_patterns(1021)
    assert ulps(apply(ELEMENTARY[name], x), reference(name, x)).max() <= 2


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_within_two_ulp_without_fused_multiply_add(name):
    x = bit_patterns(4093, start=7)
    assert ulps(apply(ELEMENTARY[name], x, target="plain"), reference(name, x)).max() <= 2


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_float32_is_within_two_ulp_in_every_form(name, form, pipeline):
    x = np.concatenate([SPECIAL, bit_patterns(65521)])
    value = apply(ELEMENTARY[name], x, form=form, pipeline=pipeline)
    assert ulps(value, reference(name, x)).max() <= 2


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("exp", [-np.inf, np.inf, -0.0, 89.0, -104.0, np.nan], [0, np.inf, 1, np.inf, 0, np.nan]),
        ("exp2", [-149.0, -126.0, 127.0, 128.0, -151.0, 3.0], [2.0**-149, 2.0**-126, 2.0**127, np.inf, 0, 8]),
        ("log", [0.0, -0.0, -1e-45, np.inf, -np.inf, 1.0], [-np.inf, -np.inf, np.nan, np.inf, np.nan, 0]),
        ("log2", [0.0, -1.0, np.inf, 2.0**-149, 2.0**127, 8.0], [-np.inf, np.nan, np.inf, -149, 127, 3]),
        ("tanh", [np.inf, -np.inf, 0.0, -0.0, 1e-45, np.nan], [1, -1, 0, -0.0, 1e-45, np.nan]),
        ("erf", [np.inf, -np.inf, 0.0, -0.0, 4.0, np.nan], [1, -1, 0, -0.0, 1, np.nan]),
        ("sigmoid", [np.inf, -np.inf, 0.0, -0.0, -104.0, np.nan], [1, 0, 0.5, 0.5, 0, np.nan]),
    ],
)
def test_special_values_are_exact(name, x, expected):
    value = apply(ELEMENTARY[name], np.array(x, np.float32))
    expected = np.array(expected, np.float32)
    np.testing.assert_array_equal(value, expected)
    signed = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(value)[signed], np.signbit(expected)[signed])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", NAMES)
def test_a_16_bit_float_is_rounded_once_from_float32(name, dtype):
    x = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16)
    precision, smallest, largest = (8, -133, 128) if dtype == "bfloat16" else (11, -24, 16)
    value = apply(ELEMENTARY[name], x)
    assert ulps(value, reference(name, x), precision, smallest, largest).max() <= 0.51


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_float64_is_within_two_ulp(name, form, pipeline):
    random = np.random.default_rng(0)
    x = np.concatenate([SPECIAL, random.normal(size=2000) * 3, 10 ** random.uniform(-320, 3, 2000)])
    x = np.concatenate([x, -x])
    with np.errstate(all="ignore"):
        exact = REFERENCE[name](x.astype(np.float64 if name == "erf" else np.longdouble)).astype(np.float64)
    value = apply(ELEMENTARY[name], x, form=form, pipeline=pipeline)
    np.testing.assert_array_equal(np.isnan(value), np.isnan(exact))
    np.testing.assert_array_equal(np.isinf(value), np.isinf(exact))
    finite = np.isfinite(exact)
    difference = np.abs(value[finite] - exact[finite]) / np.spacing(np.abs(exact[finite]))
    assert difference.max() <= 2.5  # 2 ulp from the exact value, which itself was rounded


@pytest.mark.parametrize("name", NAMES)
def test_a_vector_stays_a_vector(name):
    source = compiled(ELEMENTARY[name], ("float32",), "float32", 64).mod.inspect_source("ll")
    calls = [line for line in source.splitlines() if "call <16 x float> @llvm.fmuladd.v16f32" in line]
    assert len(calls) >= 7
    assert not re.findall(r"call float @(?!llvm\.)\w+", source)


def in_buffers(build, extent, pipeline):
    """A compiled function in which `build` keeps every value it binds in a buffer of one vector."""
    operand, output = decl_buffer((extent,), "float32"), decl_buffer((extent,), "float32")
    i = Var("i", "int32")
    statements = []

    def bind(value):
        register = decl_buffer((LANES,), str(value.ty.dtype.with_lanes(1)))
        statements.extend([AllocBuffer(register), BufferStore(register, value, [Ramp(0, 1, LANES)])])
        return BufferLoad(register, [Ramp(0, 1, LANES)])

    index = Ramp(i * LANES, 1, LANES)
    statements.append(BufferStore(output, build(BufferLoad(operand, [index]), bind), [index]))
    loop = For(i, 0, extent // LANES, ForKind.SERIAL, SeqStmt(statements))
    return build_function(PrimFunc([operand, output], loop), pipeline, HOST)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_chain_of_functions_is_built_through_buffers(pipeline):
    def chain(x, bind):
        for name in ("exp", "log", "tanh", "erf", "sigmoid", "exp2"):
            x = ELEMENTARY[name](x, bind)
        return maximum(x, x * 0.5, bind)

    x = np.linspace(-3, 3, 256).astype(np.float32)
    output = tvm.runtime.tensor(np.zeros_like(x))
    in_buffers(chain, x.size, pipeline).mod["main"](tvm.runtime.tensor(x), output)
    exact = x.astype(np.float64)
    for name in ("exp", "log", "tanh", "erf", "sigmoid", "exp2"):
        exact = REFERENCE[name](exact)
    np.testing.assert_allclose(output.numpy(), exact, rtol=2e-6)


@pytest.mark.parametrize("outer", [elementary.log, lambda x: maximum(x, x)])
def test_a_chain_of_functions_is_refused_without_bind(outer):
    with pytest.raises(ValueError, match="bind="):
        outer(elementary.exp(Var("x", "float32x16")) + 1.0)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "float8_e4m3fn"])
@pytest.mark.parametrize("name", NAMES)
def test_other_dtypes_are_refused(name, dtype):
    with pytest.raises(TypeError, match=rf"{name} takes .*not {dtype}"):
        ELEMENTARY[name](Var("x", dtype))


def test_what_is_not_an_expression_is_refused():
    with pytest.raises(TypeError, match="not float"):
        elementary.exp(1.0)


def numpy_dtype(dtype):
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@np.errstate(invalid="ignore")
def operands(dtype):
    """All pairs of some values, NaN of both signs and with small and large payloads among the floats."""
    dtype = numpy_dtype(dtype)
    if dtype.kind in "iu":
        values = np.array([np.iinfo(dtype).min, 0, 1, 3, np.iinfo(dtype).max], dtype)
    else:
        values = np.array([0, 1, -1, 2.5, np.inf, -np.inf, np.nan, -np.nan, np.nan, np.nan], dtype)
        bits = values.view(f"u{dtype.itemsize}")
        bits[-1] = 2 ** (8 * dtype.itemsize - 1) - 1
        bits[-2] = bits[4] + 1
    a, b = np.meshgrid(values, values)
    return a.ravel().copy(), b.ravel().copy()


DTYPES = ("float16", "bfloat16", "float32", "float64", "uint8", "int32")


def nan_flag(x):
    return tirx.Cast("int32" if x.ty.dtype.lanes == 1 else f"int32x{x.ty.dtype.lanes}", isnan(x))


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_extrema_and_isnan_see_every_nan(dtype, form, pipeline):
    a, b = operands(dtype)
    wide = (lambda x: x) if a.dtype.kind in "iu" else (lambda x: x.astype(np.float64))
    for build, oracle in ((maximum, np.maximum), (minimum, np.minimum)):
        value = apply(build, a, b, form=form, pipeline=pipeline)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(wide(value), oracle(wide(a), wide(b)))
    value = apply(nan_flag, a, result="int32", form=form, pipeline=pipeline)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(value, np.isnan(wide(a)))


@pytest.mark.parametrize(
    ("a", "b"), [("float32", "float16"), ("float32x4", "float32x8"), ("bool", "bool"), ("float64", "int32")]
)
def test_extrema_of_other_dtypes_are_refused(a, b):
    with pytest.raises(TypeError, match="maximum takes"):
        maximum(Var("a", a), Var("b", b))
    with pytest.raises(TypeError, match="minimum takes"):
        minimum(Var("a", a), Var("b", b))


def test_isnan_of_a_boolean_is_refused():
    with pytest.raises(TypeError, match=r"isnan takes .*not bool"):
        isnan(Var("a", "bool"))


def test_tvm_still_folds_a_comparison_of_a_value_with_itself():
    """Why `isnan` reads bits: TVM takes ``x != x`` for false."""
    x = np.array([np.nan], np.float32)
    value = apply(lambda v: tirx.Select(v != v, tirx.const(1.0, str(v.ty)), tirx.const(0.0, str(v.ty))), x)
    assert value[0] == 0


def test_tvm_still_lacks_a_vector_erf():
    """Why float64 `erf` calls the libm lane by lane."""
    with pytest.raises(Exception, match=r"tirx\.erf"):
        apply(tirx.erf, np.ones(16))


def test_tvm_still_loses_small_results_of_a_float64_tanh():
    """Why float64 `tanh` calls the libm."""
    assert apply(tirx.tanh, np.array([1e-20]))[0] == 0
    assert apply(elementary.tanh, np.array([1e-20]))[0] == 1e-20
