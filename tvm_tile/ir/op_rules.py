"""Rules of single operations: types and shapes, literals, subscripts, masks and modes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tvm_tile.ir.dtypes import DTYPES, SIGNED, UNSIGNED, bits, is_bool, is_float, is_integer, numpy_dtype
from tvm_tile.ir.faults import Fault
from tvm_tile.ir.functions import FUNCTIONS
from tvm_tile.ir.index import (
    AddressMap,
    And,
    Comparison,
    IndexBinary,
    IndexConst,
    IndexExpr,
    Not,
    Or,
    Predicate,
    free_values,
)
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import (
    POLICIES,
    Alloc,
    Atomic,
    Elementwise,
    Extern,
    Extract,
    FromIndex,
    Full,
    Gather,
    Insert,
    Load,
    Number,
    Op,
    ReduceTile,
    Slice,
    Stage,
    Store,
    Subscript,
    View,
)
from tvm_tile.ir.placement import PlacementFault, address_count, strided_address
from tvm_tile.ir.span import Span
from tvm_tile.ir.typing import TypeFault, expected_types
from tvm_tile.ir.uses import index_values, uses_of
from tvm_tile.ir.values import Memory, TileType, Value

__all__ = ["LARGEST_SIZE", "index_faults", "literal_fault", "memory_fault", "op_faults", "type_fault"]

_INDEX_OPS = ("+", "-", "*", "//", "%", "min", "max")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_BOUNDS = ("fill", "assume")


def op_faults(op: Op) -> Iterator[Fault]:
    """Faults of one operation, apart from the scoping of its operands."""
    span = op.span
    malformed = [problem for value in op.results if (problem := type_fault(value.type)) is not None]
    for problem in malformed:
        yield Fault(f"value {op.results[0]}: {problem}", span, "type", "use a dtype and extents that exist")
    # A malformed operand is reported at its definition, and no rule applies to it here.
    operands = [use.value.type for use in uses_of(op)]
    if not malformed and all(type_fault(t) is None for t in operands):
        yield from _type_faults(op)
    match op:
        case Full(result=result, value=value):
            yield from _literal_faults(value, result.dtype, f"literal of {result}", span)
        case FromIndex(index=index):
            yield from index_faults(index, span)
        case Extract(subscripts=subscripts) | Insert(subscripts=subscripts):
            yield from _subscript_faults(subscripts, span)
        case ReduceTile(policy=policy) | MergeReduce(policy=policy) | Scan(policy=policy):
            if policy not in POLICIES:
                yield _choice("policy", policy, POLICIES, span)
        case Gather(result=result, fill=fill):
            yield from _literal_faults(fill, result.dtype, f"fill of {result}", span)
        case Alloc():
            yield from _allocation_faults(op)
        case Atomic(view=view):
            yield from _subscript_faults(view.subscripts, span)
        case Extern():
            yield from _call_faults(op)
        case Load(view=view, fill=fill, bounds=bounds):
            yield from _subscript_faults(view.subscripts, span)
            yield from _literal_faults(fill, view.memory.dtype, f"fill of a load from {view.memory}", span)
            if bounds not in _BOUNDS:
                yield _choice("bounds", bounds, _BOUNDS, span)
        case Store(view=view, bounds=bounds):
            yield from _subscript_faults(view.subscripts, span)
            if bounds not in _BOUNDS:
                yield _choice("bounds", bounds, _BOUNDS, span)
        case Stage(name=""):
            yield Fault("a stage has an empty name", span, "stage order", 'name it, as in tt.stage("load")')


def _choice(what: str, given: str, known: tuple[str, ...], span: Span | None) -> Fault:
    return Fault(f"{what} {given!r} is not one of {', '.join(known)}", span, what, f"use {what}={known[0]!r}")


#: Most bytes that a value or a memory may span; sums and differences of offsets then fit 64 bits.
LARGEST_SIZE = 1 << 60


def type_fault(tile_type: TileType) -> str | None:
    """What is wrong with a type on its own, or ``None``."""
    if tile_type.dtype not in DTYPES:
        return f"there is no dtype {tile_type.dtype!r}"
    if any(extent < 0 for extent in tile_type.shape):
        return f"shape {tile_type.shape} has a negative extent"
    if tile_type.size * bits(tile_type.dtype) // 8 > LARGEST_SIZE:
        return f"{tile_type} has more than {LARGEST_SIZE} bytes, which 64-bit addresses do not reach safely"
    return None


def memory_fault(memory: Memory) -> str | None:
    """Why a memory of a sound shape and as many strides cannot be addressed, or ``None``."""
    problem = type_fault(TileType(memory.shape, memory.dtype))
    if problem is not None or 0 in memory.shape:
        return problem
    steps = zip(memory.shape, memory.element_strides, strict=True)
    span = (1 + sum((extent - 1) * abs(stride) for extent, stride in steps)) * bits(memory.dtype) // 8
    if span > LARGEST_SIZE:
        return f"shape {memory.shape}, strides {memory.strides}, spans too many bytes"
    return None


def _type_faults(op: Op) -> Iterator[Fault]:
    remedy = "insert a cast, a broadcast or a reshape where the operands differ"
    if isinstance(op, Elementwise) and op.fn not in FUNCTIONS:
        remedy = f"use one of {', '.join(FUNCTIONS)}"
    try:
        expected = expected_types(op)
    except TypeFault as fault:
        yield Fault(_about(op, str(fault)), op.span, "type", remedy)
        return
    if isinstance(op, Store):
        yield from _store_faults(op)
        return
    given = tuple(value.type for value in op.results)
    if expected != given:
        problem = f"the operands give {_listed(expected)}, not {_listed(given)}"
        yield Fault(_about(op, problem), op.span, "type", remedy)


def _listed(types: tuple[TileType, ...]) -> str:
    return " and ".join(map(str, types)) or "nothing"


def _about(op: Op, problem: str) -> str:
    return f"value {op.results[0]}: {problem}" if op.results else problem


def _store_faults(op: Store) -> Iterator[Fault]:
    memory, given = op.view.memory, op.value.type
    if len(op.view.subscripts) != len(memory.shape):
        yield Fault(
            f"{len(op.view.subscripts)} subscripts for memory {memory} of shape {memory.shape}",
            op.span,
            "type",
            "give one subscript an axis",
        )
    expected = TileType(op.view.shape, memory.dtype)
    if given != expected:
        yield Fault(
            f"a store to {memory} needs {expected}, but {op.value} is {given}",
            op.span,
            "type",
            "cast or broadcast the value before the store",
        )
    mask = TileType(op.view.shape, "bool")
    if op.mask is not None and op.mask.type != mask:
        yield Fault(
            f"the mask {op.mask} of a store to {memory} must be {mask}, not {op.mask.type}",
            op.span,
            "type",
            "broadcast the mask to the shape of the view",
        )


#: Dtypes of scalars that C passes by value.
_C_SCALARS = ("bool", *SIGNED, *UNSIGNED, "float32", "float64")


def _call_faults(op: Extern) -> Iterator[Fault]:
    if not (op.symbol.isidentifier() and op.symbol.isascii()):
        message = f"{op.symbol!r} is not the name of a C function"
        yield Fault(message, op.span, "opaque call", "call it by its identifier")
    for item in op.operands:
        if isinstance(item, View):
            yield from _subscript_faults(item.subscripts, op.span)
            if item.memory.layout is not None:
                message = f"memory {item.memory} has a layout, of which a C function knows nothing"
                yield Fault(message, op.span, "opaque call", "pass memory with strides or none")
            if len(item.subscripts) != len(item.memory.shape):
                message = (
                    f"{len(item.subscripts)} subscripts for memory {item.memory} of shape {item.memory.shape}"
                )
                yield Fault(message, op.span, "type", "give one subscript an axis")
        elif item.shape != () or item.dtype not in _C_SCALARS:
            message = f"value {item} of type {item.type} cannot be passed to a C function"
            yield Fault(message, op.span, "opaque call", "pass scalars, and tiles through memory")


def _allocation_faults(op: Alloc) -> Iterator[Fault]:
    memory, layout = op.memory, op.memory.layout
    problem = type_fault(TileType(memory.shape, memory.dtype))
    if problem is not None:
        yield Fault(f"memory {memory}: {problem}", op.span, "type", "use a dtype and extents that exist")
        return
    if memory.scope == "param":
        message = f"memory {memory} is allocated as a parameter"
        yield Fault(message, op.span, "memory", 'allocate it in a memory such as "local"')
    axes = tuple(AddressMap.axis(k) for k in range(len(memory.shape)))
    if memory.strides is not None and len(memory.strides) != len(memory.shape):
        message = f"memory {memory} of shape {memory.shape} has the strides {memory.strides}"
        yield Fault(message, op.span, "memory", "give one stride an axis")
    elif layout is not None and (layout.axes != axes or free_values(layout.address) - set(axes)):
        number = "1 axis" if len(axes) == 1 else f"{len(axes)} axes"
        message = f"the layout of memory {memory} is not a function of its {number}"
        yield Fault(message, op.span, "memory", "use AddressMap.axis(k) for the index along axis k")
    elif layout is not None and memory.strides is not None:
        message = f"memory {memory} has strides and a layout"
        yield Fault(message, op.span, "memory", "give one of them")
    else:
        yield from _placement_faults(op, axes)


def _placement_faults(op: Alloc, axes: tuple[Value, ...]) -> Iterator[Fault]:
    memory, layout = op.memory, op.memory.layout
    if layout is not None:
        operators = list(index_faults(layout.address, op.span))
        yield from operators
        if operators:
            return
    address = strided_address(axes, memory.element_strides) if layout is None else layout.address
    try:
        count = address_count(address, axes, memory.shape)
    except PlacementFault as fault:
        example = "" if fault.counterexample is None else f": {fault.counterexample}"
        message = f"the layout of memory {memory} {fault}{example}"
        yield Fault(message, op.span, "injective layout", fault.suggestion)
        return
    if layout is not None and layout.size < count:
        message = f"the layout of memory {memory} reaches {count} addresses, more than its {layout.size}"
        yield Fault(message, op.span, "memory", f"give it {count} addresses")
    if count * bits(memory.dtype) // 8 > LARGEST_SIZE:
        message = f"memory {memory} spans too many bytes"
        yield Fault(message, op.span, "memory", f"keep it below {LARGEST_SIZE} bytes")


def _literal_faults(number: Number, dtype: str, what: str, span: Span | None) -> Iterator[Fault]:
    problem = literal_fault(number, dtype) if dtype in DTYPES else None
    if problem is not None:
        yield Fault(f"{what}: {problem}", span, "literal", f"write a literal that {dtype} can hold")


def literal_fault(number: Number, dtype: str) -> str | None:
    """Why a literal does not fit a dtype, or ``None``; a float may round."""
    try:
        value = number.value
    except ValueError:
        return f"{number} is not a number"
    if is_float(dtype):
        try:
            float(value)
        except OverflowError:
            return f"{number} is out of range for {dtype}"
        return None
    if isinstance(value, float):
        return f"the float {number} is not a value of {dtype}"
    if is_integer(dtype):
        info = np.iinfo(numpy_dtype(dtype))
        return None if info.min <= value <= info.max else f"{number} is out of range for {dtype}"
    return None if not is_bool(dtype) or value in (0, 1) else f"{number} is not a truth value"


def _subscript_faults(subscripts: tuple[Subscript, ...], span: Span | None) -> Iterator[Fault]:
    for axis, subscript in enumerate(subscripts):
        if isinstance(subscript, Slice):
            yield from index_faults(subscript.start, span)
            if subscript.size < 0:
                message = f"the slice of axis {axis} has the negative size {subscript.size}"
                yield Fault(message, span, "subscript", "use a size of 0 or more")
            if subscript.step == 0:
                message = f"the slice of axis {axis} has step 0"
                yield Fault(message, span, "subscript", "use a step other than 0")
        else:
            yield from index_faults(subscript.index, span)


def index_faults(e: IndexExpr | Predicate, span: Span | None) -> Iterator[Fault]:
    """Faults of an index expression or predicate: unknown operators, and values that are no integers."""
    for op, known in _operators(e):
        if op not in known:
            yield _choice("operator", op, known, span)
    for constant in _constants(e):
        if not -(1 << 63) <= constant < 1 << 63:
            yield Fault(
                f"the index literal {constant} does not fit 64 bits", span, "index", "use a smaller one"
            )
    for value in index_values(e):
        if not _is_index(value):
            yield Fault(
                f"value {value} of type {value.type} is used as an index, which must be an integer scalar",
                span,
                "index",
                f"cast {value} to an integer dtype, or extract one element of it",
            )


def _is_index(value: Value) -> bool:
    return value.shape == () and is_integer(value.dtype)


def _constants(e: IndexExpr | Predicate) -> Iterator[int]:
    match e:
        case IndexConst(value):
            yield value
        case IndexBinary(a=a, b=b) | Comparison(a=a, b=b) | And(a, b) | Or(a, b):
            yield from _constants(a)
            yield from _constants(b)
        case Not(a):
            yield from _constants(a)


def _operators(e: IndexExpr | Predicate) -> Iterator[tuple[str, tuple[str, ...]]]:
    match e:
        case IndexBinary(op, a, b):
            yield op, _INDEX_OPS
            yield from _operators(a)
            yield from _operators(b)
        case Comparison(op, a, b):
            yield op, _COMPARISONS
            yield from _operators(a)
            yield from _operators(b)
        case And(a, b) | Or(a, b):
            yield from _operators(a)
            yield from _operators(b)
        case Not(a):
            yield from _operators(a)
