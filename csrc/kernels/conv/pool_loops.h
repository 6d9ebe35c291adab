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
  max_line_by<0>(x, first, stride, n, value, place);
}

}  // namespace

// Of 64-bit numbers: without AVX a vector has two, and no choice between integers. Rows of others
// are mostly too short for longer vectors.
struct PoolLoops {
  void (*of_double)(const double* x, int64_t first, int64_t stride, int64_t n, double* value,
                    int64_t* place);
  void (*of_int64)(const int64_t* x, int64_t first, int64_t stride, int64_t n, int64_t* value,
                   int64_t* place);
};

}  // namespace clew::kernels
