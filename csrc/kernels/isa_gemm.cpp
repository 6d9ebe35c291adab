// The blocked matrix product: packing, a micro-kernel in vector extensions, threads over blocks.
// May include: kernels/gemm_isa.h, base/parallel.h.
// Invariant: internal functions only: code for one instruction set never leaks into another's.
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/parallel.h"
#include "kernels/gemm_isa.h"

#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif

namespace clew::kernels::CLEW_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
constexpr int rows_max = 12;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
constexpr int rows_max = 6;
#else
constexpr int vector_bytes = 16;
constexpr int rows_max = 6;
#endif

// Depth of a packed block, in bytes of one column: a panel of B that deep fits in the first-level
// cache.
constexpr int64_t depth_bytes = 1024;
constexpr int64_t mc_block = 192;  // rows of a packed A block: fits in the second-level cache
constexpr int64_t packed_b_limit = 8 << 20;  // bytes of packed B held at once
constexpr int64_t parallel_work =
    1 << 20;  // multiply-adds below which threads cost more than they give

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class F, int... I>
[[gnu::always_inline]] inline void unroll_impl(F&& f, std::integer_sequence<int, I...>) {
  (f.template operator()<I>(), ...);
}
template <int N, class F> [[gnu::always_inline]] inline void unroll(F&& f) {
  unroll_impl(f, std::make_integer_sequence<int, N>{});
}

