// Sums and means of rows of a table, bag by bag.
// May include: ops, graph, tensor, kernels.
// Invariant: rows are never copied; a gradient that is recorded is composed of public operations.
#include "graph/modes.h"
#include "kernels/indexing/bags.h"
#include "kernels/indexing/index.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/indexing.h"
#include "ops/calls/rearrange.h"
#include "ops/calls/reduction.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/ops.h"
#include "tensor/kernel_frame.h"

namespace clew {

namespace {

struct BagAttrs {
  bool mean = false;
  static constexpr auto members() { return std::tuple(&BagAttrs::mean); }
};

Tensor own_int64(const Tensor& t) { return dense_copy(t, DType::Int64); }

// The operands of a kernel, dense; they live as long as this. Indices and offsets are copies, to
// which nobody else can write, and were seen to fit a table of `size` rows.
struct Operands {
  Tensor indices, offsets, factors;
  kernels::Bags bags;
  Operands(const Tensor& i, const Tensor& o, const Tensor& f, bool mean, int64_t size)
      : indices(empty(i.sizes(), DType::Int64)), offsets(own_int64(o)), factors(f) {
    constexpr auto op = "embedding_bag";
    require(i.ndim() == 1 && o.ndim() == 1 && o.numel() > 0, op,
            ": indices and offsets must be vectors; got ", i, " and ", o);
    if (factors.defined()) {
      factors = contiguous(factors);
      require(factors.numel() == i.numel(), op, ": factors must have the shape of indices; got ", f,
              " for ", i);
    }
    bags = {indices.data<int64_t>(), offsets.data<int64_t>(), offsets.numel() - 1,
            factors.defined() ? factors->address() : nullptr, mean};
    int64_t before = 0;
    for (int64_t b = 0; b <= bags.count; ++b) {
      require(bags.offsets[b] >= before && bags.offsets[b] <= indices.numel(), op,
              ": offsets must not decrease and not pass input's length ", indices.numel(), "; got ",
              bags.offsets[b], " after ", before);
      before = bags.offsets[b];
    }
    const Tensor given = i.dtype() == DType::Int64 ? i : own_int64(i);
    if (const auto bad = kernels::copy_indices(indices.data<int64_t>(), given.nd(), size))
      fail(op, ": index ", bad.value, " is out of range for a table of ", size, " rows");
  }
  int64_t rows() const { return bags.offsets[bags.count] - bags.offsets[0]; }
};

void bag_shape(const Call& c, OutSpecs& out) {
  const Tensor &weight = c.in[0], &indices = c.in[1], &offsets = c.in[2], &factors = c.in[3];
  require(weight.ndim() == 2 && weight.is_floating(), c.name(),
          ": weight must be a floating-point matrix; got ", weight);
  for (const Tensor* t : {&indices, &offsets}) {
    require((t->dtype() == DType::Int64 || t->dtype() == DType::Int32) && t->ndim() == 1, c.name(),
            ": indices and offsets must be int64 or int32 vectors; got ", *t);
  }
  require(offsets.numel() > 0, c.name(), ": offsets must have at least one element; got ", offsets);
  if (factors.defined()) {
    require(factors.sizes() == indices.sizes() && factors.dtype() == weight.dtype(), c.name(),
            ": factors must have the shape of indices and the dtype of weight; got ", factors,
            " for ", indices, " and ", weight);
  }
  out.add(weight.dtype(), {offsets.numel() - 1, weight.size(1)});
}
void bag_cpu(const Call& c, Tensors& outs) {
  const Tensor weight = contiguous(c.in[0]);
  const Operands o(c.in[1], c.in[2], c.in[3], c.as<BagAttrs>().mean, weight.size(0));
  kernels::bag_sums(outs[0].nd(), weight.nd(), o.bags);
}

// For each index its bag's gradient, as it reaches the row.
struct Spread {
  Tensor indices, rows;
  int64_t before, after;  // indices outside of all bags
};
Spread gradient_rows(const Vjp& c, const Tensor& factors) {
  const Operands o(c.in(1), c.in(2), {}, false, c.sizes(0)[0]);
  const bool mean = c.as<BagAttrs>().mean;
  const int64_t first = o.bags.offsets[0], inside = o.rows();
  Tensor which = empty({inside}, DType::Int64);
  Tensor share = empty({inside}, c.dtype(0));
  for (int64_t b = 0; b < o.bags.count; ++b) {
    const int64_t begin = o.bags.offsets[b] - first, n = o.bags.offsets[b + 1] - first - begin;
    if (n == 0) continue;
    fill_(alias(which, {n}, {1}, begin), Scalar(b));
    fill_(alias(share, {n}, {1}, begin), Scalar(mean ? 1.0 / static_cast<double>(n) : 1.0));
  }
  const Tensor all = factors.defined() ? share * narrow(factors, 0, first, inside) : share;
  return {narrow(c.in(1), 0, first, inside), index_select(c.grad(), 0, which) * unsqueeze(all, 1),
          first, c.in(1).numel() - first - inside};
}
Tensor factors_of(const Vjp& c) { return c.has_in(3) ? c.in(3) : Tensor(); }

// Unrecorded gradients, in the order of the signatures grad, indices, offsets.
void check_bag_gradient(const Call& c, const Tensor& grad, const Tensor& indices,
                        const Tensor& offsets, int64_t columns) {
  for (const Tensor* t : {&indices, &offsets})
    require((t->dtype() == DType::Int64 || t->dtype() == DType::Int32) && t->ndim() == 1, c.name(),
            ": indices and offsets must be int64 or int32 vectors; got ", *t);
  require(grad.is_floating() && grad.ndim() == 2 && grad.size(1) == columns &&
              grad.size(0) == offsets.numel() - 1,
          c.name(), ": grad must have a row for each bag; got ", grad, " for offsets ", offsets);
}
// Adds the gradient of the table to `into`, which is dense.
void spread_into(const Tensor& into, const Tensor& grad_in, const Tensor& indices,
                 const Tensor& offsets, const Tensor& factors, bool mean) {
  const DType d = into.dtype();
  const Operands o(indices, offsets, factors.defined() ? to_dtype(factors, d) : factors, mean,
                   into.size(0));
  const Tensor grad = contiguous(to_dtype(grad_in, d));
  kernels::bag_spread(into.nd(), grad.nd(), o.bags);
}
struct SpreadAttrs {
  int64_t rows = 0;
  bool mean = false;
  static constexpr auto members() { return std::tuple(&SpreadAttrs::rows, &SpreadAttrs::mean); }
};
constexpr OpDef bag_spread_op = general({
    .signature = "_embedding_bag_spread(Tensor grad, Tensor indices, Tensor offsets, Tensor? "
                 "factors, int rows, bool mean) -> Tensor",
    .doc = "Gradient of _embedding_bag()'s table of so many rows; of 16-bit floats in float32.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const Tensor &g = c.in[0], &factors = c.in[3];
          check_bag_gradient(c, g, c.in[1], c.in[2], g.ndim() == 2 ? g.size(1) : -1);
          require(
              !factors.defined() || (factors.is_floating() && factors.sizes() == c.in[1].sizes()),
              c.name(), ": factors must have the shape of indices; got ", factors);
          const int64_t rows = c.as<SpreadAttrs>().rows;
          require(rows >= 0, c.name(), ": rows must not be negative; got ", rows);
          out.add(itemsize(g.dtype()) == 2 ? DType::Float32 : g.dtype(), {rows, g.size(1)});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          fill_(outs[0], Scalar(0));
          spread_into(outs[0], c.in[0], c.in[1], c.in[2], c.in[3], c.as<SpreadAttrs>().mean);
        },
    .no_vjp = composed_when_recorded,
    .attrs = &attr_info<SpreadAttrs>,
    .at_once = true,
    .offer = Offer::function,
    .flops = "2 * indices[0] * grad[1]",
});
constexpr OpDef bag_dots_op = general({
    .signature = "_embedding_bag_dots(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, "
                 "bool mean) -> Tensor",
    .doc = "Gradient of _embedding_bag()'s factors.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const Tensor &g = c.in[0], &table = c.in[1];
          require(table.ndim() == 2 && table.dtype() == g.dtype(), c.name(),
                  ": weight must be a matrix of grad's dtype; got ", table, " for ", g);
          check_bag_gradient(c, g, c.in[2], c.in[3], table.size(1));
          out.add(g.dtype(), c.in[2].sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor grad = contiguous(c.in[0]), table = contiguous(c.in[1]);
          const Operands o(c.in[2], c.in[3], {}, c.as<BagAttrs>().mean, table.size(0));
          fill_(outs[0], Scalar(0));
          kernels::bag_dots(outs[0]->address(), table.nd(), grad.nd(), o.bags);
        },
    .no_vjp = composed_when_recorded,
    .attrs = &attr_info<BagAttrs>,
    .at_once = true,
    .offer = Offer::function,
    .flops = "2 * indices[0] * weight[1]",
});

void bag_vjp(Vjp& c) {
  const Tensor indices = c.in(1);
  const bool recorded = modes.grad;
  if (c.needs(0)) {
    if (recorded) {
      const Spread s = gradient_rows(c, factors_of(c));
      const Tensor table = zero_block(c.sizes(0), c.dtype(0), c.grad().device());
      c.set(0, index_add(table, 0, s.indices, s.rows));
    } else {
      c.set(0, apply(bag_spread_op, {c.grad(), indices, c.in(2), factors_of(c)},
                     SpreadAttrs{c.sizes(0)[0], c.as<BagAttrs>().mean}));
    }
  }
  if (!c.needs(3)) return;
  if (recorded) {
    const Spread s = gradient_rows(c, {});
    const Tensor inside = sum(s.rows * index_select(c.in(0), 0, s.indices), Dims{1});
    return c.set(3, constant_pad(inside, {s.before, s.after}));
  }
  c.set(3, apply(bag_dots_op, {c.grad(), c.in(0), indices, c.in(2)}, c.as<BagAttrs>()));
}
void bag_accumulate(Vjp& c, const Tensor& into) {
  const Tensor indices = c.in(1), offsets = c.in(2);
  const Tensor factors = factors_of(c);
  const bool mean = c.as<BagAttrs>().mean;
  if (itemsize(into.dtype()) > 2) {
    const Held held{into, c.grad(), indices, offsets, factors};
    return spread_into(into, c.grad(), indices, offsets, factors, mean);
  }
  const Tensor table =
      apply(bag_spread_op, {c.grad(), indices, offsets, factors}, SpreadAttrs{into.size(0), mean});
  copy_into(into, add(into, to_dtype(table, into.dtype())));
}
constexpr OpDef bag_op = general({
    .signature = "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, Tensor? factors, "
                 "bool mean=False) -> Tensor",
    .doc = "Sums, or means, of the rows of a table that each bag names; bag b begins at offsets[b] "
           "and ends at offsets[b + 1].",
    .shape = bag_shape,
    .cpu = bag_cpu,
    .saves = {.always = in(1) | in(2), .when = {in(3), 0, 0, in(0)}},
    .vjp = bag_vjp,
    .accumulate = bag_accumulate,
    .attrs = &attr_info<BagAttrs>,
    .offer = Offer::function,
    .flops = "2 * indices[0] * weight[1]",
});

constexpr const OpDef* embedding_bag_list[] = {&bag_op, &bag_spread_op, &bag_dots_op};

}  // namespace

extern const OpList embedding_bag_ops;
const OpList embedding_bag_ops = op_list(embedding_bag_list);

}  // namespace clew
