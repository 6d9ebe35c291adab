// cat, stack and their relatives.
// May include: ops, graph, tensor, kernels.
// Invariant: inputs are promoted to one dtype; gradients are slices of the result's.
#include "ops/calls/joining.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "kernels/indexing/index.h"
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "tensor/layout.h"

namespace clew {

namespace {

// A list from Python may hold None.
void require_tensors(std::span<const Tensor> tensors, std::string_view op) {
  require(!tensors.empty(), op, ": expected a non-empty list of tensors");
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (!tensors[k].defined())
      fail_type(op, ": element ", k, " of tensors must be a Tensor; got None");
  }
}

DType promoted(std::span<const Tensor> tensors) {
  DType d = tensors[0].dtype();
  for (const Tensor& t : tensors) d = promote(d, t.dtype());
  return d;
}

bool all_channels_last(std::span<const Tensor> tensors) {
  for (const Tensor& t : tensors)
    if (t.is_contiguous() || t.ndim() != tensors[0].ndim() || !has_channels_last(t)) return false;
  return true;
}

// The distance in elements between the rows of t, where a row is all dims from `dim` on and is
// contiguous; none if rows are not evenly spaced.
std::optional<int64_t> step_of_rows(const Tensor& t, int dim) {
  int64_t dense = 1;
  for (int d = t.ndim() - 1; d >= dim; --d) {
    if (t.size(d) != 1 && t.stride(d) != dense) return {};
    dense *= t.size(d);
  }
  std::optional<int64_t> step;
  int64_t next = 0;
  for (int d = dim - 1; d >= 0; --d) {
    if (t.size(d) == 1) continue;
    if (!step)
      step = t.stride(d);
    else if (t.stride(d) != next)
      return {};
    next = t.stride(d) * t.size(d);
  }
  return step.value_or(0);
}

// Row by row when the rows of all are contiguous in one dtype, else piece by piece.
void join(const Tensor& out, std::span<const Tensor> in, int dim, const int64_t* lengths) {
  int64_t inner = 1;
  for (int d = dim + 1; d < out.ndim(); ++d) inner *= out.size(d);
  int64_t rows = 1;
  for (int d = 0; d < dim; ++d) rows *= out.size(d);
  const auto item = static_cast<int64_t>(itemsize(out.dtype()));
  bool plain = out.is_contiguous(), dense = true;
  for (const Tensor& t : in) {
    plain = plain && t.dtype() == out.dtype();
    dense = dense && t.is_contiguous();
  }
  SmallVec<const char*, 8> data;
  SmallVec<int64_t, 8> bytes, steps;
  for (size_t k = 0; plain && k < in.size(); ++k) {
    if (in[k].numel() == 0) continue;
    data.push_back(in[k]->address());
    bytes.push_back(lengths[k] * inner * item);
    if (dense) continue;
    // Stacked tensors lack the joined dim; they must be contiguous, so that their rows are evenly
    // spaced.
    const std::optional<int64_t> step = in[k].is_contiguous()        ? lengths[k] * inner
                                        : in[k].ndim() == out.ndim() ? step_of_rows(in[k], dim)
                                                                     : std::nullopt;
    plain = step.has_value();
    steps.push_back(step.value_or(0) * item);
  }
  if (plain) {
    if (data.size() > 0) {
      kernels::cat_rows(out->address(), data.data(), bytes.data(),
                        dense ? bytes.data() : steps.data(), data.size(), rows);
    }
    return;
  }
  int64_t at = 0;
  for (size_t k = 0; k < in.size(); ++k) {
    Dims sizes = out.sizes();
    sizes[dim] = lengths[k];
    if (in[k].numel()) {
      Tensor source = alias(in[k], sizes, *view_strides(in[k].sizes(), in[k].strides(), sizes));
      copy_into(alias(out, sizes, out.strides(), at * out.stride(dim)), source);
    }
    at += lengths[k];
  }
}

constexpr size_t most_joined_quickly = 8;
// At most so many dense tensors of one dtype with few elements, joined along a dim of the given
// `sizes`; each lies in memory as `rows` rows.
Tensor join_few(std::span<const Tensor> in, const Dims& sizes, int64_t rows) {
  Tensor out = empty(sizes, in[0].dtype());
  const size_t item = itemsize(out.dtype());
  char* to = out->address();
  if (rows == 1) {
    for (const Tensor& t : in) {
      const size_t bytes = static_cast<size_t>(t.numel()) * item;
      std::memcpy(to, t->address(), bytes);
      to += bytes;
    }
    return out;
  }
  const char* data[most_joined_quickly];
  int64_t bytes[most_joined_quickly];
  int count = 0;
  for (const Tensor& t : in) {
    data[count] = t->address();
    bytes[count++] = t.numel() / rows * static_cast<int64_t>(item);
  }
  kernels::cat_rows(to, data, bytes, bytes, count, rows);
  return out;
}
constexpr int64_t few_elements = 4096;
bool is_dense_beside(const Tensor& t, const Tensor& first) {
  return t.defined() && t.dtype() == first.dtype() && t.is_contiguous() && !t.is_meta() &&
         t.numel() > 0 && t.numel() <= few_elements;
}

// ---- cat ----------------------------------------------------------------------------------------

struct CatAttrs {
  int64_t dim = 0;
  Dims lengths;  // of the inputs along dim, which backward needs of all of them
  static constexpr auto members() { return std::tuple(&CatAttrs::dim, &CatAttrs::lengths); }
};
void cat_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<CatAttrs>();
  require_tensors(c.in, "cat");
  const Tensor& first = c.in[0];
  require(first.ndim() > 0, "cat: 0-d tensors cannot be joined; use stack()");
  require(a.lengths.size() == static_cast<int>(c.in.size()),
          "cat: one length for each tensor is required");
  int dim = wrapped(a.dim, first.ndim(), "cat");
  Dims sizes = first.sizes();
  sizes[dim] = 0;
  for (size_t k = 0; k < c.in.size(); ++k) {
    const Tensor& t = c.in[k];
    bool fits = t.ndim() == first.ndim();
    for (int d = 0; fits && d < t.ndim(); ++d) {
      fits = d == dim ? t.size(d) == a.lengths[static_cast<int>(k)] : t.size(d) == first.size(d);
    }
    require(fits, "cat: sizes must match except in dimension ", dim, "; got ", first, " and ", t,
            " (number ", k, ")");
    const Checked length = Checked(sizes[dim]) + t.size(dim);
    require(length.fits, "cat: the sizes along dimension ", dim,
            " add up to more than an int64 can count; got ", first, " and ", t, " (number ", k,
            ")");
    sizes[dim] = length.value;
  }
  OutSpec& spec = out.add(promoted(c.in), sizes);
  if (all_channels_last(c.in)) spec.strides = channels_last_strides(sizes);
}
void cat_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<CatAttrs>();
  join(outs[0], c.in, wrapped(a.dim, outs[0].ndim(), "cat"), a.lengths.data());
}
Tensor cat_few(std::span<const Tensor> in, int64_t given) {
  if (in.empty() || in.size() > most_joined_quickly || !in[0].defined()) return {};
  const Tensor& first = in[0];
  const int n = first.ndim();
  const int64_t at = given < 0 ? given + n : given;
  if (at < 0 || at >= n) return {};
  const auto dim = static_cast<int>(at);
  int64_t length = 0;
  for (const Tensor& t : in) {
    if (!is_dense_beside(t, first) || t.ndim() != n) return {};
    for (int d = 0; t->shape != first->shape && d < n; ++d)
      if (d != dim && t.size(d) != first.size(d)) return {};
    length += t.size(dim);
  }
  Dims sizes = first.sizes();
  int64_t rows = 1;
  for (int d = 0; d < dim; ++d) rows *= sizes[d];
  sizes[dim] = length;
  return join_few(in, sizes, rows);
}
Tensor joined_quick(const Call& c) {
  const auto& a = c.as<CatAttrs>();
  if (a.lengths.size() != static_cast<int>(c.in.size())) return {};
  const int64_t* lengths = a.lengths.data();
  for (const Tensor& t : c.in)
    if (const int64_t dim = a.dim + (a.dim < 0 ? t.ndim() : 0);
        dim < 0 || dim >= t.ndim() || t.size(static_cast<int>(dim)) != *lengths++)
      return {};
  return cat_few(c.in, a.dim);
}
Tensor cat_quick(const Call& c) { return cat_few(c.in, c.as<DimAttrs>().dim); }
void cat_vjp(Vjp& c) {
  const auto& a = c.as<CatAttrs>();
  int64_t at = 0;
  for (int k = 0; k < a.lengths.size(); ++k) {
    if (c.needs(k)) c.set(k, slice(c.grad(), a.dim, at, at + a.lengths[k]));
    at += a.lengths[k];
  }
}
constexpr OpDef joined_op = general({
    .signature = "_cat(Tensor[] tensors, int dim, int[] lengths) -> Tensor",
    .doc = "Joins tensors along a dimension, along which they have the given lengths.",
    .shape = cat_shape,
    .cpu = cat_cpu,
    .quick = joined_quick,
    .vjp = cat_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<CatAttrs>,
    .takes_stored = true,
    .autocast = Autocast::widest,
    .offer = Offer::function,
    .flops = "0",
});

