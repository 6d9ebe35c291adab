// Eigenvectors and singular vectors of large real matrices: LAPACK finds the condensed matrix and
// its vectors, reflections in blocks bring them back.
// May include: base, kernels.
// Invariant: one matrix at a time; what a thread keeps from call to call is its own.
#include "kernels/linalg/spectra.h"

#include <algorithm>
#include <cmath>

#include "base/scratch.h"
#include "kernels/core/lapack.h"
#include "kernels/linalg/reflections.h"

namespace clew::kernels {

namespace {

LocalScratch spectra_room;

// The vectors of P's reflections, which stand in rows of a from column `first` on, as columns.
template <class T>
void turn_rows(int64_t m, int64_t n, int64_t k, int64_t first, const T* a, T* to) {
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = first + i; j < n; ++j) to[i * n + j] = a[j * m + i];
  }
}

}  // namespace

template <class T> bool of_usual_size(const T* x, int64_t n) {
  T most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(x[i]));
  constexpr double least = sizeof(T) == 4 ? 1e-15 : 1e-140;
  return most == 0 || (most > least && most < 1 / least);
}

template <class T> int large_eigh(int64_t n, T* a, T* values, T* vectors) {
  T *beside = spectra_room.of<T>(2 * n), *tau = beside + n;
  if (const int info = lapack::sytrd(n, a, values, beside, tau)) return info;
  if (const int info = lapack::stedc(n, values, beside, vectors)) return info;
  reflect_in_blocks(true, false, n - 1, n, n - 1, a + 1, n, tau, vectors + 1, n);
  return 0;
}

template <class T> int large_svd(bool full, int64_t m, int64_t n, T* a, T* s, T* u, T* vt) {
  const int64_t k = std::min(m, n), columns = full ? m : k, rows = full ? n : k;
  const bool upper = m >= n;
  T *beside = spectra_room.of<T>(3 * k + k * n), *tauq = beside + k, *taup = tauq + k;
  T* turned = taup + k;
  if (const int info = lapack::gebrd(m, n, a, s, beside, tauq, taup)) return info;
  std::fill_n(u, m * columns, T(0));
  std::fill_n(vt, rows * n, T(0));
  if (const int info = lapack::bdsdc(upper, k, s, beside, u, m, vt, rows)) return info;
  for (int64_t j = k; j < columns; ++j) u[j * m + j] = T(1);
  for (int64_t j = k; j < rows; ++j) vt[j * rows + j] = T(1);
  // The bidiagonal's second diagonal has one reflection less, which leaves the first element alone.
  const int64_t q = upper ? 0 : 1, p = upper ? 1 : 0;
  reflect_in_blocks(true, false, m - q, columns, k - q, a + q, m, tauq, u + q, m);
  turn_rows(m, n, k - p, p, a, turned);
  reflect_in_blocks(false, true, rows, n - p, k - p, turned + p, n, taup, vt + p * rows, rows);
  return 0;
}

void trim_spectra_scratch() {
  spectra_room.trim(1);
  trim_reflections_scratch();
}

template bool of_usual_size(const float*, int64_t);
template bool of_usual_size(const double*, int64_t);
template int large_eigh(int64_t, float*, float*, float*);
template int large_eigh(int64_t, double*, double*, double*);
template int large_svd(bool, int64_t, int64_t, float*, float*, float*, float*);
template int large_svd(bool, int64_t, int64_t, double*, double*, double*, double*);

}  // namespace clew::kernels
