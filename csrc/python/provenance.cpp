// Provenance from Python: places of nodes, writes and cuts; the module calls that are in progress.
// May include: everything below python/.
// Invariant: places are handed out as (code, offset in bytes, module path, module class).
#include "python/provenance.h"

#include <array>
#include <span>
#include <unordered_set>
#include <vector>

#include "graph/explain.h"
#include "graph/inplace.h"
#include "python/autograd.h"
#include "tensor/allocator.h"
#include "tensor/census.h"

namespace clew::python {

PyObject* place_text(const Origin* o) { return text(o ? describe(o) : std::string()).release(); }

PyObject* place(const Origin* o) {
  if (!o) Py_RETURN_NONE;
  std::string path = path_of(o->scope);
  return checked(o->scope ? Py_BuildValue("(Oiss)", reinterpret_cast<PyObject*>(o->code),
                                          static_cast<int>(o->instruction), path.c_str(),
                                          o->scope->type.c_str())
                          : Py_BuildValue("(OiOO)", reinterpret_cast<PyObject*>(o->code),
                                          static_cast<int>(o->instruction), Py_None, Py_None));
}

static constexpr const char* kind_name(CutKind kind) {
  constexpr const char* names[] = {"no_grad", "inference_mode", "detach", "data",
                                   "dtype",   "gradient",       "made"};
  return names[static_cast<int>(kind)];
}

// (kind, name of the operation or None, place, place of the value that was cut off or None)
PyObject* cut_tuple(const Cut* c) {
  if (!c) Py_RETURN_NONE;
  Ref where(place(c->where)), source(place(c->source));
  std::string op(c->op ? op_name(*c->op) : "");
  return checked(Py_BuildValue("(szOO)", kind_name(c->kind), c->op ? op.c_str() : nullptr,
                               where.get(), source.get()));
}

namespace {

PyObject* modules_name = PyUnicode_InternFromString("_modules");

// The object of a weak reference (borrowed: another owner keeps it alive), or null if it has died.
PyObject* referent(PyObject* weak) {
#if PY_VERSION_HEX >= 0x030d0000
  PyObject* o = nullptr;
  if (PyWeakref_GetRef(weak, &o) <= 0) return nullptr;
  Py_DECREF(o);
  return o;
#else
  PyObject* o = PyWeakref_GET_OBJECT(weak);
  return o == Py_None ? nullptr : o;
#endif
}

// The weak reference distinguishes a module from a later one at the same address.
struct Called {
  PyObject* address = nullptr;  // lent, perhaps gone
  PyObject* module = nullptr;   // owned weak reference
  Scope* parent = nullptr;      // owned
  Scope* scope = nullptr;       // owned
};
// A set-associative table: models have thousands of modules, and if one were evicted at each call,
// all modules below it would have to be found again.
constexpr size_t ways = 4;
std::array<std::array<Called, ways>, 2048> calls;
// The module's slot; if it has none, the one that it may take.
Called& slot_of(PyObject* module) {
  auto& set =
      calls[(reinterpret_cast<uintptr_t>(module) * 0x9E3779B97F4A7C15u >> 40) % calls.size()];
  for (Called& c : set)
    if (c.address == module) [[likely]]
      return c;
  for (Called& c : set)
    if (!c.module || !referent(c.module)) return c;
  static size_t next = 0;
  return set[++next % ways];
}
void clear(Called& c) {
  Called before = std::exchange(c, {});
  Py_XDECREF(before.module);
  if (before.parent) before.parent->decref();
  if (before.scope) before.scope->decref();
}

// Weak references to the modules that were called from outside of any other.
std::vector<PyObject*> roots;

void remember_root(PyObject* module) {
  std::erase_if(roots, [](PyObject* weak) {
    bool dead = !referent(weak);
    if (dead) Py_DECREF(weak);
    return dead;
  });
  for (PyObject* weak : roots)
    if (referent(weak) == module) return;
  PyObject* weak = PyWeakref_NewRef(module, nullptr);
  if (weak)
    roots.push_back(weak);
  else
    PyErr_Clear();
}

// The children of a module; null when it has none.
Ref children_of(PyObject* module) {
  Ref own(PyObject_GenericGetDict(module, nullptr));
  PyObject* children = own ? PyDict_GetItemWithError(own.get(), modules_name) : nullptr;
  if (!children) PyErr_Clear();
  return Ref(children && PyDict_Check(children) ? Py_NewRef(children) : nullptr);
}

// The name of `module` below `parent`: "attn", "blocks.3"; empty if it is not below. Modules may be
// nested deeper than the stack, so this is a loop. Looking at a module may run Python code, which
// may change others.
std::string name_below(PyObject* parent, PyObject* module) {
  struct Level {
    Ref children;
    Py_ssize_t at = 0;
    std::string name;  // of the child that is being looked through
  };
  std::vector<Level> levels;
  std::unordered_set<PyObject*> seen;
  PyObject *key, *child;
  auto text = [](PyObject* name) {
    return PyUnicode_Check(name) ? printable(name) : std::string();
  };
  levels.push_back({children_of(parent)});
  while (!levels.empty()) {
    Level& level = levels.back();
    PyObject* children = level.children.get();
    if (children && level.at == 0) {
      for (Py_ssize_t at = 0; PyDict_Next(children, &at, &key, &child);) {
        if (child != module) continue;
        std::string path;
        for (const Level& above : std::span(levels).first(levels.size() - 1))
          path += above.name + ".";
        return path + text(key);
      }
    }
    if (!children || !PyDict_Next(children, &level.at, &key, &child)) {
      levels.pop_back();
      continue;
    }
    if (child == Py_None || !seen.insert(child).second) continue;
    const Ref kept(Py_NewRef(child));
    level.name = text(key);
    levels.push_back({children_of(child)});
  }
  return {};
}

const char* short_name(PyTypeObject* type) {
  const char* dot = std::strrchr(type->tp_name, '.');
  return dot ? dot + 1 : type->tp_name;
}

thread_local ModuleCall* innermost = nullptr;

Scope* new_scope(PyObject* module, PyObject* caller) {
  auto* scope = new Scope();
  scope->type = short_name(Py_TYPE(module));
  if (!caller) {
    remember_root(module);
    return scope;
  }
  scope->parent = modes.scope;
  scope->parent->incref();
  scope->name = name_below(caller, module);
  if (scope->name.empty()) scope->name = concat("<", scope->type, ">");
  return scope;
}

PyObject* here(PyObject*, PyObject*) {
  return guarded([] { return place(origin_here()); });
}
PyObject* place_of_write(PyObject*, PyObject* o) {
  return guarded([&] { return place(need_tensor(o, "_place_of_write")->storage->writer); });
}
PyObject* place_of_backward(PyObject*, PyObject* id) {
  return guarded([&] { return place(backward_origin(static_cast<uint32_t>(int_from(id)))); });
}
PyObject* cut_of(PyObject*, PyObject* o) {
  return guarded([&] { return cut_tuple(need_tensor(o, "_cut_of")->cut); });
}
PyObject* unrecorded_use(PyObject*, PyObject* o) {
  return guarded([&] {
    Tensor t = need_tensor(o, "_unrecorded_use");
    return cut_tuple(t->extra ? t->extra->unrecorded : nullptr);
  });
}
// _waits(tensor) -> whether calls that wait have yet to fill or read its memory, and run if
// somebody asks where it lies.
PyObject* waits_for_calls(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const Storage& s = *need_tensor(o, "_waits")->storage;
    return PyBool_FromLong(s.is_pending() || s.awaited > 0);
  });
}

