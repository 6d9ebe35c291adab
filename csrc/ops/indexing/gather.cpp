// gather, scatter, scatter_add, scatter_reduce, take_along_dim: an index for every element,
// along one dimension.
// May include: ops, graph, tensor, kernels.
// Invariant: every index is checked before the first write that outlives an error; repeated
// indices meet in row-major order.
#include <limits>

#include "base/fits.h"
#include "graph/modes.h"
#include "kernels/indexing/index.h"
#include "kernels/indexing/index_few.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/indexing.h"
#include "ops/calls/joining.h"
#include "ops/calls/reduction.h"
#include "ops/calls/scan.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"

namespace clew {

Tensor constant_pad(const Tensor& x, const Dims& pad, const Scalar& value);

namespace {

using kernels::Combine;
using kernels::NdView;

struct DimAttrs {
  int64_t dim = 0;
  static constexpr auto members() { return std::tuple(&DimAttrs::dim); }
};

// A 0-d tensor as one of one element.
Tensor with_dim(const Tensor& t) { return t.ndim() ? t : alias(t, {1}, {1}); }

// The kernels read int64 indices.
Tensor as_int64(const Tensor& index) {
  if (index.dtype() == DType::Int64) return index;
  Tensor wide = empty(index.sizes(), DType::Int64);
  copy_into(wide, index);
  return wide;
}
// Indices counted from the end, as indices counted from the start.
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
  int64_t bad = kernels::find_bad_index(index.nd(), size, false);
  if (bad < 0) return;
  fail(op, ": index ", kernels::index_value(index.nd(), bad), " is out of bounds for dimension ",
       dim, " with size ", size);
}

// If index is a vector along dim that is expanded over the other dims, that vector: whole rows are
// then moved instead of elements. Undefined for other indices and for short rows.
Tensor repeated_line(const Tensor& index, int dim) {
  int64_t beside = 1;
  for (int d = 0; d < index.ndim(); ++d) {
    if (d == dim) continue;
    if (index.size(d) > 1 && index.stride(d) != 0) return {};
    beside *= index.size(d);
  }
  if (beside < 8 || index.numel() == 0) return {};
  return contiguous(as_int64(alias(index, {index.size(dim)}, {index.stride(dim)})));
}

// ---- gather -------------------------------------------------------------------------------------

struct GatherAttrs {
  int64_t dim = 0;
  bool sparse_grad = false;
  static constexpr auto members() {
    return std::tuple(&GatherAttrs::dim, &GatherAttrs::sparse_grad);
  }
};
void gather_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<GatherAttrs>();
  require(!a.sparse_grad, c.name(), ": sparse_grad=True is not supported");
  check_index(c, 1, wrapped(a.dim, c.in[0].ndim(), c.name()));
  out.add(c.in[0].dtype(), c.in[1].sizes());
}
void gather_cpu(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  int dim = wrapped(c.as<GatherAttrs>().dim, x.ndim(), c.name());
  if (const Tensor line = repeated_line(c.in[1], dim)) {
    check_range(line, x, dim, c.name());
    const Dims& sizes = outs[0].sizes();
    bool ok = true;
    {
      ok = kernels::take_at(outs[0].nd(),
                            {x->address(), sizes.data(), x.strides().data(), x.ndim(), x.dtype()},
                            dim, line.data<int64_t>(), x.stride(dim), x.size(dim));
    }
    if (!ok) fail_changed(c.name());
    return;
  }
  Tensor places = as_int64(c.in[1]);
  if (!is_fresh(outs[0])) check_range(places, x, dim, c.name());
  if (outs[0].numel() == 0) return;
  Tensor out = with_dim(outs[0]);
  Tensor index = with_dim(places);
  Tensor from = with_dim(x);
  bool ok = true;
  { ok = kernels::gather(out.nd(), from.nd(), index.nd(), dim); }
  if (ok) return;
  check_range(places, x, dim, c.name());
  fail_changed(c.name());
}
// A few dense elements, of as many lines as the input has.
Tensor gather_quick(const Call& c) {
  const auto& a = c.as<GatherAttrs>();
  const Tensor &x = c.in[0], &index = c.in[1];
  const int ndim = x.ndim();
  const int64_t at = a.dim < 0 ? a.dim + ndim : a.dim;
  if (a.sparse_grad || at < 0 || at >= ndim || index.ndim() != ndim ||
      index.dtype() != DType::Int64 || x.is_meta() || index.is_meta() || !x.is_contiguous() ||
      !index.is_contiguous() || index.numel() == 0 || index.numel() > kernels::few_places)
    return {};
  const auto dim = static_cast<int>(at);
  kernels::DenseBlocks b;
  b.item = itemsize(x.dtype());
  b.total = x.size(dim);
  for (int d = 0; d < ndim; ++d) {
    if (d == dim) continue;
    if (index.size(d) != x.size(d)) return {};
    (d < dim ? b.outer : b.inner) *= x.size(d);
  }
  Tensor out = empty_dense_like(index, x.dtype());
  if (!kernels::gather_few(out->address(), x->address(), b, index.data<const int64_t>(),
                           index.size(dim)))
    return {};
  return out;
}
// Whether there is one index for each row of x: its elements along dim, which is the last.
bool is_one_a_row(const Tensor& x, int64_t dim, const Tensor& index) {
  const int last = x.ndim() - 1;
  if (last < 0 || (dim != last && dim != -1) || index.dtype() != DType::Int64 ||
      index.ndim() != x.ndim() || index.size(last) != 1 || !index.is_contiguous())
    return false;
  for (int d = 0; d < last; ++d)
    if (index.size(d) != x.size(d)) return false;
  return true;
}
Passes gather_passes(const Call& c) {
  const auto& a = c.as<GatherAttrs>();
  if (!is_one_a_row(c.in[0], a.dim, c.in[1])) return {};
  return {.over = Passes::Over::picked, .dims = 1};
}
void gather_vjp(Vjp& c) {
  const Tensor& g = c.grad();
  Tensor zeros = zero_block(c.sizes(0), g.dtype(), g.device());
  c.set(0, scatter_add(zeros, c.as<GatherAttrs>().dim, c.in(1), g));
}
constexpr OpDef gather_op = general({
    .signature = "gather(Tensor input, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    .doc =
        R"(Picks an element for every index.

In 2 dimensions `out[i][j] = input[index[i][j]][j]` for `dim` 0.

Args:
    dim: the dimension the indices count in.
    index: int64, with as many dimensions as the input and no larger than it apart from `dim`.
    sparse_grad: only False is supported.
Returns: a new tensor of the index's shape.

>>> clew.gather(clew.tensor([[1, 2], [3, 4]]), 1, clew.tensor([[0, 0], [1, 0]])).tolist()
[[1, 1], [4, 3]]
)",
    .shape = gather_shape,
    .cpu = gather_cpu,
    .quick = gather_quick,
    .passes = gather_passes,
    .saves = {.always = in(1)},
    .vjp = gather_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<GatherAttrs>,
    .takes_stored = true,
    .out_memory = OutMemory::apart,
    .flops = "0",
});

