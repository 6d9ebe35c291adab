// Float loops of the activations and their gradients, compiled once for each instruction set.
// May include: base, kernels.
// Invariant: a loop named x_backward gives grad * x'(input) (of the output for relu, tanh and
// sigmoid).
#include "kernels/core/loop_tables.h"
#include "kernels/elementwise/pointwise_loops.h"
#include "kernels/math/vmath.h"
#include "kernels/math/vmath_error.h"

namespace clew::kernels::CLEW_ISA {

namespace {

using F = FloatTypes;

}  // namespace

void init_activations();
void init_activations() {
  unary(table::relu, F{}, []<class T>(T a) { return a < T(0) ? T(0) : a; });
  binary(table::relu_backward, F{}, []<class T>(T g, T y) { return y <= T(0) ? T(0) : g; });
  binary(table::tanh_backward, F{}, []<class T>(T g, T y) { return T(g * (T(1) - y * y)); });
  binary(table::sigmoid_backward, F{}, []<class T>(T g, T y) { return T(g * (T(1) - y) * y); });

  unary(table::gelu, F{}, []<class T>(T x) { return vm::gelu(x); });
  unary(table::gelu, TypeList<bf16>{}, [](float x) { return vm::gelu_short(x); });
  binary(table::gelu_backward, F{}, []<class T>(T g, T x) { return T(g * vm::gelu_slope(x)); });
  unary(table::gelu_tanh, F{}, []<class T>(T x) { return vm::gelu_tanh(x); });
  binary(table::gelu_tanh_backward, F{},
         []<class T>(T g, T x) { return T(g * vm::gelu_tanh_slope(x)); });
  unary(table::silu, F{}, []<class T>(T x) { return T(x / (T(1) + vm::exp(-x))); });
  binary(table::silu_backward, F{}, []<class T>(T g, T x) {
    T s = vm::sigmoid(x);
    return T(g * s * (T(1) + x * (T(1) - s)));
  });
  binary(table::gate, F{}, []<class T>(T a, T b) { return T(a * vm::sigmoid(b)); });
  ternary(table::gate_slope, F{}, []<class T>(T g, T a, T b) {
    T s = vm::sigmoid(b);
    return T(g * a * (s * (T(1) - s)));
  });
  unary(table::mish, F{}, []<class T>(T x) { return T(x * vm::tanh(vm::log1p(vm::exp(x)))); });
  binary(table::mish_backward, F{}, []<class T>(T g, T x) {
    T t = vm::tanh(vm::log1p_exp(x));
    return T(g * (t + x * vm::sigmoid(x) * (T(1) - t * t)));
  });
  unary(table::softsign, F{}, []<class T>(T x) { return T(x / (T(1) + std::fabs(x))); });
  unary(table::logsigmoid, F{}, []<class T>(T x) { return T(-vm::log1p_exp(-x)); });
  binary(table::logsigmoid_backward, F{}, []<class T>(T g, T x) {
    T e = vm::exp(-std::fabs(x)), small = e / (T(1) + e);
    return T(g * (x < T(0) ? T(1) - small : small));
  });
  unary(table::hardsigmoid, F{}, []<class T>(T x) {
    T y = x + T(3);
    y = y < T(0) ? T(0) : y;
    y = y > T(6) ? T(6) : y;
    return T(y / T(6));
  });
  binary(table::hardsigmoid_backward, F{},
         []<class T>(T g, T x) { return (x > T(-3)) & (x < T(3)) ? T(g * T(1.0 / 6)) : T(0); });
  unary(table::hardswish, F{}, []<class T>(T x) {
    T y = x + T(3);
    y = y < T(0) ? T(0) : y;
    y = y > T(6) ? T(6) : y;
    return T(x * y / T(6));
  });
  binary(table::hardswish_backward, F{}, []<class T>(T g, T x) {
    T inner = g * (x / T(3) + T(0.5));
    inner = x <= T(-3) ? T(0) : inner;
    return x >= T(3) ? g : inner;
  });
  unary<1>(table::leaky_relu, F{},
           []<class T>(T x, const T* c) { return x > T(0) ? x : T(x * c[0]); });
  binary<1>(table::leaky_relu_backward, F{},
            []<class T>(T g, T x, const T* c) { return x > T(0) ? g : T(g * c[0]); });
  binary(table::prelu, F{}, []<class T>(T x, T w) { return x > T(0) ? x : T(x * w); });
  ternary(table::prelu_slope, F{}, []<class T>(T g, T x, T w) { return x > T(0) ? g : T(g * w); });
  binary(table::prelu_share, F{}, []<class T>(T g, T x) { return x > T(0) ? T(0) : T(g * x); });
  // c: alpha, scale, input_scale
  unary<3>(table::elu, F{}, []<class T>(T x, const T* c) {
    T negative = vm::expm1(x * c[2]) * (c[0] * c[1]);
    return x > T(0) ? T(x * c[1]) : negative;
  });
  binary<3>(table::elu_backward, F{}, []<class T>(T g, T x, const T* c) {
    T negative = g * c[2] * (c[0] * c[1]) * vm::exp(x * c[2]);
    return x > T(0) ? T(g * c[1]) : negative;
  });
  // c: beta, threshold
  unary<2>(table::softplus, F{}, []<class T>(T x, const T* c) {
    T z = x * c[0];
    T soft = (z > T(40) ? z : vm::log1p(vm::exp(z))) / c[0];  // e^z stays finite
    return z > c[1] ? x : soft;
  });
  binary<2>(table::softplus_backward, F{}, []<class T>(T g, T x, const T* c) {
    T z = x * c[0];
    T e = vm::exp(z > T(40) ? T(40) : z);
    T soft = g * e / (e + T(1));
    return z > c[1] ? g : soft;
  });
  unary<1>(table::softshrink, F{}, []<class T>(T x, const T* c) {
    T low = x < -c[0] ? T(x + c[0]) : T(x * T(0));  // nan stays nan
    return x > c[0] ? T(x - c[0]) : low;
  });
  unary<1>(table::hardshrink, F{},
           []<class T>(T x, const T* c) { return (x >= -c[0]) & (x <= c[0]) ? T(0) : x; });
  binary<1>(table::shrink_backward, F{},
            []<class T>(T g, T x, const T* c) { return (x >= -c[0]) & (x <= c[0]) ? T(0) : g; });
  binary<2>(table::hardtanh_backward, F{},
            []<class T>(T g, T x, const T* c) { return (x <= c[0]) | (x >= c[1]) ? T(0) : g; });
  unary<2>(table::threshold, F{}, []<class T>(T x, const T* c) { return x <= c[0] ? c[1] : x; });
  binary<1>(table::threshold_backward, F{},
            []<class T>(T g, T x, const T* c) { return x <= c[0] ? T(0) : g; });
}

}  // namespace clew::kernels::CLEW_ISA
