// How apply() reports its calls to a memory budget (csrc/program/recipe.cpp), so that results can
// be given up and recomputed.
// May include: graph/op.h, graph/modes.h.
// Invariant: calls are noted only with intercept_budget set; a counted saved tensor is uncounted
// exactly once.
#pragma once
#include "graph/modes.h"
#include "graph/op.h"

namespace clew {

namespace program {
struct Recipe;
}

// Filled in by csrc/program.
struct Retention {
  // One more saved tensor, or one less, holds the storage.
  void (*count)(Storage* s) = nullptr;
  void (*uncount)(Storage* s) = nullptr;
  // Backward comes to the storage soon: prefetches what is known of it.
  void (*fetch)(const Storage* s) = nullptr;
  // Called before an operation: gives the recipe that can recompute its results, or null if there
  // is none. `writes`: it writes in[0] in place.
  program::Recipe* (*begin)(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                            bool writes) = nullptr;
  // Called after the operation with its results, or with none if it failed.
  void (*finish)(program::Recipe* recipe, std::span<const Tensor> results) = nullptr;
};
extern Retention retention;
// Budgets that are open; calls do not wait then.
extern int budgets_open;

inline bool keeps_recipes() { return modes.intercept & intercept_budget; }

// The recipe of a call while it runs.
class NotedCall {
  program::Recipe* recipe_;

 public:
  NotedCall(const OpDef& op, std::span<const Tensor> in, const void* attrs, bool writes = false)
      : recipe_(keeps_recipes() ? retention.begin(op, in, attrs, writes) : nullptr) {}
  void results(std::span<const Tensor> outs) {
    if (recipe_) retention.finish(std::exchange(recipe_, nullptr), outs);
  }
  ~NotedCall() {
    if (recipe_) retention.finish(recipe_, {});
  }
  NotedCall(const NotedCall&) = delete;
};

}  // namespace clew
