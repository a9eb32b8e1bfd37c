"""The ends of a dtype's order: what never wins a comparison."""

from __future__ import annotations

import numpy as np

__all__ = ["highest", "lowest"]


def lowest(dtype: str) -> int | float:
    """What no element is below: ``-inf``, or the least integer."""
    return int(np.iinfo(dtype).min) if "int" in dtype else float("-inf")


def highest(dtype: str) -> int | float:
    """What no number is above: ``inf``, or the greatest integer."""
    return int(np.iinfo(dtype).max) if "int" in dtype else float("inf")
