// Elementwise operations: their dtypes and shapes, results, and running their loops.
// May include: graph, kernels/core/spread.h.
// Invariant: a loop runs after the dtype and shape rules have accepted the operands.
#include "graph/elementwise.h"

#include <array>
#include <optional>

#include "graph/deferral.h"
#include "graph/node.h"
#include "graph/promotion.h"
#include "kernels/core/spread.h"
#include "tensor/layout.h"

namespace clew {

namespace {

constexpr int max_operands = 5;

[[noreturn]] void fail_dtype(const OpDef& op, DType d) {
  fail(ErrorKind::NotImplemented, "\"", spoken_name(op), "\" is not implemented for ", d,
       is_complex(d) ? "; take .real, .imag or .abs() first"
       : is_floating(d)
           ? "; convert the input first, e.g. with .long(), or compare to get truth values"
           : "; convert the input first, e.g. with .float()");
}

// Operands of dtypes that are only stored: widened, and the result is rounded once.
void run_widened(const OpDef& op, std::span<const Tensor> given, const void* attrs, DType compute,
                 const Tensor& result) {
  const DType wide = widened_dtype(compute);
  if (!(*op.loops)[wide]) fail_dtype(op, compute);
  std::array<Tensor, max_operands> in;
  for (size_t i = 0; i < given.size(); ++i)
    in[i] = given[i].is_wrapped_number() ? given[i] : dense_copy(given[i], wide);
  const std::span<const Tensor> operands{in.data(), given.size()};
  if (op.result == Result::boolean)
    return run_elementwise_into(op, operands, attrs, wide, result, DType::Bool);
  const DType made = op.result == Result::real ? real_of(wide) : wide;
  const Tensor out = empty(result.sizes(), made);
  run_elementwise_into(op, operands, attrs, wide, out, made);
  copy_into(result, out);
}

// Whether operands are spread to the result's shape on the stack: many calls of a loop for a few
// elements each would take longer.
bool is_spread(const Shape& out) {
  return out.contiguous && out.sizes.size() <= kernels::spread_dims &&
         out.numel <= kernels::spread_elements;
}

// The first operand of the result's shape, if it is dense and the others broadcast to it; or null.
const Tensor* full_operand(std::span<const Tensor> in) {
  const Tensor* full = &in[0];
  for (const Tensor& t : in.subspan(1))
    if (t.numel() > full->numel()) full = &t;
  const Dims& sizes = full->sizes();
  if (full->is_meta() || !full->is_contiguous()) return nullptr;
  for (const Tensor& t : in) {
    if (t.is_same(*full)) continue;
    const Dims& own = t.sizes();
    const int lead = sizes.size() - own.size();
    if (lead < 0 || t.is_meta() || !t.is_contiguous()) return nullptr;
    for (int d = 0; d < own.size(); ++d)
      if (own[d] != sizes[lead + d] && own[d] != 1) return nullptr;
  }
  return full;
}

// What a call that waits is to fill; undefined where the call runs at once.
Tensor result_to_wait(const OpDef& op, std::span<const Tensor> in, DType output) {
  const Dims sizes = elementwise_shape(op, in);
  const Device device = device_of(op, in);
  if (device != Device::CPU || !waits(in, numel_of(sizes), true)) return {};
  return empty_like_inputs(sizes, in, output, NewBytes::pending(device));
}

// Whether the result may be written over in[0], which holds a gradient of no further use.
bool disposes(const TensorObj* disposable, std::span<const Tensor> in, DType output) {
  return disposable && in[0].get() == disposable && disposable->dtype == output;
}

}  // namespace

std::string_view spoken_name(const OpDef& op) {
  std::string_view name = op_name(op);
  return name.substr(std::min(name.find_first_not_of('_'), name.size()));
}
Device device_of(const OpDef& op, std::span<const Tensor> in) {
  Device d = Device::CPU;
  bool cpu_with_dims = false;
  for (const Tensor& t : in) {
    if (!t.defined()) continue;
    if (t.is_meta())
      d = Device::Meta;
    else if (t.ndim() > 0)
      cpu_with_dims = true;
  }
  if (d == Device::Meta && cpu_with_dims)
    fail(spoken_name(op),
         ": expected all tensors to be on the same device, but found at least two devices, cpu and "
         "meta");
  return d;
}

Tensor empty_like_inputs(const Dims& sizes, std::span<const Tensor> in, DType dtype,
                         NewBytes what) {
  for (const Tensor& t : in) {
    if (t.numel() == 1) continue;  // one element does not determine a layout
    if (t.sizes() == sizes) {
      if (t.is_contiguous()) break;
      if (is_non_overlapping_and_dense(t.sizes(), t.strides()))
        return empty_strided(sizes, t.strides(), dtype, what);
    }
    return empty_strided(sizes, ordered_strides(sizes, in), dtype, what);
  }
  return empty(sizes, dtype, what);
}

bool hazardous(const Tensor& dst, const Tensor& src) {
  if (dst->storage != src->storage) return false;
  if (dst->offset == src->offset && dst.sizes() == src.sizes() && dst.strides() == src.strides())
    return false;
  return src.numel() > 0;
}

OutputTypes elementwise_types(const OpDef& op, std::span<const Tensor> in) {
  if (op.check_operands) op.check_operands(op, in);
  DType c;
  if (op.promote == Promote::none) {
    c = in[0].dtype();
    for (const Tensor& t : in)
      if (t.dtype() != c && !t.is_wrapped_number())
        fail(spoken_name(op), ": expected all inputs to have the same dtype; got ", c, " and ",
             t.dtype());
  } else {
    c = result_type(in);
    if (op.promote == Promote::to_float && is_integral(c)) c = default_dtype();
    if (op.promote == Promote::to_number && c == DType::Bool) c = DType::Int64;
  }
  DType out = op.result == Result::boolean ? DType::Bool
              : op.result == Result::real  ? real_of(c)
                                           : c;
  return {c, out};
}
void require_kept(const KernelFrame& frame, const OpDef& op, std::span<const Tensor> in) {
  if (frame.replaced() && modes.grad && any_requires_grad(in))
    fail(spoken_name(op),
         ": another thread gave an input other data while the operation ran, so it cannot be "
         "recorded; give each thread a tensor object of its own, e.g. x.detach()");
}

Dims elementwise_shape(const OpDef& op, std::span<const Tensor> in) {
  Dims sizes = in[0].sizes();
  for (size_t i = 1; i < in.size(); ++i)
    if (in[i].sizes() != sizes && in[i].ndim() > 0) {
      std::string name(spoken_name(op));
      sizes = broadcast_shapes(sizes, in[i].sizes(), name.c_str());
    }
  return sizes;
}

// Refuses a truth value as the factor (alpha) of an operand that is none.
void check_factor(const OpDef& op, const void* attrs, DType compute) {
  if (!attrs || !op.takes_numbers || compute == DType::Bool) return;
  if (static_cast<const Scalar*>(attrs)->kind == Scalar::Kind::Bool)
    fail(spoken_name(op), ": argument alpha must be a number for ", compute,
         " tensors; a bool is taken for bool results only");
}

void run_elementwise_into(const OpDef& op, std::span<const Tensor> given, const void* attrs,
                          DType compute, const Tensor& result, DType out_dtype) {
  kernels::Loop loop = (*op.loops)[compute];
  if (!loop && !is_stored(compute)) fail_dtype(op, compute);
  if (given.size() == 2) check_factor(op, attrs, compute);
  if (result.is_meta() || result.numel() == 0) return;
  if (waits(given, result.numel(), true, &result)) {
    for (size_t i = 0; op.check_number && i < given.size(); ++i)
      if (given[i].is_wrapped_number())
        op.check_number(static_cast<int>(i), item(given[i]), compute);
    return deferral.keep(op, given, attrs, {&result, 1}, Waits::loops, compute);
  }
  if (is_stored(compute)) return run_widened(op, given, attrs, compute, result);
  settle_before_write(result);
  const bool large = result.numel() >= held_elements;
  const KernelFrame frame(given, large);
  const std::span<const Tensor> in = frame.tensors();
  const Tensor out = large ? alias(result) : result;
  int n = static_cast<int>(in.size()) + 1;
  char* data[max_operands];
  int64_t inner[max_operands];
  std::optional<std::array<Tensor, max_operands>> converted;  // seldom: clearing it takes its time
  alignas(16) char scalars[max_operands][16];
  const auto* params = static_cast<const Scalar*>(attrs);
  const kernels::Loop beside_number = op.loops->beside_number(compute);
  std::optional<std::array<Scalar, max_operands>> numbers;
  data[0] = out->address();
  inner[0] = static_cast<int64_t>(itemsize(out_dtype));
  auto step = static_cast<int64_t>(itemsize(compute));
  bool flat = out.is_contiguous();
  const bool small = is_spread(*out->shape);
  alignas(64) char rooms[max_operands - 1][kernels::spread_elements * 16];
  for (int i = 1; i < n; ++i) {
    const Tensor& t = in[static_cast<size_t>(i - 1)];
    if (t.numel() == 1) {
      inner[i] = 0;
      if (op.check_number && t.is_wrapped_number()) op.check_number(i - 1, item(t), compute);
      if (t.dtype() == compute) {
        data[i] = t->address();
        // A loop may treat a number that is broadcast to many elements differently (its stride is
        // 0).
        if (out.numel() == 1 && (i == 1 || t.ndim() > 0)) inner[i] = step;
      } else if (beside_number && t.ndim() == 0) {
        if (!numbers) numbers.emplace();
        (*numbers)[static_cast<size_t>(i - 1)] = item(t);
        data[i] = scalars[i];
        loop = beside_number;
        params = numbers->data();
      } else {
        Scalar v = item(t);
        dispatch(compute, AllTypes{},
                 [&]<class T>() { *reinterpret_cast<T*>(scalars[i]) = v.to<T>(); });
        data[i] = scalars[i];
      }
      continue;
    }
    inner[i] = step;
    if (small) {
      if (t.dtype() == compute && t.is_contiguous() && t.numel() == out.numel()) {
        data[i] = t->address();
      } else {
        kernels::spread(t.nd(), out.sizes().data(), out.ndim(), compute, rooms[i - 1]);
        data[i] = rooms[i - 1];
      }
      continue;
    }
    const Tensor* use = &t;
    if (t.dtype() != compute) {
      if (!converted) converted.emplace();
      use = &((*converted)[static_cast<size_t>(i)] = dense_copy(t, compute));
    }
    data[i] = (*use)->address();
    flat = flat && use->is_contiguous() && use->sizes() == out.sizes();
  }
  if (flat && out.numel() < grain_default) {
    loop(data, inner, out.numel(), params);
    return;
  }
  Dims strides[max_operands];
  const int64_t* stride_ptrs[max_operands];
  size_t sizes[max_operands];
  strides[0] = out.strides();
  for (int i = 1; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    const Tensor& t = converted && (*converted)[at].defined() ? (*converted)[at] : in[at - 1];
    if (inner[i] == 0)
      strides[i] = Dims(out.ndim(), 0);
    else
      strides[i] = broadcast_strides(t.sizes(), t.strides(), out.sizes());
  }
  for (int i = 0; i < n; ++i) {
    stride_ptrs[i] = strides[i].data();
    sizes[i] = i == 0 ? itemsize(out_dtype) : itemsize(compute);
  }
  kernels::run_loop(loop, n, data, stride_ptrs, sizes, out.sizes().data(), out.ndim(), params);
  require_kept(frame, op, given);
}

Tensor run_small_dense(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                       TensorObj* disposable) {
  const Tensor& a = in[0];
  const Shape* shape = a->shape;
  DType d = a.dtype();
  kernels::Loop loop = (*op.loops)[d];
  if (!loop || !shape->contiguous || shape->numel >= grain_default || shape->numel == 0 ||
      !a->storage->is_ready() || (a->flags & flag_wrapped_number) ||
      (op.promote == Promote::to_float && is_integral(d)) ||
      (op.result == Result::real && is_complex(d)))
    return {};
  char* data[max_operands];
  int64_t inner[max_operands];
  alignas(16) double scalars[max_operands];
  auto step = static_cast<int64_t>(itemsize(d));
  data[1] = a->address();
  inner[1] = step;
  const bool number = shape->sizes.empty();  // the others are numbers to the loop, too
  for (size_t i = 1; i < in.size(); ++i) {
    const TensorObj* t = in[i].get();
    data[i + 1] = t->address();
    if (t->shape == shape && !number && t->dtype == d && t->storage->is_ready()) [[likely]] {
      inner[i + 1] = step;
    } else if (t->shape->sizes.empty() && t->storage->is_ready()) {
      inner[i + 1] = 0;
      if (t->dtype == d) {
        if (op.check_number && (t->flags & flag_wrapped_number) && is_integral(d)) return {};
        continue;
      }
      // A Python number beside floats.
      if (!(t->flags & flag_wrapped_number) || op.promote == Promote::none) return {};
      double v;
      if (t->dtype == DType::Float64)
        v = *reinterpret_cast<double*>(t->address());
      else if (t->dtype == DType::Int64)
        v = static_cast<double>(*reinterpret_cast<int64_t*>(t->address()));
      else
        return {};
      data[i + 1] = reinterpret_cast<char*>(&scalars[i]);
      if (d == DType::Float64) {
        scalars[i] = v;
      } else if (d == DType::Float32) {
        auto single = static_cast<float>(v);
        std::memcpy(&scalars[i], &single, sizeof single);
      } else {
        return {};
      }
    } else {
      if (t->dtype != d || !t->shape->contiguous || t->shape->sizes != shape->sizes ||
          !t->storage->is_ready())
        return {};
      inner[i + 1] = step;
    }
  }
  if (in.size() == 2) check_factor(op, attrs, d);
  DType output = op.result == Result::boolean ? DType::Bool : d;
  Tensor out = disposes(disposable, in, output) ? a : empty_dense_like(a, output);
  data[0] = out->address();
  inner[0] = static_cast<int64_t>(itemsize(output));
  loop(data, inner, shape->numel, static_cast<const Scalar*>(attrs));
  return out;
}

Tensor run_elementwise(const OpDef& op, std::span<const Tensor> in, const void* attrs) {
  TensorObj* disposable = std::exchange(modes.disposable, nullptr);
  if (!modes.deferred || in[0].numel() < modes.least_deferred) [[likely]]
    if (Tensor out = run_small_dense(op, in, attrs, disposable)) return out;
  OutputTypes types = elementwise_types(op, in);
  const Tensor& a = in[0];
  bool same_shape = a.is_contiguous() && !a.is_meta();
  for (size_t i = 1; same_shape && i < in.size(); ++i) {
    const Tensor& t = in[i];
    same_shape = !t.is_meta() && (t.ndim() == 0 || (t.is_contiguous() && t.sizes() == a.sizes()));
  }
  Tensor out = modes.deferred ? result_to_wait(op, in, types.output) : Tensor();
  if (out) {
    // run_elementwise_into() keeps the call
  } else if (same_shape) {
    out = disposes(disposable, in, types.output) ? a : empty(a.sizes(), types.output);
  } else if (const Tensor* full = full_operand(in)) {
    out = empty_dense_like(*full, types.output);
  } else {
    out = empty_like_inputs(elementwise_shape(op, in), in, types.output, device_of(op, in));
  }
  run_elementwise_into(op, in, attrs, types.compute, out, types.output);
  return out;
}

}  // namespace clew
