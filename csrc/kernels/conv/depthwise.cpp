// Which depthwise convolutions run along rows, and handing them to the compiled loops.
// May include: base, kernels.
// Invariant: the choice depends on shapes and the processor only, never on values.
#include "kernels/conv/depthwise.h"

#include <iterator>
#include <utility>
#include <vector>

#include "kernels/conv/onednn_conv.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

namespace {

struct Loops {
  bool (*map)(const ConvShape&, const float*, const float*, const float*, float*, bool);
  bool (*weight)(const ConvShape&, const float*, const float*, float*);
  bool (*spread)(const ConvShape&, const float*, const float*, const float*, float*);
};

const Loops& loops() {
  static const Loops found = {CLEW_CHOSEN(depthwise_map), CLEW_CHOSEN(depthwise_weight),
                              CLEW_CHOSEN(depthwise_spread)};
  return found;
}

// One output plane for each input plane (maps of images: of unit stride, because oneDNN is faster
// at picking their columns apart); rows long enough to fill half of a vector; padded planes that a
// cache holds.
bool suits_depthwise(const ConvShape& s, bool gradient = false) {
  if (s.dtype != DType::Float32 || s.last) return false;
  if (s.groups != s.ci || s.groups != s.co || s.n == 0) return false;
  if (s.in_points() == 0 || s.out_points() == 0 || s.kernel_points() == 0) return false;
  constexpr int64_t far = 1 << 10, volume = 1 << 17, line = 1 << 20;
  const int64_t stride_most = s.nd == 2 && !gradient ? 1 : 4;
  int64_t padded = 1;
  for (int d = 0; d < 3; ++d) {
    if (s.kernel[d] > 64 || s.stride[d] > stride_most) return false;
    if (s.pad[d] > far || s.dilation[d] > far) return false;
    const int64_t longest = s.nd == 1 && d == 2 ? line : far;
    if ((s.kernel[d] - 1) * s.dilation[d] > far || s.in[d] > longest || s.out[d] > longest)
      return false;
    padded *= s.in[d] + 2 * s.pad[d];
  }
  return s.out[2] >= 7 && (s.nd < 3 || padded <= volume);
}

// oneDNN vectorizes along channels and copies data into that order. It is faster for short rows, if
// the copies stay in the cache, or if there is much to multiply (measured with AVX-512).
constexpr int64_t cached = 1 << 20;
bool fills_channel_blocks(const ConvShape& s) {
  constexpr int64_t block = 16;
  const int64_t blocks = (s.ci + block - 1) / block * block;
  return instruction_set() == InstructionSet::avx512 && s.nd == 2 && 4 * s.ci >= 3 * blocks &&
         s.dilation[1] == 1 && s.dilation[2] == 1;
}
bool runs_along_channels(const ConvShape& s) {
  if (!fills_channel_blocks(s)) return false;
  constexpr int64_t short_row = 32, middle_row = 64, many_taps = 49;
  return s.out[2] <= short_row || s.kernel_points() >= many_taps ||
         (s.out[2] <= middle_row && s.n * s.ci * s.in_points() <= cached);
}
// Its gradients of weights of more than three rows or columns take up to 20 times as long.
bool weight_runs_along_channels(const ConvShape& s) {
  return fills_channel_blocks(s) && s.kernel[1] <= 3 && s.kernel[2] <= 3 &&
         s.n * s.ci * s.in_points() <= cached;
}

bool map(const ConvShape& s, const void* x, const void* w, const void* bias, void* y, bool turned) {
  if (runs_along_channels(s)) {
    const int64_t taps = s.kernel_points();
    std::vector<float> reversed;
    if (turned) {
      const auto* from = static_cast<const float*>(w);
      for (int64_t c = 0; c < s.ci; ++c)
        reversed.insert(reversed.end(), std::reverse_iterator(from + (c + 1) * taps),
                        std::reverse_iterator(from + c * taps));
    }
    if (onednn::conv_forward(s, x, turned ? reversed.data() : w, bias, y)) return true;
  }
  return loops().map(s, static_cast<const float*>(x), static_cast<const float*>(w),
                     static_cast<const float*>(bias), static_cast<float*>(y), turned);
}

}  // namespace

bool runs_along_rows(ConvShape s) {
  s.dtype = DType::Float32;
  return suits_depthwise(s);
}

bool depthwise_forward(const ConvShape& s, const void* x, const void* w, const void* bias,
                       void* y) {
  return suits_depthwise(s) && map(s, x, w, bias, y, false);
}

bool depthwise_input(const ConvShape& s, const void* y, const void* w, const void* bias, void* x) {
  if (!suits_depthwise(s, true)) return false;
  ConvShape t = s;
  bool strided = false;
  for (int d = 0; d < 3; ++d) {
    t.pad[d] = (s.kernel[d] - 1) * s.dilation[d] - s.pad[d];
    strided = strided || s.stride[d] != 1 || t.pad[d] < 0;
    std::swap(t.in[d], t.out[d]);
  }
  if (strided)
    return loops().spread(s, static_cast<const float*>(y), static_cast<const float*>(w),
                          static_cast<const float*>(bias), static_cast<float*>(x));
  return suits_depthwise(t) && map(t, y, w, bias, x, true);
}

bool depthwise_weight(const ConvShape& s, const void* y, const void* x, void* w) {
  if (weight_runs_along_channels(s)) return false;
  return suits_depthwise(s, true) &&
         loops().weight(s, static_cast<const float*>(y), static_cast<const float*>(x),
                        static_cast<float*>(w));
}

}  // namespace clew::kernels
