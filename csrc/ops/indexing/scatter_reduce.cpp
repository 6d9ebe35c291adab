// scatter_reduce: sums, products, means and extrema of the elements that share an index.
// May include: ops, graph, tensor, kernels.
// Invariant: every index is checked before the first write that outlives an error; repeated
// indices meet in row-major order.
#include <limits>

#include "base/fits.h"
#include "graph/modes.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/indexing.h"
#include "ops/calls/joining.h"
#include "ops/calls/reduction.h"
#include "ops/calls/scan.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/indexing/indices_along.h"

namespace clew {

namespace {

using kernels::Combine;

struct ScatterReduceAttrs {
  int64_t dim = 0;
  Str reduce;
  bool include_self = true;
  static constexpr auto members() {
    return std::tuple(&ScatterReduceAttrs::dim, &ScatterReduceAttrs::reduce,
                      &ScatterReduceAttrs::include_self);
  }
};
// "max" and "min" are other names of "amax" and "amin", as in PyTorch.
bool is_largest(const Str& reduce) { return reduce == "amax" || reduce == "max"; }
bool is_smallest(const Str& reduce) { return reduce == "amin" || reduce == "min"; }
void scatter_reduce_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<ScatterReduceAttrs>();
  bool known = a.reduce == "sum" || a.reduce == "prod" || a.reduce == "mean" ||
               is_largest(a.reduce) || is_smallest(a.reduce);
  require(known, c.name(), ": reduce must be 'sum', 'prod', 'mean', 'amax' or 'amin'; got '",
          std::string_view(a.reduce), "'");
  if (c.in[0].is_complex() && (is_largest(a.reduce) || is_smallest(a.reduce)))
    fail(ErrorKind::NotImplemented, c.name(), ": reduce '", std::string_view(a.reduce),
         "' needs real numbers; got ", c.in[0]);
  if (c.in[0].dtype() == DType::Bool && a.reduce == "mean")
    fail(ErrorKind::NotImplemented, c.name(), ": reduce 'mean' needs numbers; got ", c.in[0]);
  check_scatter(c, wrapped(a.dim, c.in[0].ndim(), c.name()));
  out.add(c.in[0].dtype(), c.in[0].sizes());
}
// The value that leaves others as they are under a reduction.
Scalar neutral(const Str& reduce, DType dtype) {
  if (reduce == "prod") return Scalar(1);
  const bool lowest = is_largest(reduce);
  if (!lowest && !is_smallest(reduce)) return Scalar(0);
  if (dtype == DType::Bool) return Scalar(!lowest);
  if (is_floating(dtype)) {
    double inf = std::numeric_limits<double>::infinity();
    return Scalar(lowest ? -inf : inf);
  }
  Scalar s;
  dispatch(dtype, IntegralTypes{}, [&]<class T>() {
    s = Scalar(static_cast<std::conditional_t<std::is_same_v<T, uint64_t>, T, int64_t>>(
        lowest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max()));
  });
  return s;
}
// Divides sums by how many terms they have.
void divide_by_counts(const Tensor& out, int dim, const Tensor& index, bool include_self,
                      std::string_view op) {
  // An index that is the same for whole rows counts rows: one count for `each` elements.
  Dims whole = out.sizes();
  if (out.ndim()) whole[dim] = index.size(dim);
  const Tensor line = index.sizes() == whole ? repeated_line(index, dim) : Tensor();
  int64_t each = 1;
  for (int d = dim + 1; line && d < out.ndim(); ++d) each *= out.size(d);
  const Tensor counts = empty(line ? Dims{out.size(dim)} : out.sizes(), DType::Int64);
  auto put = [&](int64_t number, Combine how) {
    scatter_into(counts, line ? 0 : dim, line ? line : index,
                 scalar_tensor(Scalar(number), DType::Int64, true), how, op);
  };
  fill_(counts, Scalar(1));
  if (!include_self) put(0, Combine::Assign);
  put(1, Combine::Add);
  kernels::divide_by_counts(out.nd(), counts.data<int64_t>(), counts.numel(), each);
}
void reduce_into(const Call& c, const Tensor& out) {
  const auto& a = c.as<ScatterReduceAttrs>();
  const Tensor& x = c.in[0];
  Tensor index = converted(c.in[1], DType::Int64);
  int dim = wrapped(a.dim, x.ndim(), c.name());
  check_range(index, x, dim, c.name());
  if (!out.is_same(x)) copy_into(out, x);
  if (!a.include_self) {
    scatter_into(out, dim, index, scalar_tensor(neutral(a.reduce, x.dtype()), x.dtype(), true),
                 Combine::Assign, c.name());
  }
  Combine how = a.reduce == "prod"      ? Combine::Multiply
                : is_largest(a.reduce)  ? Combine::Max
                : is_smallest(a.reduce) ? Combine::Min
                                        : Combine::Add;
  scatter_into(out, dim, index, c.in[2], how, c.name());
  if (a.reduce == "mean") divide_by_counts(out, dim, index, a.include_self, c.name());
}
void scatter_reduce_cpu(const Call& c, Tensors& outs) { reduce_into(c, outs[0]); }
void scatter_reduce_write(const Call& c) {
  const Tensor& x = c.in[0];
  if (x.is_contiguous()) return reduce_into(c, x);
  const Tensor made = empty(x.sizes(), x.dtype());  // counts lie as contiguous elements do
  reduce_into(c, made);
  copy_into(x, made);
}
Tensor apply_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                    const ScatterReduceAttrs& a);

