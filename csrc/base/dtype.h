// Element types: the enum, their properties, type promotion, and dispatch from enum to C++ type.
// May include: base/half.h, base/stored_types.h.
// Invariant: the enum order is the promotion order inside each category; the types that are only
// stored come last.
#pragma once
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/half.h"
#include "base/stored_types.h"

namespace clew {

enum class DType : uint8_t {
  Bool,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
  // Kept and converted, not computed with.
  Float8E4M3FN,
  Float8E5M2,
  Float8E4M3FNUZ,
  Float8E5M2FNUZ,
  Float8E8M0FNU,
  Complex32
};
constexpr int num_dtypes = 21;

using c64 = std::complex<float>;
using c128 = std::complex<double>;

template <class T> inline constexpr bool is_complex_v = false;
template <> inline constexpr bool is_complex_v<c64> = true;
template <> inline constexpr bool is_complex_v<c128> = true;
template <> inline constexpr bool is_complex_v<c32> = true;
template <class T> inline constexpr bool is_float8_v = false;
template <int exponent, int bias, Top top>
inline constexpr bool is_float8_v<float8<exponent, bias, top>> = true;
template <> inline constexpr bool is_float8_v<f8e8m0fnu> = true;
template <class T>
inline constexpr bool is_half_v = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
template <class T>
inline constexpr bool is_float_v =
    std::is_same_v<T, float> || std::is_same_v<T, double> || is_half_v<T> || is_float8_v<T>;

// The type arithmetic is done in: float for the 16-bit and 8-bit floats, the type itself otherwise.
template <class T> struct compute_type {
  using type = std::conditional_t<is_float8_v<T>, float, T>;
};
template <> struct compute_type<f16> { using type = float; };
template <> struct compute_type<bf16> { using type = float; };
template <class T> using compute_t = typename compute_type<T>::type;

// The type long sums are kept in.
template <class T> struct accumulate_type { using type = T; };
template <> struct accumulate_type<bool> { using type = int64_t; };
template <> struct accumulate_type<uint8_t> { using type = int64_t; };
template <> struct accumulate_type<uint16_t> { using type = int64_t; };
template <> struct accumulate_type<uint32_t> { using type = int64_t; };
template <> struct accumulate_type<int8_t> { using type = int64_t; };
template <> struct accumulate_type<int16_t> { using type = int64_t; };
template <> struct accumulate_type<int32_t> { using type = int64_t; };
template <> struct accumulate_type<f16> { using type = float; };
template <> struct accumulate_type<bf16> { using type = float; };
template <class T> using accumulate_t = typename accumulate_type<T>::type;

template <class T> constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::UInt8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return DType::UInt16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return DType::UInt32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return DType::UInt64;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::Int8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::Int16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::Int32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::Int64;
  else if constexpr (std::is_same_v<T, f16>)
    return DType::Float16;
  else if constexpr (std::is_same_v<T, bf16>)
    return DType::BFloat16;
  else if constexpr (std::is_same_v<T, float>)
    return DType::Float32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::Float64;
  else if constexpr (std::is_same_v<T, c64>)
    return DType::Complex64;
  else if constexpr (std::is_same_v<T, f8e4m3fn>)
    return DType::Float8E4M3FN;
  else if constexpr (std::is_same_v<T, f8e5m2>)
    return DType::Float8E5M2;
  else if constexpr (std::is_same_v<T, f8e4m3fnuz>)
    return DType::Float8E4M3FNUZ;
  else if constexpr (std::is_same_v<T, f8e5m2fnuz>)
    return DType::Float8E5M2FNUZ;
  else if constexpr (std::is_same_v<T, f8e8m0fnu>)
    return DType::Float8E8M0FNU;
  else if constexpr (std::is_same_v<T, c32>)
    return DType::Complex32;
  else
    return DType::Complex128;
}

// Not inside of the function, where compilers write the table to the stack for each call.
inline constexpr uint8_t dtype_bytes[num_dtypes] = {1, 1, 2, 4,  8, 1, 2, 4, 8, 2, 2,
                                                    4, 8, 8, 16, 1, 1, 1, 1, 1, 4};
