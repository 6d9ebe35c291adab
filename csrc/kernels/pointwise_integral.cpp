// Elementwise loops of bool and the integer dtypes.
// May include: base, kernels.
// Invariant: arithmetic wraps around; nothing here is undefined behaviour for any value.
#include <numeric>
#include <utility>

#include "kernels/pointwise.h"
#include "kernels/pointwise_loops.h"

namespace clew::kernels {

namespace {

// Sign-agnostic loops are compiled for I and N; the wider unsigned types borrow those of the signed
// ones. Loops that compare or divide are compiled for all types.
using I = TypeList<bool, uint8_t, int8_t, int16_t, int32_t, int64_t>;
using N = Integers;
using AllI = IntegralTypes;
using AllN = TypeList<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>;

void borrow(LoopTable& to, const LoopTable& from) {
  for (DType d : {DType::UInt16, DType::UInt32, DType::UInt64})
    to.fn[static_cast<int>(d)] = from.fn[static_cast<int>(as_signed(d))];
}
void copy_unsigned(LoopTable& to, const LoopTable& from) {
  for (DType d : {DType::UInt16, DType::UInt32, DType::UInt64})
    to.fn[static_cast<int>(d)] = from.fn[static_cast<int>(d)];
}

// Square-and-multiply; a negative exponent gives the integer part of the true value.
template <class T> T int_pow(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent % 2 == 0 ? T(1) : T(-1);
      return 0;
    }
  }
  T result = 1;
  for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if (e & 1) result = wrap_mul(result, base);
    base = wrap_mul(base, base);
  }
  return result;
}

template <class T>
void pow_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  // One exponent for all elements that would have to be floats.
  if (std::is_signed_v<T> && s[2] == 0 && *reinterpret_cast<const T*>(p[2]) < T(0)) {
    fail("pow: integers to negative integer powers are not allowed; got exponent ",
         static_cast<int64_t>(*reinterpret_cast<const T*>(p[2])),
         "; make the base floating, e.g. with .float()");
  }
  auto f = []<class U>(U a, U b) { return int_pow(a, b); };
  binary_loop<T, decltype(f), 0>(p, s, n, params);
}

// The smallest number divided by -1 has no representation and wraps around.
template <class T> T quotient(T a, T b) {
  if (b == 0) fail("ZeroDivisionError: integer division or modulo by zero");
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return wrap_sub(T(0), a);
  }
  return static_cast<T>(a / b);
}
template <class T> T rest(T a, T b) {
  if (b == 0) fail("ZeroDivisionError: integer division or modulo by zero");
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}
template <class T> T floor_quotient(T a, T b) {
  T q = quotient(a, b);
  return rest(a, b) != 0 && (a < 0) != (b < 0) ? static_cast<T>(q - 1) : q;
}
template <class T> T floor_rest(T a, T b) {
  T r = rest(a, b);
  return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}

template <class T> T absolute(T a) { return a < 0 ? wrap_sub(T(0), a) : a; }
template <class T> T common_divisor(T a, T b) {
  a = absolute(a);
  b = absolute(b);
  while (b != 0) {
    T r = rest(a, b);
    a = b;
    b = r;
  }
  return a;
}

// A shift by a negative count or by the whole width gives what shifting step by step tends to.
template <class T> T shifted_left(T a, T count) {
  constexpr int width = static_cast<int>(8 * sizeof(T));
  if (count < 0 || static_cast<uint64_t>(count) >= width) return 0;
  using U = wide_unsigned<T>;
  return static_cast<T>(static_cast<U>(a) << count);
}
template <class T> T shifted_right(T a, T count) {
  constexpr int width = static_cast<int>(8 * sizeof(T));
  if (count < 0 || static_cast<uint64_t>(count) >= width) return a < 0 ? T(-1) : T(0);
  return static_cast<T>(a >> count);
}

