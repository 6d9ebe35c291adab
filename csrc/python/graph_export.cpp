// A recorded graph as plain Python lists: one entry a node in each, in order of creation.
// May include: everything below python/.
// Invariant: what is handed out keeps no node alive and no saved tensor; of tensors the leaves
// only.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "graph/batch.h"
#include "python/autograd.h"
#include "python/provenance.h"
#include "python/signature.h"

namespace clew::python {

namespace {

// Data shared by all nodes of one op; made once, because it needs a parsed signature.
struct OpText {
  Ref op, node;
  std::unique_ptr<Overload> signature;
  Ref roles[32];  // by bit of OpNode::saved_mask; not of inputs in a list
};

Ref interned(std::string_view s) {
  PyObject* o = text(s).release();
  PyUnicode_InternInPlace(&o);
  return Ref(o);
}

template <class Get> PyObject* tuple_of(int n, Get&& get) {
  Ref tuple(checked(PyTuple_New(n)));
  for (int i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, checked(get(i)));
  return tuple.release();
}
PyObject* ints_tuple(const Dims& d) {
  return tuple_of(d.size(), [&](int i) { return PyLong_FromLongLong(d[i]); });
}

template <class T> PyObject* attribute(const T& v) {
  if constexpr (is_optional<T>) {
    if (!v) Py_RETURN_NONE;
    return attribute(*v);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return PyLong_FromLongLong(v);
  } else if constexpr (std::is_same_v<T, bool>) {
    return PyBool_FromLong(v);
  } else if constexpr (std::is_same_v<T, double>) {
    return PyFloat_FromDouble(v);
  } else if constexpr (std::is_same_v<T, Scalar>) {
    return scalar_object(v);
  } else if constexpr (std::is_same_v<T, Dims>) {
    return ints_tuple(v);
  } else if constexpr (std::is_same_v<T, Str>) {
    return PyUnicode_FromString(v.text);
  } else if constexpr (std::is_same_v<T, DType>) {
    return PyUnicode_FromString(name(v));
  } else {
    static_assert(std::is_same_v<T, Generator*>);
    Py_RETURN_NONE;
  }
}

bool is_tensor_kind(ParamKind k) {
  return k == ParamKind::Tensor || k == ParamKind::Operand || k == ParamKind::OptTensor ||
         k == ParamKind::TensorList;
}

struct MetaKey {
  Dims sizes;
  DType dtype;
  bool operator==(const MetaKey&) const = default;
};
struct MetaHash {
  size_t operator()(const MetaKey& k) const {
    size_t h = static_cast<size_t>(k.dtype) + 1469598103934665603u;
    for (int64_t s : k.sizes) h = (h ^ static_cast<size_t>(s)) * 0x100000001B3u;
    return h;
  }
};

// The module calls that a place lies in, the outermost first: ((path, class), ...).
PyObject* scopes_tuple(const Scope* scope) {
  std::vector<const Scope*> chain;
  for (; scope; scope = scope->parent) chain.push_back(scope);
  return tuple_of(static_cast<int>(chain.size()), [&](int i) {
    const Scope* s = chain[chain.size() - 1 - static_cast<size_t>(i)];
    return Py_BuildValue("(ss)", path_of(s).c_str(), s->type.c_str());
  });
}

// The signature's name of tensor input i of n: "weight", "tensors[3]".
Ref input_name(const Overload& o, int i, int n) {
  for (const Param& p : o.params) {
    if (!is_tensor_kind(p.kind)) continue;
    int many = p.kind == ParamKind::TensorList ? n - (o.tensors - 1) : 1;
    if (i < many)
      return text(p.kind == ParamKind::TensorList ? concat(p.name, "[", i, "]") : p.name);
    i -= many;
  }
  return text(concat("input[", i, "]"));
}
Ref output_name(const Overload& o, int k) {
  if (static_cast<size_t>(k) < o.outputs.size()) return text(o.outputs[static_cast<size_t>(k)]);
  return text(o.output_count == 1 && !o.returns_list ? "result" : concat("result[", k, "]"));
}

class Exporter {
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, Py_ssize_t> index_;
  std::unordered_map<MetaKey, Ref, MetaHash> metas_;
  std::unordered_map<const Origin*, Py_ssize_t> place_index_;
  std::unordered_map<const Cut*, Ref> cut_tuples_;
  std::unordered_map<const Storage*, Py_ssize_t> storages_;
  Ref leaf_op_ = interned("leaf"), accumulate_ = interned("AccumulateGrad"),
      packed_ = interned("packed");
  Ref places_{checked(PyList_New(0))}, scopes_{checked(PyList_New(0))},
      leaves_{checked(PyList_New(0))}, cuts_{checked(PyDict_New())}, parts_{checked(PyDict_New())};

