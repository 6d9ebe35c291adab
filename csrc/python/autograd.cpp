// The graph from Python: node objects, modes, backward, custom functions, saved-tensor hooks.
// May include: everything below python/.
// Invariant: a node owns its Python function context; the context's pointer back is cleared when
// the node dies.
#include "python/autograd.h"

#include <algorithm>
#include <unordered_map>

#include "python/provenance.h"

#include "graph/deferral.h"
#include "graph/explain.h"
#include "graph/gather.h"
#include "graph/inplace.h"
#include "graph/promotion.h"
#include "graph/watch.h"

namespace clew::python {

PyTypeObject* node_type = nullptr;

namespace {

struct NodeObj {
  PyObject_HEAD Node* node;
  bool owns;  // a wrapper owns its node; a custom function's context is owned by it
  PyObject* dict;
  PyObject* weakrefs;
};
NodeObj* node_obj(PyObject* o) { return reinterpret_cast<NodeObj*>(o); }
// Lent; null for a context without a node, or with one that waits to be destroyed.
Node* live_node(PyObject* o) {
  Node* n = node_obj(o)->node;
  return n && !n->is_dying() ? n : nullptr;
}

// A node of a Python autograd.Function.
struct PyFunctionNode final : Node {
  PyObject* ctx = nullptr;  // owned
  std::vector<Saved> saved;
  std::vector<OwnedEdge> saved_edges;  // where gradients of a saved input go; null for others
  std::vector<bool> no_tensor;  // outputs that are none: they have no gradient to give zeros for
  bool materialize = true;
  std::string label;

  ~PyFunctionNode() override {
    if (ctx) node_obj(ctx)->node = nullptr;
    for (Saved& s : saved) s.clear();
    Py_XDECREF(ctx);
  }
  std::string name() const override { return label; }
  PyObject* python_object() override { return ctx; }
  std::span<const Saved> saved_tensors() const override { return saved; }
  void release_saved() override {
    if (saved.empty()) return;
    for (Saved& s : saved) s.clear();
    saved_edges.clear();
    consumed = consuming_id();
  }
  void run(std::span<const Tensor> grads, Tensor* out) override {
    Ref args(checked(PyTuple_New(static_cast<Py_ssize_t>(grads.size()))));
    for (size_t k = 0; k < grads.size(); ++k) {
      Tensor g = grads[k];
      if (!g.defined() && materialize && !no_tensor[k]) {
        const OutMeta& m = meta(static_cast<uint32_t>(k));
        g = empty(m.sizes(), m.dtype, m.device);
        fill_(g, Scalar(0));
      }
      PyObject* o = g.defined() ? wrap(std::move(g)) : Py_NewRef(Py_None);
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(k), o);
    }
    Ref got(PyObject_CallMethod(ctx, "_run_backward", "(O)", args.get()));
    if (!got) throw PythonError();
    if (!PyTuple_Check(got.get()) ||
        PyTuple_GET_SIZE(got.get()) != static_cast<Py_ssize_t>(edge_count))
      throw Explained(
          {ErrorKind::Runtime,
           concat(label, ": backward returned an incorrect number of gradients (expected ",
                  edge_count, ", got ", PyTuple_Check(got.get()) ? PyTuple_GET_SIZE(got.get()) : 1,
                  ")")},
          describe_gradient(*this, -1));
    for (uint32_t i = 0; i < edge_count; ++i) {
      PyObject* g = PyTuple_GET_ITEM(got.get(), i);
      if (g == Py_None) continue;
      if (!is_tensor(g))
        throw Explained(
            {ErrorKind::Type, concat(label, ": backward must return tensors or None; gradient ", i,
                                     " is ", Py_TYPE(g)->tp_name)},
            describe_gradient(*this, i));
      if (!edges[i].fn) continue;
      check_gradient_device(edges[i], borrow(g), *this, i);
      out[i] = borrow(g);
      // Gradients may be written to; this one too, unless backward kept it.
      if (out[i]->flags & flag_conj) [[unlikely]] {
        if (Py_REFCNT(g) > 2) out[i] = builtins.clone(out[i]);
        out[i]->flags &= static_cast<uint8_t>(~flag_conj);
      }
    }
  }
};

// ---- the Node type ----

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
    PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                           {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                           {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                           {0, nullptr}};
    PyType_Spec spec = {full->c_str(), sizeof(NodeObj), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                        slots};
    Ref bases(checked(PyTuple_Pack(1, node_type)));
    type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.get())));
  }
  return type;
}

