// flip, roll, rot90, tril, triu, diag and relatives.
// May include: ops, graph, tensor, kernels.
// Invariant: what is a view or a cat is written as one, so that only flip and the triangles have
// kernels.
#include "ops/calls/rearrange.h"

#include "base/checked.h"
#include "kernels/layout/rearrange.h"
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/joining.h"
#include "ops/calls/shape.h"
#include "tensor/layout.h"

namespace clew {

namespace {

// ---- flip, roll, rot90 --------------------------------------------------------------------------

uint64_t dims_mask(const Dims& dims, int ndim, std::string_view op) {
  uint64_t mask = 0;
  for (int64_t d : dims) {
    uint64_t bit = uint64_t{1} << wrapped(d, ndim, op);
    require(!(mask & bit), op, ": dim ", d, " appears twice");
    mask |= bit;
  }
  return mask;
}
void flip_shape(const Call& c, OutSpecs& out) {
  dims_mask(c.as<DimsAttrs>().dims, c.in[0].ndim(), c.name());
  out.add(c.in[0].dtype(), c.in[0].sizes()).strides = kept_strides(c.in[0]);
}
void flip_cpu(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  if (x.numel() == 0) return;
  uint64_t mask = dims_mask(c.as<DimsAttrs>().dims, x.ndim(), c.name());
  Dims strides = x.strides();
  int64_t offset = 0;
  for (int d = 0; d < x.ndim(); ++d) {
    if (!(mask >> d & 1)) continue;
    offset += (x.size(d) - 1) * strides[d];
    strides[d] = -strides[d];
  }
  kernels::copy_signed(outs[0].nd(),
                       {x->address() + offset * static_cast<int64_t>(itemsize(x.dtype())),
                        x.sizes().data(), strides.data(), x.ndim(), x.dtype()});
}
// Where the gradient repeats its elements, there is nothing to turn.
void flip_vjp(Vjp& c) {
  const Tensor& g = c.grad();
  Dims dims;
  for (int64_t d : c.as<DimsAttrs>().dims)
    if (g.stride(wrapped(d, g.ndim(), "flip")) != 0) dims.push_back(d);
  c.set(0, dims.empty() ? g : flip(g, dims));
}
constexpr OpDef flip_op = general({
    .signature = "flip(Tensor input, int[]* dims) -> Tensor",
    .doc = R"(Reverses the order of elements along some dimensions.

Args:
    dims: the dimensions.
Returns: a new tensor.

>>> clew.flip(clew.tensor([[1, 2], [3, 4]]), (1,)).tolist()
[[2, 1], [4, 3]]
)",
    .shape = flip_shape,
    .cpu = flip_cpu,
    .vjp = flip_vjp,
    .batch = batch_dims,
    .no_dims_are_none = true,
    .attrs = &attr_info<DimsAttrs>,
    .takes_stored = true,
    .flops = "0",
});
void fliplr_run(const Call& c, Tensors& outs) {
  require(c.in[0].ndim() >= 2, c.name(), ": input must have at least 2 dimensions; got ", c.in[0]);
  outs.push_back(flip(c.in[0], {1}));
}
void flipud_run(const Call& c, Tensors& outs) {
  require(c.in[0].ndim() >= 1, c.name(), ": input must have at least 1 dimension; got ", c.in[0]);
  outs.push_back(flip(c.in[0], {0}));
}
constexpr OpDef fliplr_op = composite({
    .signature = "fliplr(Tensor input) -> Tensor",
    .doc = R"(Reverses the order of columns (dimension 1).

>>> clew.fliplr(clew.tensor([[1, 2], [3, 4]])).tolist()
[[2, 1], [4, 3]]
)",
    .run = fliplr_run,
});
constexpr OpDef flipud_op = composite({
    .signature = "flipud(Tensor input) -> Tensor",
    .doc = R"(Reverses the order of rows (dimension 0).

>>> clew.flipud(clew.tensor([[1, 2], [3, 4]])).tolist()
[[3, 4], [1, 2]]
)",
    .run = flipud_run,
});

struct RollAttrs {
  Dims shifts;
  std::optional<Dims> dims;
  static constexpr auto members() { return std::tuple(&RollAttrs::shifts, &RollAttrs::dims); }
};
Tensor rolled(const Tensor& x, int64_t shift, int dim) {
  int64_t n = x.size(dim);
  if (n == 0) return contiguous_copy(x);
  int64_t cut = n - (shift % n + n) % n;
  if (cut == n) return contiguous_copy(x);
  Tensors parts;
  parts.push_back(narrow(x, dim, cut, n - cut));
  parts.push_back(narrow(x, dim, 0, cut));
  return cat(parts, dim);
}
void roll_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<RollAttrs>();
  const Tensor& x = c.in[0];
  require(!a.shifts.empty(), c.name(), ": shifts must not be empty");
  if (!a.dims || a.dims->empty()) {
    require(a.shifts.size() == 1, c.name(), ": without dims there must be one shift; got ",
            a.shifts);
    return outs.push_back(reshape(rolled(reshape(x, {-1}), a.shifts[0], 0), x.sizes()));
  }
  require(a.dims->size() == a.shifts.size(), c.name(),
          ": shifts and dims must be equally long; got ", a.shifts, " and ", *a.dims);
  if (x.ndim() == 0)
    fail_index(c.name(), ": a dimension is specified but the 0-d tensor has no dimensions");
  for (int64_t d : *a.dims) wrapped(d, x.ndim(), c.name());
  outs.push_back(roll(x, a.shifts, *a.dims));
}
constexpr OpDef roll_op = composite({
    .signature = "roll(Tensor input, int[1] shifts, int[1]? dims=None) -> Tensor",
    .doc = R"(Moves elements along dimensions; what leaves at the end comes in at the beginning.

Args:
    shifts: how far, one number for each of `dims`.
    dims: the dimensions; the flattened input when not given.
Returns: a new tensor.

>>> clew.roll(clew.tensor([1, 2, 3]), 1).tolist()
[3, 1, 2]
)",
    .run = roll_run,
    .attrs = &attr_info<RollAttrs>,
});

