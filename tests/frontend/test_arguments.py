"""Arguments of a capture: arrays, specs, scalars and constants."""

# Kernels write what the rules for plain Python advise against.
# ruff: noqa: F821

import ml_dtypes
import numpy as np
import pytest

import tvm_tile.frontend as tt
from tvm_tile.errors import ArgumentError
from tvm_tile.ir.ops import Store
from tvm_tile.ir.structure import walk
from tvm_tile.ir.values import Memory, Value


@tt.kernel
def copy(X, Y):
    Y[...] = X[...]


@tt.kernel
def scale(X, alpha: tt.Scalar["float32"], n: "tt.Scalar['int32']", *, bm, bn=4):
    for i in tt.parallel(n):
        X[i] = X[i] * alpha + float(bm * bn)


def memory(array):
    @tt.kernel
    def k(X):
        pass

    return k.trace(array).params[0]


def test_parameters_become_memories_and_scalars():
    program = scale.trace(np.zeros(8, "f4"), 2.0, 3, bm=1)
    x, alpha, n = program.params
    assert x == Memory("X", (8,), "float32")
    assert isinstance(alpha, Value)
    assert (alpha.name, str(alpha.type), str(n.type)) == ("alpha", "float32[]", "int32[]")
    assert scale.signature.scalars == {"alpha": "float32", "n": "int32"}
    assert scale.signature.tensors == ("X",)
    assert scale.signature.constants == {"bm": tt_required(), "bn": 4}


def tt_required():
    import sys

    return sys.modules["tvm_tile.frontend.kernel"].REQUIRED


def test_value_of_a_scalar_is_not_in_the_program():
    x = tt.spec((8,), "float32")
    assert scale.trace(x, 2.0, 3, bm=1) == scale.trace(x, np.float32(7.5), np.int64(4), bm=1)
    assert scale.trace(x, 2.0, 3, bm=1) == scale.trace(x, tt.spec((), "float32"), 3, bm=1)
    assert scale.trace(x, 2.0, 3, bm=1) != scale.trace(x, 2.0, 3, bm=2)


@pytest.mark.parametrize(
    ("args", "constants", "words"),
    [
        ((), {}, ("takes 3 arguments (X, alpha, n)", "X, alpha, n missing")),
        ((1, 2), {"bm": 1}, ("n missing",)),
        ((1, 2, 3, 4), {"bm": 1}, ("not 4", "by name")),
        ((1, 2, 3), {}, ("needs the constant bm",)),
        ((1, 2, 3), {"bm": 1, "bq": 2}, ("no constant bq", "bm, bn")),
        ((1, 2, 3), {"bm": 1, "X": 2}, ("X", "twice")),
    ],
)
def test_wrong_arguments_are_named(refused, args, constants, words):
    error = refused(ArgumentError, lambda: scale.trace(*args, **constants), "scale", *words)
    assert error.span.file == __file__


def test_positional_parameters_may_be_named():
    x = tt.spec((8,), "float32")
    assert scale.trace(x, n=3, alpha=2.0, bm=1) == scale.trace(x, 2.0, 3, bm=1)


@pytest.mark.parametrize(
    ("alpha", "n", "words"),
    [
        ("2.0", 3, ("argument alpha", "float32")),
        (2.0, 2.5, ("argument n", "2.5", "int32")),
        (2.0, 2**31, ("argument n", "int32")),
        (2.0, True, ("argument n",)),
        (None, 3, ("argument alpha",)),
        (np.zeros(3), 3, ("argument alpha",)),
        (tt.spec((), "float64"), 3, ("argument alpha",)),
        (1j, 3, ("argument alpha",)),
    ],
)
def test_scalars_are_numbers_of_their_dtype(refused, alpha, n, words):
    refused(ArgumentError, lambda: scale.trace(tt.spec((8,), "float32"), alpha, n, bm=1), *words)


def test_strides_are_in_elements_and_normal():
    x = np.zeros((4, 6), "f4")
    assert memory(x).strides is None
    assert memory(x.T).strides == (1, 6)
    assert memory(x[::2, ::3]).strides == (12, 3)
    assert memory(x[:1]).strides is None
    assert memory(x[:, :1].T).strides == (4, 6)
    assert memory(x[:, ::-1]).strides == (6, -1)
    assert memory(np.broadcast_to(np.zeros(3, "f4"), (2, 3))).strides == (0, 1)
    assert memory(x[:0, ::2]).strides is None
    assert memory(tt.spec((4, 6), "float32", strides=(6, 1))).strides is None
    assert memory(tt.spec((4, 6), "float32", strides=(1, 4))) == memory(np.zeros((6, 4), "f4").T)


