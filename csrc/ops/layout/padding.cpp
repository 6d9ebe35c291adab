// nn.functional.pad and what it is made of.
// May include: ops, graph, tensor, kernels.
// Invariant: the gradient of a constant pad is the opposite pad; that of the other modes is added
// up one dimension after the other.
#include <algorithm>

#include "base/checked.h"
#include "base/fits.h"
#include "graph/autocast.h"
#include "graph/modes.h"
#include "kernels/layout/borders.h"
#include "ops/batch_rules.h"
#include "ops/calls/indexing.h"
#include "ops/calls/rearrange.h"
#include "ops/calls/shape.h"
#include "tensor/layout.h"

namespace clew {

namespace {

struct PadAttrs {
  Dims pad;
  Scalar value = 0;
  static constexpr auto members() { return std::tuple(&PadAttrs::pad, &PadAttrs::value); }
};
void constant_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<PadAttrs>();
  const Tensor& x = c.in[0];
  require(a.pad.size() % 2 == 0, c.name(), ": pad must have an even length; got ", a.pad);
  require(a.pad.size() <= 2 * x.ndim(), c.name(),
          ": pad must have at most twice as many numbers as the input has dimensions; got ", a.pad,
          " for ", x);
  Dims sizes = x.sizes();
  for (int i = 0; i < a.pad.size() / 2; ++i) {
    int64_t& n = sizes[x.ndim() - 1 - i];
    int64_t before = n;
    const Checked after = Checked(n) + a.pad[2 * i] + a.pad[2 * i + 1];
    require(after.fits, c.name(), ": pad ", a.pad, " is too large for ", x);
    n = after.value;
    require(n >= 0 && a.pad[2 * i] >= -before && a.pad[2 * i + 1] >= -before, c.name(), ": pad ",
            a.pad, " gives a negative size in dimension ", x.ndim() - 1 - i, " of ", x);
  }
  bool grows = false;
  for (int64_t p : a.pad) grows = grows || p > 0;
  if (grows) require_fits("pad", a.value, x.dtype());
  OutSpec& spec = out.add(x.dtype(), sizes);
  if (x.is_contiguous() || is_batched(x)) return;
  // Padding that only crops is a copy of a part and keeps its layout.
  spec.strides = grows ? format_strides(x, sizes) : kept_strides(alias(x, sizes, x.strides(), 0));
}
void constant_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<PadAttrs>();
  const Tensor& x = c.in[0];
  const Tensor& out = outs[0];
  Dims sizes = x.sizes();
  int64_t from = 0;
  int64_t to = 0;
  bool grows = false;
  for (int i = 0; i < a.pad.size() / 2; ++i) {
    int d = x.ndim() - 1 - i;
    int64_t left = a.pad[2 * i];
    int64_t right = a.pad[2 * i + 1];
    grows = grows || left > 0 || right > 0;
    if (left < 0)
      from -= left * x.stride(d);
    else
      to += left * out.stride(d);
    sizes[d] =
        std::max<int64_t>(0, sizes[d] + std::min<int64_t>(left, 0) + std::min<int64_t>(right, 0));
  }
  if (grows) fill_(out, a.value);
  if (numel_of(sizes) == 0) return;
  copy_into(alias(out, sizes, out.strides(), to), alias(x, sizes, x.strides(), from));
}
void constant_vjp(Vjp& c) {
  Dims pad = c.as<PadAttrs>().pad;
  for (int64_t& p : pad) p = -p;
  c.set(0, constant_pad(c.grad(), pad, Scalar(0)));
}
constexpr OpDef constant_op = general({
    .signature = "_constant_pad(Tensor input, int[] pad, Scalar value=0) -> Tensor",
    .doc = "The input with a frame of one value; negative pads cut off.",
    .shape = constant_shape,
    .cpu = constant_cpu,
    .vjp = constant_vjp,
    .batch = batch_leading,
    .attrs = &attr_info<PadAttrs>,
    .takes_stored = true,
    .offer = Offer::function,
    .flops = "0",
});

