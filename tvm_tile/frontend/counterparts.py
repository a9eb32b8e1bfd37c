"""Functions of Python and NumPy that have a counterpart in the language, and what to use for others.

NumPy's ufuncs on tiles are the language's own functions where there is one; a NumPy scalar as the left
operand comes that way too. All other NumPy functions are refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

__all__ = [
    "METHODS",
    "PLAIN_FUNCTIONS",
    "UFUNCS",
    "accumulation_remedy",
    "function_remedy",
    "name_remedy",
    "reduction_remedy",
]

_SAME = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "negative"),
    *("left_shift", "right_shift", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tanh", "floor", "ceil"),
    *("maximum", "minimum", "isnan", "isinf", "invert"),
)

#: From names of ufuncs to elementwise functions.
UFUNCS = {
    **{name: name for name in _SAME},
    **{f"bitwise_{name}": name for name in ("and", "or", "xor")},
    "absolute": "abs",
    "rint": "round",
}

#: Reductions of the language, which NumPy has as methods of arrays too.
METHODS = ("sum", "prod", "max", "min", "any", "all", "mean", "argmax", "argmin")

#: NumPy functions of what is known during capture.
PLAIN_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "shape": lambda x: x.shape,
    "ndim": lambda x: x.ndim,
    "size": lambda x: x.size,
}

_REDUCING = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_or": "any",
    "logical_and": "all",
    "bitwise_or": "any",
    "bitwise_and": "all",
}

_OTHERS = {
    "amax": "tt.max",
    "amin": "tt.min",
    "absolute": "tt.abs",
    "fabs": "tt.abs",
    "rint": "tt.round",
    "logical_and": "(x != 0) & (y != 0)",
    "logical_or": "(x != 0) | (y != 0)",
    "logical_xor": "(x != 0) ^ (y != 0)",
    "logical_not": "x == 0",
    "square": "x * x",
    "reciprocal": "1.0 / x",
    "positive": "x itself",
    "sign": "tt.where(x > 0, 1, tt.where(x < 0, -1, 0))",
    "isfinite": "~(tt.isnan(x) | tt.isinf(x))",
    "fmax": "tt.maximum, which lets NaN win",
    "fmin": "tt.minimum, which lets NaN win",
    "expm1": "tt.exp(x) - 1",
    "log1p": "tt.log(1 + x)",
    "log10": "tt.log(x) * (1 / math.log(10))",
    "tan": "tt.sin(x) / tt.cos(x)",
    "clip": "tt.minimum(tt.maximum(x, low), high)",
    "dot": "tt.matmul",
    "inner": 'tt.einsum("i,i", a, b)',
    "outer": "a[:, None] * b[None, :]",
    "vdot": 'tt.einsum("i,i", a, b)',
    "tensordot": "tt.einsum",
    "trace": 'tt.einsum("ii", x)',
    "diagonal": 'tt.einsum("ii->i", x)',
    "cumsum": "tt.cumsum(x, axis)",
    "cumprod": "tt.scan(x, axis, tt.prod)",
    "cumulative_sum": "tt.cumsum(x, axis)",
    "accumulate": "tt.cumsum(x, axis), or tt.scan with another merge",
    "take": "tt.gather(x, index, axis, fill)",
    "take_along_axis": "tt.gather(x, index, axis, fill)",
    "choose": "tt.where, or tt.gather(x, index, axis, fill)",
    "concatenate": "tt.concat(tiles, axis)",
    "hstack": "tt.concat(tiles, axis=1)",
    "vstack": "tt.concat(tiles, axis=0)",
    "stack": "tt.concat of tiles with a new axis, x[None]",
    "array_split": "tt.split(x, positions, axis)",
    "hsplit": "tt.split(x, sections, axis=1)",
    "vsplit": "tt.split(x, sections, axis=0)",
    "flip": "x[::-1]",
    "roll": "tt.concat of the two parts",
    "swapaxes": "tt.transpose(x, axes)",
    "moveaxis": "tt.transpose(x, axes)",
    "vectorize": "tt.map(fn, x)",
    "apply_along_axis": "tt.reduce_tile or tt.scan along the axis",
    "put_along_axis": "tt.update in a tt.parallel loop",
    "bincount": "tt.atomic_add into a tensor of counts",
    "logaddexp": "tt.reduce_tile(x, axis, tt.logsumexp)",
    "var": "tt.reduce_tile(x, axis, tt.welford)",
    "std": "tt.reduce_tile(x, axis, tt.welford)",
    "empty": "tt.alloc(shape, dtype), or tt.zeros for a value",
    "zeros_like": "tt.zeros(x.shape, x.dtype)",
    "ones_like": "tt.ones(x.shape, x.dtype)",
    "full_like": "tt.full(x.shape, value, x.dtype)",
    "empty_like": "tt.zeros(x.shape, x.dtype)",
    "expand_dims": "x[:, None]",
    "squeeze": "tt.reshape",
    "ravel": "tt.reshape(x, -1)",
    "flatten": "tt.reshape(x, -1)",
    "copy": "x itself; a tile never changes",
    "item": "the tile itself; a scalar tile is an operand like any other",
    "astype": "x.astype(dtype)",
    "load": "A[idx] or A.at[idx].load()",
    "store": "A[idx] = value or A.at[idx].store(value)",
    "pow": "x ** y",
}


#: What other systems call it, where that is no function of NumPy or means something else there.
_ELSEWHERE = {
    "relu": "tt.maximum(x, 0)",
    "clamp": "tt.minimum(tt.maximum(x, low), high)",
    "softmax": "e = tt.exp(x - tt.max(x, axis, keepdims=True)), and e / tt.sum(e, axis, keepdims=True)",
    "prange": "tt.parallel",
    "range": "tt.serial",
    "grid": "tt.parallel",
    "arange": "tt.iota",
    "program_id": "tt.parallel, whose loop variable it is",
    "num_programs": "the extent of the tt.parallel loop",
    "thread_id": "tt.parallel, whose loop variable it is",
    "dot": "tt.matmul, or tt.mma to add to an accumulator",
    "gemm": "tt.matmul, or tt.mma to add to an accumulator",
    "select": "tt.where",
    "print": "tt.interpret on the traced program, and look at what it stores",
    "device_print": "tt.interpret on the traced program, and look at what it stores",
    "constexpr": "a keyword-only parameter, which is a compile-time constant",
    "autotune": "keyword-only constants, and time a kernel with each",
    "jit": "tt.kernel",
    "prim_func": "tt.kernel",
    "trans": "tt.transpose",
    "permute": "tt.transpose",
    "view": "tt.reshape",
    "to": "tt.cast(x, dtype)",
    "pow": "tt.power, or x ** y",
    "cat": "tt.concat",
    "unfold": "tt.ds(start, size) as a subscript",
    "alloc_shared": 'tt.alloc(shape, dtype, "shared")',
    "alloc_fragment": "tt.zeros(shape, dtype)",
    "atomic_sum": "tt.atomic_add",
    "fori_loop": "a `for` statement over tt.serial",
    "while_loop": "tt.serial over a known number of steps, with `if` in its body",
    "cond": "an `if` statement, or tt.where",
    "syncthreads": "nothing: stores of one region are seen by the next",
    "barrier": "nothing: stores of one region are seen by the next",
}


def reduction_remedy(ufunc: str) -> str:
    """What to use for a reduction with a ufunc, as in ``numpy.add.reduce``."""
    name = _REDUCING.get(ufunc)
    return f"use tt.{name}(x, axis)" if name is not None else "use a reduction of tt, or a tt.reduce loop"


def accumulation_remedy(ufunc: str) -> str:
    """What to use for all prefixes of a reduction with a ufunc, as in ``numpy.add.accumulate``."""
    direct = {"add": "tt.cumsum(x, axis)", "maximum": "tt.cummax(x, axis)"}.get(ufunc)
    if direct is not None:
        return f"use {direct}"
    name = _REDUCING.get(ufunc)
    return f"use tt.scan(x, axis, tt.{name})" if name is not None else "use tt.scan(x, axis, tt.Merge(...))"


def function_remedy(name: str) -> str:
    """What to use for a function or method that the language does not take from elsewhere."""
    import tvm_tile.frontend as language

    if name in _OTHERS:
        return f"use {_OTHERS[name]}"
    if name in language.__all__ and name not in ("kernel", "set_launcher"):
        return f"use tt.{name}"
    return "write it with the functions of tt"


def name_remedy(name: str, known: list[str]) -> str:
    """What to use for a name that the language does not have; ``known`` are those that it has."""
    if name in _ELSEWHERE:
        return f"use {_ELSEWHERE[name]}"
    if name in _OTHERS and name not in known:
        return f"use {_OTHERS[name]}"
    near = difflib.get_close_matches(name, known, 1)
    if near:
        return f"did you mean tt.{near[0]}?"
    similar = difflib.get_close_matches(name, known, 8, 0.4)
    shown = f"some of tt are {', '.join(similar)}; " if similar else ""
    return f"{shown}help(tvm_tile) shows all of its names"
