"""Filters of images by 3×3 windows."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt

__all__ = ["median3x3", "sobel"]


def _neighbours(X: Any, image: tuple[Any, ...], i: Any, start: Any, size: int) -> list[list[Any]]:
    """The 3×3 windows of ``size`` pixels of row ``i``, as nine tiles: ``[1][1]`` holds the pixels themselves.

    Pixels at the border stand in for the missing ones beyond it.
    """
    height, width = X.shape[-2:]
    column = start + tt.iota(size, "int64")
    windows = []
    for row in (tt.maximum(i - 1, 0), i, tt.minimum(i + 1, height - 1)):
        left, middle, right = (X[(*image, row, tt.ds(start + shift, size))] for shift in (-1, 0, 1))
        left = tt.where(column == 0, middle, left)
        right = tt.where(column == width - 1, middle, right)
        windows.append([left, middle, right])
    return windows


@tt.kernel
def sobel(X: Any, Y: Any, *, block: int = 256) -> None:
    """Magnitude of the Sobel gradient, ``sqrt(gx² + gy²)``.

    ``gx`` weighs the columns of a pixel's 3×3 window by ``(-1, 0, 1)`` and its rows by ``(1, 2, 1)``, ``gy``
    the other way round. Beyond the border the nearest pixel of the image counts again.

    Parameters
    ----------
    X
        Images, shape ``(..., H, W)``; floats or integers.
    Y
        Output, same shape, a float dtype.
    block
        Pixels of a row that are handled at a time.

    Notes
    -----
    Computed in float32, or in float64 if ``X`` is float64 or a 32- or 64-bit integer, and rounded once. A NaN
    in the window of a pixel, its centre excepted, makes the pixel NaN.
    """
    assert X.shape == Y.shape, f"X has shape {X.shape}, Y has {Y.shape}"
    assert X.ndim >= 2, f"X has shape {X.shape}, not (..., H, W)"
    assert "float" in Y.dtype, f"Y is {Y.dtype}, but a magnitude is a float"
    *batch, height, width = X.shape
    size = max(1, min(block, width))
    wide = X.dtype.endswith(("32", "64")) and X.dtype != "float32"
    dtype = "float64" if wide else "float32"
    for *image, i, j in tt.parallel(*batch, height, tt.cdiv(width, size)):
        window = _neighbours(X, tuple(image), i, j * size, size)
        (a, b, c), (d, _, f), (g, h, k) = ([x.astype(dtype) for x in row] for row in window)
        gx = (c - a) + 2.0 * (f - d) + (k - g)
        gy = (g - a) + 2.0 * (h - b) + (k - c)
        magnitude = tt.sqrt(gx * gx + gy * gy)
        Y[(*image, i, tt.ds(j * size, size))] = magnitude.astype(Y.dtype)


@tt.kernel
def median3x3(X: Any, Y: Any, *, block: int = 256) -> None:
    """Median of each pixel's 3×3 window.

    The columns of a window are sorted, and the median of nine is the median of three: the largest of their
    least, the median of their middle, and the least of their largest elements (Smith, Implementing median
    filters in XC4000E FPGAs, 1996). Beyond the border the nearest pixel of the image counts again.

    Parameters
    ----------
    X
        Images, shape ``(..., H, W)``; floats or integers.
    Y
        Output, same shape and dtype.
    block
        Pixels of a row that are handled at a time.

    Notes
    -----
    A NaN in a window makes the pixel NaN, as ``numpy.median`` has it: minimum and maximum of a NaN are NaN,
    so it goes through all of the network.
    """
    assert X.shape == Y.shape, f"X has shape {X.shape}, Y has {Y.shape}"
    assert X.ndim >= 2, f"X has shape {X.shape}, not (..., H, W)"
    assert X.dtype == Y.dtype, f"X is {X.dtype}, Y is {Y.dtype}"
    *batch, height, width = X.shape
    size = max(1, min(block, width))
    for *image, i, j in tt.parallel(*batch, height, tt.cdiv(width, size)):
        window = _neighbours(X, tuple(image), i, j * size, size)
        low, middle, high = zip(*(_sorted3(*column) for column in zip(*window, strict=True)), strict=True)
        *_, floor = _sorted3(*low)
        _, centre, _ = _sorted3(*middle)
        ceiling, *_ = _sorted3(*high)
        Y[(*image, i, tt.ds(j * size, size))] = _sorted3(floor, centre, ceiling)[1]


def _sorted3(a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    """Three tiles, element by element in ascending order; three NaNs if one is."""
    a, b = tt.minimum(a, b), tt.maximum(a, b)
    b, c = tt.minimum(b, c), tt.maximum(b, c)
    a, b = tt.minimum(a, b), tt.maximum(a, b)
    return a, b, c
