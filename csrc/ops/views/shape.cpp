// Views that change the shape: view, reshape, expand, squeeze, unsqueeze, flatten ... and
// contiguous.
// May include: ops, graph, tensor, kernels.
// Invariant: a view rule only computes sizes, strides and offset; no element is read or moved in
// this file.
#include "ops/calls/shape.h"

#include "base/checked.h"
#include "graph/batch.h"
#include "graph/inplace.h"
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/rules.h"
#include "ops/views/specs.h"

namespace clew {

std::optional<Dims> view_strides(const Dims& sizes, const Dims& strides, const Dims& target) {
  Dims out(target.size());
  int64_t total = 1;
  for (int64_t s : sizes) total *= s;
  if (total == 0) return sizes == target ? strides : contiguous_strides(target);
  int at = target.size() - 1;
  int64_t base = sizes.empty() ? 1 : strides.back();
  int64_t chunk = 1;  // elements of the run of input dims that lie regularly in memory
  int64_t filled = 1;
  auto fill = [&] {
    while (at >= 0 && (filled < chunk || target[at] == 1)) {
      out[at] = filled * base;
      filled *= target[at--];
    }
    return filled == chunk;
  };
  for (int d = sizes.size() - 1; d >= 0; --d) {
    chunk *= sizes[d];
    bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != chunk * base);
    if (!ends) continue;
    if (!fill()) return {};
    if (d > 0) {
      base = strides[d - 1];
      chunk = filled = 1;
    }
  }
  if (sizes.empty()) fill();
  if (at != -1) return {};
  return out;
}

Dims infer_size(const Dims& target, int64_t numel, std::string_view op) {
  Dims out = target;
  int unknown = -1;
  Checked product = 1;
  for (int i = 0; i < target.size(); ++i) {
    if (target[i] == -1) {
      require(unknown < 0, op, ": only one dimension can be inferred; got shape ", target);
      unknown = i;
    } else {
      require(target[i] >= 0, op, ": sizes must be at least 0 (one may be -1); got shape ", target);
      product *= target[i];
    }
  }
  require(product.fits, op, ": shape ", target, " has more elements than an int64 can count");
  const int64_t known = product.value;
  if (unknown >= 0) {
    require(known != 0, op, ": -1 is ambiguous beside a dimension of 0 elements; got shape ",
            target);
    require(numel % known == 0, op, ": shape ", target, " is invalid for an input of ", numel,
            " elements");
    out[unknown] = numel / known;
  } else {
    require(known == numel, op, ": shape ", target, " is invalid for an input of ", numel,
            " elements");
  }
  return out;
}

namespace {

void back_to_shape(Vjp& c) { c.set(0, reshape(c.grad(), c.sizes(0))); }

// ---- view, reshape, contiguous ------------------------------------------------------------------

void view_rule(const Call& c, Specs& out) {
  const Tensor& x = c.in[0];
  Dims size = infer_size(c.as<SizeAttrs>().size, x.numel(), c.name());
  std::optional<Dims> strides = view_strides(x.sizes(), x.strides(), size);
  require(strides.has_value(), c.name(), ": shape ", size, " is not compatible with the strides ",
          x.strides(), " of the input of shape ", x.sizes(),
          " (a dimension spans two separate runs of memory); use reshape()");
  add_spec(out, std::move(size), std::move(*strides));
}
constexpr OpDef view_op = view({
    .signature = "view(Tensor input, int[]* size) -> Tensor",
    .doc = R"(The same elements under another shape, without copying.

One size may be -1 and is then inferred. Fails where the strides allow no view;
`reshape` copies there.

Args:
    size: the new shape.
    dtype: read the same bytes as this dtype instead.
Returns: a view of the input.

>>> clew.arange(6).view(2, -1).tolist()
[[0, 1, 2], [3, 4, 5]]
)",
    .view = view_rule,
    .vjp = back_to_shape,
    .batch = batch_sizes,
    .attrs = &attr_info<SizeAttrs>,
    .offer = Offer::method,
});

void contiguous_cpu(const Call& c, Tensors& outs) { copy_into(outs[0], c.in[0]); }
constexpr OpDef compact_op = general({
    .signature = "_contiguous(Tensor input) -> Tensor",
    .doc = "A copy whose elements lie in row-major order.",
    .shape = same_shape,
    .cpu = contiguous_cpu,
    .vjp = same_vjp,
    .batch = batch_leading,
    .rows = rows_of_first,
    .takes_stored = true,
    .offer = Offer::function,
    .flops = "0",
});
void contiguous_run(const Call& c, Tensors& outs) { outs.push_back(contiguous(c.in[0])); }
constexpr OpDef contiguous_op = composite({
    .signature = "contiguous(Tensor input) -> Tensor",
    .doc = R"(The tensor itself when its elements lie in row-major order, else a copy that does.

Returns: a contiguous tensor.

>>> clew.ones(2, 3).t().contiguous().stride()
(2, 1)
)",
    .run = contiguous_run,
    .offer = Offer::method,
});

