// index_select, index_add, index_copy, index_fill, take, put, masked_select, masked_scatter,
// index_put.
// May include: ops, graph, tensor, kernels.
// Invariant: each is made of the two ops of indexing.cpp, which check, differentiate and run.
#include <vector>

#include "graph/batch.h"
#include "graph/inplace.h"
#include "graph/modes.h"
#include "ops/attributes.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/indexing.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/number_fits.h"

namespace clew {

namespace {

// PyTorch's exceptions: index_fill raises the other one of two for each of its checks.
void require_vector(const Tensor& index, std::string_view op, bool fills = false) {
  if (index.dtype() != DType::Int64 && index.dtype() != DType::Int32)
    fail(fills ? ErrorKind::Index : ErrorKind::Runtime, op, ": index must be int64 or int32; got ",
         index);
  if (index.ndim() > 1)
    fail(fills ? ErrorKind::Runtime : ErrorKind::Index, op,
         ": index must have at most one dimension; got ", index);
}
// A vector of indices into a dimension as int64, none negative; those of index_fill may count from
// the end.
Tensor index_vector(const Tensor& index, int64_t size, int dim, std::string_view op,
                    bool fills = false) {
  require_vector(index, op, fills);
  const Tensor v = index.ndim() == 1 ? index : alias(index, {1}, {1});
  if (v.is_meta()) return empty(v.sizes(), DType::Int64, Device::Meta);
  return places_along(dense(v, DType::Int64), size, dim, op, fills);
}

Tensor select_by(const Tensor& x, int64_t dim, const Tensor& index, std::string_view op) {
  if (x.ndim() == 0) {
    wrapped(dim, 0, op);
    require(index.numel() == 1, op, ": index must have one element for a 0-d input; got ", index);
    return reshape(index_at(reshape(x, {1}), index_vector(index, 1, 0, op), {0}), {});
  }
  int d = wrapped(dim, x.ndim(), op);
  return index_at(x, index_vector(index, x.size(d), d, op), {d});
}
void index_select_run(const Call& c, Tensors& outs) {
  outs.push_back(select_by(c.in[0], c.as<DimAttrs>().dim, c.in[1], c.name()));
}
constexpr OpDef index_select_op = composite({
    .signature = "index_select(Tensor input, int dim, Tensor index) -> Tensor",
    .doc = R"(The parts of a dimension that a vector of indices names.

Args:
    dim: the dimension.
    index: int64 or int32, at most one dimension, not negative.
Returns: a new tensor.

>>> clew.index_select(clew.tensor([[1, 2, 3]]), 1, clew.tensor([2, 0])).tolist()
[[3, 1]]
)",
    .run = index_select_run,
    .attrs = &attr_info<DimAttrs>,
    .out_memory = OutMemory::apart,
});

// The checks that index_add and index_copy share; 0-d tensors become vectors of one element. With
// `here` the input itself is written.
Tensor put_along(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                 bool accumulate, std::string_view op, bool here = false) {
  int d = wrapped(dim, input.ndim(), op);
  require(source.dtype() == input.dtype(), op, ": source must have the input's dtype; got ", source,
          " for ", input);
  Tensor x = input.ndim() ? input : reshape(input, {1});
  Tensor s = source.ndim() ? source : reshape(source, {1});
  require_vector(index, op);
  bool fits = s.ndim() == x.ndim();
  for (int i = 0; fits && i < x.ndim(); ++i)
    fits = s.size(i) == (i == d ? index.numel() : x.size(i));
  if (!fits) {
    Dims needed = x.sizes();
    needed[d] = index.numel();
    const bool other_rows =
        !accumulate && source.ndim() && (s.ndim() != x.ndim() || s.size(d) != index.numel());
    fail(other_rows ? ErrorKind::Index : ErrorKind::Runtime, op, ": source must have the sizes ",
         needed, ", the input's but for one row along dimension ", d, " for each of the ",
         index.numel(), " indices; got ", source, " for the input ", input);
  }
  // As in PyTorch, nothing is read of the index where there is nothing to add to.
  const bool nowhere = accumulate && x.numel() == 0;
  if (nowhere) s = narrow(s, d, 0, 0);
  Tensor places;
  try {
    places = index_vector(nowhere ? alias(index, {0}, {1}) : index, x.size(d), d, op);
  } catch (Error& error) {  // PyTorch's index_add is a scatter_add here
    if (accumulate && x.ndim() > 1 && (d == 0 || d == x.ndim() - 1))
      error.kind = ErrorKind::Runtime;
    throw;
  }
  if (here) {
    const bool records = modes.grad && (input.requires_grad() || source.requires_grad());
    if (records || !is_freely_written(input) || overlaps_itself(input))
      check_written(input, concat(op, "_"), records);
    index_put_(x, s, places, {d}, accumulate);
    return input;
  }
  Tensor y = index_put(x, s, places, {d}, accumulate);
  return input.ndim() ? y : reshape(y, {});
}
struct IndexAddAttrs {
  int64_t dim = 0;
  Scalar alpha = 1;
  static constexpr auto members() { return std::tuple(&IndexAddAttrs::dim, &IndexAddAttrs::alpha); }
};
// The source times alpha.
Tensor scaled_source(const Call& c) {
  const auto& a = c.as<IndexAddAttrs>();
  Tensor source = c.in[2];
  if (!a.alpha.equals(1)) {
    Tensor factor = number(a.alpha);
    if (is_integral(source.dtype())) {  // its whole part, as in PyTorch
      require_fits(c.name(), a.alpha, source.dtype());
      factor = to_dtype(factor, source.dtype());
    }
    source = source.dtype() == DType::Bool ? logical_and(source, factor) : mul(source, factor);
  }
  return source;
}
void index_add_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<IndexAddAttrs>();
  outs.push_back(put_along(c.in[0], a.dim, c.in[1], scaled_source(c), true, c.name()));
}
void index_add_write(const Call& c) {
  put_along(c.in[0], c.as<IndexAddAttrs>().dim, c.in[1], scaled_source(c), true, c.name(), true);
}
constexpr OpDef index_add_op = composite({
    .signature = "index_add(Tensor input, int dim, Tensor index, Tensor source, *, Scalar alpha=1) "
                 "-> Tensor",
    .doc = R"(Adds the parts of a source to the parts of the input that a vector of indices names.

Args:
    dim: the dimension the indices count in.
    index: int64 or int32; repeated ones add up.
    source: what to add; its size along `dim` is that of the index.
    alpha: a factor for the source.
Returns: a new tensor.

>>> clew.zeros(3).index_add(0, clew.tensor([0, 0, 2]), clew.ones(3)).tolist()
[2.0, 0.0, 1.0]
)",
    .run = index_add_run,
    .write = index_add_write,
    .attrs = &attr_info<IndexAddAttrs>,
    .inplace = true,
    .out_memory = OutMemory::aligned,
});
void index_copy_run(const Call& c, Tensors& outs) {
  outs.push_back(put_along(c.in[0], c.as<DimAttrs>().dim, c.in[1], c.in[2], false, c.name()));
}
void index_copy_write(const Call& c) {
  put_along(c.in[0], c.as<DimAttrs>().dim, c.in[1], c.in[2], false, c.name(), true);
}
constexpr OpDef index_copy_op = composite({
    .signature = "index_copy(Tensor input, int dim, Tensor index, Tensor source) -> Tensor",
    .doc = R"(Replaces the parts of the input that a vector of indices names.

Args:
    dim: the dimension the indices count in.
    index: int64 or int32.
    source: the new parts; its size along `dim` is that of the index.
Returns: a new tensor.

>>> clew.zeros(3).index_copy(0, clew.tensor([2, 0]), clew.tensor([1., 2.])).tolist()
[2.0, 0.0, 1.0]
)",
    .run = index_copy_run,
    .write = index_copy_write,
    .attrs = &attr_info<DimAttrs>,
    .inplace = true,
    .autocast = Autocast::widest,
    .out_memory = OutMemory::aligned,
});
// With `here` the input itself is written, and given back.
Tensor fill_along(const Call& c, bool here) {
  const Tensor& input = c.in[0];
  require(c.in[2].ndim() == 0, c.name(), ": value must be a number or a 0-d tensor; got ", c.in[2]);
  require(input.is_complex() || !c.in[2].is_complex(), c.name(),
          ": a complex value cannot be stored in ", input);
  require_held(c.name(), c.in[2], input.dtype());
  int d = wrapped(c.as<DimAttrs>().dim, input.ndim(), c.name());
  Tensor x = input.ndim() ? input : reshape(input, {1});
  Tensor value = c.in[2].dtype() == x.dtype() ? c.in[2] : to_dtype(c.in[2], x.dtype());
  Tensor places = index_vector(c.in[1], x.size(d), d, c.name(), true);
  const bool plain =
      !(modes.grad && value.requires_grad()) && !is_batched(value) && !is_batched(c.in[1]);
  Tensor y;
  if (here && overlaps_itself(input)) {
    check_inplace(input, "index_fill_", modes.grad && any_requires_grad(c.in));
    warn_expanded("index_fill_");
    // Of a dim that repeats one element, all indices name that one.
    const bool repeats = x.stride(d) == 0 && x.size(d) > 1;
    const Tensor index = repeats ? zero_block({places.numel()}, DType::Int64, x.device()) : places;
    const Tensor in[3] = {without_repeats(x), index, value};
    return fill_along(Call{c.op, in, c.attrs}, true);
  }
  if (here) check_written(input, concat(c.name(), "_"), modes.grad && any_requires_grad(c.in));
  if (plain && here) {
    if (value->storage == x->storage) value = clone(value);  // of what it fills
    index_put_(x, value, places, {d}, false);
    return input;
  } else if (plain) {
    y = index_put(x, value, places, {d}, false);
  } else {
    // By a mask, so that an index given twice counts once in the value's gradient.
    Tensor mask = index_put(zero_block({x.size(d)}, DType::Bool, x.device()), number(Scalar(true)),
                            places, {0}, false);
    Dims shape(x.ndim(), 1);
    shape[d] = x.size(d);
    y = where(reshape(mask, shape), value, x);
  }
  if (!input.ndim()) y = reshape(y, {});
  if (here) copy_(input, y);
  return here ? input : y;
}
void index_fill_run(const Call& c, Tensors& outs) { outs.push_back(fill_along(c, false)); }
void index_fill_write(const Call& c) { fill_along(c, true); }
constexpr OpDef index_fill_op = composite({
    .signature = "index_fill(Tensor input, int dim, Tensor index, Operand value) -> Tensor",
    .doc = R"(Fills the parts of the input that a vector of indices names.

Args:
    dim: the dimension the indices count in.
    index: int64 or int32.
    value: a number or a 0-d tensor.
Returns: a new tensor.

>>> clew.zeros(3).index_fill(0, clew.tensor([2, 0]), 1).tolist()
[1.0, 0.0, 1.0]
)",
    .run = index_fill_run,
    .write = index_fill_write,
    .attrs = &attr_info<DimAttrs>,
    .inplace = true,
});

