"""``lower`` and ``build``: what they take, and that what they give builds rightly elsewhere."""

import platform
import subprocess
import sys

import numpy as np
import pytest
import tvm

from tvm_tile.build import build, lower
from tvm_tile.errors import ArgumentError, IllegalError, UnsupportedError
from tvm_tile.frontend import Merge, ds, kernel, parallel, reduce, zeros
from tvm_tile.ir.regions import Block, Program


@kernel
def doubled(X, Y):
    for i in parallel(X.shape[0]):
        Y[ds(i, 1)] = X[ds(i, 1)] * 2.0


@pytest.mark.parametrize(
    "compile_module",
    [
        lambda mod, target: tvm.compile(mod, target),
        lambda mod, target: tvm.compile(mod, target, tir_pipeline="tirx"),
        lambda mod, target: tvm.compile(mod, target, tir_pipeline="tvm_tile"),
        lambda mod, target: tvm.compile(mod, {"kind": "llvm"}),
    ],
    ids=["default", "tirx", "ours", "other target"],
)
@pytest.mark.parametrize("a_strides", [None, (-3, 1), (1, 4)])
def test_a_lowered_module_builds_rightly_with_any_pipeline(copy_program, compile_module, a_strides):
    program = copy_program((4, 3), a_strides=a_strides)
    function = compile_module(lower(program, "llvm"), build(program).target)["copy"]
    dense = np.arange(12, dtype="float32").reshape(4, 3)
    a = {None: dense, (-3, 1): dense[::-1], (1, 4): dense.reshape(3, 4).T}[a_strides]
    b = np.zeros((4, 3), "float32")
    function(a, b)
    np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="overlap"):
        function(dense if a_strides is None else a, dense)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_deprecated_tvm_build_takes_it_too(copy_program):
    library = tvm.build(lower(copy_program((4, 3)), "llvm"), {"kind": "llvm"})
    a, b = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
    library["copy"](a, b)
    np.testing.assert_array_equal(a, b)


def test_building_twice_gives_the_same_code(copy_program):
    assert build(copy_program((4, 3))).mod.same_as(build(copy_program((4, 3))).mod)
    other = build(copy_program((4, 3), name="other"))
    assert "other" in [variable.name_hint for variable in other.mod.get_global_vars()]


@pytest.mark.parametrize("function", [lower, build])
def test_what_is_no_program_is_refused(function):
    with pytest.raises(ArgumentError, match=r"expected a program, got <tt.kernel doubled") as caught:
        function(doubled)
    assert "kernel.trace(*arrays)" in caught.value.suggestion
    with pytest.raises(ArgumentError, match="expected a program, got None"):
        function(None)


@pytest.mark.parametrize("function", [lower, build])
def test_a_faulty_program_is_refused_before_anything_is_generated(function, copy_program):
    good = copy_program((4, 3))
    parallel_loop = good.body.statements[0]
    faulty = Program("faulty", good.params[:1], Block((parallel_loop,)))
    with pytest.raises(IllegalError):
        function(faulty)


@pytest.mark.parametrize("target", ["c", "vulkan", "webgpu"])
def test_targets_without_a_mapping_say_so(copy_program, target):
    for function in (lower, build):
        with pytest.raises(UnsupportedError, match=target) as caught:
            function(copy_program((4, 3)), target)
        assert caught.value.suggestion


def test_unknown_targets_list_the_short_names(copy_program):
    with pytest.raises(ArgumentError, match="'llvm', 'cuda', 'metal', 'opencl'"):
        build(copy_program((4, 3)), "quantum")


def test_importing_build_does_not_import_tvm():
    code = "import sys, tvm_tile.build; print([m for m in ('tvm', 'tvm_ffi') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr


def test_code_for_another_machine_is_generated_but_not_loaded(copy_program):
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    target = {"kind": "llvm", "mtriple": f"{other}-linux-gnu"}
    with pytest.raises(UnsupportedError, match="does not run on this machine") as caught:
        build(copy_program((4, 3)), target)
    assert "tvm.compile(tt.lower(program, target), target)" in caught.value.suggestion
    assert tvm.compile(lower(copy_program((4, 3)), target), target) is not None


@kernel
def folded(X, Y, *, merge, policy):
    total = zeros((), "int8")
    for i in reduce(X.shape[0], policy=policy, merge=merge):
        total = total - X[i]
    Y[0] = total


@pytest.mark.parametrize("policy", ["ordered_tree", "unordered_tree"])
def test_a_law_that_does_not_hold_is_refused_by_whatever_makes_code(policy):
    false_claim = Merge(lambda a, b: a - b, identity=0, commutative=True)
    x, y = np.arange(5, dtype="int8"), np.zeros(1, "int8")
    program = folded.trace(x, y, merge=false_claim, policy=policy)
    for call in (lower, build, lambda p: folded(x, y, merge=false_claim, policy=policy)):
        with pytest.raises(IllegalError, match="is not associative") as caught:
            call(program)
        assert caught.value.counterexample is not None
        assert "fold_left" in caught.value.suggestion
    assert not y.any()


def test_a_law_that_holds_is_not():
    merge = Merge(lambda a, b: a + b, identity=0, commutative=True, lift=None)
    x, y = np.arange(5, dtype="int8"), np.zeros(1, "int8")

    @kernel
    def summed(X, Y):
        total = zeros((), "int8")
        for i in reduce(X.shape[0], merge=merge):
            total = total + X[i]
        Y[0] = total

    build(summed.trace(x, y))(x, y)
    assert y[0] == 10
