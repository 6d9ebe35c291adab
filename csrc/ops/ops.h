// The ops as C++ functions, for gradient rules and composites: add(a, b), sum(x, dims, keepdim) ...
// May include: graph/op.h.
// Invariant: each function only calls apply() with its OpDef; no second implementation lives here.
#pragma once
#include "graph/op.h"

namespace clew {

// The registration list: every family file offers one such list.
struct OpList {
  const OpDef* const* begin;
  const OpDef* const* end;
};
template <int N> constexpr OpList op_list(const OpDef* const (&ops)[N]) { return {ops, ops + N}; }

}  // namespace clew
