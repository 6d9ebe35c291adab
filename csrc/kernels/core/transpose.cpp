// Transposed copies in tiles of whole cache lines; copies that make rows alternate.
// May include: base, kernels.
// Invariant: every line of a full tile is read and written once, so strides that are powers of two,
// whose lines fight for the same places in a cache, cost nothing.
#include "kernels/core/transpose.h"

#include <cstring>

#include "kernels/core/index_walk.h"
#include "kernels/core/instruction_set.h"
#include "kernels/core/stream.h"
#include "kernels/core/transpose_loops.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const TransposeLoops transpose_table;)

const TransposeLoops& transpose_loops() { return CLEW_CHOSEN(transpose_table); }

namespace {

template <class T> TransposeLoops::StreamTile stream_tile_of() {
  if constexpr (sizeof(T) == 4) return transpose_loops().stream_tile_of_four;
  if constexpr (sizeof(T) == 8) return transpose_loops().stream_tile_of_eight;
  return nullptr;
}

template <class T> constexpr int64_t side = line_bytes / static_cast<int64_t>(sizeof(T));
template <class T> constexpr int64_t most_wide = 4 * side<T>;

template <class T> struct LaneOf {
  typedef T type __attribute__((vector_size(16)));  // an alias template would lose the attribute
};
template <class T> using Lane = typename LaneOf<T>::type;
template <class T> Lane<T> load(const char* p) {
  Lane<T> v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
// The low (high) halves of a and b, alternating.
template <class T> Lane<T> low(Lane<T> a, Lane<T> b) {
  if constexpr (sizeof(T) == 8)
    return __builtin_shufflevector(a, b, 0, 2);
  else if constexpr (sizeof(T) == 4)
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  else if constexpr (sizeof(T) == 1)
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  else
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
template <class T> Lane<T> high(Lane<T> a, Lane<T> b) {
  if constexpr (sizeof(T) == 8)
    return __builtin_shufflevector(a, b, 1, 3);
  else if constexpr (sizeof(T) == 4)
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
  else if constexpr (sizeof(T) == 1)
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
  else
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
// Interleaving the first half of the rows with the second, once for each bit of the row number,
// transposes a square of registers.
template <class T, int n> void transpose_lanes(Lane<T> (&v)[n]) {
  for (int step = 1; step < n; step *= 2) {
    Lane<T> next[n];
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = low<T>(v[i], v[i + n / 2]);
      next[2 * i + 1] = high<T>(v[i], v[i + n / 2]);
    }
    for (int i = 0; i < n; ++i) v[i] = next[i];
  }
}

// tile[r * step + c] = column c of the source, row r; line by line where columns lie so far apart
// that the nearest cache does not keep their lines, else as the tile is written.
template <class T, bool by_line>
void transpose_tile(const char* s, int64_t s_col, T* tile, int64_t step) {
  if constexpr (sizeof(T) == 16) {
    for (int64_t c = 0; c < side<T>; ++c) {
      const T* column = reinterpret_cast<const T*>(s + c * s_col);
      for (int64_t r = 0; r < side<T>; ++r) tile[r * step + c] = column[r];
    }
  } else {
    constexpr int64_t n = 16 / sizeof(T);
    for (int64_t i = 0; i < side<T>; i += n) {
      for (int64_t j = 0; j < side<T>; j += n) {
        const int64_t r = by_line ? j : i, c = by_line ? i : j;
        Lane<T> v[n];
        for (int64_t k = 0; k < n; ++k) {
          v[k] = load<T>(s + (c + k) * s_col + r * static_cast<int64_t>(sizeof(T)));
        }
        transpose_lanes<T, n>(v);
        for (int64_t k = 0; k < n; ++k) std::memcpy(tile + (r + k) * step + c, &v[k], sizeof(v[k]));
      }
    }
  }
}

// A plane whose destination runs along one dim (columns) and whose source runs along the other.
template <class T> struct Plane {
  static constexpr auto item = static_cast<int64_t>(sizeof(T));
  char* d;
  const char* s;
  int64_t d_row, s_col;  // bytes
  int64_t rows, cols;

  const char* from(int64_t r, int64_t c) const { return s + c * s_col + r * item; }
  char* to(int64_t r, int64_t c) const { return d + r * d_row + c * item; }
  void singles(int64_t r0, int64_t r1, int64_t c0, int64_t c1) const {
    for (int64_t c = c0; c < c1; ++c) {
      for (int64_t r = r0; r < r1; ++r) {
        *reinterpret_cast<T*>(to(r, c)) = *reinterpret_cast<const T*>(from(r, c));
      }
    }
  }
  // Squares of registers where there is room for one; they may overlap.
  void rest(int64_t r0, int64_t r1, int64_t c0, int64_t c1) const {
    constexpr int64_t n = 16 / item;
    if constexpr (n < 4) {
      singles(r0, r1, c0, c1);
    } else {
      if (r1 - r0 < n || cols < n) return singles(r0, r1, c0, c1);
      for (int64_t r = r0; r < r1; r += n) {
        for (int64_t c = c0; c < c1; c += n) {
          const int64_t row = std::min(r, r1 - n), column = std::min(c, cols - n);
          Lane<T> v[n];
          for (int64_t k = 0; k < n; ++k) v[k] = load<T>(from(row, column + k));
          transpose_lanes<T, n>(v);
          for (int64_t k = 0; k < n; ++k) std::memcpy(to(row + k, column), &v[k], sizeof(v[k]));
        }
      }
    }
  }
  // `wide` columns from c on, along the source; their lines go past the caches, neighbours
  // together.
  void stream_columns(int64_t c, int64_t wide) const {
    const int64_t whole = std::min(wide, (cols - c) / side<T> * side<T>);
    const int64_t full = whole > 0 ? rows / side<T> * side<T> : 0;
    const auto in_registers = stream_tile_of<T>();
    alignas(64) T tile[side<T>][most_wide<T>];
    for (int64_t r = 0; r < full; r += side<T>) {
      if (in_registers) {
        for (int64_t j = c; j < c + whole; j += side<T>)
          in_registers(to(r, j), d_row, from(r, j), s_col);
        continue;
      }
      for (int64_t j = 0; j < whole; j += side<T>)
        transpose_tile<T, true>(from(r, c + j), s_col, &tile[0][j], most_wide<T>);
      for (int64_t k = 0; k < side<T>; ++k)
        stream_lines(to(r + k, c), reinterpret_cast<const char*>(tile[k]), whole * item);
    }
    rest(full, rows, c, c + whole);
    rest(0, rows, c + whole, std::min(cols, c + wide));
    stream_end();
  }
  // The tile of rows that starts at r, along the destination, in runs of several lines.
  void copy_rows(int64_t r) const {
    constexpr int64_t run = 16 * side<T>;
    alignas(64) T strip[side<T>][run];
    int64_t full = r + side<T> <= rows ? cols / side<T> * side<T> : 0;
    for (int64_t c0 = 0; c0 < full; c0 += run) {
      int64_t c1 = std::min(full, c0 + run);
      for (int64_t c = c0; c < c1; c += side<T>) {
        transpose_tile<T, false>(from(r, c), s_col, &strip[0][c - c0], run);
      }
      for (int64_t k = 0; k < side<T>; ++k) {
        std::memcpy(to(r + k, c0), strip[k], static_cast<size_t>((c1 - c0) * item));
      }
    }
    rest(r, std::min(rows, r + side<T>), full, cols);
  }
};

// Dims of both sides, without those of size 1 and with neighbours merged where both lie dense.
struct Layout {
  int ndim = 0;
  int64_t sizes[max_dims], dst[max_dims], src[max_dims];
  Layout(const NdView& d, const NdView& s) {
    for (int i = 0; i < d.ndim; ++i) {
      if (d.sizes[i] == 1) continue;
      if (ndim > 0 && dst[ndim - 1] == d.strides[i] * d.sizes[i] &&
          src[ndim - 1] == s.strides[i] * s.sizes[i]) {
        sizes[ndim - 1] *= d.sizes[i];
        dst[ndim - 1] = d.strides[i];
        src[ndim - 1] = s.strides[i];
        continue;
      }
      sizes[ndim] = d.sizes[i];
      dst[ndim] = d.strides[i];
      src[ndim] = s.strides[i];
      ++ndim;
    }
  }
};

template <class T>
void copy_planes(const NdView& to, const NdView& from, const Layout& l, int inner, int other) {
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  int64_t outer = 1;
  for (int d = 0; d < l.ndim; ++d) {
    if (d != inner && d != other) outer *= l.sizes[d];
  }
  const int64_t rows = l.sizes[other];
  const int64_t cols = l.sizes[inner];
  bool streamed = outer * rows * cols * item >= stream_bytes && starts_line(to.data);
  for (int d = 0; d < l.ndim; ++d) {
    streamed = streamed && (d == inner || l.dst[d] * item % line_bytes == 0);
  }
  // Lines that lie a power of two apart are written several neighbours at a time: one by one they
  // wait for the same parts of the memory. Otherwise few columns at a time are read faster.
  const bool apart = l.dst[other] * item % 2048 == 0;
  const int64_t tile = streamed && apart ? most_wide<T> : side<T>;
  const int64_t tiles = ((streamed ? cols : rows) + tile - 1) / tile;
  int64_t grain = std::max<int64_t>(1, grain_default * tiles / std::max<int64_t>(1, rows * cols));
  parallel_for(outer * tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      int64_t rest = k / tiles;
      Plane<T> plane{to.data, from.data, l.dst[other] * item, l.src[inner] * item, rows, cols};
      for (int dim = l.ndim - 1; dim >= 0; --dim) {
        if (dim == inner || dim == other) continue;
        int64_t i = rest % l.sizes[dim];
        rest /= l.sizes[dim];
        plane.d += i * l.dst[dim] * item;
        plane.s += i * l.src[dim] * item;
      }
      if (streamed)
        plane.stream_columns(k % tiles * tile, tile);
      else
        plane.copy_rows(k % tiles * tile);
    }
  });
}

// d[j * W + k] = s[k * apart + j]: W rows of the source become one of the destination.
template <class T, int W> void interleave(T* d, const T* s, int64_t apart, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j)
    for (int k = 0; k < W; ++k) d[j * W + k] = s[k * apart + j];
}

