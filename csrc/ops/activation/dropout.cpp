// Dropout and its relatives: one fused kernel that draws the mask and applies it.
// May include: graph, kernels/random/random.h, ops.
// Invariant: only the mask (bool) is kept for backward.
#include <cmath>

#include "base/text.h"
#include "graph/inplace.h"
#include "graph/modes.h"
#include "graph/warning.h"
#include "kernels/random/random.h"
#include "ops/batch_rules.h"
#include "ops/calls/random.h"
#include "ops/calls/shape.h"
#include "ops/ops.h"
#include "tensor/layout.h"

namespace clew {

namespace {

// Kept elements become x * scale + shift, the others `dropped`; `keep` is the chance to stay.
struct MaskAttrs {
  double keep = 1;
  double scale = 1;
  double shift = 0;
  double dropped = 0;
  bool feature = false;  // one draw for a whole channel: the mask is [N, C, 1 ...]
  bool masked = true;    // false: the mask is not returned and may stay empty
  Generator* generator = nullptr;
  static constexpr auto members() {
    return std::tuple(&MaskAttrs::keep, &MaskAttrs::scale, &MaskAttrs::shift, &MaskAttrs::dropped,
                      &MaskAttrs::feature, &MaskAttrs::masked, &MaskAttrs::generator);
  }
};
struct ScaleAttrs {
  double scale = 1;
  static constexpr auto members() { return std::tuple(&ScaleAttrs::scale); }
};

void apply_mask(const Tensor& out, const Tensor& in, const Tensor& mask, double scale, double shift,
                double dropped) {
  Dims strides = broadcast_strides(mask.sizes(), mask.strides(), out.sizes());
  kernels::masked_affine(
      out.nd(), in.nd(),
      {mask->address(), out.sizes().data(), strides.data(), out.ndim(), DType::Bool}, scale, shift,
      dropped);
}

// Whether the kernel can apply the mask while it draws it, without storing the mask.
bool draws_in_passing(const Tensor& x, const MaskAttrs& a) {
  return a.keep > 0 && !a.feature && x.dtype() == DType::Float32 && x.is_contiguous();
}

// Adds a result of x's dtype and sizes, with its dims in the order in which they lie in x.
OutSpec& add_laid_out(const Tensor& x, OutSpecs& outs) {
  OutSpec& out = outs.add(x.dtype(), x.sizes());
  if (!x.is_contiguous()) out.strides = kept_strides(x);
  return out;
}
void masked_shape(const Call& c, OutSpecs& outs) {
  const Tensor& x = c.in[0];
  const auto& a = c.as<MaskAttrs>();
  if (!x.is_floating())
    fail(ErrorKind::NotImplemented, "dropout: input must be floating point; got ", x);
  Dims sizes = x.sizes();
  if (a.feature) {
    for (int i = 2; i < x.ndim(); ++i) sizes[i] = 1;
  }
  // Numbers are drawn in the order of memory, so the mask has the input's layout.
  const std::optional<Dims> strides = add_laid_out(x, outs).strides;
  if (!a.masked && draws_in_passing(x, a)) {
    outs.add(DType::Bool, Dims{0});
    return;
  }
  OutSpec& mask = outs.add(DType::Bool, sizes);
  if (!a.feature) mask.strides = strides;
}
void masked_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<MaskAttrs>();
  Generator& g = a.generator ? *a.generator : default_generator();
  if (a.keep > 0 && !a.feature) {
    kernels::random_masked_affine(outs[0].nd(), outs[1].nd(), c.in[0].nd(), a.keep, a.scale,
                                  a.shift, a.dropped, g);
    return;
  }
  {
    if (a.keep <= 0)
      kernels::fill(outs[1].nd(), Scalar(false));
    else
      kernels::random_bernoulli(outs[1].nd(), a.keep, g);
  }
  apply_mask(outs[0], c.in[0], outs[1], a.scale, a.shift, a.dropped);
}

void mask_backward_shape(const Call& c, OutSpecs& outs) {
  require(c.in[1].dtype() == DType::Bool, "_dropout_backward: mask must be bool; got ", c.in[1]);
  require(c.in[0].is_floating(), "_dropout_backward: grad must be floating point; got ", c.in[0]);
  broadcast_strides(c.in[1].sizes(), c.in[1].strides(), c.in[0].sizes());
  add_laid_out(c.in[0], outs);
}
void backward_cpu(const Call& c, Tensors& outs) {
  apply_mask(outs[0], c.in[0], c.in[1], c.as<ScaleAttrs>().scale, 0, 0);
}
void backward_vjp(Vjp& c);

constexpr OpDef dropout_backward_op = general({
    .signature = "_dropout_backward(Tensor input, Tensor mask, float scale) -> Tensor",
    .doc = "Gradient of dropout: input * mask * scale.",
    .shape = mask_backward_shape,
    .cpu = backward_cpu,
    .saves = {.always = in(1)},
    .vjp = backward_vjp,
    .batch = batch_leading,
    .attrs = &attr_info<ScaleAttrs>,
    .offer = Offer::function,
    .flops = "2 * numel(input)",
});

void backward_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, apply(dropout_backward_op, {c.grad(), c.in(1)}, c.as<ScaleAttrs>()));
}

