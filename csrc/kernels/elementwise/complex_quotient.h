// The quotient of two complex numbers, whatever they are.
// May include: nothing of clew.
// Invariant: compiled once, for every processor: instruction sets only call it.
#pragma once
#include <complex>

namespace clew::kernels {

// By zero, each part is divided by a zero without a sign.
std::complex<float> complex_quotient(std::complex<float> a, std::complex<float> b);
std::complex<double> complex_quotient(std::complex<double> a, std::complex<double> b);

}  // namespace clew::kernels
