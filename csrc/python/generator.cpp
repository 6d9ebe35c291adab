// clew.Generator: the Python object around a random number source, and the default one.
// May include: everything below python/.
// Invariant: a state that Python hands in is checked before it is used.
#include "base/generator.h"

#include "python/convert.h"

namespace clew::python {

namespace {

struct GeneratorObj {
  PyObject_HEAD Generator* generator;
  bool owned;
};
PyTypeObject* generator_type = nullptr;

Generator& generator_in(PyObject* o) { return *reinterpret_cast<GeneratorObj*>(o)->generator; }

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"device", nullptr};
    PyObject* device = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names),
                                     &device)) {
      throw PythonError();
    }
    if (device && device != Py_None) {
      auto d = device_from(device);
      if (!d)
        fail_type("Generator: device must be a device or a str; got ", Py_TYPE(device)->tp_name);
      require(*d == Device::CPU, "Generator: device must be 'cpu'; got '", name(*d), "'");
    }
    PyObject* o = checked(type->tp_alloc(type, 0));
    reinterpret_cast<GeneratorObj*>(o)->generator = new Generator();
    reinterpret_cast<GeneratorObj*>(o)->owned = true;
    return o;
  });
}
void generator_dealloc(PyObject* o) {
  auto* g = reinterpret_cast<GeneratorObj*>(o);
  if (g->owned) delete g->generator;
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

uint64_t seed_from(PyObject* value) {
  if (!PyIndex_Check(value))
    fail_type("manual_seed: the seed must be an int; got ", Py_TYPE(value)->tp_name,
              "; clew.manual_seed takes what int() takes");
  Ref index(checked(PyNumber_Index(value)));
  int overflow = 0;
  long long small = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (!overflow) return static_cast<uint64_t>(small);
  unsigned long long big = overflow < 0 ? ~0ull : PyLong_AsUnsignedLongLong(index.get());
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    fail_value("manual_seed: the seed must be in [-2**63, 2**64)");
  }
  return big;
}

PyObject* manual_seed(PyObject* self, PyObject* value) {
  return guarded([&] {
    uint64_t seed = seed_from(value);
    std::lock_guard<std::mutex> lock(generator_in(self).mutex);
    generator_in(self).set_seed(seed);
    Py_INCREF(self);
    return self;
  });
}
PyObject* new_seed(PyObject* self, PyObject*) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(generator_in(self).mutex);
    generator_in(self).set_seed(random_seed());
    return PyLong_FromUnsignedLongLong(generator_in(self).seed_value);
  });
}
PyObject* initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(generator_in(self).seed_value);
}

PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&] {
    Tensor t = empty({Generator::state_bytes}, DType::UInt8);
    std::lock_guard<std::mutex> lock(generator_in(self).mutex);
    generator_in(self).save(t.data<uint8_t>());
    return wrap_made(std::move(t));
  });
}
PyObject* generator_set_state(PyObject* self, PyObject* state) {
  return guarded([&] {
    if (!is_tensor(state))
      fail_type("set_state: the state must be a Tensor; got ", Py_TYPE(state)->tp_name);
    Tensor t = borrow(state);
    if (t.dtype() != DType::UInt8 || t.is_meta())
      fail_type("set_state: the state must be a uint8 tensor; got ", t);
    Tensor flat = empty({t.numel()}, DType::UInt8);
    require(t.ndim() == 1, "set_state: the state must have one dim; got ", t);
    copy_into(flat, t);
    std::lock_guard<std::mutex> lock(generator_in(self).mutex);
    generator_in(self).load(flat.data<uint8_t>(), flat.numel());
    Py_INCREF(self);
    return self;
  });
}
// A state, or what PyTorch's files hold: (seed, offset, state).
PyObject* generator_unpickled(PyObject* self, PyObject* state) {
  const bool triple = PyTuple_Check(state) && PyTuple_GET_SIZE(state) == 3;
  return generator_set_state(self, triple ? PyTuple_GET_ITEM(state, 2) : state);
}
PyObject* clone_state(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref fresh(checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(generator_type))));
    uint8_t bytes[Generator::state_bytes];
    {
      std::lock_guard<std::mutex> lock(generator_in(self).mutex);
      generator_in(self).save(bytes);
    }
    generator_in(fresh.get()).load(bytes, Generator::state_bytes);
    return fresh.release();
  });
}
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref state(get_state(self, nullptr));
    if (!state) throw PythonError();
    return Py_BuildValue("O(s)O", reinterpret_cast<PyObject*>(generator_type), "cpu", state.get());
  });
}
PyObject* generator_device(PyObject*, void*) { return device_object(Device::CPU); }
PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<clew.Generator device='cpu' seed=%llu>",
                              static_cast<unsigned long long>(generator_in(self).seed_value));
}

