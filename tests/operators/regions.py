"""Regions, and operators on memory."""

import numpy as np

from .operator import (
    EVERY,
    NOT_32_BITS,
    NUMBERS,
    SHAPE,
    STORED,
    Operator,
)


def _fold(x):
    total = np.zeros(x.shape[0], x.dtype)
    for column in x.T:
        total = total * 2 + column
    return total


def _fold_right(x):
    total = np.zeros(x.shape[0], x.dtype)
    for column in x.T[::-1]:
        total = total * 2 + column
    return total


REGIONS = (
    Operator(
        "for i in tt.parallel(n)", "for i in tt.parallel(5):\n    y[i, :] = a[i, :]", lambda x: x, STORED
    ),
    Operator(
        "for t in tt.serial(n)",
        "s = a[0, :]\nfor t in tt.serial(4):\n    s = tt.maximum(s, a[t + 1, :])\ny[...] = s",
        lambda x: x.max(0),
        EVERY,
    ),
    Operator(
        "for k in tt.pipeline(n)",
        "s = a[0, :]\nfor t in tt.pipeline(5):\n    tt.stage('load')\n    v = a[t, :]\n    tt.stage('join')\n"
        "    s = tt.maximum(s, v)\ny[...] = s",
        lambda x: x.max(0),
        EVERY,
    ),
    *(
        Operator(
            f'for r in tt.reduce(n, policy="{policy}")',
            f's = tt.full((5,), 2, "{{dtype}}")\nfor r in tt.reduce(7, policy="{policy}"):\n'
            "    s = s + a[:, r]\ny[...] = s",
            lambda x: (x.sum(1) + 2).astype(x.dtype),
            NUMBERS,
            positive=True,
            small=True,
            tolerance=4.0,
        )
        for policy in ("unordered_tree", "ordered_tree")
    ),
    Operator(
        'for r in tt.reduce(n, policy="fold_left")',
        's = tt.zeros((5,), "{dtype}")\nfor r in tt.reduce(7, policy="fold_left"):\n    s = s * 2 + a[:, r]\n'
        "y[...] = s",
        _fold,
        NUMBERS,
        small=True,
        positive=True,
        tolerance=4.0,
    ),
    Operator(
        'for r in tt.reduce(n, policy="fold_right")',
        's = tt.zeros((5,), "{dtype}")\nfor r in tt.reduce(7, policy="fold_right"):\n'
        "    s = s * 2 + a[:, r]\ny[...] = s",
        _fold_right,
        NUMBERS,
        small=True,
        positive=True,
        tolerance=4.0,
    ),
    Operator(
        "if condition:",
        "s = a\nif tt.sum(a) > tt.sum(b):\n    s = b\nelse:\n    y[0, 0] = a[0, 0]\ny[...] = s",
        lambda x, z: z if x.sum() > z.sum() else x,
        EVERY,
        (SHAPE, SHAPE),
        positive=True,
        small=True,
    ),
    Operator(
        "T = tt.update(T, idx, v)",
        'T = tt.zeros((5, 7), "{dtype}")\nfor i in tt.parallel(5):\n'
        "    T = tt.update(T, (i, tt.ds(0, 6)), a[i, tt.ds(0, 6)])\ny[...] = T",
        lambda x: np.where(np.arange(7) < 6, x, np.zeros((), x.dtype)),
        STORED,
    ),
    Operator(
        "T = tt.update(T, idx, v, combine=tt.add)",
        'T = tt.zeros((7,), "{dtype}")\nfor i in tt.parallel(5):\n'
        "    T = tt.update(T, (tt.ds(0, 7),), a[i, :], combine=tt.add)\ny[...] = T",
        lambda x: x.sum(0).astype(x.dtype),
        NUMBERS,
        positive=True,
        small=True,
        tolerance=4.0,
    ),
)

MEMORY = (
    Operator("A[idx], A[idx] = v", "y[...] = a", lambda x: x, STORED),
    Operator(
        "A.at[idx].load(fill)",
        "y[...] = A.at[tt.ds(-1, 7), :].load(fill=1)",
        lambda x: np.pad(x, ((1, 1), (0, 0)), constant_values=1),
        STORED,
    ),
    Operator(
        "A.at[idx].store(v, mask)",
        "y[...] = a\ny.at[:, :].store(b, mask=a < b)",
        lambda x, z: np.where(x < z, z, x),
        EVERY,
        (SHAPE, SHAPE),
    ),
    Operator(
        "tt.alloc(shape, dtype, layout)",
        'm = tt.alloc((5, 7), "{dtype}", layout=lambda i, j: i * 8 + (j + i) % 8)\n'
        "m[...] = a\ny[...] = m[...]",
        lambda x: x,
        STORED,
    ),
    Operator(
        "tt.atomic_add(ref, v)",
        "y[...] = b\nfor i in tt.parallel(5):\n    tt.atomic_add(y.at[0], a[i, 0])",
        lambda x, z: z + x[:, 0].sum(),
        NUMBERS,
        (SHAPE, (1,)),
        positive=True,
        small=True,
        tolerance=4.0,
        unsupported={"metal": NOT_32_BITS},
    ),
    Operator(
        "tt.atomic_max(ref, v)",
        "y[...] = b\nfor i in tt.parallel(5):\n    tt.atomic_max(y.at[0], a[i, 0])",
        lambda x, z: np.maximum(z, x[:, 0].max()),
        NUMBERS,
        (SHAPE, (1,)),
        unsupported={"metal": NOT_32_BITS},
    ),
    Operator(
        "tt.atomic_min(ref, v)",
        "y[...] = b\nfor i in tt.parallel(5):\n    tt.atomic_min(y.at[0], a[i, 0])",
        lambda x, z: np.minimum(z, x[:, 0].min()),
        NUMBERS,
        (SHAPE, (1,)),
        unsupported={"metal": NOT_32_BITS},
    ),
)
