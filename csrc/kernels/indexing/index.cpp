// Gathering and scattering loops.
// May include: base, kernels.
// Invariant: two threads never write the same element; each place sees its writes in index order.
#include "kernels/indexing/index.h"

#include <atomic>
#include <cmath>
#include <vector>

#include "base/long_work.h"
#include "base/read_once.h"
#include "kernels/core/index_walk.h"
#include "kernels/core/stream.h"

namespace clew::kernels {

namespace {

// Functors that combine a new value with the one that is already there.
struct Assign {
  template <class T> void operator()(T& at, const T& v) const { at = v; }
};
struct Add {
  template <class T> void operator()(T& at, const T& v) const {
    if constexpr (std::is_same_v<T, bool>)
      at = at || v;
    else if constexpr (std::is_integral_v<T>)  // sums wrap around
      at = static_cast<T>(static_cast<uint64_t>(at) + static_cast<uint64_t>(v));
    else
      at = static_cast<T>(static_cast<compute_t<T>>(at) + static_cast<compute_t<T>>(v));
  }
};
// The rarer combinations in one functor. It tests the kind for each element, which costs less than
// the memory access.
struct Other {
  Combine combine;
  template <class T> void operator()(T& at, const T& v) const {
    if (combine == Combine::Multiply) {
      if constexpr (std::is_same_v<T, bool>)
        at = at && v;
      else if constexpr (std::is_integral_v<T>)
        at = static_cast<T>(static_cast<uint64_t>(at) * static_cast<uint64_t>(v));
      else
        at = static_cast<T>(static_cast<compute_t<T>>(at) * static_cast<compute_t<T>>(v));
    } else if constexpr (is_float_v<T>) {
      const auto a = static_cast<compute_t<T>>(at), b = static_cast<compute_t<T>>(v);
      // Chosen and always written: which is greater, no processor predicts.
      const bool better = combine == Combine::Max ? b > a : b < a;
      at = better | (b != b) ? v : at;
    } else if constexpr (!is_complex_v<T>) {
      at = combine == Combine::Max ? std::max(at, v) : std::min(at, v);
    }
  }
};

// The same with the new value first.
template <class F> struct Into {
  F put;
  template <class T> void operator()(const T& v, T& at) const { put(at, v); }
};

// Calls f with an element type and a way of combining.
template <class F> void dispatch_combine(DType dtype, Combine combine, F&& f) {
  if (combine == Combine::Assign) {
    dispatch_size(itemsize(dtype), [&]<class T>() { f.template operator()<T>(Assign{}); });
    return;
  }
  if (combine == Combine::Add) {  // sums are of the same bits, with a sign or without
    dispatch(as_signed(dtype), PlainTypes{}, [&]<class T>() { f.template operator()<T>(Add{}); });
    return;
  }
  dispatch(dtype, AllTypes{}, [&]<class T>() { f.template operator()<T>(Other{combine}); });
}

int64_t product(const int64_t* sizes, int begin, int end) {
  int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= sizes[d];
  return n;
}

// f(j, k) for the places k = index[j * step]; false from the first one on that is out of range.
template <class F>
[[gnu::always_inline]] inline bool each_place(const int64_t* index, int64_t step, int64_t count,
                                              int64_t size, F&& f) {
#pragma GCC unroll 4
  for (int64_t j = 0; j < count; ++j) {
    const int64_t k = read_once(index[j * step]);
    if (!within(k, size)) return false;
    f(j, k);
  }
  return true;
}

// The number of elements that are prefetched for writing at a time.
constexpr int64_t fetch_piece = 1024;

// Fetches the lines of p[0..n), to be written.
template <class T> void fetch(T* p, int64_t n) {
  constexpr auto step = std::max<int64_t>(1, line_bytes / static_cast<int64_t>(sizeof(T)));
  for (int64_t k = 0; k < n; k += step) __builtin_prefetch(p + k, 1);
}

// Two arrays' dims after an axis, with neighbours joined where memory allows.
struct Block {
  Dims sizes, a, b;
  int64_t count = 1;
  bool dense = true;  // both lie contiguously

