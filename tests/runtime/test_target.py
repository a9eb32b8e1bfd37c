"""Target descriptions: short names, the features of this host, and what is no target."""

import dataclasses
import platform

import numpy as np
import pytest
from tvm.target import Target
from tvm.target.codegen import llvm_get_cpu_features

from tvm_tile.bridges.runtime import features as features_of_code
from tvm_tile.bridges.tirx import target as targets
from tvm_tile.bridges.tirx.target import SHORT_NAMES, host_target, resolve_target
from tvm_tile.build import build, lower
from tvm_tile.errors import ArgumentError, IllegalError, UnsupportedError
from tvm_tile.ir.index import IndexConst
from tvm_tile.ir.ops import Load, ReduceTile, Slice, Store, View
from tvm_tile.ir.regions import Block, Program
from tvm_tile.ir.values import Memory, TileType, Value


def features(target):
    return {str(f) for f in llvm_get_cpu_features(target)}


def test_short_names():
    assert {name: resolve_target(name).kind.name for name in SHORT_NAMES} == {n: n for n in SHORT_NAMES}
    assert resolve_target("llvm").same_as(resolve_target("llvm"))
    assert str(resolve_target("cuda").attrs["arch"]).startswith("sm_")
    assert resolve_target("metal").host.kind.name == "llvm"


def test_other_descriptions_are_taken_as_they_are():
    haswell = Target({"kind": "llvm", "mcpu": "haswell"})
    assert resolve_target(haswell).same_as(haswell)
    assert str(resolve_target({"kind": "llvm", "mcpu": "haswell"})) == str(haswell)
    assert resolve_target("c").kind.name == "c"


@pytest.mark.parametrize(
    "bad", ["nope", {"kind": "nope"}, {"mcpu": "haswell"}, 3, None, "llvm -mcpu=haswell"]
)
def test_what_is_no_target_is_refused_with_the_short_names(bad):
    with pytest.raises(ArgumentError, match="'llvm', 'cuda', 'metal', 'opencl'") as caught:
        resolve_target(bad)
    assert repr(bad) in str(caught.value)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86")
def test_host_target_has_exactly_the_reported_vector_features():
    flags = targets.reported_flags()
    if not flags:
        pytest.skip("the system reports no flags")
    present = features(host_target())
    for flag, name in targets._X86.items():
        assert (flag in flags) == (name in present), name


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86")
@pytest.mark.parametrize("cpu", ["x86-64", "haswell", "sapphirerapids"])
def test_a_wrong_cpu_name_is_corrected_by_the_flags(monkeypatch, cpu):
    flags = "pni ssse3 sse4_1 sse4_2 popcnt avx avx2 fma f16c bmi1 bmi2 avx512f avx512cd"
    monkeypatch.setattr(targets, "reported_flags", lambda: frozenset(flags.split()))
    monkeypatch.setattr(targets, "llvm_get_system_cpu", lambda: cpu)
    target = targets.host_target.__wrapped__()
    present = features(target)
    assert {"sse3", "avx2", "fma", "f16c", "bmi", "avx512f", "avx512cd"} <= present
    assert not {"amx-tile", "avx512vl", "gfni", "vaes", "sse4a"} & present
    assert "prefer-256-bit" not in present


def test_without_reported_flags_the_name_decides(monkeypatch):
    monkeypatch.setattr(targets, "reported_flags", frozenset)
    assert "mattr" not in targets.host_target.__wrapped__().attrs


def test_every_feature_name_is_one_of_llvm():
    for names, base in (
        (targets._X86, {"kind": "llvm", "mcpu": "x86-64", "mtriple": "x86_64-linux-gnu"}),
        (targets._ARM64, {"kind": "llvm", "mcpu": "generic", "mtriple": "aarch64-linux-gnu"}),
    ):
        target = Target({**base, "mattr": [f"+{name}" for name in names.values()]})
        assert set(names.values()) <= features(target)


@pytest.mark.parametrize(
    ("options", "message", "remedy"),
    [
        ({"mcpu": "nope"}, "mcpu 'nope' is no CPU that LLVM knows for", "this machine"),
        ({"mcpu": "haswel"}, "mcpu 'haswel' is no CPU", "did you mean 'haswell'"),
        ({"mcpu": "skylake", "mtriple": "aarch64-linux-gnu"}, "mcpu 'skylake' is no CPU", "target"),
        ({"mattr": ["+nope"]}, r"mattr '\+nope' is no feature", "leave it out"),
        ({"mattr": ["-nope"]}, "mattr '-nope' is no feature", "leave it out"),
        ({"mattr": ["avx2"]}, "mattr 'avx2' says neither", "'-avx2'"),
        ({"mtriple": "nonsense"}, "unknown architecture 'nonsense'", "one of"),
        ({"mtriple": "x86_65-linux-gnu"}, "unknown architecture 'x86_65'", "'x86_64'"),
        ({"opt-level": 9}, "opt-level 9", "0 to 3"),
    ],
)
def test_what_llvm_would_ignore_is_refused(options, message, remedy):
    """Symptom: LLVM prints a line and generates other code; for an unknown architecture TVM crashes."""
    for target in ({"kind": "llvm", **options}, Target({"kind": "llvm", **options})):
        with pytest.raises(ArgumentError, match=message) as caught:
            resolve_target(target)
        assert remedy in caught.value.suggestion
    with pytest.raises(ArgumentError, match=message):
        resolve_target(Target({"kind": "opencl"}, host=Target({"kind": "llvm", **options})))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "llvm", "jit": "none"}, "jit 'none' is none of LLVM's"),
        ({"kind": "llvm", "mfloat-abi": "half"}, "mfloat-abi 'half' is none of LLVM's"),
        ({"kind": "llvm", "vector-width": -1}, "vector-width of target llvm must be at least 1, not -1"),
        ({"kind": "llvm", "num-cores": 0}, "num-cores of target llvm must be at least 1"),
        ({"kind": "opencl", "max_num_threads": 0}, "max_num_threads of target opencl must be at least 1"),
        ({"kind": "cuda", "arch": "sm_80", "thread_warp_size": -32}, "thread_warp_size of target cuda"),
        ({"kind": "cuda", "arch": "sm_1"}, "arch 'sm_1' is no architecture of CUDA"),
        ({"kind": "cuda", "arch": "sm_90x"}, "arch 'sm_90x' is no architecture of CUDA"),
        ({"kind": "opencl", "host": "cuda"}, "the host of target opencl is to be a CPU, not cuda"),
    ],
)
def test_values_on_which_tvm_fails_later_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        resolve_target(options)