constexpr size_t itemsize(DType d) { return dtype_bytes[static_cast<int>(d)]; }
constexpr const char* name(DType d) {
  constexpr const char* names[num_dtypes] = {
      "bool",          "uint8",       "uint16",          "uint32",          "uint64",
      "int8",          "int16",       "int32",           "int64",           "float16",
      "bfloat16",      "float32",     "float64",         "complex64",       "complex128",
      "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
      "complex32"};
  return names[static_cast<int>(d)];
}
// Kept and converted, not computed with.
constexpr bool is_stored(DType d) { return d > DType::Complex128; }
constexpr bool is_float8(DType d) { return is_stored(d) && d != DType::Complex32; }
constexpr bool is_complex(DType d) { return d >= DType::Complex64 && !is_float8(d); }
constexpr bool is_floating(DType d) {
  return (d >= DType::Float16 && d <= DType::Float64) || is_float8(d);
}
constexpr bool is_half(DType d) { return d == DType::Float16 || d == DType::BFloat16; }
constexpr bool is_inexact(DType d) { return d >= DType::Float16; }
constexpr bool is_integral(DType d) { return d <= DType::Int64; }  // bool included
// The type that elements which are only stored are widened to.
constexpr DType widened_dtype(DType d) {
  return is_float8(d) ? DType::Float32 : d == DType::Complex32 ? DType::Complex64 : d;
}
constexpr bool is_unsigned(DType d) { return d >= DType::UInt8 && d <= DType::UInt64; }
// The signed type of the same size: what sign-agnostic kernels (sums, products, equality, bits) run
// the wider unsigned types as.
constexpr DType as_signed(DType d) {
  return d == DType::UInt16   ? DType::Int16
         : d == DType::UInt32 ? DType::Int32
         : d == DType::UInt64 ? DType::Int64
                              : d;
}
constexpr DType real_of(DType d) {
  return d == DType::Complex64    ? DType::Float32
         : d == DType::Complex128 ? DType::Float64
         : d == DType::Complex32  ? DType::Float16
                                  : d;
}
[[noreturn]] void fail_complex_of(DType d);
constexpr DType complex_of(DType d) {
  if (is_float8(d)) fail_complex_of(d);
  return is_complex(d)         ? d
         : d == DType::Float64 ? DType::Complex128
         : d == DType::Float16 ? DType::Complex32
                               : DType::Complex64;
}
[[noreturn]] void fail_promotion(DType a, DType b);
DType promote_stored(DType a, DType b);
// The type both operands fit into, as PyTorch's promotion lattice has it (two tensors of equal rank
// class). An unsigned type meets a signed one in the next wider signed type; uint64 has none.
constexpr DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  if (is_stored(b)) return promote_stored(a, b);
  if (is_complex(b)) return a == DType::Float64 ? DType::Complex128 : b;
  if (is_floating(b)) {
    if (a == DType::Float16 && b == DType::BFloat16) return DType::Float32;
    return b;
  }
  if (!is_unsigned(a) || is_unsigned(b)) return b;
  if (a == DType::UInt64) fail_promotion(a, b);
  if (itemsize(b) > itemsize(a)) return b;
  return a == DType::UInt8 ? DType::Int16 : a == DType::UInt16 ? DType::Int32 : DType::Int64;
}

template <class... Ts> struct TypeList {};
using AllTypes = TypeList<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t,
                          int64_t, f16, bf16, float, double, c64, c128>;
using RealTypes = TypeList<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t,
                           int64_t, f16, bf16, float, double>;
using RealNumericTypes = TypeList<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t,
                                  int64_t, f16, bf16, float, double>;
using IntegralTypes =
    TypeList<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>;
// All but the wider unsigned types: for kernels that get as_signed() dtypes, or refuse those.
using PlainTypes =
    TypeList<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, f16, bf16, float, double, c64, c128>;
using PlainNumericTypes =
    TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, f16, bf16, float, double, c64, c128>;
using FloatTypes = TypeList<f16, bf16, float, double>;
using InexactTypes = TypeList<f16, bf16, float, double, c64, c128>;
using ComplexTypes = TypeList<c64, c128>;
using StoredTypes = TypeList<f8e4m3fn, f8e5m2, f8e4m3fnuz, f8e5m2fnuz, f8e8m0fnu, c32>;
using EveryType = TypeList<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t,
                           int64_t, f16, bf16, float, double, c64, c128, f8e4m3fn, f8e5m2,
                           f8e4m3fnuz, f8e5m2fnuz, f8e8m0fnu, c32>;
[[noreturn]] void fail_stored(DType d);

// Calls f.template operator()<T>() for the listed type that `d` names; false when it is not in the
// list. Raises for a type that is only stored, so that no kernel leaves its result unwritten.
template <class F, class... Ts> bool dispatch(DType d, TypeList<Ts...>, F&& f) {
  if (((d == dtype_of<Ts>() ? (f.template operator()<Ts>(), true) : false) || ...)) return true;
  if (is_stored(d)) fail_stored(d);
  return false;
}

// Number conversion between element types: complex to real keeps the real part, anything to bool
// tests for nonzero.
template <class To, class From> inline To convert(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (is_complex_v<From>) {
    if constexpr (is_complex_v<To>)
      return To(static_cast<typename To::value_type>(v.real()),
                static_cast<typename To::value_type>(v.imag()));
    else if constexpr (std::is_same_v<To, bool>)
      return v.real() != 0 || v.imag() != 0;
    else
      return convert<To>(v.real());
  } else if constexpr (is_complex_v<To>) {
    return To(convert<typename To::value_type>(v), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<compute_t<From>>(v) != compute_t<From>(0);
  } else if constexpr (std::is_integral_v<To> && is_float_v<From>) {
    // Out-of-range values wrap through int64 rather than being undefined.
    auto x = static_cast<double>(static_cast<compute_t<From>>(v));
    if constexpr (std::is_same_v<To, uint64_t>) {
      if (x >= 9223372036854775808.0 && x < 18446744073709551616.0) return static_cast<To>(x);
    }
    if (!(x >= -9223372036854775808.0 && x < 9223372036854775808.0))
      return static_cast<To>(INT64_MIN);
    return static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(static_cast<compute_t<From>>(v));
  }
}

}  // namespace clew
