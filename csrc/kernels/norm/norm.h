// Normalisation over rows (layer, group) and over channels (batch), with their gradients.
// May include: base, kernels.
// Invariant: all operands are contiguous and of one element type, float or double.
#pragma once
#include <cstdint>

namespace clew::kernels {

// x is [n, g, k, s]; mean and rstd are [n, g], over k and s; weight and bias are [g, k] and may be
// null.
struct GroupShape {
  int64_t n, g, k, s;
  int64_t row() const { return k * s; }
};
template <class T>
void group_norm(T* y, T* mean, T* rstd, const T* x, const T* weight, const T* bias,
                const GroupShape& shape, double eps);
// dweight and dbias may be null, both of them.
template <class T>
void group_norm_backward(T* dx, T* dweight, T* dbias, const T* grad, const T* x, const T* mean,
                         const T* rstd, const T* weight, const GroupShape& shape);
template <class T>
void group_norm_weight_backward(T* dweight, T* dbias, const T* grad, const T* x, const T* mean,
                                const T* rstd, const GroupShape& shape);

// The same of x as [n, s, g, k]; dx may be null, and so may dweight and dbias, both of them.
template <class T>
void group_norm_last(T* y, T* mean, T* rstd, const T* x, const T* weight, const T* bias,
                     const GroupShape& shape, double eps);
template <class T>
void group_norm_backward_last(T* dx, T* dweight, T* dbias, const T* grad, const T* x, const T* mean,
                              const T* rstd, const T* weight, const GroupShape& shape);

// Rows of n elements divided by their root mean square; weight is [n] and may be null.
template <class T>
void rms_norm(T* y, T* rstd, const T* x, const T* weight, int64_t rows, int64_t n, double eps);
// dweight may be null.
template <class T>
void rms_norm_backward(T* dx, T* dweight, const T* grad, const T* x, const T* rstd, const T* weight,
                       int64_t rows, int64_t n);

// x is [n, c, s]; mean and rstd are [c]. Channels last are [n s, c, 1].
struct ChannelShape {
  int64_t n, c, s;
};
// Every channel's mean, and its sum of squared deviations from it.
template <class T>
void channel_moments(double* mean, double* squares, const T* x, const ChannelShape& shape);
// y = (x - mean) * rstd * weight + bias
template <class T>
void channel_affine(T* y, const T* x, const T* mean, const T* rstd, const T* weight, const T* bias,
                    const ChannelShape& shape);
// sum g and sum g (x - mean) for every channel
template <class T>
void channel_dots(double* sum_g, double* sum_gx, const T* grad, const T* x, const T* mean,
                  const ChannelShape& shape);
// dx = g * a + (x - mean) * b + c for every channel
template <class T>
void channel_grad(T* dx, const T* grad, const T* x, const T* mean, const T* a, const T* b,
                  const T* c, const ChannelShape& shape);
// The sums are those of channel_dots, or null where mean and rstd did not come from x itself and
// carry no gradient.
template <class T>
void channel_backward(T* dx, const T* grad, const T* x, const T* mean, const T* rstd,
                      const T* weight, const double* sum_g, const double* sum_gx,
                      const ChannelShape& shape);

}  // namespace clew::kernels
