// Search of results for NaN and infinity, and operations that are shown to Python: what is looked
// at, and who is told.
// May include: graph.
// Invariant: a value is reported where it was born, not where it was handed on.
#pragma once
#include "graph/node.h"

namespace clew {

// Who is told: nan_watch's callback, or the error that detect_anomaly raises.
struct Watch {
  PyObject* callback = nullptr;  // owned
  bool nan = true;
  bool infinity = true;
};
extern constinit thread_local Watch watch;

// The operation's results, against what it was given. A recorded gradient rule is searched as a
// whole, by watch_gradients().
void watch_results(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                   std::span<const Tensor> outs);
// The same for an operation that writes over its first input.
class WatchedWrite {
  const OpDef& op_;
  std::span<const Tensor> in_;
  const void* attrs_;
  NonFinite before_ = NonFinite::none;
  bool on_;

 public:
  WatchedWrite(const OpDef& op, std::span<const Tensor> in, const void* attrs);
  void done(const Tensor& written) const;
};
// A function of Python's is shown the operations of some names, and every backward before it runs,
// as callback(name, tensors that go in, tensors that come out). One for each thread.
void observe(PyObject* callback, PyObject* names);  // null, or a set of str
// Backward begins at the roots: "backward", "retaining" where the graph is kept, "recorded" where
// it is recorded, or "grad" where gradients are asked for by themselves.
void observe_backward(const char* how, std::span<const Tensor> roots);

// What node n made of grads.
void watch_gradients(Node& n, std::span<const Tensor> grads, std::span<const Tensor> made);

}  // namespace clew
