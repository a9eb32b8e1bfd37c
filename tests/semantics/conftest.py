"""A small builder of programs, so that tests of the meaning depend on no frontend."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tvm_tile.ir.index import IndexConst, IndexExpr, IndexVar, Predicate
from tvm_tile.ir.ops import (
    ArgReduce,
    Broadcast,
    Cast,
    Elementwise,
    Extract,
    FromIndex,
    Full,
    Iota,
    Load,
    Mma,
    Number,
    Point,
    ReduceTile,
    Reshape,
    Slice,
    Store,
    Transpose,
    View,
)
from tvm_tile.ir.regions import Block, Domain, If, Lambda, Merge, Parallel, Pipeline, Program, Reduce, Serial
from tvm_tile.ir.span import Span
from tvm_tile.ir.typing import expected_type, reduced_shape
from tvm_tile.ir.values import Memory, TileType, Value

KINDS = {"parallel": Parallel, "serial": Serial, "pipeline": Pipeline, "reduce": Reduce}


def index_of(x: Any) -> IndexExpr:
    if isinstance(x, int):
        return IndexConst(x)
    return IndexVar(x) if isinstance(x, Value) else x


class LoopHandle:
    """Indices and args of an open loop; set ``yields`` before it closes; ``results`` after."""

    def __init__(self, indices: tuple[Value, ...], args: tuple[Value, ...]) -> None:
        self.indices = indices
        self.args = args
        self.yields: tuple[Value, ...] = ()
        self.results: tuple[Value, ...] = ()


class Builder:
    def __init__(self) -> None:
        self._ids = itertools.count()
        self._blocks: list[list[Any]] = [[]]
        self._lines = itertools.count(1)

    def span(self) -> Span:
        line = next(self._lines)
        return Span("program", line, 1, line, 2)

    def value(self, shape: Sequence[int], dtype: str, name: str = "") -> Value:
        return Value(next(self._ids), TileType(tuple(shape), dtype), name)

    def tensor(self, name: str, shape: Sequence[int], dtype: str = "float32", strides: Any = None) -> Memory:
        return Memory(name, tuple(shape), dtype, strides)

    def scalar(self, name: str, dtype: str = "float32") -> Value:
        return self.value((), dtype, name)

    def emit(self, op: Any) -> Any:
        self._blocks[-1].append(op)
        return op.results[0] if op.results else None

    # Operations

    def full(self, shape: Sequence[int], number: Any, dtype: str = "float32") -> Value:
        return self.emit(Full(self.value(shape, dtype), Number.of(number)))

    def from_index(self, index: Any) -> Value:
        return self.emit(FromIndex(self.value((), "int64"), index_of(index)))

    def iota(self, n: int, dtype: str = "int64") -> Value:
        return self.emit(Iota(self.value((n,), dtype)))

    def apply(self, fn: str, *operands: Value) -> Value:
        op = Elementwise(self.value((), "bool"), fn, operands)
        t = expected_type(op)
        return self.emit(Elementwise(self.value(t.shape, t.dtype), fn, operands))

    def cast(self, x: Value, dtype: str) -> Value:
        return self.emit(Cast(self.value(x.shape, dtype), x))

    def broadcast(self, x: Value, shape: Sequence[int]) -> Value:
        return self.emit(Broadcast(self.value(shape, x.dtype), x))

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        return self.emit(Reshape(self.value(shape, x.dtype), x))

    def transpose(self, x: Value, *axes: int) -> Value:
        return self.emit(Transpose(self.value([x.shape[a] for a in axes], x.dtype), x, axes))

    def extract(self, x: Value, *subscripts: Any) -> Value:
        parts = self.subscripts(subscripts)
        shape = tuple(s.size for s in parts if isinstance(s, Slice))
        return self.emit(Extract(self.value(shape, x.dtype), x, parts))

    def mma(self, a: Value, b: Value, acc: Value, ordered: bool = False) -> Value:
        return self.emit(Mma(self.value(acc.shape, acc.dtype), a, b, acc, ordered))

    def reduce_tile(
        self,
        x: Value,
        axes: Sequence[int],
        combiner: str = "add",
        dtype: str | None = None,
        policy: str = "unordered_tree",
        keepdims: bool = False,
        where: Value | None = None,
    ) -> Value:
        result = self.value(reduced_shape(x.shape, tuple(axes), keepdims), dtype or x.dtype)
        return self.emit(ReduceTile(result, x, tuple(axes), combiner, keepdims, policy, where))

    def arg_reduce(
        self, x: Value, axis: int, kind: str = "argmax", keepdims: bool = False, where: Value | None = None
    ) -> Value:
        result = self.value(reduced_shape(x.shape, (axis,), keepdims), "int32")
        return self.emit(ArgReduce(result, x, axis, kind, keepdims, where))

    @staticmethod
    def subscripts(parts: Sequence[Any]) -> tuple[Any, ...]:
        """``(start, size)`` and ``(start, size, step)`` are slices, everything else is a point."""
        return tuple(
            Slice(index_of(p[0]), *p[1:]) if isinstance(p, tuple) else Point(index_of(p)) for p in parts
        )

    def load(
        self, memory: Memory, *parts: Any, fill: Any = 0, bounds: str = "fill", mask: Any = None
    ) -> Value:
        view = View(memory, self.subscripts(parts))
        result = self.value(view.shape, memory.dtype)
        return self.emit(Load(result, view, Number.of(fill), bounds, mask, span=self.span()))

    def store(
        self, memory: Memory, parts: Sequence[Any], value: Value, bounds: str = "fill", mask: Any = None
    ) -> None:
        self.emit(Store(View(memory, self.subscripts(parts)), value, bounds, mask, span=self.span()))

    # Regions

    @contextmanager
    def _block(self) -> Iterator[list[Any]]:
        self._blocks.append([])
        yield self._blocks[-1]
        self._blocks.pop()

    @contextmanager
    def loop(
        self,
        kind: str,
        *extents: Any,
        names: str = "ijklmn",
        inits: Sequence[Value] = (),
        where: Callable[..., Predicate] | None = None,
        **fields: Any,
    ) -> Iterator[LoopHandle]:
        indices = tuple(self.value((), "int64", name) for name, _ in zip(names, extents, strict=False))
        args = tuple(self.value(v.shape, v.dtype) for v in inits)
        handle = LoopHandle(indices, args)
        with self._block() as body:
            yield handle
        predicate = None if where is None else where(*map(IndexVar, indices))
        domain = Domain(tuple(map(index_of, extents)), predicate)
        handle.results = tuple(self.value(v.shape, v.dtype) for v in inits)
        self._blocks[-1].append(
            KINDS[kind](
                domain,
                indices,
                Block(tuple(body)),
                tuple(inits),
                args,
                handle.yields,
                handle.results,
                span=self.span(),
                **fields,
            )
        )

    def branch(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value] | None],
        orelse: Callable[[], Sequence[Value] | None] = lambda: (),
    ) -> tuple[Value, ...]:
        with self._block() as held:
            yes = tuple(then() or ())
        with self._block() as denied:
            no = tuple(orelse() or ())
        results = tuple(self.value(v.shape, v.dtype) for v in yes)
        self._blocks[-1].append(
            If(condition, Block(tuple(held)), Block(tuple(denied)), yes, no, results, span=self.span())
        )
        return results

    def function(self, types: Sequence[TileType], fn: Callable[..., Sequence[Value]]) -> Lambda:
        params = tuple(self.value(t.shape, t.dtype) for t in types)
        with self._block() as body:
            yields = tuple(fn(*params))
        return Lambda(params, Block(tuple(body)), yields)

    def merge(
        self,
        types: Sequence[TileType],
        combine: Callable[..., Sequence[Value]],
        identity: Callable[[], Sequence[Value]],
        lift: Callable[..., Sequence[Value]] | None = None,
        rank: int = 1,
        **fields: Any,
    ) -> Merge:
        index = TileType((), "int64")
        return Merge(
            self.function([*types, *types], combine),
            self.function([], identity),
            None if lift is None else self.function([index] * rank, lift),
            **fields,
        )

    def program(self, *params: Any, name: str = "p") -> Program:
        (body,) = self._blocks
        return Program(name, tuple(params), Block(tuple(body)))


@pytest.fixture(scope="session")
def builder() -> type[Builder]:
    return Builder
