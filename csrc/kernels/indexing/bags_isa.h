// The vector loops under sums of rows of a table.
// May include: the standard library only.
// Invariant: each instruction set has one BagLoops.
#pragma once
#include <cstdint>

namespace clew::kernels {

// to[0..width) = share * the sum of the rows table[rows[k] * width ...], each times factors[k]
// (null: one).
template <class T> struct BagRows {
  T* to;
  const T* table;
  int64_t width;
  const int64_t* rows;
  const T* factors;
  int64_t count;
  T share;
};
struct BagLoops {
  void (*sum_floats)(const BagRows<float>&);
  void (*sum_doubles)(const BagRows<double>&);
  void (*add_floats)(float* to, const float* from, float factor, int64_t n);
  void (*add_doubles)(double* to, const double* from, double factor, int64_t n);
};

}  // namespace clew::kernels
