// The vector loops under products of sparse matrices.
// May include: the standard library only.
// Invariant: each instruction set has one CsrLoops.
#pragma once
#include <cstdint>

namespace clew::kernels {

// The rows [begin, end) of a pattern of `count` elements in `columns` columns, with what they meet:
// tables of rows of `width` elements, and a value for each element.
template <class T, class I> struct CsrRows {
  const I *crow, *col;
  int64_t begin, end, count, columns, width;
  T* out;
  const T *first, *second;
};
// first: the values; second: the dense factor. Or the two factors of the dots. They return the
// first row that does not fit, or -1.
struct CsrLoops {
  int64_t (*product_f32_i32)(const CsrRows<float, int32_t>&);
  int64_t (*product_f32_i64)(const CsrRows<float, int64_t>&);
  int64_t (*product_f64_i32)(const CsrRows<double, int32_t>&);
  int64_t (*product_f64_i64)(const CsrRows<double, int64_t>&);
  int64_t (*dots_f32_i32)(const CsrRows<float, int32_t>&);
  int64_t (*dots_f32_i64)(const CsrRows<float, int64_t>&);
  int64_t (*dots_f64_i32)(const CsrRows<double, int32_t>&);
  int64_t (*dots_f64_i64)(const CsrRows<double, int64_t>&);
};

}  // namespace clew::kernels
