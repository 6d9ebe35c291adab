// Recurrent layers as C++ functions: what the modules' operations are made of.
// May include: ops/ops.h.
// Invariant: each function only calls apply(); no second implementation of a kernel lives here.
#pragma once
#include <string>

#include "kernels/sequence/recurrent.h"
#include "ops/calls/arithmetic.h"
#include "ops/ops.h"

namespace clew {

// The sum of those that there are.
inline Tensor both(const Tensor& a, const Tensor& b) { return a && b ? a + b : a ? a : b; }

struct RecurrentAttrs {
  int64_t cell = 0;
  bool reverse = false;
  std::optional<Dims> batch_sizes;
  static constexpr auto members() {
    return std::tuple(&RecurrentAttrs::cell, &RecurrentAttrs::reverse,
                      &RecurrentAttrs::batch_sizes);
  }
  kernels::RecurrentCell kind() const { return static_cast<kernels::RecurrentCell>(cell); }
};

// The tensors of one layer and direction, in this order; missing ones are undefined.
enum RecurrentInput { r_input, r_h0, r_c0, r_w_ih, r_w_hh, r_b_ih, r_b_hh, r_w_hr, r_inputs };

// Output, last h and last c (undefined except for LSTM), composed of other ops.
void recurrent_composed(std::span<const Tensor> in, const RecurrentAttrs& a, Tensors& outs);
// The same by the native operation where it has loops for the dtype.
void recurrent_layer(std::span<const Tensor> in, const RecurrentAttrs& a, Tensors& outs);

// As Python shows the size of a tensor.
inline std::string tuple_text(const Dims& sizes) {
  std::string text = "(";
  for (int d = 0; d < sizes.size(); ++d) text += (d ? ", " : "") + std::to_string(sizes[d]);
  return text + (sizes.size() == 1 ? ",)" : ")");
}

struct CellState {
  Tensor h, c;
};
// One step with other ops. x: the input's product with its biases, where the cell adds all of them.
CellState recurrent_step(kernels::RecurrentCell cell, const Tensor& x, const CellState& before,
                         const Tensor& w_hh, const Tensor& b_hh, const Tensor& w_hr);
// The input's product with the biases that recurrent_step() expects in it.
Tensor recurrent_projection(kernels::RecurrentCell cell, const Tensor& x, const Tensor& w_ih,
                            const Tensor& b_ih, const Tensor& b_hh);

}  // namespace clew
