// Random numbers as operations: in-place fills, sampling, normal with tensor parameters.
// May include: graph, kernels/random/random.h, ops.
// Invariant: arguments are checked before a number is drawn; a write through a tensor is always
// counted.
#include "ops/calls/random.h"

#include <limits>

#include "base/fits.h"
#include "graph/batch.h"
#include "graph/inplace.h"
#include "kernels/random/random.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/ops.h"
#include "tensor/kernel_frame.h"
#include "tensor/layout.h"

namespace clew {

namespace {

Generator& or_default(Generator* g) { return g ? *g : default_generator(); }

// The record that a tensor's elements were all replaced; never called, only recorded.
constexpr OpDef overwrite_op = general({
    .signature = "fill(Tensor input) -> Tensor",
    .doc = "Replaces all elements.",
    .shape = same_shape,
    .cpu = [](const Call&, Tensors&) {},
    .vjp = zero_vjp,
    .takes_stored = true,
});

// The same of a draw with a probability for each element, which gets a gradient of 0.
constexpr OpDef bernoulli_into_op = general({
    .signature = "bernoulli(Tensor input, Tensor p) -> Tensor",
    .doc = "Replaces all elements by draws.",
    .shape = same_shape,
    .cpu = [](const Call&, Tensors&) {},
    .vjp = zero_vjp,
    .takes_stored = true,
});

// What every draw into a tensor goes through: as apply() does for a kernel.
template <class F> void draw_into(const Tensor& x, F&& fill) {
  if (x.is_meta() || x.numel() == 0) return;
  settle_before_write(x);
  const Held held{x};
  fill(x.nd());
}

// `alike`: all elements get the same value, so elements may share memory. `p`: the probabilities,
// where each element has its own.
template <bool random = true, bool alike = false, class F>
void overwrite(const Tensor& x, const char* name, F&& fill, const Tensor& p = {}) {
  if (is_batched(x) || (random && modes.vmap)) [[unlikely]] {
    uint32_t drawn = random ? random_levels(name, 0) : 0;
    if (drawn & ~levels_of(x))
      fail("vmap: ", name,
           ": cannot ask for different inplace randomness on an unbatched tensor; use the "
           "out-of-place form, or make the tensor from a batched one");
    if (drawn || !random) {
      return overwrite<false, alike>(physical(x), name, fill);
    } else if (is_batched(x)) {
      Tensor once = empty(x.sizes(), x.dtype(), x.device());
      overwrite<false>(once, name, fill);
      return copy_(x, once);
    }
  }
  const Tensor both[2] = {x, p};
  const std::span<const Tensor> in(both, p.defined() ? 2 : 1);
  const InplaceWrite write(x, name, in);
  if (!alike) refuse_self_overlap(x, name);
  draw_into(x, fill);
  write.written();
  write.record_as(p.defined() ? bernoulli_into_op : overwrite_op, in, nullptr);
}

void need_floating(const Tensor& x, std::string_view name, bool complex_too = false) {
  if (x.is_floating() || (complex_too && x.is_complex())) return;
  fail(ErrorKind::NotImplemented, name, ": needs a floating point tensor; got ", x);
}

void floating_shape(const Call& c, OutSpecs& outs) {
  need_floating(c.in[0], c.name());
  same_shape(c, outs);
}

void need_real(const Tensor& x, const char* name) {
  if (x.is_complex()) fail(ErrorKind::NotImplemented, name, ": needs a real tensor; got ", x);
}

// Strides of x where they are dense, else contiguous ones.
Dims dense_strides(const Tensor& x) {
  bool dense = is_non_overlapping_and_dense(x.sizes(), x.strides());
  return dense ? x.strides() : contiguous_strides(x.sizes());
}

// Ranges from here on draw 64 bits, so that the remainder stays nearly even.
constexpr uint64_t wide_range = 1ull << 28;

// Largest whole number up to which the dtype holds every one.
int64_t largest_exact(DType d) {
  switch (d) {
    case DType::Bool: return 1;
    case DType::UInt8: return 255;
    case DType::UInt16: return 65535;
    case DType::UInt32: return UINT32_MAX;
    case DType::Int8: return 127;
    case DType::Int16: return 32767;
    case DType::Int32: return INT32_MAX;
    case DType::Float16: return 1 << 11;
    case DType::BFloat16: return 1 << 8;
    case DType::Float32: return 1 << 24;
    case DType::Float64: return int64_t{1} << 53;
    default: return INT64_MAX;
  }
}
int64_t smallest(DType d) {
  switch (d) {
    case DType::Bool:
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64: return 0;
    case DType::Int8: return -128;
    case DType::Int16: return -32768;
    case DType::Int32: return INT32_MIN;
    case DType::Int64: return INT64_MIN;
    default: return -largest_exact(d);
  }
}

double largest_number(DType d) {
  switch (real_of(d)) {
    case DType::Float16: return 65504.0;
    case DType::BFloat16: return 3.3895313892515355e38;
    case DType::Float32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

void check_bounds(const char* name, DType d, int64_t low, int64_t high) {
  require(low < high, name, ": low must be below high; got ", low, " and ", high);
  // Floats beyond their exact whole numbers still hold rounded ones.
  if (is_floating(d) && d != DType::Float16) return;
  int64_t largest = d == DType::Float16 ? 65504 : largest_exact(d);
  require(low >= (d == DType::Float16 ? -largest : smallest(d)) && high - 1 <= largest, name,
          ": the numbers from ", low, " to ", high - 1, " must fit into ", d);
}

struct GeneratorAttrs {
  Generator* generator = nullptr;
  static constexpr auto members() { return std::tuple(&GeneratorAttrs::generator); }
};
constexpr OpDef bernoulli_op = general({
    .signature = "bernoulli(Tensor input, *, Generator? generator=None) -> Tensor",
    .doc = R"(Draws 1 with the probability that each element states, else 0.

out[i] ~ Bernoulli(input[i])

Args:
    input: probabilities, each in [0, 1].
    p: one probability for all elements, instead of those of input.
    generator: where the random numbers come from.

Returns:
    A tensor of input's shape and dtype.

Example:
    >>> clew.bernoulli(clew.tensor([0.0, 1.0]))
    tensor([0., 1.])
)",
    .shape = floating_shape,
    .cpu =
        [](const Call& c, Tensors& outs) {
          kernels::random_bernoulli(outs[0].nd(), c.in[0].nd(),
                                    or_default(c.as<GeneratorAttrs>().generator));
        },
    .vjp = zero_vjp,
    .attrs = &attr_info<GeneratorAttrs>,
    .out_dtype = OutDtype::any,
});

}  // namespace

void uniform_(const Tensor& x, double from, double to, Generator* g) {
  need_floating(x, "uniform_", true);
  require(from <= to, "uniform_: from must not be above to; got ", from, " and ", to);
  const double top = largest_number(x.dtype());
  require(from >= -top && to <= top && to - from <= top, "uniform_: from, to and their distance ",
          "must not be above the largest ", x.dtype(), ", ", top, "; got ", from, " and ", to);
  overwrite(x, "uniform_", [&](auto v) { kernels::random_uniform(v, from, to, or_default(g)); });
}

void normal_(const Tensor& x, double mean, double std, Generator* g) {
  need_floating(x, "normal_", true);
  require(std >= 0, "normal_: std must not be negative; got ", std);
  overwrite(x, "normal_", [&](auto v) { kernels::random_normal(v, mean, std, or_default(g)); });
}

void bernoulli_(const Tensor& x, double p, Generator* g) {
  need_real(x, "bernoulli_");
  require(p >= 0 && p <= 1, "bernoulli_: p must be in [0, 1]; got ", p);
  overwrite(x, "bernoulli_", [&](auto v) { kernels::random_bernoulli(v, p, or_default(g)); });
}

void bernoulli_(const Tensor& x, const Tensor& p, Generator* g) {
  require(!p.is_meta() || x.is_meta(),
          "bernoulli_: p must hold numbers, on the device of the tensor; got ", p, " for ", x);
  need_floating(p, "bernoulli_");
  need_real(x, "bernoulli_");
  const Tensor both[2] = {x, p};
  if (const uint32_t levels = levels_of(both)) {
    require_room(x, levels, "bernoulli_");
    const Tensor chances[1] = {expand(p, x.sizes())};
    const GeneratorAttrs attrs{g};
    copy_(x, apply_one(bernoulli_op, chances, &attrs));
    return;
  }
  const Dims strides = broadcast_strides(p.sizes(), p.strides(), x.sizes());
  // Drawn in the probabilities' dtype, then converted.
  Tensor drawn = x.dtype() == p.dtype() ? x : empty_strided(x.sizes(), dense_strides(x), p.dtype());
  const auto draw = [&](kernels::NdView v) {
    const Held held{p, drawn};
    kernels::NdView chances{p->address(), v.sizes, strides.data(), v.ndim, p.dtype()};
    kernels::random_bernoulli(drawn.nd(), chances, or_default(g));
    if (!drawn.is_same(x)) kernels::copy(v, drawn.nd());
  };
  overwrite(x, "bernoulli_", draw, p);
}

void random_(const Tensor& x, std::optional<int64_t> from, std::optional<int64_t> to,
             Generator* g) {
  need_real(x, "random_");
  int64_t low = from.value_or(0);
  int64_t last = to ? *to - 1 : largest_exact(x.dtype());
  if (to) check_bounds("random_", x.dtype(), low, *to);
  require(low <= last && low >= smallest(x.dtype()), "random_: from must be a number that ",
          x.dtype(), " holds; got ", low);
  uint64_t range = static_cast<uint64_t>(last) - static_cast<uint64_t>(low) + 1;
  if (!to && x.dtype() == DType::UInt64) range = uint64_t{0} - static_cast<uint64_t>(low);
  bool bounded = from || to;
  bool wide = bounded ? range == 0 || range >= wide_range
                      : as_signed(x.dtype()) == DType::Int64 || x.dtype() == DType::Float64;
  overwrite(x, "random_",
            [&](auto v) { kernels::random_integers(v, low, range, wide, or_default(g)); });
}

void exponential_(const Tensor& x, double lambd, Generator* g) {
  need_floating(x, "exponential_");
  require(lambd > 0, "exponential_: lambd must be above 0; got ", lambd);
  overwrite(x, "exponential_",
            [&](auto v) { kernels::random_exponential(v, lambd, or_default(g)); });
}

void geometric_(const Tensor& x, double p, Generator* g) {
  need_real(x, "geometric_");
  require(p > 0 && p < 1, "geometric_: p must be in (0, 1); got ", p);
  overwrite(x, "geometric_", [&](auto v) { kernels::random_geometric(v, p, or_default(g)); });
}

void cauchy_(const Tensor& x, double median, double sigma, Generator* g) {
  need_floating(x, "cauchy_");
  require(sigma > 0, "cauchy_: sigma must be above 0; got ", sigma);
  overwrite(x, "cauchy_", [&](auto v) { kernels::random_cauchy(v, median, sigma, or_default(g)); });
}

void log_normal_(const Tensor& x, double mean, double std, Generator* g) {
  need_floating(x, "log_normal_");
  require(std > 0, "log_normal_: std must be above 0; got ", std);
  overwrite(x, "log_normal_",
            [&](auto v) { kernels::random_log_normal(v, mean, std, or_default(g)); });
}

void fill_recorded_(const Tensor& x, const Scalar& value) {
  require_fits("fill_", value, x.dtype());
  overwrite<false, true>(x, "fill_", [&](auto v) { kernels::fill(v, value); });
}

void fill_randint(const Tensor& fresh, int64_t low, int64_t high, Generator* g) {
  need_real(fresh, "randint");
  check_bounds("randint", fresh.dtype(), low, high);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const bool wide = range == 0 || range >= wide_range;
  draw_into(fresh, [&](auto v) { kernels::random_integers(v, low, range, wide, or_default(g)); });
}

Tensor randperm(int64_t n, DType dtype, Device device, Generator* g) {
  require(n >= 0, "randperm: n must not be negative; got ", n);
  if (is_complex(dtype) || dtype == DType::Bool) {
    fail(ErrorKind::NotImplemented, "randperm: dtype must be a real number's; got ", dtype);
  }
  require(n - 1 <= largest_exact(dtype), "randperm: n = ", n, " is too large for ", dtype);
  Tensor out = empty({n}, dtype, device);
  draw_into(out, [&](auto v) { kernels::random_permutation(v, or_default(g)); });
  return out;
}

namespace {

struct BernoulliAttrs {
  double p = 0;
  Generator* generator = nullptr;
  static constexpr auto members() {
    return std::tuple(&BernoulliAttrs::p, &BernoulliAttrs::generator);
  }
};

constexpr OpDef bernoulli_p_op = general({
    .signature = "bernoulli(Tensor input, float p, *, Generator? generator=None) -> Tensor",
    .doc = "Draws 1 with probability p for each element of input, else 0.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          double p = c.as<BernoulliAttrs>().p;
          need_real(c.in[0], "bernoulli");
          require(p >= 0 && p <= 1, "bernoulli: p must be in [0, 1]; got ", p);
          same_shape(c, outs);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<BernoulliAttrs>();
          kernels::random_bernoulli(outs[0].nd(), a.p, or_default(a.generator));
        },
    .vjp = zero_vjp,
    .attrs = &attr_info<BernoulliAttrs>,
    .out_dtype = OutDtype::any,
});

constexpr OpDef poisson_op = general({
    .signature = "poisson(Tensor input, Generator? generator=None) -> Tensor",
    .doc = R"(Draws a Poisson number with the mean that each element states.

out[i] ~ Poisson(input[i])

Args:
    input: means, not negative.
    generator: where the random numbers come from.

Returns:
    A tensor of input's shape and dtype.

Example:
    >>> clew.poisson(clew.zeros(2))
    tensor([0., 0.])
)",
    .shape = floating_shape,
    .cpu =
        [](const Call& c, Tensors& outs) {
          kernels::random_poisson(outs[0].nd(), c.in[0].nd(),
                                  or_default(c.as<GeneratorAttrs>().generator));
        },
    .vjp = zero_vjp,
    .attrs = &attr_info<GeneratorAttrs>,
    .offer = Offer::function,
});

// Raw draws that other functions check, scale and divide. It has no generator argument, so vmap
// treats it as an ordinary operation; callers have already expanded the concentrations over the
// samples.
constexpr OpDef log_gamma_op = general({
    .signature = "_log_gamma_draws(Tensor concentration) -> Tensor",
    .doc = "Logarithms of gamma numbers of rate 1; concentration and result are float64.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          require(c.in[0].dtype() == DType::Float64, "_log_gamma_draws: needs float64");
          same_shape(c, outs);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          kernels::random_log_gamma(outs[0].nd(), c.in[0].nd(), or_default(nullptr));
        },
    .vjp = zero_vjp,
    .draws = true,
    .offer = Offer::function,
});

