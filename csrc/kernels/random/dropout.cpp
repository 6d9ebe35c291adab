// Dropout: elements scaled and shifted where a mask says so, the mask given or drawn here.
// May include: base, kernels.
// Invariant: the generator's mutex is held while a mask is drawn.
#include <bit>
#include <type_traits>

#include "kernels/core/loop_tables.h"
#include "kernels/core/stream.h"
#include "kernels/random/drawing.h"
#include "kernels/random/random.h"

namespace clew::kernels {

namespace {

// As for_words() for pairs, use(first item, upper words, lower words, items), which are not
// tempered: upper and lower words are stored separately, so that a caller which needs only the
// upper words reads neighbours. `soon` has one number per item that use() will read; it is
// prefetched.
template <class F> void for_pairs(Generator& g, int64_t n, const float* soon, F&& use) {
  constexpr int64_t half = Generator::words / 2, piece = piece_words / 2;
  const RandomLoops& loops = random_loops();
  std::mutex order;
  int64_t next = 0;
  uint32_t last_even[half], last_odd[half];
  for (int64_t i = 0; i < half; ++i)
    last_even[i] = g.state[2 * i], last_odd[i] = g.state[2 * i + 1];
  parallel_for(std::min<int64_t>((n + piece - 1) / piece, num_threads()), 1, [&](int64_t, int64_t) {
    alignas(64) uint32_t even[piece + 2 * half], odd[piece + 2 * half];
    for (;;) {
      lock_soon(order);
      const int64_t first = next, take = std::min(piece, n - first), begin = g.position;
      if (take <= 0) return order.unlock();
      next += take;
      const int64_t blocks = std::max<int64_t>(0, (begin + take * 2 - 1) / Generator::words);
      std::copy_n(last_even, half, even);
      std::copy_n(last_odd, half, odd);
      loops.extend_apart(even, odd, blocks, soon + first);
      std::copy_n(even + blocks * half, half, last_even);
      std::copy_n(odd + blocks * half, half, last_odd);
      g.position = static_cast<uint32_t>(begin + take * 2 - blocks * Generator::words);
      order.unlock();
      if (begin % 2 == 0)
        use(first, even + begin / 2, odd + begin / 2, take);
      else
        use(first, odd + begin / 2, even + begin / 2 + 1, take);
    }
  });
  for (int64_t i = 0; i < half; ++i)
    g.state[2 * i] = last_even[i], g.state[2 * i + 1] = last_odd[i];
}

}  // namespace

// The summand for "add nothing": -0, because -0 + -0 stays -0.
static double keeping_sign(double added) { return added == 0 ? -0.0 : added; }

void random_masked_affine(const NdView& out, const NdView& mask, const NdView& in, double keep,
                          double scale, double shift, double dropped, Generator& g) {
  const bool kept = mask.numel() == out.numel();
  if (out.dtype != DType::Float32 || !out.contiguous() || !in.contiguous() || !mask.contiguous() ||
      (!kept && mask.numel() > 0)) {
    random_bernoulli(mask, keep, g);
    masked_affine(out, in, mask, scale, shift, dropped);
    return;
  }
  const Drawing drawing(g, out.numel());
  const auto a = static_cast<float>(scale), b = static_cast<float>(keeping_sign(shift)),
             d = static_cast<float>(keeping_sign(dropped));
  const uint64_t limit = limit_of(keep);
  auto* to = out.ptr<float>();
  auto* from = in.ptr<const float>();
  const bool streamed = to != from && starts_line(to) &&
                        out.numel() * int64_t{sizeof(float)} >= stream_in_order_bytes;
  for_pairs(g, out.numel(), from,
            [&](int64_t first, const uint32_t* upper, const uint32_t* lower, int64_t count) {
              uint8_t forgotten[piece_words / 2];
              random_loops().drop(to + first, kept ? mask.ptr<uint8_t>() + first : forgotten,
                                  from + first, upper, lower, count, limit, a, b, d, streamed);
            });
}

// Neighbouring elements of a row of masked_affine(), through registers of float.
static void affine_piece(float* out, const float* x, const uint8_t* mask, bool one, int64_t n,
                         float scale, float shift, float dropped) {
  if (!one) return random_loops().masked(out, x, mask, n, scale, shift, dropped);
  const float a = *mask ? scale : 0.0f, b = *mask ? shift : dropped;
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * a + b;
}
// A row of masked_affine(); one mask element may be broadcast over the row.
template <class T>
static void affine_row(char* const* p, const int64_t* s, int64_t n, const Scalar* c) {
  using C = compute_t<T>;
  const C scale = c[0].to<C>(), shift = c[1].to<C>(), dropped = c[2].to<C>();
  auto* o = reinterpret_cast<T*>(p[0]);
  auto* x = reinterpret_cast<const T*>(p[1]);
  auto* m = reinterpret_cast<const uint8_t*>(p[2]);
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  const int64_t so = s[0] / item, sx = s[1] / item;
  if constexpr (std::is_same_v<C, float>) {
    if (sx == 0 && n > 1) {  // one number in place of all
      constexpr int64_t piece = 512;
      alignas(64) T same[piece];
      std::fill_n(same, std::min(n, piece), *x);
      const int64_t steps[] = {s[0], item, s[2]};
      for (int64_t i = 0; i < n; i += piece) {
        char* const at[] = {p[0] + i * s[0], reinterpret_cast<char*>(same), p[2] + i * s[2]};
        affine_row<T>(at, steps, std::min(piece, n - i), c);
      }
      return;
    }
    if (so == 1 && sx == 1 && s[2] <= 1) {
      const bool one = s[2] == 0;
      if constexpr (std::is_same_v<T, float>) {
        affine_piece(o, x, m, one, n, scale, shift, dropped);
      } else {
        constexpr int64_t piece = 512;
        alignas(64) float wide[piece], made[piece];
        static const Loop widen = cast_loop_of(dtype_of<T>(), DType::Float32),
                          narrow = cast_loop_of(DType::Float32, dtype_of<T>());
        constexpr int64_t to_wide[] = {4, item}, to_narrow[] = {item, 4};
        for (int64_t i = 0; i < n; i += piece) {
          const int64_t count = std::min(piece, n - i);
          char* const in[] = {reinterpret_cast<char*>(wide),
                              reinterpret_cast<char*>(const_cast<T*>(x + i))};
          char* const out[] = {reinterpret_cast<char*>(o + i), reinterpret_cast<char*>(made)};
          widen(in, to_wide, count, nullptr);
          affine_piece(made, wide, one ? m : m + i, one, count, scale, shift, dropped);
          narrow(out, to_narrow, count, nullptr);
        }
      }
      return;
    }
  }
  // By bits: a branch would go the wrong way at every other element.
  using Bits = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;
  const Bits of_scale = std::bit_cast<Bits>(scale), of_shift = std::bit_cast<Bits>(shift),
             of_dropped = std::bit_cast<Bits>(dropped);
  for (int64_t i = 0; i < n; ++i) {
    const Bits kept = m[i * s[2]] ? ~Bits(0) : Bits(0);
    const C added = std::bit_cast<C>((of_shift & kept) | (of_dropped & ~kept));
    o[i * so] =
        static_cast<T>(static_cast<C>(x[i * sx]) * std::bit_cast<C>(of_scale & kept) + added);
  }
}

void masked_affine(const NdView& out, const NdView& in, const NdView& mask, double scale,
                   double shift, double dropped) {
  shift = keeping_sign(shift);
  dropped = keeping_sign(dropped);
  if (out.dtype == DType::Float32 && out.contiguous() && in.contiguous() && mask.contiguous()) {
    parallel_for(out.numel(), grain_default, [&](int64_t begin, int64_t end) {
      random_loops().masked(out.ptr<float>() + begin, in.ptr<const float>() + begin,
                            mask.ptr<uint8_t>() + begin, end - begin, static_cast<float>(scale),
                            static_cast<float>(shift), static_cast<float>(dropped));
    });
    return;
  }
  dispatch_float("dropout", out.dtype, [&]<class T>() {
    const Scalar factors[] = {Scalar(scale), Scalar(shift), Scalar(dropped)};
    char* const data[] = {out.data, in.data, mask.data};
    const int64_t* const strides[] = {out.strides, in.strides, mask.strides};
    const size_t items[] = {sizeof(T), sizeof(T), 1};
    run_loop(affine_row<T>, 3, data, strides, items, out.sizes, out.ndim, factors);
  });
}

}  // namespace clew::kernels
