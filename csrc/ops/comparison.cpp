// Comparison, logic, selection by a condition.
// May include: graph/op.h, kernels/pointwise.h, other families' headers.
// Invariant: results of comparisons and logic are bool and have no derivative.
#include "ops/comparison.h"

#include "kernels/pointwise.h"
#include "ops/arithmetic.h"
#include "ops/ops.h"
#include "ops/unary.h"

namespace clew {

namespace table = kernels::table;

namespace {

constexpr NoRule no_slope = no_rule("a comparison has no derivative");

constexpr OpDef compare(const char* signature, const char* doc, const kernels::LoopTable* loops) {
  return OpDef{.signature = signature, .doc = doc, .kind = OpKind::Elementwise,
               .result = Result::boolean, .loops = loops, .no_vjp = no_slope.reason, .inplace = true};
}

constexpr OpDef eq_op = compare("eq(Tensor input, Tensor other) -> Tensor",
                                R"(Whether input equals other, element by element.

Args:
    input: the first operand.
    other: the second operand, a tensor or a number.
Returns:
    a bool tensor of the broadcast shape.

>>> clew.eq(clew.tensor([1, 2]), 2)
tensor([False,  True])
)",
                                &table::eq);
constexpr OpDef ne_op = compare("ne(Tensor input, Tensor other) -> Tensor",
                                R"(Whether input differs from other, element by element.

Args:
    input: the first operand.
    other: the second operand, a tensor or a number.
Returns:
    a bool tensor of the broadcast shape.

>>> clew.ne(clew.tensor([1, 2]), 2)
tensor([ True, False])
)",
                                &table::ne);
constexpr OpDef lt_op = compare("lt(Tensor input, Tensor other) -> Tensor",
                                R"(Whether input is less than other, element by element.

Args:
    input: the first operand.
    other: the second operand, a tensor or a number.
Returns:
    a bool tensor of the broadcast shape.

>>> clew.lt(clew.tensor([1, 2]), 2)
tensor([ True, False])
)",
                                &table::lt);
constexpr OpDef le_op = compare("le(Tensor input, Tensor other) -> Tensor",
                                R"(Whether input is at most other, element by element.

Args:
    input: the first operand.
    other: the second operand, a tensor or a number.
Returns:
    a bool tensor of the broadcast shape.

>>> clew.le(clew.tensor([1, 2, 3]), 2)
tensor([ True,  True, False])
)",
                                &table::le);
constexpr OpDef gt_op = compare("gt(Tensor input, Tensor other) -> Tensor",
                                R"(Whether input is greater than other, element by element.

Args:
    input: the first operand.
    other: the second operand, a tensor or a number.
Returns:
    a bool tensor of the broadcast shape.

>>> clew.gt(clew.tensor([1, 2, 3]), 2)
tensor([False, False,  True])
)",
                                &table::gt);
constexpr OpDef ge_op = compare("ge(Tensor input, Tensor other) -> Tensor",
                                R"(Whether input is at least other, element by element.

Args:
    input: the first operand.
    other: the second operand, a tensor or a number.
Returns:
    a bool tensor of the broadcast shape.

>>> clew.ge(clew.tensor([1, 2, 3]), 2)
tensor([False,  True,  True])
)",
                                &table::ge);
constexpr OpDef logical_and_op = compare("logical_and(Tensor input, Tensor other) -> Tensor",
                                         R"(Whether both elements are nonzero.

Args:
    input: the first operand.
    other: the second operand.
Returns:
    a bool tensor of the broadcast shape.

>>> clew.logical_and(clew.tensor([0, 1, 2]), clew.tensor([1, 1, 0]))
tensor([False,  True, False])
)",
                                         &table::logical_and);
constexpr OpDef logical_or_op = compare("logical_or(Tensor input, Tensor other) -> Tensor",
                                        R"(Whether at least one of the elements is nonzero.

Args:
    input: the first operand.
    other: the second operand.
Returns:
    a bool tensor of the broadcast shape.

>>> clew.logical_or(clew.tensor([0, 1, 0]), clew.tensor([1, 1, 0]))
tensor([ True,  True, False])
)",
                                        &table::logical_or);
