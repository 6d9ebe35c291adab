// Convolutions: along rows, by tiles (winograd.h), by oneDNN, or by columns and matrix products.
// May include: base, kernels.
// Invariant: dtype and shape choose, tiles must come out finite; 16-bit floats may be widened.
#include "kernels/conv/conv.h"

#include <vector>

#include "base/scratch.h"
#include "kernels/conv/depthwise.h"
#include "kernels/conv/direct.h"
#include "kernels/conv/onednn_conv.h"
#include "kernels/conv/winograd.h"
#include "kernels/matmul/gemm.h"

namespace clew::kernels {

namespace {

constexpr int64_t column_bytes = 1 << 20;  // patches held at once by one thread

// Bytes that one thread keeps between calls.
const LocalScratch scratch;
const LocalScratch rooms[4];  // of Widened
constexpr size_t kept_megabytes = 64;

// A 1x1 kernel with unit stride: the image is its own matrix of columns.
bool pointwise(const ConvShape& s) {
  for (int d = 0; d < 3; ++d) {
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.pad[d] != 0 || s.in[d] != s.out[d]) return false;
  }
  return true;
}

struct Layout {
  int64_t item, cig, cog, depth, in_points, out_points, rows, chunk_rows, chunks;
  bool pointwise;

  explicit Layout(const ConvShape& s)
      : item(static_cast<int64_t>(itemsize(s.dtype))),
        cig(s.ci / s.groups),
        cog(s.co / s.groups),
        depth(cig * s.kernel_points()),
        in_points(s.in_points()),
        out_points(s.out_points()),
        rows(s.out[0] * s.out[1]),
        pointwise(kernels::pointwise(s)) {
    const int64_t row_bytes = std::max<int64_t>(1, depth * s.out[2] * item);
    chunk_rows = std::clamp<int64_t>(column_bytes / row_bytes, 1, std::max<int64_t>(1, rows));
    if (pointwise) chunk_rows = std::max<int64_t>(1, rows);
    chunks = (rows + chunk_rows - 1) / chunk_rows;
  }
};

// Every point of a channel becomes its bias, or zero without one.
void fill_bias(const ConvShape& s, const void* bias, void* y, int64_t channels, int64_t points) {
  dispatch(as_signed(s.dtype), PlainNumericTypes{}, [&]<class T> {
    const T* b = static_cast<const T*>(bias);
    T* to = static_cast<T*>(y);
    parallel_for(s.n * channels, std::max<int64_t>(1, grain_default / std::max<int64_t>(1, points)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t q = begin; q < end; ++q) {
                     std::fill_n(to + q * points, points, bias ? b[q % channels] : T{});
                   }
                 });
  });
}

void plus_bias(const ConvShape& s, const void* bias, void* y, int64_t channels, int64_t points) {
  dispatch(s.dtype, FloatTypes{}, [&]<class T> {
    const T* b = static_cast<const T*>(bias);
    T* to = static_cast<T*>(y);
    parallel_for(s.n * channels, std::max<int64_t>(1, grain_default / std::max<int64_t>(1, points)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t q = begin; q < end; ++q) {
                     const auto add = static_cast<compute_t<T>>(b[q % channels]);
                     T* row = to + q * points;
                     for (int64_t i = 0; i < points; ++i)
                       row[i] = static_cast<T>(static_cast<compute_t<T>>(row[i]) + add);
                   }
                 });
  });
}

// Tasks over threads when there are enough of them; otherwise the matrix product inside uses the
// threads.
template <class F> void each_task(int64_t tasks, int64_t work_each, F&& f) {
  if (tasks >= num_threads()) {
    parallel_for(tasks, std::max<int64_t>(1, (1 << 19) / std::max<int64_t>(1, work_each)),
                 [&](int64_t b, int64_t e) {
                   for (int64_t q = b; q < e; ++q) f(q);
                 });
  } else {
    for (int64_t q = 0; q < tasks && !stopped(); ++q) f(q);
    end_if_stopped();
  }
}

Gemm product(const ConvShape& s, int64_t m, int64_t n, int64_t k) {
  Gemm g;
  g.dtype = s.dtype;
  g.m = m, g.n = n, g.k = k;
  g.c_cs = 1;
  return g;
}