void cat_run(const Call& c, Tensors& outs) { outs.push_back(cat(c.in, c.as<DimAttrs>().dim)); }
constexpr OpDef cat_op = composite({
    .signature = "cat(Tensor[] tensors, int dim=0) -> Tensor",
    .doc = R"(Joins tensors along a dimension they have.

Args:
    tensors: tensors of equal sizes except along `dim`; 1-d ones without elements are passed over.
    dim: the dimension.
Returns: a new tensor of the promoted dtype.

>>> clew.cat((clew.tensor([1, 2]), clew.tensor([3]))).tolist()
[1, 2, 3]
)",
    .quick = cat_quick,
    .run = cat_run,
    .attrs = &attr_info<DimAttrs>,
    .takes_stored = true,
    .offer = Offer::function,
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::apart,
});
constexpr OpDef concat_op = also(cat_op, "concat(Tensor[] tensors, int dim=0) -> Tensor",
                                 R"(Joins tensors along a dimension they have; the same as `cat`.

>>> clew.concat((clew.tensor([1, 2]), clew.tensor([3]))).tolist()
[1, 2, 3]
)");
constexpr OpDef concatenate_op =
    also(cat_op, "concatenate(Tensor[] tensors, int dim=0) -> Tensor",
         R"(Joins tensors along a dimension they have; the same as `cat`.

>>> clew.concatenate((clew.tensor([1, 2]), clew.tensor([3]))).tolist()
[1, 2, 3]
)");

