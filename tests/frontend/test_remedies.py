"""Errors of common slips: each names the thing at its place, and the one thing to write instead."""

import math

import numpy as np
import pytest

import tvm_tile.frontend as tt
from tvm_tile.errors import ArgumentError, CaptureError, IllegalError, TileError
from tvm_tile.semantics.interpreter import interpret

F16 = tt.spec((16,), "float32")
I16 = tt.spec((16,), "int32")
M44 = tt.spec((4, 4), "float32")
SCALAR = tt.spec((), "float32")


def anded(X, Y):
    for i in tt.serial(4):
        if X[i] > 0 and X[i] < 0.5:
            Y[i] = 1.0


def ored(X, Y):
    for i in tt.serial(4):
        if X[i] > 0 or i > 2:
            Y[i] = 1.0


def negated(X, Y):
    for i in tt.serial(4):
        if not X[i] > 0:
            Y[i] = 1.0


def chained(X, Y):
    for i in tt.serial(4):
        if -0.5 < X[i] <= 0.5:
            Y[i] = 1.0


def ternary(X, Y):
    for i in tt.serial(4):
        Y[i] = X[i] if i > 2 else 0.0


def searched(X, Y):
    for i in tt.serial(4):
        if i in (1, 2):
            Y[i] = 1.0


def excluded(X, Y):
    for i in tt.serial(4):
        if i not in [1, 2]:
            Y[i] = 1.0


def matched(X, Y):
    for i in tt.serial(4):
        match i:
            case 1:
                Y[i] = 1.0


def asserted(X, Y):
    assert X[0] > 0


def repeated(X, Y):
    n = X[0]
    while n > 0:
        n = n - 1


def filtered(X, Y):
    Y[0] = float(len([q for q in range(3) if X[q] > 0]))


def larger(X, Y):
    for i in tt.serial(4):
        Y[i] = max(X[i], 0.0)


def smaller(X, Y):
    for i in tt.serial(4):
        Y[min(i * 8, 3)] = X[i]


def values_of(x):
    if x > 0:
        yield 1.0


def generated(X, Y):
    Y[0] = next(values_of(X[0]))


@pytest.mark.parametrize(
    ("function", "words", "at"),
    [
        (anded, ("`and`", "(X[i] > 0) & (X[i] < 0.5)"), "X[i] > 0 and X[i] < 0.5"),
        (ored, ("`or`", "(X[i] > 0) | (i > 2)"), "X[i] > 0 or i > 2"),
        (negated, ("`not`", "~(X[i] > 0)"), "not X[i] > 0"),
        (chained, ("chained comparison", "(-0.5 < X[i]) & (X[i] <= 0.5)"), "-0.5 < X[i] <= 0.5"),
        (ternary, ("if ... else", "tt.where(i > 2, X[i], 0.0)"), None),
        (searched, ("`in`", "(i == 1) | (i == 2)"), "i in (1, 2)"),
        (excluded, ("`in`", "(i != 1) & (i != 2)"), "i not in [1, 2]"),
        (matched, ("`match`", "if x == value"), None),
        (asserted, ("`assert`", "constants"), None),
        (repeated, ("`while`", "tt.serial"), None),
        (filtered, ("comprehension", "tt.where"), None),
        (larger, ("Python's max", "tt.maximum(X[i], 0.0)"), "max(X[i], 0.0)"),
        (smaller, ("Python's min", "tt.minimum(i * 8, 3)"), "min(i * 8, 3)"),
        (generated, ("Python runs", "generator"), None),
    ],
)
def test_what_asks_for_a_truth_value_is_named_with_its_replacement(refused, function, words, at):
    error = refused(
        CaptureError, lambda: tt.kernel(function).trace(F16, F16), "no truth value", *words, at=at
    )
    assert error.span.file == __file__


def test_python_values_still_have_all_of_these():
    @tt.kernel
    def k(X, *, n=3, mode="a"):
        assert n > 0
        if 0 < n < 5 and not (mode in ("b",) or n == 4):
            X[0] = max(1.0, 2.0) if n else 0.0
        # A tile may be the last of the conditions.
        if n and X[0] > 0:
            X[1] = 1.0

    x = np.zeros(4, "f4")
    interpret(k.trace(x), x)
    assert x.tolist() == [2.0, 1.0, 0.0, 0.0]


