"""Joins of patches: what the instances of a parallel region make of an outer tile together."""

from __future__ import annotations

import numpy as np

from tvm_tile.errors import IllegalError
from tvm_tile.ir.patches import Patches
from tvm_tile.ir.regions import Parallel
from tvm_tile.semantics.conflicts import Conflict, Touch
from tvm_tile.semantics.elementwise import apply_elementwise
from tvm_tile.semantics.rounding import Array

__all__ = ["PatchJoin"]

Coordinates = tuple[tuple[str, int], ...]


class PatchJoin:
    """The value of one patched state while the instances of a region run.

    Parameters
    ----------
    region
        The region.
    position
        Which of its carried states this is.
    before
        The state's value before the region.

    Attributes
    ----------
    value
        Its value after the instances so far.
    written
        Elements that some instance wrote.
    """

    def __init__(self, region: Parallel, position: int, before: Array) -> None:
        self._name = region.args[position].name or str(region.args[position])
        arg, result = region.args[position], region.yields[position]
        inserts = Patches(region.body, arg).inserts_of(result)
        self._combine = inserts[0].combine
        self._span = inserts[-1].span
        self._writers: list[Coordinates] = []
        self._owner = np.full(before.shape, -1, np.int64)
        self.value = before.copy()
        self.written = np.zeros(before.shape, np.bool_)

    def add(self, value: Array, written: Array, instance: Coordinates) -> None:
        """Join what one instance made of the value before the region.

        Parameters
        ----------
        value
            The instance's final value of the state.
        written
            Elements that the instance wrote.
        instance
            Its coordinates, by name.

        Raises
        ------
        IllegalError
            Another instance wrote one of these elements, and there is no ``combine``.
        """
        overlap = written & self.written
        if overlap.any():
            if self._combine is None:
                raise self._conflict(overlap, instance)
            joined = apply_elementwise(self._combine, self.value, value)
            value = np.where(overlap, joined, value)
        np.copyto(self.value, value, where=written)
        np.copyto(self._owner, len(self._writers), where=written)
        self._writers.append(instance)
        self.written |= written

    def _conflict(self, overlap: Array, instance: Coordinates) -> IllegalError:
        element = tuple(int(c) for c in np.unravel_index(int(np.argmax(overlap)), overlap.shape))
        earlier = self._writers[int(self._owner[element])]
        return IllegalError(
            f"two instances of one parallel region update one element of {self._name}",
            span=self._span,
            obligation="noninterference",
            counterexample=Conflict(
                Touch(earlier, "writes", self._name, element), Touch(instance, "writes", self._name, element)
            ),
            suggestion="let each instance update its own elements, or give combine=tt.add or another "
            "function",
        )
