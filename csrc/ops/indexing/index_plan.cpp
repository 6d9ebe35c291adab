// From what stands in brackets to one op: basic parts in one view, index tensors in one list of
// places.
// May include: ops, graph, tensor, kernels.
// Invariant: a plan's places are in range and not negative.
#include <algorithm>

#include "base/checked.h"
#include "kernels/indexing/index.h"
#include "kernels/indexing/index_few.h"
#include "ops/batch_rules.h"
#include "ops/calls/indexing.h"
#include "ops/calls/shape.h"
#include "tensor/kernel_frame.h"

namespace clew {

namespace {

// ---- basic parts --------------------------------------------------------------------------------

ViewSpec part_of(const Dims& sizes, const Dims& strides, const BasicIndex& a, std::string_view op) {
  int ndim = sizes.size();
  require(a.start.size() == ndim && a.step.size() == ndim && a.length.size() == ndim, op,
          ": start, step and length must have one entry for each of the ", ndim, " dimensions");
  ViewSpec s;
  auto add_new = [&] {
    while (s.sizes.size() < max_dims && (static_cast<uint64_t>(a.added) >> s.sizes.size() & 1)) {
      s.sizes.push_back(1);
      s.strides.push_back(0);
    }
  };
  for (int d = 0; d < ndim; ++d) {
    bool empty = a.length[d] == 0;
    bool inside = a.start[d] >= 0 && a.step[d] >= 0 && a.length[d] >= 0 && a.length[d] <= sizes[d];
    if (inside && empty) inside = a.start[d] <= sizes[d] && a.step[d] > 0;
    if (inside && !empty) {
      const Checked span = Checked(a.length[d] - 1) * a.step[d];
      inside = a.start[d] < sizes[d] && span.at_most(sizes[d] - a.start[d] - 1);
    }
    if (!inside) {
      fail_index(op, ": the part reaches beyond dimension ", d, " with size ", sizes[d]);
    }
    if (!empty) s.offset += a.start[d] * strides[d];
    if (a.step[d] == 0) continue;
    add_new();
    s.sizes.push_back(a.length[d]);
    s.strides.push_back(a.length[d] > 1 ? strides[d] * a.step[d] : strides[d]);
  }
  add_new();
  // A new dimension gets the stride that a dense tensor would have there.
  for (int k = s.sizes.size() - 1; a.added && k >= 0; --k) {
    if (!(static_cast<uint64_t>(a.added) >> k & 1)) continue;
    s.strides[k] = k + 1 < s.sizes.size() ? s.sizes[k + 1] * s.strides[k + 1] : 1;
  }
  for (int64_t n : s.sizes) {
    if (n == 0) s.offset = 0;
  }
  return s;
}
void basic_rule(const Call& c, std::vector<ViewSpec>& out) {
  out.push_back(part_of(c.in[0].sizes(), c.in[0].strides(), c.as<BasicIndex>(), c.name()));
}

struct BasicBackward {
  Dims size;
  Dims start;
  Dims step;
  Dims length;
  int64_t added = 0;
  BasicIndex part() const { return {start, step, length, added}; }
  static constexpr auto members() {
    return std::tuple(&BasicBackward::size, &BasicBackward::start, &BasicBackward::step,
                      &BasicBackward::length, &BasicBackward::added);
  }
};
void basic_backward_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<BasicBackward>();
  for (int64_t n : a.size) require(n >= 0, c.name(), ": sizes must not be negative; got ", a.size);
  Dims want = part_of(a.size, a.size, a.part(), c.name()).sizes;
  require(c.in[0].sizes() == want, c.name(), ": grad must have shape ", want, "; got ", c.in[0]);
  out.add(c.in[0].dtype(), a.size);
}
void basic_backward_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<BasicBackward>();
  ViewSpec s = part_of(a.size, outs[0].strides(), a.part(), c.name());
  fill_(outs[0], Scalar(0));
  copy_into(alias(outs[0], s.sizes, s.strides, s.offset), c.in[0]);
}
void basic_backward_vjp(Vjp& c) { c.set(0, basic_index(c.grad(), c.as<BasicBackward>().part())); }
constexpr OpDef basic_backward_op = general({
    .signature = "_getitem_backward(Tensor input, int[] size, int[] start, int[] step, int[] "
                 "length, int added) -> Tensor",
    .doc = "Zeros of the given size with the input put where `_getitem` would read.",
    .shape = basic_backward_shape,
    .cpu = basic_backward_cpu,
    .vjp = basic_backward_vjp,
    .attrs = &attr_info<BasicBackward>,
    .takes_stored = true,
    .offer = Offer::function,
    .flops = "0",
});
void basic_vjp(Vjp& c) {
  const auto& a = c.as<BasicIndex>();
  c.set(0, apply(basic_backward_op, {c.grad()},
                 BasicBackward{c.sizes(0), a.start, a.step, a.length, a.added}));
}
constexpr OpDef basic_op = view({
    .signature =
        "_getitem(Tensor input, int[] start, int[] step, int[] length, int added=0) -> Tensor",
    .doc = "A part of every dimension (step 0 drops it), with dimensions of size 1 put in where "
           "`added` has bits.",
    .view = basic_rule,
    .vjp = basic_vjp,
    .batch = batch_getitem,
    .accumulate = add_to_part,
    .attrs = &attr_info<BasicIndex>,
    .offer = Offer::function,
});

