// Images in blocks of L channels, and Winograd's transforms of their tiles; for isa_winograd.cpp.
// May include: kernels/core/lanes.h; the including file names CLEW_ISA.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/core/lanes.h"

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int L = lane_count<float>;

using Vec = Lanes_t<float>;

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

}  // namespace
}  // namespace clew::kernels::CLEW_ISA
