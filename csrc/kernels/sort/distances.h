// Distances between rows by the p-norm of their difference, and their gradient.
// May include: base.
// Invariant: no difference is kept: the room taken is that of the results, and a few rows.
#pragma once
#include <cstdint>

namespace clew::kernels {

constexpr int64_t turned_rows = 16;
constexpr int64_t turned_most = 64;  // elements of a row

// The loops over a row x and `count` rows y after each other, compiled once for each instruction
// set; all have m elements.
template <class C> struct DistanceLoops {
  void (*distances)(C* out, const C* x, const C* y, int64_t count, int64_t m, double p);
  // The same to the rows [first, last) of y, for short rows: `turned` has y in blocks of
  // `turned_rows` rows, each block transposed and the last one filled up.
  void (*to_turned)(C* out, const C* x, const C* y, const C* turned, int64_t first, int64_t last,
                    int64_t m, double p);
  // dx += the gradient of x's distances; that of the k-th y is `grad[k * step]`, itself
  // `distance[k * step]`. A distance of 0 has the gradient 0.
  void (*slopes)(C* dx, const C* x, const C* y, const C* grad, const C* distance, int64_t step,
                 int64_t count, int64_t m, double p);
  // The same with y turned, and the gradient of the n rows of a turned block by their distances to
  // `count` rows x, which are `apart` from each other in `grad`. Not of general powers.
  void (*turned_slopes)(C* dx, const C* x, const C* turned, const C* grad, const C* distance,
                        int64_t count, int64_t m, double p);
  void (*block_slopes)(C* dy, int64_t n, const C* turned, const C* x, const C* grad,
                       const C* distance, int64_t apart, int64_t count, int64_t m, double p);
};

// x [B, P, M] and y [B, R, M] to [B, P, R].
struct DistanceShape {
  int64_t b, p, r, m;
};
template <class C>
void distances(C* out, const C* x, const C* y, const DistanceShape& shape, double p);
// dx and dy; either may be null.
template <class C>
void distances_backward(C* dx, C* dy, const C* grad, const C* distance, const C* x, const C* y,
                        const DistanceShape& shape, double p);

// x [N, M] to the N (N - 1) / 2 distances of row 0 to those after it, of row 1 ...
template <class C> void own_distances(C* out, const C* x, int64_t n, int64_t m, double p);
template <class C>
void own_distances_backward(C* dx, const C* grad, const C* distance, const C* x, int64_t n,
                            int64_t m, double p);

}  // namespace clew::kernels
