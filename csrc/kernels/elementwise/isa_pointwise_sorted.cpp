// Float loops of functions that have another form for each kind of argument, compiled once for each
// instruction set: Bessel's and Airy's, and those around the error function.
// May include: base, kernels.
// Invariant: floats are computed in double, so that one rounding is all that is seen.
#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/sorted_loops.h"
#include "kernels/math/vmath_bessel.h"
#include "kernels/math/vmath_close.h"
#include "kernels/math/vmath_modified.h"
#include "kernels/math/vmath_sorted.h"

namespace clew::kernels::CLEW_ISA {

namespace {

// sin(x) / x
struct SphericalBessel {
  static constexpr int inputs = 1;
  template <class T> static bool fits(T x) { return std::fabs(x) <= vm::trig_limit<T>; }
  static float fast(float x) {
    const auto wide = static_cast<double>(x);
    const auto value = static_cast<float>(vm::close::sincos_for_float(wide).sin / wide);
    return x == 0.0f ? 1.0f : value;
  }
  static double fast(double x) { return x == 0.0 ? 1.0 : vm::close::sin(x) / x; }
  template <class T> static T slow(T x) {
    return std::fabs(x) == vm::inf<T> ? T(0) : std::sin(x) / x;
  }
};

}  // namespace

void init_sorted();
void init_sorted() {
  sorted(table::bessel_j0, vm::Bessel<0, false>{});
  sorted(table::bessel_j1, vm::Bessel<1, false>{});
  sorted(table::bessel_y0, vm::Bessel<0, true>{});
  sorted(table::bessel_y1, vm::Bessel<1, true>{});
  sorted(table::bessel_k0, vm::ModifiedBessel<0, false>{});
  sorted(table::bessel_k1, vm::ModifiedBessel<1, false>{});
  sorted(table::bessel_k0e, vm::ModifiedBessel<0, true>{});
  sorted(table::bessel_k1e, vm::ModifiedBessel<1, true>{});
  sorted(table::airy_ai, vm::Airy<false>{});
  sorted(table::airy_ai_slope, vm::Airy<true>{});
  guarded(table::spherical_bessel_j0, SphericalBessel{});
  sorted(table::ndtri, vm::Ndtri{});
  table::erfinv.fn[static_cast<int>(DType::Float64)] = sorted_loop<double, vm::Erfinv>;
  table::erfcx.fn[static_cast<int>(DType::Float64)] = sorted_loop<double, vm::Erfcx>;
  table::log_ndtr.fn[static_cast<int>(DType::Float64)] = sorted_loop<double, vm::LogNdtr>;
}

}  // namespace clew::kernels::CLEW_ISA