// _is_pending(tensor) -> whether its memory has no bytes, which are still to be computed or were
// given up; computes nothing.
PyObject* is_pending(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const Tensor t = need_tensor(o, "_is_pending");
    return PyBool_FromLong(t->storage->is_pending() || (t->flags & flag_gathered));
  });
}

// _recorded_use(tensor) -> (place, number of the node) of a leaf's last use that was recorded.
PyObject* recorded_use(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor t = need_tensor(o, "_recorded_use");
    if (!t->extra || !t->extra->used_by) Py_RETURN_NONE;
    Ref at(place(t->extra->used));
    return checked(
        Py_BuildValue("(OK)", at.get(), static_cast<unsigned long long>(t->extra->used_by)));
  });
}
// _leavings() -> where values left graphs, the latest first: (how, operation or None, place, place
// of the value or None, number of the latest node then).
PyObject* leavings(PyObject*, PyObject*) {
  return guarded([] {
    Ref list(checked(PyList_New(0)));
    for (size_t i = 0; i < kept_leavings; ++i) {
      const Leaving* l = leaving_before(i);
      if (!l) break;
      if (!l->where) continue;
      Ref where(place(l->where)), source(place(l->source));
      std::string op(l->op ? op_name(*l->op) : "");
      Ref one(checked(Py_BuildValue("(szOOK)", l->how, l->op ? op.c_str() : nullptr, where.get(),
                                    source.get(), static_cast<unsigned long long>(l->sequence))));
      if (PyList_Append(list.get(), one.get()) < 0) throw PythonError();
    }
    return list.release();
  });
}
// The numbers of the nodes where the last few hundred backward calls began, in no order.
PyObject* roots_of_backward(PyObject*, PyObject*) {
  return guarded([] {
    Ref list(checked(PyList_New(0)));
    for (uint64_t root : backward_roots()) {
      Ref one(checked(PyLong_FromUnsignedLongLong(root)));
      if (PyList_Append(list.get(), one.get()) < 0) throw PythonError();
    }
    return list.release();
  });
}
PyObject* explain_no_grad(PyObject*, PyObject* o) {
  return guarded([&] {
    return checked(PyUnicode_FromString(why_no_grad(need_tensor(o, "_why_no_grad")).c_str()));
  });
}
PyObject* called_roots(PyObject*, PyObject*) {
  return guarded([] {
    Ref list(checked(PyList_New(0)));
    for (PyObject* weak : roots) {
      PyObject* module = referent(weak);
      if (module && PyList_Append(list.get(), module) < 0) throw PythonError();
    }
    return list.release();
  });
}
// _forget_call(module): its name among its parent's children may have changed.
PyObject* forget_call(PyObject*, PyObject* module) {
  Called& c = slot_of(module);
  if (c.module && referent(c.module) == module) clear(c);
  Py_RETURN_NONE;
}
PyObject* set_folder(PyObject*, PyObject* folder) {
  return guarded([&]() -> PyObject* {
    if (!PyUnicode_Check(folder)) fail_type("_set_library_folder: expected a str");
    set_library_folder(folder);
    Py_RETURN_NONE;
  });
}
PyObject* enable(PyObject*, PyObject* on) {
  bool before = provenance_enabled();
  enable_provenance(PyObject_IsTrue(on) == 1);
  return PyBool_FromLong(before);
}
PyObject* keep_whole_stacks(PyObject*, PyObject* on) {
  return PyBool_FromLong(std::exchange(modes.whole_stacks, PyObject_IsTrue(on) == 1));
}

