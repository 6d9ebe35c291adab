// What gemm.cpp hands to the blocked kernel that is compiled once per instruction set.
// May include: base/dtype.h.
// Invariant: plain data only: no inline function of a header gets compiled for a foreign processor.
#pragma once
#include "base/dtype.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

enum class Beta : uint8_t { zero, one, other };

struct GemmTask {
  DType dtype;
  Beta beta_kind;
  bool alpha_one;
  int64_t m, n, k;
  const char* a;
  int64_t a_rs, a_cs;
  const char* b;
  int64_t b_rs, b_cs;
  char* c;
  int64_t c_rs, c_cs;
  const char* bias;
  // alpha and beta in the compute type (float for 16-bit floats, unsigned for integers); complex
  // ones as two parts.
  alignas(16) char alpha[16];
  alignas(16) char beta[16];
};

// C = A B + bias of float32 or float64, of at most so many rows, columns and steps; C's rows are
// contiguous, and B's rows or columns.
constexpr int64_t small_rows = 32;
constexpr int64_t small_columns = 64;
constexpr int64_t small_depth = 32;
// Or of one row, with at most so many multiply-adds; A is contiguous then where B's columns are.
constexpr int64_t row_work = 1 << 18;
struct SmallGemm {
  DType dtype;
  int64_t m, n, k;
  const char* a;
  int64_t a_rs, a_cs;
  const char* b;
  int64_t b_rs, b_cs;
  char* c;
  int64_t c_rs;
  const char* bias;
};

// `count` products of float32 or float64 with one column each, of at most so many multiply-adds;
// steps go from one product to the next.
constexpr int64_t thin_work = 4096;
struct ThinBatch {
  DType dtype;
  int64_t count, m, k;
  const char* a;
  int64_t a_step, a_rs, a_cs;
  const char* b;
  int64_t b_step, b_rs;
  char* c;
  int64_t c_step, c_rs;
};

CLEW_IN_EACH_SET(void gemm_blocked(const GemmTask& t); void gemm_small(const SmallGemm& g);
                 void gemm_row(const SmallGemm& g); void gemm_thin(const ThinBatch& g);)

}  // namespace clew::kernels
