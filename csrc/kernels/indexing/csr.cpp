// Products of sparse matrices, row by row.
// May include: base, kernels.
// Invariant: each thread owns the rows it writes.
#include "kernels/indexing/csr.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/guided.h"
#include "base/read_once.h"
#include "kernels/core/instruction_set.h"
#include "kernels/indexing/csr_isa.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const CsrLoops csr_loops;)

namespace {

const CsrLoops& rows = CLEW_CHOSEN(csr_loops);

using IndexTypes = TypeList<int32_t, int64_t>;

// dtypes without vector loops of their own, summed in a type that does not round in between.
template <class T, class I> int64_t any_product(const CsrRows<T, I>& c) {
  using C = compute_t<T>;
  constexpr int64_t piece = 256;  // columns whose sums stay in the cache
  C sums[piece];
  for (int64_t r = c.begin; r < c.end; ++r) {
    const auto begin = static_cast<int64_t>(read_once(c.crow[r]));
    const auto end = static_cast<int64_t>(read_once(c.crow[r + 1]));
    if (begin < 0 || begin > end || end > c.count) return r;
    for (int64_t j = 0; j < c.width; j += piece) {
      const int64_t n = std::min(piece, c.width - j);
      std::fill_n(sums, n, C(0));
      for (int64_t e = begin; e < end; ++e) {
        const auto at = static_cast<int64_t>(read_once(c.col[e]));
        if (at < 0 || at >= c.columns) return r;
        const auto factor = static_cast<C>(c.first[e]);
        const T* row = c.second + at * c.width + j;
        for (int64_t i = 0; i < n; ++i) sums[i] += factor * static_cast<C>(row[i]);
      }
      T* to = c.out + r * c.width + j;
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(sums[i]);
    }
  }
  return -1;
}
template <class T, class I> int64_t any_dots(const CsrRows<T, I>& c) {
  using C = compute_t<T>;
  for (int64_t r = c.begin; r < c.end; ++r) {
    const auto begin = static_cast<int64_t>(read_once(c.crow[r]));
    const auto end = static_cast<int64_t>(read_once(c.crow[r + 1]));
    if (begin < 0 || begin > end || end > c.count) return r;
    const T* a = c.first + r * c.width;
    for (int64_t e = begin; e < end; ++e) {
      const auto at = static_cast<int64_t>(read_once(c.col[e]));
      if (at < 0 || at >= c.columns) return r;
      const T* b = c.second + at * c.width;
      C sum(0);
      for (int64_t j = 0; j < c.width; ++j) sum += static_cast<C>(a[j]) * static_cast<C>(b[j]);
      c.out[e] = static_cast<T>(sum);
    }
  }
  return -1;
}

template <class T, class I> struct LoopsOf {
  static constexpr auto product = any_product<T, I>;
  static constexpr auto dots = any_dots<T, I>;
};
template <> struct LoopsOf<float, int32_t> {
  static int64_t product(const CsrRows<float, int32_t>& c) { return rows.product_f32_i32(c); }
  static int64_t dots(const CsrRows<float, int32_t>& c) { return rows.dots_f32_i32(c); }
};
template <> struct LoopsOf<float, int64_t> {
  static int64_t product(const CsrRows<float, int64_t>& c) { return rows.product_f32_i64(c); }
  static int64_t dots(const CsrRows<float, int64_t>& c) { return rows.dots_f32_i64(c); }
};
template <> struct LoopsOf<double, int32_t> {
  static int64_t product(const CsrRows<double, int32_t>& c) { return rows.product_f64_i32(c); }
  static int64_t dots(const CsrRows<double, int32_t>& c) { return rows.dots_f64_i32(c); }
};
template <> struct LoopsOf<double, int64_t> {
  static int64_t product(const CsrRows<double, int64_t>& c) { return rows.product_f64_i64(c); }
  static int64_t dots(const CsrRows<double, int64_t>& c) { return rows.dots_f64_i64(c); }
};

// Rows that are worth a piece of their own.
int64_t grain_of(const Pattern& p, int64_t width) {
  const int64_t each = 1 + p.count() / std::max<int64_t>(p.rows(), 1);
  return 1 + grain_default / (each * (width + 4));
}
// Calls run(begin, end) for pieces of the rows. Each gives the first row that is invalid; the
// smallest of these is returned.
template <class F> int64_t over_rows(const Pattern& p, int64_t width, F&& run) {
  std::atomic<int64_t> bad{p.rows()};
  parallel_guided(p.rows(), grain_of(p, width), [&](int64_t begin, int64_t end) {
    const int64_t row = run(begin, end);
    if (row < 0) return;
    int64_t before = bad.load();
    while (row < before && !bad.compare_exchange_weak(before, row)) {
    }
  });
  return bad.load() < p.rows() ? bad.load() : -1;
}

}  // namespace

