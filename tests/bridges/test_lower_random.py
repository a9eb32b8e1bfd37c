"""Random programs: whatever is fused, overwritten or reordered, the result is the interpreter's.

Integers make every difference exact. The programs mix loads and stores of the same memories, views,
reductions, products, branches and loops whose states change places.
"""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_tile.ir.index import IndexBinary, IndexConst, IndexVar
from tvm_tile.ir.ops import (
    Broadcast,
    Cast,
    Elementwise,
    Extract,
    FromIndex,
    Full,
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
from tvm_tile.ir.regions import Block, Domain, If, Parallel, Pipeline, Program, Reduce, Serial
from tvm_tile.ir.values import Memory, TileType, Value

SIZE = 6
TILE = TileType((SIZE, SIZE), "int32")
ROWS = 10
MEMORIES = tuple(Memory(name, (ROWS, ROWS), "int32") for name in "ABC")
COUNTER = TileType((), "int64")


class Random:
    """Draws a program; every block gets the tiles and indices that are in scope."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.ids = itertools.count()

    def pick(self, options):
        return self.data.draw(st.sampled_from(list(options)))

    def tile(self, tiles) -> Value:
        """A tile in scope; mostly a recent one, such as a state of the innermost loop."""
        return self.pick(tiles if self.number(0, 3) == 0 else tiles[-5:])

    def number(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def value(self, type: TileType = TILE) -> Value:
        return Value(next(self.ids), type)

    def offset(self, indices):
        constant = IndexConst(self.number(-3, 7))
        if not indices or self.number(0, 1):
            return constant
        return IndexBinary("+", IndexVar(self.pick(indices)), constant)

    def view(self, indices) -> View:
        return View(
            self.pick(MEMORIES), (Slice(self.offset(indices), SIZE), Slice(self.offset(indices), SIZE))
        )

    def block(self, tiles, indices, depth, length, pure):
        """Statements and the tiles that are in scope after them."""
        tiles = list(tiles)
        statements = []
        for _ in range(self.number(1, length)):
            for statement in self.statement(tiles, indices, depth, pure):
                statements.append(statement)
                tiles += [v for v in statement.results if v.type == TILE]
        return Block(tuple(statements)), tiles

    def statement(self, tiles, indices, depth, pure):
        kinds = ["load", "literal"]
        if tiles:
            kinds += ["elementwise"] * 4 + [
                "transpose",
                "reduce",
                "extract",
                "reshape",
                "mma",
                "mma",
                "masked",
                "broadcast",
            ]
            kinds += ["store"] * (0 if pure else 2) + (["loop"] * 3 + ["if"] if depth else [])
        match self.pick(kinds):
            case "load":
                yield Load(self.value(), self.view(indices), Number.of(self.number(0, 2)))
            case "literal":
                yield Full(self.value(), Number.of(self.number(-3, 3)))
            case "elementwise":
                fn = self.pick(["add", "subtract", "multiply", "maximum"])
                yield Elementwise(self.value(), fn, (self.tile(tiles), self.tile(tiles)))
            case "transpose":
                yield Transpose(self.value(), self.tile(tiles), (1, 0))
            case "reduce":
                axis = self.number(0, 1)
                shape = (1, SIZE) if axis == 0 else (SIZE, 1)
                total = self.value(TileType(shape, "int32"))
                yield ReduceTile(total, self.tile(tiles), (axis,), "add", True, "unordered_tree")
                yield Broadcast(self.value(), total)
            case "broadcast":
                row = self.value(TileType((SIZE,), "int32"))
                yield Extract(
                    row,
                    self.tile(tiles),
                    (Point(IndexConst(self.number(0, SIZE - 1))), Slice(IndexConst(0), SIZE)),
                )
                yield Broadcast(self.value(), row)
            case "extract":
                subscripts = (Slice(self.offset(indices), SIZE), Slice(IndexConst(0), SIZE))
                yield Extract(self.value(), self.tile(tiles), subscripts)
            case "reshape":
                flat = self.value(TileType((4, 9), "int32"))
                yield Reshape(flat, self.tile(tiles))
                turned = self.value(TileType((9, 4), "int32"))
                yield Transpose(turned, flat, (1, 0))
                yield Reshape(self.value(), turned)
            case "mma":
                yield Mma(self.value(), self.tile(tiles), self.tile(tiles), self.tile(tiles))
            case "masked":
                mask = self.value(TileType((SIZE, SIZE), "bool"))
                yield Elementwise(mask, "less", (self.tile(tiles), self.tile(tiles)))
                yield Load(self.value(), self.view(indices), Number.of(1), mask=mask)
            case "store":
                yield Store(self.view(indices), self.tile(tiles))
            case "if":
                yield from self.branch(tiles, indices, depth, pure)
            case "loop":
                yield self.loop(tiles, indices, depth, pure)

    def branch(self, tiles, indices, depth, pure):
        scalar, wide, test = (
            self.value(TileType((), "int32")),
            self.value(COUNTER),
            self.value(TileType((), "bool")),
        )
        yield Extract(scalar, self.tile(tiles), (Point(IndexConst(1)), Point(IndexConst(2))))
        yield FromIndex(wide, IndexVar(self.pick(indices)) if indices else IndexConst(1))
        cast = self.value(COUNTER)
        yield Cast(cast, scalar)
        yield Elementwise(test, "less", (wide, cast))
        then, after = self.block(tiles, indices, depth - 1, 3, pure)
        orelse, otherwise = self.block(tiles, indices, depth - 1, 2, pure)
        count = self.number(0, 2)
        yields = [tuple(self.pick(scope) for _ in range(count)) for scope in (after, otherwise)]
        yield If(test, then, orelse, *yields, tuple(self.value() for _ in range(count)))

    def loop(self, tiles, indices, depth, pure):
        kind = self.pick([Serial, Pipeline, Reduce, Parallel])
        index = self.value(COUNTER)
        extent = self.number(0, 3)
        domain = Domain((IndexConst(extent),))
        if kind is Parallel:
            # Stores of instances would have to be disjoint, so there are none; only an anchored update.
            body, _ = self.block(tiles, (*indices, index), 0, 2, True)
            args = (self.value(),)
            update = self.value()
            body = Block((*body.statements, Elementwise(update, "add", (args[0], self.tile(tiles)))))
            return Parallel(domain, (index,), body, (self.tile(tiles),), args, (update,), (self.value(),))
        states = self.number(1, 3)
        args = tuple(self.value() for _ in range(states))
        body, after = self.block((*tiles, *args), (*indices, index), depth - 1, 5, pure or kind is Reduce)
        pool = [*after[-4:], *args]
        yields = tuple(self.pick(pool) for _ in range(states))
        options = {"policy": self.pick(["fold_left", "fold_right"])} if kind is Reduce else {}
        inits = tuple(self.tile(tiles) for _ in range(states))
        results = tuple(self.value() for _ in range(states))
        return kind(domain, (index,), body, inits, args, yields, results, **options)

    def program(self) -> Program:
        first = self.value()
        start = Load(first, View(MEMORIES[0], (Slice(IndexConst(0), SIZE), Slice(IndexConst(0), SIZE))))
        body, tiles = self.block((first,), (), 2, 7, False)
        last = Store(View(MEMORIES[2], (Slice(IndexConst(2), SIZE), Slice(IndexConst(1), SIZE))), tiles[-1])
        return Program("random", MEMORIES, Block((start, *body.statements, last)))


@settings(max_examples=60)
@given(data=st.data(), noalias=st.booleans())
def test_random_programs(agrees, data, noalias):
    program = Random(data).program()
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, (ROWS, ROWS)).astype("int32") for _ in MEMORIES]
    agrees(program, *arrays, noalias=noalias)
