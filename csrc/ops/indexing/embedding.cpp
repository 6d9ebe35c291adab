// Embedding: rows of a table by index, and the sums that are its gradient.
// May include: ops, graph, tensor, kernels.
// Invariant: the row at padding_idx gets no gradient; repeated indices add up in one fixed order.
#include <cstring>
#include <vector>

#include "base/read_once.h"
#include "graph/rows.h"
#include "kernels/indexing/index.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/indexing.h"
#include "ops/calls/shape.h"

namespace clew {

namespace {

// As the gradient of the gradient (`adjoint`), rows at padding_idx are zero and others are divided
// by their frequency.
struct EmbeddingAttrs {
  int64_t padding_idx = -1;
  bool scale_grad_by_freq = false;
  bool adjoint = false;
  static constexpr auto members() {
    return std::tuple(&EmbeddingAttrs::padding_idx, &EmbeddingAttrs::scale_grad_by_freq,
                      &EmbeddingAttrs::adjoint);
  }
};
void check_indices(const Tensor& indices, std::string_view op) {
  require(indices.dtype() == DType::Int64 || indices.dtype() == DType::Int32, op,
          ": indices must be int64 or int32; got ", indices, "; convert them with .long()");
}
[[noreturn]] void fail_row(int64_t row, int64_t size, std::string_view op) {
  fail_index(op, ": index ", row, " is out of range for a table of ", size, " rows");
}
// The indices as one dense int64 vector, checked against the table.
Tensor rows_of(const Tensor& indices, int64_t size, std::string_view op) {
  Tensor rows = dense(indices, DType::Int64);
  int64_t bad = kernels::find_bad_index(rows.nd(), size, false);
  if (bad >= 0) fail_row(kernels::index_value(rows.nd(), bad), size, op);
  return rows;
}
// The same as a copy, to which nobody else can write.
Tensor own_rows_of(const Tensor& indices, int64_t size, std::string_view op) {
  const Tensor rows = rows_of(indices, size, op);
  Tensor own = empty(rows.sizes(), DType::Int64);
  if (const auto bad = kernels::copy_indices(own.data<int64_t>(), rows.nd(), size))
    fail_row(bad.value, size, op);
  return own;
}
std::vector<int64_t> frequencies(const Tensor& rows, int64_t size) {
  std::vector<int64_t> counts(static_cast<size_t>(size), 0);
  for (int64_t k = 0; k < rows.numel(); ++k) ++counts[static_cast<size_t>(rows.data<int64_t>()[k])];
  return counts;
}
// row *= factor
void scale_row(const Tensor& t, int64_t row, double factor) {
  Tensor r = alias(t, {t.size(-1)}, {t.stride(-1)}, row * t.stride(0));
  dispatch(t.dtype(), InexactTypes{}, [&]<class T>() {
    T* p = r.data<T>();
    for (int64_t i = 0; i < r.size(0); ++i) {
      using C = compute_t<T>;
      p[i * r.stride(0)] = static_cast<T>(static_cast<C>(p[i * r.stride(0)]) * convert<C>(factor));
    }
  });
}

void embedding_shape(const Call& c, OutSpecs& out) {
  const Tensor& weight = c.in[0];
  require(weight.ndim() == 2, c.name(), ": weight must have 2 dimensions; got ", weight);
  check_indices(c.in[1], c.name());
  Dims sizes = c.in[1].sizes();
  sizes.push_back(weight.size(1));
  out.add(weight.dtype(), sizes);
}
// A few rows, dense and in range.
Tensor embedding_quick(const Call& c) {
  const Tensor &weight = c.in[0], &indices = c.in[1];
  if (c.as<EmbeddingAttrs>().adjoint || weight.ndim() != 2 || weight.stride(1) != 1 ||
      weight.is_meta() || indices.is_meta() || indices.dtype() != DType::Int64 ||
      !indices.is_contiguous())
    return {};
  const int64_t n = indices.numel(), columns = weight.size(1);
  if (n > 4096 || n * columns > 4096) return {};
  const auto* rows = indices.data<int64_t>();
  Dims sizes = indices.sizes();
  sizes.push_back(columns);
  Tensor out = empty(sizes, weight.dtype());
  const auto size = static_cast<int64_t>(itemsize(weight.dtype()));
  const auto count = static_cast<uint64_t>(weight.size(0));
  for (int64_t k = 0; k < n; ++k) {
    const int64_t row = read_once(rows[k]);
    if (static_cast<uint64_t>(row) >= count) return {};
    std::memcpy(out->address() + k * columns * size,
                weight->address() + row * weight.stride(0) * size,
                static_cast<size_t>(columns * size));
  }
  return out;
}
void embedding_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<EmbeddingAttrs>();
  const Tensor& weight = c.in[0];
  Tensor rows = a.adjoint ? own_rows_of(c.in[1], weight.size(0), c.name())
                          : rows_of(c.in[1], weight.size(0), c.name());
  int64_t n = rows.numel();
  if (outs[0].numel() == 0) return;
  int64_t sizes[2] = {n, weight.size(1)};
  int64_t to[2] = {weight.size(1), 1};
  int64_t from[2] = {0, weight.stride(1)};
  bool ok = true;
  {
    ok = kernels::take_at({outs[0]->address(), sizes, to, 2, weight.dtype()},
                          {weight->address(), sizes, from, 2, weight.dtype()}, 0,
                          rows.data<int64_t>(), weight.stride(0), weight.size(0));
  }
  if (!ok) fail_changed(c.name());
  if (!a.adjoint) return;
  Tensor flat = alias(outs[0], {n, weight.size(1)}, {weight.size(1), 1});
  std::vector<int64_t> counts;
  if (a.scale_grad_by_freq) counts = frequencies(rows, weight.size(0));
  for (int64_t k = 0; k < n; ++k) {
    int64_t row = rows.data<int64_t>()[k];
    if (row == a.padding_idx)
      fill_(alias(flat, {weight.size(1)}, {1}, k * weight.size(1)), Scalar(0));
    else if (a.scale_grad_by_freq && counts[static_cast<size_t>(row)] > 1) {
      scale_row(flat, k, 1.0 / static_cast<double>(counts[static_cast<size_t>(row)]));
    }
  }
}
void embedding_vjp(Vjp& c);
void embedding_accumulate(Vjp& c, const Tensor& into);
// How often a row is looked up is counted for each sample.
void batch_lookup(const Batch& b, Tensors& outs) {
  if (static_cast<const EmbeddingAttrs*>(b.attrs)->scale_grad_by_freq) return batch_each(b, outs);
  batch_embedding(b, outs);
}
RowWise lookup_rows(const Call& c, void*, int64_t) {
  const bool each_its_own = c.as<EmbeddingAttrs>().scale_grad_by_freq || c.in[1].ndim() == 0;
  return each_its_own ? no_rows : RowWise{RowWise::Makes::rows, in(1)};
}
constexpr OpDef embedding_op = general({
    .signature = "_embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool "
                 "scale_grad_by_freq=False, "
                 "bool adjoint=False) -> Tensor",
    .doc = "The rows of a table that indices name; the row at padding_idx gets no gradient.",
    .shape = embedding_shape,
    .cpu = embedding_cpu,
    .quick = embedding_quick,
    .saves = {.always = in(1)},
    .vjp = embedding_vjp,
    .batch = batch_lookup,
    .rows = lookup_rows,
    .accumulate = embedding_accumulate,
    .attrs = &attr_info<EmbeddingAttrs>,
    .takes_stored = true,
    .offer = Offer::function,
    .flops = "0",
});

struct EmbeddingBackwardAttrs {
  int64_t num_embeddings = 0;
  int64_t padding_idx = -1;
  bool scale_grad_by_freq = false;
  static constexpr auto members() {
    return std::tuple(&EmbeddingBackwardAttrs::num_embeddings, &EmbeddingBackwardAttrs::padding_idx,
                      &EmbeddingBackwardAttrs::scale_grad_by_freq);
  }
};
void embedding_backward_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<EmbeddingBackwardAttrs>();
  const Tensor& g = c.in[0];
  check_indices(c.in[1], c.name());
  Dims want = c.in[1].sizes();
  want.push_back(g.ndim() ? g.size(-1) : 0);
  require(g.sizes() == want, c.name(), ": grad must have the shape of indices and a row; got ", g,
          " for ", c.in[1]);
  require(is_inexact(g.dtype()), c.name(), ": grad must be floating or complex; got ", g);
  require(a.num_embeddings >= 0, c.name(), ": num_embeddings must not be negative; got ",
          a.num_embeddings);
  out.add(g.dtype(), {a.num_embeddings, g.size(-1)});
}
void embedding_backward_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<EmbeddingBackwardAttrs>();
  const Tensor& g = c.in[0];
  Tensor rows = a.scale_grad_by_freq ? own_rows_of(c.in[1], a.num_embeddings, c.name())
                                     : rows_of(c.in[1], a.num_embeddings, c.name());
  fill_(outs[0], Scalar(0));
  if (g.numel() == 0) return;
  // Long sums of 16-bit floats are kept in 32 bits.
  Tensor sum = outs[0];
  if (is_half(g.dtype())) {
    sum = empty(outs[0].sizes(), DType::Float32);
    fill_(sum, Scalar(0));
  }
  const Tensor values = dense(g, sum.dtype());
  int64_t width = g.size(-1);
  int64_t sizes[2] = {rows.numel(), width};
  int64_t from[2] = {width, 1};
  int64_t to[2] = {0, 1};
  bool ok = true;
  {
    ok = kernels::put_at({sum->address(), sizes, to, 2, sum.dtype()},
                         {values->address(), sizes, from, 2, sum.dtype()}, 0, rows.data<int64_t>(),
                         width, a.num_embeddings, kernels::Combine::Add);
  }
  if (!ok) fail_changed(c.name());
  if (a.scale_grad_by_freq) {
    std::vector<int64_t> counts = frequencies(rows, a.num_embeddings);
    for (int64_t row = 0; row < a.num_embeddings; ++row) {
      int64_t n = counts[static_cast<size_t>(row)];
      if (n > 1) scale_row(sum, row, 1.0 / static_cast<double>(n));
    }
  }
  if (a.padding_idx >= 0 && a.padding_idx < a.num_embeddings) {
    fill_(alias(sum, {width}, {1}, a.padding_idx * width), Scalar(0));
  }
  if (!sum.is_same(outs[0])) copy_into(outs[0], sum);
}
void embedding_backward_vjp(Vjp& c) {
  const auto& a = c.as<EmbeddingBackwardAttrs>();
  c.set(0, apply(embedding_op, {c.grad(), c.in(1)},
                 EmbeddingAttrs{a.padding_idx, a.scale_grad_by_freq, true}));
}
constexpr OpDef embedding_backward_op = general({
    .signature =
        "_embedding_backward(Tensor grad, Tensor indices, int num_embeddings, int padding_idx=-1, "
        "bool scale_grad_by_freq=False) -> Tensor",
    .doc = "A table of zeros to whose rows the gradient of an embedding is added.",
    .shape = embedding_backward_shape,
    .cpu = embedding_backward_cpu,
    .saves = {.always = in(1)},
    .vjp = embedding_backward_vjp,
    .attrs = &attr_info<EmbeddingBackwardAttrs>,
    .offer = Offer::function,
    .flops = "numel(grad)",
});
void embedding_vjp(Vjp& c) {
  const auto& a = c.as<EmbeddingAttrs>();
  c.set(0, apply(embedding_backward_op, {c.grad(), c.in(1)},
                 EmbeddingBackwardAttrs{c.sizes(0)[0], a.padding_idx, a.scale_grad_by_freq}));
}