// How an element type is computed with: scalar S, `planes` parts an element (2 for complex).
template <class T> struct Element {
  using S = T;
  static constexpr int planes = 1;
  static S load(const T* p, int) { return *p; }
  static void store(T* p, const S* v) { *p = v[0]; }
};
template <class T, class U> struct IntegerElement {
  using S = U;
  static constexpr int planes = 1;
  static S load(const T* p, int) { return static_cast<U>(*p); }
  static void store(T* p, const S* v) { *p = static_cast<T>(v[0]); }
};
template <> struct Element<uint8_t> : IntegerElement<uint8_t, uint32_t> {};
template <> struct Element<int8_t> : IntegerElement<int8_t, uint32_t> {};
template <> struct Element<int16_t> : IntegerElement<int16_t, uint32_t> {};
template <> struct Element<int32_t> : IntegerElement<int32_t, uint32_t> {};
template <> struct Element<int64_t> : IntegerElement<int64_t, uint64_t> {};
template <> struct Element<f16> {
  using S = float;
  static constexpr int planes = 1;
  static S load(const f16* p, int) { return static_cast<float>(*p); }
  static void store(f16* p, const S* v) { *p = static_cast<f16>(v[0]); }
};
template <> struct Element<bf16> {
  using S = float;
  static constexpr int planes = 1;
  static S load(const bf16* p, int) {
    return std::bit_cast<float>(static_cast<uint32_t>(p->bits) << 16);
  }
  static void store(bf16* p, const S* v) {
    const uint32_t u = std::bit_cast<uint32_t>(v[0]);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    p->bits =
        static_cast<uint16_t>(nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};
template <class R> struct Parts { R part[2]; };
template <class R> struct Element<Parts<R>> {
  using S = R;
  static constexpr int planes = 2;
  static S load(const Parts<R>* p, int plane) { return p->part[plane]; }
  static void store(Parts<R>* p, const S* v) {
    p->part[0] = v[0];
    p->part[1] = v[1];
  }
};

template <class S> struct VectorOf { typedef S type __attribute__((vector_size(vector_bytes))); };
template <class S> using Vector = typename VectorOf<S>::type;
template <class S> constexpr int lanes = vector_bytes / static_cast<int>(sizeof(S));

// tile[MR][NV * lanes] (then the imaginary tile) = sum over k of a(i, k) * b(k, j).
template <class S, int MR, int NV, int planes>
void micro(int64_t depth, const S* a, int64_t a_row, int64_t a_k, int64_t a_im, const S* b,
           int64_t b_k, S* tile) {
  using V = Vector<S>;
  constexpr int L = lanes<S>;
  V re[MR][NV];
  V im[planes == 2 ? MR : 1][NV];
  unroll<MR>([&]<int i> { unroll<NV>([&]<int j> { re[i][j] = V{}; }); });
  if constexpr (planes == 2) unroll<MR>([&]<int i> { unroll<NV>([&]<int j> { im[i][j] = V{}; }); });
  for (int64_t p = 0; p < depth; ++p) {
    V br[NV];
    unroll<NV>([&]<int j> { std::memcpy(&br[j], b + j * L, sizeof(V)); });
    if constexpr (planes == 2) {
      V bi[NV];
      unroll<NV>([&]<int j> { std::memcpy(&bi[j], b + (NV + j) * L, sizeof(V)); });
      unroll<MR>([&]<int i> {
        const S ar = a[i * a_row];
        const S ai = a[i * a_row + a_im];
        unroll<NV>([&]<int j> {
          re[i][j] += ar * br[j];
          re[i][j] -= ai * bi[j];
          im[i][j] += ar * bi[j];
          im[i][j] += ai * br[j];
        });
      });
    } else {
      unroll<MR>([&]<int i> {
        const S ar = a[i * a_row];
        unroll<NV>([&]<int j> { re[i][j] += ar * br[j]; });
      });
    }
    a += a_k;
    b += b_k;
  }
  unroll<MR>([&]<int i> {
    unroll<NV>([&]<int j> { std::memcpy(tile + (i * NV + j) * L, &re[i][j], sizeof(V)); });
  });
  if constexpr (planes == 2) {
    unroll<MR>([&]<int i> {
      unroll<NV>([&]<int j> { std::memcpy(tile + ((MR + i) * NV + j) * L, &im[i][j], sizeof(V)); });
    });
  }
}

template <class S>
using Micro = void (*)(int64_t, const S*, int64_t, int64_t, int64_t, const S*, int64_t, S*);

// Rows one micro-kernel takes; complex tiles need twice the registers.
template <int planes> constexpr int rows_of = planes == 2 ? (rows_max > 6 ? 6 : 2) : rows_max;

template <class S, int MR, int NV, int planes> Micro<S> chosen(int& rows) {
  rows = MR;
  return micro<S, MR, NV, planes>;
}
template <class S, int NV, int planes> Micro<S> pick_rows(int64_t left, int& rows) {
  constexpr int top = rows_of<planes>;
  if (left >= top) return chosen<S, top, NV, planes>(rows);
  if constexpr (top > 8) {
    if (left >= 8) return chosen<S, 8, NV, planes>(rows);
  }
  if constexpr (top > 4) {
    if (left >= 4) return chosen<S, 4, NV, planes>(rows);
  }
  if constexpr (top > 2) {
    if (left >= 2) return chosen<S, 2, NV, planes>(rows);
  }
  return chosen<S, 1, NV, planes>(rows);
}

// A problem with typed pointers; alpha and beta in the compute type.
template <class T> struct Problem {
  using E = Element<T>;
  using S = typename E::S;
  int64_t m, n, k;
  const T* a;
  int64_t a_rs, a_cs;
  const T* b;
  int64_t b_rs, b_cs;
  T* c;
  int64_t c_rs, c_cs;
  Beta beta_kind;
  bool alpha_one;
  S alpha[2], beta[2];
};

// Copies n elements in pieces of fixed size: for the few that a small row has, a call costs more
// than the copy.
template <class S> [[gnu::always_inline]] inline void copy_row(S* to, const S* from, int64_t n) {
  for (; n >= 8; n -= 8, to += 8, from += 8) std::memcpy(to, from, 8 * sizeof(S));
  if (n & 4) {
    std::memcpy(to, from, 4 * sizeof(S));
    to += 4, from += 4;
  }
  if (n & 2) {
    std::memcpy(to, from, 2 * sizeof(S));
    to += 2, from += 2;
  }
  if (n & 1) *to = *from;
}

// C(m x n) = alpha * tile + beta * C.
template <class T, class S>
void merge(const Problem<T>& p, const S* tile, int64_t im_offset, int64_t width, T* c, int64_t m,
           int64_t n, Beta kind) {
  using E = Element<T>;
  constexpr bool direct = E::planes == 1 && sizeof(T) == sizeof(S);
  if (direct && p.alpha_one && p.c_cs == 1 && kind != Beta::other) {
    for (int64_t i = 0; i < m; ++i) {
      S* row = reinterpret_cast<S*>(c + i * p.c_rs);
      const S* from = tile + i * width;
      if (kind == Beta::zero) {
        copy_row(row, from, n);
      } else {
        for (int64_t j = 0; j < n; ++j) row[j] += from[j];
      }
    }
    return;
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T* at = c + i * p.c_rs + j * p.c_cs;
      S v[2] = {tile[i * width + j], S(0)};
      if constexpr (E::planes == 2) {
        v[1] = tile[im_offset + i * width + j];
        if (!p.alpha_one) {
          const S re = v[0] * p.alpha[0] - v[1] * p.alpha[1];
          v[1] = v[0] * p.alpha[1] + v[1] * p.alpha[0];
          v[0] = re;
        }
        if (kind != Beta::zero) {
          const S re = E::load(at, 0), im = E::load(at, 1);
          const S br = kind == Beta::one ? S(1) : p.beta[0];
          const S bi = kind == Beta::one ? S(0) : p.beta[1];
          v[0] += re * br - im * bi;
          v[1] += re * bi + im * br;
        }
      } else {
        if (!p.alpha_one) v[0] *= p.alpha[0];
        if (kind == Beta::one) v[0] += E::load(at, 0);
        if (kind == Beta::other) v[0] += p.beta[0] * E::load(at, 0);
      }
      E::store(at, v);
    }
  }
}

// dst[k][width] (and an imaginary row after each) from `count` <= width lanes of a strided matrix,
// zero beyond them.
template <class T, class S>
void pack(S* dst, int width, const T* src, int64_t lane_stride, int64_t k_stride, int64_t count,
          int64_t depth) {
  using E = Element<T>;
  constexpr int planes = E::planes;
  const int64_t step = static_cast<int64_t>(width) * planes;
  if constexpr (planes == 1 && sizeof(T) == sizeof(S)) {
    if (lane_stride == 1) {
      const S* from = reinterpret_cast<const S*>(src);
      for (int64_t p = 0; p < depth; ++p, dst += width, from += k_stride) {
        if (count < width) {
          // Panels of B are one or two vectors wide, panels of A a few rows.
          if (width % lanes<S> == 0) {
            for (int v = 0; v < width; v += lanes<S>) {
              const Vector<S> none{};
              std::memcpy(dst + v, &none, sizeof none);
            }
          } else {
            for (int64_t j = count; j < width; ++j) dst[j] = S(0);
          }
        }
        copy_row(dst, from, count);
      }
      return;
    }
  }
  if (planes == 1 && lane_stride == 1) {
    for (int64_t p = 0; p < depth; ++p) {
      const T* from = src + p * k_stride;
      S* to = dst + p * step;
      for (int64_t j = 0; j < count; ++j) to[j] = E::load(from + j, 0);
      for (int64_t j = count; j < width; ++j) to[j] = S(0);
    }
    return;
  }
  if (count < width)
    std::memset(static_cast<void*>(dst), 0, sizeof(S) * static_cast<size_t>(step * depth));
  // Four lanes at a time: the writes of one step share a cache line.
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    const T* f0 = src + j * lane_stride;
    const T* f1 = f0 + lane_stride;
    const T* f2 = f1 + lane_stride;
    const T* f3 = f2 + lane_stride;
    S* to = dst + j;
    for (int64_t p = 0; p < depth; ++p, to += step) {
      const int64_t o = p * k_stride;
      for (int plane = 0; plane < planes; ++plane) {
        S* t = to + plane * width;
        t[0] = E::load(f0 + o, plane);
        t[1] = E::load(f1 + o, plane);
        t[2] = E::load(f2 + o, plane);
        t[3] = E::load(f3 + o, plane);
      }
    }
  }
  for (; j < count; ++j) {
    for (int64_t p = 0; p < depth; ++p) {
      for (int plane = 0; plane < planes; ++plane) {
        dst[p * step + plane * width + j] = E::load(src + j * lane_stride + p * k_stride, plane);
      }
    }
  }
}

