// repeat, tile, repeat_interleave, flip, roll, rot90, tril, triu, diag and relatives, meshgrid.
// May include: ops, graph, tensor, kernels.
// Invariant: what is a view or a cat is written as one, so that only flip and the triangles have kernels.
#include "ops/rearrange.h"

#include "graph/gil.h"
#include "kernels/rearrange.h"
#include "ops/indexing.h"
#include "ops/joining.h"
#include "ops/shape.h"

namespace clew {

namespace {

struct DimsAttrs {
  Dims dims;
  static constexpr auto members() { return std::tuple(&DimsAttrs::dims); }
};

// ---- repeating ----------------------------------------------------------------------------------

Tensor repeated(const Tensor& x, const Dims& repeats, std::string_view op) {
  require(repeats.size() >= x.ndim(), op, ": repeats must name at least the ", x.ndim(), " dimensions of the input; got ",
          repeats);
  int lead = repeats.size() - x.ndim();
  Dims apart;  // each dimension beside its repetition
  Dims wide;
  Dims result;
  for (int d = 0; d < repeats.size(); ++d) {
    int64_t n = d < lead ? 1 : x.size(d - lead);
    require(repeats[d] >= 0, op, ": repeats must not be negative; got ", repeats);
    int64_t total = 0;
    if (__builtin_mul_overflow(n, repeats[d], &total)) fail(op, ": the result is too large");
    result.push_back(total);
    if (repeats[d] != 1) {
      apart.push_back(1);
      wide.push_back(repeats[d]);
    }
    apart.push_back(n);
    wide.push_back(n);
  }
  numel_of(result);
  Tensor y = reshape(expand(reshape(x, apart), wide), result);
  return y->storage == x->storage ? contiguous_copy(y) : y;
}
void repeat_run(const Call& c, Tensors& outs) { outs.push_back(repeated(c.in[0], c.as<DimsAttrs>().dims, c.name())); }
constexpr OpDef repeat_op = composite({
    .signature = "repeat(Tensor input, int[]* repeats) -> Tensor",
    .doc = R"(The input side by side with itself.

Args:
    repeats: how often, for each dimension; further dimensions may stand in front.
Returns: a new tensor.

>>> clew.tensor([1, 2]).repeat(2, 2).tolist()
[[1, 2, 1, 2], [1, 2, 1, 2]]
)",
    .run = repeat_run,
    .attrs = &attr_info<DimsAttrs>,
    .offer = Offer::method,
});
void tile_run(const Call& c, Tensors& outs) {
  Dims repeats = c.as<DimsAttrs>().dims;
  while (repeats.size() < c.in[0].ndim()) repeats.insert(0, 1);
  outs.push_back(repeated(c.in[0], repeats, c.name()));
}
constexpr OpDef tile_op = composite({
    .signature = "tile(Tensor input, int[]* dims) -> Tensor",
    .doc = R"(The input side by side with itself; dimensions not named are not repeated.

Args:
    dims: how often, for the last dimensions.
Returns: a new tensor.

>>> clew.tensor([1, 2]).tile((2,)).tolist()
[1, 2, 1, 2]
)",
    .run = tile_run,
    .attrs = &attr_info<DimsAttrs>,
});

