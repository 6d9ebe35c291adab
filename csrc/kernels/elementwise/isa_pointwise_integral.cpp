// Loops of bool and the integer dtypes that are met most, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: arithmetic wraps around; nothing here is undefined behaviour for any value.
#include <utility>

#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/integers.h"
#include "kernels/elementwise/pointwise_loops.h"

namespace clew::kernels::CLEW_ISA {

namespace {

// Sign-agnostic loops are compiled for I and N; the wider unsigned types borrow those of the signed
// ones. Loops that compare or divide are compiled for all types.
using I = TypeList<bool, uint8_t, int8_t, int16_t, int32_t, int64_t>;
using N = Integers;
// Where the wider unsigned types, which are rare, keep the loops that run everywhere.
#if defined(__AVX2__) && !defined(CLEW_ONE_SET)
using AllI = I;
using AllN = N;
#else
using AllI = IntegralTypes;
using AllN = TypeList<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>;
#endif

// a + alpha * b, or a - alpha * b, mostly with an alpha of 1.
template <class T, class Plain, class Scaled>
void scaled_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  const Scalar& alpha = params[0];
  if (alpha.kind == Scalar::Kind::Int && alpha.i == 1)
    return binary_loop<T, Plain, 0>(p, s, n, params);
  if (!std::is_same_v<T, bool> && alpha.kind == Scalar::Kind::Bool) refuse_bool(dtype_of<T>());
  binary_loop<T, Scaled, 1>(p, s, n, params);
}
template <class Plain, class Scaled, class... T>
void scaled(LoopTable& table, TypeList<T...>, Plain, Scaled) {
  ((table.fn[static_cast<int>(dtype_of<T>())] = scaled_loop<T, Plain, Scaled>), ...);
}

// Quotients and remainders. A processor divides integers one by one, but doubles in vectors. Below
// 2^51 this is exact: the rounded quotient of two integers never reaches the next integer.
template <class T, class F>
void divided_loop(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  constexpr int64_t block = 256;
  constexpr bool fits_always = sizeof(T) < 8;
  const bool dense = s[0] == sizeof(T) && s[1] == sizeof(T) && (s[2] == sizeof(T) || s[2] == 0);
  auto* o = reinterpret_cast<T*>(p[0]);
  auto* a = reinterpret_cast<const T*>(p[1]);
  auto* b = reinterpret_cast<const T*>(p[2]);
  auto slow = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      at<T>(p[0], i * s[0]) = F::exact(read<T>(p[1], i * s[1]), read<T>(p[2], i * s[2]));
  };
  if (!dense || n < 8) return slow(0, n);
  const bool one = s[2] == 0;
  const T divisor = *b;
  auto fits = [](T x) {
    constexpr T most = static_cast<T>(fits_always ? 0 : int64_t{1} << 51);
    return fits_always || ((std::is_unsigned_v<T> || x >= wrap_sub(T(0), most)) & (x < most));
  };
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = std::min(n, begin + block);
    int bad = 0;
    for (int64_t i = begin; i < end; ++i) bad |= !fits(a[i]);
    for (int64_t i = begin; !one && i < end; ++i) bad |= !fits(b[i]) | (b[i] == 0);
    if (bad || (one && (divisor == 0 || !fits(divisor)))) {
      slow(begin, end);
      continue;
    }
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i)
      o[i] = F::template by_double<T>(static_cast<double>(a[i]),
                                      static_cast<double>(one ? divisor : b[i]));
  }
}
struct TruncatedQuotient {
  template <class T> static T exact(T a, T b) { return quotient(a, b); }
  template <class T> static T by_double(double a, double b) {
    return static_cast<T>(static_cast<int64_t>(a / b));
  }
};
struct FloorQuotient {
  template <class T> static T exact(T a, T b) { return floor_quotient(a, b); }
  template <class T> static T by_double(double a, double b) {
    const double q = a / b;
    const auto whole = static_cast<int64_t>(q);  // floor() would stay out of vectors
    return static_cast<T>(whole - (static_cast<double>(whole) > q));
  }
};
struct TruncatedRest {
  template <class T> static T exact(T a, T b) { return rest(a, b); }
  template <class T> static T by_double(double a, double b) {
    return static_cast<T>(static_cast<int64_t>(a - __builtin_trunc(a / b) * b));
  }
};
struct FloorRest {
  template <class T> static T exact(T a, T b) { return floor_rest(a, b); }
  template <class T> static T by_double(double a, double b) {
    return static_cast<T>(static_cast<int64_t>(a - __builtin_floor(a / b) * b));
  }
};
template <class F, class... T> void divided(LoopTable& table, TypeList<T...>, F) {
  ((table.fn[static_cast<int>(dtype_of<T>())] = divided_loop<T, F>), ...);
}

// A shift by a negative count or by at least the width gives the limit of repeated shifts by one.
// Both values are computed and one is selected, because vectors have no branches.
template <class T> constexpr unsigned width = static_cast<unsigned>(8 * sizeof(T));
template <class T> bool in_width(T count) {
  return static_cast<std::make_unsigned_t<T>>(count) < width<T>;
}
template <class T> T shifted_left(T a, T count) {
  using U = wide_unsigned<T>;
  const U shifted = static_cast<U>(a) << (static_cast<U>(count) % width<T>);
  return in_width(count) ? static_cast<T>(shifted) : T(0);
}
template <class T> T shifted_right(T a, T count) {
  const T shifted = static_cast<T>(a >> (static_cast<std::make_unsigned_t<T>>(count) % width<T>));
  return in_width(count) ? shifted : a < 0 ? T(-1) : T(0);
}

