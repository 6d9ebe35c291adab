// The loops of grid sampling over a block of places, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/resample/grid_sample.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int64_t B = grid_block;
constexpr int64_t G = 8;  // places of a group: the lanes of a vector

// The elements along one dim that a sample is made of: where they lie (-1: outside), their weights,
// and the weights' slopes along the place.
template <class T, int taps> struct Line {
  int32_t at[taps][B];
  T weight[taps][B], slope[taps][B];
};

// Moves a place inside; `slope` becomes the derivative of the moved place. (Signs are factors:
// choices between a number and its negative become jumps.)
template <class T>
[[gnu::always_inline]] inline void place(T& x, T& slope, T size, GridPadding padding, bool align) {
  if (padding == GridPadding::zeros) return;
  const T end = size - 1;
  if (padding == GridPadding::reflection) {
    const T low = align ? T(0) : T(-0.5), span = align ? end : size;
    const T from = x - low, distance = std::fabs(from);  // NaN below where span is 0
    const T flips = std::floor(distance / span), extra = distance - flips * span;
    const T odd = flips - 2 * std::floor(flips / 2);  // 0 or 1
    slope *= std::copysign(T(1), from) * (1 - 2 * odd);
    x = extra + odd * (span - 2 * extra) + low;
  }
  x = x > 0 ? x : T(0);  // NaN as well
  x = x < end ? x : end;
  slope *= static_cast<T>((x > 0) & (x < end));
}

// Where `at`, a whole number, lies; -1 if that is outside.
template <class T> [[gnu::always_inline]] inline int32_t element(T at, T size) {
  at = at > T(-1) ? at : T(-1);  // NaN as well
  at = at < size ? at : size;
  const auto i = static_cast<int32_t>(at), end = static_cast<int32_t>(size);
  return i < end ? i : -1;
}

// `dims` coordinates stand together in the grid.
template <class T, GridMode mode, int taps, GridPadding padding>
[[gnu::noinline, gnu::noclone]] void find_taps(const T* grid, int dims, int64_t elements,
                                               bool align, bool slopes, int64_t given,
                                               Line<T, taps>& line) {
  int64_t count = given;
  const T size = static_cast<T>(elements);
  const T scale = align ? (size - 1) / 2 : size / 2;
  // Whole vectors: what stands behind the last place is thrown away.
  T places[B] = {}, ways[B];
  count = (count + G - 1) / G * G;
  for (int64_t j = 0; j < given; ++j) places[j] = grid[j * dims];
  for (int64_t j = 0; j < count; ++j) {
    const T g = places[j] + 1;
    places[j] = align ? g * scale : (g * size - 1) / 2;
    ways[j] = scale;
  }
  if constexpr (mode != GridMode::cubic) {
    for (int64_t j = 0; j < count; ++j) place(places[j], ways[j], size, padding, align);
  }
  if constexpr (mode == GridMode::nearest) {
    for (int64_t j = 0; j < count; ++j) {
      line.at[0][j] = element(std::nearbyint(places[j]), size);
      line.weight[0][j] = T(1);
    }
    return;
  }
  T lows[B];
  // At no distance from an element the weight is NaN. (A volume's place at infinity is outside.)
  const bool infinite_counts = dims == 2 && padding == GridPadding::zeros;
  for (int64_t j = 0; j < count; ++j) {
    lows[j] = std::floor(places[j]);
    places[j] -= lows[j];
    const bool none = (places[j] != places[j]) & (infinite_counts | (lows[j] != lows[j]));
    lows[j] = none ? T(0) : lows[j];
    ways[j] = none ? T(0) : ways[j];
  }
  if constexpr (mode == GridMode::linear) {
    for (int64_t j = 0; j < count; ++j) {
      line.at[0][j] = element(lows[j], size);
      line.at[1][j] = element(lows[j] + 1, size);
      line.weight[0][j] = 1 - places[j];
      line.weight[1][j] = places[j];
    }
    for (int64_t j = 0; slopes && j < count; ++j) {
      line.slope[0][j] = -ways[j];
      line.slope[1][j] = ways[j];
    }
  }
  if constexpr (mode == GridMode::cubic) {
    constexpr T a = T(-0.75);
    for (int k = 0; k < 4; ++k) {
      T at[B];
      for (int64_t j = 0; j < count; ++j) {
        T unused = 0;
        at[j] = lows[j] + static_cast<T>(k - 1);
        place(at[j], unused, size, padding, align);
      }
      for (int64_t j = 0; j < count; ++j) line.at[k][j] = element(at[j], size);
      // Distance from the place, and the direction in which the place's motion changes it.
      const bool far = k == 0 || k == 3;
      auto distance = [&](int64_t j) __attribute__((always_inline)) {
        return k < 2 ? places[j] + static_cast<T>(1 - k) : static_cast<T>(k - 1) - places[j];
      };
      for (int64_t j = 0; j < count; ++j) {
        const T d = distance(j);
        line.weight[k][j] =
            far ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : ((a + 2) * d - (a + 3)) * d * d + 1;
      }
      for (int64_t j = 0; slopes && j < count; ++j) {
        const T d = distance(j);
        line.slope[k][j] =
            (k < 2 ? ways[j] : -ways[j]) *
            (far ? (3 * a * d - 10 * a) * d + 8 * a : (3 * (a + 2) * d - 2 * (a + 3)) * d);
      }
    }
  }
}