void reshape_run(const Call& c, Tensors& outs) {
  outs.push_back(reshape(c.in[0], c.as<SizeAttrs>().size));
}
constexpr OpDef reshape_op = composite({
    .signature = "reshape(Tensor input, int[]* shape) -> Tensor",
    .doc = R"(The same elements under another shape: a view where possible, else a copy.

Args:
    shape: the new shape; one size may be -1 and is then inferred.
Returns: a tensor of that shape.

>>> clew.arange(6).reshape(3, 2).tolist()
[[0, 1], [2, 3], [4, 5]]
)",
    .run = reshape_run,
    .attrs = &attr_info<SizeAttrs>,
});
void view_as_run(const Call& c, Tensors& outs) { outs.push_back(view(c.in[0], c.in[1].sizes())); }
constexpr OpDef view_as_op = composite({
    .signature = "view_as(Tensor input, Tensor other) -> Tensor",
    .doc = R"(A view of the input in the shape of other: `input.view(other.size())`.

>>> clew.arange(4).view_as(clew.ones(2, 2)).tolist()
[[0, 1], [2, 3]]
)",
    .run = view_as_run,
    .offer = Offer::method,
});
void reshape_as_run(const Call& c, Tensors& outs) {
  outs.push_back(reshape(c.in[0], c.in[1].sizes()));
}
constexpr OpDef reshape_as_op = composite({
    .signature = "reshape_as(Tensor input, Tensor other) -> Tensor",
    .doc = R"(The input in the shape of other: `input.reshape(other.size())`.

>>> clew.arange(4).reshape_as(clew.ones(2, 2)).tolist()
[[0, 1], [2, 3]]
)",
    .run = reshape_as_run,
    .offer = Offer::method,
});
void ravel_run(const Call& c, Tensors& outs) { outs.push_back(reshape(contiguous(c.in[0]), {-1})); }
constexpr OpDef ravel_op = composite({
    .signature = "ravel(Tensor input) -> Tensor",
    .doc = R"(The elements in one dimension; a view where possible.

>>> clew.ones(2, 3).ravel().shape[0]
6
)",
    .run = ravel_run,
});

struct FlattenAttrs {
  int64_t start_dim = 0;
  int64_t end_dim = -1;
  static constexpr auto members() {
    return std::tuple(&FlattenAttrs::start_dim, &FlattenAttrs::end_dim);
  }
};
void flatten_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<FlattenAttrs>();
  const Tensor& x = c.in[0];
  int first = wrapped(a.start_dim, x.ndim(), c.name());
  int last = wrapped(a.end_dim, x.ndim(), c.name());
  require(first <= last, c.name(), ": start_dim must not come after end_dim; got ", a.start_dim,
          " and ", a.end_dim);
  if (x.ndim() == 0) return outs.push_back(reshape(x, {1}));
  if (first == last) return outs.push_back(x);
  Dims size;
  int64_t joined = 1;
  for (int d = 0; d < x.ndim(); ++d) {
    if (d >= first && d <= last) joined *= x.size(d);
    if (d < first || d > last) size.push_back(x.size(d));
    if (d == last) size.push_back(joined);
  }
  outs.push_back(reshape(x, size));
}
constexpr OpDef flatten_op = composite({
    .signature = "flatten(Tensor input, int start_dim=0, int end_dim=-1) -> Tensor",
    .doc = R"(Joins a range of dimensions into one.

Args:
    start_dim: the first dimension of the range.
    end_dim: the last dimension of the range.
Returns: a view where possible, else a copy.

>>> list(clew.ones(2, 3, 4).flatten(1).shape)
[2, 12]
)",
    .run = flatten_run,
    .attrs = &attr_info<FlattenAttrs>,
});

