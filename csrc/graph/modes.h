// What the current thread has switched on: recording, inference mode, what looks at every
// operation, saved-tensor hooks; and what it is in the middle of.
// May include: base.
// Invariant: thread-local; the scoped setters restore what they found, also when an exception
// passes.
#pragma once
#include <cstdint>

struct _object;

namespace clew {

struct TensorObj;
struct Node;
struct Scope;
struct Origin;

// What intercepts every operation: the bits of Modes::intercept.
constexpr uint8_t intercept_autocast = 1;  // ops choose their dtypes (graph/autocast.h)
constexpr uint8_t intercept_trace = 2;     // a profiler writes events
constexpr uint8_t intercept_watch = 4;     // results are searched for NaN and infinity
constexpr uint8_t intercept_anomaly = 8;   // gradients are searched for NaN
constexpr uint8_t intercept_observe = 16;  // a Python function is shown operations (graph/watch.h)
constexpr uint8_t intercept_collect = 32;  // calls are gathered, to run in batches (deferral.h)
constexpr uint8_t intercept_budget = 64;   // calls are noted, to be made again (budget.h)

struct Modes {
  bool grad = true;
  bool inference = false;
  bool vmap = false;  // a vmap is open, and ops are not just run sample by sample
  uint8_t intercept = 0;
  bool deferred = false;      // calls wait (graph/deferral.h)
  bool whole_stacks = false;  // places are kept with their callers
  // Gradients are being added up: such writes are not the program's.
  bool accumulating = false;
  // A gradient that only the running node still uses: the next operation, if elementwise, may write
  // its result into it (Vjp::last_grad).
  TensorObj* disposable = nullptr;
  int64_t least_deferred = 65536;       // elements of operands that are worth waiting for
  Scope* scope = nullptr;               // lent: the module call in progress
  Node* running = nullptr;              // the node whose gradient rule runs
  Origin* unrecorded_since = nullptr;   // owned: where the program switched recording off
  uint32_t saved_hooks = 0;             // depth of the saved-tensor hook stack
  _object* saved_hook_stack = nullptr;  // a Python list of (pack, unpack)
};
// constinit spares its users the question whether it was made.
extern constinit thread_local Modes modes;

class GradMode {
  bool before_;

 public:
  explicit GradMode(bool on) : before_(modes.grad) { modes.grad = on; }
  ~GradMode() { modes.grad = before_; }
  GradMode(const GradMode&) = delete;
};

// Clears some bits of modes.intercept for a scope; what becomes of the others meanwhile stays.
class InterceptWithout {
  uint8_t cleared_;

 public:
  explicit InterceptWithout(uint8_t bits) : cleared_(static_cast<uint8_t>(modes.intercept & bits)) {
    modes.intercept = static_cast<uint8_t>(modes.intercept & ~bits);
  }
  ~InterceptWithout() { modes.intercept = static_cast<uint8_t>(modes.intercept | cleared_); }
  InterceptWithout(const InterceptWithout&) = delete;
};

inline bool autocasts() { return modes.intercept & intercept_autocast; }
inline bool collects() { return modes.intercept & intercept_collect; }
inline void set_autocast(bool on) {
  modes.intercept = static_cast<uint8_t>(on ? modes.intercept | intercept_autocast
                                            : modes.intercept & ~intercept_autocast);
}

class AutocastMode {
  bool before_;

 public:
  explicit AutocastMode(bool on) : before_(autocasts()) { set_autocast(on); }
  ~AutocastMode() { set_autocast(before_); }
  AutocastMode(const AutocastMode&) = delete;
};

}  // namespace clew
