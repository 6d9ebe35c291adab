// Householder reflections of large real matrices, in blocks of columns.
// May include: base, kernels.
// Invariant: matrices lie in columns; reflections are those that LAPACK's geqrf would choose.
#pragma once
#include <cstdint>

namespace clew::kernels {

// The loops of a few columns. A line is a column that is filled up to a length w of whole vectors.
template <class T> struct ReflectionLoops {
  // Of n lines with rows of w: reflections make line i zero behind element i; it becomes the
  // reflection's vector. r, in columns of n, gets what stands in the first n rows of all lines.
  void (*panel)(int64_t n, int64_t w, T* lines, int64_t step, T* r, T* tau);
  // x becomes x - tau (v x) v, of k vectors one after another, from the last on unless `forward`;
  // count lines x of w.
  void (*apply)(bool forward, int64_t k, int64_t w, const T* v, int64_t step, const T* tau,
                int64_t count, T* x, int64_t x_step);
};
// Elements of a line are filled up to a multiple of this, the most that a vector has.
constexpr int64_t line_multiple = 16;

// Reflections of A = Q R below the diagonal of a (m, n), R above.
template <class T> void factor_in_blocks(int64_t m, int64_t n, T* a, T* tau);
// The first n columns of the product of k reflections in place of them; a (m, n).
template <class T> void product_in_blocks(int64_t m, int64_t n, int64_t k, T* a, const T* tau);
// c (m, n), whose columns are c_step apart, becomes Q c or c Q, or the same with Q^T; the vectors'
// columns are a_step apart.
template <class T>
void reflect_in_blocks(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a,
                       int64_t a_step, const T* tau, T* c, int64_t c_step);

// Gives back what this thread keeps for large matrices.
void trim_reflections_scratch();

}  // namespace clew::kernels
