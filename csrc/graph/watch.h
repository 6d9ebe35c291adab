// Search of results for NaN and infinity, and reports of operations to Python.
// May include: graph.
// Invariant: a value is reported where it was born, not where it was handed on.
#pragma once
#include "graph/node.h"

namespace clew {

// What a search for NaN and infinity reports to: nan_watch's callback, or the error that
// detect_anomaly raises.
struct Watch {
  PyObject* callback = nullptr;  // owned
  bool nan = true;
  bool infinity = true;
  bool showing = false;  // the observer is called: what it does is not shown
};
extern constinit thread_local Watch watch;

// Whether single calls are intercepted. detect_anomaly looks at gradients only, so it does not
// count.
inline bool sees_calls() { return modes.intercept & ~intercept_anomaly; }

// Searches the operation's results for NaN and infinity that its inputs did not have. A recorded
// gradient rule is searched as a whole, by watch_gradients().
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
// Reports operations with the given names, and each backward before it runs, to a Python
// callback(name, inputs, outputs). One per thread.
struct Shown {
  PyObject* names = nullptr;  // a set of str
  PyObject* few = nullptr;    // names of which only some calls are reported, or null
  int most = 0;               // so many calls since the last backward, which are alike: one
                              // instruction and module, tensors of the same shapes and dtypes that
                              // require grad or not; what is a single number, or is computed from
                              // integers, is shown always
};
void observe(PyObject* callback, Shown what);  // a null callback ends the reports
// Until the next backward every call is shown.
void observe_closely();
// Backward begins at the roots: "backward", "retaining" where the graph is kept, "recorded" where
// it is recorded, or "grad" for autograd.grad().
void observe_backward(const char* how, std::span<const Tensor> roots);

// A copy of a finite gradient that a rule may write over, so that a report can show it.
class SmallGradient {
 public:
  // Copies the gradient if there is only one and it is small enough; else false.
  bool keep(std::span<const Tensor> grads);
  Tensor restored(const Tensor& like) const;

 private:
  alignas(16) std::byte bytes_[512];
};

// Checks the gradients that node n made from grads. With `before`, grads were finite and n may have
// written over them. Returns whether all of n's gradients are finite, if nan_watch is on.
bool watch_gradients(Node& n, std::span<const Tensor> grads, std::span<const Tensor> made,
                     const SmallGradient* before);
bool all_finite(std::span<const Tensor> ts);
// A sum of finite gradients; returns whether it is finite.
bool watch_sum(const Tensor& sum);

}  // namespace clew
