"""Random kernels mean what the same text means as plain Python on NumPy numbers."""

import textwrap
from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm_tile.frontend as tt
from tvm_tile.semantics.interpreter import interpret

NAMES = ("a", "b", "c")
# The language's functions as plain Python.
PYTHON = SimpleNamespace(
    serial=range, pipeline=range, where=lambda c, x, y: x if c else y, minimum=min, maximum=max
)

names = st.sampled_from(NAMES)
numbers = st.sampled_from(("0.5", "-1.0", "2.0"))
atoms = st.one_of(names, numbers, st.sampled_from(("X[t % 4]", "X[2]", "Y[(t + 1) % 4]")))
expressions = st.one_of(
    atoms,
    st.builds("({} {} {})".format, names, st.sampled_from("+-"), atoms),
    st.builds("tt.where({} > {}, {}, {})".format, names, atoms, names, names),
    st.builds("({} * 0.5)".format, names),
)
simple = st.one_of(
    st.builds("{} = {} + {}".format, names, names, expressions),
    st.builds("{} = {}".format, names, names),
    st.builds("{} += {}".format, names, expressions),
    st.permutations(NAMES).map(lambda p: f"{', '.join(NAMES)} = {', '.join(p)}"),
    st.builds("{}, {} = {} * 0.5, {} + 1.0".format, st.just("a"), st.just("b"), names, names),
    st.builds("Y[{}] = {}".format, st.sampled_from(("t % 4", "1", "(t + 2) % 4")), names),
    st.builds("Y[t % 4] += {}".format, names),
    st.builds("new = {}\n{} = new".format, names, names),
    st.builds("c = step({}, {})".format, names, names),
)


def block(statements):
    return textwrap.indent("\n".join(statements), "    ")


def compound(inner):
    bodies = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda c, x, y: f"if {c}:\n{block(x)}\nelse:\n{block(y)}", conditions, bodies, bodies),
        st.builds(lambda c, x: f"if {c}:\n{block(x)}", conditions, bodies),
        st.builds(lambda n, x: f"for q in range({n}):\n{block(x)}", st.integers(0, 2), bodies),
        st.builds(lambda k, n, x: f"for u in tt.{k}({n}):\n{block(x)}", kinds, st.integers(0, 3), bodies),
    )


conditions = st.one_of(
    st.builds("{} > {}".format, names, atoms),
    st.builds("(t < 2) & ({} < {})".format, names, names),
    st.just("t % 2 == 0"),
    st.just("X.shape[0] > 3"),
)
kinds = st.sampled_from(("serial", "pipeline"))
statements = st.recursive(simple, compound, max_leaves=6)

HEAD = """\
def step(x, y):
    if x > y:
        x = x - y
    for _ in tt.serial(2):
        x, y = y, x + 0.25
    return x


def k(X, Y):
    a, b, c = X[0], X[1], X[2]
    for t in tt.{kind}({n}):
"""
TAIL = """
    Y[0], Y[1], Y[2] = a, b, c
"""


@settings(max_examples=120, deadline=None)
@given(st.lists(statements, min_size=1, max_size=5), kinds, st.integers(0, 4))
def test_random_kernels(body, kind, n):
    text = HEAD.format(kind=kind, n=n) + textwrap.indent(block(body), "    ") + TAIL
    x = np.array([0.5, -1.25, 2.0, 0.75])
    expected = np.array([1.0, 2.0, 3.0, 4.0])
    got = expected.copy()

    namespace = {"tt": PYTHON}
    exec(text, namespace)
    namespace["k"](x, expected)

    namespace = {"tt": tt}
    exec(text, namespace)
    kernel = tt.kernel(namespace["k"], source=text)
    interpret(kernel.trace(x, got), x, got)
    np.testing.assert_allclose(got, expected, rtol=1e-12, err_msg=text)