  Block(const NdView& x, const NdView& y, int from) {
    for (int d = from; d < x.ndim; ++d) {
      count *= x.sizes[d];
      if (x.sizes[d] == 1) continue;
      int last = sizes.size() - 1;
      if (last >= 0 && a[last] == x.sizes[d] * x.strides[d] &&
          b[last] == x.sizes[d] * y.strides[d]) {
        sizes[last] *= x.sizes[d];
        a[last] = x.strides[d];
        b[last] = y.strides[d];
        continue;
      }
      sizes.push_back(x.sizes[d]);
      a.push_back(x.strides[d]);
      b.push_back(y.strides[d]);
    }
    dense = sizes.empty() || (sizes.size() == 1 && a[0] == 1 && b[0] == 1);
  }
  // f(element of x, element of y) for every element. Out of line: several loops call it.
  template <class T, class F> [[gnu::noinline]] void each(T* x, T* y, F f) const {
    if (dense) {
      for (int64_t i = 0; i < count; ++i) f(x[i], y[i]);
      return;
    }
    if (count == 0) return;
    int last = sizes.size() - 1;
    int64_t n = sizes[last];
    int64_t sa = a[last];
    int64_t sb = b[last];
    if (last == 0) {
      for (int64_t i = 0; i < n; ++i) f(x[i * sa], y[i * sb]);
      return;
    }
    const int64_t* strides[2] = {a.data(), b.data()};
    Walk<2> walk(sizes.data(), last, strides);
    for (int64_t r = walk.count(); r > 0; --r, walk.next()) {
      T* px = x + walk.offset[0];
      T* py = y + walk.offset[1];
      for (int64_t i = 0; i < n; ++i) f(px[i * sa], py[i * sb]);
    }
  }
};

}  // namespace

void accumulate(const NdView& dst, const NdView& src) {
  dispatch(dst.dtype, AllTypes{},
           [&]<class T>() { Block(dst, src, 0).each(dst.ptr<T>(), src.ptr<T>(), Add{}); });
}

void divide_by(const NdView& dst, const NdView& src) {
  dispatch(dst.dtype, InexactTypes{}, [&]<class T>() {
    Block(dst, src, 0).each(dst.ptr<T>(), src.ptr<T>(), [](T& d, const T& s) {
      d = static_cast<T>(static_cast<compute_t<T>>(d) / static_cast<compute_t<T>>(s));
    });
  });
}

void divide_by_counts(const NdView& x, const int64_t* counts, int64_t size, int64_t each) {
  const int64_t blocks = x.numel() / std::max<int64_t>(each, 1);
  dispatch(x.dtype, AllTypes{}, [&]<class T>() {
    T* p = x.ptr<T>();
    for (int64_t b = 0; b < blocks; ++b, p += each) {
      const int64_t by = counts[b % size];
      if (by <= 1) continue;
      for (int64_t i = 0; i < each; ++i) {
        if constexpr (std::is_same_v<T, bool>) {
          p[i] = false;
        } else if constexpr (std::is_unsigned_v<T>) {
          p[i] = static_cast<T>(p[i] / static_cast<uint64_t>(by));
        } else if constexpr (std::is_integral_v<T>) {
          auto v = static_cast<int64_t>(p[i]);
          p[i] = static_cast<T>(v / by - (v % by < 0));
        } else {
          using C = compute_t<T>;
          p[i] = static_cast<T>(static_cast<C>(p[i]) / convert<C>(by));
        }
      }
    }
  });
}

// One element of each source after another; `count` is K, or not known beforehand (0).
template <class T, int K>
static void interleave(T* out, const char* const* src, int count, int64_t begin, int64_t end) {
  if constexpr (K > 0) {
    const T* from[K];
    for (int k = 0; k < K; ++k) from[k] = reinterpret_cast<const T*>(src[k]);
#pragma GCC ivdep
    for (int64_t r = begin; r < end; ++r)
      for (int k = 0; k < K; ++k) out[r * K + k] = from[k][r];
    return;
  }
  constexpr int64_t piece = 256;  // rows whose lines stay in the cache for the next source
  for (; begin < end; begin += piece) {
    const int64_t stop = std::min(end, begin + piece);
    for (int k = 0; k < count; ++k) {
      const T* from = reinterpret_cast<const T*>(src[k]);
      for (int64_t r = begin; r < stop; ++r) out[r * count + k] = from[r];
    }
  }
}
template <class T>
static void interleave_rows(char* out, const char* const* src, int count, int64_t rows) {
  parallel_for(rows, grain_default / count, [&](int64_t begin, int64_t end) {
    auto f = count == 2   ? interleave<T, 2>
             : count == 3 ? interleave<T, 3>
             : count == 4 ? interleave<T, 4>
                          : interleave<T, 0>;
    f(reinterpret_cast<T*>(out), src, count, begin, end);
  });
}

void cat_rows(char* out, const char* const* src, const int64_t* bytes, const int64_t* steps,
              int count, int64_t rows) {
  int64_t row = 0;
  for (int k = 0; k < count; ++k) row += bytes[k];
  if (row == 0 || rows == 0) return;
  if (rows == 1) {
    for (int k = 0; k < count; ++k) {
      parallel_for(bytes[k], 1 << 18, [&](int64_t begin, int64_t end) {
        std::memcpy(out + begin, src[k] + begin, static_cast<size_t>(end - begin));
      });
      out += bytes[k];
    }
    return;
  }
  bool single = bytes[0] <= 16 && std::has_single_bit(static_cast<uint64_t>(bytes[0]));
  for (int k = 0; k < count; ++k) single = single && bytes[k] == bytes[0] && steps[k] == bytes[0];
  if (single) {
    return dispatch_size(static_cast<size_t>(bytes[0]),
                         [&]<class T>() { interleave_rows<T>(out, src, count, rows); });
  }
  // One source after the other, in as many rows as stay in the nearest cache meanwhile.
  const int64_t together = std::max<int64_t>(1, (1 << 14) / row);
  parallel_for(rows, std::max<int64_t>(1, (1 << 18) / row), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += together) {
      const int64_t n = std::min(together, end - first);
      char* column = out + first * row;
      for (int k = 0; k < count; ++k) {
        const auto length = static_cast<size_t>(bytes[k]);
        const int64_t step = steps[k];
        const char* from = src[k] + first * step;
        char* to = column;
        for (int64_t r = 0; r < n; ++r, to += row, from += step) copy_bytes(to, from, length);
        column += length;
      }
    }
  });
}