PyObject* node_type_named(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    if (!PyUnicode_Check(name)) fail_type("_node_type: the name must be a str");
    return Py_NewRef(reinterpret_cast<PyObject*>(type_named(printable(name))));
  });
}

// ---- module functions ----

std::vector<Tensor> tensors_from(PyObject* seq, const char* what, bool none_allowed) {
  if (!PyTuple_Check(seq) && !PyList_Check(seq)) fail_type(what, " must be a tuple of Tensors");
  std::vector<Tensor> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq); ++i) {
    PyObject* o = PySequence_Fast_GET_ITEM(seq, i);
    if (none_allowed && o == Py_None)
      out.push_back(Tensor());
    else if (is_tensor(o))
      out.push_back(borrow(o));
    else
      fail_type(what, ": expected Tensors; element ", i, " is ", Py_TYPE(o)->tp_name);
  }
  return out;
}

// _run_backward(tensors, grads, keep_graph, create_graph, inputs or None) -> gradients of inputs,
// or None
PyObject* module_run_backward(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensors, *grads, *inputs;
    int keep, create;
    if (!PyArg_ParseTuple(args, "OOppO", &tensors, &grads, &keep, &create, &inputs)) return nullptr;
    BackwardArgs b;
    b.keep_graph = keep;
    b.create_graph = create;
    std::vector<Tensor> roots = tensors_from(tensors, "tensors", false);
    std::vector<Tensor> seeds = tensors_from(grads, "grad_tensors", false);
    if (roots.size() != seeds.size())
      fail("backward: got ", roots.size(), " tensors and ", seeds.size(), " gradients");
    for (size_t i = 0; i < roots.size(); ++i) {
      OwnedEdge e = gradient_edge(roots[i]);
      if (!e.fn)
        fail("backward: element ", i,
             " of tensors does not require grad and does not have a grad_fn; it is ", roots[i],
             why_no_grad(roots[i]));
      if (seeds[i].sizes() != roots[i].sizes())
        fail("backward: Mismatch in shape: grad_output[", i, "] has a shape of ", seeds[i].sizes(),
             " and output[", i, "] has a shape of ", roots[i].sizes());
      if (seeds[i].device() != roots[i].device())
        fail("backward: grad_output[", i, "] is on ", name(seeds[i].device()), " and output[", i,
             "] on ", name(roots[i].device()), "; both must be on one device");
      if (is_complex(seeds[i].dtype()) != is_complex(roots[i].dtype()))
        fail("backward: for complex tensors, both grad_output and output must be complex; got ",
             seeds[i], " and ", roots[i]);
      b.grads.push_back(seeds[i].dtype() == roots[i].dtype()
                            ? seeds[i]
                            : builtins.to_dtype(seeds[i], roots[i].dtype()));
      b.roots.push_back(std::move(e));
    }
    observe_backward(inputs != Py_None ? "grad"
                     : create          ? "recorded"
                     : keep            ? "retaining"
                                       : "backward",
                     roots);
    if (inputs == Py_None) {
      run_backward(b);
      Py_RETURN_NONE;
    }
    std::vector<Tensor> wanted = tensors_from(inputs, "inputs", false);
    for (Tensor& t : wanted) b.captures.push_back(gradient_edge(t));
    for (size_t i = 0; i < wanted.size(); ++i)
      if (!b.captures[i].fn)
        fail("grad: one of the differentiated Tensors does not require grad; input ", i, " is ",
             wanted[i], why_no_grad(wanted[i]));
    std::vector<Tensor> got = run_backward(b);
    Ref tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(got.size()))));
    for (size_t i = 0; i < got.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       got[i].defined() ? wrap(got[i]) : Py_NewRef(Py_None));
    return tuple.release();
  });
}

PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(modes.grad); }
// _set_grad_enabled(on) -> what _restore_grad_enabled() takes: True, False, or False with the place
// where recording was switched off.
constexpr const char* off_since = "clew.off_since";
PyObject* set_grad_enabled(PyObject*, PyObject* on) {
  const int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  const bool now = truth == 1;
  PyObject* before = Py_NewRef(modes.grad ? Py_True : Py_False);
  if (now && !modes.grad && modes.unrecorded_since) {
    Py_SETREF(before, PyCapsule_New(modes.unrecorded_since, off_since, [](PyObject* capsule) {
                static_cast<Origin*>(PyCapsule_GetPointer(capsule, off_since))->decref();
              }));
    if (!before) return nullptr;
    modes.unrecorded_since->incref();
  }
  note_recording(now);
  modes.grad = now;
  return before;
}
PyObject* restore_grad_enabled(PyObject*, PyObject* before) {
  bool place = PyCapsule_IsValid(before, off_since);
  const int truth = place ? 0 : PyObject_IsTrue(before);
  if (truth < 0) return nullptr;
  const bool on = truth == 1;
  if (place)
    note_recording(static_cast<Origin*>(PyCapsule_GetPointer(before, off_since)));
  else
    note_recording(on);
  modes.grad = on;
  Py_RETURN_NONE;
}
PyObject* is_inference(PyObject*, PyObject*) { return PyBool_FromLong(modes.inference); }
PyObject* set_inference(PyObject*, PyObject* on) {
  const int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  bool before = modes.inference;
  modes.inference = truth == 1;
  return PyBool_FromLong(before);
}
PyObject* push_saved_hooks(PyObject*, PyObject* pair) {
  if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
    PyErr_SetString(PyExc_TypeError, "saved_tensors_hooks: expected a tuple (pack, unpack)");
    return nullptr;
  }
  if (!modes.saved_hook_stack) modes.saved_hook_stack = PyList_New(0);
  if (!modes.saved_hook_stack || PyList_Append(modes.saved_hook_stack, pair) < 0) return nullptr;
  ++modes.saved_hooks;
  Py_RETURN_NONE;
}
PyObject* pop_saved_hooks(PyObject*, PyObject*) {
  Py_ssize_t n = modes.saved_hook_stack ? PyList_GET_SIZE(modes.saved_hook_stack) : 0;
  if (n == 0) {
    PyErr_SetString(PyExc_RuntimeError, "saved_tensors_hooks: there is no hook to take off");
    return nullptr;
  }
  if (PyList_SetSlice(modes.saved_hook_stack, n - 1, n, nullptr) < 0) return nullptr;
  --modes.saved_hooks;
  Py_RETURN_NONE;
}

// Bytes of outputs that contexts of custom Functions hold. Each such output and its node form a
// cycle, which only the garbage collector frees. The collector counts objects, of which there may
// be few, so it is called here when these bytes have grown by half of the live bytes.
struct KeptOutputs {
  int64_t since = 0;  // the last collection
  int64_t most = least;
  static constexpr int64_t least = int64_t{64} << 20;

  void collect_if_many() {
    if (since < most) return;
    since = 0;
    PyGC_Collect();
    most = std::max(least, memory_stats().live_bytes / 2);
  }
  // `but`: tuples that the context is about to release.
  void count(PyObject* ctx, PyObject* outputs, std::span<PyObject* const> but) {
    PyObject* dict = node_obj(ctx)->dict;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; dict && PyDict_Next(dict, &at, &key, &value);) {
      if (!PyTuple_Check(value) && !PyList_Check(value)) {
        count_one(value, outputs);
        continue;
      }
      if (std::find(but.begin(), but.end(), value) != but.end()) continue;
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i)
        count_one(PySequence_Fast_GET_ITEM(value, i), outputs);
    }
  }

 private:
  void count_one(PyObject* o, PyObject* outputs) {
    if (!is_tensor(o)) return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i)
      if (PyTuple_GET_ITEM(outputs, i) == o)
        since += static_cast<int64_t>(reinterpret_cast<TensorObj*>(o)->storage->nbytes);
  }
} kept_outputs;

