"""From an operator of the catalogue to a program for several element types, its arrays and what is right."""

import numpy as np

import tvm_tile as tt

from .operator import FLOAT8, FLOATS, TOLERANCE, Operator, numpy_dtype

__all__ = ["check", "kernel_of", "make_arrays", "make_inputs", "traced"]

_SEED = 7


def _values(op: Operator, dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in FLOATS + FLOAT8:
        x = rng.standard_normal(shape) * (0.5 if op.small else 3.0)
        x = np.clip(x, -2.0, 2.0) if op.small else x
        x = np.abs(x) + 0.125 if op.positive else x
        x = np.where(np.abs(x) < 0.25, 0.25, x) if op.nonzero else x
        return x.astype(numpy_dtype(dtype))
    info = np.iinfo(dtype)
    low, high = (-3, 3) if op.small else (int(info.min), int(info.max))
    low = max(low, 1 if op.positive else int(info.min))
    x = rng.integers(low, high, shape, dtype, endpoint=True)
    return np.where(x == 0, 1, x).astype(dtype) if op.nonzero else x


def make_inputs(op: Operator, dtype: str) -> list[np.ndarray]:
    """Arrays of an element type, which the operator need not take."""
    rng = np.random.default_rng(_SEED)
    return [_values(op, dtype, shape, rng) for shape in op.inputs]


def make_arrays(op: Operator, dtype: str) -> tuple[list[np.ndarray], np.ndarray]:
    """The inputs, and the right output."""
    inputs = make_inputs(op, dtype)
    # What floats there are is computed in float64 and rounded once.
    wide = [x.astype("f8") if dtype in FLOATS + FLOAT8 else x for x in inputs]
    with np.errstate(all="ignore"):
        right = np.asarray(op.oracle(*wide)).astype(numpy_dtype(op.result(dtype)))
    return inputs, right


def kernel_of(op: Operator, dtypes: tuple[str, ...]):
    """A kernel that applies the operator to tensors of each element type, one output a type."""
    letters = "ABC"[: len(op.inputs)]
    lines: list[str] = []
    for dtype in dtypes:
        body = [f"{letter.lower()} = {letter}[...]" for letter in letters]
        body += op.body.replace("{dtype}", dtype).replace("; ", "\n").splitlines()
        if not any(line.startswith("for ") for line in body):
            body = ["for _ in tt.parallel(1):", *(f"    {line}" for line in body)]
        lines += [f"def case_{dtype}({', '.join([*letters, 'y'])}):", *(f"    {line}" for line in body), ""]
    params = [f"{letter}_{dtype}" for dtype in dtypes for letter in (*letters, "y")]
    lines.append(f"def program({', '.join(params)}):")
    for dtype in dtypes:
        lines.append(f"    case_{dtype}({', '.join(f'{letter}_{dtype}' for letter in (*letters, 'y'))})")
    source = "\n".join(lines) + "\n"
    namespace = {"tt": tt}
    exec(compile(source, "<operator>", "exec"), namespace)
    return tt.kernel(namespace["program"], source=source)


def traced(op: Operator, dtypes: tuple[str, ...]):
    """The program for these element types, its arrays, and the right outputs by their place in the arrays."""
    arrays: list[np.ndarray] = []
    right: dict[int, np.ndarray] = {}
    for dtype in dtypes:
        inputs, output = make_arrays(op, dtype)
        arrays += inputs
        right[len(arrays)] = output
        arrays.append(np.zeros(output.shape, output.dtype))
    return kernel_of(op, dtypes).trace(*arrays), arrays, right


def check(
    op: Operator, dtypes: tuple[str, ...], arrays: list[np.ndarray], right: dict[int, np.ndarray]
) -> None:
    """Compare the outputs with the oracle's."""
    for dtype, (place, expected) in zip(dtypes, right.items(), strict=True):
        result, about = arrays[place], f"{op.name} on {dtype}"
        name = op.result(dtype)
        if name not in TOLERANCE or op.tolerance == 0.0:
            np.testing.assert_array_equal(result.astype("f8"), expected.astype("f8"), err_msg=about)
            continue
        rtol = TOLERANCE[name] * op.tolerance
        scale = float(np.max(np.abs(expected.astype("f8")), initial=0.0))
        np.testing.assert_allclose(
            result.astype("f8"), expected.astype("f8"), rtol=rtol, atol=rtol * scale, err_msg=about
        )
