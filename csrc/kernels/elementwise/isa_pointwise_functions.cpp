// Float loops of the elementary functions and of rounding, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: only float dtypes are set here; what kernels/math lacks for double is the C library's.
#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/pointwise_loops.h"
#include "kernels/math/vmath.h"
#include "kernels/math/vmath_arcs.h"
#include "kernels/math/vmath_circular.h"
#include "kernels/math/vmath_close.h"
#include "kernels/math/vmath_error.h"
#include "kernels/math/vmath_gamma.h"
#include "kernels/math/vmath_special.h"

namespace clew::kernels::CLEW_ISA {

namespace {

using F = FloatTypes;

// Circular functions: the vector forms take moderate angles.
template <class T> bool moderate(T x) { return std::fabs(x) <= vm::trig_limit<T>; }
struct Sin {
  static constexpr int inputs = 1;
  template <class T> static bool fits(T x) { return moderate(x); }
  template <class T> static T fast(T x) { return vm::close::sin(x); }
  template <class T> static T slow(T x) { return std::sin(x); }
};
struct Cos {
  static constexpr int inputs = 1;
  template <class T> static bool fits(T x) { return moderate(x); }
  template <class T> static T fast(T x) { return vm::close::cos(x); }
  template <class T> static T slow(T x) { return std::cos(x); }
};
struct Tan {
  static constexpr int inputs = 1;
  template <class T> static bool fits(T x) { return moderate(x); }
  template <class T> static T fast(T x) { return vm::tan(x); }
  template <class T> static T slow(T x) { return std::tan(x); }
};
struct SinSlope {
  static constexpr int inputs = 2;
  template <class T> static bool fits(T, T x) { return moderate(x); }
  template <class T> static T fast(T g, T x) { return g * vm::cos(x); }
  template <class T> static T slow(T g, T x) { return g * std::cos(x); }
};
struct CosSlope {
  static constexpr int inputs = 2;
  template <class T> static bool fits(T, T x) { return moderate(x); }
  template <class T> static T fast(T g, T x) { return g * -vm::sin(x); }
  template <class T> static T slow(T g, T x) { return g * -std::sin(x); }
};
// sin(pi x) / (pi x)
struct Sinc {
  static constexpr int inputs = 1;
  template <class T> static constexpr T pi = static_cast<T>(3.14159265358979323846L);
  template <class T> static bool fits(T x) { return moderate(pi<T> * x); }
  template <class T> static T fast(T x) {
    return x == T(0) ? T(1) : vm::sin(pi<T> * x) / (pi<T> * x);
  }
  template <class T> static T slow(T x) {
    return x == T(0) ? T(1) : std::sin(pi<T> * x) / (pi<T> * x);
  }
};

// Remainders. For floats with moderate quotients they are exact in double: a whole number n near
// a / b has at most 28 bits, so n b and a - n b are not rounded. Doubles need a fused product.
struct Remainder {
  static constexpr int inputs = 2;
  static constexpr double most = vm::fuses ? 0x1p51 : 0;
  static bool fits(double a, double b) {
    return (std::fabs(a / b) < most) & (std::fabs(b) < vm::inf<double>);
  }
  static double rest(double a, double b) {
    const double x = std::fabs(a), y = std::fabs(b);
    const double r = std::fma(-std::trunc(x / y), y, x);
    return std::copysign(r < 0.0 ? r + y : r, a);
  }
  static bool fits(float a, float b) {
    double q = static_cast<double>(a) / static_cast<double>(b);
    return (std::fabs(q) < 268435456.0) & (std::fabs(b) < vm::inf<float>);
  }
  // C's fmod, except for the sign of zero.
  static float rest(float a, float b) {
    double x = std::fabs(static_cast<double>(a));
    double y = std::fabs(static_cast<double>(b));
    double r = x - std::trunc(x / y) * y;
    r = r < 0.0 ? r + y : r;  // the quotient was rounded up to a whole number
    return std::copysign(static_cast<float>(r), a);
  }
};
struct Fmod : Remainder {
  static float fast(float a, float b) { return rest(a, b); }
  static double fast(double a, double b) { return rest(a, b); }
  template <class T> static T slow(T a, T b) { return std::fmod(a, b); }
};
// The remainder with the sign of the divisor, as in Python.
struct Modulo : Remainder {
  template <class T> static T turned(T rest, T b) {
    T other = (rest < T(0)) != (b < T(0)) ? rest + b : rest;
    return rest == T(0) ? std::copysign(T(0), b) : other;
  }
  static float fast(float a, float b) { return turned(rest(a, b), b); }
  static double fast(double a, double b) { return turned(rest(a, b), b); }
  template <class T> static T slow(T a, T b) { return turned(std::fmod(a, b), b); }
};
struct FloorDivide : Remainder {
  template <class T> static T quotient(T a, T b, T rest) {
    T q = (a - rest) / b;
    q = (rest != T(0)) & ((b < T(0)) != (rest < T(0))) ? q - T(1) : q;
    T whole = std::floor(q);
    T near = q - whole > T(0.5) ? whole + T(1) : whole;
    near = q == T(0) ? std::copysign(T(0), a / b) : near;
    return b == T(0) ? a / b : near;
  }
  static float fast(float a, float b) { return quotient(a, b, rest(a, b)); }
  static double fast(double a, double b) { return quotient(a, b, rest(a, b)); }
  template <class T> static T slow(T a, T b) { return quotient(a, b, T(std::fmod(a, b))); }
};

template <class T> T erfc(T a) {
  if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(vm::erfc_of_float(static_cast<double>(a)));
  else
    return vm::erfc(a);
}
template <class T> T ndtr(T a) {
  constexpr double root_half = 0.70710678118654752440;
  if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(0.5 * vm::erfc_of_float(-root_half * static_cast<double>(a)));
  else
    return 0.5 * vm::erfc(-root_half * a);
}
template <class T> T hypot(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    auto x = static_cast<double>(a);
    auto y = static_cast<double>(b);
    auto size = static_cast<float>(std::sqrt(x * x + y * y));
    return (std::fabs(a) == vm::inf<T>) | (std::fabs(b) == vm::inf<T>) ? vm::inf<T> : size;
  } else {
    // Squares stay clear of infinity and of the least numbers.
    const T x = std::fabs(a), y = std::fabs(b), top = x > y ? x : y, least = x > y ? y : x;
    const T down = top > 0x1p500 ? 0x1p-600 : top < 0x1p-500 ? 0x1p600 : 1.0;
    const T up = top > 0x1p500 ? 0x1p600 : top < 0x1p-500 ? 0x1p-600 : 1.0;
    // A fused operation does not round the larger square.
    const T t = top * down, l = least * down, small = l * l;
    const T size = std::sqrt(vm::product_and(t, t, small)) * up;
    return (x == vm::inf<T>) | (y == vm::inf<T>) ? vm::inf<T> : size;
  }
}

// Neighbours in a 16-bit type: rounding those of float would give the number itself.
template <class T> T next_half(T a, T b) {
  const float x = a, y = b;
  if (x != x || y != y) return T(x + y);
  if (x == y) return b;
  auto bits = std::bit_cast<uint16_t>(a);
  if (x == 0)
    bits = y > 0 ? 1 : 0x8001;
  else
    bits = static_cast<uint16_t>((x < y) == (x > 0) ? bits + 1 : bits - 1);
  return std::bit_cast<T>(bits);
}
template <class T> void next_half_loop(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  for (int64_t i = 0; i < n; ++i)
    at<T>(p[0], i * s[0]) = next_half(read<T>(p[1], i * s[1]), read<T>(p[2], i * s[2]));
}

}  // namespace

