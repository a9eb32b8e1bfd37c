"""Training losses with their gradients."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt
from tvm_tile.contrib.kernels.checks import require_floats
from tvm_tile.contrib.kernels.rows import block_width, row_block, row_extents, row_index
from tvm_tile.contrib.kernels.softmax import exponential_sum, log_of_sum, reciprocal_of_sum

__all__ = ["cross_entropy"]


@tt.kernel
def cross_entropy(logits: Any, labels: Any, loss: Any, grad: Any, *, block: int = 1024) -> None:
    """Cross entropy of each row of logits with its label, and the gradient of that loss by the logits.

    ``loss = -log softmax(logits)[label]`` and ``grad = softmax(logits) - onehot(label)``, per row; the mean
    over rows is up to the caller.

    Parameters
    ----------
    logits
        Shape ``(..., classes)``, a float dtype.
    labels
        Shape ``(...)``, an integer dtype.
    loss
        Output, shape ``(...)``, a float dtype.
    grad
        Output, shape ``(..., classes)``, a float dtype; may be the same array as ``logits``.
    block
        Logits of a row that are handled at a time.

    Notes
    -----
    A row whose label is outside of ``[0, classes)``, such as -100, is ignored: loss and gradient are zero. A
    logit of ``-inf`` at the label gives a loss of ``+inf``, in a row of only ``-inf``, too. A NaN or ``+inf``
    makes the row NaN. 16-bit floats are computed in float32 and rounded once.
    """
    rows = row_extents(logits)
    classes = logits.shape[-1]
    assert labels.shape == logits.shape[:-1], f"labels have shape {labels.shape}, not {logits.shape[:-1]}"
    assert loss.shape == logits.shape[:-1], f"loss has shape {loss.shape}, not {logits.shape[:-1]}"
    assert grad.shape == logits.shape, f"grad has shape {grad.shape}, logits have {logits.shape}"
    assert "int" in labels.dtype, f"labels are {labels.dtype}, not integers"
    require_floats(logits=logits, loss=loss, grad=grad)
    width = block_width(logits, block)
    for row in tt.parallel(*rows):
        at = row_index(logits, row)
        label = labels[at].astype("int64")
        counts = (label >= 0) & (label < classes)
        base, total = exponential_sum(logits, row, width)
        chosen = logits[(*at, label)].astype(base.dtype)
        loss[at] = tt.where(counts, log_of_sum(total) - (chosen - base), 0.0).astype(loss.dtype)
        scale = reciprocal_of_sum(total)
        for k in tt.serial(tt.cdiv(classes, width)):
            part = row_block(logits, row, k, width)
            probability = tt.exp(logits[part].astype(base.dtype) - base) * scale
            grad[part] = tt.where(counts, probability, 0.0).astype(grad.dtype)
        # Of a label that is no class this is out of bounds, so it writes nothing.
        grad[(*at, label)] = (tt.exp(chosen - base) * scale - 1.0).astype(grad.dtype)
