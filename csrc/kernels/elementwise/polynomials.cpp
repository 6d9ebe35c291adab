// Which instruction set's loops compute orthogonal polynomials.
// May include: kernels.
// Invariant: the choice is the same for every call.
#include "kernels/elementwise/polynomials.h"

#include <type_traits>

#include "kernels/core/instruction_set.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const PolynomialLoops<float> polynomials_float;
                 extern const PolynomialLoops<double> polynomials_double;)

template <class T> const PolynomialLoops<T>& polynomial_loops() {
  return of_type<T>(CLEW_CHOSEN(polynomials_float), CLEW_CHOSEN(polynomials_double));
}
template const PolynomialLoops<float>& polynomial_loops();
template const PolynomialLoops<double>& polynomial_loops();

}  // namespace clew::kernels
