// Sums of a few lines, in single precision and in PyTorch's order, for each instruction set.
// May include: the standard library only.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#include <cstdint>
#include <cstring>

namespace clew::kernels::CLEW_ISA {

void few_sums(const float* from, int64_t outer, int64_t count, int64_t inner, float* to);

namespace {

// Terms go round four sums, side by side in vectors of eight where they lie so; sixteen terms of
// each are added up before they are added to what came before, and so are sixteen of those. The
// order is that of vectors of eight floats on every processor.
typedef float Eight __attribute__((vector_size(32)));
[[gnu::always_inline]] inline void read(const float* from, float& v) { v = *from; }
[[gnu::always_inline]] inline void read(const float* from, Eight& v) {
  std::memcpy(&v, from, sizeof v);
}

// Adds C sums of n terms each; those of one turn are `apart`, turns are `step` elements apart.
template <int C, class V>
[[gnu::always_inline]] inline void chains(const float* p, int64_t apart, int64_t step, int64_t n,
                                          V (&sum)[C]) {
  constexpr int levels = 4;
  constexpr int64_t turns = 16;
  for (int c = 0; c < C; ++c) sum[c] = V{};
  auto add = [&](int64_t count) __attribute__((always_inline)) {
    for (; count > 0; --count, p += step) {
      for (int c = 0; c < C; ++c) {
        V v;
        read(p + c * apart, v);
        sum[c] += v;
      }
    }
  };
  if (n < turns) return add(n);
  V above[levels][C] = {};
  for (int64_t i = turns; i <= n; i += turns) {
    add(turns);
    for (int c = 0; c < C; ++c) {
      above[1][c] += sum[c];
      sum[c] = V{};
    }
    int64_t full = i / turns;
    for (int k = 2; k < levels && full % turns == 0; ++k, full /= turns) {
      for (int c = 0; c < C; ++c) {
        above[k][c] += above[k - 1][c];
        above[k - 1][c] = V{};
      }
    }
  }
  add(n % turns);
  for (int k = 1; k < levels; ++k)
    for (int c = 0; c < C; ++c) sum[c] += above[k][c];
}
// The sum of n terms (each a number or a vector) that are `step` elements apart.
template <class V>
[[gnu::always_inline]] inline void line(const float* p, int64_t step, int64_t n, V& total) {
  constexpr int C = 4;
  V sum[C];
  chains(p, step, C * step, n / C, sum);
  for (int64_t i = n / C * C; i < n; ++i) {
    V v;
    read(p + i * step, v);
    sum[0] += v;
  }
  total = sum[0] + sum[1] + sum[2] + sum[3];
}
// The lanes of eight vectors become vectors of one lane each.
[[gnu::always_inline]] inline void turn_eight(Eight (&v)[8]) {
  for (int step = 0; step < 3; ++step) {  // each interleaves the two halves of the list
    Eight w[8];
    for (int i = 0; i < 4; ++i) {
      w[2 * i] = __builtin_shufflevector(v[i], v[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      w[2 * i + 1] = __builtin_shufflevector(v[i], v[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; ++i) v[i] = w[i];
  }
}
// Eight lines of 8 to 31 terms that follow each other: their last additions side by side.
[[gnu::always_inline]] inline void eight_lines(const float* from, int64_t count, float* to) {
  constexpr int64_t W = 8;
  Eight lanes[W], sum = {};
  for (int64_t r = 0; r < W; ++r) {
    lanes[r] = Eight{};
    for (int64_t i = 0; i + W <= count; i += W) {
      Eight v;
      read(from + r * count + i, v);
      lanes[r] += v;
    }
  }
  for (int64_t i = count / W * W; i < count; ++i)
    for (int64_t r = 0; r < W; ++r) sum[r] += from[r * count + i];
  turn_eight(lanes);
  for (const Eight& lane : lanes) sum += lane;
  std::memcpy(to, &sum, sizeof sum);
}

}  // namespace

void few_sums(const float* from, int64_t outer, int64_t count, int64_t inner, float* to) {
  constexpr int64_t W = 8;
  if (inner == 1 && count >= W && count < 4 * W)
    for (; outer >= W; outer -= W, from += W * count, to += W) eight_lines(from, count, to);
  for (int64_t o = 0; o < outer; ++o, from += count * inner, to += inner) {
    if (inner == 1) {
      if (count < W) {
        line(from, 1, count, *to);
        continue;
      }
      Eight lanes;
      line(from, W, count / W, lanes);
      float sum = 0;
      for (int64_t i = count / W * W; i < count; ++i) sum += from[i];
      for (int l = 0; l < W; ++l) sum += lanes[l];
      *to = sum;
      continue;
    }
    int64_t j = 0;
    if (inner >= W) {
      for (; j + 4 * W <= inner; j += 4 * W) {
        Eight sum[4];
        chains(from + j, W, inner, count, sum);
        std::memcpy(to + j, sum, sizeof sum);
      }
      for (; j + W <= inner; j += W) {
        Eight sum;
        line(from + j, inner, count, sum);
        std::memcpy(to + j, &sum, sizeof sum);
      }
    } else {
      for (; j + 4 <= inner; j += 4) {
        float sum[4];
        chains(from + j, 1, inner, count, sum);
        std::memcpy(to + j, sum, sizeof sum);
      }
    }
    for (; j < inner; ++j) line(from + j, inner, count, to[j]);
  }
}

}  // namespace clew::kernels::CLEW_ISA
