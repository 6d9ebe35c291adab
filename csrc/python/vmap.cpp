// What clew.func builds vmap from: opening levels, and hiding and showing their dims.
// May include: everything below python/.
// Invariant: levels are closed in the order opposite to their opening.
#include <bit>
#include <unordered_set>

#include "graph/batch.h"
#include "python/bridge.h"
#include "python/convert.h"

namespace clew::python {

namespace {

int open_level(int level) {
  require(level >= 0 && level < vmap_depth(), "vmap: level ", level, " is not open");
  return level;
}

PyObject* enter(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    long long size;
    const char* how;
    if (!PyArg_ParseTuple(args, "Ls:_vmap_enter", &size, &how)) return nullptr;
    std::string_view text(how);
    Randomness r = text == "error"       ? Randomness::error
                   : text == "same"      ? Randomness::same
                   : text == "different" ? Randomness::different
                                         : (fail("Only allowed values for randomness are "
                                                 "'error', 'different', or 'same'. Got ",
                                                 text),
                                            Randomness::error);
    return PyLong_FromLong(enter_vmap(size, r));
  });
}
PyObject* leave(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    require(vmap_depth() > 0, "vmap: no level is open");
    exit_vmap();
    Py_RETURN_NONE;
  });
}
PyObject* depth(PyObject*, PyObject*) { return PyLong_FromLong(vmap_depth()); }
// Whether an operation of these tensors is neither recorded nor looked at by anybody.
PyObject* plain(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (vmap_depth() || modes.intercept) Py_RETURN_FALSE;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (Py_TYPE(args[i]) != tensor_type) Py_RETURN_FALSE;
    const auto* t = reinterpret_cast<TensorObj*>(args[i]);
    if (t->flags & flag_batched) Py_RETURN_FALSE;
    if (modes.grad && borrow(args[i]).requires_grad()) Py_RETURN_FALSE;
  }
  Py_RETURN_TRUE;
}
// A number of each open level.
template <auto number> PyObject* of_levels(PyObject*, PyObject*) {
  return guarded([&] {
    const int n = vmap_depth();
    Ref out(checked(PyTuple_New(n)));
    for (int i = 0; i < n; ++i)
      PyTuple_SET_ITEM(out.get(), i, checked(PyLong_FromLongLong(vmap_level(i).*number)));
    return out.release();
  });
}
PyObject* randomness(PyObject*, PyObject*) {
  return guarded([&] {
    static constexpr const char* names[] = {"error", "same", "different"};
    const int n = vmap_depth();
    Ref out(checked(PyTuple_New(n)));
    for (int i = 0; i < n; ++i)
      PyTuple_SET_ITEM(
          out.get(), i,
          checked(PyUnicode_FromString(names[static_cast<int>(vmap_level(i).randomness)])));
    return out.release();
  });
}
PyObject* add(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o;
    int dim, level;
    if (!PyArg_ParseTuple(args, "Oii:_add_level", &o, &dim, &level)) return nullptr;
    Tensor t = need_tensor(o, "_add_level");
    int at = wrap_dim(dim, t.ndim(), "vmap");
    require(t.ndim() > 0, "vmap: a 0-d tensor has no dim to map over");
    return wrap(add_level(t, at, open_level(level)));
  });
}
PyObject* remove(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o;
    int level;
    if (!PyArg_ParseTuple(args, "Oi:_remove_level", &o, &level)) return nullptr;
    return wrap(remove_level(need_tensor(o, "_remove_level"), open_level(level)));
  });
}
// The open levels of a tensor, one bit each.
PyObject* levels(PyObject*, PyObject* o) {
  return guarded([&] { return PyLong_FromUnsignedLong(levels_of(need_tensor(o, "_levels"))); });
}
// (tensor, levels): the physical tensor with a full dim in front for every one of the levels.
PyObject* show(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o;
    unsigned int bits;
    if (!PyArg_ParseTuple(args, "OI:_show_levels", &o, &bits)) return nullptr;
    Tensor t = need_tensor(o, "_show_levels");
    check_alive(t);
    uint32_t own = levels_of(t);
    uint32_t wanted = bits;
    require(wanted < (uint64_t{1} << vmap_depth()), "vmap: no such levels are open");
    // The levels that stay hidden come first, then the wanted ones as ordinary dims.
    Tensor all = physical_at(t, own | wanted, true);
    Dims order;
    int n = std::popcount(own | wanted);
    for (bool keep : {true, false}) {
      int at = 0;
      for (uint32_t rest = own | wanted; rest; rest &= rest - 1, ++at)
        if (((rest & -rest & wanted) == 0) == keep) order.push_back(at);
    }
    for (int i = 0; i < n; ++i)
      if (order[i] != i) {
        all = builtins.movedim(all, order[i], i);
        for (int j = i + 1; j < n; ++j)
          if (order[j] < order[i]) ++order[j];
      }
    return wrap(make_batched(all, own & ~wanted));
  });
}
// (tensor, levels): hides the first dims, one for each level; t may be batched at others.
PyObject* hide(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o;
    unsigned int bits;
    if (!PyArg_ParseTuple(args, "OI:_hide_levels", &o, &bits)) return nullptr;
    Tensor t = need_tensor(o, "_hide_levels");
    for (uint32_t rest = bits; rest; rest &= rest - 1)
      t = add_level(t, 0, open_level(std::countr_zero(rest)));
    return wrap(std::move(t));
  });
}

