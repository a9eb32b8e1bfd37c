"""The C dialects of devices: lowered statements in terms that their code generators print rightly.

TVM's generators for devices print expressions as C, which differs from what LLVM makes of the same
expression. So statements are rewritten before a kernel is made of them:

* Floating-point literals are printed with seven digits (not for CUDA), and become bit patterns where
  that is not enough. The smallest int32 has no literal.
* Reinterpretations are hoisted out of the arms of conditions (OpenCL, CUDA), and become built-in functions.
* C computes 8- and 16-bit integers in 32 bits; sums, products and shifts are cut to their width.
* There are no 128-bit integers: wrapping arithmetic of 64 bits is done without a sign, behind casts that
  TVM's simplifier does not look through.
* The intrinsics of LLVM, and mathematical functions for which TVM would choose fast approximations,
  become functions of the dialect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.target.codegen import llvm_get_intrinsic_name
from tvm.tirx import Cast, FloatImm, For, ForKind, IntImm, call_pure_extern

__all__ = ["Dialect", "dialect_of"]

_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)
_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul)
_NARROW = ("int8", "int16", "uint8", "uint16")

#: Functions that are called by their C name, with whether CUDA's has another for float32.
_FUNCTIONS = (
    "sqrt", "floor", "ceil", "fabs", "pow", "sin", "cos", "exp", "exp2", "log", "log2", "copysign", "tanh",
    "erf",
)  # fmt: skip
_LLVM_FUNCTIONS = {"llvm.rint": "rint", "llvm.fma": "fma"}
_FENCE = "llvm.arithmetic.fence"


@dataclass(frozen=True)
class Dialect:
    """How a device's C spells things.

    Attributes
    ----------
    kind
        Of the target.
    types
        C names of TVM's scalar types.
    """

    kind: str
    types: dict[str, str] = field(hash=False)

    def rewritten(self, statement: Any) -> Any:
        """The same statement in this dialect."""
        return tvm_ffi.structural_map(
            statement,
            [
                (FloatImm, self._literal),
                (IntImm, self._integer),
                (Call, self._call),
                (Cast, self._cast),
                (_ARITHMETIC, self._arithmetic),
                (_COMPARISONS, self._comparison),
                (tirx.Mod, self._remainder),
                (tirx.Select, self._selection),
                (For, _serial),
            ],
        )

    def cast(self, value: Any, dtype: str) -> Any:
        """A C cast between integers, opaque to TVM."""
        return call_pure_extern(dtype, f"({self.types[dtype]})", value)

    def reinterpreted(self, value: Any, dtype: str) -> Any:
        """The bits of a value as another type of the same width, in an expression of its own."""
        source = str(value.ty.dtype)
        if source == dtype:
            return value
        if not (source.startswith("float") or dtype.startswith("float")):
            return self.cast(value, dtype)
        match self.kind:
            case "opencl":
                return call_pure_extern(dtype, f"as_{self.types[dtype]}", value)
            case "metal":
                return call_pure_extern(dtype, f"as_type<{self.types[dtype]}>", value)
        signed = {"uint32": "int32", "uint64": "int64"}
        if source in signed:
            value = self.cast(value, signed[source])
        names = {
            "float32": "__int_as_float",
            "float64": "__longlong_as_double",
            "int32": "__float_as_int",
            "int64": "__double_as_longlong",
        }
        converted = signed.get(dtype, dtype)
        result = call_pure_extern(converted, names[converted], value)
        return result if converted == dtype else self.cast(result, dtype)

    def function(self, name: str, dtype: str, *arguments: Any) -> Any:
        """A mathematical function of the dialect, in full precision."""
        if self.kind == "cuda" and dtype == "float32":
            name = f"{name}f"
        if self.kind == "metal" and name in ("sqrt", "pow", "sin", "cos", "exp", "exp2", "log", "log2"):
            name = f"precise::{name}"
        return call_pure_extern(dtype, name, *arguments)

    def _literal(self, node: Any) -> Any:
        dtype = str(node.ty.dtype)
        number = float(node.value)
        kind = np.dtype(dtype)
        if np.isfinite(number) and (self.kind == "cuda" or kind.type(f"{number:.6e}") == kind.type(number)):
            return node
        if kind.itemsize == 4:
            word = int(np.float32(number).view(np.int32))
            return self.reinterpreted(IntImm("int32", word), dtype)
        return self.reinterpreted(IntImm("int64", int(np.float64(number).view(np.int64))), dtype)

    def _integer(self, node: Any) -> Any:
        """In C a minus sign is no part of a literal, and 2147483648 is no int."""
        if int(node.value) == -(1 << 31) and _dtype(node) == "int32":
            return self.cast(IntImm("int64", -(1 << 31)), "int32")
        return node

    def _call(self, node: Any) -> Any:
        name = str(getattr(node.op, "name", ""))
        dtype = _dtype(node)
        match name:
            case "tirx.reinterpret" if dtype is not None:
                return self.reinterpreted(node.args[0], dtype)
            case "tirx.call_llvm_pure_intrin":
                return self._intrinsic(str(llvm_get_intrinsic_name(int(node.args[0]))), dtype, node.args[1:])
            case "tirx.call_pure_extern" if str(node.args[0].value) in ("tanh", "erf"):
                return self.function(str(node.args[0].value), str(dtype), *node.args[1:])
            case "tirx.shift_left" | "tirx.bitwise_not" if dtype in _NARROW:
                wide = [_widened(argument) for argument in node.args]
                build = tirx.shift_left if name == "tirx.shift_left" else tirx.bitwise_not
                return self.cast(build(*wide), dtype)
        short = name.removeprefix("tirx.")
        if short in _FUNCTIONS and dtype in ("float32", "float64"):
            return self.function(short, dtype, *node.args)
        return node

    def _intrinsic(self, name: str, dtype: Any, arguments: Any) -> Any:
        if name in _LLVM_FUNCTIONS:
            return self.function(_LLVM_FUNCTIONS[name], dtype, *arguments)
        if name != _FENCE:
            raise TypeError(f"no {self.kind} function for {name}")
        (value,) = arguments
        if not isinstance(value, tirx.Mul):
            return value
        if self.kind == "cuda":
            product = "__fmul_rn" if dtype == "float32" else "__dmul_rn"
            return call_pure_extern(dtype, product, value.a, value.b)
        if self.kind == "metal":
            return call_pure_extern(dtype, "fma", value.a, value.b, FloatImm(dtype, -0.0))
        word = "int32" if dtype == "float32" else "int64"
        return self.reinterpreted(self.reinterpreted(value, word), dtype)

    def _cast(self, node: Any) -> Any:
        dtype = _dtype(node)
        if dtype != "int128" and _dtype(node.value) == "int128":
            return self.cast(self._modular(node.value), str(dtype))
        return node

    def _modular(self, node: Any) -> Any:
        """A 128-bit expression modulo 2**64, as ``uint64``."""
        match node:
            case Cast():
                return self.cast(node.value, "uint64")
            case IntImm():
                low = int(node.value) & ((1 << 64) - 1)
                return self.cast(IntImm("int64", low - (1 << 64) if low >> 63 else low), "uint64")
            case tirx.Add() | tirx.Sub() | tirx.Mul():
                return type(node)(self._modular(node.a), self._modular(node.b))
        raise TypeError(f"a 128-bit {type(node).__name__} has no {self.kind} code: {node}")

    def _arithmetic(self, node: Any) -> Any:
        dtype = _dtype(node)
        if dtype not in _NARROW:
            return node
        return self.cast(type(node)(_widened(node.a), _widened(node.b)), dtype)

    def _comparison(self, node: Any) -> Any:
        if _dtype(node.a) != "int128":
            return node
        sources = {str(_dtype(side.value)) for side in (node.a, node.b) if isinstance(side, Cast)}
        if len(sources) != 1:
            raise TypeError(f"a comparison of 128-bit integers has no {self.kind} code: {node}")
        (source,) = sources
        # 32-bit integers are compared as 64-bit ones, about which TVM's reasoning is right.
        wide = "int64" if source in ("int32", "uint32") else source

        def side(part: Any) -> Any:
            if isinstance(part, Cast):
                return Cast(wide, part.value) if wide != source else part.value
            number = int(part.value)
            if wide == "uint64" and number >= 1 << 63:
                return self.cast(IntImm("int64", number - (1 << 64)), "uint64")
            value = IntImm(wide, number)
            return self.cast(value, wide) if source == wide else value

        return type(node)(side(node.a), side(node.b))

    def _selection(self, node: Any) -> Any:
        """The arms of a choice are promoted in C, too, and OpenCL's ``select`` wants one type."""
        dtype = _dtype(node)
        if dtype not in _NARROW:
            return node
        arms = _widened(node.true_value), _widened(node.false_value)
        return self.cast(tirx.Select(node.condition, *arms), dtype)

    def _remainder(self, node: Any) -> Any:
        dtype = str(_dtype(node))
        return self.function("fmod", dtype, node.a, node.b) if dtype.startswith("float") else node


