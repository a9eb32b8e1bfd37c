"""Cross entropy and its gradient: sizes, ignored labels, special values, what is refused."""

import numpy as np
import pytest
import torch

import tvm_tile as tt
from tvm_tile.contrib import kernels
from tvm_tile.contrib.kernels import reference

from .case import check, normal, unwritten


def arguments(shape, dtype="float32", seed=1):
    rng = np.random.default_rng(seed)
    labels = np.asarray(rng.integers(0, max(shape[-1], 1), shape[:-1]))
    return normal(rng, shape, dtype) * 3, labels, unwritten(shape[:-1], "float32"), unwritten(shape, dtype)


@pytest.mark.parametrize("shape", [(4, 64), (3, 37), (2, 3, 101), (5, 1), (13,), (0, 5)])
def test_cross_entropy_equals_the_oracle(execute, shape):
    logits, labels, loss, grad = arguments(shape)
    execute(kernels.cross_entropy, logits, labels, loss, grad, block=32)
    expected = reference.cross_entropy(logits, labels)
    check(loss, expected[0])
    check(grad, expected[1])


@pytest.mark.parametrize("ignored", [-100, -1, 9, 2**31, -(2**63)])
def test_ignored_labels_have_no_loss_and_no_gradient_as_in_torch(execute, ignored):
    logits, labels, _, grad = arguments((6, 9), "float64")
    loss = unwritten((6,), "float64")
    labels[[1, 4]] = ignored
    execute(kernels.cross_entropy, logits, labels, loss, grad, block=4)
    x = torch.from_numpy(logits).requires_grad_()
    y = torch.from_numpy(np.where(labels == ignored, -100, labels))
    expected = torch.nn.functional.cross_entropy(x, y, reduction="none")
    expected.sum().backward()
    check(loss, expected.detach().numpy())
    check(grad, x.grad.numpy())
    assert (loss[[1, 4]] == 0).all()
    assert (grad[[1, 4]] == 0).all()


def test_rows_without_classes_are_ignored(execute):
    _, labels, loss, grad = arguments((3, 0))
    execute(kernels.cross_entropy, np.zeros((3, 0), "f4"), labels, loss, grad)
    assert (loss == 0).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_labels_of_every_integer_dtype(execute, dtype):
    logits, labels, loss, grad = arguments((6, 9))
    labels = labels.astype(dtype)
    labels[2] = np.iinfo(dtype).max
    execute(kernels.cross_entropy, logits, labels, loss, grad)
    expected = reference.cross_entropy(logits, np.where(labels > 9, -1, labels.astype("i8")))
    check(loss, expected[0])
    check(grad, expected[1])


def test_the_gradient_is_that_of_the_loss(execute):
    logits, labels, _, grad = arguments((3, 7), "float64")
    loss = unwritten((3,), "float64")
    execute(kernels.cross_entropy, logits, labels, loss, grad)
    for i in range(7):
        shifted = logits.copy()
        shifted[:, i] += 1e-6
        difference = reference.cross_entropy(shifted, labels)[0] - loss
        np.testing.assert_allclose(difference / 1e-6, grad[:, i], atol=1e-5)


def test_large_masked_and_nan_logits(execute):
    inf, nan = np.inf, np.nan
    logits = np.array(
        [[1e4, 0, -1e4], [-inf, 2, 2], [-inf, 2, 2], [-inf] * 3, [0, nan, 0], [inf, 0, 0], [nan] * 3], "f4"
    )
    labels = np.array([2, 1, 0, 1, 0, 0, -100])
    loss, grad = unwritten((7,), "float32"), unwritten((7, 3), "float32")
    execute(kernels.cross_entropy, logits, labels, loss, grad, block=2)
    np.testing.assert_allclose(loss[:2], [2e4, np.log(2)], rtol=1e-6)
    np.testing.assert_allclose(grad[:2], [[1, 0, -1], [0, -0.5, 0.5]], rtol=1e-6)
    # The label's class has no probability at all.
    assert loss[2] == inf
    assert loss[3] == inf
    np.testing.assert_allclose(grad[2:4], [[-1, 0.5, 0.5], [0, -1, 0]], rtol=1e-6)
    assert np.isnan([*loss[4:6], *grad[4], *grad[5]]).all()
    assert loss[6] == 0
    assert (grad[6] == 0).all()


def test_the_gradient_may_replace_the_logits(execute):
    logits, labels, loss, _ = arguments((4, 50))
    expected = reference.cross_entropy(logits, labels)
    execute(kernels.cross_entropy, logits, labels, loss, logits, block=16)
    check(loss, expected[0])
    check(logits, expected[1])


@pytest.mark.parametrize(
    ("shapes", "dtypes", "message"),
    [
        ([(4, 5), (5,), (4,), (4, 5)], "fiff", r"labels have shape \(5,\)"),
        ([(4, 5), (4,), (), (4, 5)], "fiff", r"loss has shape \(\)"),
        ([(4, 5), (4,), (4,), (4, 6)], "fiff", r"grad has shape \(4, 6\)"),
        ([(4, 5), (4,), (4,), (4, 5)], "ffff", "labels are float32"),
        ([(4, 5), (4,), (4,), (4, 5)], "iiff", "logits is int32"),
        ([(4, 5), (4,), (4,), (4, 5)], "fiif", "loss is int32"),
        ([(), (), (), ()], "fiff", "at least one axis"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(shapes, dtypes, message):
    names = {"f": "float32", "i": "int32"}
    with pytest.raises(tt.ArgumentError, match=message):
        kernels.cross_entropy.trace(*(tt.spec(s, names[d]) for s, d in zip(shapes, dtypes, strict=True)))
