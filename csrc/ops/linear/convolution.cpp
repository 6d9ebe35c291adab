// Convolutions: one trilinear map, whose three partial forms are one another's gradients.
// May include: ops, kernels/conv/conv.h.
// Invariant: every derivative of a convolution is again one of the three forms.
#include "kernels/conv/conv.h"

#include "base/checked.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/reduction.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/staged_out.h"
#include "tensor/layout.h"

namespace clew {

namespace {

// --- The three forms -----------------------------------------------------------------------------

// `size`: the spatial sizes of the result (of the kernel, for the form that gives the weight);
// padding on the left, what is missing on the right follows from the sizes.
struct ConvAttrs {
  Dims size, stride, padding, dilation;
  int64_t groups = 1;
  static constexpr auto members() {
    return std::tuple(&ConvAttrs::size, &ConvAttrs::stride, &ConvAttrs::padding,
                      &ConvAttrs::dilation, &ConvAttrs::groups);
  }
};

void check_attrs(const ConvAttrs& a, std::string_view op) {
  const int nd = a.size.size();
  require(nd >= 1 && nd <= 3 && a.stride.size() == nd && a.padding.size() == nd &&
              a.dilation.size() == nd,
          op,
          ": sizes, stride, padding and dilation must have one entry for each of 1 to 3 spatial "
          "dimensions");
  require(a.groups >= 1, op, ": groups must be at least 1; got ", a.groups);
  for (int d = 0; d < nd; ++d) {
    require(a.stride[d] >= 1, op, ": stride must be at least 1; got ", a.stride);
    require(a.padding[d] >= 0, op, ": padding must be at least 0; got ", a.padding);
    require(a.dilation[d] >= 1, op, ": dilation must be at least 1; got ", a.dilation);
    require(a.size[d] >= 0, op, ": sizes must be at least 0; got ", a.size);
    constexpr int64_t limit = int64_t{1} << 40;
    require(
        a.stride[d] < limit && a.padding[d] < limit && a.dilation[d] < limit && a.size[d] < limit,
        op, ": sizes, stride, padding and dilation must be below 2^40");
  }
}

void require_pair(const Tensor& a, const Tensor& b, int nd, std::string_view op) {
  require(a.ndim() == nd + 2 && b.ndim() == nd + 2, op, ": operands must have ", nd + 2,
          " dimensions; got ", a, " and ", b);
  require(a.dtype() == b.dtype(), op, ": operands must have one dtype; got ", a, " and ", b);
  if (a.dtype() == DType::Bool)
    fail(ErrorKind::NotImplemented, op, ": not implemented for bool; got ", a);
}

void require_bias(const Tensor& bias, int64_t channels, DType dtype, std::string_view op) {
  if (!bias) return;
  require(bias.ndim() == 1 && bias.size(0) == channels, op,
          ": bias must have one element for each of ", channels, " output channels; got ", bias);
  require(bias.dtype() == dtype, op, ": bias must have the input's dtype ", dtype, "; got ", bias);
}

Dims with_channels(int64_t a, int64_t b, const Dims& spatial) {
  Dims out{a, b};
  for (int64_t s : spatial) out.push_back(s);
  return out;
}

// The result lies as its operands do: channels last when one of them does.
void add_result(OutSpecs& out, DType dtype, Dims sizes, const Tensor& a, const Tensor& b) {
  OutSpec& spec = out.add(dtype, std::move(sizes));
  // Convolutions of volumes in float64 and of complex numbers know no other layout, as in PyTorch.
  if (a.ndim() == 5 && (dtype == DType::Float64 || is_complex(dtype))) return;
  if (has_channels_last(a) || has_channels_last(b))
    spec.strides = channels_last_strides(spec.sizes);
}
// Whether the kernels write images with the channels last where they lie.
bool made_last(const Tensor& result) {
  return result.ndim() == 4 && result.strides() == channels_last_strides(result.sizes());
}
StagedOut place_of(const Tensor& result, bool last) {
  return last ? StagedOut(result, result.dtype(), result.strides())
              : StagedOut(result, result.dtype());
}

kernels::ConvShape kernel_shape(const ConvAttrs& a, const Tensor& x, const Tensor& w,
                                const Tensor& y) {
  kernels::ConvShape s;
  s.dtype = x.dtype();
  s.nd = a.stride.size();
  s.n = x.size(0), s.ci = x.size(1), s.co = y.size(1), s.groups = a.groups;
  for (int d = 0; d < 3; ++d) {
    const int q = d - (3 - s.nd);
    s.in[d] = q < 0 ? 1 : x.size(q + 2);
    s.out[d] = q < 0 ? 1 : y.size(q + 2);
    s.kernel[d] = q < 0 ? 1 : w.size(q + 2);
    s.stride[d] = q < 0 ? 1 : a.stride[q];
    s.pad[d] = q < 0 ? 0 : a.padding[q];
    s.dilation[d] = q < 0 ? 1 : a.dilation[q];
  }
  return s;
}

ConvAttrs resized(const ConvAttrs& a, const Dims& sizes) {
  ConvAttrs out = a;
  out.size = Dims(sizes.data() + 2, sizes.size() - 2);
  return out;
}

Tensor forward_form(const Tensor& x, const Tensor& w, const ConvAttrs& a);
Tensor input_form(const Tensor& y, const Tensor& w, const ConvAttrs& a);
Tensor weight_form(const Tensor& y, const Tensor& x, const ConvAttrs& a);

Tensor channel_sum(const Tensor& g) {
  Dims dims{0};
  for (int d = 2; d < g.ndim(); ++d) dims.push_back(d);
  return sum(g, dims, false);
}

void forward_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<ConvAttrs>();
  const Tensor &x = c.in[0], &w = c.in[1];
  check_attrs(a, "convolution");
  require_pair(x, w, a.size.size(), "convolution");
  require(w.size(0) % a.groups == 0,
          "convolution: weight.shape[0] must be divisible by groups = ", a.groups, "; got ", w);
  require(x.size(1) == w.size(1) * a.groups,
          "convolution: input must have weight.shape[1] * groups = ", w.size(1) * a.groups,
          " channels; got ", x, " and ", w);
  require_bias(c.in[2], w.size(0), x.dtype(), "convolution");
  add_result(out, x.dtype(), with_channels(x.size(0), w.size(0), a.size), x, w);
}
void forward_cpu(const Call& c, Tensors& outs) {
  const bool last = made_last(outs[0]);
  const Tensor x = dense(c.in[0], last), w = dense(c.in[1]), b = dense(c.in[2]);
  auto s = kernel_shape(c.as<ConvAttrs>(), x, w, outs[0]);
  s.last = last;
  const StagedOut to = place_of(outs[0], last);
  kernels::conv_forward(s, data_or_null(x), data_or_null(w), data_or_null(b), to.data<char>());
}
void forward_vjp(Vjp& c) {
  const auto& a = c.as<ConvAttrs>();
  const Tensor& g = c.grad();
  if (c.needs(0)) c.set(0, input_form(g, conj(c.in(1)), resized(a, c.sizes(0))));
  if (c.needs(1)) c.set(1, weight_form(g, conj(c.in(0)), resized(a, c.sizes(1))));
  if (c.needs(2)) c.set(2, channel_sum(g));
}
constexpr OpDef forward_op = general({
    .signature =
        "_conv(Tensor input, Tensor weight, Tensor? bias, int[] size, int[] stride, int[] padding, "
        "int[] dilation, int groups) -> Tensor",
    .doc = "The convolution map with an explicit result size.",
    .shape = forward_shape,
    .cpu = forward_cpu,
    .saves = {.when = {in(1), in(0)}},
    .vjp = forward_vjp,
    .batch = batch_fold<0b1>,
    .attrs = &attr_info<ConvAttrs>,
    .offer = Offer::function,
    .is_product = true,
    .flops = "2 * numel(result) * numel(weight[1:])",
    .backward_flops = "wanted(input, weight) * flops",
});

void input_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<ConvAttrs>();
  const Tensor &y = c.in[0], &w = c.in[1];
  check_attrs(a, "convolution");
  require_pair(y, w, a.size.size(), "convolution");
  require(w.size(0) % a.groups == 0,
          "convolution: weight.shape[0] must be divisible by groups = ", a.groups, "; got ", w);
  require(y.size(1) == w.size(0),
          "convolution: a transposed convolution's input must have weight.shape[0] channels; "
          "got ",
          y, " and ", w);
  require_bias(c.in[2], w.size(1) * a.groups, y.dtype(), "convolution");
  add_result(out, y.dtype(), with_channels(y.size(0), w.size(1) * a.groups, a.size), y, w);
}
void input_cpu(const Call& c, Tensors& outs) {
  const bool last = made_last(outs[0]);
  const Tensor y = dense(c.in[0], last), w = dense(c.in[1]), b = dense(c.in[2]);
  auto s = kernel_shape(c.as<ConvAttrs>(), outs[0], w, y);
  s.last = last;
  const StagedOut to = place_of(outs[0], last);
  kernels::conv_input(s, data_or_null(y), data_or_null(w), data_or_null(b), to.data<char>());
}
void input_vjp(Vjp& c) {
  const auto& a = c.as<ConvAttrs>();
  const Tensor& g = c.grad();
  if (c.needs(0)) c.set(0, forward_form(g, conj(c.in(1)), resized(a, c.sizes(0))));
  if (c.needs(1)) c.set(1, weight_form(conj(c.in(0)), g, resized(a, c.sizes(1))));
  if (c.needs(2)) c.set(2, channel_sum(g));
}
constexpr OpDef input_op = general({
    .signature =
        "_conv_input(Tensor grad_output, Tensor weight, Tensor? bias, int[] size, int[] stride, "
        "int[] padding, int[] dilation, int groups) -> Tensor",
    .doc = "The transposed convolution map with an explicit result size.",
    .shape = input_shape,
    .cpu = input_cpu,
    .saves = {.when = {in(1), in(0)}},
    .vjp = input_vjp,
    .batch = batch_fold<0b1>,
    .attrs = &attr_info<ConvAttrs>,
    .offer = Offer::function,
    .is_product = true,
    .flops = "2 * numel(grad_output) * numel(weight[1:])",
    .backward_flops = "wanted(grad_output, weight) * flops",
});