// Scratch that one thread keeps between calls.
struct Scratch {
  void* data = nullptr;
  size_t bytes = 0;
  void* get(size_t need) {
    if (need > bytes) {
      std::free(data);
      bytes = 0;
      data = std::aligned_alloc(64, (need + 63) / 64 * 64);
      if (!data) throw std::bad_alloc();
      bytes = need;
    }
    return data;
  }
  ~Scratch() { std::free(data); }
};
thread_local Scratch scratch_a, scratch_b;

// Columns a panel of packed B has: one vector when the matrix is that narrow, two otherwise.
template <class S> int panel_width(int64_t n) { return n <= lanes<S> ? lanes<S> : 2 * lanes<S>; }

// All tiles of m x n over packed B panels. A is either in place (its own strides) or packed by
// micro-kernel rows.
template <class T, class S>
void sweep(const Problem<T>& p, int64_t m, int64_t n, int64_t depth, const T* a_direct,
           const S* a_packed, const S* b_packed, int width, T* c, Beta kind) {
  constexpr int planes = Element<T>::planes;
  alignas(64) S tile[rows_of<planes> * 2 * lanes<S> * planes];
  for (int64_t j = 0; j < n; j += width) {
    const S* panel = b_packed + j * depth * planes;
    const int64_t cols = least(width, n - j);
    int64_t i = 0;
    while (i < m) {
      int rows;
      Micro<S> kernel = width == lanes<S> ? pick_rows<S, 1, planes>(m - i, rows)
                                          : pick_rows<S, 2, planes>(m - i, rows);
      if (a_packed) {
        kernel(depth, a_packed + i * depth * planes, 1, static_cast<int64_t>(rows) * planes, rows,
               panel, static_cast<int64_t>(width) * planes, tile);
      } else {
        kernel(depth, reinterpret_cast<const S*>(a_direct + i * p.a_rs), p.a_rs * planes,
               p.a_cs * planes, 1, panel, static_cast<int64_t>(width) * planes, tile);
      }
      merge<T, S>(p, tile, static_cast<int64_t>(rows) * width, width, c + i * p.c_rs + j * p.c_cs,
                  rows, cols, kind);
      i += rows;
    }
  }
}

