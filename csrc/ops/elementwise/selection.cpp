// Selection by a condition (where, masked_fill) and by size (maximum, clamp ...).
// May include: graph/op.h, kernels/core/loop_tables.h, other families' headers.
// Invariant: gradients go to the element that was taken; maximum and minimum share it at ties,
// clamp keeps it.
#include <cmath>

#include "graph/inplace.h"
#include "graph/promotion.h"
#include "graph/warning.h"
#include "kernels/core/loop_tables.h"
#include "ops/batch_rules.h"
#include "ops/calls/apart.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/reduction.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/number_fits.h"
#include "ops/ops.h"
#include "tensor/layout.h"

namespace clew {

namespace table = kernels::table;

namespace {

// --- where, masked_fill ---

void where_shape(const Call& c, OutSpecs& outs) {
  const Tensor& cond = c.in[0];
  if (cond.dtype() != DType::Bool) {
    fail("where: condition must be a boolean tensor; got ", cond,
         "; compare first, e.g. condition != 0");
  }
  require(c.in[1].dtype() == c.in[2].dtype(), "where: input and other must have one dtype; got ",
          c.in[1], " and ", c.in[2]);
  Dims sizes = broadcast_shapes(c.in[1].sizes(), c.in[2].sizes(), "where");
  sizes = broadcast_shapes(cond.sizes(), sizes, "where");
  OutSpec& out = outs.add(c.in[1].dtype(), sizes);
  bool ordered = true;
  for (const Tensor& t : c.in) ordered = ordered && t.is_contiguous();
  if (!ordered) out.strides = ordered_strides(sizes, c.in);
}

// out = input where condition holds, other elsewhere; out may be one of these.
void choose_into(const Tensor& out, const Tensor& condition, const Tensor& input,
                 const Tensor& other) {
  const size_t item = itemsize(out.dtype());
  const Tensor* in[3] = {&condition, &input, &other};
  char* data[4] = {out->address(), (*in[0])->address(), (*in[1])->address(), (*in[2])->address()};
  Dims steps[3];
  for (int k = 0; k < 3; ++k)
    steps[k] = broadcast_strides(in[k]->sizes(), in[k]->strides(), out.sizes());
  const int64_t* strides[4] = {out.strides().data(), steps[0].data(), steps[1].data(),
                               steps[2].data()};
  size_t items[4] = {item, 1, item, item};
  kernels::run_loop(kernels::where_loop_of(item), 4, data, strides, items, out.sizes().data(),
                    out.ndim(), nullptr);
}
void where_cpu(const Call& c, Tensors& outs) { choose_into(outs[0], c.in[0], c.in[1], c.in[2]); }

// A few dense elements of one shape, or numbers beside them.
Tensor where_quick(const Call& c) {
  const Tensor* full = &c.in[0];
  for (const Tensor& t : c.in.subspan(1))
    if (t.numel() > full->numel()) full = &t;
  const int64_t n = full->numel();
  if (n == 0 || n >= grain_default || c.in[0].dtype() != DType::Bool ||
      c.in[1].dtype() != c.in[2].dtype())
    return {};
  for (const Tensor& t : c.in) {
    if (t.is_meta() || !t.is_contiguous()) return {};
    if (!t.has_sizes_of(*full) && (t.numel() != 1 || t.ndim() > full->ndim())) return {};
  }
  const DType d = c.in[1].dtype();
  const auto item = static_cast<int64_t>(itemsize(d));
  const Tensor out = empty_dense_like(*full, d);
  char* const data[4] = {out->address(), c.in[0]->address(), c.in[1]->address(),
                         c.in[2]->address()};
  int64_t steps[4] = {item, 1, item, item};
  for (int k = 0; k < 3; ++k)
    if (c.in[static_cast<size_t>(k)].numel() != n) steps[k + 1] = 0;
  kernels::where_loop_of(itemsize(d))(data, steps, n, nullptr);
  return out;
}

Tensor pick(const Tensor& condition, const Tensor& input, const Tensor& other);
// A zero that pick() needs not cast.
Tensor zero_like(const Tensor& t) { return scalar_tensor(0, t.dtype()); }

void where_vjp(Vjp& c) {
  Tensor cond = c.in(0);
  const Tensor& g = c.grad();
  if (c.needs(1)) c.set(1, pick(cond, g, zero_like(g)));
  if (c.needs(2)) c.set(2, pick(cond, zero_like(g), g));
}

constexpr OpDef pick_op = general({
    .signature = "_where(Tensor condition, Tensor input, Tensor other) -> Tensor",
    .doc = "where() of two tensors of one dtype.",
    .shape = where_shape,
    .cpu = where_cpu,
    .quick = where_quick,
    .saves = {.always = in(0)},
    .vjp = where_vjp,
    .batch = batch_where,
    .takes_stored = true,
    .flops = "0",
});
Tensor pick(const Tensor& condition, const Tensor& input, const Tensor& other) {
  return apply(pick_op, {condition, input, other});
}

// PyTorch still takes uint8 for bool here.
Tensor condition_of(const Tensor& t) {
  if (t.dtype() != DType::UInt8) return t;
  warn("where: a uint8 condition is deprecated; make it a bool tensor, e.g. condition != 0");
  return to_dtype(t, DType::Bool);
}
void where_run(const Call& c, Tensors& outs) {
  outs.push_back(where(condition_of(c.in[0]), c.in[1], c.in[2]));
}
constexpr OpDef where_op = composite({
    .signature = "where(Tensor condition, Operand input, Operand other) -> Tensor",
    .doc = R"(Takes each element from input where condition holds, from other elsewhere.

out = input if condition else other

Args:
    condition: a bool tensor.
    input: a tensor or a number.
    other: a tensor or a number.
Returns:
    a tensor of the broadcast shape and the promoted dtype of input and other.

>>> clew.where(clew.tensor([True, False]), clew.tensor([1., 2.]), 0)
tensor([1., 0.])
)",
    .run = where_run,
    .offer = Offer::function,
    .out_memory = OutMemory::aligned,
});
// As a method, the tensor that it is called on is what condition picks from.
void where_method_run(const Call& c, Tensors& outs) {
  outs.push_back(where(condition_of(c.in[1]), c.in[0], c.in[2]));
}
constexpr OpDef where_method_op = composite({
    .signature = "where(Operand input, Tensor condition, Operand other) -> Tensor",
    .doc = R"(Keeps each element where condition holds and takes it from other elsewhere.

out = input if condition else other

Args:
    condition: a bool tensor.
    other: a tensor or a number.
Returns:
    a tensor of the broadcast shape and the promoted dtype of the tensor and other.

>>> clew.tensor([1., 2.]).where(clew.tensor([True, False]), 0)
tensor([1., 0.])
)",
    .run = where_method_run,
    .offer = Offer::method,
    .out_memory = OutMemory::aligned,
});

