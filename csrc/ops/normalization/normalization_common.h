// What the normalisation ops share: staging for the kernels, derivatives of their gradients.
// May include: ops, graph, tensor, kernels.
// Invariant: gradient rules here use only recorded ops, so any order of derivative exists.
#pragma once
#include "ops/calls/arithmetic.h"
#include "ops/calls/reduction.h"
#include "ops/reduction/reduction_dims.h"
#include "ops/staged_out.h"

namespace clew {

// The dtype normalisation computes in, and its mean and rstd have.
inline DType norm_dtype(DType d) { return d == DType::Float64 ? DType::Float64 : DType::Float32; }

// t with these strides and of dtype d.
inline Tensor staged(const Tensor& t, DType d, const Dims& strides) {
  if (t.dtype() == d && t.strides() == strides) return t;
  Tensor c = empty_strided(t.sizes(), strides, d);
  copy_into(c, t);
  return c;
}

// Calls f.operator()<float or double>().
template <class F> void with_norm_type(DType d, F&& f) {
  if (d == DType::Float64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

// That x ends in `shape`, and that the tensors given of a weight and a bias have it.
void check_normalized_shape(const Call& c, const Tensor& x, const Dims& shape,
                            std::span<const Tensor> affine);
// A weight or bias has the input's dtype; beside 16-bit floats it may be float32.
inline void check_affine_dtype(const Call& c, const Tensor& x, const Tensor& t) {
  if (!t.defined() || !t.is_floating() || !x.is_floating() || t.dtype() == x.dtype()) return;
  require(itemsize(x.dtype()) == 2 && t.dtype() == DType::Float32, c.name(),
          ": weight, bias and statistics must have the input's dtype; got ", t.dtype(), " for ",
          x.dtype(), ". Convert with .to(dtype)");
}

// Of an operation that makes several gradients at once.
constexpr NoRule made_one_by_one =
    no_rule("gradients that are recorded are made by one operation each");

// How a normalised tensor is seen: x as `view`, its statistics over the axes `over`, statistics and
// weight as views that broadcast against it.
struct NormView {
  Dims view, over, stat, weight;
  double count() const {
    double n = 1;
    for (int64_t d : over) n *= static_cast<double>(view[static_cast<int>(d)]);
    return n;
  }
};

// Sets the gradient of input 0 of a normalisation whose outputs 1 and 2 are mean and rstd: dx,
// which may be undefined, and what comes through these two.
void set_input_grad(Vjp& c, Tensor dx, const NormView& nv);
// Derivatives of dx = rstd (g w - M(g w) - xhat M(g w xhat)), inputs (grad, input, mean, rstd,
// weight); without batch_stats dx = rstd g w.
void norm_backward_vjp(Vjp& c, const NormView& nv, bool batch_stats);
// Derivatives of (dweight, dbias) = (sum g xhat, sum g), inputs (grad, input, mean, rstd).
void norm_weight_backward_vjp(Vjp& c, const NormView& nv);

}  // namespace clew