@pytest.mark.parametrize("kind", ["cuda", "metal", "opencl"])
def test_a_device_without_a_host_gets_this_one_and_builds(copy_program, kind):
    """Symptom: only short names built; a description died with "target has to be a string or dictionary"."""
    for given in ({"kind": kind}, Target({"kind": kind})):
        target = resolve_target(given)
        assert str(target.host) == str(host_target())
        assert "copy" in build(copy_program((4, 3)), given).source()
    if kind == "cuda":
        assert "copy" in build(copy_program((4, 3)), {"kind": kind, "arch": "sm_90a"}).source()
    other = Target({"kind": kind}, host=Target({"kind": "llvm", "mcpu": "haswell"}))
    assert resolve_target(other).same_as(other)


def test_what_llvm_knows_is_taken():
    for options in (
        {"mcpu": "haswell", "mtriple": "x86_64-linux-gnu"},
        {"mtriple": "arm64-apple-darwin"},
        {"mtriple": "armv7a-linux-gnueabihf"},
        {"mattr": ["+prefer-256-bit"], "mtriple": "x86_64-linux-gnu", "mcpu": "skylake-avx512"},
        {"opt-level": 0},
    ):
        assert resolve_target({"kind": "llvm", **options}).kind.name == "llvm"


def test_options_of_llvm_itself_are_refused():
    with pytest.raises(UnsupportedError, match="--fp-contract=fast"):
        resolve_target({"kind": "llvm", "cl-opt": ["--fp-contract=fast"]})


def fold(policy, dtype="float32"):
    A, B = Memory("A", (4, 30), dtype), Memory("B", (4,), dtype)
    x, y = Value(0, TileType((4, 30), dtype)), Value(1, TileType((4,), dtype))
    return Program("rows", (A, B), Block((
        Load(x, View(A, (Slice(IndexConst(0), 4), Slice(IndexConst(0), 30)))),
        ReduceTile(y, x, (1,), "add", False, policy),
        Store(View(B, (Slice(IndexConst(0), 4),)), y),
    )))  # fmt: skip


@pytest.mark.parametrize("function", [build, lower])
@pytest.mark.parametrize("option", ["fast-math", "fast-math-reassoc"])
@pytest.mark.parametrize("policy", ["fold_left", "fold_right", "ordered_tree"])
def test_an_option_that_reorders_an_ordered_fold_is_illegal(function, option, policy):
    with pytest.raises(IllegalError, match=rf"'{option}' reorders the reduction of .*{policy}") as caught:
        function(fold(policy), {"kind": "llvm", option: True})
    assert "unordered_tree" in caught.value.suggestion


@pytest.mark.parametrize("option", ["", "-nnan", "-ninf", "-nsz", "-arcp", "-reassoc"])
def test_fast_math_is_not_permitted_by_the_language(option):
    for program in (fold("unordered_tree"), fold("fold_left", "int32")):
        with pytest.raises(UnsupportedError, match="fast-math is not permitted by the language"):
            build(program, {"kind": "llvm", "fast-math" + option: True})
        build(program, {"kind": "llvm", "fast-math" + option: False})


def test_contraction_is_permitted_unless_the_program_forbids_it(copy_program):
    target = {"kind": "llvm", "fast-math-contract": True}
    program = fold("fold_left")
    exe = build(program, target)
    a, b = np.random.default_rng(0).random((4, 30)).astype("float32"), np.zeros(4, "float32")
    exe(a, b)
    expected = np.zeros(4, "float32")
    for column in a.T:
        expected = expected + column
    np.testing.assert_array_equal(b, expected)
    with pytest.raises(UnsupportedError, match="fast-math-contract"):
        build(dataclasses.replace(program, fma=False), target)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="features of x86")
def test_code_with_features_that_this_machine_lacks_is_not_run(copy_program, monkeypatch):
    monkeypatch.setattr(features_of_code, "_present_features", lambda: frozenset({"sse3"}))
    with pytest.raises(UnsupportedError, match=r"does not run on this machine: its CPU features .*avx2"):
        build(copy_program((4, 3)), {"kind": "llvm", "mcpu": "haswell", "opt-level": 2})
    build(copy_program((4, 3)), {"kind": "llvm", "mcpu": "x86-64", "opt-level": 2})
