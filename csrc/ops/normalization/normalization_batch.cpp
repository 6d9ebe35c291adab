// batch_norm: every channel normalised over the batch, or by running statistics that it also keeps.
// May include: ops, graph, tensor, kernels.
// Invariant: running statistics are written after the result exists, outside the graph, and their
// version rises.
#include <cmath>

#include "graph/batch.h"
#include "graph/deferral.h"
#include "graph/inplace.h"
#include "graph/modes.h"
#include "kernels/norm/norm.h"
#include "ops/batch_rules.h"
#include "ops/calls/shape.h"
#include "ops/normalization/normalization_common.h"

namespace clew {
namespace {

struct BatchAttrs {
  bool training = false;
  double eps = 1e-5;
  static constexpr auto members() { return std::tuple(&BatchAttrs::training, &BatchAttrs::eps); }
};
struct BackwardAttrs {
  bool training = false;
  static constexpr auto members() { return std::tuple(&BackwardAttrs::training); }
};

kernels::ChannelShape channel_shape(const Dims& sizes) {
  int64_t s = 1;
  for (int d = 2; d < sizes.size(); ++d) s *= sizes[d];
  return {sizes[0], sizes[1], s};
}
// How the kernels read an input and write results like it: contiguous, or with channels last where
// the input is so.
struct Layout {
  Dims strides;
  bool last = false;
  explicit Layout(const Tensor& x) : strides(contiguous_strides(x.sizes())) {
    if (x.ndim() < 3 || x.is_contiguous()) return;
    Dims want = strides;
    int64_t n = want[1] = 1;
    n *= x.size(1);
    for (int d = x.ndim() - 1; d >= 2; --d) {
      want[d] = n;
      n *= x.size(d);
    }
    want[0] = n;
    last = true;
    for (int d = 0; d < x.ndim(); ++d) last = last && (x.size(d) == 1 || x.stride(d) == want[d]);
    if (last) strides = want;
  }
  kernels::ChannelShape shape(const Dims& sizes) const {
    kernels::ChannelShape sh = channel_shape(sizes);
    return last ? kernels::ChannelShape{sh.n * sh.s, sh.c, 1} : sh;
  }
};
void add_like(OutSpecs& out, const Tensor& x) {
  Layout layout(x);
  OutSpec& spec = out.add(x.dtype(), x.sizes());
  if (layout.last) spec.strides = layout.strides;
}
NormView norm_view(const Dims& sizes) {
  kernels::ChannelShape sh = channel_shape(sizes);
  return {Dims{sh.n, sh.c, sh.s}, Dims{0, 2}, Dims{1, sh.c, 1}, Dims{1, sh.c, 1}};
}
void check_input(const Call& c, const Tensor& x) {
  require(x.ndim() >= 2, c.name(), ": input must have at least 2 dimensions (N, C, ...); got ", x);
  if (!x.is_floating()) {
    fail(ErrorKind::NotImplemented, c.name(), ": input must be floating point; got ", x);
  }
}
void check_channels(const Call& c, const Tensor& t, const Tensor& x, const char* what) {
  if (!t.defined()) return;
  require(t.is_floating() && t.ndim() == 1 && t.numel() == x.sizes()[1], c.name(), ": ", what,
          " must be floating point with one element for each channel; got ", t, " for input ", x);
}

// vmap: every channel of every sample is a channel.
void batch_channels(const Batch& b, Tensors& outs) {
  int64_t count = numel_of(b.lead);
  if (!count) return batch_each(b, outs);
  Tensors args;
  for (size_t i = 0; i < b.in.size(); ++i) {
    if (!b.in[i].defined()) {
      args.push_back(Tensor());
      continue;
    }
    Dims sizes = b.in[i].sizes(), flat{count};
    for (int64_t n : sizes) flat.push_back(n);
    Tensor t = reshape(b.full(static_cast<int>(i)), flat);
    if (sizes.size() > 1) t = builtins.movedim(t, 0, 1);
    sizes[sizes.size() > 1 ? 1 : 0] *= count;
    args.push_back(reshape(t, sizes));
  }
  apply(b.op, args, b.attrs, outs);
  for (Tensor& t : outs) {
    Dims sizes = t.sizes();
    int at = sizes.size() > 1 ? 1 : 0;
    sizes[at] /= count;
    Dims apart = sizes;
    apart.insert(at, count);
    t = reshape(builtins.movedim(reshape(t, apart), at, 0), with_lead(b, sizes));
  }
}

// ---- gradients
// ------------------------------------------------------------------------------------

void check_backward(const Call& c) {
  const Tensor& x = c.in[1];
  check_input(c, x);
  require(c.in[0].sizes() == x.sizes() && c.in[0].is_floating(), c.name(),
          ": grad must be like input; got ", c.in[0], " and ", x);
  check_channels(c, c.in[2], x, "mean");
  check_channels(c, c.in[3], x, "rstd");
}
// Gradients of one batch_norm: of the input into dx, and of weight and bias where they are defined.
void backward_into(const Tensor& dx_out, const Tensor& dw_out, const Tensor& db_out,
                   const Tensor& grad, const Tensor& input, const Tensor& mean_in,
                   const Tensor& rstd_in, const Tensor& weight, bool training) {
  DType d = norm_dtype(input.dtype());
  Layout layout(input);
  Tensor g = staged(grad, d, layout.strides), x = staged(input, d, layout.strides);
  Tensor mean = dense(mean_in, d), rstd = dense(rstd_in, d), w = dense(weight, d);
  kernels::ChannelShape sh = layout.shape(x.sizes());
  std::vector<double> s1(static_cast<size_t>(sh.c)), s2(static_cast<size_t>(sh.c));
  std::optional<StagedOut> dx;
  if (dx_out.defined()) dx.emplace(dx_out, d, layout.strides);
  with_norm_type(d, [&]<class T>() {
    const T *m = mean.data<const T>(), *r = rstd.data<const T>();
    if (dw_out.defined() || training)
      kernels::channel_dots(s1.data(), s2.data(), g.data<const T>(), x.data<const T>(), m, sh);
    for (int64_t i = 0; dw_out.defined() && i < sh.c; ++i) {
      auto k = static_cast<size_t>(i);
      // Of an empty batch rstd is nan.
      dw_out.data<T>()[i] = x.numel() ? static_cast<T>(s2[k] * static_cast<double>(r[i])) : T(0);
      db_out.data<T>()[i] = static_cast<T>(s1[k]);
    }
    if (!dx) return;
    kernels::channel_backward(dx->data<T>(), g.data<const T>(), x.data<const T>(), m, r,
                              data_or_null<T>(w), training ? s1.data() : nullptr, s2.data(), sh);
  });
}
constexpr OpDef batch_norm_backward_op = general({
    .signature = "_native_batch_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, "
                 "Tensor? weight, "
                 "bool training) -> Tensor",
    .doc = "Gradient of batch_norm's input: rstd (g w - M(g w) - xhat M(g w xhat)), or rstd g w "
           "when not training.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          check_backward(c);
          check_channels(c, c.in[4], c.in[1], "weight");
          add_like(out, c.in[1]);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          backward_into(outs[0], Tensor(), Tensor(), c.in[0], c.in[1], c.in[2], c.in[3], c.in[4],
                        c.as<BackwardAttrs>().training);
        },
    .saves = {.always = in(0) | in(1) | in(2) | in(3) | in(4)},
    .vjp =
        [](Vjp& c) {
          norm_backward_vjp(c, norm_view(c.in(1).sizes()), c.as<BackwardAttrs>().training);
        },
    .batch = batch_channels,
    .attrs = &attr_info<BackwardAttrs>,
    .offer = Offer::function,
    .flops = "(9 + given(weight)) * numel(input)",
});

constexpr OpDef batch_norm_weight_backward_op = general({
    .signature = "_native_batch_norm_weight_backward(Tensor grad, Tensor input, Tensor mean, "
                 "Tensor rstd) -> "
                 "(Tensor dweight, Tensor dbias)",
    .doc = "Gradients of batch_norm's weight and bias: sum(g xhat) and sum(g) of every channel.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          check_backward(c);
          DType d = norm_dtype(c.in[1].dtype());
          out.add(d, Dims{c.in[1].sizes()[1]});
          out.add(d, Dims{c.in[1].sizes()[1]});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          backward_into(Tensor(), outs[0], outs[1], c.in[0], c.in[1], c.in[2], c.in[3], Tensor(),
                        false);
        },
    .saves = {.always = in(0) | in(1) | in(2) | in(3)},
    .vjp = [](Vjp& c) { norm_weight_backward_vjp(c, norm_view(c.in(1).sizes())); },
    .batch = batch_channels,
    .offer = Offer::function,
    .flops = "5 * numel(input)",
});

