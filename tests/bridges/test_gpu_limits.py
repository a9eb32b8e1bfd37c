"""What devices cannot hold is refused by name; what they can is not."""

import pytest

import tvm_tile as tt

DEVICES = ("cuda", "metal", "opencl")


@tt.kernel
def doubled(X, Y):
    for i in tt.parallel(X.shape[0]):
        Y[i] = X[i] * 2


@tt.kernel
def through_doubles(X, Y):
    for i in tt.parallel(X.shape[0]):
        Y[i] = (X[i].astype("float64") * 2).astype("float32")


@tt.kernel
def bound(X, Y, *, outer, inner=None):
    for i in tt.parallel(X.shape[0], bind=outer):
        for j in tt.parallel(X.shape[1], bind=inner):
            Y[i, j] = X[i, j]


@tt.kernel
def counted(X, Y):
    for i in tt.parallel(X.shape[0]):
        tt.atomic_add(Y.at[0], X[i])


@tt.kernel
def called(X):
    tt.extern("fill", X, writes=[X])


def specs(dtype="float32", shape=(4,)):
    return tt.spec(shape, dtype), tt.spec(shape, dtype)


def test_metal_has_no_float64():
    with pytest.raises(tt.UnsupportedError, match=r"parameter X .*float64"):
        tt.lower(doubled.trace(*specs("float64")), "metal")
    with pytest.raises(tt.UnsupportedError, match=r"value .*float64"):
        tt.lower(through_doubles.trace(*specs()), "metal")
    tt.lower(doubled.trace(*specs("float32")), "metal")
    for target in ("cuda", "opencl"):
        tt.lower(doubled.trace(*specs("float64")), target)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float16"])
def test_metal_updates_only_words_atomically(dtype):
    with pytest.raises(tt.UnsupportedError, match=rf"Y, whose elements are {dtype}"):
        tt.lower(counted.trace(*specs(dtype)), "metal")
    for target in ("cuda", "opencl"):
        tt.lower(counted.trace(*specs(dtype)), target)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32"])
def test_metal_updates_words_atomically(dtype):
    assert "atomic_" in tt.build(counted.trace(*specs(dtype)), "metal").source()


@pytest.mark.parametrize("target", DEVICES)
def test_kernels_call_no_host_functions(target):
    program = called.trace(tt.spec((4,), "float32"))
    with pytest.raises(tt.UnsupportedError, match="fill"):
        tt.lower(program, target)


@pytest.mark.parametrize(
    ("target", "scope"),
    [
        ("llvm", "block"),
        ("cuda", "worker"),
        ("metal", "cluster"),
        ("opencl", "warpgroup"),
        ("llvm", "thread"),
    ],
)
def test_a_scope_that_the_target_lacks_is_refused(target, scope):
    with pytest.raises(tt.UnsupportedError, match=rf"'{scope}', which {target} does not have"):
        tt.lower(bound.trace(*specs(shape=(4, 3)), outer=scope), target)


@pytest.mark.parametrize(
    ("target", "scope"), [("llvm", "worker"), *((d, s) for d in DEVICES for s in ("block", "thread"))]
)
def test_scopes_of_the_reference_mapping_are_taken(target, scope):
    tt.lower(bound.trace(*specs(shape=(4, 3)), outer=scope), target)


def test_a_block_an_instance_has_one_thread():
    program = bound.trace(*specs(shape=(10_000, 2)), outer="block")
    (launch,) = tt.build(program, "cuda").launches
    assert (launch.grid, launch.block) == ((10_000, 1, 1), (1, 1, 1))
    (launch,) = tt.build(bound.trace(*specs(shape=(10_000, 2)), outer="thread"), "cuda").launches
    assert launch.block != (1, 1, 1)


def test_scopes_nest_by_what_contains_what():
    with pytest.raises(tt.IllegalError, match="bound to 'block' within one that is bound to 'thread'"):
        tt.lower(bound.trace(*specs(shape=(4, 3)), outer="thread", inner="block"), "cuda")


@pytest.mark.parametrize(("outer", "inner"), [("block", "thread"), ("warp", None), (None, "thread")])
def test_pins_that_the_reference_mapping_does_not_honour_are_refused(outer, inner):
    with pytest.raises(tt.UnsupportedError, match="does not bind"):
        tt.lower(bound.trace(*specs(shape=(4, 3)), outer=outer, inner=inner), "cuda")


@pytest.mark.parametrize("target", ["llvm", "opencl", "cuda", "metal"])
@pytest.mark.parametrize("memory", ["local", "shared", "global"])
def test_explicit_memory_is_refused_where_the_target_has_none_of_that_name(target, memory):
    @tt.kernel
    def through(X, Y, *, memory):
        for i in tt.parallel(X.shape[0]):
            m = tt.alloc((4,), "float32", memory=memory)
            m[:] = X[i, :]
            Y[i, :] = m[:]

    specs = tt.spec((3, 4), "float32"), tt.spec((3, 4), "float32")
    assert tt.build(through.trace(*specs, memory=memory), target).source()
    with pytest.raises(
        tt.UnsupportedError, match=f"memory m is allocated in 'texture', which {target}"
    ) as caught:
        tt.build(through.trace(*specs, memory="texture"), target)
    assert "'shared'" in caught.value.suggestion