void forward_columns(const ConvShape& s, const char* x, const char* w, const void* bias, char* y) {
  const Layout l(s);
  if (bias) fill_bias(s, bias, y, s.co, l.out_points);
  const int64_t width = s.out[2];
  each_task(s.n * s.groups * l.chunks, l.depth * l.cog * l.chunk_rows * width, [&](int64_t task) {
    const int64_t chunk = task % l.chunks, g = task / l.chunks % s.groups,
                  n = task / l.chunks / s.groups;
    const int64_t r0 = chunk * l.chunk_rows, r1 = std::min(l.rows, r0 + l.chunk_rows);
    const int64_t points = (r1 - r0) * width;
    const char* image = x + (n * s.ci + g * l.cig) * l.in_points * l.item;
    Gemm p = product(s, l.cog, points, l.depth);
    p.a = w + g * l.cog * l.depth * l.item, p.a_rs = l.depth, p.a_cs = 1;
    if (l.pointwise) {
      p.b = image, p.b_rs = l.in_points;
    } else {
      char* columns = scratch.of<char>(l.depth * points * l.item);
      image_to_columns(s, l.cig, image, columns, points, r0, r1);
      p.b = columns, p.b_rs = points;
    }
    p.b_cs = 1;
    p.c = y + ((n * s.co + g * l.cog) * l.out_points + r0 * width) * l.item, p.c_rs = l.out_points;
    p.beta = Scalar(bias ? 1 : 0);
    gemm(p);
  });
}

void input_columns(const ConvShape& s, const char* y, const char* w, const void* bias, char* x) {
  const Layout l(s);
  if (bias || !l.pointwise) fill_bias(s, bias, x, s.ci, l.in_points);
  const int64_t width = s.out[2];
  each_task(s.n * s.groups, l.depth * l.cog * l.out_points, [&](int64_t task) {
    const int64_t g = task % s.groups, n = task / s.groups;
    char* image = x + (n * s.ci + g * l.cig) * l.in_points * l.item;
    for (int64_t r0 = 0; r0 < l.rows && !stopped(); r0 += l.chunk_rows) {
      const int64_t r1 = std::min(l.rows, r0 + l.chunk_rows);
      const int64_t points = (r1 - r0) * width;
      Gemm p = product(s, l.depth, points, l.cog);
      p.a = w + g * l.cog * l.depth * l.item, p.a_rs = 1, p.a_cs = l.depth;
      p.b = y + ((n * s.co + g * l.cog) * l.out_points + r0 * width) * l.item,
      p.b_rs = l.out_points, p.b_cs = 1;
      if (l.pointwise) {
        p.c = image, p.c_rs = l.in_points;
        p.beta = Scalar(bias ? 1 : 0);
        gemm(p);
      } else {
        char* columns = scratch.of<char>(l.depth * points * l.item);
        p.c = columns, p.c_rs = points;
        gemm(p);
        columns_to_image(s, l.cig, columns, points, image, r0, r1);
      }
    }
  });
}

void weight_columns(const ConvShape& s, const char* y, const char* x, char* w) {
  const Layout l(s);
  if (s.n == 0 || l.out_points == 0) {
    std::memset(w, 0, static_cast<size_t>(s.co * l.depth * l.item));
    return;
  }
  const int64_t width = s.out[2];
  each_task(s.groups, l.depth * l.cog * l.out_points * s.n, [&](int64_t g) {
    for (int64_t n = 0; n < s.n; ++n) {
      const char* image = x + (n * s.ci + g * l.cig) * l.in_points * l.item;
      for (int64_t r0 = 0; r0 < l.rows && !stopped(); r0 += l.chunk_rows) {
        const int64_t r1 = std::min(l.rows, r0 + l.chunk_rows);
        const int64_t points = (r1 - r0) * width;
        Gemm p = product(s, l.cog, l.depth, points);
        p.a = y + ((n * s.co + g * l.cog) * l.out_points + r0 * width) * l.item,
        p.a_rs = l.out_points, p.a_cs = 1;
        if (l.pointwise) {
          p.b = image, p.b_cs = l.in_points;
        } else {
          char* columns = scratch.of<char>(l.depth * points * l.item);
          image_to_columns(s, l.cig, image, columns, points, r0, r1);
          p.b = columns, p.b_cs = points;
        }
        p.b_rs = 1;
        p.c = w + g * l.cog * l.depth * l.item, p.c_rs = l.depth;
        p.beta = Scalar(n == 0 && r0 == 0 ? 0 : 1);
        gemm(p);
      }
    }
  });
}