struct InterleaveAttrs {
  int64_t repeats = 1;
  std::optional<int64_t> dim;
  std::optional<int64_t> output_size;
  static constexpr auto members() {
    return std::tuple(&InterleaveAttrs::repeats, &InterleaveAttrs::dim, &InterleaveAttrs::output_size);
  }
};
struct InterleaveByAttrs {
  std::optional<int64_t> dim;
  std::optional<int64_t> output_size;
  static constexpr auto members() { return std::tuple(&InterleaveByAttrs::dim, &InterleaveByAttrs::output_size); }
};
void check_output_size(const std::optional<int64_t>& want, int64_t have, std::string_view op) {
  require(!want || *want == have, op, ": output_size must be ", have, ", the sum of the repeats; got ", want.value_or(0));
}
// 0 for the first repeats[0] elements, 1 for the next repeats[1] ...
Tensor interleaved(const Tensor& repeats, const std::optional<int64_t>& output_size, std::string_view op) {
  require(repeats.ndim() <= 1, op, ": repeats must have at most one dimension; got ", repeats);
  require(repeats.dtype() == DType::Int64 || repeats.dtype() == DType::Int32, op,
          ": repeats must be int64 or int32; got ", repeats);
  require(!repeats.is_meta(), op, ": the shape of the result depends on values, which a meta tensor does not have");
  Tensor counts = empty({repeats.numel()}, DType::Int64);
  copy_into(counts, alias(repeats, counts.sizes(), {repeats.ndim() ? repeats.stride(0) : 1}));
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    int64_t n = counts.data<int64_t>()[i];
    require(n >= 0, op, ": repeats must not be negative; got ", n);
    if (__builtin_add_overflow(total, n, &total)) fail(op, ": the result is too large");
  }
  check_output_size(output_size, total, op);
  Tensor out = empty({total}, DType::Int64);
  auto* p = out.data<int64_t>();
  for (int64_t i = 0; i < counts.numel(); ++i) {
    for (int64_t n = counts.data<int64_t>()[i]; n > 0; --n) *p++ = i;
  }
  return out;
}
void interleave_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<InterleaveAttrs>();
  Tensor x = a.dim ? c.in[0] : reshape(c.in[0], {-1});
  if (x.ndim() == 0) x = reshape(x, {1});
  int dim = wrapped(a.dim.value_or(0), x.ndim(), c.name());
  require(a.repeats >= 0, c.name(), ": repeats must not be negative; got ", a.repeats);
  int64_t total = 0;
  if (__builtin_mul_overflow(x.size(dim), a.repeats, &total)) fail(c.name(), ": the result is too large");
  check_output_size(a.output_size, total, c.name());
  Dims wide = x.sizes();
  Dims result = x.sizes();
  wide.insert(dim + 1, a.repeats);
  result[dim] = total;
  Tensor y = reshape(expand(unsqueeze(x, dim + 1), wide), result);
  outs.push_back(y->storage == x->storage ? contiguous_copy(y) : y);
}
void interleave_by_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<InterleaveByAttrs>();
  const Tensor& repeats = c.in[1];
  Tensor x = a.dim ? c.in[0] : reshape(c.in[0], {-1});
  if (x.ndim() == 0) x = reshape(x, {1});
  int dim = wrapped(a.dim.value_or(0), x.ndim(), c.name());
  Tensor counts = repeats;
  if (repeats.numel() == 1 && x.size(dim) != 1) counts = expand(reshape(repeats, {1}), {x.size(dim)});
  require(counts.numel() == x.size(dim), c.name(), ": repeats must have one element or ", x.size(dim),
          ", the size of dimension ", dim, "; got ", repeats);
  outs.push_back(index_select(x, dim, interleaved(counts, a.output_size, c.name())));
}
struct OutputSizeAttrs {
  std::optional<int64_t> output_size;
  static constexpr auto members() { return std::tuple(&OutputSizeAttrs::output_size); }
};
void interleave_alone_run(const Call& c, Tensors& outs) {
  outs.push_back(interleaved(c.in[0], c.as<OutputSizeAttrs>().output_size, c.name()));
}
constexpr const char* interleave_doc = R"(Repeats each element of a dimension.

Args:
    repeats: how often, one number or one for each element.
    dim: the dimension; the flattened input when not given.
    output_size: the size of the result along `dim`, when known.
Returns: a new tensor.

>>> clew.repeat_interleave(clew.tensor([1, 2]), 2).tolist()
[1, 1, 2, 2]
)";
constexpr OpDef interleave_op = composite({
    .signature = "repeat_interleave(Tensor input, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
    .doc = interleave_doc,
    .run = interleave_run,
    .attrs = &attr_info<InterleaveAttrs>,
});
constexpr OpDef interleave_by_op = composite({
    .signature = "repeat_interleave(Tensor input, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor",
    .doc = interleave_doc,
    .run = interleave_by_run,
    .attrs = &attr_info<InterleaveByAttrs>,
});
constexpr OpDef interleave_alone_op = composite({
    .signature = "repeat_interleave(Tensor repeats, *, int? output_size=None) -> Tensor",
    .doc = interleave_doc,
    .run = interleave_alone_run,
    .attrs = &attr_info<OutputSizeAttrs>,
    .offer = Offer::function,
});

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
  out.add(c.in[0].dtype(), c.in[0].sizes());
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
  ReleaseGil gil(x.numel());
  kernels::copy_signed(outs[0].nd(), {x->data + offset * static_cast<int64_t>(itemsize(x.dtype())), x.sizes().data(),
                                      strides.data(), x.ndim(), x.dtype()});
}
void flip_vjp(Vjp& c) { c.set(0, flip(c.grad(), c.as<DimsAttrs>().dims)); }
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
    .attrs = &attr_info<DimsAttrs>,
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
    require(a.shifts.size() == 1, c.name(), ": without dims there must be one shift; got ", a.shifts);
    return outs.push_back(reshape(rolled(reshape(x, {-1}), a.shifts[0], 0), x.sizes()));
  }
  require(a.dims->size() == a.shifts.size(), c.name(), ": shifts and dims must be equally long; got ", a.shifts, " and ",
          *a.dims);
  require(x.ndim() > 0, c.name(), ": a 0-d tensor has no dimension to roll");
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
void tril_cpu(const Call& c, Tensors& outs) {
  ReleaseGil gil(outs[0].numel());
  kernels::triangle(outs[0].nd(), c.in[0].nd(), c.as<DiagonalAttrs>().diagonal, true);
}
void triu_cpu(const Call& c, Tensors& outs) {
  ReleaseGil gil(outs[0].numel());
  kernels::triangle(outs[0].nd(), c.in[0].nd(), c.as<DiagonalAttrs>().diagonal, false);
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
    .cpu = tril_cpu,
    .vjp = tril_vjp,
    .attrs = &attr_info<DiagonalAttrs>,
    .inplace = true,
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
    .cpu = triu_cpu,
    .vjp = triu_vjp,
    .attrs = &attr_info<DiagonalAttrs>,
    .inplace = true,
});

