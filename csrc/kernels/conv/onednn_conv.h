// Convolutions through oneDNN.
// May include: base, kernels/conv/conv.h.
// Invariant: false means that oneDNN does not offer the case; the result must then be written anew.
#pragma once
#include "kernels/conv/conv.h"

namespace clew::kernels::onednn {

bool conv_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y);
bool conv_input(const ConvShape& s, const void* y, const void* w, void* x);
bool conv_weight(const ConvShape& s, const void* y, const void* x, void* w);

}  // namespace clew::kernels::onednn
