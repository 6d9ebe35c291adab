// Sorting along one axis, and what sorting answers.
// May include: base, kernels.
// Invariant: ties are broken by position, so that no result depends on the thread count.
#include "kernels/sort.h"

#include <bit>
#include <limits>
#include <memory>
#include <numeric>

#include "kernels/reduce_lines.h"
#include "kernels/sort_items.h"

namespace clew::kernels {
namespace {

using SortTypes = RealNumericTypes;

// Calls body(Item<key, index> type, ...) with the dtype's key and an index type that n fits.
template <class F> void with_items(DType d, int64_t n, F&& body) {
  dispatch(d, SortTypes{}, [&]<class T>() {
    if (n <= std::numeric_limits<uint32_t>::max())
      body.template operator()<T, Item<key_t<T>, uint32_t>>();
    else
      body.template operator()<T, Item<key_t<T>, int64_t>>();
  });
}

// Bool is sorted as the byte it is.
NdView as_bytes(NdView v) {
  if (v.dtype == DType::Bool) v.dtype = DType::UInt8;
  return v;
}

// Visits all lines: body(lines, room, source line, values line, indices line). Few long lines go
// one after another, each on all threads.
template <class T, class Body>
void for_sort_lines(const NdView& values, const NdView& indices, const NdView& src, int dim,
                    Body&& body) {
  Lines<3> lines({values, indices, src}, dim);
  int64_t n = lines.length[2];
  bool one_by_one = n >= long_line && lines.count < num_threads();
  int64_t grain = std::max<int64_t>(1, grain_default / 8 / std::max<int64_t>(n, 1));
  parallel_for(lines.count, one_by_one ? lines.count : grain, [&](int64_t begin, int64_t end) {
    Room room;
    for (int64_t i = begin; i < end; ++i) {
      auto off = lines.place(i);
      body(lines, room, src.ptr<const T>() + off[2], values.ptr<T>() + off[0],
           indices.ptr<int64_t>() + off[1]);
    }
  });
}

// Elements for each one asked for, from which smallest_few() pays.
constexpr int64_t many_for_each = 32;

// The k items of smallest key, in no order. The k-th smallest of the minima of more than k groups
// bounds what is looked for: hardly more than k elements are below it.
template <class T, class It> It* smallest_few(Room& room, Keys<T> keys, int64_t n, int64_t k) {
  using U = key_t<T>;
  constexpr int64_t run = 16;  // elements that are looked at together
  constexpr U none = std::numeric_limits<U>::max();
  const auto groups =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(4 * k, run))));
  It* items = room.take<It>(n + 1 + 2 * groups);
  U *minima = reinterpret_cast<U*>(items + n + 1), *chunk = minima + groups;
  auto chunks = [&](auto&& f) {
    for (int64_t i = 0; i < n; i += groups) {
      const int64_t m = std::min(groups, n - i);
      if (keys.step == 1) {
        const Keys<T> dense{keys.from + i, 1, keys.invert};
        for (int64_t j = 0; j < m; ++j) chunk[j] = dense[j];
      } else {
        for (int64_t j = 0; j < m; ++j) chunk[j] = keys[i + j];
      }
      f(i, m);
    }
  };
  std::fill_n(minima, groups, none);
  chunks([&](int64_t, int64_t m) {
    for (int64_t j = 0; j < m; ++j) minima[j] = std::min(minima[j], chunk[j]);
  });
  std::nth_element(minima, minima + k - 1, minima + groups);
  const U bound = minima[k - 1];
  It* end = items;
  chunks([&](int64_t i, int64_t m) {
    std::fill_n(chunk + m, groups - m, none);
    for (int64_t j = 0; j < m; j += run) {
      U least = none;
      for (int64_t q = j; q < j + run; ++q) least = std::min(least, chunk[q]);
      if (least > bound) continue;
      for (int64_t q = j, stop = std::min(m, j + run); q < stop; ++q) {
        *end = {chunk[q], static_cast<typename It::Index>(i + q)};
        end += chunk[q] <= bound;
      }
    }
  });
  std::nth_element(items, items + k - 1, end);
  return items;
}

}  // namespace

void sort(const NdView& values, const NdView& indices, const NdView& src, int dim,
          bool descending) {
  NdView v = as_bytes(values), s = as_bytes(src);
  int64_t n = s.ndim ? s.sizes[dim] : 1;
  if (n == 0) return;
  with_items(s.dtype, n, [&]<class T, class It>() {
    for_sort_lines<T>(v, indices, s, dim,
                      [&](const Lines<3>& l, Room& room, const T* from, T* to, int64_t* where) {
                        in_order<T, typename It::Index>({from, l.step[2], descending}, n, room,
                                                        [&](int64_t i, int64_t at) {
                                                          to[i * l.step[0]] = from[at * l.step[2]];
                                                          where[i * l.step[1]] = at;
                                                        });
                      });
  });
}

