"""Elementary functions as TIRx expressions that a vector loop can afford.

TVM lowers ``T.exp`` in a vector loop to one scalar ``expf`` per lane, folds ``x != x`` to false, and takes a
maximum that loses NaN.  The builders here return plain arithmetic instead: no library call, no branch, no
conversion of a float to an integer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.ir import Expr, PrimType
from tvm.tirx import Let, Select, Shuffle, Var

_LOG2_E = 1.44269504
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.12194442e-4
_ROUNDER = 12582912.0 # 1.5 * 2**23
_SCALER = 12583039.0

_EXP = (0.49999994, 0.16666517, 0.041668106, 0.00836914, 0.0013836748)
_EXP2 = (0.6931472, 0.24022594, 0.055503663, 0.009625445, 0.0013387925, 0.00013332487)
_EXPM1 = (0.5, 0.16666636, 0.04166651, 0.00834151, 0.0013930541, 0.00015046184)
_LOG = (0.3333333, -0.25000823, 0.20001261, -0.16623335, 0.14200947, -0.13159509, 0.12766975, -0.0764314)
_LOG2 = ( 0.44269505, -0.7213472, 0.4808944, -0.36070716, 0.2887871, -0.23954774, 0.20056848, -0.18761337, 0.20944938, -0.14616929 )
_ERF = (0.12837917, 0.63661957, 0.102776304, -0.019147824, -0.00016949463, 0.0016756592, -0.00063734996, 0.0001188567, -9.387414e-06)


class _Lets:
    def __init__(self) -> None:
        self._bound: list[tuple[Var, Expr]] = []

    def bind(self, value: Expr) -> Var:
        var = Var(f"t{len(self._bound)}", value.ty)
        self._bound.append((var, value))
        return var

    def close(self, result: Expr) -> Expr:
        for var, value in reversed(self._bound):
            result = Let(var, value, result)
        return result


def _bits(x):
    return tirx.reinterpret(PrimType(_as(x, "int32")), x)
def _as(x, d):
    n = x.ty.dtype.lanes
    return d if n == 1 else f"{d}x{n}"
def _float(x):
    return tirx.reinterpret(PrimType(_as(x, "float32")), x)
def _const(x, v):
    return tirx.const(v, _as(x, "float32"))
def _horner(x, cs):
    acc = x * cs[-1] + cs[-2]
    for c in cs[-3::-1]:
        acc = acc * x + c
    return acc
def _min(x, hi):
    return Select(x > hi, _const(x, hi), x)
def _max(x, lo):
    return Select(x < lo, _const(x, lo), x)

def _scaled(lets, p, t):
    b = lets.bind(_bits(t))
    half = _float(b >> 1 << 23)
    rest = _float(b + 1 >> 1 << 23)
    return p * half * rest

def _exp(lets, x):
    x = lets.bind(_max(x, -104.5))
    x = lets.bind(_min(x, 89.0))
    t = lets.bind(x * _LOG2_E + (_ROUNDER + 254.0))
    m = lets.bind(t - (_ROUNDER + 254.0))
    r = lets.bind((x - m * _LN2_HIGH) - m * _LN2_LOW)
    return _scaled(lets, (_horner(r, _EXP) * (r * r) + r) + 1.0, t)

def _exp2(lets, x):
    x = lets.bind(_max(x, -151.0))
    x = lets.bind(_min(x, 129.0))
    t = lets.bind(x + (_ROUNDER + 254.0))
    r = lets.bind(x - (t - (_ROUNDER + 254.0)))
    return _scaled(lets, _horner(r, _EXP2) * r + 1.0, t)

def _expm1(lets, y):
    t = lets.bind(y * _LOG2_E + _SCALER)
    n = lets.bind(t - _SCALER)
    r = lets.bind((y - n * _LN2_HIGH) - n * _LN2_LOW)
    s = lets.bind(_float(_bits(t) << 23))
    q = _horner(r, _EXPM1) * (r * r) + r
    return q * s + (s - 1.0)

def _split(lets, x):
    tiny = x < 1.1754943508222875e-38
    scaled = lets.bind(_bits(Select(tiny, x * 33554432.0, x)) & 0x7fffffff)
    e = lets.bind((scaled - 0x3f3504f3) >> 23)
    f = lets.bind(_float(scaled - (e << 23)) - 1.0)
    return e.astype(_as(x, "float32")) + Select(tiny, _const(x, -25.0), _const(x, 0.0)), f

def _guard(x, y):
    inf = float("inf")
    y = Select(x < inf, y, x)
    return Select(x <= 0.0, Select(x < 0.0, _const(x, float("nan")), _const(x, -inf)), y)

def _log(lets, x):
    e, f = _split(lets, x)
    e = lets.bind(e)
    y = f * f * (_horner(f, _LOG) * f - 0.5)
    return _guard(x, lets.bind((y + e * _LN2_LOW) + f + e * _LN2_HIGH))

def _log2(lets, x):
    e, f = _split(lets, x)
    y = _horner(f, _LOG2) * f + f
    return _guard(x, lets.bind(y + e))

_TANH = (-0.3333328, 0.13331406, -0.053736515, 0.020628167, -0.0056922967)
def _tanh(lets, x):
    b = lets.bind(_bits(x))
    z = lets.bind(_float(b & 0x7fffffff))
    y = lets.bind(_min(z * 2.0, 18.5))
    t = lets.bind(y * _LOG2_E + _SCALER)
    n = lets.bind(t - _SCALER)
    r = lets.bind((y - n * _LN2_HIGH) - n * _LN2_LOW)
    s = _float(_bits(t) << 23)
    e = ((_horner(r, _EXP) * (r * r) + r) + 1.0) * s
    w = lets.bind(z * z)
    small = z * (_horner(w, _TANH) * w) + z
    q = Select(z < 0.625, small, 1.0 - _const(x, 2.0) / (e + 1.0))
    return _float(_bits(q) | (b & -0x80000000))

def _erf(lets, x):
    b = lets.bind(_bits(x))
    z = lets.bind(_min(_float(b & 0x7fffffff), 3.95))
    u = lets.bind(_horner(z, _ERF) * z + z)
    p = _expm1(lets, u * -1.0)
    return _float(_bits(p) & 0x7fffffff | (b & -0x80000000))

def _sigmoid(lets, x):
    b = lets.bind(_bits(x))
    e = lets.bind(_exp(lets, lets.bind(_float(b | -0x80000000))))
    c = lets.bind(Select(x < 0.0, e, _const(x, 1.0)))
    return c - c * (e / (e + 1.0))

def _mk(f):
    def g(x):
        lets = _Lets()
        return lets.close(f(lets, lets.bind(x)))
    return g
FNS = {k: _mk(globals()["_" + k]) for k in ("exp", "exp2", "log", "log2", "tanh", "erf", "sigmoid")}
