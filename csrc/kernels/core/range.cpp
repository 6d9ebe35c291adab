// The position-only fills.
// May include: base, kernels.
// Invariant: floating values are computed in double and rounded once.
#include "kernels/core/range.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace clew::kernels {

namespace {

template <class T> using wide_t = std::conditional_t<is_complex_v<T>, c128, double>;

// The i-th of n equally spaced values, counted from the nearer end so that both ends are exact.
template <class W> W spaced(W start, W end, W step, int64_t i, int64_t n) {
  return i < n / 2 ? start + step * static_cast<double>(i)
                   : end - step * static_cast<double>(n - 1 - i);
}

// A number as an element of T, refused where T cannot hold it; a negative whole number wraps around
// in an unsigned T.
template <class T> T fitting(const Scalar& v, const char* op) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr auto top = std::numeric_limits<T>::max();
    bool fits = true;
    if (v.is_big()) {
      fits = std::is_same_v<T, uint64_t>;
    } else if (v.is_integral()) {
      const int64_t i = v.to_int();
      const auto size = i < 0 ? uint64_t{0} - static_cast<uint64_t>(i) : static_cast<uint64_t>(i);
      fits = size <= static_cast<uint64_t>(top) ||
             (std::is_signed_v<T> && i == static_cast<int64_t>(std::numeric_limits<T>::lowest()));
    } else {
      const double f = v.to_double();
      fits = f >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
             f <= static_cast<double>(top);
    }
    require(fits, op, ": value cannot be converted to ", dtype_of<T>(), " without overflow");
  }
  return v.to<T>();
}

// Calls f(to, first, count) for short runs of a large index space, on all threads: within one the
// index is an int, which vectors convert.
template <class T, class F> void for_runs(T* x, int64_t n, F&& f) {
  constexpr int64_t run = 1024;
  parallel_for(n, grain_default, [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += run)
      f(x + begin, begin, static_cast<int>(std::min(run, end - begin)));
  });
}

}  // namespace

void range(const NdView& dst, const Scalar& start, const Scalar& step) {
  int64_t n = dst.numel();
  dispatch(dst.dtype, AllTypes{}, [&]<class T>() {
    if (std::is_integral_v<T> && start.is_integral() && step.is_integral()) {
      uint64_t a = static_cast<uint64_t>(start.to_int()), s = static_cast<uint64_t>(step.to_int());
      for_runs(dst.ptr<T>(), n, [=](T* to, int64_t first, int count) {
        uint64_t value = a + s * static_cast<uint64_t>(first);
        for (int i = 0; i < count; ++i, value += s) to[i] = convert<T>(static_cast<int64_t>(value));
      });
      return;
    }
    auto a = start.to<wide_t<T>>(), s = step.to<wide_t<T>>();
    if constexpr (std::is_integral_v<T>) {
      // Both are cut to whole numbers first, as PyTorch does.
      a = static_cast<double>(start.to_int());
      s = static_cast<double>(step.to_int());
    }
    for_runs(dst.ptr<T>(), n, [=](T* to, int64_t first, int count) {
      const auto from = static_cast<double>(first);  // sums of whole numbers are exact
      for (int i = 0; i < count; ++i) to[i] = convert<T>(a + s * (from + i));
    });
  });
}

void linspace(const NdView& dst, const Scalar& start, const Scalar& end) {
  int64_t n = dst.numel();
  dispatch(dst.dtype, AllTypes{}, [&]<class T>() {
    T* x = dst.ptr<T>();
    auto a = start.to<wide_t<T>>(), b = end.to<wide_t<T>>();
    if (n == 1) {
      x[0] = convert<T>(a);
      return;
    }
    if constexpr (std::is_integral_v<T>) {
      a = static_cast<double>(fitting<T>(start, "linspace"));
      b = static_cast<double>(fitting<T>(end, "linspace"));
    }
    auto step = (b - a) / static_cast<double>(n - 1);
    if constexpr (std::is_same_v<T, float>) {
      // PyTorch's step is a float; its sums are rounded once, like these.
      const float low = start.to<float>(), high = end.to<float>();
      a = low, b = high, step = (high - low) / static_cast<float>(n - 1);
    }
    // From the nearer end, as spaced() has it. Whole numbers are cut from sums rounded once, as
    // PyTorch's are.
    auto sum = [](auto from, auto by, double times) {
      if constexpr (std::is_integral_v<T>)
        return std::fma(by, times, from);
      else
        return from + by * times;
    };
    for_runs(x, n, [=](T* to, int64_t first, int count) {
      const int low = static_cast<int>(std::clamp<int64_t>(n / 2 - first, 0, count));
      const auto from = static_cast<double>(first), left = static_cast<double>(n - 1 - first);
      for (int i = 0; i < low; ++i) to[i] = convert<T>(sum(a, step, from + i));
      for (int i = low; i < count; ++i) to[i] = convert<T>(sum(b, step, i - left));
    });
  });
}

