"""Elementary functions as TIRx expressions that a vector loop can afford.

In a vector loop TVM lowers ``T.exp`` to one scalar ``expf`` for each lane, and its simplifier folds
``x != x`` to false.  The builders here return arithmetic instead, at most 2 ulp from the exact value for every
float32: no library call, no branch (only ``Select``), no conversion of a float to an integer, so NaN and
out-of-range arguments need no care.  An argument is a scalar or a vector; the result has its dtype.

=========  ==================  ============================================================================
dtype      `isnan`, maxima     the elementary functions
=========  ==================  ============================================================================
float32    yes                 polynomials, measured below
float16    yes                 computed in float32 and rounded once
bfloat16   yes                 computed in float32 and rounded once
float64    yes                 the platform's libm, lane by lane
integers   yes                 TypeError
=========  ==================  ============================================================================

An intermediate value is used several times, so it is bound by a `Let`, which TVM takes with vector values too
(but not with boolean vectors).  Do not put one returned expression in two places: `VectorizeLoop` refuses a
variable that is bound twice.  Bind it: ``let(exp(x), lambda y: y * y)``.

Every polynomial was fitted here: a Remez exchange on 4001 Chebyshev points of a 50-digit reference, weighted to
give the relative error of the result; then the coefficients were rounded to float32 one after another from the
lowest, and the others fitted again each time.  The ulp bounds are the largest error over *all* float32 arguments
against float64, in units of the last place of the float64 result (2**-149 for subnormals), first with fused
multiply-add, then without (plain x86-64).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.ir import Expr, PrimType
from tvm.tirx import Cast, Let, Select, Shuffle, Var

_LOG2_E = 1.44269504
# ln(2) = high + low. The product of `high`, 10 bits long, and an exponent is exact without a fused multiply-add.
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.12194442e-4
# x + _ROUND, for |x| < 2**22, holds the nearest integer of x in its low bits; subtracting _ROUND gives it as a float.
_ROUND = 1.5 * 2.0**23
_SIGN = -0x80000000
_MAGNITUDE = 0x7FFFFFFF
_EXPONENT_BIAS = 127
_MANTISSA_BITS = 23
_SMALLEST_NORMAL = 2.0**-126
_SQRT_HALF_BITS = 0x3F3504F3

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
# -log(erfc(z)) / z - 1 for 0 <= z <= 3.93, weighted by what it does to erf(z), error 2**-27.8
_ERF = (0.12837917, 0.63661957, 0.102776304, -0.019147824, -0.00016949463,
        0.0016756592, -0.00063734996, 0.0001188567, -9.387414e-06)  # fmt: skip


class _Bindings:
    """Straight-line code: values bound in order, then closed around a result as nested `Let` expressions."""

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


Rule = Callable[[_Bindings, Var], Expr]


def let(value: Expr, body: Callable[[Var], Expr]) -> Expr:
    """Return ``body(v)`` with `v` bound to `value`, which is then evaluated once.

    Parameters
    ----------
    value : Expr
        A scalar or a vector of numbers; TVM cannot bind a vector of booleans.
    body : Callable
        Builds the expression that uses the variable.
    """
    bindings = _Bindings()
    return bindings.close(body(bindings.bind(value)))


def exp(x: Expr) -> Expr:
    """e**x; at most EXP_FMA ulp (EXP_PLAIN without FMA).

    x = n ln(2) + r with |r| <= ln(2)/2 in two steps (Cody and Waite), a polynomial of degree 6 in r, and two
    multiplications by powers of two, of which only the second can round to a subnormal or overflow.
    """
    return _dispatch("exp", x, _exp, tirx.exp)


def exp2(x: Expr) -> Expr:
    """2**x; at most EXP2_FMA ulp (EXP2_PLAIN without FMA).

    x = n + r with |r| <= 1/2, exactly; a polynomial of degree 6 in r, scaled as in `exp`.
    """
    return _dispatch("exp2", x, _exp2, tirx.exp2)


def log(x: Expr) -> Expr:
    """Natural logarithm; at most LOG_FMA ulp (LOG_PLAIN without FMA); -inf at zero, NaN below.

    x = 2**e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), taken from the bits after a subnormal is scaled to a
    normal number; f - f**2/2 + f**3 P(f) with P of degree 7, plus e ln(2) in two parts.
    """
    return _dispatch("log", x, _log, tirx.log)


def log2(x: Expr) -> Expr:
    """Logarithm to the base 2; at most LOG2_FMA ulp (LOG2_PLAIN without FMA); -inf at zero, NaN below.

    Reduced as in `log`; e + (f + f P(f)) with P of degree 9, so a power of two has an exact result.
    """
    return _dispatch("log2", x, _log2, tirx.log2)


def tanh(x: Expr) -> Expr:
    """Hyperbolic tangent; at most TANH_FMA ulp (TANH_PLAIN without FMA).

    With z = |x|: z + z**3 P(z**2), P of degree 4, below 0.625, and 1 - 2 / (exp(2 z) + 1) above; the sign bit is
    copied.  In float64 TVM's own lowering, a quotient of exponentials, loses every digit of a small result;
    the libm's is called instead.
    """
    return _dispatch("tanh", x, _tanh, _libm("tanh"))


def erf(x: Expr) -> Expr:
    """Error function; at most ERF_FMA ulp (ERF_PLAIN without FMA).

    With z = |x|: u = -log(erfc(z)) = z + z P(z), P of degree 8, and erf = 1 - exp(-u) without cancellation, from
    the polynomial of exp(r) - 1; the sign bit is copied.
    """
    return _dispatch("erf", x, _erf, _libm("erf"))


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)); at most SIGMOID_FMA ulp (SIGMOID_PLAIN without FMA).

    With e = exp(-|x|) and q = e / (1 + e): 1 - q for x >= 0, and e - e q below, which keeps the relative
    accuracy of e down to the subnormals and rounds less often than q itself.
    """
    return _dispatch("sigmoid", x, _sigmoid, lambda wide: let(wide, _sigmoid_float64))