def test_a_generator_is_not_left_in_the_middle_of_a_body(refused):
    """The rest of the program went into the arm that the generator had been left in."""

    def branched(X, Y):
        def values():
            if X[0] > 0:
                yield 1.0

        Y[0] = next(values())

    def looped(X, Y):
        def values():
            for i in tt.serial(4):
                yield X[i]

        Y[0] = next(values())

    for function, at in ((branched, "yield 1.0"), (looped, "yield X[i]")):
        kernel = tt.kernel(function)
        refused(CaptureError, lambda kernel=kernel: kernel.trace(F16, F16), "yield inside", at=at)


def test_a_helper_without_source_says_so(refused):
    namespace = {}
    exec("def h(x):\n    if x > 0:\n        x = x + 1\n    return x\n", namespace)

    def k(X, Y):
        Y[0] = namespace["h"](X[0])

    error = refused(
        CaptureError, lambda: tt.kernel(k).trace(F16, F16), "no source text", "file or a notebook"
    )
    assert (error.span.file, error.span.line) == ("<string>", 2)


@pytest.mark.parametrize(
    ("function", "counterpart"),
    [
        (np.sum, "tt.sum"),
        (np.max, "tt.max"),
        (np.min, "tt.min"),
        (np.prod, "tt.prod"),
        (np.mean, "tt.mean"),
        (np.any, "tt.any"),
        (np.all, "tt.all"),
        (np.argmax, "tt.argmax"),
        (np.add.reduce, "tt.sum"),
        (np.maximum.reduce, "tt.max"),
        (np.transpose, "tt.transpose"),
        (np.zeros_like, "tt.zeros(x.shape, x.dtype)"),
        (np.expm1, "tt.exp(x) - 1"),
        (np.square, "x * x"),
        (np.logical_not, "x == 0"),
        (np.isfinite, "tt.isinf"),
        (np.cumsum, "tt.cumsum(x, axis)"),
        (np.maximum.accumulate, "tt.cummax"),
        (np.add.accumulate, "tt.cumsum"),
        (np.median, "functions of tt"),
    ],
)
def test_numpy_functions_without_a_place_name_the_counterpart(refused, function, counterpart):
    @tt.kernel
    def k(X, Y):
        Y[:] = function(X[:])

    refused(CaptureError, lambda: k.trace(F16, F16), "NumPy's", counterpart, at="function(X[:])")


UNARY = (
    "exp",
    "exp2",
    "log",
    "log2",
    "sqrt",
    "sin",
    "cos",
    "tanh",
    "floor",
    "ceil",
    "rint",
    "abs",
    "negative",
)
BINARY = ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "floor_divide", "remainder")


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_ufuncs_with_a_counterpart_are_it(name):
    function = getattr(np, name)
    count = 1 if name in UNARY else 2

    @tt.kernel
    def k(X, Y):
        Y[:] = function(*[X[:]] * count)

    x = np.array([0.25, 1.5, 2.0, 3.75], "f4")
    y = np.zeros_like(x)
    interpret(k.trace(x, y), x, y)
    np.testing.assert_allclose(y, function(*[x.astype("f8")] * count), rtol=1e-6)


def test_ufuncs_with_options_are_refused(refused):
    @tt.kernel
    def k(X, Y):
        Y[:] = np.exp(X[:], where=True)

    refused(CaptureError, lambda: k.trace(F16, F16), "exp with where", "tt.exp")


def test_what_numpy_knows_during_capture():
    @tt.kernel
    def k(X, Y):
        Y[0] = float(np.ndim(X[:]) + np.size(X[:]) + np.shape(X[:])[0])

    y = np.zeros(16, "f4")
    interpret(k.trace(F16, y), y.copy(), y)
    assert y[0] == 33


