// Patches to columns and back, for convolutions as matrix products and for unfold and fold.
// May include: base, kernels/conv/conv.h.
// Invariant: a patch element outside the image reads as zero and is dropped on the way back.
#include <algorithm>

#include "base/parallel.h"
#include "kernels/conv/conv.h"

namespace clew::kernels {

namespace {

// The output columns [begin, end) of one row whose input column lies inside the image.
struct ColumnSpan {
  int64_t begin, end;
};
ColumnSpan inside(int64_t offset, int64_t stride, int64_t in, int64_t out) {
  const int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t end = offset >= in ? 0 : (in - 1 - offset) / stride + 1;
  return {std::min(begin, out), std::max(std::min(begin, out), std::min(end, out))};
}

// Calls f(column row, output row, first input element of the row's plane line or -1, horizontal
// offset).
template <class F>
void walk(const ConvShape& s, int64_t c_begin, int64_t c_end, int64_t row_begin, int64_t row_end,
          F&& f) {
  const int64_t points = s.in_points();
  for (int64_t c = c_begin; c < c_end; ++c) {
    int64_t row = c * s.kernel_points();
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
        for (int64_t kw = 0; kw < s.kernel[2]; ++kw, ++row) {
          const int64_t offset = kw * s.dilation[2] - s.pad[2];
          for (int64_t r = row_begin; r < row_end; ++r) {
            const int64_t id = r / s.out[1] * s.stride[0] - s.pad[0] + kd * s.dilation[0];
            const int64_t ih = r % s.out[1] * s.stride[1] - s.pad[1] + kh * s.dilation[1];
            const bool valid = id >= 0 && id < s.in[0] && ih >= 0 && ih < s.in[1];
            f(row, r, valid ? c * points + (id * s.in[1] + ih) * s.in[2] : int64_t{-1}, offset);
          }
        }
      }
    }
  }
}

int64_t channels_grain(const ConvShape& s, int64_t rows) {
  return std::max<int64_t>(
      1, grain_default / std::max<int64_t>(1, s.kernel_points() * rows * s.out[2]));
}

template <class T>
void to_columns(const ConvShape& s, int64_t channels, const T* x, T* columns, int64_t stride,
                int64_t row_begin, int64_t row_end) {
  const int64_t width = s.out[2], step = s.stride[2];
  parallel_for(
      channels, channels_grain(s, row_end - row_begin), [&](int64_t c_begin, int64_t c_end) {
        walk(s, c_begin, c_end, row_begin, row_end,
             [&](int64_t row, int64_t r, int64_t line, int64_t offset) {
               T* to = columns + row * stride + (r - row_begin) * width;
               if (line < 0) {
                 std::fill_n(to, width, T{});
                 return;
               }
               const ColumnSpan span = inside(offset, step, s.in[2], width);
               std::fill_n(to, span.begin, T{});
               const T* from = x + line;
               if (step == 1) {
                 std::copy_n(from + (span.begin + offset), span.end - span.begin, to + span.begin);
               } else {
                 for (int64_t i = span.begin; i < span.end; ++i) to[i] = from[i * step + offset];
               }
               std::fill_n(to + span.end, width - span.end, T{});
             });
      });
}

template <class T>
void to_image(const ConvShape& s, int64_t channels, const T* columns, int64_t stride, T* x,
              int64_t row_begin, int64_t row_end) {
  using A = compute_t<T>;
  const int64_t width = s.out[2], step = s.stride[2];
  parallel_for(
      channels, channels_grain(s, row_end - row_begin), [&](int64_t c_begin, int64_t c_end) {
        walk(s, c_begin, c_end, row_begin, row_end,
             [&](int64_t row, int64_t r, int64_t line, int64_t offset) {
               if (line < 0) return;
               const T* from = columns + row * stride + (r - row_begin) * width;
               const ColumnSpan span = inside(offset, step, s.in[2], width);
               T* to = x + line + offset;
               if constexpr (std::is_integral_v<T>) {
                 for (int64_t i = span.begin; i < span.end; ++i) {
                   to[i * step] = static_cast<T>(static_cast<uint64_t>(to[i * step]) +
                                                 static_cast<uint64_t>(from[i]));
                 }
               } else {
                 for (int64_t i = span.begin; i < span.end; ++i) {
                   to[i * step] =
                       static_cast<T>(static_cast<A>(to[i * step]) + static_cast<A>(from[i]));
                 }
               }
             });
      });
}

struct Sixteen {
  uint64_t part[2];
};

}  // namespace

void image_to_columns(const ConvShape& s, int64_t channels, const void* x, void* columns,
                      int64_t stride, int64_t row_begin, int64_t row_end) {
  auto run = [&]<class T>() {
    to_columns<T>(s, channels, static_cast<const T*>(x), static_cast<T*>(columns), stride,
                  row_begin, row_end);
  };
  switch (itemsize(s.dtype)) {
    case 1: return run.operator()<uint8_t>();
    case 2: return run.operator()<uint16_t>();
    case 4: return run.operator()<uint32_t>();
    case 8: return run.operator()<uint64_t>();
    default: return run.operator()<Sixteen>();
  }
}

void columns_to_image(const ConvShape& s, int64_t channels, const void* columns, int64_t stride,
                      void* x, int64_t row_begin, int64_t row_end) {
  dispatch(as_signed(s.dtype), PlainTypes{}, [&]<class T> {
    to_image<T>(s, channels, static_cast<const T*>(columns), stride, static_cast<T*>(x), row_begin,
                row_end);
  });
}

}  // namespace clew::kernels
