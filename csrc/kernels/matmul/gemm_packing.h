// Packing: rows of A for the micro-kernels, panels of B by the thread that first needs one.
// May include: base/guided.h, kernels/matmul/gemm_sweep.h. Only isa_gemm.cpp includes it.
// Invariant: a panel is packed once, and read by no thread before it is ready.
#pragma once
#include <atomic>
#include <thread>

#include "base/guided.h"
#include "kernels/matmul/gemm_sweep.h"

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int64_t copied_steps = 16;  // steps of A read before the next tile's turn

// Whole tiles of rows that are contiguous across rows, side by side. A vector is longer than a tile
// is high: what it has too much the next step overwrites. `beyond` elements may be read after m.
template <class S>
void pack_across(S* dst, const S* a, int64_t a_cs, int64_t m, int64_t beyond, int64_t depth) {
  constexpr int R = tile_rows<1>, L = lanes<S>;
  using V = Vector<S>;
  auto tiles = [&]<int N>(int64_t i) {
    const S* from = a + i;
    S* to = dst + i * depth;
    for (int64_t k = 0; k + 1 < depth; ++k, from += a_cs, to += R) {
      unroll<N>([&]<int t> {
        V x;
        std::memcpy(&x, from + t * R, sizeof x);
        std::memcpy(to + t * R * depth, &x, sizeof x);
      });
    }
    unroll<N>([&]<int t> { std::memcpy(to + t * R * depth, from + t * R, R * sizeof(S)); });
  };
  int64_t i = 0;
  const int64_t end = beyond >= L - R ? m : m - (L - R);
  for (; i + 4 * R <= end; i += 4 * R) tiles.template operator()<4>(i);
  for (; i + R <= end; i += R) tiles.template operator()<1>(i);
  for (; i < m; i += R) {
    for (int64_t k = 0; k < depth; ++k)
      std::memcpy(dst + i * depth + k * R, a + i + k * a_cs, R * sizeof(S));
  }
}

// Rows of A by micro-kernels. What is contiguous across rows is read along them; `beyond` the rows
// there are as many more.
template <class T, class S>
void pack_rows(S* dst, const Problem<T>& p, const T* a, int64_t m, int64_t beyond, int64_t depth) {
  constexpr int planes = Element<T>::planes;
  int64_t first = 0;
  if constexpr (planes == 1 && sizeof(T) == sizeof(S) && tile_rows<1> < lanes<S>) {
    if (p.a_rs == 1) {
      first = m / tile_rows<1> * tile_rows<1>;
      pack_across<S>(dst, reinterpret_cast<const S*>(a), p.a_cs, first, m - first + beyond, depth);
    }
  }
  const int64_t steps = p.a_rs == 1 ? copied_steps : depth;
  for (int64_t k = 0; k < depth; k += steps) {
    const int64_t n = least(steps, depth - k);
    for (int64_t i = first; i < m;) {
      const int rows = rows_for<planes>(m - i);
      pack<T, S>(dst + (i * depth + k * rows) * planes, rows, a + i * p.a_rs + k * p.a_cs, p.a_rs,
                 p.a_cs, rows, n);
      i += rows;
    }
  }
}

// Blocks of B, packed panel by panel. The thread that first needs a panel packs it, so no thread
// waits for all of B. While one panel is multiplied, the lines of the next are prefetched.
template <class T, class S> struct PackedB {
  enum : uint8_t { untouched, claimed, ready };
  const Problem<T>& p;
  const T* b;  // the first step of the first block
  Panels panels;
  int64_t steps, kc, block;  // of all blocks; of one; elements from one block to the next
  S* data;
  uint8_t* states;  // count() for each block
  int64_t team;

  int64_t depth(int64_t at) const { return least(kc, steps - at * kc); }
  const T* source(int64_t at, int64_t q) const {
    return b + at * kc * p.b_rs + q * panels.width * p.b_cs;
  }
  std::atomic_ref<uint8_t> state(int64_t at, int64_t q) const {
    return std::atomic_ref<uint8_t>(states[at * panels.count() + q]);
  }
  // False while another thread is at it.
  bool provide(int64_t at, int64_t q) const {
    auto s = state(at, q);
    uint8_t now = s.load(std::memory_order_acquire);
    if (now == untouched && s.compare_exchange_strong(now, claimed)) {
      constexpr int planes = Element<T>::planes;
      pack<T, S>(data + at * block + q * panels.width * depth(at) * planes, panels.packed(q),
                 source(at, q), p.b_cs, p.b_rs, panels.columns(q), depth(at));
      s.store(now = ready, std::memory_order_release);
    }
    return now == ready;
  }
  bool complete(int64_t at, int64_t q0, int64_t q1) const {
    while (q0 < q1 && state(at, q0).load(std::memory_order_acquire) == ready) ++q0;
    return q0 == q1;
  }
  // Calls f(q, fetch, fetch_tile) for all panels of [q0, q1), each in order by then. Threads begin
  // in different places.
  template <class F> void each(int64_t at, int64_t q0, int64_t q1, F&& f) const {
    const int64_t count = q1 - q0;
    const int64_t first = count * thread_turn(team) / team;
    auto panel = [&](int64_t x) { return q0 + (first + x) % count; };
    for (int64_t x = 0; x < count; ++x) {
      const int64_t q = panel(x);
      while (!provide(at, q)) std::this_thread::yield();
      Fetch fetch;
      int64_t fetch_tile = 0;
      if (const int64_t next = panel(x + 1);
          x + 1 < count && state(at, next).load(std::memory_order_relaxed) == untouched) {
        constexpr auto item = static_cast<int64_t>(sizeof(T));
        fetch.at = reinterpret_cast<const char*>(source(at, next));
        if (p.b_cs == 1) {
          // A line of each step.
          fetch.near = p.b_rs * item, fetch.far = 4 * fetch.near;
          fetch_tile = depth(at) / 4 * fetch.near;
        } else {
          // Four columns for each tile.
          fetch.near = p.b_cs * item, fetch.far = 64;
          fetch_tile = 4 * fetch.near;
        }
      }
      f(q, fetch, fetch_tile);
    }
  }
};

}  // namespace
}  // namespace clew::kernels::CLEW_ISA
