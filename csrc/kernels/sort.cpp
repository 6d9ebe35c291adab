// Sorting along one axis, and what sorting answers.
// May include: base, kernels.
// Invariant: ties are broken by position, so that no result depends on the thread count.
#include "kernels/sort.h"

#include <bit>
#include <limits>

#include "base/scratch.h"
#include "kernels/reduce_lines.h"
#include "kernels/sort_items.h"

namespace clew::kernels {
namespace {

// What a thread sorts in; the next line, or the next call, mostly needs as much.
const LocalScratch scratch;
constexpr size_t kept_megabytes = 64;

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
    Scratch& room = scratch.here();
    for (int64_t i = begin; i < end; ++i) {
      auto off = lines.place(i);
      body(lines, room, src.ptr<const T>() + off[2], values.ptr<T>() + off[0],
           indices.ptr<int64_t>() + off[1]);
    }
    room.trim(kept_megabytes);
  });
}

// Elements for each one asked for, from which smallest_few() pays.
constexpr int64_t many_for_each = 32;

// The k items of smallest key, in no order. The k-th smallest of the minima of more than k groups
// bounds what is looked for: hardly more than k elements are below it.
template <class T, class It> It* smallest_few(Scratch& room, Keys<T> keys, int64_t n, int64_t k) {
  using U = key_t<T>;
  constexpr int64_t run = 16;  // elements that are looked at together
  constexpr U none = std::numeric_limits<U>::max();
  const auto groups =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(4 * k, run))));
  It* items = room.of<It>(n + 1 + 2 * groups);
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
                      [&](const Lines<3>& l, Scratch& room, const T* from, T* to, int64_t* where) {
                        const Keys<T> keys{from, l.step[2], descending};
                        with_sorted<Item, T, typename It::Index>(
                            keys, n, room.of<It>(2 * n), [&](auto* sorted, key_t<T> low) {
                              for_pieces(n, pieces_of(n), [&](int64_t, int64_t i, int64_t end) {
                                for (; i < end; ++i) {
                                  const auto at = static_cast<int64_t>(sorted[i].index);
                                  to[i * l.step[0]] = keys.element(sorted[i].key, low, at);
                                  where[i * l.step[1]] = at;
                                }
                              });
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
                      [&](const Lines<3>& l, Scratch& room, const T* from, T* to, int64_t* where) {
                        const Keys<T> keys{from, l.step[2], largest};
                        It* items;
                        if (n / k >= many_for_each) {
                          items = smallest_few<T, It>(room, keys, n, k);
                        } else {
                          items = room.of<It>(n);
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
int64_t picked(Scratch& room, const T* from, int64_t step, int64_t n, Pick what, int64_t k) {
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
  if (what != Pick::mode) {
    It* items = room.of<It>(n);
    select_items<T>(items, keys, n, k);
    return static_cast<int64_t>(items[k].index);
  }
  const It* items =
      sorted_items<It>(room.of<It>(2 * n), n, std::numeric_limits<typename It::Key>::max(), false,
                       [keys](int64_t i) {
                         return It{keys[i], static_cast<typename It::Index>(i)};
                       });
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

}  // namespace

void pick(const NdView& values, const NdView& indices, const NdView& src, int dim, Pick what,
          int64_t k) {
  NdView v = as_bytes(values), s = as_bytes(src);
  int64_t n = s.ndim ? s.sizes[dim] : 1;
  if (n == 0) return;
  with_items(s.dtype, n, [&]<class T, class It>() {
    for_sort_lines<T>(v, indices, s, dim,
                      [&](const Lines<3>& l, Scratch& room, const T* from, T* to, int64_t* where) {
                        int64_t at = picked<T, It>(room, from, l.step[2], n, what, k);
                        *to = from[at * l.step[2]];
                        *where = at;
                      });
  });
}

}  // namespace clew::kernels