void init_functions();
void init_functions() {
  unary(table::sqrt, F{}, []<class T>(T a) { return T(std::sqrt(a)); });
  unary(table::rsqrt, F{}, []<class T>(T a) { return T(T(1) / std::sqrt(a)); });
  unary(table::exp, F{}, []<class T>(T a) { return vm::exp(a); });
  unary(table::exp2, F{}, []<class T>(T a) { return vm::exp2(a); });
  unary(table::expm1, F{}, []<class T>(T a) { return vm::close::expm1(a); });
  unary(table::log, F{}, []<class T>(T a) { return vm::log(a); });
  unary(table::log2, F{}, []<class T>(T a) { return vm::log2(a); });
  unary(table::log10, F{}, []<class T>(T a) { return vm::log10(a); });
  unary(table::log1p, F{}, []<class T>(T a) { return vm::close::log1p(a); });
  unary(table::tanh, F{}, []<class T>(T a) { return vm::close::tanh(a); });
  unary(table::sinh, F{}, []<class T>(T a) { return vm::sinh(a); });
  unary(table::cosh, F{}, []<class T>(T a) { return vm::cosh(a); });
  unary(table::asinh, F{}, []<class T>(T a) { return vm::asinh(a); });
  unary(table::acosh, F{}, []<class T>(T a) { return vm::acosh(a); });
  unary(table::atanh, F{}, []<class T>(T a) { return vm::atanh(a); });
  unary(table::asin, F{}, []<class T>(T a) { return vm::asin(a); });
  unary(table::acos, F{}, []<class T>(T a) { return vm::acos(a); });
  unary(table::atan, F{}, []<class T>(T a) { return vm::atan(a); });
  unary(table::sigmoid, F{}, []<class T>(T a) { return vm::sigmoid(a); });
  unary(table::logit, F{}, []<class T>(T a) { return T(vm::log(a / (T(1) - a))); });
  unary(table::erf, F{}, []<class T>(T a) { return vm::erf(a); });
  unary(table::erfc, F{}, []<class T>(T a) { return erfc(a); });
  unary(table::erfinv, TypeList<float, f16, bf16>{}, [](float a) { return vm::close::erfinv(a); });
  unary(table::lgamma, TypeList<float, f16, bf16>{}, [](float a) {
    return static_cast<float>(vm::log_gamma_for_float(static_cast<double>(a)));
  });
  unary(table::digamma, TypeList<float, f16, bf16>{},
        [](float a) { return static_cast<float>(vm::digamma_for_float(static_cast<double>(a))); });
  unary(table::ndtr, F{}, []<class T>(T a) { return ndtr(a); });
  using Floats = TypeList<float, f16, bf16>;
  unary(table::erfcx, Floats{},
        [](float a) { return static_cast<float>(vm::erfcx_for_float(static_cast<double>(a))); });
  unary(table::log_ndtr, Floats{},
        [](float a) { return static_cast<float>(vm::log_ndtr_for_float(static_cast<double>(a))); });
  unary(table::trigamma, Floats{},
        [](float a) { return static_cast<float>(vm::trigamma_for_float(static_cast<double>(a))); });
  unary(table::i0e, Floats{},
        [](float a) { return static_cast<float>(vm::i0e_for_float(static_cast<double>(a))); });
  unary(table::i1e, Floats{},
        [](float a) { return static_cast<float>(vm::i1e_for_float(static_cast<double>(a))); });
  unary(table::i0, Floats{}, [](float a) {
    const auto x = static_cast<double>(a);
    return static_cast<float>(vm::i0e_for_float(x) * vm::exp(std::fabs(x)));
  });
  unary(table::i1, Floats{}, [](float a) {
    const auto x = static_cast<double>(a);
    return static_cast<float>(vm::i1e_for_float(x) * vm::exp(std::fabs(x)));
  });
  guarded(table::sin, Sin{});
  guarded(table::cos, Cos{});
  guarded(table::tan, Tan{});
  guarded(table::sinc, Sinc{});
  guarded(table::sin_slope, SinSlope{});
  guarded(table::cos_slope, CosSlope{});
  guarded(table::fmod, Fmod{});
  guarded(table::remainder, Modulo{});
  guarded(table::div_floor, FloorDivide{});
  set_beside_numbers<2, guarded_loop<float, FloorDivide>>(table::div_floor);
  auto times_log = []<class T>(T a, T b) {
    const T value = a == T(0) ? T(0) : T(a * vm::log(b));
    return b != b ? b : value;
  };
  binary(table::xlogy, F{}, times_log);
  beside_numbers<2>(table::xlogy, times_log);
  auto times_log1p = []<class T>(T a, T b) {
    const T value = a == T(0) ? T(0) : T(a * vm::close::log1p(b));
    return b != b ? b : value;
  };
  binary(table::xlog1py, F{}, times_log1p);
  beside_numbers<2>(table::xlog1py, times_log1p);
  unary(table::entr, F{}, []<class T>(T a) {
    const T inside = a > T(0) ? T(-a * vm::log(a)) : T(0);
    return a < T(0) ? -vm::inf<T> : a != a ? a : inside;
  });
  unary(table::angle, F{}, []<class T>(T a) {
    const T turn = a < T(0) ? static_cast<T>(3.14159265358979323846) : T(0);
    return a != a ? a : turn;
  });
  binary(table::nextafter, TypeList<float, double>{},
         []<class T>(T a, T b) { return vm::next_after(a, b); });
  table::nextafter.fn[static_cast<int>(DType::Float16)] = next_half_loop<f16>;
  table::nextafter.fn[static_cast<int>(DType::BFloat16)] = next_half_loop<bf16>;
  binary(table::atan2, F{}, []<class T>(T a, T b) { return vm::atan2(a, b); });
  binary(table::hypot, F{}, []<class T>(T a, T b) { return hypot(a, b); });
  binary(table::logaddexp, F{}, []<class T>(T a, T b) { return vm::logaddexp(a, b); });
  binary(table::logaddexp2, F{}, []<class T>(T a, T b) { return vm::logaddexp2(a, b); });
}

