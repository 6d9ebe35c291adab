// gather, scatter, scatter_add, take_along_dim: an index for every element, along one dimension.
// May include: ops, graph, tensor, kernels.
// Invariant: every index is checked before the first write that outlives an error; repeated
// indices meet in row-major order.
#include "base/fits.h"
#include "kernels/indexing/index.h"
#include "kernels/indexing/index_few.h"
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/indexing.h"
#include "ops/calls/shape.h"
#include "ops/indexing/indices_along.h"

namespace clew {

namespace {

using kernels::Combine;
using kernels::NdView;

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
  Tensor places = converted(c.in[1], DType::Int64);
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
// The blocks of x along a dim, where it is dense and the index, too, which has few elements and as
// many lines as x; returns the dim, or -1 in other cases.
int find_lines(kernels::DenseBlocks& b, const Tensor& x, int64_t given, const Tensor& index) {
  const int ndim = x.ndim();
  const int64_t at = given < 0 ? given + ndim : given;
  if (at < 0 || at >= ndim || index.ndim() != ndim || index.dtype() != DType::Int64 ||
      x.is_meta() || index.is_meta() || !x.is_contiguous() || !index.is_contiguous() ||
      index.numel() == 0 || index.numel() > kernels::few_places)
    return -1;
  const auto dim = static_cast<int>(at);
  b.item = itemsize(x.dtype());
  b.total = x.size(dim);
  for (int d = 0; d < ndim; ++d) {
    if (d == dim) continue;
    if (index.size(d) != x.size(d)) return -1;
    (d < dim ? b.outer : b.inner) *= x.size(d);
  }
  return dim;
}
// A few dense elements, of as many lines as the input has.
Tensor gather_quick(const Call& c) {
  const auto& a = c.as<GatherAttrs>();
  const Tensor &x = c.in[0], &index = c.in[1];
  kernels::DenseBlocks b;
  const int dim = a.sparse_grad ? -1 : find_lines(b, x, a.dim, index);
  if (dim < 0) return {};
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
  const Tensor g = written_out(c.grad());
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

void scatter_shape(const Call& c, OutSpecs& out) {
  check_scatter(c, wrapped(c.as<DimAttrs>().dim, c.in[0].ndim(), c.name()));
  out.add(c.in[0].dtype(), c.in[0].sizes());
}
void scatter_by(const Call& c, const Tensor& out, Combine combine) {
  int dim = wrapped(c.as<DimAttrs>().dim, c.in[0].ndim(), c.name());
  const Tensor& x = c.in[0];
  Tensor index = converted(c.in[1], DType::Int64);
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

template <bool add> bool scatter_write_few(const Call& c) {
  const Tensor &x = c.in[0], &index = c.in[1], &src = c.in[2];
  kernels::DenseBlocks b;
  const int dim = find_lines(b, x, c.as<DimAttrs>().dim, index);
  if (dim < 0 || src.dtype() != x.dtype() || src.is_meta() || !src.is_contiguous() ||
      !src.has_sizes_of(index) || src->storage == x->storage || index->storage == x->storage)
    return false;
  const auto* at = index.data<const int64_t>();
  const int64_t n = index.size(dim);
  return add ? kernels::scatter_add_few(x.dtype(), x->address(), src->address(), b, at, n)
             : kernels::scatter_few(x->address(), src->address(), b, at, n);
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
    .write_few = scatter_write_few<false>,
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
    .write_few = scatter_write_few<true>,
    .saves = {.always = in(1)},
    .vjp = scatter_add_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<DimAttrs>,
    .inplace = true,
    .out_memory = OutMemory::aligned,
    .flops = "numel(src)",
});

constexpr const OpDef* gather_family[] = {
    &gather_op,
    &along_op,
    &scatter_op,
    &scatter_value_op,
    &scatter_src_reduce_op,
    &scatter_value_reduce_op,
    &scatter_add_op,
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