// ---- stack --------------------------------------------------------------------------------------

void stack_shape(const Call& c, OutSpecs& out) {
  require_tensors(c.in, c.name());
  const Tensor& first = c.in[0];
  for (size_t k = 0; k < c.in.size(); ++k) {
    require(c.in[k].sizes() == first.sizes(), c.name(), ": tensors must have equal sizes; got ",
            first, " and ", c.in[k], " (number ", k, ")");
  }
  int dim = wrapped(c.as<DimAttrs>().dim, first.ndim() + 1, c.name());
  const auto count = static_cast<int64_t>(c.in.size());
  Dims sizes = first.sizes();
  sizes.insert(dim, count);
  OutSpec& spec = out.add(promoted(c.in), sizes);
  if (dim == first.ndim() || !all_channels_last(c.in)) return;
  // The strides are those of a result joined along the next dim, whose outer part becomes the new
  // dim.
  Dims joined = first.sizes();
  joined[dim] *= count;
  Dims strides = channels_last_strides(joined);
  strides.insert(dim, strides[dim] * first.size(dim));
  spec.strides = strides;
}
void stack_cpu(const Call& c, Tensors& outs) {
  int dim = wrapped(c.as<DimAttrs>().dim, outs[0].ndim(), c.name());
  std::vector<int64_t> ones(c.in.size(), 1);
  join(outs[0], c.in, dim, ones.data());
}
Tensor stack_quick(const Call& c) {
  if (c.in.empty() || c.in.size() > most_joined_quickly || !c.in[0].defined()) return {};
  const Tensor& first = c.in[0];
  const int64_t given = c.as<DimAttrs>().dim;
  const int64_t dim = given < 0 ? given + first.ndim() + 1 : given;
  if (dim < 0 || dim > first.ndim()) return {};
  for (const Tensor& t : c.in)
    if (!is_dense_beside(t, first) || !t.has_sizes_of(first)) return {};
  Dims sizes = first.sizes();
  int64_t rows = 1;
  for (int d = 0; d < dim; ++d) rows *= sizes[d];
  sizes.insert(static_cast<int>(dim), static_cast<int64_t>(c.in.size()));
  return join_few(c.in, sizes, rows);
}
void stack_vjp(Vjp& c) {
  int64_t dim = c.as<DimAttrs>().dim;
  for (int k = 0; k < c.inputs(); ++k) {
    if (c.needs(k)) c.set(k, select(c.grad(), dim, k));
  }
}
constexpr OpDef stack_op = general({
    .signature = "stack(Tensor[] tensors, int dim=0) -> Tensor",
    .doc = R"(Joins tensors of equal sizes along a new dimension.

Args:
    tensors: the tensors.
    dim: where the new dimension stands in the result.
Returns: a new tensor of the promoted dtype.

>>> clew.stack((clew.tensor([1, 2]), clew.tensor([3, 4])), 1).tolist()
[[1, 3], [2, 4]]
)",
    .shape = stack_shape,
    .cpu = stack_cpu,
    .quick = stack_quick,
    .vjp = stack_vjp,
    .batch = batch_stack,
    .attrs = &attr_info<DimAttrs>,
    .takes_stored = true,
    .autocast = Autocast::widest,
    .offer = Offer::function,
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::apart,
    .flops = "0",
});

