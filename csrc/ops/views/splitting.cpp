// Many views of one tensor: unbind, split, chunk, tensor_split and their relatives.
// May include: ops, graph, tensor, kernels.
// Invariant: the gradients of all parts are joined by one cat or stack, with zeros for missing
// ones.
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/joining.h"
#include "ops/calls/shape.h"
#include "ops/views/specs.h"

namespace clew {

namespace {

void add_counted(Specs& out, const Tensor& x, int dim, int64_t start, int64_t length) {
  // Each part is a tensor object; more of them would exhaust the memory.
  if (out.size() >= (size_t{1} << 22)) {
    fail(ErrorKind::OutOfMemory, "split: more than ", 1 << 22, " parts of ", x,
         " were asked for; use fewer, larger ones");
  }
  add_part(out, x, dim, start, length, 1);
}

// ---- unbind, split, chunk -----------------------------------------------------------------------

int only_grad(const Vjp& c) {
  int found = -1;
  for (int k = 0; k < c.outputs(); ++k) {
    if (!c.grad(k).defined()) continue;
    if (found >= 0) return -1;
    found = k;
  }
  return found;
}
// The gradients of all outputs, zeros where none flowed.
Tensors all_grads(const Vjp& c) {
  Device device = Device::CPU;
  for (int k = 0; k < c.outputs(); ++k) {
    if (c.grad(k).defined()) device = c.grad(k).device();
  }
  Tensors grads;
  for (int k = 0; k < c.outputs(); ++k) {
    grads.push_back(c.grad(k).defined() ? c.grad(k)
                                        : zero_block(c.out_sizes(k), c.out_dtype(k), device));
  }
  return grads;
}
void unbind_rule(const Call& c, Specs& out) {
  const Tensor& x = c.in[0];
  if (x.ndim() == 0) fail_index(c.name(), ": a 0-d tensor has no dimensions and cannot be unbound");
  int dim = wrapped(c.as<DimAttrs>().dim, x.ndim(), c.name());
  Dims sizes = x.sizes();
  Dims strides = x.strides();
  sizes.erase(dim);
  strides.erase(dim);
  int64_t count = x.size(dim);
  int64_t stride = x.stride(dim);
  if (count > (int64_t{1} << 26))
    fail(ErrorKind::OutOfMemory, "unbind: more than ", 1 << 26, " parts of ", x,
         " were asked for; there is no memory for so many tensors");
  out.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) out.push_back(ViewSpec{sizes, strides, i * stride});
}
void unbind_vjp(Vjp& c) {
  int64_t dim = c.as<DimAttrs>().dim;
  int only = only_grad(c);
  if (only >= 0) return c.set(0, select_backward(c.grad(only), c.sizes(0), dim, only));
  Tensors grads = all_grads(c);
  c.set(0, stack(grads, dim));
}
constexpr OpDef unbind_op = view({
    .signature = "unbind(Tensor input, int dim=0) -> Tensor[]",
    .doc = R"(All parts along a dimension, which goes away.

Args:
    dim: the dimension to take apart.
Returns: a tuple of views of the input.

>>> [part.tolist() for part in clew.tensor([[1, 2], [3, 4]]).unbind(1)]
[[1, 3], [2, 4]]
)",
    .view = unbind_rule,
    .vjp = unbind_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<DimAttrs>,
});

void split_gradient(Vjp& c, int64_t dim) {
  const int only = only_grad(c);
  if (only < 0) return c.set(0, cat(all_grads(c), dim));
  int d = wrapped(dim, c.sizes(0).size(), "split");
  int64_t start = 0;
  for (int k = 0; k < only; ++k) start += c.out_sizes(k)[d];
  c.set(0, slice_backward(c.grad(only), c.sizes(0), d, start, start + c.out_sizes(only)[d], 1));
}

