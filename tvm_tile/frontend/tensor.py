"""Tensor parameters inside a kernel: loads, stores and refs."""

from __future__ import annotations

import math
from typing import Any

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.index import IndexCompare
from tvm_tile.frontend.operands import broadcast, is_number, literal, tile_of, value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.shape import reshaped
from tvm_tile.frontend.stores import storable
from tvm_tile.frontend.subscripts import resolve_subscripts
from tvm_tile.frontend.tile import Operators, Tile
from tvm_tile.frontend.trace import Trace, require_trace
from tvm_tile.ir.dtypes import is_bool, is_float
from tvm_tile.ir.ops import Load, Number, Store, View
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["Ref", "Tensor"]

_BOUNDS = ("fill", "assume")


class Tensor(Operators):
    """A tensor parameter: addressable memory, not a value.

    ``A[idx]`` loads a tile, ``A[idx] = v`` stores one, ``A.at[idx]`` is a :class:`Ref`.
    """

    def __init__(self, trace: Trace, memory: Memory) -> None:
        self.trace = trace
        self.memory = memory

    @property
    def shape(self) -> tuple[int, ...]:
        """Static extents, in elements."""
        return self.memory.shape

    @property
    def dtype(self) -> str:
        """Element type."""
        return self.memory.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.memory.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.memory.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance along each axis, in elements."""
        return self.memory.element_strides

    @property
    def at(self) -> _At:
        """``A.at[idx]`` is the :class:`Ref` of a part."""
        return _At(self)

    def __getitem__(self, subscripts: Any) -> Tile:
        return Ref(self, subscripts).load()

    def __setitem__(self, subscripts: Any, value: Any) -> None:
        Ref(self, subscripts, new_axes=False).store(value)

    def _describe(self) -> str:
        return f"tensor {self.memory.name!r}"

    def __repr__(self) -> str:
        return f"<{self._describe()} {TileType(self.shape, self.dtype)}>"


class _At:
    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, subscripts: Any) -> Ref:
        return Ref(self._tensor, subscripts)


class Ref:
    """A rectangular part of a tensor.

    Attributes
    ----------
    shape
        Extents of what it loads.
    dtype
        Element type.
    """

    def __init__(self, tensor: Tensor, subscripts: Any, *, new_axes: bool = True) -> None:
        trace = require_trace(tensor._describe())
        if tensor.trace is not trace:
            raise CaptureError(
                f"{tensor._describe()} is a parameter of kernel {tensor.trace.name!r}",
                span=current_span(),
                suggestion="pass it on as an argument",
            )
        self.tensor = tensor
        self._trace = trace
        resolved, self.shape = resolve_subscripts(
            subscripts, tensor.shape, tensor._describe(), new_axes=new_axes
        )
        self.view = View(tensor.memory, resolved)
        self.dtype = tensor.dtype

    def load(self, fill: Any = 0, bounds: str = "fill", mask: Any = None) -> Tile:
        """Read the part: a snapshot that later stores do not change.

        Parameters
        ----------
        fill : number
            Value of elements that are out of bounds or masked off.
        bounds : {"fill", "assume"}
            ``"assume"`` is the caller's promise that nothing is out of bounds.
        mask : bool tile, optional
            Broadcasts to the shape; elements where it is false are not read.

        Raises
        ------
        OperandError
            The fill value does not fit the dtype, or the mask does not fit the shape.
        """
        self._check_bounds(bounds)
        if not is_number(fill):
            raise OperandError(
                f"fill={fill!r:.60} is no number",
                span=current_span(),
                suggestion="load with a mask and select with tt.where",
            )
        number = _fill_literal(fill, self.dtype)
        tile = self._trace.emit(
            Load,
            TileType(self.view.shape, self.dtype),
            view=self.view,
            fill=number,
            bounds=bounds,
            mask=self._mask(mask),
        )
        return reshaped(tile, self.shape)

    def store(self, value: Any, bounds: str = "fill", mask: Any = None) -> None:
        """Write the part; elements out of bounds or masked off are dropped.

        Parameters
        ----------
        value : tile, index or number
            Broadcasts to the shape; it is widened to the tensor's dtype but never narrowed.
        bounds : {"fill", "assume"}
            ``"assume"`` is the caller's promise that nothing is out of bounds.
        mask : bool tile, optional
            Broadcasts to the shape; elements where it is false are not written.

        Raises
        ------
        OperandError
            The value would be narrowed, or does not broadcast.
        """
        self._check_bounds(bounds)
        tile = storable(value, self.shape, self.dtype, self.tensor._describe())
        stored = value_of(reshaped(tile, self.view.shape))
        self._trace.append(
            Store(self.view, stored, bounds=bounds, mask=self._mask(mask), span=current_span())
        )

    def _check_bounds(self, bounds: Any) -> None:
        if bounds not in _BOUNDS:
            raise CaptureError(
                f"bounds={bounds!r} is not one of {', '.join(_BOUNDS)}",
                span=current_span(),
                suggestion='leave it out for the default, "fill"',
            )

    def _mask(self, mask: Any) -> Value | None:
        if mask is None:
            return None
        if not isinstance(mask, (bool, Tile, IndexCompare)) or (
            isinstance(mask, Tile) and not is_bool(mask.dtype)
        ):
            described = mask._describe() if isinstance(mask, Operators) else repr(mask)
            raise OperandError(
                f"mask {described} is no bool tile", span=current_span(), suggestion="compare it: x != 0"
            )
        return value_of(reshaped(broadcast(tile_of(mask), self.shape), self.view.shape))

    def __repr__(self) -> str:
        return f"<ref {self.view}>"


def _fill_literal(fill: Any, dtype: str) -> Number:
    number = literal(fill, "float32" if is_float(dtype) else dtype)
    if is_float(dtype):
        number = Number.of(float(fill))
    # Zero is spelled as in a plain load, so that both are the same program.
    return Number("0") if number.text in ("0", "0.0", "False") else number