constexpr OpDef binomial_op = general({
    .signature = "_binomial_draws(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    .doc = "How many of count trials succeed, nan if count is not finite; float64, of one shape.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          require(c.in[0].dtype() == DType::Float64 && c.in[1].dtype() == DType::Float64 &&
                      c.in[0].sizes() == c.in[1].sizes(),
                  "_binomial_draws: needs float64 of one shape");
          same_shape(c, outs);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          kernels::random_binomial(outs[0].nd(), c.in[0].nd(), c.in[1].nd(),
                                   or_default(c.as<GeneratorAttrs>().generator));
        },
    .vjp = zero_vjp,
    .attrs = &attr_info<GeneratorAttrs>,
    .offer = Offer::function,
});

struct MultinomialAttrs {
  int64_t num_samples = 1;
  bool replacement = false;
  Generator* generator = nullptr;
  static constexpr auto members() {
    return std::tuple(&MultinomialAttrs::num_samples, &MultinomialAttrs::replacement,
                      &MultinomialAttrs::generator);
  }
};

void multinomial_shape(const Call& c, OutSpecs& outs) {
  const Tensor& w = c.in[0];
  const auto& a = c.as<MultinomialAttrs>();
  require(w.is_floating(), "multinomial: only supports floating-point dtypes for input; got ", w);
  require(w.ndim() == 1 || w.ndim() == 2, "multinomial: input must have 1 or 2 dims; got ", w);
  require(a.num_samples > 0, "multinomial: num_samples must be above 0; got ", a.num_samples);
  require(w.size(-1) > 0 || w.numel() > 0, "multinomial: input must have categories; got ", w);
  require(a.replacement || a.num_samples <= w.size(-1), "multinomial: cannot draw ", a.num_samples,
          " samples without replacement from ", w.size(-1), " categories");
  Dims sizes = w.sizes();
  sizes[w.ndim() - 1] = a.num_samples;
  outs.add(DType::Int64, sizes);
}

