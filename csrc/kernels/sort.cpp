// Sorting along one axis, and what sorting answers.
// May include: base, kernels.
// Invariant: elements are compared as unsigned keys that have their order; ties are broken by
// position.
#include "kernels/sort.h"

#include <bit>
#include <limits>
#include <memory>
#include <numeric>

#include "kernels/reduce_lines.h"

namespace clew::kernels {
namespace {

using SortTypes = RealNumericTypes;

template <int Bytes> struct unsigned_of;
template <> struct unsigned_of<1> { using type = uint8_t; };
template <> struct unsigned_of<2> { using type = uint16_t; };
template <> struct unsigned_of<4> { using type = uint32_t; };
template <> struct unsigned_of<8> { using type = uint64_t; };
template <class T> using key_t = typename unsigned_of<sizeof(T)>::type;

template <class T> inline key_t<T> key_of(T v) {
  using U = key_t<T>;
  constexpr U top = static_cast<U>(U(1) << (sizeof(T) * 8 - 1));
  if constexpr (std::is_unsigned_v<T>) {
    return v;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<U>(static_cast<U>(v) ^ top);
  } else {
    auto c = static_cast<compute_t<T>>(v);
    if (c != c) return static_cast<U>(~U(0));
    if (c == 0) return top;
    U bits = std::bit_cast<U>(v);
    return static_cast<U>(bits & top ? ~bits : bits | top);
  }
}

template <class U, class I> struct Item {
  U key;
  I index;
  bool operator<(const Item& o) const { return key < o.key || (key == o.key && index < o.index); }
};

// Stable: by bytes from the lowest, skipping those in which all keys agree.
template <class U, class I>
void sort_items(Item<U, I>* items, int64_t n, std::vector<Item<U, I>>& spare) {
  if (n < 256) {
    std::sort(items, items + n);
    return;
  }
  constexpr int digits = sizeof(U);
  std::vector<int64_t> counts(256 * digits, 0);
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < digits; ++d)
      ++counts[static_cast<size_t>(256 * d + ((items[i].key >> (8 * d)) & 255))];
  }
  spare.resize(static_cast<size_t>(n));
  Item<U, I>*from = items, *to = spare.data();
  for (int d = 0; d < digits; ++d) {
    int64_t* count = counts.data() + 256 * d;
    if (count[(from[0].key >> (8 * d)) & 255] == n) continue;
    int64_t at = 0;
    for (int b = 0; b < 256; ++b) at += std::exchange(count[b], at);
    for (int64_t i = 0; i < n; ++i) to[count[(from[i].key >> (8 * d)) & 255]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy(from, from + n, items);
}

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

template <class T, class It>
void load_items(It* items, const T* p, int64_t step, int64_t n, bool invert) {
  for (int64_t i = 0; i < n; ++i) {
    auto key = key_of(p[i * step]);
    items[i] = {static_cast<decltype(key)>(invert ? ~key : key),
                static_cast<decltype(It::index)>(i)};
  }
}

// Visits all lines: body(items, spare, source line, values line, indices line).
template <class T, class It, class Body>
void for_item_lines(const NdView& values, const NdView& indices, const NdView& src, int dim,
                    Body&& body) {
  Lines<3> lines({values, indices, src}, dim);
  int64_t n = lines.length[2];
  parallel_for(lines.count, std::max<int64_t>(1, grain_default / 8 / std::max<int64_t>(n, 1)),
               [&](int64_t begin, int64_t end) {
                 std::vector<It> items(static_cast<size_t>(n)), spare;
                 for (int64_t i = begin; i < end; ++i) {
                   auto off = lines.place(i);
                   body(lines, items.data(), spare, src.ptr<const T>() + off[2],
                        values.ptr<T>() + off[0], indices.ptr<int64_t>() + off[1]);
                 }
               });
}

// The k items of smallest key, in a heap whose top most elements lose against at once.
template <class T, class It>
void heap_smallest(It* items, const T* p, int64_t step, int64_t n, int64_t k, bool invert) {
  load_items(items, p, step, k, invert);
  std::make_heap(items, items + k);
  for (int64_t i = k; i < n; ++i) {
    auto key = key_of(p[i * step]);
    if (invert) key = static_cast<decltype(key)>(~key);
    if (key >= items[0].key) continue;
    std::pop_heap(items, items + k);
    items[k - 1] = {key, static_cast<decltype(It::index)>(i)};
    std::push_heap(items, items + k);
  }
}

}  // namespace

void sort(const NdView& values, const NdView& indices, const NdView& src, int dim,
          bool descending) {
  NdView v = as_bytes(values), s = as_bytes(src);
  int64_t n = s.ndim ? s.sizes[dim] : 1;
  if (n == 0) return;
  with_items(s.dtype, n, [&]<class T, class It>() {
    for_item_lines<T, It>(v, indices, s, dim,
                          [&](const Lines<3>& l, It* items, std::vector<It>& spare, const T* from,
                              T* to, int64_t* where) {
                            load_items(items, from, l.step[2], n, descending);
                            sort_items(items, n, spare);
                            for (int64_t i = 0; i < n; ++i) {
                              auto at = static_cast<int64_t>(items[i].index);
                              to[i * l.step[0]] = from[at * l.step[2]];
                              where[i * l.step[1]] = at;
                            }
                          });
  });
}

void topk(const NdView& values, const NdView& indices, const NdView& src, int dim, bool largest,
          bool sorted) {
  NdView v = as_bytes(values), s = as_bytes(src);
  int64_t n = s.ndim ? s.sizes[dim] : 1, k = v.ndim ? v.sizes[dim] : 1;
  if (k == 0) return;
  with_items(s.dtype, n, [&]<class T, class It>() {
    for_item_lines<T, It>(
        v, indices, s, dim,
        [&](const Lines<3>& l, It* items, std::vector<It>&, const T* from, T* to, int64_t* where) {
          // A heap is entered some k log(n / k) times; where that is often, selection is cheaper.
          if (k * static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n / k))) * 10 < n) {
            heap_smallest<T>(items, from, l.step[2], n, k, largest);
          } else {
            load_items(items, from, l.step[2], n, largest);
            if (k < n) std::nth_element(items, items + (k - 1), items + n);
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
int64_t picked(It* items, std::vector<It>& spare, const T* from, int64_t step, int64_t n, Pick what,
               int64_t k) {
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
  load_items(items, from, step, n, false);
  if (what != Pick::mode) {
    std::nth_element(items, items + k, items + n);
    return static_cast<int64_t>(items[k].index);
  }
  sort_items(items, n, spare);
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
    for_item_lines<T, It>(v, indices, s, dim,
                          [&](const Lines<3>& l, It* items, std::vector<It>& spare, const T* from,
                              T* to, int64_t* where) {
                            int64_t at = picked<T, It>(items, spare, from, l.step[2], n, what, k);
                            *to = from[at * l.step[2]];
                            *where = at;
                          });
  });
}

std::vector<int64_t> equal_runs(const NdView& rows, int64_t* order, bool sorted) {
  NdView v = as_bytes(rows);
  int64_t n = v.sizes[0], m = v.sizes[1];
  std::vector<int64_t> starts;
  std::iota(order, order + n, int64_t{0});
  with_items(v.dtype, n, [&]<class T, class It>() {
    const T* p = v.ptr<const T>();
    if (sorted && m == 1) {
      std::vector<It> items(static_cast<size_t>(n)), spare;
      load_items(items.data(), p, 1, n, false);
      sort_items(items.data(), n, spare);
      for (int64_t i = 0; i < n; ++i)
        order[i] = static_cast<int64_t>(items[static_cast<size_t>(i)].index);
    } else if (sorted) {
      std::stable_sort(order, order + n, [&](int64_t a, int64_t b) {
        return compare_rows(p + a * m, p + b * m, m) < 0;
      });
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
