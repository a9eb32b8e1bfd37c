"""Rows of arrays of any rank: the last axis is the row, all axes before it number the rows."""

from __future__ import annotations

from typing import Any

import tvm_tile as tt

__all__ = ["block_width", "row_block", "row_extents", "row_index"]


def row_extents(X: Any) -> tuple[int, ...]:
    """Extents of the axes that number the rows; ``(1,)`` for a single row.

    Raises
    ------
    AssertionError
        The array is a scalar and has no rows.
    """
    assert X.ndim >= 1, "a row-wise kernel needs at least one axis, not a 0-d array"
    return tuple(X.shape[:-1]) or (1,)


def row_index(X: Any, row: Any) -> tuple[Any, ...]:
    """Subscripts that select one row, from the loop variable of ``tt.parallel(*row_extents(X))``."""
    if X.ndim == 1:
        return ()
    return row if isinstance(row, tuple) else (row,)


def block_width(X: Any, block: int) -> int:
    """Elements of a row to handle at a time: ``block``, or the whole row if that is less; at least 1."""
    return int(max(1, min(block, X.shape[-1])))


def row_block(X: Any, row: Any, k: Any, width: int) -> tuple[Any, ...]:
    """Subscripts of the ``k``-th ``width`` elements of one row; the last block may reach beyond its end."""
    return (*row_index(X, row), tt.ds(k * width, width))
