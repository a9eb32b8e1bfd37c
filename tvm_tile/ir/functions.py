"""The elementwise functions: name, arity, accepted element types and result dtype.

Operands of one application have one dtype (the frontend promotes); comparisons give ``bool`` and
``where`` takes a ``bool`` first.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FUNCTIONS", "REDUCIBLE", "Function", "identity_of"]

_NUMERIC = ("int", "uint", "float")
_FLOAT = ("float",)


@dataclass(frozen=True)
class Function:
    """One elementwise function.

    Attributes
    ----------
    name
        Name in printed programs.
    arity
        Number of operands.
    kinds
        Element kinds it accepts: of ``bool int uint float``.
    boolean
        Whether the result is ``bool`` whatever the operands are.
    """

    name: str
    arity: int
    kinds: tuple[str, ...]
    boolean: bool = False


def _table() -> dict[str, Function]:
    every = ("bool", *_NUMERIC)
    rows = [
        *(
            Function(n, 2, _NUMERIC)
            for n in ("add", "subtract", "multiply", "floor_divide", "remainder", "power")
        ),
        Function("divide", 2, _FLOAT),
        *(Function(n, 2, every) for n in ("maximum", "minimum")),
        *(Function(n, 2, ("bool", "int", "uint")) for n in ("and", "or", "xor")),
        *(Function(n, 2, ("int", "uint")) for n in ("left_shift", "right_shift")),
        *(
            Function(n, 2, every, boolean=True)
            for n in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
        ),
        Function("negative", 1, _NUMERIC),
        Function("abs", 1, _NUMERIC),
        Function("invert", 1, ("bool", "int", "uint")),
        *(
            Function(n, 1, _FLOAT)
            for n in (
                "exp",
                "exp2",
                "log",
                "log2",
                "sqrt",
                "rsqrt",
                "sin",
                "cos",
                "tanh",
                "erf",
                "sigmoid",
                "floor",
                "ceil",
                "round",
            )
        ),
        *(Function(n, 1, _FLOAT, boolean=True) for n in ("isnan", "isinf")),
        Function("fma", 3, _FLOAT),
        Function("where", 3, every),
    ]
    return {f.name: f for f in rows}


FUNCTIONS = _table()

#: Functions that are associative and commutative up to rounding, so that they can merge partial states.
REDUCIBLE = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


def identity_of(fn: str, dtype: str) -> bool | int | float:
    """The two-sided identity of a reducible function on a dtype.

    Raises
    ------
    ValueError
        The function has no identity there.
    """
    import numpy as np

    from tvm_tile.ir.dtypes import is_bool, is_float, numpy_dtype

    match fn:
        case "add" | "or" | "xor":
            return 0.0 if is_float(dtype) else False if is_bool(dtype) else 0
        case "multiply":
            return 1.0 if is_float(dtype) else 1
        case "maximum" | "minimum":
            low = fn == "maximum"
            if is_float(dtype):
                return float("-inf") if low else float("inf")
            if is_bool(dtype):
                return not low
            info = np.iinfo(numpy_dtype(dtype))
            return int(info.min if low else info.max)
        case "and":
            if is_bool(dtype):
                return True
            info = np.iinfo(numpy_dtype(dtype))
            return -1 if info.min < 0 else int(info.max)
    raise ValueError(f"{fn} has no identity for {dtype}")