struct ModeAttrs {
  Dims pad;
  Str mode;
  static constexpr auto members() { return std::tuple(&ModeAttrs::pad, &ModeAttrs::mode); }
};
kernels::Border border_of(const ModeAttrs& a, std::string_view op) {
  const std::string_view mode = a.mode;
  if (mode == "reflect") return kernels::Border::reflect;
  if (mode == "replicate") return kernels::Border::replicate;
  if (mode == "circular") return kernels::Border::circular;
  fail(ErrorKind::NotImplemented, op, ": unrecognised padding mode '", mode,
       "'; it must be 'constant', 'reflect', 'replicate' or 'circular'");
}
// The i-th padded dim, counted from the last one.
kernels::PaddedDim padded_dim(const Tensor& x, const Dims& pad, int i) {
  return {x.size(x.ndim() - 1 - i), pad[2 * i], pad[2 * i + 1]};
}
// Whether all channels of a point lie together, and do so in the result.
bool channels_together(const Tensor& x, const ModeAttrs& a, kernels::Border border) {
  // Not in circular mode, as in PyTorch.
  return border != kernels::Border::circular && x.ndim() == a.pad.size() / 2 + 2 &&
         !x.is_contiguous() && has_channels_last(x);
}
void mode_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<ModeAttrs>();
  const Tensor& x = c.in[0];
  const kernels::Border border = border_of(a, c.name());
  const int dims = a.pad.size() / 2;
  require(a.pad.size() % 2 == 0 && dims >= 1 && dims <= 3 && dims <= x.ndim(), c.name(), ": mode '",
          std::string_view(a.mode), "' pads the last 1, 2 or 3 dimensions; got pad ", a.pad,
          " for ", x);
  Dims sizes = x.sizes();
  for (int i = 0; i < dims; ++i) {
    const auto [n, left, right] = padded_dim(x, a.pad, i);
    require(n > 0, c.name(), ": a dimension that is padded must have elements; got ", x);
    const int64_t most = border == kernels::Border::reflect    ? n - 1
                         : border == kernels::Border::circular ? n
                                                               : INT64_MAX / 4;
    require(left <= most && right <= most, c.name(), ": mode '", std::string_view(a.mode),
            "' allows at most ", most, " elements of padding for a dimension of size ", n, "; got ",
            a.pad);
    // Whether the sum fits is known only of pads that do not cut off more than there is.
    const bool cuts_too_much = left < -n || right < -n;
    const int64_t left_over = cuts_too_much ? 0
                              : border == kernels::Border::circular
                                  ? std::min<int64_t>(left, 0) + n + std::min<int64_t>(right, 0)
                                  : left + n + right;
    require(left_over > 0, c.name(), ": pad ", a.pad, " leaves nothing of ", x);
    sizes[x.ndim() - 1 - i] = left + n + right;
  }
  OutSpec& spec = out.add(x.dtype(), sizes);
  if (!is_batched(x) && channels_together(x, a, border)) spec.strides = format_strides(x, sizes);
}
void mode_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<ModeAttrs>();
  const kernels::Border border = border_of(a, c.name());
  const bool last = channels_together(c.in[0], a, border);
  const Tensor x = last ? c.in[0] : contiguous(c.in[0]);
  if (outs[0].numel() == 0) return;
  kernels::PaddedDim dims[3];
  int64_t blocks = x.numel();
  for (int i = 0; i < a.pad.size() / 2; ++i) {
    dims[2 - i] = padded_dim(x, a.pad, i);
    blocks /= dims[2 - i].in;
  }
  size_t unit = itemsize(x.dtype());
  if (last) {
    blocks /= x.size(1);
    unit *= static_cast<size_t>(x.size(1));
  }
  kernels::continue_borders(outs[0]->address(), x->address(), blocks, dims, border, unit);
}
// Each dim's gradient is added up where its elements came from.
void mode_vjp(Vjp& c) {
  const auto& a = c.as<ModeAttrs>();
  const kernels::Border border = border_of(a, "pad");
  const Dims& sizes = c.sizes(0);
  Tensor g = c.grad();
  for (int i = a.pad.size() / 2 - 1; i >= 0; --i) {
    const int d = sizes.size() - 1 - i;
    if (a.pad[2 * i] == 0 && a.pad[2 * i + 1] == 0) continue;
    const kernels::PaddedDim line{sizes[d], a.pad[2 * i], a.pad[2 * i + 1]};
    const Tensor source = int64_tensor(line.out(), [&](std::span<int64_t> index) {
      for (size_t k = 0; k < index.size(); ++k)
        index[k] = line.source(border, static_cast<int64_t>(k));
    });
    Dims before = g.sizes();
    before[d] = line.in;
    g = index_put(zero_block(before, g.dtype(), g.device()), g, source, {d}, true);
  }
  c.set(0, g);
}
constexpr OpDef mode_op = general({
    .signature = "_pad_mode(Tensor input, int[] pad, str mode) -> Tensor",
    .doc = "The input continued beyond its borders: reflected, replicated or circular.",
    .shape = mode_shape,
    .cpu = mode_cpu,
    .vjp = mode_vjp,
    .batch = batch_leading,
    .attrs = &attr_info<ModeAttrs>,
    .takes_stored = true,
    .offer = Offer::function,
    .flops = "0",
});