// Whether following the graph from the first tensors, but not past the second ones, reaches a leaf:
// whether the first depend on anything else that requires grad.
PyObject* reaches_others(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *from, *stops;
    if (!PyArg_ParseTuple(args, "O!O!:_reaches_others", &PyTuple_Type, &from, &PyTuple_Type,
                          &stops))
      return nullptr;
    std::unordered_set<Node*> seen;
    std::vector<NodeRef> held;
    std::vector<Node*> stack;
    auto edge = [&](PyObject* tuple, Py_ssize_t i) {
      held.push_back(gradient_edge(need_tensor(PyTuple_GET_ITEM(tuple, i), "_reaches_others")).fn);
      return held.back().get();
    };
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(stops); ++i)
      if (Node* n = edge(stops, i)) seen.insert(n);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(from); ++i)
      if (Node* n = edge(from, i); n && seen.insert(n).second) stack.push_back(n);
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      if (n->is_accumulator) Py_RETURN_TRUE;
      for (uint32_t i = 0; i < n->edge_count; ++i)
        if (Node* next = n->edges[i].fn; next && seen.insert(next).second) stack.push_back(next);
    }
    Py_RETURN_FALSE;
  });
}

PyMethodDef vmap_functions[] = {
    {"_vmap_enter", enter, METH_VARARGS, nullptr},
    {"_vmap_exit", leave, METH_NOARGS, nullptr},
    {"_vmap_depth", depth, METH_NOARGS, nullptr},
    {"_plain", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(plain)), METH_FASTCALL,
     nullptr},
    {"_vmap_sizes", of_levels<&VmapLevel::size>, METH_NOARGS, nullptr},
    // Identifies each open level; level numbers are used again.
    {"_vmap_serials", of_levels<&VmapLevel::serial>, METH_NOARGS, nullptr},
    {"_vmap_randomness", randomness, METH_NOARGS, nullptr},
    {"_add_level", add, METH_VARARGS, nullptr},
    {"_remove_level", remove, METH_VARARGS, nullptr},
    {"_levels", levels, METH_O, nullptr},
    {"_show_levels", show, METH_VARARGS, nullptr},
    {"_hide_levels", hide, METH_VARARGS, nullptr},
    {"_reaches_others", reaches_others, METH_VARARGS, nullptr},
    {}};

}  // namespace

void add_vmap(PyObject* module) {
  if (PyModule_AddFunctions(module, vmap_functions) < 0) throw PythonError();
}

}  // namespace clew::python
