"""Loads, stores and subscripts of tensors and tiles."""

# Kernels write what the rules for plain Python advise against.
# ruff: noqa: F821

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm_tile.frontend as tt
from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.ir.ops import Cast, Extract, FromIndex, Load, Reshape, Store
from tvm_tile.ir.structure import walk
from tvm_tile.semantics.interpreter import interpret

M = tt.spec((6, 8), "float32")
F4 = tt.spec((16,), "float32")


def loaded(program, kind=Load):
    return [s for s in walk(program) if isinstance(s, kind)]


def taken(subscript, shape, *, of_tile):
    """What a subscript takes of ``arange`` in a shape, by the interpreter."""
    got = []

    @tt.kernel
    def k(X, Y):
        part = X[...][subscript] if of_tile else X[subscript]
        got.append(part)
        Y[...] = tt.reshape(part, (part.size,))

    x = np.arange(np.prod(shape), dtype="f8").reshape(shape)
    size = np.asarray(x[subscript]).size
    y = np.full(size, -1.0)
    interpret(k.trace(x, y), x, y)
    return y.reshape(got[0].shape)


literals = st.one_of(
    st.integers(-4, 3),
    st.builds(
        slice, *[st.one_of(st.none(), st.integers(-6, 6))] * 2, st.sampled_from([None, 1, 2, 3, -1, -2])
    ),
    st.none(),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(literals, max_size=4), st.booleans(), st.booleans(), st.integers(0, 4))
def test_literal_subscripts_are_those_of_numpy(items, dots, of_tile, place):
    shape = (4, 5, 4)
    while sum(i is not None for i in items) > 3:
        items = items[:-1]
    subscript = (*items[:place], ..., *items[place:]) if dots else tuple(items)
    expected = np.arange(80.0).reshape(shape)[subscript]
    np.testing.assert_array_equal(taken(subscript, shape, of_tile=of_tile), expected)


def test_views_print_as_written():
    @tt.kernel
    def k(X):
        for i in tt.parallel(4):
            X[i, :] = X[0, :]
            X[-1, 2] = X[tt.ds(i, 2), 1:7:2][0, 0]
            X[i : i + 2, 3] = X[2 * i : 2 * i + 6 : 3, -2]
            X[...] = X[i]

    views = [str(s.view) for s in walk(k.trace(M)) if isinstance(s, (Load, Store))]
    assert [v.split("[", 1)[1].replace("%i.0", "i") for v in views] == [
        "0, 0 :+ 8]",
        "i, 0 :+ 8]",
        "i :+ 2, 1 :+ 3 by 2]",
        "5, 2]",
        "(2 * i) :+ 2 by 3, 6]",
        "i :+ 2, 3]",
        "i, 0 :+ 8]",
        "0 :+ 6, 0 :+ 8]",
    ]


def test_scalars_of_the_program_subscript_and_bound():
    @tt.kernel
    def k(X, ids, n: tt.Scalar["int32"]):
        for i in tt.parallel(4):
            row = ids[i]
            X[row, tt.ds(row + 1, 2)] = 0.0
            for j in tt.serial(row):
                X[j, n] = 1.0
        for i in tt.parallel(n):
            X[i, 0] = 0.0

    program = k.trace(M, tt.spec((4,), "int32"), 3)
    first = loaded(program, Store)[0]
    assert str(first.view.subscripts[0]) == "%row.2"
    assert not loaded(program, FromIndex)


@pytest.mark.parametrize(
    ("subscript", "words"),
    [
        (lambda x: (0, 0, 0), ("3 subscripts", "2 axes")),
        (lambda x: (..., 0, ...), ("one `...`",)),
        (lambda x: [0, 1], ("cannot be a subscript",)),
        (lambda x: np.array([0, 1]), ("cannot be a subscript",)),
        (lambda x: True, ("cannot be a subscript",)),
        (lambda x: 1.5, ("cannot be a subscript",)),
        (lambda x: "a", ("cannot be a subscript",)),
        (lambda x: x[0, 0], ("float32[]", "cannot be a subscript")),
        (lambda x: x > 0, ("bool[6, 8]", "cannot be a subscript", "tt.where")),
        (lambda x: slice(None, None, 0), ("zero",)),
    ],
)
def test_other_subscripts_are_refused(refused, subscript, words):
    @tt.kernel
    def tensor(X):
        X[subscript(X[...])]

    @tt.kernel
    def tile(X):
        X[...][subscript(X[...])]

    refused(OperandError, lambda: tensor.trace(M), *words, at="X[subscript(X[...])]")
    refused(OperandError, lambda: tile.trace(M), *words, at="X[...][subscript(X[...])]")


def test_slice_of_run_time_length_is_refused(refused):
    @tt.kernel
    def k(X, *, form):
        for i in tt.parallel(4):
            X[
                {
                    "stop": slice(0, i),
                    "start": slice(i, None),
                    "step": slice(i, i + 4, i),
                    "back": slice(i, i + 4, -1),
                }[form]
            ]

    for form in ("stop", "start", "step", "back"):
        refused(CaptureError, lambda form=form: k.trace(F4, form=form), "not static", "tt.ds(start, size)")


