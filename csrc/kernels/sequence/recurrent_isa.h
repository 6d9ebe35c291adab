// What recurrent.cpp hands to the loops that are compiled once per instruction set.
// May include: kernels/sequence/recurrent.h.
// Invariant: plain data only: no inline function of a header gets compiled for a foreign processor.
#pragma once
#include "kernels/core/instruction_set.h"
#include "kernels/sequence/recurrent.h"

namespace clew::kernels {

struct RecurrentLoops {
  void (*forward)(const Recurrence&, char* h_n, char* c_n);
  void (*backward)(const Recurrence&, const RecurrentGrads&);
  void (*lstm_step)(const CellStep&, char* h_n, char* c_n, char* gates);
  void (*lstm_step_backward)(const CellStep&, const char* gates, const char* c_n, const char* g_h,
                             const char* g_c, char* d_gates, char* d_c, char* d_bias);
  void (*gru_step)(const CellStep&, char* h_n, char* gates);
  void (*gru_step_backward)(const CellStep&, const char* gates, const char* g_h, char* d_x,
                            char* d_h, char* d_before, char* d_bias);
};

CLEW_IN_EACH_SET(extern const RecurrentLoops recurrent_loops;)

}  // namespace clew::kernels
