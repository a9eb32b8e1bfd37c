"""Reductions: which orders a policy admits, and what a merge, a seed and a mask mean.

Run it with ``python tutorials/02_reductions.py``; each kernel stands beside the same in plain loops.
"""

import itertools

import numpy as np

import tvm_tile as tt


def outcomes(program, *inputs, shape=(1,), dtype="float32"):
    """Every result that the interpreter finds when it reduces in the order of the source, in reverse, and in
    other orders that the policy admits, each chosen by a seed."""
    found = set()
    for reduction in ("source", "reverse", *range(40)):
        out = np.zeros(shape, dtype)
        tt.interpret(program, *inputs, out, reduction=reduction)
        found.add(tuple(out.reshape(-1).tolist()))
    return found


def built(program, *inputs, shape=(1,), dtype="float32"):
    """The result of generated code."""
    out = np.zeros(shape, dtype)
    tt.build(program, "llvm")(*inputs, out)
    return tuple(out.reshape(-1).tolist())


# 1. A policy says which groupings and orders of the contributions are admitted.
#
# Adding floats rounds, so the order shows. Near 1e8 a float32 holds multiples of 8 only: a 1 that is added
# there is lost. Four contributions are enough to tell the four policies apart.

x = np.array([1e8, 1.0, -1e8, 1.0], np.float32)


@tt.kernel
def total(X, out, *, policy):
    for _ in tt.parallel(1):
        s = tt.zeros((), "float32")
        for i in tt.reduce(X.shape[0], policy=policy):
            s = s + X[i]
        out[0] = s


# The same in plain loops: two folds, which are one order each ...


def fold_left(values):
    s = np.float32(0)
    for value in values:
        s = s + value
    return float(s)


def fold_right(values):
    s = np.float32(0)
    for value in reversed(values):
        s = s + value
    return float(s)


# ... and all the trees over the contributions: cut the sequence anywhere, reduce both parts, join them. An
# ordered tree may be any of these; an unordered one may also permute the contributions first.


def ordered_trees(values):
    if len(values) == 1:
        return {float(values[0])}
    return {
        float(np.float32(left) + np.float32(right))
        for cut in range(1, len(values))
        for left in ordered_trees(values[:cut])
        for right in ordered_trees(values[cut:])
    }


def unordered_trees(values):
    return set().union(*(ordered_trees(order) for order in itertools.permutations(values)))


admitted = {
    "fold_left": {fold_left(x)},
    "fold_right": {fold_right(x)},
    "ordered_tree": ordered_trees(tuple(x)),
    "unordered_tree": unordered_trees(tuple(x)),
}
for policy, expected in admitted.items():
    program = total.trace(x, tt.spec((1,), "float32"), policy=policy)
    seen = {value for (value,) in outcomes(program, x)}
    (result,) = built(program, x)
    print(f"{policy:15} may give {sorted(expected)}, was seen to give {sorted(seen)}, built {result}")
    assert seen <= expected
    assert result in expected

assert admitted["fold_left"] == {1.0}
assert admitted["fold_right"] == {0.0}
assert admitted["ordered_tree"] == {0.0, 1.0}
assert admitted["unordered_tree"] == {0.0, 1.0, 2.0}  # 2 is the exact sum

# The default is `unordered_tree`: it leaves the most room to vector units and threads. `tt.sum` and the other
# reductions of tiles take `policy=` too.


# 2. A merge that does not commute.
#
# `v -> a * v + b` is an affine map; the composition of two is one again. Composition is associative, so maps
# may be grouped in any way, but it does not commute: an unordered tree is refused.

compose = tt.Merge(lambda f, g: (g[0] * f[0], g[0] * f[1] + g[1]), identity=(1, 0))


@tt.kernel
def composed(A, B, out, *, policy, merge=compose):
    for _ in tt.parallel(1):
        a, b = tt.full((), 1, "int64"), tt.full((), 0, "int64")
        for i in tt.reduce(A.shape[0], policy=policy, merge=merge):
            a, b = A[i] * a, A[i] * b + B[i]
        out[0] = a
        out[1] = b


# The same in plain loops.


def composition(maps):
    a, b = 1, 0
    for factor, offset in maps:
        a, b = factor * a, factor * b + offset
    return a, b


slopes, offsets = np.array([2, 3, -1, 4, 5]), np.array([1, -2, 7, 0, 3])
maps = list(zip(slopes.tolist(), offsets.tolist(), strict=True))
pair = tt.spec((2,), "int64")

for policy, expected in {
    "fold_left": composition(maps),
    "ordered_tree": composition(maps),
    "fold_right": composition(maps[::-1]),
}.items():
    program = composed.trace(slopes, offsets, pair, policy=policy)
    assert outcomes(program, slopes, offsets, shape=(2,), dtype="int64") == {expected}
    assert built(program, slopes, offsets, shape=(2,), dtype="int64") == expected
