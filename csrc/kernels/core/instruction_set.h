// The best instruction set of this processor that loops were compiled for.
// May include: nothing of ours.
// Invariant: everything an answer promises is there, all its extensions included; it never changes.
#pragma once
#include <cstdint>

namespace clew::kernels {

enum class InstructionSet : uint8_t { baseline, avx2, avx512 };

// At most what the environment's ATEN_CPU_CAPABILITY allows: "default", "avx2" or "avx512".
InstructionSet instruction_set();

}  // namespace clew::kernels
