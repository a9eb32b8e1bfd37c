"""Evaluation of statements on NumPy arrays.

Regions run one instance after the other, tile operations as whole arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tvm_tile.ir.dtypes import numpy_dtype
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import (
    Alloc,
    ArgReduce,
    Atomic,
    Broadcast,
    Cast,
    Concat,
    Elementwise,
    Extern,
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
    Stage,
    Store,
    Transpose,
    View,
)
from tvm_tile.ir.patches import patched_states
from tvm_tile.ir.reductions import TREES
from tvm_tile.ir.regions import (
    Block,
    Domain,
    If,
    Lambda,
    Loop,
    Merge,
    Parallel,
    Pipeline,
    Reduce,
    Serial,
    Statement,
)
from tvm_tile.ir.values import Value
from tvm_tile.semantics.arguments import Arguments
from tvm_tile.semantics.elementwise import apply_elementwise
from tvm_tile.semantics.external import call_extern
from tvm_tile.semantics.memories import address_of, allocate, update_window
from tvm_tile.semantics.merges import State, combined, merge_reduce, merge_scan
from tvm_tile.semantics.orders import Orders
from tvm_tile.semantics.patches import PatchJoin
from tvm_tile.semantics.rounding import Array, cast, constant
from tvm_tile.semantics.shadow import Monitor
from tvm_tile.semantics.tiles import arg_reduce, gather, multiply_accumulate, reduce_tile
from tvm_tile.semantics.views import (
    evaluate_index,
    evaluate_predicate,
    part_of,
    read_window,
    window_of,
    write_window,
)

__all__ = ["Machine"]

Coordinates = tuple[int, ...]

#: The value of a carried state, and which of its elements an instance of a region around has written.
Carried = tuple[Array, Array | None]


class Machine:
    """The state of a run: values by id, memories by name.

    Values are never changed in place, so ops may share storage among them; memories are read by copy.
    """

    def __init__(self, arguments: Arguments, orders: Orders, monitor: Monitor | None = None) -> None:
        self._values: dict[int, Array] = dict(arguments.scalars)
        self._memories = dict(arguments.arrays)
        self._orders = orders
        self._monitor = monitor
        # Of values that are partial updates of a patched state: the elements written since its region began.
        self._written: dict[int, Array] = {}
        self._patched: dict[int, tuple[bool, ...]] = {}
        # Of the running instances of the parallel regions around, outermost first.
        self._coordinates: list[tuple[str, int]] = []

    def block(self, block: Block) -> None:
        """Run statements one after the other."""
        for statement in block.statements:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Store():
                self._store(statement)
            case Stage():
                pass
            case Alloc(memory=memory):
                self._memories[memory.name] = allocate(memory)
                if self._monitor is not None:
                    self._monitor.allocate(memory)
            case Extern():
                self._extern(statement)
            case Insert():
                self._insert(statement)
            case MergeReduce(outputs, operands, axes, merge, policy, seeds, where):
                reduced = merge_reduce(
                    self._state(operands),
                    axes,
                    merge,
                    policy=policy,
                    seeds=self._state(seeds),
                    where=self._optional(where),
                    orders=self._orders,
                    call=self.call,
                )
                self._assign(outputs, reduced)
            case Scan(outputs, operands, axis, merge, exclusive, policy, seeds):
                prefixes = merge_scan(
                    self._state(operands),
                    axis,
                    merge,
                    policy=policy,
                    exclusive=exclusive,
                    seeds=self._state(seeds),
                    orders=self._orders,
                    call=self.call,
                )
                self._assign(outputs, prefixes)
            case Op():
                self._values[statement.results[0].id] = self._result(statement)
            case If(condition, then, orelse, then_yields, else_yields, results):
                arm, yields = (then, then_yields) if self._values[condition.id] else (orelse, else_yields)
                self.block(arm)
                self._give(results, self._take(yields))
            case Parallel():
                self._parallel(statement)
            case Reduce():
                self._assign(statement.results, self._reduce(statement))
            case Serial() | Pipeline():
                points = self._points(statement.domain, statement.indices)
                self._give(statement.results, self._fold(statement, points))
            case _:
                raise TypeError(f"unknown statement {type(statement).__name__}")

    # Values and index arithmetic

    def _state(self, values: Sequence[Value]) -> State:
        return tuple(self._values[value.id] for value in values)

    def _assign(self, values: Sequence[Value], state: State) -> None:
        for value, tile in zip(values, state, strict=True):
            self._values[value.id] = tile

    def _take(self, values: Sequence[Value]) -> list[Carried]:
        return [(self._values[value.id], self._written.get(value.id)) for value in values]

    def _give(self, values: Sequence[Value], carried: Iterable[Carried]) -> None:
        for value, (tile, written) in zip(values, carried, strict=True):
            self._values[value.id] = tile
            if written is None:
                self._written.pop(value.id, None)
            else:
                self._written[value.id] = written

    def _integer(self, value: Value) -> int:
        return int(self._values[value.id])

    def _optional(self, value: Value | None) -> Array | None:
        return None if value is None else self._values[value.id]

    # Operations

    def _result(self, op: Op) -> Array:
        values = self._values
        match op:
            case Elementwise(fn=fn, operands=operands):
                return apply_elementwise(fn, *self._state(operands))
            case Load():
                return self._load(op)
            case Mma(a=a, b=b, acc=acc, ordered=ordered):
                return multiply_accumulate(
                    values[a.id], values[b.id], values[acc.id], ordered=ordered, orders=self._orders
                )
            case Broadcast(result, operand):
                return np.broadcast_to(values[operand.id], result.shape)
            case Cast(result, operand):
                return cast(values[operand.id], result.dtype)
            case Full(result, value):
                return np.full(result.shape, constant(value, result.dtype), numpy_dtype(result.dtype))
            case FromIndex(index=index):
                return np.asarray(_wrapped(evaluate_index(index, self._integer)))
            case Iota(result):
                return cast(np.arange(result.shape[0]), result.dtype)
            case Reshape(result, operand):
                return values[operand.id].reshape(result.shape)
            case Transpose(operand=operand, permutation=permutation):
                return values[operand.id].transpose(permutation)
            case Extract(operand=operand, subscripts=subscripts):
                tile = values[operand.id]
                window = window_of(tile.shape, subscripts, self._integer)
                return read_window(tile, window, np.zeros((), tile.dtype))
            case Concat(operands=operands, axis=axis):
                return np.concatenate(self._state(operands), axis)
            case Gather(result, operand, index, axis, fill):
                return gather(values[operand.id], values[index.id], axis, constant(fill, result.dtype))
            case Atomic():
                return self._atomic(op)
            case ReduceTile(result, operand, axes, combiner, policy=policy, where=where):
                reduced = reduce_tile(
                    values[operand.id],
                    axes,
                    combiner,
                    result.dtype,
                    policy=policy,
                    where=self._optional(where),
                    orders=self._orders,
                )
                return reduced.reshape(result.shape)
            case ArgReduce(result, operand, axis, kind, where=where):
                return arg_reduce(values[operand.id], axis, kind, self._optional(where)).reshape(result.shape)
        raise TypeError(f"unknown operation {type(op).__name__}")

    def _load(self, op: Load) -> Array:
        memory = op.view.memory
        array, mask = self._memories[memory.name], self._optional(op.mask)
        window = window_of(array.shape, op.view.subscripts, self._integer)
        if self._monitor is not None:
            self._monitor.load(op, window, mask)
        return read_window(array, window, constant(op.fill, memory.dtype), mask)

    def _store(self, op: Store) -> None:
        array, mask = self._memories[op.view.memory.name], self._optional(op.mask)
        window = window_of(array.shape, op.view.subscripts, self._integer)
        if self._monitor is not None:
            self._monitor.store(op, window, mask)
        write_window(array, window, self._values[op.value.id], mask)

    def _atomic(self, op: Atomic) -> Array:
        array, mask = self._memories[op.view.memory.name], self._optional(op.mask)
        window = window_of(array.shape, op.view.subscripts, self._integer)
        if self._monitor is not None:
            self._monitor.update(op, window, mask)
        return update_window(array, window, self._values[op.value.id], op.fn, mask)

    def _extern(self, op: Extern) -> None:
        arguments: list[int | Array] = []
        for item in op.operands:
            if isinstance(item, View):
                array = self._memories[item.memory.name]
                arguments.append(address_of(array, item, self._integer, op.span))
            else:
                arguments.append(self._values[item.id])
        if self._monitor is not None:
            self._monitor.opaque(op)
        call_extern(op.symbol, arguments, op.span)

    def _insert(self, op: Insert) -> None:
        tile = self._values[op.operand.id].copy()
        window = window_of(tile.shape, op.subscripts, self._integer)
        write_window(tile, window, self._values[op.value.id])
        written = self._written.get(op.operand.id)
        if written is not None:
            written = written.copy()
            if not window.empty:
                part_of(written, window.memory)[...] = True
        self._give((op.result,), ((tile, written),))

    # Regions

    def _points(self, domain: Domain, indices: Sequence[Value]) -> Iterator[Coordinates]:
        """Active coordinates in source order. A negative extent is empty, as ``range`` is."""
        extents = [evaluate_index(extent, self._integer) for extent in domain.extents]
        for point in itertools.product(*map(range, extents)):
            if domain.where is not None:
                self._place(indices, point)
                if not evaluate_predicate(domain.where, self._integer):
                    continue
            yield point

    def _place(self, indices: Sequence[Value], point: Coordinates) -> None:
        for index, coordinate in zip(indices, point, strict=True):
            self._values[index.id] = np.asarray(coordinate, np.int64)

    def _body(self, loop: Loop, point: Coordinates, carried: Iterable[Carried]) -> list[Carried]:
        """One iteration: all next states are read at its end, so they change at once."""
        self._place(loop.indices, point)
        self._give(loop.args, carried)
        self.block(loop.body)
        return self._take(loop.yields)

    def _fold(self, loop: Loop, points: Iterable[Coordinates]) -> list[Carried]:
        carried = self._take(loop.inits)
        for point in points:
            carried = self._body(loop, point, carried)
        return carried

    def _parallel(self, region: Parallel) -> None:
        """All instances start from the states before; afterwards these are joined, or anchored."""
        before = self._take(region.inits)
        patched = self._patched.get(id(region))
        if patched is None:
            patched = self._patched[id(region)] = patched_states(region)
        joins = {k: PatchJoin(region, k, before[k][0]) for k, found in enumerate(patched) if found}
        after = list(before)
        names = [index.name or str(index) for index in region.indices]
        monitor = self._monitor
        if monitor is not None:
            monitor.enter(region)
        depth = len(self._coordinates)
        for point in self._orders.instances(self._points(region.domain, region.indices)):
            self._coordinates.extend(zip(names, point, strict=True))
            if monitor is not None:
                monitor.instance(point)
            start = [
                (tile, np.zeros(tile.shape, np.bool_) if k in joins else written)
                for k, (tile, written) in enumerate(before)
            ]
            for k, (tile, written) in enumerate(self._body(region, point, start)):
                if k not in joins:
                    # The verifier has shown that every instance yields the same value.
                    after[k] = (tile, written)
                elif written is not None:
                    joins[k].add(tile, written, tuple(self._coordinates))
            del self._coordinates[depth:]
        if monitor is not None:
            monitor.leave()
        for k, join in joins.items():
            earlier = before[k][1]
            after[k] = (join.value, None if earlier is None else earlier | join.written)
        self._give(region.results, after)

    def _reduce(self, region: Reduce) -> State:
        points = self._points(region.domain, region.indices)
        if region.policy == "fold_right":
            points = reversed(list(points))
        merge = region.merge
        if region.policy not in TREES or merge is None or not region.args:
            return tuple(tile for tile, _ in self._fold(region, points))
        seed = self._state(region.inits)
        identity = self.call(merge.identity, ())
        lifts = (self._lift(region, merge, identity, point) for point in points)
        first = next(lifts, None)
        if first is None:
            return seed
        total = self._orders.tree(
            itertools.chain((first,), lifts),
            lambda left, right: self._merge(merge, left, right),
            permute=region.policy == "unordered_tree",
        )
        return self._merge(merge, seed, total)

    def _lift(self, region: Reduce, merge: Merge, identity: State, point: Coordinates) -> State:
        """The contribution of one coordinate as a state of its own."""
        if merge.lift is None:
            return tuple(tile for tile, _ in self._body(region, point, ((tile, None) for tile in identity)))
        return self.call(merge.lift, tuple(np.asarray(c, np.int64) for c in point))

    def _merge(self, merge: Merge, left: State, right: State) -> State:
        return combined(merge, left, right, self.call)

    def call(self, function: Lambda, arguments: State) -> State:
        """Run a function of a merge."""
        self._assign(function.params, arguments)
        self.block(function.body)
        return self._state(function.yields)


def _wrapped(value: int) -> int:
    """An exact index as the ``int64`` value that a program sees."""
    return (value + 2**63) % 2**64 - 2**63