  // All nodes: leaves in the order of first use, then the others as they were made.
  void collect(const std::vector<OwnedEdge>& roots) {
    std::vector<Node*> pending;
    auto meet = [&](Node* n) {
      if (n && index_.try_emplace(n, 0).second) pending.push_back(n);
    };
    for (const OwnedEdge& e : roots) meet(e.fn.get());
    std::vector<std::pair<uint64_t, Node*>> made;
    while (!pending.empty()) {
      Node* n = pending.back();
      pending.pop_back();
      if (!n->is_accumulator) made.push_back({n->sequence, n});
      for (uint32_t i = 0; i < n->edge_count; ++i) meet(n->edges[i].fn);
    }
    std::sort(made.begin(), made.end());
    for (auto& [sequence, n] : made) nodes_.push_back(n);
    std::vector<Node*> leaves;
    auto meet_leaf = [&](Node* n) {
      if (!n || !n->is_accumulator || index_[n] != 0) return;
      leaves.push_back(n);
      index_[n] = static_cast<Py_ssize_t>(leaves.size());
    };
    for (Node* n : nodes_)
      for (uint32_t i = 0; i < n->edge_count; ++i) meet_leaf(n->edges[i].fn);
    for (const OwnedEdge& e : roots) meet_leaf(e.fn.get());
    nodes_.insert(nodes_.begin(), leaves.begin(), leaves.end());
    for (size_t i = 0; i < nodes_.size(); ++i) index_[nodes_[i]] = static_cast<Py_ssize_t>(i);
  }

  static OpText& text_of(const OpDef& op) {
    static auto& known = *new std::unordered_map<const OpDef*, OpText>();
    OpText& t = known[&op];
    if (!t.op) {
      t.signature = parse_signature(op);
      t.node = interned(node_name(op));
      std::string_view full = op_name(op);
      t.op = interned(full.substr(full.rfind('.') + 1));
    }
    return t;
  }
  PyObject* meta(const Dims& sizes, DType dtype) {  // lent
    Ref& known = metas_[{sizes, dtype}];
    if (!known) known = Ref(checked(Py_BuildValue("(Ns)", ints_tuple(sizes), name(dtype))));
    return known.get();
  }
  Py_ssize_t place_of(const Origin* o) {
    if (!o) return -1;
    auto [at, fresh] = place_index_.try_emplace(o, PyList_GET_SIZE(places_.get()));
    if (fresh) {
      Ref tuple(place(o));
      Ref scopes(scopes_tuple(o->scope));
      if (PyList_Append(places_.get(), tuple.get()) < 0 ||
          PyList_Append(scopes_.get(), scopes.get()) < 0)
        throw PythonError();
    }
    return at->second;
  }
  Py_ssize_t number_of(const Storage* s) {
    return storages_.try_emplace(s, static_cast<Py_ssize_t>(storages_.size())).first->second;
  }

