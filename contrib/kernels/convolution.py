"""Convolutions of images in NCHW order (cross-correlations, as in every network library)."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.accumulation import accumulator_dtype
from tvm_tile.contrib.kernels.windows import pair, strided, window_count

__all__ = ["conv2d", "depthwise_conv2d"]


@tt.kernel
def conv2d(
    X: Any,
    W: Any,
    Y: Any,
    *,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    bf: int = 32,
    bc: int = 16,
    bh: int = 4,
    bw: int = 32,
) -> None:
    """Convolution: each output pixel is the sum of a window of all channels, weighted by a filter.

    ``Y[n, f, i, j] = Σ X[n, c, i·stride + r - padding, j·stride + s - padding] · W[f, c, r, s]``, the sum
    over ``c``, ``r`` and ``s``; what lies outside of the image is 0.

    An implicit matrix product: for each tap ``(r, s)`` of the window the filters of a block, ``(bf, bc)``,
    are multiplied with the pixels that the tap sees, ``(bc, bh · bw)``. The matrix of all windows is never
    stored; padding is what a load out of bounds gives, 0.

    Parameters
    ----------
    X
        Images, shape ``(N, C, H, W)``; floats or integers.
    W
        Filters, shape ``(F, C, R, S)``, same dtype.
    Y
        Output, shape ``(N, F, OH, OW)`` with ``OH = (H + 2·padding - R) // stride + 1`` (0 if the window does
        not fit) and ``OW`` likewise. The sums accumulate in float32 for 16-bit floats, in 32 bits for 8- and
        16-bit integers (which wraps), else in the inputs' dtype; they are cast to ``Y``'s once.
    stride, padding
        An int, or a pair ``(vertical, horizontal)``.
    bf, bc, bh, bw
        Filters, channels, output rows and output columns handled at a time.

    Raises
    ------
    ArgumentError
        The shapes do not fit, or ``X`` and ``W`` differ in dtype.
    """
    (sh, sw), (ph, pw) = pair(stride, "stride", 1), pair(padding, "padding", 0)
    assert X.ndim == W.ndim == 4, f"X {X.shape} and W {W.shape} must be (N, C, H, W) and (F, C, R, S)"
    N, C, height, width = X.shape
    F, _, R, S = W.shape
    assert W.shape[1] == C, f"W has {W.shape[1]} channels, X has {C}"
    assert R > 0 and S > 0, f"W has the empty window {R}×{S}"
    assert X.dtype == W.dtype, f"X is {X.dtype}, W is {W.dtype}; cast one of them"
    OH, OW = window_count(height, R, sh, ph), window_count(width, S, sw, pw)
    assert Y.shape == (N, F, OH, OW), f"Y has shape {Y.shape}, the convolution has {(N, F, OH, OW)}"
    bf, bc = max(1, min(bf, F)), max(1, min(bc, C))
    bh, bw = max(1, min(bh, OH)), max(1, min(bw, OW))
    for n, f, i, j in tt.parallel(N, tt.cdiv(F, bf), tt.cdiv(OH, bh), tt.cdiv(OW, bw)):
        acc = tt.zeros((bf, bh * bw), accumulator_dtype(X.dtype))
        for c, r, s in tt.pipeline(tt.cdiv(C, bc), R, S):
            tt.stage("load")
            rows = strided(i * (bh * sh) + r - ph, bh, sh)
            columns = strided(j * (bw * sw) + s - pw, bw, sw)
            x = X[n, tt.ds(c * bc, bc), rows, columns].reshape(bc, bh * bw)
            w = W[tt.ds(f * bf, bf), tt.ds(c * bc, bc), r, s]
            tt.stage("compute")
            acc = tt.mma(w, x, acc)
        y = acc.reshape(bf, bh, bw).astype(Y.dtype)
        Y[n, tt.ds(f * bf, bf), tt.ds(i * bh, bh), tt.ds(j * bw, bw)] = y


@tt.kernel
def depthwise_conv2d(
    X: Any,
    W: Any,
    Y: Any,
    *,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    bh: int = 4,
    bw: int = 64,
) -> None:
    """Depthwise convolution: every channel has filters of its own, and channels are not mixed.

    ``Y[n, f, i, j] = Σ X[n, f // (F/C), i·stride + r - padding, j·stride + s - padding] · W[f, 0, r, s]``,
    the sum over ``r`` and ``s``.

    Parameters
    ----------
    X
        Images, shape ``(N, C, H, W)``; floats or integers.
    W
        Filters, shape ``(F, 1, R, S)`` with ``F`` a multiple of ``C``, as torch has them for ``groups=C``; or
        ``(C, R, S)``. Same dtype.
    Y
        Output, shape ``(N, F, OH, OW)``; extents and accumulation are those of :func:`conv2d`.
    stride, padding
        An int, or a pair ``(vertical, horizontal)``.
    bh, bw
        Output rows and columns handled at a time.

    Raises
    ------
    ArgumentError
        The shapes do not fit, or ``X`` and ``W`` differ in dtype.
    """
    (sh, sw), (ph, pw) = pair(stride, "stride", 1), pair(padding, "padding", 0)
    assert X.ndim == 4, f"X has shape {X.shape}, not (N, C, H, W)"
    N, C, height, width = X.shape
    assert W.ndim == 3 or (W.ndim == 4 and W.shape[1] == 1), f"W has shape {W.shape}, not (F, 1, R, S)"
    F, (R, S) = W.shape[0], W.shape[-2:]
    assert F % max(C, 1) == 0 and bool(F) == bool(C), f"{F} filters do not share {C} channels evenly"
    assert R > 0 and S > 0, f"W has the empty window {R}×{S}"
    assert X.dtype == W.dtype, f"X is {X.dtype}, W is {W.dtype}; cast one of them"
    OH, OW = window_count(height, R, sh, ph), window_count(width, S, sw, pw)
    assert Y.shape == (N, F, OH, OW), f"Y has shape {Y.shape}, the convolution has {(N, F, OH, OW)}"
    bh, bw = max(1, min(bh, OH)), max(1, min(bw, OW))
    dtype = accumulator_dtype(X.dtype)
    group = max(1, F // max(C, 1))
    for n, f, i, j in tt.parallel(N, F, tt.cdiv(OH, bh), tt.cdiv(OW, bw)):
        acc = tt.zeros((bh, bw), dtype)
        for r, s in tt.serial(R, S):
            rows = strided(i * (bh * sh) + r - ph, bh, sh)
            columns = strided(j * (bw * sw) + s - pw, bw, sw)
            x = X[n, f // group, rows, columns].astype(dtype)
            w = (W[f, r, s] if W.ndim == 3 else W[f, 0, r, s]).astype(dtype)
            acc = acc + x * w
        Y[n, f, tt.ds(i * bh, bh), tt.ds(j * bw, bw)] = acc.astype(Y.dtype)