template <GridMode mode>
constexpr int taps_of = mode == GridMode::linear  ? 2
                        : mode == GridMode::cubic ? 4
                                                  : 1;

// f.operator()<padding>().
template <class F> void with_padding(GridPadding padding, F&& f) {
  if (padding == GridPadding::zeros)
    f.template operator()<GridPadding::zeros>();
  else if (padding == GridPadding::border)
    f.template operator()<GridPadding::border>();
  else
    f.template operator()<GridPadding::reflection>();
}
// What the samples of a block are made of, dim by dim.
template <class T, GridMode mode, int dims, bool slopes> struct Lines {
  static constexpr int each = taps_of<mode>;
  static constexpr int count = dims == 3 ? each * each * each : each * each;
  Line<T, each> lines[dims];

  Lines(const T* grid, const GridShape& sh, int64_t n) {
    for (int d = 0; d < dims; ++d) {
      const T* from = grid + (dims - 1 - d);
      auto find = [&]<GridPadding padding>() {
        find_taps<T, mode, each, padding>(from, dims, sh.sizes[d], sh.align, slopes, n, lines[d]);
      };
      with_padding(sh.padding, find);
    }
  }
  // Which tap of dim d belongs to tap k of all.
  static constexpr int part(int k, int d) {
    for (int e = dims - 1; e > d; --e) k /= each;
    return k % each;
  }
  // The element of tap k of place j, or -1, and its weight.
  int64_t element_of(int k, int64_t j, const GridShape& sh) const {
    int64_t at = 0;
    for (int d = 0; d < dims; ++d) {
      const int32_t a = lines[d].at[part(k, d)][j];
      if (a < 0) return -1;
      at = at * sh.sizes[d] + a;
    }
    return at;
  }
  T weight_of(int k, int64_t j) const {
    T w = 1;
    for (int d = 0; d < dims; ++d) w *= lines[d].weight[part(k, d)][j];
    return w;
  }
  // The slope of a sum of taps, given their terms, along dim d.
  template <class F> T slope_along(int d, int64_t j, F&& term) const {
    T sum = 0;
    for (int k = 0; k < count; ++k) {
      T slope = term(k);
      for (int e = 0; e < dims; ++e)
        slope *= (e == d ? lines[e].slope : lines[e].weight)[part(k, e)][j];
      sum += slope;
    }
    return sum;
  }
};

// All elements, by the number in a channel, and their weights.
template <class T, GridMode mode, int dims, bool slopes>
struct Taps : Lines<T, mode, dims, slopes> {
  using Base = Lines<T, mode, dims, slopes>;
  using Base::count, Base::lines, Base::part;
  int32_t at[count][B];
  T weight[count][B];
  bool all_inside;

