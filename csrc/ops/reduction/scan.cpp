// cumsum, cumprod, cummax, cummin, logcumsumexp.
// May include: ops, graph, tensor, kernels.
// Invariant: gradients are right where elements are zero or equal, to any order.
#include "ops/calls/scan.h"

#include <limits>

#include "kernels/reduce/scan.h"
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/indexing.h"
#include "ops/calls/joining.h"
#include "ops/calls/unary.h"
#include "ops/reduction/reduction_dims.h"
#include "ops/widened.h"

namespace clew {
namespace {

struct ScanAttrs {
  int64_t dim = 0;
  std::optional<DType> dtype;
  static constexpr auto members() { return std::tuple(&ScanAttrs::dim, &ScanAttrs::dtype); }
};
void scan_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<ScanAttrs>();
  const Tensor& x = c.in[0];
  axis_of(a.dim, x.ndim(), c.name());
  out.add(a.dtype ? *a.dtype : is_integral(x.dtype()) ? DType::Int64 : x.dtype(), x.sizes());
}
void require_floating(const Call& c) {
  if (!c.in[0].is_floating()) {
    fail(ErrorKind::NotImplemented, c.name(), ": input must be floating point; got ", c.in[0]);
  }
}

constexpr OpDef cumsum_op = general({
    .signature = "cumsum(Tensor input, int dim, *, dtype? dtype=None) -> Tensor",
    .doc = R"(Running sums along an axis.

out[i] = input[0] + ... + input[i]

Args:
    input: any dtype; bool and integers are summed as int64.
    dim: the axis.
    dtype: the dtype to convert to first.
Returns:
    a tensor of the input's shape.

>>> clew.cumsum(clew.tensor([1., 2., 3.]), 0)
tensor([1., 3., 6.])
)",
    .shape = scan_shape,
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor x = widened(converted(c.in[0], outs[0].dtype()));
          const int dim = axis_of(c.as<ScanAttrs>().dim, x.ndim(), c.name());
          through_floats(outs[0],
                         [&](const Tensor& y) { kernels::cumsum(y.nd(), x.nd(), dim, false); });
        },
    .vjp = [](Vjp& c) { c.set(0, reverse_cumsum(c.grad(), c.as<ScanAttrs>().dim)); },
    .batch = batch_dims,
    .attrs = &attr_info<ScanAttrs>,
    .inplace = true,
    .out_dtype = OutDtype::running,
    .out_memory = OutMemory::aligned,
    .flops = "numel(input)",
});
constexpr OpDef reverse_cumsum_op = general({
    .signature = "_reverse_cumsum(Tensor input, int dim) -> Tensor",
    .doc = "Running sums from the end: out[i] = input[i] + ... + input[n - 1].",
    .shape =
        [](const Call& c, OutSpecs& out) {
          axis_of(c.as<DimAttrs>().dim, c.in[0].ndim(), c.name());
          out.add(c.in[0].dtype(), c.in[0].sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor x = widened(c.in[0]);
          const int dim = axis_of(c.as<DimAttrs>().dim, x.ndim(), c.name());
          through_floats(outs[0],
                         [&](const Tensor& y) { kernels::cumsum(y.nd(), x.nd(), dim, true); });
        },
    .vjp = [](Vjp& c) { c.set(0, cumsum(c.grad(), c.as<DimAttrs>().dim)); },
    .batch = batch_dims,
    .attrs = &attr_info<DimAttrs>,
    .offer = Offer::function,
    .flops = "numel(input)",
});

// Constant blocks of x's shape but `size` along dim; outside the graph.
Tensor constant(const Tensor& x, int dim, int64_t size, double value) {
  Dims sizes = x.sizes();
  sizes[dim] = size;
  Tensor t = empty(sizes, x.dtype(), x.device());
  if (!t.is_meta()) fill_(t, Scalar(value));
  return t;
}
Tensor joined(const Tensor& a, const Tensor& b, int dim) {
  Tensor both[] = {a, b};
  return cat(both, dim);
}

// S[k] = g[k] + x[k+1] S[k+1], by doubling the span that each S covers: the sums a product's
// gradient needs, without dividing by x.
Tensor suffix_recurrence(const Tensor& g, const Tensor& x, int dim) {
  int64_t n = x.sizes()[dim];
  Tensor b = g, a = joined(narrow(x, dim, 1, n - 1), constant(x, dim, 1, 0), dim);
  for (int64_t s = 1; s < n; s *= 2) {
    Tensor head = narrow(a, dim, 0, n - s);
    b = joined(narrow(b, dim, 0, n - s) + head * narrow(b, dim, s, n - s), narrow(b, dim, n - s, s),
               dim);
    a = joined(head * narrow(a, dim, s, n - s), constant(x, dim, s, 0), dim);
  }
  return b;
}
void cumprod_vjp(Vjp& c) {
  Tensor x = c.in(0), g = c.grad();
  int dim = axis_of(c.as<ScanAttrs>().dim, x.ndim(), "cumprod");
  if (x.numel() == 0 || x.ndim() == 0) return c.set(0, g);
  if (x.dtype() != g.dtype()) x = to_dtype(x, g.dtype());
  if (!has_zero(x)) return c.set(0, reverse_cumsum(g * conj(c.out()), dim) / conj(x));
  Tensor xc = conj(x);
  c.set(0, exclusive_product(xc, dim, false) * suffix_recurrence(g, xc, dim));
}
constexpr OpDef cumprod_op = general({
    .signature = "cumprod(Tensor input, int dim, *, dtype? dtype=None) -> Tensor",
    .doc = R"(Running products along an axis.

out[i] = input[0] * ... * input[i]

Args:
    input: any dtype; bool and integers are multiplied as int64.
    dim: the axis.
    dtype: the dtype to convert to first.
Returns:
    a tensor of the input's shape.

>>> clew.cumprod(clew.tensor([1., 2., 3.]), 0)
tensor([1., 2., 6.])
)",
    .shape = scan_shape,
    .cpu =
        [](const Call& c, Tensors& outs) {
          Tensor x = converted(c.in[0], outs[0].dtype());
          kernels::cumprod(outs[0].nd(), x.nd(),
                           axis_of(c.as<ScanAttrs>().dim, x.ndim(), c.name()));
        },
    .saves = {.always = in(0) | out(0)},
    .vjp = cumprod_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<ScanAttrs>,
    .inplace = true,
    .out_dtype = OutDtype::running,
    .out_memory = OutMemory::aligned,
    .flops = "numel(input)",
});