// A bound outside of the dtype's range bounds nothing, or everything.
template <class T> T bound(const Scalar& s, T otherwise) {
  using limits = std::numeric_limits<T>;
  if (!s.has_value()) return otherwise;
  if (s.is_big()) return std::is_same_v<T, uint64_t> ? s.to<T>() : limits::max();
  if (s.is_integral()) {
    if (std::cmp_less_equal(s.i, limits::lowest())) return limits::lowest();
    return std::cmp_greater_equal(s.i, limits::max()) ? limits::max() : static_cast<T>(s.i);
  }
  if (s.to_double() <= static_cast<double>(limits::lowest())) return limits::lowest();
  if (s.to_double() >= static_cast<double>(limits::max())) return limits::max();
  return s.to<T>();
}
template <class T>
void clamp_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  using limits = std::numeric_limits<T>;
  const T low = bound(params[0], limits::lowest());
  const T high = bound(params[1], limits::max());
  for (int64_t i = 0; i < n; ++i) {
    T x = read<T>(p[1], i * s[1]);
    x = x < low ? low : x;
    at<T>(p[0], i * s[0]) = x > high ? high : x;
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
  binary<1>(table::add, I{},
            []<class T>(T a, T b, const T* c) { return wrap_add(a, wrap_mul(c[0], b)); });
  binary<1>(table::sub, N{},
            []<class T>(T a, T b, const T* c) { return wrap_sub(a, wrap_mul(c[0], b)); });
  binary(table::mul, I{}, []<class T>(T a, T b) { return wrap_mul(a, b); });
  unary(table::neg, N{}, []<class T>(T a) { return wrap_sub(T(0), a); });
  unary(table::abs, N{}, []<class T>(T a) { return absolute(a); });
  unary(table::positive, N{}, []<class T>(T a) { return a; });
  unary(table::conj, I{}, []<class T>(T a) { return a; });
  unary(table::square, N{}, []<class T>(T a) { return wrap_mul(a, a); });
  unary(table::relu, N{}, []<class T>(T a) { return a < T(0) ? T(0) : a; });
  [&]<class... T>(TypeList<T...>) {
    ((table::pow.fn[static_cast<int>(dtype_of<T>())] = pow_loop<T>), ...);
  }(AllN{});
  binary(table::div_trunc, AllN{}, []<class T>(T a, T b) { return quotient(a, b); });
  binary(table::div_floor, N{}, []<class T>(T a, T b) { return floor_quotient(a, b); });
  binary(table::fmod, AllN{}, []<class T>(T a, T b) { return rest(a, b); });
  binary(table::remainder, N{}, []<class T>(T a, T b) { return floor_rest(a, b); });
  binary(table::gcd, AllN{}, []<class T>(T a, T b) { return common_divisor(a, b); });
  binary(table::lcm, AllN{}, []<class T>(T a, T b) {
    T g = common_divisor(a, b);
    return g == 0 ? T(0) : absolute(wrap_mul(quotient(a, g), b));
  });
  ternary<1>(table::addcmul, N{}, []<class T>(T x, T a, T b, const T* c) {
    return wrap_add(x, wrap_mul(wrap_mul(c[0], a), b));
  });
  auto sign = []<class T>(T a) { return T(T(a > 0) - T(a < 0)); };
  unary(table::sign, AllN{}, sign);
  unary(table::sign, Bools{}, []<class T>(T a) { return a; });
  table::sgn = table::sign;
  for (LoopTable* t : {&table::floor, &table::ceil, &table::trunc}) {
    unary(*t, N{}, []<class T>(T a) { return a; });
  }
  unary<1>(table::round, N{}, []<class T>(T a, const T* c) {
    require(c[0] == 0, "round: decimals needs floating-point elements; got ", dtype_of<T>());
    return a;
  });
  unary<3>(table::nan_to_num, I{}, []<class T>(T a, const T*) { return a; });
  unary<2>(table::threshold, AllN{}, []<class T>(T x, const T* c) { return x <= c[0] ? c[1] : x; });
  binary(table::heaviside, AllI{}, []<class T>(T a, T b) { return a == T(0) ? b : T(a > T(0)); });
}

