// Running sums of one line in vectors.
// May include: the standard library only.
// Invariant: sums are double; no result depends on elements after its own.
#pragma once
#include <cstdint>

namespace clew::kernels {

struct ScanLoops {
  // out[i] = start + in[0] + ... + in[i], or the sum of start and what follows; null where one
  // number after another is as fast. Where it is streamed, every run of 16 that is counted off in
  // that direction starts a line of `out`.
  void (*sum)(float* out, const float* in, int64_t n, double start, bool reverse,
              bool streamed) = nullptr;
  double (*total)(const float* in, int64_t n) = nullptr;
  // out[i] = in[0] + ... + in[i], or the sum of what follows; null likewise. Sums wrap around.
  void (*sum_double)(double* out, const double* in, int64_t n, bool reverse) = nullptr;
  void (*sum_int64)(uint64_t* out, const uint64_t* in, int64_t n, bool reverse) = nullptr;
};
// The fastest this processor runs.
const ScanLoops& scan_loops();

}  // namespace clew::kernels
