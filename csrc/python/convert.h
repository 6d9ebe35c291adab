// Tensors to and from Python numbers, lists, NumPy arrays and DLPack.
// May include: python/bridge.h.
// Invariant: the method table ends with an empty entry.
#pragma once
#include "python/bridge.h"

namespace clew::python {

extern PyMethodDef convert_methods[];
PyObject* tensor_float(PyObject* self);
PyObject* tensor_int(PyObject* self);
PyObject* tensor_index(PyObject* self);

}  // namespace clew::python
