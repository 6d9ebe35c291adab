// The choice of loops for recurrent layers, and how their batches are cut for threads.
// May include: base, kernels.
// Invariant: the cut depends on sizes and thread count only, so equal settings give equal bits.
#include "base/parallel.h"
#include "kernels/sequence/recurrent_isa.h"

namespace clew::kernels {

namespace {

const RecurrentLoops& loops = CLEW_CHOSEN(recurrent_loops);

// Fewer sequences than this do not keep the vector units of a thread busy.
constexpr int64_t piece_rows = 4;
constexpr int64_t parallel_work = 1 << 21;  // multiply-adds

// Multiply-adds of a whole layer.
int64_t products_of(const Recurrence& r) {
  const int64_t total = r.steps ? r.first[r.steps - 1] + r.rows[r.steps - 1] : 0;
  return total * recurrent_width(r.cell, r.hidden) * r.state;
}

int64_t padded(int64_t n) { return (n + 63) / 64 * 64; }

}  // namespace

int64_t recurrent_width(RecurrentCell cell, int64_t hidden) {
  return cell == RecurrentCell::lstm || cell == RecurrentCell::gru ? 4 * hidden : hidden;
}

int recurrent_pieces(const Recurrence& r) {
  if (products_of(r) < parallel_work) return 1;
  const int64_t most = std::max<int64_t>(1, r.batch / piece_rows);
  return static_cast<int>(std::min<int64_t>(num_threads(), most));
}

int64_t recurrent_scratch(const Recurrence& r) {
  // Packed weights, whose columns are padded to panels; biases; a row of zeros; of projected layers
  // each sequence's full state.
  const int64_t width = recurrent_width(r.cell, r.hidden);
  int64_t count = padded(width) + 2 * r.pieces * padded(width) + padded(r.hidden + r.state) + 1024;
  if (r.steps > 1) count += padded(width) * padded(r.state) + 64 * (width + r.state);
  if (r.w_hr) count += padded(r.hidden) * padded(r.state) + r.batch * r.hidden;
  return count * static_cast<int64_t>(itemsize(r.dtype));
}

void recurrent_forward(const Recurrence& r, char* h_n, char* c_n) {
  const LongWork work(products_of(r) / 16);
  loops.forward(r, h_n, c_n);
}
void recurrent_backward(const Recurrence& r, const RecurrentGrads& g) {
  const LongWork work(products_of(r) / 16);
  loops.backward(r, g);
}
void lstm_step(const CellStep& s, char* h_n, char* c_n, char* gates) {
  loops.lstm_step(s, h_n, c_n, gates);
}
void lstm_step_backward(const CellStep& s, const char* gates, const char* c_n, const char* g_h,
                        const char* g_c, char* d_gates, char* d_c, char* d_bias) {
  loops.lstm_step_backward(s, gates, c_n, g_h, g_c, d_gates, d_c, d_bias);
}
void gru_step(const CellStep& s, char* h_n, char* gates) { loops.gru_step(s, h_n, gates); }
void gru_step_backward(const CellStep& s, const char* gates, const char* g_h, char* d_x, char* d_h,
                       char* d_before, char* d_bias) {
  loops.gru_step_backward(s, gates, g_h, d_x, d_h, d_before, d_bias);
}

}  // namespace clew::kernels
