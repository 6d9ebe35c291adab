// Adding gradients up without a graph.
// May include: graph/node.h.
// Invariant: only gradients with no other owner are written to.
#pragma once
#include "graph/node.h"

namespace clew {

// Sparse gradients are tensors of a class written in Python, whose elements the core does not see:
// to it they are on the meta device. Null until that class exists.
extern PyTypeObject* sparse_type;
// Called with the sum so far (or None) and a gradient. Returns their sum, sparse or dense, as a
// tensor without other owners.
extern PyObject* sparse_sum;
inline bool is_sparse(const Tensor& t) {
  return sparse_type && Py_TYPE(reinterpret_cast<PyObject*>(t.get())) == sparse_type;
}
// The device of a gradient's elements; sparse gradients count as CPU.
inline Device gradient_device(const Tensor& t) { return is_sparse(t) ? Device::CPU : t.device(); }
Tensor add_sparse(const Tensor& before, const Tensor& grad);

// into += g, without a graph.
void accumulate_into(const Tensor& into, const Tensor& g);
// The right to give a tensor a .grad or to add to it. Kernels of large gradients let other threads
// run, so that two backward calls would both read the old .grad and one gradient would be lost.
class GradTurn {
  Tensor of_;  // undefined for small gradients, which no thread can come between

 public:
  GradTurn(const Tensor& of, const Tensor& grad);
  ~GradTurn();
  GradTurn(const GradTurn&) = delete;
};
// New tensor objects over the same elements with the same history. Used before a rule that runs
// Python code, which may keep the tensors it gets and change their shape.
std::vector<Tensor> out_of_reach(std::span<const Tensor> grads);

}  // namespace clew
