// The list of all ops, and the ops that the graph itself uses.
// May include: ops.
// Invariant: registration is this list and nothing else; no object registers itself.
#include <array>

#include "graph/inplace.h"
#include "graph/node.h"
#include "graph/rows.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/finite.h"
#include "ops/calls/indexing.h"
#include "ops/calls/joining.h"
#include "ops/calls/product.h"
#include "ops/calls/reduction.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/ops.h"

namespace clew {

// clang-format off
extern const OpList arithmetic_ops;
extern const OpList comparison_ops;
extern const OpList unary_ops;
extern const OpList complex_ops;
extern const OpList selection_ops;
extern const OpList binary_ops;
extern const OpList special_ops;
extern const OpList special_kernel_ops;
extern const OpList activation_ops;
extern const OpList activation_hard_ops;
extern const OpList activation_gate_ops;
extern const OpList matmul_ops;
extern const OpList contraction_ops;
extern const OpList older_order_ops;
extern const OpList convolution_ops;
extern const OpList pooling_ops;
extern const OpList pooling_mean_ops;
extern const OpList patches_ops;
extern const OpList attention_ops;
extern const OpList shape_ops;
extern const OpList order_ops;
extern const OpList slicing_ops;
extern const OpList splitting_ops;
extern const OpList strided_ops;
extern const OpList joining_ops;
extern const OpList index_plan_ops;
extern const OpList indexing_ops;
extern const OpList index_select_ops;
extern const OpList gather_ops;
extern const OpList scatter_reduce_ops;
extern const OpList rearrange_ops;
extern const OpList repeat_ops;
extern const OpList padding_ops;
extern const OpList search_ops;
extern const OpList embedding_ops;
extern const OpList embedding_bag_ops;
extern const OpList sparse_ops;
extern const OpList reduction_ops;
extern const OpList scan_ops;
extern const OpList softmax_ops;
extern const OpList normalization_ops;
extern const OpList normalization_batch_ops;
extern const OpList random_ops;
extern const OpList dropout_ops;
extern const OpList reduction_extrema_ops;
extern const OpList reduction_stats_ops;
extern const OpList sorting_ops;
extern const OpList sorting_unique_ops;
extern const OpList loss_ops;
extern const OpList binary_loss_ops;
extern const OpList sampling_ops;
extern const OpList grid_sample_ops;
extern const OpList resampling_ops;
extern const OpList distance_loss_ops;
extern const OpList ctc_ops;
extern const OpList distances_ops;
extern const OpList fft_ops;
extern const OpList matrices_ops;
extern const OpList polynomials_ops;
extern const OpList matrix_decompositions_ops;
extern const OpList rms_norm_ops;
extern const OpList recurrent_ops;
extern const OpList recurrent_module_ops;
extern const OpList recurrent_cell_ops;

std::span<const OpList> all_ops() {
  static const std::array lists = {
      arithmetic_ops,
      comparison_ops,
      unary_ops,
      complex_ops,
      selection_ops,
      binary_ops,
      special_ops,
      special_kernel_ops,
      activation_ops,
      activation_hard_ops,
      activation_gate_ops,
      matmul_ops,
      contraction_ops,
      older_order_ops,
      convolution_ops,
      pooling_ops,
      pooling_mean_ops,
      patches_ops,
      attention_ops,
      shape_ops,
      order_ops,
      slicing_ops,
      splitting_ops,
      strided_ops,
      joining_ops,
      index_plan_ops,
      indexing_ops,
      index_select_ops,
      gather_ops,
      scatter_reduce_ops,
      rearrange_ops,
      repeat_ops,
      padding_ops,
      search_ops,
      embedding_ops,
      embedding_bag_ops,
      sparse_ops,
      reduction_ops,
      scan_ops,
      softmax_ops,
      normalization_ops,
      normalization_batch_ops,
      random_ops,
      dropout_ops,
      reduction_extrema_ops,
      reduction_stats_ops,
      sorting_ops,
      sorting_unique_ops,
      loss_ops,
      binary_loss_ops,
      sampling_ops,
      grid_sample_ops,
      resampling_ops,
      distance_loss_ops,
      ctc_ops,
      distances_ops,
      fft_ops,
      matrices_ops,
      polynomials_ops,
      matrix_decompositions_ops,
      rms_norm_ops,
      recurrent_ops,
      recurrent_module_ops,
      recurrent_cell_ops,
  };
  return lists;
}
// clang-format on

// The first overload of that name.
static const OpDef& find_op(std::string_view name) {
  for (const OpList& list : all_ops())
    for (auto* p = list.begin; p != list.end; ++p)
      if (op_name(**p) == name) return **p;
  fail_internal("no operation is called ", name);
}

void init_builtins() {
  builtins.add = [](const Tensor& a, const Tensor& b) { return add(a, b); };
  builtins.add_over = [](const Tensor& into, const Tensor& g) {
    static const OpDef& op = find_op("add");
    const Scalar alpha(1);
    const Tensor in[2] = {into, g};
    if (!apply_into(op, in, &alpha, {&into, 1})) apply_inplace(op, in, &alpha);
  };
  builtins.multiply_into = [](const Tensor& into, const Tensor& left, const Tensor& right,
                              const Scalar& beta) {
    settle_before_write(into);
    Tensor columns = alias(left, Dims{left.size(1), left.size(0)}, Dims{1, left.stride(0)});
    product_into(into, columns, right, Scalar(1), beta);
  };
  builtins.mul = [](const Tensor& a, const Tensor& b) { return mul(a, b); };
  builtins.conj = [](const Tensor& a) { return conj(a); };
  builtins.view_as_real = [](const Tensor& a) { return view_as_real(a); };
  builtins.view_as_complex = [](const Tensor& a) { return view_as_complex(a); };
  builtins.real = [](const Tensor& a) { return select(view_as_real(a), -1, 0); };
  builtins.sum_to = sum_to;
  builtins.to_dtype = to_dtype;
  builtins.clone = [](const Tensor& a) { return clone(a); };
  builtins.as_strided = [](const Tensor& a, const Dims& sizes, const Dims& strides,
                           int64_t offset) { return as_strided(a, sizes, strides, offset); };
  builtins.unsqueeze = [](const Tensor& a, int64_t dim) { return unsqueeze(a, dim); };
  builtins.expand = [](const Tensor& a, const Dims& sizes) { return expand(a, sizes); };
  builtins.movedim = [](const Tensor& a, int64_t from, int64_t to) {
    return from == to ? a : movedim(a, {from}, {to});
  };
  builtins.select = [](const Tensor& a, int64_t dim, int64_t i) { return select(a, dim, i); };
  builtins.view = [](const Tensor& a, const Dims& sizes) { return view(a, sizes); };
  builtins.non_finite = non_finite;
  builtins.rows = rows_by_rule;
  builtins.stack = [](std::span<const Tensor> parts) { return stack(parts, 0); };
  builtins.cat = [](std::span<const Tensor> parts) { return cat(parts, 0); };
  builtins.narrow = [](const Tensor& a, int64_t start, int64_t length) {
    return narrow(a, 0, start, length);
  };
  builtins.take_rows = [](const Tensor& a, const Tensor& index) { return index_at(a, index, {0}); };
  builtins.add_rows = [](const Dims& sizes, const Tensor& index, const Tensor& values) {
    return index_put(zero_block(sizes, values.dtype(), values.device()), values, index, {0}, true);
  };
}

}  // namespace clew