struct SplitAttrs {
  int64_t split_size = 1;
  int64_t dim = 0;
  static constexpr auto members() { return std::tuple(&SplitAttrs::split_size, &SplitAttrs::dim); }
};
int splitting_dim(const Call& c, int64_t dim) {
  require(c.in[0].ndim() > 0, c.name(), ": input must have at least one dimension");
  return wrapped(dim, c.in[0].ndim(), c.name());
}
void equal_parts(const Tensor& x, int dim, int64_t length, Specs& out) {
  int64_t size = x.size(dim);
  out.reserve(static_cast<size_t>(length ? size / length + 1 : 1));
  if (size == 0) return add_counted(out, x, dim, 0, 0);
  for (int64_t at = 0; at < size;) {
    int64_t n = std::min(length, size - at);
    add_counted(out, x, dim, at, n);
    at += n;
  }
}
void split_rule(const Call& c, Specs& out) {
  const auto& a = c.as<SplitAttrs>();
  int dim = splitting_dim(c, a.dim);
  require(a.split_size > 0 || (a.split_size == 0 && c.in[0].size(dim) == 0), c.name(),
          ": split_size must be positive; got ", a.split_size, " for a dimension of size ",
          c.in[0].size(dim));
  equal_parts(c.in[0], dim, a.split_size, out);
}
void split_vjp(Vjp& c) { split_gradient(c, c.as<SplitAttrs>().dim); }

struct SizesAttrs {
  Dims split_sizes;
  int64_t dim = 0;
  static constexpr auto members() { return std::tuple(&SizesAttrs::split_sizes, &SizesAttrs::dim); }
};
void split_sizes_rule(const Call& c, Specs& out) {
  const auto& a = c.as<SizesAttrs>();
  int dim = splitting_dim(c, a.dim);
  int64_t left = c.in[0].size(dim);
  for (int64_t n : a.split_sizes) {
    require(n >= 0, c.name(), ": split sizes must not be negative; got ", a.split_sizes);
    require(n <= left, c.name(), ": split sizes must sum to ", c.in[0].size(dim),
            ", the size of dimension ", dim, "; got ", a.split_sizes);
    left -= n;
  }
  require(left == 0, c.name(), ": split sizes must sum to ", c.in[0].size(dim),
          ", the size of dimension ", dim, "; got ", a.split_sizes);
  int64_t at = 0;
  for (int64_t n : a.split_sizes) {
    add_counted(out, c.in[0], dim, at, n);
    at += n;
  }
}
void split_sizes_vjp(Vjp& c) { split_gradient(c, c.as<SizesAttrs>().dim); }

constexpr const char* split_doc = R"(Parts of a dimension, of one size or of the sizes given.

Args:
    split_size_or_sections: the size of every part but perhaps the last, or a list of sizes.
    dim: the dimension to split.
Returns: a tuple of views of the input.

>>> [part.tolist() for part in clew.split(clew.arange(5), 2)]
[[0, 1], [2, 3], [4]]
)";
constexpr const char* method_split_doc = R"(Parts of a dimension, of one size or of the sizes given.

Args:
    split_size: the size of every part but perhaps the last, or a list of sizes.
    dim: the dimension to split.
Returns: a tuple of views of the input.

>>> [part.tolist() for part in clew.arange(5).split([1, 4])]
[[0], [1, 2, 3, 4]]
)";
constexpr OpDef split_op = view({
    .signature = "split(Tensor tensor, int split_size_or_sections, int dim=0) -> Tensor[]",
    .doc = split_doc,
    .view = split_rule,
    .vjp = split_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<SplitAttrs>,
    .offer = Offer::function,
});
constexpr OpDef split_sections_op = view({
    .signature = "split(Tensor tensor, int[] split_size_or_sections, int dim=0) -> Tensor[]",
    .doc = split_doc,
    .view = split_sizes_rule,
    .vjp = split_sizes_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<SizesAttrs>,
    .offer = Offer::function,
});
constexpr OpDef split_method_op =
    also(split_op, "split(Tensor input, int split_size, int dim=0) -> Tensor[]", method_split_doc,
         Offer::method);
constexpr OpDef split_sections_method_op =
    also(split_sections_op, "split(Tensor input, int[] split_size, int dim=0) -> Tensor[]",
         method_split_doc, Offer::method);
