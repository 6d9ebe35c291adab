// The orthogonal polynomials of clew.special; src/clew/special has the public functions.
// May include: ops, graph, tensor, kernels.
// Invariant: between pieces of well under a second Ctrl-C is heard.
#include "kernels/elementwise/polynomials.h"

#include <algorithm>
#include <atomic>

#include "base/long_work.h"
#include "base/parallel.h"
#include "graph/node.h"
#include "ops/calls/shape.h"

namespace clew {

namespace {

struct PolynomialAttrs {
  int64_t family = 0, derivative = 0;
  static constexpr auto members() {
    return std::tuple(&PolynomialAttrs::family, &PolynomialAttrs::derivative);
  }
};

bool is_one_number(const Tensor& n) {
  for (int d = 0; d < n.ndim(); ++d) {
    if (n.size(d) != 1 && n.stride(d) != 0) return false;
  }
  return true;
}

template <class T> void compute(const Call& c, const Tensor& out) {
  const auto& attrs = c.as<PolynomialAttrs>();
  const Tensor x = contiguous(c.in[0]);
  const bool same = is_one_number(c.in[1]);
  const Tensor n = same ? c.in[1] : contiguous(c.in[1]);
  const int64_t count = x.numel(), degrees = same ? std::min<int64_t>(count, 1) : count;
  double top = 1;
  for (int64_t i = 0; i < degrees; ++i) {
    const auto degree = static_cast<double>(n.data<const T>()[i]);
    if (degree > top) top = std::min(degree, kernels::greatest_degree);
  }
  // Chebyshev polynomials of great degree are not computed step by step.
  if (attrs.family < 8 && attrs.derivative == 0) top = std::min(top, 64.0);
  const double cost = (top + 4) * static_cast<double>(attrs.derivative + 1) / 4;
  const auto piece = static_cast<int64_t>(std::clamp(2e8 / cost, 64.0, 1e12)) / 64 * 64;
  const auto& loops = kernels::polynomial_loops<T>();
  std::atomic<bool> done = true;
  for (int64_t begin = 0; begin < count && done; begin += piece) {
    const int64_t size = std::min(piece, count - begin);
    {
      const LongWork work(static_cast<int64_t>(cost * static_cast<double>(size)));
      const auto grain = static_cast<int64_t>(std::max(16.0, 32768 / cost)) / 16 * 16;
      parallel_for((size + 15) / 16, grain / 16, [&](int64_t from, int64_t to) {
        const int64_t first = begin + from * 16, end = std::min(begin + to * 16, begin + size);
        if (!loops.values(static_cast<kernels::Polynomial>(attrs.family),
                          static_cast<int>(attrs.derivative), x.data<const T>() + first,
                          n.data<const T>() + (same ? 0 : first), same, end - first,
                          out.data<T>() + first))
          done = false;
      });
    }
    if (begin + piece < count && PyErr_CheckSignals() < 0) throw PythonError();
  }
  require(done, "special: polynomials that are computed step by step have degrees up to ",
          static_cast<int64_t>(kernels::greatest_degree), "; got a greater one");
}

constexpr OpDef polynomial_op = general({
    .signature = "_polynomial(Tensor x, Tensor n, int family, int derivative) -> Tensor",
    .doc = "The derivative-th derivative of an orthogonal polynomial of degree n.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &x = c.in[0], &n = c.in[1];
          const auto& attrs = c.as<PolynomialAttrs>();
          require((x.dtype() == DType::Float32 || x.dtype() == DType::Float64) &&
                      n.dtype() == x.dtype() && n.sizes() == x.sizes(),
                  c.name(), ": expected two float32 or float64 tensors of one shape; got ", x,
                  " and ", n);
          require(attrs.family >= 0 &&
                      attrs.family < static_cast<int64_t>(kernels::Polynomial::count) &&
                      attrs.derivative >= 0 && attrs.derivative <= kernels::greatest_derivative,
                  c.name(), ": derivatives up to ", kernels::greatest_derivative,
                  " are computed; got ", attrs.derivative);
          outs.add(x.dtype(), x.sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          if (outs[0].dtype() == DType::Float32)
            compute<float>(c, outs[0]);
          else
            compute<double>(c, outs[0]);
        },
    .no_vjp = no_rule("the public function has the rule"),
    .attrs = &attr_info<PolynomialAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* polynomials_list[] = {&polynomial_op};

}  // namespace

extern const OpList polynomials_ops;
const OpList polynomials_ops = op_list(polynomials_list);

}  // namespace clew