namespace {

// A run of neighbouring elements whose places are neighbours as well. Padding and slices by index
// consist of few runs.
struct PlaceRun {
  int64_t first, place, count;
};
// All runs of places[0..n), or none where they are short or not all below the total.
std::vector<PlaceRun> long_runs(const int64_t* places, int64_t n, int64_t total) {
  constexpr int64_t least = 4;  // elements of a run, on average
  std::vector<PlaceRun> runs;
  int64_t next = -1;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t place = read_once(places[k]);
    if (!within(place, total)) return {};
    if (place == next) {
      ++runs.back().count;
      ++next;
      continue;
    }
    if (static_cast<int64_t>(runs.size() + 1) * least > n) return {};
    runs.push_back({k, place, 1});
    next = place + 1;
  }
  return runs;
}

}  // namespace

bool take_at(const NdView& out, const NdView& src, int axis, const int64_t* places, int64_t scale,
             int64_t total) {
  const LongWork work(out.numel());
  Block block(out, src, axis + 1);
  int64_t picks = out.sizes[axis];
  int64_t outer = product(out.sizes, 0, axis);
  int64_t rows = outer * picks;
  if (rows == 0 || block.count == 0) return true;
  const int64_t* strides[2] = {out.strides, src.strides};
  int64_t step = out.strides[axis];
  std::atomic<bool> ok = true;
  constexpr int64_t few = 256;
  std::vector<PlaceRun> runs;
  if (block.count == 1 && step == 1 && scale == 1 && outer > 1)
    runs = long_runs(places, picks, total);
  dispatch_size(itemsize(out.dtype), [&]<class T>() {
    T* to = out.ptr<T>();
    T* from = src.ptr<T>();
    if (!runs.empty()) {
      parallel_for(outer, std::max<int64_t>(1, grain_default / picks),
                   [&](int64_t begin, int64_t end) {
                     Walk<2> walk(out.sizes, axis, strides);
                     walk.seek(begin);
                     for (int64_t r = begin; r < end; ++r, walk.next()) {
                       T *o = to + walk.offset[0], *s = from + walk.offset[1];
                       for (const PlaceRun& run : runs) {
                         if (run.count == 1)
                           o[run.first] = s[run.place];
                         else
                           std::copy_n(s + run.place, run.count, o + run.first);
                       }
                     }
                   });
      return;
    }
    // Calls f(k, place) for the places of k ... stop - 1, as long as they are in range.
    auto each = [&](int64_t k, int64_t stop, auto&& f) {
#pragma GCC unroll 4
      for (; k < stop; ++k) {
        const int64_t place = read_once(places[k]);
        if (!within(place, total)) return false;
        f(k, place);
      }
      return true;
    };
    auto some = [&](T* o, T* s, int64_t k, int64_t stop) {
      if (block.count == 1 && step == 1) fetch(o + k, stop - k);
      if (block.count == 1 && step == 1 && scale == 1)
        return each(k, stop, [&](int64_t i, int64_t place) { o[i] = s[place]; });
      if (block.count == 1)
        return each(k, stop, [&](int64_t i, int64_t place) { o[i * step] = s[place * scale]; });
      if (block.dense) {
        auto bytes = sizeof(T) * static_cast<size_t>(block.count);
        return each(k, stop, [&](int64_t i, int64_t place) {
          copy_bytes(o + i * step, s + place * scale, bytes);
        });
      }
      return each(k, stop, [&](int64_t i, int64_t place) {
        block.each(o + i * step, s + place * scale, Assign{});
      });
    };
    // Few places for each of many rows are checked once.
    if (block.count == 1 && picks <= few && outer > 1) {
      int64_t own[few];
      if (!each(0, picks, [&](int64_t k, int64_t place) { own[k] = place * scale; })) {
        ok = false;
        return;
      }
      parallel_for(outer, std::max<int64_t>(1, grain_default / picks),
                   [&](int64_t begin, int64_t end) {
                     Walk<2> walk(out.sizes, axis, strides);
                     walk.seek(begin);
                     const int64_t n = picks, by = step;  // of this loop alone
                     for (int64_t r = begin; r < end; ++r, walk.next()) {
                       T* o = to + walk.offset[0];
                       const T* s = from + walk.offset[1];
                       for (int64_t k = 0; k < n; ++k) o[k * by] = s[own[k]];
                     }
                   });
      return;
    }
    parallel_for(rows, std::max<int64_t>(1, grain_default / block.count),
                 [&](int64_t begin, int64_t end) {
                   Walk<2> walk(out.sizes, axis, strides);
                   for (int64_t at = begin; at < end;) {
                     int64_t k = at % picks;
                     int64_t stop = std::min(picks, k + end - at);
                     if (block.count == 1) stop = std::min(stop, k + fetch_piece);
                     walk.seek(at / picks);
                     at += stop - k;
                     if (!some(to + walk.offset[0], from + walk.offset[1], k, stop)) ok = false;
                   }
                 });
  });
  return ok;
}

