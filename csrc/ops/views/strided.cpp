// Views that look at memory itself: as_strided and other element types.
// May include: ops, graph, tensor, kernels.
// Invariant: no view reaches beyond its input's storage.
#include "kernels/indexing/index.h"
#include "ops/batch_rules.h"
#include "ops/calls/shape.h"
#include "tensor/extent.h"

namespace clew {

namespace {

// ---- as_strided ---------------------------------------------------------------------------------

// The distance from the first to the last element, or nothing when there are no elements.
std::optional<int64_t> extent_of(const Dims& size, const Dims& stride, std::string_view op) {
  const Checked span = span_of(size, stride);
  require(span.fits, op, ": size ", size, " with stride ", stride,
          " reaches beyond what an int64 can count");
  if (span.value == 0) return {};
  return span.value - 1;
}

// A view given relative to the input's first element; in_stride is the input's, for the gradient.
struct StridedAttrs {
  Dims size;
  Dims stride;
  int64_t offset = 0;
  Dims in_stride;
  static constexpr auto members() {
    return std::tuple(&StridedAttrs::size, &StridedAttrs::stride, &StridedAttrs::offset,
                      &StridedAttrs::in_stride);
  }
};
void strided_rule(const Call& c, std::vector<ViewSpec>& out) {
  const auto& a = c.as<StridedAttrs>();
  const Tensor& x = c.in[0];
  require(a.size.size() == a.stride.size(), c.name(),
          ": size and stride must be equally long; got ", a.size, " and ", a.stride);
  for (int i = 0; i < a.size.size(); ++i) {
    require(a.size[i] >= 0 && a.stride[i] >= 0, c.name(),
            ": sizes and strides must not be negative; got ", a.size, " and ", a.stride);
  }
  const Checked sum = Checked(x.storage_offset()) + a.offset;
  require(sum.fits, c.name(), ": offset ", a.offset, " is too large");
  const int64_t first = sum.value;
  require(first >= 0, c.name(), ": storage_offset must not be negative; got ", first);
  if (std::optional<int64_t> extent = extent_of(a.size, a.stride, c.name())) {
    auto held = static_cast<int64_t>(x->storage->nbytes / itemsize(x.dtype()));
    require(first < held && *extent < held - first, c.name(), ": size ", a.size, ", stride ",
            a.stride, " and storage offset ", first, " reach beyond the storage of ", held,
            " elements");
  }
  out.push_back(ViewSpec{a.size, a.stride, a.offset});
}

struct RestrideAttrs {
  Dims from_stride;
  int64_t from_offset = 0;
  Dims to_size;
  Dims to_stride;
  int64_t to_offset = 0;
  int64_t mean = 0;
  static constexpr auto members() {
    return std::tuple(&RestrideAttrs::from_stride, &RestrideAttrs::from_offset,
                      &RestrideAttrs::to_size, &RestrideAttrs::to_stride, &RestrideAttrs::to_offset,
                      &RestrideAttrs::mean);
  }
};
void restride_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<RestrideAttrs>();
  const Dims& from = c.in[0].sizes();
  require(from.size() == a.from_stride.size() && a.to_size.size() == a.to_stride.size(), c.name(),
          ": sizes and strides must be equally long");
  for (int64_t s : a.from_stride) require(s >= 0, c.name(), ": strides must not be negative");
  for (int64_t s : a.to_stride) require(s >= 0, c.name(), ": strides must not be negative");
  for (int64_t s : a.to_size) require(s >= 0, c.name(), ": sizes must not be negative");
  constexpr int64_t far = int64_t{1} << 60;
  int64_t from_extent = extent_of(from, a.from_stride, c.name()).value_or(0);
  int64_t to_extent = extent_of(a.to_size, a.to_stride, c.name()).value_or(0);
  require(std::max(from_extent, to_extent) < far && std::abs(a.from_offset / 2) < far / 2 &&
              std::abs(a.to_offset / 2) < far / 2,
          c.name(), ": sizes, strides and offsets are too large");
  out.add(c.in[0].dtype(), a.to_size);
}
void restride_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<RestrideAttrs>();
  const Tensor& x = c.in[0];
  int64_t origin = std::min(a.from_offset, a.to_offset);
  int64_t from_at = a.from_offset - origin;
  int64_t to_at = a.to_offset - origin;
  int64_t from_end = extent_of(x.sizes(), a.from_stride, c.name()).value_or(-1) + from_at;
  int64_t to_end = extent_of(a.to_size, a.to_stride, c.name()).value_or(-1) + to_at;
  Tensor memory = empty({std::max({from_end, to_end, int64_t{0}}) + 1}, x.dtype());
  fill_(memory, Scalar(0));
  auto at_source = [&](const Tensor& m) { return alias(m, x.sizes(), a.from_stride, from_at); };
  auto at_result = [&](const Tensor& m) { return alias(m, a.to_size, a.to_stride, to_at); };
  Tensor values = x;
  Tensor counts;
  if (a.mean) {
    counts = empty(memory.sizes(), x.dtype());
    fill_(counts, Scalar(0));
    const Tensor where = a.mean == 1 ? at_result(counts) : at_source(counts);
    Tensor one = scalar_tensor(Scalar(1), x.dtype());
    if (where.numel())
      kernels::accumulate(where.nd(), alias(one, where.sizes(), Dims(where.ndim(), 0)).nd());
    if (a.mean == 2) {
      values = dense_copy(x);
      if (where.numel()) kernels::divide_by(values.nd(), where.nd());
    }
  }
  if (values.numel()) kernels::accumulate(at_source(memory).nd(), values.nd());
  if (outs[0].numel()) copy_into(outs[0], at_result(memory));
  if (a.mean == 1 && outs[0].numel()) kernels::divide_by(outs[0].nd(), at_result(counts).nd());
}
void restride_vjp(Vjp& c);
constexpr OpDef restride_op = general({
    .signature = "_restride(Tensor input, int[] from_stride, int from_offset, int[] to_size, int[] "
                 "to_stride, "
                 "int to_offset, int mean=0) -> Tensor",
    .doc = "Adds the input into zeroed memory by one set of strides and reads it by another; "
           "`mean` divides by how often "
           "an element of the result (1) or of the input (2) shares its place.",
    .shape = restride_shape,
    .cpu = restride_cpu,
    .vjp = restride_vjp,
    .attrs = &attr_info<RestrideAttrs>,
    .offer = Offer::function,
    .flops = "0",
});
void restride_vjp(Vjp& c) {
  const auto& a = c.as<RestrideAttrs>();
  c.set(0, apply(restride_op, {c.grad()},
                 RestrideAttrs{a.to_stride, a.to_offset, c.sizes(0), a.from_stride, a.from_offset,
                               a.mean == 0 ? 0 : 3 - a.mean}));
}
void strided_vjp(Vjp& c) {
  const auto& a = c.as<StridedAttrs>();
  // Input elements that share memory share the gradient that memory receives.
  bool shares = false;
  for (int i = 0; i < a.in_stride.size(); ++i)
    shares = shares || (c.sizes(0)[i] > 1 && a.in_stride[i] == 0);
  shares = shares || !is_non_overlapping_and_dense(c.sizes(0), a.in_stride);
  c.set(0, apply(restride_op, {c.grad()},
                 RestrideAttrs{a.stride, a.offset, c.sizes(0), a.in_stride, 0, shares ? 1 : 0}));
}
constexpr OpDef strided_op = view({
    .signature = "_as_strided(Tensor input, int[] size, int[] stride, int offset, int[] in_stride) "
                 "-> Tensor",
    .doc =
        "A view with the given sizes and strides, offset counted from the input's first element.",
    .view = strided_rule,
    .vjp = strided_vjp,
    .attrs = &attr_info<StridedAttrs>,
    .offer = Offer::function,
});

