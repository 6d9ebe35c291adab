// Attention in blocks with a running maximum; its gradient recomputes the weights.
// May include: base/guided.h, kernels/sequence/attention.h, kernels/matmul/gemm_micro.h,
// kernels/math/vmath.h.
// Invariant: internal functions only; a task of backward owns a key head with its query heads,
// so that no two threads write one gradient.
#include <cmath>
#include <limits>

#include "base/guided.h"
#include "kernels/math/vmath.h"
#include "kernels/matmul/gemm_micro.h"
#include "kernels/sequence/attention.h"

namespace clew::kernels::CLEW_ISA {
namespace {

constexpr int64_t row_block = 64;   // queries at a time
constexpr int64_t key_block = 480;  // keys at a time: a multiple of every panel's width

template <class T> constexpr T never = -std::numeric_limits<T>::infinity();

template <class T, class View> auto* at(const View& v, int64_t b, int64_t h, int64_t row) {
  using P =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(v.data)>>, const T, T>;
  return reinterpret_cast<P*>(v.data) + b * v.stride[0] + h * v.stride[1] + row * v.stride[2];
}

// e^x for x that are not far above 0, as a power of two; what is below 2^-126.5 is 0. Scores are
// scaled by log2(e) only after the maximum has been subtracted: scaling them before would add a
// rounding error, which matters for large scores.
[[gnu::always_inline]] inline Vector<float> power_lanes(Vector<float> x) {
  constexpr float log2_e = 1.44269504088896340736f;
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  x = x < -88.0f ? Vector<float>{} - 88.0f : x;
  const Vector<float> t = x * log2_e + shift, r = x * log2_e - (t - shift);
  Vector<float> p = r * 1.535336187e-04f + 1.339887442e-03f;
  p = p * r + 9.618437358e-03f;
  p = p * r + 5.550332471e-02f;
  p = p * r + 2.402264791e-01f;
  p = p * r + 6.931472029e-01f;
  p = p * r + 1.0f;
  Vector<int32_t> bits;
  std::memcpy(&bits, &t, sizeof t);
  bits = (bits + (127 - std::bit_cast<int32_t>(shift))) << 23;
  Vector<float> scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}
inline Vector<double> power_lanes(Vector<double> x) {
  for (int l = 0; l < lanes<double>; ++l) x[l] = std::exp(x[l]);
  return x;
}

template <class S> Vector<S> load(const S* p) {
  Vector<S> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class S> void store(S* p, Vector<S> v) { std::memcpy(p, &v, sizeof v); }
// 0, 1, 2 ...
template <class S> Vector<S> lane_numbers() {
  Vector<S> v;
  for (int l = 0; l < lanes<S>; ++l) v[l] = static_cast<S>(l);
  return v;
}
template <class S> int64_t padded(int64_t n) { return ceil_div(n, lanes<S>) * lanes<S>; }

// Rows are whole vectors long: n is rounded up, what is beyond it is masked by the caller.
template <class S> S row_max(const S* row, int64_t n) {
  constexpr int L = lanes<S>;
  Vector<S> best = Vector<S>{} + never<S>;
  for (int64_t j = 0; j < n; j += L) {
    const Vector<S> v = load(row + j);
    best = v > best ? v : best;
  }
  return join_all_lanes<S>(best, [](auto a, auto b) { return b > a ? b : a; });
}
// A row's greatest score, and one over the sum of e^(score - top). Their sum as one logarithm would
// have too few digits for backward where scores are large.
template <class S> struct RowSum { S top, factor; };

// Turns scores into weights, and returns their sum.
template <class S> S row_weights(S* row, int64_t n, S shift) {
  Vector<S> sum{};
  for (int64_t j = 0; j < n; j += lanes<S>) {
    const Vector<S> w = power_lanes(load(row + j) - shift);
    store(row + j, w);
    sum += w;
  }
  return join_all_lanes<S>(sum, [](auto a, auto b) { return a + b; });
}
template <class S> void row_scale(S* row, int64_t n, S factor) {
  for (int64_t j = 0; j < n; ++j) row[j] *= factor;
}
// to = from * factor, or 0
template <class S> void row_scaled(S* to, const S* from, int64_t n, bool dead, S factor) {
  int64_t j = 0;
  for (; j + lanes<S> <= n; j += lanes<S>) {
    const Vector<S> v = load(from + j) * factor;
    store(to + j, dead ? Vector<S>{} : v);
  }
  for (; j < n; ++j) to[j] = dead ? S(0) : from[j] * factor;
}
// From scores to weights, and slope = weight * (slope - mean).
template <class S> void row_slope(S* slope, S* score, int64_t n, RowSum<S> sum, S mean) {
  for (int64_t j = 0; j < n; j += lanes<S>) {
    const Vector<S> w = power_lanes(load(score + j) - sum.top) * sum.factor;
    store(score + j, w);
    store(slope + j, w * (load(slope + j) - mean));
  }
}
template <class S> S dot(const S* a, int64_t a_step, const S* b, int64_t b_step, int64_t n) {
  int64_t j = 0;
  S sum = 0;
  if (a_step == 1 && b_step == 1 && n >= lanes<S>) {
    Vector<S> v{};
    for (; j + lanes<S> <= n; j += lanes<S>) v += load(a + j) * load(b + j);
    sum = join_all_lanes<S>(v, [](auto x, auto y) { return x + y; });
  }
  for (; j < n; ++j) sum += a[j * a_step] * b[j * b_step];
  return sum;
}

// A matrix of B's in packed panels, all of one depth.
template <class S> struct Packed {
  Panels panels{};
  const S* data = nullptr;
  int64_t depth = 0;
  int64_t elements() const { return panels.count() * panels.width * depth; }
  void fill(S* to, const S* from, int64_t lane_stride, int64_t k_stride) {
    for (int64_t q = 0; q < panels.count(); ++q) {
      pack<S, S>(to + q * panels.width * depth, panels.packed(q),
                 from + q * panels.width * lane_stride, lane_stride, k_stride, panels.columns(q),
                 depth);
    }
    data = to;
  }
};

// c (rows x all columns of b) = alpha * a @ b[k0, k0 + depth), plus c itself where `add`.
template <class S>
void multiply(int64_t rows, int64_t depth, const S* a, int64_t a_rs, int64_t a_ks,
              const Packed<S>& b, int64_t q0, int64_t q1, int64_t k0, S* c, int64_t c_rs, S alpha,
              bool add, bool whole) {
  constexpr int L = lanes<S>;
  TileTarget<S> t{.c = c,
                  .rs = c_rs,
                  .from = nullptr,
                  .from_rs = add ? c_rs : 0,
                  .last = L,
                  .alpha = alpha,
                  .scaled = alpha != S(1),
                  .fetch = {}};
  for (int64_t i = 0; i < rows;) {
    const int r = rows_for<1>(rows - i);
    for (int64_t q = q0; q < q1; ++q) {
      const int64_t width = b.panels.packed(q);
      // If there is room, sums beyond the last column are written as well.
      if (!whole) t.last = L - (width - b.panels.columns(q));
      t.c = c + i * c_rs + (q - q0) * b.panels.width;
      t.from = add ? t.c : nullptr;
      micro_for<S, false>(r, width / L)(depth, a + i * a_rs, a_rs, a_ks,
                                        b.data + q * b.panels.width * b.depth + k0 * width, width,
                                        t);
    }
    i += r;
  }
}

// One block: queries [i0, i0 + rows) of head h against keys [j0, j0 + cols).
template <class S> struct Pass {
  const AttentionShape& s;
  int64_t b, h, i0, rows, j0, cols;
  int64_t wide() const { return padded<S>(cols); }
  // Keys of this block that row i may see.
  int64_t seen(int64_t i) const { return s.causal ? most(0, least(cols, i0 + i + 1 - j0)) : cols; }
  // to[rows][key_block] = a @ packed keys (or values). Tiles of rows that see no key of a panel are
  // skipped.
  void against(S* to, const S* a, int64_t a_rs, int64_t a_ks, const Packed<S>& b, S alpha) const {
    const int64_t width = b.panels.width, first = j0 / width;
    const int64_t last = first + ceil_div(cols, width);
    for (int64_t q = first; q < last; ++q) {
      // With a causal mask the first `hidden` rows see no key of the panel.
      const int64_t hidden = s.causal ? most(0, q * width - i0) : 0;
      const int64_t from = least(rows, hidden / tile_rows<1> * tile_rows<1>);
      multiply<S>(rows - from, b.depth, a + from * a_rs, a_rs, a_ks, b, q, q + 1, 0,
                  to + from * key_block + q * width - j0, key_block, alpha, false, true);
    }
  }
  // The scale that the products take. With a mask of summands it is 1: the scale is then applied
  // where the mask is added, so that both are rounded once.
  S factor() const { return s.mask.data && !s.mask_is_bool ? S(1) : static_cast<S>(s.scale); }
  // Masks a row of scores; returns how many are left to look at, a whole number of vectors.
  int64_t mask_row(S* row, int64_t i) const {
    const int64_t n = seen(i), all = padded<S>(n);
    if (s.mask.data && s.mask_is_bool) {
      const char* m = at<char>(s.mask, b, h, i0 + i) + j0 * s.mask.stride[3];
      for (int64_t j = 0; j < n; ++j) row[j] = m[j * s.mask.stride[3]] ? row[j] : never<S>;
    } else if (s.mask.data) {
      const S* m = at<S>(s.mask, b, h, i0 + i) + j0 * s.mask.stride[3];
      const S scale = static_cast<S>(s.scale);
      for (int64_t j = 0; j < n; ++j) row[j] = row[j] * scale + m[j * s.mask.stride[3]];
    }
    if (n < all) {
      // Writes a whole vector, so that the next vector load does not wait for single stores.
      S* last = row + all - lanes<S>;
      const Vector<S> places = lane_numbers<S>();
      store(last,
            places < static_cast<S>(n - (all - lanes<S>)) ? load(last) : Vector<S>{} + never<S>);
    }
    return all;
  }
  // Products read whole tiles, so zeros are written from `from` (a whole number of vectors) to the
  // end of the tile.
  void clear_row(S* row, int64_t from) const {
    const int64_t end = least(wide(), from + tile_rows<1> + lanes<S>);
    for (int64_t j = from; j < end; j += lanes<S>) store(row + j, Vector<S>{});
  }
};

const LocalScratch packed_room, block_room;

int64_t last_key(const AttentionShape& s, int64_t i1) {
  return s.causal ? least(s.keys, i1) : s.keys;
}

template <class S>
void forward(const AttentionShape& s, const AttentionTarget& out, RowSum<S>* row_sums) {
  const int64_t blocks = ceil_div(s.queries, row_block), share = s.heads / s.kv_heads;
  const int64_t vw = padded<S>(s.value_width);
  parallel_guided(s.batch * s.heads * blocks, 1, [&](int64_t begin, int64_t end) {
    Packed<S> keys{panels_of<S>(s.keys), nullptr, s.width};
    Packed<S> values{panels_of<S>(s.value_width), nullptr, s.keys};
    S* pack_to = room<S>(packed_room, keys.elements() + values.elements());
    S* scores = room<S>(block_room, row_block * (key_block + 64 + vw + 2));
    S* sums = scores + row_block * (key_block + 64);
    S* top = sums + row_block * vw;
    S* total = top + row_block;
    int64_t packed = -1;
    for (int64_t task = begin; task < end && !stopped(); ++task) {
      const int64_t i0 = task % blocks * row_block, h = task / blocks % s.heads;
      const int64_t b = task / blocks / s.heads, kv = h / share;
      if (packed != b * s.kv_heads + kv) {
        packed = b * s.kv_heads + kv;
        keys.fill(pack_to, at<S>(s.k, b, kv, 0), s.k.stride[2], s.k.stride[3]);
        values.fill(pack_to + keys.elements(), at<S>(s.v, b, kv, 0), s.v.stride[3], s.v.stride[2]);
      }
      const int64_t rows = least(row_block, s.queries - i0), last = last_key(s, i0 + rows);
      for (int64_t i = 0; i < rows; ++i) top[i] = never<S>, total[i] = 0;
      for (int64_t j0 = 0; j0 < last; j0 += key_block) {
        const Pass<S> pass{s, b, h, i0, rows, j0, least(key_block, last - j0)};
        pass.against(scores, at<S>(s.q, b, h, i0), s.q.stride[2], s.q.stride[3], keys,
                     pass.factor());
        // Computes all maxima before all weights, so that joining the lanes of one row overlaps
        // with reading the next row.
        S bests[row_block];
        for (int64_t i = 0; i < rows; ++i) {
          S* row = scores + i * key_block;
          const S own = row_max(row, pass.mask_row(row, i));
          bests[i] = own > top[i] ? own : top[i];
        }
        for (int64_t i = 0; i < rows; ++i) {
          S* row = scores + i * key_block;
          const int64_t n = padded<S>(pass.seen(i));
          const S best = bests[i], shift = best == never<S> ? S(0) : best;
          const S sum = row_weights(row, n, shift);
          pass.clear_row(row, n);
          if (j0 > 0 && best != top[i]) {
            const S shrink = std::exp(top[i] - shift);
            total[i] *= shrink;
            row_scale(sums + i * vw, vw, shrink);
          }
          total[i] += sum;
          top[i] = best;
        }
        for (int64_t i = 0; i < rows;) {
          const int r = rows_for<1>(rows - i);
          const int64_t depth = pass.seen(i + r - 1);
          multiply<S>(r, depth, scores + i * key_block, key_block, 1, values, 0,
                      values.panels.count(), j0, sums + i * vw, vw, S(1), j0 > 0, true);
          i += r;
        }
      }
      RowSum<S>* sum_to = row_sums + (b * s.heads + h) * s.queries + i0;
      for (int64_t i = 0; i < rows; ++i) {
        const bool dead = total[i] == 0;
        const S factor = dead ? S(0) : S(1) / total[i];
        // Finite, since nan_watch looks at it.
        sum_to[i] = {dead ? S(0) : top[i], factor};
        S* to = at<S>(out, b, h, i0 + i);
        row_scaled(to, sums + i * vw, s.value_width, dead, factor);
      }
    }
  });
}

template <class S> void backward(const AttentionShape& s, const AttentionGrads& d) {
  const int64_t share = s.heads / s.kv_heads;
  const auto* row_sums = static_cast<const RowSum<S>*>(d.row_sums);
  const S scale = static_cast<S>(s.scale);
  parallel_guided(s.batch * s.kv_heads, 1, [&](int64_t begin, int64_t end) {
    const Panels by_width = panels_of<S>(s.width), by_value = panels_of<S>(s.value_width);
    Packed<S> keys{panels_of<S>(s.keys), nullptr, s.width};
    Packed<S> values{panels_of<S>(s.keys), nullptr, s.value_width};
    Packed<S> key_rows{by_width, nullptr, s.keys};
    Packed<S> query_rows{by_width, nullptr, row_block}, grad_rows{by_value, nullptr, row_block};
    S* to = room<S>(packed_room, keys.elements() + values.elements() + key_rows.elements() +
                                     query_rows.elements() + grad_rows.elements());
    S* weights = room<S>(block_room, 2 * row_block * (key_block + 64));
    S* slopes = weights + row_block * (key_block + 64);
    for (int64_t task = begin; task < end && !stopped(); ++task) {
      const int64_t kv = task % s.kv_heads, b = task / s.kv_heads;
      S* next = to;
      const S* k = at<S>(s.k, b, kv, 0);
      keys.fill(next, k, s.k.stride[2], s.k.stride[3]);
      values.fill(next += keys.elements(), at<S>(s.v, b, kv, 0), s.v.stride[2], s.v.stride[3]);
      key_rows.fill(next += values.elements(), k, s.k.stride[3], s.k.stride[2]);
      next += key_rows.elements();
      for (int64_t j = last_key(s, s.queries); j < s.keys; ++j) {
        std::memset(at<S>(d.dk, b, kv, j), 0, sizeof(S) * static_cast<size_t>(s.width));
        std::memset(at<S>(d.dv, b, kv, j), 0, sizeof(S) * static_cast<size_t>(s.value_width));
      }
      for (int64_t h = kv * share; h < (kv + 1) * share; ++h) {
        for (int64_t i0 = 0; i0 < s.queries; i0 += row_block) {
          const int64_t rows = least(row_block, s.queries - i0), last = last_key(s, i0 + rows);
          const S *q = at<S>(s.q, b, h, i0), *g = at<S>(d.g, b, h, i0);
          query_rows.depth = grad_rows.depth = rows;
          query_rows.fill(next, q, s.q.stride[3], s.q.stride[2]);
          grad_rows.fill(next + query_rows.elements(), g, d.g.stride[3], d.g.stride[2]);
          S means[row_block];
          for (int64_t i = 0; i < rows; ++i) {
            means[i] = dot(g + i * d.g.stride[2], d.g.stride[3], at<S>(d.out, b, h, i0 + i),
                           d.out.stride[3], s.value_width);
          }
          const RowSum<S>* sums = row_sums + (b * s.heads + h) * s.queries + i0;
          for (int64_t j0 = 0; j0 < last; j0 += key_block) {
            const Pass<S> pass{s, b, h, i0, rows, j0, least(key_block, last - j0)};
            pass.against(weights, q, s.q.stride[2], s.q.stride[3], keys, pass.factor());
            pass.against(slopes, g, d.g.stride[2], d.g.stride[3], values, S(1));
            for (int64_t i = 0; i < rows; ++i) {
              S *w = weights + i * key_block, *e = slopes + i * key_block;
              const int64_t n = pass.mask_row(w, i);
              row_slope(e, w, n, sums[i], means[i]);
              pass.clear_row(w, n);
              pass.clear_row(e, n);
            }
            for (int64_t i = 0; i < rows;) {
              const int r = rows_for<1>(rows - i);
              multiply<S>(r, pass.seen(i + r - 1), slopes + i * key_block, key_block, 1, key_rows,
                          0, by_width.count(), j0, at<S>(d.dq, b, h, i0 + i), d.dq.stride[2], scale,
                          j0 > 0, false);
              i += r;
            }
            // Keys that an earlier block of queries saw have sums already.
            const bool first = h == kv * share;
            const int64_t before = !first    ? pass.cols
                                   : i0 == 0 ? 0
                                             : most(0, least(pass.cols, last_key(s, i0) - j0));
            for (int64_t j = 0; j < pass.cols;) {
              const bool add = j < before;
              const int r = rows_for<1>((add ? before : pass.cols) - j);
              // Earlier queries do not see these keys.
              const int64_t from = s.causal ? most(0, j0 + j - i0) : 0;
              const S *w = weights + from * key_block + j, *e = slopes + from * key_block + j;
              multiply<S>(r, rows - from, w, 1, key_block, grad_rows, 0, by_value.count(), from,
                          at<S>(d.dv, b, kv, j0 + j), d.dv.stride[2], S(1), add, false);
              multiply<S>(r, rows - from, e, 1, key_block, query_rows, 0, by_width.count(), from,
                          at<S>(d.dk, b, kv, j0 + j), d.dk.stride[2], scale, add, false);
              j += r;
            }
          }
        }
      }
    }
  });
}

}  // namespace

void attention_forward(const AttentionShape& s, const AttentionTarget& out, void* row_sums) {
  if (s.dtype == DType::Float32)
    forward(s, out, static_cast<RowSum<float>*>(row_sums));
  else
    forward(s, out, static_cast<RowSum<double>*>(row_sums));
}

void attention_backward(const AttentionShape& s, const AttentionGrads& grads) {
  if (s.dtype == DType::Float32)
    backward<float>(s, grads);
  else
    backward<double>(s, grads);
}

}  // namespace clew::kernels::CLEW_ISA