def isnan(x: Expr) -> Expr:
    """Whether `x` is NaN, as a boolean of as many lanes, from its bits: no simplifier can fold it."""
    if _is_integer("isnan", x):
        return tirx.const(False, _with_element(x, "bool"))
    return _isnan(x)


def maximum(a: Expr, b: Expr) -> Expr:
    """Larger of `a` and `b`, or NaN if either is NaN; of two zeros of different sign, `b`."""
    return _extremum("maximum", a, b, tirx.max, lambda u, v: u > v)


def minimum(a: Expr, b: Expr) -> Expr:
    """Smaller of `a` and `b`, or NaN if either is NaN; of two zeros of different sign, `b`."""
    return _extremum("minimum", a, b, tirx.min, lambda u, v: u < v)


def _dispatch(name: str, x: Expr, single: Rule, double: Callable[[Expr], Expr]) -> Expr:
    """Apply the float32 rule, or the float64 builder, after the element dtype of `x`."""

    def in_float32(value: Expr) -> Expr:
        bindings = _Bindings()
        return bindings.close(single(bindings, bindings.bind(value)))

    match _element(name, x):
        case "float32":
            return in_float32(x)
        case "float16" | "bfloat16":
            return Cast(x.ty, in_float32(Cast(_with_element(x, "float32"), x)))
        case "float64":
            return double(x)
        case other:
            raise TypeError(
                f"{name} takes float16, bfloat16, float32 or float64, not {other}: {x}; cast the argument first"
            )


def _element(name: str, x: Expr) -> str:
    """Element dtype of a scalar or fixed-length vector expression."""
    ty = getattr(x, "ty", None)
    if not isinstance(ty, PrimType):
        raise TypeError(f"{name} takes a TIRx scalar or vector expression, not {type(x).__name__}: {x}")
    return str(ty.dtype.with_lanes(1))


def _is_integer(name: str, x: Expr) -> bool:
    element = _element(name, x)
    if element in ("float16", "bfloat16", "float32", "float64"):
        return False
    if element.startswith(("int", "uint")):
        return True
    raise TypeError(
        f"{name} takes integers, float16, bfloat16, float32 or float64, not {element}: {x}; "
        "cast the argument first"
    )


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


