// The extension module clew._C: puts its parts together.
// May include: everything below python/.
// Invariant: types come before the functions and methods that use them.
#include <Python.h>

#include <climits>

#include "base/available.h"
#include "base/parallel.h"
#include "base/processors.h"
#include "graph/deferral.h"
#include "graph/gil.h"
#include "kernels/core/instruction_set.h"
#include "kernels/core/lapack.h"
#include "kernels/core/loop_tables.h"
#include "kernels/matmul/library_gemm.h"
#include "python/bridge.h"
#include "python/convert.h"
#include "python/overrides.h"
#include "python/signature.h"
#include "tensor/allocator.h"

using namespace clew;

namespace {

PyObject* done() { Py_RETURN_NONE; }
PyObject* cpu_capability(PyObject*, PyObject*) {
  switch (kernels::instruction_set()) {
    case kernels::InstructionSet::avx512: return PyUnicode_FromString("AVX512");
    case kernels::InstructionSet::avx2: return PyUnicode_FromString("AVX2");
    case kernels::InstructionSet::baseline: break;
  }
  return PyUnicode_FromString("DEFAULT");
}
PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(threads_set()); }
PyObject* set_num_threads_(PyObject*, PyObject* number) {
  return python::guarded([&] {
    if (!python::is_int(number))
      fail("set_num_threads: expected an int; got ", Py_TYPE(number)->tp_name);
    int64_t n = python::int_from(number);
    if (n < 1 || n > INT_MAX)
      fail("set_num_threads: expected a positive number of threads; got ", n);
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

PyObject* interpreter_ends_(PyObject*, PyObject*) { return interpreter_ends(), done(); }
PyObject* stop_ageing_(PyObject*, PyObject*) { return stop_ageing(), done(); }
PyObject* set_default_dtype_(PyObject*, PyObject* dtype) {
  return python::guarded([&] { return set_default_dtype(python::dtype_from(dtype)), done(); });
}
PyObject* has_onednn(PyObject*, PyObject*) { return PyBool_FromLong(kernels::library::is_onednn); }
PyObject* load_lapack(PyObject*, PyObject* path) {
  const char* library = PyUnicode_AsUTF8(path);
  return library ? PyBool_FromLong(kernels::lapack::load(library)) : nullptr;
}
PyObject* usable_processors_(PyObject*, PyObject* args) {
  const char* root = "";
  if (!PyArg_ParseTuple(args, "|s", &root)) return nullptr;
  return python::guarded([&] { return PyLong_FromLong(usable_processors(root)); });
}
PyObject* available_memory_(PyObject*, PyObject* root) {
  const char* folder = PyUnicode_AsUTF8(root);
  if (!folder) return nullptr;
  return python::guarded([&] {
    const Available a = available_memory(folder);
    return Py_BuildValue("(LLL)", static_cast<long long>(a.total), static_cast<long long>(a.bytes),
                         static_cast<long long>(a.granted));
  });
}
PyObject* age_cache_(PyObject*, PyObject* args) {
  int turns = 1;
  if (!PyArg_ParseTuple(args, "|i", &turns)) return nullptr;
  return python::guarded([&] { return PyBool_FromLong(age_cache(turns)); });
}
PyObject* memory_stats_(PyObject*, PyObject*) {
  return python::guarded([] {
    deferral.run_own();  // what waits holds memory that it gives back, and has yet to take some
    const MemoryStats s = memory_stats();
    return Py_BuildValue("{sLsLsLsLsL}", "live_bytes", static_cast<long long>(s.live_bytes),
                         "peak_bytes", static_cast<long long>(s.peak_bytes), "cached_bytes",
                         static_cast<long long>(s.cached_bytes), "fresh_bytes",
                         static_cast<long long>(s.fresh_bytes), "allocations",
                         static_cast<long long>(s.allocations));
  });
}

// Functions without an underscore are public and have a text signature for inspect.signature.
PyMethodDef module_functions[] = {
    {"_cpu_capability", cpu_capability, METH_NOARGS,
     "_cpu_capability()\n--\n\nThe instruction set of the loops that run."},
    {"get_num_threads", get_num_threads, METH_NOARGS,
     R"(get_num_threads()
--

The number of threads that large operations use.

>>> clew.get_num_threads() >= 1
True
)"},
    {"set_num_threads", set_num_threads_, METH_O,
     R"(set_num_threads(threads, /)
--

Sets how many threads large operations use.

>>> clew.set_num_threads(clew.get_num_threads())
)"},
    {"empty_cache", empty_cache_, METH_NOARGS,
     R"(empty_cache()
--

Gives cached free blocks back to the system.

>>> clew.empty_cache()
)"},
    {"reset_peak_memory_stats", reset_peak, METH_NOARGS,
     R"(reset_peak_memory_stats()
--

Makes the peak start again from the live bytes.

>>> clew.reset_peak_memory_stats()
>>> before = clew.memory_stats()["peak_bytes"]
>>> x = clew.ones(1000)
>>> clew.memory_stats()["peak_bytes"] - before
4096
)"},
    {"get_default_dtype", get_default_dtype, METH_NOARGS,
     R"(get_default_dtype()
--

The dtype of tensors that are made of Python's floats.

>>> clew.get_default_dtype()
clew.float32
)"},
    {"_set_default_dtype", set_default_dtype_, METH_O, nullptr},
    {"_signature_parts", python::signature_parts, METH_O, nullptr},
    {"_interpreter_ends", interpreter_ends_, METH_NOARGS, nullptr},
    {"_stop_ageing", stop_ageing_, METH_NOARGS, nullptr},
    {"_has_onednn", has_onednn, METH_NOARGS,
     "Whether this build multiplies and convolves with oneDNN; without it, OpenBLAS multiplies."},
    {"_load_lapack", load_lapack, METH_O,
     "Looks LAPACK's routines up in a shared library and what it depends on."},
    {"_usable_processors", usable_processors_, METH_VARARGS, nullptr},
    {"_available_memory", available_memory_, METH_O, nullptr},
    {"_age_cache", age_cache_, METH_VARARGS,
     "Gives back what is cached beyond what was live lately, as after so many turns of 2 s."},
    {"_memory_stats", memory_stats_, METH_NOARGS, nullptr},
    {}};

// Python calls these when it ends; the later registered goes first.
void register_exits(PyObject* module) {
  const python::Ref atexit(python::checked(PyImport_ImportModule("atexit")));
  for (const char* name : {"_interpreter_ends", "_stop_ageing"}) {
    const python::Ref function(python::checked(PyObject_GetAttrString(module, name)));
    const python::Ref registered(
        python::checked(PyObject_CallMethod(atexit.get(), "register", "O", function.get())));
  }
}

int fill(PyObject* module) {
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
    if (!kernels::loops_run_here()) {
      PyErr_SetString(PyExc_ImportError,
                      "clew: this build has loops for the processor that it was built on only "
                      "(CLEW_SETS=here), and this one has fewer instructions; build clew on this "
                      "machine, or with CLEW_SETS=all");
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
    if (PyModule_AddFunctions(module, module_functions) < 0) throw PythonError();
    register_exits(module);
    return 0;
  } catch (...) {
    python::set_python_error();
    return -1;
  }
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(fill)}, {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "clew._C", nullptr, 0, nullptr, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() { return PyModuleDef_Init(&definition); }