namespace {
// A few contiguous rows added to rows of a table: what surrounds the loop would cost more.
template <class T>
bool add_few_rows(T* table, const T* rows, int64_t count, int64_t width, const int64_t* places,
                  int64_t scale, int64_t total) {
  for (int64_t k = 0; k < count; ++k) {
    const int64_t place = read_once(places[k]);
    if (!within(place, total)) return false;
    T* to = table + place * scale;
    const T* from = rows + k * width;
    for (int64_t j = 0; j < width; ++j) to[j] += from[j];
  }
  return true;
}
constexpr int64_t few_rows = 8;
}  // namespace

bool put_at(const NdView& dst, const NdView& values, int axis, const int64_t* places, int64_t scale,
            int64_t total, Combine combine) {
  const LongWork work(values.numel());
  if (axis == 0 && combine == Combine::Add && values.ndim == 2 && values.sizes[0] <= few_rows &&
      values.sizes[1] <= grain_default && values.strides[1] == 1 && dst.strides[1] == 1 &&
      values.strides[0] == values.sizes[1]) {
    if (dst.dtype == DType::Float32)
      return add_few_rows(dst.ptr<float>(), values.ptr<const float>(), values.sizes[0],
                          values.sizes[1], places, scale, total);
    if (dst.dtype == DType::Float64)
      return add_few_rows(dst.ptr<double>(), values.ptr<const double>(), values.sizes[0],
                          values.sizes[1], places, scale, total);
  }
  Block block(values, dst, axis + 1);
  int64_t picks = values.sizes[axis];
  int64_t rows = product(values.sizes, 0, axis);
  if (rows * picks == 0 || block.count == 0) return true;
  const int64_t* strides[2] = {values.strides, dst.strides};
  int64_t step = values.strides[axis];
  // Each thread owns a range of places and passes over all of them, so that no two write one place.
  int64_t least = read_once(places[0]);
  int64_t most = least;
  int64_t pieces = 1;
  if (rows * picks * block.count >= 2 * grain_default && num_threads() > 1) {
    for (int64_t k = 0; k < picks; ++k) {
      const int64_t place = read_once(places[k]);
      least = std::min(least, place);
      most = std::max(most, place);
    }
    if (least < 0 || most >= total) return false;
    pieces = num_threads();
  }
  int64_t span = most - least + 1;
  // Rows that do not share memory can be written by several threads directly.
  bool apart = rows >= num_threads() && rows > 1;
  for (int d = 0; d < axis; ++d) apart = apart && (dst.sizes[d] == 1 || dst.strides[d] != 0);
  std::vector<PlaceRun> runs;
  if (apart && block.count == 1 && scale == 1 && step == 1) runs = long_runs(places, picks, total);
  std::atomic<bool> ok = true;
  dispatch_combine(dst.dtype, combine, [&]<class T, class F>(F put) {
    T* from = values.ptr<T>();
    T* to = dst.ptr<T>();
    // Calls f(k, place) for all places as long as they are in range.
    auto each = [places, picks, total](auto&& f) {
#pragma GCC unroll 4
      for (int64_t k = 0; k < picks; ++k) {
        const int64_t place = read_once(places[k]);
        if (!within(place, total)) return false;
        f(k, place);
      }
      return true;
    };
    if (apart) {
      const int64_t work = std::max<int64_t>(1, picks * block.count);
      parallel_for(rows, std::max<int64_t>(1, grain_default / work),
                   [&](int64_t begin, int64_t end) {
                     Walk<2> walk(values.sizes, axis, strides);
                     walk.seek(begin);
                     // Of this loop alone: a write of bytes may be one to anything that others can
                     // reach.
                     const auto each_here = each;
                     const auto put_here = put;
                     const int64_t to_step = scale, from_step = step;
                     for (int64_t r = begin; r < end; ++r, walk.next()) {
                       T *v = from + walk.offset[0], *d = to + walk.offset[1];
                       for (const PlaceRun& run : runs) {
                         T *at = d + run.place, *some = v + run.first;
                         for (int64_t j = 0; j < run.count; ++j) put(at[j], some[j]);
                       }
                       if (!runs.empty()) continue;
                       bool all;
                       if (block.count == 1) {
                         all = each_here([=](int64_t k, int64_t place) {
                           put_here(d[place * to_step], v[k * from_step]);
                         });
                       } else {
                         all = each([&](int64_t k, int64_t place) {
                           block.each(v + k * step, d + place * scale, Into<F>{put});
                         });
                       }
                       if (!all) ok = false;
                     }
                   });
      return;
    }
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      bool all = begin == 0 && end == pieces;
      int64_t low = least + span / pieces * begin + span % pieces * begin / pieces;
      int64_t high = least + span / pieces * end + span % pieces * end / pieces;
      Walk<2> walk(values.sizes, axis, strides);
      for (int64_t r = 0; r < rows; ++r, walk.next()) {
        T* v = from + walk.offset[0];
        T* d = to + walk.offset[1];
        bool valid;
        if (all && block.count == 1 && scale == 1 && step == 1) {
          valid = each([&](int64_t k, int64_t place) { put(d[place], v[k]); });
        } else {
          valid = each([&](int64_t k, int64_t place) {
            if (!all && (place < low || place >= high)) return;
            if (block.count == 1)
              put(d[place * scale], v[k * step]);
            else
              block.each(v + k * step, d + place * scale, Into<F>{put});
          });
        }
        if (!valid) ok = false;
      }
    });
  });
  return ok;
}