struct AsStridedAttrs {
  Dims size;
  Dims stride;
  std::optional<int64_t> storage_offset;
  static constexpr auto members() {
    return std::tuple(&AsStridedAttrs::size, &AsStridedAttrs::stride,
                      &AsStridedAttrs::storage_offset);
  }
};
void as_strided_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<AsStridedAttrs>();
  outs.push_back(as_strided(c.in[0], a.size, a.stride, a.storage_offset));
}
constexpr OpDef as_strided_op = composite({
    .signature =
        "as_strided(Tensor input, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    .doc = R"(A view of the input's storage with any sizes and strides.

Args:
    size: the sizes of the view.
    stride: its strides, in elements.
    storage_offset: where it begins in the storage; the input's own beginning when not given.
Returns: a view whose elements may share memory.

>>> clew.arange(5).as_strided((3, 2), (1, 2)).tolist()
[[0, 2], [1, 3], [2, 4]]
)",
    .run = as_strided_run,
    .attrs = &attr_info<AsStridedAttrs>,
    .by_strides = true,
});

// ---- other element types ------------------------------------------------------------------------

// Another tensor over the same bytes; no copy and no history.
Tensor reinterpret(const Tensor& x, DType dtype, const Dims& sizes, const Dims& strides) {
  Tensor y = alias(x);
  TensorObj* p = y.get();
  p->dtype = dtype;
  take_shape(p, Shape::strided(sizes, strides));
  p->flags &= static_cast<uint8_t>(~flag_wrapped_number);
  return y;
}