  Taps(const T* grid, const GridShape& sh, int64_t n) : Base(grid, sh, n) {
    int32_t any = 0;
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
        any |= sign;
      }
    }
    all_inside = any >= 0;
  }
};

#ifdef __AVX2__
// The same as windows: `width` neighbours along the last dim in each of `rows` rows, all of them
// inside. Elements of the window that are no taps have weight 0. If such an element is not finite
// the result is nan; it is then recomputed tap by tap.
template <GridMode mode, int dims, bool slopes> struct Windows : Lines<float, mode, dims, slopes> {
  using Base = Lines<float, mode, dims, slopes>;
  using Base::count, Base::each, Base::lines;
  static constexpr int width = each, rows = count / each, last = dims - 1;
  static constexpr int sets = slopes ? dims : 1;
  int32_t at[rows][B];
  // Weights of rows: [0] as they are, [1 + d] with the slope along dim d instead.
  float row[sets][rows][B];
  // Weights along the last dim: as they are, and their slopes. By place where a window is a vector.
  static constexpr bool by_place = width == 4;
  float across[slopes ? 2 : 1][width * B];

  static bool fit(const GridShape& sh) { return sh.sizes[last] >= width; }
  static int64_t index(int p, int64_t j) { return by_place ? j * width + p : p * B + j; }

  Windows(const float* grid, const GridShape& sh, int64_t n) : Base(grid, sh, n) {
    const auto& line = lines[last];
    const auto size = static_cast<int32_t>(sh.sizes[last]);
    int32_t start[B];
    for (int64_t j = 0; j < n; ++j) {
      int32_t least = size;
      for (int k = 0; k < width; ++k) {
        const int32_t a = line.at[k][j];
        least = a >= 0 && a < least ? a : least;
      }
      start[j] = least < size - width ? least : size - width;
    }
    for (int p = 0; p < width; ++p) {
      for (int64_t j = 0; j < n; ++j) {
        const int32_t here = start[j] + p;
        float w = 0, slope = 0;
        for (int k = 0; k < width; ++k) {
          w += line.at[k][j] == here ? line.weight[k][j] : 0.0f;
          if constexpr (slopes) slope += line.at[k][j] == here ? line.slope[k][j] : 0.0f;
        }
        across[0][index(p, j)] = w;
        if constexpr (slopes) across[1][index(p, j)] = slope;
      }
    }
    for (int r = 0; r < rows; ++r) {
      const auto& first = lines[0];
      const auto& second = lines[dims - 2];  // the same in an image
      const int k0 = dims == 3 ? r / each : r, k1 = r % each;
      const auto s1 = static_cast<int32_t>(sh.sizes[1]);
      for (int64_t j = 0; j < n; ++j) {
        int32_t where = first.at[k0][j];
        bool inside = where >= 0;
        float w = first.weight[k0][j], slope0 = 0, slope1 = 0;
        if constexpr (slopes) slope0 = first.slope[k0][j];
        if constexpr (dims == 3) {
          const int32_t a = second.at[k1][j];
          inside &= a >= 0;
          where = where * s1 + a;
          if constexpr (slopes) {
            slope1 = w * second.slope[k1][j];
            slope0 *= second.weight[k1][j];
          }
          w *= second.weight[k1][j];
        }
        at[r][j] = (inside ? where : 0) * size + start[j];
        row[0][r][j] = inside ? w : 0.0f;
        if constexpr (slopes) row[1][r][j] = inside ? slope0 : 0.0f;
        if constexpr (slopes && dims == 3) row[2][r][j] = inside ? slope1 : 0.0f;
      }
      // Groups are whole: what stands behind is read and thrown away.
      for (int64_t j = n; j % G; ++j) at[r][j] = 0;
    }
  }
};