// ---- diagonals ----------------------------------------------------------------------------------

struct EmbedAttrs {
  int64_t offset = 0;
  int64_t dim1 = -2;
  int64_t dim2 = -1;
  static constexpr auto members() { return std::tuple(&EmbedAttrs::offset, &EmbedAttrs::dim1, &EmbedAttrs::dim2); }
};
Tensor embedded(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2, std::string_view op) {
  require(x.ndim() >= 1, op, ": input must have at least 1 dimension; got ", x);
  int a = wrapped(dim1, x.ndim() + 1, op);
  int b = wrapped(dim2, x.ndim() + 1, op);
  require(a != b, op, ": dim1 and dim2 must differ; got ", dim1, " and ", dim2);
  int64_t side = 0;
  if (offset == INT64_MIN || __builtin_add_overflow(x.size(-1), offset < 0 ? -offset : offset, &side)) {
    fail(op, ": the result is too large");
  }
  Dims sizes;
  int next = 0;
  for (int d = 0; d < x.ndim() + 1; ++d) sizes.push_back(d == a || d == b ? side : x.size(next++));
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

// ---- meshgrid -----------------------------------------------------------------------------------

struct MeshAttrs {
  Str indexing;
  static constexpr auto members() { return std::tuple(&MeshAttrs::indexing); }
};
void meshgrid_run(const Call& c, Tensors& outs) {
  const Str& indexing = c.as<MeshAttrs>().indexing;
  bool xy = indexing == "xy";
  require(xy || indexing == "ij" || indexing == "", c.name(), ": indexing must be 'ij' or 'xy'; got '",
          std::string_view(indexing), "'");
  require(!c.in.empty(), c.name(), ": expected a non-empty list of tensors");
  Dims sizes;
  for (const Tensor& t : c.in) {
    if (!t.defined()) fail_type(c.name(), ": every element of tensors must be a Tensor; got None");
    require(t.ndim() <= 1, c.name(), ": tensors must have at most one dimension; got ", t);
    require(t.dtype() == c.in[0].dtype(), c.name(), ": tensors must have one dtype; got ", c.in[0], " and ", t);
    sizes.push_back(t.numel());
  }
  bool swap = xy && sizes.size() >= 2;
  if (swap) std::swap(sizes[0], sizes[1]);
  for (int k = 0; k < sizes.size(); ++k) {
    int at = swap && k < 2 ? 1 - k : k;
    Dims own(sizes.size(), 1);
    own[at] = sizes[at];
    outs.push_back(expand(reshape(c.in[static_cast<size_t>(k)], own), sizes));
  }
}
constexpr OpDef meshgrid_op = composite({
    .signature = "meshgrid(Tensor[] tensors, *, str? indexing=None) -> Tensor[]",
    .doc = R"(Coordinate grids: each vector spread over a dimension of its own.

Args:
    tensors: vectors of one dtype.
    indexing: 'ij', or 'xy' to exchange the first two dimensions.
Returns: a tuple of views, one for each vector.

>>> [g.tolist() for g in clew.meshgrid((clew.tensor([1, 2]), clew.tensor([3, 4])), indexing='ij')]
[[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
)",
    .run = meshgrid_run,
    .attrs = &attr_info<MeshAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* all[] = {
    &repeat_op, &tile_op,  &interleave_op, &interleave_by_op, &interleave_alone_op, &flip_op,     &fliplr_op,
    &flipud_op, &roll_op,  &rot90_op,      &tril_op,          &triu_op,             &embed_op,    &diag_op,
    &diagflat_op, &meshgrid_op,
};

}  // namespace

extern const OpList rearrange_ops;
const OpList rearrange_ops = op_list(all);

Tensor flip(const Tensor& x, const Dims& dims) { return apply(flip_op, {x}, DimsAttrs{dims}); }
Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims) {
  Tensor y = x;
  for (int i = 0; i < dims.size(); ++i) y = rolled(y, shifts[i], wrapped(dims[i], x.ndim(), "roll"));
  return y;
}
Tensor repeat(const Tensor& x, const Dims& repeats) { return repeated(x, repeats, "repeat"); }
Tensor tril(const Tensor& x, int64_t diagonal) { return apply(tril_op, {x}, DiagonalAttrs{diagonal}); }
Tensor triu(const Tensor& x, int64_t diagonal) { return apply(triu_op, {x}, DiagonalAttrs{diagonal}); }
Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return embedded(x, offset, dim1, dim2, "diag_embed");
}

}  // namespace clew