struct RotAttrs {
  int64_t k = 1;
  Dims dims;
  static constexpr auto members() { return std::tuple(&RotAttrs::k, &RotAttrs::dims); }
};
void rot90_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<RotAttrs>();
  const Tensor& x = c.in[0];
  require(a.dims.size() == 2, c.name(), ": dims must name two dimensions; got ", a.dims);
  require(x.ndim() >= 2, c.name(), ": input must have at least 2 dimensions; got ", x);
  int from = wrapped(a.dims[0], x.ndim(), c.name());
  int to = wrapped(a.dims[1], x.ndim(), c.name());
  require(from != to, c.name(), ": dims must differ; got ", a.dims);
  switch ((a.k % 4 + 4) % 4) {
    case 1: return outs.push_back(transpose(flip(x, {to}), from, to));
    case 2: return outs.push_back(flip(x, {from, to}));
    case 3: return outs.push_back(transpose(flip(x, {from}), from, to));
    default: return outs.push_back(contiguous_copy(x));
  }
}
constexpr OpDef rot90_op = composite({
    .signature = "rot90(Tensor input, int k=1, int[] dims=[0, 1]) -> Tensor",
    .doc = R"(Turns a plane by 90 degrees, from the first of two dimensions towards the second.

Args:
    k: how often.
    dims: the two dimensions.
Returns: a new tensor.

>>> clew.rot90(clew.tensor([[1, 2], [3, 4]])).tolist()
[[2, 4], [1, 3]]
)",
    .run = rot90_run,
    .attrs = &attr_info<RotAttrs>,
});

// ---- triangles ----------------------------------------------------------------------------------

struct DiagonalAttrs {
  int64_t diagonal = 0;
  static constexpr auto members() { return std::tuple(&DiagonalAttrs::diagonal); }
};
void triangle_shape(const Call& c, OutSpecs& out) {
  require(c.in[0].ndim() >= 2, c.name(), ": input must have at least 2 dimensions; got ", c.in[0]);
  out.add(c.in[0].dtype(), c.in[0].sizes());
}
template <bool lower> void triangle_cpu(const Call& c, Tensors& outs) {
  const int64_t diagonal = c.as<DiagonalAttrs>().diagonal;
  kernels::NdView from = c.in[0].nd();
  if (c.in[0].stride(-1) != 1) {  // copying goes through transposed elements in squares
    copy_into(outs[0], c.in[0]);
    from = outs[0].nd();
  }
  kernels::triangle(outs[0].nd(), from, diagonal, lower);
}
template <bool lower> void triangle_write(const Call& c) {
  const kernels::NdView x = c.in[0].nd();
  kernels::triangle(x, x, c.as<DiagonalAttrs>().diagonal, lower);
}
void tril_vjp(Vjp& c) { c.set(0, tril(c.grad(), c.as<DiagonalAttrs>().diagonal)); }
void triu_vjp(Vjp& c) { c.set(0, triu(c.grad(), c.as<DiagonalAttrs>().diagonal)); }
constexpr OpDef tril_op = general({
    .signature = "tril(Tensor input, int diagonal=0) -> Tensor",
    .doc = R"(The lower triangle of a matrix or of a batch of matrices, zeros elsewhere.

Args:
    diagonal: the last diagonal that is kept; 0 is the main one, positive ones lie above it.
Returns: a new tensor.

>>> clew.tril(clew.ones(2, 2)).tolist()
[[1.0, 0.0], [1.0, 1.0]]
)",
    .shape = triangle_shape,
    .cpu = triangle_cpu<true>,
    .write = triangle_write<true>,
    .vjp = tril_vjp,
    .batch = batch_leading,
    .attrs = &attr_info<DiagonalAttrs>,
    .inplace = true,
    .takes_stored = true,
    .flops = "0",
});
constexpr OpDef triu_op = general({
    .signature = "triu(Tensor input, int diagonal=0) -> Tensor",
    .doc = R"(The upper triangle of a matrix or of a batch of matrices, zeros elsewhere.

Args:
    diagonal: the first diagonal that is kept; 0 is the main one, positive ones lie above it.
Returns: a new tensor.

>>> clew.triu(clew.ones(2, 2)).tolist()
[[1.0, 1.0], [0.0, 1.0]]
)",
    .shape = triangle_shape,
    .cpu = triangle_cpu<false>,
    .write = triangle_write<false>,
    .vjp = triu_vjp,
    .batch = batch_leading,
    .attrs = &attr_info<DiagonalAttrs>,
    .inplace = true,
    .takes_stored = true,
    .flops = "0",
});

