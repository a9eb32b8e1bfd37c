"""Scalar programs made programs of tiles: every element at once.

The function of :func:`tvm_tile.map` is captured for one element. What depends on the element gets the axes of
all elements in front of its own; what does not stays as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NoReturn

from tvm_tile.errors import CaptureError
from tvm_tile.frontend.merges import function_merge
from tvm_tile.frontend.operands import broadcast, converted, filled, value_of
from tvm_tile.frontend.shape import reshaped
from tvm_tile.frontend.tile import Tile
from tvm_tile.frontend.trace import Scope, Trace
from tvm_tile.ir import regions as ir
from tvm_tile.ir.index import (
    IndexBinary,
    IndexConst,
    IndexExpr,
    IndexVar,
    Predicate,
    free_values,
    substitute_index,
    substitute_predicate,
)
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import (
    ArgReduce,
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
    Mma,
    Op,
    Point,
    ReduceTile,
    Reshape,
    Slice,
    Subscript,
    Transpose,
)
from tvm_tile.ir.span import Span
from tvm_tile.ir.structure import map_values, operands_of, walk
from tvm_tile.ir.uses import uses_of
from tvm_tile.ir.values import TileType, Value

__all__ = ["Batching"]

_INDEX_FUNCTIONS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "//": "floor_divide",
    "%": "remainder",
    "min": "minimum",
    "max": "maximum",
}


class Batching:
    """The values of a scalar program as tiles over a batch of elements.

    Parameters
    ----------
    trace
        Where the tiles are emitted.
    shape
        The axes of the batch.
    elements
        The scalar program's parameters, each with the tile of its elements.
    """

    def __init__(self, trace: Trace, shape: tuple[int, ...], elements: Mapping[Value, Tile]) -> None:
        self._trace = trace
        self._shape = shape
        #: What a value became: a tile with the batch's axes in front.
        self._batched: dict[Value, Tile] = dict(elements)
        #: What a value became that does not depend on the element.
        self._plain: dict[Value, Value] = {}
        self._span: Span | None = None

    def full(self, value: Value) -> Tile:
        """A value with the batch's axes in front; what does not depend on the element is repeated."""
        if value in self._batched:
            return self._batched[value]
        plain = Tile(self._trace, self._kept(value))
        return broadcast(plain, (*self._shape, *plain.shape))

    def block(self, block: ir.Block) -> None:
        """Emit the statements of a block."""
        for statement in block.statements:
            match statement:
                case ir.If():
                    self._select(statement)
                case ir.Loop():
                    self._loop(statement)
                case _:
                    self._operation(statement)

    def _depends(self, values: Any) -> bool:
        return any(value in self._batched for value in values)

    def _select(self, branch: ir.If) -> None:
        # Nothing in the arms has effects, so both are computed.
        self.block(branch.then)
        self.block(branch.orelse)
        pairs = zip(branch.results, branch.then_yields, branch.else_yields, strict=True)
        for result, then, orelse in pairs:
            ends = (branch.condition, then, orelse)
            if self._depends(ends):
                condition = self._spread(self.full(branch.condition), result.shape)
                sides: tuple[Tile, ...] = (condition, self.full(then), self.full(orelse))
            else:
                condition = broadcast(Tile(self._trace, self._kept(branch.condition)), result.shape)
                sides = (condition, *(Tile(self._trace, self._kept(v)) for v in (then, orelse)))
            self._record(result, self._elementwise("where", result.dtype, sides), self._depends(ends))

    def _record(self, value: Value, tile: Tile, batched: bool) -> None:
        if batched:
            self._batched[value] = tile
        else:
            self._plain[value] = value_of(tile)

    def _kept(self, value: Value) -> Value:
        return self._plain.get(value, value)

    def _spread(self, tile: Tile, shape: tuple[int, ...]) -> Tile:
        """A batched scalar repeated to a shape behind the batch's axes."""
        if not shape:
            return tile
        return broadcast(reshaped(tile, (*self._shape, *(1,) * len(shape))), (*self._shape, *shape))

    def _elementwise(self, fn: str, dtype: str, operands: tuple[Tile, ...]) -> Tile:
        return self._trace.emit(
            Elementwise,
            TileType(operands[-1].shape, dtype),
            fn=fn,
            operands=tuple(map(value_of, operands)),
        )

    def _loop(self, loop: ir.Loop) -> None:
        read = {value for extent in loop.domain.extents for value in free_values(extent)}
        if loop.domain.where is not None:
            read |= free_values(loop.domain.where)
        if self._depends(read):
            raise CaptureError(
                "a loop in the function of tt.map runs as often as an element says",
                span=loop.span,
                suggestion="loop over a static extent and mask what is too much with an `if`",
            )
        if isinstance(loop, ir.Reduce) and loop.merge is not None and loop.merge.builtin is None:
            raise CaptureError(
                "a tt.reduce loop with a declared merge has no place in the function of tt.map",
                span=loop.span,
                suggestion='keep the order of the source with policy="fold_left", or use tt.serial',
            )
        trace, outer = self._trace, self._trace.scope
        inits = tuple(value_of(self.full(value)) for value in loop.inits)
        scope = Scope(type(loop).__name__.lower(), outer, loop.span)
        for index in loop.indices:
            trace.define(index, scope)
        args = []
        for arg, init in zip(loop.args, inits, strict=True):
            new = trace.fresh(init.type, arg.name, scope=scope, span=arg.span)
            self._batched[arg] = Tile(trace, new)
            args.append(new)
        trace.scope = scope
        try:
            self.block(loop.body)
            yields = tuple(value_of(self.full(value)) for value in loop.yields)
        finally:
            trace.scope = outer
        results = tuple(
            trace.fresh(arg.type, value.name, span=value.span)
            for arg, value in zip(args, loop.results, strict=True)
        )
        where = loop.domain.where
        fields: dict[str, Any] = {
            "domain": ir.Domain(
                tuple(self._index(extent) for extent in loop.domain.extents),
                None if where is None else self._predicate(where),
            ),
            "body": scope.block,
            "inits": inits,
            "args": tuple(args),
            "yields": yields,
            "results": results,
        }
        if isinstance(loop, ir.Reduce) and loop.merge is not None:
            fields["merge"] = self._merge(loop.merge, tuple(arg.type for arg in args), loop)
        trace.append(dataclasses.replace(loop, **fields))
        for value, result in zip(loop.results, results, strict=True):
            self._batched[value] = Tile(trace, result)

    def _merge(self, merge: ir.Merge, types: tuple[TileType, ...], loop: ir.Loop) -> ir.Merge:
        """A merge that works element by element, for the batched states."""
        assert merge.builtin is not None
        built = function_merge(self._trace, merge.builtin, types)
        return dataclasses.replace(built, provenance=merge.provenance, exact=merge.exact)

    def _index(self, e: IndexExpr) -> IndexExpr:
        return substitute_index(e, {old: IndexVar(new) for old, new in self._plain.items()})

    def _predicate(self, e: Predicate) -> Predicate:
        return substitute_predicate(e, {old: IndexVar(new) for old, new in self._plain.items()})

    def _subscripts(self, subscripts: tuple[Subscript, ...]) -> tuple[Subscript, ...]:
        """Subscripts behind those of the batch, which take all of it."""
        own: list[Subscript] = [Slice(IndexConst(0), n) for n in self._shape]
        for subscript in subscripts:
            index = subscript.index if isinstance(subscript, Point) else subscript.start
            if self._depends(free_values(index)):
                raise CaptureError(
                    "a subscript in the function of tt.map depends on an element",
                    span=self._span,
                    suggestion="pick by position outside of it with tt.gather(x, index, axis)",
                )
            kept = self._index(index)
            own.append(
                Point(kept) if isinstance(subscript, Point) else dataclasses.replace(subscript, start=kept)
            )
        return tuple(own)

    def _operation(self, op: Op) -> None:
        self._span = op.span
        if not self._depends(use.value for use in uses_of(op)):
            if isinstance(op, (MergeReduce, Scan)) and self._depends(_merge_reads(op.merge)):
                self._refuse_merge(op)
            self._copy(op)
            return
        if isinstance(op, (MergeReduce, Scan)):
            self._combine(op)
            return
        self._batched[op.results[0]] = self._widened(op)

    def _combine(self, op: MergeReduce | Scan) -> None:
        """A reduction or scan of what depends on the element, with a merge that works element by element."""
        if op.merge.builtin is None:
            self._refuse_merge(op)
        rank, shape = len(self._shape), self._shape
        states = tuple(TileType((*shape, *v.shape), v.dtype) for v in op.merge.identity.yields)
        fields: dict[str, Any] = {
            "operands": tuple(value_of(self.full(v)) for v in op.operands),
            "seeds": tuple(value_of(self.full(v)) for v in op.seeds),
            "policy": op.policy,
            "merge": function_merge(self._trace, op.merge.builtin, states),
        }
        if isinstance(op, Scan):
            fields |= {"axis": rank + op.axis, "exclusive": op.exclusive}
        else:
            where = None if op.where is None else value_of(self.full(op.where))
            fields |= {"axes": tuple(rank + axis for axis in op.axes), "where": where}
        types = tuple(TileType((*shape, *v.shape), v.dtype) for v in op.outputs)
        outputs = self._trace.emit_all(_kind(op), types, **fields)
        self._batched.update(zip(op.outputs, outputs, strict=True))

    def _refuse_merge(self, op: Op) -> NoReturn:
        raise CaptureError(
            "a declared merge has no place in the function of tt.map",
            span=op.span,
            suggestion="apply it to the whole tile, outside of tt.map",
        )

    def _copy(self, op: Op) -> None:
        """Emit an operation that does not depend on the element as it is."""
        for value in op.results:
            self._plain[value] = self._trace.fresh(value.type, value.name, span=value.span)
        self._trace.append(map_values(op, self._kept))

    def _widened(self, op: Op) -> Tile:
        """An operation on what depends on the element, over the whole batch."""
        rank, shape = len(self._shape), self._shape
        result = op.results[0]
        type = TileType((*shape, *result.shape), result.dtype)
        match op:
            case FromIndex(index=index):
                return self._arithmetic(index)
            case Elementwise(operands=operands):
                return self._emit(op, type, operands=tuple(self.full(v) for v in operands))
            case Cast(operand=operand):
                return self._emit(op, type, operand=self.full(operand))
            case Broadcast(operand=operand):
                tile = self.full(operand)
                aligned = (*shape, *(1,) * (len(result.shape) - len(operand.shape)), *operand.shape)
                return broadcast(reshaped(tile, aligned), type.shape)
            case Reshape(operand=operand):
                return reshaped(self.full(operand), type.shape)
            case Transpose(operand=operand, permutation=permutation):
                moved = (*range(rank), *(rank + axis for axis in permutation))
                return self._emit(op, type, operand=self.full(operand), permutation=moved)
            case Extract(operand=operand, subscripts=subscripts):
                return self._emit(
                    op, type, operand=self.full(operand), subscripts=self._subscripts(subscripts)
                )
            case Insert(operand=operand, subscripts=subscripts, value=value):
                return self._emit(
                    op,
                    type,
                    operand=self.full(operand),
                    subscripts=self._subscripts(subscripts),
                    value=self.full(value),
                )
            case Concat(operands=operands, axis=axis):
                return self._emit(op, type, operands=tuple(self.full(v) for v in operands), axis=rank + axis)
            case Gather(operand=operand, index=index, axis=axis):
                return self._emit(
                    op, type, operand=self.full(operand), index=self.full(index), axis=rank + axis
                )
            case Mma(a=a, b=b, acc=acc):
                return self._emit(
                    op, type, a=self._matrix(a, acc), b=self._matrix(b, acc), acc=self.full(acc)
                )
            case ReduceTile(operand=operand, axes=axes, where=where):
                return self._emit(
                    op,
                    type,
                    operand=self.full(operand),
                    axes=tuple(rank + axis for axis in axes),
                    where=None if where is None else self.full(where),
                )
            case ArgReduce(operand=operand, axis=axis, where=where):
                return self._emit(
                    op,
                    type,
                    operand=self.full(operand),
                    axis=rank + axis,
                    where=None if where is None else self.full(where),
                )
            case Full() | Iota():
                raise AssertionError(f"{op} reads nothing")
        raise CaptureError(
            f"{_kind(op).__name__} has no place in the function of tt.map",
            span=op.span,
            suggestion="apply it to the whole tile, outside of tt.map",
        )

    def _matrix(self, value: Value, acc: Value) -> Tile:
        """A factor with as many axes as the product, so that the batch's axes meet."""
        tile = self.full(value)
        missing = len(acc.shape) - len(value.shape)
        return reshaped(tile, (*self._shape, *(1,) * missing, *value.shape))

    def _emit(self, op: Op, type: TileType, **fields: Any) -> Tile:
        """The operation with other operands; all of its other fields stay."""

        def plain(x: Any) -> Any:
            if isinstance(x, Tile):
                return value_of(x)
            return tuple(map(plain, x)) if isinstance(x, tuple) else x

        kept = {
            f.name: getattr(op, f.name) for f in dataclasses.fields(op) if f.name not in ("result", "span")
        }
        return self._trace.emit(
            _kind(op), type, **(kept | {name: plain(value) for name, value in fields.items()})
        )

    def _arithmetic(self, e: IndexExpr) -> Tile:
        """Index arithmetic on elements, in 64 bits."""
        match e:
            case IndexConst(value):
                return filled(self._trace, self._shape, value, "int64")
            case IndexVar(value):
                return converted(self.full(value), "int64")
            case IndexBinary(op, a, b):
                sides = (self._arithmetic(a), self._arithmetic(b))
                return self._elementwise(_INDEX_FUNCTIONS[op], "int64", sides)
        raise AssertionError(e)


def _kind(op: Op) -> type[Op]:
    return type(op)


def _merge_reads(merge: ir.Merge) -> set[Value]:
    found = {value for statement in walk(merge) for value in operands_of(statement)}
    return found | {v for part in (merge.combine, merge.identity, merge.lift) if part for v in part.yields}
