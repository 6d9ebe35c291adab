// The loops all reductions share: kept and reduced axes, rows or columns, blocks, threads.
// May include: base, kernels.
// Invariant: partial results are merged in a fixed order, so equal inputs and thread counts give
// equal bits.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <type_traits>

#include "base/long_work.h"
#include "base/ndview.h"
#include "kernels/reduce/reduce_loops.h"

namespace clew::kernels {

// The strides of an operand of this shape whose elements lie in order, next to each other.
inline Dims strides_in_order(const NdView& shape) {
  Dims strides(shape.ndim, 1);
  for (int d = shape.ndim - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * std::max<int64_t>(shape.sizes[d + 1], 1);
  return strides;
}

// One axis of the iteration: its length and the strides (in elements) of the source, the result and
// an auxiliary operand that has the result's shape.
struct ReduceAxis {
  int64_t size;
  int64_t src;
  int64_t dst;
  int64_t aux;
};

struct ReducePlan {
  SmallVec<ReduceAxis, 6> kept;     // by falling source stride, coalesced
  SmallVec<ReduceAxis, 6> reduced;  // likewise
  int64_t outputs = 1;
  int64_t count = 1;  // elements that make one output

  // `dst` has the source's rank and size 1 in the reduced axes; `aux_strides` (may be null) belong
  // to an operand of dst's shape.
  ReducePlan(const NdView& dst, const NdView& src, const int64_t* aux_strides = nullptr);

  // Offsets of output number k in the order of the kept axes.
  struct Place {
    int64_t src = 0, dst = 0, aux = 0;
  };
  Place place(int64_t k) const {
    Place p;
    for (int d = kept.size() - 1; d >= 0; --d) {
      int64_t i = d ? k % kept[d].size : k;
      if (d) k /= kept[d].size;
      p.src += i * kept[d].src;
      p.dst += i * kept[d].dst;
      p.aux += i * kept[d].aux;
    }
    return p;
  }
  // Each output is made of one element, and these are neighbours: columns of one row.
  bool is_one_row() const { return reduced.empty() && !kept.empty() && kept.back().src == 1; }
  // Columns: neighbouring outputs are nearer in memory than neighbouring terms of one output, or
  // these are few.
  bool by_columns(int64_t few = 16) const {
    if (kept.empty() || reduced.empty()) return false;
    int64_t r = reduced.back().src, k = kept.back().src;
    if (k == 0) return false;  // neighbouring outputs are made of the same elements
    return r > k || (count < few && kept.back().size >= 16);
  }
};

// A reduction over some far axes and a short near one, as of [n, a, m, b] over a and b: where the
// rows are short it is done in two steps, first of all rows side by side, whose result `middle`
// has.
class TwoSteps {
 public:
  TwoSteps(const NdView& dst, const NdView& src);
  explicit operator bool() const { return room_ != nullptr; }
  NdView middle() const;

 private:
  Dims sizes_, strides_;
  DType dtype_;
  std::unique_ptr<char[]> room_;
};

// The outputs of a reduction that are made of elements of their own. Along an axis that is kept and
// that the source repeats (stride 0) all others are copies of the first.
class DistinctOutputs {
 public:
  static bool repeat(const NdView& dst, const NdView& src) {
    for (int d = 0; d < src.ndim; ++d)
      if (src.strides[d] == 0 && src.sizes[d] > 1 && dst.sizes[d] > 1) return true;
    return false;
  }
  DistinctOutputs(const NdView& dst, const NdView& src);
  // What is reduced, and to where.
  NdView dst() const;
  NdView src() const;
  // Gives the others their values.
  void copy() const;

 private:
  NdView dst_, src_;
  Dims dst_sizes_, src_sizes_;  // 1 along what is repeated
};

// Calls f(source offset) for every index tuple of axes[0..n), axis 0 limited to [lo, hi).
template <class F> void walk_axes(const ReduceAxis* axes, int n, int64_t lo, int64_t hi, F&& f) {
  if (n == 0) {
    f(int64_t{0});
    return;
  }
  if (n == 1) {
    for (int64_t i = lo; i < hi; ++i) f(i * axes[0].src);
    return;
  }
  SmallVec<int64_t, 8> index(n, 0);
  int64_t offset = lo * axes[0].src;
  index[0] = lo;
  if (lo >= hi) return;
  while (true) {
    f(offset);
    int d = n - 1;
    for (; d >= 0; --d) {
      offset += axes[d].src;
      if (++index[d] < (d == 0 ? hi : axes[d].size)) break;
      if (d == 0) return;
      offset -= axes[d].size * axes[d].src;
      index[d] = 0;
    }
  }
}

// A reducer R says how terms become a result:
//   In, Aux, Out      element types of source, auxiliary operand and result
//   Small, Big        the running value inside a block, and across blocks
//   Small zero() const;  void add(Small&, In, Aux) const;
//   Big start() const;   void merge(Big&, Small) const;  void join(Big&, const Big&) const;
//   Out finish(const Big&) const;
// and may have
//   const ReduceLoops<In, Big>* loops;   vector loops for neighbours in memory, or nothing of use
template <class R>
concept HasLoops = requires(const R& r) {
  r.loops->row;
};
constexpr int64_t reduce_block = 16;     // terms a Small may take before it is merged into a Big
constexpr int64_t reduce_columns = 512;  // columns done together
constexpr int64_t wide_columns = 2048;   // by vector loops
constexpr int reduce_lanes = 32;

// Adds n terms at p to `total`. Out of line, as the columns are: each is called from several loops.
template <class R>
[[gnu::noinline]] void reduce_row(const R& reducer, const typename R::In* p, int64_t stride,
                                  int64_t n, typename R::Aux aux, typename R::Big& total) {
  using Small = typename R::Small;
  constexpr int L = reduce_lanes;
  const R r = reducer;  // a copy that no running value of one byte may overlap
  if constexpr (HasLoops<R>) {
    if (stride == 1) return r.loops->row(p, n, total);
  }
  if ((stride == 0 || (HasLoops<R> && stride != 1)) && n >= 2 * L) {
    // Elements that lie apart, or one in place of all, go through the same loops side by side.
    constexpr int64_t room_size = 512;
    alignas(64) std::byte bytes[room_size * sizeof(typename R::In)];
    auto* room = reinterpret_cast<typename R::In*>(bytes);
    if (stride == 0) std::uninitialized_fill_n(room, std::min(n, room_size), *p);
    for (int64_t i = 0; i < n; i += room_size) {
      const int64_t count = std::min(room_size, n - i);
      const auto* from = p + i * stride;
      if (stride == 2)  // vectors are loaded and thinned
        for (int64_t k = 0; k < count; ++k) std::construct_at(room + k, from[2 * k]);
      else if (stride != 0)
        for (int64_t k = 0; k < count; ++k) std::construct_at(room + k, from[k * stride]);
      reduce_row(reducer, room, 1, count, aux, total);
    }
    return;
  }
  int64_t i = 0;
  if (!HasLoops<R> && stride == 1 && n >= 2 * L) {
    typename R::Big part[4] = {r.start(), r.start(), r.start(),
                               r.start()};  // four chains of additions side by side
    while (i + L <= n) {
      Small lanes[L];
      for (int l = 0; l < L; ++l) lanes[l] = r.zero();
      int64_t stop = std::min(n - L, i + (reduce_block - 1) * L);
      for (; i <= stop; i += L) {
        for (int l = 0; l < L; ++l) r.add(lanes[l], p[i + l], aux);
      }
      for (int l = 0; l < L; ++l) r.merge(part[l % 4], lanes[l]);
    }
    for (const auto& p4 : part) r.join(total, p4);
  }
  while (i < n) {
    Small s = r.zero();
    int64_t stop = std::min(n, i + reduce_block);
    if (stride == 1) {
      for (; i < stop; ++i) r.add(s, p[i], aux);
    } else {
      for (; i < stop; ++i) r.add(s, p[i * stride], aux);
    }
    r.merge(total, s);
  }
}

// Where results go: finished into `out`, or as they are into `partial` (by output number) when it
// is set.
template <class R> struct ReduceSink {
  typename R::Out* out;
  typename R::Big* partial;
  void put(const R& r, int64_t number, int64_t dst, const typename R::Big& b) const {
    if (partial)
      partial[number] = b;
    else
      out[dst] = r.finish(b);
  }
};

// reduce_rows() of rows that are too short for a call each.
template <class R>
void reduce_short_rows(const R& r, const ReducePlan& plan, const typename R::In* src, int64_t lo,
                       int64_t hi, int64_t u0, int64_t u1, const ReduceSink<R>& sink) {
  constexpr int64_t together = 64;
  typename R::Big totals[together];
  const ReduceAxis& last = plan.kept.back();
  for (int64_t u = u0, many; u < u1; u += many) {
    many = std::min({together, u1 - u, last.size - u % last.size});
    const ReducePlan::Place at = plan.place(u);
    for (int64_t k = 0; k < many; ++k) totals[k] = r.start();
    r.loops->short_rows(src + at.src + lo, last.src, hi - lo, many, totals);
    for (int64_t k = 0; k < many; ++k) sink.put(r, u + k, at.dst + k * last.dst, totals[k]);
  }
}

// Reduces the units [u0, u1) over the range [lo, hi) of the first reduced axis.
template <class R>
void reduce_rows(const R& r, const ReducePlan& plan, const typename R::In* src,
                 const typename R::Aux* aux, int64_t lo, int64_t hi, int64_t u0, int64_t u1,
                 const ReduceSink<R>& sink) {
  int m = plan.reduced.size();
  if constexpr (HasLoops<R>) {
    if (m == 1 && plan.reduced[0].src == 1 && hi - lo < short_row && !plan.kept.empty() &&
        r.loops->short_rows)
      return reduce_short_rows(r, plan, src, lo, hi, u0, u1, sink);
  }
  for (int64_t u = u0; u < u1; ++u) {
    ReducePlan::Place at = plan.place(u);
    typename R::Big total = r.start();
    typename R::Aux a = aux ? aux[at.aux] : typename R::Aux{};
    const typename R::In* p = src + at.src;
    if (m == 0) {
      reduce_row(r, p, 1, plan.count, a, total);
    } else if (m == 1) {
      int64_t s = plan.reduced[0].src;
      reduce_row(r, p + lo * s, s, hi - lo, a, total);
    } else {
      const ReduceAxis& last = plan.reduced[m - 1];
      walk_axes(plan.reduced.data(), m - 1, lo, hi,
                [&](int64_t off) { reduce_row(r, p + off, last.src, last.size, a, total); });
    }
    sink.put(r, u, at.dst, total);
  }
}

// Adds a term to each of w neighbouring columns.
template <class R>
[[gnu::noinline]] void reduce_line(const R& reducer, const typename R::In* p, int64_t stride,
                                   int64_t w, const typename R::Aux* aux, typename R::Small* sums) {
  const R r = reducer;
  if (stride == 1) {
    for (int64_t j = 0; j < w; ++j) r.add(sums[j], p[j], aux[j]);
  } else {
    for (int64_t j = 0; j < w; ++j) r.add(sums[j], p[j * stride], aux[j]);
  }
}

template <class R>
void reduce_cols(const R& r, const ReducePlan& plan, const typename R::In* src,
                 const typename R::Aux* aux, int64_t lo, int64_t hi, int64_t u0, int64_t u1,
                 const ReduceSink<R>& sink) {
  using In = typename R::In;
  using Aux = typename R::Aux;
  constexpr int64_t W = reduce_columns;
  const ReduceAxis inner = plan.kept.back();
  int64_t blocks = (inner.size + W - 1) / W;
  auto small = std::make_unique<typename R::Small[]>(W);
  auto big = std::make_unique<typename R::Big[]>(W);
  auto side = std::make_unique<Aux[]>(W);
  for (int64_t u = u0; u < u1; ++u) {
    int64_t first = (u / blocks) * inner.size + (u % blocks) * W;
    int64_t w = std::min(W, inner.size - (u % blocks) * W);
    ReducePlan::Place at = plan.place(first);
    typename R::Small* s = small.get();
    typename R::Big* b = big.get();
    Aux* a = side.get();
    for (int64_t j = 0; j < w; ++j) {
      s[j] = r.zero();
      b[j] = r.start();
      if (aux) a[j] = aux[at.aux + j * inner.aux];
    }
    int64_t pending = 0;
    auto flush = [&] {
      for (int64_t j = 0; j < w; ++j) {
        r.merge(b[j], s[j]);
        s[j] = r.zero();
      }
      pending = 0;
    };
    const In* base = src + at.src;
    walk_axes(plan.reduced.data(), plan.reduced.size(), lo, hi, [&](int64_t off) {
      reduce_line(r, base + off, inner.src, w, a, s);
      if (++pending == reduce_block) flush();
    });
    flush();
    for (int64_t j = 0; j < w; ++j) {
      sink.put(r, first + j, at.dst + j * inner.dst, b[j]);
    }
  }
}

// The same by the reducer's vector loops, for neighbouring columns.
template <class R>
void reduce_wide_cols(const R& r, const ReducePlan& plan, const typename R::In* src, int64_t lo,
                      int64_t hi, int64_t u0, int64_t u1, const ReduceSink<R>& sink) {
  using In = typename R::In;
  const ReduceAxis inner = plan.kept.back();
  int64_t blocks = (inner.size + wide_columns - 1) / wide_columns;
  // Narrow rows that follow each other in memory are taken several at a time.
  int64_t fold = 1;
  if (inner.size < 64 && plan.reduced.size() == 1 && plan.reduced[0].src == inner.size)
    fold = std::min((hi - lo) / reduce_batch, 64 / std::gcd(inner.size, int64_t{64}));
  fold = std::max<int64_t>(fold, 1);
  int64_t most = std::min(inner.size, wide_columns) * fold;
  std::unique_ptr<typename R::Big[]> room(new typename R::Big[static_cast<size_t>(most)]);
  typename R::Big* big = room.get();
  const In* rows[reduce_batch];
  for (int64_t u = u0; u < u1; ++u) {
    int64_t first = (u / blocks) * inner.size + (u % blocks) * wide_columns;
    int64_t w = std::min(wide_columns, inner.size - (u % blocks) * wide_columns);
    ReducePlan::Place at = plan.place(first);
    const In* base = src + at.src;
    for (int64_t j = 0; j < w * fold; ++j) big[j] = r.start();
    int64_t count = 0, begin = lo;
    auto flush = [&](int64_t width) {
      if (count) r.loops->columns(rows, count, width, big);
      count = 0;
    };
    if (fold > 1) {
      for (; begin + fold <= hi; begin += fold) {
        rows[count++] = base + begin * w;
        if (count == reduce_batch) flush(w * fold);
      }
      flush(w * fold);
      for (int64_t j = w; j < w * fold; ++j) r.join(big[j % w], big[j]);
    }
    walk_axes(plan.reduced.data(), plan.reduced.size(), begin, hi, [&](int64_t off) {
      rows[count++] = base + off;
      if (count == reduce_batch) flush(w);
    });
    flush(w);
    if (!sink.partial && inner.dst == 1) {
      const R own = r;  // a copy that no result may overlap
      typename R::Out* to = sink.out + at.dst;
      for (int64_t j = 0; j < w; ++j) to[j] = own.finish(big[j]);
      continue;
    }
    for (int64_t j = 0; j < w; ++j) sink.put(r, first + j, at.dst + j * inner.dst, big[j]);
  }
}

// A type-erased reducer: the code that cuts the work into pieces for threads is compiled once for
// all types.
struct Reducer {
  const void* r;
  const void* in;
  const void* aux;
  void* out;
  size_t item;       // bytes of a running value
  bool fast_lines;   // vector loops for neighbouring columns
  int64_t shortest;  // shorter rows are taken as columns

  // Reduces units [u0, u1) over [lo, hi) of the first reduced axis, into `partial` when it is set.
  void (*run)(const Reducer&, const ReducePlan&, int64_t lo, int64_t hi, int64_t u0, int64_t u1,
              void* partial);
  // Joins `pieces` lists of the outputs' running values; none: the results of no terms.
  void (*finish)(const Reducer&, const ReducePlan&, char* partial, int64_t pieces);
};
void reduce_plan(const Reducer& reducer, const ReducePlan& plan);

template <class R>
void reduce_with(const R& r, const NdView& dst, const NdView& src,
                 const typename R::Aux* aux = nullptr, const int64_t* aux_strides = nullptr) {
  using Big = typename R::Big;
  using In = typename R::In;
  using Aux = typename R::Aux;
  using Out = typename R::Out;
  if (!aux && DistinctOutputs::repeat(dst, src)) {
    const DistinctOutputs distinct(dst, src);
    reduce_with(r, distinct.dst(), distinct.src());
    return distinct.copy();
  }
  auto run = [](const Reducer& e, const ReducePlan& plan, int64_t lo, int64_t hi, int64_t u0,
                int64_t u1, void* partial) {
    const R& r = *static_cast<const R*>(e.r);
    const auto* in = static_cast<const In*>(e.in);
    const auto* aux = static_cast<const Aux*>(e.aux);
    const ReduceSink<R> sink{static_cast<Out*>(e.out), static_cast<Big*>(partial)};
    const bool cols = plan.by_columns(e.shortest) || plan.is_one_row();
    if (!cols) return reduce_rows(r, plan, in, aux, lo, hi, u0, u1, sink);
    if constexpr (HasLoops<R>) {
      if (plan.kept.back().src == 1) return reduce_wide_cols(r, plan, in, lo, hi, u0, u1, sink);
    }
    reduce_cols(r, plan, in, aux, lo, hi, u0, u1, sink);
  };
  auto finish = [](const Reducer& e, const ReducePlan& plan, char* partial, int64_t pieces) {
    const R& r = *static_cast<const R*>(e.r);
    const auto* part = reinterpret_cast<const Big*>(partial);
    for (int64_t o = 0; o < plan.outputs; ++o) {
      Big b = pieces ? part[o] : r.start();
      for (int64_t k = 1; k < pieces; ++k) r.join(b, part[k * plan.outputs + o]);
      static_cast<Out*>(e.out)[plan.place(o).dst] = r.finish(b);
    }
  };
  static_assert(std::is_trivially_copyable_v<Big> && alignof(Big) <= alignof(std::max_align_t));
  int64_t shortest = 16;
  if constexpr (HasLoops<R>) shortest = r.loops->shortest;
  reduce_plan({&r, src.ptr<const In>(), aux, dst.ptr<Out>(), sizeof(Big), HasLoops<R>, shortest,
               run, finish},
              ReducePlan(dst, src, aux_strides));
}

}  // namespace clew::kernels
