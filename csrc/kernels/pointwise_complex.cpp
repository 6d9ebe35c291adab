// Elementwise loops of the complex dtypes.
// May include: base, kernels.
// Invariant: ops whose result is real (abs, real ...) write the real dtype.
#include "kernels/pointwise.h"
#include "kernels/pointwise_loops.h"

namespace clew::kernels {

void init_pointwise_complex() {
  using C = ComplexTypes;
  binary<1>(table::add, C{}, []<class T>(T a, T b, const T* c) { return a + c[0] * b; });
  binary<1>(table::sub, C{}, []<class T>(T a, T b, const T* c) { return a - c[0] * b; });
  binary(table::mul, C{}, []<class T>(T a, T b) { return a * b; });
  binary(table::div, C{}, []<class T>(T a, T b) { return a / b; });
  unary(table::neg, C{}, []<class T>(T a) { return -a; });
  unary(table::square, C{}, []<class T>(T a) { return a * a; });
  unary(table::exp, C{}, []<class T>(T a) { return std::exp(a); });
  unary(table::log, C{}, []<class T>(T a) { return std::log(a); });
  unary(table::sqrt, C{}, []<class T>(T a) { return std::sqrt(a); });
  unary(table::tanh, C{}, []<class T>(T a) { return std::tanh(a); });
  unary(table::sigmoid, C{}, []<class T>(T a) { return T(1) / (T(1) + std::exp(-a)); });
  binary(table::pow, C{}, []<class T>(T a, T b) {
    return b == T(0) ? T(1) : b == T(2) ? a * a : std::pow(a, b);
  });
  binary(table::eq, C{}, []<class T>(T a, T b) { return a == b; });
  binary(table::ne, C{}, []<class T>(T a, T b) { return a != b; });
  unary(table::conj, C{}, []<class T>(T a) { return std::conj(a); });
  binary(table::logical_and, C{}, []<class T>(T a, T b) { return bool((a != T(0)) & (b != T(0))); });
  binary(table::logical_or, C{}, []<class T>(T a, T b) { return bool((a != T(0)) | (b != T(0))); });
  unary(table::logical_not, C{}, []<class T>(T a) { return a == T(0); });
}

}  // namespace clew::kernels
