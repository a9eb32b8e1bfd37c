"""Sliding windows over images: extents and subscripts that convolutions and pooling share."""

from __future__ import annotations

from typing import Any

__all__ = ["pair", "strided", "window_count"]


def pair(value: int | tuple[int, int], name: str, least: int) -> tuple[int, int]:
    """One number for both axes of an image, or a pair ``(vertical, horizontal)``.

    Parameters
    ----------
    value
        What the caller gave.
    name
        How the parameter is called, for the message.
    least
        Smallest number that makes sense.

    Raises
    ------
    AssertionError
        It is neither an int nor a pair of ints, or a number is too small.
    """
    both = value if isinstance(value, (tuple, list)) else (value, value)
    assert len(both) == 2 and all(type(v) is int for v in both), (
        f"{name}={value!r} is neither an int nor a pair of ints"
    )
    assert min(both) >= least, f"{name}={value!r} is below {least}"
    return (both[0], both[1])


def window_count(extent: int, kernel: int, stride: int, padding: int) -> int:
    """How many windows of ``kernel`` elements fit into a padded axis, ``stride`` apart."""
    return max(0, (extent + 2 * padding - kernel) // stride + 1)


def strided(start: Any, size: int, step: int) -> slice:
    """The subscript of ``size`` elements from an index ``start`` on, ``step`` apart."""
    return slice(start, start + size * step, step)
