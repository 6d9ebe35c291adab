// Nodes of the graph as Python objects: how one is laid out.
// May include: python/autograd.h.
// Invariant: a wrapper owns its node; a custom Function's context is owned by its node, and points
// to it only as long as that lives.
#pragma once
#include "python/autograd.h"

namespace clew::python {

struct NodeObj {
  PyObject_HEAD Node* node;
  bool owns;  // a wrapper owns its node; a custom function's context is owned by it
  PyObject* dict;
  PyObject* weakrefs;
};
inline NodeObj* node_obj(PyObject* o) { return reinterpret_cast<NodeObj*>(o); }
// Lent; null for a context without a node, or with one that waits to be destroyed.
inline Node* live_node(PyObject* o) {
  Node* n = node_obj(o)->node;
  return n && !n->is_dying() ? n : nullptr;
}

// Makes the type, and gives it to the module.
void add_node_type(PyObject* module);
// _node_type(name): the type of nodes of that name.
PyObject* node_type_named(PyObject*, PyObject* name);

}  // namespace clew::python
