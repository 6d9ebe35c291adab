// The inner loops of a matrix product: tiles that stay in registers, and packing for them.
// May include: base/scratch.h, kernels/matmul/gemm_vector.h. Only isa_*.cpp files include it.
// Invariant: packed lanes beyond a matrix's edge are zero, so tiles need no edge cases of their
// own.
#pragma once

#include "base/scratch.h"
#include "kernels/matmul/gemm_vector.h"

namespace clew::kernels::CLEW_ISA {
namespace {

// The tile of one micro-kernel, chosen so that sums, a row of B and an element of A fill the
// registers: rows of A, vectors of B. Complex tiles have two sums an element.
#if defined(__AVX512F__)
template <int planes> constexpr int tile_rows = planes == 2 ? 6 : 8;
template <int planes> constexpr int tile_vectors = planes == 2 ? 2 : 3;
#else
template <int planes> constexpr int tile_rows = planes == 2 ? 2 : 6;
template <int planes> constexpr int tile_vectors = 2;
#endif

// Cache lines to prefetch for later work while a tile is computed: four in every `fetch_steps`
// steps, `near` bytes apart, the next four `far` bytes on.
constexpr int64_t fetch_steps = 16;
struct Fetch {
  const char* at = nullptr;
  int64_t near = 0, far = 0;
};

// Where a tile of sums goes: c = alpha * sums + from, where `from` is nothing (null), c itself or
// a row that all rows get (from_rs = 0). The last vector has `last` lanes in c.
template <class S> struct TileTarget {
  S* c;
  int64_t rs;
  const S* from;
  int64_t from_rs;
  int64_t last;
  S alpha;
  bool scaled;
  Fetch fetch;
};

// Writes a tile whose last vector is not whole.
template <class S, int MR, int NV>
[[gnu::noinline]] void write_edge(const Vector<S> (&sums)[MR][NV], const TileTarget<S>& t) {
  using V = Vector<S>;
  constexpr int L = lanes<S>;
  for (int i = 0; i < MR; ++i)
    for (int j = 0; j < NV; ++j) {
      V v = sums[i][j];
      S* c = t.c + i * t.rs + j * L;
      const S* from = t.from ? t.from + i * t.from_rs + j * L : nullptr;
      if (j + 1 < NV) {
        if (from) {
          V w;
          std::memcpy(&w, from, sizeof(V));
          v += w;
        }
        std::memcpy(c, &v, sizeof(V));
      } else {
        if (from) v += load_part<S>(from, t.last);
        store_part<S>(c, v, t.last);
      }
    }
}

// c(MR x NV vectors) from the sum over `depth` of a(i, k) * b(k, j). Packed A has MR elements a
// step.
template <class S, int MR, int NV, bool packed>
void micro(int64_t depth, const S* a, int64_t a_rs, int64_t a_ks, const S* b, int64_t b_ks,
           const TileTarget<S>& t) {
  using V = Vector<S>;
  constexpr int L = lanes<S>;
  V sums[MR][NV];
  unroll<MR>([&]<int i> { unroll<NV>([&]<int j> { sums[i][j] = V{}; }); });
  const S* row[MR];
  if constexpr (!packed) unroll<MR>([&]<int i> { row[i] = a + i * a_rs; });
  // The tile's own lines arrive while it is computed.
  unroll<MR>(
      [&]<int i> { unroll<NV>([&]<int j> { __builtin_prefetch(t.c + i * t.rs + j * L, 1); }); });
  int64_t at = 0;
  auto steps = [&](int64_t count) __attribute__((always_inline)) {
    for (int64_t p = 0; p < count; ++p) {
      V br[NV];
      unroll<NV>([&]<int j> { std::memcpy(&br[j], b + j * L, sizeof(V)); });
      unroll<MR>([&]<int i> {
        const S ar = packed ? a[i] : row[i][at];
        unroll<NV>([&]<int j> { sums[i][j] += ar * br[j]; });
      });
      if constexpr (packed)
        a += MR;
      else
        at += a_ks;
      b += b_ks;
    }
  };
  if (const char* fetch = t.fetch.at) {
    for (const int64_t near = t.fetch.near, far = t.fetch.far; depth >= fetch_steps;
         depth -= fetch_steps, fetch += far) {
      unroll<4>([&]<int q> { __builtin_prefetch(fetch + q * near, 0, 2); });
      steps(fetch_steps);
    }
  }
  steps(depth);
  if (t.scaled) unroll<MR>([&]<int i> { unroll<NV>([&]<int j> { sums[i][j] *= t.alpha; }); });
  if (t.last == L) {
    // Copies: for all the compiler knows, writing to c changes t.
    S* const c = t.c;
    const S* const from = t.from;
    const int64_t rs = t.rs, from_rs = t.from_rs;
    if (from) {
      unroll<MR>([&]<int i> {
        unroll<NV>([&]<int j> {
          V w;
          std::memcpy(&w, from + i * from_rs + j * L, sizeof(V));
          sums[i][j] += w;
        });
      });
    }
    unroll<MR>([&]<int i> {
      unroll<NV>([&]<int j> { std::memcpy(c + i * rs + j * L, &sums[i][j], sizeof(V)); });
    });
    return;
  }
  // The edge is written from memory: sums that live across its calls would have no register in the
  // loop above.
  V edge[MR][NV];
  unroll<MR>([&]<int i> { unroll<NV>([&]<int j> { edge[i][j] = sums[i][j]; }); });
  write_edge<S, MR, NV>(edge, t);
}
template <class S>
using Micro = void (*)(int64_t, const S*, int64_t, int64_t, const S*, int64_t,
                       const TileTarget<S>&);

// The same for complex numbers in two planes: tile[MR][NV * lanes] of real parts, then imaginary
// ones.
template <class S, int MR, int NV>
void micro_complex(int64_t depth, const S* a, int64_t a_rs, int64_t a_ks, int64_t a_im, const S* b,
                   int64_t b_ks, S* tile) {
  using V = Vector<S>;
  constexpr int L = lanes<S>;
  V re[MR][NV], im[MR][NV];
  unroll<MR>([&]<int i> { unroll<NV>([&]<int j> { re[i][j] = im[i][j] = V{}; }); });
  for (int64_t p = 0; p < depth; ++p) {
    V br[NV], bi[NV];
    unroll<NV>([&]<int j> {
      std::memcpy(&br[j], b + j * L, sizeof(V));
      std::memcpy(&bi[j], b + (NV + j) * L, sizeof(V));
    });
    unroll<MR>([&]<int i> {
      const S ar = a[i * a_rs], ai = a[i * a_rs + a_im];
      unroll<NV>([&]<int j> {
        re[i][j] += ar * br[j];
        re[i][j] -= ai * bi[j];
        im[i][j] += ar * bi[j];
        im[i][j] += ai * br[j];
      });
    });
    a += a_ks;
    b += b_ks;
  }
  unroll<MR>([&]<int i> {
    unroll<NV>([&]<int j> {
      std::memcpy(tile + (i * NV + j) * L, &re[i][j], sizeof(V));
      std::memcpy(tile + ((MR + i) * NV + j) * L, &im[i][j], sizeof(V));
    });
  });
}
template <class S>
using MicroComplex = void (*)(int64_t, const S*, int64_t, int64_t, int64_t, const S*, int64_t, S*);

// Rows of the micro-kernel for what is left: a whole tile, then powers of two.
template <int planes> constexpr int rows_for(int64_t left) {
  constexpr int top = tile_rows<planes>;
  if (left >= top) return top;
  if (top > 4 && left >= 4) return 4;
  return left >= 2 ? 2 : 1;
}
template <int planes, class F> [[gnu::always_inline]] inline auto with_rows(int rows, F&& f) {
  constexpr int top = tile_rows<planes>;
  if (rows == top) return f.template operator()<top>();
  if constexpr (top > 4) {
    if (rows == 4) return f.template operator()<4>();
  }
  if constexpr (top > 2) {
    if (rows == 2) return f.template operator()<2>();
  }
  return f.template operator()<1>();
}
template <class S, bool packed> Micro<S> micro_for(int rows, int64_t vectors) {
  return with_rows<1>(rows, [&]<int MR>() -> Micro<S> {
    if constexpr (tile_vectors < 1 >> 2) {
      if (vectors == 3) return micro<S, MR, 3, packed>;
    }
    return vectors == 2 ? micro<S, MR, 2, packed> : micro<S, MR, 1, packed>;
  });
}
template <class S> MicroComplex<S> micro_complex_for(int rows, int64_t vectors) {
  return with_rows<2>(rows, [&]<int MR>() -> MicroComplex<S> {
    return vectors == 2 ? micro_complex<S, MR, 2> : micro_complex<S, MR, 1>;
  });
}

// ---- Packing: dst[k][width] (and an imaginary row after each) -----------------------------------

// Lanes that lie `lane_stride` apart and are contiguous along k: squares are turned in registers.
// W lanes are kept of each group of R.
template <class T, class S, int R, int W>
void pack_turned(S* dst, int64_t width, const T* src, int64_t lane_stride, int64_t count,
                 int64_t depth) {
  using V = Vector<S>;
  constexpr int L = lanes<S>;
  T ends[R * L];
  for (int64_t p = 0; p < depth; p += L) {
    V v[R];
    const int64_t steps = least(L, depth - p);
    if (steps == L && count >= R) {
      unroll<R>([&]<int r> {
        v[r] = load_lanes<T>(src + r * lane_stride + p);
        __builtin_prefetch(src + r * lane_stride + p + 4 * L, 0, 2);
      });
    } else {
      std::memset(static_cast<void*>(ends), 0, sizeof ends);
      const int64_t own = least(count, R);
      for (int64_t r = 0; r < own; ++r) copy_row(ends + r * L, src + r * lane_stride + p, steps);
      unroll<R>([&]<int r> { v[r] = load_lanes<T>(ends + r * L); });
    }
    interleave<S, R>(v);
    if constexpr (R == W && R < L) {
      S* to = dst + p * R;
      if (steps == L) {
        unroll<R>([&]<int r> { std::memcpy(to + r * L, &v[r], sizeof(V)); });
      } else {
        S turned[R * L];
        std::memcpy(turned, v, sizeof turned);
        copy_row(to, turned, steps * R);
      }
    } else if (steps == L) {
      unroll<R>([&]<int r> { std::memcpy(dst + (p + r) * width, &v[r], W * sizeof(S)); });
    } else {
      for (int64_t r = 0; r < steps; ++r) std::memcpy(dst + (p + r) * width, &v[r], W * sizeof(S));
    }
  }
}

// Lanes that are contiguous: `width` of them a step.
template <class T, class S, int width>
void pack_copied(S* dst, const T* src, int64_t k_stride, int64_t depth) {
  constexpr int L = lanes<S>;
  for (int64_t p = 0; p < depth; ++p, dst += width, src += k_stride) {
    if constexpr (width % L == 0) {
      unroll<width / L>([&]<int v> {
        const Vector<S> x = load_lanes<T>(src + v * L);
        std::memcpy(dst + v * L, &x, sizeof x);
      });
    } else if constexpr (sizeof(T) == sizeof(S)) {
      std::memcpy(dst, src, width * sizeof(S));
    } else {
      for (int j = 0; j < width; ++j) dst[j] = Element<T>::load(src + j, 0);
    }
  }
}

// Any strides, any count.
template <class T, class S>
void pack_any(S* dst, int64_t width, const T* src, int64_t lane_stride, int64_t k_stride,
              int64_t count, int64_t depth) {
  using E = Element<T>;
  constexpr int planes = E::planes;
  const int64_t step = width * planes;
  if (count < width)
    std::memset(static_cast<void*>(dst), 0, sizeof(S) * static_cast<size_t>(step * depth));
  // Four lanes at a time: the writes of one step share a cache line.
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    const T* f = src + j * lane_stride;
    S* to = dst + j;
    for (int64_t p = 0; p < depth; ++p, to += step, f += k_stride) {
      unroll<planes>([&]<int plane> {
        unroll<4>([&]<int q> { to[plane * width + q] = E::load(f + q * lane_stride, plane); });
      });
    }
  }
  for (; j < count; ++j) {
    const T* f = src + j * lane_stride;
    S* to = dst + j;
    for (int64_t p = 0; p < depth; ++p, to += step, f += k_stride) {
      unroll<planes>([&]<int plane> { to[plane * width] = E::load(f, plane); });
    }
  }
}

// A panel of `width` lanes, `count` of which the matrix has; width is one that micro-kernels use.
template <class T, class S>
void pack(S* dst, int64_t width, const T* src, int64_t lane_stride, int64_t k_stride, int64_t count,
          int64_t depth) {
  constexpr int L = lanes<S>;
  constexpr int top = tile_rows<1>;
  if constexpr (Element<T>::planes == 1) {
    if (k_stride == 1 && (lane_stride != 1 || depth == 1)) {
      const int64_t whole = width / L * L;
      for (int64_t g = 0; g < whole; g += L)
        pack_turned<T, S, L, L>(dst + g, width, src + g * lane_stride, lane_stride,
                                most(0, count - g), depth);
      if (whole == width) return;
      const int64_t left = most(0, count - whole);
      return with_rows<1>(static_cast<int>(width), [&]<int W>() {
        if constexpr (W < L) {
          constexpr int R = static_cast<int>(std::bit_ceil(unsigned{W}));
          pack_turned<T, S, R, W>(dst, width, src, lane_stride, left, depth);
        } else if constexpr (W % L != 0) {
          pack_turned<T, S, L, W % L>(dst + whole, width, src + whole * lane_stride, lane_stride,
                                      left, depth);
        }
      });
    }
    if (lane_stride == 1 && count == width) {
      if (width == L) return pack_copied<T, S, L>(dst, src, k_stride, depth);
      if (width == 2 * L) return pack_copied<T, S, 2 * L>(dst, src, k_stride, depth);
      if (width == 3 * L) return pack_copied<T, S, 3 * L>(dst, src, k_stride, depth);
      if (width == top) return pack_copied<T, S, top>(dst, src, k_stride, depth);
    }
    if constexpr (sizeof(T) == sizeof(S)) {
      if (lane_stride == 1 && width % L == 0) {
        const S* from = reinterpret_cast<const S*>(src);
        for (int64_t p = 0; p < depth; ++p, dst += width, from += k_stride) {
          for (int64_t v = 0; v < width; v += L) {
            const int64_t own = most(0, least(L, count - v));
            Vector<S> x{};
            if (own == L)
              std::memcpy(&x, from + v, sizeof x);
            else if (own > 0)
              x = load_part<S>(from + v, own);
            std::memcpy(dst + v, &x, sizeof x);
          }
        }
        return;
      }
    }
  }
  pack_any<T, S>(dst, width, src, lane_stride, k_stride, count, depth);
}

// ---- What drivers share
// --------------------------------------------------------------------------

template <class S> S* room(const LocalScratch& s, int64_t elements) { return s.of<S>(elements); }

// How columns are cut into packed panels: all of `width` but perhaps the last.
struct Panels {
  int64_t n, width, lane;
  int64_t count() const { return ceil_div(n, width); }
  int64_t columns(int64_t q) const { return least(width, n - q * width); }
  // Lanes that a panel takes: whole vectors.
  int64_t packed(int64_t q) const { return ceil_div(columns(q), lane) * lane; }
};
template <class T> Panels panels_of(int64_t n) {
  constexpr int L = lanes<typename Element<T>::S>;
  return {n, int64_t{L} * tile_vectors<Element<T>::planes>, L};
}

}  // namespace
}  // namespace clew::kernels::CLEW_ISA
