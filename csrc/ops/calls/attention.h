// Attention as a C++ function, for composites.
// May include: ops/ops.h.
// Invariant: it only calls apply() with its OpDef.
#pragma once
#include "ops/ops.h"

namespace clew {

// softmax(query @ key^T * scale + mask) @ value; mask may be undefined, scale defaults to 1 /
// sqrt(query.shape[-1]).
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& mask, double dropout_p = 0,
                                    bool is_causal = false, std::optional<double> scale = {});

}  // namespace clew
