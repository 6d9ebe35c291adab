// Nodes of the graph as Python objects: the type and what it offers.
// May include: everything below python/.
// Invariant: as node_object.h.
#include "python/node_object.h"

#include <algorithm>
#include <unordered_map>

#include "graph/explain.h"
#include "graph/gather.h"
#include "graph/signature.h"
#include "python/custom_function.h"
#include "python/provenance.h"

namespace clew::python {

PyTypeObject* node_type = nullptr;

namespace {

void node_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  NodeObj* n = node_obj(o);
  if (n->owns) n->node->wrapper = nullptr;  // first: what follows may ask the node for its object
  if (n->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(n->dict);
  if (n->owns) std::exchange(n->node, nullptr)->decref();
  type->tp_free(o);
  Py_DECREF(type);
}
// A node that a context belongs to is visited through the tensors it made.
int node_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(node_obj(o)->dict);
  Py_VISIT(Py_TYPE(o));
  return 0;
}
int node_clear(PyObject* o) {
  Py_CLEAR(node_obj(o)->dict);
  return 0;
}

PyObject* node_name_method(PyObject* o, PyObject*) {
  return guarded([&] { return PyUnicode_FromString(node_of(o)->name().c_str()); });
}
PyObject* node_repr(PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!live_node(o)) return PyUnicode_FromFormat("<%s object at %p>", Py_TYPE(o)->tp_name, o);
    return PyUnicode_FromFormat("<%s object at %p>", node_of(o)->name().c_str(), o);
  });
}
PyObject* node_next_functions(PyObject* o, void*) {
  return guarded([&] {
    const NodeRef n = node_of(o);
    Ref tuple(checked(PyTuple_New(n->edge_count)));
    for (uint32_t i = 0; i < n->edge_count; ++i) {
      PyObject* fn = node_object(n->edges[i].fn);
      PyTuple_SET_ITEM(tuple.get(), i, checked(Py_BuildValue("(NI)", fn, n->edges[i].nr)));
    }
    return tuple.release();
  });
}
PyObject* node_metadata(PyObject* o, void*) {
  return guarded([&] {
    const NodeRef n = node_of(o);
    Ref fresh(checked(PyDict_New()));
    NodeExtra& e = n->extras();
    if (!e.metadata) e.metadata = fresh.release();
    return Py_NewRef(e.metadata);
  });
}
PyObject* node_sequence(PyObject* o, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(node_of(o)->sequence); });
}
PyObject* node_hooks(PyObject* o, PyObject* which) {
  return guarded([&] {
    const NodeRef n = node_of(o);
    Ref fresh(checked(PyODict_New()));
    const bool pre = truth_of(which);
    NodeExtra& e = n->extras();
    PyObject*& dict = pre ? e.pre_hooks : e.post_hooks;
    if (!dict) dict = fresh.release();
    return Py_NewRef(dict);
  });
}
PyObject* node_variable(PyObject* o, void*) {
  return guarded([&] {
    const NodeRef n = node_of(o);
    if (!n->is_accumulator) {
      PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'",
                   n->name().c_str());
      throw PythonError();
    }
    return wrap(static_cast<AccumulateGrad&>(*n.get()).variable);
  });
}
PyTypeObject* metadata_type() {
  static PyStructSequence_Field fields[] = {
      {"shape", nullptr}, {"dtype", nullptr}, {"device", nullptr}, {nullptr, nullptr}};
  static PyStructSequence_Desc desc = {"clew.autograd.graph.InputMetadata",
                                       "What a node's output is.", fields, 3};
  static PyTypeObject* type = PyStructSequence_NewType(&desc);
  if (!type) throw PythonError();
  return type;
}
PyObject* node_input_metadata(PyObject* o, void*) {
  return guarded([&] {
    const NodeRef n = node_of(o);
    Ref list(checked(PyList_New(0)));
    for (uint32_t k = 0; k < n->output_count; ++k) {
      const OutMeta& m = n->meta(k);
      Ref item(checked(PyStructSequence_New(metadata_type())));
      PyStructSequence_SetItem(item.get(), 0, size_object(m.sizes()));
      PyStructSequence_SetItem(item.get(), 1, dtype_object(m.dtype));
      PyStructSequence_SetItem(item.get(), 2, device_object(m.device));
      if (PyList_Append(list.get(), item.get()) < 0) throw PythonError();
    }
    return list.release();
  });
}
PyObject* node_saved_tensors(PyObject* o, void*) {
  return guarded([&] {
    const NodeRef any = node_of(o);
    auto* n = dynamic_cast<PyFunctionNode*>(any.get());
    std::vector<Tensor> found;
    if (n) {
      if (n->consumed) fail_consumed(*n);
      for (size_t i = 0; i < n->saved.size(); ++i) {
        const Saved& s = n->saved[i];
        if (!s.is_held())
          found.push_back(Tensor());
        else if (s.is_output)
          found.push_back(s.unpack_for(*n, nullptr, s.output_nr()));
        else {
          const OwnedEdge to = n->saved_edges[i];  // an unpack hook may release what was saved
          const Edge e{to.fn.get(), to.nr};
          found.push_back(s.unpack_for(*n, &e, 0));
        }
      }
    } else if (auto* op = dynamic_cast<OpNode*>(any.get())) {
      for (int i = 0; i < op->saved_count; ++i) {
        if (Tensor t = op->saved(i).values()) found.push_back(std::move(t));
      }
    }
    Ref tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(found.size()))));
    for (size_t i = 0; i < found.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       found[i].defined() ? wrap(std::move(found[i])) : Py_NewRef(Py_None));
    return tuple.release();
  });
}
PyObject* node_getattro(PyObject* o, PyObject* name) {
  PyObject* got = PyObject_GenericGetAttr(o, name);
  if (got || !PyErr_ExceptionMatches(PyExc_AttributeError)) return got;
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  const std::string text = printable(name);
  if (!text.starts_with("_saved_") || !live_node(o)) {
    PyErr_Restore(type, error, traceback);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(traceback);
  return guarded([&]() -> PyObject* {
    const NodeRef n = node_of(o);
    PyObject* found = n->saved_attribute(text.c_str() + 7);
    if (!found && !PyErr_Occurred())
      PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%s'", n->name().c_str(),
                   text.c_str());
    return found;
  });
}
// Calls the node's gradient rule: grad_fn(*grad_outputs).
PyObject* node_call(PyObject* o, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    const NodeRef n = node_of(o);
    std::vector<Tensor> grads;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* g = PyTuple_GET_ITEM(args, i);
      if (!is_tensor(g) && g != Py_None)
        fail_type(n->name(), ": gradients must be Tensors or None; got ", Py_TYPE(g)->tp_name);
      grads.push_back(is_tensor(g) ? borrow(g) : Tensor());
    }
    if (grads.size() != n->output_count)
      fail(n->name(), ": expected ", n->output_count, " gradients; got ", grads.size());
    std::vector<Tensor> out(n->edge_count);
    bool any = false;
    for (uint32_t k = 0; k < grads.size(); ++k) {
      Tensor& g = grads[k];
      const OutMeta& meta = n->meta(k);
      if (!g || !meta.shape) continue;
      // Rules rely on the shapes of the forward pass.
      if (g.sizes() != meta.sizes()) g = builtins.expand(g, meta.sizes());
      if (g.dtype() != meta.dtype) g = builtins.to_dtype(g, meta.dtype);
      if (g.device() != meta.device)
        fail(n->name(), ": gradient ", k, " must be on device ", name(meta.device), "; got ",
             name(g.device()));
    }
    if (n->packed) grads = out_of_reach(grads);
    for (const Tensor& g : grads) any = any || g.defined();
    struct Withdraw {  // a rule that failed may have left its offer (Vjp::last_grad)
      ~Withdraw() { modes.disposable = nullptr; }
    } withdraw;
    if (any) n->run(grads, out.data());
    if (out.size() == 1) return out[0].defined() ? wrap(out[0]) : Py_NewRef(Py_None);
    Ref tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(out.size()))));
    for (size_t i = 0; i < out.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       out[i].defined() ? wrap(out[i]) : Py_NewRef(Py_None));
    return tuple.release();
  });
}
PyObject* node_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o) node_obj(o)->owns = false;
  return o;
}
PyObject* node_release(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    node_of(o)->release_saved();
    Py_RETURN_NONE;
  });
}