void init_rounding();
void init_rounding() {
  unary(table::floor, F{}, []<class T>(T a) { return T(std::floor(a)); });
  unary(table::ceil, F{}, []<class T>(T a) { return T(std::ceil(a)); });
  unary(table::trunc, F{}, []<class T>(T a) { return T(std::trunc(a)); });
  unary(table::frac, F{}, []<class T>(T a) { return T(a - std::trunc(a)); });
  unary<1>(table::round, F{}, []<class T>(T a, const T* c) {
    // c[0] is the same for all, so these are loops of their own.
    if (c[0] == T(0)) return T(std::nearbyint(a));
    T scale = std::pow(T(10), std::fabs(c[0]));
    return c[0] > T(0) ? T(std::nearbyint(a * scale) / scale)
                       : T(std::nearbyint(a / scale) * scale);
  });
  auto towards_zero = []<class T>(T a, T b) { return T(std::trunc(a / b)); };
  binary(table::div_trunc, F{}, towards_zero);
  beside_numbers<2>(table::div_trunc, towards_zero);
  // Written so that nan gives 0, as in PyTorch.
  for (LoopTable* t : {&table::sign, &table::sgn}) {
    unary(*t, F{}, []<class T>(T a) { return T(T(a > T(0)) - T(a < T(0))); });
  }
  unary(table::signbit, F{}, []<class T>(T a) { return bool(std::signbit(a)); });
  unary(table::isposinf, F{}, []<class T>(T a) { return a == vm::inf<T>; });
  unary(table::isneginf, F{}, []<class T>(T a) { return a == -vm::inf<T>; });
  unary<3>(table::nan_to_num, F{}, []<class T>(T a, const T* c) {
    T x = a == vm::inf<T> ? c[1] : a;
    x = a == -vm::inf<T> ? c[2] : x;
    return a != a ? c[0] : x;
  });
  unary(table::deg2rad, F{}, []<class T>(T a) { return T(a * T(0.017453292519943295769)); });
  unary(table::rad2deg, F{}, []<class T>(T a) { return T(a * T(57.295779513082320877)); });
  binary(table::copysign, F{}, []<class T>(T a, T b) { return T(std::copysign(a, b)); });
  binary(table::heaviside, F{}, []<class T>(T a, T b) { return a == T(0) ? b : T(a > T(0)); });
}

}  // namespace clew::kernels::CLEW_ISA
