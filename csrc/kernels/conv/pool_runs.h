// Pooling of planes with regular windows, a piece of rows at a time.
// May include: kernels/conv/pool.h.
// Invariant: as pool.h.
#pragma once
#include "kernels/conv/pool.h"

namespace clew::kernels {

// False, and nothing is done, where the windows are irregular or too large.
bool max_pool_runs(const PoolShape& s, const void* x, void* values, int64_t* indices);
bool mean_pool_runs(const PoolShape& s, const void* x, void* y);
bool mean_pool_backward_runs(const PoolShape& s, const void* gy, void* gx);

}  // namespace clew::kernels
