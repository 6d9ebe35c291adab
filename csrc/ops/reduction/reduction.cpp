// Sums, means, products, any/all and counting.
// May include: ops, graph, tensor, kernels.
// Invariant: shape rules validate dims and dtypes before a kernel sees them.
#include "ops/calls/reduction.h"

#include <cstring>

#include "graph/modes.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_loops.h"
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/scan.h"
#include "ops/calls/unary.h"
#include "ops/reduction/reduction_dims.h"
#include "ops/widened.h"

namespace clew {

bool has_zero(const Tensor& x) {
  if (x.is_meta()) return false;
  GradMode off(false);
  return !item(all(x)).equals(1);
}

namespace {

struct SumAttrs {
  std::optional<Dims> dim;
  bool keepdim = false;
  std::optional<DType> dtype;
  static constexpr auto members() {
    return std::tuple(&SumAttrs::dim, &SumAttrs::keepdim, &SumAttrs::dtype);
  }
};
struct ProdAllAttrs {
  std::optional<DType> dtype;
  static constexpr auto members() { return std::tuple(&ProdAllAttrs::dtype); }
};
struct ProdAttrs {
  int64_t dim = 0;
  bool keepdim = false;
  std::optional<DType> dtype;
  static constexpr auto members() {
    return std::tuple(&ProdAttrs::dim, &ProdAttrs::keepdim, &ProdAttrs::dtype);
  }
};
struct OnlyDimsAttrs {
  std::optional<Dims> dim;
  static constexpr auto members() { return std::tuple(&OnlyDimsAttrs::dim); }
};

DType sum_dtype(DType in, std::optional<DType> wanted) {
  return wanted ? *wanted : is_integral(in) ? DType::Int64 : in;
}

// ---- sum, nansum, mean
// ----------------------------------------------------------------------------

void sum_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<SumAttrs>();
  const Tensor& x = c.in[0];
  DimMask mask = mask_of(a.dim, x.ndim(), c.name());
  out.add(sum_dtype(x.dtype(), a.dtype), reduced_sizes(x.sizes(), mask, a.keepdim));
}
template <void (*Kernel)(const kernels::NdView&, const kernels::NdView&)>
void sum_cpu(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  DimMask mask = mask_of(c.as<SumAttrs>().dim, x.ndim(), c.name());
  KeptView out(outs[0], x.ndim(), mask);
  Kernel(out.nd, x.nd());
}
template <bool mean> Tensor sum_quick(const Call& c) {
  const auto& a = c.as<SumAttrs>();
  if (a.dtype && *a.dtype != DType::Float32) return {};
  const FewLines lines(c.in[0], a.dim, a.keepdim, kernels::few_terms);
  if (!lines.out) return {};
  auto* to = lines.out.data<float>();
  kernels::reduce_table().few_sums(lines.from, lines.outer, lines.count, lines.inner, to);
  if (mean) {
    const auto n = static_cast<float>(lines.count);
    for (int64_t i = 0; i < lines.outer * lines.inner; ++i) to[i] /= n;
  }
  return lines.out;
}
DimMask sum_mask(const Vjp& c) { return mask_of(c.as<SumAttrs>().dim, c.sizes(0).size(), "sum"); }
// Over the last dims, or over the first ones.
template <bool mean, void (*Kernel)(const kernels::NdView&, const kernels::NdView&)>
Passes sum_passes(const Call& c) {
  const auto& a = c.as<SumAttrs>();
  const Tensor& x = c.in[0];
  if ((a.dtype && *a.dtype != x.dtype()) || !is_inexact(x.dtype())) return {};
  return passes_over(
      x.ndim(), mask_of(a.dim, x.ndim(), c.name()), mean,
      [](const void*, const kernels::NdView& out, const kernels::NdView& in) { Kernel(out, in); });
}
void sum_vjp(Vjp& c) { c.set(0, spread(c.grad(), c.sizes(0), sum_mask(c))); }

template <RowWise::Makes makes> RowWise sum_rows(const Call& c, void*, int64_t) {
  const auto& a = c.as<SumAttrs>();
  const DimMask mask = mask_of(a.dim, c.in[0].ndim(), c.name());
  if ((mask & 1) == 0) return rows_of_first(c, nullptr, 0);
  const bool simple = mask == 1 || mask == all_dims(c.in[0].ndim());
  if (!simple || a.dtype || !is_inexact(c.in[0].dtype())) return no_rows;
  return {makes, in(0)};
}

constexpr OpDef sum_op = general({
    .signature =
        "sum(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    .doc = R"(Adds the elements, all of them or along the given axes.

out[i] = sum_j input[i, j]

Args:
    input: any dtype; bool and integers are summed as int64.
    dim: the axis or axes to add up; None or () for all.
    keepdim: whether the axes stay, with size 1.
    dtype: the dtype to convert to before adding.
Returns:
    a tensor without the summed axes (or with size 1 there).

>>> clew.sum(clew.tensor([[1., 2.], [3., 4.]]), dim=0)
tensor([4., 6.])
)",
    .shape = sum_shape,
    .cpu = sum_cpu<kernels::reduce_sum>,
    .quick = sum_quick<false>,
    .passes = sum_passes<false, kernels::reduce_sum>,
    .vjp = sum_vjp,
    .batch = batch_dims,
    .rows = sum_rows<RowWise::Makes::sum>,
    .attrs = &attr_info<SumAttrs>,
    .out_dtype = OutDtype::chosen,
    .flops = "numel(input)",
    .backward_flops = "0",
});

void nansum_vjp(Vjp& c) {
  Tensor x = c.in(0);
  c.set(0, where(eq(x, x), spread(c.grad(), c.sizes(0), sum_mask(c)), number(0)));
}
constexpr OpDef nansum_op = general({
    .signature =
        "nansum(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    .doc = R"(Adds the elements, taking NaN as zero.

out[i] = sum_j (0 if isnan(input[i, j]) else input[i, j])

Args:
    input: a real tensor.
    dim: the axis or axes to add up; None or () for all.
    keepdim: whether the axes stay, with size 1.
    dtype: the dtype to convert to before adding.
Returns:
    a tensor without the summed axes (or with size 1 there).

>>> clew.nansum(clew.tensor([1., float('nan'), 2.]))
tensor(3.)
)",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const std::optional<DType> d = c.as<SumAttrs>().dtype;
          require(!c.in[0].is_complex(), c.name(), ": complex input is not supported; got ",
                  c.in[0]);
          require(!d || !is_complex(*d), c.name(), ": dtype must be real; got ",
                  d.value_or(c.in[0].dtype()));
          sum_shape(c, out);
        },
    .cpu = sum_cpu<kernels::reduce_nansum>,
    .saves = {.always = in(0)},
    .vjp = nansum_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<SumAttrs>,
    .out_dtype = OutDtype::converted,
    .flops = "numel(input)",
});

