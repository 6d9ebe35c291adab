// Which convolutions run along rows of all their channels, and handing them to the compiled loops.
// May include: base, kernels.
// Invariant: the choice depends on shapes and the processor only, never on values.
#include "kernels/conv/direct.h"

#include <utility>
#include <vector>

#include "kernels/core/instruction_set.h"

namespace clew::kernels {

namespace {

using Map = bool (*)(const ConvShape&, const float*, const float*, const float*, float*);

Map map() {
  static const Map found = CLEW_CHOSEN(direct_map);
  return found;
}

// oneDNN vectorizes over output channels and copies data into that order. Direct loops are faster
// when channels do not fill a vector or the work is small (measured; unit stride only: a larger
// stride must first separate columns here); rows that do not fill a vector need few input channels.
// A kernel of one point is a plain matrix product, and so is the gradient of few channels.
bool suits_direct(const ConvShape& s, bool forward) {
  if (s.dtype != DType::Float32 || s.nd > 2 || s.last || s.groups != 1 || s.n == 0) return false;
  if (s.in_points() == 0 || s.out_points() == 0 || s.ci * s.co * s.kernel_points() == 0)
    return false;
  constexpr int64_t far = 1 << 10, line = 1 << 17;
  for (int d = 1; d < 3; ++d) {
    const int64_t longest = s.nd == 1 && d == 2 ? line : far;
    if (s.kernel[d] > 64 || s.stride[d] > 16 || s.pad[d] > far || s.dilation[d] > far) return false;
    if ((s.kernel[d] - 1) * s.dilation[d] > far || s.in[d] > longest || s.out[d] > longest)
      return false;
  }
  constexpr int64_t few = 4, little = 1 << 17, short_row = 12;
  const int64_t lanes = instruction_set() == InstructionSet::avx512 ? 16 : 8;
  const int64_t work = s.n * s.co * s.out_points() * s.ci * s.kernel_points();
  if (work <= little) return s.kernel_points() > 1;
  if (s.stride[1] != 1 || s.stride[2] != 1) return false;
  if (s.ci <= few && s.co <= lanes) return true;
  // The rows of all input channels that one row of outputs needs stay in the cache.
  constexpr int64_t cached = 1 << 19;
  return forward && s.co <= few && s.kernel_points() > 1 && s.out[2] >= short_row &&
         s.ci <= cached / (s.kernel[1] * (s.out[2] + s.kernel[2] * s.dilation[2] + lanes));
}

}  // namespace

bool direct_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y) {
  return suits_direct(s, true) &&
         map()(s, static_cast<const float*>(x), static_cast<const float*>(w),
               static_cast<const float*>(bias), static_cast<float*>(y));
}

// With unit stride the map from y to x is a convolution of y, with the taps in reverse order.
bool direct_input(const ConvShape& s, const void* y, const void* w, const void* bias, void* x) {
  ConvShape t = s;
  for (int d = 0; d < 3; ++d) {
    t.pad[d] = (s.kernel[d] - 1) * s.dilation[d] - s.pad[d];
    if (s.stride[d] != 1 || t.pad[d] < 0) return false;
    std::swap(t.in[d], t.out[d]);
  }
  std::swap(t.ci, t.co);
  if (!suits_direct(t, false)) return false;
  const int64_t taps = s.kernel_points();
  const auto* from = static_cast<const float*>(w);
  std::vector<float> turned(static_cast<size_t>(s.ci * s.co * taps));
  float* to = turned.data();
  for (int64_t c = 0; c < s.ci; ++c) {
    for (int64_t o = 0; o < s.co; ++o) {
      for (int64_t q = 0; q < taps; ++q) *to++ = from[(o * s.ci + c) * taps + taps - 1 - q];
    }
  }
  return map()(t, static_cast<const float*>(y), turned.data(), static_cast<const float*>(bias),
               static_cast<float*>(x));
}

}  // namespace clew::kernels
