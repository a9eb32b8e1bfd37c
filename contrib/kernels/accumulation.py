"""Dtypes in which running sums are kept."""

from __future__ import annotations

__all__ = ["accumulator_dtype", "sum_dtype"]


def accumulator_dtype(dtype: str) -> str:
    """Dtype to accumulate in: 32 bits for the 16-bit floats and the small integers, of the same kind."""
    wider = {"float16": "float32", "bfloat16": "float32", "int8": "int32", "int16": "int32"}
    return {**wider, "uint8": "uint32", "uint16": "uint32"}.get(dtype, dtype)


def sum_dtype(elements: str, result: str) -> str:
    """Dtype of a sum of ``elements`` that is stored as ``result``: the wider of the two accumulators.

    A float if one of them is: a float takes integers with less loss than the other way round.
    """
    candidates: list[str] = [accumulator_dtype(result), accumulator_dtype(elements)]
    floats = [dtype for dtype in candidates if "float" in dtype]
    return max(floats or candidates, key=lambda dtype: int(dtype.lstrip("uintfloa")))
