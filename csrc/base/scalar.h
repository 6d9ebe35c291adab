// A number as Python gives it: bool, int, float or complex, or nothing.
// May include: base.
// Invariant: `kind` alone says which member is valid.
#pragma once
#include "base/dtype.h"
#include "base/error.h"

namespace clew {

[[noreturn]] void fail_too_big(DType d, uint64_t u);  // a whole number for elements of d

struct Scalar {
  enum class Kind : uint8_t { None, Bool, Int, Big, Float, Complex };
  Kind kind = Kind::None;
  union {
    int64_t i;
    uint64_t u;  // of Big, a whole number from 2**63 to 2**64 - 1
    double re;
  };
  double im = 0;

  Scalar() : i(0) {}
  Scalar(bool v) : kind(Kind::Bool), i(v) {}
  Scalar(int v) : kind(Kind::Int), i(v) {}
  Scalar(int64_t v) : kind(Kind::Int), i(v) {}
  Scalar(uint64_t v) : kind(v >> 63 ? Kind::Big : Kind::Int), u(v) {}
  Scalar(double v) : kind(Kind::Float), re(v) {}
  Scalar(c128 v) : kind(Kind::Complex), re(v.real()), im(v.imag()) {}

  bool has_value() const { return kind != Kind::None; }
  bool is_complex() const { return kind == Kind::Complex; }
  bool is_float() const { return kind == Kind::Float; }
  bool is_integral() const { return kind == Kind::Bool || kind == Kind::Int || is_big(); }
  bool is_big() const { return kind == Kind::Big; }
  // The value as element type T; complex to real keeps the real part. A number that only uint64
  // holds does not wrap around.
  template <class T> T to() const {
    switch (kind) {
      case Kind::Bool:
      case Kind::Int: return convert<T>(i);
      case Kind::Big:
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> &&
                      !std::is_same_v<T, uint64_t>)
          fail_too_big(dtype_of<T>(), u);
        else
          return convert<T>(u);
      case Kind::Float: return convert<T>(re);
      case Kind::Complex: return convert<T>(c128(re, im));
      default: return T{};
    }
  }
  double to_double() const { return to<double>(); }
  int64_t to_int() const { return to<int64_t>(); }
  // The dtype a lone Python number has before promotion: bool, int64, float64 (stands for default),
  // complex128.
  DType dtype() const {
    switch (kind) {
      case Kind::Bool: return DType::Bool;
      case Kind::Int: return DType::Int64;
      case Kind::Big: return DType::UInt64;
      case Kind::Complex: return DType::Complex128;
      default: return DType::Float64;
    }
  }
  bool equals(double v) const {
    return kind == Kind::Float     ? re == v
           : kind == Kind::Complex ? (re == v && im == 0)
                                   : to_double() == v;
  }
};

}  // namespace clew
