// Float loops of arithmetic and comparisons, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: only float dtypes are set here; integers and complex numbers live in pointwise_*.cpp.
#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/pointwise_loops.h"
#include "kernels/math/vmath.h"

namespace clew::kernels::CLEW_ISA {

namespace {

using F = FloatTypes;

template <class T> T clamp_low(const Scalar& s) { return s.has_value() ? s.to<T>() : -vm::inf<T>; }
template <class T> T clamp_high(const Scalar& s) { return s.has_value() ? s.to<T>() : vm::inf<T>; }
template <class T>
void clamp_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  const T low = clamp_low<T>(params[0]);
  const T high = clamp_high<T>(params[1]);
  if (low != low || high != high) {
    for (int64_t i = 0; i < n; ++i) at<T>(p[0], i * s[0]) = vm::nan<T>;
    return;
  }
  if (s[0] == sizeof(T) && s[1] == sizeof(T)) {
    auto* o = reinterpret_cast<T*>(p[0]);
    auto* a = reinterpret_cast<const T*>(p[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      T x = a[i] < low ? low : a[i];
      o[i] = x > high ? high : x;
    }
  } else {
    block_rows<1, T, T, T>(clamp_loop<T>, p, s, n, params);
  }
}

// Cheap operations on rows of bfloat16, without blocks of float in between.
template <int P, class F>
[[gnu::flatten]] void bf16_rows(char* const* p, int64_t n, const Scalar* params) {
  const Params<float, P, 1> c(params);
  auto* o = reinterpret_cast<uint16_t*>(p[0]);
  auto* a = reinterpret_cast<const uint16_t*>(p[1]);
  auto* b = reinterpret_cast<const uint16_t*>(p[2]);
  auto wide = [](uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); };
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float x = call<P, F>(c.value, wide(a[i]), wide(b[i]));
    o[i] = static_cast<uint16_t>(rounded_bits(x));
  }
}
template <int P, class F>
void bf16_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  if (s[0] == 2 && s[1] == 2 && s[2] == 2)
    bf16_rows<P, F>(p, n, params);
  else
    half_rows<2, bf16, float, binary_loop<float, F, P>>(p, s, n, params);
}
template <int P, class F> void cheap(LoopTable& table, F f) {
  binary<P>(table, FloatTypes{}, f);
  table.fn[static_cast<int>(DType::BFloat16)] = bf16_loop<P, F>;
}

void init_arithmetic() {
  cheap<1>(table::add, []<class T>(T a, T b, const T* c) { return T(a + c[0] * b); });
  cheap<1>(table::sub, []<class T>(T a, T b, const T* c) { return T(a - c[0] * b); });
  auto product = []<class T>(T a, T b) { return T(a * b); };
  cheap<0>(table::mul, product);
  beside_numbers<2>(table::mul, product);
  auto quotient = []<class T>(T a, T b) { return T(a / b); };
  binary(table::div, F{}, quotient);
  beside_numbers<2>(table::div, quotient);
  unary(table::neg, F{}, []<class T>(T a) { return T(-a); });
  unary(table::abs, F{}, []<class T>(T a) { return T(std::fabs(a)); });
  // The sign of a 16-bit float is its highest bit.
  LoopTable turned = {}, cleared = {};
  unary(turned, TypeList<int16_t>{}, []<class T>(T a) { return T(a ^ INT16_MIN); });
  unary(cleared, TypeList<int16_t>{}, []<class T>(T a) { return T(a & INT16_MAX); });
  for (DType half : {DType::Float16, DType::BFloat16}) {
    table::neg.fn[static_cast<int>(half)] = turned[DType::Int16];
    table::abs.fn[static_cast<int>(half)] = cleared[DType::Int16];
  }
  unary(table::square, F{}, []<class T>(T a) { return T(a * a); });
  unary(table::reciprocal, F{}, []<class T>(T a) { return T(T(1) / a); });
  auto between = []<class T>(T a, T b, T w) {
    // From the nearer end, so that w = 1 gives b exactly.
    T d = b - a;
    return T(std::fabs(w) < T(0.5) ? a + w * d : b - d * (T(1) - w));
  };
  ternary(table::lerp, F{}, between);
  beside_numbers<3>(table::lerp, between);
  ternary<1>(table::addcmul, F{},
             []<class T>(T x, T a, T b, const T* c) { return T(x + c[0] * a * b); });
  ternary<1>(table::addcdiv, F{},
             []<class T>(T x, T a, T b, const T* c) { return T(x + c[0] * a / b); });
}

void init_comparison() {
  binary(table::eq, F{}, []<class T>(T a, T b) { return a == b; });
  binary(table::ne, F{}, []<class T>(T a, T b) { return a != b; });
  binary(table::lt, F{}, []<class T>(T a, T b) { return a < b; });
  binary(table::le, F{}, []<class T>(T a, T b) { return a <= b; });
  binary(table::gt, F{}, []<class T>(T a, T b) { return a > b; });
  binary(table::ge, F{}, []<class T>(T a, T b) { return a >= b; });
  binary(table::logical_and, F{},
         []<class T>(T a, T b) { return bool((a != T(0)) & (b != T(0))); });
  binary(table::logical_or, F{}, []<class T>(T a, T b) { return bool((a != T(0)) | (b != T(0))); });
  binary(table::logical_xor, F{},
         []<class T>(T a, T b) { return bool((a != T(0)) ^ (b != T(0))); });
  unary(table::logical_not, F{}, []<class T>(T a) { return a == T(0); });
  // nan wins in maximum and minimum, loses in fmax and fmin.
  binary(table::maximum, F{}, []<class T>(T a, T b) {
    T m = a > b ? a : b;
    return a != a ? a : m;
  });
  binary(table::minimum, F{}, []<class T>(T a, T b) {
    T m = a < b ? a : b;
    return a != a ? a : m;
  });
  binary(table::fmax, F{}, []<class T>(T a, T b) {
    T m = a >= b ? a : b;
    m = b != b ? a : m;
    return m;
  });
  binary(table::fmin, F{}, []<class T>(T a, T b) {
    T m = a <= b ? a : b;
    m = b != b ? a : m;
    return m;
  });
  set_loops<1, clamp_loop<float>, clamp_loop<double>>(table::clamp);
  binary<2>(table::clamp_backward, F{},
            []<class T>(T g, T x, const T* c) { return (x >= c[0]) & (x <= c[1]) ? g : T(0); });
  // A nan input gives nan, and so does a nan bound.
  ternary(table::clamp_between, F{}, []<class T>(T x, T low, T high) {
    T y = x < low ? low : x;
    y = low != low ? low : y;
    y = y > high ? high : y;
    y = high != high ? high : y;
    return x != x ? x : y;
  });
  unary(table::isnan, F{}, []<class T>(T a) { return a != a; });
  unary(table::isinf, F{}, []<class T>(T a) { return std::fabs(a) == vm::inf<T>; });
  unary(table::isfinite, F{}, []<class T>(T a) { return std::fabs(a) < vm::inf<T>; });
}

}  // namespace

void init_casts();
void init_functions();
void init_sorted();
void init_rounding();
void init_powers();
void init_slopes();
void init_activations();
void init_integral();
void init_complex();

void init_pointwise() {
  init_arithmetic();
  init_comparison();
  init_casts();
  init_functions();
  init_sorted();
  init_rounding();
  init_powers();
  init_slopes();
  init_activations();
  init_integral();
  init_complex();
}

}  // namespace clew::kernels::CLEW_ISA
