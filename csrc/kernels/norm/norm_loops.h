// The vector loops of normalisation: statistics, their application, the sums of gradients.
// May include: the standard library.
// Invariant: operands are contiguous; sums run in lanes of the element type over blocks that are
// added up in double.
#pragma once
#include <cstdint>

namespace clew::kernels {

// `planes` pieces of `size` neighbouring elements, `step` elements apart.
struct Planes {
  int64_t planes, step, size;
  int64_t count() const { return planes * size; }
};

template <class C> struct NormLoops {
  // Mean, and the sum of squared deviations from it.
  void (*moments)(const C* x, const Planes& at, double* mean, double* squares);
  // The same for one of many consecutive rows; `to` is prefetched, because the row's result is
  // written there next.
  void (*row_moments)(const C* to, const C* x, int64_t n, double* mean, double* squares);
  // s1 = sum g, s2 = sum g (x - centre)
  void (*dots)(const C* g, const C* x, const Planes& at, C centre, double* s1, double* s2);
  // For rows [r0, r1) of s elements, of channel r % c each: y = (x - mean) * a + b
  void (*rows_affine)(C* y, const C* x, int64_t r0, int64_t r1, int64_t c, int64_t s, const C* mean,
                      const C* a, const C* b);
  // dx = g * a + (x - mean) * b + c, likewise
  void (*rows_grad)(C* dx, const C* g, const C* x, int64_t r0, int64_t r1, int64_t channels,
                    int64_t s, const C* mean, const C* a, const C* b, const C* c);
  // The same things for each of w columns.
  void (*column_moments)(const C* x, int64_t rows, int64_t w, int64_t step, double* mean,
                         double* squares);
  void (*column_dots)(const C* g, const C* x, int64_t rows, int64_t w, const C* mean, double* s1,
                      double* s2);
  void (*column_affine)(C* y, const C* x, int64_t rows, int64_t w, const C* mean, const C* a,
                        const C* b);
  void (*column_grad)(C* dx, const C* g, const C* x, int64_t rows, int64_t w, const C* mean,
                      const C* a, const C* b, const C* c);
  // One row of layer_norm. Sums of g w and g w (x - centre), w may be null (1) ...
  void (*row_dots)(const C* g, const C* w, const C* x, int64_t n, C centre, double* s1, double* s2);
  // ... and dx = g w a + (x - centre) b + c, dw += g (x - centre) rstd, db += g.
  void (*row_grad)(C* dx, C* dw, C* db, const C* g, const C* w, const C* x, int64_t n, C centre,
                   C rstd, C a, C b, C c);
  // Rows of at most short_most elements, one after the other: y = (x - mean) * rstd * w + b, the
  // mean being 0 where `means` is null; w and b may be null (1 and 0). Few rows at a time: dw and
  // db, which may be null, get sums of C.
  int64_t short_most;
  void (*short_rows)(C* y, C* means, C* rstds, const C* x, const C* w, const C* b, int64_t rows,
                     int64_t n, double eps);
  void (*short_rows_grad)(C* dx, C* dw, C* db, const C* g, const C* x, const C* w, const C* means,
                          const C* rstds, int64_t rows, int64_t n);
};

// The fastest this processor runs; C is float or double.
template <class C> const NormLoops<C>& norm_loops();

// dx = rstd (g w - s1 / n) - rstd^3 (x - mean) s2 / n  as  g w a + (x - mean) b + c
struct Slopes {
  double b, c;
  Slopes(double rstd, double s1, double s2, double n)
      : b(-rstd * rstd * rstd * s2 / n), c(-rstd * s1 / n) {}
};

// Joins (mean, squares) of n elements with those of m more.
inline void join_moments(double& mean, double& squares, double n, double mean_m, double squares_m,
                         double m) {
  double total = n + m;
  if (total == 0) return;
  double apart = mean_m - mean;
  mean += apart * (m / total);
  squares += squares_m + apart * apart * (n * m / total);
}

}  // namespace clew::kernels