// Both at once, which share their sums.
constexpr OpDef batch_norm_gradients_op = general({
    .signature = "_native_batch_norm_gradients(Tensor grad, Tensor input, Tensor mean, Tensor "
                 "rstd, Tensor? weight, bool training) -> "
                 "(Tensor dinput, Tensor dweight, Tensor dbias)",
    .doc = "Gradients of batch_norm's input, weight and bias.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          check_backward(c);
          check_channels(c, c.in[4], c.in[1], "weight");
          add_like(out, c.in[1]);
          const DType d = norm_dtype(c.in[1].dtype());
          out.add(d, Dims{c.in[1].sizes()[1]});
          out.add(d, Dims{c.in[1].sizes()[1]});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          backward_into(outs[0], outs[1], outs[2], c.in[0], c.in[1], c.in[2], c.in[3], c.in[4],
                        c.as<BackwardAttrs>().training);
        },
    .no_vjp = made_one_by_one,
    .attrs = &attr_info<BackwardAttrs>,
    .at_once = true,
    .offer = Offer::function,
    .flops = "(14 + given(weight)) * numel(input)",
});

// ---- the op itself
// ----------------------------------------------------------------------------------

void batch_norm_vjp(Vjp& c) {
  bool training = c.as<BatchAttrs>().training;
  Tensor g = c.grad(0), x = c.in(0), mean = c.out(1), rstd = c.out(2);
  bool affine = c.needs(1) || c.needs(2);
  Tensor w = c.has_in(1) ? c.in(1) : Tensor();
  bool statistics = training && (c.grad(1).defined() || c.grad(2).defined());
  if (c.needs(0) && affine && g.defined() && !statistics && !modes.grad &&
      !levels_of(std::initializer_list<Tensor>{g, x, w})) {
    const Tensor in[] = {g, x, mean, rstd, w};
    const BackwardAttrs attrs{training};
    Tensors grads;
    apply(batch_norm_gradients_op, in, &attrs, grads);
    c.set(0, grads[0]);
    if (c.needs(1)) c.set(1, grads[1]);
    if (c.needs(2)) c.set(2, grads[2]);
    return;
  }
  if (c.needs(0)) {
    Tensor dx;
    if (g.defined()) {
      dx = apply(batch_norm_backward_op, {g, x, mean, rstd, w}, BackwardAttrs{training});
    }
    if (training)
      set_input_grad(c, dx, norm_view(x.sizes()));
    else if (dx.defined())
      c.set(0, dx);
  }
  if (affine && g.defined()) {
    Tensors grads;
    Tensor in[] = {g, x, mean, rstd};
    apply(batch_norm_weight_backward_op, in, nullptr, grads);
    if (c.needs(1)) c.set(1, grads[0]);
    if (c.needs(2)) c.set(2, grads[1]);
  }
}