// ---- diagonals ----------------------------------------------------------------------------------

struct EmbedAttrs {
  int64_t offset = 0;
  int64_t dim1 = -2;
  int64_t dim2 = -1;
  static constexpr auto members() {
    return std::tuple(&EmbedAttrs::offset, &EmbedAttrs::dim1, &EmbedAttrs::dim2);
  }
};
Tensor embedded(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2, std::string_view op) {
  require(x.ndim() >= 1, op, ": input must have at least 1 dimension; got ", x);
  int a = wrapped(dim1, x.ndim() + 1, op);
  int b = wrapped(dim2, x.ndim() + 1, op);
  require(a != b, op, ": dim1 and dim2 must differ; got ", dim1, " and ", dim2);
  const Checked side = offset < 0 ? Checked(x.size(-1)) - offset : Checked(x.size(-1)) + offset;
  require(side.fits, op, ": offset ", offset, " is too large for ", x);
  Dims sizes;
  int next = 0;
  for (int d = 0; d < x.ndim() + 1; ++d)
    sizes.push_back(d == a || d == b ? side.value : x.size(next++));
  return diagonal_backward(x, sizes, offset, a, b);
}
void embed_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<EmbedAttrs>();
  outs.push_back(embedded(c.in[0], a.offset, a.dim1, a.dim2, c.name()));
}
constexpr OpDef embed_op = composite({
    .signature = "diag_embed(Tensor input, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    .doc = R"(Puts the last dimension on a diagonal of two dimensions, zeros elsewhere.

Args:
    offset: which diagonal; positive lies above the main one.
    dim1: the first of the two dimensions in the result.
    dim2: the second.
Returns: a new tensor.

>>> clew.diag_embed(clew.tensor([1, 2])).tolist()
[[1, 0], [0, 2]]
)",
    .run = embed_run,
    .attrs = &attr_info<EmbedAttrs>,
});
void diag_run(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  int64_t k = c.as<DiagonalAttrs>().diagonal;
  require(x.ndim() == 1 || x.ndim() == 2, c.name(), ": input must have 1 or 2 dimensions; got ", x);
  outs.push_back(x.ndim() == 1 ? embedded(x, k, 0, 1, c.name()) : contiguous_copy(diagonal(x, k)));
}
constexpr OpDef diag_op = composite({
    .signature = "diag(Tensor input, int diagonal=0) -> Tensor",
    .doc = R"(The matrix with the input on a diagonal, or the diagonal of a matrix.

Args:
    diagonal: which diagonal; positive lies above the main one.
Returns: a new tensor.

>>> clew.diag(clew.tensor([[1, 2], [3, 4]])).tolist()
[1, 4]
)",
    .run = diag_run,
    .attrs = &attr_info<DiagonalAttrs>,
});
struct OffsetAttrs {
  int64_t offset = 0;
  static constexpr auto members() { return std::tuple(&OffsetAttrs::offset); }
};
void diagflat_run(const Call& c, Tensors& outs) {
  outs.push_back(embedded(reshape(c.in[0], {-1}), c.as<OffsetAttrs>().offset, 0, 1, c.name()));
}
constexpr OpDef diagflat_op = composite({
    .signature = "diagflat(Tensor input, int offset=0) -> Tensor",
    .doc = R"(The matrix with the flattened input on a diagonal.

Args:
    offset: which diagonal; positive lies above the main one.
Returns: a new tensor.

>>> clew.diagflat(clew.tensor([[1, 2]])).tolist()
[[1, 0], [0, 2]]
)",
    .run = diagflat_run,
    .attrs = &attr_info<OffsetAttrs>,
});

constexpr const OpDef* table[] = {
    &flip_op, &fliplr_op, &flipud_op, &roll_op, &rot90_op,
    &tril_op, &triu_op,   &embed_op,  &diag_op, &diagflat_op,
};

}  // namespace

extern const OpList rearrange_ops;
const OpList rearrange_ops = op_list(table);

Tensor flip(const Tensor& x, const Dims& dims) { return apply(flip_op, {x}, DimsAttrs{dims}); }
Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims) {
  Tensor y = x;
  for (int i = 0; i < dims.size(); ++i)
    y = rolled(y, shifts[i], wrapped(dims[i], x.ndim(), "roll"));
  return y;
}
Tensor tril(const Tensor& x, int64_t diagonal) {
  return apply(tril_op, {x}, DiagonalAttrs{diagonal});
}
Tensor triu(const Tensor& x, int64_t diagonal) {
  return apply(triu_op, {x}, DiagonalAttrs{diagonal});
}

}  // namespace clew
