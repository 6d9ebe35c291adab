// The loops of softmax over an axis whose lines lie side by side in memory.
// May include: the standard library.
// Invariant: w is at most column_tile; lines run down the columns of x, y and g, whose rows are
// sx, sy and sg elements apart; the maximum is subtracted before exp().
#pragma once
#include <cstdint>

namespace clew::kernels {

constexpr int64_t column_tile = 128;
// Rows that are done together, while the nearest caches hold them.
constexpr int64_t column_rows = 128;
// Elements that softmax needs room for: a copy of w columns, and what is kept of each piece of it.
constexpr int64_t column_room(int64_t n, int64_t w) {
  return (n + (n + column_rows - 1) / column_rows) * w;
}

// What cross-entropy makes of neighbouring columns of scores: each has a target in [0, n), or
// `ignore`. A class weighs weight[k], or 1; `keep` of a loss is its target's, `spread` every
// class's, and `all` the sum of their weights.
template <class C> struct ColumnTargets {
  const int64_t* target;
  const C* weight;  // or null
  int64_t ignore;
  double keep, spread, all;
};

template <class C> struct ColumnSoftmax {
  // room: column_room(n, w) elements. x is copied when it is read first: its rows may lie so that
  // the caches hold few of them at a time.
  void (*softmax)(C* y, int64_t sy, const C* x, int64_t sx, int64_t n, int64_t w, bool log,
                  C* room);
  // out[j] = log(sum of exp of column j)
  void (*log_sum)(double* out, const C* x, int64_t sx, int64_t n, int64_t w);
  // The loss of each column (0 where ignored), and log(sum of exp) of it as `high` + `low`.
  void (*losses)(double* loss, C* high, C* low, const C* x, int64_t sx, int64_t n, int64_t w,
                 const ColumnTargets<C>& of);
  // Their gradient; grad[j] is the one of loss j. `high` and `low` are what losses() gave.
  void (*loss_gradient)(C* dx, int64_t sd, const C* x, int64_t sx, int64_t n, int64_t w,
                        const double* grad, const C* high, const C* low,
                        const ColumnTargets<C>& of);
  // The gradient of (log-)softmax, y being its result.
  void (*gradient)(C* dx, int64_t sd, const C* g, int64_t sg, const C* y, int64_t sy, int64_t n,
                   int64_t w, bool log);
};
// The fastest this processor runs; C is float or double.
template <class C> const ColumnSoftmax<C>& column_softmax();

}  // namespace clew::kernels
