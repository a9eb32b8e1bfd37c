"""The generated function: its signature, targets, contraction of products, and what it must not contain."""

import re

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import tirx

import tvm_tile.frontend as tt
from tvm_tile.bridges.tirx.lower import lower_program
from tvm_tile.bridges.tirx.target import host_target
from tvm_tile.ir.index import BoolConst, IndexConst
from tvm_tile.ir.ops import Full, Number, Point, Store, View
from tvm_tile.ir.regions import Block, Domain, Parallel, Program, Serial
from tvm_tile.ir.values import Memory, TileType, Value

RNG = np.random.default_rng(2)
LLVM = {"kind": "llvm"}


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


@tt.kernel
def axpy(alpha: tt.Scalar["float32"], X, Y):  # noqa: F821
    for i in tt.parallel(X.shape[0]):
        row = X[i, :]
        Y[i, :] = alpha * row + Y[i, :]


def test_parameters_keep_their_order_and_names():
    function = lower_program(axpy.trace(0.0, floats(3, 20), floats(3, 20)), host_target())
    assert [param.name for param in function.params] == ["alpha", "X", "Y"]
    assert [tirx.is_buffer_var(param) for param in function.params] == [False, True, True]
    assert function.attrs["global_symbol"] == "axpy"
    assert function.attrs["tirx.noalias"]


def test_without_noalias_the_function_does_not_promise_it():
    function = lower_program(axpy.trace(0.0, floats(3, 20), floats(3, 20)), host_target(), noalias=False)
    assert "tirx.noalias" not in function.attrs


def test_names_of_the_source_are_in_the_script():
    @tt.kernel
    def named(X, Y):
        for row in tt.parallel(X.shape[0]):
            centred = X[row, :] - 1
            Y[row, :] = centred * centred
            Y[row, :] = centred + Y[row, :]

    text = lower_program(named.trace(floats(3, 20), floats(3, 20)), host_target()).script()
    assert "def named(X:" in text
    assert re.search(r"\brow: T", text)
    assert re.search(r"\bcentred = T\.alloc_buffer", text)


def test_the_text_of_a_function_makes_the_same_function(compiled):
    X, Y = floats(4, 21), floats(4, 21)
    function = lower_program(axpy.trace(0.0, X, Y), host_target())
    again = tvm.script.from_source(function.script())
    want, got = Y.copy(), Y.copy()
    compiled(axpy.trace(0.0, X, Y))(2.5, X, want)
    tvm.compile(again, target=host_target(), tir_pipeline="tirx")["axpy"](2.5, X, got)
    np.testing.assert_array_equal(got, want)


def test_a_name_that_is_no_identifier():
    memory = Memory("A", (1,), "float32")
    value = Value(0, TileType((), "float32"))
    body = Block((Full(value, Number("1.0")), Store(View(memory, (Point(IndexConst(0)),)), value)))
    function = lower_program(Program("my kernel<2>", (memory,), body), host_target())
    A = np.zeros(1, "float32")
    tvm.compile(function, target=host_target(), tir_pipeline="tirx")[function.attrs["global_symbol"]](A)
    assert A[0] == 1


def loops_of(function: tirx.PrimFunc, kind: tirx.ForKind) -> list:
    found = []
    tvm_ffi.structural_walk(
        function.body, (tirx.For, lambda node: found.append(node) if node.kind == kind else None)
    )
    return found


def parallel_depth(statement, depth=0):
    """Deepest nesting of parallel loops."""
    if isinstance(statement, tirx.For):
        return parallel_depth(statement.body, depth + (statement.kind == tirx.ForKind.PARALLEL))
    if isinstance(statement, tirx.SeqStmt):
        return max(parallel_depth(part, depth) for part in statement.seq)
    if isinstance(statement, tirx.IfThenElse):
        arms = [statement.then_case, *([statement.else_case] if statement.else_case else [])]
        return max(parallel_depth(arm, depth) for arm in arms)
    return depth


@tt.kernel
def regions_in_regions(A, B):
    for i in tt.parallel(4):
        for j in tt.parallel(3):
            B[i, j] = A[i, j]
    for _ in tt.serial(2):
        for i in tt.parallel(4, where=lambda i: i > 0):
            B[i, 3] = A[i, 3] + B[i, 3]
    for i in tt.parallel(1):
        for j in tt.parallel(5):
            B[i, j] = A[i, j]