// Where x itself is filled.
void fill_shape(const Call& c, OutSpecs& outs) {
  const Tensor &x = c.in[0], &mask = c.in[1], &value = c.in[2];
  require(mask.dtype() == DType::Bool &&
              broadcast_shapes(mask.sizes(), x.sizes(), "masked_fill_") == x.sizes(),
          c.name(), ": mask must be bool and broadcast to the shape of input; got ", mask, " for ",
          x);
  require(value.ndim() == 0 && value.dtype() == x.dtype(), c.name(),
          ": value must be one number of input's dtype; got ", value, " for ", x);
  outs.add(x.dtype(), x.sizes());
}
void fill_cpu(const Call& c, Tensors& outs) { choose_into(outs[0], c.in[1], c.in[2], c.in[0]); }
void fill_write(const Call& c) { choose_into(c.in[0], c.in[1], c.in[2], c.in[0]); }
bool fill_write_few(const Call& c) {
  const Tensor &x = c.in[0], &mask = c.in[1], &value = c.in[2];
  if (mask.dtype() != DType::Bool || value.ndim() != 0 || value.dtype() != x.dtype() ||
      !x.has_sizes_of(mask) || x.numel() >= grain_default || x.numel() == 0 || x.is_meta() ||
      mask.is_meta() || value.is_meta() || !x.is_contiguous() || !mask.is_contiguous() ||
      x->storage == mask->storage || x->storage == value->storage)
    return false;
  const auto item = static_cast<int64_t>(itemsize(x.dtype()));
  char* const data[4] = {x->address(), mask->address(), value->address(), x->address()};
  const int64_t steps[4] = {item, 1, 0, item};
  kernels::where_loop_of(itemsize(x.dtype()))(data, steps, x.numel(), nullptr);
  return true;
}
void fill_write_expanded(const Call& c) {
  const Tensor& x = c.in[0];
  const Dims repeated = repeated_dims(x);
  OutSpecs specs;
  fill_shape(c, specs);
  masked_fill_(without_repeats(x), any(expand(c.in[1], x.sizes()), repeated, true), c.in[2]);
}
void fill_vjp(Vjp& c) {
  const Tensor mask = c.in(1);
  const Tensor& g = c.grad();
  if (c.needs(0)) c.set(0, pick(mask, zero_like(g), g));
  if (c.needs(2)) c.set(2, sum(pick(mask, g, zero_like(g))));
}
void fill_batch(const Batch& b, Tensors& outs) {
  outs.push_back(physical_at(pick(b.in[1], b.in[2], b.in[0]), b.levels, true));
}
constexpr OpDef fill_op = general({
    .signature = "_masked_fill(Tensor input, Tensor mask, Tensor value) -> Tensor",
    .doc = "masked_fill() of a value of the input's dtype.",
    .shape = fill_shape,
    .cpu = fill_cpu,
    .write = fill_write,
    .write_few = fill_write_few,
    .write_expanded = fill_write_expanded,
    .saves = {.always = in(1)},
    .vjp = fill_vjp,
    .batch = fill_batch,
    .takes_stored = true,
    .flops = "0",
});

