"""The program that ``doctor`` builds: small, with a tail, one value to check an element."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt

__all__ = ["scale_and_shift"]


@tt.kernel
def scale_and_shift(X: Any, Y: Any) -> None:
    """``Y = 2 X + 1`` in blocks of 16."""
    for i in tt.parallel(tt.cdiv(X.shape[0], 16)):
        Y[tt.ds(i * 16, 16)] = X[tt.ds(i * 16, 16)] * 2.0 + 1.0
