// Numbers before the tensors that they multiply: PyTorch's older order of arguments.
// May include: ops.
// Invariant: every op here is a call of the one with the same name and the usual order.
#include "ops/attributes.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/matmul.h"
#include "ops/calls/product.h"

namespace clew {

namespace {

struct BetaAttrs {
  Scalar beta = 1;
  static constexpr auto members() { return std::tuple(&BetaAttrs::beta); }
};

using Two = Tensor (*)(const Tensor&, const Tensor&, const Scalar&);
template <Two usual> void run_two(const Call& c, Tensors& outs) {
  outs.push_back(usual(c.in[0], c.in[1], c.as<AlphaAttrs>().alpha));
}
template <Two usual> consteval OpDef two(const char* signature) {
  return composite({.signature = signature,
                    .doc = "The usual form with alpha before other.",
                    .run = run_two<usual>,
                    .attrs = &attr_info<AlphaAttrs>,
                    .inplace = true});
}

using Three = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&);
template <Three usual> void run_beta(const Call& c, Tensors& outs) {
  outs.push_back(usual(c.in[0], c.in[1], c.in[2], c.as<BetaAttrs>().beta, 1));
}
template <Three usual> void run_both(const Call& c, Tensors& outs) {
  const auto& a = c.as<BetaAlpha>();
  outs.push_back(usual(c.in[0], c.in[1], c.in[2], a.beta, a.alpha));
}
// What the usual form takes as out=.
struct Out {
  OutDtype dtype = OutDtype::usual;
  OutMemory memory = OutMemory::usual;
};
template <Three usual> consteval OpDef with_beta(const char* signature, Offer offer, Out out) {
  return composite({.signature = signature,
                    .doc = "The usual form with beta in front.",
                    .run = run_beta<usual>,
                    .attrs = &attr_info<BetaAttrs>,
                    .inplace = offer == Offer::method,
                    .offer = offer,
                    .out_dtype = out.dtype,
                    .out_memory = out.memory});
}
template <Three usual> consteval OpDef with_both(const char* signature, Offer offer, Out out) {
  return composite({.signature = signature,
                    .doc = "The usual form with beta and alpha in front of what they multiply.",
                    .run = run_both<usual>,
                    .attrs = &attr_info<BetaAlpha>,
                    .inplace = offer == Offer::method,
                    .offer = offer,
                    .out_dtype = out.dtype,
                    .out_memory = out.memory});
}

constexpr OpDef older_add_op = two<add>("add(Tensor input, Scalar alpha, Operand other) -> Tensor");
constexpr OpDef older_sub_op = two<sub>("sub(Tensor input, Scalar alpha, Operand other) -> Tensor");

// Functions take beta first of all, methods after the tensor itself.
#define CLEW_OLDER(NAME, A, B, OUT)                                                              \
  with_beta<NAME>(#NAME "(Scalar beta, Tensor input, Tensor " A ", Tensor " B ") -> Tensor",     \
                  Offer::function, OUT),                                                         \
      with_both<NAME>(#NAME "(Scalar beta, Tensor input, Scalar alpha, Tensor " A ", Tensor " B  \
                            ") -> Tensor",                                                       \
                      Offer::function, OUT),                                                     \
      with_beta<NAME>(#NAME "(Tensor input, Scalar beta, Tensor " A ", Tensor " B ") -> Tensor", \
                      Offer::method, OUT),                                                       \
      with_both<NAME>(#NAME "(Tensor input, Scalar beta, Scalar alpha, Tensor " A ", Tensor " B  \
                            ") -> Tensor",                                                       \
                      Offer::method, OUT)
constexpr Out aligned = {.memory = OutMemory::aligned};
constexpr Out outer_product = {OutDtype::converted, OutMemory::aligned};
constexpr OpDef products[] = {
    CLEW_OLDER(addmm, "mat1", "mat2", aligned),       CLEW_OLDER(addmv, "mat", "vec", Out()),
    CLEW_OLDER(addr, "vec1", "vec2", outer_product),  CLEW_OLDER(addbmm, "batch1", "batch2", Out()),
    CLEW_OLDER(baddbmm, "batch1", "batch2", aligned),
};
#undef CLEW_OLDER

constexpr const OpDef* older_order_list[] = {
    &older_add_op, &older_sub_op, &products[0],  &products[1],  &products[2],  &products[3],
    &products[4],  &products[5],  &products[6],  &products[7],  &products[8],  &products[9],
    &products[10], &products[11], &products[12], &products[13], &products[14], &products[15],
    &products[16], &products[17], &products[18], &products[19],
};

}  // namespace

extern const OpList older_order_ops;
const OpList older_order_ops = op_list(older_order_list);

}  // namespace clew
