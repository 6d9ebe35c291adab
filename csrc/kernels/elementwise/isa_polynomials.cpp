// Recurrences of orthogonal polynomials, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elementwise/polynomials.h"

// Vectors are passed between functions of this file only, all of which are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace clew::kernels::CLEW_ISA {
namespace {

// As many lanes as a register has.
#ifdef __AVX512F__
constexpr int L = 8;
#elif defined(__AVX__)
constexpr int L = 4;
#else
constexpr int L = 2;
#endif
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// P_0 = 1, P_1 = s x + t, P_k = (a x + b) P_{k-1} - c P_{k-2}.
struct Start {
  double s, t;
};
constexpr Start starts[] = {{1, 0},  {2, 0},  {2, -1}, {2, 1}, {2, -1}, {4, -2},
                            {4, -3}, {4, -1}, {2, 0},  {1, 0}, {-1, 1}, {1, 0}};
struct Rule {
  double a, b, c;
};
enum class Kind : uint8_t { plain, moved, hermite, probabilistic, laguerre, legendre };
constexpr Kind kinds[] = {Kind::plain,   Kind::plain,         Kind::plain,    Kind::plain,
                          Kind::moved,   Kind::moved,         Kind::moved,    Kind::moved,
                          Kind::hermite, Kind::probabilistic, Kind::laguerre, Kind::legendre};
template <Kind kind> [[gnu::always_inline]] inline Rule rule_of(double k) {
  switch (kind) {
    case Kind::plain: return {2, 0, 1};
    case Kind::moved: return {4, -2, 1};
    case Kind::hermite: return {2, 0, 2 * k - 2};
    case Kind::probabilistic: return {1, 0, k - 1};
    case Kind::laguerre: return {-1 / k, (2 * k - 1) / k, (k - 1) / k};
    default: return {(2 * k - 1) / k, 0, (k - 1) / k};
  }
}

// Chebyshev polynomials of great degree by their angle.
double by_angle(Polynomial which, double x, double n) {
  int kind = static_cast<int>(which);
  if (kind >= 4) {
    kind -= 4;
    x = 2 * x - 1;
  }
  const double sign = x < 0 && std::fmod(n, 2) != 0 ? -1 : 1;
  // At -x, V equals W up to sign, and W equals V.
  if (x < 0 && kind >= 2) kind = 5 - kind;
  x = std::fabs(x);
  if (x == 1) return sign * (kind == 1 ? n + 1 : kind == 3 ? 2 * n + 1 : 1);
  const bool inside = x < 1;
  const double angle = inside ? std::acos(x) : std::acosh(x);
  auto cosine = [&](double v) { return inside ? std::cos(v) : std::cosh(v); };
  auto sine = [&](double v) { return inside ? std::sin(v) : std::sinh(v); };
  switch (kind) {
    case 0: return sign * cosine(n * angle);
    case 1: return sign * sine((n + 1) * angle) / sine(angle);
    case 2: return sign * cosine((n + 0.5) * angle) / cosine(angle / 2);
    default: return sign * sine((n + 0.5) * angle) / sine(angle / 2);
  }
}
constexpr double by_angle_from = 64;

typedef double Lanes __attribute__((vector_size(L * sizeof(double))));

// L elements, all of degree `top` unless that is negative; row d of older and newer is the d-th
// derivative of P_{k-1} and P_k.
template <int Rows, Kind kind>
bool block(Start start, int derivative, double top, const double* numbers, const double* degrees,
           double* made) {
  const int rows = Rows ? Rows : derivative + 1;
  Lanes older[Rows ? Rows : greatest_derivative + 1] = {};
  Lanes newer[Rows ? Rows : greatest_derivative + 1] = {};
  const Lanes x = *reinterpret_cast<const Lanes*>(numbers);
  const Lanes degree = *reinterpret_cast<const Lanes*>(degrees);
  Lanes out = {};
  const bool same = top >= 0;
  if (!same) {
    for (int l = 0; l < L; ++l) top = std::max(top, degrees[l]);
  }
  older[0] += 1;
  newer[0] = start.s * x + start.t;
  if (rows > 1) newer[1] += start.s;
  const int last = rows - 1;
  out = degree == Lanes{} ? older[last] : out;
  out = degree == Lanes{} + 1 ? newer[last] : out;
  double k = 1;
  while (k < top) {
    // Between two looks at whether anything but nan is left.
    const double stop = std::min({top, k + 256, greatest_degree});
    if (k >= stop) return false;
    while (k < stop) {
      k += 1;
      const Rule r = rule_of<kind>(k);
      for (int d = last; d >= 0; --d) {
        Lanes next = (r.a * x + r.b) * newer[d] - r.c * older[d];
        if (d > 0) next += r.a * d * newer[d - 1];
        older[d] = newer[d];
        newer[d] = next;
      }
      if (!same) out = degree == Lanes{} + k ? newer[last] : out;
    }
    if (k == top) break;
    bool left = false;
    for (int l = 0; l < L; ++l) left |= degrees[l] > k && newer[last][l] == newer[last][l];
    if (!left) {
      for (int l = 0; l < L; ++l) made[l] = degrees[l] > k ? nan : out[l];
      return true;
    }
  }
  if (same && top > 1) out = newer[last];
  *reinterpret_cast<Lanes*>(made) = out;
  return true;
}
using Block = bool (*)(Start, int, double, const double*, const double*, double*);
template <int Rows> Block block_of(Polynomial which) {
  switch (kinds[static_cast<int>(which)]) {
    case Kind::plain: return block<Rows, Kind::plain>;
    case Kind::moved: return block<Rows, Kind::moved>;
    case Kind::hermite: return block<Rows, Kind::hermite>;
    case Kind::probabilistic: return block<Rows, Kind::probabilistic>;
    case Kind::laguerre: return block<Rows, Kind::laguerre>;
    default: return block<Rows, Kind::legendre>;
  }
}

template <class T>
bool values(Polynomial which, int derivative, const T* x, const T* n, bool same, int64_t count,
            T* out) {
  const bool angular = which <= Polynomial::shifted_chebyshev_w && derivative == 0;
  const Start start = starts[static_cast<int>(which)];
  const Block run = derivative == 0   ? block_of<1>(which)
                    : derivative == 1 ? block_of<2>(which)
                                      : block_of<0>(which);
  alignas(64) double numbers[L], degrees[L], made[L];
  bool great = false, lost[L];
  auto read_degrees = [&](const T* from, int64_t left, int64_t step) {
    great = false;
    for (int64_t l = 0; l < L; ++l) {
      const double d = static_cast<double>(from[std::min(l, left - 1) * step]);
      lost[l] = !(std::fabs(d) <= std::numeric_limits<double>::max());
      degrees[l] = lost[l] ? -1 : std::trunc(d);
      great |= degrees[l] > by_angle_from;
    }
  };
  double top = -1;
  if (same) {
    read_degrees(n, 1, 0);
    top = std::max(degrees[0], -1.0);
    if (top < 0) {
      std::fill_n(out, count, static_cast<T>(lost[0] ? nan : 0.0));
      return true;
    }
  }
  for (int64_t i = 0; i < count; i += L) {
    const int64_t left = std::min<int64_t>(L, count - i);
    if (left == L) {
      for (int l = 0; l < L; ++l) numbers[l] = static_cast<double>(x[i + l]);
    } else {
      for (int64_t l = 0; l < L; ++l)
        numbers[l] = static_cast<double>(x[i + std::min(l, left - 1)]);
    }
    if (!same) read_degrees(n + i, left, 1);
    if (angular && great) {
      alignas(64) double low[L];
      for (int l = 0; l < L; ++l) low[l] = degrees[l] > by_angle_from ? -1 : degrees[l];
      run(start, 0, -1, numbers, low, made);
      for (int l = 0; l < L; ++l) {
        if (degrees[l] > by_angle_from) made[l] = by_angle(which, numbers[l], degrees[l]);
      }
    } else if (!run(start, derivative, top, numbers, degrees, made)) {
      return false;
    }
    if (same && left == L) {
      for (int l = 0; l < L; ++l) out[i + l] = static_cast<T>(made[l]);
    } else {
      for (int64_t l = 0; l < left; ++l) out[i + l] = static_cast<T>(lost[l] ? nan : made[l]);
    }
  }
  return true;
}

}  // namespace

extern const PolynomialLoops<float> polynomials_float;
extern const PolynomialLoops<double> polynomials_double;
const PolynomialLoops<float> polynomials_float = {values<float>};
const PolynomialLoops<double> polynomials_double = {values<double>};

}  // namespace clew::kernels::CLEW_ISA