// _live_tensors() -> all live tensors except batched ones of a vmap and those that autobatch has
// yet to compute.
PyObject* live_tensors_list(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    Ref list(checked(PyList_New(0)));
    for (Tensor& t : live_tensors()) {
      if (t->flags & (flag_batched | flag_gathered)) continue;
      if (t->grad_fn && t->grad_fn->promised) continue;  // whose batch failed
      const Ref one(wrap(std::move(t)));
      if (PyList_Append(list.get(), one.get()) < 0) throw PythonError();
    }
    return list.release();
  });
}

// The nodes behind the tensors of a tuple, each once.
template <class Visit> void visit_nodes(PyObject* tensors, const char* who, Visit&& visit) {
  std::vector<const Node*> todo;
  std::unordered_set<const Node*> known;
  const auto add = [&](const Node* n) {
    if (n && known.insert(n).second) todo.push_back(n);
  };
  if (!PyTuple_Check(tensors)) fail_type(who, ": expected a tuple of tensors");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i)
    if (PyObject* t = PyTuple_GET_ITEM(tensors, i); is_tensor(t)) add(grad_fn_of(borrow(t)));
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    for (uint32_t i = 0; i < n->edge_count; ++i) add(n->edges[i].fn);
    visit(*n);
  }
}

// _saved_blocks(tensors) -> [(storage's key, bytes, node, place) ...] of what the graphs behind the
// tensors saved for backward.
PyObject* saved_blocks(PyObject*, PyObject* tensors) {
  return guarded([&]() -> PyObject* {
    Ref list(checked(PyList_New(0)));
    visit_nodes(tensors, "_saved_blocks", [&](const Node& n) {
      for (const Saved& s : n.inner().saved_tensors()) {
        const Tensor t = s.values();
        if (!t.defined() || t->storage->is_pending()) continue;  // it has no bytes
        const Ref one(checked(Py_BuildValue(
            "(NNsN)", checked(PyLong_FromVoidPtr(t->storage)),
            checked(PyLong_FromSize_t(t->storage->nbytes)), n.name().c_str(),
            checked(PyUnicode_FromString(n.origin ? describe(n.origin).c_str() : "")))));
        if (PyList_Append(list.get(), one.get()) < 0) throw PythonError();
      }
    });
    return list.release();
  });
}

// _graph_nodes(tensors, sequence) -> (how many nodes behind the tensors are of that sequence or
// earlier, how many are later, the latest sequence of all). Leaves do not count.
PyObject* graph_nodes(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* tensors = nullptr;
    unsigned long long mark = 0, earlier = 0, later = 0;
    if (!PyArg_ParseTuple(args, "OK", &tensors, &mark)) throw PythonError();
    visit_nodes(tensors, "_graph_nodes", [&](const Node& n) {
      if (!n.is_accumulator) ++(n.sequence <= mark ? earlier : later);
    });
    return Py_BuildValue("(KKK)", earlier, later,
                         static_cast<unsigned long long>(latest_sequence()));
  });
}

