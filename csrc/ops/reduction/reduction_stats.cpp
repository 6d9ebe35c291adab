// var, std, their pairs with the mean, vector norms and logsumexp.
// May include: ops, graph, tensor, kernels.
// Invariant: gradients are finite wherever the function has a subgradient (a norm or a deviation of
// 0 gives 0).
#include <cmath>
#include <limits>

#include "graph/warning.h"
#include "kernels/reduce/reduce.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/reduction.h"
#include "ops/calls/unary.h"
#include "ops/reduction/reduction_dims.h"
#include "ops/widened.h"

namespace clew {

namespace {

// ---- var, std
// -------------------------------------------------------------------------------------

struct VarAttrs {
  std::optional<Dims> dim;
  Scalar correction = 1;
  bool keepdim = false;
  static constexpr auto members() {
    return std::tuple(&VarAttrs::dim, &VarAttrs::correction, &VarAttrs::keepdim);
  }
  double taken() const { return correction.has_value() ? correction.to_double() : 1.0; }
};
struct UnbiasedAllAttrs {
  bool unbiased = true;
  static constexpr auto members() { return std::tuple(&UnbiasedAllAttrs::unbiased); }
};
struct UnbiasedAttrs {
  std::optional<Dims> dim;
  bool unbiased = true;
  bool keepdim = false;
  static constexpr auto members() {
    return std::tuple(&UnbiasedAttrs::dim, &UnbiasedAttrs::unbiased, &UnbiasedAttrs::keepdim);
  }
};

template <bool WithMean> void var_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<VarAttrs>();
  const Tensor& x = c.in[0];
  require(is_inexact(x.dtype()), c.name(), ": input must be floating point or complex; got ", x);
  require(!a.correction.is_complex(), c.name(), ": correction must be a real number");
  const DimMask mask = mask_of(a.dim, x.ndim(), c.name());
  Dims sizes = reduced_sizes(x.sizes(), mask, a.keepdim);
  const int64_t count = reduced_count(x.sizes(), mask);
  if (static_cast<double>(count) <= a.taken())
    warn(concat(c.name(), "(): degrees of freedom is <= 0; correction should be less than the ",
                count, " elements that each result is made of"));
  out.add(real_of(x.dtype()), sizes);
  if (WithMean) out.add(x.dtype(), sizes);
}
// Whether a variance (or its root) is so large or small that the squares may not have fitted float.
bool strains_float(const Tensor& var, bool root) {
  const float least = root ? 1e-15f : 1e-30f;
  const auto* v = var.data<const float>();
  for (int64_t i = 0; i < var.numel(); ++i)
    if (v[i] < least || v[i] == std::numeric_limits<float>::infinity()) return true;
  return false;
}
template <bool Root> Tensor var_quick(const Call& c) {
  const auto& a = c.as<VarAttrs>();
  const FewLines lines(c.in[0], a.dim, a.keepdim);
  const auto count = static_cast<double>(lines.count);
  if (!lines.out || count <= std::max(0.0, a.taken())) return {};
  lines.each([&](const float* x) {
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < lines.count; ++k) sum += static_cast<double>(x[k * lines.inner]);
    const double mean = sum / count;
    for (int64_t k = 0; k < lines.count; ++k) {
      const double off = static_cast<double>(x[k * lines.inner]) - mean;
      squares += off * off;
    }
    const double var = squares / (count - a.taken());
    return static_cast<float>(Root ? std::sqrt(var) : var);
  });
  return lines.out;
}
template <bool Root, bool WithMean> void var_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<VarAttrs>();
  const Tensor x = widened(c.in[0]);
  DimMask mask = mask_of(a.dim, x.ndim(), c.name());
  auto run = [&](const Tensor& from, Tensor& to, Tensor& to_mean) {
    KeptView var(to, x.ndim(), mask), mean(to_mean, x.ndim(), mask);
    kernels::reduce_var(&var.nd, WithMean ? &mean.nd : nullptr, from.nd(), a.taken(), Root);
  };
  Tensor& var = outs[0];
  if (x.dtype() != c.in[0].dtype()) {
    Tensor to = empty(var.sizes(), x.dtype()),
           to_mean = WithMean ? empty(var.sizes(), x.dtype()) : to;
    run(x, to, to_mean);
    copy_into(var, to);
    if constexpr (WithMean) copy_into(outs[1], to_mean);
    return;
  }
  run(x, var, outs[WithMean ? 1 : 0]);
  if (var.dtype() != DType::Float32 || !var.is_contiguous() || !strains_float(var, Root)) return;
  auto wide = [](const Tensor& t) {
    return empty(t.sizes(), is_complex(t.dtype()) ? DType::Complex128 : DType::Float64);
  };
  Tensor from = wide(x), to = wide(var), to_mean = WithMean ? wide(outs[1]) : to;
  copy_into(from, x);
  run(from, to, to_mean);
  copy_into(var, to);
}
// a / t where t is not 0, else 0; with the same for its derivatives.
Tensor quotient_or_zero(const Tensor& a, const Tensor& t) {
  Tensor zero = eq(t, number(0));
  return where(zero, number(0), a / where(zero, number(1.0), t));
}
template <bool Root, bool WithMean> void var_vjp(Vjp& c) {
  const auto& a = c.as<VarAttrs>();
  Tensor x = c.in(0), total;
  DimMask mask = mask_of(a.dim, x.ndim(), "var");
  auto n = static_cast<double>(reduced_count(x.sizes(), mask));
  Tensor g = c.grad(0);
  if (g.defined()) {
    if constexpr (Root) g = quotient_or_zero(g, c.out(0) * Scalar(2));
    double slope = 2 / (n - a.taken());  // below zero where the value is infinite, as in PyTorch
    Tensor centred = x;
    Dims dims;
    for (int d = 0; d < x.ndim(); ++d) {
      if (mask >> d & 1) dims.push_back(d);
    }
    centred = x - (dims.empty() ? x : mean(x, dims, true));
    total = with_kept_dims(g, x.sizes(), mask) * Scalar(slope) * centred;
  }
  if constexpr (WithMean) {
    if (c.grad(1).defined()) {
      Tensor part = spread(c.grad(1) / Scalar(n), x.sizes(), mask);
      total = total.defined() ? total + part : part;
    }
  }
  if (total.defined()) c.set(0, total);
}

