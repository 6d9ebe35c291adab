// The loops of grid sampling over a block of places, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/resample/grid_sample.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int64_t B = grid_block;
constexpr int64_t G = 16;  // places of a group: the lanes of a vector

// The elements along one dim that a sample is made of: where they lie (-1: outside), their weights,
// and the weights' slopes along the place.
template <class T, int taps> struct Line {
  int32_t at[taps][B];
  T weight[taps][B], slope[taps][B];
};

// Moves a place inside; `slope` becomes the slope of where it is then.
template <class T>
[[gnu::always_inline]] inline void place(T& x, T& slope, T size, GridPadding padding, bool align) {
  if (padding == GridPadding::zeros) return;
  if (padding == GridPadding::reflection) {
    const T low = align ? T(0) : T(-0.5), span = align ? size - 1 : size;
    const T from = x - low, distance = std::fabs(from);
    const T flips = std::floor(distance / span), extra = distance - flips * span;
    const T odd = flips - 2 * std::floor(flips / 2);
    slope = from < 0 ? -slope : slope;
    slope = odd > 0 ? -slope : slope;
    x = (odd > 0 ? span - extra : extra) + low;
    x = span > 0 ? x : T(0);
    slope = span > 0 ? slope : T(0);
  }
  slope = x > 0 ? slope : T(0);
  slope = x < size - 1 ? slope : T(0);
  x = x > 0 ? x : T(0);  // NaN as well
  x = x < size - 1 ? x : size - 1;
}

// Where `at`, a whole number, lies; -1 if that is outside.
template <class T> [[gnu::always_inline]] inline int32_t element(T at, T size) {
  at = at >= 0 ? at : T(-1);
  at = at <= size - 1 ? at : T(-1);
  return static_cast<int32_t>(at);
}

template <class T, GridMode mode, int taps, GridPadding padding, int step>
void find_taps(const T* grid, int64_t elements, bool align, int64_t count, Line<T, taps>& line) {
  const T size = static_cast<T>(elements);
  const T scale = align ? (size - 1) / 2 : size / 2;
  for (int64_t j = 0; j < count; ++j) {
    const T g = grid[j * step] + 1;
    T x = align ? g * scale : (g * size - 1) / 2, slope = scale;
    if constexpr (mode != GridMode::cubic) place(x, slope, size, padding, align);
    if constexpr (mode == GridMode::nearest) {
      line.at[0][j] = element(std::nearbyint(x), size);
      line.weight[0][j] = T(1);
      line.slope[0][j] = T(0);
    } else if constexpr (mode == GridMode::linear) {
      const T low = std::floor(x), part = x - low;
      const T first = low == low ? low : T(0);  // the weight is NaN
      line.at[0][j] = element(first, size);
      line.at[1][j] = element(first + 1, size);
      line.weight[0][j] = 1 - part;
      line.weight[1][j] = part;
      line.slope[0][j] = -slope;
      line.slope[1][j] = slope;
    } else {
      constexpr T a = T(-0.75);
      const T low = std::floor(x), part = x - low;
      for (int k = 0; k < 4; ++k) {
        T at = low + static_cast<T>(k - 1), unused = 0;
        place(at, unused, size, padding, align);
        line.at[k][j] = element(at == at ? at : T(0), size);
        // Distance from the place, and the direction in which the place's motion changes it.
        const T d = k < 2 ? part + static_cast<T>(1 - k) : static_cast<T>(k - 1) - part;
        const T way = k < 2 ? slope : -slope;
        const bool far = k == 0 || k == 3;
        line.weight[k][j] =
            far ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : ((a + 2) * d - (a + 3)) * d * d + 1;
        line.slope[k][j] =
            way * (far ? (3 * a * d - 10 * a) * d + 8 * a : (3 * (a + 2) * d - 2 * (a + 3)) * d);
      }
    }
  }
}

template <GridMode mode>
constexpr int taps_of = mode == GridMode::linear  ? 2
                        : mode == GridMode::cubic ? 4
                                                  : 1;

