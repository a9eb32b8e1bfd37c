"""Einstein summation against NumPy's."""

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.errors import OperandError
from tvm_tile.ir.ops import Mma
from tvm_tile.ir.structure import walk

RNG = np.random.default_rng(5)


def traced(spec, arrays, out, **options):
    names = [f"A{k}" for k in range(len(arrays))]
    loaded = ", ".join(f"{name}[...]" for name in names)
    source = (
        f"def k({', '.join(['Y', *names])}):\n    for _ in tt.parallel(1):\n"
        f"        Y[...] = tt.einsum(spec, {loaded}, **options)\n"
    )
    namespace = {"tt": tt, "spec": spec, "options": options}
    exec(source, namespace)
    return tt.kernel(namespace["k"], source=source).trace(out, *arrays)


def arrays_of(shapes, dtype):
    return [RNG.integers(-3, 4, shape).astype(dtype) for shape in shapes]


CASES = [
    ("ij,jk->ik", [(3, 5), (5, 7)]),
    ("ij,jk", [(3, 5), (5, 7)]),
    ("bik,bkj->bij", [(2, 3, 5), (2, 5, 7)]),
    ("ii", [(5, 5)]),
    ("ii->i", [(5, 5)]),
    ("iij->j", [(3, 3, 4)]),
    ("iji->j", [(3, 4, 3)]),
    ("iii->i", [(3, 3, 3)]),
    ("ijij->ij", [(2, 3, 2, 3)]),
    ("i,i", [(5,), (5,)]),
    ("i,j->ji", [(5,), (3,)]),
    ("ij->", [(3, 4)]),
    ("ba", [(3, 4)]),
    ("ij,kj,kl->il", [(3, 4), (5, 4), (5, 2)]),
    ("ij,ij,kj->kj", [(3, 4), (3, 4), (5, 4)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
    ("...i,...i", [(2, 3, 4), (3, 4)]),
    ("i...->i...", [(2, 3, 4)]),
    ("i...->...i", [(2, 3, 4)]),
    ("...,...->...", [(2, 1, 4), (3, 1)]),
    ("...ij,jk", [(2, 3, 4), (4, 5)]),
    ("...", [(2, 3)]),
    ("ij,jk->ik", [(0, 5), (5, 7)]),
    ("ij,jk->ik", [(3, 0), (0, 7)]),
    ("ii->i", [(0, 0)]),
    ("ii", [(1, 1)]),
    ("a,b,c->abc", [(2,), (3,), (4,)]),
    (",->", [(), ()]),
    ("ij,j->", [(3, 4), (4,)]),
    ("i,i->i", [(1,), (5,)]),
    ("aij,bji->ab", [(2, 3, 4), (5, 4, 3)]),
    (" i j , j k -> k i ", [(3, 5), (5, 7)]),
    ("aZ,Zb->Zab", [(2, 3), (3, 4)]),
    ("...iij->...j", [(2, 3, 3, 4)]),
    ("ijk,ilm,njm,nlk,abc->", [(2, 3, 4), (2, 5, 3), (2, 3, 3), (2, 5, 4), (1, 2, 2)]),
]


@pytest.mark.parametrize("dtype", ["f4", "i4", "f2", "i1"])
@pytest.mark.parametrize(("spec", "shapes"), CASES, ids=[case[0] for case in CASES])
def test_einsum_gives_what_numpy_gives(spec, shapes, dtype):
    arrays = arrays_of(shapes, dtype)
    expected = np.einsum(spec, *[a.astype("f8") for a in arrays])
    out = np.zeros(expected.shape, "i4" if dtype == "i1" else dtype)
    tt.interpret(traced(spec, arrays, out), out, *arrays)
    np.testing.assert_allclose(out.astype("f8"), expected)


def test_contractions_are_matrix_products_in_the_accumulation_dtype():
    a, b = arrays_of([(3, 5), (5, 7)], "f2")
    (product,) = [op for op in walk(traced("ij,jk", [a, b], np.zeros((3, 7), "f2"))) if isinstance(op, Mma)]
    assert (product.a.dtype, product.acc.dtype, product.result.dtype) == ("float16", "float32", "float32")
    a, b = arrays_of([(3, 5), (5, 7)], "i1")
    (product,) = [op for op in walk(traced("ij,jk", [a, b], np.zeros((3, 7), "i4"))) if isinstance(op, Mma)]
    assert (product.a.dtype, product.acc.dtype) == ("int8", "int32")


def test_sixteen_bit_floats_round_once_through_all_operands():
    a = np.full((1, 4096), 1.0, "f2")
    out = np.zeros((), "f2")
    # In float16 the sum would stop at 2048.
    tt.interpret(traced("ij,ij,i->", [a, a, a[:, 0]], out), out, a, a, a[:, 0].copy())
    assert out == 4096


def test_a_wider_dtype_is_kept_and_the_result_may_be_narrowed_by_name():
    a, b = arrays_of([(3, 5), (5, 7)], "f2")
    out = np.zeros((3, 7), "f4")
    tt.interpret(traced("ij,jk", [a, b], out, dtype="float32"), out, a, b)
    np.testing.assert_allclose(out, a.astype("f4") @ b.astype("f4"))
    a, b = arrays_of([(3, 5), (5, 7)], "f4")
    out = np.zeros((3, 7), "f2")
    tt.interpret(traced("ij,jk", [a, b], out, dtype="float16"), out, a, b)
    np.testing.assert_allclose(out, a @ b)


@pytest.mark.parametrize(
    ("spec", "shapes", "dtype", "options", "words"),
    [
        ("ij,jk->ik", [(3, 5), (4, 7)], "f4", {}, ("'j'", "5", "4")),
        ("ii", [(3, 4)], "f4", {}, ("'i'", "3 and 4")),
        ("ij->ik", [(3, 4)], "f4", {}, ("'k'", "no operand")),
        ("ij->ii", [(3, 3)], "f4", {}, ("'i'", "twice")),
        ("ij,jk", [(3, 4)], "f4", {}, ("2 terms", "1 operand")),
        ("i1", [(3, 4)], "f4", {}, ("'1'",)),
        ("i.j", [(3, 4)], "f4", {}, ("'.'",)),
        ("......", [(3, 4)], "f4", {}, ("two ellipses",)),
        ("ij", [(3,)], "f4", {}, ("names 2 axes", "has 1")),
        ("i", [(3, 4)], "f4", {}, ("names 1 axis", "has 2")),
        ("...i->i", [(3, 4)], "f4", {}, ("->...i",)),
        ("i->i->i", [(3,)], "f4", {}, ("'-'",)),
        ("ij,jk", [(3, 5), (5, 7)], "i8", {"dtype": "int32"}, ("int32", "narrow", "int64")),
        ("i,i->i", [(5,), (5,)], "f8", {"dtype": "float32"}, ("float32", "narrow")),
        ("i,i", [(5,), (5,)], "?", {}, ("bool", "astype")),
        (3, [(3,)], "f4", {}, ("spec first",)),
    ],
)
def test_specs_that_do_not_fit_are_refused(refused, spec, shapes, dtype, options, words):
    arrays = arrays_of(shapes, dtype)
    refused(OperandError, lambda: traced(spec, arrays, np.zeros((1,), "f4"), **options), *words)