void weight_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<ConvAttrs>();
  const Tensor &y = c.in[0], &x = c.in[1];
  check_attrs(a, "convolution");
  require_pair(y, x, a.size.size(), "convolution");
  require(y.size(0) == x.size(0), "convolution: batch sizes must be equal; got ", y, " and ", x);
  require(y.size(1) % a.groups == 0 && x.size(1) % a.groups == 0,
          "convolution: channels must be divisible by groups = ", a.groups, "; got ", y, " and ",
          x);
  out.add(y.dtype(), with_channels(y.size(1), x.size(1) / a.groups, a.size));
}
void weight_cpu(const Call& c, Tensors& outs) {
  const bool last = c.in[1].ndim() == 4 && has_channels_last(c.in[1]);
  const Tensor y = dense(c.in[0], last), x = dense(c.in[1], last);
  auto s = kernel_shape(c.as<ConvAttrs>(), x, outs[0], y);
  s.last = last;
  kernels::conv_weight(s, data_or_null(y), data_or_null(x), outs[0].data<char>());
}
void weight_vjp(Vjp& c) {
  const auto& a = c.as<ConvAttrs>();
  const Tensor& g = c.grad();
  if (c.needs(0)) c.set(0, forward_form(conj(c.in(1)), g, resized(a, c.sizes(0))));
  if (c.needs(1)) c.set(1, input_form(conj(c.in(0)), g, resized(a, c.sizes(1))));
}
constexpr OpDef weight_op = general({
    .signature =
        "_conv_weight(Tensor grad_output, Tensor input, int[] size, int[] stride, int[] padding, "
        "int[] dilation, int groups) -> Tensor",
    .doc = "The weight's gradient under the convolution map, with an explicit kernel size.",
    .shape = weight_shape,
    .cpu = weight_cpu,
    .saves = {.when = {in(1), in(0)}},
    .vjp = weight_vjp,
    .attrs = &attr_info<ConvAttrs>,
    .offer = Offer::function,
    .is_product = true,
    .flops = "2 * numel(grad_output) * numel(result[1:])",
    .backward_flops = "wanted(grad_output, input) * flops",
});