SLIPS = {
    "fewer axes of a store": (
        lambda X, Y: [Y.__setitem__(i, X[tt.ds(i * 8, 8)]) for i in range(1)],
        ("tensor 'Y'", "(8,)", "()", "Y[tt.ds(start, 8)]"),
    ),
    "sizes of a store": (
        lambda X, Y: Y.__setitem__(tt.ds(0, 4), X[tt.ds(0, 5)]),
        ("tensor 'Y'", "(5,)", "(4,)", "sizes 5 and 4 differ"),
    ),
    "sizes of operands": (lambda X, Y: X[:] + X[tt.ds(0, 5)], ("(16,) and (5,)", "sizes 5 and 16 differ")),
    "subscripts": (lambda X, Y: X[0, 0], ("2 subscripts", "tensor 'X'", "X[0]")),
    "two dots": (lambda X, Y: X[..., ...], ("one `...`", "`:`")),
    "step": (lambda X, Y: X[::0], ("step", "other than 0")),
    "a float index": (lambda X, Y: X[1.5], ("1.5", "//")),
    "a divided index": (lambda X, Y: X[tt.cast(3, "int32") / 2], ("subscript", "//")),
    "a divided start": (lambda X, Y: X[tt.ds(tt.cast(3, "int32") / 2, 4)], ("start of tt.ds", "//")),
    "a tensor as start": (lambda X, Y: X[tt.ds(X, 4)], ("tensor 'X'", "A[0]")),
    "a text as size": (lambda X, Y: X[tt.ds(0, "8")], ("'8'", "such as 8")),
    "a negative size": (lambda X, Y: X[tt.ds(0, -8)], ("-8 is negative", "0 or more")),
    "a mask as index": (lambda X, Y: X[X[:] > 0], ("bool[16]", "mask=")),
    "a list as index": (lambda X, Y: X[[0, 1]], ("[0, 1]", "`for`")),
    "two tiles to sum": (lambda X, Y: tt.sum(X[:], Y[:]), ("axis", "is no int", "where=")),
    "two values to max": (lambda X, Y: tt.max(X[:], 0.0), ("axis", "0.0", "tt.maximum")),
    "two tiles to min": (lambda X, Y: tt.min(X[:], Y[:]), ("axis", "tt.minimum")),
    "axes of argmax": (lambda X, Y: tt.argmax(X[:], axis=(0,)), ("(0,)", "one axis")),
    "axis out of range": (lambda X, Y: tt.sum(X[:], axis=1), ("1 axis", "no axis 1", "from -1 to 0")),
    "an axis twice": (lambda X, Y: tt.sum(X[:], axis=(0, 0)), ("twice", "once")),
    "vectors in mma": (lambda X, Y: tt.mma(X[:], X[:], X[:]), ("matrices", "tt.matmul")),
    "minus of bool": (lambda X, Y: -(X[:] > 0), ("negative", "bool", "~")),
    "difference of bools": (lambda X, Y: (X[:] > 0) - (X[:] > 1), ("subtract", "bool", "^")),
    "bits of floats": (lambda X, Y: X[:] & X[:], ("float32", "compare first")),
    "shift of floats": (lambda X, Y: X[:] << 1, ("left_shift", 'astype("int32")')),
    "iota of a shape": (lambda X, Y: tt.iota((4, 10), "float32"), ("one axis", "rows[:, None]")),
    "negative iota": (lambda X, Y: tt.iota(-4, "float32"), ("-4 is negative", "0 or more")),
    "a text as extent": (lambda X, Y: tt.zeros("16", "float32"), ("16",)),
    "a fraction as extent": (lambda X, Y: tt.zeros((2.5,), "float32"), ("2.5", "such as 2")),
    "a dtype": (lambda X, Y: X[:].astype("flaot32"), ("'flaot32'", 'did you mean "float32"')),
    "no dtype": (lambda X, Y: tt.zeros((4,)), ("'dtype'", "tt.zeros(shape, dtype)")),
    "no argument": (lambda X, Y: tt.exp(), ("'x'", "tt.exp(x)")),
    "an unknown argument": (lambda X, Y: tt.sum(X[:], axes=0), ("'axes'", "tt.sum(x, axis=None")),
    "an incomplete ds": (lambda X, Y: X[tt.ds(0)], ("'size'", "tt.ds(start, size)")),
    "a misspelled function": (lambda X, Y: tt.paralell(4), ("paralell", "tt.parallel?")),
    "a misspelled attribute": (lambda X, Y: X.shpe, ("shpe", ".shape?")),
    "a method of arrays": (lambda X, Y: X[:].sum(), ("sum", "tt.sum(x)")),
    "a method on a tensor": (lambda X, Y: X.sum(), ("sum", "tt.sum(A[...])")),
    "item": (lambda X, Y: X[0].item(), ("item", "the tile itself")),
    "load of a tensor": (lambda X, Y: X.load(), ("load", "A.at[idx].load()")),
    "a called at": (lambda X, Y: X.at(0), ("not callable", "A.at[idx]")),
    "an unknown attribute": (lambda X, Y: X[0].zzz, ("zzz", "astype", "reshape")),
    "a format": (lambda X, Y: f"{X[0]:.3f}", ("format '.3f'", "store it to a tensor")),
    "math": (lambda X, Y: math.exp(X[0]), ("float", "tt.exp")),
    "sum of Python": (lambda X, Y: sum(X[:]), ("iterated", "tt.sum")),
    "a number beyond the dtype": (
        lambda X, Y: tt.full((4,), 300, "int8"),
        ("300 does not fit int8", "in that range", "wider"),
    ),
    "a method without argument": (lambda X, Y: X[:].astype(), ("'dtype'", "astype(dtype)")),
    "a method with an unknown argument": (
        lambda X, Y: X.at[0].load(fil=0),
        ("'fil'", "load(fill=0, bounds="),
    ),
    "a tuple as extent": (lambda X, Y: tt.parallel((4, 5)), ("(4, 5)", "tt.parallel(4, 5)")),
    "a tensor as extent": (lambda X, Y: tt.serial(X), ("tensor 'X'", "X.shape[0]")),
    "a fraction as extent of a loop": (lambda X, Y: tt.serial(3.5), ("3.5", "tt.cdiv")),
    "bounds": (lambda X, Y: X.at[0].load(bounds="x"), ("bounds='x'", '"fill"')),
}