// Positions in the flattened x; negative ones count from the end. Those that backward keeps are a
// copy, which a later write to the index does not reach.
Tensor flat_places(const Tensor& x, const Tensor& index, bool kept, std::string_view op) {
  require(index.dtype() == DType::Int64, op, ": index must be int64; got ", index);
  if (index.is_meta()) return index;
  const Tensor places = places_along(index, x.numel(), 0, op, true);
  return kept && places->storage == index->storage ? contiguous_copy(places) : places;
}
void take_run(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  bool kept = is_batched(x) || (modes.grad && any_requires_grad(c.in));
  outs.push_back(index_at(reshape(x, {-1}), flat_places(x, c.in[1], kept, c.name()), {0}));
}
constexpr OpDef take_op = composite({
    .signature = "take(Tensor input, Tensor index) -> Tensor",
    .doc = R"(The elements of the flattened input at the given indices.

Args:
    index: int64, of any shape.
Returns: a new tensor of the index's shape.

>>> clew.tensor([[4, 3], [5, 6]]).take(clew.tensor([0, 2])).tolist()
[4, 5]
)",
    .run = take_run,
    .out_memory = OutMemory::apart,
});
struct AccumulateAttrs {
  bool accumulate = false;
  static constexpr auto members() { return std::tuple(&AccumulateAttrs::accumulate); }
};
// With `here` the input itself is written, where its elements lie one after the other.
Tensor put_flat(const Call& c, bool here) {
  const Tensor& x = c.in[0];
  if (c.in[1].numel() != c.in[2].numel())
    fail_index(c.name(), ": index and source must have equally many elements; got ", c.in[1],
               " and ", c.in[2]);
  Tensor places = flat_places(x, c.in[1], true, c.name());
  const bool accumulate = c.as<AccumulateAttrs>().accumulate;
  if (here) check_written(x, concat(c.name(), "_"), modes.grad && any_requires_grad(c.in));
  Tensor flat = reshape(x, {-1}), source = reshape(c.in[2], places.sizes());
  if (here && flat->storage == x->storage) {
    index_put_(flat, source, places, {0}, accumulate);
    return x;
  }
  Tensor y = reshape(index_put(flat, source, places, {0}, accumulate), x.sizes());
  if (here) copy_(x, y);
  return here ? x : y;
}
void put_run(const Call& c, Tensors& outs) { outs.push_back(put_flat(c, false)); }
void put_write(const Call& c) { put_flat(c, true); }
constexpr OpDef put_op = composite({
    .signature = "put(Tensor input, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    .doc = R"(Replaces elements of the flattened input at the given indices.

Args:
    index: int64, of any shape.
    source: as many elements as the index has.
    accumulate: add instead of replacing; repeated indices then add up.
Returns: a new tensor of the input's shape.

>>> clew.tensor([[4, 3], [5, 6]]).put(clew.tensor([1, 3]), clew.tensor([9, 10])).tolist()
[[4, 9], [5, 10]]
)",
    .run = put_run,
    .write = put_write,
    .attrs = &attr_info<AccumulateAttrs>,
    .inplace = true,
});

