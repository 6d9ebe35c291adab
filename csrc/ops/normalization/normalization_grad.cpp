// Second derivatives of the normalisation layers.
// May include: ops, graph, tensor.
// Invariant: written with recorded ops alone, so that derivatives of any order follow.
#include "ops/normalization/normalization_common.h"

namespace clew {

namespace {

// What comes through the mean and rstd outputs.
Tensor statistics_grad(const NormView& nv, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                       const Tensor& grad_mean, const Tensor& grad_rstd) {
  Tensor out;
  if (grad_mean.defined()) {
    out = expand(reshape(grad_mean, nv.stat) / Scalar(nv.count()), nv.view);
  }
  if (grad_rstd.defined()) {
    // d rstd / d x = -rstd^3 (x - mean) / n
    Tensor r = reshape(rstd, nv.stat);
    Tensor slope = reshape(grad_rstd, nv.stat) * r * r * r / Scalar(-nv.count());
    Tensor term = slope * (reshape(x, nv.view) - reshape(mean, nv.stat));
    out = out.defined() ? out + term : term;
  }
  return out;
}

}  // namespace

void set_input_grad(Vjp& c, Tensor dx, const NormView& nv) {
  const Tensor x = c.in(0);
  Tensor more = statistics_grad(nv, x, c.out(1), c.out(2), c.grad(1), c.grad(2));
  if (more.defined()) {
    more = reshape(more, x.sizes());
    dx = dx.defined() ? dx + more : more;
  }
  if (dx.defined()) c.set(0, dx);
}

void norm_backward_vjp(Vjp& c, const NormView& nv, bool batch_stats) {
  Tensor v = reshape(c.grad(), nv.view), g = reshape(c.in(0), nv.view);
  Tensor r = reshape(c.in(3), nv.stat);
  Tensor w = c.has_in(4) ? reshape(c.in(4), nv.weight) : Tensor();
  Tensor a = w.defined() ? g * w : g;  // what flows into xhat
  Tensor rv = r * v;
  Tensor d_a = rv, d_r;
  if (batch_stats) {
    auto average = [&](const Tensor& t) { return mean(t, nv.over, true); };
    Tensor centred = reshape(c.in(1), nv.view) - reshape(c.in(2), nv.stat);
    Tensor xhat = centred * r;
    Tensor m1 = average(a), m2 = average(a * xhat), p = average(rv * xhat);
    d_a = rv - average(rv) - xhat * p;
    if (c.needs(1) || c.needs(2) || c.needs(3)) {
      Tensor d_xhat = -(rv * m2 + a * p);
      Tensor d_x = d_xhat * r;
      if (c.needs(1)) c.set(1, reshape(d_x, c.sizes(1)));
      if (c.needs(2)) c.set(2, reshape(-sum(d_x, nv.over, true), c.sizes(2)));
      d_r = sum(v * (a - m1 - xhat * m2) + d_xhat * centred, nv.over, true);
    }
  } else if (c.needs(3)) {
    d_r = sum(v * a, nv.over, true);
  }
  if (c.needs(3)) c.set(3, reshape(d_r, c.sizes(3)));
  if (c.needs(0)) c.set(0, reshape(w.defined() ? d_a * w : d_a, c.sizes(0)));
  if (c.inputs() > 4 && c.needs(4)) c.set(4, reshape(sum_to(d_a * g, nv.weight), c.sizes(4)));
}

void norm_weight_backward_vjp(Vjp& c, const NormView& nv) {
  Tensor g = reshape(c.in(0), nv.view), r = reshape(c.in(3), nv.stat);
  Tensor centred = reshape(c.in(1), nv.view) - reshape(c.in(2), nv.stat);
  Tensor d_g, d_xhat;
  if (c.grad(0).defined()) {
    Tensor vw = reshape(c.grad(0), nv.weight);
    d_g = vw * (centred * r);
    d_xhat = vw * g;
  }
  if (c.grad(1).defined()) {
    Tensor vb = expand(reshape(c.grad(1), nv.weight), nv.view);
    d_g = d_g.defined() ? d_g + vb : vb;
  }
  if (c.needs(0) && d_g.defined()) c.set(0, reshape(d_g, c.sizes(0)));
  if (!d_xhat.defined()) return;
  Tensor d_x = d_xhat * r;
  if (c.needs(1)) c.set(1, reshape(d_x, c.sizes(1)));
  if (c.needs(2)) c.set(2, reshape(-sum(d_x, nv.over, true), c.sizes(2)));
  if (c.needs(3)) c.set(3, reshape(sum(d_xhat * centred, nv.over, true), c.sizes(3)));
}

}  // namespace clew
