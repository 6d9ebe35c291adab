// Pooling of images whose channels lie last: all channels of a point are a run of elements.
// May include: base, kernels/conv/pool.h.
// Invariant: every sum is made in one order by one thread, so results do not depend on their
// number.
#include <atomic>
#include <vector>

#include "base/parallel.h"
#include "base/read_once.h"
#include "kernels/conv/pool.h"
#include "kernels/conv/pool_loops.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const PoolLoops pool_loops;)

namespace {

// Channels that one thread works on at a time.
constexpr int64_t channel_piece = 256;

// The loops of the instruction set where there are such, else those of every processor.
template <class T> const ChannelLoops<T>* loops_of() {
  const PoolLoops& chosen = CLEW_CHOSEN(pool_loops);
  if constexpr (std::is_same_v<T, float>)
    return &chosen.channels_float;
  else if constexpr (std::is_same_v<T, double>)
    return &chosen.channels_double;
  else if constexpr (std::is_same_v<T, bf16>)
    return &chosen.channels_bf16;
  else if constexpr (std::is_same_v<T, f16>)
    return &chosen.channels_f16;
  else
    return nullptr;
}
template <class T, class F> F loop_of(F ChannelLoops<T>::*member, F general) {
  const ChannelLoops<T>* loops = loops_of<T>();
  return loops ? loops->*member : general;
}

// The points of window (a, b, o) of an image, as offsets of their first channel.
void list_taps(const PoolShape& s, int64_t a, int64_t b, int64_t o, std::vector<int64_t>& taps) {
  const PoolDim &d0 = s.dim[0], &d1 = s.dim[1], &d2 = s.dim[2];
  const int64_t first1 = d1.start(b), end1 = d1.end(b), first2 = d2.start(o), end2 = d2.end(o);
  taps.clear();
  for (int64_t i = d0.start(a); i < d0.end(a); i += d0.step)
    for (int64_t j = first1; j < end1; j += d1.step)
      for (int64_t k = first2; k < end2; k += d2.step) taps.push_back((i * d1.in + j) * d2.in + k);
}
double divisor_of(const PoolShape& s, int64_t a, int64_t b, int64_t o) {
  return static_cast<double>(
      s.divisor != 0 ? s.divisor : s.dim[0].count(a) * s.dim[1].count(b) * s.dim[2].count(o));
}

// Calls f(output point, taps, their number, o) for the outputs of row (a, b) of an image.
template <class F>
void each_window(const PoolShape& s, int64_t a, int64_t b, std::vector<int64_t>& taps, F&& f) {
  const int64_t row = (a * s.dim[1].out + b) * s.dim[2].out;
  for (int64_t o = 0; o < s.dim[2].out; ++o) {
    if (o % 1024 == 0 && stopped()) return;
    list_taps(s, a, b, o, taps);
    f(row + o, taps.data(), static_cast<int64_t>(taps.size()), o);
  }
}

int64_t pieces_of(const PoolShape& s) { return (s.channels + channel_piece - 1) / channel_piece; }
int64_t grain_for(int64_t work) { return std::max<int64_t>(1, grain_default / work); }

// Calls f(image, a, b, first channel, channels, a list to fill) for all rows of outputs.
template <class F> void each_row_of_all(const PoolShape& s, F&& f) {
  const int64_t pieces = pieces_of(s), rows = s.dim[1].out, images = s.planes / s.channels;
  const int64_t units = s.dim[0].out * rows * pieces;
  const int64_t work = 1 + s.taps() / (s.dim[0].out * rows) * std::min(s.channels, channel_piece);
  parallel_for(images * units, grain_for(work), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> taps;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t c = unit % pieces * channel_piece, row = unit % units / pieces;
      f(unit / units, row / rows, row % rows, c, std::min(channel_piece, s.channels - c), taps);
    }
  });
}
// Calls f(image, first channel, channels) for pieces that one thread each works on.
template <class F>
void each_piece(int64_t images, int64_t channels, int64_t points, int64_t piece, F&& f) {
  const int64_t pieces = (channels + piece - 1) / piece;
  parallel_for(images * pieces, grain_for(std::max<int64_t>(1, points) * piece),
               [&](int64_t begin, int64_t end) {
                 for (int64_t unit = begin; unit < end; ++unit) {
                   const int64_t c = unit % pieces * piece;
                   f(unit / pieces, c, std::min(piece, channels - c));
                 }
               });
}
// Zeros for n of C channels of some points.
template <class T> void clear(T* x, int64_t points, int64_t n, int64_t C) {
  if (n == C)
    std::fill_n(x, points * C, T(0));
  else
    for (int64_t i = 0; i < points; ++i) std::fill_n(x + i * C, n, T(0));
}
// Where one image has work for several threads, each takes some of its channels; a whole line of
// the cache belongs to one of them.
int64_t piece_of_image(int64_t images, int64_t channels) {
  constexpr int64_t whole_lines = 64;
  return images >= num_threads() ? channels : std::min(channels, whole_lines);
}

}  // namespace

