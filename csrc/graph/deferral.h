// How calls wait: what apply() hands to a Program (csrc/program) instead of running it.
// May include: graph/op.h, graph/modes.h.
// Invariant: only what no one can observe waits: shapes, dtypes, errors of arguments, versions and
// history are settled when the call is made.
#pragma once
#include "graph/modes.h"
#include "graph/op.h"

namespace clew {

// What a waiting call does when its turn comes.
enum class Waits : uint8_t {
  loops,   // an elementwise operation writes its only result
  kernel,  // OpDef::cpu fills the results
  write,   // OpDef::write changes in[0] where it lies
};

// Filled in by csrc/program.
struct Deferral {
  void (*keep)(const OpDef& op, std::span<const Tensor> in, const void* attrs,
               std::span<const Tensor> results, Waits how, DType compute) = nullptr;
  // Runs what waits in this thread's program; how many calls that was.
  size_t (*run_own)() = nullptr;
  // Inside a region that batches calls: takes this call and gives pending results. False if the
  // call must run at once; its operands have then been computed.
  bool (*collect)(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                  Tensors& outs) = nullptr;
  // A gathered result without its history, which goes on waiting.
  Tensor (*detach)(const Tensor& t) = nullptr;
  // Runs what this thread has gathered; how many calls that was.
  size_t (*run_collected)() = nullptr;
};
extern Deferral deferral;

// A storage that others may write unseen is copied when a call is kept, up to so many bytes.
constexpr size_t most_copied = size_t{1} << 20;

// Whether a call waits: in a deferring thread, where an operand waits, or where it can be part of a
// pass with others (`passes`) and has enough elements. `written`: what it writes in place.
bool may_wait(std::span<const Tensor> in, int64_t numel, bool passes, const Tensor* written);
inline bool waits(std::span<const Tensor> in, int64_t numel, bool passes,
                  const Tensor* written = nullptr) {
  if (!modes.deferred) return false;
  // Decides most small calls quickly: few elements and no pending operand.
  bool small = numel < modes.least_deferred;
  for (const Tensor& t : in)
    small = small &&
            (!t.defined() || (t->shape->numel < modes.least_deferred && !t->storage->is_pending()));
  return !small && may_wait(in, numel, passes, written);
}

// Call before code that does not wait reads bytes.
inline void settle(std::span<const Tensor> tensors) {
  for (const Tensor& t : tensors)
    if (t.defined() && t->storage->is_pending()) [[unlikely]]
      settle_storage(t->storage);
}

}  // namespace clew