struct Pairs {
  __m256 low, high;
};
// The neighbours at eight places, apart.
[[gnu::always_inline]] inline Pairs pairs_at(const float* from, const int32_t* at) {
  auto two = [&](int i, int k) __attribute__((always_inline)) {
    double pair[2];  // a pair of floats each, which need not lie as a double does
    std::memcpy(&pair[0], from + at[i], sizeof(double));
    std::memcpy(&pair[1], from + at[k], sizeof(double));
    return _mm_castpd_ps(_mm_set_pd(pair[1], pair[0]));
  };
  const __m256 a = _mm256_insertf128_ps(_mm256_castps128_ps256(two(0, 1)), two(4, 5), 1);
  const __m256 b = _mm256_insertf128_ps(_mm256_castps128_ps256(two(2, 3)), two(6, 7), 1);
  return {_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd)};
}
// The sums of four vectors.
[[gnu::always_inline]] inline __m128 sums_of(__m128 a, __m128 b, __m128 c, __m128 d) {
  return _mm_hadd_ps(_mm_hadd_ps(a, b), _mm_hadd_ps(c, d));
}
template <class All>
[[gnu::always_inline]] inline __m256 group_of(const All& w, const float* from, int64_t j0) {
  if constexpr (!All::by_place) {
    const __m256 first = _mm256_loadu_ps(w.across[0] + j0);
    const __m256 second = _mm256_loadu_ps(w.across[0] + B + j0);
    __m256 sum = _mm256_setzero_ps();
    for (int r = 0; r < All::rows; ++r) {
      const Pairs v = pairs_at(from, w.at[r] + j0);
      const __m256 both = _mm256_fmadd_ps(first, v.low, _mm256_mul_ps(second, v.high));
      sum = _mm256_fmadd_ps(_mm256_loadu_ps(w.row[0][r] + j0), both, sum);
    }
    return sum;
  } else {
    auto one = [&](int64_t j) __attribute__((always_inline)) {
      __m128 sum = _mm_setzero_ps();
      for (int r = 0; r < All::rows; ++r)
        sum = _mm_fmadd_ps(_mm_set1_ps(w.row[0][r][j]), _mm_loadu_ps(from + w.at[r][j]), sum);
      return _mm_mul_ps(sum, _mm_loadu_ps(w.across[0] + j * All::width));
    };
    const __m128 a = sums_of(one(j0), one(j0 + 1), one(j0 + 2), one(j0 + 3));
    const __m128 b = sums_of(one(j0 + 4), one(j0 + 5), one(j0 + 6), one(j0 + 7));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1);
  }
}
template <GridMode mode, int dims>
void sample_windows(float* out, const float* x, const float* grid, const GridShape& sh, int64_t n) {
  const Windows<mode, dims, false> w(grid, sh, n);
  for (int64_t c = 0; c < sh.c; ++c) {
    const float* from = x + c * sh.s;
    float* to = out + c * sh.p;
    for (int64_t j0 = 0; j0 < n; j0 += G) {
      const __m256 sum = group_of(w, from, j0);
      const int64_t size = std::min(G, n - j0);
      float made[G];
      _mm256_storeu_ps(made, sum);
      // Lanes behind the last place hold anything.
      const int lanes = (1 << size) - 1;
      const bool has_nan = _mm256_movemask_ps(_mm256_cmp_ps(sum, sum, _CMP_UNORD_Q)) & lanes;
      if (size == G && !has_nan) {
        _mm256_storeu_ps(to + j0, sum);
        continue;
      }
      if (has_nan) {
        for (int64_t j = j0; j < j0 + size; ++j) {
          made[j - j0] = 0;
          for (int k = 0; k < w.count; ++k) {
            const int64_t at = w.element_of(k, j, sh);
            if (at >= 0) made[j - j0] += w.weight_of(k, j) * from[at];
          }
        }
      }
      std::copy_n(made, size, to + j0);
    }
  }
}
// The elements nearest to a block of places, by the number in a channel; -1 outside.
template <int dims, GridPadding padding, bool align>
[[gnu::flatten]] void find_nearest(const float* grid, const GridShape& sh, int64_t n, int32_t* at) {
  float sizes[dims];
  for (int d = 0; d < dims; ++d) sizes[d] = static_cast<float>(sh.sizes[d]);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    int32_t whole = 0, sign = 0;
    for (int d = 0; d < dims; ++d) {
      const float size = sizes[d], g = grid[j * dims + (dims - 1 - d)] + 1;
      float x = align ? g * ((size - 1) / 2) : (g * size - 1) / 2, unused = 0;
      place(x, unused, size, padding, align);
      // A place that was moved is inside.
      const int32_t i = padding == GridPadding::zeros ? element(std::nearbyint(x), size)
                                                      : static_cast<int32_t>(std::nearbyint(x));
      sign |= i;
      whole = whole * static_cast<int32_t>(sh.sizes[d]) + i;
    }
    at[j] = sign < 0 ? -1 : whole;
  }
}
template <int dims>
void find_nearest(const float* grid, const GridShape& sh, int64_t n, int32_t* at) {
  auto find = [&]<GridPadding padding>() {
    (sh.align ? find_nearest<dims, padding, true> : find_nearest<dims, padding, false>)(grid, sh, n,
                                                                                        at);
  };
  with_padding(sh.padding, find);
}
template <int dims>
void sample_nearest(float* out, const float* x, const float* grid, const GridShape& sh, int64_t n) {
  int32_t found[B], at[B];
  find_nearest<dims>(grid, sh, n, found);
  const int64_t whole = n / G * G;
  for (int64_t j = 0; j < n; ++j) at[j] = found[j] < 0 ? 0 : found[j];
  for (int64_t j = 0; j < whole; j += G) {  // the places stay in registers for all channels
    const int64_t i[G] = {at[j],     at[j + 1], at[j + 2], at[j + 3],
                          at[j + 4], at[j + 5], at[j + 6], at[j + 7]};
    const auto* signs = reinterpret_cast<const float*>(found + j);
    const __m256 outside =
        _mm256_castsi256_ps(_mm256_srai_epi32(_mm256_castps_si256(_mm256_loadu_ps(signs)), 31));
    const float* from = x;
    float* to = out + j;
    for (int64_t c = 0; c < sh.c; ++c, from += sh.s, to += sh.p) {
      const __m256 v = _mm256_setr_ps(from[i[0]], from[i[1]], from[i[2]], from[i[3]], from[i[4]],
                                      from[i[5]], from[i[6]], from[i[7]]);
      _mm256_storeu_ps(to, _mm256_andnot_ps(outside, v));
    }
  }
  for (int64_t c = 0; c < sh.c; ++c) {
    for (int64_t j = whole; j < n; ++j)
      out[c * sh.p + j] = found[j] < 0 ? 0.0f : x[c * sh.s + at[j]];
  }
}
template <GridMode mode, int dims>
void grid_slopes_windows(float* dgrid, const float* x, const float* grad, const float* grid,
                         const GridShape& sh, int64_t n) {
  using All = Windows<mode, dims, true>;
  const All w(grid, sh, n);
  constexpr int last = All::last;
  float made[dims][B];
  if constexpr (!All::by_place) {
    for (int64_t j0 = 0; j0 < n; j0 += G) {
      __m256 low[All::rows], high[All::rows];
      for (int r = 0; r < All::rows; ++r) low[r] = high[r] = _mm256_setzero_ps();
      for (int64_t c = 0; c < sh.c; ++c) {
        const float *from = x + c * sh.s, *g = grad + c * sh.p + j0;
        float rest[G] = {};
        if (n - j0 < G) {
          std::copy_n(g, n - j0, rest);
          g = rest;
        }
        const __m256 f = _mm256_loadu_ps(g);
        for (int r = 0; r < All::rows; ++r) {
          const Pairs v = pairs_at(from, w.at[r] + j0);
          low[r] = _mm256_fmadd_ps(v.low, f, low[r]);
          high[r] = _mm256_fmadd_ps(v.high, f, high[r]);
        }
      }
      for (int d = 0; d < dims; ++d) {
        const float* across = w.across[d == last] + j0;
        const __m256 first = _mm256_loadu_ps(across), second = _mm256_loadu_ps(across + B);
        __m256 sum = _mm256_setzero_ps();
        for (int r = 0; r < All::rows; ++r) {
          const __m256 both = _mm256_fmadd_ps(first, low[r], _mm256_mul_ps(second, high[r]));
          sum = _mm256_fmadd_ps(_mm256_loadu_ps(w.row[d == last ? 0 : 1 + d][r] + j0), both, sum);
        }
        _mm256_storeu_ps(made[d] + j0, sum);
      }
    }
  } else {
    for (int64_t j = 0; j < n; ++j) {
      __m128 dots[All::rows];
      for (int r = 0; r < All::rows; ++r) dots[r] = _mm_setzero_ps();
      for (int64_t c = 0; c < sh.c; ++c) {
        const __m128 f = _mm_set1_ps(grad[c * sh.p + j]);
        for (int r = 0; r < All::rows; ++r)
          dots[r] = _mm_fmadd_ps(_mm_loadu_ps(x + c * sh.s + w.at[r][j]), f, dots[r]);
      }
      __m128 sums[2] = {_mm_setzero_ps(), _mm_setzero_ps()};
      for (int r = 0; r < All::rows; ++r) {
        for (int d = 0; d < 2; ++d)
          sums[d] = _mm_fmadd_ps(_mm_set1_ps(w.row[d == 0][r][j]), dots[r], sums[d]);
      }
      for (int d = 0; d < 2; ++d)
        sums[d] = _mm_mul_ps(sums[d], _mm_loadu_ps(w.across[d == 1] + j * All::width));
      float both[4];
      _mm_storeu_ps(both, sums_of(sums[0], sums[1], sums[0], sums[1]));
      made[0][j] = both[0];
      made[1][j] = both[1];
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    for (int d = 0; d < dims; ++d) {
      float slope = made[d][j];
      if (slope != slope) {
        slope = w.slope_along(d, j, [&](int k) {
          const int64_t at = w.element_of(k, j, sh);
          float sum = 0;
          for (int64_t c = 0; at >= 0 && c < sh.c; ++c)
            sum += x[c * sh.s + at] * grad[c * sh.p + j];
          return sum;
        });
      }
      dgrid[j * dims + (dims - 1 - d)] = slope;
    }
  }
}
#endif

template <class T, GridMode mode, int dims>
void sample(T* out, const T* x, const T* grid, const GridShape& sh, int64_t n) {
#ifdef __AVX2__
  if constexpr (std::is_same_v<T, float> && mode == GridMode::nearest) {
    return sample_nearest<dims>(out, x, grid, sh, n);
  } else if constexpr (std::is_same_v<T, float>) {
    if (Windows<mode, dims, false>::fit(sh)) return sample_windows<mode, dims>(out, x, grid, sh, n);
  }
#endif
  const Taps<T, mode, dims, false> taps(grid, sh, n);
  constexpr int K = taps.count;
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
  Taps<T, mode, dims, false> taps(grid, sh, n);
  constexpr int K = taps.count;
  for (int k = 0; k < K && sh.padding == GridPadding::zeros; ++k) {
    for (int64_t j = 0; j < n; ++j)  // at NaN a sample is NaN, but no element's share in it
      taps.at[k][j] = taps.weight[k][j] == taps.weight[k][j] ? taps.at[k][j] : -1;
  }
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
  if constexpr (mode == GridMode::nearest) {
    std::fill_n(dgrid, n * dims, T(0));
    return;
  }
#ifdef __AVX2__
  if constexpr (std::is_same_v<T, float> && mode != GridMode::nearest) {
    if (Windows<mode, dims, true>::fit(sh))
      return grid_slopes_windows<mode, dims>(dgrid, x, grad, grid, sh, n);
  }
#endif
  const Taps<T, mode, dims, true> taps(grid, sh, n);
  constexpr int K = taps.count;
  T dots[K][B] = {};
  for (int64_t c = 0; c < sh.c; ++c) {
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
    for (int64_t j = 0; j < n; ++j)
      dgrid[j * dims + (dims - 1 - d)] = taps.slope_along(d, j, [&](int k) { return dots[k][j]; });
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
