// Module calls in progress, and what node objects show of where they came from.
// May include: python/bridge.h.
// Invariant: a call that is left, also by an exception, restores the one around it.
#pragma once
#include "graph/trace.h"
#include "python/bridge.h"

namespace clew::python {

// Marks the call of a module for as long as it runs.
class ModuleCall {
  PyObject* module_;
  Scope* scope_;  // owned
  ModuleCall* around_;
  TraceModule trace_;

  Scope* found() const;

 public:
  explicit ModuleCall(PyObject* module);
  ~ModuleCall();
  // The call ends in an exception: where it is the library's own, its message is made to say which
  // module was called from which line.
  void name_module() const;
  ModuleCall(const ModuleCall&) = delete;
};

// Replaces this thread's innermost module call and returns the old one: tasks that take turns in a
// thread have module calls of their own.
ModuleCall* exchange_module_calls(ModuleCall* innermost);

// What Python is handed of a place and of a cut; None for null.
PyObject* place(const Origin* o);
// The same as text, empty for null.
PyObject* place_text(const Origin* o);
PyObject* cut_tuple(const Cut* c);

// Getters of node objects.
PyObject* node_place(PyObject* o, void*);
PyObject* node_callers(PyObject* o, void*);
PyObject* node_cut(PyObject* o, void*);

}  // namespace clew::python
