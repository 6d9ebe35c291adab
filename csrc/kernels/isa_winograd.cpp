// Winograd's F(2x2, 3x3): tiles of 4x4 inputs become 2x2 outputs through 16 matrix products.
// May include: kernels/winograd.h, base/parallel.h.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
//
// Everything between the plain images is held in blocks of L channels, [..][block][index][L], so
// that transforms and products are vectors over channels whatever size the images have. Images
// are turned into that order, and back, piece by piece in the cache.
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/parallel.h"
#include "kernels/winograd.h"

#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif

namespace clew::kernels::CLEW_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int L = 16;
constexpr int tiles_max = 14;  // rows of a product's block: with two vectors each, 28 sums
#elif defined(__AVX2__)
constexpr int L = 8;
constexpr int tiles_max = 6;
#else
constexpr int L = 4;
constexpr int tiles_max = 6;
#endif
constexpr int channels_max = L < 8 ? L : L / 2;  // rows of a block of the weight's gradient
constexpr int64_t products = 16;
// Tiles that one thread holds at once: they should stay in the second-level cache, and be enough
// for what each transformed weight costs to fetch.
constexpr int64_t unit_bytes = 256 << 10;
constexpr int64_t unit_tiles = 64;
constexpr int64_t sums_bytes = 64 << 20;  // of all threads' parts of a weight's gradient
// Between the sixteen arrays that one tile is spread over: they must not all want the same few
// lines of the cache, as they would a power of two apart.
constexpr int64_t gap = 3 * L;

typedef float Vec __attribute__((vector_size(4 * L)));

Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

template <class F, int... I>
[[gnu::always_inline]] inline void unroll_impl(F&& f, std::integer_sequence<int, I...>) {
  (f.template operator()<I>(), ...);
}
template <int N, class F> [[gnu::always_inline]] inline void unroll(F&& f) {
  unroll_impl(f, std::make_integer_sequence<int, N>{});
}

// Bytes that one thread keeps between calls.
class Scratch {
  static constexpr size_t keep = size_t{64} << 20;
  float* data_ = nullptr;
  size_t bytes_ = 0;

 public:
  float* get(int64_t floats) {
    const size_t need = static_cast<size_t>(floats) * sizeof(float);
    if (need > bytes_) {
      release();
      data_ = static_cast<float*>(std::aligned_alloc(64, (need + 63) / 64 * 64));
      if (!data_) throw std::bad_alloc();
      bytes_ = need;
    }
    return data_;
  }
  void release() {
    std::free(data_);
    data_ = nullptr;
    bytes_ = 0;
  }
  void trim() {
    if (bytes_ > keep) release();
  }
  ~Scratch() { release(); }
};
thread_local Scratch tile_scratch, shared_scratch;

// --- Images to blocks of channels and back -------------------------------------------------------

template <int half, int... I>
[[gnu::always_inline]] inline Vec interleave(Vec a, Vec b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (half * (L / 2) + I / 2 + I % 2 * L)...);
}
// Rows become columns: each round doubles the number of rows that a vector holds elements of.
[[gnu::always_inline]] inline void transpose(Vec (&r)[L]) {
  constexpr auto all = std::make_integer_sequence<int, L>{};
#pragma GCC unroll 4
  for (int n = 1; n < L; n *= 2) {
    Vec t[L];
    unroll<L / 2>([&]<int i> {
      t[2 * i] = interleave<0>(r[i], r[i + L / 2], all);
      t[2 * i + 1] = interleave<1>(r[i], r[i + L / 2], all);
    });
    unroll<L>([&]<int i> { r[i] = t[i]; });
  }
}

// Rows of an image as pixels of L channels: `rows` rows of `pitch` pixels, beginning at row
// `first` of the image, with `left` empty pixels in front; zero outside the image.
struct Window {
  int64_t height, width, first, rows, left, pitch;
  int64_t last;  // zero for planes; the number of channels where these lie last
  int64_t begin() const { return most(0, first); }
  int64_t end() const { return least(height, first + rows); }
};

