// Special functions of one number: error functions, gamma family, normal distribution, modified
// Bessel functions.
// May include: graph/op.h, kernels/core/loop_tables.h, other families' headers.
// Invariant: derivatives are written with ops that have derivatives themselves.
#include "kernels/core/loop_tables.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/elementwise/slope.h"
#include "ops/ops.h"

namespace clew {

namespace table = kernels::table;

namespace {

constexpr double two_over_root_pi = 1.12837916709551257390;
constexpr double half_root_pi = 0.88622692545275801365;
constexpr double root_2pi = 2.50662827463100050242;
constexpr double root_half = 0.70710678118654752440;

constexpr Saves all_saved = {.always = in(0) | out(0)};

// --- error functions ---

Tensor bell(const Tensor& x) { return exp(-square(x)); }
Tensor d_erf(const Vjp& c) { return bell(c.in(0)) * two_over_root_pi; }
Tensor d_erfc(const Vjp& c) { return bell(c.in(0)) * -two_over_root_pi; }
Tensor d_erfinv(const Vjp& c) { return exp(square(c.out())) * half_root_pi; }
Tensor d_erfcx(const Vjp& c) { return c.in(0) * c.out() * 2 - two_over_root_pi; }
constexpr OpDef erf_op =
    unary<"erf", "The error function.", "2 / sqrt(pi) * integral of e ** -t ** 2 from 0 to input",
          "clew.tensor([0., 1.])", "tensor([0.0000, 0.8427])">(
        {.loops = &table::erf,
         .saves = input_saved,
         .vjp = fused_vjp<&table::erf_slope, Of::input, d_erf>});
constexpr OpDef erfc_op =
    unary<"erfc", "The complementary error function, accurate in its tail.", "1 - erf(input)",
          "clew.tensor([0., 1.])", "tensor([1.0000, 0.1573])">(
        {.loops = &table::erfc, .saves = input_saved, .partials = {d_erfc}});
constexpr OpDef erfinv_op =
    unary<"erfinv", "The inverse of the error function.", "x with erf(x) = input",
          "clew.tensor([0., 0.5])", "tensor([0.0000, 0.4769])">(
        {.loops = &table::erfinv, .saves = output_saved, .partials = {d_erfinv}});
constexpr OpDef erfcx_op =
    unary<"special.erfcx", "The scaled complementary error function.",
          "e ** input ** 2 * erfc(input)", "clew.tensor([0., 1.])", "tensor([1.0000, 0.4276])">(
        {.loops = &table::erfcx, .saves = all_saved, .partials = {d_erfcx}});

// --- normal distribution ---

Tensor d_ndtr(const Vjp& c) { return exp(square(c.in(0)) * -0.5) * (1 / root_2pi); }
Tensor d_ndtri(const Vjp& c) { return exp(square(c.out()) * 0.5) * root_2pi; }
Tensor d_log_ndtr(const Vjp& c) { return (2 / root_2pi) / erfcx(c.in(0) * -root_half); }
Tensor d_entr(const Vjp& c) { return -log(c.in(0)) - 1; }
constexpr OpDef ndtr_op =
    unary<"special.ndtr", "The distribution function of the standard normal.",
          "(1 + erf(input / sqrt(2))) / 2", "clew.tensor([0., 1.])", "tensor([0.5000, 0.8413])">(
        {.loops = &table::ndtr, .saves = input_saved, .partials = {d_ndtr}});
constexpr OpDef ndtri_op =
    unary<"special.ndtri", "The inverse of the normal distribution function.",
          "x with ndtr(x) = input", "clew.tensor([0.5, 0.975])", "tensor([0.0000, 1.9600])">(
        {.loops = &table::ndtri, .saves = output_saved, .partials = {d_ndtri}});
constexpr OpDef log_ndtr_op =
    unary<"special.log_ndtr", "The logarithm of ndtr, accurate in its tail.", "log(ndtr(input))",
          "clew.tensor([0., -10.])", "tensor([ -0.6931, -53.2313])">(
        {.loops = &table::log_ndtr, .saves = input_saved, .partials = {d_log_ndtr}});
constexpr OpDef entr_op =
    unary<"special.entr", "The summands of an entropy.", "-input * log(input), 0 at 0, -inf below",
          "clew.tensor([0., 0.5])", "tensor([0.0000, 0.3466])">(
        {.loops = &table::entr, .saves = input_saved, .partials = {d_entr}});

// --- gamma family ---

struct OrderAttrs {
  Scalar n = 0;
  static constexpr auto members() { return std::tuple(&OrderAttrs::n); }
};
Tensor d_lgamma(const Vjp& c) { return digamma(c.in(0)); }
Tensor d_digamma(const Vjp& c) { return polygamma(1, c.in(0)); }
Tensor d_polygamma(const Vjp& c) {
  const int64_t n = c.as<OrderAttrs>().n.to_int();
  return polygamma(std::min(n, INT64_MAX - 1) + 1, c.in(0));
}
constexpr OpDef lgamma_op =
    unary<"lgamma", "The logarithm of the absolute value of the gamma function.",
          "log(|gamma(input)|)", "clew.tensor([1., 4.])", "tensor([0.0000, 1.7918])">(
        {.loops = &table::lgamma, .saves = input_saved, .partials = {d_lgamma}});
constexpr OpDef digamma_op =
    unary<"digamma", "The derivative of lgamma.", "gamma'(input) / gamma(input)",
          "clew.tensor([1., 0.5])", "tensor([-0.5772, -1.9635])">(
        {.loops = &table::digamma, .saves = input_saved, .partials = {d_digamma}});

constexpr OpDef polygamma_plain_op = elementwise({
    .signature = "_polygamma(Tensor input, Scalar n) -> Tensor",
    .doc = "The n-th derivative of digamma.",
    .promote = Promote::to_float,
    .loops = &table::polygamma,
    .saves = input_saved,
    .partials = {d_polygamma},
    .attrs = &attr_info<OrderAttrs>,
});
struct IntOrderAttrs {
  int64_t n = 0;
  static constexpr auto members() { return std::tuple(&IntOrderAttrs::n); }
};
void polygamma_run(const Call& c, Tensors& outs) {
  outs.push_back(polygamma(c.as<IntOrderAttrs>().n, c.in[0]));
}
constexpr const char* polygamma_doc = R"(The n-th derivative of the digamma function.

out = (-1) ** (n + 1) * n! * zeta(n + 1, input)

Args:
    n: the order, not negative.
    input: any shape.
Returns:
    a tensor of input's shape.

>>> clew.polygamma(1, clew.tensor([1., 0.5]))
tensor([1.6449, 4.9348])
)";
constexpr OpDef polygamma_op = composite({
    .signature = "polygamma(int n, Tensor input) -> Tensor",
    .doc = polygamma_doc,
    .run = polygamma_run,
    .attrs = &attr_info<IntOrderAttrs>,
    .offer = Offer::function,
    .out_dtype = OutDtype::converted,
});
constexpr OpDef polygamma_method_op = composite({
    .signature = "polygamma(Tensor input, int n) -> Tensor",
    .doc = polygamma_doc,
    .run = polygamma_run,
    .attrs = &attr_info<IntOrderAttrs>,
    .inplace = true,
    .offer = Offer::method,
});

void mvlgamma_run(const Call& c, Tensors& outs) {
  int64_t p = c.as<IntOrderAttrs>().n;
  // One term a dimension: beyond any real matrix it would only run for hours.
  require(p >= 1 && p <= 100000, "mvlgamma: p must be at least 1 and at most 100000; got ", p);
  Tensor sum;
  for (int64_t k = 0; k < p; ++k) {
    Tensor term = apply(lgamma_op, {c.in[0] - 0.5 * static_cast<double>(k)});
    sum = sum.defined() ? sum + term : term;
  }
  const double order = static_cast<double>(p);
  outs.push_back(sum + 0.25 * order * (order - 1) * 1.14472988584940017414);  // log(pi)
}
constexpr OpDef mvlgamma_op = composite({
    .signature = "mvlgamma(Tensor input, int p) -> Tensor",
    .doc = R"(The logarithm of the multivariate gamma function.

out = p * (p - 1) / 4 * log(pi) + sum of lgamma(input - k / 2) for k < p

Args:
    input: the tensor; above (p - 1) / 2.
    p: the number of dimensions.
Returns:
    a tensor of input's shape.

>>> clew.mvlgamma(clew.tensor([2.]), 2)
tensor([0.4516])
)",
    .run = mvlgamma_run,
    .attrs = &attr_info<IntOrderAttrs>,
    .inplace = true,
    .out_dtype = OutDtype::converted,
});

