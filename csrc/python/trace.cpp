// The profiler's recorder from Python: start, ranges, and the records as plain data.
// May include: everything below python/.
// Invariant: what is handed over holds no pointer into the recorder.
#include "graph/trace.h"

#include "python/bridge.h"
#include "python/signature.h"

namespace clew::python {

namespace {

// As clew.autograd._recording.RECORD reads it.
struct Row {
  int64_t begin, end, value, extra;
  int32_t name, place, parent, detail, thread;
  uint8_t kind, flags;
  uint16_t padding;
};
static_assert(sizeof(Row) == 56);

void append(PyObject* list, Ref item) {
  if (PyList_Append(list, item.get()) < 0) throw PythonError();
}

// Gives every name, place and operation that the records point to a number.
class Tables {
  std::unordered_map<const void*, int32_t> name_of_;
  std::unordered_map<const Origin*, int32_t> place_of_;

 public:
  Ref names{checked(PyList_New(0))};      // str
  Ref overloads{checked(PyList_New(0))};  // str: an operation's arguments
  Ref arguments{checked(PyList_New(0))};  // list of str: the arguments that are no tensors
  Ref places{checked(PyList_New(0))};     // (code, offset, module, class, outermost class, caller)

  Tables() {
    for (const std::string& name : tracer.names()) add_name(name, nullptr, false);
  }

  int32_t name(const TraceSite& site) {
    if (site.name >= 0) return site.name;
    if (site.kind == TraceKind::module) {
      std::string path = path_of(static_cast<const Scope*>(site.what));
      return keyed(site.what, [&] { return add_name(path, nullptr, false); });
    }
    if (site.kind > TraceKind::node) return -1;
    const auto* op = static_cast<const OpDef*>(site.what);
    // The node's name differs from the operation's: the key is the following address.
    const bool node = site.kind == TraceKind::node;
    return keyed(node ? static_cast<const void*>(&op->kind) : op, [&] {
      std::string_view full = op_name(*op);
      size_t dot = full.rfind('.');
      std::string short_name(dot == std::string_view::npos ? full : full.substr(dot + 1));
      return add_name(node ? node_name(*op) : short_name, op, !node);
    });
  }

  int32_t place(const Origin* o) { return o ? search(o) : -1; }

 private:
  int32_t search(const Origin* o) {
    auto at = place_of_.find(o);
    if (at != place_of_.end()) return at->second;
    // Callers first: an entry names its caller by index.
    std::vector<const Origin*> chain;
    for (; o && !place_of_.count(o); o = o->caller) chain.push_back(o);
    int32_t caller = o ? place_of_[o] : -1;
    while (!chain.empty()) {
      caller = add_place(chain.back(), caller);
      chain.pop_back();
    }
    return caller;
  }

  template <class F> int32_t keyed(const void* key, F&& make) {
    auto at = name_of_.find(key);
    if (at != name_of_.end()) return at->second;
    int32_t made = make();
    name_of_[key] = made;
    return made;
  }

  int32_t add_name(std::string_view name, const OpDef* op, bool with_arguments) {
    append(names.get(), text(name));
    std::string_view signature = op && with_arguments ? op->signature : "";
    size_t from = signature.find('('), until = signature.rfind(") ->");
    append(overloads.get(), text(from == std::string_view::npos || until == std::string_view::npos
                                     ? std::string_view()
                                     : signature.substr(from + 1, until - from - 1)));
    Ref fields(checked(PyList_New(0)));
    if (op && with_arguments) add_fields(fields.get(), *op);
    append(arguments.get(), std::move(fields));
    return static_cast<int32_t>(PyList_GET_SIZE(names.get()) - 1);
  }

  // The attributes' names, in the order of the fields.
  static void add_fields(PyObject* list, const OpDef& op) {
    FunctionEntry* entry = find_entry(op_name(op));
    if (!entry || !op.attrs) return;
    std::vector<std::string_view> found(op.attrs->count);
    for (const auto& overload : entry->overloads)
      if (overload->op == &op)
        for (const Param& p : overload->params)
          if (p.field >= 0 && p.field < op.attrs->count)
            found[static_cast<size_t>(p.field)] = p.name;
    for (std::string_view name : found) append(list, text(name));
  }

  int32_t add_place(const Origin* o, int32_t caller) {
    auto* code = reinterpret_cast<PyObject*>(o->code);
    const Scope* root = o->scope;
    while (root && root->parent) root = root->parent;
    std::string path = path_of(o->scope);
    Ref place(checked(root ? Py_BuildValue("(Oisssi)", code, static_cast<int>(o->instruction),
                                           path.c_str(), o->scope->type.c_str(), root->type.c_str(),
                                           static_cast<int>(caller))
                           : Py_BuildValue("(OiOOOi)", code, static_cast<int>(o->instruction),
                                           Py_None, Py_None, Py_None, static_cast<int>(caller))));
    append(places.get(), std::move(place));
    auto number = static_cast<int32_t>(PyList_GET_SIZE(places.get()) - 1);
    place_of_[o] = number;
    return number;
  }
};

Ref bytes(const void* data, size_t size) {
  return Ref(checked(
      PyBytes_FromStringAndSize(static_cast<const char*>(data), static_cast<Py_ssize_t>(size))));
}

void put(PyObject* dict, const char* key, Ref value) {
  if (PyDict_SetItemString(dict, key, checked(value.get())) < 0) throw PythonError();
}

// _trace_start(shapes, memory)
PyObject* start(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int shapes, memory;
    if (!PyArg_ParseTuple(args, "pp:_trace_start", &shapes, &memory)) return nullptr;
    if (tracer.running())
      fail(
          "profile: another profiler is recording; only one can at a time. Stop it first, or use "
          "record_function to mark a part");
    tracer.start({.shapes = shapes != 0, .memory = memory != 0});
    Py_RETURN_NONE;
  });
}

