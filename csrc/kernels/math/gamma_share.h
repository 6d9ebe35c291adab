// The regularized incomplete gamma functions of doubles.
// May include: the standard library only.
// Invariant: about 1e-14 relative to the true value, or what `close` says where it is more; special
// values are PyTorch's.
#pragma once
#include <cmath>
#include <limits>

namespace clew::kernels {
namespace {
namespace special {

// Temme's expansion (1979): powers of eta in a row, which is multiplied by a^-k.
inline double temme_sum(double eta, double a, double close) {
  constexpr int rows = 9, columns = 16;
  static constexpr double d[rows][columns] = {
      {-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
       0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
       -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
       1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10,
       -2.5514193994946248e-11},
      {-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
       0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05,
       7.64916091608111e-06, -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07,
       -5.752545603517705e-08, 1.1951628599778148e-08, -1.7543241719747647e-11,
       -1.0091543710600413e-09},
      {0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
       -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05,
       3.423578734096138e-08, 1.3721957309062934e-06, -6.298992138380055e-07,
       1.4280614206064242e-07, -2.0477098421990866e-10, -1.409252991086752e-08,
       6.228974084922022e-09},
      {0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557,
       0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07,
       1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06,
       -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08,
       -1.9111168485973655e-08},
      {-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902,
       -1.4638452578843418e-06, 6.641498215465122e-05, -3.968365047179435e-05,
       1.1375726970678419e-05, 2.507497226237533e-10, -1.6954149536558305e-06,
       8.907507532205309e-07, -2.292934834000805e-07, 2.956794137544049e-11},
      {-0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392,
       -0.00019932570516188847, 6.797780477937208e-05, 1.419062920643967e-07,
       -1.3594048189768693e-05, 8.018470256334202e-06, -2.291481176508095e-06,
       -3.252473551298454e-10, 3.4652846491085265e-07},
      {0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045, 7.902353232660328e-07,
       -8.153969367561969e-05, 5.61168275310625e-05, -1.8329116582843375e-05,
       -3.0796134506033047e-09, 3.465155368803609e-06, -2.0291327396058603e-06},
      {0.00034436760689237765, 5.171790908260592e-05, -0.00033493161081142234,
       0.0002812695154763237, -0.00010976582244684731, -1.2741009095484485e-07,
       2.7744451511563645e-05, -1.8263488805711332e-05, 5.7876949497350525e-06},
      {-0.0006526239185953094, 0.0008394987206720873, -0.000438297098541721, -6.969091458420552e-07,
       0.00016644846642067547, -0.00012783517679769218, 4.629953263691304e-05,
       4.557909867922708e-09},
  };
  const bool narrow = close > 1e-12;
  const double r = 1 / a;
  double sum = 0;
  for (int k = narrow ? 3 : rows - 1; k >= 0; --k) {
    double row = 0;
    for (int n = narrow ? 10 - k : k < 8 ? columns - 1 - k : 7; n >= 0; --n)
      row = row * eta + d[k][n];
    sum = sum * r + row;
  }
  return sum;
}
// m - log(1 + m), which keeps its digits near 0.
inline double log_loss(double m) {
  if (std::fabs(m) > 0.35) return m - std::log1p(m);
  const double t = m / (2 + m), z = t * t;
  double sum = 0;
  for (int k = 25; k >= 3; k -= 2) sum = sum * z + 1.0 / k;
  return m * t - 2 * t * z * sum;
}
// x^a e^-x / gamma(a + 1), for x > 0.
inline double gamma_weight(double a, double x) {
  if (a < 20) {
    // gamma(a + 8) by Stirling's series, over (a + 1) ... (a + 7)
    const double t = a + 8, r = 1 / t, z = r * r;
    const double factors = (a + 1) * (a + 2) * (a + 3) * (a + 4) * (a + 5) * (a + 6) * (a + 7);
    const double series =
        (1. / 12 -
         z * (1. / 360 - z * (1. / 1260 -
                              z * (1. / 1680 - z * (1. / 1188 - z * (691. / 360360 - z / 156)))))) *
        r;
    constexpr double half_log_two_pi = 0.91893853320467274178;
    const double log_gamma = (t - 0.5) * std::log(t) - t + half_log_two_pi + series;
    return factors * std::exp(a * std::log(x) - x - log_gamma);
  }
  const double r = 1 / (a * a);
  const double stirling =
      (1. / 12 - r * (1. / 360 - r * (1. / 1260 - r * (1. / 1680 - r / 1188)))) / a;
  constexpr double two_pi = 6.28318530717958647693;
  return std::exp(-a * log_loss((x - a) / a) - stirling) / std::sqrt(two_pi * a);
}
// The lower function by its series.
inline double gamma_series(double a, double x, double close) {
  double sum = 1, term = 1, n = a;
  for (int k = 0; k < 2000 && term > close * sum; ++k) {
    n += 1;
    term *= x / n;
    sum += term;
  }
  return gamma_weight(a, x) * sum;
}
// log(gamma(1 + a)) for small a, relative to a.
inline double log_gamma_beside_one(double a) {
  if (a > 0.03) return std::lgamma(1 + a);
  constexpr double c[] = {-0.57721566490153286061, 0.82246703342411321824,  -0.40068563438653142847,
                          0.27058080842778454788,  -0.20738555102867398527, 0.16955717699740818995,
                          -0.14404989676884611812, 0.12550966952474304242,  -0.11133426586956469049,
                          0.10009945751278180853};
  double sum = 0;
  for (int k = 9; k >= 0; --k) sum = sum * a + c[k];
  return a * sum;
}
// The upper one for small x and a, where it is not the rest to 1 of what is nearly 1.
inline double gamma_rest(double a, double x, double close) {
  double sum = 0, factor = 1, term;
  int n = 1;
  do {
    factor *= -x / n;
    term = factor / (a + n);
    sum += term;
  } while (std::fabs(term) > close * std::fabs(sum) && ++n < 2000);
  const double log = a * std::log(x) - log_gamma_beside_one(a);
  return -std::expm1(log) - a * std::exp(log) * sum;
}
// The upper one by Legendre's continued fraction.
inline double gamma_fraction(double a, double x, double close) {
  double y = 1 - a, z = x + y + 1, above = x + 1, above_before = 1, below = z * x;
  double below_before = x, value = above / below;
  for (int k = 1; k < 4000; ++k) {
    y += 1;
    z += 2;
    const double f = y * k;
    const double next = above * z - above_before * f, under = below * z - below_before * f;
    above_before = above, above = next;
    below_before = below, below = under;
    if (k % 4) continue;
    const double found = above / below, change = std::fabs(found - value);
    value = found;
    if (change <= close * std::fabs(found)) break;
    if (std::fabs(above) > 1e100) {
      for (double* v : {&above, &above_before, &below, &below_before}) *v *= 1e-100;
    }
  }
  return gamma_weight(a, x) * a * value;
}

// The lower function P(a, x), or the upper one, which is 1 - P.
inline double gamma_share(bool upper, double a, double x, double close) {
  if (a != a || x != x) return a + x;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  if (x < 0 || a < 0) return none;
  if (a == 0) return x > 0 ? static_cast<double>(!upper) : none;
  if (x == 0) return upper;
  if (a == infinite) return x == infinite ? none : static_cast<double>(upper);
  if (x == infinite) return !upper;
  const double m = (x - a) / a;
  if (a >= 60 && std::fabs(m) < 0.3) {
    const double loss = log_loss(m), eta = std::copysign(std::sqrt(2 * loss), m);
    constexpr double two_pi = 6.28318530717958647693;
    const double rest = std::exp(-a * loss) / std::sqrt(two_pi * a) * temme_sum(eta, a, close);
    const double bell = 0.5 * std::erfc((upper ? eta : -eta) * std::sqrt(a / 2));
    return upper ? bell + rest : bell - rest;
  }
  // Which of the two is found, the other being the rest to 1.
  if (x > 1.1 ? x >= a : upper || x > 1) {
    if (x > 1.1) {
      const double found = gamma_fraction(a, x, close);
      return upper ? found : 1 - found;
    }
    const bool lower_is_far_from_1 = x <= 0.5 ? -0.4 / std::log(x) < a : x * 1.1 < a;
    if (!lower_is_far_from_1) {
      const double found = gamma_rest(a, x, close);
      return upper ? found : 1 - found;
    }
  }
  const double found = gamma_series(a, x, close);
  return upper ? 1 - found : found;
}

}  // namespace special
}  // namespace
}  // namespace clew::kernels
