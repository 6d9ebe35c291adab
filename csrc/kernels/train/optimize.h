// Optimizer updates of one parameter's elements, in one pass over memory.
// May include: base.
// Invariant: element i of every array belongs to element i of the parameter; nothing else is read.
#pragma once
#include <array>
#include <cstdint>

#include "base/dtype.h"

namespace clew::kernels {

enum class Optimizer : uint8_t { sgd, adam, rmsprop, adagrad, nadam, radam, adamax, adadelta };
constexpr int optimizer_count = 8;

// What one parameter's update depends on. The arrays are the parameter, its gradient, and the
// states in the order of the comment. `weight_decay` is added to the gradient; `shrink` is what the
// parameter is multiplied with (1 without decoupled decay).
struct SgdRule {  // running direction, or null without momentum
  static constexpr Optimizer kind = Optimizer::sgd;
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
};
// running mean, running square, greatest square so far or null; `step_size` is
// lr / (1 - beta1^t), `root` is sqrt(1 - beta2^t)
struct AdamRule {
  static constexpr Optimizer kind = Optimizer::adam;
  double beta1, beta2, eps, weight_decay, shrink, step_size, root;
  bool maximize;
};
struct RmspropRule {  // running square, running direction or null, running mean or null
  static constexpr Optimizer kind = Optimizer::rmsprop;
  double lr, alpha, eps, weight_decay, momentum;
  bool maximize;
};
struct AdagradRule {  // sum of squares
  static constexpr Optimizer kind = Optimizer::adagrad;
  double lr, eps, weight_decay;
  bool maximize;
};
// running mean, running square; the two step sizes belong to the gradient and to the mean, `root2`
// is 1 - beta2^t
struct NadamRule {
  static constexpr Optimizer kind = Optimizer::nadam;
  double beta1, beta2, eps, weight_decay, shrink, grad_size, mean_size, root2;
  bool maximize;
};
// running mean, running square; `adapted` says whether the square counts, `step_size` is
// lr / (1 - beta1^t), `root` is the rectification times sqrt(1 - beta2^t)
struct RadamRule {
  static constexpr Optimizer kind = Optimizer::radam;
  double beta1, beta2, eps, weight_decay, shrink, step_size, root;
  bool adapted, maximize;
};
struct AdamaxRule {  // running mean, running maximum; `step_size` is lr / (1 - beta1^t)
  static constexpr Optimizer kind = Optimizer::adamax;
  double beta1, beta2, eps, weight_decay, step_size;
  bool maximize;
};
struct AdadeltaRule {  // running square of gradients, running square of changes
  static constexpr Optimizer kind = Optimizer::adadelta;
  double lr, rho, eps, weight_decay;
  bool maximize;
};

constexpr int most_optimizer_arrays = 5;

// `rule` is the struct of that kind.
using Update = void (*)(const void* rule, int64_t n, void* const* arrays);
// The fastest this processor runs, for a floating dtype.
Update optimizer_update(Optimizer kind, DType d);

// The updates of one instruction set, in the order of Optimizer: float32, float64, bfloat16,
// float16.
using Updates = std::array<Update, 4>;
using UpdateTable = std::array<Updates, optimizer_count>;

}  // namespace clew::kernels
