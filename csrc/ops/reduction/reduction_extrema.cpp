// max, min, amax, amin, aminmax, argmax, argmin.
// May include: ops, graph, tensor, kernels.
// Invariant: NaN wins; the first of equal elements gives the index; amax, amin and the full forms
// share the gradient evenly among equal elements, the forms with an index give it to the indexed
// one.
#include "kernels/reduce/reduce.h"
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/indexing.h"
#include "ops/calls/reduction.h"
#include "ops/calls/unary.h"
#include "ops/reduction/reduction_dims.h"
#include "ops/widened.h"

namespace clew {

Tensor picked_grad(const Tensor& g, const Tensor& indices, const Dims& sizes, int64_t dim) {
  if (sizes.empty()) return reshape(g, sizes);
  DimMask mask = DimMask{1} << axis_of(dim, sizes.size(), "dim");
  return scatter_add(zero_of(g, sizes), dim, with_kept_dims(indices, sizes, mask),
                     with_kept_dims(g, sizes, mask));
}

Tensor shared(const Tensor& g, const Tensor& hit, const Dims& dims) {
  if (dims.empty()) return g;
  // Counts in float32 at least: float16 cannot hold large counts exactly.
  const DType d = g.dtype();
  Tensor count = to_dtype(sum(hit, dims, true), is_half(d) ? DType::Float32 : real_of(d));
  return to_dtype(g / count, d);
}

Tensor shared_grad(const Tensor& g, const Tensor& x, const Tensor& result, DimMask mask) {
  Tensor top = with_kept_dims(result, x.sizes(), mask);
  Tensor hit = logical_or(eq(x, top), logical_and(ne(x, x), ne(top, top)));
  Dims dims;
  for (int d = 0; d < x.ndim(); ++d) {
    if (mask >> d & 1) dims.push_back(d);
  }
  return where(hit, shared(with_kept_dims(g, x.sizes(), mask), hit, dims), number(0));
}

void one_of_all_vjp(Vjp& c) {
  const Tensor x = c.in(0);
  c.set(0, shared_grad(c.grad(), x, c.out(), all_dims(x.ndim())));
}

namespace {

struct OptDimAttrs {
  std::optional<int64_t> dim;
  bool keepdim = false;
  static constexpr auto members() { return std::tuple(&OptDimAttrs::dim, &OptDimAttrs::keepdim); }
};

void require_real(const Call& c) {
  if (c.in[0].is_complex()) {
    fail(ErrorKind::NotImplemented, c.name(), ": complex numbers have no order; got ", c.in[0]);
  }
}
void require_elements(const Call& c) {
  require(c.in[0].numel() > 0, c.name(),
          ": expected a reduction dim for an input without elements (give 'dim'); got ", c.in[0]);
}

// ---- amax, amin
// -----------------------------------------------------------------------------------

void amax_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<KeepDimsAttrs>();
  const Tensor& x = c.in[0];
  DimMask mask = mask_of(a.dim, x.ndim(), c.name());
  require_real(c);
  if (!a.dim || a.dim->empty())
    require_elements(c);
  else
    require_nonempty(x.sizes(), mask, c.name());
  out.add(x.dtype(), reduced_sizes(x.sizes(), mask, a.keepdim));
}
template <void (*Kernel)(const kernels::NdView&, const kernels::NdView&)>
void amax_cpu(const Call& c, Tensors& outs) {
  const Tensor x = widened(c.in[0]);
  const DimMask mask = mask_of(c.as<KeepDimsAttrs>().dim, x.ndim(), c.name());
  through_floats(outs[0], [&](const Tensor& y) {
    KeptView out(y, x.ndim(), mask);
    Kernel(out.nd, x.nd());
  });
}
template <void (*Kernel)(const kernels::NdView&, const kernels::NdView&)>
Passes amax_passes(const Call& c) {
  const Tensor& x = c.in[0];
  if (x.dtype() != DType::Float32 && x.dtype() != DType::Float64) return {};
  return passes_over(
      x.ndim(), mask_of(c.as<KeepDimsAttrs>().dim, x.ndim(), c.name()), {},
      [](const void*, const kernels::NdView& out, const kernels::NdView& in) { Kernel(out, in); });
}
template <bool largest> Tensor amax_quick(const Call& c) {
  const auto& a = c.as<KeepDimsAttrs>();
  const FewLines lines(c.in[0], a.dim, a.keepdim);
  if (!lines.out) return {};
  lines.each([&](const float* x) {
    float found = *x;
    for (int64_t k = 1; k < lines.count; ++k) {
      const float v = x[k * lines.inner];
      found = (largest ? v > found : v < found) || v != v ? v : found;
    }
    return found;
  });
  return lines.out;
}
void amax_vjp(Vjp& c) {
  Tensor x = c.in(0);
  c.set(0, shared_grad(c.grad(), x, c.out(), mask_of(c.as<KeepDimsAttrs>().dim, x.ndim(), "amax")));
}
template <bool Largest> consteval OpDef extremum(const char* signature, const char* doc) {
  return general({
      .signature = signature,
      .doc = doc,
      .shape = amax_shape,
      .cpu = amax_cpu<(Largest ? kernels::reduce_amax : kernels::reduce_amin)>,
      .quick = amax_quick<Largest>,
      .passes = amax_passes<(Largest ? kernels::reduce_amax : kernels::reduce_amin)>,
      .saves = {.always = in(0) | out(0)},
      .vjp = amax_vjp,
      .batch = batch_dims,
      .attrs = &attr_info<KeepDimsAttrs>,
      .flops = "numel(input)",
  });
}
constexpr OpDef amax_op =
    extremum<true>("amax(Tensor input, int[]? dim=(), bool keepdim=False) -> Tensor",
                   R"(The largest element, of all or along the given axes.

out[i] = max_j input[i, j]

Args:
    input: a real tensor.
    dim: the axis or axes; None or () for all.
    keepdim: whether the axes stay, with size 1.
Returns:
    a tensor of the input's dtype; NaN where an element is NaN.

>>> clew.amax(clew.tensor([[1., 4.], [3., 2.]]), dim=1)
tensor([4., 3.])
)");
constexpr OpDef amin_op =
    extremum<false>("amin(Tensor input, int[]? dim=(), bool keepdim=False) -> Tensor",
                    R"(The smallest element, of all or along the given axes.

out[i] = min_j input[i, j]

Args:
    input: a real tensor.
    dim: the axis or axes; None or () for all.
    keepdim: whether the axes stay, with size 1.
Returns:
    a tensor of the input's dtype; NaN where an element is NaN.

>>> clew.amin(clew.tensor([[1., 4.], [3., 2.]]), dim=1)
tensor([1., 2.])
)");

constexpr OpDef aminmax_op = composite({
    .signature =
        "aminmax(Tensor input, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    .doc = R"(The smallest and the largest element together, of all or along one axis.

min[i] = min_j input[i, j], max[i] = max_j input[i, j]

Args:
    input: a real tensor.
    dim: the axis; None for all.
    keepdim: whether the axis stays, with size 1.
Returns:
    min and max, of the input's dtype.

>>> clew.aminmax(clew.tensor([3., 1., 2.])).max
tensor(3.)
)",
    .run =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<OptDimAttrs>();
          const Tensor& x = c.in[0];
          require_real(c);
          if (!a.dim)
            require_elements(c);
          else
            require_nonempty(x.sizes(), mask_of(a.dim, x.ndim(), c.name()), c.name());
          Dims dims;
          if (a.dim) dims.push_back(*a.dim);
          outs.push_back(amin(x, dims, a.keepdim));
          outs.push_back(amax(x, dims, a.keepdim));
        },
    .attrs = &attr_info<OptDimAttrs>,
    .out_memory = OutMemory::apart,
});

