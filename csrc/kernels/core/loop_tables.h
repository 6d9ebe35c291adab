// The elementwise loop tables, and what fills them.
// May include: base, kernels.
// Invariant: tables are written by init_pointwise() at import and only read afterwards.
#pragma once
#include "base/ndview.h"

namespace clew::kernels {

// Fills every table: plain versions first, then those of the best instruction set that the
// processor has.
void init_pointwise();

// The loop that converts one operand; equal dtypes move bytes.
Loop cast_loop_of(DType from, DType to);
Loop stored_cast_of(DType from, DType to);  // where one of them is only stored

// The loop of where(bool condition, a, b) for elements of `item` bytes.
Loop where_loop_of(size_t item);

// Tables have the names of their ops. Comments list the scalar parameters that a loop reads.
namespace table {
// --- arithmetic ---
inline LoopTable add, sub;  // alpha
inline LoopTable mul, div, neg, pow, square, reciprocal, abs;
inline LoopTable div_trunc, div_floor, fmod, remainder, gcd, lcm;
inline LoopTable lerp;
inline LoopTable addcmul, addcdiv;  // value
// --- comparison, logic, bits ---
inline LoopTable eq, ne, lt, le, gt, ge, maximum, minimum, fmax, fmin;
inline LoopTable logical_and, logical_or, logical_xor, logical_not;
inline LoopTable bitwise_and, bitwise_or, bitwise_xor, bitwise_not, shift_left, shift_right;
inline LoopTable isnan, isinf, isfinite, isposinf, isneginf, signbit;
inline LoopTable clamp;           // min, max; either may be None
inline LoopTable clamp_between;   // of input, min, max
inline LoopTable clamp_backward;  // min, max
inline LoopTable nan_to_num;      // nan, posinf, neginf
// --- elementary functions ---
inline LoopTable exp, exp2, expm1, log, log2, log10, log1p, sqrt, rsqrt;
inline LoopTable sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh;
inline LoopTable sigmoid, logit, sign, sgn, floor, ceil, trunc, frac;
inline LoopTable round;  // decimals
inline LoopTable sinc, deg2rad, rad2deg;
inline LoopTable conj, angle;
// --- two numbers ---
inline LoopTable atan2, hypot, copysign, nextafter, heaviside, xlogy, xlog1py;
inline LoopTable logaddexp, logaddexp2;
// --- special functions ---
inline LoopTable erf, erfc, erfinv, erfcx, lgamma, digamma, entr, ndtr, ndtri, log_ndtr;
inline LoopTable i0, i0e, i1, i1e, zeta;
inline LoopTable polygamma;  // n
inline LoopTable trigamma;   // polygamma of n = 1
inline LoopTable bessel_j0, bessel_j1, bessel_y0, bessel_y1, spherical_bessel_j0;
inline LoopTable bessel_k0, bessel_k1, bessel_k0e, bessel_k1e;  // modified
inline LoopTable airy_ai, airy_ai_slope;
inline LoopTable gammainc, gammaincc;
// --- activations, and grad * slope as functions of grad and input (or output, where noted) ---
inline LoopTable relu, relu_backward;              // of the output
inline LoopTable tanh_backward, sigmoid_backward;  // of the output
inline LoopTable gelu, gelu_backward, gelu_tanh, gelu_tanh_backward, silu, silu_backward;
inline LoopTable gate, gate_slope;  // a * sigmoid(b); its slope along b, of grad, a, b
inline LoopTable mish, mish_backward, softsign, logsigmoid, logsigmoid_backward;
inline LoopTable hardsigmoid, hardsigmoid_backward, hardswish, hardswish_backward;
inline LoopTable leaky_relu, leaky_relu_backward;  // negative_slope
inline LoopTable prelu, prelu_slope, prelu_share;
inline LoopTable elu, elu_backward;                        // alpha, scale, input_scale
inline LoopTable softplus, softplus_backward;              // beta, threshold
inline LoopTable softshrink, hardshrink, shrink_backward;  // lambd
inline LoopTable hardtanh_backward;                        // min_val, max_val
inline LoopTable threshold;                                // threshold, value
inline LoopTable threshold_backward;                       // threshold
// --- losses of a distance; edge, half, line, offset ---
// of input, target; the slopes of input, target, grad
inline LoopTable bce, bce_slope, bce_logits, bce_logits_slope;
inline LoopTable distance, distance_slope;  // the slope: of input, target, grad
// --- grad * slope, of the input ---
inline LoopTable log2_slope, log10_slope, log1p_slope, sin_slope, cos_slope, square_slope;
inline LoopTable asin_slope, acos_slope, atan_slope, asinh_slope, acosh_slope, atanh_slope;
inline LoopTable sinh_slope, cosh_slope, erf_slope, abs_slope;
inline LoopTable pow_slope;  // exponent
// --- grad * slope, of the output ---
inline LoopTable exp2_slope, expm1_slope, sqrt_slope, rsqrt_slope, tan_slope, reciprocal_slope;
// --- of grad, dividend, divisor ---
inline LoopTable divisor_slope;
// --- conversions, [from][to]; missing pairs are converted element by element ---
inline LoopTable casts[num_dtypes];
}  // namespace table

}  // namespace clew::kernels