def test_size_of_ds_is_static(refused):
    @tt.kernel
    def k(X, *, form):
        for i in tt.parallel(4):
            n = {"index": i, "tile": X[0].astype("int32"), "float": 2.5, "negative": -1}[form]
            X[tt.ds(0, n)]

    for form, word in (("index", "static"), ("tile", "static"), ("float", "2.5"), ("negative", "negative")):
        refused(CaptureError, lambda form=form: k.trace(F4, form=form), word, at="tt.ds(0, n)")


def test_start_of_ds_is_an_integer(refused):
    @tt.kernel
    def k(X):
        X[tt.ds(0.5, 2)]

    refused(CaptureError, lambda: k.trace(F4), "integer", at="tt.ds(0.5, 2)")


def test_start_of_ds_is_a_position():
    @tt.kernel
    def k(X, Y):
        Y[...] = X[tt.ds(-1, 3)]

    x, y = np.arange(1.0, 5.0), np.full(3, 9.0)
    interpret(k.trace(x, y), x, y)
    assert y.tolist() == [0.0, 1.0, 2.0]


def test_slice_of_reversed_bounds_is_empty():
    @tt.kernel
    def k(X):
        for i in tt.parallel(4):
            assert X[i + 4 : i].shape == (0,)

    k.trace(F4)


def test_ref_loads_with_fill_and_mask():
    @tt.kernel
    def k(X, Y):
        mask = tt.iota(4, "int32") < 3
        Y[...] = X.at[tt.ds(2, 4)].load(fill=-1.0, mask=mask)

    x, y = np.arange(1.0, 5.0), np.zeros(4)
    program = k.trace(x, y)
    interpret(program, x, y)
    assert y.tolist() == [3.0, 4.0, -1.0, -1.0]
    assert str(loaded(program)[0].fill) == "-1.0"


def test_ref_stores_with_mask_and_bounds():
    @tt.kernel
    def k(Y):
        Y.at[tt.ds(1, 4)].store(7, mask=tt.iota(4, "int32") != 1)
        Y.at[0].store(1.0, bounds="assume", mask=True)

    y = np.zeros(4)
    program = k.trace(y)
    interpret(program, y)
    assert y.tolist() == [1.0, 7.0, 0.0, 7.0]
    assert [s.bounds for s in loaded(program, Store)] == ["fill", "assume"]


def test_mask_broadcasts_and_may_be_an_index_comparison():
    @tt.kernel
    def k(X, Y):
        for i in tt.parallel(4):
            Y[i, :] = X.at[i, :].load(mask=i < 2, fill=5)

    x, y = np.ones((4, 3), "f4"), np.zeros((4, 3), "f4")
    interpret(k.trace(x, y), x, y)
    np.testing.assert_array_equal(y, [[1] * 3] * 2 + [[5] * 3] * 2)


def test_arguments_of_a_ref_are_checked(refused):
    @tt.kernel
    def k(X, *, form):
        match form:
            case "bounds":
                X.at[0:4].load(bounds="clip")
            case "fill":
                X.at[0:4].load(fill=X[0])
            case "mask":
                X.at[0:4].load(mask=X[0:4])
            case "shape":
                X.at[0:4].load(mask=X[0:3] > 0)

    refused(CaptureError, lambda: k.trace(F4, form="bounds"), "'clip'", at='X.at[0:4].load(bounds="clip")')
    refused(OperandError, lambda: k.trace(F4, form="fill"), "fill", at="X.at[0:4].load(fill=X[0])")
    refused(
        OperandError,
        lambda: k.trace(F4, form="mask"),
        "float32[4]",
        "x != 0",
        at="X.at[0:4].load(mask=X[0:4])",
    )
    refused(OperandError, lambda: k.trace(F4, form="shape"), "(4,)", at="X.at[0:4].load(mask=X[0:3] > 0)")


def test_fill_fits_the_dtype(refused):
    @tt.kernel
    def k(X, *, fill):
        X.at[0:4].load(fill=fill)

    integer, boolean = tt.spec((4,), "uint8"), tt.spec((4,), "bool")
    assert str(loaded(k.trace(F4, fill=float("-inf")))[0].fill) == "-inf"
    assert (
        str(loaded(k.trace(F4, fill=0.0))[0].fill) == str(loaded(k.trace(boolean, fill=False))[0].fill) == "0"
    )
    assert str(loaded(k.trace(F4, fill=-0.0))[0].fill) == "-0.0"
    assert str(loaded(k.trace(integer, fill=255))[0].fill) == "255"
    refused(OperandError, lambda: k.trace(integer, fill=256), "256", "uint8")
    refused(OperandError, lambda: k.trace(integer, fill=0.5), "0.5", "uint8")


def test_store_broadcasts_and_widens():
    @tt.kernel
    def k(X, H):
        X[...] = H[0:8]
        X[0] = 3
        X[1, :] = True
        X[2:4, tt.ds(0, 8)] = H[0:2][:, None]

    program = k.trace(M, tt.spec((8,), "float16"))
    values = [(s.value.shape, s.value.dtype) for s in loaded(program, Store)]
    assert values == [((6, 8), "float32"), ((8,), "float32"), ((8,), "float32"), ((2, 8), "float32")]


