// Scaled dot-product attention: a blocked kernel where it fits, otherwise other ops.
// May include: ops, kernels/sequence/attention.h.
// Invariant: a query whose keys are all masked has a zero result and zero gradients.
#include <cmath>

#include "graph/modes.h"
#include "kernels/sequence/attention.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/matmul.h"
#include "ops/calls/product.h"
#include "ops/calls/rearrange.h"
#include "ops/calls/reduction.h"
#include "ops/calls/shape.h"
#include "ops/calls/softmax.h"
#include "ops/calls/unary.h"

namespace clew {

Tensor dropout(const Tensor& x, double p, bool training);

namespace {

struct AttentionAttrs {
  double dropout_p = 0;
  bool is_causal = false;
  std::optional<double> scale;
  bool enable_gqa = false;
  static constexpr auto members() {
    return std::tuple(&AttentionAttrs::dropout_p, &AttentionAttrs::is_causal,
                      &AttentionAttrs::scale, &AttentionAttrs::enable_gqa);
  }
};

constexpr const char* op = "scaled_dot_product_attention";

void check(const Call& c) {
  const Tensor &q = c.in[0], &k = c.in[1], &v = c.in[2], &mask = c.in[3];
  const auto& a = c.as<AttentionAttrs>();
  require(q.ndim() >= 2 && k.ndim() >= 2 && v.ndim() >= 2, op,
          ": query, key and value must have at least 2 dimensions; got ", q, ", ", k, " and ", v);
  require(q.dtype() == k.dtype() && q.dtype() == v.dtype() && is_inexact(q.dtype()), op,
          ": query, key and value must have one floating dtype; got ", q, ", ", k, " and ", v);
  require(q.size(-1) == k.size(-1), op, ": query.shape[-1] must equal key.shape[-1]; got ", q,
          " and ", k);
  require(k.size(-2) == v.size(-2), op, ": key.shape[-2] must equal value.shape[-2]; got ", k,
          " and ", v);
  require(a.dropout_p >= 0 && a.dropout_p <= 1, op, ": dropout_p must lie between 0 and 1; got ",
          a.dropout_p);
  if (mask) {
    require(!a.is_causal, op, ": give either attn_mask or is_causal=True, not both");
    require(mask.dtype() == DType::Bool || mask.dtype() == q.dtype(), op,
            ": attn_mask must be bool or have the query's dtype; got ", mask, " and ", q);
  }
}

// Repeats key and value heads: each serves heads / own query heads.
Tensor repeated(const Tensor& x, int64_t heads) {
  const int64_t own = x.size(-3);
  if (own == heads) return x;
  require(own > 0 && heads % own == 0, op,
          ": the number of query heads must be a multiple of key's and value's; got ", heads,
          " and ", x);
  Dims wide = x.sizes(), flat = x.sizes();
  wide.insert(wide.size() - 2, heads / own);
  flat[flat.size() - 3] = heads;
  return reshape(expand(unsqueeze(x, -3), wide), flat);
}

// True on and below the diagonal.
Tensor causal_mask(int64_t rows, int64_t cols, Device device) {
  const Tensor all = empty({rows, cols}, DType::Bool, device);
  if (device == Device::CPU) fill_(all, Scalar(true));
  return tril(all);
}

// The softmax weights of scaled scores under a mask. Rows that are masked as a whole get zeros.
Tensor attention_weights(const Tensor& scores, const Tensor& mask, bool causal) {
  const Tensor zero = number(Scalar(0.0)), never = number(Scalar(-INFINITY));
  Tensor masked = scores, dead;
  if (mask && mask.dtype() == DType::Bool) {
    masked = where(mask, scores, never);
    if (!causal && mask.ndim() > 0 && mask.size(-1) > 0) dead = logical_not(any(mask, {-1}, true));
  } else if (mask) {
    masked = scores + mask;
    if (mask.ndim() > 0 && mask.size(-1) > 0) dead = logical_not(any(ne(mask, never), {-1}, true));
  }
  if (!dead) return softmax(masked, -1);
  return where(dead, zero, softmax(where(dead, zero, masked), -1));
}

// --- The blocked kernel as an op -----------------------------------------------------------------

struct FusedAttrs {
  double scale = 1;
  bool causal = false;
  static constexpr auto members() { return std::tuple(&FusedAttrs::scale, &FusedAttrs::causal); }
};

template <class View = kernels::AttentionOperand> View operand(const Tensor& t, int ndim) {
  View o;
  o.data = t.data<char>();
  for (int d = 0; d < 4; ++d) {
    const int own = d - 4 + t.ndim();
    o.stride[d] = own >= 0 && d >= 4 - ndim && t.size(own) != 1 ? t.stride(own) : 0;
  }
  return o;
}
int64_t size_or_one(const Tensor& t, int from_end) {
  return t.ndim() >= from_end ? t.size(-from_end) : 1;
}

kernels::AttentionShape fused_shape(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& mask, const FusedAttrs& a) {
  kernels::AttentionShape s;
  s.dtype = q.dtype();
  s.batch = size_or_one(q, 4), s.heads = size_or_one(q, 3), s.kv_heads = size_or_one(k, 3);
  s.queries = q.size(-2), s.keys = k.size(-2), s.width = q.size(-1), s.value_width = v.size(-1);
  s.scale = a.scale, s.causal = a.causal;
  s.q = operand(q, 4), s.k = operand(k, 4), s.v = operand(v, 4);
  if (mask) s.mask = operand(mask, 4);
  s.mask_is_bool = mask && mask.dtype() == DType::Bool;
  return s;
}
// Results of four dims lie as (batch, rows, heads, columns): merging the heads again is a view.
// With queries that lie in order, the output does so, too, as in PyTorch.
void add_result(OutSpecs& out, DType dtype, const Dims& sizes, bool in_order = false) {
  OutSpec& o = out.add(dtype, sizes);
  if (sizes.size() != 4 || in_order) return;
  const int64_t heads = sizes[1], rows = sizes[2], width = sizes[3];
  o.strides = Dims{rows * heads * width, width, heads * width, 1};
}

bool fits(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  const int nd = q.ndim();
  if (q.dtype() != DType::Float32 && q.dtype() != DType::Float64) return false;
  if (nd < 2 || nd > 4 || k.ndim() != nd || v.ndim() != nd) return false;
  if (nd == 4 && (q.size(0) != k.size(0) || q.size(0) != v.size(0))) return false;
  if (nd >= 3) {
    if (k.size(-3) != v.size(-3) || k.size(-3) < 1 || q.size(-3) % k.size(-3) != 0) return false;
  }
  if (q.numel() == 0 || k.numel() == 0 || v.numel() == 0) return false;
  if (!mask) return true;
  Dims scores = q.sizes();
  scores[nd - 1] = k.size(-2);
  return expandable(mask.sizes(), scores);
}

void fused_rule(const Call& c, OutSpecs& out) {
  const Tensor &q = c.in[0], &k = c.in[1], &v = c.in[2], &mask = c.in[3];
  require(q.dtype() == k.dtype() && q.dtype() == v.dtype() && fits(q, k, v, mask) &&
              q.size(-1) == k.size(-1) && k.size(-2) == v.size(-2) &&
              (!mask || mask.dtype() == DType::Bool || mask.dtype() == q.dtype()),
          "_attention: operands do not fit the blocked kernel; got ", q, ", ", k, " and ", v);
  Dims sizes = q.sizes(), rows = q.sizes();
  sizes[sizes.size() - 1] = v.size(-1);
  rows[rows.size() - 1] = 2;
  add_result(out, q.dtype(), sizes, q.is_contiguous());
  out.add(q.dtype(), std::move(rows));
}
void fused_cpu(const Call& c, Tensors& outs) {
  const auto s = fused_shape(c.in[0], c.in[1], c.in[2], c.in[3], c.as<FusedAttrs>());
  const auto to = operand<kernels::AttentionTarget>(outs[0], outs[0].ndim());
  kernels::attention(s, to, outs[1].data<char>());
}
// vmap: samples are folded into the batch, in front of heads, rows and columns.
Tensor fold(const Batch& b, int i) {
  constexpr int trailing = 2;
  const Tensor& one = b.in[static_cast<size_t>(i)];
  Dims sizes{numel_of(b.lead)};
  int own = one.ndim();
  if (own > trailing + 1) sizes[0] *= one.size(0);
  if (own <= trailing) sizes.push_back(1);
  for (int d = own > trailing + 1 ? 1 : 0; d < own; ++d) sizes.push_back(one.size(d));
  return reshape(b.full(i), sizes);
}
Tensor fold_mask(const Batch& b, int i, const Tensor& q) {
  const Tensor& mask = b.in[static_cast<size_t>(i)];
  bool shared = !is_batched(mask) && (mask.defined() && (mask.ndim() < 4 || mask.size(0) == 1));
  if (!mask.defined() || shared) return mask;
  Tensor t = b.value(i);
  while (t.ndim() - b.k() < 4) t = unsqueeze(t, b.k());
  Dims each = with_lead(b, Dims{size_or_one(q, 4), t.size(-3), t.size(-2), t.size(-1)});
  return reshape(expand(t, each),
                 Dims{numel_of(b.lead) * size_or_one(q, 4), t.size(-3), t.size(-2), t.size(-1)});
}
void fused_batch(const Batch& b, Tensors& outs) {
  if (!numel_of(b.lead)) return batch_each(b, outs);
  const Tensor& q = b.in[0];
  const Tensor in[] = {fold(b, 0), fold(b, 1), fold(b, 2), fold_mask(b, 3, q)};
  apply(b.op, in, b.attrs, outs);
  Dims rows = q.sizes(), sizes = q.sizes();
  rows[rows.size() - 1] = 2;
  sizes[sizes.size() - 1] = b.in[2].size(-1);
  outs[0] = reshape(outs[0], with_lead(b, sizes));
  outs[1] = view(outs[1], with_lead(b, rows));
}
void fused_back_batch(const Batch& b, Tensors& outs) {
  if (!numel_of(b.lead)) return batch_each(b, outs);
  const Tensor in[] = {fold(b, 0), fold(b, 1), fold(b, 2), fold(b, 3), fold_mask(b, 4, b.in[1]),
                       fold(b, 5), fold(b, 6)};
  apply(b.op, in, b.attrs, outs);
  for (int i = 0; i < 3; ++i)
    outs[i] = reshape(outs[i], with_lead(b, b.in[static_cast<size_t>(i) + 1].sizes()));
}

// Two products, of queries and keys and of weights and values. Backward makes the scores once more,
// and the gradients of scores, values, queries and keys.
constexpr const char* attention_flops = "2 * numel(query[:-1]) * key[-2] * (query[-1] + value[-1])";
constexpr const char* attention_backward_flops =
    "2 * numel(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])";

void fused_vjp(Vjp& c);
constexpr OpDef fused_op = general({
    .signature = "_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, float scale, "
                 "bool causal) "
                 "-> (Tensor output, Tensor row_sums)",
    .doc = "Attention in blocks; also each query's greatest score and one over its sum of "
           "exponentials.",
    .shape = fused_rule,
    .cpu = fused_cpu,
    .saves = {.always = in(0) | in(1) | in(2) | in(3) | out(0) | out(1)},
    .vjp = fused_vjp,
    .batch = fused_batch,
    .attrs = &attr_info<FusedAttrs>,
    .offer = Offer::function,
    .is_product = true,
    .flops = attention_flops,
    .backward_flops = attention_backward_flops,
});

// Inputs: grad, query, key, value, mask, output, row_sums.
void fused_back_rule(const Call& c, OutSpecs& out) {
  const Tensor &g = c.in[0], &q = c.in[1], &k = c.in[2], &v = c.in[3], &mask = c.in[4];
  require(fits(q, k, v, mask) && g.sizes() == c.in[5].sizes() &&
              g.numel() == q.numel() / q.size(-1) * v.size(-1) &&
              c.in[6].numel() == q.numel() / q.size(-1) * 2 && g.dtype() == q.dtype() &&
              k.dtype() == q.dtype() && v.dtype() == q.dtype() && c.in[5].dtype() == q.dtype() &&
              c.in[6].dtype() == q.dtype() && q.size(-1) == k.size(-1) &&
              k.size(-2) == v.size(-2) &&
              (!mask || mask.dtype() == DType::Bool || mask.dtype() == q.dtype()),
          "_attention_backward: operands do not fit; got ", g, ", ", q, ", ", k, " and ", v);
  add_result(out, q.dtype(), q.sizes());
  add_result(out, q.dtype(), k.sizes());
  add_result(out, q.dtype(), v.sizes());
}
void fused_back_cpu(const Call& c, Tensors& outs) {
  const auto s = fused_shape(c.in[1], c.in[2], c.in[3], c.in[4], c.as<FusedAttrs>());
  const int nd = c.in[1].ndim();
  const Tensor row_sums = dense(c.in[6]);
  const kernels::AttentionGrads grads{operand(c.in[5], nd),
                                      operand(c.in[0], nd),
                                      row_sums.data<char>(),
                                      operand<kernels::AttentionTarget>(outs[0], nd),
                                      operand<kernels::AttentionTarget>(outs[1], nd),
                                      operand<kernels::AttentionTarget>(outs[2], nd)};
  kernels::attention_backward(s, grads);
}
constexpr OpDef fused_back_op = general({
    .signature =
        "_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, "
        "Tensor output, Tensor row_sums, float scale, bool causal) "
        "-> (Tensor query, Tensor key, Tensor value)",
    .doc = "Gradients of attention in blocks.",
    .shape = fused_back_rule,
    .cpu = fused_back_cpu,
    .no_vjp = no_rule("it runs only where no graph is recorded; otherwise the gradient is written "
                      "with other ops"),
    .batch = fused_back_batch,
    .attrs = &attr_info<FusedAttrs>,
    .offer = Offer::function,
    .is_product = true,
    .flops = attention_backward_flops,
});

// The sum over the query heads that one key head served.
Tensor gathered(const Tensor& g, const Tensor& like) {
  if (g.ndim() < 3 || g.size(-3) == like.size(-3)) return g;
  Dims wide = g.sizes();
  wide[wide.size() - 3] = g.size(-3) / like.size(-3);
  wide.insert(wide.size() - 3, like.size(-3));
  return sum(reshape(g, wide), {-3}, false);
}

void fused_vjp(Vjp& c) {
  const auto& a = c.as<FusedAttrs>();
  const Tensor q = c.in(0), k = c.in(1), v = c.in(2), mask = c.has_in(3) ? c.in(3) : Tensor();
  const bool wants_mask = mask && c.needs(3);
  if (!modes.grad && !wants_mask && !c.grad(1)) {
    const Tensor operands[] = {c.grad(0), q, k, v, mask, c.out(0), c.out(1)};
    Tensors grads;
    apply(fused_back_op, operands, &a, grads);
    for (int i = 0; i < 3; ++i) {
      if (c.needs(i)) c.set(i, grads[i]);
    }
    return;
  }
  // With other ops, so that it can be differentiated again.
  if (c.grad(1)) fail("_attention: the sums of rows have no gradient of their own");
  const int64_t heads = q.ndim() >= 3 ? q.size(-3) : 1;
  const Tensor all_k = q.ndim() >= 3 ? repeated(k, heads) : k,
               all_v = q.ndim() >= 3 ? repeated(v, heads) : v;
  const Tensor used = a.causal ? causal_mask(q.size(-2), k.size(-2), q.device()) : mask;
  const Scalar scale(a.scale);
  const Tensor& g = c.grad(0);
  const Tensor w = attention_weights(matmul(q * scale, transpose(all_k, -2, -1)), used, a.causal);
  const Tensor dw = matmul(g, transpose(all_v, -2, -1));
  const Tensor slope = w * (dw - sum(dw * w, {-1}, true));
  if (c.needs(0)) c.set(0, matmul(slope, all_k) * scale);
  if (c.needs(1)) c.set(1, gathered(matmul(transpose(slope, -2, -1), q) * scale, k));
  if (c.needs(2)) c.set(2, gathered(matmul(transpose(w, -2, -1), g), v));
  if (wants_mask) c.set(3, slope);
}

// --- The public function -------------------------------------------------------------------------

Tensor attend(const Tensor& q, Tensor k, Tensor v, Tensor mask, const AttentionAttrs& a) {
  if (a.enable_gqa) {
    require(q.ndim() >= 3 && k.ndim() >= 3 && v.ndim() >= 3, op,
            ": enable_gqa needs a dimension of heads; got ", q);
  }
  const double width = static_cast<double>(std::max<int64_t>(1, q.size(-1)));
  const double scale = a.scale.value_or(1.0 / std::sqrt(width));
  const bool heads_fit = a.enable_gqa || q.ndim() < 3 || k.ndim() < 3 || k.size(-3) == q.size(-3);
  if (a.dropout_p == 0 && heads_fit && fits(q, k, v, mask)) {
    const FusedAttrs attrs{scale, a.is_causal};
    const Tensor operands[] = {q, k, v, mask};
    Tensors both;
    apply(fused_op, operands, &attrs, both);
    return both[0];
  }
  if (a.enable_gqa) {
    k = repeated(k, q.size(-3));
    v = repeated(v, q.size(-3));
  }
  if (a.is_causal) mask = causal_mask(q.size(-2), k.size(-2), q.device());
  Tensor weights =
      attention_weights(matmul(q * Scalar(scale), transpose(k, -2, -1)), mask, a.is_causal);
  if (a.dropout_p > 0) weights = dropout(weights, a.dropout_p, true);
  return matmul(weights, v);
}

void run(const Call& c, Tensors& outs) {
  check(c);
  const auto& a = c.as<AttentionAttrs>();
  const DType d = c.in[0].dtype();
  if (d != DType::Float16 && d != DType::BFloat16) {
    outs.push_back(attend(c.in[0], c.in[1], c.in[2], c.in[3], a));
    return;
  }
  // Exponentials of scores with three digits would be wrong by tens of percents.
  Tensor wide[4];
  for (int i = 0; i < 4; ++i) {
    const Tensor& t = c.in[i];
    wide[i] = t && t.dtype() == d ? to_dtype(t, DType::Float32) : t;
  }
  outs.push_back(to_dtype(attend(wide[0], wide[1], wide[2], wide[3], a), d));
}

constexpr OpDef attention_op = composite({
    .signature =
        "nn.functional.scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
        "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, "
        "bool enable_gqa=False) -> Tensor",
    .doc = R"(Attends from queries to keys: softmax(query @ key^T * scale + mask) @ value.

Args:
    query: (..., L, E).
    key: (..., S, E).
    value: (..., S, Ev).
    attn_mask: broadcasts to (..., L, S); bool (True takes part) or numbers that are added.
    dropout_p: probability of dropping an attention weight; applied whenever it is positive.
    is_causal: query i attends to keys 0 to i only.
    scale: factor of the scores; 1 / sqrt(E) when missing.
    enable_gqa: key and value may have fewer heads (dimension -3) than query, each serving several.

Returns:
    (..., L, Ev); zero for a query whose keys are all masked.

>>> q, v = clew.zeros(1, 2), clew.tensor([[1., 2.], [3., 4.]])
>>> clew.nn.functional.scaled_dot_product_attention(q, clew.ones(2, 2), v)
tensor([[2., 3.]])
)",
    .run = run,
    .attrs = &attr_info<AttentionAttrs>,
    .autocast = Autocast::lower,
    .offer = Offer::function,
    .is_product = true,
    .flops = attention_flops,
    .backward_flops = attention_backward_flops,
});

constexpr const OpDef* attention_list[] = {&attention_op, &fused_op, &fused_back_op};

}  // namespace

extern const OpList attention_ops;
const OpList attention_ops = op_list(attention_list);

}  // namespace clew
