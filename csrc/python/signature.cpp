// What an op's signature says of its arguments, and the default values of its attributes.
// May include: python/bridge.h, graph.
// Invariant: a signature that does not fit its OpDef fails at import with its text in the message.
#include "python/signature.h"

#include <charconv>
#include <cmath>

#include "graph/signature.h"
#include "python/attributes.h"

namespace clew::python {

namespace {

[[noreturn]] void bad(const OpDef& op, std::string_view name, std::string_view why) {
  fail_internal("signature '", op.signature, "': ", name, ": ", why);
}

ParamKind kind_of(const OpDef& op, const SignatureParam& p) {
  const std::string_view type = p.word;
  if (type == "Operand") return ParamKind::Operand;
  if (type == "Tensor")
    return p.list ? ParamKind::TensorList : p.optional ? ParamKind::OptTensor : ParamKind::Tensor;
  if (type == "int") {
    if (p.list) return p.optional ? ParamKind::OptInts : ParamKind::Ints;
    return p.optional ? ParamKind::OptInt : ParamKind::Int;
  }
  if (type == "bool" && p.name == "inplace") return ParamKind::Inplace;
  if (type == "bool") return p.optional ? ParamKind::OptBool : ParamKind::Bool;
  if (type == "float") return p.optional ? ParamKind::OptFloat : ParamKind::Float;
  if (type == "Scalar") return p.optional ? ParamKind::OptNumber : ParamKind::Number;
  if (type == "str") return p.optional ? ParamKind::OptText : ParamKind::Text;
  if (type == "dtype") return ParamKind::DType;
  if (type == "Generator") return ParamKind::Generator;
  bad(op, p.name, "its type is unknown");
}

FieldKind field_kind_of(ParamKind k) {
  switch (k) {
    case ParamKind::Int: return FieldKind::Int;
    case ParamKind::Ints: return FieldKind::Ints;
    case ParamKind::OptInt: return FieldKind::OptInt;
    case ParamKind::OptInts: return FieldKind::OptInts;
    case ParamKind::Bool: return FieldKind::Bool;
    case ParamKind::OptBool: return FieldKind::OptBool;
    case ParamKind::Float: return FieldKind::Float;
    case ParamKind::OptFloat: return FieldKind::OptFloat;
    case ParamKind::Number:
    case ParamKind::OptNumber: return FieldKind::Number;
    case ParamKind::Text:
    case ParamKind::OptText: return FieldKind::Text;
    case ParamKind::DType: return FieldKind::OptDType;
    default: return FieldKind::Generator;
  }
}

// Reads the text of a default value.
class Default {
  const OpDef& op_;
  const SignatureParam& p_;

  [[noreturn]] void bad() const { python::bad(op_, p_.name, "its default does not fit its type"); }

 public:
  Default(const OpDef& op, const SignatureParam& p) : op_(op), p_(p) {}

  template <class T> void read_number(std::string_view text, T& v) const {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error != std::errc() || end != text.data() + text.size()) bad();
  }
  void read(std::string_view text, int64_t& v) const { read_number(text, v); }
  void read(std::string_view text, double& v) const { read_number(text, v); }
  void read(std::string_view text, bool& v) const {
    if (text != "True" && text != "False") bad();
    v = text == "True";
  }
  void read(std::string_view text, Scalar& v) const {
    if (text == "None") {
      v = Scalar();
    } else if (text == "True" || text == "False") {
      v = Scalar(text == "True");
    } else if (text.find_first_of(".en") == std::string_view::npos) {  // not of a float, nor inf
      int64_t integer = 0;
      read(text, integer);
      v = Scalar(integer);
    } else {
      double number = 0;
      read(text, number);
      v = Scalar(number);
    }
  }
  void read(std::string_view text, Str& v) const {
    if (text == "None") return;
    if (text.size() < 2 || text.front() != '\'') bad();
    v = Str(text.substr(1, text.size() - 2));
  }
  void read(std::string_view text, Dims& v) const {
    if (text.starts_with('[') || text.starts_with('(')) {
      text = text.substr(1, text.size() - 2);
      while (!text.empty()) {
        const size_t end = std::min(text.find(','), text.size());
        std::string_view part = text.substr(0, end);
        part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
        int64_t n = 0;
        if (!part.empty()) {
          read(part, n);
          v.push_back(n);
        }
        text.remove_prefix(std::min(end + 1, text.size()));
      }
    } else {
      int64_t n = 0;
      read(text, n);
      v = Dims(std::max(p_.repeat, 1), n);
    }
  }
  void read(std::string_view, DType&) const { bad(); }   // only None is a default
  void read(std::string_view text, Generator*&) const {  // likewise
    if (text != "None") bad();
  }
  template <class T> void read(std::string_view text, std::optional<T>& v) const {
    if (text != "None") read(text, v.emplace());
  }
};

}  // namespace

