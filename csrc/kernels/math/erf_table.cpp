// The tables of erf_table.h.
// May include: kernels.
// Invariant: entries are the C library's; where long double is longer, the error function's sums
// are better than a double.
#include "kernels/math/erf_table.h"

#include <cmath>

namespace clew::kernels {

ErfPoint erf_points[erf_last + 1];
ErfPoint erfinv_points[erfinv_last + 1];

namespace {

[[maybe_unused]] const bool erf_filled = [] {
  constexpr double peak = 1.1283791670955125739;  // 2 / sqrt(pi)
  for (int k = 0; k <= erf_last; ++k) {
    const double r = static_cast<double>(k) / erf_steps;
    const long double exact = std::erf(static_cast<long double>(r));
    const auto value = static_cast<double>(exact);
    erf_points[k] = {value, static_cast<double>(exact - value), peak * std::exp(-r * r)};
  }
  // The inverse: a step of Taylor's series from the entry before, then one of Newton's.
  constexpr long double half_root_pi = 0.88622692545275801364908374167057259L;
  long double y = 0, slope = half_root_pi;
  for (int k = 0; k <= erfinv_last; ++k) {
    if (k > 0) {
      const long double u = slope / erfinv_steps;
      y += u * (1 + u * (y + u * ((1 + 4 * y * y) / 3 + u * y * (7.0L / 6 + 2 * y * y))));
      const long double over = std::erf(y) - static_cast<long double>(k) / erfinv_steps;
      y -= over * half_root_pi * std::exp(y * y);
      slope = half_root_pi * std::exp(y * y);
    }
    const auto value = static_cast<double>(y);
    erfinv_points[k] = {value, static_cast<double>(y - value), static_cast<double>(slope)};
  }
  return true;
}();

}  // namespace

}  // namespace clew::kernels
