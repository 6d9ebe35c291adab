// Convolutions through oneDNN, which chooses the memory formats; operands are reordered. Each
// thread has a part of the images or of the channels.
// May include: base, kernels; oneapi/dnnl/dnnl.h (only onednn_* files do).
// Invariant: primitives and reorders are cached by shape; scratch belongs to the thread that
// runs.
#include "kernels/conv/onednn_conv.h"

#include <atomic>
#include <limits>

#include "kernels/core/onednn_cache.h"

namespace clew::kernels::onednn {

namespace {

enum Kind : int64_t { forward, backward_input, backward_weight };

// A convolution of some of the images and channels of operands that have more channels in all.
struct Part {
  ConvShape shape;
  int64_t x_channels, y_channels, w_channels;  // w's: of an output channel
};

// What the primitive depends on. All int64, so that the struct has no padding bytes.
struct ConvKey {
  int64_t kind, dtype, nd, bias, last;
  int64_t n, ci, co, groups, x_channels, y_channels, w_channels;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
  bool operator==(const ConvKey&) const = default;
};

ConvKey key_of(Kind kind, const Part& part, bool bias) {
  const ConvShape& s = part.shape;
  ConvKey k{};
  k.kind = kind, k.dtype = static_cast<int64_t>(s.dtype), k.nd = s.nd, k.bias = bias;
  k.last = s.last, k.n = s.n, k.ci = s.ci, k.co = s.co, k.groups = s.groups;
  k.x_channels = part.x_channels, k.y_channels = part.y_channels;
  k.w_channels = part.w_channels;
  for (int d = 0; d < 3; ++d) {
    k.in[d] = s.in[d], k.out[d] = s.out[d], k.kernel[d] = s.kernel[d];
    k.stride[d] = s.stride[d], k.pad[d] = s.pad[d], k.dilation[d] = s.dilation[d];
  }
  return k;
}

// One operand: how we hold it, how the primitive wants it, and the reorder between the two when
// they differ.
struct Operand {
  int index = 0;
  size_t bytes = 0;
  std::unique_ptr<Primitive> reorder;
};

struct Convolution {
  std::unique_ptr<Primitive> primitive;
  Operand first, second, result;  // inputs in call order, then the output
};

struct Shape {
  dnnl_dims_t dims = {};
  int count = 0;
  void add(int64_t v) { dims[count++] = v; }
};

Desc with_strides(const Shape& s, dnnl_data_type_t type, const dnnl_dims_t strides) {
  Desc desc;
  check(dnnl_memory_desc_create_with_strides(desc.out(), s.count, s.dims, type, strides));
  return desc;
}

// Dense except for the first dim, whose stride is that of a tensor with size `second` in the second
// dim.
Desc plain(const Shape& s, dnnl_data_type_t type, int64_t second) {
  dnnl_dims_t strides;
  int64_t step = 1;
  for (int d = s.count - 1; d >= 1; --d) {
    strides[d] = step;
    step *= s.dims[d];
  }
  strides[0] = s.count > 1 ? strides[1] * second : 1;
  return with_strides(s, type, strides);
}

// Images whose channels, `channels` of them in all, lie last.
Desc channels_last(const Shape& s, dnnl_data_type_t type, int64_t channels) {
  dnnl_dims_t strides;
  strides[1] = 1;
  int64_t step = channels;
  for (int d = s.count - 1; d >= 2; --d) {
    strides[d] = step;
    step *= s.dims[d];
  }
  strides[0] = step;
  return with_strides(s, type, strides);
}

Desc any(const Shape& s, dnnl_data_type_t type) {
  Desc desc;
  check(dnnl_memory_desc_create_with_tag(desc.out(), s.count, s.dims, type, dnnl_format_tag_any));
  return desc;
}

std::unique_ptr<Primitive> reorder(const_dnnl_memory_desc_t from, const_dnnl_memory_desc_t to) {
  if (dnnl_memory_desc_equal(from, to)) return nullptr;
  dnnl_primitive_desc_t pd = nullptr;
  check(dnnl_reorder_primitive_desc_create(&pd, from, engine(), to, engine(), attributes().get()));
  return std::make_unique<Primitive>(pd);
}

Convolution make(const ConvKey& k) {
  const dnnl_data_type_t type =
      k.dtype == static_cast<int64_t>(DType::Float32) ? dnnl_f32 : dnnl_bf16;
  const int nd = static_cast<int>(k.nd), skip = 3 - nd;
  Shape x, w, y, b;
  x.add(k.n), x.add(k.ci);
  y.add(k.n), y.add(k.co);
  if (k.groups > 1) w.add(k.groups);
  w.add(k.co / k.groups), w.add(k.ci / k.groups);
  b.add(k.co);
  dnnl_dims_t stride, dilation, left, right;
  for (int d = 0; d < nd; ++d) {
    const int q = skip + d;
    x.add(k.in[q]), y.add(k.out[q]), w.add(k.kernel[q]);
    stride[d] = k.stride[q];
    dilation[d] = k.dilation[q] - 1;
    left[d] = k.pad[q];
    const int64_t spare =
        (k.out[q] - 1) * k.stride[q] + (k.kernel[q] - 1) * k.dilation[q] + 1 - k.in[q] - k.pad[q];
    right[d] = spare < 0 && -spare < k.stride[q] ? 0 : spare;
  }
  // Channels-last operands stay so when they hold all channels; for a part of the channels oneDNN
  // makes its own copy.
  auto images = [&](const Shape& s, int64_t own, int64_t channels) {
    return k.last && own == channels ? channels_last(s, type, channels) : any(s, type);
  };
  const Desc xa = images(x, k.ci, k.x_channels), ya = images(y, k.co, k.y_channels);
  const Desc wa = any(w, type), bp = plain(b, type, 1);
  const const_dnnl_memory_desc_t bias = k.bias ? bp.get() : nullptr;
  const Attr attr = attributes();
  PrimitiveDesc fwd;
  check(dnnl_convolution_forward_primitive_desc_create(
      fwd.out(), engine(), dnnl_forward_training, dnnl_convolution_direct, xa.get(), wa.get(), bias,
      ya.get(), stride, dilation, left, right, attr.get()));
  PrimitiveDesc pd;
  if (k.kind == forward) {
    pd = std::move(fwd);
  } else if (k.kind == backward_input) {
    check(dnnl_convolution_backward_data_primitive_desc_create(
        pd.out(), engine(), dnnl_convolution_direct, xa.get(), wa.get(), ya.get(), stride, dilation,
        left, right, fwd.get(), attr.get()));
  } else {
    check(dnnl_convolution_backward_weights_primitive_desc_create(
        pd.out(), engine(), dnnl_convolution_direct, xa.get(), wa.get(), nullptr, ya.get(), stride,
        dilation, left, right, fwd.get(), attr.get()));
  }
  Convolution c;
  c.primitive = std::make_unique<Primitive>(std::exchange(*pd.out(), nullptr));
  const auto held = k.last ? channels_last : plain;
  const Desc xp = held(x, type, k.x_channels), yp = held(y, type, k.y_channels);
  const Desc wp = plain(w, type, k.groups > 1 ? w.dims[1] : k.w_channels);
  auto bind = [&](Operand& o, int index, const Desc& ours, bool output) {
    o.index = index;
    const_dnnl_memory_desc_t theirs = c.primitive->argument(index);
    o.bytes = dnnl_memory_desc_get_size(theirs);
    o.reorder = output ? reorder(theirs, ours.get()) : reorder(ours.get(), theirs);
  };
  if (k.kind == forward) {
    bind(c.first, DNNL_ARG_SRC, xp, false);
    bind(c.second, DNNL_ARG_WEIGHTS, wp, false);
    bind(c.result, DNNL_ARG_DST, yp, true);
  } else if (k.kind == backward_input) {
    bind(c.first, DNNL_ARG_DIFF_DST, yp, false);
    bind(c.second, DNNL_ARG_WEIGHTS, wp, false);
    bind(c.result, DNNL_ARG_DIFF_SRC, xp, true);
  } else {
    bind(c.first, DNNL_ARG_DIFF_DST, yp, false);
    bind(c.second, DNNL_ARG_SRC, xp, false);
    bind(c.result, DNNL_ARG_DIFF_WEIGHTS, wp, true);
  }
  return c;
}

const LocalScratch scratch[3];

// Runs one part in the calling thread. False if oneDNN does not offer the primitive.
bool run(Kind kind, const Part& part, const void* first, const void* second, const void* bias,
         void* result) {
  static auto& cache = *new Cache<ConvKey, Convolution>;
  try {
    const OneThread here;
    const auto c = cache.get(key_of(kind, part, bias != nullptr), make);
    if (!c) return false;
    auto prepare = [](const Operand& o, const LocalScratch& buffer, const void* p) {
      void* data = const_cast<void*>(p);
      if (!o.reorder) return data;
      void* to = buffer.get(o.bytes);
      o.reorder->run({{DNNL_ARG_FROM, data}, {DNNL_ARG_TO, to}});
      return to;
    };
    void* a = prepare(c->first, scratch[0], first);
    void* b = prepare(c->second, scratch[1], second);
    void* out = c->result.reorder ? scratch[2].get(c->result.bytes) : result;
    if (bias) {
      c->primitive->run({{c->first.index, a},
                         {c->second.index, b},
                         {DNNL_ARG_BIAS, const_cast<void*>(bias)},
                         {c->result.index, out}});
    } else {
      c->primitive->run({{c->first.index, a}, {c->second.index, b}, {c->result.index, out}});
    }
    if (c->result.reorder) c->result.reorder->run({{DNNL_ARG_FROM, out}, {DNNL_ARG_TO, result}});
    for (const LocalScratch& buffer : scratch) buffer.trim(kept_megabytes);
    return true;
  } catch (const Unsupported&) {
    return false;
  }
}

// How images and channels are cut: in so many parts each. Channels go in whole vectors: those of
// the result, or groups.
struct Cut {
  static constexpr int64_t worth = 1 << 18;      // multiply-adds
  static constexpr int64_t sums_most = 1 << 24;  // elements of weights that parts add up
  int64_t images = 1, channels = 1;
  int64_t count, unit;  // of channels or groups; so many are not cut

