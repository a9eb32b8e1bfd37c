"""The key of what a kernel reads from its surroundings follows every change that the program would see."""

import dataclasses
import enum
import functools
import os
import types

import numpy as np
import pytest

import tvm_tile.frontend as tt

SCALES = [1.0, 2.0]


def doubled(x):
    return x * 2.0


def tripled(x):
    return x * 3.0


def looked_up(x, table):
    return x * table["scale"]


class Config:
    """A class with attributes of all kinds."""

    factor = 2.0
    __slots__ = ("__dict__", "slot")

    def __init__(self):
        self.scale = 2.0
        self.unused = 0
        self.slot = 1
        self.inner = types.SimpleNamespace(b=1)

    @property
    def twice(self):
        return self.scale * 2.0

    def method(self, x):
        return x * self.scale

    def __getitem__(self, key):
        return self.scale + key


class Counting:
    """Reads what no name tells."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return SCALES[0]


@dataclasses.dataclass
class Options:
    scale: float = 1.0
    names: list = dataclasses.field(default_factory=lambda: ["a"])


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


def state(function):
    return tt.kernel(function).captured_state()


def usable(key):
    try:
        hash(key)
    except TypeError:
        return False
    return key == key


def changes_of(make):
    """A kernel's function over one object, and a change of it that must show."""
    return pytest.param(make, id=make.__name__)


def a_list():
    values = [1.0, 2.0]

    def k(X):
        X[0] = values[0]

    return k, lambda: values.__setitem__(0, 5.0)


def a_nested_list():
    values = [[1.0], {"a": (2.0, [3.0])}]

    def k(X):
        X[0] = values[1]["a"][1][0]

    return k, lambda: values[1]["a"][1].append(5.0)


def a_dict():
    values = {"a": 1.0}

    def k(X):
        X[0] = values["a"]

    return k, lambda: values.update(a=1)


def a_set():
    values = {1, 2}

    def k(X):
        X[0] = float(len(values))

    return k, lambda: values.add(3)


def an_array():
    values = np.zeros(4)

    def k(X):
        X[0] = values[0]

    return k, lambda: values.__setitem__(3, 1.0)


def a_class_attribute():
    kind = type("Fresh", (), {"factor": 2.0})

    def k(X):
        X[0] = kind.factor

    return k, lambda: setattr(kind, "factor", 3.0)


def a_class_attribute_of_an_object():
    kind = type("Fresh", (), {"factor": 2.0})
    config = kind()

    def k(X):
        X[0] = config.factor

    return k, lambda: setattr(kind, "factor", 3.0)


def a_namespace():
    config = types.SimpleNamespace(a=types.SimpleNamespace(b=1.0))

    def k(X):
        X[0] = config.a.b

    return k, lambda: setattr(config.a, "b", 2.0)


def a_slot():
    config = Config()

    def k(X):
        X[0] = config.slot

    return k, lambda: setattr(config, "slot", 2)


def a_property():
    config = Config()

    def k(X):
        X[0] = config.twice

    return k, lambda: setattr(config, "scale", 3.0)


def a_method():
    config = Config()

    def k(X):
        X[0] = config.method(X[0])

    return k, lambda: setattr(config, "scale", 3.0)


def a_bound_method():
    method = Config().method

    def k(X):
        X[0] = method(X[0])

    return k, lambda: setattr(method.__self__, "scale", 3.0)


def an_operator():
    config = Config()

    def k(X):
        X[0] = config[0]

    return k, lambda: setattr(config, "scale", 3.0)


def a_named_string():
    config = Config()

    def k(X):
        X[0] = getattr(config, "scale")  # noqa: B009 the spelling under test

    return k, lambda: setattr(config, "scale", 3.0)


def all_attributes():
    config = Config()

    def k(X):
        X[0] = vars(config)["sc" + "ale"]

    return k, lambda: setattr(config, "scale", 3.0)


def a_dataclass():
    options = Options()

    def k(X):
        X[0] = options.scale * len(options.names)

    return k, lambda: options.names.append("b")


def a_list_of_functions():
    n = 1.0

    def helper(x):
        return x * n

    def change():
        nonlocal n
        n = 2.0

    functions = [doubled, helper]

    def k(X):
        X[0] = functions[1](X[0])

    return k, change


def a_partial():
    table = {"scale": 1.0}
    function = functools.partial(looked_up, table=table)

    def k(X):
        X[0] = function(X[0])

    return k, lambda: table.update(scale=2.0)


def a_mutable_default_of_a_helper():
    def helper(x, table=[1.0]):  # noqa: B006 the spelling under test
        return x * table[0]

    def k(X):
        X[0] = helper(X[0])

    return k, lambda: helper.__defaults__[0].__setitem__(0, 2.0)