Tensor forward_form(const Tensor& x, const Tensor& w, const ConvAttrs& a) {
  return apply(forward_op, {x, w, Tensor()}, a);
}
Tensor input_form(const Tensor& y, const Tensor& w, const ConvAttrs& a) {
  return apply(input_op, {y, w, Tensor()}, a);
}
Tensor weight_form(const Tensor& y, const Tensor& x, const ConvAttrs& a) {
  return apply(weight_op, {y, x}, a);
}

// --- Public functions ----------------------------------------------------------------------------

// Sizes, stride and so on as a user gave them; a list of one entry counts for every spatial dim.
struct UserConv {
  std::string_view name;
  Dims stride, padding, dilation, output_padding;
  int64_t groups;
  bool transposed = false, same = false;
};

Dims each_dim(const Dims& v, int nd, std::string_view op, const char* what) {
  if (v.size() == 1 && nd > 1) return Dims(nd, v[0]);
  require(v.size() == nd, op, ": ", what, " must have one entry or ", nd, "; got ", v);
  return v;
}

Tensor run_batched(const Tensor& x, const Tensor& w, const Tensor& bias, const UserConv& u) {
  const int nd = w.ndim() - 2;
  ConvAttrs a;
  a.stride = each_dim(u.stride, nd, u.name, "stride");
  a.dilation = each_dim(u.dilation, nd, u.name, "dilation");
  a.padding = u.same ? Dims(nd, 0) : each_dim(u.padding, nd, u.name, "padding");
  a.groups = u.groups;
  a.size = Dims(nd, 0);
  check_attrs(a, u.name);
  require(w.size(0) > 0 || u.transposed, u.name,
          ": weight must have at least one output channel; got ", w);
  for (int d = 0; d < nd; ++d) {
    const int64_t in = x.size(d + 2);
    require(w.size(d + 2) > 0, u.name, ": kernel sizes must be at least 1; got weight ", w);
    const Checked reach = Checked(a.dilation[d]) * (w.size(d + 2) - 1);
    require(reach.at_most(int64_t{1} << 40), u.name, ": dilation ", a.dilation,
            " is too large for weight ", w);
    const int64_t extent = reach.value + 1;
    if (u.transposed) {
      const int64_t extra = u.output_padding[d];
      require(extra >= 0 && (extra < a.stride[d] || extra < a.dilation[d]), u.name,
              ": output_padding must be smaller than stride or dilation; got output_padding ",
              u.output_padding, ", stride ", a.stride, ", dilation ", a.dilation);
      const Checked total =
          Checked(in - 1) * a.stride[d] - 2 * a.padding[d] + extent + Checked(extra);
      require(total.fits, u.name, ": stride ", a.stride, " is too large for input ", x);
      a.size[d] = total.value;
      require(a.size[d] > 0, u.name, ": the result would have size ", a.size[d],
              " in spatial dimension ", d, "; got input ", x, " and weight ", w);
      continue;
    }
    if (u.same) {
      a.padding[d] = (extent - 1) / 2;
      a.size[d] = in;
      continue;
    }
    const Checked padded = Checked(in) + 2 * a.padding[d];
    require(padded.fits, u.name, ": padding ", a.padding, " is too large for input ", x);
    const int64_t total = padded.value;
    require(extent <= total, u.name, ": the kernel (size ", extent,
            " with dilation) must not be larger than the "
            "padded input (size ",
            total, ") in spatial dimension ", d, "; got input ", x, " and weight ", w);
    a.size[d] = (total - extent) / a.stride[d] + 1;
  }
  return apply(u.transposed ? input_op : forward_op, {x, w, bias}, a);
}

