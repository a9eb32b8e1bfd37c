"""What an operator of the language is to the tests: an expression, an oracle and element types."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
FLOATS = ("float16", "bfloat16", "float32", "float64")
NUMBERS = INTS + FLOATS
NOT_32_BITS = tuple(dtype for dtype in NUMBERS if not dtype.endswith("32"))
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
EVERY = BOOL + NUMBERS
STORED = EVERY + FLOAT8

#: Shape of the inputs; no extent is a power of two.
SHAPE = (5, 7)

#: Relative error that a result may have, by its dtype, when the oracle computes in float64.
TOLERANCE = {
    "float8_e4m3fn": 0.13,
    "float8_e5m2": 0.26,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 4e-6,
    "float64": 1e-12,
}


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


@dataclass(frozen=True)
class Operator:
    """One row of the table.

    Attributes
    ----------
    name
        As a kernel spells it.
    body
        Statements of the kernel, over the tiles ``a``, ``b``, ``c`` and the output tensor ``y``; ``{dtype}``
        is the element type.
    oracle
        From the input arrays to the right output, of the right dtype. Floats arrive as float64.
    dtypes
        Element types it takes.
    inputs
        Shapes of the inputs.
    positive, nonzero, small
        Values of the inputs: above zero, apart from zero, of small magnitude.
    result
        Dtype of the output, where it is not the input's.
    unsupported
        Element types that a target refuses.
    """

    name: str
    body: str
    oracle: Callable[..., Any]
    dtypes: tuple[str, ...] = NUMBERS
    inputs: tuple[tuple[int, ...], ...] = (SHAPE,)
    positive: bool = False
    nonzero: bool = False
    small: bool = False
    result: Callable[[str], str] = lambda dtype: dtype
    unsupported: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tolerance: float = 1.0

    def refused(self, target: str) -> tuple[str, ...]:
        """Element types that it takes and the target does not."""
        own = self.unsupported.get(target, ())
        doubles = "float64" if target == "metal" else None
        return tuple(d for d in self.dtypes if d in own or doubles in (d, self.result(d)))


def sum_dtype(dtype: str) -> str:
    return {"int8": "int32", "int16": "int32", "bool": "int64"}.get(dtype, dtype)


def mean_dtype(dtype: str) -> str:
    return dtype if dtype in FLOATS else "float64"


def boolean(_: str) -> str:
    return "bool"
