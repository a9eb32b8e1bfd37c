"""Attention: sizes, shared key heads, masks, lengths, special values, what is refused."""

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import tvm_tile as tt
from tvm_tile.contrib import kernels
from tvm_tile.contrib.kernels import reference

from .case import check, normal, unwritten

INF, NAN = np.inf, np.nan
SMALL = {"bq": 16, "bk": 16}

sizes = pytest.mark.parametrize(
    ("queries", "keys", "heads", "key_heads", "dim", "dim_v"),
    [
        (32, 32, 2, 2, 16, 16),
        (21, 37, 2, 1, 8, 5),
        (1, 1, 1, 1, 1, 1),
        (5, 0, 1, 1, 4, 4),
        (0, 5, 1, 1, 4, 4),
        (33, 17, 4, 2, 3, 8),
        (4, 4, 1, 1, 0, 2),
    ],
)


def inputs_of(queries, keys, heads=2, key_heads=2, dim=8, dim_v=8, *, dtype="float32", seed=1):
    rng = np.random.default_rng(seed)
    return (
        normal(rng, (2, heads, queries, dim), dtype),
        normal(rng, (2, key_heads, keys, dim), dtype),
        normal(rng, (2, key_heads, keys, dim_v), dtype),
        unwritten((2, heads, queries, dim_v), dtype),
    )


def by_torch(Q, K, V, **options):
    q, k, v = map(torch.from_numpy, (Q, K, V))
    return scaled_dot_product_attention(q, k, v, enable_gqa=True, **options).numpy()


@sizes
@pytest.mark.parametrize("causal", [False, True])
def test_attention_equals_the_oracle(execute, causal, queries, keys, heads, key_heads, dim, dim_v):
    Q, K, V, O = inputs_of(queries, keys, heads, key_heads, dim, dim_v)
    execute(kernels.attention, Q, K, V, O, causal=causal, **SMALL)
    check(O, reference.attention(Q, K, V, causal=causal), 4)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(20, 20), (9, 30), (30, 9)])
def test_attention_aligns_and_shares_heads_as_torch_does(execute, causal, queries, keys):
    Q, K, V, O = inputs_of(queries, keys, 6, 2, dtype="float64")
    execute(kernels.attention, Q, K, V, O, causal=causal, scale=0.7, **SMALL)
    check(O, by_torch(Q, K, V, is_causal=causal, scale=0.7), 4)


def test_large_scores_do_not_overflow(execute):
    Q, K, V, O = inputs_of(9, 40)
    Q *= 100
    execute(kernels.attention, Q, K, V, O, scale=1.0, **SMALL)
    check(O, reference.attention(Q, K, V, scale=1.0), 100)


def test_nan_in_a_query_spoils_its_output_only(execute):
    Q, K, V, O = inputs_of(9, 40)
    Q[1, 0, 3, 2] = NAN
    execute(kernels.attention, Q, K, V, O, **SMALL)
    assert np.isnan(O[1, 0, 3]).all()
    assert np.isnan(O).sum() == O.shape[-1]


def test_nan_in_a_later_key_does_not_reach_earlier_queries(execute):
    Q, K, V, O = inputs_of(40, 40)
    K[0, 1, 35, 0] = NAN
    execute(kernels.attention, Q, K, V, O, causal=True, **SMALL)
    assert np.isnan(O[0, 1, 35:]).all()
    assert np.isnan(O).sum() == 5 * O.shape[-1]


MASK_SHAPES = [(2, 2, 21, 37), (2, 1, 1, 37), (1, 2, 21, 1), (21, 37), (37,), (1, 1), ()]


@pytest.mark.parametrize("shape", MASK_SHAPES)
@pytest.mark.parametrize("kind", ["bool", "float32"])
def test_masks_broadcast_as_in_numpy(execute, shape, kind):
    Q, K, V, O = inputs_of(21, 37)
    rng = np.random.default_rng(2)
    mask = np.asarray(rng.random(shape) < 0.6) if kind == "bool" else np.asarray(rng.normal(size=shape), kind)
    execute(kernels.masked_attention, Q, K, V, mask, O, **SMALL)
    check(O, reference.masked_attention(Q, K, V, mask), 4)