assert composition(maps) != composition(maps[::-1])

try:
    composed.trace(slopes, offsets, pair, policy="unordered_tree")
except tt.IllegalError as error:
    print(error)
    assert "not commutative" in str(error)
    assert "ordered_tree" in error.suggestion
else:
    raise AssertionError("contributions of a merge that does not commute may not be permuted")

# Claiming `commutative=True` does not help: claims are tested, and this one has a counterexample.

claimed = tt.Merge(compose.fn, compose.identity, commutative=True, exact=True)
program = composed.trace(slopes, offsets, pair, policy="unordered_tree", merge=claimed)
try:
    tt.verify(program)
except tt.IllegalError as error:
    print(error)
    assert error.counterexample is not None
    assert "ordered_tree" in error.suggestion
else:
    raise AssertionError("composition of affine maps does not commute")


# 3. Seed, mask, and nothing to reduce.
#
# What a state holds before the region is its seed. It joins once, on the left, whatever the tree. An update
# under `if` is a contribution that may be absent, which is not the same as one that is zero: see `peak`.


@tt.kernel
def positive(X, out, *, n, policy="unordered_tree"):
    for _ in tt.parallel(1):
        s = tt.full((), 100, "int32")
        peak = tt.full((), -(2**31), "int32")
        for i in tt.reduce(n, policy=policy):
            if X[i] < 0:
                s = s + X[i]
                peak = tt.maximum(peak, X[i])
        out[0] = s
        out[1] = peak


# The same in plain loops.


def negatives(values):
    s, peak = 100, -(2**31)
    for value in values:
        if value < 0:
            s = s + value
            peak = max(peak, value)
    return s, peak


numbers = np.array([3, -5, 8, -2, 7, -9, 4], np.int32)
for policy in admitted:
    program = positive.trace(numbers, tt.spec((2,), "int32"), n=7, policy=policy)
    assert outcomes(program, numbers, shape=(2,), dtype="int32") == {negatives(numbers)} == {(84, -2)}
    assert built(program, numbers, shape=(2,), dtype="int32") == (84, -2)

    # Nothing to reduce: the results are the seeds.
    empty = positive.trace(numbers, tt.spec((2,), "int32"), n=0, policy=policy)
    assert built(empty, numbers, shape=(2,), dtype="int32") == negatives([]) == (100, -(2**31))

# Reductions of a tile take the mask as `where=`. A fibre with no contribution left gives the identity of its
# reduction: 0 for a sum, the least value for a maximum. There is no least position, so an argmax over an axis
# without elements is an error.


@tt.kernel
def row_sums(X, out):
    for i in tt.parallel(X.shape[0]):
        row = X[i, :]
        out[i] = tt.sum(row, where=row > 0.0)


@tt.kernel
def first_largest(X, out):
    for i in tt.parallel(X.shape[0]):
        out[i] = tt.argmax(X[i, :], axis=0)


table = np.array([[1.0, -2.0, 4.0], [-1.0, -1.0, -1.0]], np.float32)
out = tt.spec((2,), "float32")
assert built(row_sums.trace(table, out), table, shape=(2,)) == (5.0, 0.0)
try:
    first_largest.trace(table[:, :0], tt.spec((2,), "int32"))
except tt.IllegalError as error:
    print(error)
    assert "argmax" in str(error)
else:
    raise AssertionError("an argmax over no elements has no value")


# 4. A state of several numbers: mean and variance in one pass.
#
# Welford's update keeps count, mean and the sum of squared deviations. As a fold it needs no merge. A
# tree also joins partial states, which is Chan's formula; `tt.welford` is that merge, and `chan` below our
# own. The body says what one contribution does, the merge what two partial states do.


def chan(left, right):
    (n, mean, m2), (k, other, more) = left, right
    together = n + k
    share = tt.where(together > 0.0, k / tt.maximum(together, 1.0), 0.0)
    gap = other - mean
    return together, mean + gap * share, m2 + more + gap * gap * n * share


moments = tt.Merge(chan, identity=(0.0, 0.0, 0.0), commutative=True)


@tt.kernel
def variances(X, out, *, merge, policy="unordered_tree"):
    for r in tt.parallel(X.shape[0]):
        count = mean = m2 = tt.full((), 0.0, "float64")
        for i in tt.reduce(X.shape[1], policy=policy, merge=merge):
            step = X[r, i] - mean
            count, mean, m2 = (
                count + 1.0,
                mean + step / (count + 1.0),
                m2 + step * (step - step / (count + 1.0)),
            )
        out[r] = m2 / count


@tt.kernel
def variances_of_tiles(X, out):
    for r in tt.parallel(X.shape[0]):
        count, _, m2 = tt.reduce_tile(X[r, :], 0, tt.welford)
        out[r] = m2 / count


# The same in plain loops.


