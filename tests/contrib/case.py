"""What a kernel of the library is to the tests: arguments, an oracle and element types."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["FLOATS", "INTS", "Case", "check", "normal", "numpy_dtype", "unwritten"]

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

#: Relative error of an output by its dtype, and absolute error relative to its largest element.
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 4e-6, "float64": 1e-12}

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Case:
    """A kernel with arguments of some sizes.

    Attributes
    ----------
    kernel
        From :mod:`tvm_tile.contrib.kernels`.
    label
        What is special about the arguments.
    make
        From a random generator and a dtype to the inputs and the outputs, as :func:`unwritten` makes them.
    oracle
        From the inputs to the right output, or a tuple of them.
    dtypes
        Element types that ``make`` takes.
    tolerance
        Multiple of :data:`TOLERANCE` that float outputs may be off by; 0 asks for equality.
    constants
        Keyword arguments of the kernel.
    refused
        Element types that a target refuses.
    """

    kernel: Any
    label: str
    make: Callable[[np.random.Generator, str], tuple[Arrays, Arrays]]
    oracle: Callable[..., Any]
    dtypes: tuple[str, ...] = FLOATS
    tolerance: float = 1.0
    constants: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kernel.__name__}-{self.label}"

    @property
    def typical_dtype(self) -> str:
        """The element type to try where there is no time for all."""
        return "float32" if "float32" in self.dtypes else self.dtypes[0]

    def is_refused(self, target: str, dtype: str) -> bool:
        """Whether a target has no code for it; Metal has no float64 at all."""
        return dtype in self.refused.get(target, ()) or (target, dtype) == ("metal", "float64")

    def arguments(self, dtype: str) -> tuple[Arrays, Arrays]:
        """Fresh inputs and outputs, the same ones every time."""
        return self.make(np.random.default_rng(7), dtype)

    def expected(self, inputs: Arrays) -> Arrays:
        """The oracle's outputs, always as a tuple."""
        right = self.oracle(*inputs)
        return right if isinstance(right, tuple) else (right,)


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rng.standard_normal(shape).astype(numpy_dtype(dtype))


def unwritten(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An output before the kernel runs: elements that it does not write stay wrong."""
    return np.full(shape, 77, numpy_dtype(dtype))


def check(output: np.ndarray, expected: np.ndarray, tolerance: float = 1.0) -> None:
    """Compare an output with the oracle's: integers exactly (modulo their width), floats closely."""
    if output.dtype.name not in TOLERANCE or tolerance == 0.0:
        np.testing.assert_array_equal(output, expected.astype(output.dtype), strict=True)
        return
    assert output.shape == expected.shape
    right = expected.astype("f8")
    rtol = tolerance * TOLERANCE[output.dtype.name]
    scale = max(1.0, float(np.max(np.abs(right[np.isfinite(right)]), initial=0.0)))
    np.testing.assert_allclose(output.astype("f8"), right, rtol=rtol, atol=rtol * scale)
