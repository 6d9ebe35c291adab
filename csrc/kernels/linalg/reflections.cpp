// Householder reflections of large real matrices: products of matrices do most of the work.
// May include: base, kernels.
// Invariant: one matrix at a time; what a thread keeps from call to call is its own.
//
// The product of reflections is I - Y T Y^T with their vectors as the columns of Y and a triangular
// T (Schreiber and Van Loan, A storage-efficient WY representation for products of Householder
// transformations, 1989). The columns of a block are factored in halves (Elmroth and Gustavson,
// Applying recursion to serial and parallel QR factorization, 2000).
#include "kernels/linalg/reflections.h"

#include <algorithm>

#include "base/scratch.h"
#include "kernels/core/instruction_set.h"
#include "kernels/matmul/gemm.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const ReflectionLoops<float> reflections_float;
                 extern const ReflectionLoops<double> reflections_double;)

namespace {

LocalScratch blocks_room;

template <class T> const ReflectionLoops<T>& reflection_loops() {
  if constexpr (sizeof(T) == 4)
    return CLEW_CHOSEN(reflections_float);
  else
    return CLEW_CHOSEN(reflections_double);
}

// Columns of a block, and of a part that is factored column by column. Fewer columns than `narrow`
// are reflected by one vector after another: T costs more than it saves.
constexpr int64_t block = 32, part = 8, narrow = 8;
int64_t line_of(int64_t n) { return (n + line_multiple - 1) / line_multiple * line_multiple; }

// Element (i, j) of a matrix is at[i * row + j * column].
template <class T> struct Seen {
  T* at;
  int64_t row, column;
  Seen from(int64_t i, int64_t j) const { return {at + i * row + j * column, row, column}; }
  Seen turned() const { return {at, column, row}; }
  T& operator()(int64_t i, int64_t j) const { return at[i * row + j * column]; }
};
// c (m, n) becomes a b (factor 1, keep 0), or c - a b.
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, Seen<T> a, Seen<T> b, Seen<T> c,
              bool subtract = false) {
  if (c.column != 1 && c.row == 1) {
    std::swap(m, n);
    const Seen<T> left = b.turned();
    b = a.turned(), a = left, c = c.turned();
  }
  Gemm g;
  g.dtype = sizeof(T) == 4 ? DType::Float32 : DType::Float64;
  g.m = m, g.n = n, g.k = k;
  g.a = reinterpret_cast<const char*>(a.at), g.a_rs = a.row, g.a_cs = a.column;
  g.b = reinterpret_cast<const char*>(b.at), g.b_rs = b.row, g.b_cs = b.column;
  g.c = reinterpret_cast<char*>(c.at), g.c_rs = c.row, g.c_cs = c.column;
  if (subtract) g.alpha = Scalar(-1), g.beta = Scalar(1);
  gemm(g);
}

// What a block needs: its vectors as lines, T, and products.
template <class T> struct Room {
  int64_t step;
  Seen<T> y, t, small, wide, wider;

  Room(int64_t rows, int64_t width) : step(line_of(rows) + line_multiple) {
    const int64_t square = block * block, across = block * std::max(width, block);
    T* at = blocks_room.of<T>(block * step + 2 * square + 2 * across);
    y = {at, 1, step};
    t = {at + block * step, 1, block};
    small = {t.at + square, 1, block};
    wide = {small.at + square, block, 1};
    wider = {wide.at + across, block, 1};
  }
  // The vectors of b reflections from a; rows above them are left out.
  void load_vectors(int64_t rows, int64_t b, Seen<const T> a) const {
    for (int64_t j = 0; j < b; ++j) {
      T* line = y.at + j * step;
      std::fill_n(line, j, T(0));
      line[j] = T(1);
      for (int64_t i = j + 1; i < rows; ++i) line[i] = a(i, j);
      std::fill(line + rows, line + step, T(0));
    }
  }
};

// T of the columns from `from` to `to` of the block, whose vectors have `rows` rows. `products`
// holds Y^T Y of them.
template <class T>
void triangle_of(const Room<T>& room, int64_t from, int64_t to, const T* tau, Seen<T> products) {
  for (int64_t j = from; j < to; ++j) {
    const T factor = -tau[j];
    for (int64_t i = from; i < j; ++i) room.t(i, j) = T(0);
    for (int64_t k = from; k < j; ++k) {
      const T x = factor * products(k - from, j - from);
      for (int64_t i = from; i <= k; ++i) room.t(i, j) += room.t(i, k) * x;
    }
    room.t(j, j) = tau[j];
    for (int64_t i = j + 1; i < to; ++i) room.t(i, j) = T(0);
  }
}
template <class T> void whole_triangle(const Room<T>& room, int64_t rows, int64_t b, const T* tau) {
  multiply(b, b, rows, room.y.turned(), room.y, room.small);
  triangle_of(room, 0, b, tau, room.small);
}

// c (rows, width) becomes Q c, or Q^T c, of the block's columns from `from` to `to`; its rows are
// those of the vectors from `from` on.
template <class T>
void apply_block(const Room<T>& room, bool adjoint, int64_t rows, int64_t from, int64_t to,
                 int64_t width, Seen<T> c) {
  const int64_t b = to - from;
  const Seen<T> y = room.y.from(from, from), t = room.t.from(from, from);
  // The products lie in rows of width b: (c^T Y) T, or with T^T.
  multiply(width, b, rows, c.turned(), y, room.wide);
  multiply(width, b, b, room.wide, adjoint ? t : t.turned(), room.wider);
  multiply(rows, width, b, y, room.wider.turned(), c, true);
}

