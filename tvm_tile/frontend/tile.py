"""The tracer of a tile value: what a name holds in a kernel after a load or a tile operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from tvm_tile.errors import CaptureError
from tvm_tile.frontend.positions import current_span

if TYPE_CHECKING:
    from collections.abc import Callable

    from tvm_tile.frontend.trace import Trace
    from tvm_tile.ir.values import TileType, Value

__all__ = ["Operators", "Tile"]


def _apply(fn: str, *operands: Any) -> Any:
    # The operator table and the tracers need each other; the table is looked up at the first use.
    from tvm_tile.frontend.arithmetic import apply

    return apply(fn, *operands)


class Operators:
    """Python's operators with NumPy's meaning, for all tracers."""

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Any:
        return _apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _apply("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _apply("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return _apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _apply("divide", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _apply("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _apply("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return _apply("remainder", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _apply("remainder", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        return _apply("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _apply("power", other, self)

    def __lshift__(self, other: Any) -> Any:
        return _apply("left_shift", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _apply("left_shift", other, self)

    def __rshift__(self, other: Any) -> Any:
        return _apply("right_shift", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _apply("right_shift", other, self)

    def __and__(self, other: Any) -> Any:
        return _apply("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return _apply("and", other, self)

    def __or__(self, other: Any) -> Any:
        return _apply("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return _apply("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return _apply("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return _apply("xor", other, self)

    def __eq__(self, other: object) -> Any:
        return _apply("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return _apply("not_equal", self, other)

    def __lt__(self, other: Any) -> Any:
        return _apply("less", self, other)

    def __le__(self, other: Any) -> Any:
        return _apply("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return _apply("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return _apply("greater_equal", self, other)

    def __neg__(self) -> Any:
        return _apply("negative", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _apply("abs", self)

    def __invert__(self) -> Any:
        return _apply("invert", self)

    def __matmul__(self, other: Any) -> Any:
        from tvm_tile.frontend.contraction import matmul

        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        from tvm_tile.frontend.contraction import matmul

        return matmul(other, self)

    def _describe(self) -> str:
        raise NotImplementedError

    def _refuse(self, use: str, suggestion: str) -> Never:
        raise CaptureError(f"{self._describe()} {use}", span=current_span(), suggestion=suggestion)

    def __bool__(self) -> bool:
        from tvm_tile.frontend.constructs import truth_remedy

        span = current_span()
        found = truth_remedy(span)
        if found is not None:
            self._refuse(f"has no truth value during capture, which {found[0]}", found[1])
        if span is not None and not span.excerpt():
            self._refuse(
                "has no truth value during capture, and this function has no source text, so Python runs "
                "its `if`, `while`, `and`, `or` and `not`",
                "define it in a file or a notebook cell, or select with tt.where and join with & | ~",
            )
        self._refuse(
            "has no truth value during capture",
            "branch with a plain `if`, select with tt.where, and join conditions with & | ~",
        )

    def __int__(self) -> int:
        self._refuse("is no Python int during capture", self._called('convert with .astype("int32")'))

    def __float__(self) -> float:
        self._refuse(
            "is no Python float during capture",
            self._called('use the tt functions, and convert with .astype("float32")'),
        )

    def _called(self, otherwise: str) -> str:
        """The counterpart of the function that is called here, as of math, or else another remedy."""
        from tvm_tile.frontend.constructs import called_name, is_ours
        from tvm_tile.frontend.counterparts import function_remedy

        name = called_name(current_span())
        remedy = function_remedy(name) if name is not None else ""
        # A function of the language is no remedy for itself.
        return remedy if remedy.startswith("use ") and not is_ours(current_span()) else otherwise

    def __format__(self, spec: str) -> str:
        if spec:
            self._refuse(
                f"has no digits during capture for the format {spec!r}",
                'store it to a tensor and print that after the call; a plain f"{x}" shows shape and dtype',
            )
        return str(self)

    def __complex__(self) -> complex:
        self._refuse("is no Python complex during capture", "split it into real tiles")

    def __index__(self) -> int:
        self._refuse_subscript()
        self._refuse(
            "is no Python int during capture, so range, list subscripts and shapes cannot take it",
            "loop with tt.serial, take parts with tt.ds(start, size), and make sizes keyword-only constants",
        )

    def __round__(self, ndigits: int | None = None) -> Any:
        if ndigits is not None:
            self._refuse("cannot be rounded to decimals", "scale, use tt.round, and scale back")
        return _apply("round", self)

    def __floor__(self) -> Any:
        return _apply("floor", self)

    def __ceil__(self) -> Any:
        return _apply("ceil", self)

    def __iter__(self) -> Any:
        self._refuse(
            "cannot be iterated over",
            self._called("loop over its indices with tt.serial, or use a tile operation"),
        )

    def __len__(self) -> int:
        self._refuse("has no len()", "use .shape[0]")

    def __contains__(self, item: Any) -> bool:
        self._refuse("cannot be searched with `in`", "use tt.any(x == value)")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        # A NumPy scalar on the left comes by here.
        from tvm_tile.frontend.counterparts import (
            UFUNCS,
            accumulation_remedy,
            function_remedy,
            reduction_remedy,
        )

        name = UFUNCS.get(ufunc.__name__)
        if method == "__call__" and not options:
            if name is not None:
                return _apply(name, *inputs)
            if ufunc.__name__ == "matmul":
                from tvm_tile.frontend.contraction import matmul

                # Not `@`: that of an array on the left would come by here again.
                return matmul(*inputs)
        what = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        if method == "__call__":
            remedy = function_remedy(ufunc.__name__)
        else:
            of_method = accumulation_remedy if method == "accumulate" else reduction_remedy
            remedy = of_method(ufunc.__name__)
        if options and name is not None:
            what = f"{what} with {', '.join(options)}"
        return self._refuse(f"cannot go through NumPy's {what}", remedy)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        from tvm_tile.frontend.counterparts import PLAIN_FUNCTIONS, function_remedy

        name = function.__name__
        if name in PLAIN_FUNCTIONS and len(args) == 1 and not options:
            return PLAIN_FUNCTIONS[name](args[0])
        return self._refuse(f"cannot go through NumPy's {name}", function_remedy(name))

    def _refuse_subscript(self) -> None:
        """Refuse to be the subscript of a Python sequence or array, if it is one here."""
        from tvm_tile.frontend.constructs import subscripted

        name = subscripted(current_span())
        if name is not None:
            self._refuse(
                f"is known only when the program runs, and {name} is no tensor of the kernel",
                f"pass {name} as a tensor parameter, and load from that: a NumPy array of its values",
            )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse_subscript()
        self._refuse("cannot become a NumPy array during capture", "use the tt functions in place of NumPy's")


class Tile(Operators):
    """An immutable tile of numbers in a kernel; shape ``()`` is a scalar.

    Made by loads (``A[idx]``) and by tile operations, never directly.

    Attributes
    ----------
    value
        The value in the program.
    weak
        Makes the tile again in another dtype, if it comes from Python numbers alone; else ``None``. As a
        number does, it takes the dtype of what it meets.
    """

    __slots__ = ("trace", "value", "weak")

    def __init__(self, trace: Trace, value: Value, weak: Callable[[str], Tile] | None = None) -> None:
        self.trace = trace
        self.value = value
        self.weak = weak

    @property
    def type(self) -> TileType:
        """Shape and dtype."""
        return self.value.type

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in elements."""
        return self.value.shape

    @property
    def dtype(self) -> str:
        """Element type."""
        return self.value.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.value.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.value.type.size

    @property
    def T(self) -> Tile:
        """All axes reversed."""
        from tvm_tile.frontend.shape import transpose

        return transpose(self)

    def astype(self, dtype: Any) -> Tile:
        """Convert the elements, rounding to nearest even; see :func:`tvm_tile.cast`."""
        from tvm_tile.frontend.elementwise import cast

        return cast(self, dtype)

    def reshape(self, *shape: Any) -> Tile:
        """Row-major reinterpretation; see :func:`tvm_tile.reshape`."""
        from tvm_tile.frontend.shape import reshape

        return reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Tile:
        """Permute the axes; see :func:`tvm_tile.transpose`."""
        from tvm_tile.frontend.shape import transpose

        return transpose(self, (axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes) or None)

    def __getitem__(self, subscripts: Any) -> Tile:
        from tvm_tile.frontend.subscripts import extract

        return extract(self, subscripts)

    def __setitem__(self, subscripts: Any, value: Any) -> None:
        from tvm_tile.frontend.constructs import update_for

        written = update_for(current_span())
        self._refuse(
            "is a value and cannot be assigned into",
            f"make a new tile: {written}"
            if written is not None
            else "make a new tile with x = tt.update(x, idx, value), or store to a tensor",
        )

    def _describe(self) -> str:
        name = self.trace.names.get(self.value.id, self.value.name)
        return f"tile {name!r} ({self.type})" if name else f"a tile ({self.type})"

    def __repr__(self) -> str:
        return f"<{self._describe()}>"
