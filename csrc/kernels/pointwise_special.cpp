// Float loops of the functions that call the C library or special_math.h element by element.
// May include: base, kernels.
// Invariant: one version for all processors; only float dtypes are set here.
#include "kernels/pointwise.h"
#include "kernels/pointwise_loops.h"
#include "kernels/special_math.h"

namespace clew::kernels {

namespace {

using F = FloatTypes;

template <class T> inline constexpr T inf = std::numeric_limits<T>::infinity();

template <class T> T floor_div(T a, T b) {
  if (b == 0) return a / b;
  T rest = std::fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), a / b);
  T whole = std::floor(quotient);
  return quotient - whole > T(0.5) ? whole + 1 : whole;
}
// A remainder of zero has the divisor's sign, as Python's has.
template <class T> T python_mod(T a, T b) {
  T rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(T(0), b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
template <class T> T log_add(T a, T b, T base) {
  if (std::isinf(a) && a == b) return a;
  T top = std::max(a, b);
  if (a != a || b != b) return a + b;
  return top + std::log1p(std::exp(-std::fabs(a - b) * base)) / base;
}

void init_division() {
  binary(table::div_trunc, F{}, []<class T>(T a, T b) { return T(std::trunc(a / b)); });
  binary(table::div_floor, F{}, []<class T>(T a, T b) { return floor_div(a, b); });
  binary(table::fmod, F{}, []<class T>(T a, T b) { return T(std::fmod(a, b)); });
  binary(table::remainder, F{}, []<class T>(T a, T b) { return python_mod(a, b); });
}

void init_rounding() {
  unary(table::positive, F{}, []<class T>(T a) { return a; });
  unary(table::conj, F{}, []<class T>(T a) { return a; });
  unary(table::frac, F{}, []<class T>(T a) { return T(a - std::trunc(a)); });
  unary<1>(table::round, F{}, []<class T>(T a, const T* c) {
    if (c[0] == T(0)) return T(std::nearbyint(a));
    T scale = std::pow(T(10), std::fabs(c[0]));
    return c[0] > T(0) ? T(std::nearbyint(a * scale) / scale)
                       : T(std::nearbyint(a / scale) * scale);
  });
  unary(table::signbit, F{}, []<class T>(T a) { return bool(std::signbit(a)); });
  unary(table::isposinf, F{}, []<class T>(T a) { return a == inf<T>; });
  unary(table::isneginf, F{}, []<class T>(T a) { return a == -inf<T>; });
  unary<3>(table::nan_to_num, F{}, []<class T>(T a, const T* c) {
    return a != a ? c[0] : a == inf<T> ? c[1] : a == -inf<T> ? c[2] : a;
  });
  unary(table::angle, F{}, []<class T>(T a) {
    return a != a ? a : a < T(0) ? T(special::pi) : T(0);
  });
  unary(table::deg2rad, F{}, []<class T>(T a) { return T(a * T(special::pi / 180)); });
  unary(table::rad2deg, F{}, []<class T>(T a) { return T(a * T(180 / special::pi)); });
}

void init_elementary() {
  unary(table::exp2, F{}, []<class T>(T a) { return T(std::exp2(a)); });
  unary(table::log2, F{}, []<class T>(T a) { return T(std::log2(a)); });
  unary(table::log10, F{}, []<class T>(T a) { return T(std::log10(a)); });
  unary(table::tan, F{}, []<class T>(T a) { return T(std::tan(a)); });
  unary(table::asin, F{}, []<class T>(T a) { return T(std::asin(a)); });
  unary(table::acos, F{}, []<class T>(T a) { return T(std::acos(a)); });
  unary(table::atan, F{}, []<class T>(T a) { return T(std::atan(a)); });
  unary(table::sinh, F{}, []<class T>(T a) { return T(std::sinh(a)); });
  unary(table::cosh, F{}, []<class T>(T a) { return T(std::cosh(a)); });
  unary(table::asinh, F{}, []<class T>(T a) { return T(std::asinh(a)); });
  unary(table::acosh, F{}, []<class T>(T a) { return T(std::acosh(a)); });
  unary(table::atanh, F{}, []<class T>(T a) { return T(std::atanh(a)); });
  unary(table::logit, F{}, []<class T>(T a) { return T(std::log(a / (T(1) - a))); });
  unary(table::sinc, F{}, []<class T>(T a) { return T(special::sinc(a)); });
}

void init_two_numbers() {
  binary(table::atan2, F{}, []<class T>(T a, T b) { return T(std::atan2(a, b)); });
  binary(table::hypot, F{}, []<class T>(T a, T b) { return T(std::hypot(a, b)); });
  binary(table::copysign, F{}, []<class T>(T a, T b) { return T(std::copysign(a, b)); });
  binary(table::nextafter, TypeList<float, double>{},
         []<class T>(T a, T b) { return T(std::nextafter(a, b)); });
  binary(table::heaviside, F{}, []<class T>(T a, T b) { return a == T(0) ? b : T(a > T(0)); });
  binary(table::xlogy, F{}, []<class T>(T a, T b) {
    return b != b ? b : a == T(0) ? T(0) : T(a * std::log(b));
  });
  binary(table::xlog1py, F{}, []<class T>(T a, T b) {
    return b != b ? b : a == T(0) ? T(0) : T(a * std::log1p(b));
  });
  binary(table::logaddexp, F{}, []<class T>(T a, T b) { return log_add(a, b, T(1)); });
  binary(table::logaddexp2, F{},
         []<class T>(T a, T b) { return log_add(a, b, T(0.69314718055994530942)); });
  binary(table::zeta, F{}, []<class T>(T a, T b) { return T(special::zeta(a, b)); });
}

void init_special() {
  unary(table::erfc, F{}, []<class T>(T a) { return T(std::erfc(a)); });
  unary(table::erfinv, F{}, []<class T>(T a) { return T(special::erfinv(a)); });
  unary(table::erfcx, F{}, []<class T>(T a) { return T(special::erfcx(a)); });
  unary(table::lgamma, F{}, []<class T>(T a) { return T(std::lgamma(a)); });
  unary(table::digamma, F{}, []<class T>(T a) { return T(special::digamma(a)); });
  unary<1>(table::polygamma, F{},
           []<class T>(T a, const T* c) { return T(special::polygamma(c[0], a)); });
  unary(table::entr, F{}, []<class T>(T a) { return T(special::entr(a)); });
  unary(table::ndtr, F{}, []<class T>(T a) { return T(0.5 * std::erfc(-a / special::root_2)); });
  unary(table::ndtri, F{}, []<class T>(T a) { return T(special::ndtri(a)); });
  unary(table::log_ndtr, F{}, []<class T>(T a) { return T(special::log_ndtr(a)); });
  unary(table::i0, F{}, []<class T>(T a) { return T(special::bessel_i(0, a)); });
  unary(table::i0e, F{}, []<class T>(T a) { return T(special::bessel_i_scaled(0, a)); });
  unary(table::i1, F{}, []<class T>(T a) { return T(special::bessel_i(1, a)); });
  unary(table::i1e, F{}, []<class T>(T a) { return T(special::bessel_i_scaled(1, a)); });
}

}  // namespace

void init_pointwise_special();
void init_pointwise_special() {
  init_division();
  init_rounding();
  init_elementary();
  init_two_numbers();
  init_special();
}

}  // namespace clew::kernels
