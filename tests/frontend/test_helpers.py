"""Helper functions, closures and what a kernel reads from its surroundings."""

import functools

import tvm_tile.frontend as tt
from tvm_tile.errors import CaptureError
from tvm_tile.ir.ops import Store
from tvm_tile.ir.regions import If, Serial
from tvm_tile.ir.structure import walk

F4 = tt.spec((16,), "float32")
SCALE = 2.0


def accumulate(X, acc, *, n=4):
    for k in tt.serial(n):
        acc = acc + X[k]
        if acc > 3.0:
            acc = acc - 1.0
    return acc


def kinds(kernel, *args, **constants):
    return [type(s).__name__ for s in walk(kernel.trace(*args, **constants))]


def test_helper_with_regions_and_branches():
    @tt.kernel
    def k(X):
        for i in tt.parallel(4):
            X[i] = accumulate(X, X[i])

    found = kinds(k, F4)
    assert found.count("Serial") == found.count("If") == 1


def test_helper_of_a_helper_and_recursion():
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    def outer(X, n):
        return accumulate(X, power(X[0], n))

    @tt.kernel
    def k(X):
        X[0] = outer(X, 3)

    found = kinds(k, F4)
    assert found.count("Serial") == 1


def test_helpers_by_way_of_objects():
    class Module:
        def __init__(self, n):
            self.n = n

        def method(self, X, x):
            return accumulate(X, x, n=self.n)

        @staticmethod
        def static(X, x):
            return accumulate(X, x, n=2)

        @classmethod
        def of_class(cls, X, x):
            return accumulate(X, x, n=3)

        def __call__(self, X, x):
            return accumulate(X, x, n=self.n)

    module = Module(5)

    @tt.kernel
    def k(X):
        s = X[0]
        for helper in (
            module.method,
            Module.static,
            module.of_class,
            module,
            functools.partial(accumulate, n=7),
            functools.partial(module.method),
        ):
            s = helper(X, s)
        X[0] = s

    loops = [s for s in walk(k.trace(F4)) if isinstance(s, Serial)]
    assert [str(s.domain.extents[0]) for s in loops] == ["5", "2", "3", "5", "7", "5"]