Tensor run_conv(const Tensor& x, const Tensor& w, const Tensor& bias, int nd, const UserConv& u) {
  require(w.ndim() == nd + 2, u.name, ": weight must have ", nd + 2, " dimensions; got ", w);
  require(x.ndim() == nd + 2 || x.ndim() == nd + 1, u.name, ": input must have ", nd + 2,
          " dimensions, or ", nd + 1, " without a batch; got ", x);
  require(u.groups >= 1, u.name, ": groups must be at least 1; got ", u.groups);
  const int64_t channels = u.transposed ? w.size(0) : w.size(1) * u.groups;
  require(x.size(-1 - nd) == channels, u.name, ": input must have ", channels, " channels (weight ",
          w, ", groups ", u.groups, "); got ", x);
  if (x.ndim() == nd + 2) return run_batched(x, w, bias, u);
  return squeeze(run_batched(unsqueeze(x, 0), w, bias, u), Dims{0});
}

struct PublicAttrs {
  Dims stride, padding, dilation;
  int64_t groups = 1;
  static constexpr auto members() {
    return std::tuple(&PublicAttrs::stride, &PublicAttrs::padding, &PublicAttrs::dilation,
                      &PublicAttrs::groups);
  }
};
template <int nd> void conv_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<PublicAttrs>();
  outs.push_back(run_conv(c.in[0], c.in[1], c.in[2], nd,
                          {c.name(), a.stride, a.padding, a.dilation, {}, a.groups}));
}