// All elements that the samples of a block are made of.
template <class T, GridMode mode, int dims> struct Taps {
  static constexpr int each = taps_of<mode>;
  static constexpr int count = dims == 3 ? each * each * each : each * each;
  Line<T, each> lines[dims];
  int32_t at[count][B];
  T weight[count][B];
  bool inside[B / G];  // whether all elements of a whole group are
  bool all_inside;

  Taps(const T* grid, const GridShape& sh, int64_t n) {
    for (int d = 0; d < dims; ++d) {
      const T* from = grid + (dims - 1 - d);
      if (sh.padding == GridPadding::zeros)
        find_taps<T, mode, each, GridPadding::zeros, dims>(from, sh.sizes[d], sh.align, n,
                                                           lines[d]);
      else if (sh.padding == GridPadding::border)
        find_taps<T, mode, each, GridPadding::border, dims>(from, sh.sizes[d], sh.align, n,
                                                            lines[d]);
      else
        find_taps<T, mode, each, GridPadding::reflection, dims>(from, sh.sizes[d], sh.align, n,
                                                                lines[d]);
    }
    int32_t signs[B] = {};
    for (int k = 0; k < count; ++k) {
      const int k0 = part(k, 0), k1 = part(k, 1);
      const auto s1 = static_cast<int32_t>(sh.sizes[1]);
      for (int64_t j = 0; j < n; ++j) {
        const int32_t a0 = lines[0].at[k0][j], a1 = lines[1].at[k1][j];
        int32_t sign = a0 | a1, whole = a0 * s1 + a1;
        T w = lines[0].weight[k0][j] * lines[1].weight[k1][j];
        if constexpr (dims == 3) {
          const int32_t a2 = lines[2].at[part(k, 2)][j];
          sign |= a2;
          whole = whole * static_cast<int32_t>(sh.sizes[2]) + a2;
          w *= lines[2].weight[part(k, 2)][j];
        }
        at[k][j] = sign < 0 ? -1 : whole;
        weight[k][j] = w;
        signs[j] |= sign;
      }
      for (int64_t j = n; j % G; ++j) at[k][j] = -1;
    }
    int32_t any = 0;
    for (int64_t j0 = 0; j0 < n; j0 += G) {
      int32_t outside = n - j0 < G ? -1 : 0;
      for (int64_t j = j0; j < std::min(n, j0 + G); ++j) {
        outside |= signs[j];
        any |= signs[j];
      }
      inside[j0 / G] = outside >= 0;
    }
    all_inside = any >= 0;
  }
  // Which tap of dim d belongs to tap k of all.
  static constexpr int part(int k, int d) {
    for (int e = dims - 1; e > d; --e) k /= each;
    return k % each;
  }
};

#ifdef __AVX512F__
// Calls f(k, elements k of the places from j0 on), what lies outside being 0. Neighbours along the
// last dim are loaded together where all are inside.
template <class All, class F>
[[gnu::always_inline]] inline void each_tap(const All& taps, const float* from, int64_t j0, F&& f) {
  const __m512 zero = _mm512_setzero_ps();
  if (All::each == 2 && taps.inside[j0 / G]) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    for (int k = 0; k < All::count; k += 2) {
      const auto* at = reinterpret_cast<const __m256i*>(taps.at[k] + j0);
      // All lanes, by the masked form: the plain one begins with an undefined register.
      const __m512i none = _mm512_setzero_si512();
      const __m512i low = _mm512_mask_i32gather_epi64(none, 0xFF, _mm256_loadu_si256(at), from, 4);
      const __m512i high =
          _mm512_mask_i32gather_epi64(none, 0xFF, _mm256_loadu_si256(at + 1), from, 4);
      f(k, _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, even, high)));
      f(k + 1, _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, odd, high)));
    }
    return;
  }
  for (int k = 0; k < All::count; ++k) {
    const __m512i at = _mm512_loadu_si512(taps.at[k] + j0);
    const __mmask16 inside = _mm512_cmpge_epi32_mask(at, _mm512_setzero_si512());
    f(k, _mm512_mask_i32gather_ps(zero, inside, at, from, 4));
  }
}
template <class All>
void sample_lanes(float* out, const float* x, const All& taps, const GridShape& sh, int64_t n) {
  for (int64_t c = 0; c < sh.c; ++c) {
    for (int64_t j0 = 0; j0 < n; j0 += G) {
      __m512 sum = _mm512_setzero_ps();
      each_tap(taps, x + c * sh.s, j0, [&](int k, __m512 v) {
        const __mmask16 inside =
            _mm512_cmpge_epi32_mask(_mm512_loadu_si512(taps.at[k] + j0), _mm512_setzero_si512());
        sum = _mm512_mask3_fmadd_ps(_mm512_loadu_ps(taps.weight[k] + j0), v, sum, inside);
      });
      const auto there = static_cast<__mmask16>(n - j0 < G ? (1 << (n - j0)) - 1 : 0xFFFF);
      _mm512_mask_storeu_ps(out + c * sh.p + j0, there, sum);
    }
  }
}
template <class All>
void dots_lanes(float (*dots)[B], const float* x, const float* grad, const All& taps,
                const GridShape& sh, int64_t n) {
  for (int64_t c = 0; c < sh.c; ++c) {
    for (int64_t j0 = 0; j0 < n; j0 += G) {
      const auto there = static_cast<__mmask16>(n - j0 < G ? (1 << (n - j0)) - 1 : 0xFFFF);
      const __m512 g = _mm512_maskz_loadu_ps(there, grad + c * sh.p + j0);
      each_tap(taps, x + c * sh.s, j0, [&](int k, __m512 v) {
        const __mmask16 inside =
            _mm512_cmpge_epi32_mask(_mm512_loadu_si512(taps.at[k] + j0), _mm512_setzero_si512());
        _mm512_storeu_ps(dots[k] + j0,
                         _mm512_mask3_fmadd_ps(v, g, _mm512_loadu_ps(dots[k] + j0), inside));
      });
    }
  }
}
#endif

