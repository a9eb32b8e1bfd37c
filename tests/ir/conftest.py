"""Programs that several tests of the IR use: one with every node, and a strategy for random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from tvm_tile.ir.functions import FUNCTIONS
from tvm_tile.ir.index import And, BoolConst, Comparison, IndexBinary, IndexConst, IndexVar, Not, Or
from tvm_tile.ir.ops import (
    POLICIES,
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
    Stage,
    Store,
    Transpose,
    View,
)
from tvm_tile.ir.regions import Block, Domain, If, Lambda, Merge, Parallel, Pipeline, Program, Reduce, Serial
from tvm_tile.ir.values import Memory, TileType, Value


@pytest.fixture(scope="session")
def every_node() -> str:
    """Text of a legal program with every region, operation and attribute."""
    text = (Path(__file__).parent / "every_node.tile").read_text(encoding="utf-8")
    return text.partition("\n")[2]


@pytest.fixture(scope="session")
def memory_and_merges() -> str:
    """Text of a legal program with every operation on memory, and every one that holds a merge."""
    text = (Path(__file__).parent / "memory_and_merges.tile").read_text(encoding="utf-8")
    return text.partition("\n")[2]


NAMES = st.sampled_from(
    ["", "a", "acc", "if", "λ", "größe", "odd name", 'qu"ote', "x.1", "1st", "a\nb", "%3", "²", "#"]
)
EXTENTS = st.lists(st.integers(0, 4), max_size=3).map(tuple)
DTYPES = st.sampled_from(["bool", "int8", "uint64", "int32", "int64", "float16", "bfloat16", "float32"])
TYPES = st.builds(TileType, EXTENTS, DTYPES)
NUMBERS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([-0.0, float("nan"), float("-inf")]),
).map(Number.of)


class _Grower:
    """Draws a program whose uses are all in scope; types and modes need not fit."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.next_id = draw(st.integers(0, 50))
        names = draw(st.lists(NAMES, max_size=3, unique=True))
        self.memories = tuple(
            Memory(name, shape := draw(EXTENTS), draw(DTYPES), draw(st.sampled_from([None, tuple(shape)])))
            for name in names
        )

    def program(self) -> Program:
        scalars = tuple(self.value() for _ in range(self.draw(st.integers(1, 2))))
        params = self.draw(st.permutations([*self.memories, *scalars]))
        body, _ = self.block(scalars, 2, 0)
        return Program(self.draw(NAMES), tuple(params), body, self.draw(st.booleans()))

    def value(self, tile_type: TileType | None = None) -> Value:
        self.next_id += self.draw(st.integers(1, 2))
        return Value(self.next_id, self.draw(TYPES) if tile_type is None else tile_type, self.draw(NAMES))

    def pick(self, visible: tuple[Value, ...]) -> Value:
        return self.draw(st.sampled_from(visible))

    def index(self, visible: tuple[Value, ...]) -> Any:
        leaves = st.one_of(st.integers(-9, 9).map(IndexConst), st.sampled_from(visible).map(IndexVar))
        ops = st.sampled_from(["+", "-", "*", "//", "%", "min", "max"])
        return self.draw(st.recursive(leaves, lambda e: st.builds(IndexBinary, ops, e, e), max_leaves=4))

    def predicate(self, visible: tuple[Value, ...]) -> Any:
        def comparison() -> Any:
            op = self.draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
            return Comparison(op, self.index(visible), self.index(visible))

        leaves = st.sampled_from([BoolConst(True), BoolConst(False), comparison(), comparison()])

        def joined(p: Any) -> Any:
            return st.one_of(st.builds(And, p, p), st.builds(Or, p, p), st.builds(Not, p))

        return self.draw(st.recursive(leaves, joined, max_leaves=4))

    def subscripts(self, visible: tuple[Value, ...]) -> tuple[Any, ...]:
        def one() -> Any:
            if self.draw(st.booleans()):
                return Point(self.index(visible))
            return Slice(self.index(visible), self.draw(st.integers(0, 5)), self.draw(st.integers(-2, 2)))

        return tuple(one() for _ in range(self.draw(st.integers(0, 2))))

    def view(self, visible: tuple[Value, ...]) -> View:
        return View(self.draw(st.sampled_from(self.memories)), self.subscripts(visible))

    def block(self, visible: tuple[Value, ...], depth: int, yields: int) -> tuple[Block, tuple[Value, ...]]:
        statements = []
        for _ in range(self.draw(st.integers(0, 3))):
            statement = self.statement(visible, depth)
            statements.append(statement)
            visible = (*visible, *statement.results)
        return Block(tuple(statements)), tuple(self.pick(visible) for _ in range(yields))

    def statement(self, visible: tuple[Value, ...], depth: int) -> Any:
        kinds = ["leaf", "leaf", "leaf", *(["if", "loop", "loop"] if depth else [])]
        match self.draw(st.sampled_from(kinds)):
            case "if":
                count = self.draw(st.integers(0, 2))
                then, then_yields = self.block(visible, depth - 1, count)
                orelse, else_yields = self.block(visible, depth - 1, count)
                results = tuple(self.value() for _ in range(count))
                return If(self.pick(visible), then, orelse, then_yields, else_yields, results)
            case "loop":
                return self.loop(visible, depth)
        return self.leaf(visible)

    def loop(self, visible: tuple[Value, ...], depth: int) -> Any:
        draw, count, rank = self.draw, self.draw(st.integers(0, 2)), self.draw(st.integers(0, 2))
        indices = tuple(self.value(TileType((), "int64")) for _ in range(rank))
        args = tuple(self.value() for _ in range(count))
        where = self.predicate((*visible, *indices)) if draw(st.booleans()) else None
        domain = Domain(tuple(self.index(visible) for _ in range(rank)), where)
        body, yields = self.block((*visible, *indices, *args), depth - 1, count)
        inits = tuple(self.pick(visible) for _ in args)
        kind = draw(st.sampled_from([Parallel, Serial, Pipeline, Reduce]))
        more: dict[str, Any] = {}
        if kind is Parallel:
            more["bind"] = draw(st.sampled_from([None, "worker", "odd scope", ""]))
        elif kind is Pipeline:
            more = {name: draw(st.sampled_from([None, 1, 3])) for name in ("versions", "ii")}
        elif kind is Reduce:
            more["policy"] = draw(st.sampled_from([*POLICIES, "odd policy"]))
            more["merge"] = self.merge(visible, count, rank) if draw(st.booleans()) else None
        results = tuple(self.value() for _ in range(count))
        return kind(domain, indices, body, inits, args, yields, results, **more)

    def merge(self, visible: tuple[Value, ...], count: int, rank: int) -> Merge:
        def part(params: int) -> Lambda:
            values = tuple(self.value() for _ in range(params))
            return Lambda(values, *self.block((*visible, *values), 0, count))

        laws = {law: self.draw(st.booleans()) for law in ("associative", "commutative", "exact")}
        builtin = self.draw(st.sampled_from([None, (), ("add",), ("maximum", "and")]))
        lift = part(rank) if self.draw(st.booleans()) else None
        provenance = self.draw(st.sampled_from(["derived", "declared"]))
        return Merge(part(2 * count), part(0), lift, **laws, provenance=provenance, builtin=builtin)

    def leaf(self, visible: tuple[Value, ...]) -> Any:
        draw = self.draw

        def pick() -> Value:
            return self.pick(visible)

        def maybe() -> Value | None:
            return pick() if draw(st.booleans()) else None

        kind = draw(st.integers(0, 14))
        bounds = draw(st.sampled_from(["fill", "assume", "odd bounds"]))
        if kind in (12, 13) and not self.memories:
            kind = 3
        match kind:
            case 0:
                return Full(self.value(), draw(NUMBERS))
            case 1:
                return FromIndex(self.value(), self.index(visible))
            case 2:
                return Iota(self.value())
            case 3:
                fn = draw(st.sampled_from(sorted(FUNCTIONS)))
                return Elementwise(self.value(), fn, tuple(pick() for _ in range(FUNCTIONS[fn].arity)))
            case 4 | 5 | 6:
                return {4: Cast, 5: Broadcast, 6: Reshape}[kind](self.value(), pick())
            case 7:
                return Transpose(self.value(), pick(), tuple(draw(st.lists(st.integers(-1, 3), max_size=3))))
            case 8:
                return Extract(self.value(), pick(), self.subscripts(visible))
            case 9:
                return Mma(self.value(), pick(), pick(), pick(), draw(st.booleans()))
            case 10:
                axes = tuple(draw(st.lists(st.integers(-1, 3), max_size=3)))
                combiner = draw(st.sampled_from(["add", "maximum", "odd combiner"]))
                policy = draw(st.sampled_from(POLICIES))
                return ReduceTile(self.value(), pick(), axes, combiner, draw(st.booleans()), policy, maybe())
            case 11:
                kind_name = draw(st.sampled_from(["argmax", "argmin"]))
                axis = draw(st.integers(-1, 3))
                return ArgReduce(self.value(), pick(), axis, kind_name, draw(st.booleans()), maybe())
            case 12:
                return Load(self.value(), self.view(visible), draw(NUMBERS), bounds, maybe())
            case 13:
                return Store(self.view(visible), pick(), bounds, maybe())
        return Stage(draw(NAMES))


@pytest.fixture(scope="session")
def programs() -> st.SearchStrategy[Program]:
    """Random small programs whose uses are in scope; their types and modes need not fit."""
    return st.composite(lambda draw: _Grower(draw).program())()