constexpr const char* var_doc = R"(The variance, of all elements or along the given axes.

out[i] = sum_j |input[i, j] - mean[i]|^2 / (n - correction)

Args:
    input: a floating point or complex tensor.
    dim: the axis or axes; None or () for all.
    correction: what the number of elements is lowered by; 1 makes the estimate unbiased.
    unbiased: True for correction=1, False for correction=0.
    keepdim: whether the axes stay, with size 1.
Returns:
    a real tensor.

>>> clew.var(clew.tensor([1., 2., 3.]))
tensor(1.)
)";
constexpr const char* std_doc = R"(The standard deviation, of all elements or along the given axes.

out[i] = sqrt(sum_j |input[i, j] - mean[i]|^2 / (n - correction))

Args:
    input: a floating point or complex tensor.
    dim: the axis or axes; None or () for all.
    correction: what the number of elements is lowered by; 1 makes the variance unbiased.
    unbiased: True for correction=1, False for correction=0.
    keepdim: whether the axes stay, with size 1.
Returns:
    a real tensor.

>>> clew.std(clew.tensor([1., 2., 3.]))
tensor(1.)
)";
constexpr const char* var_mean_doc =
    R"(The variance and the mean together, of all elements or along the given axes.

var[i] = sum_j |input[i, j] - mean[i]|^2 / (n - correction)

Args:
    input: a floating point or complex tensor.
    dim: the axis or axes; None or () for all.
    correction: what the number of elements is lowered by; 1 makes the estimate unbiased.
    unbiased: True for correction=1, False for correction=0.
    keepdim: whether the axes stay, with size 1.
Returns:
    the variance and the mean.

>>> clew.var_mean(clew.tensor([1., 2., 3.]))
(tensor(1.), tensor(2.))
)";
constexpr const char* std_mean_doc =
    R"(The standard deviation and the mean together, of all elements or along the given axes.