template <class T, class S>
void pack_rows(S* dst, const Problem<T>& p, const T* a, int64_t m, int64_t depth) {
  constexpr int planes = Element<T>::planes;
  int64_t i = 0;
  while (i < m) {
    int rows;
    pick_rows<S, 2, planes>(m - i, rows);
    pack<T, S>(dst + i * depth * planes, rows, a + i * p.a_rs, p.a_rs, p.a_cs, rows, depth);
    i += rows;
  }
}

// One row times a matrix whose rows are contiguous: no packing, vectors run along the columns.
template <class T, class S> void row_by_rows(const Problem<T>& p, int64_t begin, int64_t end) {
  constexpr int L = lanes<S>;
  alignas(64) S tile[4 * L];
  const S* a = reinterpret_cast<const S*>(p.a);
  const S* b = reinterpret_cast<const S*>(p.b);
  int64_t j = begin;
  for (; j + 4 * L <= end; j += 4 * L) {
    micro<S, 1, 4, 1>(p.k, a, 0, p.a_cs, 0, b + j, p.b_rs, tile);
    merge<T, S>(p, tile, 0, 4 * L, p.c + j * p.c_cs, 1, 4 * L, p.beta_kind);
  }
  for (; j + L <= end; j += L) {
    micro<S, 1, 1, 1>(p.k, a, 0, p.a_cs, 0, b + j, p.b_rs, tile);
    merge<T, S>(p, tile, 0, L, p.c + j * p.c_cs, 1, L, p.beta_kind);
  }
  if (j < end) {
    const int64_t left = end - j;
    for (int64_t x = 0; x < left; ++x) tile[x] = S(0);
    for (int64_t q = 0; q < p.k; ++q) {
      const S v = a[q * p.a_cs];
      const S* row = b + q * p.b_rs + j;
      for (int64_t x = 0; x < left; ++x) tile[x] += v * row[x];
    }
    merge<T, S>(p, tile, 0, L, p.c + j * p.c_cs, 1, left, p.beta_kind);
  }
}

// The sum of x[i] * y[i], four vectors at a time.
template <class S> S dot(const S* x, const S* y, int64_t n) {
  using V = Vector<S>;
  constexpr int L = lanes<S>;
  V acc[4] = {};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    unroll<4>([&]<int q> {
      V u, v;
      std::memcpy(&u, x + i + q * L, sizeof(V));
      std::memcpy(&v, y + i + q * L, sizeof(V));
      acc[q] += u * v;
    });
  }
  const V all = (acc[0] + acc[1]) + (acc[2] + acc[3]);
  S total = S(0);
  unroll<L>([&]<int q> { total += all[q]; });
  for (; i < n; ++i) total += x[i] * y[i];
  return total;
}

