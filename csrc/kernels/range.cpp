// The position-only fills.
// May include: base, kernels.
// Invariant: floating values are computed in double and rounded once.
#include "kernels/range.h"

#include <cmath>

namespace clew::kernels {

namespace {

template <class T> using wide_t = std::conditional_t<is_complex_v<T>, c128, double>;

// The i-th of n equally spaced values, counted from the nearer end so that both ends are exact.
template <class W> W spaced(W start, W end, W step, int64_t i, int64_t n) {
  return i < n / 2 ? start + step * static_cast<double>(i)
                   : end - step * static_cast<double>(n - 1 - i);
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
    if constexpr (std::is_integral_v<T>) {
      a = static_cast<double>(start.to_int());
      b = static_cast<double>(end.to_int());
    }
    auto step = n > 1 ? (b - a) / static_cast<double>(n - 1) : decltype(a)(0);
    if (n == 1) {
      x[0] = convert<T>(a);
      return;
    }
    // From the nearer end, as spaced() has it.
    for_runs(x, n, [=](T* to, int64_t first, int count) {
      const int low = static_cast<int>(std::clamp<int64_t>(n / 2 - first, 0, count));
      const auto from = static_cast<double>(first), left = static_cast<double>(n - 1 - first);
      for (int i = 0; i < low; ++i) to[i] = convert<T>(a + step * (from + i));
      for (int i = low; i < count; ++i) to[i] = convert<T>(b - step * (left - i));
    });
  });
}

void logspace(const NdView& dst, const Scalar& start, const Scalar& end, double base) {
  int64_t n = dst.numel();
  dispatch(dst.dtype, AllTypes{}, [&]<class T>() {
    T* x = dst.ptr<T>();
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
  dispatch(dst.dtype, AllTypes{}, [&]<class T>() {
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
  int64_t count = 0;
  for (int64_t r = 0; r < rows; ++r) {
    auto [first, last] = columns(r, cols, offset, lower);
    count += last - first;
  }
  return count;
}

void triangle_indices(const NdView& dst, int64_t rows, int64_t cols, int64_t offset, bool lower) {
  int64_t count = dst.sizes[1];
  dispatch(dst.dtype, IntegralTypes{}, [&]<class T>() {
    T* x = dst.ptr<T>();
    int64_t at = 0;
    for (int64_t r = 0; r < rows; ++r) {
      auto [first, last] = columns(r, cols, offset, lower);
      for (int64_t c = first; c < last; ++c, ++at) {
        x[at] = convert<T>(r);
        x[count + at] = convert<T>(c);
      }
    }
  });
}

}  // namespace clew::kernels
