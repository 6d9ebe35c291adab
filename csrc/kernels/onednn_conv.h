// Convolutions through oneDNN.
// May include: base, kernels/conv.h.
// Invariant: a function returns false, having written nothing that matters, when oneDNN does not offer the case.
#pragma once
#include "kernels/conv.h"

namespace clew::kernels::onednn {

bool conv_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y);
bool conv_input(const ConvShape& s, const void* y, const void* w, void* x);
bool conv_weight(const ConvShape& s, const void* y, const void* x, void* w);

}  // namespace clew::kernels::onednn
