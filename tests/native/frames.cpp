// A Python module whose walk() tells what csrc/graph/frames.h sees: (file, function, line) of every
// frame, outwards. tests/house/test_frames.py builds it and compares with Python's own frames.
#include "graph/frames.h"

static PyObject* walk(PyObject*, PyObject*) {
  PyObject* out = PyList_New(0);
  for (clew::Frames f; f; f.next()) {
    PyCodeObject* code = f.code();
    PyObject* told = Py_BuildValue("(OOi)", code->co_filename, code->co_name,
                                   PyCode_Addr2Line(code, f.offset()));
    if (!told || PyList_Append(out, told) < 0) {
      Py_XDECREF(told);
      Py_DECREF(out);
      return nullptr;
    }
    Py_DECREF(told);
  }
  return out;
}

static PyMethodDef methods[] = {{"walk", walk, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "frames", "", -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_frames() { return PyModule_Create(&definition); }
