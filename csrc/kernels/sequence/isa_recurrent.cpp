// The loops of recurrent layers, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage.
#ifndef CLEW_ISA
#define CLEW_ISA baseline
#endif
#include "base/parallel.h"
#include "kernels/math/vmath.h"
#include "kernels/sequence/recurrent_isa.h"
#include "kernels/sequence/recurrent_product.h"

namespace clew::kernels::CLEW_ISA {
namespace {

using packed::Matrix;
using packed::multiply;

// --- The gates of one row ------------------------------------------------------------------------

// Each is a loop over columns that do not overlap, which `omp simd` tells the compiler.

// g: sums, becomes gates; b: biases.
template <class T, bool biased>
void lstm_row(int64_t n, T* __restrict g, const T* __restrict b, const T* __restrict c_before,
              T* __restrict c, T* __restrict h) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    T sums[4];
    for (int q = 0; q < 4; ++q) sums[q] = biased ? g[q * n + j] + b[q * n + j] : g[q * n + j];
    const T in = vm::sigmoid(sums[0]), forget = vm::sigmoid(sums[1]);
    const T fresh = vm::tanh(sums[2]), out = vm::sigmoid(sums[3]);
    const T now = forget * c_before[j] + in * fresh;
    g[j] = in, g[n + j] = forget, g[2 * n + j] = fresh, g[3 * n + j] = out;
    c[j] = now;
    h[j] = out * vm::tanh(now);
  }
}
// d: becomes the gradients of the sums; dc is that of c and becomes that of c_before.
template <class T>
void lstm_row_back(int64_t n, const T* __restrict g, const T* __restrict c,
                   const T* __restrict c_before, const T* __restrict gh, T* __restrict dc,
                   T* __restrict d, T* __restrict bias) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    const T in = g[j], forget = g[n + j], fresh = g[2 * n + j], out = g[3 * n + j];
    const T t = vm::tanh(c[j]);
    const T total = dc[j] + gh[j] * out * (T(1) - t * t);
    const T d_in = total * fresh * in * (T(1) - in);
    const T d_forget = total * c_before[j] * forget * (T(1) - forget);
    const T d_fresh = total * in * (T(1) - fresh * fresh);
    const T d_out = gh[j] * t * out * (T(1) - out);
    dc[j] = total * forget;
    d[j] = d_in, d[n + j] = d_forget, d[2 * n + j] = d_fresh, d[3 * n + j] = d_out;
    bias[j] += d_in, bias[n + j] += d_forget, bias[2 * n + j] += d_fresh, bias[3 * n + j] += d_out;
  }
}

template <class T, bool biased>
void gru_row(int64_t n, T* __restrict g, const T* __restrict b, const T* __restrict before,
             T* __restrict h) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    T sums[4];
    for (int q = 0; q < 4; ++q) sums[q] = biased ? g[q * n + j] + b[q * n + j] : g[q * n + j];
    const T reset = vm::sigmoid(sums[0]), update = vm::sigmoid(sums[1]);
    const T fresh = vm::tanh(sums[2] + reset * sums[3]);
    g[j] = reset, g[n + j] = update, g[2 * n + j] = fresh, g[3 * n + j] = sums[3];
    h[j] = fresh + update * (before[j] - fresh);
  }
}
// dh: the gradient of h, becomes the part of before's that does not go through a product. d: of the
// reset, update and new gates' sums; d_own: of what the state adds to new.
template <class T>
void gru_row_back(int64_t n, const T* __restrict g, const T* __restrict before, T* __restrict dh,
                  T* __restrict d, T* __restrict d_own, T* __restrict bias) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    const T reset = g[j], update = g[n + j], fresh = g[2 * n + j], state = g[3 * n + j];
    const T total = dh[j];
    const T d_fresh = total * (T(1) - update) * (T(1) - fresh * fresh);
    const T d_update = total * (before[j] - fresh) * update * (T(1) - update);
    const T d_reset = d_fresh * state * reset * (T(1) - reset);
    const T d_state = d_fresh * reset;
    dh[j] = total * update;
    d[j] = d_reset, d[n + j] = d_update, d[2 * n + j] = d_fresh, d_own[j] = d_state;
    bias[j] += d_reset, bias[n + j] += d_update, bias[2 * n + j] += d_fresh;
    bias[3 * n + j] += d_state;
  }
}

