// The text of an op's signature, taken apart.
// May include: base.
// Invariant: parts are views of the text, which outlives them.
#pragma once
#include <string_view>
#include <vector>

namespace clew {

// "int[2]? size=None": a type word, what is marked on it, a name, a default.
struct SignatureParam {
  std::string_view kind;  // the type as written, with its marks
  std::string_view word;  // the type alone
  bool list = false;
  int repeat = 0;         // int[2]: one int stands for two
  bool optional = false;  // ?
  bool varargs = false;   // int[]*: view(2, 3)
  bool keyword_only = false;
  std::string_view name;
  bool has_default = false;
  std::string_view default_text;
};

struct SignatureText {
  std::vector<SignatureParam> params;
  std::string_view result;                // what stands behind the arrow
  std::vector<std::string_view> outputs;  // names, of several; empty where one has none
  int output_count = 1;
  bool returns_list = false;
};

// Of "name(Tensor input, *, dtype? dtype=None) -> Tensor". Throws where the text is none.
SignatureText read_signature(std::string_view text);

}  // namespace clew
