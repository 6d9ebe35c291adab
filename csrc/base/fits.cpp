// The limits of element types, as numbers that are put into tensors meet them.
// May include: base.
// Invariant: bounds are compared in double precision where the number is a float, as PyTorch does.
#include "base/fits.h"

#include <cmath>
#include <limits>
#include <utility>

namespace clew {

namespace {

// The greatest number of a floating point dtype; all such types have NaN.
double greatest_of(DType d) {
  switch (d) {
    case DType::Float16: return 65504.0;
    case DType::BFloat16: return 0x1.fep127;
    case DType::Float32:
    case DType::Complex64: return std::numeric_limits<float>::max();
    case DType::Float8E4M3FN: return 448.0;
    case DType::Float8E4M3FNUZ: return 240.0;
    case DType::Float8E5M2:
    case DType::Float8E5M2FNUZ: return 57344.0;
    case DType::Float8E8M0FNU: return 0x1p127;
    default: return std::numeric_limits<double>::infinity();
  }
}
bool has_infinity(DType d) { return !is_float8(d) || d == DType::Float8E5M2; }

bool lies_beyond(double x, DType d) {
  if (std::isnan(x)) return false;
  return std::isinf(x) ? !has_infinity(d) : std::fabs(x) > greatest_of(d);
}

template <class T> bool overflows_integers(const Scalar& v) {
  using limits = std::numeric_limits<T>;
  if (v.is_big()) return !std::is_same_v<T, uint64_t>;
  if (v.is_integral()) {
    if (std::is_unsigned_v<T> && v.i < 0)
      return uint64_t{0} - static_cast<uint64_t>(v.i) > static_cast<uint64_t>(limits::max());
    return !std::in_range<T>(v.i);
  }
  const double x = v.re;
  return !(x >= static_cast<double>(limits::lowest()) && x <= static_cast<double>(limits::max()));
}

}  // namespace

bool overflows(const Scalar& v, DType d) {
  if (d == DType::Bool || !v.has_value()) return false;
  if (!is_integral(d)) {
    const double re = v.is_complex() || v.is_float() ? v.re : v.to_double();
    return lies_beyond(re, d) || (v.is_complex() && is_complex(d) && lies_beyond(v.im, d));
  }
  bool beyond = false;
  dispatch(d, IntegralTypes{}, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) beyond = overflows_integers<T>(v);
  });
  return beyond;
}

void fail_too_big(DType d, uint64_t u) {
  fail(ErrorKind::Overflow, "int too big to convert to ", d, "; got ", u);
}

void require_fits(std::string_view op, const Scalar& v, DType d) {
  require(keeps_parts(v, d), op, ": a complex value cannot be stored in ", d);
  if (!overflows(v, d)) return;
  const char* wider = is_integral(d) ? "; convert the tensor first, e.g. with .long() or .float()"
                                     : "; use inf, or convert the tensor first, e.g. with .float()";
  if (v.is_integral())
    fail(op, ": value cannot be converted to type ", d, " without overflow; got ",
         v.is_big() ? std::to_string(v.u) : std::to_string(v.i), wider);
  fail(op, ": value cannot be converted to type ", d, " without overflow; got ", v.re, wider);
}

}  // namespace clew
