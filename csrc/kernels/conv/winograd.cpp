// Which 3x3 convolutions are worth Winograd's transform, and handing them to the compiled loops.
// May include: base, kernels.
// Invariant: the choice depends on shapes and the processor only, never on values.
#include "kernels/conv/winograd.h"

namespace clew::kernels {

namespace {

struct WinogradLoops {
  int64_t lanes;
  bool (*map)(const WinogradMap&);
  bool (*weight)(const WinogradWeight&);
};

const WinogradLoops& winograd_loops() {
  static const WinogradLoops found = {CLEW_CHOSEN(winograd_lanes)(), CLEW_CHOSEN(winograd_map),
                                      CLEW_CHOSEN(winograd_weight)};
  return found;
}

constexpr int64_t weights_cached = 128 * 128;

bool suits_winograd(const ConvShape& s) {
  if (s.dtype != DType::Float32 || s.nd != 2 || s.groups != 1) return false;
  for (int d = 1; d < 3; ++d) {
    if (s.kernel[d] != 3 || s.stride[d] != 1 || s.dilation[d] != 1 || s.pad[d] > 2 ||
        s.out[d] != s.in[d] + 2 * s.pad[d] - 2 || s.in[d] < 1 || s.out[d] < 1) {
      return false;
    }
  }
  if (s.n == 0 || s.ci % winograd_loops().lanes || s.co % winograd_loops().lanes) return false;
  // Transformed weights are 16/9 the size of the plain ones; if they do not fit into the cache,
  // they must be used for many tiles.
  const int64_t tiles = s.n * ((s.out[1] + 1) / 2) * ((s.out[2] + 1) / 2);
  return tiles >= (s.ci * s.co > weights_cached ? 192 : 16);
}

}  // namespace

bool winograd_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y) {
  return suits_winograd(s) && winograd_loops().map({.n = s.n,
                                                    .channels_in = s.ci,
                                                    .channels_out = s.co,
                                                    .in_h = s.in[1],
                                                    .in_w = s.in[2],
                                                    .out_h = s.out[1],
                                                    .out_w = s.out[2],
                                                    .pad_h = s.pad[1],
                                                    .pad_w = s.pad[2],
                                                    .in = static_cast<const float*>(x),
                                                    .weight = static_cast<const float*>(w),
                                                    .bias = static_cast<const float*>(bias),
                                                    .out = static_cast<float*>(y),
                                                    .last = s.last,
                                                    .transposed = false});
}

bool winograd_input(const ConvShape& s, const void* y, const void* w, const void* bias, void* x) {
  return suits_winograd(s) && winograd_loops().map({.n = s.n,
                                                    .channels_in = s.co,
                                                    .channels_out = s.ci,
                                                    .in_h = s.out[1],
                                                    .in_w = s.out[2],
                                                    .out_h = s.in[1],
                                                    .out_w = s.in[2],
                                                    .pad_h = 2 - s.pad[1],
                                                    .pad_w = 2 - s.pad[2],
                                                    .in = static_cast<const float*>(y),
                                                    .weight = static_cast<const float*>(w),
                                                    .bias = static_cast<const float*>(bias),
                                                    .out = static_cast<float*>(x),
                                                    .last = s.last,
                                                    .transposed = true});
}

bool winograd_weight(const ConvShape& s, const void* y, const void* x, void* w) {
  return suits_winograd(s) && winograd_loops().weight({.n = s.n,
                                                       .ci = s.ci,
                                                       .co = s.co,
                                                       .in_h = s.in[1],
                                                       .in_w = s.in[2],
                                                       .out_h = s.out[1],
                                                       .out_w = s.out[2],
                                                       .pad_h = s.pad[1],
                                                       .pad_w = s.pad[2],
                                                       .x = static_cast<const float*>(x),
                                                       .y = static_cast<const float*>(y),
                                                       .weight = static_cast<float*>(w),
                                                       .last = s.last});
}

}  // namespace clew::kernels