template <class T, bool relu> void simple_row(int64_t n, T* __restrict h, const T* __restrict b) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    const T x = h[j] + b[j];
    h[j] = relu ? (x < T(0) ? T(0) : x) : vm::tanh(x);
  }
}
template <class T, bool relu>
void simple_row_back(int64_t n, const T* __restrict h, const T* __restrict gh, T* __restrict d,
                     T* __restrict bias) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    const T x = relu ? (h[j] <= T(0) ? T(0) : gh[j]) : gh[j] * (T(1) - h[j] * h[j]);
    d[j] = x;
    bias[j] += x;
  }
}

// --- What forward and backward share -------------------------------------------------------------

// One thread's rows of one step: rows [low, split) continue the previous step, rows [split, high)
// start from the initial states. The sequences of rows [ending, high) end here.
struct Part {
  int64_t step, before, low, split, high, ending;
};
Part part_of(const Recurrence& r, int64_t s, int64_t begin, int64_t end) {
  auto at = [&](int64_t i) { return r.reverse ? r.steps - 1 - i : i; };
  Part p;
  p.step = at(s);
  p.before = s > 0 ? at(s - 1) : 0;
  p.low = begin;
  p.high = most(begin, least(end, r.rows[p.step]));
  p.split = most(begin, least(p.high, s > 0 ? r.rows[p.before] : 0));
  p.ending = most(begin, least(p.high, s + 1 < r.steps ? r.rows[at(s + 1)] : 0));
  return p;
}

template <class T> struct Run {
  const Recurrence& r;
  int64_t width;
  T* next;  // unused scratch
  const T* zeros;

  explicit Run(const Recurrence& what) : r(what) {
    const bool four = r.cell == RecurrentCell::lstm || r.cell == RecurrentCell::gru;
    width = four ? 4 * r.hidden : r.hidden;
    const auto address = reinterpret_cast<uintptr_t>(r.scratch);
    next = reinterpret_cast<T*>(r.scratch + (64 - address % 64) % 64);
    zeros = take(r.hidden + r.state, true);
  }
  T* take(int64_t count, bool clear = false) {
    T* p = next;
    next += (count + 15) / 16 * 16;
    if (clear) std::memset(static_cast<void*>(p), 0, sizeof(T) * static_cast<size_t>(count));
    return p;
  }
  Matrix<T> pack(const T* from, int64_t k, int64_t n, int64_t k_stride, int64_t n_stride) {
    return packed::pack<T>(take(Matrix<T>::elements(k, n)), from, k, n, k_stride, n_stride);
  }
  static const T* typed(const char* p) { return reinterpret_cast<const T*>(p); }
  static T* typed(char* p) { return reinterpret_cast<T*>(p); }

  T* row(char* base, int64_t step, int64_t i, int64_t columns) const {
    return typed(base) + (r.first[step] + i) * columns;
  }
  // The state that row i of a step starts from.
  const T* before(const Part& p, int64_t i, char* rows, const char* first, int64_t columns) const {
    if (i < p.split) return row(rows, p.before, i, columns);
    return first ? typed(first) + i * columns : zeros;
  }
  // Biases of the columns of `gates`.
  const T* biases() {
    const bool gru = r.cell == RecurrentCell::gru;
    T* b = take(width, true);
    const int64_t n = r.hidden, joint = gru ? 2 * n : width;
    if (const T* x = typed(r.b_ih))
      for (int64_t j = 0; j < (gru ? 3 * n : width); ++j) b[j] = x[j];
    if (const T* h = typed(r.b_hh)) {
      for (int64_t j = 0; j < joint; ++j) b[j] += h[j];
      for (int64_t j = joint; gru && j < 3 * n; ++j) b[n + j] = h[j];
    }
    return b;
  }
  // Calls f(piece, begin, end) for the pieces of the batch, one a thread.
  template <class F> void pieces(F f) const {
    parallel_for(r.pieces, 1, [&](int64_t from, int64_t to) {
      for (int64_t q = from; q < to; ++q)
        f(q, r.batch * q / r.pieces, r.batch * (q + 1) / r.pieces);
    });
  }
};

