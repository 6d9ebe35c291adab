// Weak stand-ins for parts that land separately; removed when all are there.
// May include: everything below python/.
// Invariant: none of these survives once the real definition is linked.
#include "python/convert.h"

namespace clew::python {
__attribute__((weak)) PyMethodDef convert_methods[] = {{}};
__attribute__((weak)) PyObject* tensor_float(PyObject*) { return PyFloat_FromDouble(0); }
__attribute__((weak)) PyObject* tensor_int(PyObject*) { return PyLong_FromLong(0); }
__attribute__((weak)) PyObject* tensor_index(PyObject*) { return PyLong_FromLong(0); }
__attribute__((weak)) bool is_generator(PyObject*) { return false; }
__attribute__((weak)) Generator* generator_from_python(PyObject*) { return nullptr; }
}  // namespace clew::python
