// What bridge.h declares of numbers, sequences and errors: how Python objects are read, and how
// exceptions reach Python.
// May include: everything below python/.
// Invariant: reading a number or a size runs no Python code but an object's own __index__.
#include "python/bridge.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "graph/explain.h"

namespace clew::python {

namespace {

// NumPy's types are told by name, so that NumPy itself is not needed here; classes written in
// Python, which may have any name, are made on the heap.
const char* numpy_name(PyTypeObject* type) {
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) || std::strncmp(type->tp_name, "numpy.", 6) != 0)
    return nullptr;
  return type->tp_name;
}

bool is_numpy_scalar(PyObject* o) {
  if (!numpy_name(Py_TYPE(o))) return false;
  for (PyTypeObject* t = Py_TYPE(o); t; t = t->tp_base)
    if (std::strcmp(t->tp_name, "numpy.generic") == 0) return true;
  return false;
}

// Room for the words about memory that has run out: address space alone, until it is needed.
class Reserve {
  static constexpr size_t bytes = size_t{16} << 20;
  void* at_ = MAP_FAILED;

 public:
  Reserve() { take(); }
  void take() {
    if (at_ == MAP_FAILED)
      at_ = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  void give() {
    if (void* at = std::exchange(at_, MAP_FAILED); at != MAP_FAILED) munmap(at, bytes);
  }
};
Reserve reserve;

// Who holds the memory, as clew.debug.memory() has it; empty where that cannot be told.
std::string holders_now(const char* what = "holders_text") {
  static thread_local bool asking = false;  // may itself run out of memory
  if (asking) return {};
  asking = true;
  reserve.give();
  std::string text;
  if (PyObject* module = PyImport_ImportModule("clew._insight.debug.memory")) {
    if (PyObject* found = PyObject_CallMethod(module, what, nullptr)) {
      if (PyUnicode_Check(found)) text = printable(found);
      Py_DECREF(found);
    }
    Py_DECREF(module);
  }
  PyErr_Clear();
  reserve.take();
  asking = false;
  return text;
}

// The text about what holds memory for a failed allocation (clew._insight.debug.memory). It says so
// if more was requested than the machine has, since freeing tensors would not help then.
std::string holders_of_memory(std::string_view message) {
  constexpr std::string_view before = "tried to allocate ";
  const size_t at = message.find(before);
  if (message.starts_with("memory_budget:")) return holders_now("refusal_text");
  if (at == std::string_view::npos) return {};
  const double bytes =
      std::strtod(std::string(message.substr(at + before.size())).c_str(), nullptr);
  const double there = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (bytes < 1e6) return {};
  if (bytes > there)
    return concat("\n  this machine has ", static_cast<int64_t>(there / 1e9),
                  " GB in all: is a size, or the shape that operands broadcast to, as meant?");
  return holders_now();
}

}  // namespace

bool is_numpys(PyObject* o, const char* type) {
  const char* name = numpy_name(Py_TYPE(o));
  return name && std::strcmp(name, type) == 0;
}
bool is_numpy_array(PyObject* o) {
  for (PyTypeObject* t = Py_TYPE(o); t; t = t->tp_base)
    if (const char* name = numpy_name(t)) return std::strcmp(name, "numpy.ndarray") == 0;
  return false;
}

std::string printable(PyObject* text) {
  PyObject* utf8 = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
  std::string out = utf8 ? PyBytes_AS_STRING(utf8) : "?";
  if (!utf8) PyErr_Clear();
  Py_XDECREF(utf8);
  return out;
}

PyObject* items_of(PyObject* o, const char* fn) {
  if (PyTuple_Check(o)) return Py_NewRef(o);
  if (PyList_Check(o)) return checked(PyList_AsTuple(o));
  const Py_ssize_t count = PySequence_Size(o);
  if (count < 0) throw PythonError();
  Ref iterator(checked(PyObject_GetIter(o)));
  Ref found(checked(PyList_New(0)));
  while (PyList_GET_SIZE(found.get()) <= count) {
    Ref item(PyIter_Next(iterator.get()));
    if (!item) break;
    if (PyList_Append(found.get(), item.get()) < 0) throw PythonError();
  }
  if (PyErr_Occurred()) throw PythonError();
  if (PyList_GET_SIZE(found.get()) != count)
    fail_value(fn, ": a ", Py_TYPE(o)->tp_name, " of length ", count, " has ",
               PyList_GET_SIZE(found.get()) > count ? "more" : "fewer", " items than that");
  return checked(PyList_AsTuple(found.get()));
}

PyObject* scalar_object(const Scalar& s) {
  switch (s.kind) {
    case Scalar::Kind::Bool: return PyBool_FromLong(s.i != 0);
    case Scalar::Kind::Int: return PyLong_FromLongLong(s.i);
    case Scalar::Kind::Big: return PyLong_FromUnsignedLongLong(s.u);
    case Scalar::Kind::Float: return PyFloat_FromDouble(s.re);
    case Scalar::Kind::Complex: return PyComplex_FromDoubles(s.re, s.im);
    default: Py_RETURN_NONE;
  }
}