@pytest.mark.parametrize("name", SLIPS)
def test_slips_name_the_thing_and_the_remedy(refused, name):
    function, words = SLIPS[name]

    @tt.kernel
    def k(X, Y):
        function(X, Y)

    error = refused(CaptureError, lambda: k.trace(F16, F16), *words)
    assert error.suggestion
    assert error.span.file == __file__
    assert error.span.line == function.__code__.co_firstlineno


def test_an_axis_of_a_scalar_array(refused):
    @tt.kernel
    def k(a):
        a[0] = 1.0

    refused(CaptureError, lambda: k.trace(SCALAR), "tensor 'a'", "a[()]", at="a[0]")


def test_inner_extents_of_a_product(refused):
    @tt.kernel
    def k(X, Y):
        Y[...] = tt.mma(X[:], X[tt.ds(0, 3), :], X[:])

    refused(
        CaptureError,
        lambda: k.trace(M44, M44),
        "inner extents",
        "(..., K, N)",
        "K is 4 and 3",
        "tt.transpose",
    )


def test_a_fraction_stored_to_integers(refused):
    @tt.kernel
    def k(X):
        X[:] = 1.5

    error = refused(CaptureError, lambda: k.trace(I16), "1.5", "int32", "write an int")
    assert "astype" not in str(error)


def test_state_that_changes_its_shape(refused):
    @tt.kernel
    def k(X, Y):
        s = tt.zeros((), "float32")
        for i in tt.serial(4):
            s = s + X[tt.ds(i * 4, 4)]
        Y[0] = tt.sum(s)

    error = refused(CaptureError, lambda: k.trace(F16, F16), "'s'", 's = tt.zeros((4,), "float32")')
    assert "astype" not in error.suggestion


def test_a_number_assigned_in_a_branch(refused):
    @tt.kernel
    def k(X):
        for i in tt.serial(4):
            s = 0.0
            if i > 3:
                s = 1.0
            X[i] = s

    error = refused(CaptureError, lambda: k.trace(F16), "'s'", 's = tt.full((), 0.0, "float32")', at="s")
    assert "every path" not in str(error)


