// Tensors to and from Python numbers, lists, NumPy arrays and DLPack; creation functions; the
// generator.
// May include: everything below python/.
// Invariant: foreign memory is kept alive by the Storage that wraps it, ours by the object that
// exports it.
#pragma once
#include "base/generator.h"
#include "graph/promotion.h"
#include "python/bridge.h"

namespace clew::python {

using FastFunction = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
inline PyMethodDef fast_method(const char* name, FastFunction f, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)),
          METH_FASTCALL | METH_KEYWORDS, doc};
}

// All methods of this part for the Tensor type, and functions for its number slots.
extern PyMethodDef convert_methods[];
// The pieces of that table, each with its number of entries.
std::span<const PyMethodDef> creation_methods();
std::span<const PyMethodDef> random_methods();
PyObject* tensor_float(PyObject* self);
PyObject* tensor_int(PyObject* self);
PyObject* tensor_index(PyObject* self);

// Completes convert_methods; comes before the Tensor type is made.
void gather_methods();
// Parts of the module.
void add_generator(PyObject* module);
void add_creation(PyObject* module);
void add_creation_range(PyObject* module);
void add_creation_data(PyObject* module);
void add_random(PyObject* module);
void add_shared(PyObject* module);
void add_convert(PyObject* module);  // after the Tensor type

// Whether the tensor's class says that an object holds only a part of what it stands for.
bool holds_a_part(PyObject* tensor);
// The number in a tensor of one element; that of the whole where the tensor holds a part.
Scalar number_in(PyObject* tensor);
// Throws for a sparse or ragged tensor, whose placeholder has no elements to take, and for one that
// holds a part.
void refuse_placeholder(PyObject* tensor, const char* function);
// Number, nested sequence, NumPy array or tensor to a fresh tensor; dtype inferred when not given.
Tensor tensor_from(PyObject* data, std::optional<DType> dtype, Device device);
Tensor tensor_from_sequence(PyObject* data, std::optional<DType> dtype);
std::optional<DType> numpy_scalar_dtype(
    PyObject* o);  // dtype of np.float32(1), nothing for other objects
Tensor from_numpy(PyObject* array, bool warn = true);
// A NumPy array over the tensor's memory. What is given away may not be resized while the array
// lives; `lend` is for readers that drop the array at once.
PyObject* to_numpy(const Tensor& t, bool lend = false);
PyObject* to_list(const Tensor& t);

PyObject* dlpack_export(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* dlpack_device(PyObject* self, PyObject*);
PyObject* dlpack_import(PyObject* module, PyObject* const* args, Py_ssize_t nargs,
                        PyObject* kwnames);

}  // namespace clew::python