void check_fill(const Call& c) {
  const Tensor &x = c.in[0], &mask = c.in[1], &value = c.in[2];
  if (mask.dtype() != DType::Bool) fail("masked_fill: mask must be a boolean tensor; got ", mask);
  require(value.ndim() == 0, "masked_fill: value must be a number or a 0-dimensional tensor; got ",
          value);
  require(x.is_complex() || !value.is_complex() || x.dtype() == DType::Bool,
          "masked_fill: a complex value does not fit ", x);
  require_held(c.name(), value, x.dtype());
}
void masked_fill_run(const Call& c, Tensors& outs) {
  check_fill(c);
  const Tensor& x = c.in[0];
  outs.push_back(contiguous(pick(c.in[1], to_dtype(c.in[2], x.dtype()), x)));
}
void masked_fill_write(const Call& c) {
  check_fill(c);
  masked_fill_(c.in[0], c.in[1], to_dtype(c.in[2], c.in[0].dtype()));
}
constexpr OpDef masked_fill_op = composite({
    .signature = "masked_fill(Tensor input, Tensor mask, Operand value) -> Tensor",
    .doc = R"(Puts value where mask holds.

out = value if mask else input

Args:
    input: any shape.
    mask: a bool tensor.
    value: a number or a 0-dimensional tensor.
Returns:
    a tensor of the broadcast shape and input's dtype.

>>> clew.masked_fill(clew.tensor([1., 2.]), clew.tensor([True, False]), 0.)
tensor([0., 2.])
)",
    .run = masked_fill_run,
    .write = masked_fill_write,
    .inplace = true,
});

// --- maximum and its kin ---

// g where mask holds, 0 elsewhere: safe for infinite g.
Tensor gated(const Tensor& mask, const Tensor& g) { return pick(mask, g, zero_like(g)); }

void extremum_vjp(Vjp& c, Tensor (*wins)(const Tensor&, const Tensor&)) {
  Tensor a = c.in(0);
  Tensor b = c.in(1);
  Tensor shared = pick(eq(a, b), c.grad() / 2, c.grad());
  if (c.needs(0)) c.set(0, gated(wins(a, b), shared));
  if (c.needs(1)) c.set(1, gated(wins(b, a), shared));
}
// With nan for an operand both get the gradient, as in PyTorch.
Tensor not_less(const Tensor& a, const Tensor& b) { return logical_not(lt(a, b)); }
Tensor not_greater(const Tensor& a, const Tensor& b) { return logical_not(gt(a, b)); }
void maximum_vjp(Vjp& c) { extremum_vjp(c, not_less); }
void minimum_vjp(Vjp& c) { extremum_vjp(c, not_greater); }

constexpr OpDef maximum_op =
    binary<"maximum", "The larger of two elements; nan if one is nan.", "max(input, other)",
           "clew.tensor([1., 4.]), clew.tensor([3., 2.])", "tensor([3., 4.])">(
        {.loops = &table::maximum, .saves = both_saved, .vjp = maximum_vjp});
constexpr OpDef minimum_op =
    binary<"minimum", "The smaller of two elements; nan if one is nan.", "min(input, other)",
           "clew.tensor([1., 4.]), clew.tensor([3., 2.])", "tensor([1., 2.])">(
        {.loops = &table::minimum, .saves = both_saved, .vjp = minimum_vjp});