void load_window(const Window& o, const float* image, float* to) {
  const int64_t begin = o.begin(), end = o.end(), plane = o.height * o.width;
  const int64_t row = o.pitch * L, right = o.pitch - o.left - o.width;
  for (int64_t r = 0; r < o.rows; ++r) {
    float* line = to + r * row;
    if (r + o.first < begin || r + o.first >= end) {
      std::memset(line, 0, static_cast<size_t>(row) * sizeof(float));
    } else {
      std::memset(line, 0, static_cast<size_t>(o.left * L) * sizeof(float));
      std::memset(line + (o.left + o.width) * L, 0, static_cast<size_t>(right * L) * sizeof(float));
    }
  }
  if (o.last) {
    for (int64_t r = begin; r < end; ++r) {
      const float* pixel = image + r * o.width * o.last;
      float* at = to + (r - o.first) * row + o.left * L;
      for (int64_t c = 0; c < o.width; ++c, pixel += o.last, at += L) store(at, load(pixel));
    }
    return;
  }
  const int64_t from = begin * o.width, stop = end * o.width;
  for (int64_t p = from; p < stop; p += L) {
    int64_t n = stop - p;
    if (n < L && stop - from >= L) p = stop - L, n = L;
    Vec v[L];
    if (n >= L) {
      unroll<L>([&]<int i> { v[i] = load(image + i * plane + p); });
      n = L;
    } else {
      for (int i = 0; i < L; ++i) {
        float part[L] = {};
        std::memcpy(part, image + i * plane + p, static_cast<size_t>(n) * sizeof(float));
        v[i] = load(part);
      }
    }
    transpose(v);
    int64_t column = p % o.width;
    float* at = to + (p / o.width - o.first) * row + (o.left + column) * L;
    for (int64_t i = 0; i < n; ++i, at += L) {
      if (column == o.width) at += row - o.width * L, column = 0;
      store(at, v[i]);
      ++column;
    }
  }
}

// The other way round; adds to `poison`, which stays zero when all is finite.
void store_window(const Window& o, const float* from_pixels, float* image, Vec& poison) {
  const int64_t begin = o.begin(), end = o.end(), plane = o.height * o.width;
  const int64_t row = o.pitch * L;
  if (o.last) {
    for (int64_t r = begin; r < end; ++r) {
      const float* at = from_pixels + (r - o.first) * row + o.left * L;
      float* pixel = image + r * o.width * o.last;
      for (int64_t c = 0; c < o.width; ++c, pixel += o.last, at += L) {
        const Vec v = load(at);
        poison += v * 0.0f;
        store(pixel, v);
      }
    }
    return;
  }
  const int64_t from = begin * o.width, stop = end * o.width;
  for (int64_t p = from; p < stop; p += L) {
    int64_t n = stop - p;
    if (n < L && stop - from >= L) p = stop - L, n = L;
    if (n > L) n = L;
    Vec v[L];
    int64_t column = p % o.width;
    const float* at = from_pixels + (p / o.width - o.first) * row + (o.left + column) * L;
    for (int64_t i = 0; i < L; ++i, at += L) {
      if (column == o.width) at += row - o.width * L, column = 0;
      v[i] = i < n ? load(at) : Vec{};
      poison += v[i] * 0.0f;
      ++column;
    }
    transpose(v);
    if (n == L) {
      unroll<L>([&]<int i> { store(image + i * plane + p, v[i]); });
    } else {
      for (int i = 0; i < L; ++i) {
        float part[L];
        store(part, v[i]);
        std::memcpy(image + i * plane + p, part, static_cast<size_t>(n) * sizeof(float));
      }
    }
  }
}

bool all_zero(Vec v) {
  bool zero = true;
  for (int i = 0; i < L; ++i) zero = zero && v[i] == 0;
  return zero;
}

// --- Transforms of tiles -------------------------------------------------------------------------

// Tiles of `rows` tile rows, from pixels whose rows overlap by two: t(B) d B into to[16][step].
void input_tiles(const float* pixels, int64_t pitch, int64_t rows, int64_t across, float* to,
                 int64_t step) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* line[4];
    for (int i = 0; i < 4; ++i) line[i] = pixels + (2 * r + i) * pitch * L;
    Vec c[4][4];
    const auto column = [&](int64_t at, Vec(&v)[4]) {
      const Vec d0 = load(line[0] + at * L), d1 = load(line[1] + at * L);
      const Vec d2 = load(line[2] + at * L), d3 = load(line[3] + at * L);
      v[0] = d0 - d2, v[1] = d1 + d2, v[2] = d2 - d1, v[3] = d1 - d3;
    };
    column(0, c[0]), column(1, c[1]);
    for (int64_t t = 0; t < across; ++t, to += L) {
      column(2 * t + 2, c[2]), column(2 * t + 3, c[3]);
      unroll<4>([&]<int i> {
        float* out = to + 4 * i * step;
        store(out, c[0][i] - c[2][i]);
        store(out + step, c[1][i] + c[2][i]);
        store(out + 2 * step, c[2][i] - c[1][i]);
        store(out + 3 * step, c[1][i] - c[3][i]);
        c[0][i] = c[2][i], c[1][i] = c[3][i];
      });
    }
  }
}

