"""The language's own functions as merges: ``merge=tt.max`` and ``combine=tt.add``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm_tile.errors import CaptureError
from tvm_tile.frontend import elementwise, reductions
from tvm_tile.frontend.described import described
from tvm_tile.frontend.positions import current_span
from tvm_tile.ir.dtypes import STORAGE_ONLY, is_bool

__all__ = ["check_states", "combine_argument", "function_of"]

_FUNCTIONS: tuple[tuple[Callable[..., Any], str], ...] = (
    (reductions.sum, "add"),
    (reductions.prod, "multiply"),
    (reductions.max, "maximum"),
    (reductions.min, "minimum"),
    (reductions.any, "or"),
    (reductions.all, "and"),
    (elementwise.add, "add"),
    (elementwise.maximum, "maximum"),
    (elementwise.minimum, "minimum"),
)
_POSITIONS = (reductions.argmax, reductions.argmin)


def function_of(merge: Any) -> str | None:
    """The elementwise function that a function of the language merges with; ``None`` for what is none.

    Raises
    ------
    CaptureError
        It is a reduction to a position, whose states are pairs.
    """
    if any(merge is each for each in _POSITIONS):
        raise CaptureError(
            f"tt.{merge.__name__} gives positions, which do not merge without the values they stand for",
            span=current_span(),
            suggestion="use tt.argmax_pair on a tile and its positions (negated for the smallest), "
            f"or tt.{merge.__name__}(x, axis)",
        )
    return next((fn for each, fn in _FUNCTIONS if merge is each), None)


def check_states(fn: str, dtype: str) -> None:
    """Refuse a dtype whose elements a function does not merge.

    Raises
    ------
    CaptureError
        Sums and products of bool, logic of numbers, and anything of float8.
    """
    if dtype in STORAGE_ONLY:
        problem, remedy = f"{dtype} only loads, stores and casts", 'convert with .astype("float32")'
    elif is_bool(dtype) and fn in ("add", "multiply"):
        problem, remedy = "bool states do not add or multiply", "merge with tt.any or tt.all"
    elif fn in ("or", "and") and not is_bool(dtype):
        problem, remedy = f"tt.any and tt.all merge bool states, not {dtype}", "compare first: x != 0"
    else:
        return
    raise CaptureError(problem, span=current_span(), suggestion=remedy)


def combine_argument(combine: Any, dtype: str) -> str:
    """The elementwise function of a ``combine=`` argument for elements of a dtype.

    Raises
    ------
    CaptureError
        It is no function that combines, or not one for the dtype.
    """
    fn = function_of(combine)
    if fn is None:
        raise CaptureError(
            f"combine={described(combine)} is none of tt.add, tt.maximum, tt.minimum, tt.sum, tt.prod, "
            "tt.max, tt.min, tt.any, tt.all",
            span=current_span(),
            suggestion="name one of them: combine=tt.add",
        )
    check_states(fn, dtype)
    return fn
