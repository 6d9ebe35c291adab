// Asking the processor, once, and the environment.
// May include: kernels/core/instruction_set.h.
// Invariant: the environment can ask for less than the processor has, never for more.
#include "kernels/core/instruction_set.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace clew::kernels {
namespace {

InstructionSet of_processor() {
#if defined(__x86_64__)
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

InstructionSet allowed() {
  const char* text = std::getenv("ATEN_CPU_CAPABILITY");
  if (text && *text) {
    const std::string_view name = text;
    if (name == "default") return InstructionSet::baseline;
    if (name == "avx2") return InstructionSet::avx2;
    // Kernels are chosen while the module is loaded, when Python cannot be asked to warn.
    if (name != "avx512")
      std::fprintf(stderr,
                   "clew: ATEN_CPU_CAPABILITY must be default, avx2 or avx512; got %s, which is "
                   "ignored\n",
                   text);
  }
  return InstructionSet::avx512;
}

}  // namespace

InstructionSet choose_instruction_set() {
#ifdef CLEW_ONE_SET
  constexpr InstructionSet built = InstructionSet::CLEW_ONE_SET;
  if (allowed() < built)
    std::fprintf(stderr,
                 "clew: ATEN_CPU_CAPABILITY=%s is ignored: this build has the loops of one "
                 "instruction set only (CLEW_SETS=here); build with CLEW_SETS=all\n",
                 std::getenv("ATEN_CPU_CAPABILITY"));
  return built;
#else
  return std::min(of_processor(), allowed());
#endif
}

bool loops_run_here() { return instruction_set() <= of_processor(); }

}  // namespace clew::kernels
