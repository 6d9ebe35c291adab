// Checks of indices along one dimension, and writing where they point.
// May include: ops, graph, tensor, kernels.
// Invariant: every index is checked before the first write that outlives an error.
#include "ops/indexing/indices_along.h"

#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/indexing.h"
#include "ops/calls/shape.h"

namespace clew {

Tensor constant_pad(const Tensor& x, const Dims& pad, const Scalar& value);

using kernels::Combine;
using kernels::NdView;

Tensor with_dim(const Tensor& t) { return t.ndim() ? t : alias(t, {1}, {1}); }

Tensor from_start(const Tensor& index, int64_t size) {
  return where(lt(index, number(Scalar(0))), add(index, number(Scalar(size))), index);
}

void check_index(const Call& c, int which, int dim) {
  const Tensor& x = c.in[0];
  const Tensor& index = c.in[static_cast<size_t>(which)];
  bool wide = index.dtype() == DType::Int64 || index.dtype() == DType::Int32;
  require(wide || (index.numel() == 0 && is_integral(index.dtype())), c.name(),
          ": index must be int64 or int32; got ", index);
  if (index.numel() == 0) return;
  int ndim = std::max(x.ndim(), 1);
  require(std::max(index.ndim(), 1) == ndim, c.name(),
          ": index must have as many dimensions as the input; got ", index, " and ", x);
  for (int d = 0; d < ndim; ++d) {
    int64_t have = x.ndim() ? x.size(d) : 1;
    int64_t want = index.ndim() ? index.size(d) : 1;
    require(d == dim || want <= have, c.name(),
            ": index must not be larger than the input apart from dimension ", dim, "; got ", index,
            " and ", x);
  }
}
void check_range(const Tensor& index, const Tensor& x, int dim, std::string_view op) {
  int64_t size = x.ndim() ? x.size(dim) : 1;
  // Of an index that is expanded over other dims each one is looked at once.
  Dims once = index.sizes();
  for (int d = 0; d < index.ndim(); ++d)
    if (index.stride(d) == 0 && once[d] > 1) once[d] = 1;
  NdView seen = index.nd();
  seen.sizes = once.data();
  int64_t bad = kernels::find_bad_index(seen, size, false);
  if (bad < 0) return;
  fail(op, ": index ", kernels::index_value(seen, bad), " is out of bounds for dimension ", dim,
       " with size ", size);
}

Tensor repeated_line(const Tensor& index, int dim) {
  int64_t beside = 1;
  for (int d = 0; d < index.ndim(); ++d) {
    if (d == dim) continue;
    if (index.size(d) > 1 && index.stride(d) != 0) return {};
    beside *= index.size(d);
  }
  if (beside < 8 || index.numel() == 0) return {};
  return contiguous(converted(alias(index, {index.size(dim)}, {index.stride(dim)}), DType::Int64));
}

void check_scatter(const Call& c, int dim) {
  check_index(c, 1, dim);
  const Tensor& x = c.in[0];
  const Tensor& index = c.in[1];
  const Tensor& src = c.in[2];
  if (src.is_wrapped_number()) return;
  require(src.dtype() == x.dtype(), c.name(), ": src must have the input's dtype; got ", src,
          " for ", x);
  if (index.numel() == 0) return;
  require(std::max(src.ndim(), 1) == std::max(index.ndim(), 1), c.name(),
          ": src must have as many dimensions as index; got ", src, " and ", index);
  for (int d = 0; d < std::max(index.ndim(), 1); ++d) {
    require((index.ndim() ? index.size(d) : 1) <= (src.ndim() ? src.size(d) : 1), c.name(),
            ": index must not be larger than src; got ", index, " and ", src);
  }
}

bool is_widened(DType d, Combine combine) {
  return is_half(d) && (combine == Combine::Add || combine == Combine::Multiply);
}
void scatter_into(const Tensor& out, int dim, const Tensor& index, const Tensor& src,
                  Combine combine, std::string_view op, const NdView* base) {
  if (index.numel() == 0) return;
  Tensor at = with_dim(index);
  Tensor from = with_dim(src);
  Tensor cast;
  if (src.is_wrapped_number() || src.ndim() < index.ndim()) {
    cast = empty({}, out.dtype());
    copy_into(cast, src);
    from = alias(cast, at.sizes(), Dims(at.ndim(), 0));
  } else {
    from = alias(from, at.sizes(), from.strides());
  }
  Tensor to = with_dim(out);
  auto run = [&](const Tensor& into, const Tensor& values) {
    if (const Tensor line = base ? Tensor() : repeated_line(at, dim))
      return kernels::put_at(
          {into->address(), at.sizes().data(), into.strides().data(), at.ndim(), into.dtype()},
          values.nd(), dim, line.data<int64_t>(), into.stride(dim), into.size(dim), combine);
    return kernels::scatter(into.nd(), values.nd(), at.nd(), dim, combine, base);
  };
  if (is_widened(out.dtype(), combine)) {
    Tensor wide = dense_copy(to, DType::Float32), values = dense_copy(from, DType::Float32);
    if (!run(wide, values)) fail_changed(op);
    copy_into(to, wide);
    return;
  }
  if (run(to, from)) return;
  check_range(index, out, dim, op);
  fail_changed(op);
}

Tensor grow(const Tensor& g, const Dims& sizes) {
  if (g.sizes() == sizes || sizes.empty() || g.ndim() != sizes.size()) return g;
  Dims pad;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    pad.push_back(0);
    pad.push_back(sizes[d] - g.size(d));
  }
  return constant_pad(g, pad, Scalar(0));
}
Tensor zeroed(const Tensor& g, int64_t dim, const Tensor& index) {
  return scatter(g, dim, index, number(Scalar(0)));
}

}  // namespace clew
