// What is done to all gradients of a model between backward and the optimizer's step.
// May include: base.
// Invariant: n elements that lie one after the other; sums are taken in double precision, in an
// order that depends on n alone.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace clew::kernels {

struct GradientLoops {
  double (*sum_squares)(const void* x, int64_t n);
  double (*sum_sizes)(const void* x, int64_t n);
  double (*greatest)(const void* x, int64_t n);  // of the sizes; NaN if there is one
  void (*scale)(void* x, int64_t n, double factor);
  void (*clamp)(void* x, int64_t n, double bound);  // to [-bound, bound]
  // Whether all elements were finite before they were multiplied by factor.
  bool (*unscale)(void* x, int64_t n, double factor);
};

// The fastest this processor runs, for a floating dtype.
const GradientLoops& gradient_loops(DType d);

// The tables of one instruction set: float32, float64, bfloat16, float16.
using GradientTables = GradientLoops[4];

}  // namespace clew::kernels
