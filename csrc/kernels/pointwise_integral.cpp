// Elementwise loops of bool and the integer dtypes.
// May include: base, kernels.
// Invariant: arithmetic wraps around; nothing here is undefined behaviour for any value.
#include "kernels/pointwise.h"
#include "kernels/pointwise_loops.h"

namespace clew::kernels {

namespace {

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

}  // namespace

void init_pointwise_integral() {
  using I = IntegralTypes;
  binary<1>(table::add, I{}, []<class T>(T a, T b, const T* c) { return wrap_add(a, wrap_mul(c[0], b)); });
  binary<1>(table::sub, Integers{}, []<class T>(T a, T b, const T* c) {
    return wrap_sub(a, wrap_mul(c[0], b));
  });
  binary(table::mul, I{}, []<class T>(T a, T b) { return wrap_mul(a, b); });
  unary(table::neg, Integers{}, []<class T>(T a) { return wrap_sub(T(0), a); });
  unary(table::square, I{}, []<class T>(T a) { return wrap_mul(a, a); });
  unary(table::relu, Integers{}, []<class T>(T a) { return a < T(0) ? T(0) : a; });
  binary(table::pow, Integers{}, []<class T>(T a, T b) { return int_pow(a, b); });
  binary(table::eq, I{}, []<class T>(T a, T b) { return a == b; });
  binary(table::ne, I{}, []<class T>(T a, T b) { return a != b; });
  binary(table::lt, I{}, []<class T>(T a, T b) { return a < b; });
  binary(table::le, I{}, []<class T>(T a, T b) { return a <= b; });
  binary(table::gt, I{}, []<class T>(T a, T b) { return a > b; });
  binary(table::ge, I{}, []<class T>(T a, T b) { return a >= b; });
  unary(table::conj, I{}, []<class T>(T a) { return a; });
  binary(table::logical_and, I{}, []<class T>(T a, T b) { return bool((a != T(0)) & (b != T(0))); });
  binary(table::logical_or, I{}, []<class T>(T a, T b) { return bool((a != T(0)) | (b != T(0))); });
  unary(table::logical_not, I{}, []<class T>(T a) { return a == T(0); });
}

}  // namespace clew::kernels