constexpr OpDef native_batch_norm_op = general({
    .signature =
        "_native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
        "Tensor? running_var, bool training, float eps) -> "
        "(Tensor output, Tensor mean, Tensor rstd, Tensor var)",
    .doc = "Normalises every channel; also gives the mean, 1 / sqrt(var + eps) and the unbiased "
           "variance it used.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const Tensor& x = c.in[0];
          check_input(c, x);
          check_channels(c, c.in[1], x, "weight");
          check_channels(c, c.in[2], x, "bias");
          check_channels(c, c.in[3], x, "running_mean");
          check_channels(c, c.in[4], x, "running_var");
          for (const Tensor& t : c.in.subspan(1)) check_affine_dtype(c, x, t);
          require(c.as<BatchAttrs>().training || (c.in[3].defined() && c.in[4].defined()), c.name(),
                  ": running_mean and running_var must be given when training is False");
          DType d = norm_dtype(x.dtype());
          add_like(out, x);
          for (int i = 0; i < 3; ++i) out.add(d, Dims{x.sizes()[1]});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<BatchAttrs>();
          DType d = norm_dtype(c.in[0].dtype());
          Layout layout(c.in[0]);
          Tensor x = staged(c.in[0], d, layout.strides);
          Tensor w = dense(c.in[1], d), b = dense(c.in[2], d);
          Tensor rm = dense(c.in[3], d), rv = dense(c.in[4], d);
          kernels::ChannelShape sh = layout.shape(x.sizes());
          StagedOut y(outs[0], d, layout.strides);
          auto count = static_cast<double>(sh.n * sh.s);
          with_norm_type(d, [&]<class T>() {
            T *mean = outs[1].data<T>(), *rstd = outs[2].data<T>(), *var = outs[3].data<T>();
            if (a.training) {
              std::vector<double> m(static_cast<size_t>(sh.c)), squares(m.size());
              kernels::channel_moments(m.data(), squares.data(), x.data<const T>(), sh);
              for (int64_t i = 0; i < sh.c; ++i) {
                auto k = static_cast<size_t>(i);
                mean[i] = static_cast<T>(m[k]);
                rstd[i] = static_cast<T>(1 / std::sqrt(squares[k] / count + a.eps));
                var[i] = static_cast<T>(squares[k] / (count - 1));
              }
            } else {
              for (int64_t i = 0; i < sh.c; ++i) {
                mean[i] = rm.data<T>()[i];
                var[i] = rv.data<T>()[i];
                rstd[i] = static_cast<T>(1 / std::sqrt(static_cast<double>(var[i]) + a.eps));
              }
            }
            kernels::channel_affine(y.data<T>(), x.data<const T>(), mean, rstd, data_or_null<T>(w),
                                    data_or_null<T>(b), sh);
          });
        },
    .saves = {.always = in(0) | in(1) | out(1) | out(2)},
    .vjp = batch_norm_vjp,
    .batch = batch_channels,
    .attrs = &attr_info<BatchAttrs>,
    .offer = Offer::function,
    .flops = "(6 + given(weight) + given(bias)) * numel(input)",
    .backward_flops = "(9 + 6 * given(weight)) * numel(input)",
});

