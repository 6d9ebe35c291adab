// Seeds from the system.
// May include: base, the standard library.
// Invariant: <random>, which takes long to read, is included here alone.
#include "base/generator.h"

#include <random>

namespace clew {

uint64_t random_seed() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

}  // namespace clew
