"""Result types of operations; the frontend builds with these rules and the verifier checks by them."""

from __future__ import annotations

from tvm_tile.ir.dtypes import STORAGE_ONLY, accumulation_dtype, is_bool, is_float, is_narrowing
from tvm_tile.ir.functions import FUNCTIONS, REDUCIBLE
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import (
    ArgReduce,
    Atomic,
    Broadcast,
    Cast,
    Concat,
    Elementwise,
    Extract,
    FromIndex,
    Full,
    Gather,
    Insert,
    Iota,
    Load,
    Mma,
    Op,
    ReduceTile,
    Reshape,
    Transpose,
    subscript_shape,
)
from tvm_tile.ir.values import TileType

__all__ = [
    "TypeFault",
    "broadcast_shapes",
    "concat_type",
    "elementwise_type",
    "expected_type",
    "expected_types",
    "gather_type",
    "mma_type",
    "reduced_shape",
]

#: Functions that an :class:`~tvm_tile.ir.ops.Atomic` may combine with.
ATOMIC_FUNCTIONS = ("add", "maximum", "minimum")


class TypeFault(Exception):
    """Operands do not fit; the message has the shapes or dtypes."""


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy broadcasting of shapes."""
    rank = max((len(s) for s in shapes), default=0)
    out = []
    for axis in range(-rank, 0):
        extents = {s[axis] for s in shapes if -axis <= len(s)} - {1}
        if len(extents) > 1:
            raise TypeFault(f"shapes {' and '.join(map(str, shapes))} do not broadcast")
        out.append(extents.pop() if extents else 1)
    return tuple(out)


def _kind(dtype: str) -> str:
    if is_bool(dtype):
        return "bool"
    if is_float(dtype):
        return "float"
    return "uint" if dtype.startswith("u") else "int"


def elementwise_type(fn: str, operands: tuple[TileType, ...]) -> TileType:
    """Type of an elementwise application; shapes must be equal and dtypes too (``where`` aside)."""
    function = FUNCTIONS.get(fn)
    if function is None:
        raise TypeFault(f"there is no elementwise function {fn!r}")
    if len(operands) != function.arity:
        raise TypeFault(f"{fn} takes {function.arity} operands, not {len(operands)}")
    if len({t.shape for t in operands}) != 1:
        raise TypeFault(f"{fn} needs equal shapes, not {' and '.join(str(t.shape) for t in operands)}")
    data = operands
    if fn == "where":
        if operands[0].dtype != "bool":
            raise TypeFault(f"where needs a bool condition, not {operands[0].dtype}")
        data = operands[1:]
    dtypes = {t.dtype for t in data}
    if len(dtypes) != 1:
        raise TypeFault(f"{fn} needs equal dtypes, not {' and '.join(t.dtype for t in data)}")
    dtype = dtypes.pop()
    if fn != "where":
        if dtype in STORAGE_ONLY:
            raise TypeFault(f"{fn} cannot compute in {dtype}, which only loads, stores and casts")
        if _kind(dtype) not in function.kinds:
            raise TypeFault(f"{fn} does not take {dtype}")
    return TileType(operands[0].shape, "bool" if function.boolean else dtype)


def mma_type(a: TileType, b: TileType, acc: TileType) -> TileType:
    """Type of ``acc + a @ b``."""
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise TypeFault(f"mma needs matrices, not shapes {a.shape} and {b.shape}")
    if a.shape[-1] != b.shape[-2]:
        raise TypeFault(f"inner extents differ: {a.shape} @ {b.shape}")
    shape = (*broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    if shape != acc.shape:
        raise TypeFault(
            f"the product of {a.shape} and {b.shape} has shape {shape}, the accumulator {acc.shape}"
        )
    if is_bool(acc.dtype) or acc.dtype in STORAGE_ONLY:
        raise TypeFault(f"mma cannot accumulate in {acc.dtype}")
    for name, t in (("a", a), ("b", b)):
        if is_narrowing(t.dtype, acc.dtype):
            raise TypeFault(f"accumulating in {acc.dtype} would narrow operand {name} of dtype {t.dtype}")
    return acc


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """Shape after reducing axes away."""
    if any(not 0 <= axis < len(shape) for axis in axes) or len(set(axes)) != len(axes):
        raise TypeFault(f"axes {axes} do not fit shape {shape}")
    if keepdims:
        return tuple(1 if axis in axes else n for axis, n in enumerate(shape))
    return tuple(n for axis, n in enumerate(shape) if axis not in axes)


def concat_type(operands: tuple[TileType, ...], axis: int) -> TileType:
    """Type of tiles joined along an axis."""
    if not operands:
        raise TypeFault("concat needs one tile at least")
    first = operands[0]
    if not 0 <= axis < len(first.shape):
        raise TypeFault(f"axis {axis} does not exist in shape {first.shape}")
    rest = {(*t.shape[:axis], *t.shape[axis + 1 :]) for t in operands}
    if len(rest) != 1 or len({len(t.shape) for t in operands}) != 1:
        listed = " and ".join(str(t.shape) for t in operands)
        raise TypeFault(f"shapes {listed} differ in another axis than {axis}")
    if len({t.dtype for t in operands}) != 1:
        raise TypeFault(f"concat needs equal dtypes, not {' and '.join(t.dtype for t in operands)}")
    joined = sum(t.shape[axis] for t in operands)
    return TileType((*first.shape[:axis], joined, *first.shape[axis + 1 :]), first.dtype)


def gather_type(operand: TileType, index: TileType, axis: int) -> TileType:
    """Type of elements taken along an axis by position."""
    if not 0 <= axis < len(operand.shape):
        raise TypeFault(f"axis {axis} does not exist in shape {operand.shape}")
    if _kind(index.dtype) not in ("int", "uint"):
        raise TypeFault(f"positions are integers, not {index.dtype}")
    if len(index.shape) != len(operand.shape) or any(
        a != b for k, (a, b) in enumerate(zip(operand.shape, index.shape, strict=True)) if k != axis
    ):
        raise TypeFault(
            f"positions of shape {index.shape} do not fit shape {operand.shape} but for axis {axis}"
        )
    return TileType(index.shape, operand.dtype)


def expected_types(op: Op) -> tuple[TileType, ...]:
    """Types of an op's results by its operands.

    Raises
    ------
    TypeFault
        The operands do not fit.
    """
    match op:
        case MergeReduce(axes=axes, where=where):
            kept = _merged_type(op, axes)
            if where is not None:
                _check_where(where.type, op.operands[0].type)
            return kept
        case Scan(axis=axis):
            states = _merged_type(op, (axis,))
            return tuple(TileType(op.operands[0].shape, state.dtype) for state in states)
    expected = expected_type(op)
    return () if expected is None else (expected,)


def _merged_type(op: MergeReduce | Scan, axes: tuple[int, ...]) -> tuple[TileType, ...]:
    """Types of the states of a reduction or scan."""
    name = "a scan" if isinstance(op, Scan) else "a reduction"
    if not op.operands:
        raise TypeFault(f"{name} needs one operand at least")
    shapes = {v.shape for v in op.operands}
    if len(shapes) != 1:
        raise TypeFault(f"{name} needs operands of one shape, not {' and '.join(map(str, sorted(shapes)))}")
    fibres = reduced_shape(op.operands[0].shape, axes, False)
    elements = tuple(TileType(fibres, v.dtype) for v in op.operands)
    states = tuple(v.type for v in op.merge.identity.yields)
    for state in states:
        if state.shape != fibres:
            raise TypeFault(f"{name} of fibres {fibres} has a state of shape {state.shape}")
    if op.merge.lift is None and states != elements:
        listed = " and ".join(map(str, states)) or "none"
        raise TypeFault(
            f"without a lift the states are the elements {' and '.join(map(str, elements))}, not {listed}"
        )
    if op.merge.lift is not None and tuple(v.type for v in op.merge.lift.params) != elements:
        listed = " and ".join(str(v.type) for v in op.merge.lift.params) or "none"
        raise TypeFault(f"the lift takes {listed}, not {' and '.join(map(str, elements))}")
    if op.seeds and tuple(v.type for v in op.seeds) != states:
        listed = " and ".join(str(v.type) for v in op.seeds)
        raise TypeFault(f"the seeds are {listed}, the states {' and '.join(map(str, states))}")
    return states


def expected_type(op: Op) -> TileType | None:
    """Type of an op's only result by its operands; ``None`` for an op without a result.

    Where the result's dtype is free (a cast, a literal, a reduction's accumulator) it is taken from
    the declared result.

    Raises
    ------
    TypeFault
        The operands do not fit.
    """
    match op:
        case Full(result=result):
            if result.dtype in STORAGE_ONLY:
                raise TypeFault(f"a literal cannot have dtype {result.dtype}; cast it")
            return result.type
        case FromIndex():
            return TileType((), "int64")
        case Iota(result=result):
            if len(result.shape) != 1:
                raise TypeFault(f"iota has one axis, not shape {result.shape}")
            return result.type
        case Elementwise(fn=fn, operands=operands):
            return elementwise_type(fn, tuple(v.type for v in operands))
        case Cast(result=result, operand=operand):
            return TileType(operand.shape, result.dtype)
        case Broadcast(result=result, operand=operand):
            if broadcast_shapes(operand.shape, result.shape) != result.shape:
                raise TypeFault(f"shape {operand.shape} does not broadcast to {result.shape}")
            return TileType(result.shape, operand.dtype)
        case Reshape(result=result, operand=operand):
            if result.type.size != operand.type.size:
                raise TypeFault(f"shape {operand.shape} does not reshape to {result.shape}")
            return TileType(result.shape, operand.dtype)
        case Transpose(operand=operand, permutation=permutation):
            if sorted(permutation) != list(range(len(operand.shape))):
                raise TypeFault(f"{permutation} does not permute the axes of shape {operand.shape}")
            return TileType(tuple(operand.shape[axis] for axis in permutation), operand.dtype)
        case Extract(operand=operand, subscripts=subscripts):
            if len(subscripts) != len(operand.shape):
                raise TypeFault(f"{len(subscripts)} subscripts for shape {operand.shape}")
            return TileType(subscript_shape(subscripts), operand.dtype)
        case Insert():
            return _insert_type(op)
        case Concat(operands=operands, axis=axis):
            return concat_type(tuple(v.type for v in operands), axis)
        case Gather(operand=operand, index=index, axis=axis):
            return gather_type(operand.type, index.type, axis)
        case Atomic():
            return _atomic_type(op)
        case Mma(a=a, b=b, acc=acc):
            return mma_type(a.type, b.type, acc.type)
        case ReduceTile():
            return _reduce_type(op)
        case ArgReduce(operand=operand, axis=axis, kind=kind, keepdims=keepdims, where=where):
            if kind not in ("argmax", "argmin"):
                raise TypeFault(f"there is no reduction {kind!r}")
            if operand.dtype in STORAGE_ONLY:
                raise TypeFault(f"{kind} does not take {operand.dtype}")
            _check_where(where.type if where is not None else None, operand.type)
            return TileType(reduced_shape(operand.shape, (axis,), keepdims), "int32")
        case Load(view=view, mask=mask):
            _check_view_rank(view.memory.shape, len(view.subscripts))
            _check_where(mask.type if mask is not None else None, TileType(view.shape, view.memory.dtype))
            return TileType(view.shape, view.memory.dtype)
    return None


def _reduce_type(op: ReduceTile) -> TileType:
    operand, dtype = op.operand.type, op.result.dtype
    _check_where(op.where.type if op.where is not None else None, operand)
    kinds = {"add": ("int", "uint", "float"), "multiply": ("int", "uint", "float")}.get(
        op.combiner, ("bool", "int", "uint", "float") if op.combiner in ("maximum", "minimum") else ("bool",)
    )
    if op.combiner not in ("add", "multiply", "maximum", "minimum", "and", "or"):
        raise TypeFault(f"there is no reduction {op.combiner!r}")
    if operand.dtype in STORAGE_ONLY or _kind(operand.dtype) not in kinds:
        raise TypeFault(f"a reduction with {op.combiner} does not take {operand.dtype}")
    if (
        dtype != operand.dtype
        and is_narrowing(accumulation_dtype(operand.dtype), dtype)
        and is_narrowing(operand.dtype, dtype)
    ):
        raise TypeFault(f"accumulating {operand.dtype} in {dtype} would narrow")
    return TileType(reduced_shape(operand.shape, op.axes, op.keepdims), dtype)


def _insert_type(op: Insert) -> TileType:
    operand, value = op.operand.type, op.value.type
    _check_view_rank(operand.shape, len(op.subscripts))
    part = TileType(subscript_shape(op.subscripts), operand.dtype)
    if value != part:
        raise TypeFault(f"a part of {operand} is {part}, not {value}")
    if op.combine is not None:
        if op.combine not in REDUCIBLE:
            raise TypeFault(f"combine={op.combine!r} is not one of {', '.join(REDUCIBLE)}")
        elementwise_type(op.combine, (value, value))
    return operand


def _atomic_type(op: Atomic) -> TileType:
    dtype = op.view.memory.dtype
    _check_view_rank(op.view.memory.shape, len(op.view.subscripts))
    if op.fn not in ATOMIC_FUNCTIONS:
        raise TypeFault(f"there is no atomic {op.fn!r}; there are {', '.join(ATOMIC_FUNCTIONS)}")
    if is_bool(dtype) or dtype in STORAGE_ONLY:
        raise TypeFault(f"atomics do not work on {dtype}")
    part = TileType(op.view.shape, dtype)
    if op.value.type != part:
        raise TypeFault(f"an atomic on {op.view.memory} needs {part}, but {op.value} is {op.value.type}")
    _check_where(op.mask.type if op.mask is not None else None, part)
    return part


def _check_view_rank(shape: tuple[int, ...], subscripts: int) -> None:
    if len(shape) != subscripts:
        raise TypeFault(f"{subscripts} subscripts for shape {shape}")


def _check_where(mask: TileType | None, data: TileType) -> None:
    if mask is not None and mask != TileType(data.shape, "bool"):
        raise TypeFault(f"a mask for shape {data.shape} must be bool{list(data.shape)}, not {mask}")
