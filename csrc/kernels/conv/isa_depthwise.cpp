// Depthwise convolutions: vectors along the rows of one plane, which is first laid out padded.
// May include: kernels/conv/depthwise.h, kernels/core/lanes.h, base/parallel.h, base/scratch.h.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
#include <atomic>
#include <cstring>
#include <utility>

#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/conv/depthwise.h"
#include "kernels/core/lanes.h"

#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int L = lane_count<float>;
constexpr int rows_max = 4;  // output rows at a time: their sums hide each other's latency
constexpr int stride_most = 4;
constexpr int taps_max = 8;  // taps of a kernel row at a time, for the weight's gradient

using Vec = Lanes_t<float>;

// Floats that one thread keeps between calls.
const LocalScratch scratch;
constexpr size_t kept_megabytes = 8;

// A plane with its padding around it, and room for a whole vector after each row. With a stride
// along rows, each row is as many parts as that: outputs next to each other read neighbours.
struct Padded {
  int64_t planes, rows, part, row;
  int64_t places[stride_most];  // of the first columns of an input row, each in its part

  explicit Padded(const ConvShape& s) : planes(extent(s, 0)), rows(extent(s, 1)) {
    const int64_t far = (s.kernel[2] - 1) * s.dilation[2], step = s.stride[2];
    part = most(s.out[2] + L + far / step, (s.pad[2] + s.in[2] - 1) / step + 1);
    row = part * step;
    for (int64_t k = 0; k < step; ++k) {
      const int64_t at = k + s.pad[2];
      places[k] = at % step * part + at / step;
    }
  }
  static int64_t extent(const ConvShape& s, int d) {
    return most((s.out[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1,
                s.pad[d] + s.in[d]);
  }
  int64_t floats() const { return planes * rows * row; }
  // Where the windows of a row of outputs begin.
  int64_t first(const ConvShape& s, int64_t a, int64_t b) const {
    return (a * s.stride[0] * rows + b * s.stride[1]) * row;
  }
  int64_t tap(const ConvShape& s, int64_t a, int64_t b, int64_t c) const {
    const int64_t along = c * s.dilation[2];
    return (a * s.dilation[0] * rows + b * s.dilation[1]) * row + along % s.stride[2] * part +
           along / s.stride[2];
  }
  void fill(const ConvShape& s, const float* plane, float* to) const {
    const int64_t step = s.stride[2];
    for (int64_t a = 0; a < s.in[0]; ++a) {
      for (int64_t b = 0; b < s.in[1]; ++b, plane += s.in[2]) {
        float* line = to + ((a + s.pad[0]) * rows + b + s.pad[1]) * row;
        if (step == 1) {
          std::memcpy(line + s.pad[2], plane, static_cast<size_t>(s.in[2]) * sizeof(float));
          continue;
        }
        int64_t both = 0;
        if (step == 2) {
          float *even = line + places[0], *odd = line + places[1];
          both = s.in[2] / 2;
          for (int64_t i = 0; i < both; ++i) even[i] = plane[2 * i], odd[i] = plane[2 * i + 1];
        }
        for (int64_t k = 0; k < step; ++k) {
          float* piece = line + places[k] + both;
          for (int64_t i = k + both * step; i < s.in[2]; i += step) *piece++ = plane[i];
        }
      }
    }
  }
};

// The inputs along one dim whose place, counted from the padding's begin, has the remainder k:
// `count` of them, every stride-th; the first gets something from output `first`, and from those
// before it.
struct Stretch {
  int64_t first = 0, count = 0;
  Stretch() = default;
  Stretch(const ConvShape& s, int d, int64_t k)
      : first(most(0, ceil_div(s.pad[d] - k, s.stride[d]))),
        count(most(0, ceil_div(s.pad[d] + s.in[d] - k, s.stride[d]) - first)) {}
  int64_t input(const ConvShape& s, int d, int64_t k) const {
    return first * s.stride[d] + k - s.pad[d];
  }
};

// The map from outputs to inputs of any stride: inputs of one remainder are a convolution of unit
// stride of the outputs, which lie here with zeros around them, with every stride-th tap.
struct Spread {
  static constexpr int rows_most = 32;  // inputs of this many rows are put together at a time
  int64_t before[3], extent[3], row, width, rows_kept;
  Stretch columns[stride_most];  // by remainder, with the place of the first
  int64_t inputs[stride_most];

  explicit Spread(const ConvShape& s) {
    for (int64_t k = 0; k < s.stride[2]; ++k) {
      columns[k] = Stretch(s, 2, k);
      inputs[k] = columns[k].input(s, 2, k);
    }
    for (int d = 0; d < 3; ++d) {
      before[d] = (s.kernel[d] - 1) * s.dilation[d] / s.stride[d];
      extent[d] = before[d] + most(s.out[d], (s.pad[d] + s.in[d] - 1) / s.stride[d] + 1);
    }
    width = ceil_div(ceil_div(s.in[2], s.stride[2]), int64_t{L}) * L;
    row = extent[2] + width + L;
    rows_kept = least(rows_most, ceil_div(s.in[1], s.stride[1]));
  }
  int64_t floats() const { return extent[0] * extent[1] * row + width; }
  int64_t room() const { return rows_kept * width * stride_most; }

  void fill(const ConvShape& s, const float* plane, float* to) const {
    for (int64_t a = 0; a < s.out[0]; ++a)
      for (int64_t b = 0; b < s.out[1]; ++b, plane += s.out[2])
        std::memcpy(to + ((a + before[0]) * extent[1] + b + before[1]) * row + before[2], plane,
                    static_cast<size_t>(s.out[2]) * sizeof(float));
  }
  // Rows of inputs of the same remainders a and b.
  struct Rows {
    int64_t a, b, count, first;  // where the outputs of the first one lie
    int64_t input, step;         // the first one, and the distance to the next
  };
  template <class F> void each_row_kind(const ConvShape& s, F&& f) const {
    for (int64_t a = 0; a < s.stride[0]; ++a) {
      const Stretch slices(s, 0, a);
      for (int64_t i = 0; i < slices.count; ++i) {
        for (int64_t b = 0; b < s.stride[1]; ++b) {
          const Stretch lines(s, 1, b);
          for (int64_t r = 0; r < lines.count; r += rows_most) {
            const int64_t slice = slices.input(s, 0, a) + i * s.stride[0];
            f(Rows{a, b, least(rows_most, lines.count - r),
                   ((slices.first + i + before[0]) * extent[1] + lines.first + r + before[1]) * row,
                   slice * s.in[1] + lines.input(s, 1, b) + r * s.stride[1], s.stride[1]});
          }
        }
      }
    }
  }
  // The taps sorted by the remainders of the inputs they add to: tap q of the kernel is order[i],
  // and those of the remainders (a, b, c) begin at starts[(a * stride + b) * stride + c].
  void list_taps(const ConvShape& s, int64_t* tap, int64_t* order, int64_t* starts) const {
    int64_t n = 0;
    for (int64_t a = 0; a < s.stride[0]; ++a) {
      for (int64_t b = 0; b < s.stride[1]; ++b) {
        for (int64_t c = 0; c < s.stride[2]; ++c) {
          *starts++ = n;
          for (int64_t q = 0; q < s.kernel_points(); ++q) {
            const int64_t i = q / (s.kernel[1] * s.kernel[2]) * s.dilation[0],
                          j = q / s.kernel[2] % s.kernel[1] * s.dilation[1],
                          k = q % s.kernel[2] * s.dilation[2];
            if (i % s.stride[0] != a || j % s.stride[1] != b || k % s.stride[2] != c) continue;
            tap[n] = -((i / s.stride[0] * extent[1] + j / s.stride[1]) * row + k / s.stride[2]);
            order[n++] = q;
          }
        }
      }
    }
    *starts = n;
  }
  // Puts the columns of all remainders, which lie in `room`, side by side.
  void take(const ConvShape& s, const Rows& rows, const float* room, float* plane) const {
    const int64_t step = s.stride[2];
    for (int64_t r = 0; r < rows.count; ++r) {
      float* to = plane + (rows.input + r * rows.step) * s.in[2];
      const float* from = room + r * width;
      const int64_t apart = rows_kept * width;
      int64_t both = 0;
      if (step == 2) {
        // The first column is of either remainder.
        const int64_t k = inputs[0] < inputs[1] ? 0 : 1;
        const float *even = from + k * apart, *odd = from + (1 - k) * apart;
        both = least(columns[0].count, columns[1].count);
        for (int64_t i = 0; i < both; ++i) to[2 * i] = even[i], to[2 * i + 1] = odd[i];
      }
      for (int64_t k = 0; k < step; ++k) {
        for (int64_t i = both; i < columns[k].count; ++i)
          to[inputs[k] + step * i] = from[k * apart + i];
      }
    }
  }
};

// R output rows of `width`, from their first padded rows, `step` apart; `next` lies between them.
template <int R>
void output_rows(const float* padded, int64_t step, const int64_t* tap, const float* w,
                 int64_t taps, float bias, int64_t width, float* y, int64_t next, Vec& poison) {
  for (int64_t c = 0; c < width; c += L) {
    Vec sum[R];
    unroll<R>([&]<int i> { sum[i] = Vec{} + bias; });
    for (int64_t q = 0; q < taps; ++q) {
      const float* from = padded + tap[q] + c;
      const float weight = w[q];
      unroll<R>([&]<int i> { sum[i] += weight * load(from + i * step); });
    }
    const int64_t n = least(L, width - c);
    unroll<R>([&]<int i> {
      float* to = y + i * next + c;
      poison += sum[i] * 0.0f;
      if (n == L) {
        std::memcpy(to, &sum[i], sizeof(Vec));
      } else {
        float part[L];
        std::memcpy(part, &sum[i], sizeof part);
        std::memcpy(to, part, static_cast<size_t>(n) * sizeof(float));
      }
    });
  }
}

// One output row: pieces of it side by side.
void output_row(const float* padded, const int64_t* tap, const float* w, int64_t taps, float bias,
                int64_t width, float* y, Vec& poison) {
  const int64_t piece = width / (rows_max * L) * L, done = rows_max * piece;
  if (piece > 0) output_rows<rows_max>(padded, piece, tap, w, taps, bias, piece, y, piece, poison);
  if (done < width)
    output_rows<1>(padded + done, 0, tap, w, taps, bias, width - done, y + done, 0, poison);
}

// N taps of one kernel row, over all outputs of a plane; y's rows are padded with zeros.
template <int N>
void tap_sums(const float* padded, int64_t step, const int64_t* tap, const float* y,
              int64_t y_pitch, int64_t rows, int64_t width, float* sums) {
  Vec sum[N];
  unroll<N>([&]<int b> { sum[b] = load(sums + b * L); });
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < width; c += L) {
      const Vec g = load(y + r * y_pitch + c);
      const float* from = padded + r * step + c;
      unroll<N>([&]<int b> { sum[b] += g * load(from + tap[b]); });
    }
  }
  unroll<N>([&]<int b> { std::memcpy(sums + b * L, &sum[b], sizeof(Vec)); });
}
using TapSums = void (*)(const float*, int64_t, const int64_t*, const float*, int64_t, int64_t,
                         int64_t, float*);
