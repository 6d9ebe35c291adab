// layer_norm, group_norm: each row or group normalised by its own mean and variance.
// May include: ops, graph, tensor, kernels.
// Invariant: mean and rstd are kept from forward, in float32 at least, and never computed again.
#include <limits>

#include "base/checked.h"
#include "graph/batch.h"
#include "graph/deferral.h"
#include "graph/modes.h"
#include "kernels/norm/norm.h"
#include "ops/batch_rules.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/normalization/normalization_common.h"
#include "ops/widened.h"
#include "tensor/layout.h"

namespace clew {

void check_normalized_shape(const Call& c, const Tensor& x, const Dims& shape,
                            std::span<const Tensor> affine) {
  require(!shape.empty(), c.name(), ": normalized_shape must have at least one dimension; got ",
          shape);
  int lead = x.ndim() - shape.size();
  bool fits = lead >= 0;
  for (int d = 0; fits && d < shape.size(); ++d) fits = x.sizes()[lead + d] == shape[d];
  require(fits, c.name(), ": the input's last dimensions must equal normalized_shape ", shape,
          "; got ", x);
  for (const Tensor& t : affine) {
    require(!t.defined() || t.sizes() == shape, c.name(),
            ": weight and bias must have normalized_shape ", shape, "; got ", t);
  }
}

namespace {

// The input seen as [n, g, k, s], statistics over k and s, weight [g, k].
struct NormAttrs {
  int64_t n = 0, g = 0, k = 0, s = 0;
  double eps = 0;
  static constexpr auto members() {
    return std::tuple(&NormAttrs::n, &NormAttrs::g, &NormAttrs::k, &NormAttrs::s, &NormAttrs::eps);
  }
};
struct NormShapeAttrs {
  int64_t n = 0, g = 0, k = 0, s = 0;
  static constexpr auto members() {
    return std::tuple(&NormShapeAttrs::n, &NormShapeAttrs::g, &NormShapeAttrs::k,
                      &NormShapeAttrs::s);
  }
};

// Groups of images keep the images' memory format; rows are made contiguous.
std::optional<Dims> group_strides(const Tensor& x, int64_t s) {
  return s == 1 ? std::nullopt : format_strides(x, x.sizes());
}
// Whether x, seen as [n, g, k, s], has its channels last and is gone through as it lies.
template <class A> bool lies_last(const Tensor& x, const A& a) {
  return a.s != 1 && x.ndim() > 2 && !x.is_contiguous() && x.size(0) == a.n &&
         x.size(1) == a.g * a.k && x.strides() == channels_last_strides(x.sizes());
}
Tensor operand(const Tensor& t, DType d, bool last) {
  return last ? staged(t, d, channels_last_strides(t.sizes())) : dense(t, d);
}
template <class A> kernels::GroupShape group_shape(const A& a) { return {a.n, a.g, a.k, a.s}; }
template <class A> NormView norm_view(const A& a) {
  return {Dims{a.n, a.g, a.k, a.s}, Dims{2, 3}, Dims{a.n, a.g, 1, 1}, Dims{1, a.g, a.k, 1}};
}
template <class A> void check(const Call& c, const A& a) {
  const bool sizes = a.n >= 0 && a.g >= 0 && a.k >= 0 && a.s >= 0;
  const Checked total = Checked(a.n) * a.g * a.k * a.s;
  for (const Tensor& t : c.in) {
    require(!t.defined() || t.is_floating(), c.name(), ": operands must be floating point; got ",
            t);
  }
  require(sizes && total.fits && total.value == c.in[0].numel(), c.name(),
          ": the shape does not fit the input; got ", c.in[0]);
}
void check_like(const Call& c, int i, int64_t numel, DType d) {
  const Tensor& t = c.in[static_cast<size_t>(i)];
  require(!t.defined() || t.numel() == numel, c.name(), ": operand ", i,
          " has the wrong size; got ", t);
  require(d == DType::Bool || t.dtype() == d, c.name(), ": operand ", i,
          " has the wrong dtype; got ", t);
}
// Of the gradients, whose first operands are grad, input, mean and rstd.
void check_gradient(const Call& c, const NormShapeAttrs& a) {
  check(c, a);
  const DType d = norm_dtype(c.in[1].dtype());
  check_like(c, 1, c.in[0].numel(), DType::Bool);
  check_like(c, 2, a.n * a.g, d);
  check_like(c, 3, a.n * a.g, d);
}

// ---- vmap: samples are folded into n ------------------------------------------------------------

// A weight, seen to broadcast against the samples seen as [n, g, k, s].
template <class A> Tensor weight_of_samples(const Batch& b, int i, const A& a) {
  Tensor w = b.value(i);
  Dims sizes(w.sizes().data(), b.k());
  for (int64_t n : {int64_t{1}, a.g, a.k, int64_t{1}}) sizes.push_back(n);
  return reshape(w, sizes);
}
template <class A> Tensor in_groups(const Batch& b, const Tensor& t, const A& a) {
  return reshape(t, with_lead(b, Dims{a.n, a.g, a.k, a.s}));
}

void norm_batch(const Batch& b, Tensors& outs) {
  NormAttrs a = b.as<NormAttrs>();
  const NormAttrs one = a;
  a.n *= numel_of(b.lead);
  if (!a.n) return batch_each(b, outs);
  Tensor w = b.in[1], bias = b.in[2];
  bool apart = is_batched(w) || is_batched(bias);
  Tensor in[] = {b.full(0), apart ? Tensor() : w, apart ? Tensor() : bias};
  apply(b.op, in, &a, outs);
  for (int i : {1, 2}) outs[i] = view(outs[i], with_lead(b, Dims{one.n, one.g}));
  if (!apart) return;
  Tensor y = in_groups(b, outs[0], one);
  if (w.defined()) y = y * weight_of_samples(b, 1, one);
  if (bias.defined()) y = y + weight_of_samples(b, 2, one);
  outs[0] = to_dtype(reshape(y, outs[0].sizes()), b.in[0].dtype());
}
// n counts rows, or equal parts of them.
RowWise norm_rows(const Call& c, void* attrs, int64_t rows) {
  auto& a = *static_cast<NormAttrs*>(attrs);
  const int64_t n = c.in[0].size(0);
  if (n == 0 || a.n % n != 0) return no_rows;
  a.n = a.n / n * rows;
  return rows_of_first(c, nullptr, 0);
}
void norm_backward_batch(const Batch& b, Tensors& outs) {
  NormShapeAttrs a = b.as<NormShapeAttrs>();
  const NormShapeAttrs one = a;
  a.n *= numel_of(b.lead);
  if (!a.n) return batch_each(b, outs);
  Tensor g = b.full(0), w = b.in[4];
  if (is_batched(w)) {
    g = in_groups(b, g, one) * weight_of_samples(b, 4, one);
    w = Tensor();
  }
  Tensor in[] = {g, b.full(1), b.full(2), b.full(3), w};
  apply(b.op, in, &a, outs);
}
void norm_weight_backward_batch(const Batch& b, Tensors& outs) {
  NormShapeAttrs a = b.as<NormShapeAttrs>();
  int64_t count = numel_of(b.lead);
  if (!count) return batch_each(b, outs);
  Dims sizes = with_lead(b, Dims{a.g * a.k});
  if (a.n == 1) {
    a.g *= count;
    Tensor in[] = {b.full(0), b.full(1), b.full(2), b.full(3)};
    apply(b.op, in, &a, outs);
    for (Tensor& t : outs) t = view(t, sizes);
    return;
  }
  DType d = norm_dtype(b.in[1].dtype());
  Dims stat = with_lead(b, Dims{a.n, a.g, 1, 1}), over{b.k(), b.k() + 3};
  Tensor g = in_groups(b, to_dtype(b.full(0), d), a), x = in_groups(b, to_dtype(b.full(1), d), a);
  Tensor xhat = (x - reshape(b.full(2), stat)) * reshape(b.full(3), stat);
  outs.push_back(reshape(sum(g * xhat, over, false), sizes));
  outs.push_back(reshape(sum(g, over, false), sizes));
}

// ---- gradients
// ------------------------------------------------------------------------------------

constexpr OpDef norm_backward_op = general({
    .signature = "_native_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, "
                 "Tensor? weight, "
                 "int n, int g, int k, int s) -> Tensor",
    .doc = "Gradient of the normalised input: rstd (g w - M(g w) - xhat M(g w xhat)), M the mean "
           "over a group.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<NormShapeAttrs>();
          check_gradient(c, a);
          check_like(c, 4, a.g * a.k, DType::Bool);
          out.add(c.in[1].dtype(), c.in[1].sizes()).strides = group_strides(c.in[1], a.s);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<NormShapeAttrs>();
          const bool last = lies_last(outs[0], a);
          DType d = norm_dtype(c.in[1].dtype());
          StagedOut dx(outs[0], d, last);
          Tensor g = operand(c.in[0], d, last), x = operand(c.in[1], d, last),
                 mean = dense(c.in[2], d), rstd = dense(c.in[3], d);
          Tensor w = dense(c.in[4], d);
          with_norm_type(d, [&]<class T>() {
            const auto backward =
                last ? kernels::group_norm_backward_last<T> : kernels::group_norm_backward<T>;
            backward(dx.data<T>(), nullptr, nullptr, g.data<const T>(), x.data<const T>(),
                     mean.data<const T>(), rstd.data<const T>(), data_or_null<T>(w),
                     group_shape(a));
          });
        },
    .saves = {.always = in(0) | in(1) | in(2) | in(3) | in(4)},
    .vjp = [](Vjp& c) { norm_backward_vjp(c, norm_view(c.as<NormShapeAttrs>()), true); },
    .batch = norm_backward_batch,
    .attrs = &attr_info<NormShapeAttrs>,
    .offer = Offer::function,
    .flops = "(9 + given(weight)) * numel(input)",
});

constexpr OpDef norm_weight_backward_op = general({
    .signature =
        "_native_norm_weight_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, "
        "int n, int g, int k, int s) -> (Tensor dweight, Tensor dbias)",
    .doc = "Gradients of a normalisation's weight and bias: sum(g xhat) and sum(g).",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<NormShapeAttrs>();
          check_gradient(c, a);
          DType d = norm_dtype(c.in[1].dtype());
          out.add(d, Dims{a.g * a.k});
          out.add(d, Dims{a.g * a.k});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<NormShapeAttrs>();
          const bool last = lies_last(c.in[1], a);
          DType d = norm_dtype(c.in[1].dtype());
          StagedOut dw(outs[0], d), db(outs[1], d);
          Tensor g = operand(c.in[0], d, last), x = operand(c.in[1], d, last),
                 mean = dense(c.in[2], d), rstd = dense(c.in[3], d);
          with_norm_type(d, [&]<class T>() {
            if (last)
              kernels::group_norm_backward_last<T>(
                  nullptr, dw.data<T>(), db.data<T>(), g.data<const T>(), x.data<const T>(),
                  mean.data<const T>(), rstd.data<const T>(), nullptr, group_shape(a));
            else
              kernels::group_norm_weight_backward(dw.data<T>(), db.data<T>(), g.data<const T>(),
                                                  x.data<const T>(), mean.data<const T>(),
                                                  rstd.data<const T>(), group_shape(a));
          });
        },
    .saves = {.always = in(0) | in(1) | in(2) | in(3)},
    .vjp = [](Vjp& c) { norm_weight_backward_vjp(c, norm_view(c.as<NormShapeAttrs>())); },
    .batch = norm_weight_backward_batch,
    .attrs = &attr_info<NormShapeAttrs>,
    .offer = Offer::function,
    .flops = "5 * numel(input)",
});

