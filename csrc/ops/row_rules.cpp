// How calls go over the first dim of their inputs, which the batching rules tell of most ops.
// May include: ops.
// Invariant: as graph/rows.h.
#include <algorithm>
#include <type_traits>

#include "graph/rows.h"
#include "ops/batch_rules.h"
#include "ops/calls/indexing.h"
#include "ops/calls/shape.h"

namespace clew {

namespace {

using Makes = RowWise::Makes;

bool has_rows(const Tensor& t, int64_t n) {
  return t.defined() && !t.is_wrapped_number() && t.ndim() > 0 && t.size(0) == n;
}
// All of the first `count` inputs have n rows.
RowWise each_of(const Call& c, int64_t n, size_t count) {
  uint32_t inputs = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!c.in[i].defined()) continue;
    if (i >= 32 || !has_rows(c.in[i], n)) return no_rows;
    inputs |= in(static_cast<int>(i));
  }
  return {Makes::rows, inputs};
}
RowWise first_input() { return {Makes::rows, in(0)}; }

// Operands of as many dims as the result, but those of size 1 there, have its rows.
RowWise broadcast_rows(const Call& c) {
  int ndim = 0;
  for (const Tensor& t : c.in) ndim = std::max(ndim, t.ndim());
  if (ndim == 0 || c.in.size() > 32) return no_rows;
  int64_t n = 1;
  for (const Tensor& t : c.in)
    if (t.ndim() == ndim && t.size(0) != 1) n = t.size(0);
  uint32_t inputs = 0;
  for (size_t i = 0; i < c.in.size(); ++i)
    if (c.in[i].ndim() == ndim && has_rows(c.in[i], n)) inputs |= in(static_cast<int>(i));
  return {inputs ? Makes::rows : Makes::nothing, inputs, true};
}

// Whether a dim argument means the first dim, or all.
bool names_first_dim(const Call& c) {
  const int n = c.in[0].ndim();
  const auto is_first = [&](int64_t d) { return d <= -n || d == 0; };
  const auto any_first = [&](const Dims& dims) {
    if (dims.empty()) return true;
    return std::any_of(dims.begin(), dims.end(), is_first);
  };
  for (const int f : dim_fields(c.op)) {
    bool first = true;
    c.op.attrs->visit(c.attrs, [&](int at, const auto& field) {
      if (at != f) return;
      using T = std::remove_cvref_t<decltype(field)>;
      if constexpr (std::is_same_v<T, int64_t>) first = is_first(field);
      if constexpr (std::is_same_v<T, std::optional<int64_t>>) first = !field || is_first(*field);
      if constexpr (std::is_same_v<T, Dims>) first = any_first(field);
      if constexpr (std::is_same_v<T, std::optional<Dims>>) first = !field || any_first(*field);
    });
    if (first) return true;
  }
  return dim_fields(c.op).empty();
}

RowWise product_rows(const Call& c, int64_t n) {
  const int a = c.in[0].ndim(), b = c.in[1].ndim();
  if (a < 2) return no_rows;
  if (b <= 2) return first_input();
  return a == 3 && b == 3 && has_rows(c.in[1], n) ? RowWise{Makes::rows, in(0) | in(1)} : no_rows;
}
RowWise getitem_rows(void* attrs, int64_t rows, int64_t n) {
  auto& part = *static_cast<BasicIndex*>(attrs);
  if (part.start[0] != 0 || part.step[0] != 1 || part.length[0] != n || (part.added & 1) != 0)
    return no_rows;
  part.length[0] = rows;
  return first_input();
}
// Each row becomes one or more.
RowWise sized_rows(const Call& c, void* attrs, int64_t rows, int64_t n) {
  auto& sizes = *static_cast<Dims*>(attrs);
  const Tensor& x = c.in[0];
  if (n == 0 || x.numel() == 0 || sizes.size() == 0) return no_rows;
  sizes = infer_size(sizes, x.numel(), c.name());
  const int64_t size = x.numel() / n, made = x.numel() / sizes[0];
  if (size % made != 0) return no_rows;
  sizes[0] = rows * (size / made);
  return first_input();
}
RowWise indexed_rows(const Call& c, int64_t n) {
  const Dims& dims = c.as<IndexAttrs>().dims;
  if (dims.size() == 1 && dims[0] == 0)
    return c.in[1].ndim() == 1 ? RowWise{Makes::rows, in(0) | in(1), false, 1, 1} : no_rows;
  for (const int64_t d : dims)
    if (d == 0) return no_rows;
  return has_rows(c.in[0], n) && dims.size() > 0 ? first_input() : no_rows;
}

}  // namespace

RowWise rows_of_first(const Call&, void*, int64_t) { return first_input(); }

RowWise rows_by_rule(const Call& c, void* attrs, int64_t rows) {
  const OpDef& op = c.op;
  if (op.kind == OpKind::Elementwise || op.batch == batch_where) return broadcast_rows(c);
  if (c.in.empty() || !c.in[0].defined() || c.in[0].ndim() == 0) return no_rows;
  if (op.rows) return op.rows(c, attrs, rows);
  const int64_t n = c.in[0].size(0);
  if (op.batch == batch_dims || op.batch == batch_squeeze)
    return names_first_dim(c) ? no_rows : each_of(c, n, c.in.size());
  if (op.batch == batch_unsqueeze) {
    const int64_t d = *static_cast<const int64_t*>(c.attrs);
    return d == 0 || d == -c.in[0].ndim() - 1 ? no_rows : first_input();
  }
  if (op.batch == batch_permute)
    return wrap_dim((*static_cast<const Dims*>(c.attrs))[0], c.in[0].ndim(), "permute") == 0
               ? first_input()
               : no_rows;
  if (op.batch == batch_transpose_last) return c.in[0].ndim() > 2 ? first_input() : no_rows;
  if (op.batch == batch_linear) return c.in[0].ndim() > 1 ? first_input() : no_rows;
  if (op.batch == batch_matmul) return product_rows(c, n);
  if (op.batch == batch_getitem) return getitem_rows(attrs, rows, n);
  if (op.batch == batch_sizes) return sized_rows(c, attrs, rows, n);
  if (op.batch == batch_index) return indexed_rows(c, n);
  if (op.batch == batch_fold<0b1>) return first_input();
  if (op.batch == batch_fold<0b10011>) {
    const uint32_t inputs = in(0) | in(1) | in(4);
    return has_rows(c.in[1], n) && has_rows(c.in[4], n) ? RowWise{Makes::rows, inputs} : no_rows;
  }
  return no_rows;
}

}  // namespace clew