int64_t csr_product(const NdView& out, const Pattern& p, const NdView& values,
                    const NdView& dense) {
  int64_t bad = -1;
  dispatch(p.col.dtype, IndexTypes{}, [&]<class I>() {
    dispatch(out.dtype, InexactTypes{}, [&]<class T>() {
      bad = over_rows(p, dense.sizes[1], [&](int64_t begin, int64_t end) {
        return LoopsOf<T, I>::product({p.crow.ptr<const I>(), p.col.ptr<const I>(), begin, end,
                                       p.count(), dense.sizes[0], dense.sizes[1], out.ptr<T>(),
                                       values.ptr<const T>(), dense.ptr<const T>()});
      });
    });
  });
  return bad;
}

int64_t csr_dots(const NdView& out, const Pattern& p, const NdView& a, const NdView& b) {
  int64_t bad = -1;
  dispatch(p.col.dtype, IndexTypes{}, [&]<class I>() {
    dispatch(out.dtype, InexactTypes{}, [&]<class T>() {
      bad = over_rows(p, b.sizes[1], [&](int64_t begin, int64_t end) {
        return LoopsOf<T, I>::dots({p.crow.ptr<const I>(), p.col.ptr<const I>(), begin, end,
                                    p.count(), b.sizes[0], b.sizes[1], out.ptr<T>(),
                                    a.ptr<const T>(), b.ptr<const T>()});
      });
    });
  });
  return bad;
}

int64_t csr_mirror(int64_t* out, const Pattern& p, int64_t columns) {
  const LongWork work(p.count());
  const int64_t rows = p.rows(), count = p.count();
  int64_t bad = -1;
  dispatch(p.col.dtype, IndexTypes{}, [&]<class I>() {
    const auto *crow = p.crow.ptr<const I>(), *col = p.col.ptr<const I>();
    int64_t *starts = out, *row_of = out + columns + 1, *order = row_of + count;
    std::fill_n(starts, columns + 1, int64_t{0});
    // Copied first: what is counted must be what is placed.
    for (int64_t e = 0; e < count; ++e) {
      const auto at = static_cast<int64_t>(read_once(col[e]));
      order[e] = at;
      if (at < 0 || at >= columns) {
        bad = 0;
        return;
      }
      ++starts[at + 1];
    }
    for (int64_t c = 0; c < columns; ++c) starts[c + 1] += starts[c];
    std::vector<int64_t> next(starts, starts + columns), columns_of(order, order + count);
    int64_t e = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const auto begin = static_cast<int64_t>(read_once(crow[r]));
      const auto end = static_cast<int64_t>(read_once(crow[r + 1]));
      if (begin != e || begin > end || end > count) {
        bad = r;
        return;
      }
      for (; e < end; ++e) {
        const int64_t to = next[static_cast<size_t>(columns_of[static_cast<size_t>(e)])]++;
        row_of[to] = r;
        order[to] = e;
      }
    }
    if (e != count) bad = std::max<int64_t>(rows - 1, 0);
  });
  return bad;
}

}  // namespace clew::kernels