// _attach_function(ctx, name, inputs, outputs, saved, dirty, non_differentiable, materialize) ->
// outputs Makes the node of a custom Function: inputs is a tuple with None for non-tensors.
PyObject* attach_function(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *ctx, *inputs, *outputs, *saved, *dirty, *fixed;
    const char* name;
    int materialize;
    if (!PyArg_ParseTuple(args, "O!sO!O!OO!O!p", node_type, &ctx, &name, &PyTuple_Type, &inputs,
                          &PyTuple_Type, &outputs, &saved, &PyTuple_Type, &dirty, &PyTuple_Type,
                          &fixed, &materialize))
      return nullptr;
    kept_outputs.collect_if_many();
    if (collects()) deferral.run_collected();  // edges point to nodes made before this one
    if (node_obj(ctx)->owns || node_obj(ctx)->node)
      fail(name, ": this function context belongs to a graph already");
    std::vector<Tensor> ins = tensors_from(inputs, name, true);
    std::vector<Tensor> keep = tensors_from(saved, "save_for_backward", true);
    auto contains = [](PyObject* seq, PyObject* o) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(seq); ++i)
        if (PyTuple_GET_ITEM(seq, i) == o) return true;
      return false;
    };
    for (const Tensor& t : ins)
      if (t.defined() && t->base) grad_fn_of(t);  // so here
    auto* node = new PyFunctionNode();
    NodeRef guard = NodeRef::steal(node);
    node->label = name;
    node->materialize = materialize;
    node->allocate_edges(static_cast<uint32_t>(ins.size()));
    for (size_t i = 0; i < ins.size(); ++i)
      if (ins[i].defined() && ins[i].requires_grad())
        node->set_edge(static_cast<uint32_t>(i), ins[i]);
    Py_ssize_t count = PyTuple_GET_SIZE(outputs);
    node->set_output_count(static_cast<uint32_t>(count));
    node->no_tensor.resize(static_cast<size_t>(count));
    Ref result(checked(PyTuple_New(count)));
    struct Kept {
      PyObject* given;
      Tensor used;
    };
    std::vector<Kept> made;
    for (Py_ssize_t k = 0; k < count; ++k) {
      PyObject* o = PyTuple_GET_ITEM(outputs, k);
      if (!is_tensor(o)) {
        PyTuple_SET_ITEM(result.get(), k, Py_NewRef(o));
        node->add_meta(static_cast<uint32_t>(k), scalar_tensor(Scalar(0.0), DType::Float32));
        node->no_tensor[static_cast<size_t>(k)] = true;
        continue;
      }
      Tensor t = borrow(o);
      node->add_meta(static_cast<uint32_t>(k), t);
      bool is_input = contains(inputs, o);
      bool differentiable = is_inexact(t.dtype()) && !contains(fixed, o);
      if (contains(dirty, o)) {
        if (!is_input)
          fail(name,
               ": mark_dirty only accepts input tensors, but an output that is not an input was "
               "marked");
        check_inplace(t, name, true);
        if (differentiable) {
          if (t->base) {
            if (count > 1)
              fail(name, ": a view written in place must be the only output of the Function");
            rebase_history(t, guard);
          } else {
            set_grad_fn(t, node, static_cast<uint32_t>(k));
          }
        }
      } else if (is_input) {
        // An input handed through becomes another tensor object, so that the input keeps its own
        // history.
        Tensor given = t;
        t = alias(given);
        if (differentiable) {
          set_grad_fn(t, node, static_cast<uint32_t>(k));
          mark_view(t, given, false);
          t->view_kind = ViewKind::custom_function;
        }
      } else if (differentiable) {
        set_grad_fn(t, node, static_cast<uint32_t>(k));
        if (t->base) {
          t->view_version = t->storage->version;
          t->view_kind = ViewKind::custom_function;
        }
      } else if (t->grad_fn) {
        t = detach(t);
      }
      track(t.get());  // the context may keep it
      // An input handed through stays saved as the input.
      if (!is_input || contains(dirty, o)) made.push_back({o, t});
      PyTuple_SET_ITEM(result.get(), k, wrap(t));
    }
    for (Tensor& t : keep) {
      Saved s;
      if (t.defined()) {
        Tensor use = t;
        for (Kept& m : made)
          if (m.given == reinterpret_cast<PyObject*>(t.get())) use = m.used;
        bool output = use->grad_fn == node;
        uint32_t nr = use->output_nr;
        s.save(use, output, true);
        if (output && s.kind == Saved::Kind::object) s.tensor->output_nr = nr;
      }
      node->saved.push_back(s);
      node->saved_edges.push_back(
          t.defined() && !s.is_output && t.requires_grad() ? gradient_edge(t) : OwnedEdge{});
    }
    node->ctx = Py_NewRef(ctx);
    node_obj(ctx)->node = node;
    PyObject* const passing[] = {saved, dirty, fixed};
    kept_outputs.count(ctx, result.get(), passing);
    return result.release();
  });
}

PyObject* module_bump_version(PyObject*, PyObject* t) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(t)) fail_type("increment_version: expected a Tensor; got ", Py_TYPE(t)->tp_name);
    bump_version(borrow(t));
    Py_RETURN_NONE;
  });
}
PyObject* module_result_type(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "OO:result_type", &a, &b)) return nullptr;
    Tensor in[2] = {tensor_or_number(a), tensor_or_number(b)};
    if (!in[0].defined() || !in[1].defined()) fail_type("result_type: expected Tensors or numbers");
    return dtype_object(result_type(in));
  });
}