  Cut(Kind kind, const ConvShape& s)
      : count(s.groups > 1             ? s.groups
              : kind == backward_input ? s.ci
                                       : s.co) {
    constexpr int64_t lanes = 16;
    const int64_t each = s.groups > 1 ? std::max<int64_t>(1, std::min(s.ci, s.co) / s.groups) : 1;
    unit = (lanes - 1) / each + 1;
    const int64_t weights = s.co * (s.ci / s.groups) * s.kernel_points();
    const double work = static_cast<double>(weights) * static_cast<double>(s.n * s.out_points());
    const auto most = static_cast<int64_t>(std::clamp<double>(work / worth, 1, num_threads()));
    // Each part of the images makes its own sum of the weight gradient. In 16-bit dtypes these sums
    // would be rounded before they are added, so there is one part.
    int64_t images_most = std::min(most, s.n);
    if (kind == backward_weight)
      images_most = s.dtype == DType::Float32 ? std::min(images_most, 1 + sums_most / weights) : 1;
    double best = std::numeric_limits<double>::infinity();
    for (int64_t a = images_most; a >= 1; --a) {
      const int64_t b = std::min(most / a, (count - 1) / unit + 1);
      // Every part of the channels reorders the whole other operand for oneDNN again.
      const double cost =
          static_cast<double>((s.n - 1) / a + 1) *
          static_cast<double>(std::min(count, ((count - 1) / unit / b + 1) * unit)) *
          (b > 1 ? 1.05 : 1.0);
      if (cost < best) best = cost, images = a, channels = b;
    }
  }
  int64_t image(int64_t part, int64_t n) const { return n * part / images; }
  int64_t channel(int64_t part) const {
    return std::min(count, ((count - 1) / unit + 1) * part / channels * unit);
  }
};

// The shapes and offsets of the part with images [n0, n1) and channels or groups [c0, c1).
struct Operands {
  Part part;
  int64_t x, y, w, bias;  // elements to where its own begin