// ---- index tensors ------------------------------------------------------------------------------

bool is_mask(const Tensor& t) { return t.dtype() == DType::Bool || t.dtype() == DType::UInt8; }

Tensor index_values(const Tensor& t) {
  if (t.dtype() == DType::Int64) return t.requires_grad() ? alias(t) : t;
  if (t.is_meta()) return empty(t.sizes(), DType::Int64, Device::Meta);
  return dense_copy(t, DType::Int64);
}

// Indices into dims of these sizes, which broadcast to `shape`; `name` of what asks.
struct PlacesAttrs {
  Dims sizes, dims, shape;
  bool negative = false;
  Str name;
  static constexpr auto members() {
    return std::tuple(&PlacesAttrs::sizes, &PlacesAttrs::dims, &PlacesAttrs::shape,
                      &PlacesAttrs::negative, &PlacesAttrs::name);
  }
};
void find_places(const Call& c, Tensors& outs) {
  const auto& a = c.as<PlacesAttrs>();
  const int n = static_cast<int>(c.in.size());
  Checked span{1};
  for (int64_t size : a.sizes) span = span * size;
  require(n > 0 && a.sizes.size() == n && a.dims.size() == n && span.fits, c.name(),
          ": there must be a size and a dimension for each index; got ", a.sizes, " and ", a.dims);
  auto refuse = [&](int64_t index, int k) {
    fail_index(std::string_view(a.name), ": index ", index, " is out of bounds for dimension ",
               a.dims[k], " with size ", a.sizes[k]);
  };
  for (const Tensor& t : c.in)
    require(t.dtype() == DType::Int64 && broadcast_shapes(t.sizes(), a.shape, "_places") == a.shape,
            c.name(), ": indices must be int64 and broadcast to ", a.shape, "; got ", t);
  if (n == 1 && c.in[0].sizes() == a.shape) {
    const Tensor& index = c.in[0];
    const int64_t bad = kernels::find_bad_index(index.nd(), a.sizes[0], false);
    if (bad < 0) return outs.push_back(index);
    if (!a.negative) refuse(kernels::index_value(index.nd(), bad), 0);
  }
  const Tensor places = empty(a.shape, DType::Int64);
  fill_(places, Scalar(0));
  int64_t weight = 1;
  for (int k = n; k-- > 0;) {
    const Tensor& t = c.in[static_cast<size_t>(k)];
    const Tensor wide = alias(t, a.shape, broadcast_strides(t.sizes(), t.strides(), a.shape));
    if (const auto bad =
            kernels::add_offsets(places.data<int64_t>(), wide.nd(), a.sizes[k], weight))
      refuse(bad.value, k);
    weight *= a.sizes[k];
  }
  outs.push_back(places);
}
constexpr OpDef places_op = finding({
    .signature = "_places(Tensor[] indices, int[] sizes, int[] dims, int[] shape, bool negative, "
                 "str name) -> Tensor",
    .doc = "Row-major positions, in a block of these sizes, that indices name which broadcast to "
           "shape; the index itself where it is that. Negative ones count from the end where they "
           "are allowed.",
    .find = find_places,
    .attrs = &attr_info<PlacesAttrs>,
    .offer = Offer::function,
});
void find_nonzero_flat(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  const kernels::NonzeroCounts counts = kernels::count_nonzero(x.nd());
  outs.push_back(empty({counts.back()}, DType::Int64));
  if (counts.back()) kernels::nonzero_flat(x.nd(), counts, outs[0].data<int64_t>());
}
constexpr OpDef nonzero_flat_op = finding({
    .signature = "_nonzero_flat(Tensor input) -> Tensor",
    .doc = "Row-major positions of the elements that are not zero.",
    .find = find_nonzero_flat,
    .offer = Offer::function,
});

constexpr const OpDef* index_plan_list[] = {&basic_op, &basic_backward_op, &places_op,
                                            &nonzero_flat_op};

}  // namespace

extern const OpList index_plan_ops;
const OpList index_plan_ops = op_list(index_plan_list);

Tensor basic_index(const Tensor& x, const BasicIndex& part) { return apply(basic_op, {x}, part); }

Tensor nonzero_flat(const Tensor& input, std::string_view op) {
  if (input.is_meta())
    fail(ErrorKind::NotImplemented, op,
         ": the shape of the result depends on values, which a meta tensor does not have");
  require_elements(input, "a mask");
  return apply(nonzero_flat_op, {input});
}