struct BatchNormAttrs {
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;
  static constexpr auto members() {
    return std::tuple(&BatchNormAttrs::training, &BatchNormAttrs::momentum, &BatchNormAttrs::eps);
  }
};

// running = (1 - momentum) * running + momentum * now
void update_running(const Tensor& running, const Tensor& now, double momentum) {
  if (!running.defined() || running.is_meta()) return;
  GradMode off(false);
  if (is_batched(now) || is_batched(running)) {
    require_room(running, levels_of(now), "batch_norm: running statistics");
    return copy_(running, running * Scalar(1 - momentum) + now * Scalar(momentum));
  }
  copy_into(running, running * Scalar(1 - momentum) + now * Scalar(momentum));
  bump_version(running);
}

constexpr OpDef batch_norm_op = composite({
    .signature =
        "nn.functional.batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, "
        "Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, "
        "float eps=1e-05) -> Tensor",
    .doc = R"(Normalises every channel over the batch, then scales and shifts it.

out = (input - mean) / sqrt(var + eps) * weight + bias

Args:
    input: a floating point tensor of shape (N, C, ...).
    running_mean: of shape (C,): the mean when not training; moved to the batch's when training.
    running_var: of shape (C,), likewise (towards the unbiased variance).
    weight: the scale of each channel.
    bias: the shift of each channel.
    training: whether the batch's own statistics are used.
    momentum: how far the running statistics move.
    eps: keeps the root away from zero.
Returns:
    a tensor of the input's shape.

>>> x = clew.tensor([[1.], [3.]])
>>> clew.nn.functional.batch_norm(x, None, None, training=True, eps=0.)
tensor([[-1.],
        [ 1.]])
)",
    .run =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<BatchNormAttrs>();
          const Tensor &x = c.in[0], &mean = c.in[1], &var = c.in[2];
          if (x.ndim() == 1 && x.numel() == 0 && is_floating(x.dtype()))
            return outs.push_back(x * Scalar(1));
          check_input(c, x);
          int64_t values = x.sizes()[0];  // of a channel
          for (int d = 2; d < x.ndim(); ++d) values *= x.sizes()[d];
          if (a.training && values == 1) {
            fail_value(c.name(), ": expected more than 1 value per channel when training; got ", x);
          }
          Tensors results;
          // The batch's own statistics are made of x alone: what makes them again must not depend
          // on running ones, which move on.
          Tensor in[] = {x, c.in[3], c.in[4], mean, var};
          if (a.training) {
            check_channels(c, mean, x, "running_mean");
            check_channels(c, var, x, "running_var");
            for (const Tensor& t : {mean, var}) check_affine_dtype(c, x, t);
            in[3] = in[4] = Tensor();
          }
          BatchAttrs attrs{a.training, a.eps};
          apply(native_batch_norm_op, in, &attrs, results);
          if (a.training) {
            update_running(mean, results[1], a.momentum);
            update_running(var, results[3], a.momentum);
          }
          outs.push_back(std::move(results[0]));
        },
    .attrs = &attr_info<BatchNormAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* normalization_batch_list[] = {
    &batch_norm_op, &native_batch_norm_op, &batch_norm_backward_op, &batch_norm_weight_backward_op,
    &batch_norm_gradients_op};

}  // namespace

extern const OpList normalization_batch_ops;
const OpList normalization_batch_ops = op_list(normalization_batch_list);

}  // namespace clew
