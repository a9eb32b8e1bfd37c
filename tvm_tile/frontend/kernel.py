"""The ``kernel`` decorator: parameters, capture into a program, and calls."""

from __future__ import annotations

import ast
import difflib
import functools
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, overload

from tvm_tile.errors import ArgumentError, CaptureError, UnsupportedError
from tvm_tile.frontend.convert import converted_function
from tvm_tile.frontend.described import counted, described
from tvm_tile.frontend.environment import captured_state
from tvm_tile.frontend.faults import translated
from tvm_tile.frontend.operands import converted, is_number, tile_of
from tvm_tile.frontend.positions import current_span, span_of_columns
from tvm_tile.frontend.runtime import Runtime
from tvm_tile.frontend.signature import REQUIRED, Signature, signature_of
from tvm_tile.frontend.source import Definition, SourceNotFoundError, definition_in_text, definition_of
from tvm_tile.frontend.specs import check_scalar, memory_of
from tvm_tile.frontend.tensor import Tensor
from tvm_tile.frontend.tile import Operators, Tile
from tvm_tile.frontend.trace import Trace, active_trace
from tvm_tile.frontend.unused import without_unused
from tvm_tile.ir.regions import Program
from tvm_tile.ir.span import Span
from tvm_tile.ir.structure import renumber
from tvm_tile.ir.values import Memory, TileType, Value
from tvm_tile.ir.verifier import verify

__all__ = ["REQUIRED", "Kernel", "Signature", "kernel", "set_launcher"]

Launcher = Callable[["Kernel", tuple[Any, ...], dict[str, Any]], Any]

_launcher: Launcher | None = None


def set_launcher(launcher: Launcher) -> None:
    """Install what runs a kernel that is called: ``launcher(kernel, args, constants)``."""
    global _launcher
    _launcher = launcher