std[i] = sqrt(sum_j |input[i, j] - mean[i]|^2 / (n - correction))

Args:
    input: a floating point or complex tensor.
    dim: the axis or axes; None or () for all.
    correction: what the number of elements is lowered by; 1 makes the variance unbiased.
    unbiased: True for correction=1, False for correction=0.
    keepdim: whether the axes stay, with size 1.
Returns:
    the standard deviation and the mean.

>>> clew.std_mean(clew.tensor([1., 2., 3.]))
(tensor(1.), tensor(2.))
)";

template <bool Root, bool WithMean>
consteval OpDef var_like(const char* signature, const char* doc) {
  return general({
      .signature = signature,
      .doc = doc,
      .shape = var_shape<WithMean>,
      .cpu = var_cpu<Root, WithMean>,
      .quick = WithMean ? nullptr : var_quick<Root>,
      .saves = {.always = in(0) | (Root ? out(0) : 0)},
      .vjp = var_vjp<Root, WithMean>,
      .batch = batch_dims,
      .attrs = &attr_info<VarAttrs>,
      .offer = WithMean ? Offer::function : Offer::both,
      .out_dtype = WithMean ? OutDtype::own : OutDtype::converted,
      .flops = "4 * numel(input)",
  });
}
constexpr OpDef var_op = var_like<false, false>(
    "var(Tensor input, int[]? dim=None, *, Scalar? correction=1, bool keepdim=False) -> Tensor",
    var_doc);
constexpr OpDef std_op = var_like<true, false>(
    "std(Tensor input, int[]? dim=None, *, Scalar? correction=1, bool keepdim=False) -> Tensor",
    std_doc);
constexpr OpDef var_mean_op = var_like<false, true>(
    "var_mean(Tensor input, int[]? dim=None, *, Scalar? correction=1, bool keepdim=False) -> "
    "(Tensor, Tensor)",
    var_mean_doc);
constexpr OpDef std_mean_op = var_like<true, true>(
    "std_mean(Tensor input, int[]? dim=None, *, Scalar? correction=1, bool keepdim=False) -> "
    "(Tensor, Tensor)",
    std_mean_doc);

// The older forms, with a bool for the correction.
template <const OpDef& Op> void unbiased_all_run(const Call& c, Tensors& outs) {
  VarAttrs a{{}, c.as<UnbiasedAllAttrs>().unbiased ? 1 : 0, false};
  apply(Op, c.in, &a, outs);
}
template <const OpDef& Op> void unbiased_run(const Call& c, Tensors& outs) {
  const auto& u = c.as<UnbiasedAttrs>();
  VarAttrs a{u.dim, u.unbiased ? 1 : 0, u.keepdim};
  apply(Op, c.in, &a, outs);
}
template <const OpDef& Op> consteval OpDef unbiased_all(const char* signature) {
  return composite({.signature = signature,
                    .doc = Op.doc,
                    .run = unbiased_all_run<Op>,
                    .attrs = &attr_info<UnbiasedAllAttrs>,
                    .offer = Op.offer,
                    .out_dtype = Op.out_dtype,
                    .flops = Op.flops});
}
template <const OpDef& Op> consteval OpDef unbiased_dims(const char* signature) {
  return composite({.signature = signature,
                    .doc = Op.doc,
                    .run = unbiased_run<Op>,
                    .attrs = &attr_info<UnbiasedAttrs>,
                    .offer = Op.offer,
                    .out_dtype = Op.out_dtype,
                    .flops = Op.flops});
}
constexpr OpDef var_all_op = unbiased_all<var_op>("var(Tensor input, bool unbiased) -> Tensor");
constexpr OpDef var_dims_op = unbiased_dims<var_op>(
    "var(Tensor input, int[]? dim, bool unbiased=True, bool keepdim=False) -> Tensor");
constexpr OpDef std_all_op = unbiased_all<std_op>("std(Tensor input, bool unbiased) -> Tensor");
constexpr OpDef std_dims_op = unbiased_dims<std_op>(
    "std(Tensor input, int[]? dim, bool unbiased=True, bool keepdim=False) -> Tensor");
