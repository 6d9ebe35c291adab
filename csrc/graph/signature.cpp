// The reader of signature texts.
// May include: base, graph/signature.h.
// Invariant: a text that is no signature throws with the place that does not fit.
#include "graph/signature.h"

#include <cctype>

#include "base/error.h"

namespace clew {

namespace {

class Reader {
  std::string_view text_;
  size_t at_ = 0;

 public:
  explicit Reader(std::string_view text) : text_(text) {}
  [[noreturn]] void bad(std::string_view why) const {
    fail_internal("signature '", text_, "': ", why, " at position ", at_);
  }
  size_t at() const { return at_; }
  std::string_view between(size_t from, size_t to) const { return text_.substr(from, to - from); }
  std::string_view rest() {
    skip();
    return text_.substr(at_);
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(std::string_view t) {
    skip();
    if (text_.substr(at_, t.size()) != t) return false;
    at_ += t.size();
    return true;
  }
  void expect(std::string_view t) {
    if (take(t)) return;
    bad("another text was expected");
  }
  bool is_at_word() {
    skip();
    return at_ < text_.size() && is_of_word(text_[at_]);
  }
  std::string_view word() {
    if (!is_at_word()) bad("expected a name");
    const size_t from = at_;
    while (at_ < text_.size() && is_of_word(text_[at_])) ++at_;
    return between(from, at_);
  }
  int number() {
    int n = 0;
    for (const char c : word()) {
      if (c < '0' || c > '9' || n > 99) bad("expected a small number");
      n = 10 * n + (c - '0');
    }
    return n;
  }
  // A default value: up to a comma or closing parenthesis outside brackets and quotes.
  std::string_view literal() {
    skip();
    const size_t from = at_;
    int depth = 0;
    bool quoted = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\'') quoted = !quoted;
      if (quoted) continue;
      if (c == '[' || c == '(') ++depth;
      if (c == ']' || (c == ')' && depth > 0)) {
        --depth;
        continue;
      }
      if (depth == 0 && (c == ',' || c == ')')) break;
    }
    return between(from, at_);
  }

 private:
  static bool is_of_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  }
};

SignatureParam param(Reader& r) {
  SignatureParam p;
  r.skip();
  const size_t from = r.at();
  p.word = r.word();
  p.optional = r.take("?");
  if (r.take("[")) {
    p.list = true;
    if (!r.take("]")) {
      p.repeat = r.number();
      r.expect("]");
    }
    p.optional = r.take("?") || p.optional;
    p.varargs = r.take("*");
  }
  p.kind = r.between(from, r.at());
  p.kind = p.kind.substr(0, p.kind.find_last_not_of(' ') + 1);
  p.name = r.word();
  p.has_default = r.take("=");
  if (p.has_default) p.default_text = r.literal();
  return p;
}

}  // namespace

SignatureText read_signature(std::string_view text) {
  Reader r(text);
  SignatureText s;
  r.word();
  r.expect("(");
  bool keyword_only = false;
  if (!r.take(")")) {
    do {
      if (r.take("*")) {
        keyword_only = true;
        continue;
      }
      s.params.push_back(param(r));
      s.params.back().keyword_only = keyword_only;
    } while (r.take(","));
    r.expect(")");
  }
  r.expect("->");
  s.result = r.rest();
  if (!r.take("(")) {
    r.expect("Tensor");
    s.returns_list = r.take("[]");
    return s;
  }
  s.output_count = 0;
  do {
    r.expect("Tensor");
    if (r.is_at_word()) s.outputs.push_back(r.word());
    ++s.output_count;
  } while (r.take(","));
  r.expect(")");
  return s;
}

}  // namespace clew
