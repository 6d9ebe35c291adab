// Views of parts: select, slice, narrow, diagonal, unfold.
// May include: ops, graph, tensor, kernels.
// Invariant: a part's gradient is zeros with the gradient put back in place.
#include "kernels/indexing/index.h"
#include "ops/batch_rules.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"
#include "ops/views/specs.h"

namespace clew {

namespace {

// ---- select -------------------------------------------------------------------------------------

struct SelectAttrs {
  int64_t dim = 0;
  int64_t index = 0;
  static constexpr auto members() { return std::tuple(&SelectAttrs::dim, &SelectAttrs::index); }
};
int64_t wrap_index(int64_t index, int64_t size, int dim, std::string_view op) {
  if (index < -size || index >= size) {
    fail_index(op, ": index ", index, " is out of bounds for dimension ", dim, " with size ", size);
  }
  return index < 0 ? index + size : index;
}
void select_rule(const Call& c, Specs& out) {
  const auto& a = c.as<SelectAttrs>();
  const Tensor& x = c.in[0];
  if (x.ndim() == 0) fail_index(c.name(), ": a 0-d tensor has no dimension to select from");
  int dim = wrapped(a.dim, x.ndim(), c.name());
  int64_t index = wrap_index(a.index, x.size(dim), dim, c.name());
  ViewSpec& s = out.emplace_back();
  s.sizes = x.sizes();
  s.strides = x.strides();
  s.offset = index * s.strides[dim];
  s.sizes.erase(dim);
  s.strides.erase(dim);
}
void select_vjp(Vjp& c) {
  const auto& a = c.as<SelectAttrs>();
  c.set(0, select_backward(c.grad(), c.sizes(0), a.dim, a.index));
}
constexpr OpDef select_op = view({
    .signature = "select(Tensor input, int dim, int index) -> Tensor",
    .doc = R"(The part at one index of a dimension; the dimension goes away.

Args:
    dim: the dimension to index.
    index: where; negative counts from the end.
Returns: a view of the input.

>>> clew.tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
[1, 3]
)",
    .view = select_rule,
    .vjp = select_vjp,
    .batch = batch_dims,
    .accumulate = add_to_part,
    .attrs = &attr_info<SelectAttrs>,
});

struct SelectBackwardAttrs {
  Dims size;
  int64_t dim = 0;
  int64_t index = 0;
  static constexpr auto members() {
    return std::tuple(&SelectBackwardAttrs::size, &SelectBackwardAttrs::dim,
                      &SelectBackwardAttrs::index);
  }
};
void check_size(const Call& c, const Dims& size) {
  for (int64_t s : size) require(s >= 0, c.name(), ": sizes must be at least 0; got ", size);
}
void same_size(const Call& c, const Dims& want) {
  require(c.in[0].sizes() == want, c.name(), ": grad must have shape ", want, "; got ", c.in[0]);
}
// Puts the gradient into zeros at the place that `sizes`, `strides` and `offset` describe.
void place(const Tensor& out, const Tensor& g, const Dims& strides, int64_t offset) {
  if (g.numel() != out.numel()) fill_(out, Scalar(0));
  copy_into(alias(out, g.sizes(), strides, offset), g);
}
void select_backward_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<SelectBackwardAttrs>();
  check_size(c, a.size);
  if (a.size.empty()) fail_index(c.name(), ": size must not be empty");
  int dim = wrapped(a.dim, a.size.size(), c.name());
  wrap_index(a.index, a.size[dim], dim, c.name());
  Dims want = a.size;
  want.erase(dim);
  same_size(c, want);
  out.add(c.in[0].dtype(), a.size);
}
void select_backward_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<SelectBackwardAttrs>();
  int dim = wrapped(a.dim, a.size.size(), c.name());
  Dims strides = outs[0].strides();
  int64_t offset = (a.index < 0 ? a.index + a.size[dim] : a.index) * strides[dim];
  strides.erase(dim);
  place(outs[0], c.in[0], strides, offset);
}
void select_backward_vjp(Vjp& c) {
  const auto& a = c.as<SelectBackwardAttrs>();
  c.set(0, select(c.grad(), a.dim, a.index));
}
constexpr OpDef select_backward_op = general({
    .signature = "_select_backward(Tensor input, int[] size, int dim, int index) -> Tensor",
    .doc = "Zeros of the given size with the input put at one index of a dimension.",
    .shape = select_backward_shape,
    .cpu = select_backward_cpu,
    .vjp = select_backward_vjp,
    .attrs = &attr_info<SelectBackwardAttrs>,
    .takes_stored = true,
    .offer = Offer::function,
    .flops = "0",
});

