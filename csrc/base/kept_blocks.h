// Whether freed blocks are kept for use again.
// May include: nothing.
// Invariant: one answer for the whole build.
#pragma once

namespace clew {

// With AddressSanitizer each block is of malloc's, as long as it was asked for, and freed at once:
// it sees what goes past a block or comes after its release.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool keeps_freed_blocks = false;
#else
constexpr bool keeps_freed_blocks = true;
#endif

}  // namespace clew