Dims all_dims(const Tensor& x) {
  Dims dims;
  for (int d = 0; d < x.ndim(); ++d) dims.push_back(d);
  return dims;
}
Tensor as_broadcast(const Tensor& x, const Dims& sizes) {
  if (sizes.empty()) return reshape(x, {1});
  return x.sizes() == sizes ? x : expand(x, sizes);
}
void require_mask(const Tensor& mask, std::string_view op) {
  require(mask.dtype() == DType::Bool, op, ": mask must be a bool tensor; got ", mask);
}
void masked_select_run(const Call& c, Tensors& outs) {
  outs.push_back(masked_select(c.in[0], c.in[1]));
}
constexpr OpDef masked_select_op = composite({
    .signature = "masked_select(Tensor input, Tensor mask) -> Tensor",
    .doc = R"(The elements where a mask is true, in one dimension.

Args:
    mask: bool, broadcast with the input.
Returns: a new 1-d tensor.

>>> clew.masked_select(clew.tensor([1, 2, 3]), clew.tensor([True, False, True])).tolist()
[1, 3]
)",
    .run = masked_select_run,
    .out_memory = OutMemory::apart,
});
void masked_scatter_run(const Call& c, Tensors& outs) {
  const Tensor& source = c.in[2];
  require_mask(c.in[1], c.name());
  require(source.dtype() == c.in[0].dtype(), c.name(), ": source must have the input's dtype; got ",
          source, " for ", c.in[0]);
  Dims sizes = broadcast_shapes(c.in[0].sizes(), c.in[1].sizes(), "masked_scatter");
  Tensor x = as_broadcast(c.in[0], sizes);
  Tensor places = nonzero_flat(as_broadcast(c.in[1], sizes), c.name());
  require(places.numel() <= source.numel(), c.name(), ": source has ", source.numel(),
          " elements, fewer than the ", places.numel(), " that mask selects");
  Tensor values = slice(reshape(source, {-1}), 0, 0, places.numel());
  Tensor y = index_put(x, values, places, all_dims(x), false);
  outs.push_back(sizes.empty() ? reshape(y, {}) : y);
}
constexpr OpDef masked_scatter_op = composite({
    .signature = "masked_scatter(Tensor input, Tensor mask, Tensor source) -> Tensor",
    .doc = R"(Replaces the elements where a mask is true by those of a source, in order.

Args:
    mask: bool, broadcast with the input.
    source: at least as many elements as the mask selects.
Returns: a new tensor.

>>> clew.zeros(3).masked_scatter(clew.tensor([True, False, True]), clew.tensor([1., 2.])).tolist()
[1.0, 0.0, 2.0]
)",
    .run = masked_scatter_run,
    .inplace = true,
});

