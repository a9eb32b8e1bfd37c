"""Whether two arrays have an element in common, decided with bounded work."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["WORK", "share_an_element"]

#: Steps that NumPy may spend on one pair of interleaved arrays; about a millisecond.
WORK = 100_000


def share_an_element(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool | None:
    """Whether some byte belongs to both arrays; ``None`` if that is not decided within :data:`WORK` steps."""
    try:
        return bool(np.shares_memory(a, b, max_work=WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return None
