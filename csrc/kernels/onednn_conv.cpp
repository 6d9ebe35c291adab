// Convolutions through oneDNN, which chooses the memory formats; operands are reordered.
// May include: base, kernels; oneapi/dnnl/dnnl.h (only onednn* files do).
// Invariant: primitives and reorders are cached by shape; scratch belongs to the calling thread.
#include "kernels/onednn_conv.h"

#include <cstdlib>
#include <new>

#include "kernels/onednn_cache.h"

namespace clew::kernels::onednn {

namespace {

enum Kind : int64_t { forward, backward_input, backward_weight };

// What the primitive depends on; int64 throughout, so that it has no padding.
struct ConvKey {
  int64_t kind, dtype, nd, bias, last;
  int64_t n, ci, co, groups;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
  bool operator==(const ConvKey&) const = default;
};

ConvKey key_of(Kind kind, const ConvShape& s, bool bias) {
  ConvKey k{kind,     static_cast<int64_t>(s.dtype),
            s.nd,     bias,
            s.last,   s.n,
            s.ci,     s.co,
            s.groups, {},
            {},       {},
            {},       {},
            {}};
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

Desc plain(const Shape& s, dnnl_data_type_t type) {
  dnnl_dims_t strides;
  int64_t step = 1;
  for (int d = s.count - 1; d >= 0; --d) {
    strides[d] = step;
    step *= s.dims[d];
  }
  Desc desc;
  check(dnnl_memory_desc_create_with_strides(desc.out(), s.count, s.dims, type, strides));
  return desc;
}

// Images whose channels lie last.
Desc channels_last(const Shape& s, dnnl_data_type_t type) {
  dnnl_dims_t strides;
  strides[1] = 1;
  int64_t step = s.dims[1];
  for (int d = s.count - 1; d >= 2; --d) {
    strides[d] = step;
    step *= s.dims[d];
  }
  strides[0] = step;
  Desc desc;
  check(dnnl_memory_desc_create_with_strides(desc.out(), s.count, s.dims, type, strides));
  return desc;
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
  const auto images = k.last ? channels_last : any;
  const Desc xa = images(x, type), wa = any(w, type), ya = images(y, type), bp = plain(b, type);
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
  const Desc xp = held(x, type), wp = plain(w, type), yp = held(y, type);
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

bool run(Kind kind, const ConvShape& s, const void* first, const void* second, const void* bias,
         void* result) {
  if (s.dtype != DType::Float32 && s.dtype != DType::BFloat16) return false;
  static Cache<ConvKey, Convolution> cache;
  try {
    const auto c = cache.get(key_of(kind, s, bias != nullptr), make);
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

}  // namespace

bool conv_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y) {
  return run(forward, s, x, w, bias, y);
}
bool conv_input(const ConvShape& s, const void* y, const void* w, void* x) {
  return run(backward_input, s, y, w, nullptr, x);
}
bool conv_weight(const ConvShape& s, const void* y, const void* x, void* w) {
  return run(backward_weight, s, y, x, nullptr, w);
}

}  // namespace clew::kernels::onednn
