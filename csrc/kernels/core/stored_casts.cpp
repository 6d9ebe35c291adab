// Loops that convert from and to the types which are only stored (8-bit floats, half complex).
// May include: base, kernels.
// Invariant: values are those of convert(), for every pair of which one type is a stored one.
#include "base/ndview.h"
#include "kernels/elementwise/pointwise.h"

namespace clew::kernels {

namespace {

template <class To, class From>
void stored_loop(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  if (s[0] == sizeof(To) && s[1] == sizeof(From)) {
    auto* out = reinterpret_cast<To*>(p[0]);
    auto* in = reinterpret_cast<const From*>(p[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<To*>(p[0] + i * s[0]) =
        convert<To>(*reinterpret_cast<const From*>(p[1] + i * s[1]));
}

}  // namespace

Loop stored_cast_of(DType from, DType to) {
  Loop found = nullptr;
  auto pair = [&]<class From>() {
    dispatch(to, EveryType{}, [&]<class To>() { found = stored_loop<To, From>; });
  };
  if (is_stored(from)) {
    dispatch(from, StoredTypes{}, pair);
  } else {
    dispatch(to, StoredTypes{}, [&]<class To>() {
      dispatch(from, AllTypes{}, [&]<class From>() { found = stored_loop<To, From>; });
    });
  }
  return found;
}

}  // namespace clew::kernels
