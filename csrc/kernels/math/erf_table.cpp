// The table of erf_table.h.
// May include: kernels.
// Invariant: entries are the C library's; where long double is longer, the error function's sums
// are better than a double.
#include "kernels/math/erf_table.h"

#include <cmath>

namespace clew::kernels {

ErfPoint erf_points[erf_last + 1];

namespace {

[[maybe_unused]] const bool filled = [] {
  constexpr double peak = 1.1283791670955125739;  // 2 / sqrt(pi)
  for (int k = 0; k <= erf_last; ++k) {
    const double r = static_cast<double>(k) / erf_steps;
    const long double exact = std::erf(static_cast<long double>(r));
    const auto value = static_cast<double>(exact);
    erf_points[k] = {value, static_cast<double>(exact - value), peak * std::exp(-r * r)};
  }
  return true;
}();

}  // namespace

}  // namespace clew::kernels