// Factors the columns from `from` to `to` of a block that begins at a (rows, to - from).
template <class T>
void factor_part(const Room<T>& room, int64_t rows, int64_t from, int64_t to, Seen<T> a, T* tau) {
  const int64_t b = to - from;
  if (b <= part) {
    T *lines = &room.y(from, from), r[part * part];
    const int64_t w = line_of(rows);
    for (int64_t j = 0; j < b; ++j) {
      std::copy_n(&a(0, j), rows, lines + j * room.step);
      std::fill_n(lines + j * room.step + rows, w - rows, T(0));
    }
    reflection_loops<T>().panel(b, w, lines, room.step, r, tau + from);
    for (int64_t j = 0; j < b; ++j) {
      std::copy_n(lines + j * room.step, rows, &a(0, j));
      std::copy_n(r + j * b, j + 1, &a(0, j));
    }
    const Seen<T> y = room.y.from(from, from);
    multiply(b, b, rows, y.turned(), y, room.small);
    triangle_of(room, from, to, tau, room.small);
    return;
  }
  const int64_t half = (b / 2 + part - 1) / part * part, middle = from + half, rest = b - half;
  factor_part(room, rows, from, middle, a, tau);
  apply_block(room, true, rows, from, middle, rest, a.from(0, half));
  factor_part(room, rows - half, middle, to, a.from(half, half), tau);
  // T of both: the corner is -T1 (Y1^T Y2) T2.
  multiply(half, rest, rows - half, room.y.from(middle, from).turned(), room.y.from(middle, middle),
           room.small);
  multiply(half, rest, half, room.t.from(from, from), room.small, room.wide);
  for (int64_t j = middle; j < to; ++j) std::fill_n(&room.t(from, j), half, T(0));
  multiply(half, rest, rest, room.wide, room.t.from(middle, middle), room.t.from(from, middle),
           true);
  for (int64_t j = from; j < middle; ++j) std::fill_n(&room.t(middle, j), rest, T(0));
}

}  // namespace

template <class T> void factor_in_blocks(int64_t m, int64_t n, T* a, T* tau) {
  const int64_t count = std::min(m, n);
  const Room<T> room(m, n);
  for (int64_t k = 0; k < count; k += block) {
    const int64_t b = std::min(block, count - k), rows = m - k;
    const Seen<T> at = {a + k + k * m, 1, m};
    // Above the parts' vectors stand zeros.
    for (int64_t j = 0; j < b; ++j) std::fill_n(room.y.at + j * room.step, j / part * part, T(0));
    factor_part(room, rows, 0, b, at, tau + k);
    if (k + b < n) apply_block(room, true, rows, 0, b, n - k - b, at.from(0, b));
  }
}

template <class T> void product_in_blocks(int64_t m, int64_t n, int64_t k, T* a, const T* tau) {
  const Room<T> room(m, n);
  // Columns that have no reflection are those of the identity.
  for (int64_t j = k; j < n; ++j) {
    std::fill_n(a + j * m, m, T(0));
    a[j * m + j] = T(1);
  }
  for (int64_t s = (k - 1) / block * block; k > 0 && s >= 0; s -= block) {
    const int64_t b = std::min(block, k - s), rows = m - s;
    const Seen<T> at = {a + s + s * m, 1, m};
    room.load_vectors(rows, b, {at.at, 1, m});
    whole_triangle(room, rows, b, tau + s);
    for (int64_t j = s; j < s + b; ++j) {
      std::fill_n(a + j * m, m, T(0));
      a[j * m + j] = T(1);
    }
    apply_block(room, false, rows, 0, b, n - s, at);
  }
}

template <class T>
void reflect_in_blocks(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a,
                       int64_t a_step, const T* tau, T* c, int64_t c_step) {
  // x Q is (Q^T x^T)^T.
  const Seen<T> seen = left ? Seen<T>{c, 1, c_step} : Seen<T>{c, c_step, 1};
  const int64_t length = left ? m : n, width = left ? n : m;
  const bool forward = adjoint == left;
  const Room<T> room(length, std::max(width, line_of(length)));
  const int64_t last = (k - 1) / block * block;
  for (int64_t s = forward ? 0 : last; s >= 0 && s < k; s += forward ? block : -block) {
    const int64_t b = std::min(block, k - s), rows = length - s;
    room.load_vectors(rows, b, {a + s + s * a_step, 1, a_step});
    const Seen<T> at = seen.from(s, 0);
    if (width > narrow) {
      whole_triangle(room, rows, b, tau + s);
      apply_block(room, forward, rows, 0, b, width, at);
      continue;
    }
    T* lines = room.wide.at;
    const int64_t w = line_of(rows);
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = 0; i < rows; ++i) lines[j * w + i] = at(i, j);
      std::fill_n(lines + j * w + rows, w - rows, T(0));
    }
    reflection_loops<T>().apply(forward, b, w, room.y.at, room.step, tau + s, width, lines, w);
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = 0; i < rows; ++i) at(i, j) = lines[j * w + i];
    }
  }
}

void trim_reflections_scratch() { blocks_room.trim(1); }

#define CLEW_INSTANTIATE(T)                                                                 \
  template void factor_in_blocks(int64_t, int64_t, T*, T*);                                 \
  template void product_in_blocks(int64_t, int64_t, int64_t, T*, const T*);                 \
  template void reflect_in_blocks(bool, bool, int64_t, int64_t, int64_t, const T*, int64_t, \
                                  const T*, T*, int64_t);
CLEW_INSTANTIATE(float)
CLEW_INSTANTIATE(double)
#undef CLEW_INSTANTIATE

}  // namespace clew::kernels
