// Views that reorder dimensions: permute, transpose, t, movedim and their aliases; adjoint.
// May include: ops, graph, tensor, kernels.
// Invariant: a view rule only computes sizes, strides and offset; no element is read or moved in
// this file.
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/views/specs.h"

namespace clew {

namespace {

struct TwoDimsAttrs {
  int64_t dim0 = 0;
  int64_t dim1 = 0;
  static constexpr auto members() { return std::tuple(&TwoDimsAttrs::dim0, &TwoDimsAttrs::dim1); }
};

void permuted(const Tensor& x, const Dims& order, Specs& out) {
  Dims sizes(x.ndim());
  Dims strides(x.ndim());
  for (int i = 0; i < x.ndim(); ++i) {
    sizes[i] = x.sizes()[static_cast<int>(order[i])];
    strides[i] = x.strides()[static_cast<int>(order[i])];
  }
  add_spec(out, std::move(sizes), std::move(strides));
}
Dims inverse(const Dims& order) {
  Dims back(order.size());
  for (int i = 0; i < order.size(); ++i) back[static_cast<int>(order[i])] = i;
  return back;
}
Dims permute_order(const Dims& dims, int ndim, std::string_view op) {
  require(dims.size() == ndim, op, ": dims must name each of the ", ndim, " dimensions once; got ",
          dims);
  Dims order(ndim);
  uint64_t seen = 0;
  for (int i = 0; i < ndim; ++i) {
    order[i] = wrapped(dims[i], ndim, op);
    uint64_t bit = uint64_t{1} << order[i];
    require(!(seen & bit), op, ": dims must name each of the ", ndim, " dimensions once; got ",
            dims);
    seen |= bit;
  }
  return order;
}
void permute_rule(const Call& c, Specs& out) {
  permuted(c.in[0], permute_order(c.as<SizeAttrs>().size, c.in[0].ndim(), c.name()), out);
}
void permute_vjp(Vjp& c) {
  const Dims& dims = c.as<SizeAttrs>().size;
  c.set(0, permute(c.grad(), inverse(permute_order(dims, dims.size(), "permute"))));
}
constexpr OpDef permute_op = view({
    .signature = "permute(Tensor input, int[]* dims) -> Tensor",
    .doc = R"(The dimensions in another order.

Args:
    dims: for each dimension of the result, the input dimension it shows.
Returns: a view of the input.

>>> list(clew.ones(2, 3, 4).permute(2, 0, 1).shape)
[4, 2, 3]
)",
    .view = permute_rule,
    .vjp = permute_vjp,
    .batch = batch_permute,
    .attrs = &attr_info<SizeAttrs>,
});

void swap_rule(const Tensor& x, int a, int b, Specs& out) {
  ViewSpec& s = out.emplace_back();
  s.sizes = x.sizes();
  s.strides = x.strides();
  if (x.ndim() == 0) return;
  std::swap(s.sizes[a], s.sizes[b]);
  std::swap(s.strides[a], s.strides[b]);
}
void transpose_rule(const Call& c, Specs& out) {
  const auto& a = c.as<TwoDimsAttrs>();
  const Tensor& x = c.in[0];
  swap_rule(x, wrapped(a.dim0, x.ndim(), c.name()), wrapped(a.dim1, x.ndim(), c.name()), out);
}
void transpose_vjp(Vjp& c) {
  const auto& a = c.as<TwoDimsAttrs>();
  c.set(0, transpose(c.grad(), a.dim0, a.dim1));
}
constexpr OpDef transpose_op = view({
    .signature = "transpose(Tensor input, int dim0, int dim1) -> Tensor",
    .doc = R"(Two dimensions exchanged.

Args:
    dim0: one dimension.
    dim1: the other.
Returns: a view of the input.

>>> list(clew.ones(2, 3).transpose(0, 1).shape)
[3, 2]
)",
    .view = transpose_rule,
    .vjp = transpose_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<TwoDimsAttrs>,
});
constexpr OpDef swapaxes_op =
    also(transpose_op, "swapaxes(Tensor input, int axis0, int axis1) -> Tensor",
         R"(Two dimensions exchanged; NumPy's name for `transpose`.

>>> list(clew.ones(2, 3).swapaxes(0, 1).shape)
[3, 2]
)");
constexpr OpDef swapdims_op =
    also(transpose_op, "swapdims(Tensor input, int dim0, int dim1) -> Tensor",
         R"(Two dimensions exchanged; the same as `transpose`.

>>> list(clew.ones(2, 3).swapdims(0, 1).shape)
[3, 2]
)");

void t_rule(const Call& c, Specs& out) {
  const Tensor& x = c.in[0];
  require(x.ndim() <= 2, c.name(), ": input must have at most 2 dimensions; got ", x);
  swap_rule(x, 0, x.ndim() == 2 ? 1 : 0, out);
}
void t_vjp(Vjp& c) { c.set(0, t(c.grad())); }
constexpr OpDef t_op = view({
    .signature = "t(Tensor input) -> Tensor",
    .doc = R"(The transpose of a matrix; vectors and 0-d tensors stay as they are.

>>> list(clew.ones(2, 3).t().shape)
[3, 2]
)",
    .view = t_rule,
    .vjp = t_vjp,
    .batch = batch_transpose_last,
});

