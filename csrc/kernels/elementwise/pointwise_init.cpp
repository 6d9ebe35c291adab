// The choice of instruction set.
// May include: base, kernels.
// Invariant: each later step of init_pointwise overrides the one before.
#include "kernels/elementwise/pointwise.h"

namespace clew::kernels {

namespace baseline {
void init_pointwise();
}
namespace avx2 {
void init_pointwise();
}
namespace avx512 {
void init_pointwise();
}
void init_pointwise_special();
void init_pointwise_integral();
void init_pointwise_complex();
void init_pointwise_unsigned();

void init_pointwise() {
  init_pointwise_special();
  init_pointwise_integral();
  init_pointwise_complex();
  baseline::init_pointwise();
#ifndef CLEW_ONLY_BASELINE
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    avx2::init_pointwise();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      avx512::init_pointwise();
    }
  }
#endif
  init_pointwise_unsigned();
}

}  // namespace clew::kernels