def test_wrapped_helper():
    def traced(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    @tt.kernel
    def k(X):
        X[0] = traced(accumulate)(X, X[0])

    assert kinds(k, F4).count("Serial") == 1


def test_helper_given_to_map_and_reduce():
    def clipped(x):
        if x > 1.0:
            x = tt.full((), 1.0, "float32")
        return x

    def joined(a, b):
        if a > b:
            a = a - b
        return a

    @tt.kernel
    def k(X):
        X[0] = functools.reduce(joined, map(clipped, [X[q] for q in range(3)]))

    assert sum(isinstance(s, If) for s in walk(k.trace(F4))) == 5


def test_lambda_and_nested_function():
    @tt.kernel
    def k(X):
        double = lambda x: x * 2.0  # noqa: E731

        def many(x):
            for _ in tt.serial(3):
                x = double(x)
            return x

        X[0] = many(X[0])

    assert kinds(k, F4).count("Serial") == 1


def test_lambda_from_outside_reaches_helpers():
    apply = lambda X, x: accumulate(X, x)  # noqa: E731

    @tt.kernel
    def k(X):
        X[0] = apply(X, X[0])

    assert kinds(k, F4).count("Serial") == 1


def test_closure_cells_and_globals_are_live():
    n = 1

    @tt.kernel
    def k(X):
        for q in range(n):
            X[q] = SCALE

    assert kinds(k, F4).count("Store") == 1
    n = 3
    assert kinds(k, F4).count("Store") == 3


def test_globals_are_live(monkeypatch):
    @tt.kernel
    def k(X):
        X[0] = SCALE

    def value():
        return k.trace(F4).body.statements[0].value.value

    assert value() == 2.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert value() == 5.0


def test_closure_variable_assigned_later():
    @tt.kernel
    def k(X):
        later(X)

    def later(X):
        X[0] = 1.0

    assert kinds(k, F4) == ["Full", "Store"]


def test_defaults_of_helpers_are_the_live_objects():
    marker = []

    def helper(X, seen=marker, *, at=3):
        seen.append(at)
        X[at] = 0.0

    @tt.kernel
    def k(X):
        helper(X)
        helper(X, at=2)

    k.trace(F4)
    assert marker == [3, 2]


def test_helper_without_source_runs_as_plain_python(refused):
    namespace = {"tt": tt}
    exec(
        "def twice(x):\n    return x * 2.0\n\n"
        "def looped(x):\n    for i in tt.serial(3):\n        x = x + i\n    return x\n",
        namespace,
    )

    @tt.kernel
    def k(X, *, name):
        X[0] = namespace[name](X[0])

    assert "Elementwise" in kinds(k, F4, name="twice")
    error = refused(CaptureError, lambda: k.trace(F4, name="looped"), "tt.serial", "function with source")
    assert (error.span.file, error.span.line) == ("<string>", 5)


def test_error_in_a_helper_points_into_the_helper(refused):
    def helper(x):
        return x + "text"

    @tt.kernel
    def k(X):
        X[0] = helper(X[0])

    refused(CaptureError, lambda: k.trace(F4), "'text'", at='x + "text"')


def test_generator_helper_runs_as_plain_python():
    def pairs(n):
        for q in range(n):
            yield q, q + 1

    @tt.kernel
    def k(X):
        for a, b in pairs(3):
            X[a] = X[b]

    assert kinds(k, F4).count("Store") == 3


def test_region_in_a_generator_is_refused(refused):
    def indices(n):
        yield from tt.serial(n)

    @tt.kernel
    def k(X):
        for i in indices(3):
            X[i] = 0.0

    refused(CaptureError, lambda: k.trace(F4), "tt.serial", "no generator", at="yield from tt.serial(n)")


def test_builtins_and_libraries_are_called_as_they_are():
    import math

    import numpy as np

    @tt.kernel
    def k(X):
        n = int(np.prod(X.shape)) // len(str(math.floor(2.5)))
        X[n - 1] = max(1.0, 2.0) + sorted([3.0, 1.0])[0]

    (store,) = [s for s in walk(k.trace(F4)) if isinstance(s, Store)]
    assert str(store.view.subscripts[0]) == "15"


def test_captured_state_follows_values(monkeypatch):
    n = 1

    @tt.kernel
    def k(X):
        for q in range(n):
            X[q] = SCALE * accumulate.__defaults__ if accumulate.__defaults__ else SCALE

    first = k.captured_state()
    assert first == k.captured_state()
    assert hash(first) == hash(k.captured_state())
    n = 2
    second = k.captured_state()
    assert second != first
    monkeypatch.setitem(globals(), "SCALE", 2)
    assert k.captured_state() != second
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert k.captured_state() == second


def test_captured_state_follows_helpers():
    box = {"n": 1}
    n = 1

    def helper(x):
        return x * n

    @tt.kernel
    def k(X):
        X[0] = helper(X[0]) + box["n"]

    first = k.captured_state()
    n = 2
    assert k.captured_state() != first
    n = 1
    assert k.captured_state() == first
    box["n"] = 2
    assert k.captured_state() != first


def test_captured_state_follows_attributes_of_the_users_modules():
    import types

    config = types.ModuleType("config")
    config.__file__ = __file__
    config.BLOCK = 4
    namespace = {"tt": tt, "config": config}
    text = "def k(X):\n    X[0] = float(config.BLOCK)\n"
    exec(text, namespace)
    k = tt.kernel(namespace["k"], source=text)
    first = k.captured_state()
    config.OTHER = 1
    assert k.captured_state() == first
    config.BLOCK = 8
    assert k.captured_state() != first


def test_captured_state_follows_nan_and_tuples():
    values = (float("nan"), (1, True), "x")

    @tt.kernel
    def k(X):
        X[0] = values[0]

    assert k.captured_state() == k.captured_state()
    first = k.captured_state()
    values = (float("nan"), (1, 1), "x")
    assert k.captured_state() != first