// 2x2 outputs from products: t(A) m A.
void output_tiles(const float* from, int64_t step, int64_t rows, int64_t across, float* pixels) {
  const int64_t pitch = 2 * across * L;
  for (int64_t r = 0; r < rows; ++r) {
    float* line = pixels + 2 * r * pitch;
    for (int64_t t = 0; t < across; ++t, from += L, line += 2 * L) {
      Vec a[2][4];
      unroll<4>([&]<int j> {
        const Vec m0 = load(from + j * step), m1 = load(from + (4 + j) * step);
        const Vec m2 = load(from + (8 + j) * step), m3 = load(from + (12 + j) * step);
        const Vec sum = m1 + m2, difference = m1 - m2;
        a[0][j] = m0 + sum, a[1][j] = difference - m3;
      });
      unroll<2>([&]<int i> {
        store(line + i * pitch, a[i][0] + (a[i][1] + a[i][2]));
        store(line + i * pitch + L, (a[i][1] - a[i][2]) - a[i][3]);
      });
    }
  }
}

// The transpose of output_tiles: A d t(A).
void gradient_tiles(const float* pixels, int64_t rows, int64_t across, float* to, int64_t step) {
  const int64_t pitch = 2 * across * L;
  for (int64_t r = 0; r < rows; ++r) {
    const float* line = pixels + 2 * r * pitch;
    for (int64_t t = 0; t < across; ++t, to += L, line += 2 * L) {
      Vec a[4][2];
      unroll<2>([&]<int j> {
        const Vec d0 = load(line + j * L), d1 = load(line + pitch + j * L);
        a[0][j] = d0, a[1][j] = d0 + d1, a[2][j] = d0 - d1, a[3][j] = -d1;
      });
      unroll<4>([&]<int i> {
        float* out = to + 4 * i * step;
        store(out, a[i][0]);
        store(out + step, a[i][0] + a[i][1]);
        store(out + 2 * step, a[i][0] - a[i][1]);
        store(out + 3 * step, -a[i][1]);
      });
    }
  }
}

// G g t(G) of L kernels at once, kernel l at from + l * stride, its taps turned around or not.
void weight_tile(const float* from, int64_t stride, bool turned, float* to, int64_t step) {
  float taps[9][L];
  for (int l = 0; l < L; ++l) {
    for (int q = 0; q < 9; ++q) taps[q][l] = from[l * stride + (turned ? 8 - q : q)];
  }
  Vec a[4][3];
  unroll<3>([&]<int j> {
    const Vec g0 = load(taps[j]), g1 = load(taps[3 + j]), g2 = load(taps[6 + j]);
    const Vec ends = (g0 + g2) * 0.5f, middle = g1 * 0.5f;
    a[0][j] = g0, a[1][j] = ends + middle, a[2][j] = ends - middle, a[3][j] = g2;
  });
  unroll<4>([&]<int i> {
    float* out = to + 4 * i * step;
    const Vec ends = (a[i][0] + a[i][2]) * 0.5f, middle = a[i][1] * 0.5f;
    store(out, a[i][0]);
    store(out + step, ends + middle);
    store(out + 2 * step, ends - middle);
    store(out + 3 * step, a[i][2]);
  });
}

// t(G) u G of L kernels, written where they belong.
void weight_from_tile(const float* from, int64_t step, float* to, int64_t stride, Vec& poison) {
  Vec a[3][4];
  unroll<4>([&]<int j> {
    const Vec u0 = load(from + j * step), u1 = load(from + (4 + j) * step);
    const Vec u2 = load(from + (8 + j) * step), u3 = load(from + (12 + j) * step);
    const Vec sum = (u1 + u2) * 0.5f;
    a[0][j] = u0 + sum, a[1][j] = (u1 - u2) * 0.5f, a[2][j] = sum + u3;
  });
  float taps[9][L];
  unroll<3>([&]<int i> {
    const Vec sum = (a[i][1] + a[i][2]) * 0.5f;
    const Vec row[3] = {a[i][0] + sum, (a[i][1] - a[i][2]) * 0.5f, sum + a[i][3]};
    unroll<3>([&]<int j> {
      poison += row[j] * 0.0f;
      store(taps[3 * i + j], row[j]);
    });
  });
  for (int l = 0; l < L; ++l) {
    for (int q = 0; q < 9; ++q) to[l * stride + q] = taps[q][l];
  }
}