void max_pool_last(const PoolShape& s, const void* x, void* values, int64_t* indices) {
  const int64_t C = s.channels, in = s.in_points() * C, out = s.out_points() * C;
  dispatch(s.dtype, PoolTypes{}, [&]<class T> {
    const auto loop = loop_of<T>(&ChannelLoops<T>::greatest, &greatest_of_taps<T>);
    each_row_of_all(s, [&](int64_t image, int64_t a, int64_t b, int64_t c, int64_t n,
                           std::vector<int64_t>& taps) {
      const T* from = static_cast<const T*>(x) + image * in + c;
      const int64_t to = image * out + c;
      each_window(s, a, b, taps, [&](int64_t point, const int64_t* at, int64_t count, int64_t o) {
        loop(from, at, count, s.corner(a, b, o), C, n, static_cast<T*>(values) + to + point * C,
             indices + to + point * C);
      });
    });
  });
}

void mean_pool_last(const PoolShape& s, const void* x, void* y) {
  const int64_t C = s.channels, in = s.in_points() * C, out = s.out_points() * C;
  dispatch(s.dtype, MeanPoolTypes{}, [&]<class T> {
    const auto loop = loop_of<T>(&ChannelLoops<T>::mean, &mean_of_taps<T>);
    each_row_of_all(s, [&](int64_t image, int64_t a, int64_t b, int64_t c, int64_t n,
                           std::vector<int64_t>& taps) {
      const T* from = static_cast<const T*>(x) + image * in + c;
      T* to = static_cast<T*>(y) + image * out + c;
      each_window(s, a, b, taps, [&](int64_t point, const int64_t* at, int64_t count, int64_t o) {
        loop(from, at, count, C, n, divisor_of(s, a, b, o), to + point * C);
      });
    });
  });
}

void mean_pool_backward_last(const PoolShape& s, const void* gy, void* gx) {
  const int64_t C = s.channels, in = s.in_points(), out = s.out_points() * C;
  const int64_t images = s.planes / C;
  dispatch(s.dtype, InexactTypes{}, [&]<class T> {
    using A = accumulate_t<T>;
    const auto loop = loop_of<T>(&ChannelLoops<T>::spread, &spread_to_taps<T>);
    each_piece(
        images, C, s.taps(), piece_of_image(images, C), [&](int64_t image, int64_t c, int64_t n) {
          const T* from = static_cast<const T*>(gy) + image * out + c;
          T* to = static_cast<T*>(gx) + image * in * C + c;
          // 16-bit floats are summed in float32.
          std::vector<A> sums;
          A* sum;
          int64_t step = C;
          if constexpr (sizeof(A) == sizeof(T)) {
            sum = reinterpret_cast<A*>(to);
            for (int64_t i = 0; i < in; ++i) std::fill_n(sum + i * C, n, A(0));
          } else {
            sums.resize(static_cast<size_t>(in * n));
            sum = sums.data();
            step = n;
          }
          std::vector<int64_t> taps;
          for (int64_t a = 0; a < s.dim[0].out; ++a)
            for (int64_t b = 0; b < s.dim[1].out; ++b)
              each_window(s, a, b, taps,
                          [&](int64_t point, const int64_t* at, int64_t count, int64_t o) {
                            loop(from + point * C, at, count, step, n, divisor_of(s, a, b, o), sum);
                          });
          if constexpr (sizeof(A) != sizeof(T))
            for (int64_t i = 0; i < in; ++i)
              for (int64_t k = 0; k < n; ++k) to[i * C + k] = static_cast<T>(sum[i * n + k]);
        });
  });
}

bool pool_scatter_last(DType dtype, const PoolPlanes& p, const void* gy, const int64_t* indices,
                       void* gx) {
  std::atomic<bool> valid = true;
  const int64_t C = p.channels, images = p.planes / C;
  dispatch(as_signed(dtype), PlainNumericTypes{}, [&]<class T> {
    using A = compute_t<T>;
    each_piece(images, C, p.in + p.out, piece_of_image(images, C),
               [&](int64_t image, int64_t c, int64_t n) {
                 T* to = static_cast<T*>(gx) + image * p.in * C + c;
                 const int64_t first = image * p.out * C + c;
                 clear(to, p.in, n, C);
                 for (int64_t o = 0; o < p.out; ++o) {
                   if (o % 1024 == 0 && stopped()) return;
                   const T* from = static_cast<const T*>(gy) + first + o * C;
                   const int64_t* at = indices + first + o * C;
                   for (int64_t k = 0; k < n; ++k) {
                     const int64_t place = read_once(at[k]);
                     if (place < 0 || place >= p.in) {
                       valid = false;
                       continue;
                     }
                     T& sum = to[place * C + k];
                     sum = static_cast<T>(static_cast<A>(sum) + static_cast<A>(from[k]));
                   }
                 }
               });
  });
  return valid;
}

bool pool_gather_last(DType dtype, const PoolPlanes& p, const void* x, const int64_t* indices,
                      void* y) {
  std::atomic<bool> valid = true;
  const int64_t C = p.channels, images = p.planes / C;
  dispatch(as_signed(dtype), PlainNumericTypes{}, [&]<class T> {
    parallel_for(images * p.out, grain_for(C), [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const T* from = static_cast<const T*>(x) + unit / p.out * p.in * C;
        for (int64_t k = 0; k < C; ++k) {
          const int64_t place = read_once(indices[unit * C + k]);
          const bool ok = place >= 0 && place < p.in;
          if (!ok) valid = false;
          static_cast<T*>(y)[unit * C + k] = ok ? from[place * C + k] : T{};
        }
      }
    });
  });
  return valid;
}

}  // namespace clew::kernels