bool gather(const NdView& out, const NdView& src, const NdView& index, int dim) {
  const LongWork work(out.numel());
  int last = out.ndim - 1;
  int64_t n = out.sizes[last];
  Dims src_strides(src.strides, src.ndim);
  int64_t along = src_strides[dim];
  src_strides[dim] = 0;
  int64_t size = src.sizes[dim];
  int64_t so = out.strides[last];
  int64_t si = index.strides[last];
  int64_t ss = src_strides[last];
  const int64_t* strides[3] = {out.strides, index.strides, src_strides.data()};
  int64_t rows = product(out.sizes, 0, last);
  if (rows * n == 0) return true;
  const auto* indices = index.ptr<const int64_t>();
  // Between short rows a walk would take longer than they do.
  const bool in_order = n < 64 && index.contiguous() && copies_rows(src, out, index, dim);
  std::atomic<bool> ok = true;
  dispatch_size(itemsize(out.dtype), [&]<class T>() {
    if (in_order) {
      return parallel_for(
          rows, std::max<int64_t>(1, grain_default / n), [&](int64_t begin, int64_t end) {
            T* o = out.ptr<T>() + begin * n;
            const int64_t* i = indices + begin * n;
            const T* s = src.ptr<const T>() + begin * size;
            for (int64_t r = begin; r < end; ++r, o += n, i += n, s += size)
              if (!each_place(i, 1, n, size, [=](int64_t j, int64_t k) { o[j] = s[k]; }))
                ok = false;
          });
    }
    auto some = [&](T* o, const int64_t* i, const T* s, int64_t count) {
      if (so == 1) fetch(o, count);
      if (so == 1 && si == 1 && along == 1 && ss == 0)
        return each_place(i, 1, count, size, [&](int64_t j, int64_t k) { o[j] = s[k]; });
      if (so == 1 && si == 1 && ss == 1)
        return each_place(i, 1, count, size,
                          [&](int64_t j, int64_t k) { o[j] = s[k * along + j]; });
      return each_place(i, si, count, size,
                        [&](int64_t j, int64_t k) { o[j * so] = s[k * along + j * ss]; });
    };
    parallel_for(rows, std::max<int64_t>(1, grain_default / n), [&](int64_t begin, int64_t end) {
      Walk<3> walk(out.sizes, last, strides);
      walk.seek(begin);
      for (int64_t r = begin; r < end; ++r, walk.next()) {
        T* o = out.ptr<T>() + walk.offset[0];
        const int64_t* i = indices + walk.offset[1];
        const T* s = src.ptr<const T>() + walk.offset[2];
        for (int64_t j = 0; j < n; j += fetch_piece)
          if (!some(o + j * so, i + j * si, s + j * ss, std::min(fetch_piece, n - j))) ok = false;
      }
    });
  });
  return ok;
}

