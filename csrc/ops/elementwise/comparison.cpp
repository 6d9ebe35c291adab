// Comparison, logic, bits and tests of single elements.
// May include: graph/op.h, kernels/core/loop_tables.h, other families' headers.
// Invariant: nothing here has a derivative; all but the bit operations give bool.
#include "ops/calls/comparison.h"

#include "kernels/core/loop_tables.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/unary.h"
#include "ops/elementwise/pointwise_doc.h"
#include "ops/ops.h"

namespace clew {

namespace table = kernels::table;

namespace {

constexpr OpDef eq_op = binary_test<"eq", "Whether input equals other.", "input == other",
                                    "clew.tensor([1, 2]), 2", "tensor([False,  True])">(&table::eq);
constexpr OpDef ne_op = binary_test<"ne", "Whether input differs from other.", "input != other",
                                    "clew.tensor([1, 2]), 2", "tensor([ True, False])">(&table::ne);
constexpr OpDef lt_op = binary_test<"lt", "Whether input is less than other.", "input < other",
                                    "clew.tensor([1, 2]), 2", "tensor([ True, False])">(&table::lt);
constexpr OpDef le_op = binary_test<"le", "Whether input is at most other.", "input <= other",
                                    "clew.tensor([1, 3]), 2", "tensor([ True, False])">(&table::le);
constexpr OpDef gt_op = binary_test<"gt", "Whether input is greater than other.", "input > other",
                                    "clew.tensor([1, 3]), 2", "tensor([False,  True])">(&table::gt);
constexpr OpDef ge_op = binary_test<"ge", "Whether input is at least other.", "input >= other",
                                    "clew.tensor([1, 3]), 2", "tensor([False,  True])">(&table::ge);

constexpr OpDef logical_and_op =
    binary_test<"logical_and", "Whether both elements are nonzero.", "input != 0 and other != 0",
                "clew.tensor([0, 1, 2]), clew.tensor([1, 1, 0])", "tensor([False,  True, False])">(
        &table::logical_and);
constexpr OpDef logical_or_op =
    binary_test<"logical_or", "Whether one of the elements is nonzero.", "input != 0 or other != 0",
                "clew.tensor([0, 1, 0]), clew.tensor([1, 1, 0])", "tensor([ True,  True, False])">(
        &table::logical_or);
constexpr OpDef logical_xor_op =
    binary_test<"logical_xor", "Whether exactly one of the elements is nonzero.",
                "(input != 0) != (other != 0)", "clew.tensor([0, 1, 0]), clew.tensor([1, 1, 0])",
                "tensor([ True, False, False])">(&table::logical_xor);
constexpr OpDef logical_not_op = [] {
  OpDef op =
      unary_test<"logical_not", "Whether the element is zero.", "input == 0",
                 "clew.tensor([0, 1, 2])", "tensor([ True, False, False])">(&table::logical_not);
  op.inplace = true;
  return op;
}();

constexpr NoRule no_bits = no_rule("bits have no derivative");
constexpr OpDef bitwise_and_op =
    binary<"bitwise_and", "The bits that both integers (or bools) have.", "input & other",
           "clew.tensor([5, 6]), 3", "tensor([1, 2])">(
        {.loops = &table::bitwise_and, .no_vjp = no_bits});
constexpr OpDef bitwise_or_op =
    binary<"bitwise_or", "The bits that one of the integers (or bools) has.", "input | other",
           "clew.tensor([5, 6]), 3", "tensor([7, 7])">(
        {.loops = &table::bitwise_or, .no_vjp = no_bits});
constexpr OpDef bitwise_xor_op =
    binary<"bitwise_xor", "The bits that exactly one of the integers (or bools) has.",
           "input ^ other", "clew.tensor([5, 6]), 3", "tensor([6, 5])">(
        {.loops = &table::bitwise_xor, .no_vjp = no_bits});
constexpr OpDef bitwise_not_op =
    unary_same<"bitwise_not", "Every bit turned round; for bool the logical not.", "~input",
               "clew.tensor([0, 5])", "tensor([-1, -6])">(
        {.loops = &table::bitwise_not, .no_vjp = no_bits, .out_dtype = OutDtype::own});
constexpr OpDef left_shift_op =
    binary<"bitwise_left_shift", "The bits moved to higher places.", "input << other",
           "clew.tensor([1, 3]), 2", "tensor([ 4, 12])">(
        {.loops = &table::shift_left, .no_vjp = no_bits});
constexpr OpDef right_shift_op =
    binary<"bitwise_right_shift", "The bits moved to lower places; the sign stays.",
           "input >> other", "clew.tensor([9, -9]), 2", "tensor([ 2, -3])">(
        {.loops = &table::shift_right, .no_vjp = no_bits});

constexpr OpDef isnan_op =
    unary_test<"isnan", "Whether the element is not a number.", "input != input",
               "clew.tensor([1., float('nan')])", "tensor([False,  True])">(&table::isnan);
constexpr OpDef isinf_op =
    unary_test<"isinf", "Whether the element is infinite.", "|input| == inf",
               "clew.tensor([1., float('-inf')])", "tensor([False,  True])">(&table::isinf);
constexpr OpDef isfinite_op =
    unary_test<"isfinite", "Whether the element is neither infinite nor nan.", "|input| < inf",
               "clew.tensor([1., float('inf')])", "tensor([ True, False])">(&table::isfinite);
constexpr OpDef isposinf_op =
    unary_test<"isposinf", "Whether the element is positive infinity.", "input == inf",
               "clew.tensor([1., float('inf')])", "tensor([False,  True])">(&table::isposinf,
                                                                            OutDtype::own);
constexpr OpDef isneginf_op =
    unary_test<"isneginf", "Whether the element is negative infinity.", "input == -inf",
               "clew.tensor([1., float('-inf')])", "tensor([False,  True])">(&table::isneginf,
                                                                             OutDtype::own);
constexpr OpDef signbit_op =
    unary_test<"signbit", "Whether the element's sign bit is set; -0. has it.", "sign bit of input",
               "clew.tensor([1., -0.])", "tensor([False,  True])">(&table::signbit, OutDtype::own);

void isreal_run(const Call& c, Tensors& outs) {
  Tensor x = c.in[0];
  outs.push_back(x.is_complex() ? eq(imag(x), number(0))
                                : eq(number(0), to_dtype(x, DType::Bool) * false));
}
constexpr OpDef isreal_op = composite({
    .signature = "isreal(Tensor input) -> Tensor",
    .doc = R"(Whether the element's imaginary part is zero.

Args:
    input: any shape.
Returns:
    a bool tensor of input's shape.

>>> clew.isreal(clew.tensor([1 + 0j, 1j]))
tensor([ True, False])
)",
    .run = isreal_run,
});

struct CloseAttrs {
  double rtol = 1e-5;
  double atol = 1e-8;
  bool equal_nan = false;
  static constexpr auto members() {
    return std::tuple(&CloseAttrs::rtol, &CloseAttrs::atol, &CloseAttrs::equal_nan);
  }
};
void isclose_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<CloseAttrs>();
  Tensor x = c.in[0];
  Tensor y = c.in[1];
  if (x.dtype() != y.dtype())
    fail("isclose: input and other must have one dtype; got ", x, " and ", y);
  require(a.rtol >= 0 && a.atol >= 0, "isclose: rtol and atol must not be negative; got ", a.rtol,
          " and ", a.atol);
  Tensor close = eq(x, y);
  if (a.equal_nan) close = logical_or(close, logical_and(isnan(x), isnan(y)));
  if (is_integral(x.dtype())) {
    x = to_dtype(x, DType::Float64);
    y = to_dtype(y, DType::Float64);
  }
  Tensor allowed = abs(y) * a.rtol + a.atol;
  Tensor error = abs(x - y);
  outs.push_back(logical_or(close, logical_and(isfinite(error), le(error, allowed))));
}
constexpr OpDef isclose_op = composite({
    .signature = "isclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, "
                 "bool equal_nan=False) -> Tensor",
    .doc = R"(Whether input is near other.

out = |input - other| <= atol + rtol * |other|

Args:
    input: the first operand.
    other: the second operand, of the same dtype.
    rtol: the relative tolerance.
    atol: the absolute tolerance.
    equal_nan: whether nan is near nan.
Returns:
    a bool tensor of the broadcast shape.

>>> clew.isclose(clew.tensor([1., 2.]), clew.tensor([1.000001, 2.1]))
tensor([ True, False])
)",
    .run = isclose_run,
    .attrs = &attr_info<CloseAttrs>,
});

}  // namespace

