"""Checks of arguments that several kernels make; what fails here becomes an ``ArgumentError`` of the call."""

from __future__ import annotations

from typing import Any

__all__ = ["require_floats"]


def require_floats(**tensors: Any) -> None:
    """Check that tensors hold floats; each is passed under its own name.

    Raises
    ------
    AssertionError
        One does not; it is named.
    """
    for name, tensor in tensors.items():
        assert "float" in tensor.dtype, f"{name} is {tensor.dtype}, not a float dtype"