Tensor zeta(const Tensor& x, const Tensor& q);
void zeta_vjp(Vjp& c) {
  if (c.needs(0)) fail("special.zeta: the derivative by the first argument is not implemented");
  Tensor s = operand(c, 0);
  c.set(1, c.grad() * (-s * zeta(s + 1, c.in(1))));
}
constexpr OpDef zeta_op = elementwise({
    .signature = "special.zeta(Operand input, Operand other) -> Tensor",
    .doc = R"(The Hurwitz zeta function.

out = sum of (other + k) ** -input for k = 0, 1, 2 ...

Args:
    input: the exponent, above 1; gradients go to other alone.
    other: where the sum starts.
Returns:
    a tensor of the broadcast shape.

>>> clew.special.zeta(clew.tensor([2.]), 1)
tensor([1.6449])
)",
    .promote = Promote::to_float,
    .loops = &table::zeta,
    .saves = {.always = in(0) | in(1)},
    .vjp = zeta_vjp,
    .inplace = false,
    .offer = Offer::function,
});
Tensor zeta(const Tensor& x, const Tensor& q) { return apply(zeta_op, {x, q}); }

// --- modified Bessel functions ---

Tensor i0(const Tensor& x);
Tensor i0e(const Tensor& x);
Tensor i1(const Tensor& x);
Tensor i1e(const Tensor& x);

