// Complex loops that are met most, on rows of real and imaginary parts, compiled once for each
// instruction set.
// May include: base, kernels.
// Invariant: products are (ac - bd) + (ad + bc)i as they stand, as in the loops of strided rows.
#include <cstring>

#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/complex_quotient.h"
#include "kernels/elementwise/pointwise_loops.h"

namespace clew::kernels::CLEW_ISA {

namespace {

template <class R> using complex_t = std::complex<R>;

// Calls rows(a, b, o, count) with dense rows of real and imaginary parts; what does not lie so is
// copied there and back, a block at a time.
template <class R, class Rows>
inline __attribute__((always_inline)) void in_dense_rows(char* const* p, const int64_t* s,
                                                         int64_t n, Rows rows) {
  using C = complex_t<R>;
  constexpr int64_t item = sizeof(C), most = 64;
  const bool dense[3] = {s[0] == item, s[1] == item, s[2] == item};
  const int64_t block = dense[0] && dense[1] && dense[2] ? n : most;
  R room[3][2 * most];
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t count = std::min(block, n - begin);
    R* parts[3];
    for (int k = 0; k < 3; ++k) {
      char* from = p[k] + begin * s[k];
      parts[k] = dense[k] ? reinterpret_cast<R*>(from) : room[k];
      if (dense[k] || k == 0 || (s[k] == 0 && begin > 0)) continue;
      for (int64_t i = 0; i < count; ++i) std::memcpy(room[k] + 2 * i, from + i * s[k], item);
    }
    rows(parts[1], parts[2], parts[0], count);
    if (dense[0]) continue;
    char* to = p[0] + begin * s[0];
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * s[0], room[0] + 2 * i, item);
  }
}

// The parts are added apart, as twice as many reals, unless alpha turns them.
template <class R, int sign>
void added_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  using C = complex_t<R>;
  const C alpha = params[0].to<C>();
  if (alpha == C(1)) {
    in_dense_rows<R>(p, s, n, [](const R* a, const R* b, R* o, int64_t count) {
#pragma GCC ivdep
      for (int64_t i = 0; i < 2 * count; ++i) o[i] = sign > 0 ? a[i] + b[i] : a[i] - b[i];
    });
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const C a = read<C>(p[1], i * s[1]), b = read<C>(p[2], i * s[2]);
    at<C>(p[0], i * s[0]) = sign > 0 ? a + alpha * b : a - alpha * b;
  }
}
template <class R> void product_loop(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  in_dense_rows<R>(p, s, n, [](const R* a, const R* b, R* o, int64_t count) {
#pragma GCC ivdep
    for (int64_t i = 0; i < 2 * count; i += 2) {
      const R re = a[i] * b[i] - a[i + 1] * b[i + 1], im = a[i] * b[i + 1] + a[i + 1] * b[i];
      o[i] = re;
      o[i + 1] = im;
    }
  });
}

// a / b as the definition stands, with squares that are numbers of the type W. Returns whether the
// general quotient is needed: for infinities, NaN, zero and what leaves the range.
template <class R, class W>
inline __attribute__((always_inline)) bool divide(const R* a, const R* b, R* o) {
  const W ar = a[0], ai = a[1], br = b[0], bi = b[1];
  const W size = br * br + bi * bi;
  const W re = (ar * br + ai * bi) / size, im = (ai * br - ar * bi) / size;
  o[0] = static_cast<R>(re);
  o[1] = static_cast<R>(im);
  if constexpr (sizeof(W) > sizeof(R)) {
    return !(re == re) & !(im == im);
  } else {
    // No square may overflow, or lose digits by underflow.
    constexpr W least = 0x1p-960, most = 0x1p+960;
    const W mine = ar * ar + ai * ai;
    const bool nothing = (ar == 0) & (ai == 0);
    return !((size > least) & (size < most) & (((mine > least) & (mine < most)) | nothing));
  }
}
template <class R> void quotient_loop(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  in_dense_rows<R>(p, s, n, [](const R* a, const R* b, R* o, int64_t length) {
    constexpr int64_t block = 64;  // the result may lie where an operand lies, so it waits here
    R made[2 * block];
    for (int64_t begin = 0; begin < 2 * length; begin += 2 * block) {
      const int64_t count = std::min(2 * block, 2 * length - begin);
      const R *x = a + begin, *y = b + begin;
      unsigned special = 0;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; i += 2)
        special |= static_cast<unsigned>(divide<R, double>(x + i, y + i, made + i));
      for (int64_t i = 0; i < count && special; i += 2) {
        if (!divide<R, double>(x + i, y + i, made + i)) continue;
        const auto value = complex_quotient(complex_t<R>(x[i], x[i + 1]), {y[i], y[i + 1]});
        made[i] = value.real();
        made[i + 1] = value.imag();
      }
      std::memcpy(o + begin, made, static_cast<size_t>(count) * sizeof(R));
    }
  });
}

// The real loop takes the parts as its operands.
template <class R>
void size_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  char* const parts[] = {p[0], p[1], p[1] + sizeof(R)};
  const int64_t steps[] = {s[0], s[1], s[1]};
  table::hypot.fn[static_cast<int>(dtype_of<R>())](parts, steps, n, params);
}
// a / |a|, and 0 for 0.
template <class R>
void direction_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  using C = complex_t<R>;
  constexpr int64_t block = 256;
  R sizes[block];
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t count = std::min(block, n - begin);
    char* const at[] = {reinterpret_cast<char*>(sizes), p[1] + begin * s[1]};
    const int64_t steps[] = {sizeof(R), s[1]};
    size_loop<R>(at, steps, count, params);
    char* to = p[0] + begin * s[0];
    for (int64_t i = 0; i < count; ++i) {
      const C a = clew::kernels::read<C>(at[1], i * s[1]);
      const R size = sizes[i];
      const bool none = size == R(0);
      clew::kernels::at<C>(to, i * s[0]) =
          C(none ? R(0) : a.real() / size, none ? R(0) : a.imag() / size);
    }
  }
}

}  // namespace

void init_complex();
void init_complex() {
  constexpr int single = static_cast<int>(DType::Complex64);
  constexpr int twice = static_cast<int>(DType::Complex128);
  table::add.fn[single] = added_loop<float, 1>;
  table::add.fn[twice] = added_loop<double, 1>;
  table::sub.fn[single] = added_loop<float, -1>;
  table::sub.fn[twice] = added_loop<double, -1>;
  table::mul.fn[single] = product_loop<float>;
  table::mul.fn[twice] = product_loop<double>;
  table::div.fn[single] = quotient_loop<float>;
  table::div.fn[twice] = quotient_loop<double>;
  table::abs.fn[single] = size_loop<float>;
  table::abs.fn[twice] = size_loop<double>;
  table::sgn.fn[single] = direction_loop<float>;
  table::sgn.fn[twice] = direction_loop<double>;
}

}  // namespace clew::kernels::CLEW_ISA
