// Visiting all lines along one axis of several operands, for softmax, scans and sorts.
// May include: base, kernels.
// Invariant: a line is handed out contiguous and in compute type; lines that are not are gathered
// in tiles and put back.
#pragma once
#include <array>
#include <memory>

#include "base/ndview.h"

namespace clew::kernels {

// The lines along axis `dim` of K operands of equal shape (apart from that axis), in memory order
// of operand 0.
template <int K> struct Lines {
  struct Axis {
    int64_t size;
    std::array<int64_t, K> stride;
  };
  SmallVec<Axis, 6> axes;
  int64_t count = 1;
  std::array<int64_t, K> length{};  // elements of a line
  std::array<int64_t, K> step{};    // stride along it

  Lines(const std::array<NdView, K>& v, int dim) {
    for (int k = 0; k < K; ++k) {
      length[k] = v[k].ndim ? v[k].sizes[dim] : 1;
      step[k] = v[k].ndim ? v[k].strides[dim] : 1;
      if (length[k] == 1) step[k] = 1;
    }
    for (int d = 0; d < v[0].ndim; ++d) {
      if (d == dim) continue;
      count *= v[0].sizes[d];
      if (v[0].sizes[d] == 1) continue;
      Axis a{v[0].sizes[d], {}};
      for (int k = 0; k < K; ++k) a.stride[k] = v[k].strides[d];
      int at = axes.size();
      while (at > 0 && axes[at - 1].stride[0] < a.stride[0]) --at;
      axes.insert(at, a);
    }
    for (int d = axes.size() - 1; d > 0; --d) {
      bool fits = true;
      for (int k = 0; k < K; ++k)
        fits = fits && axes[d - 1].stride[k] == axes[d].stride[k] * axes[d].size;
      if (!fits) continue;
      axes[d].size *= axes[d - 1].size;
      axes.erase(d - 1);
    }
  }
  std::array<int64_t, K> place(int64_t i) const {
    std::array<int64_t, K> off{};
    for (int d = axes.size() - 1; d >= 0; --d) {
      int64_t j = i % axes[d].size;
      i /= axes[d].size;
      for (int k = 0; k < K; ++k) off[k] += j * axes[d].stride[k];
    }
    return off;
  }
  // How many of the lines from i on, at most `want`, lie at equal distances.
  int64_t run(int64_t i, int64_t want) const {
    if (axes.empty()) return 1;
    int64_t left = axes.back().size - i % axes.back().size;
    return std::min(left, want);
  }
  int64_t spacing(int k) const { return axes.empty() ? 0 : axes.back().stride[k]; }
};

// Calls f(rows, n) for every line: rows[0] is the output, rows[1..K) the inputs; all have element
// type T.
template <class T, int K, class F> void for_lines(const std::array<NdView, K>& v, int dim, F&& f) {
  using C = compute_t<T>;
  Lines<K> lines(v, dim);
  int64_t n = lines.length[0];
  if (lines.count == 0 || n == 0) return;
  // An input may be one number along each line.
  bool direct = std::is_same_v<T, C> && lines.step[0] == 1;
  int64_t numbers = 0;
  for (int k = 1; k < K; ++k) {
    direct = direct && (lines.step[k] == 1 || lines.step[k] == 0);
    numbers += lines.step[k] == 0;
  }
  int64_t grain = std::max<int64_t>(1, grain_default / 4 / n);
  if (direct) {
    parallel_for(lines.count, grain, [&](int64_t begin, int64_t end) {
      const std::unique_ptr<C[]> room(numbers ? new C[static_cast<size_t>(numbers * n)] : nullptr);
      C *rows[K], *free = room.get();
      for (int k = 1; k < K; ++k) {
        if (lines.step[k] != 0) continue;
        rows[k] = free;
        free += n;
      }
      std::array<int64_t, K> before{};
      for (int64_t i = begin; i < end; ++i) {
        auto off = lines.place(i);
        for (int k = 0; k < K; ++k) {
          C* at = reinterpret_cast<C*>(v[k].template ptr<T>() + off[k]);
          if (lines.step[k] != 0)
            rows[k] = at;
          else if (i == begin || off[k] != before[k])
            std::fill_n(rows[k], n, *at);
        }
        before = off;
        f(rows, n);
      }
    });
    return;
  }
  if constexpr (!std::is_same_v<T, C>) {
    bool neighbours = lines.step[0] == 1;
    for (int k = 1; k < K; ++k)
      neighbours = neighbours && (lines.step[k] == 1 || lines.step[k] == 0);
    if (neighbours) {
      parallel_for(lines.count, grain, [&](int64_t begin, int64_t end) {
        std::unique_ptr<C[]> room(new C[static_cast<size_t>(K * n)]);
        C* rows[K];
        for (int k = 0; k < K; ++k) rows[k] = room.get() + k * n;
        for (int64_t i = begin; i < end; ++i) {
          auto off = lines.place(i);
          for (int k = 1; k < K; ++k) {
            const T* p = v[k].template ptr<const T>() + off[k];
            if (lines.step[k] == 0) {
              std::fill_n(rows[k], n, static_cast<C>(*p));
              continue;
            }
            for (int64_t r = 0; r < n; ++r) rows[k][r] = static_cast<C>(p[r]);
          }
          f(rows, n);
          T* p = v[0].template ptr<T>() + off[0];
          for (int64_t r = 0; r < n; ++r) p[r] = static_cast<T>(rows[0][r]);
        }
      });
      return;
    }
  }
  int64_t tile = std::clamp<int64_t>((int64_t{1} << 16) / n, 1, 16);
  // Rows of the tile start in different cache sets.
  int64_t pitch = (n + 15) / 16 * 16;
  if (pitch % 256 == 0) pitch += 16;
  parallel_for(lines.count, grain, [&](int64_t begin, int64_t end) {
    std::unique_ptr<C[]> room(new C[static_cast<size_t>(K * tile * pitch)]);
    for (int64_t i = begin; i < end;) {
      int64_t w = lines.run(i, std::min(tile, end - i));
      auto off = lines.place(i);
      for (int k = 1; k < K; ++k) {
        const T* p = v[k].template ptr<const T>() + off[k];
        C* buffer = room.get() + k * tile * pitch;
        int64_t s = lines.step[k], gap = lines.spacing(k);
        for (int64_t r = 0; r < n; ++r) {
          for (int64_t j = 0; j < w; ++j)
            buffer[j * pitch + r] = static_cast<C>(p[r * s + j * gap]);
        }
      }
      for (int64_t j = 0; j < w; ++j) {
        C* rows[K];
        for (int k = 0; k < K; ++k) rows[k] = room.get() + (k * tile + j) * pitch;
        f(rows, n);
      }
      T* p = v[0].template ptr<T>() + off[0];
      int64_t s = lines.step[0], gap = lines.spacing(0);
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t j = 0; j < w; ++j)
          p[r * s + j * gap] = static_cast<T>(room[static_cast<size_t>(j * pitch + r)]);
      }
      i += w;
    }
  });
}

}  // namespace clew::kernels
