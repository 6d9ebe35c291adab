// Whether freed blocks are kept for use again.
// May include: nothing.
// Invariant: one answer for the whole build.
#pragma once

namespace clew {

// With AddressSanitizer each block comes from malloc with its exact size and is freed at once, so
// that accesses past its end or after its release are found.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool keeps_freed_blocks = false;
#else
constexpr bool keeps_freed_blocks = true;
#endif

}  // namespace clew
