// repeat, tile, repeat_interleave, meshgrid.
// May include: ops, graph, tensor, kernels.
// Invariant: repeating is an expanded view that is then copied.
#include "base/checked.h"
#include "ops/attributes.h"
#include "ops/calls/indexing.h"
#include "ops/calls/rearrange.h"
#include "ops/calls/shape.h"

namespace clew {

namespace {

// ---- repeating ----------------------------------------------------------------------------------

Tensor repeated(const Tensor& x, const Dims& repeats, std::string_view op) {
  require(repeats.size() >= x.ndim(), op, ": repeats must name at least the ", x.ndim(),
          " dimensions of the input; got ", repeats);
  int lead = repeats.size() - x.ndim();
  Dims apart;  // each dimension beside its repetition
  Dims wide;
  Dims result;
  for (int d = 0; d < repeats.size(); ++d) {
    int64_t n = d < lead ? 1 : x.size(d - lead);
    require(repeats[d] >= 0, op, ": repeats must not be negative; got ", repeats);
    const Checked total = Checked(n) * repeats[d];
    require(total.fits, op, ": repeats ", repeats, " are too many for ", x);
    result.push_back(total.value);
    if (repeats[d] != 1) {
      apart.push_back(1);
      wide.push_back(repeats[d]);
    }
    apart.push_back(n);
    wide.push_back(n);
  }
  numel_of(result);
  return reshape(contiguous_copy(expand(reshape(x, apart), wide)), result);
}
void repeat_run(const Call& c, Tensors& outs) {
  outs.push_back(repeated(c.in[0], c.as<DimsAttrs>().dims, c.name()));
}
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
    return std::tuple(&InterleaveAttrs::repeats, &InterleaveAttrs::dim,
                      &InterleaveAttrs::output_size);
  }
};
struct InterleaveByAttrs {
  std::optional<int64_t> dim;
  std::optional<int64_t> output_size;
  static constexpr auto members() {
    return std::tuple(&InterleaveByAttrs::dim, &InterleaveByAttrs::output_size);
  }
};
void check_output_size(const std::optional<int64_t>& want, int64_t have, std::string_view op) {
  require(!want || *want == have, op, ": output_size must be ", have,
          ", the sum of the repeats; got ", want.value_or(0));
}
// 0 for the first repeats[0] elements, 1 for the next repeats[1] ...
Tensor interleaved(const Tensor& repeats, const std::optional<int64_t>& output_size,
                   std::string_view op) {
  require(repeats.ndim() <= 1, op, ": repeats must have at most one dimension; got ", repeats);
  if (repeats.dtype() != DType::Int64 && repeats.dtype() != DType::Int32)
    fail(ErrorKind::NotImplemented, op, ": repeats must be int64 or int32; got ", repeats);
  require(!repeats.is_meta(), op,
          ": the shape of the result depends on values, which a meta tensor does not have");
  const std::vector<int64_t> counts = int64_values(repeats);
  Checked sum = 0;
  for (const int64_t n : counts) {
    require(n >= 0, op, ": repeats must not be negative; got ", n);
    sum += n;
  }
  require(sum.fits, op, ": repeats ", repeats, " add up to more than an int64 can count");
  const int64_t total = sum.value;
  check_output_size(output_size, total, op);
  return int64_tensor(total, [&](std::span<int64_t> from) {
    auto to = from.begin();
    for (size_t i = 0; i < counts.size(); ++i)
      to = std::fill_n(to, counts[i], static_cast<int64_t>(i));
  });
}
void interleave_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<InterleaveAttrs>();
  Tensor x = a.dim ? c.in[0] : reshape(c.in[0], {-1});
  if (x.ndim() == 0) x = reshape(x, {1});
  int dim = wrapped(a.dim.value_or(0), x.ndim(), c.name());
  require(a.repeats >= 0, c.name(), ": repeats must not be negative; got ", a.repeats);
  const Checked product = Checked(x.size(dim)) * a.repeats;
  require(product.fits, c.name(), ": ", a.repeats, " repeats are too many for ", x);
  const int64_t total = product.value;
  check_output_size(a.output_size, total, c.name());
  Dims wide = x.sizes();
  Dims result = x.sizes();
  wide.insert(dim + 1, a.repeats);
  result[dim] = total;
  outs.push_back(reshape(contiguous_copy(expand(unsqueeze(x, dim + 1), wide)), result));
}
void interleave_by_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<InterleaveByAttrs>();
  const Tensor& repeats = c.in[1];
  Tensor x = a.dim ? c.in[0] : reshape(c.in[0], {-1});
  if (x.ndim() == 0) x = reshape(x, {1});
  int dim = wrapped(a.dim.value_or(0), x.ndim(), c.name());
  Tensor counts = repeats;
  if (repeats.numel() == 1 && x.size(dim) != 1)
    counts = expand(reshape(repeats, {1}), {x.size(dim)});
  require(counts.numel() == x.size(dim), c.name(), ": repeats must have one element or ",
          x.size(dim), ", the size of dimension ", dim, "; got ", repeats);
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
    .signature = "repeat_interleave(Tensor input, int repeats, int? dim=None, *, int? "
                 "output_size=None) -> Tensor",
    .doc = interleave_doc,
    .run = interleave_run,
    .attrs = &attr_info<InterleaveAttrs>,
});
constexpr OpDef interleave_by_op = composite({
    .signature = "repeat_interleave(Tensor input, Tensor repeats, int? dim=None, *, int? "
                 "output_size=None) -> Tensor",
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

// ---- meshgrid -----------------------------------------------------------------------------------

struct MeshAttrs {
  Str indexing;
  static constexpr auto members() { return std::tuple(&MeshAttrs::indexing); }
};
void meshgrid_run(const Call& c, Tensors& outs) {
  const Str& indexing = c.as<MeshAttrs>().indexing;
  bool xy = indexing == "xy";
  require(xy || indexing == "ij" || !indexing.given(), c.name(),
          ": indexing must be 'ij' or 'xy'; got '", std::string_view(indexing), "'");
  require(!c.in.empty(), c.name(), ": expected a non-empty list of tensors");
  Dims sizes;
  for (const Tensor& t : c.in) {
    if (!t.defined()) fail_type(c.name(), ": every element of tensors must be a Tensor; got None");
    require(t.ndim() <= 1, c.name(), ": tensors must have at most one dimension; got ", t);
    require(t.dtype() == c.in[0].dtype(), c.name(), ": tensors must have one dtype; got ", c.in[0],
            " and ", t);
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

constexpr const OpDef* repeat_list[] = {
    &repeat_op, &tile_op, &interleave_op, &interleave_by_op, &interleave_alone_op, &meshgrid_op,
};

}  // namespace

extern const OpList repeat_ops;
const OpList repeat_ops = op_list(repeat_list);

}  // namespace clew
