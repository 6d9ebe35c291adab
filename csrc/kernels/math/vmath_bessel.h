// Bessel functions of the first and second kind of order 0 and 1, and Airy's function, of doubles:
// parts without branches for arguments of one kind, so that loops over them vectorise, and
// functions of the C library's for arguments so far out that few meet them.
// May include: kernels/math.
// Invariant: near zeros the first kind keeps its digits up to 8, Ai those of its first zeros; else
// errors are below 4e-16 of the wave's height, Y0 and Y1 1e-15 (tests/ops/test_special.py).
#pragma once
#include <utility>

#include "kernels/math/airy_table.h"
#include "kernels/math/vmath.h"
#include "kernels/math/vmath_circular.h"

namespace clew::kernels {
namespace {
namespace vm {

// --- up to 8 ---

// The function's zeros are factors, in two parts each. The others are sums of positive terms:
// powers of (64 - x^2) / 64.
struct Root {
  double high, low;
};
[[gnu::always_inline]] inline double beside_roots(double x, Root first, Root second) {
  const double a = (x - first.high) - first.low, b = (x - second.high) - second.low;
  return (a * (x + first.high)) * (b * (x + second.high));
}
[[gnu::always_inline]] inline double bessel_j0_near(double x) {
  constexpr double c[] = {8.7938734708429972e-5,  0.00074536070329544357, 0.001594526960180222,
                          0.0016415498481545492,  0.0010162823041466782,  0.00042460926989753733,
                          0.00012855143971089636, 2.9604873176884604e-5,  5.3729804223838122e-6,
                          7.8951699571626395e-7,  9.5954605853834558e-8,  9.8137871691343152e-9,
                          8.5696971593637473e-10, 6.4545707385327685e-11, 4.3176493613831241e-12,
                          2.2199649139962688e-13, 1.8783012764117541e-14};
  const double a = std::fabs(x);
  const double roots = beside_roots(a, {2.404825557695773, -1.176691651530894e-16},
                                    {5.520078110286311, 8.088597146146722e-17});
  return roots * two_chains(1.0 - a * a * (1.0 / 64), c);
}
[[gnu::always_inline]] inline double bessel_j1_near(double x) {
  constexpr double c[] = {4.0232757124382826e-5,  0.00014890865399199933, 0.00021255683740965021,
                          0.00016677846521609079, 8.4025505968029434e-5,  2.971249258766856e-5,
                          7.815812370617581e-6,   1.5936450344442573e-6,  2.5974882841319435e-7,
                          3.4661733943021975e-8,  3.8601229251119377e-9,  3.644998382861497e-10,
                          2.9515582591415454e-11, 2.1110743507898864e-12, 1.1580372370522445e-13,
                          1.0362041699692461e-14};
  const double a = std::fabs(x);
  const double roots = beside_roots(a, {3.8317059702075125, -1.5269184090088067e-16},
                                    {7.015586669815619, -9.414165653410389e-17});
  return x * (roots * two_chains(1.0 - a * a * (1.0 / 64), c));
}
// 2 / pi log(x) J(x), and polynomials in x^2 / 32 - 1.
inline constexpr double two_over_pi = 0.63661977236758134308;
[[gnu::always_inline]] inline double bessel_y0_near(double x) {
  constexpr double c[] = {-0.38225065445942502,   -0.82843589036045877,    1.6470964788745467,
                          0.14412632369302442,    -1.0775477338215995,     0.67217707834317233,
                          -0.21895747096171651,   0.046367047681347098,    -0.0070257410572698258,
                          0.00080615860605506437, -7.2795418827846533e-5,  5.3213186337351156e-6,
                          -3.2185077885022698e-7, 1.6391065268260487e-8,   -7.1305169403024277e-10,
                          2.6818221378477359e-11, -8.8105254643196854e-13, 2.558039436392922e-14,
                          -6.5748070563145105e-16};
  return two_chains(x * x * (1.0 / 32) - 1.0, c) + two_over_pi * (log(x) * bessel_j0_near(x));
}
[[gnu::always_inline]] inline double bessel_y1_near(double x) {
  constexpr double c[] = {0.070759858821180053,   -0.24337743079193114,    0.023367571720993585,
                          0.23507209206669754,    -0.19639839859930425,    0.078547869222425443,
                          -0.019628756833099424,  0.0034224907399180456,   -0.00044381734351149874,
                          4.4674330129144127e-5,  -3.6009998743578152e-6,  2.3804929913660279e-7,
                          -1.3153322551127246e-8, 6.1697426133329676e-10,  -2.4887509903377127e-11,
                          8.7288101348334147e-13, -2.6951389583840329e-14, 7.3390609751619913e-16};
  const double rest = x * two_chains(x * x * (1.0 / 32) - 1.0, c);
  const double value = rest + two_over_pi * (log(x) * bessel_j1_near(x) - 1.0 / x);
  return x == 0.0 ? -inf<double> : value;
}

// --- beyond 8 ---

// Hankel's two series of order 0 and 1, as polynomials in 128 / x^2 - 1; the second one is over x.
struct Hankel {
  double p, q;
};
template <int order> [[gnu::always_inline]] inline Hankel hankel(double x) {
  constexpr double p0[] = {
      0.99945727578825194,     -0.00053636731921296725, 6.1374160812835237e-6,
      -2.0527448261170676e-7,  1.2803747743828764e-8,   -1.2121098178951377e-9,
      1.550640953808597e-10,   -2.491146535471666e-11,  4.6742893076243883e-12,
      -1.0157485021065687e-12, 3.4550129744557426e-13,  -1.0251790052830972e-13};
  constexpr double q0[] = {
      -0.12444091103610802,    0.00054665192794720341,  -1.1817110670326766e-5,
      5.6849719722658475e-7,   -4.5349624009411742e-8,  5.1461591930522476e-9,
      -7.5806487593768467e-10, 1.3648323784698618e-10,  -2.7917672162902244e-11,
      6.5380164679928047e-12,  -2.4985313819197632e-12, 7.9152160524723616e-13};
  constexpr double p1[] = {
      1.0009070262780822,      0.00089880494167051827,  -7.959694699684787e-6,
      2.4536766333666929e-7,   -1.4708498448932156e-8,  1.3602969253877949e-9,
      -1.7137279585997967e-10, 2.7234512682813398e-11,  -5.0714952956967521e-12,
      1.0954826479277635e-12,  -3.6972445912442964e-13, 1.092371365307942e-13};
  constexpr double q1[] = {
      0.37421499221959168,    -0.00076971670576402916, 1.4569614819521505e-5,
      -6.6335686566649358e-7, 5.1360949369410442e-8,   -5.7208143975433607e-9,
      8.3206544862400706e-10, -1.4842814504504141e-10, 3.0166510460295077e-11,
      -7.028011349149183e-12, 2.6657926995080727e-12,  -8.4124856580695322e-13};
  const double r = 1.0 / x, t = 128.0 * r * r - 1.0;
  if constexpr (order == 0)
    return {two_chains(t, p0), two_chains(t, q0) * r};
  else
    return {two_chains(t, p1), two_chains(t, q1) * r};
}
// The wave, given the sine and the cosine of x > 0. Sine and cosine of x minus an eighth or three
// eighths of a turn are sums of these two.
template <int order, bool second>
[[gnu::always_inline]] inline double bessel_wave(double x, double sin, double cos) {
  const Hankel h = hankel<order>(x);
  const double sum = sin + cos, difference = sin - cos;
  double wave;
  if constexpr (order == 0)
    wave = second ? h.p * difference + h.q * sum : h.p * sum - h.q * difference;
  else
    wave = second ? h.q * difference - h.p * sum : h.p * difference + h.q * sum;
  return 0.56418958354775628695 / std::sqrt(x) * wave;  // 1 / sqrt(pi x)
}

// Kinds of arguments, and the function of each: near, far, and beyond the vector sine.
template <int order, bool second> struct Bessel {
  static constexpr int kinds = 3;
  [[gnu::always_inline]] static int kind(double x) {
    const double a = std::fabs(x);
    return (a > 8.0) + (a > trig_limit<double>);
  }
  // The first kind of order 0 is even, of order 1 odd; the second kind has no value below 0.
  [[gnu::always_inline]] static double signed_as(double x, double value) {
    if constexpr (second) return x < 0.0 ? nan<double> : value;
    return order == 1 ? std::copysign(1.0, x) * value : value;
  }
  template <int kind> [[gnu::always_inline]] static double of(double x) {
    const double a = std::fabs(x);
    if constexpr (kind == 1) {
      const SinCos<double> t = sincos(a);
      return signed_as(x, bessel_wave<order, second>(a, t.sin, t.cos));
    } else if constexpr (kind == 2) {
      return signed_as(x, bessel_wave<order, second>(a, std::sin(a), std::cos(a)));
    } else if constexpr (second) {
      return order == 0 ? bessel_y0_near(x) : bessel_y1_near(x);
    } else {
      return order == 0 ? bessel_j0_near(x) : bessel_j1_near(x);
    }
  }
};

// --- Airy's function ---

// Taylor's series around the nearest entry of the table, whose coefficients follow from y'' = x y.
template <bool slope> [[gnu::always_inline]] inline double airy_near(double x) {
  const double inside = std::fabs(x) <= airy_end ? x : 0.0;  // other lanes may be outside
  const double sum = inside * airy_steps + round_d, at = (sum - round_d) * (1.0 / airy_steps);
  const auto k = std::bit_cast<int64_t>(sum) - std::bit_cast<int64_t>(round_d);
  const AiryPoint point = airy_points[k + airy_end * airy_steps];
  const double h = x - at;
  double c[15] = {point.value, point.slope, at * point.value * 0.5};
  c[3] = (at * c[1] + c[0]) * (1.0 / 6);
  c[4] = (at * c[2] + c[1]) * (1.0 / 12);
  c[5] = (at * c[3] + c[2]) * (1.0 / 20);
  c[6] = (at * c[4] + c[3]) * (1.0 / 30);
  c[7] = (at * c[5] + c[4]) * (1.0 / 42);
  c[8] = (at * c[6] + c[5]) * (1.0 / 56);
  c[9] = (at * c[7] + c[6]) * (1.0 / 72);
  c[10] = (at * c[8] + c[7]) * (1.0 / 90);
  c[11] = (at * c[9] + c[8]) * (1.0 / 110);
  c[12] = (at * c[10] + c[9]) * (1.0 / 132);
  c[13] = (at * c[11] + c[10]) * (1.0 / 156);
  c[14] = (at * c[12] + c[11]) * (1.0 / 182);
  if constexpr (!slope) return horner(h, c);
  const double d[] = {c[1],       2 * c[2],   3 * c[3],   4 * c[4],  5 * c[5],
                      6 * c[6],   7 * c[7],   8 * c[8],   9 * c[9],  10 * c[10],
                      11 * c[11], 12 * c[12], 13 * c[13], 14 * c[14]};
  return horner(h, d);
}
// Farther out: the series in 1 / z with z = 2 / 3 |x|^(3 / 2). The rounding of z is kept apart: it
// changes the exponential, or the wave, as it is.
struct AiryFar {
  double z, low, even, odd, size;  // sums of even and odd terms
};
template <bool slope> [[gnu::always_inline]] inline AiryFar airy_far(double x) {
  constexpr double even_u[] = {1.0,
                               0.037133487654320988,
                               0.057649190412669721,
                               0.29159139923075051,
                               3.079453030173167,
                               55.622785365917083,
                               1533.1694320127956};
  constexpr double odd_u[] = {0.069444444444444444, 0.03799305912780064, 0.11609906402551541,
                              0.87766696951001692,  12.341573332345239,  278.46508077760257,
                              9207.2065997264147};
  constexpr double even_v[] = {1.0,
                               -0.043885030864197531,
                               -0.062662163492032306,
                               -0.30825376490107911,
                               -3.2104935846486209,
                               -57.508303513914272,
                               -1576.3573033370997};
  constexpr double odd_v[] = {-0.097222222222222222, -0.042462830789894833, -0.12410589602727509,
                              -0.92047999241294457,  -12.807293080735625,   -287.03323710922111,
                              -9446.354823095932};

  const double a = std::fabs(x), root = std::sqrt(a);
  const double product = a * root, lost = product_error(a, root, product);
  const double root_lost = -product_error(root, root, a) / (2.0 * root);
  constexpr double third = 2.0 / 3, third_low = 3.7007434154171886e-17;
  const double z = product * third;
  const double low =
      product_error(product, third, z) + product * third_low + (lost + a * root_lost) * third;
  const double r = 1.0 / z, square = x < 0.0 ? -(r * r) : r * r;  // signs change every other term
  constexpr double height = 0.56418958354775628695;               // 1 / sqrt(pi)
  const double quarter = std::sqrt(root);
  return {z, low, slope ? horner(square, even_v) : horner(square, even_u),
          r * (slope ? horner(square, odd_v) : horner(square, odd_u)),
          height * (slope ? quarter : 1.0 / quarter)};
}
template <bool slope> [[gnu::always_inline]] inline double airy_above(double x) {
  const AiryFar f = airy_far<slope>(x);
  const double e = exp(-f.z), value = 0.5 * f.size * ((e - e * f.low) * (f.even - f.odd));
  return slope ? -value : value;
}
template <bool slope>
[[gnu::always_inline]] inline double airy_wave(const AiryFar& f, double sin, double cos) {
  constexpr double root_half = 0.70710678118654752440;
  const double s = sin + f.low * cos, c = cos - f.low * sin;
  const double wave =
      slope ? f.even * (s - c) - f.odd * (s + c) : f.even * (s + c) + f.odd * (s - c);
  return root_half * f.size * wave;
}
// Kinds of arguments: inside the table, above it, so far above it that the result is 0, below it,
// and too large for the vector sine.
template <bool slope> struct Airy {
  static constexpr int kinds = 5;
  [[gnu::always_inline]] static int kind(double x) {
    const int above = (x > airy_end) + (x > 108.0), below = (x < -airy_end) + (x < -2000.0);
    return above + (below != 0 ? 2 + below : 0);
  }
  template <int kind> [[gnu::always_inline]] static double of(double x) {
    if constexpr (kind == 0) {
      return airy_near<slope>(x);
    } else if constexpr (kind == 1) {
      return airy_above<slope>(x);
    } else if constexpr (kind == 2) {
      return x == inf<double> ? nan<double> : slope ? -0.0 : 0.0;  // as in PyTorch
    } else if constexpr (kind == 3) {
      const AiryFar f = airy_far<slope>(x);
      const SinCos<double> t = sincos(f.z);
      return airy_wave<slope>(f, t.sin, t.cos);
    } else {
      AiryFar f = airy_far<slope>(x);
      // Here the rounding may be many turns.
      const double s = std::sin(f.z), c = std::cos(f.z), low = std::exchange(f.low, 0.0);
      const double sin_low = std::sin(low), cos_low = std::cos(low);
      return airy_wave<slope>(f, s * cos_low + c * sin_low, c * cos_low - s * sin_low);
    }
  }
};

}  // namespace vm
}  // namespace
}  // namespace clew::kernels
