"""The meaning of the operations on whole tiles: extraction, matrix products and reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_tile.ir.dtypes import accumulation_dtype, is_float, numpy_dtype
from tvm_tile.ir.functions import identity_of
from tvm_tile.semantics.elementwise import apply_elementwise
from tvm_tile.semantics.orders import Orders
from tvm_tile.semantics.rounding import Array, cast

__all__ = ["arg_reduce", "gather", "multiply_accumulate", "reduce_tile"]

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


def gather(x: Array, index: Array, axis: int, fill: Array) -> Array:
    """Elements along an axis by position; a position outside of ``x`` gives ``fill``."""
    extent = x.shape[axis]
    if extent == 0:
        return np.full(index.shape, fill, x.dtype)
    inside = (index >= 0) & (index < extent)
    place = np.where(inside, index, 0).astype(np.int64)
    return np.where(inside, np.take_along_axis(x, place, axis), fill)


def multiply_accumulate(a: Array, b: Array, acc: Array, *, ordered: bool, orders: Orders) -> Array:
    """``acc + a @ b``, every product and sum in the accumulator's dtype.

    Parameters
    ----------
    a, b
        ``[..., m, k]`` and ``[..., k, n]``; batch axes broadcast. Converted to the accumulator's dtype
        first, which loses nothing.
    acc
        ``[..., m, n]``.
    ordered
        Add the products to the accumulator one by one, in the order of ``k``. Otherwise they are combined
        as an unordered tree, and the accumulator joins once, on the left.
    """
    dtype = str(acc.dtype)
    a, b = cast(a, dtype), cast(b, dtype)
    contraction = a.shape[-1]
    exact = not is_float(dtype)
    # NumPy's matrix product keeps the accumulation dtype for these; it widens float16 and bfloat16.
    native = exact or dtype in ("float32", "float64")
    if contraction == 0:
        return acc
    if native and (exact or not (ordered or orders.regroups)):
        return np.asarray(acc + np.matmul(a, b))
    products = (
        apply_elementwise("multiply", a[..., :, k, None], b[..., None, k, :]) for k in range(contraction)
    )
    if ordered:
        for product in products:
            acc = apply_elementwise("add", acc, product)
        return acc
    return apply_elementwise("add", acc, orders.tree(products, _adder, permute=True))


def _adder(left: Array, right: Array) -> Array:
    return apply_elementwise("add", left, right)


def reduce_tile(
    x: Array,
    axes: tuple[int, ...],
    combiner: str,
    dtype: str,
    *,
    policy: str,
    where: Array | None,
    orders: Orders,
) -> Array:
    """Reduce axes away.

    Parameters
    ----------
    x
        The operand. Contributions of one result are in lexicographic order of the reduced axes.
    dtype
        Dtype of the result; contributions are converted to its accumulation dtype first, combined there,
        and the total is rounded to it once.
    policy
        ``fold_left`` and ``fold_right`` combine strictly one after the other; trees as ``orders`` says.
    where
        Contributions to count, or all. A result that gets none is the identity.

    Returns
    -------
    Array
        Shape of ``x`` without the reduced axes.
    """
    wide = accumulation_dtype(dtype)
    axes = tuple(sorted(axes))
    leaves = _contributions(cast(x, wide), axes)
    identity = identity_of(combiner, wide)
    if leaves.shape[0] == 0:
        return np.full(leaves.shape[1:], identity, numpy_dtype(dtype))
    counted = None if where is None else _contributions(where, axes)
    if counted is not None:
        # A masked contribution may not be seen: not even as 0.0 in a sum of negative zeros.
        neutral = -0.0 if combiner == "add" and is_float(wide) else identity
        leaves = np.where(counted, leaves, np.asarray(neutral, leaves.dtype))
    total = _combine(leaves, combiner, policy, orders)
    if counted is not None:
        total = np.where(counted.any(axis=0), total, np.asarray(identity, leaves.dtype))
    return cast(total, dtype)


def _contributions(x: Array, axes: tuple[int, ...]) -> Array:
    """The reduced axes flattened to the first one, the others behind it."""
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    return x.transpose(axes + kept).reshape((count, *(x.shape[axis] for axis in kept)))


def _combine(leaves: Array, combiner: str, policy: str, orders: Orders) -> Array:
    ufunc = _UFUNCS[combiner]
    if combiner not in ("add", "multiply") or not is_float(str(leaves.dtype)):
        # Exact: every order and grouping gives the same value.
        return np.asarray(ufunc.reduce(leaves, axis=0, dtype=leaves.dtype))
    if policy in ("fold_left", "fold_right") or not orders.regroups:
        # ``accumulate`` is strictly sequential, where NumPy's ``reduce`` sums in pairs.
        ordered = leaves[::-1] if policy == "fold_right" else leaves
        return np.asarray(ufunc.accumulate(ordered, axis=0)[-1])
    function: Callable[[Any, Any], Any] = ufunc
    return np.asarray(orders.tree(list(leaves), function, permute=policy == "unordered_tree"))


def arg_reduce(x: Array, axis: int, kind: str, where: Array | None) -> Array:
    """Position (``int32``) along an axis of the first NaN, else of the first extremum.

    A fibre in which ``where`` leaves nothing, or of length 0, gives position 0. The result lacks the axis.
    """
    if x.shape[axis] == 0:
        return np.zeros(x.shape[:axis] + x.shape[axis + 1 :], np.int32)
    if str(x.dtype) == "bfloat16":
        x = cast(x, "float32")
    counted = np.ones(x.shape, np.bool_) if where is None else where
    combiner = "maximum" if kind == "argmax" else "minimum"
    neutral = np.asarray(identity_of(combiner, str(x.dtype)), x.dtype)
    extremum = _UFUNCS[combiner].reduce(np.where(counted, x, neutral), axis=axis, keepdims=True)
    # NaN is its own extremum: it propagated, and only NaN differs from itself.
    winners = ((x == extremum) | ((x != x) & (extremum != extremum))) & counted
    return np.asarray(np.argmax(winners, axis=axis)).astype(np.int32)
