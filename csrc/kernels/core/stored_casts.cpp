// Loops that convert from and to the types which are only stored (8-bit floats, half complex).
// May include: base, kernels.
// Invariant: values are those of convert(), for every pair of which one type is a stored one.
#include "base/ndview.h"
#include "kernels/core/cast_loop.h"
#include "kernels/core/loop_tables.h"

namespace clew::kernels {

Loop stored_cast_of(DType from, DType to) {
  Loop found = nullptr;
  auto pair = [&]<class From>() {
    dispatch(to, EveryType{}, [&]<class To>() { found = cast_loop<To, From>; });
  };
  if (is_stored(from)) {
    dispatch(from, StoredTypes{}, pair);
  } else {
    dispatch(to, StoredTypes{}, [&]<class To>() {
      dispatch(from, AllTypes{}, [&]<class From>() { found = cast_loop<To, From>; });
    });
  }
  return found;
}

}  // namespace clew::kernels