// Both in one pass over the rows.
constexpr OpDef norm_gradients_op = general({
    .signature = "_native_norm_gradients(Tensor grad, Tensor input, Tensor mean, Tensor rstd, "
                 "Tensor? weight, int n, int g, int k, int s) -> "
                 "(Tensor dinput, Tensor dweight, Tensor dbias)",
    .doc = "Gradients of a normalisation's input, weight and bias.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<NormShapeAttrs>();
          check_gradient(c, a);
          check_like(c, 4, a.g * a.k, DType::Bool);
          const DType d = norm_dtype(c.in[1].dtype());
          out.add(c.in[1].dtype(), c.in[1].sizes()).strides = group_strides(c.in[1], a.s);
          out.add(d, Dims{a.g * a.k});
          out.add(d, Dims{a.g * a.k});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<NormShapeAttrs>();
          const bool last = lies_last(outs[0], a);
          const DType d = norm_dtype(c.in[1].dtype());
          StagedOut dx(outs[0], d, last), dw(outs[1], d), db(outs[2], d);
          const Tensor g = operand(c.in[0], d, last), x = operand(c.in[1], d, last),
                       mean = dense(c.in[2], d), rstd = dense(c.in[3], d), w = dense(c.in[4], d);
          with_norm_type(d, [&]<class T>() {
            const auto backward =
                last ? kernels::group_norm_backward_last<T> : kernels::group_norm_backward<T>;
            backward(dx.data<T>(), dw.data<T>(), db.data<T>(), g.data<const T>(), x.data<const T>(),
                     mean.data<const T>(), rstd.data<const T>(), data_or_null<T>(w),
                     group_shape(a));
          });
        },
    .no_vjp = made_one_by_one,
    .attrs = &attr_info<NormShapeAttrs>,
    .at_once = true,
    .offer = Offer::function,
    .flops = "(14 + given(weight)) * numel(input)",
});

