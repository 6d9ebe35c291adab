// erf, erfc, erfinv and gelu of float and double without branches and calls, so that loops over
// them vectorise.
// May include: kernels/math/vmath.h, kernels/math/erf_table.h.
// Invariant: within 2 units in the last place of the true value, erfinv of double 2.5
// (tests/ops/test_accuracy.py); infinities and nan as the C library has them.
#pragma once
#include "kernels/math/erf_table.h"
#include "kernels/math/vmath.h"

namespace clew::kernels {
namespace {
namespace vm {

// Near 0 a series in x^2; farther out 1 - 2^p(x), where p stands for the logarithm of erfc.
[[gnu::always_inline]] inline float erf(float x) {
  constexpr float near[] = {1.2837917e-01f, -3.7612623e-01f, 1.1283545e-01f, -2.6852062e-02f,
                            5.1850197e-03f, -7.981631e-04f,  7.7613935e-05f};
  // Around a number whose logarithm is nearly a float.
  constexpr float far[] = {-2.7583175f,    -3.8643394e+00f, -1.2205231e+00f, -5.8560282e-02f,
                           1.3980859e-02f, -2.6096248e-03f, 2.7091603e-04f};
  float a = std::fabs(x);
  float inside = x + x * horner(x * x, near);
  if constexpr (!fuses) {  // the last steps would each be rounded twice
    constexpr float higher[] = {near[2], near[3], near[4], near[5], near[6]};
    const double wide = x, z = wide * wide;
    const double first = near[0] + z * (near[1] + z * horner(x * x, higher));
    inside = static_cast<float>(wide + wide * first);
  }
  float p = horner((a > 4.0f ? 4.0f : a) - 1.0234375f, far);
  float sum = p + round_f;
  float outside = 1.0f - horner(p - (sum - round_f), exp2_series) * power_of_two(sum);
  return a < 1.0f ? inside : std::copysign(outside, x);
}
// Taylor's series of erf() around the entry r of the table that is nearest to a, 0 <= a <= 6; its
// terms are Hermite's polynomials.
struct ErfAround {
  double value, rest;  // of which erf(a) is the sum
  double slope;        // at r
  double r, d;         // a = r + d
};
[[gnu::always_inline]] inline ErfAround erf_around(double a) {
  const double sum = a * erf_steps + round_d;
  const auto k = std::bit_cast<int64_t>(sum) - std::bit_cast<int64_t>(round_d);
  const double r = (sum - round_d) * (1.0 / erf_steps), d = a - r, z = r * r;
  const double c[] = {1.0,
                      -r,
                      (2.0 * z - 1.0) * (1.0 / 3),
                      r * (3.0 - 2.0 * z) * (1.0 / 6),
                      ((4.0 * z - 12.0) * z + 3.0) * (1.0 / 30),
                      r * ((20.0 - 4.0 * z) * z - 15.0) * (1.0 / 90)};
  const ErfPoint point = erf_points[k];
  return {point.value, point.low + point.slope * (d * horner(d, c)), point.slope, r, d};
}
// Near 0 a series in x^2; farther out by the table.
[[gnu::always_inline]] inline double erf(double x) {
  constexpr double last = static_cast<double>(erf_last) / erf_steps;
  const double size = std::fabs(x), a = size < last ? size : last;
  const ErfAround at = erf_around(a);
  const double far = at.value + at.rest;
  constexpr double near[] = {0.1283791670955126,    -0.37612638903183754, 0.1128379167095507,
                             -0.02686617064473118,  0.005223977518708808, -0.0008548198441497106,
                             0.00011983889826181858};
  const double inside = x + x * horner(x * x, near);
  return size < 0.125 ? inside : std::copysign(x != x ? x : far, x);
}

// erfc of a float: e^-x^2 times a polynomial in 3 / (3 + |x|), in double for the sake of the tail.
[[gnu::always_inline]] inline double erfc_of_float(double x) {
  constexpr double c[] = {0.18803688964308718,  0.1886640750800192,     0.17160722390222063,
                          0.19130378861176128,  0.00047369788892729758, 0.39911315732915276,
                          -0.43595692387753648, 0.53185526689956952,    -0.29051625958039429,
                          0.055419081900338237};
  double a = std::fabs(x);
  a = a > 11.0 ? 11.0 : a;
  double t = 3.0 / (3.0 + a);
  double y = exp_moderate(-a * a) * t * horner(t, c);
  y = x < 0 ? 2.0 - y : y;
  return x != x ? x : y;
}

// e^a^2 erfc(a) times a + 1/2, for 0 <= a <= 27.5: a polynomial in t = (a - 3.75) / (a + 3.75), as
// a sum of two.
struct Pair {
  double high, low;
};
[[gnu::always_inline]] inline Pair erfc_factor(double a) {
  constexpr double c[] = {-0.14024059858554702,   0.003585415485462962,    0.0822767384901514,
                          -0.10880393014166122,   0.0923043211602044,      -0.05869339859169503,
                          0.028362277420960855,   -0.009746579533019986,   0.0017556258432912797,
                          0.0002937134869639806,  -0.0002901540840708324,  5.16498977804983e-05,
                          2.2384499859081618e-05, -1.1446436106237418e-05, -9.7489415820499e-07,
                          1.7557884269656721e-06, -5.3784157583767485e-08, -2.631083440776198e-07,
                          1.8262416970357618e-08, 4.088938312997672e-08,   1.8700718187864986e-10,
                          -5.048406803065797e-09, -9.89345734709571e-10};
  constexpr double first = 1.2375126308378275 * 0.5, first_low = 1.0722759485881639e-16 * 0.5;
  const double t = (a - 3.75) / (a + 3.75);
  const double more = 0.5 * (t * two_chains(t, c)), factor = first + more;
  return {factor, sum_error(first, more, factor) + first_low};
}
// erfc of a double: e^-x^2 times that factor, over |x| + 1/2. The bell is a sum of two as well, and
// what the division lost is put back.
[[gnu::always_inline]] inline double erfc(double x) {
  double a = std::fabs(x);
  a = a > 27.5 ? 27.5 : a;
  // e^-a^2 = (start + rest) 2^n
  const double square = a * a, square_low = product_error(a, a, square);
  const double sum = -square * log2_e<double> + round_d, n = sum - round_d;
  const double near = -square - n * ln2_high<double>;
  const double r = near - n * ln2_low<double>;
  const double r_low = ((near - r) - n * ln2_low<double>)-square_low;
  const double start = 1.0 + r, tail = expm1_tail(r);
  const double rest = sum_error(1.0, r, start) + product_and(r_low, start + tail, tail);
  const double below = a + 0.5;
  const double below_low = a > 0.5 ? sum_error(a, 0.5, below) : sum_error(0.5, a, below);
  const Pair factor = erfc_factor(a);
  const double above = start * factor.high;
  const double above_low =
      product_error(start, factor.high, above) + product_and(rest, factor.high, start * factor.low);
  const double inverse = 1.0 / below, q = above * inverse;
  const double left = product_error(q, below, above) - (above_low - q * below_low);
  const double value = raise(q - left * inverse, sum);
  const double far = x < 0.0 ? 2.0 - value : value;
  // 1 - erf(x), erf(x) being less than 1/2
  constexpr double erf_series[] = {0.1283791670955126,     -0.37612638903183754,
                                   0.11283791670955096,    -0.026866170645100065,
                                   0.0052239776241852776,  -0.0008548326769459364,
                                   0.00012055304117671538, -1.492371987381728e-05,
                                   1.6386580835627187e-06, -1.4757128853145018e-07};
  const double inside = 1.0 - (x + x * horner(square, erf_series));
  return x != x ? x : a < 0.46 ? inside : far;
}

// x times a function of w = -log(1 - x^2): a polynomial over all that floats reach, in double,
// whose relative error is 2e-9.
[[gnu::always_inline]] inline float erfinv(float x) {
  constexpr double c[] = {2.6702438965,    1.415621299,      -0.32522644345,   0.12716175394,
                          -0.037887954694, -0.01467151244,   0.041789117608,   -0.046353943173,
                          0.033415360191,  -0.012945376639,  -0.0011965865227, 0.006002890472,
                          -0.013019969514, 0.018098833514,   -0.0051792501471, -0.011124486354,
                          0.0087294301102, 0.00075140038181, -0.002362638097,  0.00053718085724};
  auto wide = static_cast<double>(x);
  double w = -log_for_float(1.0 - wide * wide);
  auto value = static_cast<float>(wide * two_chains(w * (1 / 8.05) - 1.0, c));
  value = std::fabs(x) < 1.0f ? value : std::copysign(inf<float>, x);
  return std::fabs(x) <= 1.0f ? value : nan<float>;
}
// Up to w = 6.25 the slope at 0 and w times a polynomial, farther out a polynomial in the root of
// w. What the roundings of the last products and sums lose is put back.
[[gnu::always_inline]] inline double erfinv(double x) {
  constexpr double near[] = {
      0.24557684391371032,     -0.0054186614881222882,  -0.013436559985088158,
      0.0062031368000126071,   -0.00050446101807376904, -0.00081947958343692206,
      0.00041253805578889618,  -1.8142664953593812e-05, -6.6463290620102653e-05,
      2.9058802791240069e-05,  8.1865100855712379e-07,  -5.6272778363379297e-06,
      2.0253612962160945e-06,  2.5562799141583196e-07,  -4.7547729714074925e-07,
      1.3757282552601388e-07,  3.6792246113580503e-08,  -4.1256767129946506e-08,
      7.7878845254541834e-09,  5.5874536539584005e-09,  -2.7597855919983795e-09,
      -3.1864269542961973e-10, 3.0490010975664964e-10};
  constexpr double far[] = {
      1.8180811747236365,      0.0020239307699238995,   -0.0033068394198309246,
      0.0020664928144223118,   -0.0011020499881782689,  0.00063894071937842126,
      -0.00049849676582650927, 0.00049805548588014565,  -0.00050268795916229433,
      0.00043663713876492357,  -0.00029277420353817724, 0.00012009199209650547,
      1.6282877561607909e-05,  -7.8683497017941335e-05, 7.3977512502734668e-05,
      -3.7318346270859457e-05, 3.2800452658670603e-06,  1.1871900509549053e-05,
      -1.0732624518953023e-05, 4.3674755687459002e-06,  -3.0466665868186506e-07,
      -9.5146954027239548e-07, 9.9765995309810091e-07,  -4.7850171718148839e-07,
      -3.099984888695327e-08,  1.2417122154323459e-07,  -3.4628249956675447e-08};
  constexpr double slope = 0.886226925452758, slope_low = -3.8333e-17;  // half the root of pi
  constexpr double middle_far = 4.142724044720679, middle_far_low = 3.9303e-16;
  double a = std::fabs(x);
  double w = -log(fuses ? std::fma(-a, a, 1.0) : (1.0 - a) * (1.0 + a));
  bool inside = w < 6.25;
  double t = (std::sqrt(w) - 4.3) * (1 / 1.8);
  double constant = inside ? slope : middle_far;
  double rest = inside ? w * two_chains(w * 0.32 - 1.0, near) : t * two_chains(t, far);
  double factor = constant + rest;
  double low = (inside ? slope_low : middle_far_low) + sum_error(constant, rest, factor);
  double product = factor * x;
  double value = product + (product_error(factor, x, product) + low * x);
  return std::copysign(a == 1.0 ? inf<double> : value, x);
}

// --- the normal distribution, for gelu ---

// 2^x, 0 from -126.5 down and infinity from 127.5 up, for -127 <= x <= 128; not for subnormal
// results.
[[gnu::always_inline]] inline float exp2_moderate(float x) {
  float sum = x + round_f;
  return two_chains(x - (sum - round_f), exp2_series) * power_of_two(sum);
}

// P(X > |x|) of a normal X is bell * rest, where bell = e^(-x^2 / 2), and rest is a polynomial in
// 1 / (1 + 0.21 |x|). From |x| = 13.25 on, bell is 0.
struct NormalTail {
  float size, bell, rest;
};
[[gnu::always_inline]] inline NormalTail normal_tail(float x) {
  constexpr float c[] = {8.370606565e-02f,  8.515483952e-02f,  6.862207083e-02f,
                         1.269715713e-01f,  -9.862154532e-02f, 3.559480110e-01f,
                         -3.358131746e-01f, 2.862216416e-01f,  -7.218948077e-02f};
  float a = std::fabs(x);
  a = a > 13.25f ? 13.25f : a;
  float t = 1.0f / (1.0f + 0.21f * a);
  return {a, exp2_moderate(a * a * -0.72134752044448170f), t * two_chains(t, c)};
}
// The same within 8e-6 of it, for results that are rounded to bfloat16: shorter polynomials, and 1
// / (1 + 0.31 |x|).
[[gnu::always_inline]] inline NormalTail normal_tail_short(float x) {
  constexpr float powers[] = {9.99999261e-01f, 6.93121815e-01f, 2.40247450e-01f, 5.59178599e-02f,
                              9.57009666e-03f};
  constexpr float c[] = {1.23860624e-01f, 1.20441940e-01f, 1.33427642e-01f,
                         1.57480135e-02f, 1.80447894e-01f, -7.39284346e-02f};
  float a = std::fabs(x);
  a = a > 13.25f ? 13.25f : a;
  const float t = 1.0f / (1.0f + 0.31f * a), y = a * a * -0.72134752044448170f, sum = y + round_f;
  const float bell = two_chains(y - (sum - round_f), powers) * power_of_two(sum);
  return {a, bell, t * two_chains(t, c)};
}
[[gnu::always_inline]] inline float gelu_short(float x) {
  NormalTail t = normal_tail_short(x);
  return (x < 0.0f ? 0.0f : x) - t.size * (t.bell * t.rest);
}
[[gnu::always_inline]] inline float gelu(float x) {
  NormalTail t = normal_tail(x);
  return (x < 0.0f ? 0.0f : x) - t.size * (t.bell * t.rest);
}
[[gnu::always_inline]] inline float gelu_slope(float x) {
  NormalTail t = normal_tail(x);
  float left = t.bell * (t.rest - t.size * 0.39894228040143267794f);
  return x < 0.0f ? left : 1.0f - left;
}
// sigmoid(-2 sqrt(2 / pi) (a + 0.044715 a^3)), the tail that gelu's tanh form takes; 0 for the
// largest a, which is |x|.
[[gnu::always_inline]] inline float gelu_tanh_tail(float a) {
  return 1.0f / (1.0f + exp2_moderate(a * (a * a * (0.044715f * 2.3022081984f) + 2.3022081984f)));
}
[[gnu::always_inline]] inline double gelu_tanh_tail(double a) {
  return 1.0 /
         (1.0 + exp_moderate(a * (a * a * (0.044715 * 1.5957691216057308) + 1.5957691216057308)));
}
template <class T> [[gnu::always_inline]] inline T gelu_tanh_size(T x) {
  // The powers of these have infinity's exponent.
  constexpr T most = std::is_same_v<T, float> ? T(10.06097) : T(21.1597899);
  T a = std::fabs(x);
  return a > most ? most : a;
}
template <class T> [[gnu::always_inline]] inline T gelu_tanh(T x) {
  T a = gelu_tanh_size(x);
  return (x < T(0) ? T(0) : x) - a * gelu_tanh_tail(a);
}
template <class T> [[gnu::always_inline]] inline T gelu_tanh_slope(T x) {
  T a = gelu_tanh_size(x);
  T tail = gelu_tanh_tail(a);
  T du = T(1.5957691216057308) * (T(1) + T(3 * 0.044715) * a * a);
  T left = tail - a * (tail * (T(1) - tail)) * du;
  return x < T(0) ? left : T(1) - left;
}
[[gnu::always_inline]] inline double gelu(double x) {
  return x < -40.0 ? -0.0 : 0.5 * x * erfc(x * -0.70710678118654752440);
}
[[gnu::always_inline]] inline double gelu_slope(double x) {
  double cdf = 0.5 * erfc(x * -0.70710678118654752440);
  return product_and(x, 0.39894228040143267794 * exp(-0.5 * x * x), cdf);
}

}  // namespace vm
}  // namespace
}  // namespace clew::kernels