void init_comparison() {
  binary(table::eq, I{}, []<class T>(T a, T b) { return a == b; });
  binary(table::ne, I{}, []<class T>(T a, T b) { return a != b; });
  binary(table::lt, AllI{}, []<class T>(T a, T b) { return a < b; });
  binary(table::le, AllI{}, []<class T>(T a, T b) { return a <= b; });
  binary(table::gt, AllI{}, []<class T>(T a, T b) { return a > b; });
  binary(table::ge, AllI{}, []<class T>(T a, T b) { return a >= b; });
  binary(table::maximum, AllI{}, []<class T>(T a, T b) { return a > b ? a : b; });
  binary(table::minimum, AllI{}, []<class T>(T a, T b) { return a < b ? a : b; });
  table::fmax = table::maximum;
  table::fmin = table::minimum;
  binary(table::logical_and, I{},
         []<class T>(T a, T b) { return bool((a != T(0)) & (b != T(0))); });
  binary(table::logical_or, I{}, []<class T>(T a, T b) { return bool((a != T(0)) | (b != T(0))); });
  binary(table::logical_xor, I{},
         []<class T>(T a, T b) { return bool((a != T(0)) ^ (b != T(0))); });
  unary(table::logical_not, I{}, []<class T>(T a) { return a == T(0); });
  binary(table::bitwise_and, I{}, []<class T>(T a, T b) { return T(a & b); });
  binary(table::bitwise_or, I{}, []<class T>(T a, T b) { return T(a | b); });
  binary(table::bitwise_xor, I{}, []<class T>(T a, T b) { return T(a ^ b); });
  unary(table::bitwise_not, N{}, []<class T>(T a) { return T(~a); });
  table::bitwise_not.fn[static_cast<int>(DType::Bool)] = not_loop;
  table::logical_not.fn[static_cast<int>(DType::Bool)] = not_loop;
  binary(table::shift_left, AllN{}, []<class T>(T a, T b) { return shifted_left(a, b); });
  binary(table::shift_right, AllN{}, []<class T>(T a, T b) { return shifted_right(a, b); });
  unary(table::signbit, I{}, []<class T>(T a) { return a < T(0); });
  for (LoopTable* t : {&table::isnan, &table::isinf, &table::isposinf, &table::isneginf}) {
    unary(*t, I{}, []<class T>(T) { return false; });
  }
  unary(table::isfinite, I{}, []<class T>(T) { return true; });
  [&]<class... T>(TypeList<T...>) {
    ((table::clamp.fn[static_cast<int>(dtype_of<T>())] = clamp_loop<T>), ...);
  }(AllN{});
}

void init_unsigned() {
  using namespace table;
  for (LoopTable* t :
       {&add,         &sub,         &mul,         &neg,         &positive,   &conj,
        &square,      &addcmul,     &floor,       &ceil,        &trunc,      &round,
        &nan_to_num,  &eq,          &ne,          &logical_and, &logical_or, &logical_xor,
        &isnan,       &logical_not, &isinf,       &isfinite,    &isposinf,   &isneginf,
        &bitwise_and, &bitwise_or,  &bitwise_xor, &bitwise_not}) {
    borrow(*t, *t);
  }
  borrow(abs, positive);
  borrow(relu, positive);
  borrow(signbit, isnan);
  copy_unsigned(div_floor, div_trunc);
  copy_unsigned(remainder, fmod);
  copy_unsigned(sgn, sign);
  copy_unsigned(fmax, maximum);
  copy_unsigned(fmin, minimum);
}

}  // namespace

void init_pointwise_integral();
void init_pointwise_integral() {
  init_arithmetic();
  init_comparison();
  init_unsigned();
}

}  // namespace clew::kernels
