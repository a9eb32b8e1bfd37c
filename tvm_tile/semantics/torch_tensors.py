"""Which torch tensors are arguments: the same ones for the interpreter and for generated code.

Torch is never imported here; whoever passes a tensor has imported it.
"""

from __future__ import annotations

from typing import Any

from tvm_tile.errors import ArgumentError

__all__ = ["is_torch_tensor", "plain_tensor"]


def is_torch_tensor(argument: Any) -> bool:
    """Whether it is a ``torch.Tensor`` or of a class made of it."""
    return any(base.__module__ == "torch" and base.__name__ == "Tensor" for base in type(argument).__mro__)


def plain_tensor(name: str, dtype: str, tensor: Any, *, written: bool) -> Any:
    """A torch tensor without its autograd history, if its elements are what a program would read.

    Parameters
    ----------
    name, dtype
        Of the parameter.
    written
        Whether the program writes it; autograd would not see that.

    Raises
    ------
    ArgumentError
        It is elsewhere than in CPU memory, or in no memory; sparse, nested, quantized, lazily negated; or
        written and requires grad.
    """
    if tensor.device.type != "cpu":
        raise ArgumentError(
            f"parameter {name} expects memory of the CPU, got a tensor on {tensor.device}",
            suggestion=f"{name}.cpu()",
        )
    if tensor.is_quantized:
        raise ArgumentError(
            f"parameter {name} expects dtype {dtype}, got a quantized tensor",
            suggestion=f"{name}.dequantize(), or {name}.int_repr()",
        )
    if tensor.is_nested:
        raise ArgumentError(
            f"parameter {name} expects a dense tensor, got a nested one",
            suggestion=f"{name}.to_padded_tensor(0)",
        )
    strided = str(tensor.layout) == "torch.strided"
    if not strided or tensor.is_neg():
        raise ArgumentError(
            f"parameter {name} expects a dense tensor, got one with its elements in another form",
            suggestion=f"{name}.resolve_neg()" if strided else f"{name}.to_dense()",
        )
    if tensor.numel() and not _address(tensor):
        raise ArgumentError(
            f"parameter {name} expects a tensor in memory, got a {type(tensor).__name__} without elements in "
            "any, as torch makes them to trace programs and for gradients that are zero",
            suggestion=f"{name}.clone(), or a tensor made outside of torch.compile and FakeTensorMode",
        )
    if not tensor.requires_grad:
        return tensor
    if written:
        raise ArgumentError(
            f"parameter {name} is written by the program, but the tensor requires grad, "
            "and autograd would not see the write",
            suggestion=f"{name}.detach()",
        )
    return tensor.detach()


def _address(tensor: Any) -> int:
    """Where the first element is; 0 where there is none."""
    try:
        return int(tensor.data_ptr())
    except RuntimeError:
        # Classes of tensors without storage do not let it be asked.
        return 0
