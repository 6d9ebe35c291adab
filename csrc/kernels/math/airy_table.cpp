// The table of airy_table.h.
// May include: kernels.
// Invariant: where long double is longer than double, entries are right to the last place.
#include "kernels/math/airy_table.h"

namespace clew::kernels {

AiryPoint airy_points[2 * airy_end * airy_steps + 1];

namespace {

// y'' = x y, solved by Taylor's series from one point to the next, starting where Ai is smallest.
// In this direction Ai grows faster than the other solution, whose share in the start values
// therefore becomes negligible.
[[maybe_unused]] const bool airy_filled = [] {
  long double value = 4.15688882891702439475e-20L, slope = -1.66918867683818095592e-19L;
  const long double h = -1.0L / airy_steps;
  for (int k = 2 * airy_end * airy_steps; k >= 0; --k) {
    airy_points[k] = {static_cast<double>(value), static_cast<double>(slope)};
    const long double x = static_cast<long double>(k) / airy_steps - airy_end;
    // Three coefficients that follow each other, times their powers of h.
    long double a = value, b = slope * h, c = x * value / 2 * h * h;
    long double sum = a + b + c, sum_of_slopes = b + 2 * c;
    for (int n = 3; n < 30; ++n) {
      const long double next = (x * b + a * h) * h * h / (n * (n - 1));
      a = b, b = c, c = next;
      sum += next, sum_of_slopes += n * next;
    }
    value = sum, slope = sum_of_slopes / h;
  }
  return true;
}();

}  // namespace

}  // namespace clew::kernels
