"""Matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.described import described
from tvm_tile.frontend.operands import (
    adapted,
    common_dtype,
    converted,
    dtype_argument,
    filled,
    is_weak,
    tile_of,
    value_of,
)
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.shape import reshaped
from tvm_tile.frontend.tile import Tile
from tvm_tile.ir.dtypes import accumulation_dtype, bits, is_bool, is_float
from tvm_tile.ir.ops import Mma
from tvm_tile.ir.typing import TypeFault, broadcast_shapes

__all__ = ["MmaPolicy", "matmul", "mma"]


@dataclass(frozen=True)
class MmaPolicy:
    """How a matrix product may be computed.

    Attributes
    ----------
    ordered
        Keep the order of the contraction, from index 0 up; otherwise contributions may be regrouped and
        permuted.
    """

    ordered: bool = False


def mma(a: Any, b: Any, acc: Any, policy: MmaPolicy | None = None) -> Tile:
    """``acc + a @ b``, accumulated in ``acc``'s dtype.

    Parameters
    ----------
    a : tile (..., M, K)
        Left factor.
    b : tile (..., K, N)
        Right factor; batch axes broadcast as in :func:`numpy.matmul`.
    acc : tile (..., M, N)
        Accumulator; its dtype must hold both factors' without narrowing.
    policy : MmaPolicy, optional
        ``MmaPolicy(ordered=True)`` keeps the order along K.

    Returns
    -------
    Tile
        Of ``acc``'s shape and dtype.

    Raises
    ------
    OperandError
        Shapes or dtypes do not fit.
    """
    _check_policy(policy)
    left, right, total = tile_of(a), tile_of(b), tile_of(acc)
    if is_weak(left) or is_weak(right):
        own = total.dtype if is_weak(left) and is_weak(right) else common_dtype(left, right)
        left, right = (adapted(x, own) if is_weak(x) else x for x in (left, right))
    return total.trace.emit(
        Mma,
        total.type,
        a=value_of(left),
        b=value_of(right),
        acc=value_of(total),
        ordered=bool(policy and policy.ordered),
    )


def _check_policy(policy: Any) -> None:
    if policy is not None and not isinstance(policy, MmaPolicy):
        raise CaptureError(
            f"policy={described(policy)} is no MmaPolicy",
            span=current_span(),
            suggestion="tt.MmaPolicy(ordered=True)",
        )


def matmul(a: Any, b: Any, dtype: Any = None, policy: MmaPolicy | None = None) -> Tile:
    """``a @ b`` with the shape rules of :func:`numpy.matmul`.

    Parameters
    ----------
    a : tile (..., M, K) or (K,)
        Left factor.
    b : tile (..., K, N) or (K,)
        Right factor.
    dtype : optional
        Dtype of the result. By default the factors' promoted one, ``int32`` for int8 and int16.
    policy : MmaPolicy, optional
        ``MmaPolicy(ordered=True)`` keeps the order along K.

    Returns
    -------
    Tile
        float16 and bfloat16 accumulate in float32 and round once.

    Raises
    ------
    OperandError
        Shapes or dtypes do not fit.
    """
    _check_policy(policy)
    left, right = tile_of(a), tile_of(b)
    if not left.ndim or not right.ndim:
        raise OperandError(
            f"matmul needs axes: {left._describe()} @ {right._describe()}",
            span=current_span(),
            suggestion="multiply with *",
        )
    own = common_dtype(left, right)
    if is_bool(own):
        raise OperandError(
            "matmul does not take bool", span=current_span(), suggestion='convert with .astype("int32")'
        )
    left, right = (adapted(x, own) if is_weak(x) else x for x in (left, right))
    by_default = own if is_float(own) else accumulation_dtype(own)
    wanted = by_default if dtype is None else dtype_argument(dtype)
    accumulator = accumulation_dtype(wanted)
    if is_float(wanted) and bits(wanted) < 16:
        accumulator = "float32"
    x = reshaped(left, (1, *left.shape)) if left.ndim == 1 else left
    y = reshaped(right, (*right.shape, 1)) if right.ndim == 1 else right
    try:
        batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except TypeFault as fault:
        raise OperandError(
            f"batch axes do not fit: {fault}",
            span=current_span(),
            suggestion="give both factors the same batch axes, or extents of 1 there",
        ) from None
    shape = (*batch, x.shape[-2], y.shape[-1])
    product = mma(x, y, filled(left.trace, shape, 0, accumulator), policy)
    kept = batch + (shape[-2:-1] if left.ndim > 1 else ()) + (shape[-1:] if right.ndim > 1 else ())
    return converted(reshaped(product, kept), wanted)