  PyObject* inputs(const Node& n) {
    Ref list(checked(PyList_New(n.edge_count)));
    for (uint32_t i = 0; i < n.edge_count; ++i) {
      const Edge& e = n.edges[i];
      PyObject* pair = e.fn ? tuple_of(2,
                                       [&](int k) {
                                         return k ? PyLong_FromUnsignedLong(e.nr)
                                                  : PyLong_FromSsize_t(index_.find(e.fn)->second);
                                       })
                            : Py_NewRef(Py_None);
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), pair);
    }
    return list.release();
  }
  PyObject* outputs(const Node& n) {
    Ref list(checked(PyList_New(n.output_count)));
    for (uint32_t k = 0; k < n.output_count; ++k) {
      const OutMeta& m = n.meta(k);
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(k), Py_NewRef(meta(m.sizes(), m.dtype)));
    }
    return list.release();
  }

  // (role, number of the input or -1, (shape, dtype) or None, bytes, storage or -1)
  Ref saved_entry(const Saved& s, Ref role, int input) {
    Tensor t = s.values();
    if (t.defined()) t = physical(t);
    return Ref(tuple_of(5, [&](int i) -> PyObject* {
      switch (i) {
        case 0: return role.release();
        case 1: return PyLong_FromLong(input);
        case 2: return Py_NewRef(t.defined() ? meta(t.sizes(), t.dtype()) : Py_None);
        case 3: return PyLong_FromSize_t(t.defined() ? t->storage->nbytes : 0);
        default: return PyLong_FromSsize_t(t.defined() ? number_of(t->storage) : -1);
      }
    }));
  }
  // The name of the tensor that `bit` of an op's saved_mask stands for.
  Ref role(OpText& known, int bit, int inputs) {
    const Overload& o = *known.signature;
    Ref& kept = known.roles[bit];
    if (kept) return Ref(Py_NewRef(kept.get()));
    if (bit < 16 && inputs != o.tensors) return input_name(o, bit, inputs);  // depends on the call
    kept = bit < 16 ? input_name(o, bit, inputs) : output_name(o, bit - 16);
    return Ref(Py_NewRef(kept.get()));
  }
  PyObject* saved(const Node& node, OpText* known) {
    const Node& n = node.inner();
    std::span<const Saved> kept = n.saved_tensors();
    auto is_held = [](const Saved& s) { return s.is_held(); };
    auto count = std::count_if(kept.begin(), kept.end(), is_held);
    if (count == 0) Py_RETURN_NONE;
    Ref list(checked(PyList_New(count)));
    Py_ssize_t next = 0;
    auto add = [&](Ref entry) { PyList_SET_ITEM(list.get(), next++, entry.release()); };
    if (!known) {
      for (size_t i = 0; i < kept.size(); ++i)
        if (is_held(kept[i])) add(saved_entry(kept[i], text(concat("saved_tensors[", i, "]")), -1));
      return list.release();
    }
    const auto& op = static_cast<const OpNode&>(n);
    for (int bit = 0, slot = 0; bit < 32; ++bit) {
      if (!(op.saved_mask & (1u << bit))) continue;
      const Saved& s = kept[static_cast<size_t>(slot++)];
      if (is_held(s))
        add(saved_entry(s, role(*known, bit, static_cast<int>(op.edge_count)),
                        bit < 16 ? bit : -1));
    }
    return list.release();
  }
  PyObject* attributes(const OpNode& n, const OpText& known) {
    if (!n.has_attrs || n.op->attrs->count == 0) Py_RETURN_NONE;
    Ref dict(checked(PyDict_New()));
    for (const Param& p : known.signature->params) {
      if (p.field < 0 || p.kind == ParamKind::Generator) continue;
      const AttrField& f = n.op->attrs->fields[static_cast<size_t>(p.field)];
      const void* field = static_cast<const char*>(n.attrs()) + f.offset;
      Ref value(checked(visit_field(f.kind, field, [](const auto& v) { return attribute(v); })));
      if (PyDict_SetItem(dict.get(), p.key, value.get()) < 0) throw PythonError();
    }
    return dict.release();
  }
  void note_leaf(const Node& n, Py_ssize_t i) {
    const Tensor& t = static_cast<const AccumulateGrad&>(n).variable;
    Ref entry(checked(
        Py_BuildValue("(nOn)", i, reinterpret_cast<PyObject*>(t.get()), number_of(t->storage))));
    if (PyList_Append(leaves_.get(), entry.get()) < 0) throw PythonError();
  }
  // For a write into a view: records which part is written.
  void note_part(const Node& n, Py_ssize_t i) {
    const OutMeta& m = n.inner().meta(0);
    Ref key(checked(PyLong_FromSsize_t(i)));
    if (PyDict_SetItem(parts_.get(), key.get(), meta(m.sizes(), m.dtype)) < 0) throw PythonError();
  }
  void note_cut(const Cut* c, Py_ssize_t i) {
    Ref& tuple = cut_tuples_[c];
    if (!tuple) tuple = Ref(cut_tuple(c));
    Ref key(checked(PyLong_FromSsize_t(i)));
    if (PyDict_SetItem(cuts_.get(), key.get(), tuple.get()) < 0) throw PythonError();
  }

 public:
  // ([sequence of each operation's node], [leaf], [cut]); of cuts each once.
  PyObject* outline(const std::vector<OwnedEdge>& roots) {
    collect(roots);
    Ref sequences(checked(PyList_New(0))), leaves(checked(PyList_New(0))),
        cuts(checked(PyList_New(0)));
    auto append = [](const Ref& list, PyObject* o) {
      const Ref item(checked(o));
      if (PyList_Append(list.get(), item.get()) < 0) throw PythonError();
    };
    for (const Node* n : nodes_) {
      if (n->is_accumulator)
        append(leaves, Py_NewRef(reinterpret_cast<PyObject*>(
                           static_cast<const AccumulateGrad&>(*n).variable.get())));
      else
        append(sequences, PyLong_FromUnsignedLongLong(n->sequence));
      if (n->cut && cut_tuples_.try_emplace(n->cut).second) append(cuts, cut_tuple(n->cut));
    }
    return checked(Py_BuildValue("(OOO)", sequences.get(), leaves.get(), cuts.get()));
  }
  PyObject* run(const std::vector<OwnedEdge>& roots) {
    collect(roots);
    auto count = static_cast<Py_ssize_t>(nodes_.size());
    auto column = [&] { return Ref(checked(PyList_New(count))); };
    Ref names = column(), ops = column(), sequences = column(), ins = column(), outs = column(),
        kept = column(), at = column(), attrs = column();
    Ref released(checked(PyBytes_FromStringAndSize(nullptr, count)));
    for (Py_ssize_t i = 0; i < count; ++i) {
      const Node& n = *nodes_[static_cast<size_t>(i)];
      const auto* op = dynamic_cast<const OpNode*>(&n.inner());
      OpText* known = op ? &text_of(*op->op) : nullptr;
      auto set = [&](Ref& list, PyObject* o) { PyList_SET_ITEM(list.get(), i, checked(o)); };
      bool plain = op == &n;
      set(names, n.is_accumulator ? Py_NewRef(accumulate_.get())
                 : plain          ? Py_NewRef(known->node.get())
                                  : interned(n.name()).release());
      set(ops, n.is_accumulator ? Py_NewRef(leaf_op_.get())
               : known          ? Py_NewRef(known->op.get())
                                : interned(n.name()).release());
      set(sequences, PyLong_FromUnsignedLongLong(n.is_accumulator ? 0 : n.sequence));
      set(ins, inputs(n));
      set(outs, outputs(n));
      set(kept, saved(n, known));
      set(at, PyLong_FromSsize_t(place_of(n.origin)));
      set(attrs, known ? attributes(*op, *known) : Py_NewRef(Py_None));
      PyBytes_AS_STRING(released.get())[i] = n.consumed != 0;
      if (n.is_accumulator) note_leaf(n, i);
      if (n.cut) note_cut(n.cut, i);
      if (known && !plain) note_part(n, i);
    }
    Ref starts(checked(PyList_New(0)));
    for (const OwnedEdge& e : roots) {
      Ref pair(
          checked(e.fn ? Py_BuildValue("(nI)", index_[e.fn.get()], e.nr) : Py_NewRef(Py_None)));
      if (PyList_Append(starts.get(), pair.get()) < 0) throw PythonError();
    }
    return checked(Py_BuildValue(
        "{sOsOsOsOsOsOsOsOsOsOsOsOsOsOsO}", "name", names.get(), "op", ops.get(), "sequence",
        sequences.get(), "inputs", ins.get(), "outputs", outs.get(), "saved", kept.get(), "place",
        at.get(), "attributes", attrs.get(), "released", released.get(), "places", places_.get(),
        "scopes", scopes_.get(), "leaves", leaves_.get(), "cuts", cuts_.get(), "parts",
        parts_.get(), "roots", starts.get()));
  }
};