void mean_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<SumAttrs>();
  DType d = a.dtype.value_or(c.in[0].dtype());
  require(is_inexact(d), c.name(), ": the ", a.dtype ? "dtype" : "input dtype",
          " must be floating point or complex; got ", d,
          a.dtype ? "" : " (pass dtype= to convert first)");
  sum_shape(c, out);
}
void mean_vjp(Vjp& c) {
  DimMask mask = sum_mask(c);
  auto n = static_cast<double>(reduced_count(c.sizes(0), mask));
  c.set(0, spread(c.grad() / Scalar(n), c.sizes(0), mask));
}
constexpr OpDef mean_op = general({
    .signature =
        "mean(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    .doc = R"(Averages the elements, all of them or along the given axes.

out[i] = sum_j input[i, j] / n

Args:
    input: a floating point or complex tensor.
    dim: the axis or axes to average; None or () for all.
    keepdim: whether the axes stay, with size 1.
    dtype: the dtype to convert to before averaging.
Returns:
    a tensor without the averaged axes (or with size 1 there); NaN where nothing was averaged.

>>> clew.mean(clew.tensor([[1., 2.], [3., 4.]]), dim=1)
tensor([1.5000, 3.5000])
)",
    .shape = mean_shape,
    .cpu = sum_cpu<kernels::reduce_mean>,
    .quick = sum_quick<true>,
    .passes = sum_passes<true, kernels::reduce_mean>,
    .vjp = mean_vjp,
    .batch = batch_dims,
    .rows = sum_rows<RowWise::Makes::mean>,
    .attrs = &attr_info<SumAttrs>,
    .out_dtype = OutDtype::given,
    .flops = "numel(input)",
    .backward_flops = "0",
});

Tensor run_sum(const OpDef& op, const Tensor& x, const SumAttrs& a) { return apply(op, {x}, a); }

