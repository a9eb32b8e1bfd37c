"""Where the elements of an explicit memory lie: each has an address of its own, none a negative one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm_tile.ir.index import IndexBinary, IndexConst, IndexExpr, IndexVar, add, as_linear, interval, mul
from tvm_tile.ir.values import Value

__all__ = ["PlacementFault", "address_count", "strided_address"]

#: Memory that is not larger is checked element by element.
_ENUMERATED = 1 << 22


class PlacementFault(Exception):
    """A placement cannot be used; the message continues "the layout of memory m ...".

    Attributes
    ----------
    suggestion
        One thing to try.
    counterexample
        The elements concerned, if they are known.
    undecided
        Whether it is not known to be wrong, only too large to be checked.
    """

    def __init__(
        self, message: str, *, suggestion: str, counterexample: str | None = None, undecided: bool = False
    ) -> None:
        super().__init__(message)
        self.suggestion = suggestion
        self.counterexample = counterexample
        self.undecided = undecided


def strided_address(axes: tuple[Value, ...], strides: tuple[int, ...]) -> IndexExpr:
    """The address that strides, in elements, give."""
    address: IndexExpr = IndexConst(0)
    for axis, step in zip(axes, strides, strict=True):
        address = add(address, mul(IndexVar(axis), IndexConst(int(step))))
    return address


def address_count(address: IndexExpr, axes: tuple[Value, ...], extents: tuple[int, ...]) -> int:
    """How many addresses a placement takes, from 0 up, once it is shown that its elements do not share any.

    Parameters
    ----------
    address
        The address of an element, in elements.
    axes
        What stands in it for the index along each axis.
    extents
        Of the memory.

    Raises
    ------
    PlacementFault
        Two elements share an address, one is negative, or that cannot be decided.
    """
    count = math.prod(extents)
    if count == 0:
        return 0
    size = _shown_count(address, axes, extents)
    if size >= 2**63:
        raise PlacementFault(
            f"has the address {size - 1}, which does not fit 64 bits", suggestion="use smaller strides"
        )
    return size


def _shown_count(address: IndexExpr, axes: tuple[Value, ...], extents: tuple[int, ...]) -> int:
    count = math.prod(extents)
    low, high = interval(address, {axis: (0, n - 1) for axis, n in zip(axes, extents, strict=True)})
    if low is not None and high is not None and _is_nested(address, axes, extents):
        # A linear map takes its extremes at corners, so the interval is exact.
        if low < 0:
            raise _negative(low)
        return high + 1
    if count > _ENUMERATED:
        raise PlacementFault(
            f"of {count} elements cannot be checked for shared addresses",
            suggestion="use strides that nest, or a smaller memory",
            undecided=True,
        )
    return _enumerated_count(address, axes, extents)


def _negative(address: int, element: str | None = None) -> PlacementFault:
    return PlacementFault(
        f"has the negative address {address}",
        counterexample=element,
        suggestion="add an offset, so that the least address is 0",
    )


def _is_nested(address: IndexExpr, axes: tuple[Value, ...], extents: tuple[int, ...]) -> bool:
    """Whether the map is linear with strides that each step over all that the smaller ones reach."""
    terms, _ = as_linear(address)
    if any(not isinstance(atom, IndexVar) for atom in terms):
        return False
    reach = 0
    steps = sorted(
        (abs(terms.get(IndexVar(axis), 0)), n) for axis, n in zip(axes, extents, strict=True) if n > 1
    )
    for step, extent in steps:
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True


def _enumerated_count(address: IndexExpr, axes: tuple[Value, ...], extents: tuple[int, ...]) -> int:
    count = math.prod(extents)
    grid = np.indices(extents, sparse=True, dtype=np.int64)
    if _is_huge(address, axes, extents):
        grid = tuple(part.astype(object) for part in grid)
    places = np.broadcast_to(_evaluated(address, dict(zip(axes, grid, strict=True))), extents).reshape(-1)
    order = np.argsort(places, kind="stable")
    ordered = places[order]

    def element(flat: Any) -> str:
        return str(tuple(int(i) for i in np.unravel_index(int(flat), extents)))

    if ordered[0] < 0:
        raise _negative(int(ordered[0]), f"element {element(order[0])}")
    equal = np.flatnonzero(ordered[1:] == ordered[:-1])
    if equal.size:
        first, second, place = order[equal[0]], order[equal[0] + 1], int(ordered[equal[0]])
        distinct = count - equal.size
        raise PlacementFault(
            f"maps {count} elements onto {distinct} addresses",
            counterexample=f"elements {element(first)} and {element(second)} share address {place}",
            suggestion="give each element an address of its own",
        )
    return int(ordered[-1]) + 1


def _is_huge(address: IndexExpr, axes: tuple[Value, ...], extents: tuple[int, ...]) -> bool:
    """Whether some part of the address may not fit in 64 bits."""
    bounds = {axis: (0, n - 1) for axis, n in zip(axes, extents, strict=True)}

    def fits(e: IndexExpr) -> bool:
        low, high = interval(e, bounds)
        inside = low is not None and high is not None and -(2**62) < low <= high < 2**62
        return inside and (not isinstance(e, IndexBinary) or (fits(e.a) and fits(e.b)))

    return not fits(address)


def _evaluated(e: IndexExpr, values: dict[Value, Any]) -> Any:
    match e:
        case IndexConst(value):
            return np.asarray(value, dtype=object if abs(value) >= 2**62 else np.int64)
        case IndexVar(value):
            return values[value]
        case IndexBinary(op, a, b):
            left, right = _evaluated(a, values), _evaluated(b, values)
            match op:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "min":
                    return np.minimum(left, right)
                case "max":
                    return np.maximum(left, right)
            # Division by zero gives 0, as everywhere in the language.
            divisor = np.where(right == 0, 1, right)
            quotient = left // divisor if op == "//" else left % divisor
            return np.where(right == 0, 0, quotient)
    raise AssertionError(e)
