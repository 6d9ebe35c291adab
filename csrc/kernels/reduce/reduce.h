// Reductions over any set of axes: sums, products, extrema, norms, variances, arg-extrema.
// May include: base, kernels.
// Invariant: dst has src's rank and size 1 in the reduced axes; src is not written.
#pragma once
#include <vector>

#include "base/ndview.h"

namespace clew::kernels {

// Result dtype: src's, or int64 for bool and integers. Any other dst dtype makes src be converted
// to it first.
void reduce_sum(const NdView& dst, const NdView& src);
// What reduce_sum() and reduce_mean() make of all rows of a matrix whose rows lie one after the
// other, a few rows at a time: the same bits, where each thread takes its piece and the pieces are
// joined in order.
class ColumnSums {
 public:
  static bool adds(DType d);
  // How many pieces the rows are cut into: piece k ends before row (k + 1) * rows / pieces.
  static int64_t pieces(int64_t rows, int64_t columns);
  static constexpr int64_t batch = 16;  // every add() but the last takes a multiple of them

  ColumnSums(DType d, int64_t columns) : dtype_(d), totals_(static_cast<size_t>(columns)) {}
  void add(const char* rows, int64_t count);
  void join(const ColumnSums& next);
  // The sums, or divided by `divisor` where it is not 0.
  void finish(char* out, double divisor) const;

 private:
  DType dtype_;
  std::vector<double> totals_;
};
// What reduce_sum() and reduce_mean() make of all elements, some at a time: the same bits, where
// each thread takes its piece, reads it as cut() says, and the pieces are joined in order.
class TotalSum {
 public:
  static bool adds(DType d) { return ColumnSums::adds(d); }
  // How many pieces: piece k ends before element (k + 1) * n / pieces.
  static int64_t pieces(int64_t n);
  // A piece is `places` stretches of `each` elements one after the other, which are read side by
  // side a multiple of `block` at a time, and then the rest, in multiples of `rest`.
  struct Cut {
    int64_t places, each, block, rest;
  };
  static Cut cut(DType d, int64_t n);

  explicit TotalSum(DType d) : dtype_(d) {}
  // `count` elements of each of the cut's places, which lie `apart` elements apart.
  void add_places(const char* p, int64_t apart, int64_t count);
  void add(const char* p, int64_t count);
  void join(const TotalSum& next) { total_ += next.total_; }
  void finish(char* out, double divisor) const;

 private:
  DType dtype_;
  double total_ = 0;
};
void reduce_nansum(const NdView& dst, const NdView& src);
void reduce_prod(const NdView& dst, const NdView& src);
// Inexact dtypes; NaN for no terms.
void reduce_mean(const NdView& dst, const NdView& src);
// Real dtypes, dst of src's dtype, at least one term; NaN wins.
void reduce_amax(const NdView& dst, const NdView& src);
void reduce_amin(const NdView& dst, const NdView& src);
// dst is bool or uint8.
void reduce_any(const NdView& dst, const NdView& src);
void reduce_all(const NdView& dst, const NdView& src);
// dst is int64.
void reduce_count_nonzero(const NdView& dst, const NdView& src);
// (sum |x|^p)^(1/p), dst of the real dtype of src.
void reduce_norm(const NdView& dst, const NdView& src, double p);
// log(sum(exp(x))), floating dtypes.
void reduce_logsumexp(const NdView& dst, const NdView& src);
// Two-pass variance: sum |x - mean|^2 / max(0, n - correction), NaN of no terms; its root when
// `root`. Either result may be null. var has the real dtype of src, mean src's.
void reduce_var(const NdView* var, const NdView* mean, const NdView& src, double correction,
                bool root);
// Extremum over one axis and its first index (first NaN when there is one). `values` may be null.
// `indices` is int64.
void reduce_arg(const NdView* values, const NdView& indices, const NdView& src, bool largest);

}  // namespace clew::kernels