// a's lanes added in pairs, then b's.
template <class S, int... I>
Vector<S> pair_sums(Vector<S> a, Vector<S> b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I)...) + __builtin_shufflevector(a, b, (2 * I + 1)...);
}
// The sum of each vector's lanes: lane r of the result belongs to v[r]. v has as many vectors as
// lanes, and is used up.
template <class S> Vector<S> lane_sums(Vector<S>* v) {
  constexpr int L = lanes<S>;
  for (int n = L; n > 1; n /= 2)
    for (int i = 0; i < n / 2; ++i)
      v[i] = pair_sums<S>(v[2 * i], v[2 * i + 1], std::make_integer_sequence<int, L>());
  return v[0];
}

// One contiguous row times a matrix whose columns are contiguous: as many columns at a time as a
// vector has lanes, so that the row is read once and the sums over lanes are shared.
template <class T, class S> void row_by_columns(const Problem<T>& p, int64_t begin, int64_t end) {
  using V = Vector<S>;
  constexpr int L = lanes<S>;
  const S* a = reinterpret_cast<const S*>(p.a);
  const S* b = reinterpret_cast<const S*>(p.b);
  int64_t j = begin;
  for (; j + L <= end; j += L) {
    V acc[L] = {};
    const S* column = b + j * p.b_cs;
    int64_t i = 0;
    for (; i + L <= p.k; i += L) {
      V u;
      std::memcpy(&u, a + i, sizeof(V));
      unroll<L>([&]<int r> {
        V w;
        std::memcpy(&w, column + r * p.b_cs + i, sizeof(V));
        acc[r] += u * w;
      });
    }
    V sums = lane_sums<S>(acc);
    if (i < p.k)
      for (int r = 0; r < L; ++r)
        for (int64_t t = i; t < p.k; ++t) sums[r] += a[t] * column[r * p.b_cs + t];
    S tile[L];
    std::memcpy(tile, &sums, sizeof(V));
    merge<T, S>(p, tile, 0, L, p.c + j * p.c_cs, 1, L, p.beta_kind);
  }
  for (; j < end; ++j) {
    const S v = dot<S>(a, b + j * p.b_cs, p.k);
    merge<T, S>(p, &v, 0, 1, p.c + j * p.c_cs, 1, 1, p.beta_kind);
  }
}

template <class T> void blocked(const Problem<T>& p) {
  using S = typename Element<T>::S;
  constexpr int planes = Element<T>::planes;
  constexpr bool direct = sizeof(T) == sizeof(S) * planes;
  constexpr bool exact = sizeof(T) >= sizeof(S);  // partial sums may be kept in C
  const int64_t work = p.m * p.n * p.k;
  if constexpr (direct && planes == 1) {
    if (p.m == 1 && (p.b_cs == 1 || p.n == 1)) {
      if (p.n == 1 && p.b_rs == 1 && p.a_cs == 1) {
        row_by_columns<T, S>(p, 0, 1);
      } else {
        parallel_for(p.n, least(p.n, 1 + parallel_work / 2 / p.k),
                     [&](int64_t begin, int64_t end) { row_by_rows<T, S>(p, begin, end); });
      }
      return;
    }
    if (p.m == 1 && p.b_rs == 1 && p.a_cs == 1) {
      parallel_for(p.n, least(p.n, 1 + parallel_work / 2 / p.k),
                   [&](int64_t begin, int64_t end) { row_by_columns<T, S>(p, begin, end); });
      return;
    }
  }
  const int width = panel_width<S>(p.n);
  constexpr int64_t small_elements = 16384 / static_cast<int64_t>(sizeof(S));
  if (direct && work < parallel_work &&
      ceil_div(p.n, width) * width * p.k * planes <= small_elements) {
    // Small: B goes into a buffer on the stack, A is read where it is.
    alignas(64) S packed[small_elements];
    for (int64_t j = 0; j < p.n; j += width) {
      pack<T, S>(packed + j * p.k * planes, width, p.b + j * p.b_cs, p.b_cs, p.b_rs,
                 least(width, p.n - j), p.k);
    }
    sweep<T, S>(p, p.m, p.n, p.k, p.a, nullptr, packed, width, p.c, p.beta_kind);
    return;
  }
  const int64_t kc =
      exact ? least(p.k, depth_bytes / (static_cast<int64_t>(sizeof(S)) * planes)) : p.k;
  const int64_t nc_fit =
      packed_b_limit / (kc * static_cast<int64_t>(sizeof(S)) * planes) / width * width;
  const int64_t nc = least(ceil_div(p.n, width) * width, nc_fit < width ? width : nc_fit);
  S* b_packed = static_cast<S*>(scratch_b.get(sizeof(S) * static_cast<size_t>(nc * kc * planes)));
  const bool threads = work >= parallel_work;
  for (int64_t jc = 0; jc < p.n; jc += nc) {
    const int64_t n = least(nc, p.n - jc);
    for (int64_t pc = 0; pc < p.k; pc += kc) {
      const int64_t depth = least(kc, p.k - pc);
      const int64_t panels = ceil_div(n, width);
      const T* b_from = p.b + pc * p.b_rs + jc * p.b_cs;
      parallel_for(
          panels, threads ? 1 + 65536 / (depth * width) : panels, [&](int64_t begin, int64_t end) {
            for (int64_t q = begin; q < end; ++q) {
              pack<T, S>(b_packed + q * width * depth * planes, width, b_from + q * width * p.b_cs,
                         p.b_cs, p.b_rs, least(width, n - q * width), depth);
            }
          });
      // Tasks: blocks of rows, cut along columns too when there are fewer of them than threads.
      const int64_t team = threads ? num_threads() : 1;
      const int64_t rows_each = ceil_div(ceil_div(p.m, team), rows_of<planes>) * rows_of<planes>;
      const int64_t mc = least(mc_block, rows_each);
      const int64_t row_tasks = ceil_div(p.m, mc);
      const int64_t col_tasks = least(panels, row_tasks >= team ? 1 : ceil_div(team, row_tasks));
      const int64_t panels_each = ceil_div(panels, col_tasks);
      const Beta kind = pc == 0 ? p.beta_kind : Beta::one;
      const int64_t tasks = row_tasks * col_tasks;
      parallel_for(tasks, threads ? 1 : tasks, [&](int64_t begin, int64_t end) {
        S* a_packed =
            static_cast<S*>(scratch_a.get(sizeof(S) * static_cast<size_t>(mc * depth * planes)));
        for (int64_t task = begin; task < end; ++task) {
          const int64_t i = task / col_tasks * mc;
          const int64_t j = task % col_tasks * panels_each * width;
          if (j >= n) continue;
          const int64_t m = least(mc, p.m - i);
          pack_rows<T, S>(a_packed, p, p.a + i * p.a_rs + pc * p.a_cs, m, depth);
          sweep<T, S>(p, m, least(panels_each * width, n - j), depth, nullptr, a_packed,
                      b_packed + j * depth * planes, width, p.c + i * p.c_rs + (jc + j) * p.c_cs,
                      kind);
        }
      });
    }
  }
}