struct UnflattenAttrs {
  int64_t dim = 0;
  Dims sizes;
  static constexpr auto members() {
    return std::tuple(&UnflattenAttrs::dim, &UnflattenAttrs::sizes);
  }
};
void unflatten_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<UnflattenAttrs>();
  const Tensor& x = c.in[0];
  require(x.ndim() > 0, c.name(), ": input must have at least one dimension");
  require(!a.sizes.empty(), c.name(), ": sizes must not be empty");
  int dim = wrapped(a.dim, x.ndim(), c.name());
  Dims parts = infer_size(a.sizes, x.size(dim), c.name());
  Dims size;
  for (int d = 0; d < x.ndim(); ++d) {
    if (d != dim)
      size.push_back(x.size(d));
    else
      for (int64_t s : parts) size.push_back(s);
  }
  outs.push_back(view(x, size));
}
constexpr OpDef unflatten_op = composite({
    .signature = "unflatten(Tensor input, int dim, int[] sizes) -> Tensor",
    .doc = R"(Splits one dimension into several.

Args:
    dim: the dimension to split.
    sizes: the sizes it becomes; one may be -1.
Returns: a view of the input.

>>> list(clew.ones(3, 4).unflatten(1, (2, -1)).shape)
[3, 2, 2]
)",
    .run = unflatten_run,
    .attrs = &attr_info<UnflattenAttrs>,
});

// ---- expand, squeeze, unsqueeze -----------------------------------------------------------------

void expand_rule(const Call& c, Specs& out) {
  const Tensor& x = c.in[0];
  const Dims& want = c.as<SizeAttrs>().size;
  int lead = want.size() - x.ndim();
  require(lead >= 0, c.name(), ": size must have at least as many dimensions as the input; got ",
          want, " for ", x);
  Dims sizes(want.size());
  Dims strides(want.size());
  for (int i = 0; i < want.size(); ++i) {
    int64_t w = want[i];
    if (i < lead) {
      require(w >= 0, c.name(),
              ": a size of -1 keeps an existing dimension and cannot stand for a new one; got ",
              want, " for ", x);
      sizes[i] = w;
      continue;  // stride 0
    }
    int64_t have = x.size(i - lead);
    require(w == -1 || w == have || (have == 1 && w >= 0), c.name(), ": size ", want,
            " must equal the input's in dimension ", i, " or the input's must be 1; got ", x);
    sizes[i] = w == -1 ? have : w;
    strides[i] = sizes[i] == have ? x.stride(i - lead) : 0;
  }
  add_spec(out, std::move(sizes), std::move(strides));
}
constexpr OpDef expand_op = view({
    .signature = "expand(Tensor input, int[]* size) -> Tensor",
    .doc = R"(Repeats dimensions of size 1 without copying.

Args:
    size: the new shape; -1 keeps a dimension, further dimensions may stand in front.
Returns: a view in which repeated elements share memory.

>>> clew.tensor([[1], [2]]).expand(2, 3).tolist()
[[1, 1, 1], [2, 2, 2]]
)",
    .view = expand_rule,
    .vjp = same_vjp,  // the engine sums a gradient down to the input's shape
    .batch = batch_expand,
    .attrs = &attr_info<SizeAttrs>,
    .offer = Offer::method,
});
constexpr OpDef broadcast_to_op =
    also(expand_op, "broadcast_to(Tensor input, int[]* size) -> Tensor",
         R"(Repeats dimensions of size 1 without copying; the same as `expand`.

>>> clew.tensor([1, 2]).broadcast_to((2, 2)).tolist()
[[1, 2], [1, 2]]
)",
         Offer::both);
void expand_as_run(const Call& c, Tensors& outs) {
  outs.push_back(expand(c.in[0], c.in[1].sizes()));
}
constexpr OpDef expand_as_op = composite({
    .signature = "expand_as(Tensor input, Tensor other) -> Tensor",
    .doc = R"(The input expanded to the shape of other: `input.expand(other.size())`.

>>> clew.tensor([1, 2]).expand_as(clew.ones(2, 2)).tolist()
[[1, 2], [1, 2]]
)",
    .run = expand_as_run,
    .offer = Offer::method,
});

struct SqueezeAttrs {
  std::optional<Dims> dim;
  static constexpr auto members() { return std::tuple(&SqueezeAttrs::dim); }
};
void squeeze_rule(const Call& c, Specs& out) {
  const Tensor& x = c.in[0];
  const auto& dim = c.as<SqueezeAttrs>().dim;
  uint64_t chosen = dim ? 0 : ~uint64_t{0};
  if (dim) {
    for (int64_t d : *dim) {
      uint64_t bit = uint64_t{1} << wrapped(d, x.ndim(), c.name());
      require(!(chosen & bit), c.name(), ": dim ", d, " appears twice");
      chosen |= bit;
    }
  }
  ViewSpec& s = out.emplace_back();
  for (int d = 0; d < x.ndim(); ++d) {
    if (x.size(d) == 1 && (chosen >> d & 1)) continue;
    s.sizes.push_back(x.size(d));
    s.strides.push_back(x.stride(d));
  }
}
constexpr OpDef squeeze_op = view({
    .signature = "squeeze(Tensor input, int[]?* dim=None) -> Tensor",
    .doc = R"(Drops dimensions of size 1.

Args:
    dim: the dimension or dimensions to look at; all when not given.
Returns: a view of the input.

>>> list(clew.ones(1, 2, 1).squeeze(0).shape)
[2, 1]
)",
    .view = squeeze_rule,
    .vjp = back_to_shape,
    .batch = batch_squeeze,
    .attrs = &attr_info<SqueezeAttrs>,
});