// ---- the op itself
// ----------------------------------------------------------------------------------

void norm_vjp(Vjp& c) {
  const auto& a = c.as<NormAttrs>();
  NormShapeAttrs shape{a.n, a.g, a.k, a.s};
  Tensor g = c.grad(0), x = c.in(0), mean = c.out(1), rstd = c.out(2);
  bool affine = (c.inputs() > 1 && c.needs(1)) || (c.inputs() > 2 && c.needs(2));
  Tensor weight = c.has_in(1) ? c.in(1) : Tensor();
  if (c.needs(0) && affine && g.defined() && !c.grad(1).defined() && !c.grad(2).defined() &&
      !modes.grad && !levels_of(std::initializer_list<Tensor>{g, x, weight})) {
    const Tensor in[] = {g, x, mean, rstd, weight};
    Tensors grads;
    apply(norm_gradients_op, in, &shape, grads);
    c.set(0, grads[0]);
    if (c.needs(1)) c.set(1, reshape(grads[1], c.sizes(1)));
    if (c.inputs() > 2 && c.needs(2)) c.set(2, reshape(grads[2], c.sizes(2)));
    return;
  }
  if (c.needs(0)) {
    Tensor dx;
    if (g.defined()) dx = apply(norm_backward_op, {g, x, mean, rstd, weight}, shape);
    set_input_grad(c, dx, norm_view(a));
  }
  if (affine && g.defined()) {
    Tensors grads;
    Tensor in[] = {g, x, mean, rstd};
    apply(norm_weight_backward_op, in, &shape, grads);
    if (c.needs(1)) c.set(1, reshape(grads[0], c.sizes(1)));
    if (c.needs(2)) c.set(2, reshape(grads[1], c.sizes(2)));
  }
}
constexpr OpDef norm_op = general({
    .signature = "_native_norm(Tensor input, Tensor? weight, Tensor? bias, int n, int g, int k, "
                 "int s, float eps) -> "
                 "(Tensor output, Tensor mean, Tensor rstd)",
    .doc = "Normalises the input, seen as [n, g, k, s], over k and s; weight and bias are [g, k].",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<NormAttrs>();
          check(c, a);
          check_like(c, 1, a.g * a.k, DType::Bool);
          check_like(c, 2, a.g * a.k, DType::Bool);
          DType d = norm_dtype(c.in[0].dtype());
          out.add(c.in[0].dtype(), c.in[0].sizes()).strides = group_strides(c.in[0], a.s);
          out.add(d, Dims{a.n, a.g});
          out.add(d, Dims{a.n, a.g});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<NormAttrs>();
          DType d = norm_dtype(c.in[0].dtype());
          const Tensor w = dense(c.in[1], d), b = dense(c.in[2], d);
          if (a.k * a.s == 0) {
            fill_(outs[1], 0);
            fill_(outs[2], 0);
          }
          if (is_half(c.in[0].dtype()) && a.g == 1 && c.in[0].is_contiguous() &&
              outs[0].is_contiguous()) {
            in_float_rows(outs[0], c.in[0], a.n, a.k * a.s,
                          [&](float* to, const float* from, int64_t first, int64_t count) {
                            kernels::group_norm(to, outs[1].data<float>() + first,
                                                outs[2].data<float>() + first, from,
                                                data_or_null<float>(w), data_or_null<float>(b),
                                                {count, 1, a.k, a.s}, a.eps);
                          });
            return;
          }
          const bool last = lies_last(outs[0], a);
          StagedOut y(outs[0], d, last), mean(outs[1], d), rstd(outs[2], d);
          const Tensor x = operand(c.in[0], d, last);
          with_norm_type(d, [&]<class T>() {
            (last ? kernels::group_norm_last<T>
                  : kernels::group_norm<T>)(y.data<T>(), mean.data<T>(), rstd.data<T>(),
                                            x.data<const T>(), data_or_null<T>(w),
                                            data_or_null<T>(b), group_shape(a), a.eps);
          });
        },
    .saves = {.always = in(0) | in(1) | out(1) | out(2)},
    .vjp = norm_vjp,
    .batch = norm_batch,
    .rows = norm_rows,
    .attrs = &attr_info<NormAttrs>,
    .offer = Offer::function,
    .flops = "(6 + given(weight) + given(bias)) * numel(input)",
    .backward_flops = "(9 + 6 * given(weight)) * numel(input)",
});