// Float32 copies of 16-bit operands, in memory that one thread keeps between calls.
struct Widened {
  enum Role : uint8_t { first, second, bias, result };
  const LocalScratch* room;
  int64_t count;
  float* values = nullptr;

  Widened(Role role, DType d, const void* p, int64_t n) : Widened(role, n) {
    if (!p) {
      values = nullptr;
      return;
    }
    dispatch(d, TypeList<f16, bf16>{}, [&]<class T> {
      const T* from = static_cast<const T*>(p);
      float* to = values;
      parallel_for(count, grain_default, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(from[i]);
      });
    });
  }
  Widened(Role role, int64_t n) : room(&rooms[role]), count(n), values(room->of<float>(n)) {}
  ~Widened() { room->trim(kept_megabytes); }
  Widened(const Widened&) = delete;
  float* get() const { return values; }
  void narrow_to(DType d, void* p) const {
    dispatch(d, TypeList<f16, bf16>{}, [&]<class T> {
      T* to = static_cast<T*>(p);
      const float* from = values;
      parallel_for(count, grain_default, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(from[i]);
      });
    });
  }
};

int64_t x_count(const ConvShape& s) { return s.n * s.ci * s.in_points(); }
int64_t y_count(const ConvShape& s) { return s.n * s.co * s.out_points(); }
int64_t w_count(const ConvShape& s) { return s.co * (s.ci / s.groups) * s.kernel_points(); }
ConvShape in_float(ConvShape s) {
  s.dtype = DType::Float32;
  return s;
}
// oneDNN takes no empty operands; a pointwise float32 map is one plain matrix product; depthwise
// maps of 16-bit floats run faster along rows of float32 copies.
bool ask_onednn(const ConvShape& s) {
  if (is_half(s.dtype) && runs_along_rows(s)) return false;
  if (x_count(s) == 0 || y_count(s) == 0 || w_count(s) == 0) return false;
  return s.last || !(s.dtype == DType::Float32 && s.groups == 1 && pointwise(s));
}

// oneDNN's kernels for the gradient of an image work on blocks of channels, which are mostly empty
// for few channels: for 3 channels it takes three times as long as products of columns.
bool few_channels(const ConvShape& s) {
  const int64_t in = s.ci / s.groups, out = s.co / s.groups;
  return s.dtype == DType::Float32 && !s.last && (in <= 4 || (in <= 8 && out >= 8 * in));
}

ConvShape channels_first(ConvShape s) {
  s.last = false;
  return s;
}
// Images of (points, channels) as (channels, points), and back.
struct Planes {
  std::vector<char> bytes;
  int64_t images, channels, points, item;
  Planes(DType d, int64_t n, int64_t channels, int64_t points, const void* from = nullptr)
      : images(n), channels(channels), points(points), item(static_cast<int64_t>(itemsize(d))) {
    bytes.resize(static_cast<size_t>(n * channels * points * item));
    if (from) move(static_cast<const char*>(from), bytes.data(), points, channels);
  }
  void* get() { return bytes.data(); }
  void back_to(void* to) const { move(bytes.data(), static_cast<char*>(to), channels, points); }

 private:
  void move(const char* from, char* to, int64_t rows, int64_t columns) const {
    parallel_for(images, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t start = n * rows * columns;
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            std::memcpy(to + (start + c * rows + r) * item, from + (start + r * columns + c) * item,
                        static_cast<size_t>(item));
          }
        }
      }
    });
  }
};
Planes x_planes(const ConvShape& s, const void* from = nullptr) {
  return Planes(s.dtype, s.n, s.ci, s.in_points(), from);
}
Planes y_planes(const ConvShape& s, const void* from = nullptr) {
  return Planes(s.dtype, s.n, s.co, s.out_points(), from);
}

int64_t work_of(const ConvShape& s) {
  return s.n * s.co * s.out_points() *
         std::max<int64_t>(1, s.ci / s.groups * s.kernel_points() / 16);
}

// A call of a library cannot be interrupted: images are as many at once as take some tenths of a
// second.
constexpr int64_t call_work = int64_t{1} << 29;
int64_t images_at_once(const ConvShape& s) {
  return std::max<int64_t>(1, call_work / std::max<int64_t>(1, work_of(s) / s.n));
}
bool is_cut(const ConvShape& s) { return images_at_once(s) < s.n; }
template <class F> void each_cut(const ConvShape& s, F&& f) {
  ConvShape part = s;
  const int64_t most = images_at_once(s);
  for (int64_t image = 0; image < s.n; image += most) {
    stop_point();
    part.n = std::min(most, s.n - image);
    f(part, image);
  }
}
const void* offset(const ConvShape& s, const void* from, int64_t elements) {
  return static_cast<const char*>(from) + elements * static_cast<int64_t>(itemsize(s.dtype));
}
void* offset(const ConvShape& s, void* from, int64_t elements) {
  return static_cast<char*>(from) + elements * static_cast<int64_t>(itemsize(s.dtype));
}

}  // namespace