// ---- hstack, vstack, dstack, column_stack -------------------------------------------------------

Tensor at_least(const Tensor& x, int ndim) {
  int have = x.ndim();
  if (have >= ndim) return x;
  if (ndim == 1) return reshape(x, {1});
  if (ndim == 2) return have == 0 ? reshape(x, {1, 1}) : unsqueeze(x, 0);
  if (have == 0) return reshape(x, {1, 1, 1});
  return have == 1 ? unsqueeze(unsqueeze(x, 0), -1) : unsqueeze(x, -1);
}
void join_at_least(const Call& c, int ndim, Tensors& outs, int dim) {
  require_tensors(c.in, c.name());
  if (std::all_of(c.in.begin(), c.in.end(), [&](const Tensor& t) { return t.ndim() >= ndim; }))
    return outs.push_back(cat(c.in, dim));
  Tensors parts;
  for (const Tensor& t : c.in) parts.push_back(at_least(t, ndim));
  outs.push_back(cat(parts, dim));
}
void hstack_run(const Call& c, Tensors& outs) {
  require_tensors(c.in, c.name());
  bool flat = c.in[0].ndim() <= 1;
  join_at_least(c, 1, outs, flat ? 0 : 1);
}
void vstack_run(const Call& c, Tensors& outs) { join_at_least(c, 2, outs, 0); }
void dstack_run(const Call& c, Tensors& outs) { join_at_least(c, 3, outs, 2); }
void column_stack_run(const Call& c, Tensors& outs) {
  require_tensors(c.in, c.name());
  Tensors parts;
  for (const Tensor& t : c.in) parts.push_back(t.ndim() <= 1 ? reshape(t, {t.numel(), 1}) : t);
  outs.push_back(cat(parts, 1));
}
constexpr OpDef hstack_op = composite({
    .signature = "hstack(Tensor[] tensors) -> Tensor",
    .doc = R"(Joins tensors side by side: along dimension 0 when 1-d, else along dimension 1.

>>> clew.hstack((clew.tensor([1, 2]), clew.tensor([3]))).tolist()
[1, 2, 3]
)",
    .run = hstack_run,
    .offer = Offer::function,
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::apart,
});
constexpr const char* vstack_doc = R"(Joins tensors on top of each other, 1-d ones as rows.

