// What calling an nn.Module and reading its attributes cost: the base class that holds __call__,
// and the look-up of parameters, children and buffers.
// May include: python/bridge.h.
// Invariant: the outcome is that of the plain Python way (Module.__getattr__, call_with_hooks);
// only the way is shorter.
#include <algorithm>
#include <array>
#include <vector>

#include "python/provenance.h"

namespace clew::python {

namespace {

struct Names {
  PyObject* forward = PyUnicode_InternFromString("forward");
  PyObject* hooked = PyUnicode_InternFromString("_hooked");
  PyObject* getattr = PyUnicode_InternFromString("__getattr__");
  PyObject* getattribute = PyUnicode_InternFromString("__getattribute__");
  std::array<PyObject*, 3> tables = {PyUnicode_InternFromString("_parameters"),
                                     PyUnicode_InternFromString("_modules"),
                                     PyUnicode_InternFromString("_buffers")};
};
const Names& names() {
  static const Names n;
  return n;
}

// What a forward() written in Python does: one call of a function of the core.
struct Shortcut {
  PyObject* forward = nullptr;    // owned: the function in the class
  PyObject* callee = nullptr;     // owned
  PyObject* arguments = nullptr;  // owned tuple: attributes' names, None for the input
  PyObject* unset = nullptr;      // owned tuple: attributes that must be None or False
  PyObject* home = nullptr;       // owned dict: where forward() looks the callee up; or None
  PyObject* name = nullptr;       // owned: by which name
  uint64_t home_version = 0;      // of `home`, when it was last seen to hold the callee

  // The function there may have been replaced.
  bool is_in_place() {
    if (home == Py_None) return true;
#if PY_VERSION_HEX < 0x030c0000
    uint64_t version = reinterpret_cast<PyDictObject*>(home)->ma_version_tag;
    if (version == home_version) [[likely]]
      return true;
#endif
    if (PyDict_GetItemWithError(home, name) != callee) return false;
#if PY_VERSION_HEX < 0x030c0000
    home_version = version;
#endif
    return true;
  }
};
std::vector<Shortcut> shortcuts;
constexpr Py_ssize_t most_arguments = 7;

PyTypeObject* module_base_type = nullptr;
PyObject* call_with_hooks = nullptr;  // nn.modules._hooks.call_with_hooks
bool every_module_hooked = false;

PyObject* module_getattro(PyObject* self, PyObject* name);

// `self.name` from the instance or its parameters (borrowed), unless the class defines the name;
// null if there is none.
PyObject* own_or_parameter(PyObject* self, PyObject* own, PyObject* name) {
  if (_PyType_Lookup(Py_TYPE(self), name)) return nullptr;
  if (PyObject* found = PyDict_GetItemWithError(own, name)) return found;
  PyObject* parameters = PyDict_GetItemWithError(own, names().tables[0]);
  return parameters && PyDict_Check(parameters) ? PyDict_GetItemWithError(parameters, name)
                                                : nullptr;
}

PyObject* call_shortcut(const Shortcut& s, PyObject* const* found, PyObject* input) {
  PyObject* stack[most_arguments];
  Ref kept[most_arguments];  // another thread may put others in their places
  const Py_ssize_t n = PyTuple_GET_SIZE(s.arguments);
  for (Py_ssize_t i = 0; i < n; ++i) {
    stack[i] = found[i] ? found[i] : input;
    kept[i] = Ref(Py_NewRef(stack[i]));
  }
  return PyObject_Vectorcall(s.callee, stack, static_cast<size_t>(n), nullptr);
}

#if PY_VERSION_HEX < 0x030c0000
// What was found for a module without hooks stays true while its class and the two dicts keep their
// versions, which no other class or dict ever has.
uint64_t version_of(PyObject* dict) {
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}
struct Found {
  uint64_t own_version = 0, parameters_version = 0;
  PyTypeObject* type = nullptr;
  unsigned type_version = 0;
  uint32_t shortcut = 0;
  PyObject* parameters = nullptr;            // lent by the module's dict
  PyObject* arguments[most_arguments] = {};  // lent by these dicts; null for the input
};
constexpr size_t found_count = 256;
Found found_before[found_count];
Found& found_for(PyObject* own) {
  return found_before[reinterpret_cast<uintptr_t>(own) / 64 % found_count];
}
bool still_true(const Found& f, PyTypeObject* type, PyObject* own) {
  return f.own_version == version_of(own) && f.type == type &&
         PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) &&
         f.type_version == type->tp_version_tag &&
         f.parameters_version == version_of(f.parameters) && shortcuts[f.shortcut].is_in_place();
}
#endif

// Null, perhaps without an error set, where forward() must be called itself.
PyObject* take_shortcut(PyObject* self, PyObject* own, PyObject* input) {
  if (Py_TYPE(self)->tp_getattro != module_getattro) return nullptr;  // a way of its own
  PyObject* function = _PyType_Lookup(Py_TYPE(self), names().forward);
  auto s = std::find_if(shortcuts.begin(), shortcuts.end(),
                        [&](const Shortcut& known) { return known.forward == function; });
  if (s == shortcuts.end() || PyDict_GetItemWithError(own, names().forward)) return nullptr;
  if (!s->is_in_place()) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(s->unset); ++i) {
    PyObject* value = own_or_parameter(self, own, PyTuple_GET_ITEM(s->unset, i));
    if (value != Py_None && value != Py_False) return nullptr;
  }
  PyObject* arguments[most_arguments] = {};
  Ref kept[most_arguments];  // looking the next one up may run a key's own comparison
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(s->arguments); ++i) {
    PyObject* name = PyTuple_GET_ITEM(s->arguments, i);
    if (name == Py_None) continue;
    arguments[i] = own_or_parameter(self, own, name);
    if (!arguments[i]) return nullptr;
    kept[i] = Ref(Py_NewRef(arguments[i]));
  }