// Ends the recording and hands it over.
PyObject* stop(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (!tracer.running()) fail("profile: no recording runs");
    tracer.stop();
    struct Clear {
      ~Clear() { tracer.clear(); }
    } clear;
    Tables tables;
    std::vector<std::pair<int32_t, int32_t>> numbers;  // of the sites: name, place
    for (const TraceSite& site : tracer.sites())
      numbers.emplace_back(tables.name(site), tables.place(site.origin));
    Ref records = bytes(nullptr, static_cast<size_t>(tracer.count()) * sizeof(Row));
    auto* rows = reinterpret_cast<Row*>(PyBytes_AS_STRING(records.get()));
    for (int32_t i = 0; i < tracer.count(); ++i) {
      const TraceRecord& r = tracer.at(i);
      const auto at = static_cast<size_t>(r.site);
      const TraceSite& site = tracer.sites()[at];
      const int64_t end = tracer.end_of(i);
      rows[i] = {tracer.nanoseconds(r.begin),
                 end ? tracer.nanoseconds(end) : 0,
                 tracer.value_of(r),
                 tracer.extra_of(r),
                 numbers[at].first,
                 numbers[at].second,
                 r.parent,
                 -1,
                 static_cast<int32_t>(site.thread),
                 static_cast<uint8_t>(site.kind),
                 site.flags,
                 0};
    }
    for (auto [record, detail] : tracer.detailed()) rows[record].detail = detail;
    Ref dtypes(checked(PyList_New(0)));
    for (int d = 0; d < num_dtypes; ++d) append(dtypes.get(), text(name(static_cast<DType>(d))));
    Ref found(checked(PyDict_New()));
    PyObject* dict = found.get();
    put(dict, "records", std::move(records));
    put(dict, "details", bytes(tracer.details().data(), tracer.details().size() * sizeof(int64_t)));
    put(dict, "names", std::move(tables.names));
    put(dict, "overloads", std::move(tables.overloads));
    put(dict, "arguments", std::move(tables.arguments));
    put(dict, "places", std::move(tables.places));
    put(dict, "dtypes", std::move(dtypes));
    put(dict, "started", Ref(PyLong_FromLongLong(tracer.started)));
    put(dict, "stopped", Ref(PyLong_FromLongLong(tracer.stopped)));
    put(dict, "live_bytes", Ref(PyLong_FromLongLong(tracer.live_bytes)));
    return found.release();
  });
}

// A handle for _trace_end; None without a recording.
PyObject* begin_named(PyObject* name, TraceKind kind) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t length = 0;
    const char* utf8 = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &length) : nullptr;
    if (!utf8) {
      if (PyErr_Occurred()) return nullptr;
      fail_type("record_function: name must be a str; got ", Py_TYPE(name)->tp_name);
    }
    TraceRange range = open_range({utf8, static_cast<size_t>(length)}, kind);
    if (range.index < 0) Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(static_cast<uint64_t>(range.session) << 32 |
                                       static_cast<uint32_t>(range.index));
  });
}
// A range of record_function.
PyObject* trace_begin(PyObject*, PyObject* name) { return begin_named(name, TraceKind::range); }
// Work that is written in Python.
PyObject* begin_call(PyObject*, PyObject* name) { return begin_named(name, TraceKind::call); }
PyObject* trace_end(PyObject*, PyObject* handle) {
  return guarded([&]() -> PyObject* {
    if (handle == Py_None) Py_RETURN_NONE;
    uint64_t packed = PyLong_AsUnsignedLongLong(handle);
    if (PyErr_Occurred()) return nullptr;
    close_range({static_cast<int32_t>(packed & 0xffffffff), static_cast<uint32_t>(packed >> 32)});
    Py_RETURN_NONE;
  });
}
// Ends the recording and forgets it: a forked process has no part in its parent's.
PyObject* abandon(PyObject*, PyObject*) {
  if (tracer.running()) {
    tracer.stop();
    tracer.clear();
  }
  Py_RETURN_NONE;
}
PyObject* running(PyObject*, PyObject*) { return PyBool_FromLong(tracer.running()); }

PyMethodDef trace_functions[] = {{"_trace_start", start, METH_VARARGS, nullptr},
                                 {"_trace_stop", stop, METH_NOARGS, nullptr},
                                 {"_trace_begin", trace_begin, METH_O, nullptr},
                                 {"_trace_begin_call", begin_call, METH_O, nullptr},
                                 {"_trace_end", trace_end, METH_O, nullptr},
                                 {"_trace_running", running, METH_NOARGS, nullptr},
                                 {"_trace_abandon", abandon, METH_NOARGS, nullptr},
                                 {}};

}  // namespace

void add_trace(PyObject* module) {
  if (PyModule_AddFunctions(module, trace_functions) < 0) throw PythonError();
}

}  // namespace clew::python
