// An op's signature text, parsed once at import, and the default values of its attributes.
// May include: python/bridge.h.
// Invariant: parameters and the attribute struct's fields agree in number, order and kind; checked
// when parsed.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "python/bridge.h"

namespace clew::python {

enum class ParamKind : uint8_t {
  Tensor,
  Operand,  // a tensor or a Python number; one operand at least is a tensor
  OptTensor,
  TensorList,
  Int,
  Ints,
  OptInt,
  OptInts,
  Bool,
  OptBool,
  Float,
  OptFloat,
  Number,
  OptNumber,
  Text,
  OptText,
  DType,
  Generator,
  Inplace
};

struct Param {
  std::string name;
  PyObject* key = nullptr;  // interned name
  ParamKind kind = ParamKind::Tensor;
  int repeat = 0;        // int[2]: one int stands for two
  bool varargs = false;  // int[]*: view(2, 3)
  bool keyword_only = false;
  bool has_default = false;
  int field = -1;  // index into the attribute struct's fields
  // Of an int[]: whether an int alone stands for a list.
  bool takes_one_int() const {
    return kind == ParamKind::OptInts || repeat || varargs || name == "dim" || name == "dims";
  }
};

constexpr int max_params = 24;

// Python's and our own types that arguments mostly have, as bits.
constexpr uint16_t own_tensor = 1;
constexpr uint16_t own_int = 2;
constexpr uint16_t own_float = 4;
constexpr uint16_t own_bool = 8;
constexpr uint16_t own_none = 16;
constexpr uint16_t own_list = 32;  // tuple, list, Size
constexpr uint16_t own_text = 64;
constexpr uint16_t own_dtype = 128;
constexpr uint16_t own_other = 256;  // any other, or one of those through a subclass

// A parameter as call_at_once() reads it: all of a call's lie side by side.
struct Place {
  uint16_t takes = 0;    // arguments of these types fit,
  uint16_t refuses = 0;  // of these they do not; of the rest only the whole matching knows
  ParamKind kind = ParamKind::Tensor;
  bool varargs = false;
  bool keyword_only = false;
  int repeat = 0;
  uint16_t offset = 0;  // in the attribute struct
  PyObject* key = nullptr;
};

struct Overload {
  const OpDef* op = nullptr;
  std::vector<Param> params;
  std::vector<Place> places;         // of the same parameters
  uint32_t required = 0;             // bits of those without a default
  std::vector<std::string> outputs;  // names, empty when unnamed
  int output_count = 1;
  bool returns_list = false;
  int positional = 0;         // parameters that may be given by position
  int tensors = 0;            // leading tensor parameters, a list counted as one
  bool takes_list = false;    // of tensors
  bool list_alone = false;    // with one result: a list is all that a call must have
  bool needs_tensor = false;  // among the operands, the rest of which may be numbers
  // A call with only tensors, from `fewest` to `most` of them, needs no matching: the parameters
  // after them have defaults. most is 0 if the op cannot be called so.
  int fewest = 0, most = 0;
  void* defaults = nullptr;             // an attribute struct holding the default values
  PyTypeObject* result_type = nullptr;  // named tuple, made when first needed
};

std::unique_ptr<Overload> parse_signature(const OpDef& op);

// The parts of a signature text, for Python: ([(kind, name, by name only, default's text or None)],
// what stands behind the arrow).
PyObject* signature_parts(PyObject*, PyObject* text);

// All overloads of one public name.
struct FunctionEntry {
  std::string name;  // dotted
  std::vector<std::unique_ptr<Overload>> overloads;
  std::string short_name() const {
    size_t dot = name.rfind('.');
    return dot == std::string::npos ? name : name.substr(dot + 1);
  }
};

FunctionEntry* find_entry(std::string_view name);

}  // namespace clew::python