#if PY_VERSION_HEX < 0x030c0000
  PyTypeObject* type = Py_TYPE(self);
  PyObject* parameters = PyDict_GetItemWithError(own, names().tables[0]);
  if (parameters && PyDict_Check(parameters) &&
      PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) {
    Found& f = found_for(own);
    f = {.own_version = version_of(own),
         .parameters_version = version_of(parameters),
         .type = type,
         .type_version = type->tp_version_tag,
         .shortcut = static_cast<uint32_t>(s - shortcuts.begin()),
         .parameters = parameters};
    std::copy_n(arguments, most_arguments, f.arguments);
  }
#endif
  return call_shortcut(*s, arguments, input);
}

PyObject* forward(PyObject* self, PyObject* args, PyObject* kwargs) {
  bool hooked = every_module_hooked;
  if (!hooked) {
    Ref own(PyObject_GenericGetDict(self, nullptr));
    if (!own) return nullptr;
    const bool alone = PyTuple_GET_SIZE(args) == 1 && !(kwargs && PyDict_GET_SIZE(kwargs) > 0);
#if PY_VERSION_HEX < 0x030c0000
    if (const Found& f = found_for(own.get()); alone && still_true(f, Py_TYPE(self), own.get()))
        [[likely]]
      return call_shortcut(shortcuts[f.shortcut], f.arguments, PyTuple_GET_ITEM(args, 0));
#endif
    hooked = PyDict_GetItemWithError(own.get(), names().hooked) != nullptr;
    if (!hooked && PyErr_Occurred()) return nullptr;
    if (!hooked && alone) {
      PyObject* result = take_shortcut(self, own.get(), PyTuple_GET_ITEM(args, 0));
      if (result || PyErr_Occurred()) return result;
    }
  }
  if (hooked) {
    Ref empty(kwargs ? Py_NewRef(kwargs) : PyDict_New());
    if (!empty) return nullptr;
    return PyObject_CallFunctionObjArgs(call_with_hooks, self, args, empty.get(), nullptr);
  }
  Ref own(PyObject_GetAttr(self, names().forward));
  if (!own) return nullptr;
  if (kwargs && PyDict_GET_SIZE(kwargs) > 0) return PyObject_Call(own.get(), args, kwargs);
  // One free place in front lets a bound method put its object there.
  constexpr Py_ssize_t most = 7;
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (n > most) return PyObject_Call(own.get(), args, nullptr);
  PyObject* stack[most + 1] = {};
  for (Py_ssize_t i = 0; i < n; ++i) stack[i + 1] = PyTuple_GET_ITEM(args, i);
  return PyObject_Vectorcall(own.get(), stack + 1,
                             static_cast<size_t>(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}

// Module.__call__: forward itself, unless hooks were registered for this module or for all.
PyObject* module_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  ModuleCall call(self);
  PyObject* result = forward(self, args, kwargs);
  if (!result) [[unlikely]]
    call.name_module();
  return result;
}

// Where a member was found, and in how many tables the search ended.
struct Member {
  PyObject* value = nullptr;             // lent by the last table
  std::array<PyObject*, 3> tables = {};  // lent by the module's dict
  size_t searched = 0;
};
// A parameter, child or buffer; no value, perhaps without an error set, where there is none.
Member member(PyObject* own, PyObject* name) {
  Member m;
  for (PyObject* key : names().tables) {
    PyObject* table = PyDict_GetItemWithError(own, key);
    if (!table || !PyDict_Check(table)) {
      if (PyErr_Occurred()) return m;
      continue;
    }
    m.tables[m.searched++] = table;
    m.value = PyDict_GetItemWithError(table, name);
    if (m.value || PyErr_Occurred()) return m;
  }
  return m;
}

#if PY_VERSION_HEX < 0x030c0000
// The same for members: what was found stays true while the class, the module's dict and the tables
// searched keep their versions.
struct FoundMember {
  PyObject* name = nullptr;  // owned, so that no other gets its address
  uint64_t own_version = 0;
  unsigned type_version = 0;
  std::array<uint64_t, 3> versions = {};
  Member member;
};
constexpr size_t member_count = 512;
FoundMember members_before[member_count];
FoundMember& member_for(PyObject* own, PyObject* name) {
  return members_before[(reinterpret_cast<uintptr_t>(own) / 64 * 31 +
                         reinterpret_cast<uintptr_t>(name) / 16) %
                        member_count];
}
bool still_true(const FoundMember& f, PyTypeObject* type, PyObject* own, PyObject* name) {
  if (f.name != name || f.own_version != version_of(own) ||
      f.type_version != type->tp_version_tag ||
      !PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG))
    return false;
  for (size_t i = 0; i < f.member.searched; ++i)
    if (f.versions[i] != version_of(f.member.tables[i])) return false;
  return true;
}
void remember(PyTypeObject* type, PyObject* own, PyObject* name, const Member& m) {
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return;
  FoundMember& f = member_for(own, name);
  f.own_version = version_of(own);
  f.type_version = type->tp_version_tag;
  f.member = m;
  for (size_t i = 0; i < m.searched; ++i) f.versions[i] = version_of(m.tables[i]);
  Py_XSETREF(f.name, Py_NewRef(name));
}
#endif