// Sets fewest and most: how many tensors, all by position, make a call.
static void count_plain_tensors(Overload& o) {
  int leading = 0, required = 0;
  bool open = true;
  for (size_t i = 0; i < o.params.size(); ++i) {
    const Param& p = o.params[i];
    bool plain = p.kind == ParamKind::Tensor || p.kind == ParamKind::Operand ||
                 p.kind == ParamKind::OptTensor;
    open = open && plain && !p.keyword_only;
    if (open) ++leading;
    if (!p.has_default) required = static_cast<int>(i) + 1;
  }
  if (required > leading || leading == 0 || o.tensors > 8) return;
  o.fewest = std::max(required, 1);
  o.most = leading;
}

// What the parameter takes and what it refuses without a closer look, where a tensor is not read
// as a number.
static Place place_of(const Param& p, const AttrInfo* info) {
  unsigned takes = 0, asks = own_other;
  switch (p.kind) {
    case ParamKind::Tensor: takes = own_tensor; break;
    case ParamKind::Operand: takes = own_tensor | own_int | own_float | own_bool; break;
    case ParamKind::OptTensor: takes = own_tensor | own_none; break;
    case ParamKind::TensorList: takes = own_list; break;
    case ParamKind::OptInt: takes = own_none; [[fallthrough]];
    case ParamKind::Int: takes |= own_int; break;
    case ParamKind::OptInts: takes = own_none; [[fallthrough]];
    case ParamKind::Ints:
      takes |= own_list;
      if (p.takes_one_int()) takes |= own_int;
      break;
    case ParamKind::OptBool: takes = own_none; [[fallthrough]];
    case ParamKind::Bool:
    case ParamKind::Inplace: takes |= own_bool; break;
    case ParamKind::OptFloat: takes = own_none; [[fallthrough]];
    case ParamKind::Float:
      takes |= own_int | own_float;
      asks |= own_bool;
      break;
    case ParamKind::OptNumber: takes = own_none; [[fallthrough]];
    case ParamKind::Number: takes |= own_int | own_float | own_bool; break;
    case ParamKind::OptText: takes = own_none; [[fallthrough]];
    case ParamKind::Text: takes |= own_text; break;
    case ParamKind::DType: takes = own_none | own_dtype; break;
    case ParamKind::Generator: takes = own_none; break;
  }
  if (p.varargs) asks |= own_tensor;  // size(tensor) is size(2)
  Place place;
  place.takes = static_cast<uint16_t>(takes);
  place.refuses = static_cast<uint16_t>(~(takes | asks));
  place.kind = p.kind;
  place.varargs = p.varargs;
  place.keyword_only = p.keyword_only;
  place.repeat = p.repeat;
  place.key = p.key;
  if (p.field >= 0) place.offset = info->fields[static_cast<size_t>(p.field)].offset;
  return place;
}

