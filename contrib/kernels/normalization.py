"""Normalization over the last axis."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.accumulation import accumulator_dtype
from tvm_tile.contrib.kernels.checks import require_floats
from tvm_tile.contrib.kernels.rows import block_width, row_block, row_extents

__all__ = ["layernorm", "residual_layernorm", "rmsnorm"]


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
        Shape ``(D,)``, float dtypes.
    Y
        Output, same shape as ``X``, a float dtype; may be the same array.
    eps
        Added to the (biased) variance.
    block
        Elements of a row that are handled at a time.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. A NaN or an infinity makes the row NaN.
    ``D == 0`` writes nothing.
    """
    rows = row_extents(X)
    _check(X, Y, gamma=gamma, beta=beta)
    for row in tt.parallel(*rows):
        _normalize((X,), row, gamma, beta, Y, eps, block_width(X, block))


@tt.kernel
def residual_layernorm(
    X: Any, R: Any, gamma: Any, beta: Any, Y: Any, *, eps: float = 1e-5, block: int = 1024
) -> None:
    """Layer normalization of a sum that is not stored: ``Y = layernorm(X + R)``.

    Parameters
    ----------
    X, R
        Shape ``(..., D)``, the same float dtype.
    gamma, beta
        Shape ``(D,)``, float dtypes.
    Y
        Output, same shape, a float dtype; may be the same array as ``X`` or ``R``.
    eps, block
        As in :func:`layernorm`.

    Notes
    -----
    The sum of 16-bit floats is not rounded to 16 bits; else as :func:`layernorm`.
    """
    rows = row_extents(X)
    assert X.shape == R.shape, f"X has shape {X.shape}, R has {R.shape}"
    assert X.dtype == R.dtype, f"X is {X.dtype}, R is {R.dtype}; cast one of them"
    _check(X, Y, gamma=gamma, beta=beta)
    for row in tt.parallel(*rows):
        _normalize((X, R), row, gamma, beta, Y, eps, block_width(X, block))


@tt.kernel
def rmsnorm(X: Any, gamma: Any, Y: Any, *, eps: float = 1e-6, block: int = 1024) -> None:
    """Root-mean-square normalization of each row: ``Y = X / sqrt(mean(X²) + eps) * gamma``.

    Parameters
    ----------
    X
        Shape ``(..., D)``, a float dtype.
    gamma
        Shape ``(D,)``, a float dtype.
    Y
        Output, same shape as ``X``, a float dtype; may be the same array.
    eps
        Added to the mean of the squares.
    block
        Elements of a row that are handled at a time.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ``D == 0`` writes nothing. A source: Zhang and
    Sennrich, Root mean square layer normalization, 2019.
    """
    rows = row_extents(X)
    _check(X, Y, gamma=gamma)
    D, width = X.shape[-1], block_width(X, block)
    dtype = accumulator_dtype(X.dtype)
    for row in tt.parallel(*rows):
        squares = tt.zeros((), dtype)
        for k in tt.serial(tt.cdiv(D, width)):
            x = X[row_block(X, row, k, width)].astype(dtype)
            squares = squares + tt.sum(x * x)
        scale = 1.0 / tt.sqrt(squares / float(max(D, 1)) + eps)
        for k in tt.serial(tt.cdiv(D, width)):
            at = row_block(X, row, k, width)
            g = gamma[tt.ds(k * width, width)].astype(dtype)
            Y[at] = (X[at].astype(dtype) * scale * g).astype(Y.dtype)


def _check(X: Any, Y: Any, **parameters: Any) -> None:
    assert X.shape == Y.shape, f"X has shape {X.shape}, Y has {Y.shape}"
    for name, parameter in parameters.items():
        assert parameter.shape == X.shape[-1:], f"{name} has shape {parameter.shape}, not {X.shape[-1:]}"
    require_floats(X=X, Y=Y, **parameters)


def _normalize(
    terms: tuple[Any, ...], row: Any, gamma: Any, beta: Any, Y: Any, eps: float, width: int
) -> None:
    """Layer normalization of one row of the sum of ``terms``, tensors of one shape and dtype."""
    D = Y.shape[-1]
    count = float(max(D, 1))
    dtype = accumulator_dtype(terms[0].dtype)
    total = tt.zeros((), dtype)
    for k in tt.serial(tt.cdiv(D, width)):
        total = total + tt.sum(_sum_of(terms, row, k, width))
    guess = total / count
    drift = tt.zeros((), dtype)
    squares = tt.zeros((), dtype)
    for k in tt.serial(tt.cdiv(D, width)):
        inside = k * width + tt.iota(width, "int64") < D
        centred = _sum_of(terms, row, k, width) - guess
        drift = drift + tt.sum(centred, where=inside)
        squares = squares + tt.sum(centred * centred, where=inside)
    offset = drift / count
    variance = tt.maximum(squares / count - offset * offset, 0.0)
    scale = 1.0 / tt.sqrt(variance + eps)
    for k in tt.serial(tt.cdiv(D, width)):
        g = gamma[tt.ds(k * width, width)].astype(dtype)
        b = beta[tt.ds(k * width, width)].astype(dtype)
        y = ((_sum_of(terms, row, k, width) - guess) - offset) * scale * g + b
        Y[row_block(Y, row, k, width)] = y.astype(Y.dtype)


def _sum_of(terms: tuple[Any, ...], row: Any, k: Any, width: int) -> Any:
    """A block of a row of the sum of tensors, in their accumulator."""
    dtype = accumulator_dtype(terms[0].dtype)
    first, *others = (term[row_block(term, row, k, width)].astype(dtype) for term in terms)
    return sum(others, start=first)
