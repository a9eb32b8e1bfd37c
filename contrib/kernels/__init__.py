"""Library of tile programs: real operators, written only in the public language.

Outputs come last, batch axes first, arrays are row-major; blocking constants are keyword-only and
work for every size, ragged, zero and one included. Each kernel has a float64 NumPy oracle of the same
name in :mod:`~tvm_tile.contrib.kernels.reference` (products, rows, attention) or
:mod:`~tvm_tile.contrib.kernels.reference_data` (images, order, data-dependent indices). Open
:mod:`~tvm_tile.contrib.kernels.matmul` first.
"""

from tvm_tile.contrib.kernels.attention import attention, decode_attention, masked_attention
from tvm_tile.contrib.kernels.convolution import conv2d, depthwise_conv2d
from tvm_tile.contrib.kernels.images import median3x3, sobel
from tvm_tile.contrib.kernels.indexing import embedding, histogram, segment_sum
from tvm_tile.contrib.kernels.losses import cross_entropy
from tvm_tile.contrib.kernels.matmul import batched_gemm, gemm, gemm_bias_act, gemm_int8, gemv
from tvm_tile.contrib.kernels.neighbours import knn
from tvm_tile.contrib.kernels.normalization import layernorm, residual_layernorm, rmsnorm
from tvm_tile.contrib.kernels.pointwise import bias_gelu_residual, rope, swiglu
from tvm_tile.contrib.kernels.pooling import max_pool2d
from tvm_tile.contrib.kernels.reductions import col_sum, row_sum
from tvm_tile.contrib.kernels.scans import cummax, cumsum
from tvm_tile.contrib.kernels.softmax import log_softmax, softmax
from tvm_tile.contrib.kernels.sorting import argmax, sort, topk
from tvm_tile.contrib.kernels.transposition import transpose

__all__ = [
    "argmax",
    "attention",
    "batched_gemm",
    "bias_gelu_residual",
    "col_sum",
    "conv2d",
    "cross_entropy",
    "cummax",
    "cumsum",
    "decode_attention",
    "depthwise_conv2d",
    "embedding",
    "gemm",
    "gemm_bias_act",
    "gemm_int8",
    "gemv",
    "histogram",
    "knn",
    "layernorm",
    "log_softmax",
    "masked_attention",
    "max_pool2d",
    "median3x3",
    "residual_layernorm",
    "rmsnorm",
    "rope",
    "row_sum",
    "segment_sum",
    "sobel",
    "softmax",
    "sort",
    "swiglu",
    "topk",
    "transpose",
]