def _serial(node: Any) -> Any:
    if node.kind in (ForKind.SERIAL,):
        return node
    return For(node.loop_var, node.min, node.extent, ForKind.SERIAL, node.body)


def _dtype(node: Any) -> str | None:
    found = getattr(node.ty, "dtype", None)
    return None if found is None else str(found)


def _widened(value: Any) -> Any:
    return IntImm("int32", int(value.value)) if isinstance(value, IntImm) else Cast("int32", value)


_OPENCL_TYPES = {
    "int8": "char", "int16": "short", "int32": "int", "int64": "long",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
    "float32": "float", "float64": "double",
}  # fmt: skip
_CUDA_TYPES = {
    f"{sign}int{width}": f"{sign}int{width}_t" for sign in ("", "u") for width in (8, 16, 32, 64)
} | {
    "float32": "float",
    "float64": "double",
}
_DIALECTS: dict[str, Callable[[], Dialect]] = {
    "opencl": lambda: Dialect("opencl", _OPENCL_TYPES),
    "metal": lambda: Dialect("metal", _OPENCL_TYPES),
    "cuda": lambda: Dialect("cuda", _CUDA_TYPES),
}


def dialect_of(kind: str) -> Dialect:
    """The dialect of a kind of target that has kernels."""
    return _DIALECTS[kind]()