template <class T> void forward(const Recurrence& r, char* h_n, char* c_n) {
  Run<T> run(r);
  const int64_t n = r.hidden, state = r.state, width = run.width;
  const bool gru = r.cell == RecurrentCell::gru, lstm = r.cell == RecurrentCell::lstm;
  const T* w_hh = Run<T>::typed(r.w_hh);
  // A GRU adds its state's part of `new` apart from the input's.
  const bool many = r.steps > 1;
  const Matrix<T> joint = many ? run.pack(w_hh, state, gru ? 2 * n : width, 1, state) : Matrix<T>{};
  const Matrix<T> apart =
      many && gru ? run.pack(w_hh + 2 * n * state, state, n, 1, state) : Matrix<T>{};
  const Matrix<T> project = r.w_hr ? run.pack(Run<T>::typed(r.w_hr), n, state, 1, n) : Matrix<T>{};
  const T* bias = run.biases();
  T* full = r.w_hr ? run.take(r.batch * n) : nullptr;
  char* gates = gru || lstm ? r.gates : r.out;
  run.pieces([&](int64_t, int64_t begin, int64_t end) {
    for (int64_t s = 0; s < r.steps && !stopped(); ++s) {
      const Part p = part_of(r, s, begin, end);
      auto add_state = [&](int64_t from, int64_t to, const T* h) {
        if (from >= to || !many) return;
        T* g = run.row(gates, p.step, from, width);
        if (h) {
          multiply(to - from, h, state, joint, g, width, true);
          if (gru) multiply(to - from, h, state, apart, g + 3 * n, width, false);
        } else if (gru) {
          for (int64_t i = 0; i < to - from; ++i)
            std::memset(g + i * width + 3 * n, 0, sizeof(T) * static_cast<size_t>(n));
        }
      };
      add_state(p.low, p.split, run.row(r.out, p.before, p.low, state));
      add_state(p.split, p.high, r.h0 ? Run<T>::typed(r.h0) + p.split * state : nullptr);
      for (int64_t i = p.low; i < p.high; ++i) {
        T* g = run.row(gates, p.step, i, width);
        T* h = r.w_hr ? full + i * n : run.row(r.out, p.step, i, state);
        switch (r.cell) {
          case RecurrentCell::lstm:
            lstm_row<T, true>(n, g, bias, run.before(p, i, r.cells, r.c0, n),
                              run.row(r.cells, p.step, i, n), h);
            break;
          case RecurrentCell::gru:
            gru_row<T, true>(n, g, bias, run.before(p, i, r.out, r.h0, state), h);
            break;
          case RecurrentCell::tanh: simple_row<T, false>(n, h, bias); break;
          case RecurrentCell::relu: simple_row<T, true>(n, h, bias); break;
        }
      }
      if (r.w_hr && p.low < p.high) {
        multiply(p.high - p.low, full + p.low * n, n, project, run.row(r.out, p.step, p.low, state),
                 state, false);
      }
      auto keep = [&](char* to, char* rows, int64_t columns) {
        if (p.ending < p.high) {
          std::memcpy(Run<T>::typed(to) + p.ending * columns,
                      run.row(rows, p.step, p.ending, columns),
                      sizeof(T) * static_cast<size_t>((p.high - p.ending) * columns));
        }
      };
      keep(h_n, r.out, state);
      if (lstm) keep(c_n, r.cells, n);
    }
  });
}

