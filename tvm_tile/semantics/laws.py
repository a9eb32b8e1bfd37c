"""Laws of merges: proved by a known form or by enumeration, refuted by a point, or else as declared.

A tree policy relies on laws of its merge: that it is associative and has a two-sided identity, and for
``unordered_tree`` that it commutes. Full enumeration proves them for a state of one bool or 8-bit element.
Otherwise points are tried: special and drawn values. A merge of several states with a lift is tried on what
the lift gives. Any other one that a point refutes is tried again on states that contributions lead to, since
the laws need not hold for states that no contribution makes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tvm_tile.ir.dtypes import bits, is_bool, is_float, numpy_dtype
from tvm_tile.ir.merge_ops import MergeReduce, Scan
from tvm_tile.ir.ops import Broadcast, Cast, Elementwise, Full
from tvm_tile.ir.regions import Lambda, Merge
from tvm_tile.ir.structure import operands_of, walk
from tvm_tile.ir.values import Value
from tvm_tile.relations.proof import Proof
from tvm_tile.semantics.arguments import Arguments
from tvm_tile.semantics.contributions import Contribution, contribution_of_lift
from tvm_tile.semantics.elementwise import apply_elementwise
from tvm_tile.semantics.machine import Machine
from tvm_tile.semantics.orders import Orders
from tvm_tile.semantics.rounding import Array, cast, constant

__all__ = ["Laws", "laws_of"]

State = tuple[Array, ...]

_SEED = 20240229
_POINTS = 24
_INTEGERS = (0, 1, -1, 2, 3, 5, 7, -4)
_REALS = (0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -7.25, 96.0)
#: Of several states without a lift: values that counts, weights and sums may all have.
_COUNTS = (1, 2, 3, 5, 7)
_TOLERANCE = {"float16": 5e-2, "bfloat16": 2e-1, "float32": 1e-3, "float64": 1e-9}


@dataclass(frozen=True)
class Laws:
    """What is known of a merge.

    Attributes
    ----------
    associative, commutative, identity
        Each proved, disproved with a point, or unknown: then it holds as far as points were tried, and is
        taken as declared.
    """

    associative: Proof
    commutative: Proof
    identity: Proof


@functools.lru_cache(maxsize=256)
def laws_of(merge: Merge, contribution: Contribution | None = None) -> Laws:
    """Examine the laws of a merge.

    Parameters
    ----------
    contribution
        Makes the states that the merge has to combine; without it they are those of the merge's own lift,
        or any.
    """
    if merge.builtin is not None:
        known = Proof.proved(f"known form: {', '.join(merge.builtin)}")
        return Laws(known, known, known)
    if _captures(merge):
        declared = Proof.unknown("declared: the merge reads values from outside of it")
        return Laws(declared, declared, declared)
    with np.errstate(all="ignore"):
        if contribution is None and merge.lift is not None:
            contribution = contribution_of_lift(merge.lift)
        if contribution is not None and merge.lift is not None and len(merge.identity.yields) > 1:
            return _tried(merge, _reached(merge, contribution))
        laws = _enumerated(merge) if _is_enumerable(merge) else _tried(merge, _any_states(merge))
        proofs = (laws.associative, laws.commutative, laws.identity)
        if contribution is None or not any(proof.is_disproved for proof in proofs):
            return laws
        there = _tried(merge, _reached(merge, contribution))
        again = (there.associative, there.commutative, there.identity)
        return Laws(*(b if a.is_disproved else a for a, b in zip(proofs, again, strict=True)))


def _captures(merge: Merge) -> bool:
    """Whether a function of the merge reads values that are defined outside of it."""
    for part in (merge.combine, merge.identity, merge.lift):
        if part is None:
            continue
        inside = {*part.params}
        for statement in walk(part.body):
            inside |= {
                *statement.results,
                *getattr(statement, "indices", ()),
                *getattr(statement, "args", ()),
            }
            if isinstance(statement, (MergeReduce, Scan)):
                return True
        reads = {value for statement in walk(part.body) for value in operands_of(statement)}
        if not inside.issuperset((*reads, *part.yields)):
            return True
    return False


# Evaluation


def _is_elementwise(function: Lambda) -> bool:
    """Whether it works on each element by itself, so that it can be run on any number of points at once."""
    shapes = {value.shape for value in function.params}
    for statement in function.body.statements:
        match statement:
            case Full() | Elementwise() | Cast():
                pass
            case Broadcast(result=result, operand=operand) if operand.shape in ((), result.shape):
                pass
            case _:
                return False
    return len(shapes) == 1


def _run_elementwise(function: Lambda, arguments: State, *, wide: bool = False) -> State:
    """Its value; in float64 throughout if ``wide``, so that rounding hides no law and breaks none."""

    def working(dtype: str) -> str:
        return "float64" if wide and is_float(dtype) else dtype

    if wide:
        arguments = tuple(
            cast(np.asarray(a), working(v.dtype)) for v, a in zip(function.params, arguments, strict=True)
        )
    values: dict[int, Array] = {v.id: a for v, a in zip(function.params, arguments, strict=True)}
    for statement in function.body.statements:
        match statement:
            case Full(result=result, value=value):
                values[result.id] = np.asarray(
                    constant(value, working(result.dtype)), numpy_dtype(working(result.dtype))
                )
            case Elementwise(result=result, fn=fn, operands=operands):
                parts = np.broadcast_arrays(*(values[v.id] for v in operands))
                values[result.id] = apply_elementwise(fn, *parts)
            case Cast(result=result, operand=operand):
                values[result.id] = cast(values[operand.id], working(result.dtype))
            case Broadcast(result=result, operand=operand):
                values[result.id] = values[operand.id]
    shape = np.broadcast_shapes(*(a.shape for a in arguments))
    return tuple(np.broadcast_to(values[v.id], shape) for v in function.yields)


def _runner(function: Lambda, *, wide: bool = False) -> Callable[[State], State]:
    if _is_elementwise(function):
        return lambda state: _run_elementwise(function, state, wide=wide)
    machine = Machine(Arguments({}, {}, ()), Orders())
    return lambda state: machine.call(function, state)


def _identity(merge: Merge) -> State:
    return Machine(Arguments({}, {}, ()), Orders()).call(merge.identity, ())


# Enumeration


def _is_enumerable(merge: Merge) -> bool:
    states = merge.identity.yields
    small = len(states) == 1 and (is_bool(states[0].dtype) or bits(states[0].dtype) == 8)
    return small and not is_float(states[0].dtype) and _is_elementwise(merge.combine)


def _enumerated(merge: Merge) -> Laws:
    """Every triple of elements of a small dtype, through the table of all pairs."""
    dtype = merge.identity.yields[0].dtype
    count = 2 if is_bool(dtype) else 256
    codes = np.arange(count).astype(np.uint8)
    elements = codes.astype(np.bool_) if is_bool(dtype) else codes.view(numpy_dtype(dtype))
    left, right = np.repeat(elements, count), np.tile(elements, count)
    (flat,) = _run_elementwise(merge.combine, (left, right))
    table = np.ascontiguousarray(flat).view(np.uint8).reshape(count, count).astype(np.int64)
    method = f"enumeration of {dtype}"

    def answer(differs: Array, describe: Callable[..., str]) -> Proof:
        if not differs.any():
            return Proof.proved(method, int(differs.size))
        place = np.unravel_index(int(np.argmax(differs)), differs.shape)
        return Proof.disproved(describe(*(elements[k] for k in place)), method)

    def combine(a: Array, b: Array) -> Array:
        return np.asarray(elements[table[_code(a), _code(b)]])

    def _code(x: Array) -> int:
        return int(np.asarray(x).view(np.uint8))

    associative = Proof.proved(method, count**3)
    for k in range(count):
        differs = table[table[k]] != table[k][table]
        if differs.any():
            b, c = (elements[i] for i in np.unravel_index(int(np.argmax(differs)), differs.shape))
            a = elements[k]
            point = _regrouped((a,), (b,), (c,), (combine(combine(a, b), c),), (combine(a, combine(b, c)),))
            associative = Proof.disproved(point, method)
            break
    unit = np.ravel(_identity(merge)[0])[0]
    neutral = (table[_code(unit)] != codes) | (table[:, _code(unit)] != codes)
    return Laws(
        associative,
        answer(table != table.T, lambda a, b: _swapped((a,), (b,), (combine(a, b),), (combine(b, a),))),
        answer(neutral, lambda a: _neutral((unit,), (a,), (combine(unit, a),), (combine(a, unit),))),
    )


# Points


def _tried(merge: Merge, points: list[State]) -> Laws:
    combine = _runner(merge.combine, wide=not merge.exact)
    unit = _identity(merge)
    dtypes = tuple(value.dtype for value in merge.identity.yields)
    compare = functools.partial(_agree, dtypes=dtypes, exact=merge.exact)
    laws: dict[str, Proof] = {}

    def join(a: State, b: State) -> State:
        return combine((*a, *b))

    for k, b in enumerate(points):
        a, c = points[k - 1], points[(5 * k + 2) % len(points)]
        grouped, regrouped = join(join(a, b), c), join(a, join(b, c))
        if "associative" not in laws and not compare(grouped, regrouped, (a, b, c)):
            laws["associative"] = Proof.disproved(_regrouped(a, b, c, grouped, regrouped), "a point")
        there, back = join(a, b), join(b, a)
        if "commutative" not in laws and not compare(there, back, (a, b)):
            laws["commutative"] = Proof.disproved(_swapped(a, b, there, back), "a point")
        first, last = join(unit, b), join(b, unit)
        kept = compare(first, b, (b,)) and compare(last, b, (b,))
        if "identity" not in laws and not kept:
            laws["identity"] = Proof.disproved(_neutral(unit, b, first, last), "a point")
    declared = Proof.unknown(f"declared: it holds at {len(points)} points", "points")
    return Laws(*(laws.get(name, declared) for name in ("associative", "commutative", "identity")))


def _any_states(merge: Merge) -> list[State]:
    rng = np.random.default_rng(_SEED)
    states = merge.identity.yields
    pools = [_COUNTS if len(states) > 1 else _pool(v) for v in states]
    return [
        tuple(_drawn(v, rng, pool) for v, pool in zip(states, pools, strict=True)) for _ in range(_POINTS)
    ]


def _reached(merge: Merge, contribution: Contribution) -> list[State]:
    """Contributions of drawn values, and joins of two of them."""
    rng = np.random.default_rng(_SEED)
    unit = _identity(merge)
    run, combine = _runner(contribution.function), _runner(merge.combine)
    drawn = contribution.function.params[contribution.states :]
    start = unit[: contribution.states]
    pools = [_COUNTS if v in contribution.coordinates else _pool(v) for v in drawn]
    singles = [
        run((*start, *(_drawn(v, rng, pool) for v, pool in zip(drawn, pools, strict=True))))
        for _ in range(_POINTS)
    ]
    pairs = [combine((*a, *b)) for a, b in zip(singles, singles[3:], strict=False)]
    points = [state for pair in zip(singles, pairs, strict=False) for state in pair]
    if contribution.seed:
        points.append(
            tuple(
                np.full(f.result.shape, constant(f.value, f.result.dtype), numpy_dtype(f.result.dtype))
                for f in contribution.seed
            )
        )
    return points


def _pool(value: Value) -> tuple[float, ...]:
    return _REALS if is_float(value.dtype) else _INTEGERS


def _drawn(value: Value, rng: np.random.Generator, pool: tuple[float, ...]) -> Array:
    chosen = rng.choice(np.asarray(pool), size=value.shape)
    if is_bool(value.dtype):
        return np.asarray(rng.random(value.shape) < 0.5)
    return cast(np.asarray(chosen), value.dtype)


def _agree(x: State, y: State, at: tuple[State, ...], *, dtypes: tuple[str, ...], exact: bool) -> bool:
    for k, (dtype, a, b) in enumerate(zip(dtypes, x, y, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if exact or dtype not in _TOLERANCE:
            if not np.all((a == b) | ((a != a) & (b != b))):
                return False
            continue
        wide, other = a.astype(np.float64), b.astype(np.float64)
        scale = np.maximum(np.maximum(np.abs(wide), np.abs(other)), 1.0)
        for state in at:
            scale = np.maximum(scale, np.abs(np.asarray(state[k]).astype(np.float64)))
        # What overflows or has no value says nothing about a law that holds up to rounding.
        finite = np.isfinite(wide) & np.isfinite(other)
        if np.any(finite & (np.abs(wide - other) > _TOLERANCE[dtype] * scale)):
            return False
    return True


# Words


def _shown(state: State) -> str:
    parts = [np.array2string(np.asarray(part), threshold=8, separator=", ") for part in state]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _regrouped(a: State, b: State, c: State, grouped: State, regrouped: State) -> str:
    where = f"a = {_shown(a)}, b = {_shown(b)}, c = {_shown(c)}"
    return f"{where}: (a·b)·c = {_shown(grouped)}, a·(b·c) = {_shown(regrouped)}"


def _swapped(a: State, b: State, there: State, back: State) -> str:
    return f"a = {_shown(a)}, b = {_shown(b)}: a·b = {_shown(there)}, b·a = {_shown(back)}"


def _neutral(unit: State, a: State, first: State, last: State) -> str:
    return f"e = {_shown(unit)}, a = {_shown(a)}: e·a = {_shown(first)}, a·e = {_shown(last)}"
