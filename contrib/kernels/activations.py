"""Activation functions of tiles, by the names that kernels take as ``act``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tvm_tile as tt

__all__ = ["ACTIVATIONS", "activation", "gelu", "silu"]


def relu(x: Any) -> Any:
    """``max(x, 0)``; NaN stays NaN."""
    return tt.maximum(x, 0.0)


def gelu(x: Any) -> Any:
    """``x · Φ(x)`` with the normal distribution function (Hendrycks and Gimpel, 2016)."""
    return 0.5 * x * (1.0 + tt.erf(x * math.sqrt(0.5)))


def gelu_tanh(x: Any) -> Any:
    """:func:`gelu` with the authors' approximation by ``tanh``."""
    return 0.5 * x * (1.0 + tt.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))))


def silu(x: Any) -> Any:
    """``x · sigmoid(x)``, also called swish."""
    return x * tt.sigmoid(x)


#: Each maps a float tile to one of the same shape and dtype.
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: x,
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
}


def activation(name: str) -> Callable[[Any], Any]:
    """The activation function of a name.

    Raises
    ------
    AssertionError
        There is none.
    """
    assert name in ACTIVATIONS, f"act={name!r} is none of {', '.join(map(repr, ACTIVATIONS))}"
    return ACTIVATIONS[name]
