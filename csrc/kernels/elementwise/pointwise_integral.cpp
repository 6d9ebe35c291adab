// The rarer elementwise loops of bool and the integer dtypes (isa_pointwise_integral.cpp has the
// others), and the choice of those of the wider unsigned types.
// May include: base, kernels.
// Invariant: arithmetic wraps around; nothing here is undefined behaviour for any value.
#include <numeric>

#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/integers.h"
#include "kernels/elementwise/pointwise_loops.h"

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

void init_arithmetic() {
  unary(table::conj, I{}, []<class T>(T a) { return a; });
  binary(table::pow, AllN{}, []<class T>(T a, T b) { return int_pow(a, b); });
  binary(table::gcd, AllN{}, []<class T>(T a, T b) { return common_divisor(a, b); });
  binary(table::lcm, AllN{}, []<class T>(T a, T b) {
    T g = common_divisor(a, b);
    return g == 0 ? T(0) : absolute(wrap_mul(quotient(a, g), b));
  });
  ternary<1>(table::addcmul, N{}, []<class T>(T x, T a, T b, const T* c) {
    return wrap_add(x, wrap_mul(wrap_mul(c[0], a), b));
  });
  for (LoopTable* t : {&table::sign, &table::sgn})
    unary(*t, Bools{}, []<class T>(T a) { return a; });
  for (LoopTable* t : {&table::floor, &table::ceil, &table::trunc}) {
    unary(*t, N{}, []<class T>(T a) { return a; });
  }
  unary<1>(table::round, N{}, []<class T>(T a, const T* c) {
    if (c[0] != 0)
      fail(ErrorKind::NotImplemented, "round: decimals needs floating-point elements; got ",
           dtype_of<T>());
    return a;
  });
  unary<3>(table::nan_to_num, I{}, []<class T>(T a, const T*) { return a; });
  unary<2>(table::threshold, AllN{}, []<class T>(T x, const T* c) { return x <= c[0] ? c[1] : x; });
  binary(table::heaviside, AllI{}, []<class T>(T a, T b) { return a == T(0) ? b : T(a > T(0)); });
}

void init_tests() {
  unary(table::signbit, I{}, []<class T>(T a) { return a < T(0); });
  for (LoopTable* t : {&table::isnan, &table::isinf, &table::isposinf, &table::isneginf}) {
    unary(*t, I{}, []<class T>(T) { return false; });
  }
  unary(table::isfinite, I{}, []<class T>(T) { return true; });
}

}  // namespace

// After all loops of signed integers are there.
void init_pointwise_unsigned();
void init_pointwise_unsigned() {
  using namespace table;
  for (LoopTable* t :
       {&add,         &sub,        &mul,         &neg,        &conj,        &square,     &addcmul,
        &floor,       &ceil,       &trunc,       &round,      &nan_to_num,  &eq,         &ne,
        &logical_and, &logical_or, &logical_xor, &isnan,      &logical_not, &isinf,      &isfinite,
        &isposinf,    &isneginf,   &bitwise_and, &bitwise_or, &bitwise_xor, &bitwise_not}) {
    borrow(*t, *t);
  }
  borrow(abs, conj);
  borrow(relu, conj);
  borrow(signbit, isnan);
  copy_unsigned(div_floor, div_trunc);
  copy_unsigned(remainder, fmod);
  copy_unsigned(sgn, sign);
  copy_unsigned(fmax, maximum);
  copy_unsigned(fmin, minimum);
}

void init_pointwise_integral();
void init_pointwise_integral() {
  init_arithmetic();
  init_tests();
}

}  // namespace clew::kernels