def _at_least(x: Expr, bound: float) -> Expr:
    """Clamp from below; a NaN compares false and passes."""
    return Select(x < bound, _constant(x, bound), x)


def _at_most(x: Expr, bound: float) -> Expr:
    """Clamp from above; a NaN compares false and passes."""
    return Select(x > bound, _constant(x, bound), x)


def _polynomial(x: Var, coefficients: Sequence[float]) -> Expr:
    """Horner's scheme; `coefficients` from the lowest power."""
    *rest, highest = coefficients
    value = _constant(x, highest)
    for coefficient in reversed(rest):
        value = value * x + coefficient
    return value


def _reduce_by_ln2(bindings: _Bindings, x: Var, bias: int) -> tuple[Var, Var]:
    """Split x = n ln(2) + r; return `r` and the bits of a float whose low bits are those of n + bias."""
    rounded = bindings.bind(x * _LOG2_E + (_ROUND + bias))
    n = bindings.bind(rounded - (_ROUND + bias))
    return bindings.bind((x - n * _LN2_HIGH) - n * _LN2_LOW), bindings.bind(_bits(rounded))


def _exp_of_residual(r: Var) -> Expr:
    return (_polynomial(r, _EXP) * (r * r) + r) + 1.0


def _scale(mantissa: Expr, biased: Var) -> Expr:
    """`mantissa` times 2**n, where `biased` holds n + 2 * 127, in two steps of about n / 2.

    One step could not reach a subnormal from a normal scale, nor overflow from a finite one.
    """
    lower = _float32((biased >> 1) << _MANTISSA_BITS)
    upper = _float32(((biased + 1) >> 1) << _MANTISSA_BITS)
    return mantissa * lower * upper


def _exp(bindings: _Bindings, x: Var) -> Expr:
    low = bindings.bind(_at_least(x, -104.5))
    clamped = bindings.bind(_at_most(low, 89.0))
    r, biased = _reduce_by_ln2(bindings, clamped, 2 * _EXPONENT_BIAS)
    return _scale(_exp_of_residual(r), biased)


def _exp2(bindings: _Bindings, x: Var) -> Expr:
    low = bindings.bind(_at_least(x, -151.0))
    clamped = bindings.bind(_at_most(low, 129.0))
    shift = _ROUND + 2 * _EXPONENT_BIAS
    rounded = bindings.bind(clamped + shift)
    r = bindings.bind(clamped - (rounded - shift))
    return _scale(_polynomial(r, _EXP2) * r + 1.0, bindings.bind(_bits(rounded)))


def _split_exponent(bindings: _Bindings, x: Var) -> tuple[Var, Var]:
    """e and f of \\|x| = 2**e (1 + f), both float32, with 1 + f in [sqrt(1/2), sqrt(2))."""
    subnormal = x < _SMALLEST_NORMAL
    # The sign is dropped so that the subtraction cannot overflow, which is undefined in LLVM.
    bits = bindings.bind(_bits(Select(subnormal, x * 2.0**25, x)) & _MAGNITUDE)
    e = bindings.bind((bits - _SQRT_HALF_BITS) >> _MANTISSA_BITS)
    f = bindings.bind(_float32(bits - (e << _MANTISSA_BITS)) - 1.0)
    correction = Select(subnormal, _constant(x, -25.0), _constant(x, 0.0))
    return bindings.bind(Cast(x.ty, e) + correction), f


def _outside_the_domain(x: Var, y: Expr) -> Expr:
    """`y`, except where a logarithm of `x` is infinite or NaN."""
    infinity = float("inf")
    at_most_zero = Select(x < 0.0, _constant(x, float("nan")), _constant(x, -infinity))
    return Select(x <= 0.0, at_most_zero, Select(x < infinity, y, x))


def _log(bindings: _Bindings, x: Var) -> Expr:
    e, f = _split_exponent(bindings, x)
    tail = f * f * (_polynomial(f, _LOG) * f - 0.5) + e * _LN2_LOW
    return _outside_the_domain(x, bindings.bind((tail + f) + e * _LN2_HIGH))


def _log2(bindings: _Bindings, x: Var) -> Expr:
    e, f = _split_exponent(bindings, x)
    return _outside_the_domain(x, bindings.bind((_polynomial(f, _LOG2) * f + f) + e))


