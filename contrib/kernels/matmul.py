"""Matrix products."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.rows import accumulator_dtype

__all__ = ["gemm"]


@tt.kernel
def gemm(A: Any, B: Any, C: Any, *, bm: int = 64, bn: int = 64, bk: int = 64) -> None:
    """Matrix product ``C = A @ B``.

    Parameters
    ----------
    A
        Shape ``(M, K)``.
    B
        Shape ``(K, N)``, same dtype as ``A``.
    C
        Output, shape ``(M, N)``. The product accumulates in float32 for 16-bit floats, in int32 or uint32
        for 8- and 16-bit integers (which wraps), else in the inputs' dtype; it is cast to ``C``'s once.
    bm, bn, bk
        Tile extents. They need not divide the sizes. ``K == 0`` gives zeros.

    Raises
    ------
    ArgumentError
        The shapes do not fit, or ``A`` and ``B`` differ in dtype.
    """
    M, K = A.shape
    N = B.shape[1]
    assert B.shape[0] == K, f"inner extents differ: A is {A.shape}, B is {B.shape}"
    assert C.shape == (M, N), f"C has shape {C.shape}, the product has {(M, N)}"
    assert A.dtype == B.dtype, f"A is {A.dtype}, B is {B.dtype}; cast one of them"
    for i, j in tt.parallel(tt.cdiv(M, bm), tt.cdiv(N, bn)):
        acc = tt.zeros((bm, bn), accumulator_dtype(A.dtype))
        for k in tt.pipeline(tt.cdiv(K, bk)):
            tt.stage("load")
            a = A[tt.ds(i * bm, bm), tt.ds(k * bk, bk)]
            b = B[tt.ds(k * bk, bk), tt.ds(j * bn, bn)]
            tt.stage("compute")
            acc = tt.mma(a, b, acc)
        C[tt.ds(i * bm, bm), tt.ds(j * bn, bn)] = acc.astype(C.dtype)