Tensor eq(const Tensor& input, const Tensor& other) { return apply(eq_op, {input, other}); }
Tensor ne(const Tensor& input, const Tensor& other) { return apply(ne_op, {input, other}); }
Tensor lt(const Tensor& input, const Tensor& other) { return apply(lt_op, {input, other}); }
Tensor le(const Tensor& input, const Tensor& other) { return apply(le_op, {input, other}); }
Tensor gt(const Tensor& input, const Tensor& other) { return apply(gt_op, {input, other}); }
Tensor ge(const Tensor& input, const Tensor& other) { return apply(ge_op, {input, other}); }
Tensor logical_and(const Tensor& input, const Tensor& other) {
  return apply(logical_and_op, {input, other});
}
Tensor logical_or(const Tensor& input, const Tensor& other) {
  return apply(logical_or_op, {input, other});
}
Tensor logical_not(const Tensor& input) { return apply(logical_not_op, {input}); }
Tensor isnan(const Tensor& input) { return apply(isnan_op, {input}); }
Tensor isfinite(const Tensor& input) { return apply(isfinite_op, {input}); }

static constexpr const OpDef* comparison_list[] = {
    &eq_op,
    &ne_op,
    &lt_op,
    &le_op,
    &gt_op,
    &ge_op,
    &logical_and_op,
    &logical_or_op,
    &logical_xor_op,
    &logical_not_op,
    &bitwise_and_op,
    &bitwise_or_op,
    &bitwise_xor_op,
    &bitwise_not_op,
    &left_shift_op,
    &right_shift_op,
    &isnan_op,
    &isinf_op,
    &isfinite_op,
    &isposinf_op,
    &isneginf_op,
    &signbit_op,
    &isreal_op,
    &isclose_op,
    renamed<ne_op, "not_equal">,
    renamed<lt_op, "less">,
    renamed<le_op, "less_equal">,
    renamed<gt_op, "greater">,
    renamed<ge_op, "greater_equal">,
};
extern const OpList comparison_ops;
const OpList comparison_ops = op_list(comparison_list);

}  // namespace clew