def variance(row):
    count, mean, m2 = 0.0, 0.0, 0.0
    for value in row:
        step = value - mean
        count, mean, m2 = count + 1.0, mean + step / (count + 1.0), m2 + step * (step - step / (count + 1.0))
    return m2 / count


# Far from zero, where the mean of the squares less the square of the mean has no correct digit left.
samples = 1e9 + np.random.default_rng(1).standard_normal((3, 37))
rows = tt.spec((3,), "float64")
programs = {
    "our merge": variances.trace(samples, rows, merge=moments),
    "tt.welford": variances.trace(samples, rows, merge=tt.welford),
    "a fold": variances.trace(samples, rows, merge=None, policy="fold_left"),
    "tt.reduce_tile": variances_of_tiles.trace(samples, rows),
}
expected = [variance(row) for row in samples.tolist()]
np.testing.assert_allclose(expected, samples.var(axis=1), rtol=1e-6)
for how, program in programs.items():
    results = outcomes(program, samples, shape=(3,), dtype="float64")
    print(f"variance by {how}: {len(results)} admitted results seen")
    for result in (*results, built(program, samples, shape=(3,), dtype="float64")):
        np.testing.assert_allclose(result, expected, rtol=1e-6)
naive = (samples**2).mean(axis=1) - samples.mean(axis=1) ** 2
assert not np.allclose(naive, expected, rtol=0.1)


# 5. Why a fold cannot become a tree by itself.
#
# `s * 0.5 + x` is fine as a fold. A tree would have to join two partial states, and the body does not say
# how: the states are not enough, one must know how many contributions are in them. So a tree is refused.


@tt.kernel
def decayed(X, out, *, policy="unordered_tree", merge=None):
    for _ in tt.parallel(1):
        s = tt.zeros((), "float32")
        for i in tt.reduce(X.shape[0], policy=policy, merge=merge):
            s = s * 0.5 + X[i]
        out[0] = s


def decay(values):
    s = 0.0
    for value in values:
        s = s * 0.5 + value
    return s


signal = np.array([1.0, 2.0, 3.0, 4.0, 5.0], np.float32)
try:
    decayed.trace(signal, tt.spec((1,), "float32"))
except tt.IllegalError as error:
    print(error)
    assert "no known merge" in str(error)
    assert "fold_left" in error.suggestion
else:
    raise AssertionError("there is no tree without a merge")

# What it suggests works: the fold, or a merge of a larger state. Here that is the composition of section 2,
# because each contribution is the affine map `s -> 0.5 * s + x`.

fold = decayed.trace(signal, tt.spec((1,), "float32"), policy="fold_left")
assert outcomes(fold, signal) == {(decay(signal),)}

halves = np.full(5, 0.5, np.float32)
affine = tt.Merge(lambda f, g: (g[0] * f[0], g[0] * f[1] + g[1]), identity=(1.0, 0.0))


@tt.kernel
def decayed_tree(A, X, out):
    for _ in tt.parallel(1):
        a, b = tt.full((), 1.0, "float32"), tt.zeros((), "float32")
        for i in tt.reduce(X.shape[0], policy="ordered_tree", merge=affine):
            a, b = A[i] * a, A[i] * b + X[i]
        out[0] = b


tree = decayed_tree.trace(halves, signal, tt.spec((1,), "float32"))
assert outcomes(tree, halves, signal) == {(decay(signal),)}
assert built(tree, halves, signal) == built(fold, signal) == (decay(signal),)


# 6. A scan keeps every partial result, and so the order.
#
# The merge may be grouped in any way, as a fast parallel scan does, but nothing is permuted: element i is the
# reduction of the contributions 0 to i. A merge that does not commute is therefore welcome.


@tt.kernel
def running(A, B, slopes, offsets, sums):
    for _ in tt.parallel(1):
        a, b = tt.scan((A[:], B[:]), 0, compose)
        slopes[:] = a
        offsets[:] = b
        sums[:] = tt.scan(B[:], 0, tt.add, exclusive=True)


n = len(maps)
vector = tt.spec((n,), "int64")
program = running.trace(slopes, offsets, vector, vector, vector)
# The same in plain loops.
prefixes = [composition(maps[: i + 1]) for i in range(n)]
before = [sum(offsets[:i].tolist()) for i in range(n)]
for reduction in ("source", "reverse", *range(20)):
    scanned = [np.zeros(n, np.int64) for _ in range(3)]
    tt.interpret(program, slopes, offsets, *scanned, reduction=reduction)
    assert list(zip(scanned[0].tolist(), scanned[1].tolist(), strict=True)) == prefixes
    assert scanned[2].tolist() == before
scanned = [np.zeros(n, np.int64) for _ in range(3)]
tt.build(program, "llvm")(slopes, offsets, *scanned)
assert list(zip(scanned[0].tolist(), scanned[1].tolist(), strict=True)) == prefixes
assert scanned[2].tolist() == before

print("every result is one that its policy admits")