// ---- max, min
// -------------------------------------------------------------------------------------

template <void (*Kernel)(const kernels::NdView&, const kernels::NdView&)>
void max_all_cpu(const Call& c, Tensors& outs) {
  const Tensor x = widened(c.in[0]);
  through_floats(outs[0], [&](const Tensor& y) {
    KeptView out(y, x.ndim(), all_dims(x.ndim()));
    Kernel(out.nd, x.nd());
  });
}
void max_all_shape(const Call& c, OutSpecs& out) {
  require_real(c);
  require_elements(c);
  out.add(c.in[0].dtype(), Dims{});
}
template <Tensor (*Reduce)(const Tensor&, const Dims&, bool)>
void max_all_batch(const Batch& b, Tensors& outs) {
  Tensor flat = reshape(b.value(0), with_lead(b, Dims{b.in[0].numel()}));
  outs.push_back(Reduce(flat, Dims{b.k()}, false));
}
template <bool Largest> consteval OpDef max_of_all(const char* signature, const char* doc) {
  return general({.signature = signature,
                  .doc = doc,
                  .shape = max_all_shape,
                  .cpu = max_all_cpu<(Largest ? kernels::reduce_amax : kernels::reduce_amin)>,
                  .saves = {.always = in(0) | out(0)},
                  .vjp = one_of_all_vjp,
                  .batch = max_all_batch<(Largest ? amax : amin)>,
                  .out_dtype = OutDtype::converted,
                  .out_memory = OutMemory::apart,
                  .flops = "numel(input)"});
}
constexpr OpDef max_all_op =
    max_of_all<true>("max(Tensor input) -> Tensor",
                     R"(The largest element of all or along an axis, or the larger of two.

out = max_j input[j]

Args:
    input: a real tensor with at least one element.
    dim: the axis to look along; without one, all elements.
    keepdim: whether the axis stays, with size 1.
    other: a tensor to compare with element by element, instead of dim.
Returns:
    a 0-d tensor; with dim the values and their indices; with other a tensor of the broadcast
    shape. NaN where an element is NaN.

>>> clew.max(clew.tensor([[1., 4.], [3., 2.]]))
tensor(4.)
)");
constexpr OpDef min_all_op =
    max_of_all<false>("min(Tensor input) -> Tensor",
                      R"(The smallest element of all or along an axis, or the smaller of two.

out = min_j input[j]

Args:
    input: a real tensor with at least one element.
    dim: the axis to look along; without one, all elements.
    keepdim: whether the axis stays, with size 1.
    other: a tensor to compare with element by element, instead of dim.
Returns:
    a 0-d tensor; with dim the values and their indices; with other a tensor of the broadcast
    shape. NaN where an element is NaN.

>>> clew.min(clew.tensor([[1., 4.], [3., 2.]]))
tensor(1.)
)");