@sizes
def test_masked_attention_equals_the_oracle(execute, queries, keys, heads, key_heads, dim, dim_v):
    Q, K, V, O = inputs_of(queries, keys, heads, key_heads, dim, dim_v)
    mask = np.random.default_rng(3).random((2, heads, queries, keys)) < 0.5
    execute(kernels.masked_attention, Q, K, V, mask, O, scale=0.3, **SMALL)
    check(O, reference.masked_attention(Q, K, V, mask, scale=0.3), 4)


def test_masked_attention_agrees_with_torch(execute):
    Q, K, V, O = inputs_of(21, 37, 4, 2, dtype="float64")
    mask = np.random.default_rng(4).normal(size=(2, 4, 21, 37))
    mask[mask > 0.5] = -INF
    execute(kernels.masked_attention, Q, K, V, mask, O, **SMALL)
    check(O, by_torch(Q, K, V, attn_mask=torch.from_numpy(mask)), 4)


def test_fully_masked_queries_give_zeros(execute):
    Q, K, V, O = inputs_of(5, 40)
    hidden = np.ones((5, 40), bool)
    hidden[2] = False
    hidden[3, :20] = False
    for mask in (hidden, np.where(hidden, 0.0, -INF).astype("f4")):
        O[...] = 7
        execute(kernels.masked_attention, Q, K, V, mask, O, **SMALL)
        assert (O[:, :, 2] == 0).all()
        check(O, reference.masked_attention(Q, K, V, hidden), 4)


def test_the_least_finite_mask_hides_as_infinity_does_unless_it_hides_everything(execute):
    """Masks in the wild hold the least number; a row of nothing else is then uniform, not empty."""
    Q, K, V, O = inputs_of(3, 40)
    hidden = np.zeros((3, 40), "f4")
    hidden[1, 5:] = np.finfo("f4").min
    hidden[2] = np.finfo("f4").min
    execute(kernels.masked_attention, Q, K, V, hidden, O, **SMALL)
    expected = reference.masked_attention(Q, K, V, hidden)
    check(O[:, :, :2], expected[:, :, :2], 4)
    check(O[:, :, 2], np.broadcast_to(V.mean(axis=2), O[:, :, 2].shape).astype("f8"), 4)


@pytest.mark.parametrize("four_axes", [False, True])
@pytest.mark.parametrize(("heads", "key_heads"), [(4, 2), (3, 3), (5, 1)])
def test_decoding_sees_as_many_keys_as_a_sequence_has(execute, heads, key_heads, four_axes):
    rng = np.random.default_rng(5)
    one = (1,) if four_axes else ()
    Q = normal(rng, (6, heads, *one, 8), "float32")
    K, V = normal(rng, (6, key_heads, 37, 8), "float32"), normal(rng, (6, key_heads, 37, 5), "float32")
    lengths = np.array([37, 1, 0, 16, 99, -4], "int32")
    O = unwritten((6, heads, *one, 5), "float32")
    execute(kernels.decode_attention, Q, K, V, lengths, O, bk=16)
    check(O, reference.decode_attention(Q, K, V, lengths), 4)
    assert (O[[2, 5]] == 0).all()


def test_decoding_is_the_last_row_of_causal_attention(execute):
    Q, K, V, O = inputs_of(20, 20, 4, 2)
    execute(kernels.attention, Q, K, V, O, causal=True)
    last = unwritten((2, 4, 8), "float32")
    execute(kernels.decode_attention, Q[:, :, -1].copy(), K, V, np.full(2, 20, "int64"), last)
    check(last, O[:, :, -1].astype("f8"))