Tensor pad_by(const Tensor& input, const Dims& pad, const Str& mode, std::string_view op) {
  const ModeAttrs attrs{pad, mode};
  const bool circular = border_of(attrs, op) == kernels::Border::circular;
  const int dims = pad.size() / 2;
  const int ndim = input.ndim();
  if (pad.size() % 2 != 0 || dims < 1 || dims > 3 || ndim < dims + 1 || ndim > dims + 2) {
    fail(ErrorKind::NotImplemented, op, ": mode '", std::string_view(mode),
         "' pads the last 1, 2 or 3 dimensions of an input that has one or two more; got pad ", pad,
         " for ", input);
  }
  for (int d = 0; d < ndim; ++d) {
    require(input.size(d) > 0 || (d == 0 && ndim == dims + 2), op,
            ": apart from the batch all dimensions must have elements; got ", input);
  }
  // Under autocast PyTorch's list has the operations that these modes are.
  const bool widens = std::string_view(mode) == "replicate" || (!circular && dims < 3);
  return apply(mode_op, {autocasts() && widens ? autocast_to(input, DType::Float32) : input},
               attrs);
}

struct PublicAttrs {
  Dims pad;
  Str mode;
  std::optional<double> value;
  static constexpr auto members() {
    return std::tuple(&PublicAttrs::pad, &PublicAttrs::mode, &PublicAttrs::value);
  }
};
void pad_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<PublicAttrs>();
  if (a.mode == "constant")
    return outs.push_back(constant_pad(c.in[0], a.pad, Scalar(a.value.value_or(0))));
  require(!a.value || *a.value == 0, c.name(), ": value is for mode 'constant'; got value ",
          a.value.value_or(0), " with mode '", std::string_view(a.mode), "'");
  outs.push_back(pad_by(c.in[0], a.pad, a.mode, c.name()));
}
constexpr OpDef pad_op = composite({
    .signature = "nn.functional.pad(Tensor input, int[] pad, str mode='constant', float? "
                 "value=None) -> Tensor",
    .doc = R"(Adds elements around the input, or cuts them off.

Args:
    input: any shape; all modes but 'constant' pad the last 1 to 3 of its 2 to 5 dimensions.
    pad: how many before and after the last dimension, then the one before ...; negative cuts.
    mode: 'constant', 'reflect', 'replicate' or 'circular'.
    value: what to fill with in mode 'constant'.
Returns: a new tensor.

>>> clew.nn.functional.pad(clew.tensor([1, 2]), (1, 2)).tolist()
[0, 1, 2, 0, 0]
)",
    .run = pad_run,
    .attrs = &attr_info<PublicAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* padding_list[] = {&constant_op, &mode_op, &pad_op};

}  // namespace

extern const OpList padding_ops;
const OpList padding_ops = op_list(padding_list);

Tensor constant_pad(const Tensor& x, const Dims& pad, const Scalar& value) {
  return apply(constant_op, {x}, PadAttrs{pad, value});
}

}  // namespace clew