// The lists are many and part of no cycle.
class NoCollection {
  bool was_on_ = PyGC_Disable() == 1;

 public:
  NoCollection() = default;
  ~NoCollection() {
    if (was_on_) PyGC_Enable();
  }
  NoCollection(const NoCollection&) = delete;
};

std::vector<OwnedEdge> edges_of(PyObject* tensors, const char* function) {
  if (!PyTuple_Check(tensors)) fail_type(function, ": expected a tuple of Tensors");
  std::vector<OwnedEdge> roots;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
    PyObject* o = PyTuple_GET_ITEM(tensors, i);
    if (!is_tensor(o)) fail_type(function, ": expected a tuple of Tensors");
    roots.push_back(gradient_edge(borrow(o)));
  }
  return roots;
}

// _export_graph(tensors) -> dict of lists. "roots" has None for a tensor without history.
PyObject* export_graph(PyObject*, PyObject* tensors) {
  return guarded([&] {
    const std::vector<OwnedEdge> roots = edges_of(tensors, "_export_graph");
    NoCollection off;
    return Exporter().run(roots);
  });
}
// _outline_graph(tensors) -> (sequences, leaves, cuts): a few columns of it, in less time.
PyObject* outline_graph(PyObject*, PyObject* tensors) {
  return guarded([&] { return Exporter().outline(edges_of(tensors, "_outline_graph")); });
}

PyMethodDef graph_export_functions[] = {{"_export_graph", export_graph, METH_O, nullptr},
                                        {"_outline_graph", outline_graph, METH_O, nullptr},
                                        {}};

}  // namespace

void add_graph_export(PyObject* module) {
  if (PyModule_AddFunctions(module, graph_export_functions) < 0) throw PythonError();
}

}  // namespace clew::python