class Kernel:
    """A tile program in terms of Python; made by :func:`kernel`.

    Calling it runs it on arrays in place. Inside another kernel a call puts its body there.

    Attributes
    ----------
    function
        The decorated function.
    signature
        Its parameters.
    fma
        Whether ``a * b + c`` may be contracted to one rounding.
    """

    __name__: str

    def __init__(self, function: FunctionType, *, source: str | None = None, fma: bool = True) -> None:
        self._definition = _definition(function, source)
        self._source = source
        self.signature = signature_of(function, self._definition.span)
        self.fma = fma
        self.function = function
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.function.__name__

    @property
    def span(self) -> Span:
        """Where it is defined."""
        return self._definition.span

    def trace(self, *args: Any, **constants: Any) -> Program:
        """Specialize to arguments: capture the function once for their shapes, strides and dtypes.

        Parameters
        ----------
        *args : array, tt.spec or number
            One for each positional parameter; data are not read.
        **constants
            Values of compile-time constants.

        Returns
        -------
        Program
            Canonical and verified.

        Raises
        ------
        ArgumentError
            The arguments do not fit the parameters, or an ``assert`` of the function fails.
        CaptureError
            The function is no tile program.
        IllegalError
            It breaks a rule of the language.
        """
        arguments, given = self.bind(args, constants)
        trace = Trace(self.name, fma=self.fma)
        params: list[Memory | Value] = []
        values: list[Tensor | Tile] = []
        for name, argument in zip(self.signature.parameters, arguments, strict=True):
            dtype = self.signature.scalars.get(name)
            if dtype is None:
                memory = memory_of(name, argument)
                trace.memories.add(name)
                params.append(memory)
                values.append(Tensor(trace, memory))
            else:
                check_scalar(name, argument, dtype)
                value = trace.fresh(TileType((), dtype), name, span=self.span)
                params.append(value)
                values.append(Tile(trace, value))
        trace.constants = given
        with trace.activate(), translated(trace, self.span):
            self._run(trace, values, given)
        try:
            body = without_unused(trace.root.block, trace.provisional)
            program = Program(self.name, tuple(params), body, fma=self.fma, span=self.span)
            program = renumber(program, trace.names)
            self._check_rebound(trace, program)
            verify(program)
        except RecursionError as error:
            raise CaptureError(
                f"the regions or index expressions of {self.name} nest too deeply",
                span=self.span,
                suggestion="keep a long index expression in a tile scalar: tt.full((), 0, 'int64') + part",
            ) from error
        return program

    def __call__(self, *args: Any, **constants: Any) -> Any:
        """Run on arrays in place; inside another kernel, capture the body there.

        Raises
        ------
        ArgumentError
            The arguments do not fit.
        """
        if active_trace() is not None and any(isinstance(a, Operators) for a in (*args, *constants.values())):
            return self._inline(args, constants)
        if _launcher is None:
            raise UnsupportedError(
                f"kernel {self.name} cannot be called: nothing that runs kernels is installed",
                suggestion="import tvm_tile, which installs it",
            )
        return _launcher(self, args, constants)

    def captured_state(self) -> tuple[Any, ...]:
        """What the function reads from its surroundings, comparable and hashable; see the function's module.

        Another state may give another program. A state that cannot be compared is not hashable.
        """
        return captured_state(self.function)

    def bind(
        self, args: tuple[Any, ...], constants: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of the positional parameters, and the constants with their defaults.

        Raises
        ------
        ArgumentError
            One is missing, unknown or given twice.
        """
        names, span = self.signature.parameters, self.span
        listed = ", ".join(names) or "none"
        given = dict(constants)
        if len(args) > len(names):
            raise ArgumentError(
                f"kernel {self.name} takes {counted(len(names), 'argument', 'arguments')} ({listed}), "
                f"not {len(args)}",
                span=span,
                suggestion="pass compile-time constants by name"
                if self.signature.constants
                else "leave some out",
            )
        bound = dict(zip(names, args, strict=False))
        for name in names:
            if name in given:
                if name in bound:
                    raise ArgumentError(
                        f"argument {name} of kernel {self.name} is given twice",
                        span=span,
                        suggestion=f"pass {name} by position or by name, not both",
                    )
                bound[name] = given.pop(name)
        missing = [name for name in names if name not in bound]
        if missing:
            raise ArgumentError(
                f"kernel {self.name} takes {counted(len(names), 'argument', 'arguments')} ({listed}); "
                f"{', '.join(missing)} missing",
                span=span,
                suggestion=f"pass {missing[0]}",
            )
        known = self.signature.constants
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ArgumentError(
                f"kernel {self.name} has no constant {', '.join(unknown)}; "
                f"it has {', '.join(known) or 'none'}",
                span=span,
                suggestion=_instead(unknown[0], (*known, *names)),
            )
        values = known | given
        lacking = [name for name, value in values.items() if value is REQUIRED]
        if lacking:
            raise ArgumentError(
                f"kernel {self.name} needs the constant {', '.join(lacking)}",
                span=span,
                suggestion=f"pass {lacking[0]}=...",
            )
        return tuple(bound[name] for name in names), values

    def _run(self, trace: Trace, values: list[Any], constants: dict[str, Any]) -> None:
        if self._source is not None:
            trace.texts.append((self.function.__code__.co_filename, self._source))
        body = converted_function(self.function, self._definition, Runtime)
        result = body(*values, **constants)
        if result is not None:
            value = next(iter(self._returned()), None)
            span, stored = self.span, "out[...] = value"
            if value is not None:
                last = (value.end_lineno or value.lineno, value.end_col_offset or value.col_offset)
                span = span_of_columns(self.span.file, value.lineno, value.col_offset, *last)
                stored = f"out[...] = {ast.unparse(value.value)}" if value.value is not None else stored
            raise CaptureError(
                f"kernel {self.name} returns {described(result)}",
                span=span,
                suggestion=f"store it to a tensor parameter, {stored}, and return nothing",
            )

    def _returned(self) -> Iterator[ast.Return]:
        """The statements of the function itself that return a value."""
        pending: list[ast.AST] = list(self._definition.node.body)  # type: ignore[arg-type]
        while pending:
            node = pending.pop(0)
            if isinstance(node, ast.Return) and node.value is not None:
                yield node
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                pending.extend(ast.iter_child_nodes(node))

    def _check_rebound(self, trace: Trace, program: Program) -> None:
        """Refuse a tensor parameter that was only given another value, as if that stored to it."""
        node, used = self._definition.node, program.reads | program.writes
        for memory in program.tensors:
            span = trace.rebound.get(memory.name)
            if span is None or memory in used or span.file != self.span.file:
                continue
            if not node.lineno <= span.line <= (node.end_lineno or node.lineno):
                # A helper's name of its own.
                continue
            is_read = any(
                isinstance(n, ast.Name) and n.id == memory.name and isinstance(n.ctx, ast.Load)
                for n in ast.walk(node)
            )
            # A stand-in for a parameter that a variant of the kernel does not use is read.
            if is_read and program.writes:
                continue
            raise CaptureError(
                f"tensor parameter {memory.name!r} is given another value, and nothing is stored to it",
                span=span,
                suggestion=f"store to all of it: {memory.name}[...] = ...",
            )

    def _inline(self, args: tuple[Any, ...], constants: dict[str, Any]) -> None:
        trace, span = active_trace(), current_span()
        assert trace is not None
        if trace.fma != self.fma:
            raise CaptureError(
                f"kernel {self.name} has fma={self.fma}, but kernel {trace.name}, which calls it, "
                f"has fma={trace.fma}",
                span=span,
                suggestion=f"give both fma={self.fma}",
            )
        arguments, given = self.bind(args, constants)
        values: list[Any] = []
        for name, argument in zip(self.signature.parameters, arguments, strict=True):
            dtype = self.signature.scalars.get(name)
            if dtype is None:
                if not isinstance(argument, Tensor):
                    raise ArgumentError(
                        f"argument {name} of kernel {self.name} is {described(argument)}, not a tensor",
                        span=span,
                        suggestion="pass tensor parameters on as they are",
                    )
                values.append(argument)
                continue
            if not is_number(argument) and not (
                isinstance(argument, Operators) and not isinstance(argument, Tensor)
            ):
                raise ArgumentError(
                    f"argument {name} of kernel {self.name} is {described(argument)}, not a scalar", span=span
                )
            tile = tile_of(argument, dtype) if is_number(argument) else tile_of(argument)
            if tile.shape != ():
                raise ArgumentError(
                    f"argument {name} of kernel {self.name} is {tile._describe()}, not a scalar", span=span
                )
            values.append(converted(tile, dtype))
        self._run(trace, values, given)

    def __repr__(self) -> str:
        return f"<tt.kernel {self.name}({', '.join(self.signature.parameters)})>"


@overload
def kernel(function: Callable[..., Any], /, *, source: str | None = None, fma: bool = True) -> Kernel: ...
@overload
def kernel(*, fma: bool = True) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    function: Callable[..., Any] | None = None, /, *, source: str | None = None, fma: bool = True
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel of a function.

    Positional parameters are tensors, or run-time scalars if annotated ``tt.Scalar[dtype]``; keyword-only
    parameters are compile-time constants.

    Parameters
    ----------
    function : function
        Its body is captured when the kernel is traced or called.
    source : str, optional
        Text of the function, or of a module that holds it, where Python has none (``exec``, ``python -c``,
        standard input).
    fma : bool
        Whether ``a * b + c`` may be contracted to one rounding.

    Returns
    -------
    Kernel
        Or, without a function, a decorator.

    Raises
    ------
    CaptureError
        There is no source text, or the function is not of a form that can be captured.
    """
    if function is None:
        return functools.partial(kernel, source=source, fma=fma)
    if not isinstance(function, FunctionType):
        raise CaptureError(
            f"tt.kernel takes a function, not {type(function).__name__} {described(function)}",
            span=current_span(),
            suggestion="decorate a def",
        )
    return Kernel(function, source=source, fma=fma)


def _instead(unknown: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(unknown, known, 1)
    return f"did you mean {near[0]}?" if near else f"leave {unknown} out"


def _definition(function: FunctionType, source: str | None) -> Definition:
    code = function.__code__
    place = Span(code.co_filename, code.co_firstlineno, 1, code.co_firstlineno, 1)
    if function.__name__ == "<lambda>" or code.co_name == "<lambda>":
        raise CaptureError("a lambda cannot be a kernel", span=place, suggestion="write it as a def")
    if source is not None:
        if not isinstance(source, str):
            raise ArgumentError(
                f"source= is the text of the function, not {described(source)} ({type(source).__name__})",
                suggestion="pass the str that was executed",
            )
        return definition_in_text(function, source)
    try:
        return definition_of(function)
    except SourceNotFoundError as error:
        raise CaptureError(
            f"kernel {function.__name__} cannot be captured: {error}",
            span=place,
            suggestion="pass the text: tt.kernel(fn, source=text)",
        ) from None
