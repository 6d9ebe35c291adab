// Random choices among places: permutations, and categories by their weights.
// May include: base, kernels.
// Invariant: every function holds the generator's mutex while it draws.
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/random/drawing.h"
#include "kernels/random/random.h"

namespace clew::kernels {

void random_permutation(const NdView& dst, Generator& g) {
  const Drawing drawing(g, dst.numel());
  int64_t n = dst.numel(), drawn = 0;
  dispatch(dst.dtype, RealTypes{}, [&]<class T>() {
    T* x = dst.ptr<T>();
    for (int64_t i = 0; i < n; ++i) x[i] = convert<T>(i);
    bool small = n < static_cast<int64_t>(UINT32_MAX) / 20;
    for (int64_t i = 0; i + 1 < n; ++i) {
      uint64_t left = static_cast<uint64_t>(n - i);
      uint64_t j = small ? g.next32() % left : g.next64() % left;
      std::swap(x[i], x[i + static_cast<int64_t>(j)]);
      Drawing::rest(drawn, 1);
    }
  });
}

// An exponential draw, by which weights are divided when drawing without replacement.
static double next_wait(Generator& g) { return std::max(-std::log1p(-next_double(g)), 1e-300); }

void random_multinomial(const NdView& dst, const NdView& weights, bool replacement, bool by_columns,
                        Generator& g) {
  const Drawing drawing(g, weights.numel());
  int64_t rows = dst.sizes[0], samples = dst.sizes[1], categories = weights.sizes[1];
  int64_t drawn = 0;
  int64_t* out = dst.ptr<int64_t>();
  dispatch_float("multinomial", weights.dtype, [&]<class T>() {
    const T* w = weights.ptr<T>();
    std::vector<double> sums(static_cast<size_t>(categories));
    std::vector<std::pair<double, int64_t>> keys(static_cast<size_t>(categories));
    std::vector<double> waits;  // of all rows, where they are drawn by columns
    if (by_columns && (!replacement || samples == 1)) {
      waits.resize(static_cast<size_t>(rows * categories));
      for (int64_t c = 0; c < categories; ++c) {
        for (int64_t r = 0; r < rows; ++r) {
          waits[static_cast<size_t>(r * categories + c)] = next_wait(g);
          Drawing::rest(drawn, 1);
        }
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = w + r * categories;
      const auto weight = [row](int64_t c) {
        return static_cast<double>(static_cast<compute_t<T>>(row[c]));
      };
      constexpr double most = std::numeric_limits<double>::max();
      int64_t fit = 0, possible = 0;
      for (int64_t c = 0; c < categories; ++c) {
        const double x = weight(c);
        fit += (x >= 0) & (x <= most);
        possible += x > 0;
      }
      if (fit < categories)
        fail("multinomial: input must hold neither inf, nan nor an element below 0");
      require(possible > 0, "multinomial: the weights of each row must have a sum above 0");
      if (replacement && samples > 1) {  // one draw is the same either way, and cheaper below
        double total = 0;
        for (int64_t c = 0; c < categories; ++c) sums[static_cast<size_t>(c)] = total += weight(c);
        for (int64_t s = 0; s < samples; ++s) {
          double u = next_double(g) * total;
          auto at = std::upper_bound(sums.begin(), sums.end(), u) - sums.begin();
          int64_t k = std::min<int64_t>(at, categories - 1);
          // Rounding may land on the far side of the last possible category.
          while (k > 0 && sums[static_cast<size_t>(k)] == sums[static_cast<size_t>(k - 1)]) --k;
          out[r * samples + s] = k;
          Drawing::rest(drawn, 16);  // a search takes long
        }
        continue;
      }
      require(samples <= possible, "multinomial: cannot draw ", samples,
              " samples without replacement from ", possible, " categories with a weight above 0");
      // The largest of weight / exponential are a sample without replacement.
      for (int64_t c = 0; c < categories; ++c) {
        const double x = weight(c);
        double wait = waits.empty() ? next_wait(g) : waits[static_cast<size_t>(r * categories + c)];
        keys[static_cast<size_t>(c)] = {x >= 0 ? x / wait : 0.0, c};  // another thread may write
        Drawing::rest(drawn, 1);
      }
      // For many samples, selects the largest first: a heap would access memory all over.
      auto before = [](const auto& a, const auto& b) {
        return a.first > b.first || (a.first == b.first && a.second < b.second);
      };
      const auto last = keys.begin() + samples;
      if (samples > 1024 && last != keys.end()) {
        std::nth_element(keys.begin(), last, keys.end(), before);
        std::sort(keys.begin(), last, before);
      } else {
        std::partial_sort(keys.begin(), last, keys.end(), before);
      }
      for (int64_t s = 0; s < samples; ++s)
        out[r * samples + s] = keys[static_cast<size_t>(s)].second;
    }
  });
}

}  // namespace clew::kernels
