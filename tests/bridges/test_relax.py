"""Tile kernels in Relax programs: what they give beside TVM's own operators, and which are refused."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax, te, tirx
from tvm.tirx import Var
from tvm.tirx.buffer import decl_buffer
from tvm.tirx.compilation_pipeline import get_tir_pipeline

import tvm_tile as tt
from tvm_tile.bridges.relax.coverage import prove_covered
from tvm_tile.bridges.relax.function import called_function
from tvm_tile.bridges.tirx.mixture import in_root_block, without_root_block
from tvm_tile.contrib import kernels

CPU = tvm.target.Target("llvm")

F32, F16, BOOL, I32, U64 = (tt.Scalar[d] for d in ("float32", "float16", "bool", "int32", "uint64"))

#: The ways from a Relax module to an executable: does FuseOps/FuseTIR run, and which TIR pipeline.
WAYS = {
    "default": (False, {}),
    "fused": (True, {}),
    "tvm_tile": (False, {"tir_pipeline": "tvm_tile"}),
    "fused, tvm_tile": (True, {"tir_pipeline": "tvm_tile"}),
}


@tt.kernel
def negated(X, Y):
    for i, j in tt.parallel(*X.shape):
        Y[i, j] = -X[i, j]


@tt.kernel
def transposed(X, Y):
    for i, j in tt.parallel(*X.shape):
        Y[j, i] = X[i, j]


@tt.kernel
def extremes(X, low, high):
    for i in tt.parallel(X.shape[0]):
        row = X[i, :]
        low[i] = tt.min(row)
        high[i] = tt.max(row)


@tt.kernel
def affine(X, scale: F32, shift: F16, skip: BOOL, Y):
    for i in tt.parallel(X.shape[0]):
        Y[i] = tt.where(skip, X[i], X[i] * scale + shift.astype("float32"))


@tt.kernel
def in_place(X):
    for i, j in tt.parallel(*X.shape):
        X[i, j] = X[i, j] + 1.0


@tt.kernel
def accumulating(X, Y):
    for i, j in tt.parallel(*X.shape):
        Y[i, j] = Y[i, j] + X[i, j]


def tensor(name, shape, dtype="float32"):
    return relax.Var(name, relax.TensorType(shape, dtype))


def program(params, body):
    """The module of ``main(params)``, whose value ``body(builder)`` emits."""
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(body(builder))
        builder.emit_func_output(result)
    return builder.get()


def run(module, *arguments, way="default", mode="bytecode"):
    fused, options = WAYS[way]
    if fused:
        module = relax.get_pipeline("zero")(module)
    executable = relax.build(module, CPU, exec_mode=mode, **options)
    passed = [tvm.runtime.tensor(a) if isinstance(a, np.ndarray) else a for a in arguments]
    result = relax.VirtualMachine(executable, tvm.cpu())["main"](*passed)
    return result.numpy() if hasattr(result, "numpy") else [part.numpy() for part in result]


def names_of(module):
    return sorted(var.name_hint for var in module.functions)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_kernels_run_beside_operators_of_tvm(way, mode, rng):
    m, k, n = 33, 20, 17
    A, B = tensor("A", (m, k)), tensor("B", (k, n))

    def body(builder):
        product = tt.relax.call(kernels.gemm, A, B, tt.spec((m, n), "float32"))
        shifted = builder.emit(relax.op.add(relax.op.nn.relu(product), relax.const(1.0, "float32")))
        ours = tt.relax.call(kernels.softmax, shifted, tt.spec((m, n), "float32"))
        theirs = builder.emit(relax.op.nn.softmax(shifted, axis=-1))
        return builder.emit(relax.op.reshape(relax.op.add(ours, theirs), (n * m,)))

    a, b = rng.standard_normal((m, k)).astype("f4"), rng.standard_normal((k, n)).astype("f4")
    logits = np.maximum(a.astype("f8") @ b.astype("f8"), 0) + 1
    weights = np.exp(logits - logits.max(1, keepdims=True))
    expected = 2 * (weights / weights.sum(1, keepdims=True)).reshape(-1)
    result = run(program([A, B], body), a, b, way=way, mode=mode)
    np.testing.assert_allclose(result, expected, rtol=1e-4)


def test_fusion_leaves_kernels_alone_and_fuses_the_rest(rng):
    X = tensor("X", (5, 7))

    def body(builder):
        y = builder.emit(relax.op.nn.relu(relax.op.add(X, X)))
        y = tt.relax.call(negated, y, tt.spec((5, 7), "float32"))
        return builder.emit(relax.op.exp(relax.op.add(y, y)))

    module = program([X], body)
    fused = relax.get_pipeline("zero")(module)
    assert [name.split("_")[0] for name in names_of(fused)] == ["fused", "fused", "main", "negated"]
    tvm.ir.assert_structural_equal(fused["negated"].body, module["negated"].body)
    x = rng.standard_normal((5, 7)).astype("f4")
    expected = np.exp(2 * -np.maximum(2 * x.astype("f8"), 0))
    np.testing.assert_allclose(run(fused, x, way="tvm_tile"), expected, rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_several_outputs_come_as_a_tuple_of_variables(way, rng):
    X = tensor("X", (6, 11))

    def body(builder):
        low, high = tt.relax.call(extremes, X, tt.spec((6,), "float32"), tt.spec((6,), "float32"))
        return builder.emit(relax.op.subtract(high, low))

    x = rng.standard_normal((6, 11)).astype("f4")
    np.testing.assert_allclose(run(program([X], body), x, way=way), np.ptp(x.astype("f8"), axis=1), rtol=1e-6)


def test_outputs_may_stand_anywhere_among_the_parameters(rng):
    @tt.kernel
    def both(Y, X, Z):
        for i in tt.parallel(X.shape[0]):
            Y[i] = X[i] * 2
            Z[i] = X[i] * 3

    X = tensor("X", (9,), "int32")

    def body(builder):
        return builder.emit(
            relax.Tuple(tt.relax.call(both, tt.spec((9,), "int32"), X, tt.spec((9,), "int32")))
        )

    x = rng.integers(-100, 100, 9).astype("i4")
    for way in WAYS:
        y, z = run(program([X], body), x, way=way)
        np.testing.assert_array_equal(y, 2 * x)
        np.testing.assert_array_equal(z, 3 * x)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_element_types(dtype, rng):
    X = tensor("X", (5, 5), dtype)

    def body(builder):
        # As many elements as before in one block, which Relax must not take for a reshape.
        y = tt.relax.call(transposed, X, tt.spec((5, 5), dtype))
        return builder.emit(relax.op.permute_dims(y))

    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    x = rng.integers(0, 2 if dtype == "bool" else 100, (5, 5)).astype(kind)
    module = program([X], body)
    for way in ("fused", "tvm_tile"):
        np.testing.assert_array_equal(run(module, x, way=way).astype("f8"), x.astype("f8"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (2, 65)])
def test_sizes_zero_and_one(shape, way, rng):
    @tt.kernel
    def total(X, s):
        for _ in tt.parallel(1):
            s[()] = tt.sum(X[:, :])

    X = tensor("X", shape)

    def body(builder):
        y = tt.relax.call(negated, X, tt.spec(shape, "float32"))
        return tt.relax.call(total, y, tt.spec((), "float32"))

    x = rng.standard_normal(shape).astype("f4")
    result = run(program([X], body), x, way=way)
    np.testing.assert_allclose(result, -x.astype("f8").sum(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_scalars_are_numbers_or_expressions(way):
    X, scale = tensor("X", (7,)), relax.Var("scale", tvm.ir.PrimType("float32"))

    def body(builder):
        y = tt.relax.call(affine, X, scale, 0.5, False, tt.spec((7,), "float32"))
        return tt.relax.call(affine, y, 2.0, np.float16(0.25), np.bool_(False), tt.spec((7,), "float32"))

    x = np.arange(7, dtype="f4")
    np.testing.assert_array_equal(run(program([X, scale], body), x, 3.0, way=way), (x * 3 + 0.5) * 2 + 0.25)


@pytest.mark.parametrize(("sign", "value"), [(1, np.inf), (-1, -np.inf)])
def test_an_integer_beyond_the_largest_float_is_infinite_as_in_other_calls(sign, value):
    X, out, huge = tensor("X", (1,)), tt.spec((1,), "float32"), sign * 10**400
    result = run(program([X], lambda _: tt.relax.call(affine, X, huge, 0.5, False, out)), np.ones(1, "f4"))
    assert result == value


def test_scalars_of_another_dtype_are_refused():
    X, scale = tensor("X", (7,)), relax.Var("scale", tvm.ir.PrimType("float64"))
    with pytest.raises(tt.ArgumentError, match=r"scale.*float64.*not a float32 scalar"):
        program([X, scale], lambda _: tt.relax.call(affine, X, scale, 0.5, False, tt.spec((7,), "float32")))
    with pytest.raises(tt.ArgumentError, match="argument skip is 3"):
        program([X], lambda _: tt.relax.call(affine, X, 1.0, 0.5, 3, tt.spec((7,), "float32")))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("bool", True),
        ("int8", -7),
        ("int64", -(2**63)),
        ("uint64", 2**63 - 1),
        ("float16", 0.5),
        ("float64", 1e300),
        ("bfloat16", None),
    ],
)
def test_dtypes_of_scalars(dtype, value):
    kind = tt.Scalar[dtype]

    @tt.kernel
    def filled(a: kind, Y):
        for i in tt.parallel(Y.shape[0]):
            Y[i] = a

    a, out = relax.Var("a", tvm.ir.PrimType(dtype)), tt.spec((3,), dtype)
    if value is None:
        with pytest.raises(tt.UnsupportedError, match="argument a is a bfloat16 scalar"):
            program([a], lambda _: tt.relax.call(filled, a, out))
        value = 1.5
    else:
        np.testing.assert_array_equal(
            run(program([a], lambda _: tt.relax.call(filled, a, out)), value), value
        )
    np.testing.assert_array_equal(run(program([], lambda _: tt.relax.call(filled, value, out))), value)


def test_an_integer_beyond_the_registers_of_the_vm_is_refused():
    @tt.kernel
    def filled(a: U64, Y):
        for i in tt.parallel(Y.shape[0]):
            Y[i] = a

    with pytest.raises(tt.UnsupportedError, match=f"argument a is {2**63}"):
        program([], lambda _: tt.relax.call(filled, 2**63, tt.spec((3,), "uint64")))


def test_equal_calls_share_one_function(rng):
    A, B = tensor("A", (8, 8)), tensor("B", (8, 8))
    out = tt.spec((8, 8), "float32")

    def body(builder):
        product = tt.relax.call(kernels.gemm, A, B, out)
        return tt.relax.call(kernels.gemm, product, B, out)

    module = program([A, B], body)
    assert names_of(module) == ["gemm", "main"]
    a, b = rng.standard_normal((2, 8, 8)).astype("f4")
    for way in WAYS:
        np.testing.assert_allclose(run(module, a, b, way=way), a.astype("f8") @ b @ b, rtol=1e-4, atol=1e-5)


def test_a_kernel_may_have_the_name_of_the_function_that_calls_it(rng):
    @tt.kernel
    def main(X, Y):
        for i in tt.parallel(X.shape[0]):
            Y[i] = X[i] + 1.0

    X = tensor("X", (5,))
    module = program([X], lambda _: tt.relax.call(main, X, tt.spec((5,), "float32")))
    for way in WAYS:
        np.testing.assert_array_equal(run(module, np.arange(5, dtype="f4"), way=way), np.arange(5) + 1)


def test_other_constants_make_another_function():
    A, B = tensor("A", (8, 8)), tensor("B", (8, 8))
    out = tt.spec((8, 8), "float32")

    def body(builder):
        return tt.relax.call(kernels.gemm, tt.relax.call(kernels.gemm, A, B, out), B, out, bk=4)

    assert len(names_of(program([A, B], body))) == 3


def test_arguments_may_be_passed_by_name(rng):
    A, B = tensor("A", (3, 4)), tensor("B", (4, 5))
    module = program([A, B], lambda _: tt.relax.call(kernels.gemm, A, C=tt.spec((3, 5), "float32"), B=B))
    a, b = rng.standard_normal((3, 4)).astype("f4"), rng.standard_normal((4, 5)).astype("f4")
    np.testing.assert_allclose(run(module, a, b), a.astype("f8") @ b, rtol=1e-5)


def test_a_kernel_of_constants_is_folded():
    values = np.arange(6, dtype="f4").reshape(2, 3)
    module = program([], lambda _: tt.relax.call(negated, relax.const(values), tt.spec((2, 3), "float32")))
    assert names_of(relax.get_pipeline("zero")(module)) == ["main"]
    for way in WAYS:
        np.testing.assert_array_equal(run(module, way=way), -values)


def test_the_planner_reuses_memory_but_never_within_a_call(rng):
    X = tensor("X", (64, 64))

    def body(builder):
        y = X
        for _ in range(6):
            y = tt.relax.call(transposed, builder.emit(relax.op.add(y, y)), tt.spec((64, 64), "float32"))
        return y

    x = rng.integers(-9, 9, (64, 64)).astype("f4")
    # The guards in each function raise where an output overlaps an input or an element is unaligned.
    for way in WAYS:
        np.testing.assert_array_equal(run(program([X], body), x, way=way), 64 * x)
    # An input and the output of a transposition that shared memory would give something else.
    planned = relax.get_pipeline("default_build")(program([X], body)).script()
    assert planned.count("alloc_storage") < 6


def test_it_works_outside_of_a_dataflow_block(rng):
    X = tensor("X", (4, 4))
    builder = relax.BlockBuilder()
    with builder.function("main", [X]):
        builder.emit_func_output(tt.relax.call(negated, X, tt.spec((4, 4), "float32")))
    x = rng.standard_normal((4, 4)).astype("f4")
    np.testing.assert_array_equal(run(builder.get(), x), -x)


def test_the_current_target_is_lowered_for():
    X = tensor("X", (4, 4))
    with pytest.raises(tt.UnsupportedError, match="webgpu"), tvm.target.Target("webgpu", host="llvm"):
        program([X], lambda _: tt.relax.call(negated, X, tt.spec((4, 4), "float32")))


def test_an_exported_module_runs_where_nobody_imports_tvm_tile(tmp_path):
    X = tensor("X", (4, 4))

    def body(builder):
        y = tt.relax.call(transposed, X, tt.spec((4, 4), "float32"))
        return builder.emit(relax.op.add(y, y))

    path = tmp_path / "program.so"
    executable = tvm.compile(program([X], body), CPU, tir_pipeline="tvm_tile")
    executable.export_library(str(path))
    code = (
        "import numpy as np, tvm; from tvm import relax\n"
        f"vm = relax.VirtualMachine(tvm.runtime.load_module({str(path)!r}), tvm.cpu())\n"
        "x = np.arange(16, dtype='f4').reshape(4, 4)\n"
        "print(np.array_equal(vm['main'](tvm.runtime.tensor(x)).numpy(), 2 * x.T))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"


def test_tvm_is_loaded_by_the_first_use_of_the_module():
    code = "import sys, tvm_tile as tt; print('tvm' in sys.modules); tt.relax; print('tvm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="relay"):
        tt.relay


def test_an_input_that_is_written_is_refused():
    X = tensor("X", (3, 3))
    with pytest.raises(tt.IllegalError, match="writes its parameter Y") as caught:
        program([X], lambda _: tt.relax.call(negated, tt.spec((3, 3), "float32"), X))
    assert "Y[i, j] = -X[i, j]" in str(caught.value)
    assert 'pass tt.spec((3, 3), "float32") for Y' in str(caught.value)


def test_a_kernel_that_works_in_place_is_refused_either_way():
    X = tensor("X", (3, 3))
    with pytest.raises(tt.ArgumentError, match="no argument of kernel in_place is an output"):
        program([X], lambda _: tt.relax.call(in_place, X))
    with pytest.raises(tt.IllegalError, match="reads its output X"):
        program([X], lambda _: tt.relax.call(in_place, tt.spec((3, 3), "float32")))


def test_an_output_that_is_read_is_refused():
    X = tensor("X", (3, 3))
    with pytest.raises(tt.IllegalError, match="reads its output Y") as caught:
        program([X], lambda _: tt.relax.call(accumulating, X, tt.spec((3, 3), "float32")))
    assert "not initialized" in str(caught.value)
    assert "Y[i, j] = Y[i, j] + X[i, j]" in str(caught.value)


def test_an_output_that_is_not_written_is_refused():
    out = tt.spec((3, 3), "float32")
    with pytest.raises(tt.IllegalError, match="does not write its parameter X"):
        program([], lambda _: tt.relax.call(negated, out, out))


def test_an_output_may_be_read_in_a_region_after_the_one_that_writes_all_of_it(rng):
    @tt.kernel
    def cubed(X, Y):
        for i in tt.parallel(tt.cdiv(X.shape[0], 4)):
            Y[tt.ds(4 * i, 4)] = X[tt.ds(4 * i, 4)] * X[tt.ds(4 * i, 4)]
        for i in tt.parallel(X.shape[0]):
            Y[i] = Y[i] * X[i]

    X = tensor("X", (11,), "float64")
    x = rng.standard_normal(11)
    module = program([X], lambda _: tt.relax.call(cubed, X, tt.spec((11,), "float64")))
    for way in WAYS:
        np.testing.assert_allclose(run(module, x, way=way), x**3, rtol=1e-14)


def test_an_output_that_is_read_after_a_part_of_it_is_written_is_refused():
    @tt.kernel
    def half(X, Y):
        for i in tt.parallel(X.shape[0] // 2):
            Y[i] = X[i]
        for i in tt.parallel(X.shape[0]):
            Y[i] = Y[i] * X[i]

    X = tensor("X", (11,))
    with pytest.raises(tt.IllegalError, match="reads its output Y"):
        program([X], lambda _: tt.relax.call(half, X, tt.spec((11,), "float32")))


def test_an_output_with_elements_that_nothing_writes_is_refused():
    @tt.kernel
    def lower_triangle(X, Y):
        for i, j in tt.parallel(*X.shape, where=lambda i, j: j <= i):
            Y[i, j] = X[i, j]

    @tt.kernel
    def no_tail(X, Y):
        for i in tt.parallel(X.shape[0] // 4):
            Y[tt.ds(4 * i, 4), :] = X[tt.ds(4 * i, 4), :]

    @tt.kernel
    def by_data(X, Y):
        for i, j in tt.parallel(*X.shape):
            if X[i, j] > 0.0:
                Y[i, j] = X[i, j]
            else:
                Y[i, j] = 0.0

    X, out = tensor("X", (5, 2)), tt.spec((5, 2), "float32")
    for kernel, unwritten in ((lower_triangle, {"Y[0, 1]"}), (no_tail, {"Y[4, 0]", "Y[4, 1]"})):
        with pytest.raises(tt.IllegalError, match="unwritten") as caught:
            program([X], lambda _, kernel=kernel: tt.relax.call(kernel, X, out))
        assert caught.value.counterexample in unwritten
    x = np.arange(-4, 6, dtype="f4").reshape(5, 2)
    module = program([X], lambda _: tt.relax.call(by_data, X, out))
    np.testing.assert_array_equal(run(module, x), np.maximum(x, 0))


def test_whether_all_is_written_is_not_guessed_from_data_or_scalars():
    @tt.kernel
    def some(X, n: I32, Y):
        for i in tt.parallel(X.shape[0]):
            if i < n:
                Y[i] = X[i]

    traced = some.trace(tt.spec((9,), "float32"), 4, tt.spec((9,), "float32"))
    proof = prove_covered(traced, traced.params[2])
    assert proof.is_unknown
    assert "n decides" in proof.reason


def test_symbolic_shapes_are_refused_by_the_name_of_the_argument():
    n = Var("n", "int64")
    X = tensor("X", (n, 3))
    with pytest.raises(tt.UnsupportedError, match=r"argument X has the symbolic shape \(n, 3\)"):
        program([X], lambda _: tt.relax.call(negated, X, tt.spec((3, 3), "float32")))
    Y = relax.Var("Y", relax.TensorType(ndim=2, dtype="float32"))
    with pytest.raises(tt.UnsupportedError, match="argument X has an unknown shape"):
        program([Y], lambda _: tt.relax.call(negated, Y, tt.spec((3, 3), "float32")))


def test_outside_of_a_builder_the_call_is_refused():
    X = tensor("X", (3, 3))
    with pytest.raises(tt.ArgumentError, match="none is being built"):
        tt.relax.call(negated, X, tt.spec((3, 3), "float32"))


def test_what_is_no_relax_tensor_is_refused():
    X, out = tensor("X", (3, 3)), tt.spec((3, 3), "float32")
    pair = relax.Var("pair", relax.TupleType([X.ty, X.ty]))
    cases = [
        (np.zeros((3, 3), "f4"), r"argument X is an array.*float32\[3, 3\]"),
        (3.5, "argument X is float 3.5"),
        (pair, "argument X is a Relax expression of type"),
        (tensor("F", (3, 3), "float8_e3m4"), "argument X has element type float8_e3m4"),
    ]
    for argument, message in cases:
        with pytest.raises(tt.TileError, match=message):
            program(
                [v for v in (argument,) if isinstance(v, relax.Var)],
                lambda _, argument=argument: tt.relax.call(negated, argument, out),
            )


def test_strided_outputs_are_refused():
    X = tensor("X", (3, 3))
    with pytest.raises(tt.ArgumentError, match=r"output Y has strides \(1, 3\)"):
        program([X], lambda _: tt.relax.call(negated, X, tt.spec((3, 3), "float32", strides=(1, 3))))


def test_shapes_that_do_not_fit_are_the_kernels_own_errors():
    A, B = tensor("A", (3, 4)), tensor("B", (5, 6))
    with pytest.raises(tt.ArgumentError, match="inner extents differ"):
        program([A, B], lambda _: tt.relax.call(kernels.gemm, A, B, tt.spec((3, 6), "float32")))


def test_what_is_no_kernel_is_refused():
    X = tensor("X", (3, 3))
    with pytest.raises(tt.ArgumentError, match="takes a kernel, not function"):
        program([X], lambda _: tt.relax.call(lambda X: None, X))


def test_a_root_block_is_put_on_and_taken_off():
    module = program(
        [X := tensor("X", (3, 3))], lambda _: tt.relax.call(negated, X, tt.spec((3, 3), "float32"))
    )
    func = module["negated"]
    bare = without_root_block(func)
    assert without_root_block(bare).same_as(bare)
    tvm.ir.assert_structural_equal(in_root_block(bare), func)


def device_program(name):
    """A Relax program with a device function that is no ``s_tir`` function, called ``name``."""
    A, B = (decl_buffer([96], "float32", letter) for letter in "AB")
    thread = Var("thread", "int32")
    axis = tirx.IterVar((0, 96), thread, tirx.IterVar.ThreadIndex, "threadIdx.x")
    store = tirx.BufferStore(B, tirx.BufferLoad(A, [thread]) * tirx.const(2.0, "float32"), [thread])
    launch = tirx.PrimFunc([A, B], tirx.AttrStmt(axis, "thread_extent", tirx.const(96, "int32"), store))
    callee = called_function(tvm.IRModule({name: launch}), (0, 1))
    X = tensor("X", (96,))
    builder = relax.BlockBuilder()
    with builder.function("main", [X]):
        with builder.dataflow():
            y = builder.emit(relax.op.add(X, X))
            y = builder.emit(relax.call_tir(builder.add_func(callee, name), [y], X.ty))
            y = builder.emit_output(relax.op.add(y, y))
        builder.emit_func_output(y)
    return builder.get()


def block_function(name):
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([A, B]).with_attr("global_symbol", name))
    schedule.bind(schedule.get_loops("B")[0], "threadIdx.x")
    return schedule.mod["main"].with_attr("global_symbol", name)


@pytest.mark.parametrize("pipeline", ["default", "tvm_tile"])
def test_device_functions_of_both_dialects_come_into_one_device_module(pipeline):
    # TVM's default pipeline for a GPU schedules its own operators, and must not touch ours.
    target = tvm.target.Target({"kind": "opencl"}, host="llvm")
    executable = relax.build(device_program("twice"), target, tir_pipeline=pipeline)
    (library,) = executable.mod.imports
    sources = [module.inspect_source() for module in library.imports if module.kind == "opencl"]
    assert len(sources) == 1
    for name in ("twice_kernel", "add_kernel"):
        assert f"__kernel void {name}(" in sources[0]


def test_a_device_function_that_comes_to_have_the_name_of_another_is_refused():
    target = tvm.target.Target({"kind": "opencl"}, host="llvm")
    module = device_program("twice")
    # A host function of the other dialect with the name that the device part of `twice` gets.
    module.update_func(tvm.ir.GlobalVar("twice_kernel"), block_function("twice_kernel"))
    with pytest.raises(tt.UnsupportedError, match="two functions of the module become twice_kernel"):
        relax.build(module, target, tir_pipeline="tvm_tile")


def test_both_pipelines_of_tvm_finish_modules_alike():
    # One list of finalization passes runs on what both give.
    finishes = [get_tir_pipeline(name)[1:] for name in ("tirx", "s_tir")]
    passes = [[[str(p.info.name) for p in finish().passes] for finish in pair] for pair in finishes]
    assert passes[0] == passes[1]
