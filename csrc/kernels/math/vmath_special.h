// Functions of float numbers by polynomials in (x - k) / (x + k), computed in double.
// May include: base, kernels/math.
// Invariant: everything is inlined; relative errors are below 3e-9, far below float's rounding.
#pragma once
#include "kernels/math/vmath.h"

namespace clew::kernels {
namespace {
namespace vm {

// A polynomial in (x - k) / (x + k), which covers all x >= 0; k lies in its middle.
template <int N>
[[gnu::always_inline]] inline double of_half_line(double x, double k, const double (&c)[N]) {
  return two_chains((x - k) / (x + k), c);
}
// e^(x^2) erfc(x) for x >= 0, times 1 + 2 x.
[[gnu::always_inline]] inline double erfcx_rest(double x) {
  constexpr double c[] = {
      1.2530080582697301,      -0.13562110443635589,    -0.04756229428716055,
      0.12964509537133756,     -0.11927366592986027,    0.068308719453420291,
      -0.023770486691895736,   0.0025260256495286625,   0.0018885464685337067,
      -0.00077130199123492569, -0.0001047658124026185,  0.00011318911639743111,
      4.3232304657673604e-06,  -1.1039710746748218e-05, -1.3170223004029443e-07};
  return of_half_line(x, 3.0, c);
}
[[gnu::always_inline]] inline double erfcx_for_float(double x) {
  const double a = std::fabs(x), near = a < 1e30 ? a : 1e30;
  const double value = erfcx_rest(near) / (1.0 + 2.0 * near);
  const double below = 2.0 * exp(a * a) - value;
  const double found = x < 0 ? below : a > 1e60 ? 0.0 : value;
  return x != x ? x : found;
}
// The logarithm of the normal distribution function.
[[gnu::always_inline]] inline double log_ndtr_for_float(double x) {
  constexpr double root_half = 0.70710678118654752440;
  const double a = std::fabs(x) * root_half, near = a < 1e30 ? a : 1e30;
  // For x < 0 the logarithm of the tail, otherwise that of 1 minus the tail.
  const double scaled = 0.5 * erfcx_rest(near) / (1.0 + 2.0 * near), square = a * a;
  const double tail = log(scaled) - square;
  const double rest = log1p(-scaled * exp(-square));
  const double found = x < 0 ? tail : rest;
  return x != x ? x : found;
}
// e^-|x| I(x) of order 0, and of order 1.
[[gnu::always_inline]] inline double i0e_for_float(double x) {
  constexpr double c[] = {
      0.44093412090545425,   -0.085781750409367544, 0.091982794008244467,   -0.10517433030825411,
      0.12703127624703045,   -0.14750845323728765,  0.13235826878039894,    -0.043453378409620838,
      -0.087209877015049911, 0.13041299303760812,   -0.019493859343603391,  -0.089017609038291826,
      0.030077050870842045,  0.068006139562427223,  -0.026050968937476653,  -0.045811228755778553,
      0.015069363235654793,  0.025037153550447725,  -0.0070332799356116965, -0.0087858190172878329,
      0.0022355628430175234, 0.0015474232723531516, -0.0004293113774822458};
  const double a = std::fabs(x), near = a < 1e30 ? a : 1e30;
  const double value = of_half_line(near, 6.0, c) / std::sqrt(1.0 + near);
  return x != x ? x : a > 1e60 ? 0.0 : value;
}
[[gnu::always_inline]] inline double i1e_for_float(double x) {
  constexpr double c[] = {0.45273091486285583,   -0.10201962733013951,   0.088733700820651101,
                          -0.070199989140899838, 0.043822392785860309,   -0.0056220051034009191,
                          -0.046782651000474122, 0.10474747068934059,    -0.13744997323311886,
                          0.099795448462324965,  0.014601108537255304,   -0.11093553475608289,
                          0.069910394817189747,  0.048596681493803043,   -0.061154410384678594,
                          -0.020016367621891233, 0.035605199795825569,   0.0066416236698754452,
                          -0.012983418031481404, -0.0015165591075546011, 0.0024378811653026477};
  const double a = std::fabs(x), near = a < 1e30 ? a : 1e30;
  const double sized = near + 1.0;
  const double value = near * of_half_line(near, 8.0, c) / (sized * std::sqrt(sized));
  return x != x ? x : std::copysign(a > 1e60 ? 0.0 : value, x);
}

}  // namespace vm
}  // namespace
}  // namespace clew::kernels
