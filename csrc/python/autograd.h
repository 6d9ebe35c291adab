// Python's view of the graph: node objects.
// May include: python/bridge.h.
// Invariant: one Python object stands for a node as long as that object lives.
#pragma once
#include "python/bridge.h"

namespace clew::python {

PyObject* node_object(Node* n);  // new reference; None for null
NodeRef node_of(PyObject* o);    // of a node object; throws when its graph is gone
void set_requires_grad_flag(const Tensor& t, bool on);
void add_grad_modes(PyObject* module);  // whether operations are recorded, and inference mode
Tensor make_subclass_instance(PyTypeObject* type, const Tensor& source);

}  // namespace clew::python
