// The vector loops over one contiguous row that softmax, logsumexp and norms are made of.
// May include: base.
// Invariant: sums run in lanes of the element type, blocks of which are added up in double.
#pragma once
#include <cstdint>

namespace clew::kernels {

template <class C> struct RowOps {
  C (*max)(const C* x, int64_t n);  // NaN is passed over
  double (*sum)(const C* x, int64_t n);
  double (*dot)(const C* x, const C* y, int64_t n);
  // y = exp(x - shift), where no x is above shift; returns the sum of y, which is NaN if the
  // largest x is infinite
  double (*exp_store)(C* y, const C* x, int64_t n, C shift);
  double (*exp_sum)(const C* x, int64_t n, C shift);
  // Softmax, or its logarithm, of rows of `width` elements.
  void (*softmax_few)(C* y, const C* x, int64_t rows, int64_t width, bool log);
  int64_t few_width;  // of the longest rows that it takes faster than the loops above
  // log(sum of exp) of each row of `width` elements.
  void (*log_sums)(double* out, const C* x, int64_t rows, int64_t width);
  // The same, while `to` is fetched to be written next.
  double (*exp_sum_before)(const C* to, const C* x, int64_t n, C shift);
  // y = exp(x - shift) * a + b
  void (*exp_affine)(C* y, const C* x, int64_t n, C shift, C a, C b);
  // y = x * a + b
  void (*affine)(C* y, const C* x, int64_t n, C a, C b);
  // Norms take the centre off first: scaled apart from it, large means would cancel badly.
  // y = (x - centre) * a + b
  void (*centred)(C* y, const C* x, int64_t n, C centre, C a, C b);
  // y = ((x - centre) * a + b) * w + c; w or c may be null (1 and 0)
  void (*centred_weighted)(C* y, const C* x, int64_t n, C centre, C a, C b, const C* w, const C* c);
  // The gradient of softmax, whose result is y: dx = y * (g - sum(g y)); or of its logarithm:
  // dx = g - exp(y) * sum(g).
  void (*softmax_grad)(C* dx, const C* g, const C* y, int64_t n, bool log);
  // dw += g * (x - centre) * a, db += g
  void (*weight_grad)(C* dw, C* db, const C* g, const C* x, int64_t n, C centre, C a);
  // dx = g * w * a + (x - centre) * b + c, w may be null (1)
  void (*norm_grad)(C* dx, const C* g, const C* w, const C* x, int64_t n, C centre, C a, C b, C c);
};

// The fastest this processor runs; C is float or double.
template <class C> const RowOps<C>& row_ops();

}  // namespace clew::kernels