def test_strides_within_an_element_are_refused(refused):
    record = np.zeros(4, [("a", "f4"), ("b", "i1")])
    refused(ArgumentError, lambda: copy.trace(record["a"], np.zeros(4, "f4")), "argument X", "5", "copy")


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(4, ">f4"), ("byte order",)),
        (np.zeros(4, [("a", "f4")]), ("field",)),
        (np.zeros(4, object), ("object",)),
        (np.zeros(4, "c8"), ("complex64",)),
        (np.array(["a"]), ("<U1",)),
        (np.zeros(4, "datetime64[s]"), ("<M8[s]",)),
        ([1.0, 2.0], ("list",)),
        (3.0, ("float",)),
        (np.float32(3.0), ("float32",)),
        (None, ("None",)),
    ],
)
def test_other_arguments_are_refused(refused, array, words):
    refused(ArgumentError, lambda: copy.trace(np.zeros(4, "f4"), array), "argument Y", *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((-1,), "float32"), ("negative", "-1")),
        (((2.5,), "float32"), ("2.5",)),
        (((2,), "float31"), ("float31",)),
        (((2,), "float32", (1, 2)), ("strides (1, 2)", "(2,)")),
        (((2,), "float32", "ab"), ("strides",)),
        ((None, "float32"), ("None",)),
    ],
)
def test_specs_are_checked(refused, arguments, words):
    refused(ArgumentError, lambda: tt.spec(*arguments), *words)


def test_specs_take_many_spellings():
    assert tt.spec(4, np.float32) == tt.spec([4], "float32") == tt.spec(np.array([4]), np.dtype("f4"))
    assert tt.spec((), "bool").shape == ()
    assert tt.spec((3,), ml_dtypes.bfloat16).dtype == "bfloat16"


def test_small_floats_of_numpy():
    assert memory(np.zeros(3, ml_dtypes.bfloat16)).dtype == "bfloat16"
    assert memory(np.zeros(3, ml_dtypes.float8_e4m3fn)).dtype == "float8_e4m3fn"


def test_torch_tensors():
    import torch

    assert memory(torch.zeros(4, 6)) == Memory("X", (4, 6), "float32")
    assert memory(torch.zeros(4, 6, dtype=torch.bfloat16).T) == Memory("X", (6, 4), "bfloat16", (1, 6))
    assert memory(torch.zeros(4, dtype=torch.bool)).dtype == "bool"


def test_torch_dtype_that_there_is_not_is_refused(refused):
    import torch

    refused(ArgumentError, lambda: memory(torch.zeros(4, dtype=torch.complex64)), "complex64")


def test_objects_with_array_interfaces():
    class Interface:
        def __init__(self, array):
            self.shape, self.dtype = array.shape, array.dtype
            self.__array_interface__ = array.__array_interface__

    class Exchange:
        shape, dtype, strides = (3, 2), "float32", (1, 3)

        def __dlpack__(self):
            raise NotImplementedError

    x = np.zeros((4, 6), "f4")
    assert memory(Interface(x)) == memory(x)
    assert memory(Interface(x.T)) == memory(x.T)
    assert memory(Exchange()).strides == (1, 3)


def test_scalar_annotations_as_text_of_local_names():
    local = tt

    @tt.kernel
    def k(X, a: "local.Scalar['float64']", b: "float"):
        X[0] = b[0].astype("float32") if a is None else a.astype("float32")

    assert k.signature.scalars == {"a": "float64"}
    assert k.signature.tensors == ("X", "b")
    assert local is tt


def test_constants_may_be_any_python_object():
    @tt.kernel
    def k(X, *, act=None, size=(2, 3)):
        x = X[0 : size[0]]
        X[0 : size[0]] = act(x) if act is not None else x

    x = tt.spec((8,), "float32")
    assert len(k.trace(x, act=tt.exp).body.statements) == 3
    assert len([s for s in walk(k.trace(x)) if isinstance(s, Store)]) == 1


class Untold:
    """Has an array's attributes, but not their meaning."""

    dtype = "float32"

    def __init__(self, shape, strides=None):
        self.shape = shape
        self.strides = strides


@pytest.mark.parametrize("argument", [Untold("ab"), Untold((3, None)), Untold((3,), ("x",)), Untold(5)])
def test_an_array_that_does_not_tell_its_shape_is_named(argument):
    with pytest.raises(ArgumentError, match="argument X, a Untold, does not tell its shape"):
        copy.trace(argument, tt.spec((3,), "float32"))
    assert copy.trace(Untold((3,)), tt.spec((3,), "float32")).tensors[0].shape == (3,)


def test_a_class_is_no_array():
    with pytest.raises(ArgumentError, match="argument X is no array but type"):
        copy.trace(np.ndarray, tt.spec((3,), "float32"))
