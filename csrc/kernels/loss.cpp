// Picking each sample's log-probability for the negative log likelihood, and its gradient.
// May include: base, kernels.
// Invariant: sums run in double, in sample order.
#include "kernels/loss.h"

#include "base/error.h"

namespace clew::kernels {

void check_targets(const int64_t* target, const NllShape& sh) {
  for (int64_t i = 0; i < sh.n * sh.s; ++i) {
    int64_t t = target[i];
    if (t != sh.ignore && (t < 0 || t >= sh.c)) {
      fail_index("nll_loss: target ", t, " is out of bounds for ", sh.c, " classes");
    }
  }
}

template <class T>
void nll(const T* x, const int64_t* target, const T* weight, const NllShape& sh, T* each,
         double* sum, double* total) {
  *sum = *total = 0;
  for (int64_t n = 0; n < sh.n; ++n) {
    for (int64_t s = 0; s < sh.s; ++s) {
      int64_t i = n * sh.s + s, t = target[i];
      T loss = 0;
      if (t != sh.ignore) {
        T w = weight ? weight[t] : T(1);
        loss = -w * x[(n * sh.c + t) * sh.s + s];
        *total += static_cast<double>(w);
        *sum += static_cast<double>(loss);
      }
      if (each) each[i] = loss;
    }
  }
}

template <class T>
void nll_backward(T* dx, const T* grad, bool scalar, double scale, const int64_t* target,
                  const T* weight, const NllShape& sh) {
  for (int64_t n = 0; n < sh.n; ++n) {
    for (int64_t s = 0; s < sh.s; ++s) {
      int64_t i = n * sh.s + s, t = target[i];
      if (t == sh.ignore) continue;
      double g = static_cast<double>(scalar ? grad[0] : grad[i]) * scale;
      double w = weight ? static_cast<double>(weight[t]) : 1.0;
      dx[(n * sh.c + t) * sh.s + s] = static_cast<T>(-w * g);
    }
  }
}

template void nll(const float*, const int64_t*, const float*, const NllShape&, float*, double*,
                  double*);
template void nll(const double*, const int64_t*, const double*, const NllShape&, double*, double*,
                  double*);
template void nll_backward(float*, const float*, bool, double, const int64_t*, const float*,
                           const NllShape&);
template void nll_backward(double*, const double*, bool, double, const int64_t*, const double*,
                           const NllShape&);

}  // namespace clew::kernels
