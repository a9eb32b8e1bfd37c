"""Normalization over the last axis."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.rows import accumulator_dtype, row_extents, row_index

__all__ = ["layernorm"]


@tt.kernel
def layernorm(X: Any, gamma: Any, beta: Any, Y: Any, *, eps: float = 1e-5, block: int = 1024) -> None:
    """Layer normalization of each row: ``Y = (X - mean) / sqrt(var + eps) * gamma + beta``.

    A second pass over the row less its first mean gives the variance and what that mean missed by rounding,
    so rows with a large mean keep their precision (the one-pass formula ``E[x²] - E[x]²`` cancels; see Chan,
    Golub and LeVeque, Algorithms for computing the sample variance, 1983).

    Parameters
    ----------
    X
        Shape ``(..., D)``, a float dtype.
    gamma, beta
        Shape ``(D,)``.
    Y
        Output, same shape as ``X``; may be the same array.
    eps
        Added to the (biased) variance.
    block
        Elements of a row that are handled at a time.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ``D == 0`` writes nothing.
    """
    assert X.shape == Y.shape, f"X has shape {X.shape}, Y has {Y.shape}"
    D = X.shape[-1] if X.ndim else 0
    assert gamma.shape == beta.shape == (D,), f"gamma {gamma.shape} and beta {beta.shape} must be ({D},)"
    width = max(1, min(block, D))
    dtype = accumulator_dtype(X.dtype)
    count = float(max(D, 1))
    for row in tt.parallel(*row_extents(X)):
        total = tt.zeros((), dtype)
        for k in tt.serial(tt.cdiv(D, width)):
            x = X[(*row_index(X, row), tt.ds(k * width, width))].astype(dtype)
            total = total + tt.sum(x)
        guess = total / count
        drift = tt.zeros((), dtype)
        squares = tt.zeros((), dtype)
        for k in tt.serial(tt.cdiv(D, width)):
            x = X[(*row_index(X, row), tt.ds(k * width, width))].astype(dtype)
            inside = k * width + tt.iota(width, "int64") < D
            centred = x - guess
            drift = drift + tt.sum(centred, where=inside)
            squares = squares + tt.sum(centred * centred, where=inside)
        offset = drift / count
        variance = tt.maximum(squares / count - offset * offset, 0.0)
        scale = 1.0 / tt.sqrt(variance + eps)
        for k in tt.serial(tt.cdiv(D, width)):
            x = X[(*row_index(X, row), tt.ds(k * width, width))].astype(dtype)
            g = gamma[tt.ds(k * width, width)].astype(dtype)
            b = beta[tt.ds(k * width, width)].astype(dtype)
            y = ((x - guess) - offset) * scale * g + b
            Y[(*row_index(Y, row), tt.ds(k * width, width))] = y.astype(Y.dtype)