constexpr OpDef split_with_sizes_op = view({
    .signature = "split_with_sizes(Tensor input, int[] split_sizes, int dim=0) -> Tensor[]",
    .doc = R"(Parts of a dimension of the sizes given.

Args:
    split_sizes: the size of each part; they sum to the dimension's.
    dim: the dimension to split.
Returns: a tuple of views of the input.

>>> [part.tolist() for part in clew.arange(5).split_with_sizes([1, 4])]
[[0], [1, 2, 3, 4]]
)",
    .view = split_sizes_rule,
    .vjp = split_sizes_vjp,
    .attrs = &attr_info<SizesAttrs>,
});

struct ChunkAttrs {
  int64_t chunks = 1;
  int64_t dim = 0;
  static constexpr auto members() { return std::tuple(&ChunkAttrs::chunks, &ChunkAttrs::dim); }
};
void chunk_rule(const Call& c, Specs& out) {
  const auto& a = c.as<ChunkAttrs>();
  const Tensor& x = c.in[0];
  int dim = splitting_dim(c, a.dim);
  require(a.chunks > 0, c.name(), ": chunks must be greater than 0; got ", a.chunks);
  int64_t size = x.size(dim);
  if (size == 0) {
    for (int64_t i = 0; i < a.chunks; ++i) add_counted(out, x, dim, 0, 0);
    return;
  }
  equal_parts(x, dim, size / a.chunks + (size % a.chunks != 0), out);
}
void chunk_vjp(Vjp& c) { split_gradient(c, c.as<ChunkAttrs>().dim); }
constexpr OpDef chunk_op = view({
    .signature = "chunk(Tensor input, int chunks, int dim=0) -> Tensor[]",
    .doc = R"(At most so many parts of a dimension, of equal size but perhaps the last.

Args:
    chunks: how many parts.
    dim: the dimension to split.
Returns: a tuple of views of the input.

>>> [part.tolist() for part in clew.arange(5).chunk(2)]
[[0, 1, 2], [3, 4]]
)",
    .view = chunk_rule,
    .vjp = chunk_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<ChunkAttrs>,
});

// ---- splits made of slices ----------------------------------------------------------------------

struct SectionsAttrs {
  int64_t sections = 1;
  int64_t dim = 0;
  static constexpr auto members() {
    return std::tuple(&SectionsAttrs::sections, &SectionsAttrs::dim);
  }
};
struct IndicesAttrs {
  Dims indices;
  int64_t dim = 0;
  static constexpr auto members() { return std::tuple(&IndicesAttrs::indices, &IndicesAttrs::dim); }
};
void give(Tensors parts, Tensors& outs) {
  for (Tensor& p : parts) outs.push_back(std::move(p));
}
void cut_sections(const Tensor& x, int64_t sections, int dim, std::string_view op, Tensors& outs) {
  require(sections > 0, op, ": the number of sections must be greater than 0; got ", sections);
  require(sections < (int64_t{1} << 28), op, ": too many sections; got ", sections);
  Dims sizes;
  int64_t n = x.size(dim);
  for (int64_t i = 0; i < sections; ++i) sizes.push_back(n / sections + (i < n % sections));
  give(split_with_sizes(x, sizes, dim), outs);
}
void cut_indices(const Tensor& x, const Dims& indices, int dim, Tensors& outs) {
  int64_t start = 0;
  for (int64_t end : indices) {
    outs.push_back(slice(x, dim, start, end));
    start = end;
  }
  outs.push_back(slice(x, dim, start, INT64_MAX));
}
void tensor_split_sections_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<SectionsAttrs>();
  cut_sections(c.in[0], a.sections, splitting_dim(c, a.dim), c.name(), outs);
}
void tensor_split_indices_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<IndicesAttrs>();
  cut_indices(c.in[0], a.indices, splitting_dim(c, a.dim), outs);
}
void tensor_split_tensor_run(const Call& c, Tensors& outs) {
  const Tensor& cuts = c.in[1];
  require(cuts.dtype() == DType::Int64 && cuts.ndim() <= 1, c.name(),
          ": tensor_indices_or_sections must be an int64 tensor of at most one dimension; got ",
          cuts);
  require(!cuts.is_meta(), c.name(), ": tensor_indices_or_sections must not be on the meta device");
  int dim = splitting_dim(c, c.as<DimAttrs>().dim);
  if (cuts.ndim() == 0) return cut_sections(c.in[0], item(cuts).i, dim, c.name(), outs);
  Dims indices;
  for (const int64_t n : int64_values(cuts)) indices.push_back(n);
  cut_indices(c.in[0], indices, dim, outs);
}
constexpr const char* tensor_split_doc =
    R"(Parts of a dimension: so many nearly equal ones, or cut before the given indices.