PyMethodDef provenance_functions[] = {{"_here", here, METH_NOARGS, nullptr},
                                      {"_place_of_write", place_of_write, METH_O, nullptr},
                                      {"_place_of_backward", place_of_backward, METH_O, nullptr},
                                      {"_cut_of", cut_of, METH_O, nullptr},
                                      {"_unrecorded_use", unrecorded_use, METH_O, nullptr},
                                      {"_recorded_use", recorded_use, METH_O, nullptr},
                                      {"_waits", waits_for_calls, METH_O, nullptr},
                                      {"_is_pending", is_pending, METH_O, nullptr},
                                      {"_leavings", leavings, METH_NOARGS, nullptr},
                                      {"_backward_roots", roots_of_backward, METH_NOARGS, nullptr},
                                      {"_why_no_grad", explain_no_grad, METH_O, nullptr},
                                      {"_saved_blocks", saved_blocks, METH_O, nullptr},
                                      {"_graph_nodes", graph_nodes, METH_VARARGS, nullptr},
                                      {"_live_tensors", live_tensors_list, METH_NOARGS, nullptr},
                                      {"_called_roots", called_roots, METH_NOARGS, nullptr},
                                      {"_forget_call", forget_call, METH_O, nullptr},
                                      {"_set_library_folder", set_folder, METH_O, nullptr},
                                      {"_enable_provenance", enable, METH_O, nullptr},
                                      {"_keep_whole_stacks", keep_whole_stacks, METH_O, nullptr},
                                      {}};

}  // namespace

// The scope of this call, counted.
Scope* ModuleCall::found() const {
  Called& c = slot_of(module_);
  if (c.module && referent(c.module) == module_ && c.parent == modes.scope) [[likely]] {
    c.scope->incref();
    return c.scope;
  }
  // A module that is called again inside its own call keeps the path it already has.
  for (const ModuleCall* call = around_; call; call = call->around_)
    if (call->module_ == module_) {
      call->scope_->incref();
      return call->scope_;
    }
  Scope* fresh = new_scope(module_, around_ ? around_->module_ : nullptr);
  clear(c);
  c.address = module_;
  c.module = PyWeakref_NewRef(module_, nullptr);
  if (!c.module) PyErr_Clear();  // looked up again at each call
  c.parent = modes.scope;
  if (c.parent) c.parent->incref();
  c.scope = fresh;
  fresh->incref();
  return fresh;
}

ModuleCall::ModuleCall(PyObject* module) : module_(module), around_(innermost) {
  hear_news();
  scope_ = found();
  modes.scope = scope_;
  innermost = this;
  trace_.enter();
}
ModuleCall::~ModuleCall() {
  innermost = around_;
  modes.scope = around_ ? around_->scope_ : nullptr;
  scope_->decref();
}

ModuleCall* exchange_module_calls(ModuleCall* calls) { return std::exchange(innermost, calls); }

void ModuleCall::name_module() const {
  PyObject* raised = PyErr_Occurred();
  PyObject* const told[] = {PyExc_RuntimeError, PyExc_ValueError,          PyExc_TypeError,
                            PyExc_IndexError,   PyExc_NotImplementedError, PyExc_AssertionError};
  if (std::find(std::begin(told), std::end(told), raised) == std::end(told)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  // The frames from the call inwards: the library must have raised, and the innermost line of the
  // program is shown.
  bool library = false;
  PyCodeObject* line = nullptr;  // lent by its frame
  int offset = 0;
  for (auto* at = reinterpret_cast<PyTracebackObject*>(traceback); at; at = at->tb_next) {
    PyCodeObject* code = PyFrame_GetCode(at->tb_frame);
    Py_DECREF(code);
    library = from_library(code);
    if (library) continue;
    line = code;
    offset = at->tb_lasti;
  }
  const Origin* here = line ? nullptr : origin_here();
  if (here) {
    line = here->code;
    offset = here->instruction;
  }
  if (library && line)
    ask("name_module", "(OOiss)", value, reinterpret_cast<PyObject*>(line), offset,
        path_of(scope_).c_str(), scope_->type.c_str());
  PyErr_Restore(type, value, traceback);
}

PyObject* node_place(PyObject* o, void*) {
  return guarded([&] { return place(node_of(o)->origin); });
}
PyObject* node_callers(PyObject* o, void*) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    const NodeRef n = node_of(o);
    const Origin* origin = n->origin;
    for (origin = origin ? origin->caller : nullptr; origin; origin = origin->caller) {
      Ref one(place(origin));
      if (PyList_Append(list.get(), one.get()) < 0) throw PythonError();
    }
    return list.release();
  });
}
PyObject* node_cut(PyObject* o, void*) {
  return guarded([&] { return cut_tuple(node_of(o)->cut); });
}

void add_provenance(PyObject* module) {
  if (PyModule_AddFunctions(module, provenance_functions) < 0) throw PythonError();
}

}  // namespace clew::python
