"""The region loops of the language as the iterables of ``for`` statements, and what goes with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tvm_tile.errors import CaptureError
from tvm_tile.frontend.described import described
from tvm_tile.frontend.index import Index, index_expression
from tvm_tile.frontend.merges import merge_argument
from tvm_tile.frontend.operands import value_of
from tvm_tile.frontend.positions import current_span
from tvm_tile.frontend.reductions import check_policy_name
from tvm_tile.frontend.tile import Operators, Tile
from tvm_tile.frontend.trace import require_trace
from tvm_tile.ir.index import IndexExpr, constant_of
from tvm_tile.ir.ops import Stage
from tvm_tile.ir.region_rules import BINDINGS
from tvm_tile.ir.span import Span

__all__ = ["Region", "cdiv", "parallel", "pipeline", "reduce", "serial", "stage"]


@dataclass(frozen=True, eq=False)
class Region:
    """What a ``for`` statement of a kernel loops over.

    Attributes
    ----------
    kind
        ``parallel``, ``serial``, ``pipeline`` or ``reduce``.
    extents
        Extents of the domain.
    where
        The user's predicate of the loop indices, if any.
    options
        What is particular to the kind, by the field names of the IR.
    """

    kind: str
    extents: tuple[IndexExpr, ...]
    where: Callable[..., Any] | None
    options: dict[str, Any] = field(default_factory=dict)
    span: Span | None = None

    # Typed as the captured loop sees it, so that type checkers accept kernels.
    def __iter__(self) -> Iterator[Any]:
        raise CaptureError(
            f"tt.{self.kind} is iterated over by Python, outside of a captured `for` statement",
            span=current_span(),
            suggestion=f"write `for ... in tt.{self.kind}(...):` as a statement of the kernel, or of a "
            "Python function with source (no generator) that it calls",
        )


def _region(kind: str, extents: tuple[Any, ...], where: Any, **options: Any) -> Region:
    trace = require_trace(f"tt.{kind}")
    span = current_span()
    if not extents:
        raise CaptureError(f"tt.{kind} needs an extent", span=span, suggestion=f"tt.{kind}(n)")
    if where is not None and not callable(where):
        raise CaptureError(
            f"where={described(where)} is no function",
            span=span,
            suggestion="pass a function of the indices: where=lambda i: i < n",
        )
    checked = []
    for extent in extents:
        expression = index_expression(extent)
        if expression is None:
            what = (
                extent._describe()
                if isinstance(extent, Operators)
                else f"{type(extent).__name__} {described(extent)}"
            )
            raise CaptureError(
                f"the extent of tt.{kind} is an integer, not {what}",
                span=span,
                suggestion=_extent_remedy(kind, extent),
            )
        if isinstance(extent, Tile):
            value_of(extent)
        trace.check_index(expression)
        constant = constant_of(expression)
        if constant is not None and constant < 0:
            raise CaptureError(
                f"tt.{kind} has the negative extent {constant}",
                span=span,
                suggestion="use an extent of 0 or more",
            )
        checked.append(expression)
    return Region(kind, tuple(checked), where, options, span)


def _extent_remedy(kind: str, extent: Any) -> str:
    if isinstance(extent, (tuple, list)):
        return f"write each extent as an argument: tt.{kind}({', '.join(described(n, 20) for n in extent)})"
    if isinstance(extent, Operators) and getattr(extent, "shape", ()) != ():
        return "use an extent of its shape, such as X.shape[0]"
    if isinstance(extent, float):
        return "divide with // or tt.cdiv to get an int"
    return "use an int, an index or an integer scalar tile, such as tt.cdiv(n, 16)"


def parallel(*extents: Any, where: Callable[..., Any] | None = None, bind: str | None = None) -> Region:
    """Independent instances, without order between them.

    The loop promises that no instance writes what another reads or writes.
    An outer tile is updated in parts by ``T = tt.update(T, idx, v)``; see :func:`tvm_tile.update`.

    Parameters
    ----------
    *extents : int, index or integer scalar tile
        Extents of the domain; with several, the loop variable is a tuple.
    where : function of the indices, optional
        Predicate that leaves points out of the domain.
    bind : str, optional
        Target scope that runs the instances, such as ``"worker"`` or ``"block"``.

    Raises
    ------
    CaptureError
        An extent is no integer or negative, or there is no such scope.
    """
    if bind is not None and not (isinstance(bind, str) and bind in BINDINGS):
        raise CaptureError(
            f"bind={described(bind)} is not a scope: {', '.join(BINDINGS)}",
            span=current_span(),
            suggestion="leave bind out and let the planner choose",
        )
    return _region("parallel", extents, where, bind=bind)


def serial(*extents: Any, where: Callable[..., Any] | None = None) -> Region:
    """One iteration after the other, in lexicographic order; carried state is a recurrence.

    Parameters are those of :func:`parallel`, without ``bind``.
    """
    return _region("serial", extents, where)


def pipeline(
    *extents: Any, where: Callable[..., Any] | None = None, versions: int | None = None, ii: int | None = None
) -> Region:
    """The meaning of :func:`serial`; iterations may overlap as far as dependences allow.

    Parameters
    ----------
    *extents, where
        As for :func:`parallel`.
    versions : int, optional
        Versions of each buffered value that are kept at a time.
    ii : int, optional
        Initiation interval, in iterations.

    Raises
    ------
    CaptureError
        ``versions`` or ``ii`` is no positive int.
    """
    for name, count in (("versions", versions), ("ii", ii)):
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise CaptureError(
                f"{name}={described(count)} is no positive int",
                span=current_span(),
                suggestion=f"leave {name} out",
            )
    return _region("pipeline", extents, where, versions=versions, ii=ii)


def reduce(
    *extents: Any,
    where: Callable[..., Any] | None = None,
    policy: str = "unordered_tree",
    merge: Any = None,
) -> Region:
    """Contributions to the states that the body updates.

    Parameters
    ----------
    *extents, where
        As for :func:`parallel`.
    policy : {"unordered_tree", "ordered_tree", "fold_left", "fold_right"}
        Which groupings and orders of the contributions are admitted.
    merge : Merge or function, optional
        How partial states combine. By default it is derived from updates of the form ``s = s op e``. A
        function of the language, such as :func:`max` or :func:`add`, merges each state by itself; a body that
        updates a state by another such function is refused. A contribution is the body run from the merge's
        identity, or ``lift``.

    Raises
    ------
    CaptureError
        There is no such policy, or ``merge`` is no merge.
    """
    policy = check_policy_name(policy)
    if merge is not None:
        merge_argument(merge)
    return _region("reduce", extents, where, policy=policy, merge=merge)


def stage(name: str) -> None:
    """Start a named stage of the enclosing pipeline's body.

    Raises
    ------
    CaptureError
        It does not stand directly in the body of a :func:`pipeline`, or the name is taken or empty.
    """
    trace = require_trace("tt.stage")
    span = current_span()
    if trace.scope.kind != "pipeline":
        raise CaptureError(
            f"tt.stage({name!r}) stands in a {trace.scope.kind} body, not directly in that of a tt.pipeline",
            span=span,
            suggestion="move it to the outermost level of a tt.pipeline loop",
        )
    if not isinstance(name, str) or not name:
        raise CaptureError(
            f"a stage is named by a string, not {name!r}", span=span, suggestion='tt.stage("load")'
        )
    if any(isinstance(s, Stage) and s.name == name for s in trace.scope.statements):
        raise CaptureError(
            f"this pipeline already has a stage {name!r}",
            span=span,
            suggestion="give each stage its own name",
        )
    trace.append(Stage(name, span=span))


def cdiv(a: Any, b: Any) -> Any:
    """``a / b`` rounded up: how many blocks of ``b`` cover ``a``.

    Parameters
    ----------
    a, b : int, index or integer tile
        Of ints the result is an int, of indices an index.
    """
    if isinstance(a, Index) or isinstance(b, Index):
        return (a + (b - 1)) // b
    return -(-a // b)
