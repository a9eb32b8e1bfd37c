"""Batch axes that broadcast as in NumPy: aligned at the last one, an extent of 1 standing for any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["broadcast_extents", "entry"]


def broadcast_extents(*extents: tuple[int, ...]) -> tuple[int, ...]:
    """Extents that all of these broadcast to.

    Raises
    ------
    AssertionError
        They do not fit.
    """
    try:
        return np.broadcast_shapes(*extents)
    except ValueError:
        raise AssertionError(f"axes {' and '.join(map(str, extents))} do not broadcast") from None


def entry(extents: Sequence[int], index: Sequence[Any], whole: Any = 0) -> tuple[Any, ...]:
    """Subscripts of axes of one array, from those of what they broadcast to.

    Parameters
    ----------
    extents
        Of the array's axes; there may be fewer of them than in ``index``.
    index
        One subscript for each axis of the result.
    whole
        Subscript of an axis of extent 1: by default 0, which drops it.
    """
    own = index[len(index) - len(extents) :]
    return tuple(whole if extent == 1 else i for extent, i in zip(extents, own, strict=True))
