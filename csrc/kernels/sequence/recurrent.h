// LSTM, GRU and simple recurrent layers over whole sequences: the recurrence and its gradient.
// May include: base.
// Invariant: sequences are independent, so threads share the weights and nothing else.
#pragma once
#include "base/dtype.h"

namespace clew::kernels {

enum class RecurrentCell : uint8_t { lstm, gru, tanh, relu };

// One layer in one direction. The rows of all steps lie one after another, as a packed sequence has
// them: step t has rows[t] of them, and no step has more than the one before it.
//
// Of a single step the caller adds the state's products itself: packing would cost more than they
// do.
//
// Columns of `gates`, `hidden` each: LSTM input, forget, new, output; GRU reset, update, new, and
// what the state adds to new before the reset gate; simple layers have one, which is `out` itself.
struct Recurrence {
  DType dtype;  // float32 or float64
  RecurrentCell cell;
  bool reverse;
  int64_t steps, batch;
  int64_t hidden;
  int64_t state;  // width of h: hidden, unless it is projected
  const int64_t* rows;
  const int64_t* first;  // number of each step's first row
  // Dense. h0, c0, biases and w_hr may be null.
  const char *h0, *c0, *w_hh, *b_ih, *b_hh, *w_hr;
  char* out;
  char* gates;    // before: the input's product (of one step the state's too); after: the gates
  char* cells;    // LSTM: c of every row
  char* scratch;  // as many bytes as recurrent_scratch() says
  int pieces;     // what recurrent_pieces() says
};

// Columns of `gates`.
int64_t recurrent_width(RecurrentCell cell, int64_t hidden);
// How many pieces the batch is cut into, one for each thread.
int recurrent_pieces(const Recurrence& r);
int64_t recurrent_scratch(const Recurrence& r);

// Fills out, gates, cells and the last states h_n and c_n.
void recurrent_forward(const Recurrence& r, char* h_n, char* c_n);

struct RecurrentGrads {
  const char* g_out;  // may be null
  // On entry the gradients of the last states, on return those of the first states. For a single
  // step the caller still has to add the product of d_gates and the weights.
  char *dh, *dc;
  char* d_gates;  // like gates; its GRU columns are the gradients of the sums inside the gates
  char* d_bias;   // their sums over all rows
  // For projected layers: h before the projection, and the gradient after it, for every row.
  char *full, *d_out;
};
void recurrent_backward(const Recurrence& r, const RecurrentGrads& g);

// One step where both products are known; biases may be null. Everything is dense; x and h have
// hidden columns for each gate. `before` is the c (of a GRU the h) that the step starts from.
struct CellStep {
  DType dtype;
  int64_t rows, hidden;
  const char *x, *h, *b_ih, *b_hh, *before;
};
void lstm_step(const CellStep& s, char* h_n, char* c_n, char* gates);
// g_c may be null. d_bias: sums over the rows, 4 * hidden.
void lstm_step_backward(const CellStep& s, const char* gates, const char* c_n, const char* g_h,
                        const char* g_c, char* d_gates, char* d_c, char* d_bias);
// gates and d_bias have four columns a unit, as those of layers.
void gru_step(const CellStep& s, char* h_n, char* gates);
void gru_step_backward(const CellStep& s, const char* gates, const char* g_h, char* d_x, char* d_h,
                       char* d_before, char* d_bias);

}  // namespace clew::kernels