void reversed_rule(const Call& c, Specs& out) {
  Dims order(c.in[0].ndim());
  for (int i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  permuted(c.in[0], order, out);
}
void reversed_vjp(Vjp& c) { c.set(0, reversed_dims(c.grad())); }
constexpr OpDef reversed_op = view({
    .signature = "_T(Tensor input) -> Tensor",
    .doc = "All dimensions in reverse order.",
    .view = reversed_rule,
    .vjp = reversed_vjp,
    .offer = Offer::function,
});

void matrix_transpose_rule(const Call& c, Specs& out) {
  const Tensor& x = c.in[0];
  require(x.ndim() >= 2, c.name(), ": input must have at least 2 dimensions; got ", x);
  swap_rule(x, x.ndim() - 2, x.ndim() - 1, out);
}
void matrix_transpose_vjp(Vjp& c) { c.set(0, transposed(c.grad())); }
constexpr OpDef matrix_transpose_op = view({
    .signature = "_mT(Tensor input) -> Tensor",
    .doc = "The last two dimensions exchanged.",
    .view = matrix_transpose_rule,
    .vjp = matrix_transpose_vjp,
    .offer = Offer::function,
});
void adjoint_run(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  outs.push_back(shown_conj(x.ndim() == 0 ? transpose(x, 0, 0) : transposed(x)));
}
constexpr OpDef adjoint_op = composite({
    .signature = "adjoint(Tensor input) -> Tensor",
    .doc = R"(The last two dimensions exchanged and every element conjugated.

>>> clew.tensor([[1., 2.], [3., 4.]]).adjoint().tolist()
[[1.0, 3.0], [2.0, 4.0]]
)",
    .run = adjoint_run,
});
constexpr OpDef mh_op = composite({
    .signature = "_mH(Tensor input) -> Tensor",
    .doc = "The last two dimensions exchanged and every element conjugated.",
    .run = adjoint_run,
    .offer = Offer::function,
});
void h_run(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  require(x.ndim() == 2 || x.ndim() == 0, "H: input must be a matrix or 0-d; got ", x);
  Tensor y = t(x);
  outs.push_back(shown_conj(y));
}
constexpr OpDef h_op = composite({
    .signature = "_H(Tensor input) -> Tensor",
    .doc = "The conjugate transpose of a matrix.",
    .run = h_run,
    .offer = Offer::function,
});

struct MovedimAttrs {
  Dims source;
  Dims destination;
  static constexpr auto members() {
    return std::tuple(&MovedimAttrs::source, &MovedimAttrs::destination);
  }
};
Dims movedim_order(const MovedimAttrs& a, int ndim, std::string_view op) {
  require(a.source.size() == a.destination.size(), op,
          ": source and destination must name equally many dimensions; got ", a.source, " and ",
          a.destination);
  Dims order(ndim, -1);
  uint64_t moved = 0;
  uint64_t taken = 0;
  for (int i = 0; i < a.source.size(); ++i) {
    int from = wrapped(a.source[i], ndim, op);
    int to = wrapped(a.destination[i], ndim, op);
    require(!(moved >> from & 1) && !(taken >> to & 1), op, ": dimensions must not repeat; got ",
            a.source, " and ", a.destination);
    moved |= uint64_t{1} << from;
    taken |= uint64_t{1} << to;
    if (ndim) order[to] = from;
  }
  int next = 0;
  for (int i = 0; i < ndim; ++i) {
    if (order[i] >= 0) continue;
    while (moved >> next & 1) ++next;
    order[i] = next++;
  }
  return order;
}
void movedim_rule(const Call& c, Specs& out) {
  permuted(c.in[0], movedim_order(c.as<MovedimAttrs>(), c.in[0].ndim(), c.name()), out);
}
void movedim_vjp(Vjp& c) {
  const auto& a = c.as<MovedimAttrs>();
  c.set(0, movedim(c.grad(), a.destination, a.source));
}
constexpr OpDef movedim_op = view({
    .signature = "movedim(Tensor input, int[1] source, int[1] destination) -> Tensor",
    .doc = R"(Dimensions moved to other places; the others keep their order.

Args:
    source: the dimensions to move.
    destination: where they go.
Returns: a view of the input.

>>> list(clew.ones(2, 3, 4).movedim(0, -1).shape)
[3, 4, 2]
)",
    .view = movedim_rule,
    .vjp = movedim_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<MovedimAttrs>,
});
constexpr OpDef moveaxis_op =
    also(movedim_op, "moveaxis(Tensor input, int[1] source, int[1] destination) -> Tensor",
         R"(Dimensions moved to other places; NumPy's name for `movedim`.

>>> list(clew.ones(2, 3, 4).moveaxis(0, -1).shape)
[3, 4, 2]
)");

constexpr const OpDef* order_list[] = {
    &permute_op,          &transpose_op, &swapaxes_op, &swapdims_op, &t_op,       &reversed_op,
    &matrix_transpose_op, &adjoint_op,   &mh_op,       &h_op,        &movedim_op, &moveaxis_op,
};

}  // namespace

extern const OpList order_ops;
const OpList order_ops = op_list(order_list);

Tensor permute(const Tensor& x, const Dims& dims) {
  return apply(permute_op, {x}, SizeAttrs{dims});
}
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  return apply(transpose_op, {x}, TwoDimsAttrs{dim0, dim1});
}
Tensor t(const Tensor& x) { return apply(t_op, {x}); }
Tensor transposed(const Tensor& x) { return apply(matrix_transpose_op, {x}); }
Tensor adjoint(const Tensor& x) {
  Tensor y = transposed(x);
  return y.is_complex() ? conj(y) : y;
}
Tensor reversed_dims(const Tensor& x) { return apply(reversed_op, {x}); }
Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination) {
  return apply(movedim_op, {x}, MovedimAttrs{source, destination});
}

}  // namespace clew
