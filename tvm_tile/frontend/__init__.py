"""The language in Python: the ``kernel`` decorator, capture, and the names that a kernel may use.

Start with :mod:`~tvm_tile.frontend.kernel` (the decorator and what calling a kernel does).
A function's syntax tree is found by :mod:`~tvm_tile.frontend.source`, rewritten by
:mod:`~tvm_tile.frontend.rewrite`, compiled by :mod:`~tvm_tile.frontend.convert`, and run once with tracers
(:mod:`~tvm_tile.frontend.tile`, :mod:`~tvm_tile.frontend.index`, :mod:`~tvm_tile.frontend.tensor`) that emit
into a :class:`~tvm_tile.frontend.trace.Trace`. :mod:`~tvm_tile.frontend.loops` and
:mod:`~tvm_tile.frontend.branches` capture ``for`` and ``if``. What a
capture reads from outside is :mod:`~tvm_tile.frontend.environment`. Errors of the user's Python become errors
with a place in :mod:`~tvm_tile.frontend.faults`, and find the syntax and the counterparts that they name in
:mod:`~tvm_tile.frontend.constructs` and :mod:`~tvm_tile.frontend.counterparts`. The other modules hold the
public functions, one concept each. Nothing here runs a program or knows a target.
"""

from tvm_tile.frontend.allocation import alloc
from tvm_tile.frontend.atomics import atomic_add, atomic_max, atomic_min
from tvm_tile.frontend.builtin_merges import argmax_pair, logsumexp, welford
from tvm_tile.frontend.contraction import MmaPolicy, matmul, mma
from tvm_tile.frontend.creation import eye, full, iota, ones, zeros
from tvm_tile.frontend.einsum import einsum
from tvm_tile.frontend.elementwise import add, cast, fma, maximum, minimum, power, where
from tvm_tile.frontend.external import extern
from tvm_tile.frontend.kernel import Kernel, kernel, set_launcher
from tvm_tile.frontend.mapping import map
from tvm_tile.frontend.merges import Merge
from tvm_tile.frontend.pieces import concat, gather, split, update
from tvm_tile.frontend.reductions import all, any, argmax, argmin, max, mean, min, prod, sum
from tvm_tile.frontend.regions import cdiv, parallel, pipeline, reduce, serial, stage
from tvm_tile.frontend.scans import cummax, cumsum, reduce_tile, scan
from tvm_tile.frontend.shape import broadcast_to, reshape, transpose
from tvm_tile.frontend.specs import Scalar, spec
from tvm_tile.frontend.subscripts import ds
from tvm_tile.frontend.tensor import load
from tvm_tile.frontend.unary import (
    abs,
    ceil,
    cos,
    erf,
    exp,
    exp2,
    floor,
    isinf,
    isnan,
    log,
    log2,
    round,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    tanh,
)

__all__ = [
    "Kernel",
    "Merge",
    "MmaPolicy",
    "Scalar",
    "abs",
    "add",
    "all",
    "alloc",
    "any",
    "argmax",
    "argmax_pair",
    "argmin",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "broadcast_to",
    "cast",
    "cdiv",
    "ceil",
    "concat",
    "cos",
    "cummax",
    "cumsum",
    "ds",
    "einsum",
    "erf",
    "exp",
    "exp2",
    "extern",
    "eye",
    "floor",
    "fma",
    "full",
    "gather",
    "iota",
    "isinf",
    "isnan",
    "kernel",
    "load",
    "log",
    "log2",
    "logsumexp",
    "map",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mma",
    "ones",
    "parallel",
    "pipeline",
    "power",
    "prod",
    "reduce",
    "reduce_tile",
    "reshape",
    "round",
    "rsqrt",
    "scan",
    "serial",
    "set_launcher",
    "sigmoid",
    "sin",
    "spec",
    "split",
    "sqrt",
    "stage",
    "sum",
    "tanh",
    "transpose",
    "update",
    "welford",
    "where",
    "zeros",
]
