// The loop of maxima along a row of windows, and what is compiled of it once per instruction set.
// May include: base.
// Invariant: functions have internal linkage: code for one instruction set never leaks into
// another's.
#pragma once
#include <cstdint>
#include <type_traits>

#include "base/dtype.h"

namespace clew::kernels {
namespace {

template <class T> using place_t = std::conditional_t<sizeof(compute_t<T>) <= 4, int32_t, int64_t>;

template <int fixed_stride, class T>
void max_line_by(const T* x, int64_t first, int64_t stride, int64_t n, compute_t<T>* value,
                 place_t<T>* place) {
  using P = place_t<T>;
  if (fixed_stride) stride = fixed_stride;
#pragma GCC ivdep
  for (int64_t o = 0; o < n; ++o) {
    const auto v = static_cast<compute_t<T>>(x[first + o * stride]);
    const bool take = (v > value[o]) | (v != v);
    value[o] = take ? v : value[o];
    place[o] = take ? static_cast<P>(first + o * stride) : place[o];
  }
}
// Of n outputs, whose window element is x[first], x[first + stride] ...: the greatest value so far
// and its place; NaN counts as greatest.
template <class T>
void max_line(const T* x, int64_t first, int64_t stride, int64_t n, compute_t<T>* value,
              place_t<T>* place) {
  if (stride == 1) return max_line_by<1>(x, first, 1, n, value, place);
  if (stride == 2) return max_line_by<2>(x, first, 2, n, value, place);
  if (stride == 3) return max_line_by<3>(x, first, 3, n, value, place);
  if (stride == 4) return max_line_by<4>(x, first, 4, n, value, place);
  max_line_by<0>(x, first, stride, n, value, place);
}

}  // namespace

// Rows of other types, and of 16-bit floats, are mostly too short for longer vectors.
template <class T>
using MaxLine = void (*)(const T* x, int64_t first, int64_t stride, int64_t n, compute_t<T>* value,
                         place_t<T>* place);
struct PoolLoops {
  MaxLine<float> of_float;
  MaxLine<double> of_double;
  MaxLine<int64_t> of_int64;
};

}  // namespace clew::kernels