>>> clew.vstack((clew.tensor([1, 2]), clew.tensor([3, 4]))).tolist()
[[1, 2], [3, 4]]
)";
constexpr OpDef vstack_op = composite({
    .signature = "vstack(Tensor[] tensors) -> Tensor",
    .doc = vstack_doc,
    .run = vstack_run,
    .offer = Offer::function,
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::apart,
});
constexpr OpDef row_stack_op = also(vstack_op, "row_stack(Tensor[] tensors) -> Tensor",
                                    R"(Joins tensors one below the other; another name of `vstack`.

>>> clew.row_stack((clew.tensor([1, 2]), clew.tensor([3, 4]))).tolist()
[[1, 2], [3, 4]]
)");
constexpr OpDef dstack_op = composite({
    .signature = "dstack(Tensor[] tensors) -> Tensor",
    .doc = R"(Joins tensors along the third dimension.

>>> clew.dstack((clew.tensor([1, 2]), clew.tensor([3, 4]))).tolist()
[[[1, 3], [2, 4]]]
)",
    .run = dstack_run,
    .offer = Offer::function,
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::apart,
});
constexpr OpDef column_stack_op = composite({
    .signature = "column_stack(Tensor[] tensors) -> Tensor",
    .doc = R"(Joins tensors side by side, 1-d ones as columns.

>>> clew.column_stack((clew.tensor([1, 2]), clew.tensor([3, 4]))).tolist()
[[1, 3], [2, 4]]
)",
    .run = column_stack_run,
    .offer = Offer::function,
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::apart,
});

constexpr const OpDef* joining_list[] = {
    &joined_op, &cat_op,    &concat_op,    &concatenate_op, &stack_op,
    &hstack_op, &vstack_op, &row_stack_op, &dstack_op,      &column_stack_op,
};

}  // namespace

extern const OpList joining_ops;
const OpList joining_ops = op_list(joining_list);

Tensor cat(std::span<const Tensor> tensors, int64_t dim) {
  if (tensors.empty()) fail_value("cat: expected a non-empty list of tensors");
  require_tensors(tensors, "cat");
  CatAttrs a{dim, {}};
  // A 1-d tensor without elements joins with anything.
  bool any_full = false, any_empty = false, vectors = true;
  for (const Tensor& t : tensors) {
    const bool empty = t.ndim() == 1 && t.size(0) == 0;
    any_full = any_full || !empty;
    any_empty = any_empty || empty;
    vectors = vectors && t.ndim() == 1;
  }
  Tensors full;
  std::span<const Tensor> kept = tensors;
  if (any_full && any_empty && !vectors) {
    Dims none;  // sizes of an empty one that has a history to keep
    for (const Tensor& t : tensors)
      if (t.ndim() > 1) none = t.sizes();
    if (none.size() > 0) none[wrapped(dim, none.size(), "cat")] = 0;
    for (const Tensor& t : tensors) {
      if (t.ndim() != 1 || t.size(0) != 0)
        full.push_back(t);
      else if (none.size() > 0 && modes.grad && t.requires_grad())
        full.push_back(reshape(t, none));
    }
    kept = full;
  }
  require(kept[0].ndim() > 0, "cat: 0-d tensors cannot be joined; use stack()");
  // If all inputs are empty vectors, any dim is accepted, just as empty vectors are accepted beside
  // other tensors.
  if (!any_full) a.dim = dim = 0;
  int d = wrapped(dim, kept[0].ndim(), "cat");
  for (const Tensor& t : kept) a.lengths.push_back(d < t.ndim() ? t.size(d) : 0);
  Tensor out = apply_one(joined_op, kept, &a);
  // Skipped empty vectors still take part in type promotion.
  return kept.size() == tensors.size() ? out : to_dtype(out, promoted(tensors));
}
Tensor stack(std::span<const Tensor> tensors, int64_t dim) {
  const DimAttrs a{dim};
  return apply_one(stack_op, tensors, &a);
}

}  // namespace clew
