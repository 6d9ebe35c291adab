// Scaled dot-product attention, written with other ops.
// May include: ops.
// Invariant: a query whose keys are all masked attends to nothing: its result and its gradients are zero.
#include "ops/attention.h"

#include <cmath>

#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/matmul.h"
#include "ops/reduction.h"
#include "ops/shape.h"
#include "ops/softmax.h"

namespace clew {

Tensor dropout(const Tensor& x, double p, bool training);

namespace {

struct AttentionAttrs {
  double dropout_p = 0;
  bool is_causal = false;
  std::optional<double> scale;
  bool enable_gqa = false;
  static constexpr auto members() {
    return std::tuple(&AttentionAttrs::dropout_p, &AttentionAttrs::is_causal, &AttentionAttrs::scale,
                      &AttentionAttrs::enable_gqa);
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
  require(q.size(-1) == k.size(-1), op, ": query.shape[-1] must equal key.shape[-1]; got ", q, " and ", k);
  require(k.size(-2) == v.size(-2), op, ": key.shape[-2] must equal value.shape[-2]; got ", k, " and ", v);
  require(a.dropout_p >= 0 && a.dropout_p <= 1, op, ": dropout_p must lie between 0 and 1; got ", a.dropout_p);
  if (mask) {
    require(!a.is_causal, op, ": give either attn_mask or is_causal=True, not both");
    require(mask.dtype() == DType::Bool || mask.dtype() == q.dtype(), op,
            ": attn_mask must be bool or have the query's dtype; got ", mask, " and ", q);
  }
}

// Each key and value head serves as many query heads as there are of them.
Tensor repeated(const Tensor& x, int64_t heads) {
  const int64_t own = x.size(-3);
  if (own == heads) return x;
  require(own > 0 && heads % own == 0, op, ": the number of query heads must be a multiple of key's and value's; got ",
          heads, " and ", x);
  Dims wide = x.sizes(), flat = x.sizes();
  wide.insert(wide.size() - 2, heads / own);
  flat[flat.size() - 3] = heads;
  return reshape(expand(unsqueeze(x, -3), wide), flat);
}

// True on and below the diagonal.
Tensor causal_mask(int64_t rows, int64_t cols, Device device) {
  Tensor mask = empty({rows, cols}, DType::Bool, device);
  if (device == Device::Meta) return mask;
  bool* to = mask.data<bool>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) to[i * cols + j] = j <= i;
  }
  return mask;
}

void run(const Call& c, Tensors& outs) {
  check(c);
  const auto& a = c.as<AttentionAttrs>();
  const Tensor& q = c.in[0];
  Tensor k = c.in[1], v = c.in[2], mask = c.in[3];
  if (a.enable_gqa) {
    require(q.ndim() >= 3 && k.ndim() >= 3 && v.ndim() >= 3, op, ": enable_gqa needs a dimension of heads; got ", q);
    k = repeated(k, q.size(-3));
    v = repeated(v, q.size(-3));
  }
  if (a.is_causal) mask = causal_mask(q.size(-2), k.size(-2), q.device());
  const double width = static_cast<double>(std::max<int64_t>(1, q.size(-1)));
  const double scale = a.scale.value_or(1.0 / std::sqrt(width));
  Tensor scores = matmul(q * Scalar(scale), transpose(k, -2, -1));
  Tensor dead;
  const Tensor zero = number(Scalar(0.0));
  if (mask && mask.dtype() == DType::Bool) {
    scores = where(mask, scores, number(Scalar(-INFINITY)));
    if (!a.is_causal && mask.ndim() > 0 && mask.size(-1) > 0) dead = logical_not(any(mask, {-1}, true));
  } else if (mask) {
    scores = scores + mask;
    if (mask.ndim() > 0 && mask.size(-1) > 0) dead = logical_not(any(ne(mask, number(Scalar(-INFINITY))), {-1}, true));
  }
  if (dead) scores = where(dead, zero, scores);
  Tensor weights = softmax(scores, -1);
  if (dead) weights = where(dead, zero, weights);
  if (a.dropout_p > 0) weights = dropout(weights, a.dropout_p, true);
  outs.push_back(matmul(weights, v));
}

constexpr OpDef attention_op = composite({
    .signature = "nn.functional.scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
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
    .offer = Offer::function,
});

constexpr const OpDef* listed[] = {&attention_op};

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                                    double dropout_p, bool is_causal, std::optional<double> scale) {
  return apply(attention_op, {query, key, value, mask}, AttentionAttrs{dropout_p, is_causal, scale, false});
}

extern const OpList attention_ops;
const OpList attention_ops = op_list(listed);

}  // namespace clew