void max_dim_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<KeepDimAttrs>();
  const Tensor& x = c.in[0];
  DimMask mask = mask_of(Dims{a.dim}, x.ndim(), c.name());
  require_real(c);
  require_nonempty(x.sizes(), mask, c.name());
  Dims sizes = reduced_sizes(x.sizes(), mask, a.keepdim);
  out.add(x.dtype(), sizes);
  out.add(DType::Int64, sizes);
}
// A few dense floats, by plain loops; false where they are another case. The first NaN is the
// largest and the smallest.
template <bool Largest> bool max_of_few(const Tensor& x, int64_t at, const Tensors& outs) {
  constexpr int64_t most = 512;
  if (x.dtype() != DType::Float32 || !x.is_contiguous() || x.numel() > most || x.ndim() == 0 ||
      !outs[0].is_contiguous() || !outs[1].is_contiguous())
    return false;
  const auto dim = static_cast<int>(at < 0 ? at + x.ndim() : at);
  const int64_t n = x.size(dim);
  int64_t inner = 1;
  for (int d = dim + 1; d < x.ndim(); ++d) inner *= x.size(d);
  const auto* from = x.data<const float>();
  auto* value = outs[0].data<float>();
  auto* index = outs[1].data<int64_t>();
  for (int64_t o = 0, lines = outs[0].numel(); o < lines; o += inner, from += n * inner) {
    for (int64_t i = 0; i < inner; ++i) {
      float found = from[i];
      int64_t place = 0;
      for (int64_t k = 1; k < n; ++k) {
        const float v = from[k * inner + i];
        const bool better = (Largest ? v > found : v < found) || (v != v && found == found);
        place = better ? k : place;
        found = better ? v : found;
      }
      *value++ = found;
      *index++ = place;
    }
  }
  return true;
}
template <bool Largest> void max_dim_cpu(const Call& c, Tensors& outs) {
  if (max_of_few<Largest>(c.in[0], c.as<KeepDimAttrs>().dim, outs)) return;
  const Tensor x = widened(c.in[0]);
  DimMask mask = mask_of(Dims{c.as<KeepDimAttrs>().dim}, x.ndim(), c.name());
  through_floats(outs[0], [&](const Tensor& y) {
    KeptView values(y, x.ndim(), mask), indices(outs[1], x.ndim(), mask);
    kernels::reduce_arg(&values.nd, indices.nd, x.nd(), Largest);
  });
}
template <bool Largest> consteval OpDef max_along(const char* signature, const char* doc) {
  return general({.signature = signature,
                  .doc = doc,
                  .shape = max_dim_shape,
                  .cpu = max_dim_cpu<Largest>,
                  .saves = {.always = out(1)},
                  .vjp = picked_vjp<KeepDimAttrs>,
                  .batch = batch_dims,
                  .attrs = &attr_info<KeepDimAttrs>,
                  .out_dtype = OutDtype::converted,
                  .out_memory = OutMemory::apart,
                  .flops = "numel(input)"});
}
constexpr OpDef max_dim_op = max_along<true>(
    "max(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    R"(The largest elements along an axis, and where they stand.

values[i] = max_j input[i, j]

Args:
    input: a real tensor.
    dim: the axis.
    keepdim: whether the axis stays, with size 1.
Returns:
    values and int64 indices; the first index among equal elements.

>>> clew.max(clew.tensor([[1., 4.], [3., 2.]]), 1).indices
tensor([1, 0])
)");
constexpr OpDef min_dim_op = max_along<false>(
    "min(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    R"(The smallest elements along an axis, and where they stand.

values[i] = min_j input[i, j]

Args:
    input: a real tensor.
    dim: the axis.
    keepdim: whether the axis stays, with size 1.
Returns:
    values and int64 indices; the first index among equal elements.

>>> clew.min(clew.tensor([[1., 4.], [3., 2.]]), 1).indices
tensor([0, 1])
)");

constexpr OpDef max_other_op = composite({
    .signature = "max(Tensor input, Tensor other) -> Tensor",
    .doc = R"(The larger of two elements, place by place; the same as `maximum`.

out = max(input, other)

Args:
    input: a real tensor.
    other: a real tensor of a shape that broadcasts with it.
Returns:
    a tensor of the broadcast shape.

>>> clew.max(clew.tensor([1., 4.]), clew.tensor([3., 2.]))
tensor([3., 4.])
)",
    .run = [](const Call& c, Tensors& outs) { outs.push_back(maximum(c.in[0], c.in[1])); },
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::aligned,  // AMSGrad writes max(a, b, out=a)
});
constexpr OpDef min_other_op = composite({
    .signature = "min(Tensor input, Tensor other) -> Tensor",
    .doc = R"(The smaller of two elements, place by place; the same as `minimum`.

out = min(input, other)

Args:
    input: a real tensor.
    other: a real tensor of a shape that broadcasts with it.
Returns:
    a tensor of the broadcast shape.

>>> clew.min(clew.tensor([1., 4.]), clew.tensor([3., 2.]))
tensor([1., 2.])
)",
    .run = [](const Call& c, Tensors& outs) { outs.push_back(minimum(c.in[0], c.in[1])); },
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::aligned,
});