// ---- slice, narrow ------------------------------------------------------------------------------

struct SliceAttrs {
  int64_t dim = 0;
  int64_t start = 0;
  int64_t end = INT64_MAX;
  int64_t step = 1;
  static constexpr auto members() {
    return std::tuple(&SliceAttrs::dim, &SliceAttrs::start, &SliceAttrs::end, &SliceAttrs::step);
  }
};
struct Range {
  int64_t start;
  int64_t length;
};
Range clamp_range(int64_t start, int64_t end, int64_t step, int64_t size, std::string_view op) {
  if (step <= 0) fail_value(op, ": step must be greater than zero; got ", step);
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = std::clamp<int64_t>(start, 0, size);
  end = std::clamp<int64_t>(end, start, size);
  int64_t span = end - start;
  return {start, span / step + (span % step != 0)};
}
void slice_rule(const Call& c, Specs& out) {
  const auto& a = c.as<SliceAttrs>();
  const Tensor& x = c.in[0];
  if (x.ndim() == 0) fail_index(c.name(), ": a 0-d tensor has no dimension to slice");
  int dim = wrapped(a.dim, x.ndim(), c.name());
  Range r = clamp_range(a.start, a.end, a.step, x.size(dim), c.name());
  add_part(out, x, dim, r.start, r.length, r.length > 1 ? a.step : 1);
}
void slice_vjp(Vjp& c) {
  const auto& a = c.as<SliceAttrs>();
  c.set(0, slice_backward(c.grad(), c.sizes(0), a.dim, a.start, a.end, a.step));
}
constexpr OpDef slice_op = view({
    .signature = "_slice(Tensor input, int dim=0, int start=0, int end=9223372036854775807, int "
                 "step=1) -> Tensor",
    .doc = "Every step-th part of a range of a dimension; the ends are clamped as Python's slices "
           "are.",
    .view = slice_rule,
    .vjp = slice_vjp,
    .batch = batch_dims,
    .accumulate = add_to_part,
    .attrs = &attr_info<SliceAttrs>,
    .offer = Offer::function,
});

struct SliceBackwardAttrs {
  Dims size;
  int64_t dim = 0;
  int64_t start = 0;
  int64_t end = INT64_MAX;
  int64_t step = 1;
  static constexpr auto members() {
    return std::tuple(&SliceBackwardAttrs::size, &SliceBackwardAttrs::dim,
                      &SliceBackwardAttrs::start, &SliceBackwardAttrs::end,
                      &SliceBackwardAttrs::step);
  }
};
void slice_backward_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<SliceBackwardAttrs>();
  check_size(c, a.size);
  if (a.size.empty()) fail_index(c.name(), ": size must not be empty");
  int dim = wrapped(a.dim, a.size.size(), c.name());
  Dims want = a.size;
  want[dim] = clamp_range(a.start, a.end, a.step, a.size[dim], c.name()).length;
  same_size(c, want);
  out.add(c.in[0].dtype(), a.size);
}
void slice_backward_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<SliceBackwardAttrs>();
  int dim = wrapped(a.dim, a.size.size(), c.name());
  Range r = clamp_range(a.start, a.end, a.step, a.size[dim], c.name());
  Dims strides = outs[0].strides();
  int64_t offset = r.length ? r.start * strides[dim] : 0;
  if (r.length > 1) strides[dim] *= a.step;
  place(outs[0], c.in[0], strides, offset);
}
void slice_backward_vjp(Vjp& c) {
  const auto& a = c.as<SliceBackwardAttrs>();
  c.set(0, slice(c.grad(), a.dim, a.start, a.end, a.step));
}
constexpr OpDef slice_backward_op = general({
    .signature = "_slice_backward(Tensor input, int[] size, int dim, int start, int end, int step) "
                 "-> Tensor",
    .doc = "Zeros of the given size with the input put into a slice.",
    .shape = slice_backward_shape,
    .cpu = slice_backward_cpu,
    .vjp = slice_backward_vjp,
    .attrs = &attr_info<SliceBackwardAttrs>,
    .takes_stored = true,
    .offer = Offer::function,
    .flops = "0",
});