// A clamp bound converted to T. A negative bound of an unsigned type becomes 0; others outside T's
// range are refused.
template <class T> T bound(const Scalar& s, T otherwise) {
  using limits = std::numeric_limits<T>;
  if (!s.has_value()) return otherwise;
  require_fits("bound", s, dtype_of<T>());
  if (s.is_integral() && !s.is_big())
    return std::cmp_less(s.i, limits::lowest()) ? limits::lowest() : static_cast<T>(s.i);
  return s.to<T>();
}
template <class T> inline T clamped(T x, T low, T high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
template <class T>
void clamp_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  using limits = std::numeric_limits<T>;
  const T low = bound(params[0], limits::lowest());
  const T high = bound(params[1], limits::max());
  if (s[0] == sizeof(T) && s[1] == sizeof(T)) {
    auto* o = reinterpret_cast<T*>(p[0]);
    auto* a = reinterpret_cast<const T*>(p[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = clamped(a[i], low, high);
  } else {
    block_rows<1, T, T, T>(clamp_loop<T>, p, s, n, params);
  }
}

// A byte of a bool is 0 or 1; as numbers they are compared in vectors.
void not_loop(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  if (s[0] == 1 && s[1] == 1) {
    auto* o = reinterpret_cast<uint8_t*>(p[0]);
    auto* a = reinterpret_cast<const uint8_t*>(p[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = a[i] == 0;
  } else {
    for (int64_t i = 0; i < n; ++i) at<bool>(p[0], i * s[0]) = !read<bool>(p[1], i * s[1]);
  }
}

void init_arithmetic() {
  scaled(table::add, I{}, Symmetric{[]<class T>(T a, T b) { return wrap_add(a, b); }},
         []<class T>(T a, T b, const T* c) { return wrap_add(a, wrap_mul(c[0], b)); });
  scaled(
      table::sub, N{}, []<class T>(T a, T b) { return wrap_sub(a, b); },
      []<class T>(T a, T b, const T* c) { return wrap_sub(a, wrap_mul(c[0], b)); });
  binary(table::mul, I{}, Symmetric{[]<class T>(T a, T b) { return wrap_mul(a, b); }});
  unary(table::neg, N{}, []<class T>(T a) { return wrap_sub(T(0), a); });
  unary(table::abs, N{}, []<class T>(T a) { return absolute(a); });
  unary(table::square, N{}, []<class T>(T a) { return wrap_mul(a, a); });
  unary(table::relu, N{}, []<class T>(T a) { return a < T(0) ? T(0) : a; });
  for (LoopTable* t : {&table::sign, &table::sgn})
    unary(*t, AllN{}, []<class T>(T a) { return T(T(a > T(0)) - T(a < T(0))); });
  divided(table::div_trunc, AllN{}, TruncatedQuotient{});
  divided(table::div_floor, N{}, FloorQuotient{});
  divided(table::fmod, AllN{}, TruncatedRest{});
  divided(table::remainder, N{}, FloorRest{});
}

struct Less {
  template <class T> bool operator()(T a, T b) const { return a < b; }
};
struct AtMost {
  template <class T> bool operator()(T a, T b) const { return a <= b; }
};

void init_comparison() {
  binary(table::eq, I{}, Symmetric{[]<class T>(T a, T b) { return a == b; }});
  binary(table::ne, I{}, Symmetric{[]<class T>(T a, T b) { return a != b; }});
  binary(table::lt, AllI{}, Less{});
  binary(table::le, AllI{}, AtMost{});
  swapped(table::gt, AllI{}, Less{});
  swapped(table::ge, AllI{}, AtMost{});
  for (LoopTable* t : {&table::maximum, &table::fmax})
    binary(*t, AllI{}, Symmetric{[]<class T>(T a, T b) { return a > b ? a : b; }});
  for (LoopTable* t : {&table::minimum, &table::fmin})
    binary(*t, AllI{}, Symmetric{[]<class T>(T a, T b) { return a < b ? a : b; }});
  binary(table::logical_and, I{},
         Symmetric{[]<class T>(T a, T b) { return bool((a != T(0)) & (b != T(0))); }});
  binary(table::logical_or, I{},
         Symmetric{[]<class T>(T a, T b) { return bool((a != T(0)) | (b != T(0))); }});
  binary(table::logical_xor, I{},
         Symmetric{[]<class T>(T a, T b) { return bool((a != T(0)) ^ (b != T(0))); }});
  unary(table::logical_not, I{}, []<class T>(T a) { return a == T(0); });
  binary(table::bitwise_and, I{}, Symmetric{[]<class T>(T a, T b) { return T(a & b); }});
  binary(table::bitwise_or, I{}, Symmetric{[]<class T>(T a, T b) { return T(a | b); }});
  binary(table::bitwise_xor, I{}, Symmetric{[]<class T>(T a, T b) { return T(a ^ b); }});
  unary(table::bitwise_not, N{}, []<class T>(T a) { return T(~a); });
  table::bitwise_not.fn[static_cast<int>(DType::Bool)] = not_loop;
  table::logical_not.fn[static_cast<int>(DType::Bool)] = not_loop;
  binary(table::shift_left, AllN{}, []<class T>(T a, T b) { return shifted_left(a, b); });
  binary(table::shift_right, AllN{}, []<class T>(T a, T b) { return shifted_right(a, b); });
  [&]<class... T>(TypeList<T...>) {
    ((table::clamp.fn[static_cast<int>(dtype_of<T>())] = clamp_loop<T>), ...);
  }(AllN{});
  ternary(table::clamp_between, AllN{},
          []<class T>(T x, T low, T high) { return clamped(x, low, high); });
}

}  // namespace

void init_integral();
void init_integral() {
  init_arithmetic();
  init_comparison();
}

}  // namespace clew::kernels::CLEW_ISA