extern const OpDef masked_op;
// The mask does not depend on the input: it is drawn now, and the product waits. Not for dropout
// that replaces elements by something other than 0.
bool masked_draw(const Call& c, Tensors& outs) {
  MaskAttrs a = c.as<MaskAttrs>();
  if (a.shift != 0 || a.dropped != 0) return false;
  a.masked = true;
  const Tensor& x = c.in[0];
  // Numbers are drawn in the order of memory.
  const Tensor like = empty_strided(x.sizes(), x.strides(), x.dtype());
  fill_(like, Scalar(0));
  Tensors drawn;
  {
    const GradMode off(false);
    const InterceptWithout at_once(intercept_collect);
    apply(masked_op, {&like, 1}, &a, drawn);
  }
  outs.push_back(apply(dropout_backward_op, {x, drawn[1]}, ScaleAttrs{a.scale}));
  outs.push_back(std::move(drawn[1]));
  return true;
}

void masked_vjp(Vjp& c) {
  ScaleAttrs attrs{c.as<MaskAttrs>().scale};
  if (c.needs(0) && c.grad(0).defined()) {
    c.set(0, apply(dropout_backward_op, {c.grad(0), c.out(1)}, attrs));
  }
}

constexpr OpDef masked_op = general({
    .signature = "_masked_dropout(Tensor input, float keep, float scale, float shift, float "
                 "dropped, bool feature, bool masked=True,"
                 " *, Generator? generator=None) -> (Tensor output, Tensor mask)",
    .doc = "Keeps each element with probability keep as input * scale + shift and replaces the "
           "others. Unless masked, the mask may be empty: nothing is to be differentiated.",
    .shape = masked_shape,
    .cpu = masked_cpu,
    .draw = masked_draw,
    .saves = {.always = out(1)},
    .vjp = masked_vjp,
    .attrs = &attr_info<MaskAttrs>,
    .offer = Offer::function,
    .flops = "2 * numel(input)",
});

struct DropoutAttrs {
  double p = 0.5;
  bool training = true;
  static constexpr auto members() { return std::tuple(&DropoutAttrs::p, &DropoutAttrs::training); }
};

// Whether dropout leaves x unchanged.
bool leaves(const Tensor& x, const DropoutAttrs& a) {
  return a.p == 0 || !a.training || x.numel() == 0;
}

