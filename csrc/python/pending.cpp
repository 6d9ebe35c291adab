// Weak stand-ins for parts that land separately; removed when all are there.
// May include: everything below python/.
// Invariant: none of these survives once the real definition is linked.
#include "ops/reduction.h"
#include "python/convert.h"
#include "python/indexing.h"

namespace clew {
__attribute__((weak)) Tensor sum(const Tensor& x, const Dims&, bool, std::optional<DType>) { return x; }
__attribute__((weak)) Tensor sum_to(const Tensor& x, const Dims&) { return x; }
}  // namespace clew
namespace clew::python {
__attribute__((weak)) PyMethodDef convert_methods[] = {{}};
__attribute__((weak)) PyObject* tensor_float(PyObject*) { return PyFloat_FromDouble(0); }
__attribute__((weak)) PyObject* tensor_int(PyObject*) { return PyLong_FromLong(0); }
__attribute__((weak)) PyObject* tensor_index(PyObject*) { return PyLong_FromLong(0); }
__attribute__((weak)) PyObject* tensor_getitem(PyObject*, PyObject*) { Py_RETURN_NONE; }
__attribute__((weak)) int tensor_setitem(PyObject*, PyObject*, PyObject*) { return 0; }
__attribute__((weak)) bool is_generator(PyObject*) { return false; }
__attribute__((weak)) Generator* generator_from_python(PyObject*) { return nullptr; }
}  // namespace clew::python
