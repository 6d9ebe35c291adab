// Convolutions of few input channels or little work: sums in registers along rows of the output.
// May include: base, kernels/conv/conv.h.
// Invariant: false means that the caller must compute the result anew.
#pragma once
#include "kernels/conv/conv.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

// The loops, compiled for each instruction set. `weights`: for each output channel its taps, input
// channel by input channel. False: not finite everywhere, where products with the zeros around an
// image may be wrong.
CLEW_IN_EACH_SET(bool direct_map(const ConvShape& s, const float* x, const float* weights,
                                 const float* bias, float* y);)

// As conv_forward and conv_input.
bool direct_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y);
bool direct_input(const ConvShape& s, const void* y, const void* w, const void* bias, void* x);

}  // namespace clew::kernels