PyObject* module_getattro(PyObject* self, PyObject* name) {
#if PY_VERSION_HEX < 0x030c0000
  if (PyObject** at = _PyObject_GetDictPtr(self); at && *at) {
    const FoundMember& f = member_for(*at, name);
    if (still_true(f, Py_TYPE(self), *at, name)) [[likely]]
      return Py_NewRef(f.member.value);
  }
#endif
  // Properties and methods, found in the type, go the usual way; what is left lies in the instance.
  if (!PyUnicode_Check(name) || _PyType_Lookup(Py_TYPE(self), name)) {
    PyObject* found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    // A property raised AttributeError, so Module.__getattr__ is called next.
    Ref own(PyObject_GenericGetDict(self, nullptr));
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    found = own ? Py_XNewRef(member(own.get(), name).value) : nullptr;
    if (found || PyErr_Occurred()) {
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(traceback);
      return found;
    }
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  Ref own(PyObject_GenericGetDict(self, nullptr));
  if (!own) return nullptr;
  PyObject* found = PyDict_GetItemWithError(own.get(), name);
  if (found) return Py_NewRef(found);
  if (PyErr_Occurred()) return nullptr;
  const Member m = member(own.get(), name);
  if (m.value) {
#if PY_VERSION_HEX < 0x030c0000
    remember(Py_TYPE(self), own.get(), name, m);
#endif
    return Py_NewRef(m.value);
  }
  if (PyErr_Occurred()) return nullptr;
  // Sets the name and the object, which suggestions of similar names need.
  PyObject_GenericGetAttr(self, name);
  return nullptr;
}

// Lets a subclass of Module look its attributes up here, unless it has a way of its own. The slot
// is set by hand: Module has a Python __getattr__ for super() to find, and with that CPython would
// fill it with the slow one.
PyObject* quick_attributes(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !PyType_Check(args[0]) || !PyType_Check(args[1]))
      fail_type("_quick_attributes: two classes are expected");
    auto* type = reinterpret_cast<PyTypeObject*>(args[0]);
    auto* base = reinterpret_cast<PyTypeObject*>(args[1]);
    if (!PyType_IsSubtype(type, module_base_type) || !PyType_IsSubtype(base, module_base_type))
      fail_type("_quick_attributes: subclasses of ModuleBase are expected");
    if (_PyType_Lookup(type, names().getattr) == _PyType_Lookup(base, names().getattr) &&
        _PyType_Lookup(type, names().getattribute) ==
            _PyType_Lookup(&PyBaseObject_Type, names().getattribute))
      type->tp_getattro = module_getattro;
    Py_RETURN_NONE;
  });
}

