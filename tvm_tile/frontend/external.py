"""Calls of opaque C functions."""

from __future__ import annotations

import re
from typing import Any

from tvm_tile.errors import CaptureError, OperandError
from tvm_tile.frontend.described import described
from tvm_tile.frontend.index import Index, IndexCompare
from tvm_tile.frontend.operands import is_number, tile_of, value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.tensor import Ref, Tensor
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import require_trace
from tvm_tile.ir.dtypes import STORAGE_ONLY
from tvm_tile.ir.ops import Extern, View
from tvm_tile.ir.values import Memory, Value

__all__ = ["extern"]

_SYMBOL = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: Floats that C has no type for.
_NO_C_TYPE = ("float16", "bfloat16", *STORAGE_ONLY)


def extern(symbol: str, *operands: Any, reads: Any = None, writes: Any = None) -> None:
    """Call an opaque C function ``void symbol(...)``, once an instance.

    Parameters
    ----------
    symbol : str
        Name of the function, as the linker knows it.
    *operands : ref, tensor, scalar tile, index or number
        A ref or a tensor passes the address of its first element, which must be in bounds; a scalar passes
        itself as the C type of its dtype (``int64_t`` for Python ints and indices, ``double`` for Python
        floats).
    reads, writes : sequence of tensor or ref, optional
        Memory that the function may read, and write. What is not declared is assumed touched: without
        ``reads`` or ``writes``, that is all memory among the operands. ``[]`` declares that there is none.

    Raises
    ------
    CaptureError
        The symbol is no C name, an operand is a tile with axes, or what is declared is no memory.
    OperandError
        A scalar is a 16-bit or 8-bit float, which C has no type for.
    """
    trace = require_trace("tt.extern")
    span = current_span()
    if not isinstance(symbol, str) or not _SYMBOL.fullmatch(symbol):
        raise CaptureError(
            f"tt.extern calls a C function by its name, not {described(symbol)}",
            span=span,
            suggestion='such as tt.extern("my_function", A.at[0, 0], n)',
        )
    passed = tuple(_operand(operand) for operand in operands)
    touched = tuple(dict.fromkeys(item.memory for item in passed if isinstance(item, View)))
    trace.append(
        Extern(
            symbol,
            passed,
            reads=touched if reads is None else _memories(reads, "reads"),
            writes=touched if writes is None else _memories(writes, "writes"),
            span=span,
        )
    )


def _operand(x: Any) -> View | Value:
    if isinstance(x, Tensor):
        return Ref(x, ...).view
    if isinstance(x, Ref):
        return x.view
    span = current_span()
    if not isinstance(x, (Tile, Index, IndexCompare)) and not is_number(x):
        raise CaptureError(
            f"{described(x)} cannot be passed to a C function",
            span=span,
            suggestion="pass A.at[idx] for an address, or a scalar",
        )
    tile = tile_of(x)
    if tile.shape != ():
        raise CaptureError(
            f"{tile._describe()} is a value without address and cannot be passed to a C function",
            span=span,
            suggestion="store it to memory from tt.alloc, and pass that",
        )
    if tile.dtype in _NO_C_TYPE:
        raise OperandError(
            f"{tile._describe()} has no C type to be passed by",
            span=span,
            suggestion='convert it with .astype("float32")',
        )
    return value_of(tile)


def _memories(given: Any, name: str) -> tuple[Memory, ...]:
    items = given if isinstance(given, (tuple, list)) else (given,)
    found = []
    for item in items:
        tensor = item.tensor if isinstance(item, Ref) else item
        if not isinstance(tensor, Tensor):
            raise CaptureError(
                f"{name}= of tt.extern names memory, not {described(item)}",
                span=current_span(),
                suggestion=f"list tensors: {name}=[A]",
            )
        found.append(tensor.memory)
    return tuple(dict.fromkeys(found))
