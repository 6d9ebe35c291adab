// Direct convolutions: tiles of output channels and points, whose sums stay in registers.
// May include: kernels/conv/direct.h, kernels/core/lanes.h, base/parallel.h, base/scratch.h.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
#include <atomic>
#include <cstring>
#include <utility>

#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/conv/direct.h"
#include "kernels/core/lanes.h"

#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif

namespace clew::kernels::CLEW_ISA {
namespace {

using Vec = Lanes_t<float>;
constexpr int L = lane_count<float>;
constexpr int channels_max = 4;  // output channels of a tile
constexpr int vectors_max = 4;   // vectors of points of a tile: columns of a row, or rows
// Of a tile of O channels: so many sums that they hide each other's latency.
template <int O> constexpr int vectors_of = O <= 2 ? 4 : 2;

// Bytes that one thread keeps between calls.
const LocalScratch planes_scratch, weights_scratch;

// The input rows that some output rows need, with the padding around them. Columns of a row are
// grouped by their remainder modulo the stride, so that the columns of one tap are neighbours. Each
// group ends with room for a whole vector.
struct Padded {
  int64_t rows, part, row, plane;

  Padded(const ConvShape& s, int64_t out_rows)
      : rows((out_rows - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1),
        part(most(s.out[2] + vectors_max * L + (s.kernel[2] - 1) * s.dilation[2] / s.stride[2] + 1,
                  ceil_div(s.pad[2] + s.in[2], s.stride[2]))),
        row(part * s.stride[2]),
        plane(rows * row) {}

  int64_t tap(const ConvShape& s, int64_t q) const {
    const int64_t column = q % s.kernel[2] * s.dilation[2];
    const int64_t line = q / s.kernel[2] % s.kernel[1] * s.dilation[1];
    return q / s.kernel_points() * plane + line * row + column % s.stride[2] * part +
           column / s.stride[2];
  }

  // What was filled before is overwritten or was zero and is again: zeros are written once.
  void fill(const ConvShape& s, const float* image, int64_t first, float* to) const {
    for (int64_t c = 0; c < s.ci; ++c) {
      for (int64_t i = 0; i < rows; ++i) {
        float* line = to + c * plane + i * row;
        const int64_t h = first + i;
        if (h < 0 || h >= s.in[1]) {
          std::memset(line, 0, static_cast<size_t>(row) * sizeof(float));
          continue;
        }
        const float* from = image + (c * s.in[1] + h) * s.in[2];
        if (s.stride[2] == 1) {
          std::memcpy(line + s.pad[2], from, static_cast<size_t>(s.in[2]) * sizeof(float));
        } else {
          for (int64_t k = 0; k < s.stride[2];
               ++k) {  // columns k, k + stride, ... of the padded row
            const int64_t skip = ceil_div(most(0, s.pad[2] - k), s.stride[2]);
            float* place = line + k * part + skip;
            for (int64_t j = k + skip * s.stride[2] - s.pad[2]; j < s.in[2]; j += s.stride[2])
              *place++ = from[j];
          }
        }
      }
    }
  }
};

// O channels by V vectors: `apart` elements lie between the vectors' inputs. Results go to `to`,
// `step` from channel to channel and `next` from vector to vector, L elements of each, of the last
// one `last`; of all where they are rows of `last` elements.
template <int O, int V>
void tile(const float* from, int64_t apart, const int64_t* tap, const float* weights, int64_t taps,
          const float* bias, float* to, int64_t step, int64_t next, int64_t last, Vec& poison) {
  Vec sum[O][V];
  unroll<O>([&]<int o> {
    const Vec start = Vec{} + (bias ? bias[o] : 0.0f);
    unroll<V>([&]<int v> { sum[o][v] = start; });
  });
  for (int64_t q = 0; q < taps; ++q) {
    const float* at = from + tap[q];
    Vec x[V];
    unroll<V>([&]<int v> { x[v] = load(at + v * apart); });
    unroll<O>([&]<int o> {
      const float w = weights[q * O + o];
      unroll<V>([&]<int v> { sum[o][v] += w * x[v]; });
    });
  }
  unroll<O>([&]<int o> {
    unroll<V>([&]<int v> {
      poison += sum[o][v] * 0.0f;
      float* place = to + o * step + v * next;
      if (last == L || (v < V - 1 && next == L)) {
        store(place, sum[o][v]);
      } else {
        float part[L];
        store(part, sum[o][v]);
        std::memcpy(place, part, static_cast<size_t>(last) * sizeof(float));
      }
    });
  });
}

// All points of O output channels.
template <int O>
void channels(const ConvShape& s, const Padded& p, const float* padded, const int64_t* tap,
              const float* weights, int64_t taps, const float* bias, int64_t rows, float* to,
              Vec& poison) {
  const int64_t width = s.out[2], points = s.out_points(), line = s.stride[1] * p.row;
  constexpr int V = vectors_of<O>;
  int64_t r = 0;
  if (width <= L) {  // some rows at a time
    for (; r + V <= rows; r += V)
      tile<O, V>(padded + r * line, line, tap, weights, taps, bias, to + r * width, points, width,
                 width, poison);
  }
  for (; r < rows; ++r) {
    int64_t c = 0;
    for (; V > 2 && width - c > (V - 1) * L; c += V * L)
      tile<O, V>(padded + r * line + c, L, tap, weights, taps, bias, to + r * width + c, points, L,
                 least(L, width - c - (V - 1) * L), poison);
    for (; c < width; c += 2 * L) {
      const float* from = padded + r * line + c;
      float* place = to + r * width + c;
      if (width - c > L) {
        tile<O, 2>(from, L, tap, weights, taps, bias, place, points, L, least(L, width - c - L),
                   poison);
      } else {
        tile<O, 1>(from, L, tap, weights, taps, bias, place, points, L, width - c, poison);
      }
    }
  }
}

}  // namespace

bool direct_map(const ConvShape& s, const float* x, const float* weights, const float* bias,
                float* y) {
  const int64_t taps = s.ci * s.kernel_points(), blocks = ceil_div(s.co, channels_max);
  // The taps of a block of output channels, side by side.
  float* packed = weights_scratch.of<float>(s.co * taps);
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t first = b * channels_max, count = least(channels_max, s.co - first);
    float* to = packed + first * taps;
    for (int64_t q = 0; q < taps; ++q) {
      for (int64_t o = 0; o < count; ++o) *to++ = weights[(first + o) * taps + q];
    }
  }
  // Tasks are rows of an image, so many that a task is worth a thread.
  const int64_t row_work = most(1, s.co * s.out[2] * taps);
  const int64_t rows_each = least(s.out[1], most(1, (int64_t{1} << 18) / row_work));
  const int64_t cuts = ceil_div(s.out[1], rows_each);
  const Padded p(s, rows_each);
  std::atomic<bool> finite{true};
  const int64_t grain = most(1, (int64_t{1} << 17) / (row_work * rows_each));
  parallel_for(s.n * cuts, grain, [&](int64_t begin, int64_t end) {
    const int64_t floats = (s.ci * p.plane + 1) / 2 * 2;
    float* padded = planes_scratch.of<float>(floats + 2 * taps);
    auto* tap = reinterpret_cast<int64_t*>(padded + floats);
    std::memset(padded, 0, static_cast<size_t>(floats) * sizeof(float));
    for (int64_t q = 0; q < taps; ++q) tap[q] = p.tap(s, q);
    Vec poison{};
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / cuts, r0 = task % cuts * rows_each;
      const int64_t rows = least(rows_each, s.out[1] - r0);
      p.fill(s, x + n * s.ci * s.in_points(), r0 * s.stride[1] - s.pad[1], padded);
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = b * channels_max, count = least(channels_max, s.co - first);
        float* to = y + (n * s.co + first) * s.out_points() + r0 * s.out[2];
        const auto run = count == 4   ? channels<4>
                         : count == 3 ? channels<3>
                         : count == 2 ? channels<2>
                                      : channels<1>;
        run(s, p, padded, tap, packed + first * taps, taps, bias ? bias + first : nullptr, rows, to,
            poison);
      }
    }
    if (!(sum_in_turn<float>(poison) == 0)) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

}  // namespace clew::kernels::CLEW_ISA
