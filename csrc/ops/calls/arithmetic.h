// Arithmetic as C++ functions and operators, for gradient rules and composites.
// May include: graph/op.h.
// Invariant: each function only calls apply() with its OpDef.
#pragma once
#include "graph/op.h"

namespace clew {

Tensor add(const Tensor& input, const Tensor& other, const Scalar& alpha = 1);
Tensor sub(const Tensor& input, const Tensor& other, const Scalar& alpha = 1);
Tensor mul(const Tensor& input, const Tensor& other);
Tensor div(const Tensor& input, const Tensor& other);
Tensor pow(const Tensor& input, const Tensor& exponent);
Tensor pow(const Tensor& input, const Scalar& exponent);
Tensor neg(const Tensor& input);
Tensor square(const Tensor& input);
Tensor reciprocal(const Tensor& input);
Tensor abs(const Tensor& input);
Tensor sign(const Tensor& input);
Tensor sgn(const Tensor& input);

// A Python number as an operand: weak in type promotion.
Tensor number(const Scalar& value);

inline Scalar conj_scalar(const Scalar& s) {
  return s.is_complex() ? Scalar(c128(s.re, -s.im)) : s;
}

// Input i of a recorded call for use in its gradient rule: a Python number becomes a tensor of the
// gradient's dtype, so that computing with it alone does not fall back to the default dtype's
// precision.
inline Tensor operand(const Vjp& c, int i) {
  Tensor t = c.in(i);
  if (!t.is_wrapped_number()) return t;
  return scalar_tensor(item(t), c.grad().dtype());
}

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return add(a, number(b)); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return sub(a, number(b)); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return mul(a, number(b)); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return div(a, number(b)); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return add(number(a), b); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return sub(number(a), b); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return mul(number(a), b); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return div(number(a), b); }

}  // namespace clew