def test_a_predicate_that_is_no_function(refused):
    @tt.kernel
    def k(X):
        for i in tt.serial(4, where=i < 2):  # noqa: B020, F821 the slip under test
            X[i] = 0.0

    refused(
        CaptureError, lambda: k.trace(F16), "where= reads the loop variable 'i'", "where=lambda i: ", at="i"
    )


def test_a_predicate_of_other_parameters(refused):
    @tt.kernel
    def k(X):
        for i, _j in tt.serial(4, 4, where=lambda i: i < 2):
            X[i] = 0.0

    at = "tt.serial(4, 4, where=lambda i: i < 2)"
    refused(CaptureError, lambda: k.trace(F16), "where=", "2 indices", "where=lambda i, _j: ", at=at)


def test_a_region_that_is_not_called(refused):
    @tt.kernel
    def k(X):
        for i in tt.parallel:
            X[i] = 0.0

    refused(
        CaptureError, lambda: k.trace(F16), "tt.parallel is not called", "tt.parallel(n)", at="tt.parallel"
    )


def test_a_name_of_one_iteration_read_after_the_loop(refused):
    @tt.kernel
    def k(X, Y):
        for i in tt.serial(4):
            t = X[i]
        Y[0] = t

    @tt.kernel
    def index(X, Y):
        for i in tt.serial(4):
            X[i] = 0.0
        Y[0] = i * 1.0

    refused(CaptureError, lambda: k.trace(F16, F16), "'t'", 't = tt.zeros((), "float32")', at="t")
    refused(CaptureError, lambda: index.trace(F16, F16), "'i'", "from the extent", at="i")


def test_a_store_in_a_reduction_names_the_tensor(refused):
    @tt.kernel
    def k(X, Y):
        s = tt.zeros((), "float32")
        for i in tt.reduce(4):
            s = s + X[i]
            Y[i] = s

    error = refused(IllegalError, lambda: k.trace(F16, F16), "memory 'Y'", "tt.serial")
    assert "@" not in error.message


def test_a_misspelled_dtype_of_a_spec():
    with pytest.raises(ArgumentError, match='did you mean "float32"'):
        tt.spec((3,), "flot32")


def test_competing_writes_use_the_python_name(refused):
    @tt.kernel
    def k(X, Y):
        s = tt.zeros((), "float32")
        for i in tt.parallel(4):
            s = X[i] * 2
            Y[i] = s

    error = refused(IllegalError, lambda: k.trace(F16, F16), "'s'", "indices", "another name", "local")
    assert "%" not in error.message


@pytest.mark.parametrize("value", [[4], "4", 0, None])
def test_bad_constants_are_named_with_their_values(refused, value):
    @tt.kernel
    def k(X, *, b):
        for i in tt.parallel(tt.cdiv(X.shape[0], b)):
            X[i] = 0.0

    refused(CaptureError, lambda: k.trace(F16, b=value), f"b={value!r}", "check the constants")


def test_a_misspelled_constant(refused):
    @tt.kernel
    def k(X, *, block=4):
        X[0] = float(block)

    refused(ArgumentError, lambda: k.trace(F16, blok=3), "blok", "did you mean block?")


def test_an_array_of_objects(refused):
    @tt.kernel
    def k(X):
        X[:] = 0.0

    with pytest.raises(ArgumentError) as info:
        k.trace(np.array([1], object))
    assert "object" in info.value.message
    assert "X.astype(numpy.float32)" in info.value.suggestion


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("zeros", ((), "f4")),
        ("ones", ((), "f4")),
        ("full", ((), 1, "f4")),
        ("eye", (3, "f4")),
        ("exp", (1.0,)),
    ],
)
def test_outside_of_a_kernel_the_function_is_named(refused, name, arguments):
    function = getattr(tt, name)
    refused(CaptureError, lambda: function(*arguments), f"tt.{name} is only meaningful", "tt.kernel")


def test_a_reduction_outside_of_a_kernel_is_named(refused):
    refused(CaptureError, lambda: tt.sum(1.0), "tt.sum is only meaningful", at="tt.sum(1.0)")


