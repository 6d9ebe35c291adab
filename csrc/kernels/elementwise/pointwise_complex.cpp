// Elementwise loops of the complex dtypes (isa_pointwise_complex.cpp has those that are met most).
// May include: base, kernels.
// Invariant: abs and angle write the real dtype.
#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/complex_quotient.h"
#include "kernels/elementwise/pointwise_loops.h"

namespace clew::kernels {

namespace {

using C = ComplexTypes;
template <class T> using real_t = typename T::value_type;

template <class T> T scale(T a, double factor) { return a * static_cast<real_t<T>>(factor); }
template <class T> bool any_nan(T a) { return std::isnan(a.real()) || std::isnan(a.imag()); }
template <class T> bool any_inf(T a) { return std::isinf(a.real()) || std::isinf(a.imag()); }

template <class T> T quotient(T a, T b) {
  if (b == T(0)) return T(a.real() / real_t<T>(0), a.imag() / real_t<T>(0));
  return a / b;
}

// Keeps the digits of a result near zero.
template <class T> T expm1(T a) {
  using R = real_t<T>;
  R half = std::sin(a.imag() / 2);
  R grown = std::expm1(a.real());
  R real = grown * std::cos(a.imag()) - 2 * half * half;
  return T(real, (grown + 1) * std::sin(a.imag()));
}
template <class T> T log1p(T a) {
  using R = real_t<T>;
  R x = a.real();
  R y = a.imag();
  bool small = std::abs(x) < R(0.5) && std::abs(y) < R(0.5);
  R real = small ? R(0.5) * std::log1p(x * (2 + x) + y * y) : std::log(std::hypot(1 + x, y));
  return T(real, std::atan2(y, 1 + x));
}

// log(e^a + e^b), the larger operand taken out first; its imaginary part stays as it is.
template <class T> T log_add(T a, T b) {
  if (any_nan(a) || any_nan(b)) return a + b;
  T top = a.real() >= b.real() ? a : b;
  T low = a.real() >= b.real() ? b : a;
  if (std::isinf(top.real())) return top;
  return top + log1p(std::exp(low - top));
}

// The real loop takes imaginary and real parts as its operands.
template <class T>
void angle_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  char* const parts[] = {p[0], p[1] + sizeof(T), p[1]};
  const int64_t steps[] = {s[0], s[1], s[1]};
  table::atan2.fn[static_cast<int>(dtype_of<T>())](parts, steps, n, params);
}

void init_arithmetic() {
  unary(table::neg, C{}, []<class T>(T a) { return -a; });
  unary(table::conj, C{}, []<class T>(T a) { return std::conj(a); });
  table::angle.fn[static_cast<int>(DType::Complex64)] = angle_loop<float>;
  table::angle.fn[static_cast<int>(DType::Complex128)] = angle_loop<double>;
  unary(table::square, C{}, []<class T>(T a) { return a * a; });
  unary(table::reciprocal, C{}, []<class T>(T a) { return quotient(T(1), a); });
  binary(table::pow, C{}, []<class T>(T a, T b) {
    if (b == T(0)) return T(1);
    if (b == T(1)) return a;
    if (b == T(2)) return a * a;
    if (a == T(0)) return b.real() > 0 ? T(0) : std::pow(a, b);
    return std::pow(a, b);
  });
  ternary(table::lerp, C{}, []<class T>(T a, T b, T w) {
    return std::abs(w) < real_t<T>(0.5) ? a + w * (b - a) : b - (b - a) * (T(1) - w);
  });
  ternary<1>(table::addcmul, C{},
             []<class T>(T x, T a, T b, const T* c) { return x + c[0] * a * b; });
  ternary<1>(table::addcdiv, C{},
             []<class T>(T x, T a, T b, const T* c) { return x + c[0] * a / b; });
  unary<3>(table::nan_to_num, C{}, []<class T>(T a, const T* c) {
    using R = real_t<T>;
    auto clean = [c](R x) {
      return std::isnan(x) ? c[0].real() : std::isinf(x) ? (x > 0 ? c[1] : c[2]).real() : x;
    };
    return T(clean(a.real()), clean(a.imag()));
  });
}

void init_functions() {
  unary(table::exp, C{}, []<class T>(T a) { return std::exp(a); });
  unary(table::exp2, C{}, []<class T>(T a) { return std::exp(scale(a, 0.69314718055994530942)); });
  unary(table::expm1, C{}, []<class T>(T a) { return expm1(a); });
  unary(table::log, C{}, []<class T>(T a) { return std::log(a); });
  unary(table::log2, C{}, []<class T>(T a) { return scale(std::log(a), 1.44269504088896340736); });
  unary(table::log10, C{}, []<class T>(T a) { return std::log10(a); });
  unary(table::log1p, C{}, []<class T>(T a) { return log1p(a); });
  unary(table::sqrt, C{}, []<class T>(T a) { return std::sqrt(a); });
  unary(table::rsqrt, C{}, []<class T>(T a) { return T(1) / std::sqrt(a); });
  unary(table::sin, C{}, []<class T>(T a) { return std::sin(a); });
  unary(table::cos, C{}, []<class T>(T a) { return std::cos(a); });
  unary(table::tan, C{}, []<class T>(T a) { return std::tan(a); });
  unary(table::asin, C{}, []<class T>(T a) { return std::asin(a); });
  unary(table::acos, C{}, []<class T>(T a) { return std::acos(a); });
  unary(table::atan, C{}, []<class T>(T a) { return std::atan(a); });
  unary(table::sinh, C{}, []<class T>(T a) { return std::sinh(a); });
  unary(table::cosh, C{}, []<class T>(T a) { return std::cosh(a); });
  unary(table::tanh, C{}, []<class T>(T a) { return std::tanh(a); });
  unary(table::asinh, C{}, []<class T>(T a) { return std::asinh(a); });
  unary(table::acosh, C{}, []<class T>(T a) { return std::acosh(a); });
  unary(table::atanh, C{}, []<class T>(T a) { return std::atanh(a); });
  unary(table::sigmoid, C{}, []<class T>(T a) { return T(1) / (T(1) + std::exp(-a)); });
  unary(table::sinc, C{}, []<class T>(T a) {
    T x = scale(a, 3.14159265358979323846);
    return a == T(0) ? T(1) : std::sin(x) / x;
  });
  unary(table::silu, C{}, []<class T>(T a) { return a / (T(1) + std::exp(-a)); });
  binary(table::silu_backward, C{}, []<class T>(T g, T a) {
    T s = T(1) / (T(1) + std::exp(-a));
    return g * std::conj(s * (T(1) + a * (T(1) - s)));
  });
  unary(table::softsign, C{}, []<class T>(T a) { return a / (real_t<T>(1) + std::abs(a)); });
  binary(table::logaddexp, C{}, []<class T>(T a, T b) { return log_add(a, b); });
  binary(table::xlogy, C{}, []<class T>(T a, T b) {
    return any_nan(b) ? b : a == T(0) ? T(0) : a * std::log(b);
  });
  binary(table::tanh_backward, C{}, []<class T>(T g, T y) { return g * std::conj(T(1) - y * y); });
  binary(table::sigmoid_backward, C{},
         []<class T>(T g, T y) { return g * std::conj(y * (T(1) - y)); });
}

void init_comparison() {
  binary(table::eq, C{}, []<class T>(T a, T b) { return a == b; });
  binary(table::ne, C{}, []<class T>(T a, T b) { return a != b; });
  binary(table::logical_and, C{}, []<class T>(T a, T b) { return a != T(0) && b != T(0); });
  binary(table::logical_or, C{}, []<class T>(T a, T b) { return a != T(0) || b != T(0); });
  binary(table::logical_xor, C{}, []<class T>(T a, T b) { return (a != T(0)) != (b != T(0)); });
  unary(table::logical_not, C{}, []<class T>(T a) { return a == T(0); });
  unary(table::isnan, C{}, []<class T>(T a) { return any_nan(a); });
  unary(table::isinf, C{}, []<class T>(T a) { return any_inf(a); });
  unary(table::isfinite, C{}, []<class T>(T a) { return !any_nan(a) && !any_inf(a); });
}

}  // namespace

std::complex<float> complex_quotient(std::complex<float> a, std::complex<float> b) {
  return quotient(a, b);
}
std::complex<double> complex_quotient(std::complex<double> a, std::complex<double> b) {
  return quotient(a, b);
}

void init_pointwise_complex();
void init_pointwise_complex() {
  init_arithmetic();
  init_functions();
  init_comparison();
}

}  // namespace clew::kernels