Dims as_real_strides(const Tensor& x) {
  Dims strides = x.strides();
  for (int64_t& s : strides) s *= 2;
  strides.push_back(1);
  return strides;
}
void as_real_shape(const Call& c, OutSpecs& out) {
  const Tensor& x = c.in[0];
  require(x.is_complex(), c.name(), ": input must be complex; got ", x);
  Dims sizes = x.sizes();
  sizes.push_back(2);
  out.add(real_of(x.dtype()), sizes);
}
void as_real_cpu(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  outs[0] = reinterpret(x, real_of(x.dtype()), outs[0].sizes(), as_real_strides(x));
}
void as_real_vjp(Vjp& c) { c.set(0, view_as_complex(contiguous(c.grad()))); }
constexpr OpDef as_real_op = general({
    .signature = "view_as_real(Tensor input) -> Tensor",
    .doc = R"(A complex tensor as a real one with a last dimension of real and imaginary part.

Returns: a tensor that shares memory with the input.

>>> clew.view_as_real(clew.tensor([1 + 2j])).tolist()
[[1.0, 2.0]]
)",
    .shape = as_real_shape,
    .cpu = as_real_cpu,
    .vjp = as_real_vjp,
    .batch = batch_leading,
    .aliases = true,
    .offer = Offer::function,
    .flops = "0",
});

void as_complex_shape(const Call& c, OutSpecs& out) {
  const Tensor& x = c.in[0];
  require(x.dtype() == DType::Float16 || x.dtype() == DType::Float32 || x.dtype() == DType::Float64,
          c.name(), ": input must be float16, float32 or float64; got ", x);
  require(x.ndim() > 0 && x.size(-1) == 2, c.name(), ": the last dimension must have size 2; got ",
          x);
  require(x.stride(-1) == 1, c.name(), ": the last dimension must have stride 1; got strides ",
          x.strides());
  for (int d = 0; d + 1 < x.ndim(); ++d) {
    require(x.stride(d) % 2 == 0, c.name(), ": strides must be even; got ", x.strides());
  }
  require(x.storage_offset() % 2 == 0, c.name(), ": the storage offset must be even; got ",
          x.storage_offset());
  Dims sizes = x.sizes();
  sizes.pop_back();
  out.add(complex_of(x.dtype()), sizes);
}
void as_complex_cpu(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  Dims strides = x.strides();
  strides.pop_back();
  for (int64_t& s : strides) s /= 2;
  outs[0] = reinterpret(x, complex_of(x.dtype()), outs[0].sizes(), strides);
}
void as_complex_vjp(Vjp& c) { c.set(0, view_as_real(c.grad())); }
constexpr OpDef as_complex_op = general({
    .signature = "view_as_complex(Tensor input) -> Tensor",
    .doc = R"(A real tensor whose last dimension holds real and imaginary part, as a complex one.

Returns: a tensor that shares memory with the input.

>>> clew.view_as_complex(clew.tensor([[1., 2.]])).tolist()
[(1+2j)]
)",
    .shape = as_complex_shape,
    .cpu = as_complex_cpu,
    .vjp = as_complex_vjp,
    .batch = batch_leading,
    .aliases = true,
    .autocast = Autocast::float32,
    .offer = Offer::function,
    .flops = "0",
});

