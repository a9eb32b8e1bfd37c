"""Elementary functions as TIRx expressions that a vector loop can afford.

In a vector loop TVM lowers ``T.exp`` to one scalar ``expf`` for each lane, and its simplifier folds
``x != x`` to false.  The builders here return arithmetic instead, at most 2 ulp from the exact value for
every float32: no library call, no branch (only `Select`), no conversion of a float to an integer, so NaN
and out-of-range arguments need no care.

Parameters
----------
x : Expr
    A scalar or a vector of float32; of float16 or bfloat16, computed in float32 and rounded once; or of
    float64, which goes to the libm, lane by lane.  Anything else is a TypeError, except that `isnan`,
    `maximum` and `minimum` take integers too.
bind : Callable, optional
    ``bind(value)`` evaluates a value once, for example into a buffer of one vector register, and returns an
    expression that may be repeated, such as the load.  Without it the result is one expression with `Let`
    inside, vectors included.  TVM's analyzer substitutes bound values, so that compile time is exponential
    in the length of a chain: milliseconds for one function, but an argument that contains a `Let` already
    is a ValueError.  Store such a result before using it in two places.

Returns
-------
Expr
    Of the type of `x`; of booleans for `isnan`.

Notes
-----
Every polynomial was fitted here: a Remez exchange on 4001 Chebyshev points of a 50-digit reference,
weighted to give the relative error of the result; then the coefficients were rounded to float32 one after
another from the lowest power, and those left were fitted again each time.  The bounds in the docstrings
are the largest error over all float32 arguments against float64, in units of the last place of the float64
result (2**-149 for subnormals), with fused multiply-add and without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, PrimType
from tvm.tirx import Cast, Let, Select, Shuffle, Var

_LOG2_E = 1.44269504
# ln(2) = high + low; `high` is 10 bits long, so that its product with an exponent is exact.
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.12194442e-4
# x + _ROUND has the integer nearest to x in its low bits; subtracting _ROUND gives that integer as a float.
_ROUND = 1.5 * 2.0**23
_SIGN, _EXPONENT_BIAS, _MANTISSA_BITS = -0x80000000, 127, 23
_SQRT_HALF_BITS = 0x3F3504F3
# The bits of infinity in every float dtype taken here.
_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF << 52}

# Coefficients from the lowest power.  "error" is the largest relative error of the result, before rounding.
# (exp(r) - 1 - r) / r**2 for |r| <= ln(2)/2; relative to exp(r), error 2**-28.2
_EXP = (0.49999994, 0.16666517, 0.041668106, 0.00836914, 0.0013836748)
# the same, relative to exp(r) - 1, error 2**-28.2
_EXPM1 = (0.5, 0.16666636, 0.04166651, 0.00834151, 0.0013930541, 0.00015046184)
# (2**r - 1) / r for |r| <= 1/2, error 2**-26.3
_EXP2 = (0.6931472, 0.24022594, 0.055503663, 0.009625445, 0.0013387925, 0.00013332487)
# (log(1 + f) - f + f**2 / 2) / f**3 for sqrt(1/2) <= 1 + f <= sqrt(2), error 2**-27.3
_LOG = (0.3333333, -0.25000823, 0.20001261, -0.16623335, 0.14200947, -0.13159509, 0.12766975, -0.0764314)
# log2(1 + f) / f - 1 on the same interval, error 2**-26.4
_LOG2 = (0.44269505, -0.7213472, 0.4808944, -0.36070716, 0.2887871,
         -0.23954774, 0.20056848, -0.18761337, 0.20944938, -0.14616929)  # fmt: skip
# (tanh(z) / z - 1) / z**2 in powers of z**2 for z <= 0.625, error 2**-27.7
_TANH = (-0.3333328, 0.13331406, -0.053736515, 0.020628167, -0.0056922967)
# -log(erfc(z)) / z - 1 for 0 <= z <= 3.93, weighted by what it does to erf(z), error 2**-30.1
_ERF = (0.12837917, 0.63661987, 0.102771096, -0.019117933, -0.00025012658,
        0.0017927752, -0.00073388166, 0.00016382794, -2.0370913e-05, 1.0885684e-06)  # fmt: skip

Bind = Callable[[Expr], Expr]
Builder = Callable[..., Expr]


class _Bindings:
    """Where floats that are used several times are put: by `bind`, or as `Let` around the result.

    Only floats: TVM has no `Let` of a boolean vector, and can derive contradictory bounds of an integer.
    """

    def __init__(self, name: str, bind: Bind | None) -> None:
        self._name = name
        self._bind = bind
        self._lets: list[tuple[Var, Expr]] = []

    def argument(self, x: Expr) -> Expr:
        nested: list[Let] = []
        if self._bind is None:
            tvm_ffi.structural_walk(x, (Let, nested.append))
        if nested:
            raise ValueError(
                f"{self._name}: TVM's compile time is exponential in a chain of Lets, and the argument "
                f"contains {len(nested)}: {x}; store it in a buffer first, or pass bind="
            )
        return self.bind(x)

    def bind(self, value: Expr) -> Expr:
        if self._bind is not None:
            return self._bind(value)
        var = Var(f"t{len(self._lets)}", value.ty)
        self._lets.append((var, value))
        return var

    def close(self, result: Expr) -> Expr:
        for var, value in reversed(self._lets):
            result = Let(var, value, result)
        return result


Rule = Callable[[_Bindings, Expr], Expr]


def exp(x: Expr, bind: Bind | None = None) -> Expr:
    """e**x; at most 1.02 ulp (1.00 without FMA).

    x = n ln(2) + r with |r| <= ln(2)/2 in two steps (Cody and Waite), a polynomial of degree 6 in r, and two
    multiplications by powers of two, of which only the second can round to a subnormal or overflow.
    """
    return _dispatch("exp", x, bind, _exp, lambda _, wide: tirx.exp(wide))


def exp2(x: Expr, bind: Bind | None = None) -> Expr:
    """2**x; at most 0.92 ulp (1.19 without FMA).

    x = n + r with |r| <= 1/2, exactly; a polynomial of degree 6 in r, scaled as in `exp`.
    """
    return _dispatch("exp2", x, bind, _exp2, lambda _, wide: tirx.exp2(wide))


def log(x: Expr, bind: Bind | None = None) -> Expr:
    """Natural logarithm; at most 0.93 ulp (0.93 without FMA); -inf at zero, NaN below.

    x = 2**e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), taken from the bits after a subnormal is scaled to a
    normal number; f - f**2/2 + f**3 P(f) with P of degree 7, plus e ln(2) in two parts.
    """
    return _dispatch("log", x, bind, _log, lambda _, wide: tirx.log(wide))


def log2(x: Expr, bind: Bind | None = None) -> Expr:
    """Logarithm to the base 2; at most 1.18 ulp (1.43 without FMA); -inf at zero, NaN below.

    Reduced as in `log`; e + (f + f P(f)) with P of degree 9, so a power of two has an exact result.
    """
    return _dispatch("log2", x, bind, _log2, lambda _, wide: tirx.log2(wide))


def tanh(x: Expr, bind: Bind | None = None) -> Expr:
    """Hyperbolic tangent; at most 1.34 ulp (1.34 without FMA).

    With z = |x|: z + z**3 P(z**2), P of degree 4, below 0.625, and 1 - 2 / (exp(2 z) + 1) above; the sign
    bit is copied.  TVM's own float64 tanh, a quotient of exponentials, loses every digit of a small result.
    """
    return _dispatch("tanh", x, bind, _tanh, _libm("tanh"))


def erf(x: Expr, bind: Bind | None = None) -> Expr:
    """Error function; at most 1.60 ulp (1.88 without FMA).

    With z = |x|: u = -log(erfc(z)) = z + z P(z), P of degree 9, and erf = 1 - exp(-u) without cancellation,
    from the polynomial of exp(r) - 1; the sign bit is copied.  TVM cannot build a vector of its erf.
    """
    return _dispatch("erf", x, bind, _erf, _libm("erf"))


def sigmoid(x: Expr, bind: Bind | None = None) -> Expr:
    """1 / (1 + exp(-x)); at most 1.66 ulp (1.87 without FMA).

    With e = exp(-|x|) and q = e / (1 + e): 1 - q for x >= 0, and e - e q below, which keeps the relative
    accuracy of e down to the subnormals and rounds less often than q itself.
    """
    return _dispatch("sigmoid", x, bind, _sigmoid, _sigmoid_float64)


def isnan(x: Expr) -> Expr:
    """Whether `x` is NaN, from its bits, so that no simplifier can fold it; never for an integer."""
    element = _element("isnan", x, integers=True)
    if element not in _INFINITY:
        return tirx.const(False, _with_element(x, "bool"))
    width = x.ty.dtype.bits
    integer = str(_with_element(x, f"int{width}"))
    magnitude = _bits(x) & tirx.const(2 ** (width - 1) - 1, integer)
    return magnitude > tirx.const(_INFINITY[element], integer)


def maximum(a: Expr, b: Expr, bind: Bind | None = None) -> Expr:
    """Larger of `a` and `b`, or NaN if either is NaN; of two zeros of different sign, `b`."""
    return _extremum("maximum", a, b, bind, tirx.max, tirx.GT)


def minimum(a: Expr, b: Expr, bind: Bind | None = None) -> Expr:
    """Smaller of `a` and `b`, or NaN if either is NaN; of two zeros of different sign, `b`."""
    return _extremum("minimum", a, b, bind, tirx.min, tirx.LT)


def _dispatch(name: str, x: Expr, bind: Bind | None, single: Rule, double: Rule) -> Expr:
    """Apply the rule for float32 or that for float64, after the element dtype of `x`."""
    bindings = _Bindings(name, bind)
    match _element(name, x):
        case "float32":
            return bindings.close(single(bindings, bindings.argument(x)))
        case "float16":
            wide = bindings.argument(Cast(_with_element(x, "float32"), x))
            return Cast(x.ty, bindings.close(single(bindings, wide)))
        case "bfloat16":
            return _to_bfloat16(bindings, single(bindings, bindings.argument(_from_bfloat16(x))))
        case _:
            return bindings.close(double(bindings, bindings.argument(x)))


def _element(name: str, x: Expr, integers: bool = False) -> str:
    """Element dtype of a scalar or a vector, if it is one that `name` takes."""
    ty = getattr(x, "ty", None)
    element = str(ty.dtype.with_lanes(1)) if isinstance(ty, PrimType) else type(x).__name__
    if element in _INFINITY or (integers and element.startswith(("int", "uint"))):
        return element
    taken = ", ".join((*_INFINITY, "integers") if integers else _INFINITY)
    raise TypeError(f"{name} takes TIRx expressions of {taken}, not {element}: {x}; cast it first")


def _with_element(x: Expr, element: str) -> PrimType:
    """Type with the lanes of `x` and another element dtype."""
    lanes = x.ty.dtype.lanes
    return PrimType(element if lanes == 1 else f"{element}x{lanes}")


def _constant(x: Expr, value: float) -> Expr:
    return tirx.const(value, str(x.ty))


def _bits(x: Expr) -> Expr:
    return tirx.reinterpret(_with_element(x, f"int{x.ty.dtype.bits}"), x)


def _float32(bits: Expr) -> Expr:
    return tirx.reinterpret(_with_element(bits, "float32"), bits)


def _magnitude(x: Expr) -> Expr:
    return _float32(_bits(x) & 0x7FFFFFFF)


def _with_sign_of(x: Expr, magnitude: Expr) -> Expr:
    return _float32(_bits(magnitude) | (_bits(x) & _SIGN))


def _from_bfloat16(x: Expr) -> Expr:
    """Widen by hand: inside a `Let`, TVM converts the bits of a bfloat16 as if they were an integer."""
    return _float32(Cast(_with_element(x, "int32"), _bits(x)) << 16)


def _to_bfloat16(bindings: _Bindings, value: Expr) -> Expr:
    """Close the bindings around a float32, rounded to nearest even."""
    bits = _bits(bindings.bind(value))  # the low bits of a NaN are zero here, so that it stays one
    high = Cast(_with_element(value, "int16"), (bits + ((bits >> 16 & 1) + 0x7FFF)) >> 16)
    return tirx.reinterpret(_with_element(value, "bfloat16"), bindings.close(high))


def _at_most(x: Expr, bound: float) -> Expr:
    """Clamp from above; a NaN compares false and passes."""
    return Select(x > bound, _constant(x, bound), x)


def _clamp(bindings: _Bindings, x: Expr, low: float, high: float) -> Expr:
    return bindings.bind(_at_most(bindings.bind(Select(x < low, _constant(x, low), x)), high))


def _polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Horner's scheme; `coefficients` from the lowest power."""
    value = _constant(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


def _reduce_by_ln2(bindings: _Bindings, x: Expr, bias: int) -> tuple[Expr, Expr]:
    """Split x = n ln(2) + r; return r and a float whose low bits are those of n + bias."""
    biased = bindings.bind(x * _LOG2_E + (_ROUND + bias))
    n = bindings.bind(biased - (_ROUND + bias))
    return bindings.bind((x - n * _LN2_HIGH) - n * _LN2_LOW), biased


def _exp_of_residual(r: Expr) -> Expr:
    return (_polynomial(r, _EXP) * (r * r) + r) + 1.0


def _scale(mantissa: Expr, biased: Expr) -> Expr:
    """`mantissa` times 2**n, where the low bits of `biased` are those of n + 2 * 127.

    Two steps of about n / 2: one could neither reach a subnormal nor overflow, from a finite normal scale.
    """
    lower = _float32((_bits(biased) >> 1) << _MANTISSA_BITS)
    upper = _float32(((_bits(biased) + 1) >> 1) << _MANTISSA_BITS)
    return mantissa * lower * upper


def _exp(bindings: _Bindings, x: Expr) -> Expr:
    clamped = _clamp(bindings, x, -104.5, 89.0)
    r, biased = _reduce_by_ln2(bindings, clamped, 2 * _EXPONENT_BIAS)
    return _scale(_exp_of_residual(r), biased)


def _exp2(bindings: _Bindings, x: Expr) -> Expr:
    clamped = _clamp(bindings, x, -151.0, 129.0)
    shift = _ROUND + 2 * _EXPONENT_BIAS
    biased = bindings.bind(clamped + shift)
    r = bindings.bind(clamped - (biased - shift))
    return _scale(_polynomial(r, _EXP2) * r + 1.0, biased)


def _split_exponent(bindings: _Bindings, x: Expr) -> tuple[Expr, Expr]:
    """e and f of |x| = 2**e (1 + f), both float32, with 1 + f in [sqrt(1/2), sqrt(2))."""
    subnormal = x < 2.0**-126
    # Without the sign the subtraction below cannot overflow, which would be undefined.
    normal = bindings.bind(_magnitude(Select(subnormal, x * 2.0**25, x)))
    offset = _bits(normal) - _SQRT_HALF_BITS
    f = bindings.bind(_float32(_bits(normal) - (offset & -(1 << _MANTISSA_BITS))) - 1.0)
    correction = Select(subnormal, _constant(x, -25.0), _constant(x, 0.0))
    return bindings.bind(Cast(x.ty, offset >> _MANTISSA_BITS) + correction), f


def _outside_the_domain(x: Expr, y: Expr) -> Expr:
    """`y`, except where a logarithm of `x` is infinite or NaN."""
    at_most_zero = Select(x < 0.0, _constant(x, float("nan")), _constant(x, float("-inf")))
    return Select(x <= 0.0, at_most_zero, Select(x < float("inf"), y, x))


def _log(bindings: _Bindings, x: Expr) -> Expr:
    e, f = _split_exponent(bindings, x)
    tail = f * f * (_polynomial(f, _LOG) * f - 0.5) + e * _LN2_LOW
    return _outside_the_domain(x, bindings.bind((tail + f) + e * _LN2_HIGH))


def _log2(bindings: _Bindings, x: Expr) -> Expr:
    e, f = _split_exponent(bindings, x)
    return _outside_the_domain(x, bindings.bind((_polynomial(f, _LOG2) * f + f) + e))


def _tanh(bindings: _Bindings, x: Expr) -> Expr:
    z = bindings.bind(_magnitude(x))
    square = bindings.bind(z * z)
    near_zero = _polynomial(square, _TANH) * square * z + z
    doubled = bindings.bind(_at_most(z * 2.0, 18.5))  # 1 - 2 / (exp(18.5) + 1) rounds to 1
    r, biased = _reduce_by_ln2(bindings, doubled, _EXPONENT_BIAS)
    exponential = _exp_of_residual(r) * _float32(_bits(biased) << _MANTISSA_BITS)
    elsewhere = 1.0 - _constant(x, 2.0) / (exponential + 1.0)
    return _with_sign_of(x, Select(z < 0.625, near_zero, elsewhere))


def _erf(bindings: _Bindings, x: Expr) -> Expr:
    z = bindings.bind(_at_most(_magnitude(x), 3.95))  # where erf rounds to 1
    negative_u = bindings.bind((_polynomial(z, _ERF) * z + z) * -1.0)
    r, biased = _reduce_by_ln2(bindings, negative_u, _EXPONENT_BIAS)
    scale = bindings.bind(_float32(_bits(biased) << _MANTISSA_BITS))
    negative_erf = (_polynomial(r, _EXPM1) * (r * r) + r) * scale + (scale - 1.0)
    return _with_sign_of(x, _magnitude(negative_erf))


def _sigmoid(bindings: _Bindings, x: Expr) -> Expr:
    e = bindings.bind(_exp(bindings, bindings.bind(_float32(_bits(x) | _SIGN))))
    numerator = bindings.bind(Select(x < 0.0, e, _constant(x, 1.0)))
    return numerator - numerator * (e / (e + 1.0))


def _sigmoid_float64(bindings: _Bindings, x: Expr) -> Expr:
    e = bindings.bind(tirx.exp(Select(x < 0.0, x, x * -1.0)))
    return Select(x < 0.0, e, _constant(x, 1.0)) / (e + 1.0)


def _libm(name: str) -> Rule:
    """Rule that calls a double precision function of the libm on each lane."""

    def rule(_: _Bindings, x: Expr) -> Expr:
        lanes = list(range(x.ty.dtype.lanes))
        elements = [Shuffle([x], [lane]) for lane in lanes] if len(lanes) > 1 else [x]
        results = [tirx.call_pure_extern("float64", name, element) for element in elements]
        return Shuffle(results, lanes) if len(lanes) > 1 else results[0]

    return rule


def _extremum(name: str, a: Expr, b: Expr, bind: Bind | None, integer: Builder, precedes: Builder) -> Expr:
    element = _element(name, a, integers=True)
    if element != _element(name, b, integers=True) or a.ty.dtype.lanes != b.ty.dtype.lanes:
        raise TypeError(f"{name} takes operands of one dtype, not {a.ty} and {b.ty}: {a}, {b}; cast one")
    if element not in _INFINITY:
        return integer(a, b)
    bindings = _Bindings(name, bind)
    narrow = element == "bfloat16"
    u, v = (bindings.argument(_from_bfloat16(x) if narrow else x) for x in (a, b))
    # Where v is NaN the comparison is false and selects it; only a NaN in u needs the test.
    result = Select(isnan(u), u, Select(precedes(u, v), u, v))
    return _to_bfloat16(bindings, result) if narrow else bindings.close(result)


ELEMENTARY: dict[str, Builder] = {
    builder.__name__: builder for builder in (exp, exp2, log, log2, tanh, erf, sigmoid)
}