bool plan_few(const Tensor& x, std::span<const Tensor> indices, IndexPlan& plan) {
  const Tensor* first = nullptr;
  int count = 0, dim = 0;
  for (const Tensor& t : indices) {
    if (!t.defined()) {
      ++dim;
      continue;
    }
    const bool mask = t.dtype() == DType::Bool;
    if ((!mask && t.dtype() != DType::Int64) || t.is_meta() || (t->flags & flag_batched) ||
        !t.is_contiguous() || t.ndim() == 0 || t.numel() > kernels::few_places ||
        (first && (mask || first->dtype() == DType::Bool || !t.has_sizes_of(*first))))
      return false;
    for (int d = 0, spans = mask ? t.ndim() : 1; d < spans; ++d, ++dim) {
      if (dim >= x.ndim() || (mask && t.size(d) != x.size(dim))) return false;
      plan.dims.push_back(dim);
    }
    if (!first) first = &t;
    ++count;
  }
  if (!first || dim > x.ndim()) return false;
  const int64_t n = first->numel();
  if (first->dtype() == DType::Bool) {
    int64_t places[kernels::few_places];
    const int64_t found = kernels::mask_places(places, values_of<uint8_t>(*first));
    plan.places = int64_tensor({places, static_cast<size_t>(found)});
    return true;
  }
  if (count == 1 &&
      kernels::all_within(values_of<int64_t>(*first), x.size(static_cast<int>(plan.dims[0])))) {
    plan.places = *first;
    return true;
  }
  int64_t places[kernels::few_places];
  std::fill_n(places, n, 0);
  int at = 0;
  for (const Tensor& t : indices)
    if (t.defined() && !kernels::append_few(places, values_of<int64_t>(t),
                                            x.size(static_cast<int>(plan.dims[at++]))))
      return false;
  plan.places = int64_tensor({places, static_cast<size_t>(n)}, (*first)->shape);
  return true;
}

Tensor places_along(const Tensor& index, int64_t size, int64_t dim, std::string_view op,
                    bool negative) {
  if (index.is_meta()) return index;
  require_elements(index, "an index");
  if (index.is_contiguous() && index.numel() <= kernels::few_places &&
      kernels::all_within(values_of<int64_t>(index), size))
    return index;
  return apply(places_op, {index}, PlacesAttrs{{size}, {dim}, index.sizes(), negative, op});
}

IndexPlan plan_index(const Tensor& x, std::span<const Tensor> indices, std::string_view op) {
  struct Entry {
    Tensor index;  // int64
    int64_t dim;
    int64_t size;  // of the block of dims it counts in
    bool ready;    // in range, not negative
  };
  IndexPlan plan;
  std::vector<Entry> entries;
  int dim = 0;
  for (size_t k = 0; k < indices.size(); ++k) {
    const Tensor& t = indices[k];
    if (!t.defined()) {
      ++dim;
      continue;
    }
    bool mask = is_mask(t);
    if (!mask && t.dtype() != DType::Int64 && t.dtype() != DType::Int32) {
      fail_index(op, ": tensors used as indices must be long, int, byte or bool tensors; got ", t,
                 "; convert with .long()");
    }
    int spans = mask ? t.ndim() : 1;
    if (dim + spans > x.ndim())
      fail_index(op, ": too many indices for a tensor of dimension ", x.ndim());
    int64_t size = 1;
    for (int d = 0; d < spans; ++d) {
      if (mask && t.size(d) != x.size(dim + d)) {
        fail_index(op, ": the shape of the mask ", t.sizes(), " at index ", d,
                   " does not match the shape of the indexed tensor ", x.sizes(), " at index ",
                   dim + d);
      }
      size *= x.size(dim + d);
      plan.dims.push_back(dim + d);
    }
    if (mask && spans == 0) fail_internal("a 0-d mask reached plan_index");
    entries.push_back({mask ? nonzero_flat(t, op) : index_values(t), dim, size, mask});
    dim += spans;
  }
  require(!entries.empty(), op, ": at least one index tensor is required");

  if (entries.size() == 1) {
    const Entry& e = entries[0];
    plan.places = e.ready ? e.index : places_along(e.index, e.size, e.dim, op, true);
    return plan;
  }
  Dims shape;
  bool meta = false;
  for (Entry& e : entries) {
    const Dims& s = e.index.sizes();
    meta = meta || e.index.is_meta();
    int n = std::max(shape.size(), s.size());
    Dims joined(n);
    for (int i = 1; i <= n; ++i) {
      int64_t a = i <= shape.size() ? shape[shape.size() - i] : 1;
      int64_t b = i <= s.size() ? s[s.size() - i] : 1;
      if (a != b && a != 1 && b != 1) {
        std::string text;
        for (Entry& f : entries) text += concat(text.empty() ? "" : ", ", f.index.sizes());
        fail_index(
            op, ": shape mismatch: indexing tensors could not be broadcast together with shapes ",
            text);
      }
      joined[n - i] = a == 1 ? b : a;
    }
    shape = joined;
  }
  if (meta) {
    plan.places = empty(shape, DType::Int64, Device::Meta);
    return plan;
  }
  std::vector<Tensor> operands;
  PlacesAttrs a{.shape = shape, .negative = true, .name = op};
  for (const Entry& e : entries) {
    require_elements(e.index, "an index");
    operands.push_back(e.index);
    a.sizes.push_back(e.size);
    a.dims.push_back(e.dim);
  }
  plan.places = apply_one(places_op, operands, &a);
  return plan;
}

}  // namespace clew
