"""The command line: exit codes, one line an error, and what each command prints."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tvm_tile as tt
from tvm_tile.bridges.runtime.executable import load
from tvm_tile.cli import main
from tvm_tile.cli.demo import classify_digits, vote
from tvm_tile.cli.doctor import examine
from tvm_tile.cli.execute import array_for
from tvm_tile.cli.specialize import parse_argument, parse_constant, parse_named

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


@pytest.mark.parametrize("command", ["demo", "doctor", "show", "build", "run"])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert command in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-command"],
        ["show"],
        ["show", "x.py:k", "--only", "nothing"],
        ["show", "x.py"],
        ["build", "x.py:"],
        ["build", "x.py:k", "--args", "float32[3"],
        ["run", "x.py:k", "--spec", "float32[3]"],
        ["run", "x.py:k", "--spec", "A=nothing.npy"],
        ["run", "x.py:k", "--const", "n"],
        ["run", "x.py:k", "--seed", "-1"],
        ["run", "x.py:k", "--seed", "one"],
    ],
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
        ("nowhere.py:k", "there is no file"),
    ],
)
def test_a_kernel_that_is_not_there_is_named(kernels, capsys, reference, message):
    assert main(["show", reference.format(kernels), "--args"]) == 1
    err = capsys.readouterr().err
    assert "ArgumentError" in err
    assert message in err


def test_a_file_that_fails_to_import_is_a_finding(tmp_path, capsys):
    path = tmp_path / "faulty_module.py"
    path.write_text("1 / 0\n")
    assert main(["show", f"{path}:k"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("x = 3\ny = 1 / 0\n", "2:5", "ZeroDivisionError: division by zero"),
        ("x = 3\ndef (\n", "2:5", "SyntaxError: invalid syntax"),
        ("def f():\n    raise ValueError('two\\nlines')\nf()\n", "2:5", "ValueError: two lines"),
        ("import no_such_module\n", "1:1", "No module named 'no_such_module'"),
        ("raise BaseException('all of it')\n", "1:1", "BaseException: all of it"),
        (
            "class Mute(Exception):\n    def __str__(self):\n        raise self\nraise Mute()\n",
            "4:1",
            "Mute: (its text cannot be shown)",
        ),
    ],
)
def test_a_file_that_does_not_import_is_one_line_with_the_place_in_it(tmp_path, capsys, text, place, message):
    path = tmp_path / "faulty_lines.py"
    path.write_text(text)
    assert main(["show", f"{path}:k"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith(f"{path}:{place}: ArgumentError: {path} does not import: ")
    assert message in err


@pytest.mark.parametrize("where", ["file", "kernel"])
def test_an_interruption_is_passed_on_as_shells_know_it(tmp_path, capsys, where):
    path = tmp_path / "interrupted.py"
    text = KERNELS.replace("        break", "        raise KeyboardInterrupt")
    path.write_text("raise KeyboardInterrupt" if where == "file" else text)
    assert main(["show", f"{path}:broken", "--args", "float32[4]"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_kernel_that_ends_the_process_is_one_line(tmp_path, capsys):
    path = tmp_path / "ending.py"
    path.write_text(KERNELS.replace("        break", "        raise SystemExit(0)"))
    assert main(["show", f"{path}:broken", "--args", "float32[4]"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "ended the process with 0" in err


@pytest.mark.parametrize("command", ["doctor", "show"])
def test_a_reader_that_goes_away_is_no_error(kernels, command):
    given = [] if command == "doctor" else [f"{kernels}:twice", "--args", "float32[9]", "float32[9]"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "tvm_tile", command, *given], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_closed_and_plain_streams_are_no_error(tmp_path):
    """Symptom: tracebacks where standard output was closed, or had no character for a name."""
    path = tmp_path / "names.py"
    path.write_text("import tvm_tile as tt\n\n@tt.kernel\ndef grün(Ä):\n    Ä[0] = 1.0\n", encoding="utf-8")
    arguments = [sys.executable, "-m", "tvm_tile", "show", f"{path}:grün", "--args", "float32[4]", "--only"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    plain = subprocess.run([*arguments, "program"], capture_output=True, text=True, env=environment)
    assert (plain.returncode, plain.stderr) == (0, "")
    assert r"kernel gr\xfcn(@\xc4: float32[4])" in plain.stdout
    command = ["sh", "-c", '"$@" >&-', "sh", *arguments, "program"]
    closed = subprocess.run(command, capture_output=True, text=True)
    assert (closed.returncode, closed.stderr) == (0, "")


@pytest.mark.parametrize("status", ["", "0", "3", "'a word'"])
def test_a_file_that_ends_the_process_is_one_line(tmp_path, capsys, status):
    path = tmp_path / "faulty_script.py"
    path.write_text(f"import sys\nsys.exit({status})\n")
    assert main(["show", f"{path}:k"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "SystemExit" in err
    assert "__main__" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_one_line_and_no_traceback(kernels):
    arguments = ["show", f"{kernels}:twice", "--args", "float32[9]", "float32[9]", "--only", "program"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tvm_tile", *arguments], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def test_arguments_and_constants_parse():
    assert parse_argument("float32[20,18]") == tt.spec((20, 18), "float32")
    assert parse_argument(" int8[ 3 , 4 ] ") == tt.spec((3, 4), "int8")
    assert parse_argument("float64[]") == tt.spec((), "float64")
    assert parse_argument("-2.5") == -2.5
    assert parse_argument("inf") == -parse_argument("-inf") == float("inf")
    assert np.isnan(parse_argument("nan"))
    assert parse_constant("act='nan'") == ("act", "nan")
    assert parse_constant("bound=-inf") == ("bound", -float("inf"))
    assert parse_constant("bm=32") == ("bm", 32)
    assert parse_named("A=int8[3]") == ("A", tt.spec((3,), "int8"))
    assert parse_constant("act=gelu") == ("act", "gelu")


@pytest.mark.parametrize(
    "text", ["float32", "float32[3", "[3]", "'x'", "(1, 2)", "infinite", "{[]: 1}", "(" * 5000, "1" * 5000]
)
def test_an_argument_that_is_neither_tensor_nor_number_is_refused(text):
    with pytest.raises(tt.ArgumentError, match="neither a tensor nor a number"):
        parse_argument(text)


@pytest.mark.parametrize("text", ["bm", "=3", "1x=3"])
def test_a_constant_without_a_name_is_refused(text):
    with pytest.raises(tt.ArgumentError, match="NAME=VALUE"):
        parse_constant(text)


def test_arguments_by_position_and_by_name_are_the_same(kernels, capsys):
    only = ["--only", "program"]
    assert main(["show", f"{kernels}:twice", "--args", "float32[9]", "float32[9]", *only]) == 0
    by_position = capsys.readouterr().out
    assert main(["show", f"{kernels}:twice", "--spec", "Y=float32[9]", "X=float32[9]", *only]) == 0
    assert capsys.readouterr().out == by_position


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--spec", "X=float32[9]"], "Y missing"),
        (["--spec", "X=float32[9]", "Y=float32[9]", "Z=float32[9]"], "--spec names Z"),
        (["--spec", "X=float32[9]", "X=float32[9]"], "X is given twice"),
        (
            ["--args", "float32[9]", "--spec", "X=float32[9]", "Y=float32[9]"],
            "X of kernel twice is given twice",
        ),
        (["--args", "float32[9]", "float32[9]", "--target", "quantum"], "is not a target"),
        (["--args", "float99[9]", "float32[9]"], "float99"),
    ],
)
def test_arguments_that_do_not_fit_the_kernel_are_one_line(kernels, capsys, given, message):
    try:
        status = main(["build", f"{kernels}:twice", *given])
    except SystemExit as stopped:
        status = stopped.code
    err = capsys.readouterr().err
    assert message in err
    # What is no argument at all is bad usage; what does not fit this kernel is a finding.
    assert status == (2 if "float99" in message else 1)
    assert status == 2 or err.count("\n") == 1


def test_build_writes_a_library_that_loads(kernels, capsys, tmp_path):
    out = tmp_path / "twice.so"
    assert main(["build", f"{kernels}:twice", "--spec", "X=float32[9]", "Y=float32[9]", "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "<Executable twice(X float32[9], Y float32[9]) for llvm>" in printed
    assert f"{out}: {out.stat().st_size} bytes" in printed
    x, y = np.arange(9, dtype="float32"), np.zeros(9, "float32")
    load(out)(x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_build_to_a_folder_that_is_not_there_is_a_finding(kernels, capsys, tmp_path):
    out = tmp_path / "nowhere" / "twice.so"
    assert main(["build", f"{kernels}:twice", "--args", "float32[9]", "float32[9]", "-o", str(out)]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("how", [[], ["--interpret"]])
def test_run_reads_and_writes_arrays(kernels, capsys, tmp_path, how):
    x, out = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(x, np.array([1.0, -2.5, 4.0], "float32"))
    arguments = ["run", f"{kernels}:twice", "--spec", f"X={x}", "Y=float32[3]", "--save", f"Y={out}", *how]
    assert main(arguments) == 0
    np.testing.assert_array_equal(np.load(out), np.array([2.0, -5.0, 8.0], "float32"))
    assert capsys.readouterr().out == "Y float32[3]: minimum -5, maximum 8, mean 1.66667\n"


def test_run_on_random_numbers_repeats_with_its_seed(kernels, capsys):
    def printed(seed):
        arguments = ["run", f"{kernels}:twice", "--args", "float32[50]", "float32[50]", "--seed", seed]
        assert main(arguments) == 0
        return capsys.readouterr().out

    assert printed("1") == printed("1") != printed("2")
    for dtype in ("bool", "int8", "uint64", "float16", "bfloat16", "float8_e5m2"):
        array = array_for(tt.spec((4, 5), dtype), np.random.default_rng(0))
        assert (array.shape, str(array.dtype)) == ((4, 5), dtype)


def test_run_refuses_to_save_what_is_no_tensor(kernels, capsys):
    assert main(["run", f"{kernels}:twice", "--args", "float32[3]", "float32[3]", "--save", "Z=z.npy"]) == 1
    assert "--save 'Z=z.npy'" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["2.0", "float32[]"])
def test_run_takes_a_run_time_scalar_as_a_number_or_makes_one_up(tmp_path, capsys, given):
    path = tmp_path / "scaling.py"
    path.write_text(
        "import tvm_tile as tt\n\n@tt.kernel\ndef scaled(a: tt.Scalar['float32'], Y):\n    Y[0] = a * 2.0\n"
    )
    assert main(["run", f"{path}:scaled", "--args", given, "float32[1]"]) == 0
    assert capsys.readouterr().out.startswith("Y float32[1]: minimum " + ("4," if given == "2.0" else ""))
    assert main(["run", f"{path}:scaled", "--args", "float32[1]", "float32[1]"]) == 1
    assert "scalar" in capsys.readouterr().err


def test_run_says_of_infinities_and_nan_what_they_are(kernels, capsys, tmp_path):
    np.save(tmp_path / "x.npy", np.array([np.inf, -np.inf, np.nan], "float32"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["run", f"{kernels}:twice", "--args", f"{tmp_path / 'x.npy'}", "float32[3]"]) == 0
    assert capsys.readouterr().out.endswith("mean nan, 1 NaN\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["float32[99999999999999]", "float32[3]"],
            "argument X of shape (99999999999999,) does not fit into",
        ),
        (["float32[9223372036854775808]", "float32[3]"], "64-bit addresses do not reach"),
        (["float32[3]", "float32[3]", "--save", "Y=a.npy", "Y=b.npy"], "--save has Y twice"),
    ],
)
def test_run_refuses_what_it_cannot_hold_or_keep(kernels, capsys, given, message):
    assert main(["run", f"{kernels}:twice", "--args", *given]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize("content", ["archive", "more than there is memory", "nothing"])
def test_a_file_that_holds_no_array_is_bad_usage(kernels, capsys, tmp_path, content):
    path = tmp_path / "x.npy"
    with open(path, "wb") as file:
        if content == "archive":
            np.savez(file, x=np.zeros(3))
        elif content != "nothing":
            header = {"descr": "<f4", "fortran_order": False, "shape": (10**14,)}
            np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(SystemExit) as caught:
        main(["run", f"{kernels}:twice", "--args", str(path), "float32[3]"])
    assert caught.value.code == 2
    assert f"{path}" in capsys.readouterr().err


def test_doctor_says_that_llvm_runs(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "llvm" in out
    assert "worker threads" in out
    assert "local shared global" in out
    assert f"generated code in {os.environ['TVM_TILE_CACHE_DIR']}" in out.replace("\n", "")


def test_doctor_clears_the_cache(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TVM_TILE_CACHE_DIR", str(tmp_path))
    (tmp_path / "some.tile").write_bytes(bytes(1 << 20))
    (tmp_path / "other.txt").write_text("not ours")
    assert main(["doctor", "--clear-cache"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}: 1 entries, 1.0 MiB removed\n"
    assert [path.name for path in tmp_path.iterdir()] == ["other.txt"]


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
    labels = np.array([[3, 1, 1], [3, 1, 2], [2, 2, 5]])
    assert vote(labels).tolist() == [1, 3, 2]


def test_names_that_the_kernel_does_not_have_are_named_with_those_it_has(kernels, capsys):
    assert main(["build", f"{kernels}:twice", "--spec", "Q=float32[64]"]) == 1
    line = capsys.readouterr().err
    assert "--spec names Q" in line
    assert "its parameters are X, Y, its constants n" in line


def test_a_kernel_without_shapes_says_how_they_are_given(kernels, capsys):
    assert main(["run", f"{kernels}:twice"]) == 1
    line = capsys.readouterr().err
    assert "X, Y missing" in line
    assert "--args 'float32[64]' 'float32[64]'" in line
    assert "--spec 'X=float32[64]' 'Y=float32[64]'" in line
    assert main(["run", f"{kernels}:twice", "--args", "float32[64]", "float32[64]"]) == 0


@pytest.mark.parametrize("part", [(), ("--only", "program")])
def test_show_for_an_unknown_target_prints_no_part(kernels, capsys, part):
    given = ["show", f"{kernels}:twice", "--args", "float32[8]", "float32[8]", *part]
    assert main([*given, "--target", "nvidia"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "nvidia" in printed.err
    assert main(given) == 0
    assert "twice" in capsys.readouterr().out


def test_a_target_that_does_not_run_here_names_one_that_does(kernels, capsys):
    given = ["run", f"{kernels}:twice", "--args", "float32[8]", "float32[8]", "--target"]
    assert main([*given, "metal"]) == 1
    assert "--target llvm" in capsys.readouterr().err
    assert main([*given, "llvm"]) == 0


def test_doctor_gives_the_reason_of_a_target_that_does_not_run(monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Linux")
    assert examine("metal") == ("yes", "no", "needs a Mac")
