// Sorting along one axis, and what sorting answers.
// May include: base, kernels.
// Invariant: ties are broken by position, so that no result depends on the thread count.
#include "kernels/sort/sort.h"

#include <bit>
#include <limits>

#include "base/long_work.h"
#include "base/scratch.h"
#include "kernels/core/instruction_set.h"
#include "kernels/reduce/reduce_lines.h"
#include "kernels/sort/short_lines.h"
#include "kernels/sort/sort_items.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const KeyTable key_table;)

namespace {

const KeyTable& chosen = CLEW_CHOSEN(key_table);

// The loops for T; nullptr_t where there are none.
template <class T> auto key_loops() {
  if constexpr (std::is_same_v<T, float>)
    return &chosen.f32;
  else if constexpr (std::is_same_v<T, double>)
    return &chosen.f64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return &chosen.i32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return &chosen.i64;
  else if constexpr (std::is_same_v<T, f16>)
    return &chosen.f16s;
  else if constexpr (std::is_same_v<T, bf16>)
    return &chosen.bf16s;
  else
    return nullptr;
}

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
      if (n >= 1024) stop_point();
      auto off = lines.place(i);
      body(lines, room, src.ptr<const T>() + off[2], values.ptr<T>() + off[0],
           indices.ptr<int64_t>() + off[1]);
    }
    room.trim(kept_megabytes);
  });
}

// The first `wanted` elements in order of each of many short lines; false where there are none.
template <class T>
bool in_lanes(const NdView& values, const NdView& indices, const NdView& src, int dim,
              int64_t wanted, bool invert) {
  const Lines<3> lines({values, indices, src}, dim);
  const T* from = src.ptr<const T>();
  auto put = [&](const SortedLines& sorted, int64_t lane, const std::array<int64_t, 3>& off) {
    const T* line = from + off[2];
    T* to = values.ptr<T>() + off[0];
    int64_t* where = indices.ptr<int64_t>() + off[1];
    for (int64_t i = 0; i < wanted; ++i) {
      const int64_t at = sorted.place<key_t<T>>(i, lane);
      to[i * lines.step[0]] = line[at * lines.step[2]];
      where[i * lines.step[1]] = at;
    }
  };
  return sort_side_by_side<T>(chosen, lines, from, wanted, invert, put);
}

// Number of elements per requested one from which smallest_few() is faster.
constexpr int64_t many_for_each = 32;

// The k items of smallest key, in no order. The k-th smallest of the minima of more than k groups
// bounds what is looked for: hardly more than k elements are below it.
template <class T, class It> It* smallest_few(Scratch& room, Keys<T> keys, int64_t n, int64_t k) {
  using U = key_t<T>;
  constexpr U none = std::numeric_limits<U>::max();
  constexpr int64_t least = 64;
  const auto groups =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(4 * k, least))));
  It* items = room.of<It>(n + 1 + 2 * groups + groups * 4 / static_cast<int64_t>(sizeof(It)) + 1);
  U *minima = reinterpret_cast<U*>(items + n + 1), *chunk = minima + groups;
  auto* places = reinterpret_cast<uint32_t*>(chunk + groups);
  const auto loops = key_loops<T>();
  const bool in_vectors = !std::is_null_pointer_v<decltype(key_loops<T>())> && keys.step == 1;
  const U flip = keys.invert ? none : U(0);
  std::fill_n(minima, groups, none);
  for (int64_t i = 0; i < n; i += groups) {
    const int64_t m = std::min(groups, n - i);
    if constexpr (!std::is_null_pointer_v<decltype(key_loops<T>())>) {
      if (in_vectors) {
        loops->lower(keys.from + i, m, flip, minima);
        continue;
      }
    }
    for (int64_t j = 0; j < m; ++j) minima[j] = std::min(minima[j], keys[i + j]);
  }
  std::nth_element(minima, minima + k - 1, minima + groups);
  const U bound = minima[k - 1];
  It* end = items;
  // Appends what is not above `top`; false, with some of it, once these are more than `most`.
  auto collect = [&](U top, int64_t most) {
    for (int64_t i = 0; i < n && end - items <= most; i += groups) {
      const int64_t m = std::min(groups, n - i);
      if constexpr (!std::is_null_pointer_v<decltype(key_loops<T>())>) {
        if (in_vectors) {
          loops->turn(keys.from + i, m, flip, chunk);
          const int64_t count = loops->below(chunk, m, top, places);
          for (int64_t q = 0; q < count; ++q)
            *end++ = {chunk[places[q]], static_cast<typename It::Index>(i + places[q])};
          continue;
        }
      }
      for (int64_t j = 0; j < m; ++j) {
        const U key = keys[i + j];
        *end = {key, static_cast<typename It::Index>(i + j)};
        end += key <= top;
      }
    }
    return end - items <= most;
  };
  if (!collect(bound, 8 * k + groups)) {  // most of them are equal: a few of these will do
    end = items;
    if (bound > 0) collect(static_cast<U>(bound - 1), n);
    for (int64_t i = 0; i < n && end - items < k; ++i)
      if (const U key = keys[i]; key == bound) *end++ = {key, static_cast<typename It::Index>(i)};
  }
  if (end - items < k) {  // another thread has changed elements in between
    load_items(items, keys, n, U(0));
    end = items + n;
  }
  std::nth_element(items, items + k - 1, end);
  return items;
}

// Lines of one element are in order.
bool take_single(const NdView& values, const NdView& indices, const NdView& src, int64_t n) {
  if (n != 1) return false;
  copy(values, src);
  fill(indices, Scalar(0));
  return true;
}

}  // namespace

