// How fresh tensors are filled, as a call that a memory budget can make again.
// May include: graph, kernels, ops, tensor.
// Invariant: filling again gives the same bits, from the random source's state before the first
// time.
#include "kernels/random/random.h"
#include "ops/calls/random.h"
#include "ops/ops.h"

namespace clew {

namespace {

struct FreshAttrs {
  Dims sizes;
  std::optional<DType> dtype;
  int64_t fill = 0;
  Scalar value = 0;
  Generator* generator = nullptr;
  static constexpr auto members() {
    return std::tuple(&FreshAttrs::sizes, &FreshAttrs::dtype, &FreshAttrs::fill, &FreshAttrs::value,
                      &FreshAttrs::generator);
  }
};
void fresh_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<FreshAttrs>();
  out.add(*a.dtype, a.sizes);
}
void fresh_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<FreshAttrs>();
  Generator& g = a.generator ? *a.generator : default_generator();
  switch (static_cast<Fill>(a.fill)) {
    case Fill::value: return fill_(outs[0], a.value);
    case Fill::normal: return kernels::random_normal(outs[0].nd(), 0, 1, g);
    case Fill::uniform: return kernels::random_uniform(outs[0].nd(), 0, 1, g);
  }
}
constexpr OpDef fresh_op = general({
    .signature = "_fresh(int[] size, dtype? dtype, int fill, Scalar value, *, Generator? "
                 "generator=None) -> Tensor",
    .doc = "A tensor of one value, or of random numbers.",
    .shape = fresh_shape,
    .cpu = fresh_cpu,
    .no_vjp = no_rule("it has no inputs"),
    .attrs = &attr_info<FreshAttrs>,
});

// Below, the state of the random source would take more than the numbers.
constexpr size_t least_drawn = 1 << 14;

}  // namespace

void NotedFresh::begin(const Tensor& fresh, Fill fill, const Scalar& value, Generator* generator) {
  if (fresh.is_meta() || fresh.numel() == 0 || !fresh.is_contiguous()) return;
  if (fill != Fill::value && fresh->storage->nbytes < least_drawn) return;
  const FreshAttrs attrs{fresh.sizes(), fresh.dtype(), static_cast<int64_t>(fill), value,
                         generator};
  call_.emplace(fresh_op, std::span<const Tensor>(), &attrs);
}

}  // namespace clew
