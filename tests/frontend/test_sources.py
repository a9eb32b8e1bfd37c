"""Where the text of a function comes from, and what happens where there is none."""

import linecache
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tvm_tile.frontend as tt
from tvm_tile.errors import ArgumentError, CaptureError
from tvm_tile.ir.ops import Store
from tvm_tile.ir.structure import walk

X4 = np.zeros(4, "f4")

TEXT = """\
def k(X):
    for i in tt.parallel(4):
        X[i] = 1.0
"""


def executed(text, **names):
    namespace = {"tt": tt, **names}
    exec(text, namespace)
    return namespace


def test_executed_text_has_no_source_and_the_error_names_the_way_out(refused):
    error = refused(CaptureError, lambda: executed("@tt.kernel\n" + TEXT), "<string>")
    assert "tt.kernel(fn, source=text)" in str(error)


def test_source_text_makes_a_kernel():
    k = tt.kernel(executed(TEXT)["k"], source=TEXT)
    assert [type(s).__name__ for s in walk(k.trace(X4))] == ["Parallel", "Full", "Store"]


def test_errors_show_the_given_text(refused):
    text = "def k(X):\n    for i in tt.parallel(4):\n        break\n"
    k = tt.kernel(executed(text)["k"], source=text)
    error = refused(CaptureError, lambda: k.trace(X4), "break", "3 |         break", "^^^^^", at="break")
    assert error.span.line == 3
    linecache.checkcache()
    assert "3 |         break" in str(error)


def test_source_may_be_indented_or_a_module(refused):
    indented = textwrap.indent(TEXT.replace("1.0", "1 / 0"), "    ")
    k = tt.kernel(executed(TEXT)["k"], source=indented)
    error = refused(CaptureError, lambda: k.trace(X4), "division by zero", at="1 / 0")
    assert (error.span.line, error.span.column) == (3, 20)
    module = (
        "import math\n\ndef other(X):\n    pass\n\n"
        + TEXT
        + "\nclass A:\n    def k(self, X):\n        pass\n"
    )
    k = tt.kernel(executed(TEXT)["k"], source=module)
    assert [s.span.line for s in walk(k.trace(X4)) if isinstance(s, Store)] == [8]


def test_source_that_defines_a_function_twice_goes_by_line(refused):
    module = "def k(X):\n    X[0] = 1.0\n\n\ndef k(X):\n    X[1] = 1.0\n    X[2] = 1.0\n"
    k = tt.kernel(executed(module)["k"], source=module)
    assert sum(isinstance(s, Store) for s in walk(k.trace(X4))) == 2
    refused(
        CaptureError,
        lambda: tt.kernel(executed("\n\n\n\n\n\n\n" + TEXT)["k"], source=module),
        "at lines 1, 5",
    )


def test_source_of_another_function_is_refused(refused):
    refused(
        CaptureError,
        lambda: tt.kernel(executed(TEXT)["k"], source="def j(X):\n    pass\n"),
        "does not define k",
    )
    refused(
        CaptureError, lambda: tt.kernel(executed(TEXT)["k"], source="def k(X, Y):\n    pass\n"), "parameters"
    )
    refused(CaptureError, lambda: tt.kernel(executed(TEXT)["k"], source="def k(X:\n"), "no Python")


def test_helpers_are_found_in_the_given_module_text(refused):
    text = (
        "def helper(x):\n    for _ in tt.serial(2):\n        x = x * scale\n    return x\n\n"
        "def k(X):\n    X[0] = helper(X[0])\n"
    )
    k = tt.kernel(executed(text, scale=2.0)["k"], source=text)
    assert "Serial" in [type(s).__name__ for s in walk(k.trace(X4))]
    bad = tt.kernel(executed(text, scale="2")["k"], source=text)
    refused(CaptureError, lambda: bad.trace(X4), "'2'", "3 |         x = x * scale", at="x * scale")
    alone = tt.kernel(executed(text, scale=2.0)["k"], source=text[text.index("def k") :])
    refused(CaptureError, lambda: alone.trace(X4), "function with source")


def test_nested_functions_of_one_name_are_told_apart():
    def make(first):
        if first:

            @tt.kernel
            def k(X):
                X[0] = 1.0
        else:

            @tt.kernel
            def k(X):
                X[0] = 1.0
                X[1] = 1.0

        return k

    assert [sum(isinstance(s, Store) for s in walk(make(f).trace(X4))) for f in (True, False)] == [1, 2]


def test_methods_keep_private_names():
    class Box:
        __scale = 3

        def __twice(self, x):
            return x * (2 * self.__scale)

        def apply(self, x):
            for _ in tt.serial(2):
                x = self.__twice(x)
            return x

    @tt.kernel
    def k(X):
        X[0] = Box().apply(X[0])

    assert "Serial" in [type(s).__name__ for s in walk(k.trace(X4))]


def run(*arguments, stdin=None):
    return subprocess.run([sys.executable, *arguments], input=stdin, capture_output=True, text=True)


