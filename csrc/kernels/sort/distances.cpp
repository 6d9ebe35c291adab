// Distances between rows: which rows are compared, and on which thread.
// May include: base, kernels.
// Invariant: every result row and every gradient row is made by one thread, in order.
#include "kernels/sort/distances.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>

#include "base/parallel.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const DistanceLoops<float> distances_float;
                 extern const DistanceLoops<double> distances_double;)

namespace {

template <class C> const DistanceLoops<C>& loops() {
  return of_type<C>(CLEW_CHOSEN(distances_float), CLEW_CHOSEN(distances_double));
}

// f(row) for all rows, each of which takes `work` elements of differences.
template <class F> void for_rows(int64_t rows, int64_t work, F&& f) {
  const int64_t grain = std::max<int64_t>(1, grain_default / std::max<int64_t>(work, 1));
  parallel_for(rows, grain, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) f(i);
  });
}
// Short rows that are compared with several are turned, so that vectors hold elements of as many
// rows: no sum has to be joined at last. `p` of general powers takes most of the time itself.
bool turns(int64_t rows, int64_t m, double p) {
  const bool simple = p == 0 || p == 1 || p == 2 || p == std::numeric_limits<double>::infinity();
  return simple && m > 0 && m <= turned_most && rows >= 4;
}
// Calls f(turned, begin, end) for pieces [begin, end) of n rows of y; `turned` is of the piece.
template <class C, class F> void for_turned(const C* y, int64_t n, int64_t m, F&& f) {
  constexpr int64_t W = turned_rows, most = 65536;  // elements
  const int64_t piece = most / m / W * W;
  const int64_t room = (std::min(n, piece) + W - 1) / W * W * m;
  const std::unique_ptr<C[]> turned(new C[static_cast<size_t>(room)]);
  for (int64_t begin = 0; begin < n; begin += piece) {
    const int64_t end = std::min(n, begin + piece);
    for (int64_t k = begin; k < (end + W - 1) / W * W; ++k) {
      const C* from = y + std::min(k, end - 1) * m;
      C* to = turned.get() + (k - begin) / W * W * m + (k - begin) % W;
      for (int64_t i = 0; i < m; ++i) to[i * W] = from[i];
    }
    f(turned.get(), begin, end);
  }
}
// Where the distances of row i to those after it begin.
int64_t first_pair(int64_t i, int64_t n) { return i * (2 * n - i - 1) / 2; }

}  // namespace

template <class C>
void distances(C* out, const C* x, const C* y, const DistanceShape& s, double p) {
  const auto& run = loops<C>();
  if (turns(s.p, s.m, p)) {
    return for_rows(s.b, s.p * s.r * (s.m + 8), [&](int64_t b) {
      const C* rows = y + b * s.r * s.m;
      for_turned(rows, s.r, s.m, [&](const C* turned, int64_t begin, int64_t end) {
        for_rows(s.p, (end - begin) * (s.m + 8), [&](int64_t i) {
          const int64_t row = b * s.p + i;
          run.to_turned(out + row * s.r + begin, x + row * s.m, rows + begin * s.m, turned, 0,
                        end - begin, s.m, p);
        });
      });
    });
  }
  for_rows(s.b * s.p, s.r * (s.m + 8), [&](int64_t i) {
    run.distances(out + i * s.r, x + i * s.m, y + i / s.p * s.r * s.m, s.r, s.m, p);
  });
}
namespace {

template <class C>
void turned_backward(C* dx, C* dy, const C* grad, const C* distance, const C* x, const C* y,
                     const DistanceShape& s, double p) {
  constexpr int64_t W = turned_rows;
  const auto& run = loops<C>();
  if (dx) std::fill_n(dx, s.b * s.p * s.m, C(0));
  for_rows(s.b, s.p * s.r * (s.m + 8), [&](int64_t b) {
    const C* from = x + b * s.p * s.m;
    for_turned(y + b * s.r * s.m, s.r, s.m, [&](const C* turned, int64_t begin, int64_t end) {
      const int64_t first = b * s.p * s.r + begin;  // of the distances
      if (dx) {
        for_rows(s.p, (end - begin) * (s.m + 8), [&](int64_t i) {
          const int64_t at = first + i * s.r;
          run.turned_slopes(dx + (b * s.p + i) * s.m, from + i * s.m, turned, grad + at,
                            distance + at, end - begin, s.m, p);
        });
      }
      if (dy) {
        for_rows((end - begin + W - 1) / W, W * s.p * (s.m + 8), [&](int64_t k) {
          const int64_t at = first + k * W;
          run.block_slopes(dy + (b * s.r + begin + k * W) * s.m, std::min(W, end - begin - k * W),
                           turned + k * W * s.m, from, grad + at, distance + at, s.r, s.p, s.m, p);
        });
      }
    });
  });
}

}  // namespace

