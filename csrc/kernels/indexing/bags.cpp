// Sums of rows of a table, bag by bag, and their gradients.
// May include: base, kernels.
// Invariant: each thread owns what it writes: bags, or a range of the table's rows.
#include "kernels/indexing/bags.h"

#include "base/long_work.h"
#include "kernels/core/instruction_set.h"
#include "kernels/core/loop_tables.h"
#include "kernels/indexing/bags_isa.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const BagLoops bag_loops;)

namespace {

const BagLoops& weighted = CLEW_CHOSEN(bag_loops);

using Sums = TypeList<f16, bf16, float, double>;

template <class T> struct Factors {
  using C = compute_t<T>;
  const Bags& bags;
  const T* each;
  explicit Factors(const Bags& b) : bags(b), each(reinterpret_cast<const T*>(b.factors)) {}
  // What the rows of bag b are multiplied by, beside their own factors.
  C of_bag(int64_t b) const {
    const int64_t n = bags.offsets[b + 1] - bags.offsets[b];
    return bags.mean && n > 1 ? C(1) / static_cast<C>(n) : C(1);
  }
  C of_row(int64_t k) const { return each ? static_cast<C>(each[k]) : C(1); }
};

// A row of another dtype.
template <class To, class From> void convert(Loop loop, To* to, const From* from, int64_t n) {
  char* const p[] = {reinterpret_cast<char*>(to), reinterpret_cast<char*>(const_cast<From*>(from))};
  const int64_t steps[] = {sizeof(To), sizeof(From)};
  loop(p, steps, n, nullptr);
}

}  // namespace

void bag_sums(const NdView& out, const NdView& table, const Bags& bags) {
  const int64_t width = table.sizes[1];
  const int64_t rows = bags.offsets[bags.count] - bags.offsets[0];
  dispatch(out.dtype, Sums{}, [&]<class T>() {
    using C = compute_t<T>;
    const Factors<T> factors(bags);
    const auto* from = table.ptr<const T>();
    const int64_t work = 1 + rows / std::max<int64_t>(bags.count, 1);
    parallel_for(
        bags.count, 1 + grain_default / (work * std::max<int64_t>(width, 1)),
        [&](int64_t begin, int64_t end) {
          constexpr int64_t piece = 1024;  // columns whose sums stay in the cache
          C sums[piece];
          for (int64_t b = begin; b < end; ++b) {
            const C share = factors.of_bag(b);
            if constexpr (std::is_same_v<T, C>) {
              const int64_t k = bags.offsets[b], count = bags.offsets[b + 1] - k;
              const T* each = factors.each ? factors.each + k : nullptr;
              const BagRows<T> some{
                  out.ptr<T>() + b * width, from, width, bags.indices + k, each, count, share};
              if constexpr (sizeof(T) == sizeof(float))
                weighted.sum_floats(some);
              else
                weighted.sum_doubles(some);
              continue;
            }
            if constexpr (is_half_v<T>) {
              static const Loop widen = cast_loop_of(dtype_of<T>(), DType::Float32),
                                narrow = cast_loop_of(DType::Float32, dtype_of<T>());
              for (int64_t j = 0; j < width; j += piece) {
                const int64_t n = std::min(piece, width - j);
                float row[piece];
                std::fill_n(sums, n, 0.0f);
                for (int64_t k = bags.offsets[b]; k < bags.offsets[b + 1]; ++k) {
                  convert(widen, row, from + bags.indices[k] * width + j, n);
                  weighted.add_floats(sums, row, factors.of_row(k), n);
                }
                for (int64_t i = 0; i < n; ++i) sums[i] *= share;
                convert(narrow, out.ptr<T>() + b * width + j, sums, n);
              }
            }
          }
        });
  });
}

void bag_spread(const NdView& table, const NdView& grad, const Bags& bags) {
  const LongWork work(grad.numel());
  const int64_t width = table.sizes[1], size = table.sizes[0];
  const int64_t rows = bags.offsets[bags.count] - bags.offsets[0];
  if (rows == 0 || width == 0) return;
  // A table of floats is added to where it lies; 16-bit ones would round at every row.
  dispatch(table.dtype, TypeList<float, double>{}, [&]<class T>() {
    const Factors<T> factors(bags);
    auto* to = table.ptr<T>();
    const auto* from = grad.ptr<const T>();
    const int64_t pieces = rows * width < 2 * grain_default ? 1 : num_threads();
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      const int64_t low = size * begin / pieces, high = size * end / pieces;
      for (int64_t b = 0; b < bags.count; ++b) {
        const T share = factors.of_bag(b);
        for (int64_t k = bags.offsets[b]; k < bags.offsets[b + 1]; ++k) {
          const int64_t row = bags.indices[k];
          if (row < low || row >= high) continue;
          const T factor = share * factors.of_row(k);
          if constexpr (sizeof(T) == sizeof(float))
            weighted.add_floats(to + row * width, from + b * width, factor, width);
          else
            weighted.add_doubles(to + row * width, from + b * width, factor, width);
        }
      }
    });
  });
}

void bag_dots(char* out, const NdView& table, const NdView& grad, const Bags& bags) {
  const int64_t width = table.sizes[1];
  const int64_t rows = bags.offsets[bags.count] - bags.offsets[0];
  dispatch(table.dtype, Sums{}, [&]<class T>() {
    using C = compute_t<T>;
    const Factors<T> factors(bags);
    const int64_t work = 1 + rows / std::max<int64_t>(bags.count, 1);
    parallel_for(bags.count, 1 + grain_default / (work * std::max<int64_t>(width, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t b = begin; b < end; ++b) {
                     const T* g = grad.ptr<const T>() + b * width;
                     for (int64_t k = bags.offsets[b]; k < bags.offsets[b + 1]; ++k) {
                       const T* row = table.ptr<const T>() + bags.indices[k] * width;
                       C sum = 0;
                       for (int64_t j = 0; j < width; ++j)
                         sum += static_cast<C>(g[j]) * static_cast<C>(row[j]);
                       reinterpret_cast<T*>(out)[k] = static_cast<T>(sum * factors.of_bag(b));
                     }
                   }
                 });
  });
}

}  // namespace clew::kernels