template <class T> void run(const GemmTask& t) {
  using S = typename Element<T>::S;
  Problem<T> p;
  p.m = t.m, p.n = t.n, p.k = t.k;
  p.a = reinterpret_cast<const T*>(t.a), p.a_rs = t.a_rs, p.a_cs = t.a_cs;
  p.b = reinterpret_cast<const T*>(t.b), p.b_rs = t.b_rs, p.b_cs = t.b_cs;
  p.c = reinterpret_cast<T*>(t.c), p.c_rs = t.c_rs, p.c_cs = t.c_cs;
  p.beta_kind = t.beta_kind, p.alpha_one = t.alpha_one;
  std::memcpy(p.alpha, t.alpha, sizeof(S) * 2);
  std::memcpy(p.beta, t.beta, sizeof(S) * 2);
  // A result much narrower than a vector is computed transposed, so that vectors run along its long
  // side.
  if (p.n < lanes<S> / 2 && p.n < p.m) {
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    std::swap(p.a_rs, p.b_cs);
    std::swap(p.a_cs, p.b_rs);
    std::swap(p.c_rs, p.c_cs);
  }
  blocked<T>(p);
}

}  // namespace

void gemm_blocked(const GemmTask& t) {
  switch (t.dtype) {
    case DType::Bool: return;
    case DType::UInt8: return run<uint8_t>(t);
    case DType::Int8: return run<int8_t>(t);
    case DType::UInt16:
    case DType::Int16: return run<int16_t>(t);
    case DType::UInt32:
    case DType::Int32: return run<int32_t>(t);
    case DType::UInt64:
    case DType::Int64: return run<int64_t>(t);
    case DType::Float16: return run<f16>(t);
    case DType::BFloat16: return run<bf16>(t);
    case DType::Float32: return run<float>(t);
    case DType::Float64: return run<double>(t);
    case DType::Complex64: return run<Parts<float>>(t);
    case DType::Complex128: return run<Parts<double>>(t);
  }
}

}  // namespace clew::kernels::CLEW_ISA