bool scalar_from(PyObject* o, Scalar& out) {
  if (PyFloat_Check(o)) {
    out = Scalar(PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (PyBool_Check(o)) {
    out = Scalar(o == Py_True);
    return true;
  }
  if (PyLong_Check(o)) {
    int overflow = 0;
    int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) {
      uint64_t big = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : uint64_t{0};
      if (PyErr_Occurred()) {
        PyErr_Clear();
        big = 0;
      }
      if (!big) fail(ErrorKind::Overflow, "int too big to convert to int64");
      out = Scalar(big);
      return true;
    }
    out = Scalar(v);
    return true;
  }
  if (PyComplex_Check(o)) {
    Py_complex c = PyComplex_AsCComplex(o);
    out = Scalar(c128(c.real, c.imag));
    return true;
  }
  if (is_tensor(o)) return false;
  if (is_numpy_scalar(o)) {
    Ref value(PyObject_CallMethod(o, "item", nullptr));
    if (!value) throw PythonError();
    return !is_numpy_scalar(value.get()) && scalar_from(value.get(), out);
  }
  return false;
}

// An array of integers without dims stands for its number, which NumPy itself says.
static bool is_int_array(PyObject* o) {
  if (!is_numpy_array(o)) return false;
  if (Ref index(PyNumber_Index(o)); index) return true;
  PyErr_Clear();
  return false;
}

bool is_int(PyObject* o) {
  if (PyLong_Check(o)) return !PyBool_Check(o);
  if (PyFloat_Check(o)) return false;
  if (is_tensor(o)) {
    auto* t = reinterpret_cast<TensorObj*>(o);
    return t->shape->numel == 1 && t->shape->sizes.size() == 0 && is_integral(t->dtype) &&
           t->dtype != DType::Bool;
  }
  return is_numpy_scalar(o) ? PyIndex_Check(o) : is_int_array(o);
}

bool is_one_int(PyObject* o) {
  if (is_int(o)) return true;
  if (!is_tensor(o)) return false;
  auto* t = reinterpret_cast<TensorObj*>(o);
  return t->shape->numel == 1 && is_integral(t->dtype) && t->dtype != DType::Bool;
}

int64_t int_from(PyObject* o) {
  if (PyLong_Check(o)) {
    int overflow = 0;
    int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) fail(ErrorKind::Overflow, "int too big to convert to int64");
    return v;
  }
  if (is_tensor(o)) return item(borrow(o)).to_int();
  Ref index(checked(PyNumber_Index(o)));
  return int_from(index.get());
}

bool read_as_ints(PyObject* const* items, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!is_int(items[i]) && (i == 0 || !PyBool_Check(items[i]))) return false;
  return true;
}

bool is_int_sequence(PyObject* o) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  return read_as_ints(PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o));
}

Dims ints_from(PyObject* o) {
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  PyObject** items = PySequence_Fast_ITEMS(o);
  Dims out(static_cast<int>(n));
  for (Py_ssize_t i = 0; i < n; ++i) out[static_cast<int>(i)] = int_from(items[i]);
  return out;
}

Tensor wrapped_number(const Scalar& s) { return scalar_tensor(s, s.dtype(), true); }

Tensor tensor_or_number(PyObject* o) {
  if (is_tensor(o)) return borrow(o);
  Scalar s;
  if (scalar_from(o, s)) return wrapped_number(s);
  if (is_numpys(o, "numpy.ndarray")) {
    Ref module(checked(PyImport_ImportModule("clew")));
    Ref t(checked(PyObject_CallMethod(module.get(), "as_tensor", "O", o)));
    return borrow(t.get());
  }
  return {};
}

PyObject* bound_like_function(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_SystemError, "internal error in clew: lost a Python exception");
  } catch (const Error& e) {
    PyObject* type = PyExc_RuntimeError;
    switch (e.kind) {
      case ErrorKind::Index: type = PyExc_IndexError; break;
      case ErrorKind::Type: type = PyExc_TypeError; break;
      case ErrorKind::Value: type = PyExc_ValueError; break;
      case ErrorKind::NotImplemented: type = PyExc_NotImplementedError; break;
      case ErrorKind::OutOfMemory:
        type = out_of_memory_error ? out_of_memory_error : PyExc_MemoryError;
        break;
      case ErrorKind::Overflow: type = PyExc_OverflowError; break;
      case ErrorKind::Buffer: type = PyExc_BufferError; break;
      case ErrorKind::Os: type = PyExc_OSError; break;
      case ErrorKind::Runtime: break;
    }
    // Inside a module the message says which, and which line called it.
    std::string place = modes.scope && !e.located ? describe(origin_here()) : "";
    std::string in_module = place.empty() ? "" : concat("\n  in ", place);
    auto* explained = dynamic_cast<const Explained*>(&e);
    if (e.kind == ErrorKind::OutOfMemory) in_module += holders_of_memory(e.text);
    PyErr_SetString(type, concat(e.text, in_module, explained ? explained->details : "").c_str());
  } catch (const std::bad_alloc&) {
    PyObject* type = out_of_memory_error ? out_of_memory_error : PyExc_MemoryError;
    constexpr const char* what = "allocation: out of memory";
    try {
      PyErr_SetString(type, concat(what, holders_now()).c_str());
    } catch (...) {
      PyErr_SetString(type, what);
    }
  } catch (const std::exception& e) {
    PyErr_Format(PyExc_RuntimeError, "internal error in clew, please report it: %s", e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError,
                    "internal error in clew, please report it: unknown exception");
  }
}

}  // namespace clew::python
