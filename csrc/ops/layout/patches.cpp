// Sliding blocks of images as columns and back: unfold and fold.
// May include: ops, kernels/conv/conv.h.
// Invariant: unfold and fold are each other's transpose, hence each other's gradient.
#include "base/checked.h"
#include "kernels/conv/conv.h"
#include "ops/ops.h"

namespace clew {

namespace {

struct UnfoldAttrs {
  Dims kernel_size, dilation, padding, stride;
  static constexpr auto members() {
    return std::tuple(&UnfoldAttrs::kernel_size, &UnfoldAttrs::dilation, &UnfoldAttrs::padding,
                      &UnfoldAttrs::stride);
  }
};
struct FoldAttrs {
  Dims output_size, kernel_size, dilation, padding, stride;
  static constexpr auto members() {
    return std::tuple(&FoldAttrs::output_size, &FoldAttrs::kernel_size, &FoldAttrs::dilation,
                      &FoldAttrs::padding, &FoldAttrs::stride);
  }
  UnfoldAttrs unfold() const { return {kernel_size, dilation, padding, stride}; }
};

// Numbers of blocks along height and width of an image of the given sizes.
Dims block_counts(const Dims& image, const UnfoldAttrs& a, std::string_view op) {
  constexpr int64_t limit = int64_t{1} << 20;
  require(a.kernel_size.size() == 2 && a.dilation.size() == 2 && a.padding.size() == 2 &&
              a.stride.size() == 2 && image.size() == 2,
          op, ": sizes must have one or two entries");
  Dims out;
  for (int d = 0; d < 2; ++d) {
    require(a.kernel_size[d] > 0 && a.dilation[d] > 0 && a.stride[d] > 0 && a.padding[d] >= 0, op,
            ": kernel_size, dilation and stride must be at least 1 and padding at least 0; got "
            "kernel_size ",
            a.kernel_size, ", dilation ", a.dilation, ", padding ", a.padding, ", stride ",
            a.stride);
    require(a.kernel_size[d] < limit && a.dilation[d] < limit && a.stride[d] < limit &&
                a.padding[d] < limit,
            op, ": sizes must be below 2^20");
    const Checked padded = Checked(image[d]) + 2 * a.padding[d];
    const int64_t room = padded.value - a.dilation[d] * (a.kernel_size[d] - 1) - 1;
    require(padded.fits && room >= 0, op,
            ": the blocks must fit into the padded image; got image size ", image, ", kernel_size ",
            a.kernel_size, ", dilation ", a.dilation, ", padding ", a.padding);
    out.push_back(room / a.stride[d] + 1);
  }
  require((Checked(out[0]) * out[1]).fits, op, ": image size ", image,
          " has more blocks than an int64 can count");
  return out;
}

kernels::ConvShape patch_shape(DType dtype, const Dims& image, const Dims& counts,
                               const UnfoldAttrs& a) {
  kernels::ConvShape s;
  s.dtype = dtype;
  s.nd = 2;
  s.n = 1, s.ci = 1, s.co = 1, s.groups = 1;
  s.in[0] = s.out[0] = s.kernel[0] = s.stride[0] = s.dilation[0] = 1;
  s.pad[0] = 0;
  for (int d = 0; d < 2; ++d) {
    s.in[d + 1] = image[d], s.out[d + 1] = counts[d], s.kernel[d + 1] = a.kernel_size[d];
    s.stride[d + 1] = a.stride[d], s.pad[d + 1] = a.padding[d], s.dilation[d + 1] = a.dilation[d];
  }
  return s;
}

Tensor unfold_images(const Tensor& x, const UnfoldAttrs& a);
Tensor fold_columns(const Tensor& x, const FoldAttrs& a);

void unfold_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<UnfoldAttrs>();
  const Tensor& x = c.in[0];
  require(x.ndim() == 3 || x.ndim() == 4,
          "unfold: input must have 4 dimensions, or 3 without a batch; got ", x);
  for (int d = x.ndim() - 3; d < x.ndim(); ++d)
    require(x.size(d) > 0, "unfold: only the batch may be empty; got ", x);
  const Dims counts = block_counts({x.size(-2), x.size(-1)}, a, "unfold");
  Dims sizes;
  if (x.ndim() == 4) sizes.push_back(x.size(0));
  const Checked rows = Checked(x.size(-3)) * a.kernel_size[0] * a.kernel_size[1];
  require(rows.fits, "unfold: kernel_size ", a.kernel_size, " is too large for ", x);
  sizes.push_back(rows.value);
  sizes.push_back(counts[0] * counts[1]);
  out.add(x.dtype(), std::move(sizes));
}
void unfold_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<UnfoldAttrs>();
  if (outs[0].numel() == 0) return;
  const Tensor x = dense(c.in[0]);
  const Dims image{x.size(-2), x.size(-1)};
  const Dims counts = block_counts(image, a, "unfold");
  const auto s = patch_shape(x.dtype(), image, counts, a);
  const int64_t images = x.ndim() == 4 ? x.size(0) : 1;
  const auto item = static_cast<int64_t>(itemsize(x.dtype()));
  const int64_t in = x.numel() / images * item, out = outs[0].numel() / images * item;
  for (int64_t n = 0; n < images; ++n) {
    kernels::image_to_columns(s, x.size(-3), x.data<char>() + n * in,
                              outs[0].data<char>() + n * out, counts[0] * counts[1], 0, counts[0]);
  }
}
constexpr OpDef unfold_op = general({
    .signature = "nn.functional.unfold(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] "
                 "padding=0, "
                 "int[2] stride=1) -> Tensor",
    .doc = R"(Takes the sliding blocks of a batch of images as columns.

Args:
    input: (batch, channels, height, width); the batch may be missing.
    kernel_size: size of a block.
    dilation: step between two elements of a block.
    padding: zeros added on both sides.
    stride: step between two blocks.

Returns:
    (batch, channels * block elements, blocks).

>>> clew.nn.functional.unfold(clew.tensor([[[[1., 2., 3.]]]]), (1, 2))
tensor([[[1., 2.],
         [2., 3.]]])
)",
    .shape = unfold_shape,
    .cpu = unfold_cpu,
    .vjp =
        [](Vjp& c) {
          const auto& a = c.as<UnfoldAttrs>();
          if (!c.needs(0)) return;
          const Dims& sizes = c.sizes(0);
          const Dims image{sizes[sizes.size() - 2], sizes.back()};
          c.set(0, fold_columns(c.grad(), {image, a.kernel_size, a.dilation, a.padding, a.stride}));
        },
    .attrs = &attr_info<UnfoldAttrs>,
    .offer = Offer::function,
    .flops = "0",
});

