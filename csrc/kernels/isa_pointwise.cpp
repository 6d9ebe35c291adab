// Float loops of the hot elementwise ops, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: only float dtypes are set here; integers and complex numbers live in pointwise_*.cpp.
#include "kernels/pointwise.h"
#include "kernels/pointwise_loops.h"

namespace clew::kernels::CLEW_ISA {

void init_pointwise() {
  using F = FloatTypes;
  binary<1>(table::add, F{}, []<class T>(T a, T b, const T* c) { return T(a + c[0] * b); });
  binary<1>(table::sub, F{}, []<class T>(T a, T b, const T* c) { return T(a - c[0] * b); });
  binary(table::mul, F{}, []<class T>(T a, T b) { return T(a * b); });
  binary(table::div, F{}, []<class T>(T a, T b) { return T(a / b); });
  unary(table::neg, F{}, []<class T>(T a) { return T(-a); });
  unary(table::square, F{}, []<class T>(T a) { return T(a * a); });
  unary(table::sqrt, F{}, []<class T>(T a) { return T(std::sqrt(a)); });
  unary(table::relu, F{}, []<class T>(T a) { return a < T(0) ? T(0) : a; });
  unary(table::exp, F{}, []<class T>(T a) { return T(std::exp(a)); });
  unary(table::log, F{}, []<class T>(T a) { return T(std::log(a)); });
  unary(table::tanh, F{}, []<class T>(T a) { return T(std::tanh(a)); });
  unary(table::sigmoid, F{}, []<class T>(T a) { return T(T(1) / (T(1) + std::exp(-a))); });
  binary(table::pow, F{}, []<class T>(T a, T b) { return T(std::pow(a, b)); });
  binary(table::eq, F{}, []<class T>(T a, T b) { return a == b; });
  binary(table::ne, F{}, []<class T>(T a, T b) { return a != b; });
  binary(table::lt, F{}, []<class T>(T a, T b) { return a < b; });
  binary(table::le, F{}, []<class T>(T a, T b) { return a <= b; });
  binary(table::gt, F{}, []<class T>(T a, T b) { return a > b; });
  binary(table::ge, F{}, []<class T>(T a, T b) { return a >= b; });
  unary(table::conj, F{}, []<class T>(T a) { return a; });
  binary(table::logical_and, F{}, []<class T>(T a, T b) { return bool((a != T(0)) & (b != T(0))); });
  binary(table::logical_or, F{}, []<class T>(T a, T b) { return bool((a != T(0)) | (b != T(0))); });
  unary(table::logical_not, F{}, []<class T>(T a) { return a == T(0); });
}

}  // namespace clew::kernels::CLEW_ISA