constexpr OpDef nanmean_op = composite({
    .signature = "nanmean(Tensor input, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) "
                 "-> Tensor",
    .doc = R"(Averages the elements that are not NaN.

out = nansum(input) / count of input that is not NaN

Args:
    input: a floating point tensor.
    dim: the axis or axes to average; None or () for all.
    keepdim: whether the axes stay, with size 1.
    dtype: the dtype to convert to before averaging.
Returns:
    a tensor without the averaged axes (or with size 1 there); NaN where nothing was left.

>>> clew.nanmean(clew.tensor([1., float('nan'), 3.]))
tensor(2.)
)",
    .run =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<SumAttrs>();
          const Tensor& x = c.in[0];
          require(is_inexact(x.dtype()), c.name(),
                  ": input must be floating point or complex; got ", x);
          require(!a.dtype || is_inexact(*a.dtype), c.name(),
                  ": dtype must be floating point or complex; got ", a.dtype.value_or(x.dtype()));
          Tensor counted = run_sum(sum_op, eq(x, x), SumAttrs{a.dim, a.keepdim, {}});
          outs.push_back(run_sum(nansum_op, x, a) / counted);
        },
    .attrs = &attr_info<SumAttrs>,
    .out_dtype = OutDtype::converted,
});

// ---- prod
// -----------------------------------------------------------------------------------------

// Gradient of a product along one axis: all factors but one.
Tensor prod_grad(const Tensor& g, const Tensor& given, const Tensor& result, int64_t dim) {
  // What was multiplied has the dtype of the result, such as the real parts of complex numbers.
  const Tensor x = given.dtype() == g.dtype() ? given : to_dtype(given, g.dtype());
  if (!has_zero(x)) return g * conj(result / x);
  return g * conj(exclusive_product(x, dim, false) * exclusive_product(x, dim, true));
}
void prod_all_vjp(Vjp& c) {
  Tensor x = c.in(0);
  if (x.numel() == 0) return c.set(0, spread(c.grad(), x.sizes(), all_dims(x.ndim())));
  Tensor flat = reshape(x, Dims{x.numel()});
  c.set(0, reshape(prod_grad(c.grad(), flat, c.out(), 0), x.sizes()));
}
void prod_all_batch(const Batch& b, Tensors& outs) {
  const auto& a = b.as<ProdAllAttrs>();
  Tensor x = b.value(0);
  if (a.dtype) x = to_dtype(x, *a.dtype);
  outs.push_back(prod(reshape(x, with_lead(b, Dims{b.in[0].numel()})), b.k()));
}
constexpr OpDef prod_all_op = general({
    .signature = "prod(Tensor input, *, dtype? dtype=None) -> Tensor",
    .doc = R"(Multiplies all elements.

out = prod_j input[j]

Args:
    input: any dtype; bool and integers are multiplied as int64.
    dim: the axis to multiply along; without one, all elements.
    keepdim: whether the axis stays, with size 1.
    dtype: the dtype to convert to before multiplying.
Returns:
    a 0-d tensor, or one without the axis; 1 where there are no elements.

>>> clew.prod(clew.tensor([2., 3., 4.]))
tensor(24.)
)",
    .shape =
        [](const Call& c, OutSpecs& out) {
          out.add(sum_dtype(c.in[0].dtype(), c.as<ProdAllAttrs>().dtype), Dims{});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor x = widened(c.in[0]);
          through_floats(outs[0], [&](const Tensor& to) {
            KeptView out(to, x.ndim(), all_dims(x.ndim()));
            kernels::reduce_prod(out.nd, x.nd());
          });
        },
    .saves = {.always = in(0) | out(0)},
    .vjp = prod_all_vjp,
    .batch = prod_all_batch,
    .attrs = &attr_info<ProdAllAttrs>,
    .autocast = Autocast::float32,
    .out_dtype = OutDtype::chosen,
    .flops = "numel(input)",
});