struct AlongAttrs {
  std::optional<int64_t> dim;
  static constexpr auto members() { return std::tuple(&AlongAttrs::dim); }
};
void along_run(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  const auto& dim = c.as<AlongAttrs>().dim;
  require(c.in[1].dtype() == DType::Int64, c.name(), ": indices must be int64; got ", c.in[1]);
  int64_t size = !dim ? x.numel() : x.ndim() ? x.size(wrapped(*dim, x.ndim(), c.name())) : 1;
  Tensor index = from_start(c.in[1], size);
  if (!dim) return outs.push_back(gather(reshape(x, {-1}), 0, reshape(index, {-1})));
  require(x.ndim() == index.ndim(), c.name(),
          ": input and indices must have equally many dimensions; got ", x, " and ", index);
  int d = wrapped(*dim, x.ndim(), c.name());
  Dims a = x.sizes();
  Dims b = index.sizes();
  if (x.ndim() == 0) return outs.push_back(gather(x, 0, index));
  a[d] = b[d] = 1;
  Dims both = broadcast_shapes(a, b, "take_along_dim");
  both[d] = x.size(d);
  Tensor wide = expand(x, both);
  both[d] = index.size(d);
  outs.push_back(gather(wide, d, expand(index, both)));
}
constexpr OpDef along_op = composite({
    .signature = "take_along_dim(Tensor input, Tensor indices, int? dim=None) -> Tensor",
    .doc = R"(Picks elements along a dimension, as `argmax` and `argsort` name them.

Args:
    indices: int64, broadcast with the input apart from `dim`.
    dim: the dimension; the flattened input when not given.
Returns: a new tensor.

>>> clew.take_along_dim(clew.tensor([[3, 1], [2, 4]]), clew.tensor([[1], [0]]), dim=1).tolist()
[[1], [2]]
)",
    .run = along_run,
    .attrs = &attr_info<AlongAttrs>,
    .out_memory = OutMemory::apart,
});

