// Weighted sums of elements along one dim, and their transpose, which is one too.
// May include: base, kernels.
// Invariant: a task owns columns of one outer element; no result is written twice by two.
#include "kernels/resample/resampling.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/parallel.h"

namespace clew::kernels {

namespace {

constexpr int64_t columns = 2048;  // of a task: a few rows of them stay in the first-level cache

// The terms of each result: those of result i are start[i] to start[i + 1].
template <class T> struct Terms {
  std::vector<int64_t> start, place;
  std::vector<T> weight;
  int64_t from, to;  // elements along the dim, before and after
};

// The results of one line; K is the number of terms of each, or 0 when they differ.
template <int K, class T>
void line(T* __restrict out, const T* __restrict x, const Terms<T>& terms) {
  const int64_t* start = terms.start.data();
  const int64_t* place = terms.place.data();
  const T* weight = terms.weight.data();
  for (int64_t i = 0; i < terms.to; ++i) {
    const int64_t first = K ? i * K : start[i], end = K ? first + K : start[i + 1];
    T sum = 0;
    for (int64_t k = first; k < end; ++k) sum += weight[k] * x[place[k]];
    out[i] = sum;
  }
}
// n columns of lines that lie `inner` apart.
template <class T>
void columns_of(T* out, const T* x, const Terms<T>& terms, int64_t inner, int64_t n) {
  for (int64_t i = 0; i < terms.to; ++i, out += inner) {
    int64_t k = terms.start[static_cast<size_t>(i)];
    const int64_t first = k, end = terms.start[static_cast<size_t>(i) + 1];
    auto row = [&](int64_t at) { return x + terms.place[static_cast<size_t>(at)] * inner; };
    auto share = [&](int64_t at) { return terms.weight[static_cast<size_t>(at)]; };
    for (; k + 2 <= end; k += 2) {
      const T *a = row(k), *b = row(k + 1);
      const T wa = share(k), wb = share(k + 1);
      if (k == first) {
        for (int64_t j = 0; j < n; ++j) out[j] = wa * a[j] + wb * b[j];
      } else {
        for (int64_t j = 0; j < n; ++j) out[j] += wa * a[j] + wb * b[j];
      }
    }
    if (k == first) std::fill_n(out, n, T(0));
    for (; k < end; ++k) {
      const T* a = row(k);
      const T w = share(k);
      for (int64_t j = 0; j < n; ++j) out[j] += w * a[j];
    }
  }
}

template <class T>
void run(T* out, const T* x, const Terms<T>& terms, const LineShape& s, bool even) {
  const int64_t pieces = std::max<int64_t>(1, (s.inner + columns - 1) / columns);
  const int64_t work = s.points * s.terms * std::min(s.inner, columns) + terms.to;
  auto* one = !even          ? line<0, T>
              : s.terms == 2 ? line<2, T>
              : s.terms == 4 ? line<4, T>
                             : line<0, T>;
  parallel_for(s.outer * pieces, 1 + grain_default / (1 + work), [&](int64_t from, int64_t to) {
    for (int64_t task = from; task < to; ++task) {
      const int64_t o = task / pieces, first = task % pieces * columns;
      T* y = out + o * terms.to * s.inner + first;
      const T* some = x + o * terms.from * s.inner + first;
      if (s.inner == 1)
        one(y, some, terms);
      else
        columns_of(y, some, terms, s.inner, std::min(columns, s.inner - first));
    }
  });
}

}  // namespace

template <class T>
void resample(T* out, const T* x, const int64_t* index, const T* weight, const LineShape& s) {
  Terms<T> terms{{0}, {}, {}, s.size, s.points};
  for (int64_t k = 0, p = 0; p < s.points; ++p) {
    for (const int64_t end = k + s.terms; k < end; ++k) {
      if (index[k] < 0) continue;
      terms.place.push_back(index[k]);
      terms.weight.push_back(weight[k]);
    }
    terms.start.push_back(static_cast<int64_t>(terms.place.size()));
  }
  run(out, x, terms, s, terms.start.back() == s.points * s.terms);
}

template <class T>
void resample_backward(T* dx, const T* grad, const int64_t* index, const T* weight,
                       const LineShape& s) {
  const auto all = static_cast<size_t>(s.points * s.terms);
  Terms<T> terms{std::vector<int64_t>(static_cast<size_t>(s.size) + 1), std::vector<int64_t>(all),
                 std::vector<T>(all), s.points, s.size};
  for (size_t k = 0; k < all; ++k) {
    if (index[k] >= 0) ++terms.start[static_cast<size_t>(index[k]) + 1];
  }
  std::partial_sum(terms.start.begin(), terms.start.end(), terms.start.begin());
  std::vector<int64_t> next(terms.start);
  for (size_t k = 0; k < all; ++k) {
    if (index[k] < 0) continue;
    const auto at = static_cast<size_t>(next[static_cast<size_t>(index[k])]++);
    terms.place[at] = static_cast<int64_t>(k) / s.terms;
    terms.weight[at] = weight[k];
  }
  run(dx, grad, terms, s, false);
}

template void resample(float*, const float*, const int64_t*, const float*, const LineShape&);
template void resample(double*, const double*, const int64_t*, const double*, const LineShape&);
template void resample_backward(float*, const float*, const int64_t*, const float*,
                                const LineShape&);
template void resample_backward(double*, const double*, const int64_t*, const double*,
                                const LineShape&);

}  // namespace clew::kernels
