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
};

struct Overload {
  static constexpr size_t small_attrs = 64;  // bytes
  const OpDef* op = nullptr;
  std::vector<Param> params;
  std::vector<std::string> outputs;  // names, empty when unnamed
  int output_count = 1;
  bool returns_list = false;
  int positional = 0;  // parameters that may be given by position
  int tensors = 0;     // leading tensor parameters, a list counted as one
  bool has_inplace_flag = false;
  bool has_operand = false;
  // A call with only tensors, from `fewest` to `most` of them, needs no matching: the parameters
  // after them have defaults. most is 0 where there is no such call.
  int fewest = 0, most = 0;
  // Nor does one with all of the tensors and then ints only, from `fewest_ints` to `most_ints` of
  // them. most_ints is 0 where there is no such call.
  int fewest_ints = 0, most_ints = 0;
  // Nor does one with a list of tensors and then ints, which may be named: all parameters are
  // such.
  bool list_and_ints = false;
  void* defaults = nullptr;             // an attribute struct holding the default values
  PyTypeObject* result_type = nullptr;  // named tuple, made when first needed
};

std::unique_ptr<Overload> parse_signature(const OpDef& op);

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