// ---- scatter ------------------------------------------------------------------------------------

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
  bool half = d == DType::Float16 || d == DType::BFloat16;
  return half && (combine == Combine::Add || combine == Combine::Multiply);
}
// dst[index] op= src; 16-bit floats are combined in 32 bits. With a base, out is made a copy of
// that first. An index that is out of range is refused, in the middle if nobody has looked before.
void scatter_into(const Tensor& out, int dim, const Tensor& index, const Tensor& src,
                  Combine combine, std::string_view op, const NdView* base = nullptr) {
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
  if (is_widened(out.dtype(), combine)) {
    Tensor wide = empty(to.sizes(), DType::Float32);
    copy_into(wide, to);
    Tensor values = empty(from.sizes(), DType::Float32);
    copy_into(values, from);
    bool ok = true;
    { ok = kernels::scatter(wide.nd(), values.nd(), at.nd(), dim, combine, nullptr); }
    if (!ok) fail_changed(op);
    copy_into(to, wide);
    return;
  }
  bool ok = true;
  { ok = kernels::scatter(to.nd(), from.nd(), at.nd(), dim, combine, base); }
  if (ok) return;
  check_range(index, out, dim, op);
  fail_changed(op);
}

void scatter_shape(const Call& c, OutSpecs& out) {
  check_scatter(c, wrapped(c.as<DimAttrs>().dim, c.in[0].ndim(), c.name()));
  out.add(c.in[0].dtype(), c.in[0].sizes());
}
void scatter_by(const Call& c, const Tensor& out, Combine combine) {
  int dim = wrapped(c.as<DimAttrs>().dim, c.in[0].ndim(), c.name());
  const Tensor &x = c.in[0], &src = c.in[2];
  if (combine == Combine::Add && !is_widened(x.dtype(), combine) && src.ndim() == x.ndim()) {
    if (const Tensor line = repeated_line(c.in[1], dim)) {
      check_range(line, x, dim, c.name());
      if (!out.is_same(x)) copy_into(out, x);
      const Dims& sizes = c.in[1].sizes();
      bool ok = true;
      {
        ok = kernels::put_at(
            {out->address(), sizes.data(), out.strides().data(), out.ndim(), out.dtype()},
            {src->address(), sizes.data(), src.strides().data(), src.ndim(), src.dtype()}, dim,
            line.data<int64_t>(), out.stride(dim), out.size(dim), combine);
      }
      if (!ok) fail_changed(c.name());
      return;
    }
  }
  Tensor index = as_int64(c.in[1]);
  bool fused = !out.is_same(x) && is_fresh(out) && !is_widened(x.dtype(), combine) && index.numel();
  if (!fused) check_range(index, x, dim, c.name());
  Tensor from = with_dim(x);
  NdView base = from.nd();
  bool by_rows = fused && kernels::copies_rows(with_dim(out).nd(), base, with_dim(index).nd(), dim);
  if (!out.is_same(x) && !by_rows) copy_into(out, x);
  scatter_into(out, dim, index, c.in[2], combine, c.name(), by_rows ? &base : nullptr);
}
Passes scatter_add_passes(const Call& c) {
  const Tensor &x = c.in[0], &index = c.in[1], &src = c.in[2];
  const bool one_number = x.strides() == Dims(x.ndim(), 0);
  if (!one_number || (x.dtype() != DType::Float32 && x.dtype() != DType::Float64) ||
      !is_one_a_row(x, c.as<DimAttrs>().dim, index) || src.sizes() != index.sizes())
    return {};
  return {.over = Passes::Over::placed, .dims = 1};
}
void scatter_cpu(const Call& c, Tensors& outs) { scatter_by(c, outs[0], Combine::Assign); }
void scatter_add_cpu(const Call& c, Tensors& outs) { scatter_by(c, outs[0], Combine::Add); }
void scatter_write(const Call& c) { scatter_by(c, c.in[0], Combine::Assign); }
void scatter_add_write(const Call& c) { scatter_by(c, c.in[0], Combine::Add); }