PyObject* set_call_with_hooks(PyObject*, PyObject* callable) {
  Py_XSETREF(call_with_hooks, Py_NewRef(callable));
  Py_RETURN_NONE;
}

PyObject* hook_every_module(PyObject*, PyObject* on) {
  every_module_hooked = PyObject_IsTrue(on) == 1;
  Py_RETURN_NONE;
}

// (forward, callee, arguments, unset, home, name)
PyObject* add_shortcut(PyObject*, PyObject* args) {
  Shortcut s;
  if (!PyArg_ParseTuple(args, "OOO!O!OU:_add_shortcut", &s.forward, &s.callee, &PyTuple_Type,
                        &s.arguments, &PyTuple_Type, &s.unset, &s.home, &s.name))
    return nullptr;
  return guarded([&]() -> PyObject* {
    if (s.home != Py_None && !PyDict_Check(s.home))
      fail_type("_add_shortcut: home must be a dict or None");
    if (PyTuple_GET_SIZE(s.arguments) > most_arguments)
      fail_type("_add_shortcut: at most ", most_arguments, " arguments; got ",
                PyTuple_GET_SIZE(s.arguments));
    for (PyObject* o : {s.forward, s.callee, s.arguments, s.unset, s.home, s.name}) Py_INCREF(o);
    PyUnicode_InternInPlace(&s.name);  // found by its address
    shortcuts.push_back(s);
    Py_RETURN_NONE;
  });
}

PyMethodDef module_base_functions[] = {
    {"_add_shortcut", add_shortcut, METH_VARARGS, nullptr},
    {"_quick_attributes", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(quick_attributes)),
     METH_FASTCALL, nullptr},
    {"_set_call_with_hooks", set_call_with_hooks, METH_O, nullptr},
    {"_hook_every_module", hook_every_module, METH_O, nullptr},
    {}};

}  // namespace

void add_module_base(PyObject* module) {
  PyType_Slot slots[] = {
      slot(Py_tp_call, module_call), slot(Py_tp_doc, "Holds __call__ of nn.Module."), {0, nullptr}};
  PyType_Spec spec = {"clew._C.ModuleBase", sizeof(PyObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  module_base_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "ModuleBase", reinterpret_cast<PyObject*>(module_base_type));
  if (PyModule_AddFunctions(module, module_base_functions) < 0) throw PythonError();
}

}  // namespace clew::python
