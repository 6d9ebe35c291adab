// A product's operands, and the sweep of tiles over rows and panels that gives its sums.
// May include: kernels/matmul/gemm_isa.h, kernels/matmul/gemm_micro.h. Only isa_gemm.cpp includes
// it. Invariant: sums go to C at once, or through merge(), which knows every kind of C.
#pragma once
#include "kernels/matmul/gemm_isa.h"
#include "kernels/matmul/gemm_micro.h"

namespace clew::kernels::CLEW_ISA {
namespace {

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
  const T* bias;  // n of them, added to each row where beta is zero; or null
  Beta beta_kind;
  bool alpha_one;
  S alpha[2], beta[2];
};

// C(m x n) = alpha * tile + beta * C, or + bias. Out of line, as what several loops call is.
template <class T, class S>
[[gnu::noinline]] void merge(const Problem<T>& p, const S* tile, int64_t im_offset, int64_t width,
                             T* c, const T* bias, int64_t m, int64_t n, Beta kind) {
  using E = Element<T>;
  constexpr int L = lanes<S>;
  const S factor = kind == Beta::one ? S(1) : p.beta[0];
  for (int64_t i = 0; i < m; ++i) {
    int64_t j = 0;
    if constexpr (E::planes == 1) {
      if (p.c_cs == 1) {
        for (; j + L <= n; j += L) {
          T* at = c + i * p.c_rs + j;
          Vector<S> v;
          std::memcpy(&v, tile + i * width + j, sizeof v);
          if (!p.alpha_one) v *= p.alpha[0];
          if (kind != Beta::zero)
            v += factor * load_lanes<T>(at);
          else if (bias)
            v += load_lanes<T>(bias + j);
          store_lanes<T>(at, v);
        }
      }
    }
    if constexpr (E::planes == 2) {  // the two most frequent kinds
      const S* from = tile + i * width;
      if (p.c_cs == 1 && p.alpha_one && kind == Beta::zero && !bias) {
        for (T* at = c + i * p.c_rs; j < n; ++j) at[j] = {from[j], from[im_offset + j]};
      } else if (p.c_cs == 1 && p.alpha_one && kind == Beta::one) {
        for (T* at = c + i * p.c_rs; j < n; ++j)
          at[j] = {at[j].part[0] + from[j], at[j].part[1] + from[im_offset + j]};
      }
    }
    for (; j < n; ++j) {
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
          const S bi = kind == Beta::one ? S(0) : p.beta[1];
          v[0] += re * factor - im * bi;
          v[1] += re * bi + im * factor;
        } else if (bias) {
          v[0] += E::load(bias + j, 0);
          v[1] += E::load(bias + j, 1);
        }
      } else {
        if (!p.alpha_one) v[0] *= p.alpha[0];
        if (kind != Beta::zero)
          v[0] += factor * E::load(at, 0);
        else if (bias)
          v[0] += E::load(bias + j, 0);
      }
      E::store(at, v);
    }
  }
}

// Where the results of a sweep go: C itself when it holds sums as they are, else through merge().
template <class T> struct Sink {
  using S = typename Element<T>::S;
  S* sums;  // rows of sums, rs apart; null: merge into c
  int64_t rs;
  const S* bias;
  T* c;
  const T* c_bias;
  Beta kind;
};

// All tiles of m rows and the panels [q0, q1) over one block of depth. A is either in place (its
// own strides) or packed by micro-kernel rows; B has `b_ks` elements from one step to the next, 0
// for packed panels. What is the same for all tiles is found once: they are short.
template <class T, class S>
[[gnu::noinline]] void sweep(const Problem<T>& p, int64_t m, const Panels& panels, int64_t q0,
                             int64_t q1, int64_t depth, const S* a_direct, const S* a_packed,
                             const S* b, int64_t b_ks, const Sink<T>& to, Fetch fetch = {},
                             int64_t fetch_tile = 0) {
  constexpr int planes = Element<T>::planes;
  constexpr int L = lanes<S>;
  alignas(64) S tile[tile_rows<planes> * tile_vectors<planes> * L * planes];
  const bool own = planes == 1 && to.sums != nullptr, added = own && to.kind == Beta::one;
  TileTarget<S> t{.c = tile,
                  .rs = to.rs,
                  .from = nullptr,
                  .from_rs = added ? to.rs : 0,
                  .last = L,
                  .alpha = p.alpha[0],
                  .scaled = own && !p.alpha_one,
                  .fetch = fetch};
  for (int64_t i = 0; i < m;) {
    const int rows = rows_for<planes>(m - i);
    const S* const from = a_packed ? a_packed + i * depth * planes : a_direct + i * p.a_rs * planes;
    const int64_t a_rs = a_packed ? 1 : p.a_rs, a_ks = a_packed ? rows : p.a_cs;
    // Tiles of the panels [q, end), as many vectors wide each.
    auto along = [&](int64_t q, int64_t end, int64_t vectors) __attribute__((noinline)) {
      const int64_t step = b_ks ? b_ks : vectors * L * planes;
      auto merged = [&](int64_t im_offset) {
        const int64_t first = q * panels.width;
        merge<T, S>(p, tile, im_offset, vectors * L, to.c + i * p.c_rs + first * p.c_cs,
                    to.c_bias ? to.c_bias + first : nullptr, rows, panels.columns(q), to.kind);
      };
      if constexpr (planes == 2) {
        const auto micro = micro_complex_for<S>(rows, vectors);
        for (; q < end; ++q) {
          micro(depth, from, a_packed ? 1 : p.a_rs * 2, a_packed ? rows * 2 : p.a_cs * 2,
                a_packed ? rows : 1, b + q * panels.width * depth * 2, step, tile);
          merged(rows * vectors * L);
        }
      } else {
        const auto micro =
            a_packed ? micro_for<S, true>(rows, vectors) : micro_for<S, false>(rows, vectors);
        const S* panel = b + q * panels.width * (b_ks ? 1 : depth);
        const int64_t next = panels.width * (b_ks ? 1 : depth);
        if (own) {
          t.c = to.sums + i * to.rs + q * panels.width;
          t.from = added ? t.c : to.bias ? to.bias + q * panels.width : nullptr;
          const int64_t on = t.from ? panels.width : 0;
          for (; q < end; ++q, panel += next, t.c += panels.width, t.from += on)
            micro(depth, from, a_rs, a_ks, panel, step, t);
        } else {
          t.rs = vectors * L;
          for (; q < end; ++q, panel += next) {
            micro(depth, from, a_rs, a_ks, panel, step, t);
            merged(0);
          }
        }
      }
    };
    const int64_t whole = least(q1, panels.n / panels.width);
    if (q0 < whole) along(q0, whole, tile_vectors<planes>);
    for (int64_t q = most(q0, whole); q < q1; ++q) {
      const int64_t vectors = ceil_div(panels.columns(q), L);
      if (own) t.last = panels.columns(q) - (vectors - 1) * L;
      along(q, q + 1, vectors);
      t.last = L;
    }
    i += rows;
    if (fetch.at) t.fetch.at += fetch_tile;
  }
}

}  // namespace
}  // namespace clew::kernels::CLEW_ISA