void fold_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<FoldAttrs>();
  const Tensor& x = c.in[0];
  require(x.ndim() == 2 || x.ndim() == 3,
          "fold: input must have 3 dimensions, or 2 without a batch; got ", x);
  require(a.output_size.size() == 2 && a.output_size[0] > 0 && a.output_size[1] > 0,
          "fold: output_size must be two positive sizes; got ", a.output_size);
  const Dims counts = block_counts(a.output_size, a.unfold(), "fold");
  const int64_t block = a.kernel_size[0] * a.kernel_size[1];
  require(x.size(-2) > 0 && x.size(-2) % block == 0,
          "fold: input.shape[-2] must be a multiple of the block's ", block, " elements; got ", x);
  require(x.size(-1) == counts[0] * counts[1],
          "fold: input.shape[-1] must be the number of blocks, ", counts[0] * counts[1], "; got ",
          x);
  Dims sizes;
  if (x.ndim() == 3) sizes.push_back(x.size(0));
  sizes.push_back(x.size(-2) / block);
  sizes.push_back(a.output_size[0]);
  sizes.push_back(a.output_size[1]);
  out.add(x.dtype(), std::move(sizes));
}
void fold_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<FoldAttrs>();
  if (outs[0].numel() == 0) return;
  const Tensor x = dense(c.in[0]);
  const Dims counts = block_counts(a.output_size, a.unfold(), "fold");
  const auto s = patch_shape(x.dtype(), a.output_size, counts, a.unfold());
  const int64_t images = x.ndim() == 3 ? x.size(0) : 1;
  const auto item = static_cast<int64_t>(itemsize(x.dtype()));
  const int64_t in = x.numel() / images * item, out = outs[0].numel() / images * item;
  kernels::clear(outs[0].data<char>(), outs[0].numel() * item);
  for (int64_t n = 0; n < images; ++n) {
    kernels::columns_to_image(s, outs[0].size(-3), x.data<char>() + n * in, counts[0] * counts[1],
                              outs[0].data<char>() + n * out, 0, counts[0]);
  }
}
constexpr OpDef fold_op = general({
    .signature = "nn.functional.fold(Tensor input, int[2] output_size, int[2] kernel_size, int[2] "
                 "dilation=1, "
                 "int[2] padding=0, int[2] stride=1) -> Tensor",
    .doc = R"(Sums columns of sliding blocks into a batch of images; the transpose of unfold.

Args:
    input: (batch, channels * block elements, blocks); the batch may be missing.
    output_size: height and width of the images.
    kernel_size: size of a block.
    dilation: step between two elements of a block.
    padding: points around the image that blocks may cover and that are dropped.
    stride: step between two blocks.

Returns:
    (batch, channels, height, width).

>>> clew.nn.functional.fold(clew.ones(1, 2, 2), (1, 3), (1, 2))
tensor([[[[1., 2., 1.]]]])
)",
    .shape = fold_shape,
    .cpu = fold_cpu,
    .vjp = [](Vjp& c) { c.set(0, unfold_images(c.grad(), c.as<FoldAttrs>().unfold())); },
    .attrs = &attr_info<FoldAttrs>,
    .offer = Offer::function,
    .flops = "numel(input)",
});

Tensor unfold_images(const Tensor& x, const UnfoldAttrs& a) { return apply(unfold_op, {x}, a); }
Tensor fold_columns(const Tensor& x, const FoldAttrs& a) { return apply(fold_op, {x}, a); }

constexpr const OpDef* patches_list[] = {&unfold_op, &fold_op};

}  // namespace

extern const OpList patches_ops;
const OpList patches_ops = op_list(patches_list);

}  // namespace clew
