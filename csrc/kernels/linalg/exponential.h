// The exponential of batches of matrices.
// May include: base, kernels/linalg/matrices.h.
// Invariant: as in matrices.h.
#pragma once
#include "kernels/linalg/matrices.h"

namespace clew::kernels {

// y, in rows: the sum of A^k / k!; a is square. nan where A is not finite.
template <class T> void matrix_exp(Range of, const Stack<T>& a, T* y);
// Gives back what this thread keeps of a large workspace.
void trim_exponential_scratch();

}  // namespace clew::kernels
