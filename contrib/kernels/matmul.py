"""Matrix products: plain, batched, with an epilogue, quantized, and of a matrix and a vector."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.accumulation import accumulator_dtype
from tvm_tile.contrib.kernels.activations import activation
from tvm_tile.contrib.kernels.broadcasting import broadcast_extents, entry
from tvm_tile.contrib.kernels.checks import require_floats

__all__ = ["batched_gemm", "gemm", "gemm_bias_act", "gemm_int8", "gemv"]


def _tile_product(A: Any, B: Any, rows: Any, columns: Any, acc: Any, bk: int) -> Any:
    """``acc + A[rows, :] @ B[:, columns]``, ``bk`` elements of the inner axis at a time.

    Parameters
    ----------
    rows, columns
        Subscripts of the axes that the product keeps, batch entries first.
    acc
        Tile that the product is added to; its dtype is the one that sums are kept in.
    """
    for k in tt.pipeline(tt.cdiv(A.shape[-1], bk)):
        tt.stage("load")
        inner = tt.ds(k * bk, bk)
        a = A[(*rows, inner)]
        b = B[(*columns[:-1], inner, columns[-1])]
        tt.stage("compute")
        acc = tt.mma(a, b, acc)
    return acc


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
    M, N = _matrix_extents(A, B, C)
    for i, j in tt.parallel(tt.cdiv(M, bm), tt.cdiv(N, bn)):
        rows, columns = tt.ds(i * bm, bm), tt.ds(j * bn, bn)
        acc = tt.zeros((bm, bn), accumulator_dtype(A.dtype))
        acc = _tile_product(A, B, (rows,), (columns,), acc, bk)
        C[rows, columns] = acc.astype(C.dtype)


@tt.kernel
def batched_gemm(A: Any, B: Any, C: Any, *, bm: int = 64, bn: int = 64, bk: int = 64) -> None:
    """Matrix products of a batch: ``C[..., :, :] = A[..., :, :] @ B[..., :, :]``.

    Parameters
    ----------
    A, B
        Shapes ``(..., M, K)`` and ``(..., K, N)``, same dtype. Batch axes broadcast as in ``numpy.matmul``: a
        ``B`` of two axes multiplies every entry of ``A``.
    C
        Output, shape ``(..., M, N)``; accumulators as in :func:`gemm`.
    bm, bn, bk
        Tile extents, as in :func:`gemm`.
    """
    M, N = _batched_extents(A, B, C)
    for *batch, i, j in tt.parallel(*C.shape[:-2], tt.cdiv(M, bm), tt.cdiv(N, bn)):
        rows, columns = tt.ds(i * bm, bm), tt.ds(j * bn, bn)
        acc = tt.zeros((bm, bn), accumulator_dtype(A.dtype))
        a_rows, b_columns = (*entry(A.shape[:-2], batch), rows), (*entry(B.shape[:-2], batch), columns)
        acc = _tile_product(A, B, a_rows, b_columns, acc, bk)
        C[(*batch, rows, columns)] = acc.astype(C.dtype)


@tt.kernel
def gemm_bias_act(
    A: Any, B: Any, bias: Any, C: Any, *, act: str = "none", bm: int = 64, bn: int = 64, bk: int = 64
) -> None:
    """Linear layer: ``C = act(A @ B + bias)``, the epilogue applied to the tile that holds the sums.

    Parameters
    ----------
    A, B
        Shapes ``(M, K)`` and ``(K, N)``, the same float dtype.
    bias
        Shape ``(N,)``, a float dtype.
    C
        Output, shape ``(M, N)``, a float dtype. Everything is computed in :func:`gemm`'s accumulator and
        rounded once.
    act
        ``"none"``, ``"relu"``, ``"gelu"`` (by erf), ``"gelu_tanh"`` or ``"silu"``.
    bm, bn, bk
        Tile extents, as in :func:`gemm`. ``K == 0`` gives ``act(bias)``.
    """
    M, N = _matrix_extents(A, B, C)
    assert bias.shape == (N,), f"bias has shape {bias.shape}, not ({N},)"
    require_floats(A=A, bias=bias, C=C)
    function = activation(act)
    dtype = accumulator_dtype(A.dtype)
    for i, j in tt.parallel(tt.cdiv(M, bm), tt.cdiv(N, bn)):
        rows, columns = tt.ds(i * bm, bm), tt.ds(j * bn, bn)
        acc = _tile_product(A, B, (rows,), (columns,), tt.zeros((bm, bn), dtype), bk)
        C[rows, columns] = function(acc + bias[columns].astype(dtype)).astype(C.dtype)


@tt.kernel
def gemm_int8(
    A: Any, B: Any, scale_a: Any, scale_b: Any, C: Any, *, bm: int = 64, bn: int = 64, bk: int = 64
) -> None:
    """Product of quantized matrices: ``C[i, j] = (A @ B)[i, j] · scale_a[i] · scale_b[j]``.

    Parameters
    ----------
    A, B
        Shapes ``(M, K)`` and ``(K, N)``, int8.
    scale_a, scale_b
        Shapes ``(M,)`` and ``(N,)``, float32: what one unit in a row of ``A``, in a column of ``B`` is.
    C
        Output, shape ``(M, N)``, float32. The product is an int32, exact for ``K`` up to 131071, that is
        converted and scaled by its row, then by its column.
    bm, bn, bk
        Tile extents, as in :func:`gemm`.
    """
    M, N = _matrix_extents(A, B, C)
    assert scale_a.shape == (M,), f"scale_a has shape {scale_a.shape}, not ({M},)"
    assert scale_b.shape == (N,), f"scale_b has shape {scale_b.shape}, not ({N},)"
    assert A.dtype == "int8", f"A and B are {A.dtype}, not int8"
    for name, tensor in (("scale_a", scale_a), ("scale_b", scale_b), ("C", C)):
        assert tensor.dtype == "float32", f"{name} is {tensor.dtype}, not float32"
    for i, j in tt.parallel(tt.cdiv(M, bm), tt.cdiv(N, bn)):
        rows, columns = tt.ds(i * bm, bm), tt.ds(j * bn, bn)
        acc = _tile_product(A, B, (rows,), (columns,), tt.zeros((bm, bn), "int32"), bk)
        C[rows, columns] = acc.astype("float32") * scale_a[rows][:, None] * scale_b[columns]


@tt.kernel
def gemv(A: Any, x: Any, y: Any, *, bm: int = 4, bk: int = 128) -> None:
    """Product of a matrix and a vector: ``y = A @ x``.

    Each row keeps ``bk`` partial sums side by side, which are added up at its end: rows are read as they lie
    in memory, and all lanes of a vector unit work on one.

    Parameters
    ----------
    A
        Shape ``(M, K)``.
    x
        Shape ``(K,)``, same dtype.
    y
        Output, shape ``(M,)``; accumulators as in :func:`gemm`.
    bm, bk
        Rows and elements of a row that are handled at a time. ``K == 0`` gives zeros.
    """
    assert A.ndim == 2, f"A has shape {A.shape}, not (M, K)"
    M, K = A.shape
    assert x.shape == (K,), f"x has shape {x.shape}, not ({K},)"
    assert y.shape == (M,), f"y has shape {y.shape}, not ({M},)"
    assert A.dtype == x.dtype, f"A is {A.dtype}, x is {x.dtype}; cast one of them"
    dtype = accumulator_dtype(A.dtype)
    width = max(1, min(bk, K))
    for i in tt.parallel(tt.cdiv(M, bm)):
        rows = tt.ds(i * bm, bm)
        sums = tt.zeros((bm, width), dtype)
        for k in tt.serial(tt.cdiv(K, width)):
            inner = tt.ds(k * width, width)
            sums = sums + A[rows, inner].astype(dtype) * x[inner].astype(dtype)
        y[rows] = tt.sum(sums, axis=1).astype(y.dtype)


def _matrix_extents(A: Any, B: Any, C: Any) -> tuple[int, int]:
    """``M`` and ``N`` of the product of two matrices, after a check of all shapes and dtypes.

    Raises
    ------
    AssertionError
        They do not fit.
    """
    assert A.ndim == B.ndim == 2, f"A {A.shape} and B {B.shape} are not both matrices"
    return _batched_extents(A, B, C)


def _batched_extents(A: Any, B: Any, C: Any) -> tuple[int, int]:
    """:func:`_matrix_extents` of entries of a batch."""
    assert A.ndim >= 2 and B.ndim >= 2, f"A {A.shape} and B {B.shape} are not both matrices"
    M, K = A.shape[-2:]
    N = B.shape[-1]
    assert B.shape[-2] == K, f"inner extents differ: A is {A.shape}, B is {B.shape}"
    expected = (*broadcast_extents(A.shape[:-2], B.shape[:-2]), M, N)
    assert C.shape == expected, f"C has shape {C.shape}, the product has {expected}"
    assert A.dtype == B.dtype, f"A is {A.dtype}, B is {B.dtype}; cast one of them"
    return M, N
