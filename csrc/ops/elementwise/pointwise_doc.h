// Builders for functions of one and two numbers: signature and doc text put together while
// compiling.
// May include: base/text.h, graph/op.h, ops/calls/rules.h.
// Invariant: every text is a static array, so OpDefs stay constant data.
#pragma once
#include <string_view>

#include "base/text.h"
#include "graph/op.h"
#include "ops/calls/rules.h"

namespace clew {

constexpr bool dotted(const char* name) {
  for (; *name != '\0' && *name != '('; ++name) {
    if (*name == '.') return true;
  }
  return false;
}

consteval OpDef with_texts(OpDef s, const char* signature, const char* doc) {
  s.signature = signature;
  s.doc = doc;
  if (dotted(signature)) {
    s.inplace = false;
    s.offer = Offer::function;
  }
  return elementwise(s);
}

inline constexpr Saves input_saved = {.always = in(0)};
inline constexpr Saves both_saved = {.always = in(0) | in(1)};
inline constexpr Saves output_saved = {.always = out(0)};

// A function of one number; integers become floats.
template <Text name, Text sentence, Text formula, Text argument, Text printed>
consteval OpDef unary(OpDef s) {
  s.promote = Promote::to_float;
  return with_texts(s, joined<name, "(Tensor input) -> Tensor">,
                    joined<sentence, "\n\nout = ", formula,
                           "\n\nArgs:\n    input: any shape.\n"
                           "Returns:\n    a tensor of input's shape.\n\n>>> clew.",
                           name, "(", argument, ")\n", printed, "\n">);
}
// The same for functions that keep the dtype.
template <Text name, Text sentence, Text formula, Text argument, Text printed>
consteval OpDef unary_same(OpDef s) {
  OpDef op = unary<name, sentence, formula, argument, printed>(s);
  op.promote = Promote::same;
  return op;
}
// The same, of truth values as integers.
template <Text name, Text sentence, Text formula, Text argument, Text printed>
consteval OpDef unary_number(OpDef s) {
  OpDef op = unary<name, sentence, formula, argument, printed>(s);
  op.promote = Promote::to_number;
  return op;
}
// A test of each element.
template <Text name, Text sentence, Text formula, Text argument, Text printed>
consteval OpDef unary_test(const kernels::LoopTable* loops, OutDtype out_dtype = OutDtype::usual) {
  OpDef op = unary_same<name, sentence, formula, argument, printed>(
      {.result = Result::boolean,
       .loops = loops,
       .no_vjp = no_rule("a test has no derivative"),
       .out_dtype = out_dtype});
  op.inplace = false;
  return op;
}
// Which functions of two tensors take a Python number for the first or second one.
consteval bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  for (std::string_view n : names)
    if (n == name) return true;
  return false;
}
consteval bool number_first(std::string_view name) {
  return name.starts_with("bitwise_") || one_of(name, {"remainder", "floor_divide"});
}
consteval bool number_second(std::string_view name) {
  return number_first(name) || one_of(name, {"eq", "ne", "lt", "le", "gt", "ge", "fmod"});
}
template <Text name> consteval const char* binary_signature() {
  constexpr std::string_view text(name.chars, name.size);
  if constexpr (number_first(text))
    return joined<name, "(Operand input, Operand other) -> Tensor">;
  else if constexpr (number_second(text))
    return joined<name, "(Tensor input, Operand other) -> Tensor">;
  else
    return joined<name, "(Tensor input, Tensor other) -> Tensor">;
}
// A function of two numbers.
template <Text name, Text sentence, Text formula, Text arguments, Text printed>
consteval OpDef binary(OpDef s) {
  return with_texts(s, binary_signature<name>(),
                    joined<sentence, "\n\nout = ", formula,
                           "\n\nArgs:\n    input: the first operand.\n"
                           "    other: the second operand.\n"
                           "Returns:\n    a tensor of the broadcast shape.\n\n>>> clew.",
                           name, "(", arguments, ")\n", printed, "\n">);
}
// A comparison or a logical function of two numbers.
template <Text name, Text sentence, Text formula, Text arguments, Text printed>
consteval OpDef binary_test(const kernels::LoopTable* loops) {
  return binary<name, sentence, formula, arguments, printed>(
      {.result = Result::boolean, .loops = loops, .vjp = zero_vjp});  // of a write in place
}

