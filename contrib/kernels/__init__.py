"""Library of tile programs: real operators, written only in the public language.

Outputs come last, batch axes first, arrays are row-major; blocking constants are keyword-only and
work for every size, ragged, zero and one included. Each kernel has a float64 NumPy oracle of the same
name in :mod:`tvm_tile.contrib.kernels.reference`. Open :mod:`~tvm_tile.contrib.kernels.matmul` first.
"""

from tvm_tile.contrib.kernels.attention import attention
from tvm_tile.contrib.kernels.matmul import gemm
from tvm_tile.contrib.kernels.neighbours import knn
from tvm_tile.contrib.kernels.normalization import layernorm
from tvm_tile.contrib.kernels.softmax import softmax

__all__ = ["attention", "gemm", "knn", "layernorm", "softmax"]