// --- Products ------------------------------------------------------------------------------------

// Sums over blocks of L channels: out[j][i] = start[j] + sum of tiles[.., i, c] * weights[j][c].
template <int R, int N>
void tile_block(const float* tiles, int64_t blocks, int64_t block_step, const float* weights,
                int64_t weight_step, const Vec* start, float* out, int64_t out_step) {
  Vec sum[R][N];
  unroll<R>([&]<int i> { unroll<N>([&]<int j> { sum[i][j] = start[j]; }); });
  for (int64_t b = 0; b < blocks; ++b, tiles += block_step) {
#pragma GCC unroll 1
    for (int c = 0; c < L; ++c, weights += L) {
      Vec w[N];
      unroll<N>([&]<int j> { w[j] = load(weights + j * weight_step); });
      unroll<R>([&]<int i> {
        const float d = tiles[i * L + c];
        unroll<N>([&]<int j> { sum[i][j] += d * w[j]; });
      });
    }
  }
  unroll<R>(
      [&]<int i> { unroll<N>([&]<int j> { store(out + j * out_step + i * L, sum[i][j]); }); });
}

// Sums over tiles: out[j][i] += sum of x[t][i] * y[j][t], for R channels i of x's block.
template <int R, int N>
void channel_block(const float* x, const float* y, int64_t y_step, int64_t tiles, float* out,
                   int64_t out_step, bool add) {
  Vec sum[R][N];
  unroll<R>([&]<int i> {
    unroll<N>([&]<int j> { sum[i][j] = add ? load(out + j * out_step + i * L) : Vec{}; });
  });
  for (int64_t t = 0; t < tiles; ++t, x += L, y += L) {
    Vec v[N];
    unroll<N>([&]<int j> { v[j] = load(y + j * y_step); });
    unroll<R>([&]<int i> {
      const float d = x[i];
      unroll<N>([&]<int j> { sum[i][j] += d * v[j]; });
    });
  }
  unroll<R>(
      [&]<int i> { unroll<N>([&]<int j> { store(out + j * out_step + i * L, sum[i][j]); }); });
}

using TileBlock = void (*)(const float*, int64_t, int64_t, const float*, int64_t, const Vec*,
                           float*, int64_t);
template <int N, int... I>
constexpr TileBlock tile_block_of(int64_t rows, std::integer_sequence<int, I...>) {
  constexpr TileBlock all[] = {tile_block<I + 1, N>...};
  return all[rows - 1];
}

// One product for all tiles of a unit and N blocks of result channels.
template <int N>
void tile_product(const float* tiles, int64_t count, int64_t blocks, const float* weights,
                  const Vec* start, float* out) {
  constexpr auto sizes = std::make_integer_sequence<int, tiles_max>{};
  const int64_t parts = ceil_div(count, tiles_max), rows = ceil_div(count, parts);
  for (int64_t t = 0; t < count; t += rows) {
    const int64_t r = least(rows, count - t);
    tile_block_of<N>(r, sizes)(tiles + t * L, blocks, count * L, weights, blocks * L * L, start,
                               out + t * L, count * L);
  }
}

template <int N>
void channel_product(const float* x, int64_t count, int64_t blocks, const float* y, float* out,
                     bool add) {
  for (int64_t b = 0; b < blocks; ++b) {
    for (int c = 0; c < L; c += channels_max) {
      channel_block<channels_max, N>(x + b * count * L + c, y, count * L, count,
                                     out + (b * L + c) * L, blocks * L * L, add);
    }
  }
}

// --- The maps ------------------------------------------------------------------------------------

// The tile rows of all images, cut into units whose transformed tiles stay in the cache.
struct Units {
  int64_t down, across;  // tiles of one image
  int64_t rows, total, count;

