// The kernels of Bessel's and Airy's functions and the incomplete gamma functions; src/clew/special
// has the public functions and their derivatives, which need other orders too.
// May include: graph/op.h, kernels/core/loop_tables.h, ops.
// Invariant: they are called where nothing is recorded.
#include "kernels/core/loop_tables.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/ops.h"

namespace clew {

namespace table = kernels::table;

namespace {

template <Text name, Text sentence, Text arguments = "(Tensor input) -> Tensor">
consteval OpDef function_of(const kernels::LoopTable* loops) {
  return elementwise({.signature = joined<name, arguments>,
                      .doc = joined<sentence>,
                      .loops = loops,
                      .no_vjp = no_rule("it is a kernel of functions that have a rule"),
                      .inplace = false,
                      .offer = Offer::function});
}

constexpr OpDef j0_op =
    function_of<"_bessel_j0", "The Bessel function of the first kind of order 0.">(
        &table::bessel_j0);
constexpr OpDef j1_op =
    function_of<"_bessel_j1", "The Bessel function of the first kind of order 1.">(
        &table::bessel_j1);
constexpr OpDef y0_op =
    function_of<"_bessel_y0", "The Bessel function of the second kind of order 0.">(
        &table::bessel_y0);
constexpr OpDef y1_op =
    function_of<"_bessel_y1", "The Bessel function of the second kind of order 1.">(
        &table::bessel_y1);
constexpr OpDef k0_op =
    function_of<"_bessel_k0", "The modified Bessel function of the second kind of order 0.">(
        &table::bessel_k0);
constexpr OpDef k1_op =
    function_of<"_bessel_k1", "The modified Bessel function of the second kind of order 1.">(
        &table::bessel_k1);
constexpr OpDef k0e_op =
    function_of<"_bessel_k0e", "exp(input) _bessel_k0(input)">(&table::bessel_k0e);
constexpr OpDef k1e_op =
    function_of<"_bessel_k1e", "exp(input) _bessel_k1(input)">(&table::bessel_k1e);
constexpr OpDef spherical_op =
    function_of<"_spherical_bessel_j0", "sin(input) / input">(&table::spherical_bessel_j0);
constexpr OpDef airy_op = function_of<"_airy_ai", "Airy's function Ai.">(&table::airy_ai);
constexpr OpDef airy_slope_op =
    function_of<"_airy_ai_slope", "The derivative of Airy's function Ai.">(&table::airy_ai_slope);

constexpr OpDef lower_op =
    function_of<"_gammainc", "The regularized lower incomplete gamma function.",
                "(Tensor input, Tensor other) -> Tensor">(&table::gammainc);
constexpr OpDef upper_op =
    function_of<"_gammaincc", "The regularized upper incomplete gamma function.",
                "(Tensor input, Tensor other) -> Tensor">(&table::gammaincc);

constexpr const OpDef* special_kernel_list[] = {
    &k0_op, &k1_op,        &k0e_op,  &k1e_op,        &j0_op,    &j1_op,   &y0_op,
    &y1_op, &spherical_op, &airy_op, &airy_slope_op, &lower_op, &upper_op};

}  // namespace

extern const OpList special_kernel_ops;
const OpList special_kernel_ops = op_list(special_kernel_list);

}  // namespace clew
