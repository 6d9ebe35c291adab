// Eigenvectors and singular vectors of large real matrices.
// May include: base, kernels.
// Invariant: matrices lie in columns, and their elements are finite; a result other than 0 is
// LAPACK's info.
#pragma once
#include <cstdint>

namespace clew::kernels {

// Whether the sizes of n elements are such that sums of squares neither overflow nor vanish; LAPACK
// scales the others.
template <class T> bool of_usual_size(const T* x, int64_t n);

// Eigenvalues of the symmetric a (n, n), ascending, and vectors; the lower triangle is read, and a
// destroyed.
template <class T> int large_eigh(int64_t n, T* a, T* values, T* vectors);
// Singular values of a (m, n), descending, u (m, m if full or k) and vt (n or k, n), of k the
// lesser of m and n; a is destroyed.
template <class T> int large_svd(bool full, int64_t m, int64_t n, T* a, T* s, T* u, T* vt);

// Gives back what this thread keeps for large matrices.
void trim_spectra_scratch();

}  // namespace clew::kernels