void topk(const NdView& values, const NdView& indices, const NdView& src, int dim, bool largest,
          bool sorted) {
  NdView v = as_bytes(values), s = as_bytes(src);
  int64_t n = s.ndim ? s.sizes[dim] : 1, k = v.ndim ? v.sizes[dim] : 1;
  if (k == 0) return;
  with_items(s.dtype, n, [&]<class T, class It>() {
    for_sort_lines<T>(v, indices, s, dim,
                      [&](const Lines<3>& l, Room& room, const T* from, T* to, int64_t* where) {
                        const Keys<T> keys{from, l.step[2], largest};
                        It* items;
                        if (n / k >= many_for_each) {
                          items = smallest_few<T, It>(room, keys, n, k);
                        } else {
                          items = room.take<It>(n);
                          select_items<T>(items, keys, n, k - 1);
                        }
                        if (sorted) std::sort(items, items + k);
                        for (int64_t i = 0; i < k; ++i) {
                          auto at = static_cast<int64_t>(items[i].index);
                          to[i * l.step[0]] = from[at * l.step[2]];
                          where[i * l.step[1]] = at;
                        }
                      });
  });
}

namespace {

template <class T> bool is_nan(T v) {
  auto c = static_cast<compute_t<T>>(v);
  return c != c;
}

// The index of the element that `what` asks for.
template <class T, class It>
int64_t picked(Room& room, const T* from, int64_t step, int64_t n, Pick what, int64_t k) {
  if (what == Pick::median || what == Pick::nan_median) {
    int64_t numbers = n, first_nan = 0;
    for (int64_t i = n - 1; i >= 0; --i) {
      if (!is_nan(from[i * step])) continue;
      --numbers;
      first_nan = i;
    }
    if (numbers == 0 || (numbers < n && what == Pick::median)) return first_nan;
    k = (numbers - 1) / 2;
  }
  Keys<T> keys{from, step, false};
  It* items = room.take<It>(what == Pick::mode ? 2 * n : n);
  if (what != Pick::mode) {
    select_items<T>(items, keys, n, k);
    return static_cast<int64_t>(items[k].index);
  }
  load_items(items, keys, n);
  items = sort_items(items, items + n, n, std::numeric_limits<typename It::Key>::max());
  int64_t best = 0, most = 0;
  for (int64_t i = 0; i < n;) {
    int64_t j = i + 1;
    while (j < n && items[j].key == items[i].key) ++j;
    if (j - i > most) {
      most = j - i;
      best = static_cast<int64_t>(items[j - 1].index);
    }
    i = j;
  }
  return best;
}

template <class T> int compare_rows(const T* a, const T* b, int64_t m) {
  for (int64_t i = 0; i < m; ++i) {
    auto x = key_of(a[i]), y = key_of(b[i]);
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

}  // namespace

void pick(const NdView& values, const NdView& indices, const NdView& src, int dim, Pick what,
          int64_t k) {
  NdView v = as_bytes(values), s = as_bytes(src);
  int64_t n = s.ndim ? s.sizes[dim] : 1;
  if (n == 0) return;
  with_items(s.dtype, n, [&]<class T, class It>() {
    for_sort_lines<T>(v, indices, s, dim,
                      [&](const Lines<3>& l, Room& room, const T* from, T* to, int64_t* where) {
                        int64_t at = picked<T, It>(room, from, l.step[2], n, what, k);
                        *to = from[at * l.step[2]];
                        *where = at;
                      });
  });
}

// Where elements differ from the one before; NaN does from any.
template <class T, class At> static std::vector<int64_t> starts_of(int64_t n, At&& at) {
  std::vector<int64_t> starts;
  auto last = compute_t<T>(0);
  for (int64_t i = 0; i < n; ++i) {
    const auto here = static_cast<compute_t<T>>(at(i));
    if (i == 0 || !(here == last)) starts.push_back(i);
    last = here;
  }
  return starts;
}

std::vector<int64_t> equal_neighbours(const NdView& values) {
  const NdView v = as_bytes(values);
  std::vector<int64_t> starts;
  with_items(v.dtype, v.sizes[0], [&]<class T, class It>() {
    starts = starts_of<T>(v.sizes[0], [p = v.ptr<const T>()](int64_t i) { return p[i]; });
  });
  return starts;
}

std::vector<int64_t> equal_runs(const NdView& rows, int64_t* order, bool sorted) {
  NdView v = as_bytes(rows);
  int64_t n = v.sizes[0], m = v.sizes[1];
  std::vector<int64_t> starts;
  std::iota(order, order + n, int64_t{0});
  with_items(v.dtype, n, [&]<class T, class It>() {
    const T* p = v.ptr<const T>();
    if (sorted && m == 1) {
      Room room;
      in_order<T, typename It::Index>({p, 1, false}, n, room,
                                      [&](int64_t i, int64_t at) { order[i] = at; });
    } else if (sorted) {
      std::stable_sort(order, order + n, [&](int64_t a, int64_t b) {
        return compare_rows(p + a * m, p + b * m, m) < 0;
      });
    }
    if (m == 1) {
      starts = starts_of<T>(n, [&](int64_t i) { return p[order[i]]; });
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      bool same = i > 0;
      for (int64_t j = 0; same && j < m; ++j) {
        same = static_cast<compute_t<T>>(p[order[i] * m + j]) ==
               static_cast<compute_t<T>>(p[order[i - 1] * m + j]);
      }
      if (!same) starts.push_back(i);
    }
  });
  return starts;
}

}  // namespace clew::kernels
