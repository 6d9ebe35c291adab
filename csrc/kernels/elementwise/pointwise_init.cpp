// The choice of instruction set, and what loops of all sets refuse.
// May include: base, kernels.
// Invariant: each later step of init_pointwise overrides the one before.
#include "kernels/core/instruction_set.h"
#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/pointwise_loops.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(void init_pointwise();)
void init_pointwise_special();
void init_pointwise_integral();
void init_pointwise_complex();
void init_pointwise_unsigned();

void refuse_complex(DType elements) {
  fail("a complex argument does not fit ", elements, " tensors");
}
void refuse_fraction(double alpha) {
  fail("for integral input tensors, argument alpha must not be a floating point number; got ",
       alpha, ". Give an int, or convert a tensor first, e.g. with .float()");
}
void refuse_bool(DType elements) {
  fail("argument alpha must be a number for ", elements,
       " tensors; a bool is taken for bool results only");
}

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
