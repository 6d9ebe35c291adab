// The extension module clew._C: puts its parts together.
// May include: everything below python/.
// Invariant: types come before the functions and methods that use them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <climits>

#include "base/available.h"
#include "base/parallel.h"
#include "base/processors.h"
#include "graph/deferral.h"
#include "graph/gil.h"
#include "kernels/elementwise/pointwise.h"
#include "kernels/linalg/lapack.h"
#include "python/bridge.h"
#include "python/convert.h"
#include "python/overrides.h"
#include "tensor/allocator.h"

namespace nb = nanobind;
using namespace clew;

namespace {

PyObject* done() { Py_RETURN_NONE; }
PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(threads_set()); }
PyObject* set_num_threads_(PyObject*, PyObject* number) {
  return python::guarded([&] {
    if (!python::is_int(number))
      fail_type("set_num_threads(): threads must be an int; got ", Py_TYPE(number)->tp_name);
    int64_t n = python::int_from(number);
    if (n < 1 || n > INT_MAX)
      fail_value("set_num_threads: expected a positive number of threads; got ", n);
    set_num_threads(static_cast<int>(n));
    return done();
  });
}
PyObject* empty_cache_(PyObject*, PyObject*) {
  return python::guarded([] { return empty_cache(), done(); });
}
PyObject* reset_peak(PyObject*, PyObject*) {
  return python::guarded([] { return reset_peak_memory_stats(), done(); });
}
PyObject* get_default_dtype(PyObject*, PyObject*) { return python::dtype_object(default_dtype()); }

// The public ones: unlike nanobind's, they tell inspect.signature their parameters.
PyMethodDef public_functions[] = {
    {"get_num_threads", get_num_threads, METH_NOARGS,
     "get_num_threads()\n--\n\nNumber of threads that large operations use."},
    {"set_num_threads", set_num_threads_, METH_O,
     "set_num_threads(threads, /)\n--\n\nSets how many threads large operations use."},
    {"empty_cache", empty_cache_, METH_NOARGS,
     "empty_cache()\n--\n\nGives cached free blocks back to the system."},
    {"reset_peak_memory_stats", reset_peak, METH_NOARGS,
     "reset_peak_memory_stats()\n--\n\nMakes the peak start again from the live bytes."},
    {"get_default_dtype", get_default_dtype, METH_NOARGS,
     "get_default_dtype()\n--\n\nThe dtype of tensors that are made of Python's floats."},
    {}};

}  // namespace

NB_MODULE(_C, m) {
  PyObject* module = m.ptr();
  try {
    // Types, hooks and counts are the process's: a second interpreter would replace the first
    // one's.
    static PyInterpreterState* const first = PyInterpreterState_Get();
    if (first != PyInterpreterState_Get()) {
      PyErr_SetString(PyExc_ImportError,
                      "clew: only the interpreter of a process that imported it first can use it; "
                      "start a process instead (multiprocessing)");
      throw PythonError();
    }
    kernels::init_pointwise();
    init_builtins();
    init_interpreter();
    python::add_types(module);
    python::gather_methods();
    python::add_tensor_type(module);
    python::add_autograd(module);
    python::add_autocast(module);
    python::add_vmap(module);
    python::add_optimize(module);
    python::add_gradients(module);
    python::add_module_base(module);
    python::add_provenance(module);
    python::add_watch(module);
    python::add_deferral(module);
    python::add_autobatch(module);
    python::add_budget(module);
    python::add_graph_export(module);
    python::add_trace(module);
    python::add_functions(module);
    python::add_overrides(module);
    python::add_generator(module);
    python::add_convert(module);
    python::add_creation(module);
    python::add_creation_range(module);
    python::add_creation_data(module);
    python::add_random(module);
    python::add_shared(module);
    if (PyModule_AddFunctions(module, public_functions) < 0) throw PythonError();
  } catch (...) {
    python::set_python_error();
    throw nb::python_error();
  }
  m.def("_interpreter_ends", &interpreter_ends);
  nb::module_::import_("atexit").attr("register")(m.attr("_interpreter_ends"));
  m.def("_load_lapack", &kernels::lapack::load,
        "Looks LAPACK's routines up in a shared library and what it depends on.");
  m.def("_usable_processors", &usable_processors);
  m.def("_memory_stats", [] {
    deferral.run_own();  // what waits holds memory that it gives back, and has yet to take some
    MemoryStats s = memory_stats();
    nb::dict d;
    d["live_bytes"] = s.live_bytes;
    d["peak_bytes"] = s.peak_bytes;
    d["cached_bytes"] = s.cached_bytes;
    d["fresh_bytes"] = s.fresh_bytes;
    d["allocations"] = s.allocations;
    return d;
  });
  m.def("_age_cache", &age_cache, nb::arg("turns") = 1,
        "Gives back what is cached beyond what was live lately, as after so many turns of 2 s.");
  m.def("_available_memory", [](const std::string& root) {
    const Available a = available_memory(root);
    return nb::make_tuple(a.total, a.bytes, a.granted);
  });
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&stop_ageing));
  m.def("_set_default_dtype", [](nb::handle d) { set_default_dtype(python::dtype_from(d.ptr())); });
}
