// Picking each sample's log-probability for the negative log likelihood, and its gradient;
// cross-entropy; sums of distances.
// May include: base, kernels.
// Invariant: every target was in [0, c) or equal to `ignore`, or IndexError is thrown before
// anything is written.
#pragma once
#include <cstdint>

#include "base/dtype.h"
#include "base/scalar.h"

namespace clew::kernels {

// x is [n, c, s] and contiguous, target [n, s], weight [c] or null.
struct NllShape {
  int64_t n, c, s, ignore;
};
// each[i] = -weight[t] x[t] (0 where ignored) unless null; *sum adds them up, *total the weights
// that counted.
template <class T>
void nll(const T* x, const int64_t* target, const T* weight, const NllShape& shape, T* each,
         double* sum, double* total);
// dx (zeroed before) gets -weight[t] grad at the targets; grad is [n, s], or one number when
// `scalar`.
template <class T>
void nll_backward(T* dx, const T* grad, bool scalar, double scale, const int64_t* target,
                  const T* weight, const NllShape& shape);

// Cross-entropy of scores in one pass: every target's loss, with `smoothing` spread over all
// classes, and the logarithm of the sum of exp() that backward needs. log-sum-exp is returned as a
// high and a low float (all highs, then all lows), because one float loses precision for large
// scores.
struct CrossEntropy {
  NllShape shape;
  double smoothing;
};
template <class T>
void cross_entropy(const T* x, const int64_t* target, const T* weight, const CrossEntropy& of,
                   T* log_sum, T* each, double* sum, double* total);
// dx is written, not added to; grad is [n, s], or one number when `scalar`.
template <class T>
void cross_entropy_backward(T* dx, const T* x, const T* log_sum, const T* grad, bool scalar,
                            double scale, const int64_t* target, const T* weight,
                            const CrossEntropy& of);
// The sum of table::distance over n float32 or float64 elements that lie one after the other.
double distance_total(DType d, const char* a, const char* b, int64_t n, const Scalar* params);
void check_targets(const int64_t* target, const NllShape& shape);

}  // namespace clew::kernels