Tensor run(const Tensor& x, const char* name, const DropoutAttrs& a, bool feature, bool alpha) {
  if (!(a.p >= 0 && a.p <= 1)) {
    fail_value(name, ": dropout probability has to be between 0 and 1, but got ", a.p);
  }
  if (leaves(x, a)) return x;
  MaskAttrs m;
  m.keep = 1 - a.p;
  m.scale = a.p == 1 ? 0 : 1 / m.keep;
  m.feature = feature && x.ndim() >= 2;  // fewer dims only where everything is dropped
  m.masked = modes.vmap || is_batched(x) || (modes.grad && x.requires_grad());
  if (alpha) {
    // Keeps mean 0 and variance 1 of a SELU's output: dropped elements take its lower limit.
    constexpr double limit = -1.7580993408473766;
    m.scale = a.p == 1 ? 0 : 1 / std::sqrt((limit * limit * a.p + 1) * (1 - a.p));
    m.shift = -limit * m.scale * a.p;
    m.dropped = m.scale * limit + m.shift;
  }
  Tensors outs;
  Tensor in[1] = {x};
  apply(masked_op, in, &m, outs);
  return std::move(outs[0]);
}

// A sample without a batch dim gets one for the call: masks have their channels second.
Tensor run_channels(const Tensor& x, const char* name, const DropoutAttrs& a, int batched_dims) {
  if (x.ndim() != batched_dims && x.ndim() != batched_dims - 1) {
    fail(name, ": input must have ", batched_dims - 1, " or ", batched_dims, " dims; got ", x);
  }
  if (x.ndim() == batched_dims) return run(x, name, a, true, false);
  return squeeze(run(unsqueeze(x, 0), name, a, true, false), {0});
}
Tensor run_feature(const Tensor& x, const char* name, const DropoutAttrs& a, bool alpha) {
  require(x.ndim() >= 2 || a.p == 1 || leaves(x, a), name,
          ": input must have at least 2 dims; got ", x);
  return run(x, name, a, true, alpha);
}

void dropout_run(const Call& c, Tensors& outs) {
  outs.push_back(run(c.in[0], "dropout", c.as<DropoutAttrs>(), false, false));
}
void alpha_dropout_run(const Call& c, Tensors& outs) {
  outs.push_back(run(c.in[0], "alpha_dropout", c.as<DropoutAttrs>(), false, true));
}
void feature_dropout_run(const Call& c, Tensors& outs) {
  outs.push_back(run_feature(c.in[0], "feature_dropout", c.as<DropoutAttrs>(), false));
}
void feature_alpha_dropout_run(const Call& c, Tensors& outs) {
  outs.push_back(run_feature(c.in[0], "feature_alpha_dropout", c.as<DropoutAttrs>(), true));
}
void dropout1d_run(const Call& c, Tensors& outs) {
  outs.push_back(run_channels(c.in[0], "dropout1d", c.as<DropoutAttrs>(), 3));
}
void dropout2d_run(const Call& c, Tensors& outs) {
  // Three dims are read as [N, C, L], as PyTorch does.
  outs.push_back(run_feature(c.in[0], "dropout2d", c.as<DropoutAttrs>(), false));
}
void dropout3d_run(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  const auto& a = c.as<DropoutAttrs>();
  if (x.ndim() == 5) return outs.push_back(run(x, "dropout3d", a, true, false));
  if (x.ndim() != 4)
    warn(concat("dropout3d: received a ", x.ndim(),
                "-D input, which is read as a sample without a batch dimension; give 4 or 5 "
                "dimensions"));
  outs.push_back(squeeze(run_feature(unsqueeze(x, 0), "dropout3d", a, false), {0}));
}

// In place. If dropout changes nothing, x is not written, so x may be a leaf.
template <void (*run)(const Call&, Tensors&)> void write_over(const Call& c) {
  const Tensor& x = c.in[0];
  Tensors outs;
  if (leaves(x, c.as<DropoutAttrs>())) return run(c, outs);
  bool records = modes.grad && x.requires_grad();
  check_inplace(x, concat(c.name(), "_").c_str(), records);
  Tensor old[1] = {records ? keep_old(x) : x};
  run(Call{c.op, old, c.attrs}, outs);
  copy_(x, outs[0]);
}

