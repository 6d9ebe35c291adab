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

Tensor own_int64(const Tensor& t) {
  Tensor copy = empty(t.sizes(), DType::Int64);
  copy_into(copy, t);
  return copy;
}

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
      fail_index(op, ": index ", bad.value, " is out of range for a table of ", size, " rows");
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

// Adds the gradient of the table to `into`, which is dense.
void spread(const Vjp& c, const Tensor& into) {
  const Tensor factors = factors_of(c);
  const DType d = into.dtype();
  const Operands o(c.in(1), c.in(2), factors.defined() ? to_dtype(factors, d) : factors,
                   c.as<BagAttrs>().mean, into.size(0));
  const Tensor grad = contiguous(to_dtype(c.grad(), d));
  const Held held{into, grad, c.in(1), c.in(2), factors};
  kernels::bag_spread(into.nd(), grad.nd(), o.bags);
}
void bag_vjp(Vjp& c) {
  const Tensor indices = c.in(1);
  const bool recorded = modes.grad;
  if (c.needs(0)) {
    // 16-bit sums are kept in 32 bits.
    const bool half = itemsize(c.dtype(0)) == 2 && !recorded;
    Tensor table = zero_block(c.sizes(0), half ? DType::Float32 : c.dtype(0), c.grad().device());
    if (recorded) {
      const Spread s = gradient_rows(c, factors_of(c));
      table = index_add(table, 0, s.indices, s.rows);
    } else {
      table = contiguous_copy(table);
      spread(c, table);
    }
    c.set(0, std::move(table));
  }
  if (!c.needs(3)) return;
  if (recorded) {
    const Spread s = gradient_rows(c, {});
    const Tensor inside = sum(s.rows * index_select(c.in(0), 0, s.indices), Dims{1});
    return c.set(3, constant_pad(inside, {s.before, s.after}));
  }
  const Tensor table = contiguous(c.in(0)), grad = contiguous(c.grad());
  const Operands o(indices, c.in(2), {}, c.as<BagAttrs>().mean, table.size(0));
  Tensor slope = empty(indices.sizes(), grad.dtype());
  fill_(slope, Scalar(0));
  kernels::bag_dots(slope->address(), table.nd(), grad.nd(), o.bags);
  c.set(3, std::move(slope));
}
void bag_accumulate(Vjp& c, const Tensor& into) {
  if (itemsize(into.dtype()) > 2) return spread(c, into);
  Tensor table = contiguous_copy(zero_block(into.sizes(), DType::Float32, into.device()));
  spread(c, table);
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

constexpr const OpDef* embedding_bag_list[] = {&bag_op};

}  // namespace

extern const OpList embedding_bag_ops;
const OpList embedding_bag_ops = op_list(embedding_bag_list);

}  // namespace clew