PyMethodDef node_methods[] = {{"name", node_name_method, METH_NOARGS,
                               "name($self)\n--\n\n"
                               "The name of the operation's gradient."},
                              {"_sequence_nr", node_sequence, METH_NOARGS, nullptr},
                              {"_hooks_dict", node_hooks, METH_O, nullptr},
                              {"_release_saved", node_release, METH_NOARGS, nullptr},
                              {}};
PyGetSetDef node_getset[] = {
    {"next_functions", node_next_functions, nullptr,
     "The nodes gradients go to next, each with an output number.", nullptr},
    {"metadata", node_metadata, nullptr, "A dict for whatever one wants to keep with the node.",
     nullptr},
    {"variable", node_variable, nullptr, "Of AccumulateGrad: the leaf.", nullptr},
    {"_input_metadata", node_input_metadata, nullptr, nullptr, nullptr},
    {"saved_tensors", node_saved_tensors, nullptr, "The tensors kept for backward.", nullptr},
    {"_place", node_place, nullptr, nullptr, nullptr},
    {"_callers", node_callers, nullptr, nullptr, nullptr},
    {"_cut", node_cut, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
PyMemberDef node_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(NodeObj, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(NodeObj, weakrefs), READONLY, nullptr},
    {}};

// Nodes of one name share a type of that name: programs recognize the nodes of leaves by it.
PyTypeObject* type_named(const std::string& name) {
  static auto& types = *new std::unordered_map<std::string, PyTypeObject*>;
  PyTypeObject*& type = types[name];
  if (!type) {
    // The name is the type's for good: in Python 3.10 it is not copied.
    auto* full = new std::string("clew.autograd.graph." + name);
    PyType_Slot slots[] = {slot(Py_tp_dealloc, node_dealloc),
                           slot(Py_tp_traverse, node_traverse),
                           slot(Py_tp_clear, node_clear),
                           {0, nullptr}};
    PyType_Spec spec = {full->c_str(), sizeof(NodeObj), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                        slots};
    Ref bases(checked(PyTuple_Pack(1, node_type)));
    type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.get())));
  }
  return type;
}

}  // namespace