bool copies_rows(const NdView& dst, const NdView& base, const NdView& index, int dim) {
  if (dim != dst.ndim - 1 || !dst.contiguous() || !base.contiguous()) return false;
  for (int d = 0; d < dim; ++d)
    if (dst.sizes[d] != index.sizes[d]) return false;
  return true;
}

bool scatter(const NdView& dst, const NdView& src, const NdView& index, int dim, Combine combine,
             const NdView* base) {
  const LongWork work(index.numel());
  int last = index.ndim - 1;
  int64_t n = index.sizes[last];
  Dims dst_strides(dst.strides, dst.ndim);
  int64_t along = dst_strides[dim];
  dst_strides[dim] = 0;
  int64_t size = dst.sizes[dim];
  int64_t sv = src.strides[last];
  int64_t si = index.strides[last];
  int64_t sd = dst_strides[last];
  const int64_t* strides[3] = {dst_strides.data(), index.strides, src.strides};
  int64_t rows = product(index.sizes, 0, last);
  if (rows * n == 0) return true;
  const auto* indices = index.ptr<const int64_t>();
  const bool in_order =
      n < 64 && index.contiguous() && src.contiguous() && copies_rows(dst, dst, index, dim);
  std::atomic<bool> ok = true;
  dispatch_combine(dst.dtype, combine, [&]<class T, class F>(F put) {
    auto some = [&](T* d, const int64_t* i, const T* v, int64_t count) {
      if (si == 1 && along == 1 && sd == 0 && sv == 1)
        return each_place(i, 1, count, size, [&](int64_t j, int64_t k) { put(d[k], v[j]); });
      if (si == 1 && sd == 1 && sv == 1)
        return each_place(i, 1, count, size,
                          [&](int64_t j, int64_t k) { put(d[k * along + j], v[j]); });
      return each_place(i, si, count, size,
                        [&](int64_t j, int64_t k) { put(d[k * along + j * sd], v[j * sv]); });
    };
    auto run = [&](int64_t r0, int64_t r1, int64_t j0, int64_t j1) {
      Walk<3> walk(index.sizes, last, strides);
      walk.seek(r0);
      for (int64_t r = r0; r < r1; ++r, walk.next()) {
        T* d = dst.ptr<T>() + walk.offset[0];
        const int64_t* i = indices + walk.offset[1];
        const T* v = src.ptr<const T>() + walk.offset[2];
        if (base)
          std::memcpy(static_cast<void*>(d), base->ptr<const T>() + walk.offset[0],
                      sizeof(T) * static_cast<size_t>(size));
        if (!some(d + j0 * sd, i + j0 * si, v + j0 * sv, j1 - j0)) ok = false;
      }
    };
    if (in_order) {
      parallel_for(rows, std::max<int64_t>(1, grain_default / n), [&](int64_t begin, int64_t end) {
        T* d = dst.ptr<T>() + begin * size;
        const int64_t* i = indices + begin * n;
        const T* v = src.ptr<const T>() + begin * n;
        const int64_t whole = size;  // of this loop alone: d may be a pointer to bytes
        const auto put_here = put;
        if (base)
          std::memcpy(static_cast<void*>(d), base->ptr<const T>() + begin * size,
                      sizeof(T) * static_cast<size_t>((end - begin) * size));
        for (int64_t r = begin; r < end; ++r, d += whole, i += n, v += n)
          if (!each_place(i, 1, n, whole, [=](int64_t j, int64_t k) { put_here(d[k], v[j]); }))
            ok = false;
      });
      return;
    }
    // Rows are independent when the scatter runs inside them; else columns are.
    if (dim == last) {
      parallel_for(rows, std::max<int64_t>(1, grain_default / n),
                   [&](int64_t begin, int64_t end) { run(begin, end, 0, n); });
    } else {
      parallel_for(n, std::max<int64_t>(16, grain_default / rows),
                   [&](int64_t begin, int64_t end) { run(0, rows, begin, end); });
    }
  });
  return ok;
}

}  // namespace clew::kernels
