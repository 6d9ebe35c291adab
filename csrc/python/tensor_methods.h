// Methods of Tensor that are not ops: metadata, memory, history.
// May include: python/bridge.h.
// Invariant: each table ends with an empty entry.
#pragma once
#include "python/bridge.h"

namespace clew::python {

extern PyMethodDef tensor_methods[];
extern PyMethodDef history_methods[];
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);

inline PyCFunction keyworded(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

// A result that is gathered gets memory that others may share, a view that of its base.
inline void settle_gathered(const Tensor& t) {
  if (t->flags & flag_gathered) settle_storage(t->storage);
}

}  // namespace clew::python