struct DTypeAttrs {
  std::optional<DType> dtype;
  static constexpr auto members() { return std::tuple(&DTypeAttrs::dtype); }
};
struct Retyped {
  Dims sizes;
  Dims strides;
};
Retyped retype(const Call& c, DType to) {
  const Tensor& x = c.in[0];
  auto have = static_cast<int64_t>(itemsize(x.dtype()));
  auto want = static_cast<int64_t>(itemsize(to));
  Retyped r{x.sizes(), x.strides()};
  if (have == want) return r;
  require(x.ndim() > 0, c.name(), ": a 0-d tensor cannot be viewed as ", to,
          ", whose elements have another size");
  require(x.stride(-1) == 1, c.name(), ": the last dimension must have stride 1 to be viewed as ",
          to, "; got strides ", x.strides());
  int last = x.ndim() - 1;
  if (have > want) {
    int64_t ratio = have / want;
    for (int64_t& s : r.strides) s *= ratio;
    r.strides[last] = 1;
    r.sizes[last] *= ratio;
    return r;
  }
  int64_t ratio = want / have;
  require(x.size(-1) % ratio == 0, c.name(), ": the last dimension must be divisible by ", ratio,
          " to be viewed as ", to, "; got ", x);
  require(x.storage_offset() % ratio == 0, c.name(), ": the storage offset must be divisible by ",
          ratio, " to be viewed as ", to, "; got ", x.storage_offset());
  for (int d = 0; d < last; ++d) {
    require(x.stride(d) % ratio == 0, c.name(), ": strides must be divisible by ", ratio,
            " to be viewed as ", to, "; got ", x.strides());
    r.strides[d] /= ratio;
  }
  r.sizes[last] /= ratio;
  return r;
}
DType wanted_dtype(const Call& c) {
  const auto& dtype = c.as<DTypeAttrs>().dtype;
  if (!dtype) fail_type(c.name(), ": a shape or a dtype is required");
  return *dtype;
}
void retype_shape(const Call& c, OutSpecs& out) {
  DType dtype = wanted_dtype(c);
  out.add(dtype, retype(c, dtype).sizes);
}
void retype_cpu(const Call& c, Tensors& outs) {
  DType dtype = wanted_dtype(c);
  Retyped r = retype(c, dtype);
  outs[0] = reinterpret(c.in[0], dtype, r.sizes, r.strides);
}
constexpr OpDef view_dtype_op = general({
    .signature = "view(Tensor input, dtype? dtype) -> Tensor",
    .doc = R"(The same bytes as elements of another type.

Args:
    dtype: the type; where its size differs, the last dimension grows or shrinks.
Returns: a tensor that shares memory with the input.

>>> clew.tensor([1.0]).view(clew.int32).tolist()
[1065353216]
)",
    .shape = retype_shape,
    .cpu = retype_cpu,
    .no_vjp = no_rule("the bytes of a number are not a differentiable function of it"),
    .attrs = &attr_info<DTypeAttrs>,
    .aliases = true,
    .offer = Offer::method,
});

constexpr const OpDef* strided_list[] = {
    &strided_op, &restride_op, &as_strided_op, &as_real_op, &as_complex_op, &view_dtype_op,
};

}  // namespace

extern const OpList strided_ops;
const OpList strided_ops = op_list(strided_list);

Tensor as_strided(const Tensor& x, const Dims& size, const Dims& stride,
                  std::optional<int64_t> storage_offset) {
  int64_t offset = 0;
  if (storage_offset) {
    require(*storage_offset >= 0, "as_strided: storage_offset must not be negative; got ",
            *storage_offset);
    offset = *storage_offset - x.storage_offset();
  }
  return apply(strided_op, {x}, StridedAttrs{size, stride, offset, x.strides()});
}
Tensor view_as_real(const Tensor& x) { return apply(as_real_op, {x}); }
Tensor view_as_complex(const Tensor& x) { return apply(as_complex_op, {x}); }

}  // namespace clew
