// Images and the like continued beyond their borders.
// May include: base, kernels.
// Invariant: lines are independent, so any split over threads gives the same result.
#include "kernels/layout/borders.h"

#include <vector>

#include "base/parallel.h"
#include "kernels/core/index_walk.h"
#include "kernels/core/stream.h"

namespace clew::kernels {

namespace {

// Units that lie side by side in the source, too.
struct Run {
  int64_t to, from, n;
};
std::vector<Run> runs_of(const PaddedDim& line, Border border) {
  std::vector<Run> runs;
  runs.reserve(
      static_cast<size_t>(std::max<int64_t>(0, line.left) + std::max<int64_t>(0, line.right) + 1));
  const int64_t n = line.out(), first = std::clamp<int64_t>(line.left, 0, n);
  const int64_t end = std::max(first, n - std::max<int64_t>(line.right, 0));
  const auto add = [&](int64_t to, int64_t from, int64_t count) {
    if (!runs.empty() && from == runs.back().from + runs.back().n)
      runs.back().n += count;
    else
      runs.push_back({to, from, count});
  };
  for (int64_t k = 0; k < first; ++k) add(k, line.source(border, k), 1);
  if (first < end) add(first, first - line.left, end - first);
  for (int64_t k = end; k < n; ++k) add(k, line.source(border, k), 1);
  return runs;
}

template <class Line>
void each_line(char* to, const char* from, int64_t blocks, const PaddedDim (&dims)[3],
               Border border, size_t unit, Line&& line) {
  const int64_t depth = dims[0].out(), height = dims[1].out();
  const int64_t in_bytes = dims[2].in * static_cast<int64_t>(unit);
  const int64_t out_bytes = dims[2].out() * static_cast<int64_t>(unit);
  parallel_for(blocks * depth * height, std::max<int64_t>(1, grain_default * 4 / out_bytes),
               [&](int64_t begin, int64_t end) {
                 int64_t h = begin % height, d = begin / height % depth;
                 int64_t block = begin / height / depth;
                 int64_t plane = block * dims[0].in + dims[0].source(border, d);
                 for (int64_t r = begin; r < end; ++r) {
                   const int64_t row = plane * dims[1].in + dims[1].source(border, h);
                   line(to + r * out_bytes, from + row * in_bytes);
                   if (++h < height) continue;
                   h = 0;
                   if (++d == depth) d = 0, ++block;
                   plane = block * dims[0].in + dims[0].source(border, d);
                 }
               });
}

}  // namespace

void continue_borders(char* to, const char* from, int64_t blocks, const PaddedDim (&dims)[3],
                      Border border, size_t unit) {
  const std::vector<Run> runs = runs_of(dims[2], border);
  const auto all = [&]<class T>(size_t units) {  // which T makes a unit
    each_line(to, from, blocks, dims, border, unit, [=, &runs](char* t, const char* s) {
      auto* result = reinterpret_cast<T*>(t);
      auto* source = reinterpret_cast<const T*>(s);
      for (const Run& run : runs) {
        T* r = result + run.to * units;
        const T* f = source + run.from * units;
        const size_t n = static_cast<size_t>(run.n) * units;
        r[0] = f[0];  // of most runs this is all
        if (n >= 8)
          copy_bytes(r, f, n * sizeof(T));
        else
          for (size_t j = 1; j < n; ++j) r[j] = f[j];
      }
    });
  };
  const bool one_element = unit == 1 || unit == 2 || unit == 4 || unit == 8 || unit == 16;
  if (!one_element) return all.operator()<char>(unit);
  dispatch_size(unit, [&]<class T>() { all.template operator()<T>(1); });
}

}  // namespace clew::kernels
