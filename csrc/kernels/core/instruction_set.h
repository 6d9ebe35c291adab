// The best instruction set of this processor that loops were compiled for, and the choice of loops.
// May include: nothing of ours.
// Invariant: everything an answer promises is there, all its extensions included; it never changes.
#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

namespace clew::kernels {

enum class InstructionSet : uint8_t { baseline, avx2, avx512 };

InstructionSet choose_instruction_set();
// At most what the environment's ATEN_CPU_CAPABILITY allows: "default", "avx2" or "avx512".
inline InstructionSet instruction_set() {
  static const InstructionSet chosen = choose_instruction_set();
  return chosen;
}
// False where the loops need more than this processor has, and calling any of them would end the
// process.
bool loops_run_here();

// Loops that isa_*.cpp compile once for each instruction set have the set's name as a namespace.
// CLEW_IN_EACH_SET declares them there, CLEW_CHOSEN names the one that this processor runs. A build
// for one set only (CLEW_ONE_SET) declares and names that one. Namespaces cannot be arguments of
// templates.
#ifdef CLEW_ONE_SET
#define CLEW_IN_EACH_SET(...) \
  namespace CLEW_ONE_SET {    \
  __VA_ARGS__                 \
  }
#define CLEW_CHOSEN(name) (CLEW_ONE_SET::name)
#else
#define CLEW_IN_EACH_SET(...) \
  namespace baseline {        \
  __VA_ARGS__                 \
  }                           \
  namespace avx2 {            \
  __VA_ARGS__                 \
  }                           \
  namespace avx512 {          \
  __VA_ARGS__                 \
  }
#define CLEW_CHOSEN(name) (::clew::kernels::of_set(baseline::name, avx2::name, avx512::name))

template <class Loops> Loops& of_set(Loops& of_baseline, Loops& of_avx2, Loops& of_avx512) {
  switch (instruction_set()) {
    case InstructionSet::avx512: return of_avx512;
    case InstructionSet::avx2: return of_avx2;
    case InstructionSet::baseline: break;
  }
  return of_baseline;
}
#endif

// The loops for elements of type T.
template <class T, class F, class D> const auto& of_type(const F& of_float, const D& of_double) {
  if constexpr (std::is_same_v<T, float>)
    return of_float;
  else
    return of_double;
}
template <class T, class F, class D, class C, class Z>
const auto& of_type(const F& of_float, const D& of_double, const C& of_c64, const Z& of_c128) {
  if constexpr (std::is_same_v<T, std::complex<float>>)
    return of_c64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return of_c128;
  else
    return of_type<T>(of_float, of_double);
}

}  // namespace clew::kernels
