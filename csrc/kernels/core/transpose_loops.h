// Tiles of a transposed copy in vectors of a whole cache line.
// May include: the standard library only.
// Invariant: a loop that is there gives the bytes of the plain ones.
#pragma once
#include <cstdint>

namespace clew::kernels {

struct TransposeLoops {
  // d[r][c] = s[c][r] for a square whose rows, d_row and s_col bytes apart, are lines of 64 bytes.
  // Those at d are aligned and go past the caches.
  using StreamTile = void (*)(char* d, int64_t d_row, const char* s, int64_t s_col);
  // Of items of 4 and of 8 bytes; null where a tile does not fit into the registers.
  StreamTile stream_tile_of_four = nullptr, stream_tile_of_eight = nullptr;
};
// The fastest this processor runs.
const TransposeLoops& transpose_loops();

}  // namespace clew::kernels
