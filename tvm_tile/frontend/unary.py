"""Elementwise functions of one operand."""

from __future__ import annotations

from typing import Any

from tvm_tile.frontend.arithmetic import applied
from tvm_tile.frontend.tile import Tile

__all__ = [
    "abs",
    "ceil",
    "cos",
    "erf",
    "exp",
    "exp2",
    "floor",
    "isinf",
    "isnan",
    "log",
    "log2",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sqrt",
    "tanh",
]


def exp(x: Any) -> Tile:
    """e to the power of each element.

    Parameters
    ----------
    x : tile, index or number
        Integers and bool compute in the float type that NumPy takes for them.

    Returns
    -------
    Tile
        Of the shape of ``x``.
    """
    return applied("exp", x)


def exp2(x: Any) -> Tile:
    """2 to the power of each element.

    Parameters
    ----------
    x : tile, index or number
        Integers and bool compute in the float type that NumPy takes for them.

    Returns
    -------
    Tile
        Of the shape of ``x``.
    """
    return applied("exp2", x)


def log(x: Any) -> Tile:
    """Natural logarithm of each element.

    Of 0 it is ``-inf``, of a negative number NaN.

    Parameters
    ----------
    x : tile, index or number
        Integers and bool compute in the float type that NumPy takes for them.

    Returns
    -------
    Tile
        Of the shape of ``x``.
    """
    return applied("log", x)


def log2(x: Any) -> Tile:
    """Logarithm to base 2 of each element.

    Of 0 it is ``-inf``, of a negative number NaN.

    Parameters
    ----------
    x : tile, index or number
        Integers and bool compute in the float type that NumPy takes for them.

    Returns
    -------
    Tile
        Of the shape of ``x``.
    """
    return applied("log2", x)


def sqrt(x: Any) -> Tile:
    """Square root of each element.

    Of a negative number it is NaN.

    Parameters
    ----------
    x : tile, index or number
        Integers and bool compute in the float type that NumPy takes for them.

    Returns
    -------
    Tile
        Of the shape of ``x``.
    """
    return applied("sqrt", x)


def rsqrt(x: Any) -> Tile:
    """One over the square root of each element.

    Of 0 it is ``inf``, of a negative number NaN.

    Parameters
    ----------
    x : tile, index or number
        Integers and bool compute in the float type that NumPy takes for them.

    Returns
    -------
    Tile
        Of the shape of ``x``.
    """
    return applied("rsqrt", x)


def sin(x: Any) -> Tile:
    """Sine of each element, in radians.

    Parameters
    ----------
    x : tile, index or number
        Integers and bool compute in the float type that NumPy takes for them.

    Returns
    -------
    Tile
        Of the shape of ``x``.
    """
    return applied("sin", x)


def cos(x: Any) -> Tile:
    """Cosine of each element, in radians.

    Parameters
    ----------
    x : tile, index or number
        Integers and bool compute in the float type that NumPy takes for them.

    Returns
    -------
    Tile
        Of the shape of ``x``.
    """
    return applied("cos", x)


def tanh(x: Any) -> Tile:
    """Hyperbolic tangent of each element.

    Parameters
    ----------
    x : tile, index or number
        Integers and bool compute in the float type that NumPy takes for them.

    Returns
    -------
    Tile
        Of the shape of ``x``.
    """
    return applied("tanh", x)


def erf(x: Any) -> Tile:
    """Gauss error function of each element.

    Parameters
    ----------
    x : tile, index or number
        Integers and bool compute in the float type that NumPy takes for them.

    Returns
    -------
    Tile
        Of the shape of ``x``.
    """
    return applied("erf", x)


def sigmoid(x: Any) -> Tile:
    """``1 / (1 + exp(-x))`` of each element.

    Parameters
    ----------
    x : tile, index or number
        Integers and bool compute in the float type that NumPy takes for them.

    Returns
    -------
    Tile
        Of the shape of ``x``.
    """
    return applied("sigmoid", x)


def abs(x: Any) -> Tile:
    """Absolute value of each element.

    That of the least integer wraps to itself.

    Parameters
    ----------
    x : tile, index or number
        Any numbers.

    Returns
    -------
    Tile
        Of the shape and dtype of ``x``.
    """
    return applied("abs", x)


def floor(x: Any) -> Tile:
    """Largest whole number not above each element.

    Parameters
    ----------
    x : tile, index or number
        Any numbers; integers stay as they are.

    Returns
    -------
    Tile
        Of the shape and dtype of ``x``.
    """
    return applied("floor", x)


def ceil(x: Any) -> Tile:
    """Smallest whole number not below each element.

    Parameters
    ----------
    x : tile, index or number
        Any numbers; integers stay as they are.

    Returns
    -------
    Tile
        Of the shape and dtype of ``x``.
    """
    return applied("ceil", x)


def round(x: Any) -> Tile:
    """Whole number nearest to each element, halves to even.

    Parameters
    ----------
    x : tile, index or number
        Any numbers; integers stay as they are.

    Returns
    -------
    Tile
        Of the shape and dtype of ``x``.
    """
    return applied("round", x)


def isnan(x: Any) -> Tile:
    """Whether each element is NaN.

    Parameters
    ----------
    x : tile, index or number
        Any numbers; of integers none is.

    Returns
    -------
    Tile
        Of the shape of ``x`` and dtype bool.
    """
    return applied("isnan", x)


def isinf(x: Any) -> Tile:
    """Whether each element is an infinity of either sign.

    Parameters
    ----------
    x : tile, index or number
        Any numbers; of integers none is.

    Returns
    -------
    Tile
        Of the shape of ``x`` and dtype bool.
    """
    return applied("isinf", x)