// A form in nn.functional; `training` is its default, `sample` the sizes in its example.
template <Text name, auto run, Text training, Text says, Text sample = "1, 2, 2, 1">
consteval OpDef functional_form() {
  return composite({
      .signature = joined<"nn.functional.", name, "(Tensor input, float p=0.5, bool training=",
                          training, ", bool inplace=False) -> Tensor">,
      .doc = joined<says, R"(

Args:
    input: any shape, floating point.
    p: probability of a drop.
    training: when False, input is returned as it is.
    inplace: write the result into input.

Returns:
    A tensor like input.

Example:
    >>> clew.nn.functional.)",
                    name, "(clew.ones(", sample, "), training=False).mean()\n    tensor(1.)\n">,
      .run = run,
      .write = write_over<run>,
      .attrs = &attr_info<DropoutAttrs>,
      .inplace = true,
      .offer = Offer::function,
  });
}
constexpr OpDef dropout_op =
    functional_form<"dropout", dropout_run, "True",
                    R"(Zeroes each element with probability p and scales the others by 1 / (1 - p).

out[i] = input[i] * mask[i] / (1 - p),  mask[i] ~ Bernoulli(1 - p))">();
constexpr OpDef alpha_dropout_op =
    functional_form<"alpha_dropout", alpha_dropout_run, "False",
                    R"(Drops elements so that a SELU network keeps mean 0 and variance 1.

Dropped elements become the lower limit of SELU, then all are scaled and shifted.)">();
constexpr OpDef feature_alpha_dropout_op =
    functional_form<"feature_alpha_dropout", feature_alpha_dropout_run, "False",
                    R"(Alpha dropout of whole channels: input[n, c] is kept or dropped as one.

Every channel draws once.)">();
constexpr OpDef dropout1d_op =
    functional_form<"dropout1d", dropout1d_run, "True",
                    R"(Zeroes whole channels of [N, C, L] or [C, L] with probability p.

out[n, c] = input[n, c] * mask[n, c] / (1 - p))",
                    "1, 2, 3">();
constexpr OpDef dropout2d_op =
    functional_form<"dropout2d", dropout2d_run, "True",
                    R"(Zeroes whole channels of [N, C, H, W] with probability p.

out[n, c] = input[n, c] * mask[n, c] / (1 - p))">();
constexpr OpDef dropout3d_op =
    functional_form<"dropout3d", dropout3d_run, "True",
                    R"(Zeroes whole channels of [N, C, D, H, W] or [C, D, H, W] with probability p.

out[n, c] = input[n, c] * mask[n, c] / (1 - p))">();

// The forms at the package's top, whose probability and mode are given in order.
template <Text name, auto run> consteval OpDef in_order() {
  return composite({
      .signature = joined<name, "(Tensor input, float p, bool train) -> Tensor">,
      .doc = joined<"nn.functional's ", name,
                    R"( with the probability and the mode given in order.

Args:
    input: any shape, floating point.
    p: probability of a drop.
    train: when False, input is returned as it is.

Returns:
    A tensor like input.

Example:
    >>> clew.)",
                    name, R"((clew.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
)">,
      .run = run,
      .attrs = &attr_info<DropoutAttrs>,
      .inplace = false,
      .offer = Offer::function,
  });
}
constexpr OpDef top_dropout_op = in_order<"dropout", dropout_run>();
constexpr OpDef top_alpha_dropout_op = in_order<"alpha_dropout", alpha_dropout_run>();
constexpr OpDef top_feature_dropout_op = in_order<"feature_dropout", feature_dropout_run>();
constexpr OpDef top_feature_alpha_dropout_op =
    in_order<"feature_alpha_dropout", feature_alpha_dropout_run>();

constexpr const OpDef* dropout_list[] = {&masked_op,
                                         &dropout_backward_op,
                                         &dropout_op,
                                         &alpha_dropout_op,
                                         &feature_alpha_dropout_op,
                                         &dropout1d_op,
                                         &dropout2d_op,
                                         &dropout3d_op,
                                         &top_dropout_op,
                                         &top_alpha_dropout_op,
                                         &top_feature_dropout_op,
                                         &top_feature_alpha_dropout_op};

}  // namespace

extern const OpList dropout_ops;
const OpList dropout_ops = op_list(dropout_list);

Tensor dropout(const Tensor& x, double p, bool training) {
  return run(x, "dropout", {p, training}, false, false);
}

}  // namespace clew