void conv_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y) {
  const LongWork work(work_of(s));
  if (y_count(s) == 0) return;
  if (is_cut(s))
    return each_cut(s, [&](const ConvShape& part, int64_t image) {
      conv_forward(part, offset(s, x, image * s.ci * s.in_points()), w, bias,
                   offset(s, y, image * s.co * s.out_points()));
    });
  if (direct_forward(s, x, w, bias, y) || winograd_forward(s, x, w, bias, y) ||
      depthwise_forward(s, x, w, bias, y))
    return;
  if (ask_onednn(s) && onednn::conv_forward(s, x, w, bias, y)) return;
  if (s.last) {
    Planes px = x_planes(s, x), py = y_planes(s);
    conv_forward(channels_first(s), px.get(), w, bias, py.get());
    return py.back_to(y);
  }
  if (is_half(s.dtype)) {
    Widened fx(Widened::first, s.dtype, x, x_count(s)), fw(Widened::second, s.dtype, w, w_count(s)),
        fb(Widened::bias, s.dtype, bias, s.co), fy(Widened::result, y_count(s));
    conv_forward(in_float(s), fx.get(), fw.get(), fb.get(), fy.get());
    return fy.narrow_to(s.dtype, y);
  }
  forward_columns(s, static_cast<const char*>(x), static_cast<const char*>(w), bias,
                  static_cast<char*>(y));
}

void conv_input(const ConvShape& s, const void* y, const void* w, const void* bias, void* x) {
  const LongWork work(work_of(s));
  if (x_count(s) == 0) return;
  if (is_cut(s))
    return each_cut(s, [&](const ConvShape& part, int64_t image) {
      conv_input(part, offset(s, y, image * s.co * s.out_points()), w, bias,
                 offset(s, x, image * s.ci * s.in_points()));
    });
  if (direct_input(s, y, w, bias, x) || winograd_input(s, y, w, bias, x) ||
      depthwise_input(s, y, w, bias, x))
    return;
  // A bias after the map is added to planes.
  if (!(s.last && bias) && !few_channels(s) && ask_onednn(s) && onednn::conv_input(s, y, w, x)) {
    if (bias) plus_bias(s, bias, x, s.ci, s.in_points());
    return;
  }
  if (s.last) {
    Planes py = y_planes(s, y), px = x_planes(s);
    conv_input(channels_first(s), py.get(), w, bias, px.get());
    return px.back_to(x);
  }
  if (is_half(s.dtype)) {
    Widened fy(Widened::first, s.dtype, y, y_count(s)), fw(Widened::second, s.dtype, w, w_count(s)),
        fb(Widened::bias, s.dtype, bias, s.ci), fx(Widened::result, x_count(s));
    conv_input(in_float(s), fy.get(), fw.get(), fb.get(), fx.get());
    return fx.narrow_to(s.dtype, x);
  }
  input_columns(s, static_cast<const char*>(y), static_cast<const char*>(w), bias,
                static_cast<char*>(x));
}

void conv_weight(const ConvShape& s, const void* y, const void* x, void* w) {
  const LongWork work(work_of(s));
  if (w_count(s) == 0) return;
  if (winograd_weight(s, y, x, w) || depthwise_weight(s, y, x, w)) return;
  if (ask_onednn(s) && onednn::conv_weight(s, y, x, w)) return;
  if (s.last) {
    Planes py = y_planes(s, y), px = x_planes(s, x);
    return conv_weight(channels_first(s), py.get(), px.get(), w);
  }
  if (is_half(s.dtype)) {
    Widened fy(Widened::first, s.dtype, y, y_count(s)), fx(Widened::second, s.dtype, x, x_count(s)),
        fw(Widened::result, w_count(s));
    conv_weight(in_float(s), fy.get(), fx.get(), fw.get());
    return fw.narrow_to(s.dtype, w);
  }
  weight_columns(s, static_cast<const char*>(y), static_cast<const char*>(x),
                 static_cast<char*>(w));
}

}  // namespace clew::kernels