void nan_avoiding_vjp(Vjp& c, const Tensor& first_wins) {
  if (c.needs(0)) c.set(0, gated(first_wins, c.grad()));
  if (c.needs(1)) c.set(1, gated(logical_not(first_wins), c.grad()));
}
void fmax_vjp(Vjp& c) { nan_avoiding_vjp(c, logical_or(ge(c.in(0), c.in(1)), isnan(c.in(1)))); }
void fmin_vjp(Vjp& c) { nan_avoiding_vjp(c, logical_or(le(c.in(0), c.in(1)), isnan(c.in(1)))); }
constexpr OpDef fmax_op =
    binary<"fmax", "The larger of two elements; the other one if one is nan.", "max(input, other)",
           "clew.tensor([1., float('nan')]), clew.tensor([3., 2.])", "tensor([3., 2.])">(
        {.loops = &table::fmax, .saves = both_saved, .vjp = fmax_vjp});
constexpr OpDef fmin_op =
    binary<"fmin", "The smaller of two elements; the other one if one is nan.", "min(input, other)",
           "clew.tensor([1., float('nan')]), clew.tensor([3., 2.])", "tensor([1., 2.])">(
        {.loops = &table::fmin, .saves = both_saved, .vjp = fmin_vjp});

// --- clamp ---

struct ClampAttrs {
  Scalar min;
  Scalar max;
  static constexpr auto members() { return std::tuple(&ClampAttrs::min, &ClampAttrs::max); }
};

void clamp_backward_vjp(Vjp& c);
constexpr OpDef clamp_backward_op = elementwise({
    .signature = "_clamp_backward(Tensor grad, Tensor input, Scalar min, Scalar max) -> Tensor",
    .doc = "grad where min <= input <= max",
    .loops = &table::clamp_backward,
    .saves = {.always = in(1)},
    .vjp = clamp_backward_vjp,
    .attrs = &attr_info<ClampAttrs>,
});
void clamp_backward_vjp(Vjp& c) {
  if (c.needs(0)) c.set(0, apply(clamp_backward_op, {c.grad(), c.in(1)}, c.as<ClampAttrs>()));
}
void clamp_vjp(Vjp& c) {
  ClampAttrs a = c.as<ClampAttrs>();
  if (!a.min.has_value()) a.min = Scalar(-INFINITY);
  if (!a.max.has_value()) a.max = Scalar(INFINITY);
  // The input only says where: it is no part of the gradient's history.
  c.set(0, apply(clamp_backward_op, {c.grad(), modes.grad ? detach(c.in(0)) : c.in(0)}, a));
}
constexpr OpDef clamp_same_op = elementwise({
    .signature = "_clamp(Tensor input, Scalar? min, Scalar? max) -> Tensor",
    .doc = "clamp() whose bounds fit input's dtype.",
    .loops = &table::clamp,
    .saves = {.always = in(0)},
    .vjp = clamp_vjp,
    .attrs = &attr_info<ClampAttrs>,
});

// The bounds take part in promotion as Python numbers do.
DType clamped_dtype(const Tensor& input, const Scalar& min, const Scalar& max) {
  DType d = input.dtype();
  for (const Scalar* s : {&min, &max}) {
    // Neither changes floats.
    if (is_floating(d) && (s->is_float() || s->kind == Scalar::Kind::Int)) continue;
    if (s->has_value()) d = result_type(std::array{scalar_tensor(0, d), number(*s)});
  }
  if (is_complex(d))
    fail(ErrorKind::NotImplemented, "clamp: complex numbers have no order; got ", input);
  return d;
}
void clamp_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<ClampAttrs>();
  require(a.min.has_value() || a.max.has_value(),
          "clamp: at least one of min and max must be given");
  outs.push_back(clamp(c.in[0], a.min, a.max));
}
void clamp_write(const Call& c) {
  const auto& a = c.as<ClampAttrs>();
  require(a.min.has_value() || a.max.has_value(),
          "clamp_: at least one of min and max must be given");
  const DType d = clamped_dtype(c.in[0], a.min, a.max);
  if (!can_cast(d, c.in[0].dtype()))
    fail("clamp_: result type ", d, " can't be cast to the desired output type ", c.in[0].dtype());
  check_written(c.in[0], "clamp_", modes.grad && c.in[0].requires_grad());
  apply_inplace(clamp_same_op, c.in, &a);
}
constexpr const char* clamp_doc = R"(Limits every element to the range from min to max.