// The gradients of products by x and src, whatever zeros they hold, in a form that can be
// differentiated again: each target's factors become a row of a matrix, whose products without one
// factor are made of the products before and after it.
std::pair<Tensor, Tensor> product_gradients(const Tensor& g, const Tensor& x, int64_t dim,
                                            const Tensor& index, const Tensor& src,
                                            bool include_self) {
  std::vector<int64_t> places = int64_values(index);
  int d = wrapped(dim, x.ndim(), "scatter_reduce");
  const Dims& sizes = x.sizes();
  int64_t targets = x.numel();
  const int64_t count = index.numel();
  // The flat place of each factor's target, and the how manieth factor of it this is.
  std::vector<int64_t> flat(static_cast<size_t>(count)), seen(static_cast<size_t>(targets), 0);
  std::vector<int64_t> rank(static_cast<size_t>(count));
  int64_t most = 0;
  check_range(index, x, d, "scatter_reduce");  // what was saved may have been written to
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, place = 0, step = 1;
    for (int k = index.ndim() - 1; k >= 0; --k) {
      int64_t here = rest % index.size(k);
      rest /= index.size(k);
      place += (k == d ? places[static_cast<size_t>(i)] : here) * step;
      step *= sizes[k];
    }
    if (index.ndim() == 0) place = places[static_cast<size_t>(i)];
    flat[static_cast<size_t>(i)] = place;
    rank[static_cast<size_t>(i)] = seen[static_cast<size_t>(place)]++;
    most = std::max(most, seen[static_cast<size_t>(place)]);
  }
  for (int64_t i = 0; i < count; ++i)
    places[static_cast<size_t>(i)] =
        flat[static_cast<size_t>(i)] * most + rank[static_cast<size_t>(i)];
  const Tensor at = int64_tensor(places);
  Tensor ones = empty({targets * most}, x.dtype());
  fill_(ones, Scalar(1));
  Tensor rows = reshape(scatter(ones, 0, at, reshape(src, {-1})), {targets, most});
  Tensor first = reshape(x, {targets, 1});
  if (!include_self) {
    first = empty({targets, 1}, x.dtype());
    fill_(first, Scalar(1));
  }
  Tensor parts[] = {first, rows};
  Tensor factors = cat(parts, 1);
  Tensor others = exclusive_product(factors, 1, false) * exclusive_product(factors, 1, true);
  Tensor grads = reshape(g, {targets, 1}) * conj(others);
  Tensor by_src = gather(reshape(narrow(grads, 1, 1, most), {-1}), 0, at);
  return {reshape(narrow(grads, 1, 0, 1), sizes), reshape(by_src, index.sizes())};
}
// The part of a larger src that has indices.
Tensor shrink(Tensor x, const Dims& sizes) {
  for (int d = 0; d < sizes.size() && d < x.ndim(); ++d) {
    if (x.size(d) != sizes[d]) x = narrow(x, d, 0, sizes[d]);
  }
  return x;
}
void scatter_reduce_vjp(Vjp& c) {
  const auto& a = c.as<ScatterReduceAttrs>();
  const Tensor& g = c.grad();
  Tensor x = c.in(0);
  Tensor index = c.in(1);
  int64_t dim = a.dim;
  Tensor gx;
  Tensor gs;
  if (a.reduce == "sum") {
    gx = g;
    gs = gather(g, dim, index);
  } else if (a.reduce == "mean") {
    Tensor ones = zero_block({}, g.dtype(), g.device());
    if (!ones.is_meta()) fill_(ones, Scalar(1));
    Tensor counts = expand(ones, g.sizes());
    if (!a.include_self) counts = zeroed(counts, dim, index);
    counts = scatter_add(counts, dim, index, expand(ones, index.sizes()));
    gx = div(g, counts);
    gs = gather(gx, dim, index);
  } else {
    Tensor src = shrink(c.in(2), index.sizes());
    Tensor result = c.out();
    if (a.reduce == "prod") {
      // One factor at a time: the product of the others is the result over it, or, at a lone zero,
      // the product that leaves the zero out; beside two zeros it is zero.
      Tensor zero = number(Scalar(0));
      Tensor one = number(Scalar(1));
      Tensor x_zero = a.include_self ? eq(x, zero) : Tensor();
      Tensor s_zero = eq(src, zero);
      DType real = real_of(g.dtype());
      Tensor zeros = to_dtype(s_zero, real);
      Tensor base =
          a.include_self ? to_dtype(x_zero, real) : zero_block(g.sizes(), real, g.device());
      Tensor count = scatter_add(base, dim, index, zeros);
      // These formulas treat zero factors as constants, so their own derivative would be wrong
      // there.
      if (modes.grad && !count.is_meta() && item(all(eq(count, zero))).i == 0) {
        auto [by_x, by_src] = product_gradients(g, x, dim, index, src, a.include_self);
        if (c.needs(0)) c.set(0, a.include_self ? by_x : zeroed(g, dim, index));
        if (c.needs(2)) c.set(2, grow(by_src, c.sizes(2)));
        return;
      }
      Tensor full = apply_reduce(a.include_self ? where(x_zero, one, x) : x, dim, index,
                                 where(s_zero, one, src), a);
      Tensor alone =
          mul(g, conj(where(le(count, one), full, zero)));  // for a factor that is the only zero
      Tensor plain =
          mul(g, conj(where(eq(count, zero), full, zero)));  // for factors that are not zero
      if (c.needs(0)) {
        gx = a.include_self ? where(x_zero, alone, div(plain, conj(where(x_zero, one, x)))) : g;
      }
      if (c.needs(2)) {
        Tensor there = gather(plain, dim, index);
        gs = where(s_zero, gather(alone, dim, index), div(there, conj(where(s_zero, one, src))));
      }
    } else {
      Tensor from_x = to_dtype(eq(x, result), g.dtype());
      if (!a.include_self) from_x = zeroed(from_x, dim, index);
      Tensor from_s = to_dtype(eq(src, gather(result, dim, index)), g.dtype());
      Tensor count = scatter_add(from_x, dim, index, from_s);
      Tensor share = div(g, where(eq(count, number(Scalar(0))), number(Scalar(1)), count));
      gx = mul(from_x, share);
      gs = mul(from_s, gather(share, dim, index));
      if (c.needs(0)) c.set(0, gx);
      if (c.needs(2)) c.set(2, grow(gs, c.sizes(2)));
      return;
    }
  }
  if (c.needs(0)) c.set(0, a.include_self ? gx : zeroed(a.reduce == "mean" ? g : gx, dim, index));
  if (c.needs(2)) c.set(2, grow(gs, c.sizes(2)));
}
constexpr OpDef scatter_reduce_op = general({
    .signature = "scatter_reduce(Tensor input, int dim, Tensor index, Tensor src, str reduce, *, "
                 "bool include_self=True) -> Tensor",
    .doc = R"(Reduces the elements of a source that share an index.

Args:
    dim: the dimension the indices count in.
    index: int64, no larger than src, and than the input apart from `dim`.
    src: what to reduce.
    reduce: 'sum', 'prod', 'mean', 'amax' or 'amin' ('max' and 'min' mean the same).
    include_self: whether the input's own elements take part.
Returns: a new tensor.

>>> x = clew.tensor([1., 2.])
>>> x.scatter_reduce(0, clew.tensor([0, 0]), clew.tensor([5., 7.]), 'amax').tolist()
[7.0, 2.0]
)",
    .shape = scatter_reduce_shape,
    .cpu = scatter_reduce_cpu,
    .write = scatter_reduce_write,
    .saves = {.always = in(0) | in(1) | in(2) | out(0)},
    .vjp = scatter_reduce_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<ScatterReduceAttrs>,
    .inplace = true,
    .out_memory = OutMemory::aligned,
    .flops = "numel(src)",
});

Tensor apply_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                    const ScatterReduceAttrs& a) {
  return apply(scatter_reduce_op, {x, index, src},
               ScatterReduceAttrs{dim, a.reduce, a.include_self});
}

constexpr const OpDef* scatter_reduce_family[] = {
    &scatter_reduce_op,
};

}  // namespace

extern const OpList scatter_reduce_ops;
const OpList scatter_reduce_ops = op_list(scatter_reduce_family);

Tensor scatter_with(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                    const Str& reduce, std::string_view op) {
  require(reduce == "add" || reduce == "multiply", op,
          ": reduce must be 'add' or 'multiply'; got '", std::string_view(reduce), "'");
  if (reduce == "add") return scatter_add(x, dim, index, src);
  Tensor factors = src;
  if (src.is_wrapped_number()) {
    Tensor one = empty({}, x.dtype(), x.device());
    if (!one.is_meta()) copy_into(one, src);
    factors = expand(one, index.sizes());
  }
  return apply(scatter_reduce_op, {x, index, factors}, ScatterReduceAttrs{dim, "prod", true});
}

}  // namespace clew
