// The choice of instruction set.
// May include: base, kernels.
// Invariant: each later step of init_pointwise overrides the one before.
#include "kernels/core/instruction_set.h"
#include "kernels/core/loop_tables.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(void init_pointwise();)
void init_pointwise_special();
void init_pointwise_integral();
void init_pointwise_complex();
void init_pointwise_unsigned();

void init_pointwise() {
  init_pointwise_special();
  init_pointwise_integral();
  init_pointwise_complex();
#ifndef CLEW_ONE_SET
  baseline::init_pointwise();  // rare types have these loops only
#endif
  CLEW_CHOSEN(init_pointwise)();
  init_pointwise_unsigned();
}

}  // namespace clew::kernels
