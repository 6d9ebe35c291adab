// Float loops of gradients: grad times the slope of a function, compiled once for each instruction
// set.
// May include: base, kernels.
// Invariant: y is a function's output, x its input; values agree with the composed gradients of
// csrc/ops up to rounding, special values included.
#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/pointwise_loops.h"
#include "kernels/math/vmath.h"

namespace clew::kernels::CLEW_ISA {

namespace {

using F = FloatTypes;

template <class T> inline constexpr T ln_2 = static_cast<T>(0.69314718055994530942);
template <class T> inline constexpr T ln_10 = static_cast<T>(2.30258509299404568402);
template <class T> inline constexpr T two_over_root_pi = static_cast<T>(1.12837916709551257390);

}  // namespace

void init_slopes();
void init_slopes() {
  binary(table::log2_slope, F{}, []<class T>(T g, T x) { return T(g / (x * ln_2<T>)); });
  binary(table::log10_slope, F{}, []<class T>(T g, T x) { return T(g / (x * ln_10<T>)); });
  binary(table::log1p_slope, F{}, []<class T>(T g, T x) { return T(g / (x + T(1))); });
  binary(table::square_slope, F{}, []<class T>(T g, T x) { return T(g * (x * T(2))); });
  binary(table::abs_slope, F{},
         []<class T>(T g, T x) { return T(g * (T(x > T(0)) - T(x < T(0)))); });
  binary(table::asin_slope, F{}, []<class T>(T g, T x) { return T(g / std::sqrt(T(1) - x * x)); });
  binary(table::acos_slope, F{}, []<class T>(T g, T x) { return T(-g / std::sqrt(T(1) - x * x)); });
  binary(table::atan_slope, F{}, []<class T>(T g, T x) { return T(g / (x * x + T(1))); });
  binary(table::asinh_slope, F{}, []<class T>(T g, T x) { return T(g / std::sqrt(x * x + T(1))); });
  binary(table::acosh_slope, F{}, []<class T>(T g, T x) { return T(g / std::sqrt(x * x - T(1))); });
  binary(table::atanh_slope, F{}, []<class T>(T g, T x) { return T(g / (T(1) - x * x)); });
  binary(table::sinh_slope, F{}, []<class T>(T g, T x) { return T(g * vm::cosh(x)); });
  binary(table::cosh_slope, F{}, []<class T>(T g, T x) { return T(g * vm::sinh(x)); });
  binary(table::erf_slope, F{},
         []<class T>(T g, T x) { return T(g * (vm::exp(-x * x) * two_over_root_pi<T>)); });

  binary(table::exp2_slope, F{}, []<class T>(T g, T y) { return T(g * y * ln_2<T>); });
  binary(table::expm1_slope, F{}, []<class T>(T g, T y) { return T(g * (y + T(1))); });
  binary(table::sqrt_slope, F{}, []<class T>(T g, T y) { return T(g / (y * T(2))); });
  binary(table::rsqrt_slope, F{}, []<class T>(T g, T y) { return T(g * (y * y * y * T(-0.5))); });
  binary(table::tan_slope, F{}, []<class T>(T g, T y) { return T(g * (y * y + T(1))); });
  binary(table::reciprocal_slope, F{}, []<class T>(T g, T y) { return T(g * -(y * y)); });

  ternary(table::divisor_slope, F{}, []<class T>(T g, T a, T b) { return T(-g * (a / b / b)); });
  // Logarithms of probabilities are at least -100, as PyTorch's are, and slopes at most 1e12.
  binary(table::bce, F{}, []<class T>(T x, T t) {
    T log_x = vm::log(x), log_rest = vm::log1p(-x);
    log_x = log_x < T(-100) ? T(-100) : log_x;
    log_rest = log_rest < T(-100) ? T(-100) : log_rest;
    return T((t - T(1)) * log_rest - t * log_x);
  });
  ternary(table::bce_slope, F{}, []<class T>(T x, T t, T g) {
    T width = (T(1) - x) * x;
    return T(g * (x - t) / (width < T(1e-12) ? T(1e-12) : width));
  });
  // Computes the two signs of x separately, so that nothing cancels when the score predicts the
  // target with certainty.
  binary(table::bce_logits, F{}, []<class T>(T x, T t) {
    return T((x > T(0) ? x * (T(1) - t) : -x * t) + vm::log1p(vm::exp(-std::fabs(x))));
  });
  ternary(table::bce_logits_slope, F{}, []<class T>(T x, T t, T g) {
    T e = vm::exp(-std::fabs(x)), large = T(1) / (T(1) + e), small = e * large;
    bool up = x > T(0);
    return T(g * ((T(1) - t) * (up ? large : small) - t * (up ? small : large)));
  });
  // c: edge, half, line; a NaN is beyond every edge.
  binary<3>(table::distance, F{}, []<class T>(T a, T b, const T* c) {
    T d = std::fabs(a - b);
    return d <= c[0] ? T(d * d * c[1]) : T(c[2] * (d - c[0] * T(0.5)));
  });
  // c: edge, what the square is divided by, line, the share that each element has of the loss.
  ternary<4>(table::distance_slope, F{}, []<class T>(T a, T b, T g, const T* c) {
    T d = a - b;
    T sign = d > T(0) ? T(1) : d < T(0) ? T(-1) : T(d * T(0));
    return std::fabs(d) <= c[0] ? T(c[3] * d * g / c[1]) : T(sign * c[3] * g * c[2]);
  });
}

}  // namespace clew::kernels::CLEW_ISA