template <class C>
void distances_backward(C* dx, C* dy, const C* grad, const C* distance, const C* x, const C* y,
                        const DistanceShape& s, double p) {
  if (p != 0 && turns(s.p, s.m, p)) return turned_backward(dx, dy, grad, distance, x, y, s, p);
  const auto& run = loops<C>();
  if (dx) {
    for_rows(s.b * s.p, s.r * (s.m + 8), [&](int64_t i) {
      C* to = dx + i * s.m;
      std::fill_n(to, s.m, C(0));
      run.slopes(to, x + i * s.m, y + i / s.p * s.r * s.m, grad + i * s.r, distance + i * s.r, 1,
                 s.r, s.m, p);
    });
  }
  if (!dy) return;
  for_rows(s.b * s.r, s.p * (s.m + 8), [&](int64_t j) {
    C* to = dy + j * s.m;
    std::fill_n(to, s.m, C(0));
    const int64_t batch = j / s.r, at = batch * s.p * s.r + j % s.r;
    run.slopes(to, y + j * s.m, x + batch * s.p * s.m, grad + at, distance + at, s.r, s.p, s.m, p);
  });
}

template <class C> void own_distances(C* out, const C* x, int64_t n, int64_t m, double p) {
  const auto& run = loops<C>();
  if (turns(n, m, p)) {
    return for_turned(x, n, m, [&](const C* turned, int64_t begin, int64_t end) {
      for_rows(end, (end - begin) * (m + 8), [&](int64_t i) {
        const int64_t first = std::max(i + 1, begin);
        if (first < end)
          run.to_turned(out + first_pair(i, n) + first - i - 1, x + i * m, x + begin * m, turned,
                        first - begin, end - begin, m, p);
      });
    });
  }
  auto row = [&](int64_t i) {
    run.distances(out + first_pair(i, n), x + i * m, x + (i + 1) * m, n - i - 1, m, p);
  };
  // A long row and a short one at a time.
  for_rows((n + 1) / 2, n * (m + 8), [&](int64_t i) {
    row(i);
    if (n - 1 - i != i) row(n - 1 - i);
  });
}
template <class C>
void own_distances_backward(C* dx, const C* grad, const C* distance, const C* x, int64_t n,
                            int64_t m, double p) {
  const auto& run = loops<C>();
  for_rows(n, n * (m + 8), [&](int64_t i) {
    C* to = dx + i * m;
    std::fill_n(to, m, C(0));
    for (int64_t j = 0; j < i; ++j) {
      const int64_t at = first_pair(j, n) + i - j - 1;
      run.slopes(to, x + i * m, x + j * m, grad + at, distance + at, 1, 1, m, p);
    }
    const int64_t at = first_pair(i, n);
    run.slopes(to, x + i * m, x + (i + 1) * m, grad + at, distance + at, 1, n - i - 1, m, p);
  });
}

template void distances(float*, const float*, const float*, const DistanceShape&, double);
template void distances(double*, const double*, const double*, const DistanceShape&, double);
template void distances_backward(float*, float*, const float*, const float*, const float*,
                                 const float*, const DistanceShape&, double);
template void distances_backward(double*, double*, const double*, const double*, const double*,
                                 const double*, const DistanceShape&, double);
template void own_distances(float*, const float*, int64_t, int64_t, double);
template void own_distances(double*, const double*, int64_t, int64_t, double);
template void own_distances_backward(float*, const float*, const float*, const float*, int64_t,
                                     int64_t, double);
template void own_distances_backward(double*, const double*, const double*, const double*, int64_t,
                                     int64_t, double);

}  // namespace clew::kernels
