// Methods of Tensor that are not ops: metadata, flags, backward.
// May include: python/bridge.h.
// Invariant: the table ends with an empty entry.
#pragma once
#include "python/bridge.h"

namespace clew::python {

extern PyMethodDef tensor_methods[];
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);

// A result that is gathered gets memory that others may share, a view that of its base.
inline void settle_gathered(const Tensor& t) {
  if (t->flags & flag_gathered) settle_storage(t->storage);
}

}  // namespace clew::python