PyObject* node_type_named(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    if (!PyUnicode_Check(name)) fail_type("_node_type: the name must be a str");
    return Py_NewRef(reinterpret_cast<PyObject*>(type_named(printable(name))));
  });
}

NodeRef node_of(PyObject* o) {
  Node* n = live_node(o);
  if (!n)
    fail(
        "autograd: this function context is not part of a graph (its graph was freed, or nothing "
        "required grad)");
  return NodeRef::borrow(n);
}

PyObject* node_object(Node* n) {
  if (!n) Py_RETURN_NONE;
  if (PyObject* own = n->python_object()) return Py_NewRef(own);
  if (n->wrapper) return Py_NewRef(n->wrapper);
  const NodeRef keep = NodeRef::borrow(n);
  PyTypeObject* type = type_named(n->name());
  PyObject* o = checked(type->tp_alloc(type, 0));
  if (n->wrapper) {  // made by a finalizer that the allocation ran
    Py_DECREF(o);
    return Py_NewRef(n->wrapper);
  }
  node_obj(o)->node = n;
  node_obj(o)->owns = true;
  n->incref();
  n->wrapper = o;
  return o;
}

constexpr const char* node_doc = R"(A recorded operation, seen from its result.

>>> x = clew.ones(2, requires_grad=True)
>>> node = (x * 2).grad_fn
>>> node.name(), isinstance(node, clew.autograd.graph.Node)
('MulBackward0', True)
)";

void add_node_type(PyObject* module) {
  PyType_Slot slots[] = {slot(Py_tp_dealloc, node_dealloc), slot(Py_tp_traverse, node_traverse),
                         slot(Py_tp_clear, node_clear),     slot(Py_tp_repr, node_repr),
                         slot(Py_tp_methods, node_methods), slot(Py_tp_getset, node_getset),
                         slot(Py_tp_members, node_members), slot(Py_tp_getattro, node_getattro),
                         slot(Py_tp_call, node_call),       slot(Py_tp_new, node_new),
                         slot(Py_tp_doc, node_doc),         {0, nullptr}};
  PyType_Spec spec = {"clew.autograd.graph.Node", sizeof(NodeObj), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  node_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(node_type));
}

}  // namespace clew::python

namespace clew {

// grad_fn._saved_input, _saved_other, _saved_result: a saved tensor by its parameter's name.
PyObject* OpNode::saved_attribute(const char* which) {
  std::string_view w(which);
  auto found = [&](int bit) -> PyObject* {
    int slot = saved_slot(bit);
    if (slot < 0) return Py_NewRef(Py_None);
    Tensor t = bit < 16 ? saved(slot).unpack_for(*this, &edges[bit], 0)
                        : saved(slot).unpack_for(*this, nullptr, static_cast<uint32_t>(bit - 16));
    return python::wrap(std::move(t));
  };
  if (w == "result") return found(16);
  if (w == "self") w = "input";
  int index = 0;
  for (const SignatureParam& p : read_signature(op->signature).params) {
    if (p.word != "Tensor" && p.word != "Operand") continue;
    if (p.name == w) return found(index);
    ++index;
  }
  return nullptr;
}

}  // namespace clew
