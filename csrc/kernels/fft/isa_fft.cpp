// Steps of Fourier transforms, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#include <algorithm>
#include <cstring>

#include "base/long_work.h"
#include "kernels/fft/fft.h"

// Vectors are passed between functions of this file only, all of which are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wignored-attributes"

namespace clew::kernels::CLEW_ISA {
namespace {

template <class T> constexpr int width = FftPlan<T>::width;

// W numbers, wherever they lie.
template <class T, int W> struct Pack {
  typedef T type __attribute__((vector_size(W * sizeof(T)), aligned(alignof(T)), may_alias));
};
template <class T> struct Pack<T, 1> { using type = T; };
template <class T, int W> using V = typename Pack<T, W>::type;

template <class T, int W> [[gnu::always_inline]] inline V<T, W> load(const T* p) {
  return *reinterpret_cast<const V<T, W>*>(p);
}
template <class T, int W> [[gnu::always_inline]] inline void store(T* p, V<T, W> v) {
  *reinterpret_cast<V<T, W>*>(p) = v;
}

template <class N> struct Pair { N re, im; };
template <class N>
[[gnu::always_inline]] inline Pair<N> operator+(const Pair<N>& a, const Pair<N>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class N>
[[gnu::always_inline]] inline Pair<N> operator-(const Pair<N>& a, const Pair<N>& b) {
  return {a.re - b.re, a.im - b.im};
}
// -i a
template <class N> [[gnu::always_inline]] inline Pair<N> turned(const Pair<N>& a) {
  return {a.im, -a.re};
}
template <class N, class S>
[[gnu::always_inline]] inline Pair<N> times(const Pair<N>& a, const S& re, const S& im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}

// As many numbers of type T as a plan's width.
template <class T> using Wide = V<T, width<T>>;

// A vector of pairs that stand one behind the other.
template <class T> [[gnu::always_inline]] inline Pair<Wide<T>> load_pairs(const T* p) {
  constexpr int w = width<T>;
  const Wide<T> a = load<T, w>(p), b = load<T, w>(p + w);
  if constexpr (w == 8)
    return {__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
            __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)};
  else
    return {__builtin_shufflevector(a, b, 0, 2, 4, 6), __builtin_shufflevector(a, b, 1, 3, 5, 7)};
}
template <class T>
[[gnu::always_inline]] inline void store_pairs(T* p, const Wide<T>& re, const Wide<T>& im) {
  constexpr int w = width<T>;
  if constexpr (w == 8) {
    store<T, w>(p, __builtin_shufflevector(re, im, 0, 8, 1, 9, 2, 10, 3, 11));
    store<T, w>(p + w, __builtin_shufflevector(re, im, 4, 12, 5, 13, 6, 14, 7, 15));
  } else {
    store<T, w>(p, __builtin_shufflevector(re, im, 0, 4, 1, 5));
    store<T, w>(p + w, __builtin_shufflevector(re, im, 2, 6, 3, 7));
  }
}
template <class T> [[gnu::always_inline]] inline Wide<T> reversed(const Wide<T>& a) {
  if constexpr (width<T> == 8)
    return __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0);
  else
    return __builtin_shufflevector(a, a, 3, 2, 1, 0);
}

template <class T, class N> [[gnu::always_inline]] inline void dft4(Pair<N>* a) {
  const Pair<N> s = a[0] + a[2], d = a[0] - a[2], t = a[1] + a[3], e = turned(a[1] - a[3]);
  a[0] = s + t;
  a[1] = d + e;
  a[2] = s - t;
  a[3] = d - e;
}
template <int R, class T, class N> [[gnu::always_inline]] inline void dft(Pair<N>* a) {
  if constexpr (R == 2) {
    const Pair<N> s = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = s;
  } else if constexpr (R == 3) {
    constexpr T c = T(-0.5), s = T(0.86602540378443864676372317075294);
    const Pair<N> sum = a[1] + a[2], d = turned(a[1] - a[2]);
    const Pair<N> m = {a[0].re + sum.re * c, a[0].im + sum.im * c};
    const Pair<N> n = {d.re * s, d.im * s};
    a[0] = a[0] + sum;
    a[1] = m + n;
    a[2] = m - n;
  } else if constexpr (R == 4) {
    dft4<T>(a);
  } else if constexpr (R == 5) {
    constexpr T c1 = T(0.30901699437494742410229341718282),
                c2 = T(-0.80901699437494742410229341718282),
                s1 = T(0.95105651629515357211643933337938),
                s2 = T(0.58778525229247312916870595463907);
    const Pair<N> p = a[1] + a[4], q = a[2] + a[3], d = turned(a[1] - a[4]),
                  e = turned(a[2] - a[3]);
    const Pair<N> m1 = {a[0].re + p.re * c1 + q.re * c2, a[0].im + p.im * c1 + q.im * c2};
    const Pair<N> m2 = {a[0].re + p.re * c2 + q.re * c1, a[0].im + p.im * c2 + q.im * c1};
    const Pair<N> n1 = {d.re * s1 + e.re * s2, d.im * s1 + e.im * s2};
    const Pair<N> n2 = {d.re * s2 - e.re * s1, d.im * s2 - e.im * s1};
    a[0] = a[0] + p + q;
    a[1] = m1 + n1;
    a[2] = m2 + n2;
    a[3] = m2 - n2;
    a[4] = m1 - n1;
  } else {
    static_assert(R == 8);
    constexpr T h = T(0.70710678118654752440084436210485);
    Pair<N> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    dft4<T>(even);
    dft4<T>(odd);
    odd[1] = {(odd[1].re + odd[1].im) * h, (odd[1].im - odd[1].re) * h};
    odd[2] = turned(odd[2]);
    odd[3] = {(odd[3].im - odd[3].re) * h, (odd[3].re + odd[3].im) * -h};
    for (int k = 0; k < 4; ++k) {
      a[k] = even[k] + odd[k];
      a[k + 4] = even[k] - odd[k];
    }
  }
}

// Rows become columns.
template <class T> [[gnu::always_inline]] inline void transpose(Wide<T>* r) {
  constexpr int w = width<T>;
  if constexpr (w == 8) {
    Wide<T> a[w], b[w];
    for (int i = 0; i < w; i += 2) {
      a[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
      a[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int i = 0; i < w; i += 4) {
      for (int j = 0; j < 2; ++j) {
        b[i + j] = __builtin_shufflevector(a[i + j], a[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        b[i + j + 2] = __builtin_shufflevector(a[i + j], a[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      }
    }
    for (int j = 0; j < 4; ++j) {
      r[j] = __builtin_shufflevector(b[j], b[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
      r[j + 4] = __builtin_shufflevector(b[j], b[j + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
  } else {
    Wide<T> a[w];
    for (int i = 0; i < w; i += 2) {
      a[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 4, 2, 6);
      a[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 5, 3, 7);
    }
    for (int j = 0; j < 2; ++j) {
      r[j] = __builtin_shufflevector(a[j], a[j + 2], 0, 1, 4, 5);
      r[j + 2] = __builtin_shufflevector(a[j], a[j + 2], 2, 3, 6, 7);
    }
  }
}

// Where real and imaginary parts stand.
template <class T> struct Planes { T *re, *im; };
// Where a step reads: planes, or pairs, the real part first unless `swapped`.
template <class T> struct Source {
  const T *re, *im, *pairs;
  bool swapped;
};

template <class T, int W, bool Pairs>
[[gnu::always_inline]] inline Pair<V<T, W>> read(const Source<T>& x, int64_t at) {
  if constexpr (Pairs) {
    static_assert(W == width<T>);
    const auto a = load_pairs<T>(x.pairs + 2 * at);
    return x.swapped ? Pair<V<T, W>>{a.im, a.re} : a;
  } else {
    return {load<T, W>(x.re + at), load<T, W>(x.im + at)};
  }
}

template <int R, class T, int W, bool Pairs>
void step_of(const FftStep& s, const T* __restrict factors, int64_t inner, Source<T> x,
             Planes<T> y) {
  using N = V<T, W>;
  const int64_t across = s.m * inner;
  for (int64_t p = 0; p < s.m; ++p) {
    const T* f = factors + s.factors + 2 * (R - 1) * p;
    for (int64_t i = 0; i < inner; i += W) {
      Pair<N> a[R];
      for (int k = 0; k < R; ++k) a[k] = read<T, W, Pairs>(x, p * inner + k * across + i);
      dft<R, T>(a);
      T *re = y.re + R * p * inner + i, *im = y.im + R * p * inner + i;
      store<T, W>(re, a[0].re);
      store<T, W>(im, a[0].im);
      for (int k = 1; k < R; ++k) {
        const Pair<N> b = times(a[k], f[2 * k - 2], f[2 * k - 1]);
        store<T, W>(re + k * inner, b.re);
        store<T, W>(im + k * inner, b.im);
      }
    }
  }
}
// Of any radix, by its roots.
template <class T, int W, bool Pairs>
void step_of_any(const FftStep& s, const T* __restrict factors, int64_t inner, Source<T> x,
                 Planes<T> y) {
  using N = V<T, W>;
  const int r = s.radix;
  const T* roots = factors + s.roots;
  const int64_t across = s.m * inner;
  for (int64_t p = 0; p < s.m; ++p) {
    const T* f = factors + s.factors + 2 * (r - 1) * p;
    for (int64_t i = 0; i < inner; i += W) {
      Pair<N> a[32];
      for (int k = 0; k < r; ++k) a[k] = read<T, W, Pairs>(x, p * inner + k * across + i);
      for (int k = 0; k < r; ++k) {
        Pair<N> b = a[0];
        for (int j = 1, at = k; j < r; ++j, at = at + k < r ? at + k : at + k - r)
          b = b + times(a[j], roots[2 * at], roots[2 * at + 1]);
        if (k > 0) b = times(b, f[2 * k - 2], f[2 * k - 1]);
        const int64_t to = (r * p + k) * inner + i;
        store<T, W>(y.re + to, b.re);
        store<T, W>(y.im + to, b.im);
      }
    }
  }
}
template <class T, int W, bool Pairs>
void step(const FftStep& s, const T* factors, int64_t inner, Source<T> x, Planes<T> y) {
  switch (s.radix) {
    case 2: return step_of<2, T, W, Pairs>(s, factors, inner, x, y);
    case 3: return step_of<3, T, W, Pairs>(s, factors, inner, x, y);
    case 4: return step_of<4, T, W, Pairs>(s, factors, inner, x, y);
    case 5: return step_of<5, T, W, Pairs>(s, factors, inner, x, y);
    case 8: return step_of<8, T, W, Pairs>(s, factors, inner, x, y);
    default: return step_of_any<T, W, Pairs>(s, factors, inner, x, y);
  }
}

#ifdef __AVX512F__
constexpr int bytes = 64;
#elif defined(__AVX__)
constexpr int bytes = 32;
#else
constexpr int bytes = 16;
#endif
template <class T>
constexpr int widest = std::max<int>(width<T>, bytes / static_cast<int>(sizeof(T)));

// All steps from the first; the planes that hold the result. Steps go to and fro between a and b;
// the source of the first may be a.
template <class T>
Planes<T> run(const std::vector<FftStep>& steps, const T* factors, int lanes, Source<T> x,
              Planes<T> a, Planes<T> b) {
  constexpr int w = width<T>;
  for (const FftStep& s : steps) {
    if (s.m * s.before * lanes >= long_work_elements && stopped()) break;
    const int64_t inner = s.before * lanes;
    if (x.pairs)
      step<T, w, true>(s, factors, inner, x, b);
    else if (inner % widest<T> == 0)
      step<T, widest<T>, false>(s, factors, inner, x, b);
    else if (inner % w == 0)
      step<T, w, false>(s, factors, inner, x, b);
    else
      step<T, 1, false>(s, factors, inner, x, b);
    std::swap(a, b);
    x = {a.re, a.im, nullptr, false};
  }
  return a;
}

// The step across the transforms of m that stand side by side in x.
template <class T> void last(const FftPlan<T>& plan, Planes<T> x, T* out, bool inverse, T scale) {
  constexpr int w = width<T>;
  const int64_t m = plan.n / w, room = (m + w - 1) / w * w;
  for (int64_t k = 0; k < m; k += w) {
    Wide<T> re[w], im[w];
    for (int r = 0; r < w; ++r) {
      re[r] = load<T, w>(x.re + (k + r) * w);
      im[r] = load<T, w>(x.im + (k + r) * w);
    }
    transpose<T>(re);
    transpose<T>(im);
    Pair<Wide<T>> a[w];
    for (int j = 0; j < w; ++j) {
      a[j] = times(Pair<Wide<T>>{re[j], im[j]}, load<T, w>(plan.last_re.data() + j * room + k),
                   load<T, w>(plan.last_im.data() + j * room + k));
    }
    dft<w, T>(a);
    for (int l = 0; l < w; ++l) {
      Wide<T> real = a[l].re * scale, imag = a[l].im * scale;
      if (inverse) std::swap(real, imag);
      T* to = out + 2 * (k + m * l);
      if (k + w <= m) {
        store_pairs<T>(to, real, imag);
      } else {
        T part[2 * w];
        store_pairs<T>(part, real, imag);
        std::copy_n(part, 2 * (m - k), to);
      }
    }
  }
}

// What a line of pairs is multiplied with, pair by pair; `conjugate`: with the conjugates.
template <class T> void multiply(T* x, const T* by, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    const T re = x[2 * k] * by[2 * k] - x[2 * k + 1] * by[2 * k + 1];
    x[2 * k + 1] = x[2 * k] * by[2 * k + 1] + x[2 * k + 1] * by[2 * k];
    x[2 * k] = re;
  }
}

template <class T>
void line(const FftPlan<T>& plan, const T* in, T* out, bool inverse, T scale, T* scratch) {
  constexpr int w = width<T>;
  const int64_t n = plan.n;
  if (plan.longer) {
    const FftPlan<T>& longer = *plan.longer;
    T *x = scratch, *rest = x + 2 * longer.n;
    for (int64_t k = 0; k < n; ++k) {
      x[2 * k] = in[2 * k + inverse];
      x[2 * k + 1] = in[2 * k + !inverse];
    }
    multiply(x, plan.chirp.data(), n);
    std::fill(x + 2 * n, x + 2 * longer.n, T(0));
    line(longer, x, x, false, T(1), rest);
    multiply(x, plan.filter.data(), longer.n);
    line(longer, x, x, true, T(1), rest);
    multiply(x, plan.chirp.data(), n);
    for (int64_t k = 0; k < n; ++k) {
      out[2 * k + inverse] = x[2 * k] * scale;
      out[2 * k + !inverse] = x[2 * k + 1] * scale;
    }
    return;
  }
  const int64_t size = w * (n + 16);
  const Planes<T> a = {scratch, scratch + size}, b = {scratch + 2 * size, scratch + 3 * size};
  if (plan.across) {
    const Planes<T> made =
        run<T>(plan.inner, plan.factors.data(), w, {nullptr, nullptr, in, inverse}, a, b);
    return last(plan, made, out, inverse, scale);
  }
  for (int64_t k = 0; k < n; ++k) {
    a.re[k] = in[2 * k + inverse];
    a.im[k] = in[2 * k + !inverse];
  }
  const Planes<T> made =
      run<T>(plan.all, plan.factors.data(), 1, {a.re, a.im, nullptr, false}, a, b);
  for (int64_t k = 0; k < n; ++k) {
    out[2 * k + inverse] = made.re[k] * scale;
    out[2 * k + !inverse] = made.im[k] * scale;
  }
}

// `count` lines of n pairs into planes, side by side; missing ones repeat the last.
template <class T>
void load_lines(const T* in, int64_t stride, int64_t step, int64_t n, int count, bool inverse,
                Planes<T> a) {
  constexpr int w = width<T>;
  int64_t k = 0;
  if (step == 1 && count == w) {
    for (; k < n; ++k) {
      const auto x = load_pairs<T>(in + 2 * k * stride);
      store<T, w>(a.re + k * w, inverse ? x.im : x.re);
      store<T, w>(a.im + k * w, inverse ? x.re : x.im);
    }
    return;
  }
  for (; stride == 1 && count == w && k + w <= n; k += w) {
    Wide<T> re[w], im[w];
    for (int l = 0; l < w; ++l) {
      const auto x = load_pairs<T>(in + 2 * (k + l * step));
      re[l] = x.re;
      im[l] = x.im;
    }
    transpose<T>(re);
    transpose<T>(im);
    for (int l = 0; l < w; ++l) {
      store<T, w>(a.re + (k + l) * w, inverse ? im[l] : re[l]);
      store<T, w>(a.im + (k + l) * w, inverse ? re[l] : im[l]);
    }
  }
  for (; k < n; ++k) {
    for (int l = 0; l < w; ++l) {
      const T* from = in + 2 * (k * stride + std::min(l, count - 1) * step);
      a.re[k * w + l] = from[inverse];
      a.im[k * w + l] = from[!inverse];
    }
  }
}
template <class T>
void store_lines(Planes<T> made, T* out, int64_t stride, int64_t step, int64_t n, int count,
                 T scale) {
  constexpr int w = width<T>;
  int64_t k = 0;
  if (step == 1 && count == w) {
    for (; k < n; ++k) {
      store_pairs<T>(out + 2 * k * stride, load<T, w>(made.re + k * w) * scale,
                     load<T, w>(made.im + k * w) * scale);
    }
    return;
  }
  for (; stride == 1 && count == w && k + w <= n; k += w) {
    Wide<T> re[w], im[w];
    for (int l = 0; l < w; ++l) {
      re[l] = load<T, w>(made.re + (k + l) * w) * scale;
      im[l] = load<T, w>(made.im + (k + l) * w) * scale;
    }
    transpose<T>(re);
    transpose<T>(im);
    for (int l = 0; l < w; ++l) store_pairs<T>(out + 2 * (k + l * step), re[l], im[l]);
  }
  for (; k < n; ++k) {
    for (int l = 0; l < count; ++l) {
      T* to = out + 2 * (k * stride + l * step);
      to[0] = made.re[k * w + l] * scale;
      to[1] = made.im[k * w + l] * scale;
    }
  }
}

template <class T>
void lines(const FftPlan<T>& plan, const T* in, int64_t stride, int64_t step, T* out,
           int64_t out_stride, int64_t out_step, int count, bool inverse, T scale, T* scratch) {
  constexpr int w = width<T>;
  const int64_t n = plan.n;
  if (plan.longer) {
    T *x = scratch, *rest = x + 2 * n;
    for (int l = 0; l < count; ++l) {
      for (int64_t k = 0; k < n; ++k) {
        const T* from = in + 2 * (k * stride + l * step);
        x[2 * k] = from[0];
        x[2 * k + 1] = from[1];
      }
      line(plan, x, x, inverse, scale, rest);
      for (int64_t k = 0; k < n; ++k) {
        T* to = out + 2 * (k * out_stride + l * out_step);
        to[0] = x[2 * k];
        to[1] = x[2 * k + 1];
      }
    }
    return;
  }
  const int64_t size = w * (n + 16);
  const Planes<T> a = {scratch, scratch + size}, b = {scratch + 2 * size, scratch + 3 * size};
  load_lines(in, stride, step, n, count, inverse, a);
  Planes<T> made = run<T>(plan.all, plan.factors.data(), w, {a.re, a.im, nullptr, false}, a, b);
  if (inverse) std::swap(made.re, made.im);
  store_lines(made, out, out_stride, out_step, n, count, scale);
}

// Half the spectrum of 2n real numbers, from the transforms of their n pairs at k and n - k.
template <class T, class N, class S>
[[gnu::always_inline]] inline void split_pair(const Pair<N>& z, const Pair<N>& y, const S& c,
                                              const S& s, Pair<N>& a, Pair<N>& b) {
  constexpr T half = T(0.5);
  const auto er = (z.re + y.re) * half, ei = (z.im - y.im) * half;
  const auto dr = (z.im + y.im) * half, di = (y.re - z.re) * half;
  const auto tr = dr * c - di * s, ti = dr * s + di * c;
  a = {er + tr, ei + ti};
  b = {er - tr, ti - ei};
}

template <class T>
void real_lines(const FftPlan<T>& plan, const T* in, int64_t step, T* out, int64_t out_step,
                int count, T scale, T* scratch) {
  constexpr int w = width<T>;
  const int64_t n = plan.n, size = w * (n + 16);
  const Planes<T> a = {scratch, scratch + size}, b = {scratch + 2 * size, scratch + 3 * size};
  load_lines(in, 1, step, n, count, false, a);
  const Planes<T> x = run<T>(plan.all, plan.factors.data(), w, {a.re, a.im, nullptr, false}, a, b);
  auto at = [&](int64_t k) {
    return Pair<Wide<T>>{load<T, w>(x.re + k * w), load<T, w>(x.im + k * w)};
  };
  auto put = [&](int64_t k, const Pair<Wide<T>>& v) {
    store<T, w>(x.re + k * w, v.re);
    store<T, w>(x.im + k * w, v.im);
  };
  const Pair<Wide<T>> first = at(0);
  put(n, {first.re - first.im, Wide<T>{}});
  put(0, {first.re + first.im, Wide<T>{}});
  for (int64_t k = 1; 2 * k <= n; ++k) {
    Pair<Wide<T>> low, high;
    split_pair<T>(at(k), at(n - k), plan.half_re[static_cast<size_t>(k)],
                  plan.half_im[static_cast<size_t>(k)], low, high);
    put(n - k, high);
    put(k, low);
  }
  store_lines(x, out, 1, out_step, n + 1, count, scale);
}

// f(z, y, factors) to the new pairs of k and n - k, for all k from 1 to n / 2.
template <class T, class F>
[[gnu::always_inline]] inline void mirrored(const FftPlan<T>& plan, T* x, F&& f) {
  constexpr int w = width<T>;
  const int64_t n = plan.n;
  const T *re = plan.half_re.data(), *im = plan.half_im.data();
  int64_t k = 1;
  for (; k + 2 * w <= n - k + 1; k += w) {
    using N = V<T, w>;
    T *low = x + 2 * k, *high = x + 2 * (n - k - w + 1);
    const Pair<N> z = load_pairs<T>(low), back = load_pairs<T>(high);
    const Pair<N> y = {reversed<T>(back.re), reversed<T>(back.im)};
    Pair<N> a, b;
    f(z, y, load<T, w>(re + k), load<T, w>(im + k), a, b);
    store_pairs<T>(low, a.re, a.im);
    store_pairs<T>(high, reversed<T>(b.re), reversed<T>(b.im));
  }
  for (; 2 * k <= n; ++k) {
    T *low = x + 2 * k, *high = x + 2 * (n - k);
    Pair<T> a, b;
    f(Pair<T>{low[0], low[1]}, Pair<T>{high[0], high[1]}, re[k], im[k], a, b);
    high[0] = b.re;
    high[1] = b.im;
    low[0] = a.re;
    low[1] = a.im;
  }
}
template <class T> void split(const FftPlan<T>& plan, T* x) {
  const T re = x[0], im = x[1];
  x[0] = re + im;
  x[2 * plan.n] = re - im;
  x[1] = x[2 * plan.n + 1] = T(0);
  mirrored(plan, x,
           [](const auto& z, const auto& y, const auto& c, const auto& s, auto& a, auto& b) {
             split_pair<T>(z, y, c, s, a, b);
           });
}
template <class T> void join(const FftPlan<T>& plan, T* x) {
  const T first = x[0], end = x[2 * plan.n];
  x[0] = first + end;
  x[1] = first - end;
  mirrored(plan, x,
           [](const auto& z, const auto& y, const auto& c, const auto& s, auto& a, auto& b) {
             const auto er = z.re + y.re, ei = z.im - y.im, dr = z.re - y.re, di = z.im + y.im;
             const auto pr = dr * c + di * s, pi = di * c - dr * s;
             a = {er - pi, ei + pr};
             b = {er + pi, pr - ei};
           });
}

}  // namespace

extern const FftLoops<float> fft_float;
extern const FftLoops<double> fft_double;
const FftLoops<float> fft_float = {line<float>, lines<float>, real_lines<float>, split<float>,
                                   join<float>};
const FftLoops<double> fft_double = {line<double>, lines<double>, real_lines<double>, split<double>,
                                     join<double>};

}  // namespace clew::kernels::CLEW_ISA
