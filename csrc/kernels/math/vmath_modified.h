// Modified Bessel functions of the second kind, of order 0 and 1, of doubles.
// May include: kernels/math.
// Invariant: errors are below 4 units in the last place (tests/ops/test_special.py).
#pragma once
#include "kernels/math/vmath.h"

namespace clew::kernels {
namespace {
namespace vm {

// log(x / 2), also where x / 2 is too small for a double.
[[gnu::always_inline]] inline double log_of_half(double x) {
  const bool tiny = x < 1e-300;
  return log(tiny ? x : 0.5 * x) - (tiny ? 0.69314718055994530942 : 0.0);
}

// Up to 2: -log(x / 2) I0(x) and a polynomial; log(x / 2) I1(x) and a polynomial over x. All are
// polynomials in x^2 / 2 - 1.
[[gnu::always_inline]] inline double bessel_k0_near(double x) {
  constexpr double i0[] = {1.5660829297563505,    0.63586172815606856,    0.073589868361053349,
                           0.0039285651056368085, 0.0001198206858163441,  2.3575789878938216e-6,
                           3.2362273523765379e-8, 3.2732478435364701e-10, 2.5398791970311192e-12,
                           1.5591722255510925e-14};
  constexpr double rest[] = {-0.30362077291575547,  0.34049732101338059,    0.071777010342405096,
                             0.0050533926431960922, 0.0001828055582791554,  4.054506619949891e-6,
                             6.0933618941721138e-8, 6.6230132727944524e-10, 5.4525646627725857e-12,
                             3.5186315158547223e-14};
  const double t = 0.5 * x * x - 1.0;
  return two_chains(t, rest) - log_of_half(x) * two_chains(t, i0);
}
[[gnu::always_inline]] inline double bessel_k1_near(double x) {
  constexpr double i1[] = {0.63586172815606856,    0.14717973672210671,    0.011785695316910425,
                           0.00047928274326513388, 1.1787894939469931e-5,  1.9417364216117699e-7,
                           2.2912734889380408e-9,  2.0317481447162442e-11, 1.4032637886429536e-13,
                           7.7606454325589899e-16};
  constexpr double rest[] = {
      0.88508828772958935,     -0.33224095524031308,   -0.24383852886774365,
      -0.027854235219771843,   -0.0013831688466153065, -3.8918690643716332e-5,
      -7.0811337701846787e-7,  -9.0321275017406785e-9, -8.5327351140497797e-11,
      -6.2142716173295768e-13, -3.5962181014457792e-15};
  const double t = 0.5 * x * x - 1.0;
  return two_chains(t, rest) / x + log_of_half(x) * (x * two_chains(t, i1));
}
// Beyond 2: sqrt(x) e^x K(x), a polynomial in 4 / x - 1.
template <int order> [[gnu::always_inline]] inline double bessel_k_far(double x) {
  constexpr double c0[] = {1.2185953385133905,      -0.031071461824889897,  0.0030328918102753206,
                           -0.00047976905673288439, 9.956054742029419e-5,   -2.473520542848972e-5,
                           7.002245645755651e-6,    -2.1911673837417865e-6, 7.4278012321900959e-7,
                           -2.6897598655395838e-7,  1.02954317593912e-7,    -4.1056738724915364e-8,
                           1.7047535884249696e-8,   -8.025205604904476e-9,  3.8083998599190429e-9,
                           -6.6438786318432343e-10, 4.7575447057763741e-11, -1.2366923277096288e-9,
                           8.1339132054641146e-10,  4.3927260002107632e-10, -3.119936129682105e-10,
                           -1.7597528809195707e-10, 1.0926983537268735e-10};
  constexpr double c1[] = {1.363151890371342,       0.10334973775386564,     -0.0055667298800745882,
                           0.00073572415487183855,  -0.00013959021956272224, 3.2843866502355956e-5,
                           -8.9612073877500252e-6,  2.7300301043527216e-6,   -9.0670876333713933e-7,
                           3.2305671988539342e-7,   -1.2203186351938404e-7,  4.8154346790854778e-8,
                           -1.9817577141591115e-8,  9.2138940202895326e-9,   -4.3319399856586292e-9,
                           7.9662427985040942e-10,  -8.3362271959914565e-11, 1.3615859404460647e-9,
                           -8.9085967109239057e-10, -4.77441121785095e-10,   3.3867804167808004e-10,
                           1.9273808087540516e-10,  -1.1931668393112158e-10};
  const double t = 4.0 / x - 1.0;
  return order == 0 ? two_chains(t, c0) : two_chains(t, c1);
}

// Kinds of arguments: up to 2, beyond, and what is not positive. The scaled function is e^x K(x).
template <int order, bool scaled> struct ModifiedBessel {
  static constexpr int kinds = 3;
  [[gnu::always_inline]] static int kind(double x) { return (x > 2.0) + 2 * !(x > 0.0); }
  template <int kind> [[gnu::always_inline]] static double of(double x) {
    if constexpr (kind == 0) {
      const double value = order == 0 ? bessel_k0_near(x) : bessel_k1_near(x);
      return scaled ? value * exp(x) : value;
    } else if constexpr (kind == 1) {
      const double value = bessel_k_far<order>(x) / std::sqrt(x);
      return scaled ? value : value * exp(-x);
    } else {
      return x == 0.0 ? inf<double> : nan<double>;
    }
  }
};

}  // namespace vm
}  // namespace
}  // namespace clew::kernels