PyMethodDef generator_methods[] = {
    {"manual_seed", manual_seed, METH_O,
     "manual_seed($self, seed, /)\n--\n\n"
     "Starts the stream that belongs to the seed; returns the generator."},
    {"seed", new_seed, METH_NOARGS,
     "seed($self)\n--\n\n"
     "Starts from a seed that the system gives; returns that seed."},
    {"initial_seed", initial_seed, METH_NOARGS,
     "initial_seed($self)\n--\n\n"
     "The seed that the stream started from."},
    {"get_state", get_state, METH_NOARGS,
     "get_state($self)\n--\n\n"
     "The whole state as a uint8 tensor."},
    {"set_state", generator_set_state, METH_O,
     "set_state($self, new_state, /)\n--\n\n"
     "Goes on from a state that get_state returned."},
    {"clone_state", clone_state, METH_NOARGS,
     "clone_state($self)\n--\n\n"
     "A new generator in the same state."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__setstate__", generator_unpickled, METH_O, nullptr},
    {}};
PyGetSetDef generator_getset[] = {
    {"device", generator_device, nullptr, "Where the numbers are made: the CPU.", nullptr}, {}};

// _stream_place() -> what changes whenever the default generator draws.
PyObject* stream_place(PyObject*, PyObject*) {
  Generator& g = default_generator();
  const std::scoped_lock held(g.mutex);
  return Py_BuildValue("(IId)", g.state[0], g.position, g.has_pending ? g.pending_normal : 0.0);
}
PyMethodDef generator_functions[] = {{"_stream_place", stream_place, METH_NOARGS, nullptr}, {}};

}  // namespace

bool is_generator(PyObject* o) { return PyObject_TypeCheck(o, generator_type); }

Generator* generator_from_python(PyObject* o) {
  if (o == Py_None) return nullptr;
  if (!is_generator(o)) fail_type("generator must be a clew.Generator; got ", Py_TYPE(o)->tp_name);
  return &generator_in(o);
}

void add_generator(PyObject* module) {
  if (PyModule_AddFunctions(module, generator_functions) < 0) throw PythonError();
  static PyType_Slot slots[] = {slot(Py_tp_new, generator_new),
                                slot(Py_tp_dealloc, generator_dealloc),
                                slot(Py_tp_repr, repr),
                                slot(Py_tp_methods, generator_methods),
                                slot(Py_tp_getset, generator_getset),
                                slot(Py_tp_doc, R"(Generator(device='cpu')
--

A source of random numbers.

>>> g = clew.Generator().manual_seed(0)
>>> clew.rand(1, generator=g).equal(clew.rand(1, generator=g.manual_seed(0)))
True
)"),
                                {0, nullptr}};
  static PyType_Spec spec = {"clew.Generator", sizeof(GeneratorObj), 0, Py_TPFLAGS_DEFAULT, slots};
  generator_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyObject* standard = checked(generator_type->tp_alloc(generator_type, 0));
  reinterpret_cast<GeneratorObj*>(standard)->generator = &default_generator();
  reinterpret_cast<GeneratorObj*>(standard)->owned = false;
  PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(generator_type));
  PyModule_AddObjectRef(module, "default_generator", standard);
  Py_DECREF(standard);
}

}  // namespace clew::python