def test_what_lies_beyond_a_sequence_does_not_matter(execute):
    rng = np.random.default_rng(6)
    Q, K, V = (normal(rng, shape, "float32") for shape in ((2, 2, 8), (2, 2, 37, 8), (2, 2, 37, 8)))
    lengths = np.array([20, 0], "int32")
    expected = reference.decode_attention(Q, K, V, lengths)
    K[0, :, 20:], V[0, :, 20:30], V[0, :, 30:], V[1] = NAN, NAN, INF, NAN
    O = unwritten((2, 2, 8), "float32")
    execute(kernels.decode_attention, Q, K, V, lengths, O, bk=16)
    check(O, expected, 4)


@pytest.mark.parametrize("sequences", [0, 1])
def test_decoding_of_no_sequence_and_of_empty_caches(execute, sequences):
    O = unwritten((sequences, 2, 3), "float32")
    arrays = [
        np.ones(shape, "f4") for shape in ((sequences, 2, 4), (sequences, 1, 0, 4), (sequences, 1, 0, 3))
    ]
    execute(kernels.decode_attention, *arrays, np.full(sequences, 9, "int32"), O)
    assert (O == 0).all()


def spec(*shape, dtype="float32"):
    return tt.spec(shape, dtype)


Q4, K4 = spec(2, 4, 5, 8), spec(2, 2, 7, 8)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("attention", [Q4, spec(2, 3, 7, 8), spec(2, 3, 7, 8), Q4], "4 query heads do not share 3 key heads"),
        ("attention", [Q4, spec(2, 0, 7, 8), spec(2, 0, 7, 8), Q4], "4 query heads do not share 0 key heads"),
        ("attention", [Q4, spec(2, 2, 7, 9), K4, Q4], r"K has shape \(2, 2, 7, 9\)"),
        ("attention", [Q4, spec(3, 2, 7, 8), K4, Q4], r"K has shape \(3, 2, 7, 8\)"),
        ("attention", [Q4, K4, spec(2, 2, 6, 8), Q4], r"V has shape \(2, 2, 6, 8\)"),
        ("attention", [Q4, K4, K4, spec(2, 4, 5, 9)], r"O has shape \(2, 4, 5, 9\)"),
        ("attention", [Q4, spec(2, 7, 8), spec(2, 7, 8), Q4], r"K has shape \(2, 7, 8\), not \(batch"),
        ("attention", [spec(2, 4, 8), K4, K4, spec(2, 4, 8)], r"Q has shape \(2, 4, 8\)"),
        ("attention", [Q4, K4, spec(2, 2, 7, 8, dtype="float16"), Q4], "V is float16"),
        (
            "attention",
            [spec(2, 4, 5, 8, dtype="int8"), *2 * [spec(2, 2, 7, 8, dtype="int8")], Q4],
            "Q is int8",
        ),
        ("masked_attention", [Q4, K4, K4, spec(5, 6, dtype="bool"), Q4], r"do not broadcast"),
        ("masked_attention", [Q4, K4, K4, spec(3, 2, 4, 5, 7, dtype="bool"), Q4], r"mask has shape \(3, 2"),
        ("masked_attention", [Q4, spec(2, 2, 1, 8), spec(2, 2, 1, 8), spec(5, 7), Q4], r"mask has shape"),
        ("masked_attention", [Q4, K4, K4, spec(5, 7, dtype="int32"), Q4], "neither bool nor float"),
        ("decode_attention", [Q4, K4, K4, spec(2, dtype="int32"), Q4], "not one query"),
        ("decode_attention", [spec(2, 4, 8), K4, K4, spec(4, dtype="int32"), spec(2, 4, 8)], r"not \(2,\)"),
        ("decode_attention", [spec(2, 4, 8), K4, K4, spec(2), spec(2, 4, 8)], "lengths are float32"),
        ("decode_attention", [spec(2, 4, 8), K4, K4, spec(2, dtype="int32"), spec(2, 4, 7)], "O has shape"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(name, arguments, message):
    with pytest.raises(tt.ArgumentError, match=message):
        getattr(kernels, name).trace(*arguments)
