// Between Python objects and the core: wrapping, number and size parsing, exception translation.
// May include: everything below python/.
// Invariant: no C++ exception leaves a function that Python calls; guarded() sees to it.
#pragma once
#include <optional>
#include <string>

#include "graph/node.h"
#include "ops/ops.h"

#include <structmember.h>  // needs Python.h, which the headers above include

namespace clew::python {

inline PyObject* wrap(Tensor t) { return reinterpret_cast<PyObject*>(t.release()); }
// The same of a tensor that no operation made.
inline PyObject* wrap_made(Tensor t) {
  if (modes.inference) t->flags |= flag_inference;
  return wrap(std::move(t));
}
inline bool is_tensor(PyObject* o) {
  return Py_TYPE(o) == tensor_type || PyObject_TypeCheck(o, tensor_type);
}
inline TensorObj* obj(PyObject* o) { return reinterpret_cast<TensorObj*>(o); }
inline Tensor borrow(PyObject* o) { return Tensor::borrow(reinterpret_cast<TensorObj*>(o)); }

// A str for a message: what UTF-8 cannot express (lone surrogates) is written with backslashes.
// Keeps no error.
std::string printable(PyObject* text);
// bool(o); throws what it raises.
inline bool truth_of(PyObject* o) {
  int truth = PyObject_IsTrue(o);
  if (truth < 0) throw PythonError();
  return truth == 1;
}
// The items of a sequence as a new tuple, which no other code can change. Raises if the number of
// items differs from len().
PyObject* items_of(PyObject* sequence, const char* fn);
// Whether o is NumPy's own object of that type ("numpy.bool"). No class written in Python is,
// whatever it is called, so that asking for its value runs no Python code.
bool is_numpys(PyObject* o, const char* type);
bool is_numpy_array(PyObject* o);  // also of a subclass

// A Python or NumPy number (bool, int, float, complex, np.float32(...)); false for anything else,
// without an error set. None of these functions runs Python code.
bool scalar_from(PyObject* o, Scalar& out);
// An int, NumPy integer or 0-d integer tensor; bool and float are refused. Throws TypeError naming
// op and argument.
bool is_int(PyObject* o);
// The same, or a tensor of one integer of any shape, where nothing else wants a tensor.
bool is_one_int(PyObject* o);
int64_t int_from(PyObject* o);
// Whether every item is an int; behind the first one bools, too, which count as 0 and 1.
bool read_as_ints(PyObject* const* items, Py_ssize_t n);
// A tuple, list or Size of such items.
bool is_int_sequence(PyObject* o);
Dims ints_from(PyObject* o);
bool is_dtype(PyObject* o);
DType dtype_from(PyObject* o);    // o must satisfy is_dtype
PyObject* dtype_object(DType d);  // new reference
std::optional<Device> device_from(
    PyObject* o);  // device, "cpu", "cpu:0", "meta"; throws for others, null when not a device
PyObject* device_object(Device d);     // new reference
PyObject* size_object(const Dims& d);  // new reference: clew.Size
PyObject* size_object(Shape* shape);   // the same, of its sizes
PyObject* scalar_object(const Scalar& s);
// A tensor as it is, a number as a wrapped 0-d tensor, a NumPy array converted; undefined for
// anything else.
Tensor tensor_or_number(PyObject* o);
Tensor wrapped_number(const Scalar& s);

extern PyTypeObject* size_type;
extern PyTypeObject* dtype_type;
extern PyTypeObject* device_type;
extern PyTypeObject* node_type;
extern PyObject* out_of_memory_error;

// clew.Generator objects; None gives null, which callers read as the default generator.
bool is_generator(PyObject* o);
Generator* generator_from_python(PyObject* o);

// Turns the exception in flight into a Python exception.
void set_python_error() noexcept;
template <class F> PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}
template <class F> int guarded_int(F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}
// Throws when a C-API call failed.
inline PyObject* checked(PyObject* o) {
  if (!o) throw PythonError();
  return o;
}

// Owned reference that is dropped at scope end.
class Ref {
  PyObject* o_ = nullptr;

 public:
  Ref() = default;
  explicit Ref(PyObject* o) : o_(o) {}
  Ref(Ref&& r) noexcept : o_(std::exchange(r.o_, nullptr)) {}
  Ref& operator=(Ref&& r) noexcept {
    std::swap(o_, r.o_);
    return *this;
  }
  Ref(const Ref&) = delete;
  ~Ref() { Py_XDECREF(o_); }
  PyObject* get() const { return o_; }
  PyObject* release() { return std::exchange(o_, nullptr); }
  explicit operator bool() const { return o_ != nullptr; }
};

// A str; what is no UTF-8 is replaced.
inline Ref text(std::string_view s) {
  return Ref(checked(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace")));
}

// One of a type's slots: a function, or a table.
template <class F> PyType_Slot slot(int id, F* what) {
  if constexpr (std::is_function_v<F>)
    return {id, reinterpret_cast<void*>(what)};
  else
    return {id, const_cast<std::remove_const_t<F>*>(what)};
}
// tp_descr_get: as a class attribute an object binds like a function.
PyObject* bound_like_function(PyObject* self, PyObject* object, PyObject* type);
// The tensor that o must be.
inline Tensor need_tensor(PyObject* o, const char* function) {
  if (!is_tensor(o)) fail_type(function, ": expected a Tensor; got ", Py_TYPE(o)->tp_name);
  return borrow(o);
}
// Whether the name of a keyword argument is this one.
inline bool is_named(PyObject* key, const char* name) {
  return PyUnicode_CompareWithASCIIString(key, name) == 0;
}

// Parts of the module, each adding itself to it.
void add_types(PyObject* module);
void add_tensor_type(PyObject* module);
void add_functions(PyObject* module);
void add_autograd(PyObject* module);
void add_autocast(PyObject* module);
void add_vmap(PyObject* module);
void add_optimize(PyObject* module);
void add_gradients(PyObject* module);
void add_module_base(PyObject* module);
void add_provenance(PyObject* module);
void add_watch(PyObject* module);
void add_deferral(PyObject* module);
void add_autobatch(PyObject* module);
void add_budget(PyObject* module);
void add_graph_export(PyObject* module);
void add_trace(PyObject* module);

}  // namespace clew::python