  Units(int64_t n, int64_t out_h, int64_t out_w, int64_t channels)
      : down(ceil_div(out_h, 2)), across(ceil_div(out_w, 2)), total(n * down) {
    const int64_t tile_bytes = products * channels * static_cast<int64_t>(sizeof(float));
    const int64_t tiles = most(unit_tiles, unit_bytes / tile_bytes);
    rows = most(1, least((tiles + across / 2) / across, ceil_div(total, num_threads())));
    count = ceil_div(total, rows);
  }
  // Calls f(image, first tile row, tile rows, tiles before) for each image that a unit touches.
  template <class F> void each(int64_t unit, F&& f) const {
    const int64_t begin = unit * rows, end = least(total, begin + rows);
    for (int64_t r = begin; r < end;) {
      const int64_t image = r / down, first = r % down, n = least(end - r, down - first);
      f(image, first, n, (r - begin) * across);
      r += n;
    }
  }
  int64_t tiles(int64_t unit) const {
    return (least(total, (unit + 1) * rows) - unit * rows) * across;
  }
  // Distance of the products' arrays for so many blocks of channels.
  int64_t step(int64_t count, int64_t blocks) const { return blocks * count * L + gap; }
  int64_t window_floats() const { return (2 * rows + 2) * (2 * across + 2) * L; }
};

// How the images of one operand lie in memory.
struct Images {
  int64_t channels, height, width;
  bool last;
  int64_t block(int64_t image, int64_t b) const {
    return image * channels * height * width + b * L * (last ? 1 : height * width);
  }
  Window window(int64_t first, int64_t rows, int64_t left, int64_t pitch) const {
    return {height, width, first, rows, left, pitch, last ? channels : 0};
  }
};

// Transformed tiles of a unit's inputs, all channels.
void unit_inputs(const Units& u, int64_t unit, const float* in, const Images& images, int64_t pad_h,
                 int64_t pad_w, float* window, float* tiles) {
  const int64_t blocks = images.channels / L, count = u.tiles(unit), pitch = 2 * u.across + 2;
  u.each(unit, [&](int64_t image, int64_t first, int64_t rows, int64_t before) {
    const Window o = images.window(2 * first - pad_h, 2 * rows + 2, pad_w, pitch);
    for (int64_t b = 0; b < blocks; ++b) {
      load_window(o, in + images.block(image, b), window);
      input_tiles(window, pitch, rows, u.across, tiles + (b * count + before) * L,
                  u.step(count, blocks));
    }
  });
}

void weight_tiles(const WinogradMap& m, float* to) {
  const int64_t in_blocks = m.channels_in, out_blocks = m.channels_out / L;
  const int64_t step = m.channels_in * m.channels_out + gap;
  parallel_for(out_blocks * in_blocks, 256, [&](int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
      const int64_t o = q / m.channels_in * L, i = q % m.channels_in;
      const int64_t at = m.transposed ? i * m.channels_out + o : o * m.channels_in + i;
      weight_tile(m.weight + at * 9, (m.transposed ? 1 : m.channels_in) * 9, m.transposed,
                  to + q * L, step);
    }
  });
}

}  // namespace

int64_t winograd_lanes() { return L; }

bool winograd_map(const WinogradMap& m) {
  const Units u(m.n, m.out_h, m.out_w, m.channels_in);
  const Images in{m.channels_in, m.in_h, m.in_w, m.last};
  const Images out{m.channels_out, m.out_h, m.out_w, m.last};
  const int64_t in_blocks = m.channels_in / L, out_blocks = m.channels_out / L;
  const int64_t weight_step = m.channels_in * m.channels_out + gap;
  float* weights = shared_scratch.get(products * weight_step);
  weight_tiles(m, weights);
  bool finite = true;
  const int64_t parts = least(num_threads(), u.count);
  parallel_for(parts, 1, [&](int64_t part_begin, int64_t part_end) {
    const int64_t tiles_most = u.rows * u.across;
    float* tiles = tile_scratch.get(
        products * (u.step(tiles_most, in_blocks) + u.step(tiles_most, 2)) + u.window_floats());
    float* sums = tiles + products * u.step(tiles_most, in_blocks);
    float* window = sums + products * u.step(tiles_most, 2);
    Vec poison{};
    for (int64_t unit = part_begin * u.count / parts; unit < part_end * u.count / parts; ++unit) {
      const int64_t count = u.tiles(unit);
      unit_inputs(u, unit, m.in, in, m.pad_h, m.pad_w, window, tiles);
      for (int64_t b = 0; b < out_blocks; b += 2) {
        const int64_t wide = least(2, out_blocks - b);
        for (int64_t q = 0; q < products; ++q) {
          // What is added to the product at (1, 1) reaches all four outputs of a tile.
          Vec start[2] = {};
          if (m.bias && q == 5) {
            for (int64_t j = 0; j < wide; ++j) start[j] = load(m.bias + (b + j) * L);
          }
          (wide == 2 ? tile_product<2>
                     : tile_product<1>)(tiles + q * u.step(count, in_blocks), count, in_blocks,
                                        weights + q * weight_step + b * m.channels_in * L, start,
                                        sums + q * u.step(count, 2));
        }
        for (int64_t j = 0; j < wide; ++j) {
          u.each(unit, [&](int64_t image, int64_t first, int64_t rows, int64_t before) {
            output_tiles(sums + (j * count + before) * L, u.step(count, 2), rows, u.across, window);
            store_window(out.window(2 * first, 2 * rows, 0, 2 * u.across), window,
                         m.out + out.block(image, b + j), poison);
          });
        }
      }
    }
    tile_scratch.trim();
    if (!all_zero(poison)) {
#pragma omp atomic write
      finite = false;
    }
  });
  shared_scratch.trim();
  return finite;
}