constexpr OpDef logical_not_op = compare("logical_not(Tensor input) -> Tensor",
                                         R"(Whether the element is zero.

Args:
    input: the tensor.
Returns:
    a bool tensor of input's shape.

>>> clew.logical_not(clew.tensor([0, 1, 2]))
tensor([ True, False, False])
)",
                                         &table::logical_not);

// --- where ---

// The dtype of a two-tensor result: tensors with dims outweigh 0-d ones, those outweigh numbers, inside a category.
DType joint_dtype(const Tensor& a, const Tensor& b) {
  auto rank = [](const Tensor& t) { return t.is_wrapped_number() ? 0 : t.ndim() == 0 ? 1 : 2; };
  auto weak = [](const Tensor& t) {
    return t.is_wrapped_number() && t.dtype() == DType::Float64 ? default_dtype() : t.dtype();
  };
  const Tensor& strong = rank(a) >= rank(b) ? a : b;
  const Tensor& other = rank(a) >= rank(b) ? b : a;
  if (rank(a) == rank(b)) return promote(weak(a), weak(b));
  if (category(strong.dtype()) >= category(other.dtype())) return strong.dtype();
  return promote(strong.dtype(), weak(other));
}

void where_shape(const Call& c, OutSpecs& outs) {
  const Tensor& cond = c.in[0];
  require(cond.dtype() == DType::Bool, "where: condition must be a bool tensor; got ", cond);
  Dims sizes = broadcast_shapes(c.in[1].sizes(), c.in[2].sizes(), "where");
  require(c.in[1].dtype() == c.in[2].dtype(), "where: input and other must have one dtype; got ",
          c.in[1], " and ", c.in[2]);
  outs.add(c.in[1].dtype(), broadcast_shapes(cond.sizes(), sizes, "where"));
}

void where_cpu(const Call& c, Tensors& outs) {
  Tensor& out = outs[0];
  const size_t item = itemsize(out.dtype());
  char* data[4] = {out->data, c.in[0]->data, c.in[1]->data, c.in[2]->data};
  Dims steps[3];
  for (int k = 0; k < 3; ++k) {
    steps[k] = broadcast_strides(c.in[k].sizes(), c.in[k].strides(), out.sizes());
  }
  const int64_t* strides[4] = {out.strides().data(), steps[0].data(), steps[1].data(), steps[2].data()};
  size_t items[4] = {item, 1, item, item};
  kernels::run_loop(kernels::where_loop_of(item), 4, data, strides, items, out.sizes().data(),
                    out.ndim(), nullptr);
}

void where_vjp(Vjp& c) {
  Tensor cond = c.in(0);
  if (c.needs(1)) c.set(1, where(cond, c.grad(), number(0)));
  if (c.needs(2)) c.set(2, where(cond, number(0), c.grad()));
}

constexpr OpDef where_same_op = general({
    .signature = "_where(Tensor condition, Tensor input, Tensor other) -> Tensor",
    .doc = "where() of two tensors of one dtype.",
    .shape = where_shape,
    .cpu = where_cpu,
    .saves = {.always = in(0)},
    .vjp = where_vjp,
});

void where_run(const Call& c, Tensors& outs) { outs.push_back(where(c.in[0], c.in[1], c.in[2])); }

constexpr OpDef where_op = composite({
    .signature = "where(Tensor condition, Tensor input, Tensor other) -> Tensor",
    .doc = R"(Takes each element from input where condition holds, from other elsewhere.

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

Tensor where(const Tensor& condition, const Tensor& input, const Tensor& other) {
  DType d = joint_dtype(input, other);
  return apply(where_same_op, {condition, to_dtype(input, d), to_dtype(other, d)});
}

static constexpr const OpDef* all[] = {&eq_op,          &ne_op,         &lt_op,          &le_op,
                                       &gt_op,          &ge_op,         &logical_and_op, &logical_or_op,
                                       &logical_not_op, &where_same_op, &where_op};
extern const OpList comparison_ops;
const OpList comparison_ops = op_list(all);

}  // namespace clew