// f(x) / x, where it tends to 1/2 at 0.
Tensor over_x(const Tensor& f, const Tensor& x) {
  Tensor zero = eq(x, number(0));
  return where(zero, number(0.5), f / where(zero, number(1.0), x));
}
Tensor d_i0(const Vjp& c) { return i1(c.in(0)); }
Tensor d_i0e(const Vjp& c) { return i1e(c.in(0)) - sgn(c.in(0)) * c.out(); }
Tensor d_i1(const Vjp& c) { return i0(c.in(0)) - over_x(c.out(), c.in(0)); }
Tensor d_i1e(const Vjp& c) {
  Tensor x = c.in(0);
  return i0e(x) - over_x(c.out(), x) - sgn(x) * c.out();
}
constexpr OpDef i0_op = unary<"i0", "The modified Bessel function of the first kind of order 0.",
                              "sum of (input / 2) ** 2k / k! ** 2", "clew.tensor([0., 1.])",
                              "tensor([1.0000, 1.2661])">(
    {.loops = &table::i0, .saves = input_saved, .partials = {d_i0}});
constexpr OpDef i0e_op =
    unary<"special.i0e", "i0 scaled by an exponential.", "e ** -|input| * i0(input)",
          "clew.tensor([0., 1.])", "tensor([1.0000, 0.4658])">(
        {.loops = &table::i0e, .saves = all_saved, .partials = {d_i0e}});
constexpr OpDef i1_op =
    unary<"special.i1", "The modified Bessel function of the first kind of order 1.",
          "sum of (input / 2) ** (2k + 1) / (k! (k + 1)!)", "clew.tensor([0., 1.])",
          "tensor([0.0000, 0.5652])">(
        {.loops = &table::i1, .saves = all_saved, .partials = {d_i1}});
constexpr OpDef i1e_op =
    unary<"special.i1e", "i1 scaled by an exponential.", "e ** -|input| * i1(input)",
          "clew.tensor([0., 1.])", "tensor([0.0000, 0.2079])">(
        {.loops = &table::i1e, .saves = all_saved, .partials = {d_i1e}});

Tensor i0(const Tensor& x) { return apply(i0_op, {x}); }
Tensor i0e(const Tensor& x) { return apply(i0e_op, {x}); }
Tensor i1(const Tensor& x) { return apply(i1_op, {x}); }
Tensor i1e(const Tensor& x) { return apply(i1e_op, {x}); }

}  // namespace

Tensor erfcx(const Tensor& input) { return apply(erfcx_op, {input}); }
Tensor digamma(const Tensor& input) { return apply(digamma_op, {input}); }
Tensor polygamma(int64_t n, const Tensor& input) {
  require(n >= 0, "polygamma: n must not be negative; got ", n);
  if (n == 0) return digamma(input);
  return apply(polygamma_plain_op, {input}, OrderAttrs{Scalar(n)});
}

static constexpr const OpDef* special_list[] = {
    &erf_op,
    &erfc_op,
    &erfinv_op,
    &erfcx_op,
    &ndtr_op,
    &ndtri_op,
    &entr_op,
    &log_ndtr_op,
    &lgamma_op,
    &digamma_op,
    &mvlgamma_op,
    &zeta_op,
    &polygamma_plain_op,
    &polygamma_op,
    &polygamma_method_op,
    &i0_op,
    &i0e_op,
    &i1_op,
    &i1e_op,
    renamed<erf_op, "special.erf">,
    renamed<erfc_op, "special.erfc">,
    renamed<erfinv_op, "special.erfinv">,
    renamed<lgamma_op, "special.gammaln">,
    renamed<digamma_op, "special.digamma">,
    renamed<digamma_op, "special.psi">,
    renamed<polygamma_op, "special.polygamma">,
    renamed<mvlgamma_op, "special.multigammaln">,
    renamed<i0_op, "special.i0">,
};
extern const OpList special_ops;
const OpList special_ops = op_list(special_list);

}  // namespace clew
