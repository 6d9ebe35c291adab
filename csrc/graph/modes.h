// What the current thread has switched on: recording, inference mode, autocast, saved-tensor hooks.
// May include: base.
// Invariant: thread-local; the scoped setters restore what they found, also when an exception
// passes.
#pragma once
#include <cstdint>

struct _object;

namespace clew {

struct TensorObj;

struct Modes {
  bool grad = true;
  bool inference = false;
  bool vmap = false;      // a vmap is open, and ops are not just run sample by sample
  bool autocast = false;  // ops choose their dtypes (graph/autocast.h)
  bool keep_gil = false;  // kernels must not release the GIL (gradient accumulation in progress)
  // A gradient that nobody but the running node will see again: the next operation, if elementwise,
  // may write its result there (Vjp::last_grad).
  TensorObj* disposable = nullptr;
  uint32_t saved_hooks = 0;             // depth of the saved-tensor hook stack
  _object* saved_hook_stack = nullptr;  // a Python list of (pack, unpack)
};
extern thread_local Modes modes;

class GradMode {
  bool before_;

 public:
  explicit GradMode(bool on) : before_(modes.grad) { modes.grad = on; }
  ~GradMode() { modes.grad = before_; }
  GradMode(const GradMode&) = delete;
};

class AutocastMode {
  bool before_;

 public:
  explicit AutocastMode(bool on) : before_(modes.autocast) { modes.autocast = on; }
  ~AutocastMode() { modes.autocast = before_; }
  AutocastMode(const AutocastMode&) = delete;
};

}  // namespace clew