def _tanh(bindings: _Bindings, x: Var) -> Expr:
    bits = bindings.bind(_bits(x))
    z = bindings.bind(_float32(bits & _MAGNITUDE))
    square = bindings.bind(z * z)
    near_zero = _polynomial(square, _TANH) * square * z + z
    doubled = bindings.bind(_at_most(z * 2.0, 18.5))  # 1 - 2 / (exp(18.5) + 1) rounds to 1
    r, biased = _reduce_by_ln2(bindings, doubled, _EXPONENT_BIAS)
    exponential = _exp_of_residual(r) * _float32(biased << _MANTISSA_BITS)
    elsewhere = 1.0 - _constant(x, 2.0) / (exponential + 1.0)
    return _float32(_bits(Select(z < 0.625, near_zero, elsewhere)) | (bits & _SIGN))


def _erf(bindings: _Bindings, x: Var) -> Expr:
    bits = bindings.bind(_bits(x))
    z = bindings.bind(_at_most(_float32(bits & _MAGNITUDE), 3.95))  # where erf rounds to 1
    negative_u = bindings.bind((_polynomial(z, _ERF) * z + z) * -1.0)
    r, biased = _reduce_by_ln2(bindings, negative_u, _EXPONENT_BIAS)
    scale = bindings.bind(_float32(biased << _MANTISSA_BITS))
    negative_erf = (_polynomial(r, _EXPM1) * (r * r) + r) * scale + (scale - 1.0)
    return _float32((_bits(negative_erf) & _MAGNITUDE) | (bits & _SIGN))


def _sigmoid(bindings: _Bindings, x: Var) -> Expr:
    e = bindings.bind(_exp(bindings, bindings.bind(_float32(_bits(x) | _SIGN))))
    numerator = bindings.bind(Select(x < 0.0, e, _constant(x, 1.0)))
    return numerator - numerator * (e / (e + 1.0))


def _sigmoid_float64(x: Var) -> Expr:
    def quotient(e: Var) -> Expr:
        return Select(x < 0.0, e, _constant(x, 1.0)) / (e + 1.0)

    return let(tirx.exp(Select(x < 0.0, x, x * -1.0)), quotient)


def _libm(name: str) -> Callable[[Expr], Expr]:
    """Builder that calls a double precision libm function on each lane."""

    def build(x: Expr) -> Expr:
        lanes = x.ty.dtype.lanes
        if lanes == 1:
            return tirx.call_pure_extern("float64", name, x)

        def each_lane(vector: Var) -> Expr:
            results = [tirx.call_pure_extern("float64", name, Shuffle([vector], [i])) for i in range(lanes)]
            return Shuffle(results, list(range(lanes)))

        return let(x, each_lane)

    return build


def _isnan(x: Expr) -> Expr:
    """NaN test of a float: the magnitude bits exceed those of infinity."""
    infinity = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF << 52}
    bits = x.ty.dtype.bits
    integer = str(_with_element(x, f"int{bits}"))
    magnitude = _bits(x) & tirx.const(2 ** (bits - 1) - 1, integer)
    return magnitude > tirx.const(infinity[str(x.ty.dtype.with_lanes(1))], integer)


def _extremum(
    name: str,
    a: Expr,
    b: Expr,
    of_integers: Callable[[Expr, Expr], Expr],
    precedes: Callable[[Expr, Expr], Expr],
) -> Expr:
    if _element(name, a) != _element(name, b) or a.ty.dtype.lanes != b.ty.dtype.lanes:
        raise TypeError(f"{name} takes two operands of one dtype, not {a.ty} and {b.ty}: {a}, {b}; cast one of them")
    if _is_integer(name, a):
        return of_integers(a, b)
    # Where b is NaN the comparison is false and selects it; only a NaN in a needs the test.
    return let(a, lambda u: let(b, lambda v: Select(_isnan(u), u, Select(precedes(u, v), u, v))))


ELEMENTARY: dict[str, Callable[[Expr], Expr]] = {
    "exp": exp,
    "exp2": exp2,
    "log": log,
    "log2": log2,
    "tanh": tanh,
    "erf": erf,
    "sigmoid": sigmoid,
}