def a_mutable_default_of_the_kernel():
    def k(X, *, table=[1.0]):  # noqa: B006 the spelling under test
        X[0] = table[0]

    return k, lambda: k.__kwdefaults__["table"].__setitem__(0, 2.0)


def a_function_attribute():
    def helper(x):
        return x * helper.scale

    helper.scale = 1.0

    def k(X):
        X[0] = helper(X[0])

    return k, lambda: setattr(helper, "scale", 2.0)


def a_dynamic_attribute():
    config = Counting()

    def k(X):
        X[0] = config.scale

    return k, lambda: SCALES.__setitem__(0, SCALES[0] + 1.0)


def a_merge():
    table = [1.0]
    merge = tt.Merge(lambda a, b: a + b * table[0], 0.0)

    def k(X):
        s = tt.zeros((), "float32")
        for i in tt.reduce(4, merge=merge):
            s = s + X[i]
        X[0] = s

    return k, lambda: table.append(2.0)


def a_kernel():
    table = [1.0]

    @tt.kernel
    def inner(X):
        X[0] = table[0]

    def k(X):
        inner(X)

    return k, lambda: table.append(2.0)


@pytest.mark.parametrize(
    "make",
    [
        *map(changes_of, (a_list, a_nested_list, a_dict, a_set, an_array, a_class_attribute)),
        *map(changes_of, (a_class_attribute_of_an_object, a_namespace, a_slot, a_property, a_method)),
        *map(changes_of, (a_bound_method, an_operator, a_named_string, all_attributes, a_dataclass)),
        *map(changes_of, (a_list_of_functions, a_partial, a_mutable_default_of_a_helper)),
        *map(changes_of, (a_mutable_default_of_the_kernel, a_function_attribute, a_dynamic_attribute)),
        *map(changes_of, (a_merge, a_kernel)),
    ],
)
def test_a_change_shows(make):
    function, change = make()
    first = state(function)
    assert usable(first)
    assert state(function) == first
    assert hash(state(function)) == hash(first)
    change()
    second = state(function)
    assert usable(second)
    assert second != first
    assert state(function) == second


def test_what_the_code_does_not_name_does_not_count():
    config, table = Config(), [1.0]

    def k(X):
        X[0] = config.scale * table[0]

    first = state(k)
    config.unused = 1
    config.inner = None
    assert state(k) == first


def test_equal_containers_are_the_same_state():
    table = {"a": [1, 2.0], "b": {3}}

    def k(X):
        X[0] = table["a"][0]

    first = state(k)
    table = {"a": [1, 2.0], "b": {3}}
    assert state(k) == first
    table = {"a": [True, 2.0], "b": {3}}
    assert state(k) != first


def test_a_replaced_function_shows():
    functions = {"f": doubled}

    def k(X):
        X[0] = functions["f"](X[0])

    first = state(k)
    functions["f"] = tripled
    assert state(k) != first


def test_the_process_environment_counts_by_value(monkeypatch):
    def k(X):
        X[0] = float(os.environ.get("TILE_SCALE", "1"))

    # Only the module is named, and it is a library's: its mapping must be a name of its own.
    environment = os.environ

    def named(X):
        X[0] = float(environment.get("TILE_SCALE", "1"))

    first, other = state(named), state(k)
    assert usable(first)
    assert usable(other)
    monkeypatch.setenv("TILE_SCALE", "2")
    assert state(named) != first
    assert state(k) != other


def test_cycles_end():
    table = [1.0]
    table.append(table)
    config = types.SimpleNamespace(scale=1.0)
    config.me = config

    def k(X):
        X[0] = table[1][1][0] * config.me.me.scale

    first = state(k)
    assert usable(first)
    assert state(k) == first
    config.scale = 2.0
    assert state(k) != first


@pytest.mark.parametrize(
    "value",
    [
        list(range(2000)),
        {n: n for n in range(2000)},
        [[0] * 900 for _ in range(10)],
        np.zeros(100_000),
        np.array([object()]),
        functools.reduce(lambda inner, _: [inner], range(100), []),
    ],
    ids=["list", "dict", "nested", "array", "objects", "deep"],
)
def test_a_state_too_large_to_compare_is_no_key(value):
    def k(X):
        X[0] = float(len(value))

    key = state(k)
    assert not usable(key)
    assert key != state(k)


def test_members_of_an_enumeration_are_themselves():
    mode = Mode.FAST

    def k(X):
        X[0] = float(mode.value)

    first = state(k)
    assert state(k) == first
    mode = Mode.SLOW
    assert state(k) != first
