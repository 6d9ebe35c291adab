// Complex loops that are met most, on rows of real and imaginary parts, compiled once for each
// instruction set.
// May include: base, kernels.
// Invariant: products are (ac - bd) + (ad + bc)i as they stand, as in the loops of strided rows.
#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/pointwise_loops.h"

namespace clew::kernels::CLEW_ISA {

namespace {

template <class R> using complex_t = std::complex<R>;

template <class R> bool dense_rows(const int64_t* s) {
  return s[0] == sizeof(complex_t<R>) && s[1] == s[0] && s[2] == s[0];
}

// The parts are added apart, as twice as many reals, unless alpha turns them.
template <class R, int sign>
void added_loop(char* const* p, const int64_t* s, int64_t n, const Scalar* params) {
  using C = complex_t<R>;
  const C alpha = params[0].to<C>();
  if (dense_rows<R>(s) && alpha == C(1)) {
    auto* o = reinterpret_cast<R*>(p[0]);
    auto* a = reinterpret_cast<const R*>(p[1]);
    auto* b = reinterpret_cast<const R*>(p[2]);
#pragma GCC ivdep
    for (int64_t i = 0; i < 2 * n; ++i) o[i] = sign > 0 ? a[i] + b[i] : a[i] - b[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const C a = read<C>(p[1], i * s[1]), b = read<C>(p[2], i * s[2]);
    const C term = alpha == C(1) ? b : alpha * b;
    at<C>(p[0], i * s[0]) = sign > 0 ? a + term : a - term;
  }
}
template <class R> void product_loop(char* const* p, const int64_t* s, int64_t n, const Scalar*) {
  using C = complex_t<R>;
  auto times = [](R ar, R ai, R br, R bi, R & re, R & im) __attribute__((always_inline)) {
    re = ar * br - ai * bi;
    im = ar * bi + ai * br;
  };
  if (dense_rows<R>(s)) {
    auto* o = reinterpret_cast<R*>(p[0]);
    auto* a = reinterpret_cast<const R*>(p[1]);
    auto* b = reinterpret_cast<const R*>(p[2]);
#pragma GCC ivdep
    for (int64_t i = 0; i < 2 * n; i += 2) {
      R re, im;
      times(a[i], a[i + 1], b[i], b[i + 1], re, im);
      o[i] = re;
      o[i + 1] = im;
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const C a = read<C>(p[1], i * s[1]), b = read<C>(p[2], i * s[2]);
    R re, im;
    times(a.real(), a.imag(), b.real(), b.imag(), re, im);
    at<C>(p[0], i * s[0]) = C(re, im);
  }
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
  table::abs.fn[single] = size_loop<float>;
  table::abs.fn[twice] = size_loop<double>;
  table::sgn.fn[single] = direction_loop<float>;
  table::sgn.fn[twice] = direction_loop<double>;
}

}  // namespace clew::kernels::CLEW_ISA
