"""Addressable memory inside a kernel, parameters and allocations: loads, stores and refs."""

from __future__ import annotations

import math
from typing import Any

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.described import described
from tvm_tile.frontend.index import IndexCompare
from tvm_tile.frontend.operands import broadcast, is_number, literal, tile_of, value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.shape import reshaped
from tvm_tile.frontend.stores import storable
from tvm_tile.frontend.subscripts import resolve_subscripts
from tvm_tile.frontend.tile import Operators, Tile
from tvm_tile.frontend.trace import Scope, Trace, require_trace
from tvm_tile.ir.dtypes import is_bool, is_float
from tvm_tile.ir.ops import Load, Number, Store, View
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["Ref", "Tensor", "fill_literal", "load", "ref_of"]

_BOUNDS = ("fill", "assume")


class Tensor(Operators):
    """Addressable memory, not a value: a tensor parameter, or explicit memory from :func:`alloc`.

    ``A[idx]`` loads a tile, ``A[idx] = v`` stores one, ``A.at[idx]`` is a :class:`Ref`.

    Attributes
    ----------
    scope
        The block that explicit memory lives in; ``None`` for a parameter.
    """

    def __init__(self, trace: Trace, memory: Memory, scope: Scope | None = None) -> None:
        self.trace = trace
        self.memory = memory
        self.scope = scope

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
        return f"{'tensor' if self.scope is None else 'memory'} {self.memory.name!r}"

    def __repr__(self) -> str:
        return f"<{self._describe()} {TileType(self.shape, self.dtype)}>"


class _At:
    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, subscripts: Any) -> Ref:
        return Ref(self._tensor, subscripts)

    def __repr__(self) -> str:
        return f"{self._tensor.memory.name}.at without subscripts"


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
        if tensor.scope is not None and not tensor.scope.encloses(trace.scope):
            raise CaptureError(
                f"{tensor._describe()} lives in a {tensor.scope.kind} body and cannot be used outside of it",
                span=current_span(),
                suggestion="allocate it before the region",
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
                f"fill={described(fill)} is no number",
                span=current_span(),
                suggestion="load with a mask and select with tt.where",
            )
        number = fill_literal(fill, self.dtype)
        tile = self._trace.emit(
            Load,
            TileType(self.view.shape, self.dtype),
            view=self.view,
            fill=number,
            bounds=bounds,
            mask=self.mask_value(mask),
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
            Store(self.view, stored, bounds=bounds, mask=self.mask_value(mask), span=current_span())
        )

    def _check_bounds(self, bounds: Any) -> None:
        if not isinstance(bounds, str) or bounds not in _BOUNDS:
            raise CaptureError(
                f"bounds={described(bounds)} is not one of {', '.join(_BOUNDS)}",
                span=current_span(),
                suggestion='leave it out for the default, "fill"',
            )

    def mask_value(self, mask: Any) -> Value | None:
        """A ``mask`` argument as a value of the view's shape."""
        if mask is None:
            return None
        if not isinstance(mask, (bool, Tile, IndexCompare)) or (
            isinstance(mask, Tile) and not is_bool(mask.dtype)
        ):
            shown = described(mask)
            raise OperandError(
                f"mask {shown} is no bool tile", span=current_span(), suggestion="compare it: x != 0"
            )
        return value_of(reshaped(broadcast(tile_of(mask), self.shape), self.view.shape))

    def __repr__(self) -> str:
        return f"<ref {self.view}>"


def ref_of(x: Any, what: str) -> Ref:
    """A part of memory as an argument: a ref, or a tensor without axes.

    Raises
    ------
    CaptureError
        It is a value, or a tensor of which no part is named.
    """
    if isinstance(x, Ref):
        return x
    span = current_span()
    if isinstance(x, Tensor):
        if x.ndim == 0:
            return Ref(x, ())
        name, dots = x.memory.name, ", ".join(["i", "j", "k", "l"][: x.ndim]) if x.ndim < 5 else "..."
        raise CaptureError(
            f"{what} takes a part of memory, and {x._describe()} of shape {x.shape} is given whole",
            span=span,
            suggestion=f"name the part: {name}.at[{dots}], or {name}.at[...] for all of it",
        )
    if isinstance(x, Operators):
        raise CaptureError(
            f"{what} takes a part of memory, not the value {x._describe()}, which a load has made",
            span=span,
            suggestion="use A.at[idx], which is a ref, in place of A[idx]",
        )
    raise CaptureError(
        f"{what} takes a part of memory, not {described(x)}", span=span, suggestion="name it by A.at[idx]"
    )


def load(ref: Any, fill: Any = 0, bounds: str = "fill", mask: Any = None) -> Tile:
    """Read a part of memory: the same as ``ref.load(...)``, and all of it for a tensor.

    Parameters
    ----------
    ref : ref or tensor
        ``A.at[idx]`` or ``A``.
    fill, bounds, mask
        As for :meth:`Ref.load`.

    Raises
    ------
    CaptureError
        It is a value.
    OperandError
        The fill value does not fit the dtype, or the mask does not fit the shape.
    """
    part = Ref(ref, ...) if isinstance(ref, Tensor) else ref_of(ref, "tt.load")
    return part.load(fill=fill, bounds=bounds, mask=mask)


def fill_literal(fill: Any, dtype: str) -> Number:
    """A fill value as a literal of a dtype."""
    number = literal(fill, "float32" if is_float(dtype) else dtype)
    if is_float(dtype):
        number = Number.of(float(fill))
    # Zero is spelled as in a plain load, so that both are the same program.
    return Number("0") if number.text in ("0", "0.0", "False") else number
