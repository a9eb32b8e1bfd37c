"""The command line: exit codes, one line an error, and what each command prints."""

import subprocess
import sys

import pytest

import tvm_tile as tt
from tvm_tile.cli import main
from tvm_tile.cli.demo import classify_digits, vote
from tvm_tile.cli.show import parse_argument, parse_constant

KERNELS = """
import tvm_tile as tt

@tt.kernel
def twice(X, Y, *, n=4):
    for i in tt.parallel(tt.cdiv(X.shape[0], n)):
        Y[tt.ds(i * n, n)] = X[tt.ds(i * n, n)] * 2.0

@tt.kernel
def broken(X):
    for i in tt.parallel(4):
        break
"""


@pytest.fixture
def kernels(tmp_path):
    path = tmp_path / "some_kernels.py"
    path.write_text(KERNELS)
    return path


def test_python_dash_m_runs_it():
    done = subprocess.run([sys.executable, "-m", "tvm_tile", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "demo" in done.stdout


@pytest.mark.parametrize("command", ["demo", "doctor", "show"])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert command in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["no-such-command"], ["show"], ["show", "x.py:k", "--only", "nothing"]]
)
def test_bad_usage_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_show_prints_program_and_tirx(kernels, capsys):
    assert main(["show", f"{kernels}:twice", "--args", "float32[9]", "float32[9]", "--const", "n=8"]) == 0
    out = capsys.readouterr().out
    assert "kernel twice(@X: float32[9]" in out
    assert "T.prim_func" in out


def test_show_prints_one_part(kernels, capsys):
    arguments = ["show", f"{kernels}:twice", "--args", "float32[9]", "float32[9]", "--only"]
    assert main([*arguments, "program"]) == 0
    program = tt.parse(capsys.readouterr().out)
    assert program.name == "twice"
    assert main([*arguments, "code"]) == 0
    assert "define" in capsys.readouterr().out


def test_a_finding_is_one_line_with_its_source_position(kernels, capsys):
    assert main(["show", f"{kernels}:broken", "--args", "float32[4]"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"{kernels}:12:9: CaptureError" in err
    assert "break" in err


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("{}:missing", "no kernel 'missing' (try: its kernels: twice, broken)"),
        ("{}", "is not FILE:KERNEL"),
        ("nowhere.py:k", "there is no file"),
    ],
)
def test_a_kernel_that_is_not_there_is_named(kernels, capsys, reference, message):
    assert main(["show", reference.format(kernels), "--args"]) == 1
    err = capsys.readouterr().err
    assert "ArgumentError" in err
    # A path without a kernel may be split at a colon of its own; the message then names the file.
    assert message in err or (reference == "{}" and "no file" in err)


def test_a_file_that_fails_to_import_is_a_finding(tmp_path, capsys):
    path = tmp_path / "faulty_module.py"
    path.write_text("1 / 0\n")
    assert main(["show", f"{path}:k"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_arguments_and_constants_parse():
    assert parse_argument("float32[20,18]") == tt.spec((20, 18), "float32")
    assert parse_argument(" int8[ 3 , 4 ] ") == tt.spec((3, 4), "int8")
    assert parse_argument("float64[]") == tt.spec((), "float64")
    assert parse_argument("-2.5") == -2.5
    assert parse_constant("bm=32") == ("bm", 32)
    assert parse_constant("act=gelu") == ("act", "gelu")


@pytest.mark.parametrize("text", ["float32", "float32[3", "[3]", "'x'", "(1, 2)"])
def test_an_argument_that_is_neither_tensor_nor_number_is_refused(text):
    with pytest.raises(tt.ArgumentError, match="neither a tensor nor a number"):
        parse_argument(text)


@pytest.mark.parametrize("text", ["bm", "=3", "1x=3"])
def test_a_constant_without_a_name_is_refused(text):
    with pytest.raises(tt.ArgumentError, match="NAME=VALUE"):
        parse_constant(text)


def test_doctor_says_that_llvm_runs(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "llvm" in out
    assert "worker threads" in out


def test_the_demo_is_accurate_and_agrees_with_numpy():
    result = classify_digits()
    assert result["accuracy"] >= 0.95
    assert result["agreement"] == 1.0


def test_the_demo_command_prints_its_findings(capsys):
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    for word in ("accuracy", "agreement  1.0000", "NumPy", "kernel knn(", "T.parallel"):
        assert word in out


def test_a_vote_prefers_the_nearest_of_equally_frequent_labels():
    import numpy as np

    labels = np.array([[3, 1, 1], [3, 1, 2], [2, 2, 5]])
    assert vote(labels).tolist() == [1, 3, 2]
