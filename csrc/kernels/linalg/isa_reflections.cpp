// Householder reflections of a few columns, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage; lines are whole
// vectors long, with zeros behind what counts.
#include <algorithm>
#include <cmath>

#include "kernels/core/lanes.h"
#include "kernels/linalg/reflections.h"

namespace clew::kernels::CLEW_ISA {
namespace {

// The norm of x behind element k: in double, scaled where squares leave its range.
template <class T> double norm_behind(const T* x, int64_t k, int64_t w) {
  double sum = 0;
  for (int64_t j = k + 1; j < w; ++j) sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
  if (sizeof(T) == 4 || (sum > 0x1p-900 && sum < 0x1p1000) || sum != sum) return std::sqrt(sum);
  double most = 0;
  for (int64_t j = k + 1; j < w; ++j) most = std::max(most, std::fabs(static_cast<double>(x[j])));
  if (most == 0 || !std::isfinite(most)) return most;
  sum = 0;
  for (int64_t j = k + 1; j < w; ++j) {
    const double part = static_cast<double>(x[j]) / most;
    sum += part * part;
  }
  return most * std::sqrt(sum);
}

// K lines at distance `step`, from column `from` on: x -= tau (v x) v.
template <class T, int K>
[[gnu::always_inline]] inline void reflect_lines(T* x, int64_t step, const T* v, T tau,
                                                 int64_t from, int64_t w) {
  constexpr int64_t L = lane_count<T>;
  Lanes_t<T> sums[K] = {}, more[K] = {};
  int64_t j = from;
  for (; j + 2 * L <= w; j += 2 * L) {
    const auto v0 = load(v + j), v1 = load(v + j + L);
    for (int k = 0; k < K; ++k) {
      sums[k] += load(x + k * step + j) * v0;
      more[k] += load(x + k * step + j + L) * v1;
    }
  }
  for (; j < w; j += L) {
    for (int k = 0; k < K; ++k) sums[k] += load(x + k * step + j) * load(v + j);
  }
  Lanes_t<T> factors[K];
  for (int k = 0; k < K; ++k)
    factors[k] = spread(static_cast<T>(-tau * sum_of_lanes<T>(sums[k] + more[k])));
  for (j = from; j < w; j += L) {
    const auto at = load(v + j);
    for (int k = 0; k < K; ++k) store(x + k * step + j, load(x + k * step + j) + factors[k] * at);
  }
}
template <class T>
void reflect_all(int64_t count, T* x, int64_t step, const T* v, T tau, int64_t k, int64_t w) {
  if (tau == T(0)) return;
  const int64_t from = k / lane_count<T> * lane_count<T>;
  int64_t c = 0;
  for (; c + 4 <= count; c += 4) reflect_lines<T, 4>(x + c * step, step, v, tau, from, w);
  for (; c < count; ++c) reflect_lines<T, 1>(x + c * step, step, v, tau, from, w);
}

template <class T> void panel(int64_t n, int64_t w, T* lines, int64_t step, T* r, T* tau) {
  for (int64_t i = 0; i < n; ++i) {
    T* x = lines + i * step;
    const double first = static_cast<double>(x[i]), rest = norm_behind(x, i, w);
    std::fill_n(r + i * n, n, T(0));
    std::copy_n(x, i, r + i * n);
    std::fill_n(x, i, T(0));
    if (rest == 0) {
      tau[i] = T(0);
      r[i * n + i] = x[i];
      x[i] = T(1);
      continue;
    }
    const double made = -std::copysign(std::hypot(first, rest), first), divisor = first - made;
    tau[i] = static_cast<T>((made - first) / made);
    r[i * n + i] = static_cast<T>(made);
    const T factor = static_cast<T>(1.0 / divisor);
    if (std::isnormal(factor)) {
      for (int64_t j = i + 1; j < w; ++j) x[j] *= factor;
    } else {
      for (int64_t j = i + 1; j < w; ++j)
        x[j] = static_cast<T>(static_cast<double>(x[j]) / divisor);
    }
    x[i] = T(1);
    reflect_all(n - i - 1, x + step, step, x, tau[i], i, w);
  }
}

template <class T>
void apply(bool forward, int64_t k, int64_t w, const T* v, int64_t step, const T* tau,
           int64_t count, T* x, int64_t x_step) {
  for (int64_t s = 0; s < k; ++s) {
    const int64_t i = forward ? s : k - 1 - s;
    reflect_all(count, x, x_step, v + i * step, tau[i], i, w);
  }
}

}  // namespace

#define CLEW_LOOPS(T, name)             \
  extern const ReflectionLoops<T> name; \
  const ReflectionLoops<T> name = {panel<T>, apply<T>};
CLEW_LOOPS(float, reflections_float)
CLEW_LOOPS(double, reflections_double)
#undef CLEW_LOOPS

}  // namespace clew::kernels::CLEW_ISA