@pytest.mark.parametrize(
    ("value", "dtype", "words"),
    [
        (lambda x: x.astype("float64"), "float32", ("float64", '.astype("float32")')),
        (lambda x: x.astype("int32"), "float32", ("int32",)),
        (lambda x: 1.5, "int32", ("1.5",)),
        (lambda x: x, "int32", ("float32",)),
        (lambda x: np.float64(1.0), "float32", ("float64",)),
        (lambda x: 2, "bool", ("bool",)),
        (lambda x: 300, "int8", ("300",)),
        (lambda x: x, "float8_e5m2", ("float8_e5m2",)),
    ],
)
def test_store_never_narrows(refused, value, dtype, words):
    @tt.kernel
    def k(X, Y):
        Y[0:4] = value(X[0:4])

    refused(OperandError, lambda: k.trace(F4, tt.spec((4,), dtype)), *words, dtype, at="Y[0:4]")


def test_narrowing_that_is_written_is_done():
    @tt.kernel
    def k(X, Y):
        Y[0:4] = X[0:4].astype("float8_e5m2")

    (cast,) = loaded(k.trace(F4, tt.spec((4,), "float8_e5m2")), Cast)
    assert cast.result.dtype == "float8_e5m2"


def test_store_needs_a_shape_that_broadcasts(refused):
    @tt.kernel
    def k(X):
        part = X[0:3]
        X[0:4] = part

    refused(OperandError, lambda: k.trace(F4), "'part'", "(4,)", at="X[0:4]")


def test_index_is_stored_as_a_number(refused):
    @tt.kernel
    def k(X):
        for i in tt.parallel(4):
            X[i] = i * 2

    k.trace(F4)
    k.trace(tt.spec((4,), "int8"))
    refused(OperandError, lambda: k.trace(tt.spec((4,), "bool")), "bool")


def test_new_axis_of_a_store_is_refused(refused):
    @tt.kernel
    def k(X):
        X[None] = 0.0

    refused(OperandError, lambda: k.trace(F4), "new axis", at="X[None]")


def test_tensor_attributes():
    seen = []

    @tt.kernel
    def k(X):
        seen.append((X.shape, X.dtype, X.ndim, X.size, X.strides, repr(X)))

    k.trace(np.zeros((8, 6), "f4").T)
    k.trace(M)
    assert seen[0] == ((6, 8), "float32", 2, 48, (1, 6), "<tensor 'X' float32[6, 8]>")
    assert seen[1][4] == (8, 1)


def test_tile_attributes():
    @tt.kernel
    def k(X):
        x = X[...]
        assert (x.shape, x.dtype, x.ndim, x.size) == ((6, 8), "float32", 2, 48)
        assert repr(x) == "<tile 'x' (float32[6, 8])>"
        assert x.T.shape == (8, 6)
        assert x.reshape(4, 12).shape == x.reshape((4, -1)).shape == (4, 12)
        assert x.transpose(1, 0).shape == x.transpose().shape == (8, 6)
        assert repr(X.at[0]) == "<ref @X[0, 0 :+ 8]>"

    k.trace(M)


def test_tile_is_a_value(refused):
    @tt.kernel
    def k(X):
        x = X[...]
        x[0] = 1.0

    refused(CaptureError, lambda: k.trace(M), "tile 'x'", "tt.update", at="x[0]")


def test_whole_subscript_of_a_tile_is_the_tile():
    @tt.kernel
    def k(X):
        x = X[...]
        assert x[:] is x
        assert x[..., :] is x
        X[...] = x[None, :, :, None][0, :, :, 0]

    program = k.trace(M)
    assert len(loaded(program, Extract)) == 1
    assert len(loaded(program, Reshape)) == 1


def test_part_of_a_tile_by_index():
    @tt.kernel
    def k(X, Y):
        x = X[...]
        for i in tt.parallel(6):
            Y[i, :] = x[i, tt.ds(i, 4)]

    x, y = np.arange(48.0).reshape(6, 8), np.zeros((6, 4))
    interpret(k.trace(x, y), x, y)
    padded = np.pad(x, ((0, 0), (0, 4)))
    np.testing.assert_array_equal(y, [padded[i, i : i + 4] for i in range(6)])


def test_zero_extents():
    @tt.kernel
    def k(X, Y):
        Y[...] = X[...] * 2.0
        for i in tt.parallel(X.shape[0]):
            Y[i] = X[i]

    x, y = np.zeros((0, 3)), np.zeros((0, 3))
    interpret(k.trace(x, y), x, y)


def test_read_modify_write_of_an_element():
    @tt.kernel
    def k(X):
        for i in tt.parallel(4):
            X[i] += 1.0
            X[i,] *= 2.0

    x = np.arange(4.0)
    interpret(k.trace(x), x)
    assert x.tolist() == [2.0, 4.0, 6.0, 8.0]