struct NamedPadding {
  Dims stride;
  Str padding;
  Dims dilation;
  int64_t groups = 1;
  static constexpr auto members() {
    return std::tuple(&NamedPadding::stride, &NamedPadding::padding, &NamedPadding::dilation,
                      &NamedPadding::groups);
  }
};
template <int nd> void named_conv_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<NamedPadding>();
  UserConv u{c.name(), a.stride, Dims(nd, 0), a.dilation, {}, a.groups};
  u.same = a.padding == "same";
  require(u.same || a.padding == "valid", c.name(),
          ": padding must be 'same', 'valid' or numbers; got '", a.padding.text, "'");
  if (u.same) {
    for (int64_t s : a.stride)
      require(s == 1, c.name(), ": padding='same' needs stride 1; got ", a.stride);
  }
  outs.push_back(run_conv(c.in[0], c.in[1], c.in[2], nd, u));
}

struct TransposedAttrs {
  Dims stride, padding, output_padding;
  int64_t groups = 1;
  Dims dilation;
  static constexpr auto members() {
    return std::tuple(&TransposedAttrs::stride, &TransposedAttrs::padding,
                      &TransposedAttrs::output_padding, &TransposedAttrs::groups,
                      &TransposedAttrs::dilation);
  }
};
template <int nd> void transposed_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<TransposedAttrs>();
  UserConv u{c.name(),
             a.stride,
             a.padding,
             a.dilation,
             each_dim(a.output_padding, nd, c.name(), "output_padding"),
             a.groups,
             true};
  outs.push_back(run_conv(c.in[0], c.in[1], c.in[2], nd, u));
}