def test_methods_are_no_kernels(refused):
    def define():
        class Holder:
            @tt.kernel
            def method(self, X):
                X[0] = 1.0

        return Holder

    refused(CaptureError, define, "'self'", "functions, not methods", "outside of the class", at="def")


def test_a_scalar_without_dtype(refused):
    def k(X, a: tt.Scalar):
        X[0] = a

    refused(CaptureError, lambda: tt.kernel(k), "parameter a", 'tt.Scalar["float32"]', at="def")


def test_a_scalar_without_dtype_in_text(refused):
    def k(X, a: "tt.Scalar"):
        X[0] = a

    refused(CaptureError, lambda: tt.kernel(k), "parameter a", 'tt.Scalar["float32"]', at="def")


@pytest.mark.parametrize("dtype", ["f99", "flaot32", "float8_e5m2", None, object()])
def test_a_scalar_of_an_unknown_dtype(refused, dtype):
    refused(
        ArgumentError, lambda: tt.Scalar[dtype], "int8", "float64", "such as tt.Scalar", at="tt.Scalar[dtype]"
    )


def test_source_that_is_no_python(refused):
    def k(X):
        X[0] = 1.0

    error = refused(CaptureError, lambda: tt.kernel(k, source="def k(X:\n    pass\n"), "no Python", "def")
    assert error.span.line == 1
    assert error.suggestion


def test_conditions_that_are_numbers_follow_numpy():
    @tt.kernel
    def k(X, Y):
        Y[:] = tt.where(X[:], 1.0, 2.0)

    x = np.array([0.0, -0.0, 1.0, math.nan, math.inf], "f4")
    y = np.zeros_like(x)
    interpret(k.trace(x, y), x, y)
    np.testing.assert_array_equal(y, np.where(x, 1.0, 2.0))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.zeros(4, "f4"),), ("(X, a)", "not 1", "one array or number each")),
        ((np.zeros(3, "f4"), 1), ("argument X", "(4,)", "(3,)", "trace the kernel for (3,)")),
        ((np.zeros(4, "f4"), 300), ("argument a", "int8", "300", "from -128 to 127")),
    ],
)
def test_wrong_arguments_of_the_interpreter_have_a_remedy(arguments, words):
    @tt.kernel
    def k(X, a: tt.Scalar[np.int8]):
        X[0] = a

    program = k.trace(tt.spec((4,), "float32"), 1)
    with pytest.raises(TileError) as info:
        interpret(program, *arguments)
    assert info.value.suggestion
    for word in words:
        assert word in str(info.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.astype(x),
        lambda x: tt.zeros((2,), x),
        lambda x: tt.full((2,), 1, x[0]),
        lambda x: tt.sum(x, dtype=x),
        lambda x: tt.zeros(np.array(2.5), "float32"),
        lambda x: tt.transpose(x, 1.5),
        lambda x: tt.transpose(x, 1),
        lambda x: np.ones((4, 4)) @ x,
        lambda x: tt.concat(np.array(2)),
        lambda x: tt.split(x, np.array(1.5)),
        lambda x: tt.sum(x, policy=np.zeros(3)),
        lambda x: tt.cumsum(x, 0) + tt.scan(x, 0, tt.max, policy=np.zeros(3)),
    ],
)
def test_arguments_of_a_wrong_kind_are_named_with_a_remedy(call):
    @tt.kernel
    def kernel(X, Y):
        Y[0, 0] = tt.sum(call(X[:, :]))

    with pytest.raises(CaptureError) as caught:
        kernel.trace(M44, M44)
    # An error of Python's or NumPy's own would be its cause.
    assert caught.value.__cause__ is None
    assert caught.value.suggestion


def test_arguments_that_numpy_takes_for_ints_are_taken():
    @tt.kernel
    def kernel(X, Y):
        parts = tt.split(X[:, :], np.array(2))
        Y[tt.ds(0, 2), :] = tt.transpose(tt.reshape(parts[0], np.array([4, 2])), np.array([1, 0]))

    program = kernel.trace(M44, M44)
    x, y = np.arange(16, dtype="f4").reshape(4, 4), np.zeros((4, 4), "f4")
    interpret(program, x, y)
    np.testing.assert_array_equal(y[:2], x[:2].reshape(4, 2).T)