template <class T>
void copy_interleaved(const NdView& to, const NdView& from, const Layout& l, int inner, int other) {
  int64_t rows = 1;
  for (int d = 0; d < l.ndim; ++d) {
    if (d != inner && d != other) rows *= l.sizes[d];
  }
  const int64_t n = l.sizes[other];
  const int64_t apart = l.src[inner];
  parallel_for(rows, std::max<int64_t>(1, grain_default / n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* d = to.ptr<T>();
      const T* s = from.ptr<const T>();
      int64_t rest = row;
      for (int dim = l.ndim - 1; dim >= 0; --dim) {
        if (dim == inner || dim == other) continue;
        int64_t i = rest % l.sizes[dim];
        rest /= l.sizes[dim];
        d += i * l.dst[dim];
        s += i * l.src[dim];
      }
      if (l.sizes[inner] == 2)
        interleave<T, 2>(d, s, apart, n);
      else
        interleave<T, 3>(d, s, apart, n);
    }
  });
}

// Two or three rows of the source that alternate in the destination, as pixel_shuffle has them.
bool copy_alternating(const NdView& dst, const NdView& src, const Layout& l) {
  int inner = -1;
  int other = -1;
  for (int d = 0; d < l.ndim; ++d) {
    if (l.dst[d] == 0) return false;
    if (l.dst[d] == 1 && (l.sizes[d] == 2 || l.sizes[d] == 3)) inner = d;
    if (l.src[d] == 1 && l.dst[d] != 1 && l.sizes[d] >= 8) other = d;
  }
  if (inner < 0 || other < 0 || l.dst[other] != l.sizes[inner]) return false;
  dispatch_size(itemsize(dst.dtype),
                [&]<class T>() { copy_interleaved<T>(dst, src, l, inner, other); });
  return true;
}

}  // namespace

bool copy_transposed(const NdView& dst, const NdView& src) {
  Layout l(dst, src);
  int inner = -1;
  int other = -1;
  for (int d = 0; d < l.ndim; ++d) {
    if (l.sizes[d] < 4) continue;
    if (l.dst[d] == 1 && l.src[d] != 1) inner = d;
    if (l.src[d] == 1 && l.dst[d] != 1) other = d;
  }
  if (inner < 0 || other < 0 || l.src[inner] == 0 || l.dst[other] == 0)
    return copy_alternating(dst, src, l);
  if (std::max(l.sizes[inner], l.sizes[other]) < 8) return false;
  dispatch_size(itemsize(dst.dtype), [&]<class T>() { copy_planes<T>(dst, src, l, inner, other); });
  return true;
}

}  // namespace clew::kernels
