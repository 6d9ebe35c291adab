// Fourier transforms of lines: plans, and the loops that are compiled for each instruction set.
// May include: base.
// Invariant: complex numbers stand as pairs of real ones; a plan never changes once it is made.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace clew::kernels {

// One step of `lanes` transforms at once, real and imaginary parts in separate arrays: `m` groups
// of `radix` elements, `before` times as many numbers each as there are lanes.
struct FftStep {
  int radix;
  int64_t m, before;
  int64_t factors;  // where its factors begin: radix - 1 pairs for each group
  int64_t roots;    // of a radix without loops of its own: where its roots of one begin
};

// Transforms of n numbers. Those of n = width m are `width` of m, side by side, and one step across
// them.
template <class T> struct FftPlan {
  static constexpr int width = 32 / sizeof(T);  // one vector of AVX
  int64_t n = 0;
  std::vector<FftStep> all;    // of n
  std::vector<FftStep> inner;  // of m; empty unless n is a multiple of the width
  bool across = false;         // n is such a multiple
  std::vector<T> factors;
  std::vector<T> last_re, last_im;        // [width, m]: the factors of the step across
  std::vector<T> half_re, half_im;        // e^(-2 pi i k / 2n): of a real transform of 2n
  std::shared_ptr<const FftPlan> longer;  // of the convolution that a prime n is done by, and
  std::vector<T> chirp;                   // n pairs e^(-pi i k^2 / n), and
  std::vector<T> filter;                  // the transform of their conjugates
  // A long line is a matrix of so many rows; `chirp` has the factors between its two transforms.
  int64_t rows = 0;
};
// From a cache.
template <class T> std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n);

template <class T> struct FftLoops {
  // One line: n pairs in, n pairs out, which may be the same; backward where `inverse`.
  void (*line)(const FftPlan<T>& plan, const T* in, T* out, bool inverse, T scale, T* scratch);
  // `count` lines, up to the width: number i of line k is at (i * stride + k * step) pairs.
  void (*lines)(const FftPlan<T>& plan, const T* in, int64_t stride, int64_t step, T* out,
                int64_t out_stride, int64_t out_step, int count, bool inverse, T scale, T* scratch);
  // `count` lines of 2n real numbers, `step` pairs apart, to their half spectra of n + 1 pairs.
  void (*real_lines)(const FftPlan<T>& plan, const T* in, int64_t step, T* out, int64_t out_step,
                     int count, T scale, T* scratch);
  // The half spectrum (n + 1 pairs) of 2n real numbers from the transform of these as n pairs, and
  // back; in place.
  void (*split)(const FftPlan<T>& plan, T* pairs);
  void (*join)(const FftPlan<T>& plan, T* pairs);
};
// Numbers of scratch that a line, or as many as the width, of a plan need.
template <class T> int64_t fft_scratch(const FftPlan<T>& plan);

// x seen as (outer, n, inner) pairs; transforms along n. in and out may be the same.
template <class T>
void fft(const T* in, T* out, int64_t outer, int64_t n, int64_t inner, bool inverse, T scale);
// Lines of n real numbers to n / 2 + 1 pairs, or to all n pairs.
template <class T>
void fft_real(const T* in, T* out, int64_t lines, int64_t n, bool whole, bool inverse, T scale);
// Lines of n / 2 + 1 pairs to n real numbers.
template <class T> void fft_to_real(const T* in, T* out, int64_t lines, int64_t n, T scale);

}  // namespace clew::kernels
