// Nodes of Functions that Python defines.
// May include: graph, python/node_object.h.
// Invariant: a node owns its Python function context; the context's pointer back is cleared when
// the node dies.
#pragma once
#include <vector>

#include "graph/node.h"
#include "python/node_object.h"

namespace clew::python {

// A node of a Python autograd.Function.
struct PyFunctionNode final : Node {
  PyObject* ctx = nullptr;  // owned
  std::vector<Saved> saved;
  std::vector<OwnedEdge> saved_edges;  // where gradients of a saved input go; null for others
  std::vector<bool> no_tensor;  // outputs that are none: they have no gradient to give zeros for
  bool materialize = true;
  std::string label;

  ~PyFunctionNode() override {
    if (ctx) node_obj(ctx)->node = nullptr;
    for (Saved& s : saved) s.clear();
    Py_XDECREF(ctx);
  }
  std::string name() const override { return label; }
  PyObject* python_object() override { return ctx; }
  std::span<const Saved> saved_tensors() const override { return saved; }
  void release_saved() override {
    if (saved.empty()) return;
    for (Saved& s : saved) s.clear();
    saved_edges.clear();
    consumed = consuming_id();
  }
  void run(std::span<const Tensor> grads, Tensor* out) override;
};

// Of a tuple or list of Tensors.
std::vector<Tensor> tensors_from(PyObject* seq, const char* what, bool none_allowed);
// _attach_function(ctx, name, inputs, outputs, saved, dirty, non_differentiable, materialize) ->
// outputs. Makes the node of a custom Function: inputs is a tuple with None for non-tensors.
PyObject* attach_function(PyObject*, PyObject* args);

}  // namespace clew::python