constexpr OpDef var_mean_all_op =
    unbiased_all<var_mean_op>("var_mean(Tensor input, bool unbiased) -> (Tensor, Tensor)");
constexpr OpDef var_mean_dims_op = unbiased_dims<var_mean_op>(
    "var_mean(Tensor input, int[]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, "
    "Tensor)");
constexpr OpDef std_mean_all_op =
    unbiased_all<std_mean_op>("std_mean(Tensor input, bool unbiased) -> (Tensor, Tensor)");
constexpr OpDef std_mean_dims_op = unbiased_dims<std_mean_op>(
    "std_mean(Tensor input, int[]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, "
    "Tensor)");

// ---- norms
// ----------------------------------------------------------------------------------------

struct NormAttrs {
  Scalar ord = 2;
  std::optional<Dims> dim;
  bool keepdim = false;
  std::optional<DType> dtype;
  static constexpr auto members() {
    return std::tuple(&NormAttrs::ord, &NormAttrs::dim, &NormAttrs::keepdim, &NormAttrs::dtype);
  }
  double p() const { return ord.has_value() ? ord.to_double() : 2.0; }
};
struct NamedNormAttrs {
  Str p = "fro";
  std::optional<Dims> dim;
  bool keepdim = false;
  std::optional<DType> dtype;
  static constexpr auto members() {
    return std::tuple(&NamedNormAttrs::p, &NamedNormAttrs::dim, &NamedNormAttrs::keepdim,
                      &NamedNormAttrs::dtype);
  }
};
constexpr double infinity = std::numeric_limits<double>::infinity();

