"""The distribution: what a wheel holds, what an import costs and gives."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tvm_tile as tt

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "tvm_tile": "tvm_tile",
    "schedules": "tvm_tile/schedules",
    "bridges": "tvm_tile/bridges",
    "contrib": "tvm_tile/contrib",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    # A copy keeps the build's own folders out of the source tree, and an old build out of this wheel.
    source = out / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__"))
    options = ["--no-deps", "--quiet", "--wheel-dir", str(out)]
    command = [sys.executable, "-m", "pip", "wheel", *options, str(source)]
    subprocess.run(command, check=True)
    (path,) = out.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield set(archive.namelist())


def test_the_wheel_has_every_module_under_one_import_package(wheel):
    for folder, package in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            assert f"{package}/{path.relative_to(ROOT / folder).as_posix()}" in wheel, path
    assert "tvm_tile/py.typed" in wheel
    tops = {name.split("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"tvm_tile"}


def test_the_wheel_has_licence_and_entry_points(wheel):
    assert any(name.endswith("licenses/LICENSE") for name in wheel)
    assert any(name.endswith("entry_points.txt") for name in wheel)


def test_importing_it_does_not_import_tvm():
    heavy = ("tvm", "islpy", "xgboost", "rich")
    code = f"import sys, json, tvm_tile; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_it_exports_the_public_names_and_nothing_else():
    names = set(tt.__all__)
    assert {
        "kernel",
        "parallel",
        "serial",
        "pipeline",
        "reduce",
        "build",
        "interpret",
        "Program",
        "ArgumentError",
    } <= names
    public = {n for n in vars(tt) if not n.startswith("_")}
    submodules = {n for n in public if type(getattr(tt, n)).__name__ == "module"}
    assert public - submodules == names


def test_tvm_loads_the_backend_entry_point_without_a_warning():
    code = "import warnings, sys; warnings.simplefilter('error'); import tvm; "
    code += "print('tvm_tile.bridges' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
    assert "tvm_tile" not in done.stderr


def test_no_layer_imports_a_layer_above_it():
    allowed = {
        "relations": set(),
        "ir": set(),
        "frontend": {"ir"},
        "semantics": {"ir", "relations"},
        "target": {"ir", "relations"},
        "witness": {"ir", "relations", "semantics", "target"},
    }
    import ast

    for layer, others in allowed.items():
        for path in (ROOT / "tvm_tile" / layer).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module:
                    modules = [node.module]
                elif isinstance(node, ast.Import):
                    modules = [alias.name for alias in node.names]
                else:
                    continue
                for module in modules:
                    parts = module.split(".")
                    assert parts[0] != "tvm", f"{path} imports {module}"
                    if parts[0] == "tvm_tile" and len(parts) > 1 and parts[1] != "errors":
                        assert parts[1] in others | {layer}, f"{path} imports {module}"