Tensor normalize(const Call& c, const Tensor& x, const Tensor& w, const Tensor& b,
                 const NormAttrs& a) {
  Tensors outs;
  if (!x.is_floating()) {
    fail(ErrorKind::NotImplemented, c.name(), ": input must be floating point; got ", x);
  }
  Tensor in[] = {x, w, b};
  apply(norm_op, in, &a, outs);
  return std::move(outs[0]);
}

// ---- layer_norm
// -------------------------------------------------------------------------------------

struct LayerNormAttrs {
  Dims normalized_shape;
  double eps = 1e-5;
  static constexpr auto members() {
    return std::tuple(&LayerNormAttrs::normalized_shape, &LayerNormAttrs::eps);
  }
};
// Of a few rows, without the statistics that backward wants.
Tensor layer_norm_quick(const Call& c) {
  constexpr int64_t most_rows = 128;
  const auto& a = c.as<LayerNormAttrs>();
  const Tensor& x = c.in[0];
  const int dims = a.normalized_shape.size(), lead = x.ndim() - dims;
  if (x.dtype() != DType::Float32 || x.is_meta() || !x.is_contiguous() || dims == 0 || lead < 0 ||
      x.numel() == 0 || x.numel() >= grain_default)
    return {};
  int64_t k = 1;
  for (int d = 0; d < dims; ++d) {
    if (x.size(lead + d) != a.normalized_shape[d]) return {};
    k *= a.normalized_shape[d];
  }
  for (const Tensor& t : c.in.subspan(1))
    if (t.defined() && (t.dtype() != DType::Float32 || t.is_meta() || !t.is_contiguous() ||
                        t.sizes() != a.normalized_shape))
      return {};
  const int64_t n = x.numel() / k;
  if (n > most_rows) return {};
  float mean[most_rows], rstd[most_rows];
  const Tensor out = empty_dense_like(x, DType::Float32);
  kernels::group_norm(out.data<float>(), mean, rstd, x.data<const float>(),
                      data_or_null<float>(c.in[1]), data_or_null<float>(c.in[2]), {n, 1, k, 1},
                      a.eps);
  return out;
}
constexpr OpDef layer_norm_op = composite({
    .signature =
        "nn.functional.layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, "
        "Tensor? bias=None, float eps=1e-05) -> Tensor",
    .doc = R"(Normalises the last dimensions to mean 0 and variance 1, then scales and shifts.

out = (input - mean) / sqrt(var + eps) * weight + bias

Args:
    input: a floating point tensor.
    normalized_shape: the sizes of the last dimensions, which mean and variance are taken over.
    weight: the scale, of normalized_shape.
    bias: the shift, of normalized_shape.
    eps: keeps the root away from zero.
Returns:
    a tensor of the input's shape.

>>> clew.nn.functional.layer_norm(clew.tensor([1., 3.]), [2], eps=0.)
tensor([-1.,  1.])
)",
    .quick = layer_norm_quick,
    .run =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<LayerNormAttrs>();
          const Tensor& x = c.in[0];
          check_normalized_shape(c, x, a.normalized_shape, c.in.subspan(1));
          for (const Tensor& t : c.in.subspan(1)) check_affine_dtype(c, x, t);
          int64_t k = 1, n = 1;
          int lead = x.ndim() - a.normalized_shape.size();
          for (int d = 0; d < x.ndim(); ++d) (d < lead ? n : k) *= x.sizes()[d];
          outs.push_back(normalize(c, x, c.in[1], c.in[2], NormAttrs{n, 1, k, 1, a.eps}));
        },
    .attrs = &attr_info<LayerNormAttrs>,
    .offer = Offer::function,
});