template <class T> void backward(const Recurrence& r, const RecurrentGrads& g) {
  Run<T> run(r);
  const int64_t n = r.hidden, state = r.state, width = run.width;
  const bool gru = r.cell == RecurrentCell::gru;
  const T* w_hh = Run<T>::typed(r.w_hh);
  const bool many = r.steps > 1;
  const Matrix<T> joint = many ? run.pack(w_hh, gru ? 2 * n : width, state, state, 1) : Matrix<T>{};
  const Matrix<T> apart =
      many && gru ? run.pack(w_hh + 2 * n * state, n, state, state, 1) : Matrix<T>{};
  const Matrix<T> unproject =
      r.w_hr ? run.pack(Run<T>::typed(r.w_hr), state, n, n, 1) : Matrix<T>{};
  T* full = r.w_hr ? run.take(r.batch * n) : nullptr;
  // Sums are taken over the rows of a step, then over the steps of a piece, because nested sums of
  // many small numbers lose less precision.
  T* sums = run.take(2 * r.pieces * width, true);
  T* dh = Run<T>::typed(g.dh);
  T* dc = Run<T>::typed(g.dc);
  run.pieces([&](int64_t piece, int64_t begin, int64_t end) {
    T* total = sums + 2 * piece * width;
    T* bias = total + width;
    for (int64_t s = r.steps - 1; s >= 0 && !stopped(); --s) {
      const Part p = part_of(r, s, begin, end);
      const int64_t rows = p.high - p.low;
      if (rows == 0) continue;
      // The gradient of this step's h.
      T* own = dh + p.low * state;
      if (g.g_out) {
        const T* from = Run<T>::typed(g.g_out) + (r.first[p.step] + p.low) * state;
        for (int64_t i = 0; i < rows * state; ++i) own[i] += from[i];
      }
      if (r.w_hr) {
        std::memcpy(run.row(g.d_out, p.step, p.low, state), own,
                    sizeof(T) * static_cast<size_t>(rows * state));
        multiply(rows, own, state, unproject, full + p.low * n, n, false);
      }
      for (int64_t i = p.low; i < p.high; ++i) {
        T* d = run.row(g.d_gates, p.step, i, width);
        T* gh = r.w_hr ? full + i * n : dh + i * state;
        switch (r.cell) {
          case RecurrentCell::lstm: {
            const T* gate = run.row(r.gates, p.step, i, width);
            const T* c = run.row(r.cells, p.step, i, n);
            lstm_row_back<T>(n, gate, c, run.before(p, i, r.cells, r.c0, n), gh, dc + i * n, d,
                             bias);
            if (r.w_hr) {
              T* h = run.row(g.full, p.step, i, n);
              for (int64_t j = 0; j < n; ++j) h[j] = gate[3 * n + j] * vm::tanh(c[j]);
            }
            break;
          }
          case RecurrentCell::gru:
            gru_row_back<T>(n, run.row(r.gates, p.step, i, width),
                            run.before(p, i, r.out, r.h0, state), gh, d, d + 3 * n, bias);
            break;
          case RecurrentCell::tanh:
            simple_row_back<T, false>(n, run.row(r.out, p.step, i, n), gh, d, bias);
            break;
          case RecurrentCell::relu:
            simple_row_back<T, true>(n, run.row(r.out, p.step, i, n), gh, d, bias);
            break;
        }
      }
      const T* d = run.row(g.d_gates, p.step, p.low, width);
      if (many) multiply(rows, d, width, joint, own, state, gru);
      if (many && gru) multiply(rows, d + 3 * n, width, apart, own, state, true);
      for (int64_t j = 0; j < width; ++j) {
        total[j] += bias[j];
        bias[j] = 0;
      }
    }
  });
  T* d_bias = Run<T>::typed(g.d_bias);
  for (int64_t j = 0; j < width; ++j) {
    T sum = sums[j];
    for (int q = 1; q < r.pieces; ++q) sum += sums[2 * q * width + j];
    d_bias[j] = sum;
  }
}

void forward_any(const Recurrence& r, char* h_n, char* c_n) {
  if (r.dtype == DType::Float32)
    forward<float>(r, h_n, c_n);
  else
    forward<double>(r, h_n, c_n);
}
void backward_any(const Recurrence& r, const RecurrentGrads& g) {
  if (r.dtype == DType::Float32)
    backward<float>(r, g);
  else
    backward<double>(r, g);
}

// --- One step ------------------------------------------------------------------------------------

template <class T> const T* typed(const char* p) { return reinterpret_cast<const T*>(p); }
template <class T> T* typed(char* p) { return reinterpret_cast<T*>(p); }

template <class T> void add_to(int64_t n, T* __restrict to, const T* __restrict from) {
  for (int64_t j = 0; from && j < n; ++j) to[j] += from[j];
}
template <class T>
void sum_of(int64_t n, T* __restrict to, const T* __restrict a, const T* __restrict b) {
  for (int64_t j = 0; j < n; ++j) to[j] = a[j] + b[j];
}

template <class T> void lstm_step(const CellStep& s, T* h, T* c, T* gates) {
  const int64_t n = s.hidden, width = 4 * n;
  for (int64_t i = 0; i < s.rows; ++i) {
    T* g = gates + i * width;
    sum_of(width, g, typed<T>(s.x) + i * width, typed<T>(s.h) + i * width);
    add_to(width, g, typed<T>(s.b_ih));
    add_to(width, g, typed<T>(s.b_hh));
    lstm_row<T, false>(n, g, nullptr, typed<T>(s.before) + i * n, c + i * n, h + i * n);
  }
}
template <class T>
void lstm_step_back(const CellStep& s, const T* gates, const T* c, const T* g_h, const T* g_c, T* d,
                    T* d_c, T* bias) {
  const int64_t n = s.hidden, width = 4 * n;
  std::memset(static_cast<void*>(bias), 0, sizeof(T) * static_cast<size_t>(width));
  for (int64_t i = 0; i < s.rows; ++i) {
    T* own = d_c + i * n;
    for (int64_t j = 0; j < n; ++j) own[j] = g_c ? g_c[i * n + j] : T(0);
    lstm_row_back<T>(n, gates + i * width, c + i * n, typed<T>(s.before) + i * n, g_h + i * n, own,
                     d + i * width, bias);
  }
}