struct GeneralAttrs {
  Dims stride, padding, dilation;
  bool transposed = false;
  Dims output_padding;
  int64_t groups = 1;
  static constexpr auto members() {
    return std::tuple(&GeneralAttrs::stride, &GeneralAttrs::padding, &GeneralAttrs::dilation,
                      &GeneralAttrs::transposed, &GeneralAttrs::output_padding,
                      &GeneralAttrs::groups);
  }
};
void general_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<GeneralAttrs>();
  const int nd = c.in[1].ndim() - 2;
  require(nd >= 1 && nd <= 3, c.name(), ": weight must have 3 to 5 dimensions; got ", c.in[1]);
  UserConv u{c.name(),
             a.stride,
             a.padding,
             a.dilation,
             each_dim(a.output_padding, nd, c.name(), "output_padding"),
             a.groups,
             a.transposed};
  outs.push_back(run_conv(c.in[0], c.in[1], c.in[2], nd, u));
}

// The texts for n spatial dimensions differ in their examples.
constexpr Text conv_text =
    R"(Slides a kernel over the input's spatial dimensions and sums the products.

out[n, o, p] = bias[o]
    + sum over c, k of input[n, c, p * stride - padding + k * dilation] * weight[o, c, k].

Args:
    input: (batch, in_channels, spatial...); the batch may be missing.
    weight: (out_channels, in_channels / groups, kernel...).
    bias: (out_channels).
    stride: step between two positions of the kernel.
    padding: zeros added on both sides; or 'valid' (none) or 'same' (the result is as large
        as the input).
    dilation: step between two elements of the kernel.
    groups: number of independent blocks that the channels are divided into.

Returns:
    (batch, out_channels, spatial...).

)";
constexpr Text transposed_text =
    R"(Transposed convolution: the map that a convolution's gradient applies.

Args:
    input: (batch, in_channels, spatial...); the batch may be missing.
    weight: (in_channels, out_channels / groups, kernel...).
    bias: (out_channels).
    stride: step between two positions of the kernel in the result.
    padding: points removed on both sides of the result.
    output_padding: points added on the right side of the result.
    groups: number of independent blocks that the channels are divided into.
    dilation: step between two elements of the kernel.

Returns:
    (batch, out_channels, spatial...).

)";
// Sets of examples: [n - 1] is of n spatial dimensions.
constexpr const char* conv_docs[] = {
    joined<conv_text, R"(>>> clew.conv1d(clew.tensor([[[1., 2., 4.]]]), clew.tensor([[[-1., 1.]]]))
tensor([[[1., 2.]]])
)">,
    joined<conv_text, R"(>>> x = clew.arange(9.).view(1, 1, 3, 3)
>>> clew.conv2d(x, clew.ones(1, 1, 2, 2))
tensor([[[[ 8., 12.],
          [20., 24.]]]])
)">,
    joined<conv_text, R"(>>> x = clew.ones(1, 1, 3, 3, 3)
>>> clew.conv3d(x, clew.ones(4, 1, 2, 2, 2)).shape
clew.Size([1, 4, 2, 2, 2])
)">,
};
constexpr const char* transposed_docs[] = {
    joined<transposed_text,
           R"(>>> clew.conv_transpose1d(clew.tensor([[[1., 2.]]]), clew.tensor([[[1., 1.]]]))
tensor([[[1., 3., 2.]]])
)">,
    joined<transposed_text,
           R"(>>> clew.conv_transpose2d(clew.ones(1, 1, 2, 2), clew.ones(1, 1, 2, 2))
tensor([[[[1., 2., 1.],
          [2., 4., 2.],
          [1., 2., 1.]]]])
)">,
    joined<transposed_text, R"(>>> x = clew.ones(1, 1, 2, 2, 2)
>>> clew.conv_transpose3d(x, clew.ones(1, 4, 2, 2, 2)).shape
clew.Size([1, 4, 3, 3, 3])
)">,
};

