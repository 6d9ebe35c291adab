// Float loops of the functions that call the C library or special_math.h element by element.
// May include: base, kernels.
// Invariant: one version for all processors; only float dtypes are set here.
#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/pointwise_loops.h"
#include "kernels/math/gamma_share.h"
#include "kernels/math/special_math.h"

namespace clew::kernels {

namespace {

using F = FloatTypes;

// Where a series of doubles may end, relative to its sum.
template <class T> constexpr double series_end = std::is_same_v<T, float> ? 1e-10 : 5e-17;

void init_two_numbers() {
  binary(table::zeta, F{}, []<class T>(T a, T b) { return T(special::zeta(a, b)); });
  binary(table::gammainc, F{}, []<class T>(T a, T x) {
    return static_cast<T>(special::gamma_share(false, a, x, series_end<T>));
  });
  binary(table::gammaincc, F{}, []<class T>(T a, T x) {
    return static_cast<T>(special::gamma_share(true, a, x, series_end<T>));
  });
}

// n is the same for all; the first derivative, which digamma's gradient is, has loops of its own.
template <class T>
void polygamma_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  if (params[0].equals(1))
    return table::trigamma.fn[static_cast<int>(dtype_of<T>())](p, s, n, params);
  auto f = []<class U>(U a, const U* c) { return U(special::polygamma(c[0], a)); };
  unary_loop<T, decltype(f), 1>(p, s, n, params);
}

void init_special() {
  unary(table::conj, F{}, []<class T>(T a) { return a; });
  unary(table::lgamma, TypeList<double>{}, [](double a) { return std::lgamma(a); });
  unary(table::digamma, TypeList<double>{}, [](double a) { return special::digamma(a); });
  [&]<class... T>(TypeList<T...>) {
    ((table::polygamma.fn[static_cast<int>(dtype_of<T>())] = polygamma_loop<T>), ...);
  }(F{});
  unary(table::trigamma, TypeList<double>{}, [](double a) { return special::polygamma(1, a); });
  unary(table::i0, TypeList<double>{}, [](double a) { return special::bessel_i(0, a); });
  unary(table::i0e, TypeList<double>{}, [](double a) { return special::bessel_i_scaled(0, a); });
  unary(table::i1, TypeList<double>{}, [](double a) { return special::bessel_i(1, a); });
  unary(table::i1e, TypeList<double>{}, [](double a) { return special::bessel_i_scaled(1, a); });
}

}  // namespace

void init_pointwise_special();
void init_pointwise_special() {
  init_two_numbers();
  init_special();
}

}  // namespace clew::kernels