void prod_vjp(Vjp& c) {
  Tensor x = c.in(0);
  int dim = axis_of(c.as<ProdAttrs>().dim, x.ndim(), "prod");
  if (x.ndim() == 0) return c.set(0, c.grad());
  DimMask mask = DimMask{1} << dim;
  Tensor g = with_kept_dims(c.grad(), x.sizes(), mask);
  c.set(0, prod_grad(g, x, with_kept_dims(c.out(), x.sizes(), mask), dim));
}
constexpr OpDef prod_op = general({
    .signature = "prod(Tensor input, int dim, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    .doc = R"(Multiplies the elements along one axis.

out[i] = prod_j input[i, j]

Args:
    input: any dtype; bool and integers are multiplied as int64.
    dim: the axis.
    keepdim: whether the axis stays, with size 1.
    dtype: the dtype to convert to before multiplying.
Returns:
    a tensor without the axis (or with size 1 there).

>>> clew.prod(clew.tensor([[1., 2.], [3., 4.]]), 1)
tensor([ 2., 12.])
)",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<ProdAttrs>();
          const Tensor& x = c.in[0];
          DimMask mask = mask_of(Dims{a.dim}, x.ndim(), c.name());
          out.add(sum_dtype(x.dtype(), a.dtype), reduced_sizes(x.sizes(), mask, a.keepdim));
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor x = widened(c.in[0]);
          DimMask mask = mask_of(Dims{c.as<ProdAttrs>().dim}, x.ndim(), c.name());
          through_floats(outs[0], [&](const Tensor& to) {
            KeptView out(to, x.ndim(), mask);
            kernels::reduce_prod(out.nd, x.nd());
          });
        },
    .saves = {.always = in(0) | out(0)},
    .vjp = prod_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<ProdAttrs>,
    .autocast = Autocast::float32,
    .out_dtype = OutDtype::chosen,
    .flops = "numel(input)",
});

// ---- any, all, count_nonzero
// ----------------------------------------------------------------------

// Unlike the sums, an empty list of axes reduces none.
DimMask bool_mask(const std::optional<Dims>& dim, int ndim, OpName op) {
  return dim ? mask_of(*dim, ndim, op) : all_dims(ndim);
}
void bool_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<KeepDimsAttrs>();
  const Tensor& x = c.in[0];
  out.add(x.dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool,
          reduced_sizes(x.sizes(), bool_mask(a.dim, x.ndim(), c.name()), a.keepdim));
}
template <void (*Kernel)(const kernels::NdView&, const kernels::NdView&)>
void bool_cpu(const Call& c, Tensors& outs) {
  const Tensor x = for_zeros(c.in[0]);
  KeptView out(outs[0], x.ndim(), bool_mask(c.as<KeepDimsAttrs>().dim, x.ndim(), c.name()));
  Kernel(out.nd, x.nd());
}
// The fast path for any() and all() over all elements of a small bool tensor.
template <bool every> Tensor bool_quick(const Call& c) {
  const auto& a = c.as<KeepDimsAttrs>();
  const Tensor& x = c.in[0];
  if (a.dim || a.keepdim || x.dtype() != DType::Bool || !x.is_contiguous() || x.is_meta() ||
      x.numel() >= grain_default)
    return {};
  const char* p = x->address();
  const auto n = static_cast<size_t>(x.numel());
  bool found;
  if (every)
    found = n == 0 || !std::memchr(p, 0, n);
  else  // all are zero where the first is, and each is as the one after it
    found = n > 0 && (*p || std::memcmp(p, p + 1, n - 1) != 0);
  const Tensor out = empty({}, DType::Bool);
  *out.data<bool>() = found;
  return out;
}
template <bool every>
consteval OpDef truth_of_all(const char* signature, NoRule reason, const char* doc) {
  return general({.signature = signature,
                  .doc = doc,
                  .shape = bool_shape,
                  .cpu = bool_cpu<(every ? kernels::reduce_all : kernels::reduce_any)>,
                  .quick = bool_quick<every>,
                  .no_vjp = reason,
                  .batch = batch_dims,
                  .no_dims_are_none = true,
                  .attrs = &attr_info<KeepDimsAttrs>,
                  .takes_stored = true,
                  .out_dtype = OutDtype::own_or_uint8,
                  .flops = "numel(input)"});
}
constexpr OpDef any_op =
    truth_of_all<false>("any(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor",
                        no_rule("any has a boolean result"),
                        R"(Whether any element is nonzero, of all or along the given axes.

out[i] = or_j (input[i, j] != 0)

Args:
    input: any dtype.
    dim: the axis or axes; None for all.
    keepdim: whether the axes stay, with size 1.
Returns:
    a bool tensor (uint8 for uint8 input); False where there were no elements.

>>> clew.any(clew.tensor([[0, 1], [0, 0]]), dim=1)
tensor([ True, False])
)");
constexpr OpDef all_op =
    truth_of_all<true>("all(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor",
                       no_rule("all has a boolean result"),
                       R"(Whether all elements are nonzero, of all or along the given axes.

out[i] = and_j (input[i, j] != 0)

Args:
    input: any dtype.
    dim: the axis or axes; None for all.
    keepdim: whether the axes stay, with size 1.
Returns:
    a bool tensor (uint8 for uint8 input); True where there were no elements.

>>> clew.all(clew.tensor([[1, 1], [0, 1]]), dim=1)
tensor([ True, False])
)");
constexpr OpDef count_nonzero_op = general({
    .signature = "count_nonzero(Tensor input, int[]?* dim=None) -> Tensor",
    .doc = R"(Counts the elements that are not zero, of all or along the given axes.

out[i] = sum_j (input[i, j] != 0)

Args:
    input: any dtype.
    dim: the axis or axes; None or () for all.
Returns:
    an int64 tensor without the axes.

>>> clew.count_nonzero(clew.tensor([[0, 1], [2, 3]]), dim=0)
tensor([1, 2])
)",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const Tensor& x = c.in[0];
          DimMask mask = mask_of(c.as<OnlyDimsAttrs>().dim, x.ndim(), c.name());
          out.add(DType::Int64, reduced_sizes(x.sizes(), mask, false));
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor x = for_zeros(c.in[0]);
          KeptView out(outs[0], x.ndim(), mask_of(c.as<OnlyDimsAttrs>().dim, x.ndim(), c.name()));
          kernels::reduce_count_nonzero(out.nd, x.nd());
        },
    .no_vjp = no_rule("count_nonzero is piecewise constant"),
    .batch = batch_dims,
    .attrs = &attr_info<OnlyDimsAttrs>,
    .takes_stored = true,
    .flops = "numel(input)",
});

