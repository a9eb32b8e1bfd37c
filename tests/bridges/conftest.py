"""Fixtures that build a program with both of TVM's pipelines and compare it with the interpreter."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm

from tvm_tile.bridges.tirx.lower import lower_program
from tvm_tile.bridges.tirx.target import host_target
from tvm_tile.ir.regions import Program
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