void embedding_accumulate(Vjp& c, const Tensor& into) {
  const auto& a = c.as<EmbeddingAttrs>();
  const Tensor& g = c.grad();
  bool padded = a.padding_idx >= 0 && a.padding_idx < into.size(0);
  if (padded || is_half(g.dtype()) || a.scale_grad_by_freq || a.adjoint) {
    Tensor whole = apply(embedding_backward_op, {g, c.in(1)},
                         EmbeddingBackwardAttrs{into.size(0), a.padding_idx, a.scale_grad_by_freq});
    copy_into(into, add(into, whole));
    return;
  }
  if (g.numel() == 0) return;
  Tensor rows = rows_of(c.in(1), into.size(0), "embedding");
  Tensor values = contiguous(g);
  int64_t width = g.size(-1);
  int64_t sizes[2] = {rows.numel(), width};
  int64_t from[2] = {width, 1};
  int64_t to[2] = {0, 1};
  if (!kernels::put_at({into->address(), sizes, to, 2, into.dtype()},
                       {values->address(), sizes, from, 2, into.dtype()}, 0, rows.data<int64_t>(),
                       width, into.size(0), kernels::Combine::Add))
    fail_changed("embedding");
}

constexpr const OpDef* embedding_list[] = {&embedding_op, &embedding_backward_op};

}  // namespace

extern const OpList embedding_ops;
const OpList embedding_ops = op_list(embedding_list);

}  // namespace clew
