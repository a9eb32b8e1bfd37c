"""Target descriptions: short names, the features of this host, and what is no target."""

import platform

import pytest
from tvm.target import Target
from tvm.target.codegen import llvm_get_cpu_features

from tvm_tile.bridges.tirx import target as targets
from tvm_tile.bridges.tirx.target import SHORT_NAMES, host_target, resolve_target
from tvm_tile.errors import ArgumentError


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
    flags = targets._reported_flags()
    if not flags:
        pytest.skip("the system reports no flags")
    present = features(host_target())
    for flag, name in targets._X86.items():
        assert (flag in flags) == (name in present), name


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86")
@pytest.mark.parametrize("cpu", ["x86-64", "haswell", "sapphirerapids"])
def test_a_wrong_cpu_name_is_corrected_by_the_flags(monkeypatch, cpu):
    flags = "pni ssse3 sse4_1 sse4_2 popcnt avx avx2 fma f16c bmi1 bmi2 avx512f avx512cd"
    monkeypatch.setattr(targets, "_reported_flags", lambda: frozenset(flags.split()))
    monkeypatch.setattr(targets, "llvm_get_system_cpu", lambda: cpu)
    target = targets.host_target.__wrapped__()
    present = features(target)
    assert {"sse3", "avx2", "fma", "f16c", "bmi", "avx512f", "avx512cd"} <= present
    assert not {"amx-tile", "avx512vl", "gfni", "vaes", "sse4a"} & present
    assert "prefer-256-bit" not in present


def test_without_reported_flags_the_name_decides(monkeypatch):
    monkeypatch.setattr(targets, "_reported_flags", frozenset)
    assert "mattr" not in targets.host_target.__wrapped__().attrs


def test_every_feature_name_is_one_of_llvm():
    for names, base in (
        (targets._X86, {"kind": "llvm", "mcpu": "x86-64", "mtriple": "x86_64-linux-gnu"}),
        (targets._ARM64, {"kind": "llvm", "mcpu": "generic", "mtriple": "aarch64-linux-gnu"}),
    ):
        target = Target({**base, "mattr": [f"+{name}" for name in names.values()]})
        assert set(names.values()) <= features(target)
