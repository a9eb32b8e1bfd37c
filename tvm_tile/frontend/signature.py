"""The parameters of a kernel: tensors, run-time scalars and compile-time constants."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NoReturn

from tvm_tile.errors import ArgumentError, CaptureError
from tvm_tile.frontend.positions import locals_of_user
from tvm_tile.frontend.specs import scalar_dtype
from tvm_tile.ir.span import Span

__all__ = ["REQUIRED", "Signature", "signature_of"]

#: Default of a constant that has none.
REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel.

    Attributes
    ----------
    parameters
        Names of the positional parameters, in order.
    scalars
        Dtypes of those that are run-time scalars, by name; the others are tensors.
    constants
        Defaults of the keyword-only compile-time constants, by name; :data:`REQUIRED` for none.
    """

    parameters: tuple[str, ...]
    scalars: dict[str, str]
    constants: dict[str, Any]

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the tensor parameters, in order."""
        return tuple(p for p in self.parameters if p not in self.scalars)


def signature_of(function: FunctionType, span: Span) -> Signature:
    """The parameters of a function as those of a kernel.

    Raises
    ------
    CaptureError
        It has other kinds of parameters than a kernel has, or is a generator or a coroutine.
    """

    def refuse(what: str, suggestion: str) -> NoReturn:
        raise CaptureError(f"kernel {function.__name__} {what}", span=span, suggestion=suggestion)

    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        refuse("is an async function", "write a plain def")
    if inspect.isgeneratorfunction(function):
        refuse("is a generator (it has yield)", "store results to tensor parameters")
    parameters: list[str] = []
    scalars: dict[str, str] = {}
    constants: dict[str, Any] = {}
    closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    # Annotations that are text may use names of the function around, which are no closure of this one.
    namespace = (
        function.__globals__
        | locals_of_user()
        | {n: c.cell_contents for n, c in closure.items() if _is_set(c)}
    )
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name
        match parameter.kind:
            case inspect.Parameter.VAR_POSITIONAL:
                refuse(f"has *{name}", "name each tensor")
            case inspect.Parameter.VAR_KEYWORD:
                refuse(f"has **{name}", "name each constant after a bare *")
            case inspect.Parameter.KEYWORD_ONLY:
                constants[name] = parameter.default
                continue
        if parameter.default is not REQUIRED:
            refuse(
                f"gives the tensor parameter {name} a default",
                f"make it a compile-time constant: *, {name}=...",
            )
        if not parameters and name in ("self", "cls"):
            refuse(
                f"has the first parameter {name!r}; kernels are functions, not methods",
                "define it outside of the class, and call it from a method with the tensors",
            )
        parameters.append(name)
        try:
            dtype = scalar_dtype(parameter.annotation, namespace)
        except ArgumentError as error:
            refuse(f"has a parameter {name} of an unknown type: {error.message}", str(error.suggestion))
        if dtype is not None:
            scalars[name] = dtype
    return Signature(tuple(parameters), scalars, constants)


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 reading an empty cell raises
    except ValueError:
        return False
    return True