void sort(const NdView& values, const NdView& indices, const NdView& src, int dim,
          bool descending) {
  const LongWork work(src.numel());
  NdView v = as_bytes(values), s = as_bytes(src);
  int64_t n = s.ndim ? s.sizes[dim] : 1;
  if (n == 0 || take_single(v, indices, s, n)) return;
  with_items(s.dtype, n, [&]<class T, class It>() {
    if (in_lanes<T>(v, indices, s, dim, n, descending)) return;
    for_sort_lines<T>(
        v, indices, s, dim,
        [&](const Lines<3>& l, Scratch& room, const T* from, T* to, int64_t* where) {
          const Keys<T> keys{from, l.step[2], descending};
          with_sorted<It>(keys, n, room.of<It>(2 * n), [&](auto* sorted, key_t<T> low) {
            for_pieces(n, pieces_of(n), [&](int64_t, int64_t i, int64_t end) {
              for (; i < end; ++i) {
                const auto at = static_cast<int64_t>(sorted[i].index);
                to[i * l.step[0]] = keys.element(static_cast<key_t<T>>(sorted[i].key), low, at);
                where[i * l.step[1]] = at;
              }
            });
          });
        });
  });
}

void topk(const NdView& values, const NdView& indices, const NdView& src, int dim, bool largest,
          bool sorted) {
  const LongWork work(src.numel());
  NdView v = as_bytes(values), s = as_bytes(src);
  int64_t n = s.ndim ? s.sizes[dim] : 1, k = v.ndim ? v.sizes[dim] : 1;
  if (k == 0 || take_single(v, indices, s, n)) return;
  with_items(s.dtype, n, [&]<class T, class It>() {
    if (in_lanes<T>(v, indices, s, dim, k, largest)) return;
    for_sort_lines<T>(v, indices, s, dim,
                      [&](const Lines<3>& l, Scratch& room, const T* from, T* to, int64_t* where) {
                        const Keys<T> keys{from, l.step[2], largest};
                        It* items;
                        if (n / k >= many_for_each) {
                          items = smallest_few<T, It>(room, keys, n, k);
                        } else {
                          items = room.of<It>(std::max(n, 2 * std::min(n, tiny_selection)));
                          select_items<T>(items, keys, n, k - 1);
                        }
                        if (sorted && n > tiny_selection) std::sort(items, items + k);
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
    It* items = room.of<It>(std::max(n, 2 * std::min(n, tiny_selection)));
    select_items<T>(items, keys, n, k);
    return static_cast<int64_t>(items[k].index);
  }
  It* loaded = room.of<It>(2 * n);
  load_items(loaded, keys, n, key_t<T>(0));
  const It* items = sort_items(loaded, n, std::numeric_limits<typename It::Key>::max());
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

// The same in a line that is sorted, up to the k-th element where that is asked for.
template <class T>
int64_t picked_in_lane(const SortedLines& sorted, int64_t lane, int64_t n, Pick what, int64_t k) {
  using U = key_t<T>;
  if (what == Pick::median || what == Pick::nan_median) {
    int64_t numbers = n;
    if constexpr (is_float_v<T>) {
      while (numbers > 0 && sorted.key<U>(numbers - 1, lane) == static_cast<U>(~U(0))) --numbers;
    }
    const bool nan = numbers == 0 || (numbers < n && what == Pick::median);
    k = nan ? numbers : (numbers - 1) / 2;
  }
  if (what != Pick::mode) return sorted.place<U>(k, lane);
  int64_t best = 0, most = 0, run = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bool same = i > 0 && sorted.key<U>(i, lane) == sorted.key<U>(i - 1, lane);
    run = same ? run + 1 : 1;
    const bool last = i + 1 == n || sorted.key<U>(i + 1, lane) != sorted.key<U>(i, lane);
    if (!last || run <= most) continue;
    most = run;
    best = sorted.place<U>(i, lane);
  }
  return best;
}
}  // namespace

void pick(const NdView& values, const NdView& indices, const NdView& src, int dim, Pick what,
          int64_t k) {
  const LongWork work(src.numel());
  NdView v = as_bytes(values), s = as_bytes(src);
  int64_t n = s.ndim ? s.sizes[dim] : 1;
  if (n == 0 || take_single(v, indices, s, n)) return;
  with_items(s.dtype, n, [&]<class T, class It>() {
    const Lines<3> lines({v, indices, s}, dim);
    const T* first = s.ptr<const T>();
    auto put = [&](const SortedLines& sorted, int64_t lane, const std::array<int64_t, 3>& off) {
      const int64_t at = picked_in_lane<T>(sorted, lane, n, what, k);
      v.ptr<T>()[off[0]] = first[off[2] + at * lines.step[2]];
      indices.ptr<int64_t>()[off[1]] = at;
    };
    const int64_t wanted = what == Pick::kth ? k + 1 : n;
    const bool pays = what == Pick::mode || n <= side_by_side_most / 2;
    if (pays && sort_side_by_side<T>(chosen, lines, first, wanted, false, put)) return;
    for_sort_lines<T>(v, indices, s, dim,
                      [&](const Lines<3>& l, Scratch& room, const T* from, T* to, int64_t* where) {
                        int64_t at = picked<T, It>(room, from, l.step[2], n, what, k);
                        *to = from[at * l.step[2]];
                        *where = at;
                      });
  });
}

}  // namespace clew::kernels