// ---- cummax, cummin
// -------------------------------------------------------------------------------

void extremum_shape(const Call& c, OutSpecs& out) {
  const Tensor& x = c.in[0];
  axis_of(c.as<DimAttrs>().dim, x.ndim(), c.name());
  if (x.is_complex()) {
    fail(ErrorKind::NotImplemented, c.name(), ": complex numbers have no order; got ", x);
  }
  out.add(x.dtype(), x.sizes());
  out.add(DType::Int64, x.sizes());
}
template <bool Largest> void extremum_cpu(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  int dim = axis_of(c.as<DimAttrs>().dim, x.ndim(), c.name());
  kernels::cumextremum(outs[0].nd(), outs[1].nd(), x.nd(), dim, Largest);
}
void extremum_vjp(Vjp& c) {
  if (c.grad().defined())
    c.set(0, scatter_add(zero_of(c.grad(), c.sizes(0)), c.as<DimAttrs>().dim, c.out(1), c.grad()));
}
template <bool Largest> consteval OpDef extremum_so_far(const char* signature, const char* doc) {
  return general({.signature = signature,
                  .doc = doc,
                  .shape = extremum_shape,
                  .cpu = extremum_cpu<Largest>,
                  .saves = {.always = out(1)},
                  .vjp = extremum_vjp,
                  .batch = batch_dims,
                  .attrs = &attr_info<DimAttrs>,
                  .flops = "numel(input)"});
}
constexpr OpDef cummax_op =
    extremum_so_far<true>("cummax(Tensor input, int dim) -> (Tensor values, Tensor indices)",
                          R"(Running maxima along an axis, and where each was met.

values[i] = max(input[0], ..., input[i])

Args:
    input: a real tensor.
    dim: the axis.
Returns:
    values and int64 indices, of the input's shape; the last index among equal elements.

>>> clew.cummax(clew.tensor([1., 3., 2.]), 0).values
tensor([1., 3., 3.])
)");
constexpr OpDef cummin_op =
    extremum_so_far<false>("cummin(Tensor input, int dim) -> (Tensor values, Tensor indices)",
                           R"(Running minima along an axis, and where each was met.

values[i] = min(input[0], ..., input[i])

Args:
    input: a real tensor.
    dim: the axis.
Returns:
    values and int64 indices, of the input's shape; the last index among equal elements.

>>> clew.cummin(clew.tensor([3., 1., 2.]), 0).values
tensor([3., 1., 1.])
)");

