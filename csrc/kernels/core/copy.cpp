// copy, fill and where: elements moved between any two layouts.
// May include: base, kernels.
// Invariant: equal dtypes copy bytes, so every bit pattern (NaN payloads too) survives.
#include <cstring>
#include <cwchar>

#include "base/ndview.h"
#include "kernels/core/index_walk.h"
#include "kernels/core/loop_tables.h"
#include "kernels/core/stream.h"
#include "kernels/core/transpose.h"

namespace clew::kernels {

namespace {

// Rows, or one number for all of them.
template <class T, bool one_a, bool one_b>
void where_rows(T* o, const bool* c, const T* a, const T* b, int64_t n) {
  const T first = *a, second = *b;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T x = one_a ? first : a[i], y = one_b ? second : b[i];
    if constexpr (std::is_integral_v<T>) {
      // All ones or all zeros: no branch to predict, and the loop is vectorised.
      T mask = static_cast<T>(T(0) - static_cast<T>(c[i]));
      o[i] = static_cast<T>((x & mask) | (y & static_cast<T>(~mask)));
    } else {
      o[i] = c[i] ? x : y;
    }
  }
}
template <class T> void where_loop(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  constexpr int64_t item = sizeof(T);
  const bool one_a = s[2] == 0, one_b = s[3] == 0;
  if (s[0] == item && s[1] == 1 && (s[2] == item || one_a) && (s[3] == item || one_b)) {
    auto rows = one_a ? (one_b ? where_rows<T, true, true> : where_rows<T, true, false>)
                      : (one_b ? where_rows<T, false, true> : where_rows<T, false, false>);
    rows(reinterpret_cast<T*>(p[0]), reinterpret_cast<const bool*>(p[1]),
         reinterpret_cast<const T*>(p[2]), reinterpret_cast<const T*>(p[3]), n);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    bool c = *reinterpret_cast<const bool*>(p[1] + i * s[1]);
    const char* from = c ? p[2] + i * s[2] : p[3] + i * s[3];
    *reinterpret_cast<T*>(p[0] + i * s[0]) = *reinterpret_cast<const T*>(from);
  }
}

// Left to the C library where four bytes say all: its loops use the widest stores, and for zeros
// they write cache lines without reading them first.
template <class T> void fill_row(T* to, T value, int64_t n) {
  T line[line_bytes / sizeof(T)];
  std::fill_n(line, std::ssize(line), value);
  constexpr char zero[line_bytes] = {};
  if (std::memcmp(line, zero, sizeof line) == 0) {
    std::memset(static_cast<void*>(to), 0, static_cast<size_t>(n) * sizeof(T));
    return;
  }
  for (; n > 0 && !starts_line(to); --n) *to++ = value;
  int64_t whole = n / std::ssize(line) * std::ssize(line);
  n -= whole;
  static_assert(sizeof(wchar_t) == 4);
  wchar_t word;
  std::memcpy(&word, line, sizeof word);
  if (std::memcmp(line, reinterpret_cast<char*>(line) + sizeof word, sizeof line - sizeof word) ==
      0) {
    std::wmemset(reinterpret_cast<wchar_t*>(to), word, static_cast<size_t>(whole) * sizeof(T) / 4);
    to += whole;
  } else {
    for (; whole > 0; whole -= std::ssize(line), to += std::ssize(line))
      std::memcpy(static_cast<void*>(to), line, sizeof line);
  }
  std::fill_n(to, n, value);
}
template <class T> void fill_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* v) {
  const T value = v->to<T>();
  if (s[0] == sizeof(T) && n >= line_bytes) {
    fill_row(reinterpret_cast<T*>(p[0]), value, n);
  } else if (s[0] == sizeof(T)) {
    std::fill_n(reinterpret_cast<T*>(p[0]), n, value);
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(p[0] + i * s[0]) = value;
  }
}

}  // namespace

Loop where_loop_of(size_t item) {
  Loop found = nullptr;
  dispatch_size(item, [&]<class T>() { found = where_loop<T>; });
  return found;
}

void copy(const NdView& dst, const NdView& src) {
  const size_t item = itemsize(dst.dtype);
  if (dst.dtype == src.dtype) {
    if (dst.contiguous() && src.contiguous()) {
      int64_t n = dst.numel();
      if (n == 0 || dst.data == src.data) return;
      constexpr int64_t thread_bytes = 192 << 10;  // from so many on a thread pays
      parallel_for(n, thread_bytes / static_cast<int64_t>(item), [&](int64_t begin, int64_t end) {
        std::memmove(dst.data + begin * static_cast<int64_t>(item),
                     src.data + begin * static_cast<int64_t>(item),
                     static_cast<size_t>(end - begin) * item);
      });
      return;
    }
    if (dst.numel() == 0 || copy_transposed(dst, src)) return;
  }
  char* data[2] = {dst.data, src.data};
  const int64_t* strides[2] = {dst.strides, src.strides};
  size_t items[2] = {item, itemsize(src.dtype)};
  run_loop(cast_loop_of(src.dtype, dst.dtype), 2, data, strides, items, dst.sizes, dst.ndim,
           nullptr);
}

void clear(char* at, int64_t bytes) {
  parallel_for(bytes, int64_t{1} << 18, [at](int64_t begin, int64_t end) {
    std::memset(at + begin, 0, static_cast<size_t>(end - begin));
  });
}

void fill(const NdView& dst, const Scalar& value) {
  dispatch(dst.dtype, EveryType{}, [&]<class T>() {
    char* data[1] = {dst.data};
    const int64_t* strides[1] = {dst.strides};
    size_t items[1] = {sizeof(T)};
    run_loop(fill_loop<T>, 1, data, strides, items, dst.sizes, dst.ndim, &value);
  });
}

}  // namespace clew::kernels
