// Methods of Tensor that are not ops: metadata, flags, backward.
// May include: python/bridge.h.
// Invariant: the table ends with an empty entry.
#pragma once
#include "python/bridge.h"

namespace clew::python {

extern PyMethodDef tensor_methods[];
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);

}  // namespace clew::python
