// Convolutions whose groups have one input channel each, along the rows of plain planes.
// May include: base, kernels/conv/conv.h.
// Invariant: false means that the caller must compute the result anew.
#pragma once
#include "kernels/conv/conv.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

// The loops, compiled for each instruction set. `turned`: the taps in reverse order, for the map
// from y to x, whose shape is then given with x and y exchanged. False: not finite everywhere,
// where products with the zeros around an image may be wrong. depthwise_spread() is the map from y
// to x for any stride.
CLEW_IN_EACH_SET(bool depthwise_map(const ConvShape& s, const float* x, const float* w,
                                    const float* bias, float* y, bool turned);
                 bool depthwise_weight(const ConvShape& s, const float* y, const float* x,
                                       float* w);
                 bool depthwise_spread(const ConvShape& s, const float* y, const float* w,
                                       const float* bias, float* x);)

// Whether the map of float32 copies runs along rows.
bool runs_along_rows(ConvShape s);
// As conv_forward, conv_input and conv_weight.
bool depthwise_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y);
bool depthwise_input(const ConvShape& s, const void* y, const void* w, const void* bias, void* x);
bool depthwise_weight(const ConvShape& s, const void* y, const void* x, void* w);

}  // namespace clew::kernels
