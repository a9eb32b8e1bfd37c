"""Admitted orders: of the instances of parallel regions, and of the contributions to reductions."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tvm_tile.errors import ArgumentError

__all__ = ["Orders"]

T = TypeVar("T")


@dataclass(frozen=True)
class _Choice:
    """``"source"``, ``"reverse"`` or a generator that draws each decision anew."""

    name: str
    rng: np.random.Generator | None

    @classmethod
    def of(cls, parameter: str, value: Any) -> _Choice:
        if isinstance(value, str) and value in ("source", "reverse"):
            return cls(value, None)
        if not isinstance(value, (str, bool, np.bool_)):
            try:
                seed = operator.index(value)
            except TypeError:
                seed = -1
            if seed >= 0:
                return cls(f"seed {seed}", np.random.default_rng(seed))
        raise ArgumentError(
            f"{parameter}={value!r} is not 'source', 'reverse' or a seed that is an integer of at least 0",
            suggestion=f'{parameter}="source"',
        )


class Orders:
    """One admitted computation of a program, as the caller asked for it.

    Parameters
    ----------
    order
        Order of parallel instances: ``"source"``, ``"reverse"`` or a seed. Each entry of a region draws
        a new permutation from one generator.
    reduction
        Grouping of tree reductions: ``"source"`` is the left fold of the contributions; ``"reverse"``
        the right-leaning tree, or the left fold from the last one where permuting is admitted; a seed
        draws random trees, and permutations where admitted. Folds have no freedom.

    Raises
    ------
    ArgumentError
        A value is none of these.
    """

    def __init__(self, order: Any = "source", reduction: Any = "source") -> None:
        self._order = _Choice.of("order", order)
        self._reduction = _Choice.of("reduction", reduction)

    @property
    def order(self) -> str:
        """How parallel instances are ordered, in words."""
        return self._order.name

    @property
    def reduction(self) -> str:
        """How tree reductions are grouped, in words."""
        return self._reduction.name

    @property
    def regroups(self) -> bool:
        """Whether tree reductions may differ from the left fold of their contributions."""
        return self.reduction != "source"

    def instances(self, points: Iterable[T]) -> Iterable[T]:
        """The instances of one entry of a parallel region, in the order to run them in."""
        if self.order == "source":
            return points
        known = list(points)
        if self._order.rng is None:
            return reversed(known)
        return [known[k] for k in self._order.rng.permutation(len(known))]

    def tree(self, leaves: Iterable[T], merge: Callable[[T, T], T], *, permute: bool) -> T:
        """Combine contributions.

        Parameters
        ----------
        leaves
            At least one contribution, in source order.
        merge
            Combines a left and a right partial result.
        permute
            Whether the policy admits another order of the leaves, not just another grouping.
        """
        if not self.regroups:
            return functools.reduce(merge, leaves)
        items = list(leaves)
        rng = self._reduction.rng
        if rng is None:
            if permute:
                return functools.reduce(merge, reversed(items))
            return functools.reduce(lambda right, left: merge(left, right), reversed(items))
        if permute:
            items = [items[k] for k in rng.permutation(len(items))]
        while len(items) > 1:
            items = _merge_some_neighbours(items, merge, rng)
        return items[0]


def _merge_some_neighbours(items: list[T], merge: Callable[[T, T], T], rng: np.random.Generator) -> list[T]:
    chosen = rng.random(len(items)) < 0.5
    level: list[T] = []
    k = 0
    while k < len(items):
        if chosen[k] and k + 1 < len(items):
            level.append(merge(items[k], items[k + 1]))
            k += 2
        else:
            level.append(items[k])
            k += 1
    return level
