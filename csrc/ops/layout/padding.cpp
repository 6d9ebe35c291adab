// nn.functional.pad and what it is made of.
// May include: ops, graph, tensor, kernels.
// Invariant: the gradient of a constant pad is the opposite pad; the other modes are an index along
// each dimension.
#include <algorithm>

#include "base/checked.h"
#include "base/fits.h"
#include "graph/autocast.h"
#include "graph/modes.h"
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

// Where the elements of a padded dimension come from.
Tensor source_of(int64_t size, int64_t left, int64_t right, std::string_view mode, Device device) {
  if (device == Device::Meta) return empty({left + size + right}, DType::Int64, device);
  // Circular padding repeats the part that negative padding leaves.
  int64_t first = std::max<int64_t>(-left, 0);
  int64_t kept = size - first - std::max<int64_t>(-right, 0);
  const auto source = [&](int64_t i) {
    if (mode == "replicate") return std::clamp<int64_t>(i, 0, size - 1);
    if (mode == "circular") return ((i - first) % kept + kept) % kept + first;
    return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
  };
  return int64_tensor(left + size + right, [&](std::span<int64_t> index) {
    for (size_t k = 0; k < index.size(); ++k) index[k] = source(static_cast<int64_t>(k) - left);
  });
}
Tensor pad_by(const Tensor& input, const Dims& pad, std::string_view mode, std::string_view op) {
  bool known = mode == "reflect" || mode == "replicate" || mode == "circular";
  if (!known) {
    fail(ErrorKind::NotImplemented, op, ": unrecognised padding mode '", mode,
         "'; it must be 'constant', 'reflect', 'replicate' or 'circular'");
  }
  int dims = pad.size() / 2;
  int ndim = input.ndim();
  if (pad.size() % 2 != 0 || dims < 1 || dims > 3 || ndim < dims + 1 || ndim > dims + 2) {
    fail(ErrorKind::NotImplemented, op, ": mode '", mode,
         "' pads the last 1, 2 or 3 dimensions of an input that has one or two more; got pad ", pad,
         " for ", input);
  }
  for (int d = 0; d < ndim; ++d) {
    require(input.size(d) > 0 || (d == 0 && ndim == dims + 2), op,
            ": apart from the batch all dimensions must have elements; got ", input);
  }
  for (int i = 0; i < dims; ++i) {
    int64_t n = input.size(ndim - 1 - i);
    int64_t left = pad[2 * i];
    int64_t right = pad[2 * i + 1];
    int64_t most = mode == "reflect" ? n - 1 : mode == "circular" ? n : INT64_MAX / 4;
    require(left <= most && right <= most, op, ": mode '", mode, "' allows at most ", most,
            " elements of padding for a dimension of size ", n, "; got ", pad);
    int64_t left_over = mode == "circular"
                            ? std::min<int64_t>(left, 0) + n + std::min<int64_t>(right, 0)
                            : left + n + right;
    require(left > -n - 1 && right > -n - 1 && left_over > 0, op, ": pad ", pad,
            " leaves nothing of ", input);
  }
  // The result is channels-last if the input is, except in circular mode, as in PyTorch.
  const bool last = mode != "circular" && !input.is_contiguous() && has_channels_last(input);
  Tensor x = input;
  if (autocasts() && (mode == "replicate" || (mode == "reflect" && dims < 3)))
    x = autocast_to(x, DType::Float32);  // PyTorch's list has these as operations of their own
  if (last) x = movedim(x, {1}, {-1});
  for (int i = 0; i < dims; ++i) {
    int d = ndim - 1 - i - (last ? 1 : 0);
    if (pad[2 * i] == 0 && pad[2 * i + 1] == 0) continue;
    x = index_at(x, source_of(x.size(d), pad[2 * i], pad[2 * i + 1], mode, x.device()), {d});
  }
  if (x.numel() == input.numel()) x = contiguous_copy(x);  // nothing was added
  return last ? movedim(x, {-1}, {1}) : x;
}
struct ModeAttrs {
  Dims pad;
  Str mode;
  static constexpr auto members() { return std::tuple(&ModeAttrs::pad, &ModeAttrs::mode); }
};
void mode_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<ModeAttrs>();
  outs.push_back(pad_by(c.in[0], a.pad, a.mode, c.name()));
}
constexpr OpDef mode_op = composite({
    .signature = "_pad_mode(Tensor input, int[] pad, str mode) -> Tensor",
    .doc = "The input continued beyond its borders: reflected, replicated or circular.",
    .run = mode_run,
    .attrs = &attr_info<ModeAttrs>,
    .offer = Offer::function,
});

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
