"""Torch tensors as arguments: taken where they are, or refused by name."""

import numpy as np
import pytest
import torch

from tvm_tile.bridges.runtime.jit import cache_clear, cache_info
from tvm_tile.build import build
from tvm_tile.errors import ArgumentError
from tvm_tile.frontend import ds, kernel, parallel
from tvm_tile.semantics.interpreter import interpret


@kernel
def doubled(X, Y):
    for i in parallel(X.shape[0]):
        Y[ds(i, 1)] = X[ds(i, 1)] * 2.0


@pytest.fixture
def pair():
    return torch.arange(12.0).reshape(4, 3), torch.zeros(4, 3)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int64", "uint8", "uint16", "float16", "bfloat16", "float64"]
)
def test_every_kind_of_dtype(copy_program, dtype):
    exe = build(copy_program((4, 3), dtype))
    a = (torch.arange(12).reshape(4, 3) % 2).to(getattr(torch, dtype))
    for _ in range(2):
        b = torch.zeros(4, 3).to(a.dtype)
        exe(a, b)
        assert torch.equal(a, b)


def test_torch_numpy_and_tvm_mix(copy_program, pair):
    import tvm

    exe = build(copy_program((4, 3)))
    a, b = pair
    for source in (a, a.numpy(), tvm.runtime.tensor(a.numpy())):
        b.zero_()
        exe(source, b)
        assert torch.equal(a, b)


def test_a_kernel_call_specializes_to_tensors():
    cache_clear()
    x, y = torch.arange(5.0), torch.zeros(5)
    for _ in range(2):
        doubled(x, y)
        assert torch.equal(y, x * 2)
    doubled(torch.arange(10.0)[::2], y)
    assert torch.equal(y, torch.arange(10.0)[::2] * 2)
    assert cache_info()["specializations"].misses == 2


def test_a_tensor_that_requires_grad_is_read_but_not_written(copy_program, pair):
    exe = build(copy_program((4, 3)))
    a, b = pair
    for _ in range(3):
        b.zero_()
        exe(a.clone().requires_grad_(), b)
        assert torch.equal(a, b)
        for target in (b.clone().requires_grad_(), torch.nn.Parameter(b.clone())):
            with pytest.raises(
                ArgumentError, match=r"parameter B is written.*requires grad[\s\S]*B.detach\(\)"
            ):
                exe(a, target)
        exe(a, b)


def test_a_tensor_class_of_the_user_is_held_to_the_same(copy_program, pair):
    class Named(torch.Tensor):
        pass

    exe = build(copy_program((4, 3)))
    a, b = pair
    exe(a.as_subclass(Named), b)
    assert torch.equal(a, b)
    with pytest.raises(ArgumentError, match="requires grad"):
        exe(a, b.clone().as_subclass(Named).requires_grad_())


def test_a_tensor_without_memory_is_refused_and_one_without_elements_is_not(copy_program, pair):
    from torch._subclasses.fake_tensor import FakeTensorMode

    exe, empty = build(copy_program((4, 3))), build(copy_program((0, 3)))
    a, b = pair
    with FakeTensorMode():
        fake = torch.zeros(4, 3)
    for arguments, name in (((fake, b), "A"), ((a, fake), "B")):
        with pytest.raises(ArgumentError, match=f"parameter {name} expects a tensor in memory"):
            exe(*arguments)
    empty(torch.zeros(0, 3), torch.zeros(0, 3))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            lambda a: a.to("meta"),
            r"parameter A expects memory of the CPU, got a tensor on meta[\s\S]*A.cpu\(\)",
        ),
        (lambda a: a.to_sparse(), r"parameter A expects a dense tensor[\s\S]*A.to_dense\(\)"),
        (
            lambda a: torch.nested.nested_tensor(list(a), layout=torch.strided),
            "parameter A expects a dense tensor, got a nested one",
        ),
        (lambda a: torch._efficientzerotensor(a.shape), r"parameter A expects a tensor in memory"),
        (lambda a: a.double(), "parameter A expects dtype float32, got float64"),
        (lambda a: a.to(torch.complex64), "parameter A expects dtype float32, got complex64"),
        (lambda a: a[:2], r"parameter A expects shape \(4, 3\), got \(2, 3\)"),
        (lambda a: a.T.contiguous().T, r"strides \(3, 1\) in elements, got \(1, 4\)[\s\S]*A.contiguous\(\)"),
    ],
)
def test_what_does_not_fit_is_named_on_the_first_call_and_later(copy_program, pair, bad, message):
    a, b = pair
    for warm in (False, True):
        exe = build(copy_program((4, 3)))
        if warm:
            exe(a, b)
        with pytest.raises(ArgumentError, match=message):
            exe(bad(a), b)


def test_a_lazily_negated_tensor_is_refused_rather_than_read_with_the_wrong_sign(copy_program):
    exe = build(copy_program((4,), a_strides=(2,)))
    lazy = torch.complex(torch.ones(4), torch.ones(4)).conj().imag
    assert lazy.is_neg()
    b = torch.zeros(4)
    for _ in range(2):
        with pytest.raises(ArgumentError, match="resolve_neg"):
            exe(lazy, b)
        exe(torch.ones(8)[::2], b)
    np.testing.assert_array_equal(b, 1)


@pytest.mark.filterwarnings("ignore:.*quantize")
def test_a_quantized_tensor_is_refused_before_and_after_a_first_call(copy_program, pair):
    exe = build(copy_program((4, 3)))
    a, b = pair
    quantized = torch.quantize_per_tensor(torch.zeros(4, 3), 1.0, 0, torch.qint8)
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"parameter A expects dtype float32, got a quantized tensor"):
            exe(quantized, b)
        exe(a, b)
        assert torch.equal(a, b)


def test_the_interpreter_takes_and_refuses_the_same_tensors(copy_program, pair):
    """Symptom: it refused inputs that require grad, and read negated views with the wrong sign."""
    program = copy_program((4, 3))
    a, b = pair
    negated = torch._neg_view(a)
    for run in (build(program), lambda *arguments: interpret(program, *arguments)):
        b.zero_()
        run(a.clone().requires_grad_(), b)
        assert torch.equal(a, b)
        for arguments, message in (
            (
                (a, b.clone().requires_grad_()),
                "parameter B is written by the program, but the tensor requires",
            ),
            ((negated, b), "parameter A expects a dense tensor"),
            ((a, torch._neg_view(b)), "parameter B expects a dense tensor"),
            ((a.to("meta"), b), "parameter A expects memory of the CPU"),
            ((a.to_sparse(), b), "parameter A expects a dense tensor"),
        ):
            with pytest.raises(ArgumentError, match=message):
                run(*arguments)


def test_a_truth_value_is_true_whatever_its_byte(copy_program):
    """Symptom: the interpreter handed bytes on that are neither 0 nor 1, and generated code did not."""
    program = copy_program((5, 1), "bool")
    odd = np.array([[0], [1], [2], [128], [255]], np.uint8)
    for run in (build(program), lambda *arguments: interpret(program, *arguments)):
        out = np.zeros((5, 1), bool)
        run(odd.view(bool), out)
        np.testing.assert_array_equal(out.view(np.uint8), (odd != 0).astype(np.uint8))