struct NarrowAttrs {
  int64_t dim = 0;
  int64_t start = 0;
  int64_t length = 0;
  static constexpr auto members() {
    return std::tuple(&NarrowAttrs::dim, &NarrowAttrs::start, &NarrowAttrs::length);
  }
};
void narrow_rule(const Call& c, Specs& out) {
  const auto& a = c.as<NarrowAttrs>();
  const Tensor& x = c.in[0];
  require(x.ndim() > 0, c.name(), ": a 0-d tensor cannot be narrowed");
  int dim = wrapped(a.dim, x.ndim(), c.name());
  int64_t size = x.size(dim);
  require(a.length >= 0, c.name(), ": length must not be negative; got ", a.length);
  if (a.start < -size || a.start > size) {
    fail_index(c.name(), ": start ", a.start, " is out of bounds for dimension ", dim,
               " with size ", size);
  }
  int64_t start = a.start < 0 ? a.start + size : a.start;
  require(a.length <= size - start, c.name(), ": start (", start, ") + length (", a.length,
          ") exceeds size (", size, ") of dimension ", dim);
  add_part(out, x, dim, start, a.length, 1);
}
void narrow_vjp(Vjp& c) {
  const auto& a = c.as<NarrowAttrs>();
  int64_t start =
      a.start < 0 ? a.start + c.sizes(0)[wrapped(a.dim, c.sizes(0).size(), "narrow")] : a.start;
  c.set(0, slice_backward(c.grad(), c.sizes(0), a.dim, start, start + a.length, 1));
}
constexpr OpDef narrow_op = view({
    .signature = "narrow(Tensor input, int dim, int start, int length) -> Tensor",
    .doc = R"(A range of a dimension.

Args:
    dim: the dimension.
    start: where the range begins; negative counts from the end.
    length: how many.
Returns: a view of the input.

>>> clew.arange(5).narrow(0, 1, 3).tolist()
[1, 2, 3]
)",
    .view = narrow_rule,
    .vjp = narrow_vjp,
    .batch = batch_dims,
    .accumulate = add_to_part,
    .attrs = &attr_info<NarrowAttrs>,
});

struct NarrowFromAttrs {
  int64_t dim = 0;
  int64_t length = 0;
  static constexpr auto members() {
    return std::tuple(&NarrowFromAttrs::dim, &NarrowFromAttrs::length);
  }
};
void narrow_from_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<NarrowFromAttrs>();
  const Tensor& start = c.in[1];
  require(start.ndim() == 0 && is_integral(start.dtype()) && start.dtype() != DType::Bool, c.name(),
          ": start must be a 0-dim integral Tensor; got ", start);
  outs.push_back(narrow(c.in[0], a.dim, item(start).i, a.length));
}
constexpr OpDef narrow_from_op = [] {
  OpDef op = composite({.signature = "narrow(Tensor input, int dim, Tensor start, int length) -> "
                                     "Tensor",
                        .doc = narrow_op.doc,
                        .run = narrow_from_run,
                        .attrs = &attr_info<NarrowFromAttrs>});
  return op;
}();

// ---- diagonal -----------------------------------------------------------------------------------

struct DiagonalAttrs {
  int64_t offset = 0;
  int64_t dim1 = 0;
  int64_t dim2 = 1;
  static constexpr auto members() {
    return std::tuple(&DiagonalAttrs::offset, &DiagonalAttrs::dim1, &DiagonalAttrs::dim2);
  }
};
ViewSpec diagonal_of(const Dims& sizes, const Dims& strides, int64_t offset, int64_t dim1,
                     int64_t dim2, std::string_view op) {
  int ndim = sizes.size();
  if (ndim < 2) fail_index(op, ": input must have at least 2 dimensions; got shape ", sizes);
  int a = wrapped(dim1, ndim, op);
  int b = wrapped(dim2, ndim, op);
  require(a != b, op, ": dim1 and dim2 must differ; got ", dim1, " and ", dim2);
  int64_t row = offset < 0 ? (offset == INT64_MIN ? INT64_MAX : -offset) : 0;
  int64_t col = offset > 0 ? offset : 0;
  int64_t length = std::max<int64_t>(
      0, std::min(sizes[a] - std::min(row, sizes[a]), sizes[b] - std::min(col, sizes[b])));
  ViewSpec s;
  s.offset = length ? row * strides[a] + col * strides[b] : 0;
  for (int d = 0; d < ndim; ++d) {
    if (d == a || d == b) continue;
    s.sizes.push_back(sizes[d]);
    s.strides.push_back(strides[d]);
  }
  s.sizes.push_back(length);
  s.strides.push_back(strides[a] + strides[b]);
  return s;
}
void diagonal_rule(const Call& c, Specs& out) {
  const auto& a = c.as<DiagonalAttrs>();
  out.push_back(
      diagonal_of(c.in[0].sizes(), c.in[0].strides(), a.offset, a.dim1, a.dim2, c.name()));
}
void diagonal_vjp(Vjp& c) {
  const auto& a = c.as<DiagonalAttrs>();
  c.set(0, diagonal_backward(c.grad(), c.sizes(0), a.offset, a.dim1, a.dim2));
}
constexpr OpDef diagonal_op = view({
    .signature = "diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    .doc = R"(The elements whose indices in two dimensions are equal, as the last dimension.

Args:
    offset: which diagonal; positive lies above the main one.
    dim1: the first of the two dimensions.
    dim2: the second.
Returns: a view of the input.

>>> clew.arange(9).reshape(3, 3).diagonal().tolist()
[0, 4, 8]
)",
    .view = diagonal_rule,
    .vjp = diagonal_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<DiagonalAttrs>,
});