// ---- argmax, argmin
// -------------------------------------------------------------------------------

void arg_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<OptDimAttrs>();
  const Tensor& x = c.in[0];
  DimMask mask = mask_of(a.dim, x.ndim(), c.name());
  require(!x.is_complex() && x.dtype() != DType::Bool, c.name(),
          ": input must be a real number, not bool; got ", x);
  if (a.dim)
    require_nonempty(x.sizes(), mask, c.name());
  else if (x.numel() == 0) {
    fail_index(c.name(),
               ": expected a reduction dim for an input without elements (give 'dim'); got ", x);
  }
  out.add(DType::Int64, reduced_sizes(x.sizes(), mask, a.keepdim));
}
template <bool Largest> void arg_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<OptDimAttrs>();
  Tensor x = widened(c.in[0]);
  if (a.dim) {
    DimMask mask = mask_of(a.dim, x.ndim(), c.name());
    KeptView out(outs[0], x.ndim(), mask);
    kernels::reduce_arg(nullptr, out.nd, x.nd(), Largest);
    return;
  }
  if (!x.is_contiguous()) {
    x = empty(x.sizes(), x.dtype());
    copy_into(x, c.in[0]);
  }
  int64_t n = x.numel(), one = 1;
  kernels::reduce_arg(nullptr, {outs[0]->address(), &one, &one, 1, DType::Int64},
                      {x->address(), &n, &one, 1, x.dtype()}, Largest);
}
template <bool Largest>
consteval OpDef place_of_extremum(const char* signature, NoRule reason, const char* doc) {
  return general({
      .signature = signature,
      .doc = doc,
      .shape = arg_shape,
      .cpu = arg_cpu<Largest>,
      .no_vjp = reason,
      .batch = batch_dims,
      .attrs = &attr_info<OptDimAttrs>,
      .flops = "numel(input)",
  });
}
constexpr OpDef argmax_op = place_of_extremum<true>(
    "argmax(Tensor input, int? dim=None, bool keepdim=False) -> Tensor",
    no_rule("argmax has an integer result"),
    R"(Where the largest element stands, in the flattened input or along an axis.

out[i] = the first j at which input[i, j] is largest

Args:
    input: a real tensor.
    dim: the axis; None for the flattened input.
    keepdim: whether the axis stays, with size 1.
Returns:
    an int64 tensor.

>>> clew.argmax(clew.tensor([1., 4., 3.]))
tensor(1)
)");
constexpr OpDef argmin_op = place_of_extremum<false>(
    "argmin(Tensor input, int? dim=None, bool keepdim=False) -> Tensor",
    no_rule("argmin has an integer result"),
    R"(Where the smallest element stands, in the flattened input or along an axis.

out[i] = the first j at which input[i, j] is smallest

Args:
    input: a real tensor.
    dim: the axis; None for the flattened input.
    keepdim: whether the axis stays, with size 1.
Returns:
    an int64 tensor.

>>> clew.argmin(clew.tensor([4., 1., 3.]))
tensor(1)
)");

constexpr const OpDef* reduction_extrema_list[] = {
    &amax_op,    &amin_op,    &aminmax_op,   &max_all_op, &max_dim_op, &max_other_op,
    &min_all_op, &min_dim_op, &min_other_op, &argmax_op,  &argmin_op};

}  // namespace

extern const OpList reduction_extrema_ops;
const OpList reduction_extrema_ops = op_list(reduction_extrema_list);

Tensor amax(const Tensor& x, const Dims& dim, bool keepdim) {
  return apply(amax_op, {x}, KeepDimsAttrs{dim, keepdim});
}
Tensor amin(const Tensor& x, const Dims& dim, bool keepdim) {
  return apply(amin_op, {x}, KeepDimsAttrs{dim, keepdim});
}

}  // namespace clew
