// The best instruction set of this processor that loops were compiled for.
// May include: nothing of ours.
// Invariant: everything an answer promises is there, all its extensions included.
#pragma once
#include <cstdint>

namespace clew::kernels {

enum class InstructionSet : uint8_t { baseline, avx2, avx512 };

inline InstructionSet instruction_set() {
#ifndef CLEW_ONLY_BASELINE
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      return InstructionSet::avx512;
    }
    return InstructionSet::avx2;
  }
#endif
  return InstructionSet::baseline;
}

}  // namespace clew::kernels