// A gradient of the index's shape for a src that may be larger.
Tensor grow(const Tensor& g, const Dims& sizes) {
  if (g.sizes() == sizes || sizes.empty() || g.ndim() != sizes.size()) return g;
  Dims pad;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    pad.push_back(0);
    pad.push_back(sizes[d] - g.size(d));
  }
  return constant_pad(g, pad, Scalar(0));
}
Tensor shrink(Tensor x, const Dims& sizes) {
  for (int d = 0; d < sizes.size() && d < x.ndim(); ++d) {
    if (x.size(d) != sizes[d]) x = narrow(x, d, 0, sizes[d]);
  }
  return x;
}
Tensor zeroed(const Tensor& g, int64_t dim, const Tensor& index) {
  return scatter(g, dim, index, number(Scalar(0)));
}

void scatter_vjp(Vjp& c) {
  int64_t dim = c.as<DimAttrs>().dim;
  if (c.needs(0)) c.set(0, zeroed(c.grad(), dim, c.in(1)));
  if (c.needs(2)) c.set(2, grow(gather(c.grad(), dim, c.in(1)), c.sizes(2)));
}
void scatter_add_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, c.grad());
  if (c.needs(2)) c.set(2, grow(gather(c.grad(), c.as<DimAttrs>().dim, c.in(1)), c.sizes(2)));
}
constexpr const char* scatter_doc =
    R"(Writes an element for every index.

In 2 dimensions `out[index[i][j]][j] = src[i][j]` for `dim` 0.

Args:
    dim: the dimension the indices count in.
    index: int64, no larger than src, and than the input apart from `dim`.
    src: what to write, a tensor or a number; of repeated indices the last wins.
    value: a number to write, the same as src.
    reduce: 'add' or 'multiply' combines with what is there instead.
Returns: a new tensor.

>>> clew.zeros(3).scatter(0, clew.tensor([2, 0]), clew.tensor([5., 6.])).tolist()
[6.0, 0.0, 5.0]
)";
constexpr OpDef scatter_op = general({
    .signature = "scatter(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
    .doc = scatter_doc,
    .shape = scatter_shape,
    .cpu = scatter_cpu,
    .write = scatter_write,
    .saves = {.always = in(1)},
    .vjp = scatter_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<DimAttrs>,
    .inplace = true,
    .takes_stored = true,
    .out_memory = OutMemory::aligned,
    .flops = "0",
});
struct ValueAttrs {
  int64_t dim = 0;
  Scalar value;
  static constexpr auto members() { return std::tuple(&ValueAttrs::dim, &ValueAttrs::value); }
};
void scatter_value_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<ValueAttrs>();
  require_fits(c.name(), a.value, c.in[0].dtype());
  outs.push_back(scatter(c.in[0], a.dim, c.in[1], number(a.value)));
}
void scatter_value_write(const Call& c) {
  const auto& a = c.as<ValueAttrs>();
  require_fits(c.name(), a.value, c.in[0].dtype());
  const Tensor in[] = {c.in[0], c.in[1], number(a.value)};
  DimAttrs dim{a.dim};
  apply_inplace(scatter_op, in, &dim);
}
constexpr OpDef scatter_value_op = composite({
    .signature = "scatter(Tensor input, int dim, Tensor index, Scalar value) -> Tensor",
    .doc = scatter_doc,
    .run = scatter_value_run,
    .write = scatter_value_write,
    .attrs = &attr_info<ValueAttrs>,
    .inplace = true,
    .out_memory = OutMemory::aligned,
    .flops = "0",
});
Tensor scatter_with(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                    const Str& reduce, std::string_view op);
struct ReduceAttrs {
  int64_t dim = 0;
  Str reduce;
  static constexpr auto members() { return std::tuple(&ReduceAttrs::dim, &ReduceAttrs::reduce); }
};
void scatter_src_reduce_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<ReduceAttrs>();
  outs.push_back(scatter_with(c.in[0], a.dim, c.in[1], c.in[2], a.reduce, c.name()));
}
constexpr OpDef scatter_src_reduce_op = composite({
    .signature =
        "scatter(Tensor input, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    .doc = scatter_doc,
    .run = scatter_src_reduce_run,
    .attrs = &attr_info<ReduceAttrs>,
    .inplace = true,
    .out_memory = OutMemory::aligned,
    .flops = "0",
});
struct ValueReduceAttrs {
  int64_t dim = 0;
  Scalar value;
  Str reduce;
  static constexpr auto members() {
    return std::tuple(&ValueReduceAttrs::dim, &ValueReduceAttrs::value, &ValueReduceAttrs::reduce);
  }
};
void scatter_value_reduce_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<ValueReduceAttrs>();
  outs.push_back(scatter_with(c.in[0], a.dim, c.in[1], number(a.value), a.reduce, c.name()));
}
constexpr OpDef scatter_value_reduce_op = composite({
    .signature =
        "scatter(Tensor input, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    .doc = scatter_doc,
    .run = scatter_value_reduce_run,
    .attrs = &attr_info<ValueReduceAttrs>,
    .inplace = true,
    .out_memory = OutMemory::aligned,
    .flops = "0",
});
constexpr OpDef scatter_add_op = general({
    .signature = "scatter_add(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
    .doc =
        R"(Adds an element for every index.

In 2 dimensions `out[index[i][j]][j] += src[i][j]` for `dim` 0.

Args:
    dim: the dimension the indices count in.
    index: int64, no larger than src, and than the input apart from `dim`; repeated ones add up.
    src: what to add.
Returns: a new tensor.

>>> clew.zeros(3).scatter_add(0, clew.tensor([0, 0, 2]), clew.ones(3)).tolist()
[2.0, 0.0, 1.0]
)",
    .shape = scatter_shape,
    .cpu = scatter_add_cpu,
    .passes = scatter_add_passes,
    .write = scatter_add_write,
    .saves = {.always = in(1)},
    .vjp = scatter_add_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<DimAttrs>,
    .inplace = true,
    .out_memory = OutMemory::aligned,
    .flops = "numel(src)",
});

