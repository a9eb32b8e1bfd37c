"""Elementwise kernels of transformer layers, fused so that each array is read once."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.accumulation import accumulator_dtype
from tvm_tile.contrib.kernels.activations import gelu, silu
from tvm_tile.contrib.kernels.broadcasting import entry
from tvm_tile.contrib.kernels.checks import require_floats
from tvm_tile.contrib.kernels.rows import block_width, row_block, row_extents

__all__ = ["bias_gelu_residual", "rope", "swiglu"]


@tt.kernel
def bias_gelu_residual(X: Any, bias: Any, R: Any, Y: Any, *, block: int = 1024) -> None:
    """End of a feed-forward layer: ``Y = gelu(X + bias) + R`` with the exact gelu, by erf.

    Parameters
    ----------
    X, R
        Shape ``(..., D)``, the same float dtype.
    bias
        Shape ``(D,)``, a float dtype.
    Y
        Output, same shape as ``X``, a float dtype; may be the same array as ``X`` or ``R``.
    block
        Elements of a row that are handled at a time.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ``D == 0`` writes nothing.
    """
    rows = row_extents(X)
    assert X.shape == R.shape == Y.shape, f"X {X.shape}, R {R.shape} and Y {Y.shape} must have one shape"
    assert bias.shape == X.shape[-1:], f"bias has shape {bias.shape}, not {X.shape[-1:]}"
    assert X.dtype == R.dtype, f"X is {X.dtype}, R is {R.dtype}; cast one of them"
    require_floats(X=X, bias=bias, Y=Y)
    width = block_width(X, block)
    dtype = accumulator_dtype(X.dtype)
    for *row, k in tt.parallel(*rows, tt.cdiv(X.shape[-1], width)):
        at = row_block(X, tuple(row), k, width)
        x = X[at].astype(dtype) + bias[tt.ds(k * width, width)].astype(dtype)
        Y[at] = (gelu(x) + R[at].astype(dtype)).astype(Y.dtype)


@tt.kernel
def swiglu(X: Any, G: Any, Y: Any, *, block: int = 1024) -> None:
    """Gated linear unit with the gate ``G``: ``Y = X * silu(G)``, where ``silu(g) = g * sigmoid(g)``.

    In the notation of Shazeer, GLU variants improve transformer, 2020, ``G = xW`` and ``X = xV``.

    Parameters
    ----------
    X, G
        Shape ``(..., D)``, the same float dtype.
    Y
        Output, same shape, a float dtype; may be the same array as ``X`` or ``G``.
    block
        Elements of a row that are handled at a time.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ``D == 0`` writes nothing.
    """
    rows = row_extents(X)
    assert X.shape == G.shape == Y.shape, f"X {X.shape}, G {G.shape} and Y {Y.shape} must have one shape"
    assert X.dtype == G.dtype, f"X is {X.dtype}, G is {G.dtype}; cast one of them"
    require_floats(X=X, Y=Y)
    width = block_width(X, block)
    dtype = accumulator_dtype(X.dtype)
    for *row, k in tt.parallel(*rows, tt.cdiv(X.shape[-1], width)):
        at = row_block(X, tuple(row), k, width)
        Y[at] = (X[at].astype(dtype) * silu(G[at].astype(dtype))).astype(Y.dtype)


@tt.kernel
def rope(X: Any, cos: Any, sin: Any, Y: Any, *, block: int = 16) -> None:
    """Rotary position embedding: pairs ``(x[i], x[i + dim/2])`` turn by the angle of their position.

    With the halves ``a = X[..., :dim/2]`` and ``b = X[..., dim/2:]`` of a row, ``Y`` holds
    ``a * cos - b * sin`` and ``b * cos + a * sin`` (Su et al., RoFormer, 2021, in the half-split layout of
    GPT-NeoX and Llama).

    Parameters
    ----------
    X
        Shape ``(..., length, dim)``, a float dtype, ``dim`` even.
    cos, sin
        Shape ``(length, dim / 2)``, float dtypes: of the angles of each position.
    Y
        Output, same shape as ``X``, a float dtype; may be the same array.
    block
        Positions that are handled at a time.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. Empty axes write nothing.
    """
    assert X.ndim >= 2, f"X has shape {X.shape}, not (..., length, dim)"
    *batch, length, dim = X.shape
    assert dim % 2 == 0, f"dim={dim} does not split into two halves"
    half = dim // 2
    for name, tensor in (("cos", cos), ("sin", sin)):
        assert tensor.shape == (length, half), f"{name} has shape {tensor.shape}, not {(length, half)}"
    assert X.shape == Y.shape, f"X has shape {X.shape}, Y has {Y.shape}"
    require_floats(X=X, cos=cos, sin=sin, Y=Y)
    dtype = accumulator_dtype(X.dtype)
    for *at, i in tt.parallel(*(batch or (1,)), tt.cdiv(length, block)):
        matrix, rows = entry(batch, at), tt.ds(i * block, block)
        c, s = cos[rows, :].astype(dtype), sin[rows, :].astype(dtype)
        first, second = (*matrix, rows, tt.ds(0, half)), (*matrix, rows, tt.ds(half, half))
        a, b = X[first].astype(dtype), X[second].astype(dtype)
        Y[first] = (a * c - b * s).astype(Y.dtype)
        Y[second] = (b * c + a * s).astype(Y.dtype)
