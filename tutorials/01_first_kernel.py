"""A first kernel: write it, ask for its meaning, build it, run it, look at the code.

Run it with ``python tutorials/01_first_kernel.py``; it explains itself as it goes and ends in asserts.
"""

import numpy as np

import tvm_tile as tt

# 1. Write.
#
# A kernel states its regions first. `tt.parallel` promises that its instances do not interfere;
# `tt.serial` is an ordered recurrence. Tile values (`x`, `peak`) hang off the regions. A name that is
# defined outside a region and assigned inside it (`peak`, in the inner loop) is carried from one
# iteration to the next.


@tt.kernel
def scaled_rows(X, Y, *, width=32):
    """Divide each row by its largest magnitude."""
    rows, columns = X.shape
    for i in tt.parallel(rows):
        peak = tt.zeros((), X.dtype)
        for k in tt.serial(tt.cdiv(columns, width)):
            x = X[i, tt.ds(k * width, width)]
            peak = tt.maximum(peak, tt.max(tt.abs(x)))
        for k in tt.serial(tt.cdiv(columns, width)):
            Y[i, tt.ds(k * width, width)] = X[i, tt.ds(k * width, width)] / peak


# 2. Specialize.
#
# Shapes, strides, dtypes and keyword constants are fixed when the kernel is traced. 70 is not a multiple
# of 32: lanes beyond the end load 0 and their stores are dropped.

rng = np.random.default_rng(0)
x = rng.standard_normal((5, 70)).astype(np.float32)
program = scaled_rows.trace(x, tt.spec((5, 70), "float32"))
print(program)

# The text is the program: it parses back to an equal one.
assert tt.parse(str(program)) == program

# 3. Interpret.
#
# The reference interpreter is what the program means. The order of parallel instances must not matter,
# so other orders give the same array; `debug=True` also looks for conflicts and says what it looked at.

meaning = np.zeros_like(x)
tt.interpret(program, x, meaning)
for order in ("reverse", 7):
    other = np.zeros_like(x)
    tt.interpret(program, x, other, order=order)
    assert np.array_equal(other, meaning)
print(tt.interpret(program, x, np.zeros_like(x), debug=True))

# 4. Build and run.
#
# `tt.build` lowers the program to TVM's TIRx and compiles it for this CPU. Calling the kernel itself does
# the same and remembers the result.

executable = tt.build(program, "llvm")
result = np.zeros_like(x)
executable(x, result)

again = np.zeros_like(x)
scaled_rows(x, again, width=16)

# 5. Look at the code.

print(executable.mod.script())
print("\n".join(executable.source("asm").splitlines()[:20]))

# 6. What goes wrong says where.


@tt.kernel
def competing(X):
    s = tt.zeros((), "float32")
    for i in tt.parallel(X.shape[0]):
        s = X[i]
    for _ in tt.parallel(1):
        X[0] = s


try:
    competing.trace(x[0].copy())
except tt.IllegalError as error:
    print(error)
    assert "competing whole-tile writes" in str(error)
else:
    raise AssertionError("instances of a parallel region cannot all assign one tile")

try:
    executable(x, result[:, :-1])
except tt.ArgumentError as error:
    print(error)
    assert "Y" in str(error)
else:
    raise AssertionError("an array of the wrong shape is refused")

expected = x / np.abs(x).max(axis=1, keepdims=True)
np.testing.assert_allclose(meaning, expected, rtol=1e-6)
np.testing.assert_allclose(result, expected, rtol=1e-6)
np.testing.assert_allclose(again, expected, rtol=1e-6)
print("all three agree with NumPy")
