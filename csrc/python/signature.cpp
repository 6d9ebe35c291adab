// The parser of signature texts.
// May include: python/bridge.h.
// Invariant: a signature that does not fit its OpDef fails at import with its text in the message.
#include "python/signature.h"

#include <array>
#include <charconv>
#include <cmath>

#include "python/attributes.h"

namespace clew::python {

namespace {

struct Reader {
  std::string_view s;
  const OpDef& op;
  size_t at = 0;

  [[noreturn]] void bad(const std::string& why) const {
    fail_internal("signature '", op.signature, "': ", why, " at position ", at);
  }
  void skip() {
    while (at < s.size() && (s[at] == ' ' || s[at] == '\n')) ++at;
  }
  bool take(std::string_view t) {
    skip();
    if (s.substr(at, t.size()) != t) return false;
    at += t.size();
    return true;
  }
  void expect(std::string_view t) {
    if (!take(t)) bad("expected '" + std::string(t) + "'");
  }
  std::string word() {
    skip();
    size_t from = at;
    while (at < s.size() &&
           (std::isalnum(static_cast<unsigned char>(s[at])) || s[at] == '_' || s[at] == '.'))
      ++at;
    if (from == at) bad("expected a name");
    return std::string(s.substr(from, at - from));
  }
  // The text of a default value: up to a comma or closing parenthesis outside brackets and quotes.
  std::string literal() {
    skip();
    size_t from = at;
    int depth = 0;
    bool quoted = false;
    for (; at < s.size(); ++at) {
      char c = s[at];
      if (c == '\'') quoted = !quoted;
      if (quoted) continue;
      if (c == '[' || c == '(') ++depth;
      if (c == ']' || (c == ')' && depth > 0)) {
        --depth;
        continue;
      }
      if (depth == 0 && (c == ',' || c == ')')) break;
    }
    return std::string(s.substr(from, at - from));
  }
};

ParamKind kind_of(const std::string& type, bool list, bool optional, Reader& r) {
  if (type == "Operand") return ParamKind::Operand;
  if (type == "Tensor")
    return list ? ParamKind::TensorList : optional ? ParamKind::OptTensor : ParamKind::Tensor;
  if (type == "int") {
    if (list) return optional ? ParamKind::OptInts : ParamKind::Ints;
    return optional ? ParamKind::OptInt : ParamKind::Int;
  }
  if (type == "bool") return optional ? ParamKind::OptBool : ParamKind::Bool;
  if (type == "float") return optional ? ParamKind::OptFloat : ParamKind::Float;
  if (type == "Scalar") return optional ? ParamKind::OptNumber : ParamKind::Number;
  if (type == "str") return optional ? ParamKind::OptText : ParamKind::Text;
  if (type == "dtype") return ParamKind::DType;
  if (type == "Generator") return ParamKind::Generator;
  r.bad("unknown type " + type);
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

double number(const std::string& text, Reader& r) {
  if (text == "inf") return INFINITY;
  if (text == "-inf") return -INFINITY;
  char* end = nullptr;
  double v = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end) r.bad("bad default " + text);
  return v;
}
int64_t integer(const std::string& text, Reader& r) {
  int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size()) r.bad("bad default " + text);
  return v;
}
bool looks_integral(const std::string& text) {
  return text.find_first_of(".e") == std::string::npos && text.find("inf") == std::string::npos;
}

void store_default(char* field, FieldKind kind, const Param& p, const std::string& text,
                   Reader& r) {
  bool none = text == "None";
  switch (kind) {
    case FieldKind::Int: *reinterpret_cast<int64_t*>(field) = integer(text, r); break;
    case FieldKind::Bool: *reinterpret_cast<bool*>(field) = text == "True"; break;
    case FieldKind::Float: *reinterpret_cast<double*>(field) = number(text, r); break;
    case FieldKind::Number:
      if (none)
        *reinterpret_cast<Scalar*>(field) = Scalar();
      else if (text == "True" || text == "False")
        *reinterpret_cast<Scalar*>(field) = Scalar(text == "True");
      else if (looks_integral(text))
        *reinterpret_cast<Scalar*>(field) = Scalar(integer(text, r));
      else
        *reinterpret_cast<Scalar*>(field) = Scalar(number(text, r));
      break;
    case FieldKind::Text:
      if (!none) {
        if (text.size() < 2 || text.front() != '\'') r.bad("a text default needs quotes");
        *reinterpret_cast<Str*>(field) = Str(std::string_view(text).substr(1, text.size() - 2));
      }
      break;
    case FieldKind::OptInt:
      if (!none) *reinterpret_cast<std::optional<int64_t>*>(field) = integer(text, r);
      break;
    case FieldKind::OptBool:
      if (!none) *reinterpret_cast<std::optional<bool>*>(field) = text == "True";
      break;
    case FieldKind::OptFloat:
      if (!none) *reinterpret_cast<std::optional<double>*>(field) = number(text, r);
      break;
    case FieldKind::Ints:
    case FieldKind::OptInts: {
      if (none) break;
      Dims d;
      if (text[0] == '[' || text[0] == '(') {
        size_t i = 1;
        while (i < text.size() - 1) {
          size_t next = text.find(',', i);
          if (next == std::string::npos) next = text.size() - 1;
          std::string part = text.substr(i, next - i);
          if (part.find_first_not_of(' ') != std::string::npos)
            d.push_back(integer(part.substr(part.find_first_not_of(' ')), r));
          i = next + 1;
        }
      } else {
        d = Dims(std::max(p.repeat, 1), integer(text, r));
      }
      if (kind == FieldKind::Ints)
        *reinterpret_cast<Dims*>(field) = d;
      else
        *reinterpret_cast<std::optional<Dims>*>(field) = d;
      break;
    }
    case FieldKind::OptDType:
    case FieldKind::Generator:
      if (!none) r.bad("only None is a default here");
      break;
  }
}

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

// Functions that take numbers alone, which then stand for tensors without dimensions.
static bool adds_numbers(std::string_view name) {
  constexpr auto names =
      std::to_array<std::string_view>({"add", "div", "divide", "floor_divide", "mul", "multiply",
                                       "sub", "subtract", "true_divide"});
  return std::find(names.begin(), names.end(), name) != names.end();
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

std::unique_ptr<Overload> parse_signature(const OpDef& op) {
  Reader r{op.signature, op};
  auto o = std::make_unique<Overload>();
  o->op = &op;
  r.word();
  r.expect("(");
  const AttrInfo* info = op.attrs;
  if (info) {
    o->defaults = ::operator new (info->size, std::align_val_t{16});
    info->construct(o->defaults);
  }
  bool keyword_only = false;
  int field = 0;
  if (!r.take(")")) {
    do {
      if (r.take("*")) {
        keyword_only = true;
        continue;
      }
      Param p;
      std::string type = r.word();
      bool list = false;
      bool optional = r.take("?");
      if (r.take("[")) {
        list = true;
        if (!r.take("]")) {
          p.repeat = std::stoi(r.word());
          r.expect("]");
        }
        if (r.take("?")) optional = true;
        if (r.take("*")) p.varargs = true;
      }
      p.kind = kind_of(type, list, optional, r);
      p.name = r.word();
      p.key = checked(PyUnicode_InternFromString(p.name.c_str()));
      p.keyword_only = keyword_only;
      std::string text;
      if (r.take("=")) {
        p.has_default = true;
        text = r.literal();
      }
      if (p.kind == ParamKind::Bool && p.name == "inplace") p.kind = ParamKind::Inplace;
      bool tensor = p.kind == ParamKind::Tensor || p.kind == ParamKind::Operand ||
                    p.kind == ParamKind::OptTensor || p.kind == ParamKind::TensorList;
      if (p.kind == ParamKind::Operand && !adds_numbers(op_name(op))) o->needs_tensor = true;
      if (tensor) {
        ++o->tensors;
        o->takes_list = o->takes_list || p.kind == ParamKind::TensorList;
        if (p.kind != ParamKind::Tensor && p.has_default && text != "None")
          r.bad("a tensor's default can only be None");
      } else if (p.kind != ParamKind::Inplace) {
        if (!info || field >= info->count) r.bad("the attribute struct has no field for " + p.name);
        if (info->fields[static_cast<size_t>(field)].kind != field_kind_of(p.kind))
          r.bad("the attribute struct's field has another type than " + p.name);
        p.field = field++;
        if (p.has_default)
          store_default(
              static_cast<char*>(o->defaults) + info->fields[static_cast<size_t>(p.field)].offset,
              info->fields[static_cast<size_t>(p.field)].kind, p, text, r);
      }
      if (!keyword_only) ++o->positional;
      if (!p.has_default) o->required |= 1u << o->params.size();
      o->places.push_back(place_of(p, info));
      o->params.push_back(std::move(p));
      if (o->params.size() > max_params || (info && info->size > max_attr_bytes))
        r.bad("too many parameters");
    } while (r.take(","));
    r.expect(")");
  }
  if (info && field != info->count)
    r.bad("the attribute struct has more fields than the signature has arguments");
  r.expect("->");
  if (r.take("(")) {
    o->output_count = 0;
    do {
      r.expect("Tensor");
      r.skip();
      if (r.at < r.s.size() && r.s[r.at] != ',' && r.s[r.at] != ')') o->outputs.push_back(r.word());
      ++o->output_count;
    } while (r.take(","));
    r.expect(")");
  } else {
    r.expect("Tensor");
    o->returns_list = r.take("[]");
  }
  count_plain_tensors(*o);
  return o;
}

}  // namespace clew::python
