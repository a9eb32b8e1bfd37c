"""Where elements lie in the one-dimensional buffers of explicit memory, and of values kept as memory."""

from __future__ import annotations

from tvm_tile.bridges.tirx.lower.values import Index, flat_index
from tvm_tile.ir.index import IndexConst, IndexExpr, add, mul, substitute_index
from tvm_tile.ir.values import Memory

__all__ = ["GUARD_ELEMENTS", "VALUE", "address_of_element", "buffer_size"]

#: Scope of a memory that stands for a tile value: dense, its elements in their register dtype.
VALUE = "value"

#: Elements of the guard zones before and after an explicit memory in a debug build.
GUARD_ELEMENTS = 16


def address_of_element(memory: Memory, index: Index, guarded: bool) -> IndexExpr:
    """The position of an element in the memory's buffer, past the first guard zone if there is one."""
    if memory.scope == VALUE:
        return flat_index(index, memory.shape)
    start: IndexExpr = IndexConst(GUARD_ELEMENTS if guarded else 0)
    if memory.layout is not None:
        place = substitute_index(memory.layout.address, dict(zip(memory.layout.axes, index, strict=True)))
        return add(start, place)
    for position, stride in zip(index, memory.element_strides, strict=True):
        start = add(start, mul(position, IndexConst(stride)))
    return start


def buffer_size(memory: Memory) -> int:
    """Elements up to the highest address, without guard zones."""
    if memory.layout is not None:
        return memory.layout.size
    if 0 in memory.shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(memory.shape, memory.element_strides, strict=True))