def test_only_outermost_instances_run_on_threads(agrees):
    A, B = floats(4, 6), floats(4, 6)
    program = regions_in_regions.trace(A, B)
    function = lower_program(program, host_target())
    assert [int(loop.extent) for loop in loops_of(function, tirx.ForKind.PARALLEL)] == [4, 4, 5]
    assert parallel_depth(function.body) == 1
    agrees(program, A, B)


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("kind", [Parallel, Serial])
def test_a_constant_predicate(agrees, kind, active):
    memory = Memory("A", (4,), "int32")
    index, value = Value(0, TileType((), "int64")), Value(1, TileType((), "int32"))
    body = Block((Full(value, Number("3")), Store(View(memory, (Point(IndexConst(2)),)), value)))
    loop = kind(Domain((IndexConst(1),), BoolConst(active)), (index,), body)
    A = np.zeros(4, "int32")
    (got,) = agrees(Program("constant", (memory,), Block((loop,))), A)
    assert got[2] == (3 if active else 0)


def test_index_arithmetic_is_64_bits_wide():
    @tt.kernel
    def far(A, C):
        for i in tt.parallel(A.shape[0] // 1024):
            C[tt.ds(i, 1)] = A[tt.ds(i * 1024, 1)]

    n = 2**40
    function = lower_program(far.trace(tt.spec(n, "int8"), tt.spec(n // 1024, "int8")), host_target())
    narrow = []
    tvm_ffi.structural_walk(
        function.body,
        (tirx.For, lambda node: narrow.append(node) if str(node.loop_var.ty.dtype) != "int64" else None),
    )
    assert narrow == []
    tvm.compile(function, target=host_target(), tir_pipeline="tirx")


@pytest.mark.parametrize("pipeline", ["tirx", "default"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_contracted_only_where_the_program_allows_it(run, pipeline, dtype):
    def body(A, B, C, D, E):
        C[:] = A[:] * B[:] + C[:]
        D[:] = A[:] * B[:] - D[:]
        E[0] = tt.sum(A[:] * B[:], policy="fold_left")

    rng = np.random.default_rng(0)
    A, B, C, D = (rng.standard_normal(100).astype(dtype) for _ in range(4))
    E = np.zeros(1, dtype)
    total = E.dtype.type(0)
    for a, b in zip(A, B, strict=True):
        total += a * b
    want = [A * B + C, A * B - D, np.array([total])]
    exact = run(tt.kernel(fma=False)(body).trace(A, B, C, D, E), A, B, C, D, E, pipeline=pipeline)[2:]
    for have, expected in zip(exact, want, strict=True):
        np.testing.assert_array_equal(have, expected)
    fused = run(tt.kernel(body).trace(A, B, C, D, E), A, B, C, D, E, pipeline=pipeline)[2:]
    different = [(have != expected).any() for have, expected in zip(fused, want, strict=True)]
    assert any(different), "the host has no fused multiply-add, so this test shows nothing"


@pytest.mark.parametrize(
    ("target", "lanes"),
    [
        (LLVM, 4),
        (LLVM | {"mcpu": "haswell"}, 8),
        (LLVM | {"mcpu": "skylake-avx512"}, 16),
        (LLVM | {"mtriple": "aarch64-linux-gnu"}, 4),
    ],
)
def test_vectors_have_the_width_of_the_target(target, lanes):
    target = tvm.target.Target(target)
    function = lower_program(axpy.trace(0.0, floats(3, 64), floats(3, 64)), target)
    assert {int(loop.extent) for loop in loops_of(function, tirx.ForKind.VECTORIZED)} == {lanes}
    tvm.compile(function, target=target, tir_pipeline="tirx")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool", "int8", "float64"])
@pytest.mark.parametrize("features", [LLVM, LLVM | {"mcpu": "haswell"}])
def test_element_types_without_support_in_the_cpu(compiled, dtype, features):
    import ml_dtypes

    @tt.kernel
    def through(A, C):
        C[:] = A[:].astype("float32").astype(A.dtype)

    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    A, C = (RNG.standard_normal(100) * 3).astype(kind), np.zeros(100, kind)
    function = compiled(through.trace(A, C), target=tvm.target.Target(features))
    passed = [tvm.runtime.tensor(x) if dtype == "bfloat16" else x for x in (A, C)]
    function(*passed)
    got = passed[1].numpy() if dtype == "bfloat16" else C
    np.testing.assert_array_equal(got, A.astype("float32").astype(kind))


def test_an_empty_program_compiles(compiled):
    A = floats(3)
    compiled(Program("nothing", (Memory("A", (3,), "float32"),), Block()))(A)
