// The error function and its slope at multiples of 1 / 128, and its inverse at multiples of 1 /
// 512, from which vmath_error.h and vmath_sorted.h go on. May include: nothing. Invariant: one
// table for all instruction sets, made when the library is loaded.
#pragma once

namespace clew::kernels {

constexpr int erf_steps = 128;  // of one unit
constexpr int erf_last = 768;   // from 6 on it is 1
struct ErfPoint {
  double value, low, slope;  // of value and low the sum counts
};
extern ErfPoint erf_points[erf_last + 1];

constexpr int erfinv_steps = 512;
constexpr int erfinv_last = 480;  // 15 / 16
extern ErfPoint erfinv_points[erfinv_last + 1];

}  // namespace clew::kernels