struct DiagonalBackwardAttrs {
  Dims size;
  int64_t offset = 0;
  int64_t dim1 = 0;
  int64_t dim2 = 1;
  static constexpr auto members() {
    return std::tuple(&DiagonalBackwardAttrs::size, &DiagonalBackwardAttrs::offset,
                      &DiagonalBackwardAttrs::dim1, &DiagonalBackwardAttrs::dim2);
  }
};
void diagonal_backward_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<DiagonalBackwardAttrs>();
  check_size(c, a.size);
  same_size(c,
            diagonal_of(a.size, Dims(a.size.size(), 0), a.offset, a.dim1, a.dim2, c.name()).sizes);
  out.add(c.in[0].dtype(), a.size);
}
void diagonal_backward_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<DiagonalBackwardAttrs>();
  ViewSpec s = diagonal_of(a.size, outs[0].strides(), a.offset, a.dim1, a.dim2, c.name());
  fill_(outs[0], Scalar(0));
  copy_into(alias(outs[0], s.sizes, s.strides, s.offset), c.in[0]);
}
void diagonal_backward_vjp(Vjp& c) {
  const auto& a = c.as<DiagonalBackwardAttrs>();
  c.set(0, diagonal(c.grad(), a.offset, a.dim1, a.dim2));
}
constexpr OpDef diagonal_backward_op = general({
    .signature = "_diagonal_backward(Tensor input, int[] size, int offset=0, int dim1=0, int "
                 "dim2=1) -> Tensor",
    .doc = "Zeros of the given size with the input put on a diagonal.",
    .shape = diagonal_backward_shape,
    .cpu = diagonal_backward_cpu,
    .vjp = diagonal_backward_vjp,
    .attrs = &attr_info<DiagonalBackwardAttrs>,
    .takes_stored = true,
    .offer = Offer::function,
    .flops = "0",
});

// ---- unfold -------------------------------------------------------------------------------------

struct UnfoldAttrs {
  int64_t dimension = 0;
  int64_t size = 1;
  int64_t step = 1;
  static constexpr auto members() {
    return std::tuple(&UnfoldAttrs::dimension, &UnfoldAttrs::size, &UnfoldAttrs::step);
  }
};
ViewSpec windows_of(const Dims& sizes, const Dims& strides, int64_t dimension, int64_t size,
                    int64_t step, std::string_view op) {
  int dim = wrapped(dimension, sizes.size(), op);
  int64_t extent = sizes.empty() ? 1 : sizes[dim];
  require(size >= 0 && size <= extent, op, ": size must lie between 0 and ", extent,
          ", the size of dimension ", dim, "; got ", size);
  require(step > 0, op, ": step must be positive; got ", step);
  ViewSpec s;
  s.sizes = sizes;
  s.strides = strides;
  if (!sizes.empty()) {
    s.sizes[dim] = (extent - size) / step + 1;
    s.strides[dim] = s.sizes[dim] > 1 ? strides[dim] * step : strides[dim];
  }
  s.sizes.push_back(size);
  s.strides.push_back(sizes.empty() ? 1 : strides[dim]);
  return s;
}
void unfold_rule(const Call& c, Specs& out) {
  const auto& a = c.as<UnfoldAttrs>();
  out.push_back(
      windows_of(c.in[0].sizes(), c.in[0].strides(), a.dimension, a.size, a.step, c.name()));
}
struct UnfoldBackwardAttrs {
  Dims input_size;
  int64_t dimension = 0;
  int64_t size = 1;
  int64_t step = 1;
  static constexpr auto members() {
    return std::tuple(&UnfoldBackwardAttrs::input_size, &UnfoldBackwardAttrs::dimension,
                      &UnfoldBackwardAttrs::size, &UnfoldBackwardAttrs::step);
  }
};
void unfold_backward_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<UnfoldBackwardAttrs>();
  check_size(c, a.input_size);
  same_size(c, windows_of(a.input_size, a.input_size, a.dimension, a.size, a.step, c.name()).sizes);
  out.add(c.in[0].dtype(), a.input_size);
}
void unfold_backward_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<UnfoldBackwardAttrs>();
  ViewSpec s = windows_of(a.input_size, outs[0].strides(), a.dimension, a.size, a.step, c.name());
  fill_(outs[0], Scalar(0));
  if (c.in[0].numel() == 0) return;
  kernels::accumulate(alias(outs[0], s.sizes, s.strides, 0).nd(), c.in[0].nd());
}
void unfold_backward_vjp(Vjp& c) {
  const auto& a = c.as<UnfoldBackwardAttrs>();
  c.set(0, unfold(c.grad(), a.dimension, a.size, a.step));
}
constexpr OpDef unfold_backward_op = general({
    .signature = "_unfold_backward(Tensor input, int[] input_size, int dimension, int size, int "
                 "step) -> Tensor",
    .doc = "Zeros of the given size to which every window of `unfold` is added in its place.",
    .shape = unfold_backward_shape,
    .cpu = unfold_backward_cpu,
    .vjp = unfold_backward_vjp,
    .attrs = &attr_info<UnfoldBackwardAttrs>,
    .offer = Offer::function,
    .flops = "numel(input)",
});
void unfold_vjp(Vjp& c) {
  const auto& a = c.as<UnfoldAttrs>();
  c.set(0, apply(unfold_backward_op, {c.grad()},
                 UnfoldBackwardAttrs{c.sizes(0), a.dimension, a.size, a.step}));
}
constexpr OpDef unfold_op = view({
    .signature = "unfold(Tensor input, int dimension, int size, int step) -> Tensor",
    .doc = R"(All windows of a dimension, as a new last dimension.

Args:
    dimension: where the windows slide.
    size: the length of a window.
    step: how far one window lies from the next.
Returns: a view of the input.

>>> clew.arange(5).unfold(0, 3, 2).tolist()
[[0, 1, 2], [2, 3, 4]]
)",
    .view = unfold_rule,
    .vjp = unfold_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<UnfoldAttrs>,
    .offer = Offer::method,
});

}  // namespace

