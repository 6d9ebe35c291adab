// Products of a sparse matrix in rows (CSR) with a dense one, and their gradients.
// May include: ops, graph, tensor, kernels.
// Invariant: the sparse matrix is never made dense; rules are composed of these operations, so that
// they have derivatives of any order.
#include "kernels/indexing/csr.h"
#include "ops/calls/indexing.h"
#include "ops/calls/rearrange.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/ops.h"

namespace clew {

namespace {

void check_pattern(const Call& c) {
  const Tensor &crow = c.in[0], &col = c.in[1];
  require(
      (crow.dtype() == DType::Int64 || crow.dtype() == DType::Int32) && crow.dtype() == col.dtype(),
      c.name(), ": crow_indices and col_indices must both be int64 or both int32; got ", crow,
      " and ", col);
  require(crow.ndim() == 1 && col.ndim() == 1 && crow.numel() > 0, c.name(),
          ": crow_indices and col_indices must be vectors, crow_indices with one element more than "
          "there are rows; got ",
          crow, " and ", col);
}
// A pattern whose tensors live as long as this.
struct Places {
  Tensor crow, col;
  explicit Places(const Call& c) : crow(contiguous(c.in[0])), col(contiguous(c.in[1])) {}
  kernels::Pattern pattern() const { return {crow.nd(), col.nd()}; }
};
void check_rows(const Call& c, int64_t bad, int64_t columns) {
  if (bad >= 0)
    fail_index(c.name(), ": row ", bad,
               ": crow_indices must rise from 0 to the number of elements, ", c.in[1].numel(),
               ", and col_indices must be in [0, ", columns, ")");
}

// The pattern of the transposed matrix, and the places of its elements in the other.
struct Mirror {
  Tensor crow, col, order;
};
Tensor mirror(const Tensor& crow, const Tensor& col, int64_t columns);
Mirror mirror_of(const Vjp& c, int64_t columns) {
  const Tensor all = c.has_in(4) ? c.in(4) : mirror(c.in(0), c.in(1), columns);
  const int64_t count = c.in(1).numel();
  require(all.numel() == columns + 1 + 2 * count, "sparse product: mirror is of another pattern");
  return {narrow(all, 0, 0, columns + 1), narrow(all, 0, columns + 1, count),
          narrow(all, 0, columns + 1 + count, count)};
}
Tensor product(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& dense);
Tensor dots(const Tensor& crow, const Tensor& col, const Tensor& a, const Tensor& b);

void mm_shape(const Call& c, OutSpecs& out) {
  check_pattern(c);
  const Tensor &values = c.in[2], &dense = c.in[3];
  require(is_inexact(values.dtype()) && values.dtype() == dense.dtype(), c.name(),
          ": values and dense must have one floating or complex dtype; got ", values, " and ",
          dense);
  require(values.sizes() == c.in[1].sizes(), c.name(),
          ": values must have the shape of col_indices; got ", values, " for ", c.in[1]);
  require(dense.ndim() == 2, c.name(), ": dense must be a matrix; got ", dense);
  out.add(values.dtype(), {c.in[0].numel() - 1, dense.size(1)});
}
void mm_cpu(const Call& c, Tensors& outs) {
  const Places places(c);
  const Tensor values = contiguous(c.in[2]), dense = contiguous(c.in[3]);
  check_rows(c, kernels::csr_product(outs[0].nd(), places.pattern(), values.nd(), dense.nd()),
             dense.size(0));
}
void mm_vjp(Vjp& c) {
  if (c.needs(2)) c.set(2, dots(c.in(0), c.in(1), c.grad(), conj(c.in(3))));
  if (!c.needs(3)) return;
  const Mirror m = mirror_of(c, c.sizes(3)[0]);
  c.set(3, product(m.crow, m.col, index_select(conj(c.in(2)), 0, m.order), c.grad()));
}
constexpr OpDef mm_op = general({
    .signature = "_sparse_csr_mm(Tensor crow_indices, Tensor col_indices, Tensor values, Tensor "
                 "dense, Tensor? mirror=None) -> Tensor",
    .doc = "The product of a sparse matrix in rows with a dense one. `mirror` is what "
           "_sparse_csr_mirror gives for the pattern; backward makes it where it is not given.",
    .shape = mm_shape,
    .cpu = mm_cpu,
    .saves = {.always = in(0) | in(1) | in(4), .when = {0, 0, in(3), in(2)}},
    .vjp = mm_vjp,
    .offer = Offer::function,
    .flops = "2 * numel(col_indices) * dense[1]",
});

void dots_shape(const Call& c, OutSpecs& out) {
  check_pattern(c);
  const Tensor &a = c.in[2], &b = c.in[3];
  require(is_inexact(a.dtype()) && a.dtype() == b.dtype(), c.name(),
          ": the factors must have one floating or complex dtype; got ", a, " and ", b);
  require(
      a.ndim() == 2 && b.ndim() == 2 && a.size(0) == c.in[0].numel() - 1 && a.size(1) == b.size(1),
      c.name(), ": the factors must be matrices with rows of one length, the first one with ",
      c.in[0].numel() - 1, " rows; got ", a, " and ", b);
  out.add(a.dtype(), c.in[1].sizes());
}
void dots_cpu(const Call& c, Tensors& outs) {
  const Places places(c);
  const Tensor a = contiguous(c.in[2]), b = contiguous(c.in[3]);
  // Elements that no row has stay 0.
  fill_(outs[0], Scalar(0));
  check_rows(c, kernels::csr_dots(outs[0].nd(), places.pattern(), a.nd(), b.nd()), b.size(0));
}
void dots_vjp(Vjp& c) {
  if (c.needs(2)) c.set(2, product(c.in(0), c.in(1), c.grad(), conj(c.in(3))));
  if (!c.needs(3)) return;
  const Mirror m = mirror_of(c, c.sizes(3)[0]);
  c.set(3, product(m.crow, m.col, index_select(c.grad(), 0, m.order), conj(c.in(2))));
}
constexpr OpDef dots_op = general({
    .signature = "_sparse_csr_dots(Tensor crow_indices, Tensor col_indices, Tensor a, Tensor b, "
                 "Tensor? mirror=None) -> Tensor",
    .doc = "For each element of a pattern the dot product of a's row of its row and b's row of its "
           "column.",
    .shape = dots_shape,
    .cpu = dots_cpu,
    .saves = {.always = in(0) | in(1) | in(4), .when = {0, 0, in(3), in(2)}},
    .vjp = dots_vjp,
    .offer = Offer::function,
    .flops = "2 * numel(col_indices) * a[1]",
});

struct MirrorAttrs {
  int64_t columns = 0;
  static constexpr auto members() { return std::tuple(&MirrorAttrs::columns); }
};
void mirror_shape(const Call& c, OutSpecs& out) {
  check_pattern(c);
  const int64_t columns = c.as<MirrorAttrs>().columns;
  require(columns >= 0, c.name(), ": columns must not be negative; got ", columns);
  out.add(DType::Int64, {columns + 1 + 2 * c.in[1].numel()});
}
void mirror_cpu(const Call& c, Tensors& outs) {
  const Places places(c);
  const int64_t columns = c.as<MirrorAttrs>().columns;
  check_rows(c, kernels::csr_mirror(outs[0].data<int64_t>(), places.pattern(), columns), columns);
}
constexpr OpDef mirror_op = general({
    .signature = "_sparse_csr_mirror(Tensor crow_indices, Tensor col_indices, int columns) -> "
                 "Tensor",
    .doc = "The pattern of the transposed matrix in one vector: where each of its rows begins, the "
           "columns of its elements, and the elements' places in this pattern.",
    .shape = mirror_shape,
    .cpu = mirror_cpu,
    .no_vjp = no_rule("the result counts places"),
    .attrs = &attr_info<MirrorAttrs>,
    .offer = Offer::function,
    .flops = "0",
});

Tensor mirror(const Tensor& crow, const Tensor& col, int64_t columns) {
  return apply(mirror_op, {crow, col}, MirrorAttrs{columns});
}
Tensor product(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& dense) {
  return apply(mm_op, {crow, col, values, dense, Tensor()});
}
Tensor dots(const Tensor& crow, const Tensor& col, const Tensor& a, const Tensor& b) {
  return apply(dots_op, {crow, col, a, b, Tensor()});
}

constexpr const OpDef* sparse_list[] = {&mm_op, &dots_op, &mirror_op};

}  // namespace

extern const OpList sparse_ops;
const OpList sparse_ops = op_list(sparse_list);

}  // namespace clew
