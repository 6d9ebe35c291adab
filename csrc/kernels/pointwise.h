// The elementwise loop tables, and what fills them.
// May include: base, kernels.
// Invariant: tables are written by init_pointwise() at import and only read afterwards.
#pragma once
#include "kernels/ndview.h"

namespace clew::kernels {

// Fills every table: plain versions first, then those of the best instruction set that the processor has.
void init_pointwise();

// The loop that converts one operand; equal dtypes move bytes.
Loop cast_loop_of(DType from, DType to);

// The loop of where(bool condition, a, b) for elements of `item` bytes.
Loop where_loop_of(size_t item);

// Named after the ops; the trailing comment tells the scalar parameters a loop reads.
namespace table {
extern LoopTable add, sub;  // alpha
extern LoopTable mul, div, neg, pow, square;
extern LoopTable exp, log, sqrt, tanh, sigmoid, relu, conj;
extern LoopTable eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_not;
}  // namespace table

}  // namespace clew::kernels