void multinomial_cpu(const Call& c, Tensors& outs) {
  const Tensor w = contiguous(c.in[0]);
  const auto& a = c.as<MultinomialAttrs>();
  if (w.numel() == 0) return;
  int64_t categories = w.size(-1), rows = w.numel() / categories;
  int64_t in_sizes[] = {rows, categories}, in_strides[] = {categories, 1};
  int64_t out_sizes[] = {rows, a.num_samples}, out_strides[] = {a.num_samples, 1};
  // Draws in the order in which a tensor laid out like the weights would be filled with random
  // numbers.
  const Dims order = ordered_strides(w.sizes(), {&c.in[0], 1});
  const bool by_columns = rows > 1 && categories > 1 && order[0] < order[1];
  kernels::random_multinomial({outs[0]->address(), out_sizes, out_strides, 2, DType::Int64},
                              {w->address(), in_sizes, in_strides, 2, w.dtype()}, a.replacement,
                              by_columns, or_default(a.generator));
}

constexpr OpDef multinomial_op = general({
    .signature = "multinomial(Tensor input, int num_samples, bool replacement=False, *, Generator? "
                 "generator=None)"
                 " -> Tensor",
    .doc = R"(Draws indices with probabilities proportional to the weights in each row.

Args:
    input: weights of one row [categories] or several [rows, categories], not all zero.
    num_samples: how many indices to draw from each row.
    replacement: whether an index may be drawn again.
    generator: where the random numbers come from.

Returns:
    Indices, int64, [num_samples] or [rows, num_samples].

Example:
    >>> clew.multinomial(clew.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
)",
    .shape = multinomial_shape,
    .cpu = multinomial_cpu,
    .no_vjp = no_rule("indices have no derivative"),
    .attrs = &attr_info<MultinomialAttrs>,
});

constexpr OpDef normal_op = general({
    .signature = "_normal(Tensor input, Tensor std, *, Generator? generator=None) -> Tensor",
    .doc = "Normal numbers with the mean and the standard deviation that broadcast tensors state.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          need_floating(c.in[0], "normal");
          need_floating(c.in[1], "normal");
          outs.add(c.in[0].dtype(), broadcast_shapes(c.in[0].sizes(), c.in[1].sizes(), "normal"));
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor& out = outs[0];
          Tensor mean = empty(out.sizes(), out.dtype()), std = empty(out.sizes(), out.dtype());
          copy_into(mean, c.in[0]);
          copy_into(std, c.in[1]);
          kernels::random_normal(out.nd(), mean.nd(), std.nd(),
                                 or_default(c.as<GeneratorAttrs>().generator));
        },
    .vjp = zero_vjp,
    .attrs = &attr_info<GeneratorAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* random_list[] = {&bernoulli_op,   &bernoulli_p_op, &poisson_op,
                                        &multinomial_op, &normal_op,      &log_gamma_op,
                                        &binomial_op};

}  // namespace

extern const OpList random_ops;
const OpList random_ops = op_list(random_list);

}  // namespace clew
