// Orthogonal polynomials and their derivatives, by recurrence in double precision.
// May include: base.
// Invariant: a value depends on its own number and degree only, however elements are grouped.
#pragma once
#include <cstdint>

namespace clew::kernels {

// In the order of src/clew/special/_polynomials.py; the Chebyshev ones first.
enum class Polynomial : uint8_t {
  chebyshev_t,
  chebyshev_u,
  chebyshev_v,
  chebyshev_w,
  shifted_chebyshev_t,
  shifted_chebyshev_u,
  shifted_chebyshev_v,
  shifted_chebyshev_w,
  hermite_h,
  hermite_he,
  laguerre_l,
  legendre_p,
  count
};

// A greater degree is not computed step by step.
constexpr double greatest_degree = 1 << 24;
constexpr int greatest_derivative = 16;

template <class T> struct PolynomialLoops {
  // The derivative-th derivative of P_n(x) for `count` elements, n cut to an integer; n has one
  // element when `same`. 0 where n < 0, nan where it is not finite. False where a degree was too
  // great for its element.
  bool (*values)(Polynomial which, int derivative, const T* x, const T* n, bool same, int64_t count,
                 T* out);
};
template <class T> const PolynomialLoops<T>& polynomial_loops();

}  // namespace clew::kernels