constexpr const OpDef* reduction_list[] = {&sum_op,     &nansum_op,   &mean_op,
                                           &nanmean_op, &prod_all_op, &prod_op,
                                           &any_op,     &all_op,      &count_nonzero_op};

}  // namespace

extern const OpList reduction_ops;
const OpList reduction_ops = op_list(reduction_list);

Tensor sum(const Tensor& x) { return run_sum(sum_op, x, SumAttrs{}); }
Tensor sum(const Tensor& x, const Dims& dim, bool keepdim, std::optional<DType> dtype) {
  return run_sum(sum_op, x, SumAttrs{dim, keepdim, dtype});
}
Tensor sum_to(const Tensor& x, const Dims& sizes) {
  if (x.sizes() == sizes) return x;
  int lead = x.ndim() - sizes.size();
  if (lead < 0) fail_internal("sum_to: ", x, " cannot be summed to ", sizes);
  if (x.numel() == numel_of(sizes) && !modes.grad && x.is_contiguous() &&
      !(x->flags & flag_batched)) {
    // Only dims of size 1 go: the same elements.
    return alias(x, sizes, contiguous_strides(sizes));
  }
  Dims dims;
  bool inside = false;
  for (int d = 0; d < x.ndim(); ++d) {
    if (d < lead) {
      dims.push_back(d);
    } else if (sizes[d - lead] != x.sizes()[d]) {
      if (sizes[d - lead] != 1) fail_internal("sum_to: ", x, " cannot be summed to ", sizes);
      dims.push_back(d);
      inside = true;
    }
  }
  Tensor s = sum(x, dims, inside, x.dtype());
  return inside && lead ? reshape(s, sizes) : s;
}
Tensor mean(const Tensor& x) { return run_sum(mean_op, x, SumAttrs{}); }
Tensor mean(const Tensor& x, const Dims& dim, bool keepdim) {
  return run_sum(mean_op, x, SumAttrs{dim, keepdim, {}});
}
Tensor prod(const Tensor& x) { return apply(prod_all_op, {x}, ProdAllAttrs{}); }
Tensor prod(const Tensor& x, int64_t dim, bool keepdim) {
  return apply(prod_op, {x}, ProdAttrs{dim, keepdim, {}});
}
Tensor any(const Tensor& x) { return apply(any_op, {x}, KeepDimsAttrs{}); }
Tensor any(const Tensor& x, const Dims& dim, bool keepdim) {
  return apply(any_op, {x}, KeepDimsAttrs{dim, keepdim});
}
Tensor all(const Tensor& x) { return apply(all_op, {x}, KeepDimsAttrs{}); }
Tensor all(const Tensor& x, const Dims& dim, bool keepdim) {
  return apply(all_op, {x}, KeepDimsAttrs{dim, keepdim});
}

}  // namespace clew
