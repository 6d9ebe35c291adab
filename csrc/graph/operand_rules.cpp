// Which dtypes elementwise operations refuse, although they would be promoted: PyTorch's rules.
// May include: graph.
// Invariant: operations that are named nowhere promote whatever they get.
#include "graph/operand_rules.h"

#include "graph/node.h"

namespace clew {

namespace {

void check_sub(std::span<const Tensor> in, std::string_view name) {
  const bool first = in[0].dtype() == DType::Bool, second = in[1].dtype() == DType::Bool;
  if (first && second)
    fail(name, ": the subtraction of bools is not supported; use ^ or logical_xor() instead");
  if (first || second)
    fail(name, ": subtraction with a bool is not supported; got ", in[0].dtype(), " and ",
         in[1].dtype(), ". Turn a mask round with ~ or logical_not(), or convert it first, e.g. ",
         "with .float()");
}

void check_lerp(std::span<const Tensor> in) {
  const DType d = in[0].dtype();
  for (const Tensor& t : in.subspan(1)) {
    if (t.is_wrapped_number() && (is_complex(d) || !t.is_complex())) continue;
    if (t.dtype() != d)
      fail("lerp: expected input, end and weight of one dtype; got ", d, " and ", t.dtype(),
           ". Convert with .to(dtype)");
  }
  if (is_integral(d))
    fail(ErrorKind::NotImplemented, "\"lerp\" is not implemented for ", d,
         "; convert the input first, e.g. with .float()");
}

void check_addcdiv(std::span<const Tensor> in) {
  if (is_integral(in[1].dtype()) && is_integral(in[2].dtype()))
    fail("addcdiv: the division of integers is not supported; got ", in[1].dtype(), " and ",
         in[2].dtype(), ". Use input + value * trunc(tensor1 / tensor2), or convert one of them ",
         "first, e.g. with .float()");
}

}  // namespace

void check_operands(const OpDef& op, std::span<const Tensor> in) {
  const std::string_view name = op_name(op);
  if (name == "sub" || name == "subtract") return check_sub(in, name);
  if (name == "lerp") return check_lerp(in);
  if (name == "addcdiv") return check_addcdiv(in);
}

}  // namespace clew
