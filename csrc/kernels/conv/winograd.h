// 3x3 convolutions of unit stride by Winograd's F(2x2, 3x3): 16 products where 36 were needed.
// May include: base, kernels/conv/conv.h.
// Invariant: false means that the caller must compute the result anew, by the direct sums.
#pragma once
#include "kernels/conv/conv.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

// One of the maps: y from x, or x from y with the kernels turned around.
struct WinogradMap {
  int64_t n, channels_in, channels_out;
  int64_t in_h, in_w, out_h, out_w, pad_h, pad_w;
  const float* in;
  const float* weight;  // (co, ci, 3, 3) of the convolution, whichever map this is
  const float* bias;    // channels_out, or null
  float* out;
  bool last;        // images lie as (n, height, width, channels)
  bool transposed;  // channels_in are the weight's first dim, and the kernels are turned around
};

// The weight's gradient; sizes and padding are those of the map x -> y.
struct WinogradWeight {
  int64_t n, ci, co;
  int64_t in_h, in_w, out_h, out_w, pad_h, pad_w;
  const float* x;
  const float* y;
  float* weight;
  bool last;
};

CLEW_IN_EACH_SET(int64_t winograd_lanes(); bool winograd_map(const WinogradMap& m);
                 bool winograd_weight(const WinogradWeight& m);)

// As conv_forward, conv_input and conv_weight. False: not a case for it, or the result is not
// finite everywhere, where the sums inside a tile would spread an infinity to its neighbours.
bool winograd_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y);
bool winograd_input(const ConvShape& s, const void* y, const void* w, const void* bias, void* x);
bool winograd_weight(const ConvShape& s, const void* y, const void* x, void* w);

}  // namespace clew::kernels