void norm_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<NormAttrs>();
  const Tensor& x = c.in[0];
  require(is_inexact(x.dtype()), c.name(), ": input must be floating point or complex; got ", x);
  require(!a.ord.is_complex(), c.name(), ": ord must be a real number");
  DType d = a.dtype.value_or(x.dtype());
  if (a.dtype) {
    require(is_inexact(d) && is_complex(d) == x.is_complex(), c.name(), ": dtype must be ",
            x.is_complex() ? "complex" : "floating point", " as the input is; got ", d);
    require(promote(d, x.dtype()) == d, c.name(), ": the input's dtype ", x.dtype(),
            " should be convertible without narrowing to dtype ", d);
  }
  DimMask mask = mask_of(a.dim, x.ndim(), c.name());
  double p = a.p();
  if (p < 0 || p == infinity) {
    bool whole = !a.dim || a.dim->empty();
    if (whole)
      require(x.numel() > 0, c.name(), ": the ", p, " norm of no elements is undefined; got ", x);
    for (int k = 0; !whole && k < x.ndim(); ++k) {
      require(!(mask >> k & 1) || x.sizes()[k] > 0, c.name(), ": the ", p,
              " norm of no elements is undefined; got ", x, " for dim ", k);
    }
  }
  out.add(real_of(d), reduced_sizes(x.sizes(), mask, a.keepdim));
}
void norm_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<NormAttrs>();
  const Tensor x = widened(converted(c.in[0], a.dtype.value_or(c.in[0].dtype())));
  through_floats(outs[0], [&](const Tensor& y) {
    KeptView out(y, x.ndim(), mask_of(a.dim, x.ndim(), c.name()));
    kernels::reduce_norm(out.nd, x.nd(), a.p());
  });
}
void norm_vjp(Vjp& c) {
  const auto& a = c.as<NormAttrs>();
  Tensor x = c.in(0);
  if (a.dtype) x = to_dtype(x, *a.dtype);
  double p = a.p();
  DimMask mask = mask_of(a.dim, x.ndim(), "norm");
  Tensor g = with_kept_dims(c.grad(), x.sizes(), mask),
         y = with_kept_dims(c.out(), x.sizes(), mask);
  if (p == 0) return c.set(0, zero_of(x, x.sizes()));
  if (p == 1) return c.set(0, sgn(x) * g);
  // Where the norm is 0 the gradient is 0. In float16, 1 / norm might overflow, so elements are
  // divided by the norm.
  const bool narrow = y.dtype() == DType::Float16;
  auto along = [&](const Tensor& t) {
    return narrow ? t / where(eq(y, number(0)), number(infinity), y) : quotient_or_zero(t, y);
  };
  if (p == 2) return c.set(0, narrow ? along(x) * g : x * along(g));
  Tensor size = abs(x);
  if (p == infinity || p == -infinity) {
    Dims dims;
    for (int d = 0; d < x.ndim(); ++d) {
      if (mask >> d & 1) dims.push_back(d);
    }
    // The norm's kernel may round the absolute value of a complex number differently from abs().
    if (x.is_complex() && !dims.empty())
      y = p == infinity ? amax(size, dims, true) : amin(size, dims, true);
    Tensor hit = logical_or(eq(size, y), logical_and(ne(size, size), ne(y, y)));
    return c.set(0, sgn(x) * where(hit, shared(g, hit, dims), number(0)));
  }
  // d/dx = sgn(x) (|x| / norm)^(p - 1), written so that zeros give 0 and not 0 * inf. The ratio of
  // other elements is 0 beside an infinite norm, or one beyond the range of the dtype.
  Tensor zero = eq(size, number(0));
  Tensor ratio = along(where(zero, number(1.0), size));
  Tensor none = eq(ratio, number(0));
  Tensor power = where(none, number(p > 1 ? 0.0 : infinity),
                       pow(where(none, number(1.0), ratio), Scalar(p - 1)));
  Tensor slope = where(logical_or(zero, eq(y, number(0))), number(0), power);
  c.set(0, sgn(x) * (slope * g));
}
constexpr OpDef vector_norm_op = general({
    .signature =
        "linalg.vector_norm(Tensor input, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, "
        "dtype? dtype=None) -> Tensor",
    .doc = R"(The length of vectors, of any order.

out = (sum_j |input[j]|^ord)^(1/ord); for ord 0 the count of nonzero elements, for +-inf the
largest or smallest |input[j]|

Args:
    input: a floating point or complex tensor.
    ord: the order.
    dim: the axis or axes of the vectors; None for the flattened input.
    keepdim: whether the axes stay, with size 1.
    dtype: the dtype to convert to first.
Returns:
    a real tensor.

>>> clew.linalg.vector_norm(clew.tensor([3., 4.]))
tensor(5.)
)",
    .shape = norm_shape,
    .cpu = norm_cpu,
    .saves = {.always = in(0) | out(0)},
    .vjp = norm_vjp,
    .batch = batch_dims,
    .attrs = &attr_info<NormAttrs>,
    .offer = Offer::function,
    .flops = "2 * numel(input)",
});

constexpr const char* norm_doc = R"(The norm of a tensor, of all elements or along the given axes.

out = (sum_j |input[j]|^p)^(1/p)

Args:
    input: a floating point or complex tensor.
    p: the order, or 'fro' for 2.
    dim: the axis or axes; None for all.
    keepdim: whether the axes stay, with size 1.
    dtype: the dtype to convert to first.
Returns:
    a real tensor.

>>> clew.norm(clew.tensor([3., 4.]))
tensor(5.)
)";
constexpr OpDef norm_named_op = composite({
    .signature = "norm(Tensor input, str p='fro', int[]? dim=None, bool keepdim=False, dtype? "
                 "dtype=None) -> Tensor",
    .doc = norm_doc,
    .run =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<NamedNormAttrs>();
          if (a.p == "nuc")
            fail(ErrorKind::NotImplemented,
                 "norm: p='nuc' is not available; use the singular values");
          require(a.p == "fro", "norm: p must be a number, 'fro' or 'nuc'; got '",
                  std::string_view(a.p), "'");
          NormAttrs v{2, a.dim, a.keepdim, a.dtype};
          apply(vector_norm_op, c.in, &v, outs);
        },
    .attrs = &attr_info<NamedNormAttrs>,
});
constexpr OpDef norm_op = composite({
    .signature = "norm(Tensor input, Scalar? p, int[]? dim=None, bool keepdim=False, dtype? "
                 "dtype=None) -> Tensor",
    .doc = norm_doc,
    .run = [](const Call& c, Tensors& outs) { apply(vector_norm_op, c.in, c.attrs, outs); },
    .attrs = &attr_info<NormAttrs>,
});

