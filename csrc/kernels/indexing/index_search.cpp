// Finding elements: nonzero ones, those under a mask.
// May include: base, kernels.
// Invariant: results come in row-major order.
#include <cmath>

#include "kernels/core/index_walk.h"
#include "kernels/indexing/index.h"

namespace clew::kernels {

namespace {

template <class T> bool is_nonzero(const T& v) {
  if constexpr (is_complex_v<T>)
    return v.real() != 0 || v.imag() != 0;
  else
    return static_cast<compute_t<T>>(v) != compute_t<T>(0);
}

// A bool's byte may be any when it was made elsewhere; compared as a number it counts once.
DType compared_as(DType d) { return d == DType::Bool ? DType::UInt8 : as_signed(d); }

// Elements that are counted at a time: each stretch writes what it found at a place of its own.
constexpr int64_t stretch = 16384;

template <class T> int64_t count_run(const T* p, int64_t n, int64_t step) {
  int64_t count = 0;
  if (step != 1) {
    for (int64_t i = 0; i < n; ++i) count += is_nonzero(p[i * step]);
    return count;
  }
  // Counters as wide as the elements fill vectors; a block does not overflow them.
  using Counter = std::conditional_t<sizeof(T) == 1, uint8_t, uint32_t>;
  constexpr int64_t lanes = 16;
  constexpr int64_t block = lanes * (sizeof(T) == 1 ? 255 : 1024);
  int64_t i = 0;
  while (i + lanes <= n) {
    Counter counters[lanes] = {};
    for (int64_t stop = std::min(n, i + block); i + lanes <= stop; i += lanes)
      for (int64_t j = 0; j < lanes; ++j)
        counters[j] = static_cast<Counter>(counters[j] + is_nonzero(p[i + j]));
    for (Counter c : counters) count += c;
  }
  for (; i < n; ++i) count += is_nonzero(p[i]);
  return count;
}

}  // namespace

NonzeroCounts count_nonzero(const NdView& x) {
  int64_t n = x.numel();
  int64_t stretches = (n + stretch - 1) / stretch;
  NonzeroCounts counts(static_cast<size_t>(stretches) + 1, 0);
  if (n == 0) return counts;
  Runs runs(x);
  dispatch(compared_as(x.dtype), PlainTypes{}, [&]<class T>() {
    const T* p = x.ptr<const T>();
    parallel_for(stretches, 2, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        int64_t count = 0;
        runs.each(k * stretch, std::min(n, (k + 1) * stretch),
                  [&](int64_t, int64_t offset, int64_t length) {
                    count += count_run(p + offset, length, runs.step());
                  });
        counts[static_cast<size_t>(k) + 1] = count;
      }
    });
  });
  for (size_t k = 1; k < counts.size(); ++k) counts[k] += counts[k - 1];
  return counts;
}

namespace {

// Calls write(k, positions, m) for batches of nonzero elements, m of them from the k-th on, several
// batches at once. It writes exactly as many positions as were counted. If another thread has
// changed elements since, surplus ones are left out and missing ones are replaced by position 0.
template <class F> void each_nonzero(const NdView& x, const NonzeroCounts& counts, F&& write) {
  constexpr int64_t batch = 256;
  int64_t n = x.numel();
  Runs runs(x);
  dispatch(compared_as(x.dtype), PlainTypes{}, [&]<class T>() {
    const T* p = x.ptr<const T>();
    parallel_for(static_cast<int64_t>(counts.size()) - 1, 2, [&](int64_t begin, int64_t end) {
      int64_t found[batch];
      for (int64_t k = begin; k < end; ++k) {
        int64_t to = counts[static_cast<size_t>(k)];
        int64_t stop = counts[static_cast<size_t>(k) + 1];
        if (to == stop) continue;
        int64_t m = 0;
        auto flush = [&] {
          m = std::min(m, stop - to);
          write(to, found, m);
          to += m;
          m = 0;
        };
        runs.each(k * stretch, std::min(n, (k + 1) * stretch),
                  [&](int64_t at, int64_t offset, int64_t length) {
                    for (int64_t j = 0; j < length;) {
                      if (m == batch) flush();
                      int64_t until = std::min(length, j + batch - m);
                      const T* run = p + offset;
                      // Branch-free: each place is written, and the count advances only if the
                      // element is nonzero.
                      if (runs.step() == 1) {
                        for (; j < until; ++j) {
                          found[m] = at + j;
                          m += is_nonzero(run[j]);
                        }
                      } else {
                        for (; j < until; ++j) {
                          found[m] = at + j;
                          m += is_nonzero(run[j * runs.step()]);
                        }
                      }
                    }
                  });
        flush();
        if (to < stop) std::fill_n(found, batch, int64_t{0});
        while (to < stop) {
          m = batch;
          flush();
        }
      }
    });
  });
}

}  // namespace

void nonzero(const NdView& x, const NonzeroCounts& counts, int64_t* out, int64_t row_step,
             int64_t column_step) {
  int ndim = x.ndim;
  if (x.numel() == 0 || ndim == 0) return;
  if (ndim == 1) return nonzero_flat(x, counts, out);
  int64_t inner = x.sizes[ndim - 1];
  each_nonzero(x, counts, [&](int64_t k, const int64_t* positions, int64_t m) {
    Dims at(ndim, 0);
    int64_t* to = out + k * row_step;
    int64_t first = 0;  // of the row of the element before, whose other coordinates `at` has
    int64_t next = 0;
    for (int64_t i = 0; i < m; ++i, to += row_step) {
      int64_t j = positions[i] - first;
      if (positions[i] >= next) {
        int64_t row = positions[i] / inner;
        first = row * inner;
        next = first + inner;
        j = positions[i] - first;
        for (int d = ndim - 2; d >= 0; --d) {
          at[d] = row % x.sizes[d];
          row /= x.sizes[d];
        }
      }
      for (int d = 0; d + 1 < ndim; ++d) to[d * column_step] = at[d];
      to[(ndim - 1) * column_step] = j;
    }
  });
}

void nonzero_flat(const NdView& x, const NonzeroCounts& counts, int64_t* out) {
  each_nonzero(x, counts, [&](int64_t k, const int64_t* positions, int64_t m) {
    std::memcpy(out + k, positions, static_cast<size_t>(m) * sizeof(int64_t));
  });
}

}  // namespace clew::kernels