// Each element of the result, or of the input, meets that many weights.
constexpr const char* output_taps = "2 * numel(result) * numel(weight[1:])";
constexpr const char* input_taps = "2 * numel(input) * numel(weight[1:])";
consteval OpDef conv(const char* signature, void (*run)(const Call&, Tensors&),
                     const AttrInfo* attrs, const char* doc, const char* flops,
                     Autocast autocast = Autocast::lower) {
  return composite({.signature = signature,
                    .doc = doc,
                    .run = run,
                    .attrs = attrs,
                    .autocast = autocast,
                    .offer = Offer::function,
                    .is_product = true,
                    .flops = flops,
                    .backward_flops = "wanted(input, weight) * flops"});
}

constexpr OpDef conv_ops[] = {
    conv(
        "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
        "int[1] dilation=1, int groups=1) -> Tensor",
        conv_run<1>, &attr_info<PublicAttrs>, conv_docs[0], output_taps),
    conv("conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str "
         "padding='valid', "
         "int[1] dilation=1, int groups=1) -> Tensor",
         named_conv_run<1>, &attr_info<NamedPadding>, conv_docs[0], output_taps),
    conv(
        "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
        "int[2] dilation=1, int groups=1) -> Tensor",
        conv_run<2>, &attr_info<PublicAttrs>, conv_docs[1], output_taps),
    conv("conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str "
         "padding='valid', "
         "int[2] dilation=1, int groups=1) -> Tensor",
         named_conv_run<2>, &attr_info<NamedPadding>, conv_docs[1], output_taps),
    conv(
        "conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
        "int[3] dilation=1, int groups=1) -> Tensor",
        conv_run<3>, &attr_info<PublicAttrs>, conv_docs[2], output_taps),
    conv("conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, str "
         "padding='valid', "
         "int[3] dilation=1, int groups=1) -> Tensor",
         named_conv_run<3>, &attr_info<NamedPadding>, conv_docs[2], output_taps),
    conv("conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] "
         "padding=0, "
         "int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor",
         transposed_run<1>, &attr_info<TransposedAttrs>, transposed_docs[0], input_taps),
    conv("conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] "
         "padding=0, "
         "int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor",
         transposed_run<2>, &attr_info<TransposedAttrs>, transposed_docs[1], input_taps),
    conv("conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] "
         "padding=0, "
         "int[3] output_padding=0, int groups=1, int[3] dilation=1) -> Tensor",
         transposed_run<3>, &attr_info<TransposedAttrs>, transposed_docs[2], input_taps),
    conv("convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, "
         "int[] dilation, "
         "bool transposed, int[] output_padding, int groups) -> Tensor",
         general_run, &attr_info<GeneralAttrs>,
         R"(Convolution or transposed convolution of 1 to 3 spatial dimensions, all arguments given.

Args:
    input: (batch, in_channels, spatial...).
    weight: (out_channels, in_channels / groups, kernel...); where transposed, (in_channels,
        out_channels / groups, kernel...).
    bias: (out_channels), or None.
    stride: step between two positions of the kernel.
    padding: zeros added on both sides; where transposed, points removed.
    dilation: step between two elements of the kernel.
    transposed: whether to apply the map of a convolution's gradient.
    output_padding: points added on the right side of a transposed result.
    groups: number of independent blocks that the channels are divided into.
Returns:
    (batch, out_channels, spatial...).

>>> x, w = clew.tensor([[[1., 2., 4.]]]), clew.tensor([[[-1., 1.]]])
>>> clew.convolution(x, w, None, [1], [0], [1], False, [0], 1)
tensor([[[1., 2.]]])
)",
         "2 * numel(input if transposed else result) * numel(weight[1:])", Autocast::none),
};

constexpr const OpDef* convolution_list[] = {
    &forward_op,  &input_op,    &weight_op,   &conv_ops[0], &conv_ops[1],
    &conv_ops[2], &conv_ops[3], &conv_ops[4], &conv_ops[5], &conv_ops[6],
    &conv_ops[7], &conv_ops[8], &conv_ops[9],
};

}  // namespace

extern const OpList convolution_ops;
const OpList convolution_ops = op_list(convolution_list);

}  // namespace clew