Tensor zero_block(const Dims& size, DType dtype, Device device) {
  Tensor zero = empty({}, dtype, device);
  if (device == Device::CPU) fill_(zero, Scalar(0));
  return alias(zero, size, Dims(size.size(), 0));
}
Tensor zeros_for(const Vjp& c, int i) {
  return zero_block(c.sizes(i), c.dtype(i), c.grad().device());
}
void zero_vjp(Vjp& c) {
  for (int i = 0; i < c.inputs(); ++i) {
    if (c.needs(i)) c.set(i, zeros_for(c, i));
  }
}
Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  return apply(select_op, {x}, SelectAttrs{dim, index});
}
Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  return apply(slice_op, {x}, SliceAttrs{dim, start, end, step});
}
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  return apply(narrow_op, {x}, NarrowAttrs{dim, start, length});
}
Dims repeated_dims(const Tensor& x) {
  Dims dims;
  for (int d = 0; d < x.ndim(); ++d)
    if (x.size(d) > 1 && x.stride(d) == 0) dims.push_back(d);
  return dims;
}
Tensor without_repeats(const Tensor& x) {
  Tensor once = x;
  for (int64_t d : repeated_dims(x)) once = narrow(once, d, 0, 1);
  return once;
}
Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return apply(diagonal_op, {x}, DiagonalAttrs{offset, dim1, dim2});
}
Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  return apply(unfold_op, {x}, UnfoldAttrs{dimension, size, step});
}
Tensor select_backward(const Tensor& g, const Dims& size, int64_t dim, int64_t index) {
  return apply(select_backward_op, {g}, SelectBackwardAttrs{size, dim, index});
}
Tensor slice_backward(const Tensor& g, const Dims& size, int64_t dim, int64_t start, int64_t end,
                      int64_t step) {
  return apply(slice_backward_op, {g}, SliceBackwardAttrs{size, dim, start, end, step});
}
Tensor diagonal_backward(const Tensor& g, const Dims& size, int64_t offset, int64_t dim1,
                         int64_t dim2) {
  return apply(diagonal_backward_op, {g}, DiagonalBackwardAttrs{size, offset, dim1, dim2});
}

namespace {

constexpr const OpDef* slicing_list[] = {
    &select_op, &select_backward_op, &slice_op,    &slice_backward_op,
    &narrow_op, &narrow_from_op,     &diagonal_op, &diagonal_backward_op,
    &unfold_op, &unfold_backward_op,
};

}  // namespace

extern const OpList slicing_ops;
const OpList slicing_ops = op_list(slicing_list);

}  // namespace clew