template <int... I> TapSums tap_sums_of(int64_t taps, std::integer_sequence<int, I...>) {
  constexpr TapSums all[] = {tap_sums<I + 1>...};
  return all[taps - 1];
}

int64_t planes_at_once(const ConvShape& s) {
  return most(1, grain_default / most(1, s.out_points() * s.kernel_points() / 8));
}

}  // namespace

bool depthwise_map(const ConvShape& s, const float* x, const float* w, const float* bias, float* y,
                   bool turned) {
  const Padded p(s);
  const int64_t taps = s.kernel_points();
  std::atomic<bool> finite{true};
  parallel_for(s.n * s.ci, planes_at_once(s), [&](int64_t begin, int64_t end) {
    // Places are kept as floats' bytes: two floats hold one.
    float* padded = scratch.of<float>(p.floats() + 3 * taps + 2);
    auto* tap = reinterpret_cast<int64_t*>(padded + (p.floats() + 1) / 2 * 2);
    float* weight = reinterpret_cast<float*>(tap + taps);
    std::memset(padded, 0, static_cast<size_t>(p.floats()) * sizeof(float));
    const int64_t rows = s.kernel[1], row = s.kernel[2];
    for (int64_t q = 0; q < taps; ++q) tap[q] = p.tap(s, q / (rows * row), q / row % rows, q % row);
    Vec poison{};
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t c = plane % s.ci;
      for (int64_t q = 0; q < taps; ++q) weight[q] = w[c * taps + (turned ? taps - 1 - q : q)];
      p.fill(s, x + plane * s.in_points(), padded);
      float* to = y + plane * s.out_points();
      const float start = bias ? bias[c] : 0.0f;
      for (int64_t a = 0; a < s.out[0]; ++a) {
        for (int64_t r = 0; r < s.out[1];) {
          const bool many = s.out[1] - r >= rows_max;
          const float* from = padded + p.first(s, a, r);
          if (many)
            output_rows<rows_max>(from, s.stride[1] * p.row, tap, weight, taps, start, s.out[2], to,
                                  s.out[2], poison);
          else
            output_row(from, tap, weight, taps, start, s.out[2], to, poison);
          const int n = many ? rows_max : 1;
          r += n, to += n * s.out[2];
        }
      }
    }
    scratch.trim(kept_megabytes);
    if (!(sum_in_turn<float>(poison) == 0)) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  return finite;
}

bool depthwise_spread(const ConvShape& s, const float* y, const float* w, const float* bias,
                      float* x) {
  const Spread p(s);
  const int64_t taps = s.kernel_points();
  std::atomic<bool> finite{true};
  parallel_for(s.n * s.ci, planes_at_once(s), [&](int64_t begin, int64_t end) {
    const int64_t floats = (p.floats() + p.room() + 1) / 2 * 2;
    float* padded = scratch.of<float>(floats + 5 * taps);
    float* room = padded + p.floats();
    auto* tap = reinterpret_cast<int64_t*>(padded + floats);
    int64_t *order = tap + taps, starts[stride_most * stride_most * stride_most + 1];
    float* weight = reinterpret_cast<float*>(order + taps);
    p.list_taps(s, tap, order, starts);
    std::memset(padded, 0, static_cast<size_t>(p.floats()) * sizeof(float));
    Vec poison{};
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t c = plane % s.ci;
      for (int64_t q = 0; q < taps; ++q) weight[q] = w[c * taps + order[q]];
      p.fill(s, y + plane * s.out_points(), padded);
      p.each_row_kind(s, [&](const auto& kind) {
        for (int64_t k = 0; k < s.stride[2]; ++k) {
          const int64_t* first = starts + (kind.a * s.stride[1] + kind.b) * s.stride[2] + k;
          const int64_t count = first[1] - first[0];
          float* to = room + k * p.rows_kept * p.width;
          for (int64_t r = 0; r < kind.count;) {
            const bool many = kind.count - r >= rows_max;
            const int n = many ? rows_max : 1;
            (many ? output_rows<rows_max> : output_rows<1>)(padded + kind.first + r * p.row +
                                                                p.columns[k].first + p.before[2],
                                                            p.row, tap + *first, weight + *first,
                                                            count, bias ? bias[c] : 0.0f, p.width,
                                                            to + r * p.width, p.width, poison);
            r += n;
          }
        }
        p.take(s, kind, room, x + plane * s.in_points());
      });
    }
    scratch.trim(kept_megabytes);
    if (!(sum_in_turn<float>(poison) == 0)) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

bool depthwise_weight(const ConvShape& s, const float* y, const float* x, float* w) {
  const Padded p(s);
  const int64_t taps = s.kernel_points();
  const int64_t y_pitch = (s.out[2] + L - 1) / L * L, y_rows = s.out[0] * s.out[1];
  constexpr auto sizes = std::make_integer_sequence<int, taps_max>{};
  std::atomic<bool> finite{true};
  parallel_for(s.ci, most(1, planes_at_once(s) / s.n), [&](int64_t begin, int64_t end) {
    float* gradients = scratch.of<float>(p.floats() + y_rows * y_pitch + taps * L);
    float* sums = gradients + y_rows * y_pitch;
    float* padded = sums + taps * L;
    std::memset(gradients, 0, static_cast<size_t>(y_rows * y_pitch) * sizeof(float));
    std::memset(padded, 0, static_cast<size_t>(p.floats()) * sizeof(float));
    float poison = 0;
    for (int64_t c = begin; c < end; ++c) {
      std::memset(sums, 0, static_cast<size_t>(taps * L) * sizeof(float));
      for (int64_t n = 0; n < s.n; ++n) {
        const int64_t plane = n * s.ci + c;
        p.fill(s, x + plane * s.in_points(), padded);
        for (int64_t r = 0; r < y_rows; ++r) {
          std::memcpy(gradients + r * y_pitch, y + plane * s.out_points() + r * s.out[2],
                      static_cast<size_t>(s.out[2]) * sizeof(float));
        }
        for (int64_t a = 0; a < s.kernel[0] * s.kernel[1]; ++a) {
          for (int64_t b = 0; b < s.kernel[2]; b += taps_max) {
            const int64_t count = least(taps_max, s.kernel[2] - b);
            int64_t tap[taps_max];
            for (int64_t q = 0; q < count; ++q)
              tap[q] = p.tap(s, a / s.kernel[1], a % s.kernel[1], b + q);
            for (int64_t d = 0; d < s.out[0]; ++d)
              tap_sums_of(count, sizes)(padded + p.first(s, d, 0), s.stride[1] * p.row, tap,
                                        gradients + d * s.out[1] * y_pitch, y_pitch, s.out[1],
                                        s.out[2], sums + (a * s.kernel[2] + b) * L);
          }
        }
      }
      for (int64_t q = 0; q < taps; ++q) {
        w[c * taps + q] = sum_in_turn<float>(load(sums + q * L));
        poison += w[c * taps + q] * 0.0f;
      }
    }
    scratch.trim(kept_megabytes);
    if (!(poison == 0)) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  return finite;
}

}  // namespace clew::kernels::CLEW_ISA
