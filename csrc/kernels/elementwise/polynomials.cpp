// Which instruction set's loops compute orthogonal polynomials.
// May include: kernels.
// Invariant: the choice is the same for every call.
#include "kernels/elementwise/polynomials.h"

#include <type_traits>

#include "kernels/core/instruction_set.h"

namespace clew::kernels {

namespace baseline {
extern const PolynomialLoops<float> polynomials_float;
extern const PolynomialLoops<double> polynomials_double;
}  // namespace baseline
namespace avx2 {
extern const PolynomialLoops<float> polynomials_float;
extern const PolynomialLoops<double> polynomials_double;
}  // namespace avx2
namespace avx512 {
extern const PolynomialLoops<float> polynomials_float;
extern const PolynomialLoops<double> polynomials_double;
}  // namespace avx512

template <class T> const PolynomialLoops<T>& polynomial_loops() {
  auto pick = [](const auto& f, const auto& d) -> const PolynomialLoops<T>& {
    if constexpr (std::is_same_v<T, float>)
      return f;
    else
      return d;
  };
#ifndef CLEW_ONLY_BASELINE
  if (instruction_set() == InstructionSet::avx512)
    return pick(avx512::polynomials_float, avx512::polynomials_double);
  if (instruction_set() == InstructionSet::avx2)
    return pick(avx2::polynomials_float, avx2::polynomials_double);
#endif
  return pick(baseline::polynomials_float, baseline::polynomials_double);
}
template const PolynomialLoops<float>& polynomial_loops();
template const PolynomialLoops<double>& polynomial_loops();

}  // namespace clew::kernels