// ---- group_norm
// -------------------------------------------------------------------------------------

struct GroupNormAttrs {
  int64_t num_groups = 1;
  double eps = 1e-5;
  static constexpr auto members() {
    return std::tuple(&GroupNormAttrs::num_groups, &GroupNormAttrs::eps);
  }
};
constexpr OpDef group_norm_op = composite({
    .signature = "nn.functional.group_norm(Tensor input, int num_groups, Tensor? weight=None, "
                 "Tensor? bias=None, "
                 "float eps=1e-05) -> Tensor",
    .doc =
        R"(Normalises each group of channels to mean 0, variance 1, then scales and shifts channels.

out = (input - mean) / sqrt(var + eps) * weight + bias

Args:
    input: a floating point tensor of shape (N, C, ...).
    num_groups: how many groups the C channels form; divides C.
    weight: the scale of each channel, of shape (C,).
    bias: the shift of each channel, of shape (C,).
    eps: keeps the root away from zero.
Returns:
    a tensor of the input's shape.

>>> clew.nn.functional.group_norm(clew.tensor([[1., 3., 2., 6.]]), 2, eps=0.)
tensor([[-1.,  1., -1.,  1.]])
)",
    .run =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<GroupNormAttrs>();
          const Tensor& x = c.in[0];
          require(x.ndim() >= 2, c.name(), ": input must have at least 2 dimensions; got ", x);
          int64_t n = x.sizes()[0], ch = x.sizes()[1], s = 1;
          require(a.num_groups > 0, c.name(), ": num_groups must be greater than 0; got ",
                  a.num_groups);
          require(ch % a.num_groups == 0, c.name(),
                  ": the channels must be divisible by num_groups ", a.num_groups, "; got ", x);
          for (int i = 1; i <= 2; ++i) {
            const Tensor& t = c.in[static_cast<size_t>(i)];
            require(!t.defined() || (t.ndim() == 1 && t.numel() == ch), c.name(), ": ",
                    i == 1 ? "weight" : "bias", " must have one element for each channel; got ", t,
                    " for input ", x);
            check_affine_dtype(c, x, t);
          }
          for (int d = 2; d < x.ndim(); ++d) s *= x.sizes()[d];
          if (n * (ch / a.num_groups) * s == 1)
            fail_value(c.name(),
                       ": Expected more than 1 value per channel when training, got input ", x);
          outs.push_back(normalize(c, x, c.in[1], c.in[2],
                                   NormAttrs{n, a.num_groups, ch / a.num_groups, s, a.eps}));
        },
    .attrs = &attr_info<GroupNormAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* normalization_list[] = {
    &layer_norm_op,    &group_norm_op,           &norm_op,
    &norm_backward_op, &norm_weight_backward_op, &norm_gradients_op};

}  // namespace

extern const OpList normalization_ops;
const OpList normalization_ops = op_list(normalization_list);

}  // namespace clew
