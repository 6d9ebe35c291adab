// The attribute struct of one call, and how arguments get into it.
// May include: python/signature.h.
// Invariant: an argument is stored only where it fits its parameter.
#pragma once
#include "python/signature.h"

namespace clew::python {

constexpr size_t max_attr_bytes = 768;

// The attribute struct of one call, on the stack.
struct AttrBuffer {
  alignas(16) char bytes[max_attr_bytes];
  const AttrInfo* info = nullptr;
  void init(const Overload& o) {
    info = o.op->attrs;
    if (info->trivial)
      std::memcpy(bytes, o.defaults, info->size);
    else
      info->copy(bytes, o.defaults);
  }
  ~AttrBuffer() {
    if (info && !info->trivial) info->destroy(bytes);
  }
};

// Writes v to the field of a parameter of that kind; `repeat` as in Param.
void store(char* field, ParamKind kind, int repeat, PyObject* v);
// Ints that were given one by one, as in view(2, 3).
void store_ints(char* field, ParamKind kind, std::span<PyObject* const> ints);

}  // namespace clew::python