// ---- logcumsumexp
// ---------------------------------------------------------------------------------

void logcumsumexp_shape(const Call& c, OutSpecs& out) {
  const Tensor& x = c.in[0];
  axis_of(c.as<DimAttrs>().dim, x.ndim(), c.name());
  if (!x.is_complex()) require_floating(c);
  out.add(x.dtype(), x.sizes());
}
void logcumsumexp_cpu(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  kernels::logcumsumexp(outs[0].nd(), x.nd(), axis_of(c.as<DimAttrs>().dim, x.ndim(), c.name()));
}
// dx[k] = exp(x[k] - y[k]) R[k] with R[k] = g[k] + exp(y[k] - y[k+1]) R[k+1]: y rises, so nothing
// overflows. In double, for the factors' errors multiply up along the axis.
void logcumsumexp_vjp(Vjp& c) {
  const DType given = c.in(0).dtype();
  const DType d = is_complex(given) ? DType::Complex128 : DType::Float64;
  Tensor x = to_dtype(c.in(0), d), y = to_dtype(c.out(), d), g = to_dtype(c.grad(), d);
  int dim = axis_of(c.as<DimAttrs>().dim, x.ndim(), "logcumsumexp");
  if (x.numel() == 0 || x.ndim() == 0) return c.set(0, c.grad());
  int64_t n = x.sizes()[dim];
  // Where nothing but exp(-inf) was summed the differences would be NaN.
  Tensor safe =
      where(eq(real(y), number(-std::numeric_limits<double>::infinity())), number(0.0), y);
  Tensor falls = joined(constant(x, dim, 1, 0),
                        exp(narrow(y, dim, 0, n - 1) - narrow(safe, dim, 1, n - 1)), dim);
  Tensor dx = conj(exp(x - safe)) * suffix_recurrence(g, conj(falls), dim);
  c.set(0, to_dtype(dx, given));
}
constexpr OpDef logcumsumexp_op = general({
    .signature = "logcumsumexp(Tensor input, int dim) -> Tensor",
    .doc = R"(Logarithms of running sums of exponentials along an axis.

out[i] = log(exp(input[0]) + ... + exp(input[i]))

Args:
    input: a floating point tensor.
    dim: the axis.
Returns:
    a tensor of the input's shape.

>>> clew.logcumsumexp(clew.tensor([0., 0.]), 0)
tensor([0.0000, 0.6931])
)",
    .shape = logcumsumexp_shape,
    .cpu = logcumsumexp_cpu,
    .saves = {.always = in(0) | out(0)},
    .vjp = logcumsumexp_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<DimAttrs>,
    .out_memory = OutMemory::aligned,
    .flops = "3 * numel(input)",
});

constexpr const OpDef* scan_list[] = {&cumsum_op, &reverse_cumsum_op, &cumprod_op,
                                      &cummax_op, &cummin_op,         &logcumsumexp_op};

}  // namespace

extern const OpList scan_ops;
const OpList scan_ops = op_list(scan_list);

Tensor zero_of(const Tensor& like, const Dims& sizes) {
  Tensor t = empty(sizes, like.dtype(), like.device());
  if (!t.is_meta()) fill_(t, Scalar(0));
  return t;
}

Tensor cumsum(const Tensor& x, int64_t dim) { return apply(cumsum_op, {x}, ScanAttrs{dim, {}}); }
Tensor reverse_cumsum(const Tensor& x, int64_t dim) {
  return apply(reverse_cumsum_op, {x}, DimAttrs{dim});
}

Tensor exclusive_product(const Tensor& x, int64_t dim, bool from_end) {
  int axis = axis_of(dim, x.ndim(), "exclusive_product");
  int64_t n = x.sizes()[axis];
  if (n == 0) return x;
  Tensor one = constant(x, axis, 1, 1);
  // The elements moved by one place, then products over spans that double.
  Tensor e = from_end ? joined(narrow(x, axis, 1, n - 1), one, axis)
                      : joined(one, narrow(x, axis, 0, n - 1), axis);
  for (int64_t s = 1; s < n; s *= 2) {
    Tensor product = narrow(e, axis, 0, n - s) * narrow(e, axis, s, n - s);
    e = from_end ? joined(product, narrow(e, axis, n - s, s), axis)
                 : joined(narrow(e, axis, 0, s), product, axis);
  }
  return e;
}

}  // namespace clew
