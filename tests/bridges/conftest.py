"""Fixtures that build a program with both of TVM's pipelines and compare it with the interpreter."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tvm

from tvm_tile.bridges.tirx.lower import lower_program
from tvm_tile.bridges.tirx.target import host_target
from tvm_tile.ir.index import IndexConst, IndexExpr, IndexVar
from tvm_tile.ir.ops import Cast, Elementwise, Full, Load, Number, Op, Point, Slice, Store, View
from tvm_tile.ir.regions import Block, Domain, If, Lambda, Loop, Program, Serial, Statement
from tvm_tile.ir.values import Memory, TileType, Value
from tvm_tile.semantics.interpreter import interpret

PIPELINES = ("tirx", "default")


@pytest.fixture(scope="session")
def compiled() -> Callable[..., Any]:
    """``compiled(program, pipeline, noalias=True)`` gives the function of a program."""

    def build(program: Program, pipeline: str = "tirx", noalias: bool = True, target: Any = None) -> Any:
        target = host_target() if target is None else target
        function = lower_program(program, target, noalias=noalias)
        module = tvm.IRModule({program.name: function})
        options = {"tir_pipeline": pipeline} if pipeline != "default" else {}
        return tvm.compile(module, target=target, **options)[str(function.attrs["global_symbol"])]

    return build


def _passed(argument: Any) -> Any:
    """NumPy cannot hand bfloat16 over by DLPack; TVM's own tensors can."""
    if isinstance(argument, np.ndarray) and argument.dtype.name == "bfloat16":
        return tvm.runtime.tensor(argument)
    return argument


def _returned(argument: Any) -> Any:
    return argument.numpy() if isinstance(argument, tvm.runtime.Tensor) else argument


@pytest.fixture(scope="session")
def run(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """``run(program, *arguments, pipeline=...)`` gives the arguments afterwards, as copies."""

    def call(program: Program, *arguments: Any, pipeline: str = "tirx", noalias: bool = True) -> list[Any]:
        passed = [_passed(a.copy() if isinstance(a, np.ndarray) else a) for a in arguments]
        compiled(program, pipeline, noalias)(*passed)
        return [_returned(a) for a in passed]

    return call


@pytest.fixture(scope="session")
def agrees(run: Callable[..., Any]) -> Callable[..., Any]:
    """``agrees(program, *arguments)`` compares both pipelines with the interpreter; gives the results.

    Floats may differ by ``rtol`` and ``atol``; both are zero by default. NaN equals NaN.
    """

    def check(
        program: Program, *arguments: Any, rtol: float = 0.0, atol: float = 0.0, noalias: bool = True
    ) -> list[Any]:
        expected = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        interpret(program, *expected)
        results = []
        for pipeline in PIPELINES:
            results = run(program, *arguments, pipeline=pipeline, noalias=noalias)
            for want, got in zip(expected, results, strict=True):
                if isinstance(want, np.ndarray):
                    wide = np.float64 if want.dtype.kind not in "biu" else want.dtype
                    np.testing.assert_allclose(
                        got.astype(wide), want.astype(wide), rtol=rtol, atol=atol, err_msg=pipeline
                    )
        return results

    return check


class Assembler:
    """Writes programs statement by statement, for what the frontend does not spell or would rewrite."""

    def __init__(self) -> None:
        self._count = 0
        self._blocks: list[list[Statement]] = [[]]

    def value(self, shape: Sequence[int], dtype: str, name: str = "") -> Value:
        self._count += 1
        return Value(self._count - 1, TileType(tuple(shape), dtype), name)

    def emit(self, statement: Statement) -> Any:
        """Append a statement; gives its result, or its results if it has several."""
        self._blocks[-1].append(statement)
        results = statement.results
        return results[0] if len(results) == 1 else results

    def op(self, kind: type[Op], shape: Sequence[int], dtype: str, *fields: Any, **named: Any) -> Any:
        """Append an operation with one result."""
        return self.emit(kind(self.value(shape, dtype), *fields, **named))

    def full(self, shape: Sequence[int], number: Any, dtype: str) -> Value:
        return self.op(Full, shape, dtype, Number.of(number))

    def apply(self, fn: str, *operands: Value, dtype: str | None = None) -> Value:
        return self.op(Elementwise, operands[-1].shape, dtype or operands[-1].dtype, fn, operands)

    def cast(self, operand: Value, dtype: str) -> Value:
        return self.op(Cast, operand.shape, dtype, operand)

    @staticmethod
    def view(memory: Memory, *subscripts: Any) -> View:
        """A view by ints, values, index expressions and ``slice`` or ``(start, size)``; whole without any."""
        return View(memory, Assembler.subscripts(memory.shape, subscripts))

    @staticmethod
    def subscripts(shape: Sequence[int], given: Sequence[Any]) -> tuple[Point | Slice, ...]:
        def index(part: Any) -> IndexExpr:
            if isinstance(part, Value):
                return IndexVar(part)
            return IndexConst(part) if isinstance(part, int) else part

        parts: list[Point | Slice] = []
        for part in given:
            parts.append(Slice(index(part[0]), *part[1:]) if isinstance(part, tuple) else Point(index(part)))
        parts += [Slice(IndexConst(0), n) for n in shape[len(parts) :]]
        return tuple(parts)

    def load(self, memory: Memory, *subscripts: Any, **named: Any) -> Value:
        view = self.view(memory, *subscripts)
        return self.op(Load, view.shape, memory.dtype, view, **named)

    def store(self, value: Value, memory: Memory, *subscripts: Any, **named: Any) -> None:
        self._blocks[-1].append(Store(self.view(memory, *subscripts), value, **named))

    def block(self, body: Callable[..., Any], *arguments: Any) -> tuple[Block, tuple[Value, ...]]:
        """What ``body`` appends, as a block of its own, and what it gives."""
        self._blocks.append([])
        given = body(*arguments)
        values = () if given is None else (given,) if isinstance(given, Value) else tuple(given)
        return Block(tuple(self._blocks.pop())), values

    def function(self, types: Sequence[TileType], body: Callable[..., Any]) -> Lambda:
        params = tuple(self.value(t.shape, t.dtype) for t in types)
        return Lambda(params, *self.block(body, *params))

    def loop(
        self,
        extents: Sequence[Any],
        body: Callable[..., Any],
        inits: Sequence[Value] = (),
        kind: type[Loop] = Serial,
        **named: Any,
    ) -> tuple[Value, ...]:
        """A loop whose ``body(*indices, *states)`` gives the next states."""
        domain = Domain(tuple(IndexConst(e) if isinstance(e, int) else e for e in extents))
        indices = tuple(self.value((), "int64", "i") for _ in extents)
        args = tuple(self.value(v.shape, v.dtype) for v in inits)
        block, yields = self.block(body, *indices, *args)
        results = tuple(self.value(v.shape, v.dtype) for v in inits)
        self._blocks[-1].append(kind(domain, indices, block, tuple(inits), args, yields, results, **named))
        return results

    def branch(
        self, condition: Value, then: Callable[[], Any], orelse: Callable[[], Any]
    ) -> tuple[Value, ...]:
        a, yields_a = self.block(then)
        b, yields_b = self.block(orelse)
        results = tuple(self.value(v.shape, v.dtype) for v in yields_a)
        self._blocks[-1].append(If(condition, a, b, yields_a, yields_b, results))
        return results

    def program(self, *params: Memory | Value, name: str = "kernel") -> Program:
        return Program(name, params, Block(tuple(self._blocks[-1])))


@pytest.fixture
def assembler() -> Assembler:
    """Writes a program statement by statement."""
    return Assembler()