bool winograd_weight(const WinogradWeight& m) {
  const Units u(m.n, m.out_h, m.out_w, m.ci);
  const Images x{m.ci, m.in_h, m.in_w, m.last}, y{m.co, m.out_h, m.out_w, m.last};
  const int64_t in_blocks = m.ci / L, out_blocks = m.co / L, step = m.ci * m.co + gap,
                each = products * step;
  const int64_t affordable = most(1, sums_bytes / (each * static_cast<int64_t>(sizeof(float))));
  const int64_t parts = least(least(num_threads(), u.count), affordable);
  float* sums = shared_scratch.get(parts * each);
  parallel_for(parts, 1, [&](int64_t part_begin, int64_t part_end) {
    const int64_t tiles_most = u.rows * u.across;
    float* tiles = tile_scratch.get(
        products * (u.step(tiles_most, in_blocks) + u.step(tiles_most, 2)) + u.window_floats());
    float* gradients = tiles + products * u.step(tiles_most, in_blocks);
    float* window = gradients + products * u.step(tiles_most, 2);
    for (int64_t part = part_begin; part < part_end; ++part) {
      const int64_t begin = part * u.count / parts, end = (part + 1) * u.count / parts;
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t count = u.tiles(unit);
        unit_inputs(u, unit, m.x, x, m.pad_h, m.pad_w, window, tiles);
        for (int64_t b = 0; b < out_blocks; b += 2) {
          const int64_t wide = least(2, out_blocks - b);
          for (int64_t j = 0; j < wide; ++j) {
            u.each(unit, [&](int64_t image, int64_t first, int64_t rows, int64_t before) {
              load_window(y.window(2 * first, 2 * rows, 0, 2 * u.across),
                          m.y + y.block(image, b + j), window);
              gradient_tiles(window, rows, u.across, gradients + (j * count + before) * L,
                             u.step(count, 2));
            });
          }
          for (int64_t q = 0; q < products; ++q) {
            (wide == 2 ? channel_product<2>
                       : channel_product<1>)(tiles + q * u.step(count, in_blocks), count, in_blocks,
                                             gradients + q * u.step(count, 2),
                                             sums + part * each + q * step + b * m.ci * L,
                                             unit != begin);
          }
        }
      }
    }
    tile_scratch.trim();
  });
  bool finite = true;
  parallel_for(out_blocks * m.ci, 128, [&](int64_t begin, int64_t end) {
    Vec poison{};
    for (int64_t k = begin; k < end; ++k) {
      float total[products][L];
      for (int64_t q = 0; q < products; ++q) {
        Vec v = load(sums + q * step + k * L);
        for (int64_t part = 1; part < parts; ++part)
          v += load(sums + part * each + q * step + k * L);
        store(total[q], v);
      }
      weight_from_tile(total[0], L, m.weight + (k / m.ci * L * m.ci + k % m.ci) * 9, m.ci * 9,
                       poison);
    }
    if (!all_zero(poison)) {
#pragma omp atomic write
      finite = false;
    }
  });
  shared_scratch.trim();
  return finite;
}

}  // namespace clew::kernels::CLEW_ISA