Args:
    indices_or_sections: a number of parts, or the indices to cut at.
    tensor_indices_or_sections: the same as a tensor of int64.
    sections: a number of parts.
    indices: the indices to cut at.
    dim: the dimension to split.
Returns: a tuple of views of the input.

>>> [part.tolist() for part in clew.arange(5).tensor_split(2)]
[[0, 1, 2], [3, 4]]
)";
constexpr OpDef tensor_split_sections_op = composite({
    .signature = "tensor_split(Tensor input, int indices_or_sections, int dim=0) -> Tensor[]",
    .doc = tensor_split_doc,
    .run = tensor_split_sections_run,
    .attrs = &attr_info<SectionsAttrs>,
});
constexpr OpDef tensor_split_indices_op = composite({
    .signature = "tensor_split(Tensor input, int[] indices_or_sections, int dim=0) -> Tensor[]",
    .doc = tensor_split_doc,
    .run = tensor_split_indices_run,
    .attrs = &attr_info<IndicesAttrs>,
});
constexpr OpDef tensor_split_named_sections_op = composite({
    .signature = "tensor_split(Tensor input, int sections, int dim=0) -> Tensor[]",
    .doc = tensor_split_doc,
    .run = tensor_split_sections_run,
    .attrs = &attr_info<SectionsAttrs>,
});
constexpr OpDef tensor_split_named_indices_op = composite({
    .signature = "tensor_split(Tensor input, int[] indices, int dim=0) -> Tensor[]",
    .doc = tensor_split_doc,
    .run = tensor_split_indices_run,
    .attrs = &attr_info<IndicesAttrs>,
});
constexpr OpDef tensor_split_tensor_op = composite({
    .signature =
        "tensor_split(Tensor input, Tensor tensor_indices_or_sections, int dim=0) -> Tensor[]",
    .doc = tensor_split_doc,
    .run = tensor_split_tensor_run,
    .attrs = &attr_info<DimAttrs>,
});

// hsplit, vsplit and dsplit: sections must divide the dimension.
void cut_evenly(const Call& c, int dim, int least, Tensors& outs) {
  const Tensor& x = c.in[0];
  require(x.ndim() >= least, c.name(), ": input must have at least ", least, " dimension(s); got ",
          x);
  int64_t n = *static_cast<const int64_t*>(c.attrs);
  require(n > 0 && x.size(dim) % n == 0, c.name(),
          ": the number of sections must divide the size of dimension ", dim, "; got ", n, " for ",
          x);
  cut_sections(x, n, dim, c.name(), outs);
}
void cut_at(const Call& c, int dim, int least, Tensors& outs) {
  require(c.in[0].ndim() >= least, c.name(), ": input must have at least ", least,
          " dimension(s); got ", c.in[0]);
  cut_indices(c.in[0], *static_cast<const Dims*>(c.attrs), dim, outs);
}
struct OneInt {
  int64_t n = 1;
  static constexpr auto members() { return std::tuple(&OneInt::n); }
};
struct OneList {
  Dims list;
  static constexpr auto members() { return std::tuple(&OneList::list); }
};
int horizontal(const Call& c) { return c.in[0].ndim() == 1 ? 0 : 1; }
void hsplit_run(const Call& c, Tensors& outs) { cut_evenly(c, horizontal(c), 1, outs); }
void hsplit_at_run(const Call& c, Tensors& outs) { cut_at(c, horizontal(c), 1, outs); }
void vsplit_run(const Call& c, Tensors& outs) { cut_evenly(c, 0, 2, outs); }
void vsplit_at_run(const Call& c, Tensors& outs) { cut_at(c, 0, 2, outs); }
void dsplit_run(const Call& c, Tensors& outs) { cut_evenly(c, 2, 3, outs); }
void dsplit_at_run(const Call& c, Tensors& outs) { cut_at(c, 2, 3, outs); }
constexpr const char* hsplit_doc = R"(Splits columns: dimension 1, or dimension 0 of a 1-d tensor.

