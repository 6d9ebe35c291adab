// Shared memory for Python: moving tensors there, and what is sent to another process in their
// place.
// May include: everything below python/.
// Invariant: all tensors over a storage move at once; none is left with bytes of its own.
#include "tensor/shared.h"

#include <cstring>

#include "python/bridge.h"
#include "python/convert.h"

namespace clew::python {

namespace {

Tensor over_bytes(Storage* s) {
  Tensor bytes = empty(Dims{0}, DType::UInt8);
  set_storage(bytes, s, 0, Dims{static_cast<int64_t>(s->nbytes)}, Dims{1});
  s->decref();
  return bytes;
}

Tensor tensor_with_elements(PyObject* o, const char* op) {
  if (!is_tensor(o)) fail_type(op, ": expected a Tensor; got ", Py_TYPE(o)->tp_name);
  Tensor t = borrow(o);
  require_elements(t, op);
  return t;
}

Storage* shared_argument(PyObject* o, const char* op) {
  Tensor t = tensor_with_elements(o, op);
  require(is_shared(t->storage), op, ": the tensor is not in shared memory");
  return t->storage;
}

PyObject* is_shared_(PyObject*, PyObject* o) {
  return guarded(
      [&] { return PyBool_FromLong(is_shared(tensor_with_elements(o, "is_shared")->storage)); });
}

PyObject* share(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o;
    const char* name;
    unsigned long long keeper;
    if (!PyArg_ParseTuple(args, "OsK", &o, &name, &keeper)) throw PythonError();
    Tensor t = tensor_with_elements(o, "share_memory_");
    require(!t.is_meta(), "share_memory_: a meta tensor has no memory");
    settle_before_write(t);
    Storage* from = t->storage;
    if (is_shared(from)) Py_RETURN_NONE;
    Storage* to = create_shared(from->nbytes, name, keeper);
    if (from->nbytes) std::memcpy(to->data, from->data, from->nbytes);
    // An array of NumPy and the like goes on with the bytes that it was given.
    if (!from->resizable) keep_beside(to, from);
    move_tensors(from, to);
    to->decref();
    Py_RETURN_NONE;
  });
}

PyObject* shared_file_(PyObject*, PyObject* o) {
  return guarded([&] {
    const SharedFile& file = shared_file(shared_argument(o, "_shared_file"));
    return checked(Py_BuildValue("is", file.descriptor, file.name.c_str()));
  });
}

PyObject* attach_descriptor(PyObject*, PyObject* args) {
  return guarded([&] {
    int descriptor;
    unsigned long long nbytes;
    if (!PyArg_ParseTuple(args, "iK", &descriptor, &nbytes)) throw PythonError();
    return wrap(over_bytes(attach_shared(descriptor, nbytes)));
  });
}

PyObject* attach_name(PyObject*, PyObject* args) {
  return guarded([&] {
    const char* name;
    unsigned long long nbytes;
    if (!PyArg_ParseTuple(args, "sK", &name, &nbytes)) throw PythonError();
    return wrap(over_bytes(attach_shared(std::string(name), nbytes)));
  });
}

PyObject* lend_name_(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    lend_name(shared_argument(o, "_lend_name"));
    Py_RETURN_NONE;
  });
}

template <void (*f)()> PyObject* plainly(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    f();
    Py_RETURN_NONE;
  });
}

PyObject* removed_names_(PyObject*, PyObject*) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    for (const RemovedName& r : removed_names()) {
      Ref pair(
          checked(Py_BuildValue("sK", r.name.c_str(), static_cast<unsigned long long>(r.keeper))));
      if (PyList_Append(list.get(), pair.get()) < 0) throw PythonError();
    }
    return Py_NewRef(list.get());
  });
}

}  // namespace

void add_shared(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_is_shared", is_shared_, METH_O, nullptr},
      {"_share", share, METH_VARARGS, nullptr},
      {"_shared_file", shared_file_, METH_O, nullptr},
      {"_attach_descriptor", attach_descriptor, METH_VARARGS, nullptr},
      {"_attach_name", attach_name, METH_VARARGS, nullptr},
      {"_lend_name", lend_name_, METH_O, nullptr},
      {"_shared_before_fork", plainly<before_fork>, METH_NOARGS, nullptr},
      {"_shared_after_fork", plainly<after_fork_in_child>, METH_NOARGS, nullptr},
      {"_give_names_back", plainly<give_names_back>, METH_NOARGS, nullptr},
      {"_removed_names", removed_names_, METH_NOARGS, nullptr},
      {}};
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace clew::python