out = min(max(input, min), max)

Args:
    input: the tensor; not complex.
    min: the lower bound, a number or a tensor, or None.
    max: the upper bound, a number or a tensor, or None; it wins where it is below min.
Returns:
    a tensor of the broadcast shape.

>>> clew.clamp(clew.tensor([-1., 0.5, 2.]), 0, 1)
tensor([0.0000, 0.5000, 1.0000])
)";
constexpr OpDef clamp_op = composite({
    .signature = "clamp(Tensor input, Scalar? min=None, Scalar? max=None) -> Tensor",
    .doc = clamp_doc,
    .run = clamp_run,
    .write = clamp_write,
    .attrs = &attr_info<ClampAttrs>,
    .inplace = true,
    .out_memory = OutMemory::aligned,
});

void check_bound(int, const Scalar& bound, DType compute) {
  if (is_integral(compute)) require_fits("bound", bound, compute);
}
// Unlike maximum: at a tie the gradient is input's alone.
void clamp_min_vjp(Vjp& c) {
  Tensor below = lt(c.in(0), c.in(1));
  if (c.needs(0)) c.set(0, gated(ge(c.in(0), c.in(1)), c.grad()));
  if (c.needs(1)) c.set(1, gated(below, c.grad()));
}
void clamp_max_vjp(Vjp& c) {
  Tensor above = gt(c.in(0), c.in(1));
  if (c.needs(0)) c.set(0, gated(le(c.in(0), c.in(1)), c.grad()));
  if (c.needs(1)) c.set(1, gated(above, c.grad()));
}
constexpr OpDef clamp_min_op = elementwise({
    .signature = "clamp_min(Tensor input, Operand min) -> Tensor",
    .doc = R"(Raises every element to at least min.

out = max(input, min)

Args:
    input: any shape.
    min: the bound, a tensor or a number.
Returns:
    a tensor of the broadcast shape.

>>> clew.clamp_min(clew.tensor([-1., 2.]), 0)
tensor([0., 2.])
)",
    .loops = &table::maximum,
    .check_number = check_bound,
    .saves = both_saved,
    .vjp = clamp_min_vjp,
});
constexpr OpDef clamp_max_op = elementwise({
    .signature = "clamp_max(Tensor input, Operand max) -> Tensor",
    .doc = R"(Lowers every element to at most max.

out = min(input, max)

Args:
    input: any shape.
    max: the bound, a tensor or a number.
Returns:
    a tensor of the broadcast shape.

>>> clew.clamp_max(clew.tensor([-1., 2.]), 0)
tensor([-1.,  0.])
)",
    .loops = &table::minimum,
    .check_number = check_bound,
    .saves = both_saved,
    .vjp = clamp_max_vjp,
});

// The gradients of maximum(x, min) followed by minimum(.., max), in one pass.
void clamp_between_vjp(Vjp& c) {
  const Tensor x = c.in(0), low = c.in(1), high = c.in(2);
  if (c.needs(0)) c.set(0, gated(logical_and(ge(x, low), le(x, high)), c.grad()));
  if (c.needs(1)) c.set(1, gated(logical_and(lt(x, low), lt(low, high)), c.grad()));
  if (c.needs(2)) c.set(2, gated(gt(maximum(x, low), high), c.grad()));
}
constexpr OpDef clamp_between_op = elementwise({
    .signature = "_clamp_between(Tensor input, Tensor min, Tensor max) -> Tensor",
    .doc = "clamp() by two tensors: min(max(input, min), max).",
    .loops = &table::clamp_between,
    .saves = {.always = in(0) | in(1) | in(2)},
    .vjp = clamp_between_vjp,
    .inplace = false,
});

void clamp_tensor_run(const Call& c, Tensors& outs) {
  const Tensor &x = c.in[0], &low = c.in[1], &high = c.in[2];
  require(low.defined() || high.defined(), "clamp: at least one of min and max must be given");
  if (low.defined() && high.defined())
    outs.push_back(apply(clamp_between_op, {x, low, high}));
  else if (low.defined())
    outs.push_back(apply(clamp_min_op, {x, low}));
  else
    outs.push_back(apply(clamp_max_op, {x, high}));
}
constexpr OpDef clamp_tensor_op = composite({
    .signature = "clamp(Tensor input, Tensor? min=None, Tensor? max=None) -> Tensor",
    .doc = clamp_doc,
    .run = clamp_tensor_run,
    .inplace = true,
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::aligned,
});

