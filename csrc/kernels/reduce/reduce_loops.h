// The vector loops under the common reductions, and the choice of their instruction set.
// May include: base.
// Invariant: sums run in lanes of the element type over blocks that are added up in double, except
// in few_sums; extrema propagate NaN.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace clew::kernels {

// T: the elements; B: the running result.
template <class T, class B> struct ReduceLoops {
  // total takes n neighbours.
  void (*row)(const T* p, int64_t n, B& total);
  // total[j] takes rows[0..count)[j], for w columns; count is at most reduce_batch.
  void (*columns)(const T* const* rows, int64_t count, int64_t w, B* total);
  // row() in parts: at_places() over n / row_places neighbours at as many places (a multiple of
  // `step`, which may be taken in multiples of `block`), where n is `long_row` or more; then row()
  // of the rest, in multiples of row_places * `block` where there are no places.
  void (*at_places)(const T* p, int64_t apart, int64_t each, B& total) = nullptr;
  int64_t step = 0, block = 0, long_row = 0;
  // row() of `many` short rows that begin `apart` elements apart, with the same bits: their last
  // steps run side by side.
  void (*short_rows)(const T* p, int64_t apart, int64_t n, int64_t many, B* totals) = nullptr;
  int64_t shortest = 16;  // shorter rows are taken as columns
};
constexpr int64_t short_row = 1024;  // fewer elements
constexpr int row_places = 4;
constexpr int64_t reduce_batch = 16;
constexpr int64_t few_terms = 16384;  // beyond them sums are gathered in double precision
// The extrema (smallest, largest) of w columns over n rows that are `step` elements apart, and the
// first row that holds each; n is below 2^31.
template <class T>
using ArgLoops = void (*[2])(const T* p, int64_t step, int64_t n, int64_t w, T* best,
                             int64_t* where);

// The reductions that have vector loops.
struct ReduceTable {
  ReduceLoops<float, double> sum_float, abs_float, squares_float;
  ReduceLoops<double, double> sum_double, abs_double, squares_double;
  ReduceLoops<bf16, double> sum_bf16;
  ReduceLoops<f16, double> sum_f16;
  ReduceLoops<bf16, double> abs_bf16, squares_bf16;
  ReduceLoops<f16, double> abs_f16, squares_f16;
  ReduceLoops<c64, c128> sum_complex64;
  ReduceLoops<c128, c128> sum_complex128;
  ReduceLoops<float, double> present_float;  // sums of what is not NaN
  ReduceLoops<double, double> present_double;
  ReduceLoops<bf16, double> present_bf16;
  ReduceLoops<f16, double> present_f16;
  ReduceLoops<int64_t, uint64_t> sum_int64;
  ReduceLoops<int32_t, uint64_t> sum_int32;
  ReduceLoops<uint8_t, uint64_t> sum_uint8;
  ReduceLoops<bool, uint64_t> sum_bool;
  ReduceLoops<float, double> product_float;
  ReduceLoops<double, double> product_double;
  ReduceLoops<float, float> max_float, min_float;
  ReduceLoops<double, double> max_double, min_double;
  ReduceLoops<bf16, float> max_bf16, min_bf16;
  ReduceLoops<f16, float> max_f16, min_f16;
  ReduceLoops<int64_t, int64_t> max_int64, min_int64;
  ReduceLoops<int32_t, int32_t> max_int32, min_int32;
  // to[o, i] = the sum over k of from[o, k, i], for at most few_terms elements of `from`.
  void (*few_sums)(const float* from, int64_t outer, int64_t count, int64_t inner, float* to);
  ArgLoops<float> arg_float;
  ArgLoops<double> arg_double;
  ArgLoops<int64_t> arg_int64;
  ArgLoops<int32_t> arg_int32;
};
// The fastest this processor runs.
const ReduceTable& reduce_table();

}  // namespace clew::kernels
