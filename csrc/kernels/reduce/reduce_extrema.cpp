// Smallest and largest elements, with and without their index.
// May include: base, kernels.
// Invariant: NaN beats every number, the first of equal elements gives the index.
#include <limits>
#include <vector>

#include "base/long_work.h"
#include "kernels/core/transpose.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_driver.h"

namespace clew::kernels {
namespace {

template <class C> constexpr C worst(bool largest) {
  using Limits = std::numeric_limits<C>;
  if constexpr (Limits::has_infinity)
    return largest ? -Limits::infinity() : Limits::infinity();
  else
    return largest ? Limits::lowest() : Limits::max();
}

// v replaces best: strictly better, or NaN. (A NaN in `best` is left only for another NaN.)
template <bool Largest, class C> inline bool beats(C v, C best) {
  if constexpr (Largest)
    return (v > best) | (v != v);
  else
    return (v < best) | (v != v);
}

template <class T, bool Largest> auto extremum_loops() {
  const ReduceTable& table = reduce_table();
  if constexpr (std::is_same_v<T, float>)
    return Largest ? &table.max_float : &table.min_float;
  else if constexpr (std::is_same_v<T, double>)
    return Largest ? &table.max_double : &table.min_double;
  else if constexpr (std::is_same_v<T, bf16>)
    return Largest ? &table.max_bf16 : &table.min_bf16;
  else if constexpr (std::is_same_v<T, f16>)
    return Largest ? &table.max_f16 : &table.min_f16;
  else if constexpr (std::is_same_v<T, int64_t>)
    return Largest ? &table.max_int64 : &table.min_int64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return Largest ? &table.max_int32 : &table.min_int32;
  else
    return nullptr;
}

template <class T, bool Largest> struct Extremum {
  using C = compute_t<T>;
  using In = T;
  using Aux = char;
  using Small = C;
  using Big = C;
  using Out = T;
  decltype(extremum_loops<T, Largest>()) loops = extremum_loops<T, Largest>();
  C zero() const { return worst<C>(Largest); }
  C start() const { return worst<C>(Largest); }
  void add(C& s, In v, Aux) const {
    C x = static_cast<C>(v);
    s = beats<Largest>(x, s) ? x : s;
  }
  void merge(C& b, C s) const { add_compute(b, s); }
  void join(C& b, const C& o) const { add_compute(b, o); }
  T finish(const C& b) const { return static_cast<T>(b); }

 private:
  static void add_compute(C& s, C x) { s = beats<Largest>(x, s) ? x : s; }
};

// Bool is compared as the byte it is.
DType comparable(DType d) { return d == DType::Bool ? DType::UInt8 : d; }

template <bool Largest> void extremum(NdView dst, NdView src) {
  if (const TwoSteps steps(dst, src); steps) {
    extremum<Largest>(steps.middle(), src);
    return extremum<Largest>(dst, steps.middle());
  }
  dst.dtype = comparable(dst.dtype);
  src.dtype = comparable(src.dtype);
  dispatch(src.dtype, RealNumericTypes{},
           [&]<class T>() { reduce_with(Extremum<T, Largest>{}, dst, src); });
}

// One row: the extremum first (vectorised), then the place it stands at.
template <class T, bool Largest>
void arg_row(const T* p, int64_t n, int64_t stride, T& value, int64_t& index) {
  using C = compute_t<T>;
  Extremum<T, Largest> r;
  C best = r.start();
  reduce_row(r, p, stride, n, char{}, best);
  int64_t i = 0;
  if (best != best) {
    while (i < n - 1 && static_cast<C>(p[i * stride]) == static_cast<C>(p[i * stride])) ++i;
  } else if (stride == 1) {
    constexpr int64_t step = 64;
    for (; i + step <= n; i += step) {
      int hits = 0;
      for (int64_t k = 0; k < step; ++k) hits += static_cast<C>(p[i + k]) == best;
      if (hits) break;
    }
    while (i < n - 1 && static_cast<C>(p[i]) != best) ++i;
  } else {
    while (i < n - 1 && static_cast<C>(p[i * stride]) != best) ++i;
  }
  value = p[i * stride];
  index = i;
}

// The vector loop for the extrema of columns; nullptr where there is none.
template <class T, bool Largest> auto arg_loop() {
  const ReduceTable& table = reduce_table();
  if constexpr (std::is_same_v<T, float>)
    return table.arg_float[Largest];
  else if constexpr (std::is_same_v<T, double>)
    return table.arg_double[Largest];
  else if constexpr (std::is_same_v<T, int64_t>)
    return table.arg_int64[Largest];
  else if constexpr (std::is_same_v<T, int32_t>)
    return table.arg_int32[Largest];
  else
    return nullptr;
}

// Neighbouring rows, side by side: turned, they are the columns that vector loops take.
constexpr int64_t turned_rows = 64, turned_most = 64;
template <class T, bool Largest>
void arg_turned(const T* p, int64_t n, int64_t rows, T* best, int64_t* where) {
  alignas(64) T turned[turned_most * turned_rows];
  const int64_t sizes[] = {n, rows}, to[] = {turned_rows, 1}, from[] = {1, n};
  const DType d = dtype_of<T>();
  const NdView source{reinterpret_cast<char*>(const_cast<T*>(p)), sizes, from, 2, d};
  if (!copy_transposed({reinterpret_cast<char*>(turned), sizes, to, 2, d}, source)) {
    for (int64_t j = 0; j < rows; ++j)
      for (int64_t i = 0; i < n; ++i) turned[i * turned_rows + j] = p[j * n + i];
  }
  arg_loop<T, Largest>()(turned, turned_rows, n, rows, best, where);
}

template <class T, bool Largest>
void arg_reduce(T* values, const int64_t* value_strides, const NdView& indices, const NdView& src) {
  const LongWork work(src.numel());
  using C = compute_t<T>;
  ReducePlan plan(indices, src, value_strides);
  const auto* in = src.ptr<const T>();
  auto* out = indices.ptr<int64_t>();
  int64_t n = plan.count;
  if (plan.outputs == 0 || n == 0) return;
  int64_t stride = plan.reduced.empty() ? 1 : plan.reduced[0].src;
  auto store = [&](const ReducePlan::Place& at, T value, int64_t index) {
    out[at.dst] = index;
    if (values) values[at.aux] = value;
  };
  int64_t pieces = std::min<int64_t>(num_threads(), n / grain_default + 1);
  if (plan.outputs == 1 && pieces > 1) {
    // One long row: the threads share it, and the first of the best pieces wins.
    std::vector<std::pair<T, int64_t>> part(static_cast<size_t>(pieces));
    parallel_for(pieces, 1, [&](int64_t p0, int64_t p1) {
      for (int64_t p = p0; p < p1; ++p) {
        int64_t first = p * n / pieces;
        auto& [value, index] = part[static_cast<size_t>(p)];
        arg_row<T, Largest>(in + first * stride, (p + 1) * n / pieces - first, stride, value,
                            index);
        index += first;
      }
    });
    auto best = part[0];
    for (const auto& next : part) {
      C v = static_cast<C>(next.first), b = static_cast<C>(best.first);
      if (beats<Largest>(v, b) && b == b) best = next;
    }
    return store(plan.place(0), best.first, best.second);
  }
  if constexpr (!std::is_null_pointer_v<decltype(arg_loop<T, Largest>())>) {
    if (stride == 1 && n >= 2 && n <= turned_most && !plan.kept.empty() &&
        plan.kept.back().src == n && plan.kept.back().size >= turned_rows / 4) {
      const ReduceAxis inner = plan.kept.back();
      return parallel_for(
          plan.outputs, std::max<int64_t>(turned_rows, grain_default / n),
          [&](int64_t k0, int64_t k1) {
            T best[turned_rows];
            int64_t where[turned_rows];
            for (int64_t k = k0, rows; k < k1; k += rows) {
              rows = std::min({turned_rows, k1 - k, inner.size - k % inner.size});
              const ReducePlan::Place at = plan.place(k);
              arg_turned<T, Largest>(in + at.src, n, rows, best, where);
              for (int64_t j = 0; j < rows; ++j)
                store({0, at.dst + j * inner.dst, at.aux + j * inner.aux}, best[j], where[j]);
            }
          });
    }
  }
  if (!plan.by_columns()) {
    parallel_for(plan.outputs, std::max<int64_t>(1, grain_default / n),
                 [&](int64_t k0, int64_t k1) {
                   for (int64_t k = k0; k < k1; ++k) {
                     ReducePlan::Place at = plan.place(k);
                     T value;
                     int64_t index;
                     arg_row<T, Largest>(in + at.src, n, stride, value, index);
                     store(at, value, index);
                   }
                 });
    return;
  }
  const ReduceAxis inner = plan.kept.back();
  // Narrower pieces where the columns would not be enough for all threads.
  constexpr int64_t narrow = 64;
  const int64_t share = (inner.size / num_threads() + narrow - 1) / narrow * narrow;
  const int64_t W = plan.outputs * n < 2 * grain_default
                        ? reduce_columns
                        : std::clamp<int64_t>(share, narrow, reduce_columns);
  int64_t blocks = (inner.size + W - 1) / W;
  int64_t units = plan.outputs / inner.size * blocks;
  const bool in_vectors = inner.src == 1 && n <= std::numeric_limits<int32_t>::max();
  parallel_for(units, std::max<int64_t>(1, grain_default / (n * std::min(W, inner.size))),
               [&](int64_t u0, int64_t u1) {
                 C best[reduce_columns];
                 int64_t where[reduce_columns];
                 for (int64_t u = u0; u < u1; ++u) {
                   int64_t w = std::min(W, inner.size - (u % blocks) * W);
                   ReducePlan::Place at = plan.place((u / blocks) * inner.size + (u % blocks) * W);
                   const T* p = in + at.src;
                   auto put = [&] {
                     for (int64_t j = 0; j < w; ++j) {
                       store({0, at.dst + j * inner.dst, at.aux + j * inner.aux},
                             static_cast<T>(best[j]), where[j]);
                     }
                   };
                   if constexpr (!std::is_null_pointer_v<decltype(arg_loop<T, Largest>())>) {
                     if (in_vectors) {
                       arg_loop<T, Largest>()(p, stride, n, w, best, where);
                       put();
                       continue;
                     }
                   }
                   for (int64_t j = 0; j < w; ++j) {
                     best[j] = static_cast<C>(p[j * inner.src]);
                     where[j] = 0;
                   }
                   for (int64_t i = 1; i < n; ++i) {
                     p += stride;
                     for (int64_t j = 0; j < w; ++j) {
                       C v = static_cast<C>(p[j * inner.src]);
                       bool take = beats<Largest>(v, best[j]) & (best[j] == best[j]);
                       best[j] = take ? v : best[j];
                       where[j] = take ? i : where[j];
                     }
                   }
                   put();
                 }
               });
}

}  // namespace

void reduce_amax(const NdView& dst, const NdView& src) { extremum<true>(dst, src); }
void reduce_amin(const NdView& dst, const NdView& src) { extremum<false>(dst, src); }

void reduce_arg(const NdView* values, const NdView& indices, const NdView& src, bool largest) {
  if (src.numel() == indices.numel()) {  // one element for each result
    if (values) copy(*values, src);
    return fill(indices, Scalar(0));
  }
  NdView s = src;
  s.dtype = comparable(s.dtype);
  dispatch(s.dtype, RealNumericTypes{}, [&]<class T>() {
    T* v = values ? values->ptr<T>() : nullptr;
    const int64_t* vs = values ? values->strides : nullptr;
    if (largest)
      arg_reduce<T, true>(v, vs, indices, s);
    else
      arg_reduce<T, false>(v, vs, indices, s);
  });
}

}  // namespace clew::kernels