Args:
    indices_or_sections: a number of parts that divides the dimension, or the indices to cut at.
Returns: a tuple of views of the input.

>>> [part.tolist() for part in clew.hsplit(clew.tensor([[1, 2], [3, 4]]), 2)]
[[[1], [3]], [[2], [4]]]
)";
constexpr const char* vsplit_doc = R"(Splits rows: dimension 0 of a tensor of at least 2 dimensions.

Args:
    indices_or_sections: a number of parts that divides the dimension, or the indices to cut at.
Returns: a tuple of views of the input.

>>> [part.tolist() for part in clew.vsplit(clew.tensor([[1, 2], [3, 4]]), 2)]
[[[1, 2]], [[3, 4]]]
)";
constexpr const char* dsplit_doc = R"(Splits dimension 2 of a tensor of at least 3 dimensions.

Args:
    indices_or_sections: a number of parts that divides the dimension, or the indices to cut at.
Returns: a tuple of views of the input.

>>> [part.tolist() for part in clew.dsplit(clew.tensor([[[1, 2]]]), 2)]
[[[[1]]], [[[2]]]]
)";
constexpr OpDef hsplit_op = composite({
    .signature = "hsplit(Tensor input, int indices_or_sections) -> Tensor[]",
    .doc = hsplit_doc,
    .run = hsplit_run,
    .attrs = &attr_info<OneInt>,
});
constexpr OpDef hsplit_at_op = composite({
    .signature = "hsplit(Tensor input, int[] indices_or_sections) -> Tensor[]",
    .doc = hsplit_doc,
    .run = hsplit_at_run,
    .attrs = &attr_info<OneList>,
});
constexpr OpDef vsplit_op = composite({
    .signature = "vsplit(Tensor input, int indices_or_sections) -> Tensor[]",
    .doc = vsplit_doc,
    .run = vsplit_run,
    .attrs = &attr_info<OneInt>,
});
constexpr OpDef vsplit_at_op = composite({
    .signature = "vsplit(Tensor input, int[] indices_or_sections) -> Tensor[]",
    .doc = vsplit_doc,
    .run = vsplit_at_run,
    .attrs = &attr_info<OneList>,
});
constexpr OpDef dsplit_op = composite({
    .signature = "dsplit(Tensor input, int indices_or_sections) -> Tensor[]",
    .doc = dsplit_doc,
    .run = dsplit_run,
    .attrs = &attr_info<OneInt>,
});
constexpr OpDef dsplit_at_op = composite({
    .signature = "dsplit(Tensor input, int[] indices_or_sections) -> Tensor[]",
    .doc = dsplit_doc,
    .run = dsplit_at_run,
    .attrs = &attr_info<OneList>,
});

constexpr const OpDef* splitting_list[] = {
    &unbind_op,
    &split_op,
    &split_sections_op,
    &split_method_op,
    &split_sections_method_op,
    &split_with_sizes_op,
    &chunk_op,
    &tensor_split_sections_op,
    &tensor_split_indices_op,
    &tensor_split_named_sections_op,
    &tensor_split_named_indices_op,
    &tensor_split_tensor_op,
    &hsplit_op,
    &hsplit_at_op,
    &vsplit_op,
    &vsplit_at_op,
    &dsplit_op,
    &dsplit_at_op,
};

}  // namespace

extern const OpList splitting_ops;
const OpList splitting_ops = op_list(splitting_list);

Tensors split_with_sizes(const Tensor& x, const Dims& split_sizes, int64_t dim) {
  Tensors outs;
  SizesAttrs a{split_sizes, dim};
  apply(split_with_sizes_op, {&x, 1}, &a, outs);
  return outs;
}
Tensors chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  Tensors outs;
  ChunkAttrs a{chunks, dim};
  apply(chunk_op, {&x, 1}, &a, outs);
  return outs;
}

}  // namespace clew