void unsqueeze_rule(const Call& c, Specs& out) {
  const Tensor& x = c.in[0];
  int dim = wrapped(c.as<DimAttrs>().dim, x.ndim() + 1, c.name());
  Dims sizes = x.sizes();
  Dims strides = x.strides();
  strides.insert(dim, dim < x.ndim() ? x.size(dim) * x.stride(dim) : 1);
  sizes.insert(dim, 1);
  add_spec(out, std::move(sizes), std::move(strides));
}
constexpr OpDef unsqueeze_op = view({
    .signature = "unsqueeze(Tensor input, int dim) -> Tensor",
    .doc = R"(Puts a dimension of size 1 in.

Args:
    dim: where it stands in the result.
Returns: a view of the input.

>>> list(clew.ones(2, 3).unsqueeze(1).shape)
[2, 1, 3]
)",
    .view = unsqueeze_rule,
    .vjp = back_to_shape,
    .batch = batch_unsqueeze,
    .attrs = &attr_info<DimAttrs>,
});

// ---- in-place changes of shape ------------------------------------------------------------------

void adopt_run(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  const Tensor& shown = c.in[1];
  require(shown->storage == x->storage && shown.dtype() == x.dtype(), c.name(),
          ": the second tensor must be a view of the first");
  if (x->flags & flag_batched) {
    Tensor inner = physical(shown);
    std::swap(x->base, *reinterpret_cast<TensorObj**>(&inner));
  } else {
    check_inplace(x, "in-place change of shape", shown.requires_grad());
  }
  TensorObj* p = x.get();
  p->offset = shown->offset;
  take_shape(p, ShapeRef::borrow(shown->shape));
  bump_version(x);
  if (shown->grad_fn) set_grad_fn(x, shown->grad_fn, shown->output_nr);
  if (p->base && !(p->flags & flag_batched)) p->view_version = p->storage->version;
  outs.push_back(x);
}
constexpr OpDef adopt_op = composite({
    .signature = "_adopt(Tensor input, Tensor view) -> Tensor",
    .doc = "Gives the input the shape and history of a view of it: what squeeze_, t_ and the like "
           "are made of.",
    .run = adopt_run,
    .offer = Offer::function,
});

constexpr const OpDef* shape_list[] = {
    &adopt_op,   &view_op,         &reshape_op,   &contiguous_op, &compact_op,
    &view_as_op, &reshape_as_op,   &ravel_op,     &flatten_op,    &unflatten_op,
    &expand_op,  &broadcast_to_op, &expand_as_op, &squeeze_op,    &unsqueeze_op,
};

}  // namespace

extern const OpList shape_ops;
const OpList shape_ops = op_list(shape_list);

Tensor view(const Tensor& x, const Dims& size) { return apply(view_op, {x}, SizeAttrs{size}); }
Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : apply(compact_op, {x}); }
Tensor contiguous_copy(const Tensor& x) { return apply(compact_op, {x}); }
Tensor written_out(const Tensor& x) { return overlaps_itself(x) ? contiguous_copy(x) : x; }
Tensor reshape(const Tensor& x, const Dims& size) {
  Dims full = infer_size(size, x.numel(), "reshape");
  if (x.is_contiguous() || view_strides(x.sizes(), x.strides(), full))
    return apply(view_op, {x}, SizeAttrs{full});
  return apply(view_op, {apply(compact_op, {x})}, SizeAttrs{full});
}
Tensor expand(const Tensor& x, const Dims& size) { return apply(expand_op, {x}, SizeAttrs{size}); }
Tensor squeeze(const Tensor& x) { return apply(squeeze_op, {x}, SqueezeAttrs{}); }
Tensor squeeze(const Tensor& x, const Dims& dims) {
  return apply(squeeze_op, {x}, SqueezeAttrs{dims});
}
Tensor unsqueeze(const Tensor& x, int64_t dim) { return apply(unsqueeze_op, {x}, DimAttrs{dim}); }

}  // namespace clew