PROGRAM = f"""
import numpy as np
import tvm_tile.frontend as tt
text = '''{TEXT}'''
try:
    @tt.kernel
    def k(X):
        X[0] = 1.0
except tt.CaptureErrorType as error:
    assert "tt.kernel(fn, source=text)" in str(error), error
    print("refused")
exec(text)
print(len(tt.kernel(k, source=text).trace(np.zeros(4, "f4")).body.statements))
""".replace("tt.CaptureErrorType", "__import__('tvm_tile.errors', fromlist=['x']).CaptureError")


@pytest.mark.parametrize("how", ["-c", "stdin"])
def test_command_line_and_standard_input(how):
    result = run("-c", PROGRAM) if how == "-c" else run("-", stdin=PROGRAM)
    assert result.stdout.split() == ["refused", "1"], result.stderr


def test_script_file_with_future_annotations_and_tabs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from __future__ import annotations\n"
        "import numpy as np\n"
        "import tvm_tile.frontend as tt\n"
        "from tvm_tile.errors import CaptureError\n"
        "@tt.kernel\n"
        "def k(X, alpha: tt.Scalar['float32']):\n"
        "\tfor i in tt.parallel(4):\n"
        "\t\tX[i] = alpha + 'text'\n"
        "try:\n"
        "\tk.trace(np.zeros(4, 'f4'), 2.0)\n"
        "except CaptureError as error:\n"
        "\tprint(error)\n"
    )
    lines = run(str(script)).stdout.splitlines()
    assert lines[0].startswith(f"{script}:8:10: ")
    assert lines[1] == "    8 | \t\tX[i] = alpha + 'text'"
    assert lines[2] == "      | \t\t       ^^^^^^^^^^^^^^"


def test_changed_file_is_noticed(tmp_path, refused, monkeypatch):
    import importlib

    module = tmp_path / "changing_kernels.py"
    module.write_text("def k(X):\n    X[0] = 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    function = importlib.import_module("changing_kernels").k
    tt.kernel(function).trace(X4)
    module.write_text("# a longer file, without the function where it was\ndef other(X):\n    pass\n")
    refused(CaptureError, lambda: tt.kernel(function), "changed")


def test_notebook_cells_go_through_linecache(refused):
    # IPython enters each cell in linecache under a name of its own.
    name = "<ipython-input-1-0123456789ab>"
    text = "@tt.kernel\ndef k(X):\n    for i in tt.parallel(4):\n        continue\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"tt": tt}
    exec(compile(text, name, "exec"), namespace)
    refused(CaptureError, lambda: namespace["k"].trace(X4), "continue", "4 |         continue", at="continue")


def test_cell_that_is_no_python_as_a_whole():
    name = "<ipython-input-2-0123456789ab>"
    text = "%matplotlib inline\n@tt.kernel\ndef k(X):\n    X[0] = 1.0\n!ls\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"tt": tt}
    code = compile("\n@tt.kernel\ndef k(X):\n    X[0] = 1.0\n", name, "exec")
    exec(code, namespace)
    (store,) = [s for s in walk(namespace["k"].trace(X4)) if isinstance(s, Store)]
    assert (store.span.line, store.span.column) == (4, 5)


FORMS = {
    "async": ("async def k(X):\n    pass\n", "async"),
    "generator": ("def k(X):\n    yield\n", "yield"),
    "varargs": ("def k(*Xs):\n    pass\n", "*Xs"),
    "keywords": ("def k(X, **rest):\n    pass\n", "**rest"),
    "default": ("def k(X, Y=None):\n    pass\n", "*, Y=..."),
    "unknown scalar": ('def k(X, a: tt.Scalar["float31"]):\n    pass\n', "float31"),
}


@pytest.mark.parametrize("form", FORMS)
def test_form_that_is_no_kernel_is_refused(refused, form):
    text, word = FORMS[form]
    if form == "unknown scalar":
        text = "from __future__ import annotations\n" + text
    error = refused(CaptureError, lambda: tt.kernel(executed(text)["k"], source=text), word)
    assert error.span.line == (2 if form == "unknown scalar" else 1)


def test_only_functions_are_kernels(refused):
    refused(CaptureError, lambda: tt.kernel(lambda X: None), "lambda")
    refused(CaptureError, lambda: tt.kernel(3), "int 3")
    refused(CaptureError, lambda: tt.kernel(print), "print")


def test_decorator_takes_options():
    assert tt.kernel(fma=False)(executed_in_file).fma is False
    assert tt.kernel(executed_in_file).fma is True


def executed_in_file(X):
    X[0] = 1.0


def test_a_source_that_is_no_text_is_refused():
    def k(X):
        X[0] = 1.0

    for source in (5, b"def k(X): pass"):
        with pytest.raises(ArgumentError, match="source= is the text of the function"):
            tt.kernel(k, source=source)
    assert tt.kernel(k).name == "k"
