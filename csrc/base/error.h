// The one exception type of the C++ core and the text formatting that error messages use.
// May include: base.
// Invariant: every message starts with the public name of the operation ("matmul: ...").
#pragma once
#include <exception>
#include <sstream>
#include <string>

#include "base/dtype.h"
#include "base/smallvec.h"

namespace clew {

enum class ErrorKind : uint8_t {
  Runtime,
  Index,
  Type,
  Value,
  NotImplemented,
  OutOfMemory,
  Overflow,
  Buffer,
  Os
};

class Error : public std::exception {
 public:
  ErrorKind kind;
  std::string text;
  bool located = false;  // the text names the lines involved
  Error(ErrorKind k, std::string t) : kind(k), text(std::move(t)) {}
  const char* what() const noexcept override { return text.c_str(); }
};

inline std::ostream& operator<<(std::ostream& o, DType d) { return o << name(d); }
template <int N> std::ostream& operator<<(std::ostream& o, const SmallVec<int64_t, N>& v) {
  o << '[';
  for (int i = 0; i < v.size(); ++i) o << (i ? ", " : "") << v[i];
  return o << ']';
}

// Messages are made out of line, once for all literals: there are thousands of them.
template <class T> const T& shown(const T& value) { return value; }
inline const char* shown(const char* text) { return text; }
template <class... A> [[gnu::cold, gnu::noinline]] std::string text_of(const A&... a) {
  std::ostringstream s;
  (s << ... << a);
  return s.str();
}
template <class... A>
[[noreturn, gnu::cold, gnu::noinline]] void throw_error(ErrorKind k, const A&... a) {
  throw Error(k, text_of(a...));
}

template <class... A> std::string concat(const A&... a) { return text_of(shown(a)...); }
template <class... A> [[noreturn]] void fail(ErrorKind k, const A&... a) {
  throw_error(k, shown(a)...);
}
template <class... A> [[noreturn]] void fail(const A&... a) {
  throw_error(ErrorKind::Runtime, shown(a)...);
}
template <class... A> [[noreturn]] void fail_index(const A&... a) {
  throw_error(ErrorKind::Index, shown(a)...);
}
template <class... A> [[noreturn]] void fail_type(const A&... a) {
  throw_error(ErrorKind::Type, shown(a)...);
}
template <class... A> [[noreturn]] void fail_value(const A&... a) {
  throw_error(ErrorKind::Value, shown(a)...);
}
// A broken invariant of our own.
template <class... A> [[noreturn]] void fail_internal(const A&... a) {
  throw_error(ErrorKind::Runtime, "internal error in clew, please report it: ", shown(a)...);
}
template <class... A> inline void require(bool ok, const A&... a) {
  if (!ok) [[unlikely]]
    throw_error(ErrorKind::Runtime, shown(a)...);
}

}  // namespace clew