// ---- logsumexp
// ------------------------------------------------------------------------------------

struct LogSumExpAttrs {
  Dims dim;
  bool keepdim = false;
  static constexpr auto members() {
    return std::tuple(&LogSumExpAttrs::dim, &LogSumExpAttrs::keepdim);
  }
};
// The largest real part taken out first.
void complex_logsumexp(const Tensor& x, const LogSumExpAttrs& a, const Tensor& out) {
  GradMode off(false);
  if (x.numel() == 0) return fill_(out, Scalar(-infinity));
  Tensor top = amax(real(x), a.dim, true);
  top = where(isfinite(top), top, number(0.0));
  copy_into(out, log(sum(exp(x - top), a.dim, a.keepdim)) +
                     (a.keepdim ? top : reshape(top, out.sizes())));
}
constexpr OpDef logsumexp_op = general({
    .signature = "logsumexp(Tensor input, int[] dim, bool keepdim=False) -> Tensor",
    .doc = R"(The logarithm of the sum of exponentials, without overflow.

out[i] = log(sum_j exp(input[i, j]))

Args:
    input: any tensor; integers are converted to the default dtype.
    dim: the axis or axes to sum over.
    keepdim: whether the axes stay, with size 1.
Returns:
    a floating point tensor; -inf where nothing was summed.

>>> clew.logsumexp(clew.tensor([0., 0.]), 0)
tensor(0.6931)
)",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<LogSumExpAttrs>();
          const Tensor& x = c.in[0];
          DimMask mask = mask_of(std::optional(a.dim), x.ndim(), c.name());
          out.add(is_integral(x.dtype()) ? default_dtype() : x.dtype(),
                  reduced_sizes(x.sizes(), mask, a.keepdim));
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          Tensor x = converted(c.in[0], outs[0].dtype());
          if (x.is_complex()) return complex_logsumexp(x, c.as<LogSumExpAttrs>(), outs[0]);
          x = widened(x);
          const DimMask mask =
              mask_of(std::optional(c.as<LogSumExpAttrs>().dim), x.ndim(), c.name());
          through_floats(outs[0], [&](const Tensor& y) {
            KeptView out(y, x.ndim(), mask);
            kernels::reduce_logsumexp(out.nd, x.nd());
          });
        },
    .saves = {.always = in(0) | out(0)},
    .vjp =
        [](Vjp& c) {
          Tensor x = c.in(0);
          DimMask mask = mask_of(std::optional(c.as<LogSumExpAttrs>().dim), x.ndim(), "logsumexp");
          Tensor y = with_kept_dims(c.out(), x.sizes(), mask);
          // Where all terms are exp(-inf) = 0 the difference would be NaN.
          Tensor safe = where(eq(real(y), number(-infinity)), number(0.0), y);
          c.set(0, with_kept_dims(c.grad(), x.sizes(), mask) * conj(exp(x - safe)));
        },
    .batch = batch_dims,
    .attrs = &attr_info<LogSumExpAttrs>,
    .out_dtype = OutDtype::converted,
    .flops = "4 * numel(input)",
});

constexpr const OpDef* reduction_stats_list[] = {
    &var_all_op,     &var_dims_op,     &var_op,           &std_all_op,
    &std_dims_op,    &std_op,          &var_mean_all_op,  &var_mean_dims_op,
    &var_mean_op,    &std_mean_all_op, &std_mean_dims_op, &std_mean_op,
    &vector_norm_op, &norm_named_op,   &norm_op,          &logsumexp_op};

}  // namespace

extern const OpList reduction_stats_ops;
const OpList reduction_stats_ops = op_list(reduction_stats_list);

Tensor logsumexp(const Tensor& x, const Dims& dim, bool keepdim) {
  return apply(logsumexp_op, {x}, LogSumExpAttrs{dim, keepdim});
}

}  // namespace clew