template <class T> void gru_step(const CellStep& s, T* h, T* gates) {
  const int64_t n = s.hidden, width = 3 * n;
  const T *b_ih = typed<T>(s.b_ih), *b_hh = typed<T>(s.b_hh);
  const auto bytes = sizeof(T) * static_cast<size_t>(n);
  for (int64_t i = 0; i < s.rows; ++i) {
    const T *x = typed<T>(s.x) + i * width, *y = typed<T>(s.h) + i * width;
    T* g = gates + i * 4 * n;
    sum_of(2 * n, g, x, y);
    std::memcpy(g + 2 * n, x + 2 * n, bytes);
    std::memcpy(g + 3 * n, y + 2 * n, bytes);
    add_to(3 * n, g, b_ih);
    add_to(2 * n, g, b_hh);
    add_to(n, g + 3 * n, b_hh ? b_hh + 2 * n : nullptr);
    gru_row<T, false>(n, g, nullptr, typed<T>(s.before) + i * n, h + i * n);
  }
}
template <class T>
void gru_step_back(const CellStep& s, const T* gates, const T* g_h, T* d_x, T* d_h, T* d_before,
                   T* bias) {
  const int64_t n = s.hidden, width = 3 * n;
  const auto bytes = sizeof(T) * static_cast<size_t>(n);
  std::memset(static_cast<void*>(bias), 0, 4 * bytes);
  for (int64_t i = 0; i < s.rows; ++i) {
    T *dx = d_x + i * width, *dh = d_h + i * width;
    std::memcpy(d_before + i * n, g_h + i * n, bytes);
    gru_row_back<T>(n, gates + i * 4 * n, typed<T>(s.before) + i * n, d_before + i * n, dx,
                    dh + 2 * n, bias);
    std::memcpy(dh, dx, 2 * bytes);
  }
}

// Calls f with a null pointer of the dtype's type.
template <class F> void with_type(DType dtype, F f) {
  if (dtype == DType::Float32)
    f(static_cast<float*>(nullptr));
  else
    f(static_cast<double*>(nullptr));
}
void lstm_step_any(const CellStep& s, char* h_n, char* c_n, char* gates) {
  with_type(s.dtype,
            [&]<class T>(T*) { lstm_step<T>(s, typed<T>(h_n), typed<T>(c_n), typed<T>(gates)); });
}
void lstm_step_back_any(const CellStep& s, const char* gates, const char* c_n, const char* g_h,
                        const char* g_c, char* d_gates, char* d_c, char* d_bias) {
  with_type(s.dtype, [&]<class T>(T*) {
    lstm_step_back<T>(s, typed<T>(gates), typed<T>(c_n), typed<T>(g_h), typed<T>(g_c),
                      typed<T>(d_gates), typed<T>(d_c), typed<T>(d_bias));
  });
}
void gru_step_any(const CellStep& s, char* h_n, char* gates) {
  with_type(s.dtype, [&]<class T>(T*) { gru_step<T>(s, typed<T>(h_n), typed<T>(gates)); });
}
void gru_step_back_any(const CellStep& s, const char* gates, const char* g_h, char* d_x, char* d_h,
                       char* d_before, char* d_bias) {
  with_type(s.dtype, [&]<class T>(T*) {
    gru_step_back<T>(s, typed<T>(gates), typed<T>(g_h), typed<T>(d_x), typed<T>(d_h),
                     typed<T>(d_before), typed<T>(d_bias));
  });
}

}  // namespace

extern const RecurrentLoops recurrent_loops;
const RecurrentLoops recurrent_loops = {forward_any,        backward_any, lstm_step_any,
                                        lstm_step_back_any, gru_step_any, gru_step_back_any};

}  // namespace clew::kernels::CLEW_ISA