// --- nan_to_num ---

struct NanAttrs {
  Scalar nan;
  Scalar posinf;
  Scalar neginf;
  static constexpr auto members() {
    return std::tuple(&NanAttrs::nan, &NanAttrs::posinf, &NanAttrs::neginf);
  }
};
void nan_to_num_plain_vjp(Vjp& c) { c.set(0, gated(isfinite(c.in(0)), c.grad())); }
constexpr OpDef nan_to_num_plain_op = elementwise({
    .signature = "_nan_to_num(Tensor input, Scalar nan, Scalar posinf, Scalar neginf) -> Tensor",
    .doc = "nan_to_num() with all replacements given.",
    .loops = &table::nan_to_num,
    .saves = {.always = in(0)},
    .vjp = nan_to_num_plain_vjp,
    .attrs = &attr_info<NanAttrs>,
});
double largest(DType d) {
  switch (real_of(d)) {
    case DType::Float16: return 65504.0;
    case DType::BFloat16: return 3.3895313892515355e38;
    case DType::Float32: return 3.4028234663852886e38;
    default: return 1.7976931348623157e308;
  }
}
void nan_to_num_run(const Call& c, Tensors& outs) {
  NanAttrs a = c.as<NanAttrs>();
  double top = largest(c.in[0].dtype());
  if (!a.nan.has_value()) a.nan = Scalar(0.0);
  if (!a.posinf.has_value()) a.posinf = Scalar(top);
  if (!a.neginf.has_value()) a.neginf = Scalar(-top);
  if (is_integral(c.in[0].dtype())) a = {Scalar(0), Scalar(0), Scalar(0)};
  outs.push_back(apply(nan_to_num_plain_op, {c.in[0]}, a));
}
constexpr OpDef nan_to_num_op = composite({
    .signature = "nan_to_num(Tensor input, Scalar? nan=None, Scalar? posinf=None, "
                 "Scalar? neginf=None) -> Tensor",
    .doc = R"(Replaces nan and infinities by finite numbers.

Args:
    input: any shape.
    nan: what replaces nan; 0 when not given.
    posinf: what replaces infinity; the dtype's largest number when not given.
    neginf: what replaces negative infinity; the dtype's lowest number when not given.
Returns:
    a tensor like input.

>>> clew.nan_to_num(clew.tensor([float('nan'), float('inf'), 1.]), posinf=9.)
tensor([0., 9., 1.])
)",
    .run = nan_to_num_run,
    .attrs = &attr_info<NanAttrs>,
    .inplace = true,
    .out_memory = OutMemory::aligned,
});

}  // namespace

void masked_fill_(const Tensor& x, const Tensor& mask, const Tensor& value) {
  const Tensor in[3] = {x, mask, apart_from(value, x)};
  apply_inplace(fill_op, in, nullptr);
}
Tensor where(const Tensor& condition, const Tensor& input, const Tensor& other) {
  DType d = result_type(std::array{input, other});
  for (const Tensor& t : {input, other})
    if (is_integral(d) && t.is_wrapped_number()) require_fits("where", item(t), d);
  return pick(condition, to_dtype(input, d), to_dtype(other, d));
}
Tensor maximum(const Tensor& input, const Tensor& other) {
  return apply(maximum_op, {input, other});
}
Tensor minimum(const Tensor& input, const Tensor& other) {
  return apply(minimum_op, {input, other});
}
Tensor clamp(const Tensor& input, const Scalar& min, const Scalar& max) {
  const DType d = clamped_dtype(input, min, max);
  return apply(clamp_same_op, {to_dtype(input, d)}, ClampAttrs{min, max});
}

static constexpr const OpDef* selection_list[] = {
    &where_op,
    &where_method_op,
    &pick_op,
    &masked_fill_op,
    &fill_op,
    &maximum_op,
    &minimum_op,
    &fmax_op,
    &fmin_op,
    &clamp_same_op,
    &clamp_backward_op,
    &clamp_op,
    &clamp_between_op,
    &clamp_tensor_op,
    &clamp_min_op,
    &clamp_max_op,
    &nan_to_num_plain_op,
    &nan_to_num_op,
    renamed<clamp_op, "clip">,
    renamed<clamp_tensor_op, "clip">,
};
extern const OpList selection_ops;
const OpList selection_ops = op_list(selection_list);

}  // namespace clew
