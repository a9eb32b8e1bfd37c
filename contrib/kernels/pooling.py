"""Pooling of images in NCHW order."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.order import lowest
from tvm_tile.contrib.kernels.windows import pair, strided, window_count

__all__ = ["max_pool2d"]


@tt.kernel
def max_pool2d(
    X: Any,
    Y: Any,
    *,
    kernel: int | tuple[int, int],
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    bh: int = 4,
    bw: int = 64,
) -> None:
    """Largest element of each window.

    Parameters
    ----------
    X
        Images, shape ``(N, C, H, W)``; floats or integers.
    Y
        Output, shape ``(N, C, OH, OW)``, same dtype, with ``OH = (H + 2·padding - kernel) // stride + 1`` (0
        if the window does not fit) and ``OW`` likewise.
    kernel
        Extents of a window: an int, or a pair ``(vertical, horizontal)``.
    stride
        Distance of windows, as ``kernel`` if not given.
    padding
        Elements around the image that never win: ``-inf``, or the least integer.
    bh, bw
        Output rows and columns handled at a time.

    Notes
    -----
    A NaN in a window makes it NaN. A window that lies in the padding alone gives the padding's value.

    Raises
    ------
    ArgumentError
        The shapes do not fit.
    """
    (kh, kw), (ph, pw) = pair(kernel, "kernel", 1), pair(padding, "padding", 0)
    sh, sw = pair(kernel if stride is None else stride, "stride", 1)
    assert X.ndim == 4, f"X has shape {X.shape}, not (N, C, H, W)"
    assert X.dtype == Y.dtype, f"X is {X.dtype}, Y is {Y.dtype}"
    N, C, height, width = X.shape
    OH, OW = window_count(height, kh, sh, ph), window_count(width, kw, sw, pw)
    assert Y.shape == (N, C, OH, OW), f"Y has shape {Y.shape}, the pooled images have {(N, C, OH, OW)}"
    bh, bw = max(1, min(bh, OH)), max(1, min(bw, OW))
    least = lowest(X.dtype)
    for n, c, i, j in tt.parallel(N, C, tt.cdiv(OH, bh), tt.cdiv(OW, bw)):
        best = tt.full((bh, bw), least, X.dtype)
        for r, s in tt.reduce(kh, kw):
            rows = strided(i * (bh * sh) + r - ph, bh, sh)
            columns = strided(j * (bw * sw) + s - pw, bw, sw)
            best = tt.maximum(best, X.at[n, c, rows, columns].load(fill=least))
        Y[n, c, tt.ds(i * bh, bh), tt.ds(j * bw, bw)] = best