PyObject* module_backward_id(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(backward_id());
}

PyObject* module_backward_node(PyObject*, PyObject*) {
  return guarded([&] { return node_object(backward_node()); });
}

// _tensor_of_edge(node, nr): a tensor that gradients for that output of the node are sent to, of
// its shape and dtype; its elements mean nothing.
PyObject* tensor_of_edge(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o;
    Py_ssize_t nr;
    if (!PyArg_ParseTuple(args, "O!n:_tensor_of_edge", node_type, &o, &nr)) return nullptr;
    Node* n = live_node(o);
    require(n && nr >= 0 && nr < static_cast<Py_ssize_t>(n->output_count) &&
                n->meta(static_cast<uint32_t>(nr)).shape,
            "GradientEdge: the node has no output ", nr, " that is a tensor");
    const OutMeta& meta = n->meta(static_cast<uint32_t>(nr));
    const Dims& sizes = meta.sizes();
    Tensor t = empty_strided(sizes, Dims(sizes.size(), 0), meta.dtype, meta.device);
    set_grad_fn(t, n, static_cast<uint32_t>(nr));
    return wrap(std::move(t));
  });
}

PyMethodDef functions[] = {{"_backward_id", module_backward_id, METH_NOARGS, nullptr},
                           {"_backward_node", module_backward_node, METH_NOARGS, nullptr},
                           {"_tensor_of_edge", tensor_of_edge, METH_VARARGS, nullptr},
                           {"_bump_version", module_bump_version, METH_O, nullptr},
                           {"_result_type", module_result_type, METH_VARARGS, nullptr},
                           {"_run_backward", module_run_backward, METH_VARARGS, nullptr},
                           {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
                            "is_grad_enabled()\n--\n\n"
                            R"(Whether operations are recorded.

>>> with clew.no_grad():
...     clew.is_grad_enabled()
False
)"},
                           {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
                           {"_restore_grad_enabled", restore_grad_enabled, METH_O, nullptr},
                           {"is_inference_mode_enabled", is_inference, METH_NOARGS,
                            "is_inference_mode_enabled()\n--\n\n"
                            R"(Whether inference mode is on.

>>> with clew.inference_mode():
...     clew.is_inference_mode_enabled()
True
)"},
                           {"_set_inference", set_inference, METH_O, nullptr},
                           {"_push_saved_hooks", push_saved_hooks, METH_O, nullptr},
                           {"_pop_saved_hooks", pop_saved_hooks, METH_NOARGS, nullptr},
                           {"_attach_function", attach_function, METH_VARARGS, nullptr},
                           {"_node_type", node_type_named, METH_O, nullptr},
                           {}};

}  // namespace

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

void add_autograd(PyObject* module) {
  auto slot = [](int id, auto* f) { return PyType_Slot{id, reinterpret_cast<void*>(f)}; };
  PyType_Slot slots[] = {slot(Py_tp_dealloc, node_dealloc),
                         slot(Py_tp_traverse, node_traverse),
                         slot(Py_tp_clear, node_clear),
                         slot(Py_tp_repr, node_repr),
                         slot(Py_tp_methods, node_methods),
                         slot(Py_tp_getset, node_getset),
                         slot(Py_tp_members, node_members),
                         slot(Py_tp_getattro, node_getattro),
                         slot(Py_tp_call, node_call),
                         slot(Py_tp_new, node_new),
                         {Py_tp_doc, const_cast<char*>(node_doc)},
                         {0, nullptr}};
  PyType_Spec spec = {"clew.autograd.graph.Node", sizeof(NodeObj), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  node_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(node_type));
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
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
  // The parameters of type Tensor, in order, as the signature spells them.
  std::string_view s(op->signature);
  int index = 0;
  auto next_tensor = [&](size_t from) {
    return std::min(s.find("Tensor", from), s.find("Operand", from));
  };
  for (size_t at = next_tensor(0); at != std::string_view::npos && at < s.find("->");
       at = next_tensor(at + 1)) {
    size_t from = s.find(' ', at);
    size_t to = s.find_first_of(",=)", from);
    if (from == std::string_view::npos || to == std::string_view::npos) break;
    if (s.substr(from + 1, to - from - 1) == w) return found(index);
    ++index;
  }
  return nullptr;
}

}  // namespace clew