  Operands(Kind kind, const ConvShape& s, int64_t n0, int64_t n1, int64_t c0, int64_t c1)
      : part{s, s.ci, s.co, s.ci / s.groups} {
    const int64_t cig = s.ci / s.groups, cog = s.co / s.groups;
    int64_t x0 = 0, y0 = 0;
    part.shape.n = n1 - n0;
    if (s.groups > 1) {
      x0 = c0 * cig, y0 = c0 * cog;
      part.shape.groups = c1 - c0, part.shape.ci = (c1 - c0) * cig, part.shape.co = (c1 - c0) * cog;
    } else if (kind == backward_input) {
      x0 = c0, part.shape.ci = c1 - c0;
    } else {
      y0 = c0, part.shape.co = c1 - c0;
    }
    x = n0 * s.ci * s.in_points() + x0 * (s.last ? 1 : s.in_points());
    y = n0 * s.co * s.out_points() + y0 * (s.last ? 1 : s.out_points());
    w = (s.groups > 1 ? y0 * cig : y0 * s.ci + x0) * s.kernel_points();
    bias = y0;
  }
};

const LocalScratch sums_scratch;

bool run_parts(Kind kind, const ConvShape& s, const void* x, const void* w, const void* bias,
               const void* y) {
  if (s.dtype != DType::Float32 && s.dtype != DType::BFloat16) return false;
  const Cut cut(kind, s);
  const auto item = static_cast<int64_t>(itemsize(s.dtype));
  const int64_t weights = s.co * (s.ci / s.groups) * s.kernel_points();
  float* sums = nullptr;  // of the weights' gradient, from all parts of the images but the first
  if (kind == backward_weight && cut.images > 1)
    sums = sums_scratch.of<float>((cut.images - 1) * weights);
  std::atomic<bool> done{true};
  parallel_for(cut.images * cut.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t a = k / cut.channels, b = k % cut.channels;
      const int64_t n0 = cut.image(a, s.n), n1 = cut.image(a + 1, s.n);
      const int64_t c0 = cut.channel(b), c1 = cut.channel(b + 1);
      if (n0 == n1 || c0 == c1) continue;
      const Operands o(kind, s, n0, n1, c0, c1);
      auto at = [item](const void* p, int64_t elements) {
        return static_cast<char*>(const_cast<void*>(p)) + elements * item;
      };
      char *px = at(x, o.x), *py = at(y, o.y), *pw = at(w, o.w);
      const void* pb = bias ? at(bias, o.bias) : nullptr;
      if (kind == backward_weight && a > 0)
        pw = reinterpret_cast<char*>(sums + (a - 1) * weights + o.w);
      const bool ran = kind == forward          ? run(kind, o.part, px, pw, pb, py)
                       : kind == backward_input ? run(kind, o.part, py, pw, nullptr, px)
                                                : run(kind, o.part, py, px, nullptr, pw);
      if (!ran) done.store(false, std::memory_order_relaxed);
    }
  });
  if (!done) return false;
  if (sums) {
    auto* to = static_cast<float*>(const_cast<void*>(w));
    parallel_for(weights, grain_default / cut.images, [&](int64_t begin, int64_t end) {
      for (int64_t a = 1; a < cut.images; ++a) {
        const float* from = sums + (a - 1) * weights;
        for (int64_t i = begin; i < end; ++i) to[i] += from[i];
      }
    });
    sums_scratch.trim(kept_megabytes);
  }
  return true;
}

}  // namespace

bool conv_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y) {
  return run_parts(forward, s, x, w, bias, y);
}
bool conv_input(const ConvShape& s, const void* y, const void* w, void* x) {
  return run_parts(backward_input, s, x, w, nullptr, y);
}
bool conv_weight(const ConvShape& s, const void* y, const void* x, void* w) {
  return run_parts(backward_weight, s, x, w, nullptr, y);
}

}  // namespace clew::kernels::onednn