// The op with `from`, where its text has it first, replaced by `to`.
template <const OpDef& op, Text from, Text to> struct Reworded {
  static constexpr std::string_view doc = op.doc;
  static constexpr size_t at = doc.find(std::string_view(from.chars, from.size));
  static_assert(at != doc.npos, "the text does not have this");
  static constexpr auto chars = [] {
    std::array<char, doc.size() - from.size + to.size + 1> all = {};
    char* end = std::copy_n(doc.data(), at, all.begin());
    end = std::copy_n(to.chars, to.size, end);
    std::copy(doc.begin() + at + from.size, doc.end(), end);
    return all;
  }();
  static constexpr OpDef def = [] {
    OpDef copy = op;
    copy.doc = chars.data();
    return copy;
  }();
};

// nn.functional's form of an op that takes `inplace` too; `shown` is the call in its example.
template <const OpDef& op, Text name, Text shown>
inline constexpr const char* functional_doc =
    Reworded<Reworded<op, shown, joined_text<"clew.nn.functional.", name, "(">>::def, "Returns:\n",
             "    inplace: whether to write the result into input.\nReturns:\n">::def.doc;

// F.x(input, inplace=False) of an op whose public form takes input alone.
template <const OpDef& plain, Text name, Text shown> consteval OpDef functional() {
  OpDef op =
      also(plain, joined<"nn.functional.", name, "(Tensor input, bool inplace=False) -> Tensor">,
           functional_doc<plain, name, shown>);
  op.inplace = true;
  op.offer = Offer::function;
  return op;
}

// The text of another name of an op: the first sentence, the name it stands for, what it returns,
// and the example with this name.
template <const OpDef& op, Text name> struct AliasDoc {
  static constexpr std::string_view doc = op.doc;
  static constexpr std::string_view old = [] {
    const std::string_view signature = op.signature;
    return signature.substr(0, signature.find('('));
  }();
  static constexpr size_t sentence = doc.find("\n\n");
  static constexpr size_t returns = doc.find("Returns:");
  static constexpr size_t example = doc.find(">>> ");
  // Where the example calls the old name: "clew.le(". Searching for "le" alone would match inside
  // "clew".
  static constexpr size_t used = [] {
    size_t at = doc.find(old, example);
    while (at != doc.npos && (doc[at - 1] != '.' || doc[at + old.size()] != '('))
      at = doc.find(old, at + 1);
    return at;
  }();
  static_assert(returns != doc.npos && used != doc.npos, "no Returns: or no call in the text");
  static constexpr std::string_view parts[] = {
      doc.substr(0, sentence),
      "\n\nAnother name of `clew.",
      old,
      "`.\n\n",
      doc.substr(returns, used - returns),
      std::string_view(name.chars, name.size),
      doc.substr(used + old.size()),
  };
  static constexpr auto chars = [] {
    constexpr size_t size = [] {
      size_t sum = 0;
      for (std::string_view part : parts) sum += part.size();
      return sum;
    }();
    std::array<char, size + 1> all = {};
    char* end = all.data();
    for (std::string_view part : parts) end = std::copy_n(part.data(), part.size(), end);
    return all;
  }();
};
template <const OpDef& op, Text name> consteval const char* alias_doc() {
  // Private forms have no example, and prelu's is one for both its homes.
  if constexpr (std::string_view(op.doc).find(">>> ") == std::string_view::npos)
    return op.doc;
  else
    return AliasDoc<op, name>::chars.data();
}

// Another public name of an op. The signature differs before the parameters only; names in a
// submodule are functions only.
template <const OpDef& op, Text name> struct Alias {
  static constexpr size_t rest_at =
      std::char_traits<char>::find(op.signature, 200, '(') - op.signature;
  static constexpr size_t rest_size = std::char_traits<char>::length(op.signature) - rest_at;
  static constexpr auto signature = [] {
    std::array<char, name.size + rest_size + 1> all = {};
    std::copy_n(name.chars, name.size, all.begin());
    std::copy_n(op.signature + rest_at, rest_size, all.begin() + name.size);
    return all;
  }();
  static constexpr OpDef def = [] {
    OpDef copy = also(op, signature.data(), alias_doc<op, name>());
    if (dotted(name.chars)) {
      copy.inplace = false;
      copy.offer = Offer::function;
    }
    return copy;
  }();
};
template <const OpDef& op, Text name> inline constexpr const OpDef* renamed = &Alias<op, name>::def;

}  // namespace clew
