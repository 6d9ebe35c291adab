// What matmul.cpp and contraction.cpp share: the kernel call, the gradient of a product.
// May include: ops/ops.h.
// Invariant: shapes were checked by the caller's shape rule.
#pragma once
#include "ops/ops.h"

namespace clew {

// Shape of a @ b; throws when the shapes or dtypes do not fit.
Dims product_sizes(const Tensor& a, const Tensor& b, std::string_view op);
// out = alpha * a @ b + beta * out. `flip` reads b transposed (a matrix). `bias`, where it is
// given, is added to each row; beta is 0 then, and bias_fits() held.
void product_into(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha,
                  const Scalar& beta, bool flip = false, const Tensor& bias = {});
// a @ b + bias of two matrices (`flip` and `bias` as above) as a new tensor, unrecorded; undefined
// unless both are matrices whose sizes fit.
Tensor product_of_matrices(const Tensor& a, const Tensor& b, bool flip, const Tensor& bias);
// Whether the kernel can add the bias itself: one contiguous row.
bool bias_fits(const Tensor& bias, const Tensor& out);
// Whether g is a real matrix gradient whose product with `factor` is not recorded; the kernel can
// then read `factor` transposed without a view.
bool plain_matrices(const Tensor& g, const Tensor& factor, int other_ndim);
// Gradients of inputs `first` and `first` + 1, whose product has gradient g.
void product_grads(Vjp& c, const Tensor& g, int first);
void require_multipliable(const Tensor& a, const Tensor& b, std::string_view op);
// Whether a tensor of `sizes` can be expanded to `target`.
bool expandable(const Dims& sizes, const Dims& target);
// t * s, t itself when s is one.
Tensor scaled(const Tensor& t, const Scalar& s);

struct BetaAlpha {
  Scalar beta = Scalar(1);
  Scalar alpha = Scalar(1);
  static constexpr auto members() { return std::tuple(&BetaAlpha::beta, &BetaAlpha::alpha); }
};

}  // namespace clew