// Takes the next parameter into the overload; `field` counts those of the attribute struct.
static void add_param(Overload& o, const SignatureParam& text, int& field) {
  const OpDef& op = *o.op;
  const AttrInfo* info = op.attrs;
  Param p;
  p.kind = kind_of(op, text);
  p.name = text.name;
  p.key = checked(PyUnicode_InternFromString(p.name.c_str()));
  p.repeat = text.repeat;
  p.varargs = text.varargs;
  p.keyword_only = text.keyword_only;
  p.has_default = text.has_default;
  const bool tensor = p.kind == ParamKind::Tensor || p.kind == ParamKind::Operand ||
                      p.kind == ParamKind::OptTensor || p.kind == ParamKind::TensorList;
  if (p.kind == ParamKind::Operand && !op.takes_numbers) o.needs_tensor = true;
  if (tensor) {
    ++o.tensors;
    o.takes_list = o.takes_list || p.kind == ParamKind::TensorList;
    if (p.kind != ParamKind::Tensor && p.has_default && text.default_text != "None")
      bad(op, p.name, "a tensor's default can only be None");
  } else if (p.kind != ParamKind::Inplace) {
    if (!info || field >= info->count) bad(op, p.name, "the attribute struct has no field for it");
    const AttrField& own = info->fields[static_cast<size_t>(field)];
    if (own.kind != field_kind_of(p.kind))
      bad(op, p.name, "the attribute struct's field has another type");
    p.field = field++;
    if (p.has_default)
      visit_field(own.kind, static_cast<void*>(static_cast<char*>(o.defaults) + own.offset),
                  [&](auto& v) { Default(op, text).read(text.default_text, v); });
  }
  if (!p.keyword_only) ++o.positional;
  if (!p.has_default) o.required |= 1u << o.params.size();
  o.places.push_back(place_of(p, info));
  o.params.push_back(std::move(p));
}

std::unique_ptr<Overload> parse_signature(const OpDef& op) {
  const SignatureText text = read_signature(op.signature);
  auto o = std::make_unique<Overload>();
  o->op = &op;
  const AttrInfo* info = op.attrs;
  if (info) {
    o->defaults = ::operator new (info->size, std::align_val_t{16});
    info->construct(o->defaults);
  }
  if (text.params.size() > max_params || (info && info->size > max_attr_bytes))
    bad(op, "the call", "it has too many parameters");
  int field = 0;
  for (const SignatureParam& p : text.params) add_param(*o, p, field);
  if (info && field != info->count)
    bad(op, "the attribute struct", "it has more fields than the signature has arguments");
  for (const std::string_view name : text.outputs) o->outputs.emplace_back(name);
  o->output_count = text.output_count;
  o->returns_list = text.returns_list;
  count_plain_tensors(*o);
  o->list_alone = o->takes_list && o->tensors == 1 && o->required == 1 && o->output_count == 1 &&
                  !o->returns_list && (op.kind != OpKind::Composite || op.quick);
  return o;
}

static PyObject* text_object(std::string_view s) {
  return checked(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}

PyObject* signature_parts(PyObject*, PyObject* text) {
  return guarded([&] {
    Py_ssize_t size = 0;
    const char* chars = PyUnicode_AsUTF8AndSize(text, &size);
    if (!chars) throw PythonError();
    const SignatureText parts = read_signature({chars, static_cast<size_t>(size)});
    const Ref params(checked(PyList_New(0)));
    for (const SignatureParam& p : parts.params) {
      const Ref part(checked(Py_BuildValue(
          "(NNNN)", text_object(p.kind), text_object(p.name), PyBool_FromLong(p.keyword_only),
          p.has_default ? text_object(p.default_text) : Py_NewRef(Py_None))));
      if (PyList_Append(params.get(), part.get()) < 0) throw PythonError();
    }
    return checked(Py_BuildValue("(ON)", params.get(), text_object(parts.result)));
  });
}

}  // namespace clew::python
