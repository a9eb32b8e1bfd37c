"""Tutorials run as a user runs them, and end in their own asserts."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: What each tutorial prints last, after its asserts.
LAST_LINES = {
    "01_first_kernel": "all three agree with NumPy",
    "02_reductions": "every result is one that its policy admits",
}


@pytest.mark.parametrize("path", sorted((ROOT / "tutorials").glob("*.py")), ids=lambda p: p.stem)
def test_tutorial_runs(path, tmp_path):
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == LAST_LINES[path.stem]


def test_the_example_of_the_readme_runs(tmp_path):
    text = (ROOT / "README.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    script = tmp_path / "example.py"
    script.write_text(code + "\nnp.testing.assert_allclose(C, A @ B, rtol=1e-5)\nprint('done')\n")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"
    assert len(code.strip().splitlines()) <= 22


def test_the_relax_example_of_the_readme_runs(tmp_path):
    blocks = [part.split("```")[0] for part in (ROOT / "README.md").read_text().split("```python\n")[1:]]
    (code,) = [block for block in blocks if "tt.relax.call" in block]
    script = tmp_path / "example.py"
    check = "np.testing.assert_allclose(result.numpy(), np.maximum(a @ b, 0), rtol=1e-4)\nprint('done')\n"
    script.write_text(f"{code}\n{check}")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"
