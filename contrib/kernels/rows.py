"""Rows of arrays of any rank: the last axis is the row, all axes before it number the rows."""

from __future__ import annotations

from typing import Any

__all__ = ["accumulator_dtype", "row_extents", "row_index"]


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


def accumulator_dtype(dtype: str) -> str:
    """Dtype to accumulate in: 32 bits for the 16-bit floats and the small integers, of the same kind."""
    wider = {"float16": "float32", "bfloat16": "float32", "int8": "int32", "int16": "int32"}
    return {**wider, "uint8": "uint32", "uint16": "uint32"}.get(dtype, dtype)
