// Letting other Python threads run while a long kernel works.
// May include: graph/modes.h, Python.h.
// Invariant: no tensor or node is touched while the GIL is released.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "graph/modes.h"

namespace clew {

// Below this many elements of work the switch costs more than it gives.
constexpr int64_t gil_release_grain = 1 << 18;

class ReleaseGil {
  PyThreadState* state_ = nullptr;

 public:
  explicit ReleaseGil(int64_t work) {
    if (work >= gil_release_grain && !modes.accumulating) state_ = PyEval_SaveThread();
  }
  ~ReleaseGil() {
    if (state_) PyEval_RestoreThread(state_);
  }
  ReleaseGil(const ReleaseGil&) = delete;
};

}  // namespace clew