void logspace(const NdView& dst, const Scalar& start, const Scalar& end, double base) {
  int64_t n = dst.numel();
  dispatch(dst.dtype, AllTypes{}, [&]<class T>() {
    T* x = dst.ptr<T>();
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (n == 1) {
        x[0] = fitting<T>(Scalar(std::pow(base, start.to_double())), "logspace");
        return;
      }
      // The ends are cut to whole numbers, the powers between them are not, as PyTorch has it.
      const auto a = static_cast<double>(fitting<T>(start, "logspace"));
      const auto b = static_cast<double>(fitting<T>(end, "logspace"));
      const double step = (b - a) / static_cast<double>(n - 1);
      for (int64_t i = 0; i < n; ++i) x[i] = convert<T>(std::pow(base, spaced(a, b, step, i, n)));
      return;
    }
    auto a = start.to<wide_t<T>>(), b = end.to<wide_t<T>>();
    auto step = n > 1 ? (b - a) / static_cast<double>(n - 1) : decltype(a)(0);
    for (int64_t i = 0; i < n; ++i) {
      auto power = n == 1 ? a : spaced(a, b, step, i, n);
      if constexpr (is_complex_v<T>)
        x[i] = convert<T>(std::pow(c128(base), power));
      else
        x[i] = convert<T>(std::pow(base, power));
    }
  });
}

void eye(const NdView& dst) {
  int64_t rows = dst.sizes[0], cols = dst.sizes[1];
  if (rows == 0 || cols == 0) return;
  clear(dst.data, rows * cols * static_cast<int64_t>(itemsize(dst.dtype)));
  dispatch(dst.dtype, EveryType{}, [&]<class T>() {
    T* x = dst.ptr<T>();
    for (int64_t i = 0; i < std::min(rows, cols); ++i) x[i * cols + i] = convert<T>(int64_t{1});
  });
}

// Columns of row r that belong to the triangle: [first, last).
static std::pair<int64_t, int64_t> columns(int64_t r, int64_t cols, int64_t offset, bool lower) {
  if (lower) return {0, std::clamp<int64_t>(r + offset + 1, 0, cols)};
  return {std::clamp<int64_t>(r + offset, 0, cols), cols};
}

int64_t triangle_count(int64_t rows, int64_t cols, int64_t offset, bool lower) {
  // Of row r, clamp(r + k, 0, cols) columns lie to the left of the boundary: none in the first
  // rows, one more in each that follows, all in the last.
  using Wide = __int128;
  const Wide k = static_cast<Wide>(offset) + lower;
  const Wide from = std::clamp<Wide>(-k, 0, rows), full = std::clamp<Wide>(cols - k, from, rows);
  // Sums of two factors below 2^64: counted as numbers, they do not fit 128 bits.
  const auto rising = static_cast<long double>(full - from) *
                      (static_cast<long double>(from + full - 1) / 2 + static_cast<long double>(k));
  const auto left = rising + static_cast<long double>(rows - full) * static_cast<long double>(cols);
  const auto all = static_cast<long double>(rows) * static_cast<long double>(cols);
  if ((lower ? left : all - left) > 0x1p62L) return -1;
  Wide exact = (full - from) * (from + full - 1 + 2 * k) / 2 + (rows - full) * cols;
  if (!lower) exact = static_cast<Wide>(rows) * cols - exact;
  return exact > INT64_MAX ? -1 : static_cast<int64_t>(exact);
}

void triangle_indices(const NdView& dst, int64_t cols, int64_t offset, bool lower) {
  int64_t count = dst.sizes[1];
  dispatch(dst.dtype, IntegralTypes{}, [&]<class T>() {
    T* x = dst.ptr<T>();
    int64_t at = 0;
    // From the first row that has any to the last.
    for (int64_t r = lower ? std::max<int64_t>(0, -offset) : 0; at < count; ++r) {
      auto [first, last] = columns(r, cols, offset, lower);
      for (int64_t c = first; c < last; ++c, ++at) {
        x[at] = convert<T>(r);
        x[count + at] = convert<T>(c);
      }
    }
  });
}

}  // namespace clew::kernels
