// Winograd's F(2x2, 3x3): tiles of 4x4 inputs become 2x2 outputs through 16 matrix products.
// May include: kernels/conv/winograd.h, kernels/conv/winograd_tiles.h, base/parallel.h,
// base/scratch.h.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
//
// Everything between the plain images is held in blocks of L channels, [..][block][index][L], so
// that transforms and products are vectors over channels whatever size the images have. Images
// are turned into that order, and back, piece by piece in the cache.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif

#include <atomic>

#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/conv/winograd.h"
#include "kernels/conv/winograd_tiles.h"

namespace clew::kernels::CLEW_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int tiles_max = 14;  // rows of a product's block: with two vectors each, 28 sums
#else
constexpr int tiles_max = 6;
#endif
constexpr int channels_max = L < 8 ? L : L / 2;  // rows of a block of the weight's gradient
constexpr int64_t products = 16;
// Tiles that one thread holds at once: they should stay in the second-level cache, and be enough
// for what each transformed weight costs to fetch.
constexpr int64_t unit_bytes = 256 << 10;
constexpr int64_t unit_tiles = 64;
constexpr int64_t sums_bytes = 64 << 20;  // of all threads' parts of a weight's gradient
// Padding between the sixteen arrays that one tile is spread over. A power-of-two distance would
// map them all to the same few cache sets.
constexpr int64_t gap = 3 * L;

constexpr size_t kept_megabytes = 64;
const LocalScratch tile_scratch, shared_scratch;

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
  float* weights = shared_scratch.of<float>(products * weight_step);
  weight_tiles(m, weights);
  std::atomic<bool> finite{true};
  const int64_t parts = least(num_threads(), u.count);
  parallel_for(parts, 1, [&](int64_t part_begin, int64_t part_end) {
    const int64_t tiles_most = u.rows * u.across;
    float* tiles = tile_scratch.of<float>(
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
    tile_scratch.trim(kept_megabytes);
    if (!all_zero(poison)) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  shared_scratch.trim(kept_megabytes);
  return finite;
}

bool winograd_weight(const WinogradWeight& m) {
  const Units u(m.n, m.out_h, m.out_w, m.ci);
  const Images x{m.ci, m.in_h, m.in_w, m.last}, y{m.co, m.out_h, m.out_w, m.last};
  const int64_t in_blocks = m.ci / L, out_blocks = m.co / L, step = m.ci * m.co + gap,
                each = products * step;
  const int64_t affordable = most(1, sums_bytes / (each * static_cast<int64_t>(sizeof(float))));
  const int64_t parts = least(least(num_threads(), u.count), affordable);
  float* sums = shared_scratch.of<float>(parts * each);
  parallel_for(parts, 1, [&](int64_t part_begin, int64_t part_end) {
    const int64_t tiles_most = u.rows * u.across;
    float* tiles = tile_scratch.of<float>(
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
    tile_scratch.trim(kept_megabytes);
  });
  std::atomic<bool> finite{true};
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
      finite.store(false, std::memory_order_relaxed);
    }
  });
  shared_scratch.trim(kept_megabytes);
  return finite;
}

}  // namespace clew::kernels::CLEW_ISA