// A mask without dimensions adds a dimension of size 1 and takes its one part (True) or none
// (False).
struct Widened {
  Tensor x;
  std::vector<Tensor> indices;
  Widened(const Tensor& input, std::span<const Tensor> given)
      : x(input), indices(given.begin(), given.end()) {
    int dim = 0;
    for (Tensor& t : indices) {
      const bool mask = t.defined() && (t.dtype() == DType::Bool || t.dtype() == DType::UInt8);
      if (!mask || t.ndim() > 0) {
        dim += mask ? t.ndim() : 1;
        continue;
      }
      if (dim > x.ndim()) fail_index("index_put: too many indices for ", input);
      x = unsqueeze(x, dim++);
      t = empty({item(t).to_int() != 0 ? 1 : 0}, DType::Int64);
      fill_(t, Scalar(0));
    }
  }
};
// A mask alone takes one number of any dtype and number of dims, as masked_fill does.
Tensor put_values(const Call& c, std::string_view op) {
  const bool mask = c.in.size() == 3 && c.in[2].defined() && c.in[2].dtype() == DType::Bool;
  const bool adds = c.as<AccumulateAttrs>().accumulate;
  if (!mask || adds || c.in[1].numel() != 1) return c.in[1];
  require_held(op, c.in[1], c.in[0].dtype());
  return reshape(to_dtype(c.in[1], c.in[0].dtype()), {});
}
void index_put_at_run(const Call& c, Tensors& outs) {
  const Widened w(c.in[0], c.in.subspan(2));
  IndexPlan plan = plan_index(w.x, w.indices, "index_put");
  Tensor y = index_put(w.x, put_values(c, "index_put"), plan.places, plan.dims,
                       c.as<AccumulateAttrs>().accumulate);
  outs.push_back(y.ndim() == c.in[0].ndim() ? y : reshape(y, c.in[0].sizes()));
}
constexpr OpDef index_put_at_op = composite({
    .signature = "_index_put_at(Tensor input, Tensor values, Tensor[] indices, bool "
                 "accumulate=False) -> Tensor",
    .doc = "The input with values written (or added) where index tensors, one for each dimension "
           "or None, say.",
    .run = index_put_at_run,
    .attrs = &attr_info<AccumulateAttrs>,
    .offer = Offer::function,
});
void index_put_into_run(const Call& c, Tensors& outs) {
  if (uint32_t levels = levels_of(c.in)) require_room(c.in[0], levels, "index_put_");
  const Widened w(c.in[0], c.in.subspan(2));
  IndexPlan plan = plan_index(w.x, w.indices, "index_put_");
  index_put_(w.x, put_values(c, "index_put_"), plan.places, plan.dims,
             c.as<AccumulateAttrs>().accumulate);
  outs.push_back(c.in[0]);
}
constexpr OpDef index_put_into_op = composite({
    .signature = "_index_put_into(Tensor input, Tensor values, Tensor[] indices, bool "
                 "accumulate=False) -> Tensor",
    .doc = "Writes (or adds) values into the input where index tensors, one for each dimension or "
           "None, say.",
    .run = index_put_into_run,
    .attrs = &attr_info<AccumulateAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* index_select_list[] = {
    &index_put_at_op, &index_put_into_op, &index_select_op, &index_add_op,     &index_copy_op,
    &index_fill_op,   &take_op,           &put_op,          &masked_select_op, &masked_scatter_op,
};

}  // namespace

extern const OpList index_select_ops;
const OpList index_select_ops = op_list(index_select_list);

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  return select_by(x, dim, index, "index_select");
}
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return put_along(x, dim, index, source, true, "index_add");
}
Tensor masked_select(const Tensor& x, const Tensor& mask) {
  require_mask(mask, "masked_select");
  Dims sizes = broadcast_shapes(x.sizes(), mask.sizes(), "masked_select");
  Tensor wide = as_broadcast(x, sizes);
  return index_at(wide, nonzero_flat(as_broadcast(mask, sizes), "masked_select"), all_dims(wide));
}

}  // namespace clew
