// The loop that converts elements of one type to another.
// May include: base.
// Invariant: values are those of convert().
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

template <class To, class From>
void cast_loop(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  if (s[0] == sizeof(To) && s[1] == sizeof(From)) {
    auto* out = reinterpret_cast<To*>(p[0]);
    auto* in = reinterpret_cast<const From*>(p[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<To*>(p[0] + i * s[0]) =
        convert<To>(*reinterpret_cast<const From*>(p[1] + i * s[1]));
  }
}

}  // namespace clew::kernels