template <class T, GridMode mode, int dims>
void sample(T* out, const T* x, const T* grid, const GridShape& sh, int64_t n) {
  const Taps<T, mode, dims> taps(grid, sh, n);
  constexpr int K = Taps<T, mode, dims>::count;
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>) return sample_lanes(out, x, taps, sh, n);
#endif
  for (int64_t c = 0; c < sh.c; ++c) {
    const T* from = x + c * sh.s;
    T* to = out + c * sh.p;
    if (taps.all_inside) {
      for (int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (int k = 0; k < K; ++k) sum += taps.weight[k][j] * from[taps.at[k][j]];
        to[j] = sum;
      }
    } else {
      for (int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (int k = 0; k < K; ++k) {
          const int32_t at = taps.at[k][j];
          const T term = taps.weight[k][j] * from[at < 0 ? 0 : at];
          sum += at < 0 ? T(0) : term;
        }
        to[j] = sum;
      }
    }
  }
}

template <class T, GridMode mode, int dims>
void image_slopes(T* dx, const T* grad, const T* grid, const GridShape& sh, int64_t channels,
                  int64_t n) {
  const Taps<T, mode, dims> taps(grid, sh, n);
  constexpr int K = Taps<T, mode, dims>::count;
  for (int64_t c = 0; c < channels; ++c) {
    T* to = dx + c * sh.s;
    const T* g = grad + c * sh.p;
    for (int64_t j = 0; j < n; ++j) {
      for (int k = 0; k < K; ++k) {
        const int32_t at = taps.at[k][j];
        if (at >= 0) to[at] += taps.weight[k][j] * g[j];
      }
    }
  }
}

template <class T, GridMode mode, int dims>
void grid_slopes(T* dgrid, const T* x, const T* grad, const T* grid, const GridShape& sh,
                 int64_t n) {
  const Taps<T, mode, dims> taps(grid, sh, n);
  using All = Taps<T, mode, dims>;
  constexpr int K = All::count;
  T dots[K][B] = {};
#ifdef __AVX512F__
  constexpr bool in_lanes = std::is_same_v<T, float>;
  if constexpr (in_lanes) dots_lanes(dots, x, grad, taps, sh, n);
#else
  constexpr bool in_lanes = false;
#endif
  for (int64_t c = 0; !in_lanes && c < sh.c; ++c) {
    const T *from = x + c * sh.s, *g = grad + c * sh.p;
    for (int k = 0; k < K; ++k) {
      for (int64_t j = 0; j < n; ++j) {
        const int32_t at = taps.at[k][j];
        const T term = from[at < 0 ? 0 : at] * g[j];
        dots[k][j] += at < 0 ? T(0) : term;
      }
    }
  }
  for (int d = 0; d < dims; ++d) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (int k = 0; k < K; ++k) {
        T slope = dots[k][j];
        for (int e = 0; e < dims; ++e) {
          const auto& line = taps.lines[e];
          slope *= e == d ? line.slope[All::part(k, e)][j] : line.weight[All::part(k, e)][j];
        }
        sum += slope;
      }
      dgrid[j * dims + (dims - 1 - d)] = sum;
    }
  }
}

// Calls f.operator()<mode, dims>().
template <class F> void with_kind(const GridShape& sh, F&& f) {
  if (sh.mode == GridMode::cubic) return f.template operator()<GridMode::cubic, 2>();
  if (sh.mode == GridMode::nearest)
    return sh.dims == 2 ? f.template operator()<GridMode::nearest, 2>()
                        : f.template operator()<GridMode::nearest, 3>();
  sh.dims == 2 ? f.template operator()<GridMode::linear, 2>()
               : f.template operator()<GridMode::linear, 3>();
}

template <class T> constexpr GridLoops<T> loops() {
  return {
      .sample =
          [](T* out, const T* x, const T* grid, const GridShape& sh, int64_t n) {
            with_kind(
                sh, [&]<GridMode mode, int dims>() { sample<T, mode, dims>(out, x, grid, sh, n); });
          },
      .image_slopes =
          [](T* dx, const T* grad, const T* grid, const GridShape& sh, int64_t channels,
             int64_t n) {
            with_kind(sh, [&]<GridMode mode, int dims>() {
              image_slopes<T, mode, dims>(dx, grad, grid, sh, channels, n);
            });
          },
      .grid_slopes =
          [](T* dgrid, const T* x, const T* grad, const T* grid, const GridShape& sh, int64_t n) {
            with_kind(sh, [&]<GridMode mode, int dims>() {
              grid_slopes<T, mode, dims>(dgrid, x, grad, grid, sh, n);
            });
          },
  };
}

}  // namespace

extern const GridLoops<float> grid_sample_float;
extern const GridLoops<double> grid_sample_double;
const GridLoops<float> grid_sample_float = loops<float>();
const GridLoops<double> grid_sample_double = loops<double>();

}  // namespace clew::kernels::CLEW_ISA
