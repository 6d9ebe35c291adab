// Arithmetic of integers that is defined for all values.
// May include: base, kernels.
// Invariant: everything is in an anonymous namespace, so each instruction set keeps its own copy.
#pragma once
#include "kernels/elementwise/pointwise_loops.h"

namespace clew::kernels {
namespace {

// The smallest number divided by -1 has no representation and wraps around.
template <class T> T quotient(T a, T b) {
  if (b == 0) fail("ZeroDivisionError: integer division or modulo by zero");
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return wrap_sub(T(0), a);
  }
  return static_cast<T>(a / b);
}
template <class T> T rest(T a, T b) {
  if (b == 0) fail("ZeroDivisionError: integer division or modulo by zero");
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}
template <class T> T floor_quotient(T a, T b) {
  T q = quotient(a, b);
  return rest(a, b) != 0 && (a < 0) != (b < 0) ? static_cast<T>(q - 1) : q;
}
template <class T> T floor_rest(T a, T b) {
  T r = rest(a, b);
  return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}

template <class T> T absolute(T a) { return a < 0 ? wrap_sub(T(0), a) : a; }

}  // namespace
}  // namespace clew::kernels