// ---- scatter_reduce -----------------------------------------------------------------------------

struct ScatterReduceAttrs {
  int64_t dim = 0;
  Str reduce;
  bool include_self = true;
  static constexpr auto members() {
    return std::tuple(&ScatterReduceAttrs::dim, &ScatterReduceAttrs::reduce,
                      &ScatterReduceAttrs::include_self);
  }
};
void scatter_reduce_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<ScatterReduceAttrs>();
  bool known = a.reduce == "sum" || a.reduce == "prod" || a.reduce == "mean" ||
               a.reduce == "amax" || a.reduce == "amin";
  require(known, c.name(), ": reduce must be 'sum', 'prod', 'mean', 'amax' or 'amin'; got '",
          std::string_view(a.reduce), "'");
  if (c.in[0].is_complex() && (a.reduce == "amax" || a.reduce == "amin"))
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
  if (reduce != "amax" && reduce != "amin") return Scalar(0);
  bool lowest = reduce == "amax";
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
void reduce_into(const Call& c, const Tensor& out) {
  const auto& a = c.as<ScatterReduceAttrs>();
  const Tensor& x = c.in[0];
  Tensor index = as_int64(c.in[1]);
  int dim = wrapped(a.dim, x.ndim(), c.name());
  check_range(index, x, dim, c.name());
  if (!out.is_same(x)) copy_into(out, x);
  if (!a.include_self) {
    scatter_into(out, dim, index, scalar_tensor(neutral(a.reduce, x.dtype()), x.dtype(), true),
                 Combine::Assign, c.name());
  }
  Combine how = a.reduce == "prod"   ? Combine::Multiply
                : a.reduce == "amax" ? Combine::Max
                : a.reduce == "amin" ? Combine::Min
                                     : Combine::Add;
  scatter_into(out, dim, index, c.in[2], how, c.name());
  if (!(a.reduce == "mean")) return;
  Tensor counts = empty(out.sizes(), DType::Int64);
  fill_(counts, Scalar(1));
  Tensor one = scalar_tensor(Scalar(1), DType::Int64, true);
  if (!a.include_self)
    scatter_into(counts, dim, index, scalar_tensor(Scalar(0), DType::Int64, true), Combine::Assign,
                 c.name());
  scatter_into(counts, dim, index, one, Combine::Add, c.name());
  kernels::divide_by_counts(out.nd(), counts.data<int64_t>());
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
    reduce: 'sum', 'prod', 'mean', 'amax' or 'amin'.
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

constexpr const OpDef* gather_family[] = {
    &gather_op,
    &along_op,
    &scatter_op,
    &scatter_value_op,
    &scatter_src_reduce_op,
    &scatter_value_reduce_op,
    &scatter_add_op,
    &scatter_reduce_op,
};

}  // namespace

extern const OpList gather_ops;
const OpList gather_ops = op_list(gather_family);

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  return apply(gather_op, {x, index}, GatherAttrs{dim, false});
}
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  return apply(scatter_op, {x, index, src}, DimAttrs{dim});
}
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  return apply(scatter_add_op, {x, index, src}, DimAttrs{dim});
}

}  // namespace clew
