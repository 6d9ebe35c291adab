// Functions of one number as C++ functions, for gradient rules and composites.
// May include: graph/op.h.
// Invariant: each function only calls apply() with its OpDef, or returns its input where nothing is
// to be done.
#pragma once
#include "graph/op.h"

namespace clew {

Tensor exp(const Tensor& input);
Tensor log(const Tensor& input);
Tensor log1p(const Tensor& input);
Tensor rsqrt(const Tensor& input);
Tensor sin(const Tensor& input);
Tensor cos(const Tensor& input);
Tensor sinh(const Tensor& input);
Tensor cosh(const Tensor& input);
Tensor tanh(const Tensor& input);
Tensor sigmoid(const Tensor& input);

Tensor clone(const Tensor& input);
Tensor to_dtype(const Tensor& input, DType dtype);  // the input itself when it has that dtype

Tensor conj(const Tensor& input);  // the input itself when it is real
// The result of conj(), mH, H and adjoint(): the same, but writes to it raise.
Tensor shown_conj(const Tensor& input);
Tensor real(const Tensor& input);  // a view; the input itself when it is real
Tensor imag(const Tensor& input);  // a view; complex tensors only
Tensor complex(const Tensor& real, const Tensor& imag);

// special.cpp
Tensor erfcx(const Tensor& input);
Tensor digamma(const Tensor& input);
Tensor polygamma(int64_t n, const Tensor& input);

}  // namespace clew
