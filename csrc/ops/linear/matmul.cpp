// Products of matrices and vectors: matmul, mm, bmm, mv, dot; and addmm, addmv, baddbmm.
// May include: ops, kernels/matmul/gemm.h.
// Invariant: operands are read where they lie: transposes and broadcast batches are never copied.
#include "ops/calls/matmul.h"

#include "kernels/matmul/gemm.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/product.h"
#include "ops/calls/reduction.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "tensor/kernel_frame.h"

namespace clew {

void require_multipliable(const Tensor& a, const Tensor& b, std::string_view op) {
  require(a.dtype() == b.dtype(), op, ": both operands must have one dtype; got ", a, " and ", b,
          "; convert one with .to(dtype)");
  if (!kernels::gemm_supports(a.dtype()))
    fail(ErrorKind::NotImplemented, op, ": not implemented for bool; got ", a, " and ", b);
}

Dims product_sizes(const Tensor& a, const Tensor& b, std::string_view op) {
  const int ra = a.ndim(), rb = b.ndim();
  require(ra > 0 && rb > 0, op, ": both operands must have at least one dimension; got ", a,
          " and ", b);
  require_multipliable(a, b, op);
  const int64_t k = a.size(-1);
  require(k == b.size(rb == 1 ? 0 : rb - 2), op,
          rb == 1 ? ": input.shape[-1] must equal other.shape[0]; got "
                  : ": input.shape[-1] must equal other.shape[-2]; got ",
          a, " and ", b);
  Dims out;
  if (ra > 2 || rb > 2) {
    const Dims batch_a(a.sizes().data(), std::max(0, ra - 2)),
        batch_b(b.sizes().data(), std::max(0, rb - 2));
    out = broadcast_shapes(batch_a, batch_b, std::string(op).c_str());
  }
  if (ra > 1) out.push_back(a.size(-2));
  if (rb > 1) out.push_back(b.size(-1));
  return out;
}

static const Scalar one(1), zero(0);

// The gradient of a sum, which the library's products of 16-bit floats do not take.
static bool repeats_elements(const Tensor& matrix) {
  if (matrix.numel() == 0) return false;
  for (int d = std::max(0, matrix.ndim() - 2); d < matrix.ndim(); ++d)
    if (matrix.stride(d) == 0 && matrix.size(d) > 1) return true;
  return false;
}

void product_into(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha,
                  const Scalar& beta, bool flip, const Tensor& bias) {
  if (is_half(a.dtype()) && (repeats_elements(a) || repeats_elements(b)))
    return product_into(out, dense(a), dense(b), alpha, beta, flip, bias);
  const int ra = a.ndim(), rb = b.ndim();
  if (ra == 2 && rb == 2 && out.stride(1) == 1 && alpha.equals(1) && beta.equals(0) &&
      kernels::gemm_if_small({a.dtype(), a.size(0), out.size(1), a.size(1), a.data<char>(),
                              a.stride(0), a.stride(1), b.data<char>(), b.stride(flip ? 1 : 0),
                              b.stride(flip ? 0 : 1), out.data<char>(), out.stride(0),
                              bias ? bias.data<char>() : nullptr}))
    return;
  const Held held{out, a, b, bias};
  kernels::Gemm g;
  g.dtype = a.dtype();
  g.a = a.data<char>();
  g.b = b.data<char>();
  g.c = out.data<char>();
  g.alpha = alpha;
  g.beta = beta;
  if (bias) g.bias = bias.data<char>();
  g.k = a.size(-1);
  g.m = ra > 1 ? a.size(-2) : 1;
  g.a_rs = ra > 1 ? a.stride(-2) : 0;
  g.a_cs = a.stride(-1);
  g.n = rb > 1 ? b.size(flip ? -2 : -1) : 1;
  g.b_rs = b.stride(rb > 1 && !flip ? -2 : -1);
  g.b_cs = rb > 1 ? b.stride(flip ? -2 : -1) : 0;
  const int n_dim = rb > 1 ? 1 : 0, m_dim = ra > 1 ? 1 : 0;
  g.c_cs = n_dim ? out.stride(-1) : 1;
  g.c_rs = m_dim ? out.stride(-1 - n_dim) : 0;
  const int dims = out.ndim() - n_dim - m_dim;
  if (dims == 0) return kernels::gemm(g);
  kernels::GemmBatch batch;
  for (int d = 0; d < dims; ++d) {
    const int da = d - dims + std::max(0, ra - 2), db = d - dims + std::max(0, rb - 2);
    batch.sizes.push_back(out.size(d));
    batch.a.push_back(da >= 0 && a.size(da) != 1 ? a.stride(da) : 0);
    batch.b.push_back(db >= 0 && b.size(db) != 1 ? b.stride(db) : 0);
    batch.c.push_back(out.stride(d));
  }
  // Batch dims over which b stays the same and a's rows go on are rows of one larger product.
  while (!batch.sizes.empty()) {
    const int last = batch.sizes.size() - 1;
    const int64_t size = batch.sizes[last];
    if (size != 1) {
      if (batch.b[last] != 0) break;
      if (g.m == 1) {
        g.a_rs = batch.a[last];
        g.c_rs = batch.c[last];
      } else if (batch.a[last] != g.m * g.a_rs || batch.c[last] != g.m * g.c_rs) {
        break;
      }
      g.m *= size;
    }
    batch.sizes.pop_back();
    batch.a.pop_back();
    batch.b.pop_back();
    batch.c.pop_back();
  }
  kernels::gemm_batched(g, batch);
}

bool bias_fits(const Tensor& bias, const Tensor& out) {
  return bias.ndim() == 1 && out.ndim() > 0 && bias.size(0) == out.size(-1) && bias.is_contiguous();
}

bool expandable(const Dims& sizes, const Dims& target) {
  if (sizes.size() > target.size()) return false;
  for (int d = 1; d <= sizes.size(); ++d) {
    const int64_t size = sizes[sizes.size() - d];
    if (size != 1 && size != target[target.size() - d]) return false;
  }
  return true;
}

Tensor product_of_matrices(const Tensor& a, const Tensor& b, bool flip, const Tensor& bias) {
  if (a.ndim() != 2 || b.ndim() != 2 || a.dtype() != b.dtype() || a.is_meta() || b.is_meta() ||
      a.size(1) != b.size(flip ? 1 : 0) || !kernels::gemm_supports(a.dtype()))
    return {};
  const int64_t m = a.size(0), n = b.size(flip ? 0 : 1);
  if (bias && (bias.ndim() != 1 || bias.size(0) != n || !bias.is_contiguous() ||
               bias.dtype() != a.dtype() || bias.is_meta()))
    return {};
  Tensor out = empty_matrix(m, n, a);
  product_into(out, a, b, one, zero, flip, bias);
  return out;
}

Tensor scaled(const Tensor& t, const Scalar& s) { return s.equals(1) ? t : t * s; }

bool plain_matrices(const Tensor& g, const Tensor& factor, int other_ndim) {
  return g.ndim() == 2 && factor.ndim() == 2 && other_ndim == 2 && !modes.grad && !g.is_complex() &&
         g.dtype() == factor.dtype() && !g.is_meta() &&
         !((g->flags | factor->flags) & flag_batched);
}
static Tensor turned(const Tensor& t) {
  return alias(t, Dims{t.size(1), t.size(0)}, Dims{t.stride(1), t.stride(0)});
}

// The sum over all matrices of g @ b^H. Of few columns in all of them one product is made, which
// reads both turned; else their products are added afterwards.
static Tensor summed_outer(const Tensor& g, const Tensor& b) {
  const int64_t m = g.size(-2), n = g.size(-1), k = b.size(-2);
  if (g.numel() == 0 || g.numel() / m != b.numel() / std::max<int64_t>(1, k) ||
      n * (m + k) >= m * k)
    return matmul(g, adjoint(b));
  const int64_t count = g.numel() / (m * n);
  const auto columns = [&](const Tensor& t, int64_t rows) {  // of all matrices, in a row
    return reshape(transpose(reshape(t, {count, rows, n}), 0, 1), {rows, count * n});
  };
  return matmul(columns(g, m), adjoint(columns(b, k)));
}

// The gradient of the right factor of rb dimensions, before it is summed to its sizes.
static Tensor right_grad(Tensor a, const Tensor& g, int rb) {
  Tensor grad = rb == 1 ? unsqueeze(g, -1) : g;
  if (a.ndim() == 1) {
    a = unsqueeze(a, 0);
    grad = unsqueeze(grad, -2);
  }
  if (rb <= 2 && a.ndim() > 2) {  // one product instead of a batch of them and a sum
    const int64_t k = a.size(-1), n = grad.size(-1);
    const int64_t rows = grad.numel() / std::max<int64_t>(1, n);
    if (rows * k == a.numel() && n > 0) {
      a = reshape(a, {rows, k});
      grad = reshape(grad, {rows, n});
    }
  }
  Tensor result = matmul(adjoint(a), grad);
  return rb == 1 ? squeeze(result, Dims{-1}) : result;
}

void product_grads(Vjp& c, const Tensor& g, int first) {
  if (c.needs(first)) {
    const int ra = c.sizes(first).size();
    Tensor b = c.in(first + 1);
    if (plain_matrices(g, b, ra)) {
      Tensor out = c.empty_like_input(first, g.dtype());
      product_into(out, g, b, one, zero, true);
      c.set(first, std::move(out));
    } else {
      Tensor grad = g;
      if (b.ndim() == 1) {
        b = unsqueeze(b, 1);
        grad = unsqueeze(grad, -1);
      }
      if (ra == 1) grad = unsqueeze(grad, -2);
      c.set(first, ra == 2 && b.ndim() > 2 ? summed_outer(grad, b) : matmul(grad, adjoint(b)));
    }
  }
  if (c.needs(first + 1)) {
    const int rb = c.sizes(first + 1).size();
    Tensor a = c.in(first);
    if (plain_matrices(g, a, rb)) {
      Tensor out = c.empty_like_input(first + 1, g.dtype());
      product_into(out, turned(a), g, one, zero);
      return c.set(first + 1, std::move(out));
    }
    c.set(first + 1, right_grad(std::move(a), g, rb));
  }
}

namespace {

void product_cpu(const Call& c, Tensors& outs) {
  product_into(outs[0], c.in[0], c.in[1], one, zero);
}
Tensor product_quick(const Call& c) {
  return product_of_matrices(c.in[0], c.in[1], false, Tensor());
}
void product_vjp(Vjp& c) { product_grads(c, c.grad(), 0); }

// The gradient of a factor that other products read, too (a recurrent network's weight): of a
// matrix it is added in the product itself.
void product_accumulate(Vjp& c, const Tensor& into) {
  const Tensor& g = c.grad();
  if (c.node().accumulated_input() == 0) {
    const Tensor column = reshape(g, {g.numel(), 1}), row = unsqueeze(conj(c.in(1)), 0);
    if (into.ndim() == 2) return product_into(into, column, row, one, one);
    return copy_into(into, add(into, view(matmul(column, row), into.sizes())));
  }
  const Tensor a = c.in(0);
  if (into.ndim() != 2) {
    const Tensor own = sum_to(right_grad(a, g, into.ndim()), into.sizes());
    return copy_into(into, add(into, own));
  }
  const int64_t k = into.size(0), n = into.size(1), rows = k ? a.numel() / k : 0;
  if (rows == 0 || n == 0) return;
  product_into(into, transpose(conj(reshape(a, {rows, k})), 0, 1), reshape(g, {rows, n}), one, one);
}
// A few rows are collected with those of other calls, as linear() does.
bool product_stage(Vjp& c, Staged& into) {
  const auto factor = static_cast<int>(c.node().accumulated_input());
  const Dims& sizes = c.sizes(factor);
  const Tensor& g = c.grad();
  if (g.is_complex()) return false;
  if (factor == 0) return into.append(g, g.numel(), c.in(1), sizes.back());
  return sizes.size() == 2 && into.append(c.in(0), sizes[0], g, sizes[1]);
}

void require_ranks(const Call& c, int first, int a, int b) {
  require(c.in[first].ndim() == a && c.in[first + 1].ndim() == b, c.name(), ": operands must have ",
          a, " and ", b, " dimensions; got ", c.in[first], " and ", c.in[first + 1],
          "; matmul() takes others");
}
void require_batches(const Call& c, int first) {
  require_ranks(c, first, 3, 3);
  require(c.in[first].size(0) == c.in[first + 1].size(0), c.name(),
          ": batch sizes must be equal; got ", c.in[first], " and ", c.in[first + 1]);
}

template <int ra, int rb> void product_shape(const Call& c, OutSpecs& out) {
  if constexpr (ra == 3)
    require_batches(c, 0);
  else if constexpr (ra > 0)
    require_ranks(c, 0, ra, rb);
  out.add(c.in[0].dtype(), product_sizes(c.in[0], c.in[1], c.name()));
}

constexpr Saves keep_other = {.when = {in(1), in(0)}};

constexpr OpDef matmul_op = general({
    .signature = "matmul(Tensor input, Tensor other) -> Tensor",
    .doc = R"(Matrix product of two tensors; leading dimensions are batches and broadcast.

Two vectors give their dot product, a matrix and a vector a vector; of more dimensions the last two
are matrices.

Args:
    input: the left operand.
    other: the right operand; input.shape[-1] must equal other.shape[-2] (a vector's only size).

Returns:
    The product, with the broadcast batch dimensions first.

>>> clew.matmul(clew.tensor([[1., 2.], [3., 4.]]), clew.tensor([1., 1.]))
tensor([3., 7.])
)",
    .shape = product_shape<0, 0>,
    .cpu = product_cpu,
    .quick = product_quick,
    .saves = keep_other,
    .vjp = product_vjp,
    .batch = batch_matmul,
    .accumulate = product_accumulate,
    .accumulates = matrix_factor,
    .accumulates_part = false,
    .stage = product_stage,
    .autocast = Autocast::lower,
    .is_product = true,
    .flops = "2 * numel(result) * input[-1]",
    .backward_flops = "wanted(input, other) * flops",
});

constexpr OpDef mm_op = general({
    .signature = "mm(Tensor input, Tensor mat2) -> Tensor",
    .doc = R"(Matrix product of two matrices.

Args:
    input: a matrix (n, m).
    mat2: a matrix (m, p).

Returns:
    The matrix (n, p).

>>> clew.mm(clew.tensor([[1., 2.]]), clew.tensor([[3.], [4.]]))
tensor([[11.]])
)",
    .shape = product_shape<2, 2>,
    .cpu = product_cpu,
    .quick = product_quick,
    .saves = keep_other,
    .vjp = product_vjp,
    .batch = batch_matmul,
    .accumulate = product_accumulate,
    .accumulates = 1,
    .accumulates_part = false,
    .stage = product_stage,
    .autocast = Autocast::lower,
    .is_product = true,
    .flops = "2 * numel(result) * input[-1]",
    .backward_flops = "wanted(input, mat2) * flops",
});

constexpr OpDef bmm_op = general({
    .signature = "bmm(Tensor input, Tensor mat2) -> Tensor",
    .doc = R"(Matrix products of two batches of matrices, pair by pair.

Args:
    input: matrices (b, n, m).
    mat2: matrices (b, m, p).

Returns:
    The matrices (b, n, p).

>>> clew.bmm(clew.ones(2, 1, 3), clew.ones(2, 3, 1)).flatten()
tensor([3., 3.])
)",
    .shape = product_shape<3, 3>,
    .cpu = product_cpu,
    .saves = keep_other,
    .vjp = product_vjp,
    .batch = batch_matmul,
    .autocast = Autocast::lower,
    .is_product = true,
    .flops = "2 * numel(result) * input[-1]",
    .backward_flops = "wanted(input, mat2) * flops",
});

constexpr OpDef mv_op = general({
    .signature = "mv(Tensor input, Tensor vec) -> Tensor",
    .doc = R"(Product of a matrix and a vector.

Args:
    input: a matrix (n, m).
    vec: a vector (m).

Returns:
    The vector (n).

>>> clew.mv(clew.tensor([[1., 2.], [3., 4.]]), clew.tensor([1., 0.]))
tensor([1., 3.])
)",
    .shape = product_shape<2, 1>,
    .cpu = product_cpu,
    .saves = keep_other,
    .vjp = product_vjp,
    .batch = batch_matmul,
    .accumulate = product_accumulate,
    .accumulates = matrix_factor,
    .accumulates_part = false,
    .stage = product_stage,
    .is_product = true,
    .flops = "2 * numel(result) * input[-1]",
    .backward_flops = "wanted(input, vec) * flops",
});

constexpr OpDef dot_op = general({
    .signature = "dot(Tensor input, Tensor tensor) -> Tensor",
    .doc = R"(Sum of the products of two vectors' elements.

Args:
    input: a vector.
    tensor: a vector of the same length.

Returns:
    A 0-d tensor.

>>> clew.dot(clew.tensor([1, 2]), clew.tensor([3, 4]))
tensor(11)
)",
    .shape = product_shape<1, 1>,
    .cpu = product_cpu,
    .saves = keep_other,
    .vjp = product_vjp,
    .batch = batch_matmul,
    .is_product = true,
    .flops = "2 * numel(result) * input[-1]",
    .backward_flops = "wanted(input, tensor) * flops",
});

// beta * input + alpha * a @ b, input broadcast to the product.
template <int ra, int rb> void added_shape(const Call& c, OutSpecs& out) {
  const Tensor& input = c.in[0];
  if constexpr (ra == 3)
    require_batches(c, 1);
  else
    require_ranks(c, 1, ra, rb);
  Dims sizes = product_sizes(c.in[1], c.in[2], c.name());
  require(input.dtype() == c.in[1].dtype(), c.name(), ": input must have the operands' dtype; got ",
          input, " and ", c.in[1]);
  require(expandable(input.sizes(), sizes), c.name(),
          ": input must broadcast to the product's shape ", sizes, "; got ", input);
  const auto& a = c.as<BetaAlpha>();
  require(is_complex(input.dtype()) || !(a.beta.is_complex() || a.alpha.is_complex()), c.name(),
          ": beta and alpha must be real for real operands; got ", input);
  out.add(input.dtype(), std::move(sizes));
}

void added_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<BetaAlpha>();
  if (a.beta.equals(1) && c.in[2].ndim() > 1 && bias_fits(c.in[0], outs[0]))
    return product_into(outs[0], c.in[1], c.in[2], a.alpha, zero, false, c.in[0]);
  if (!a.beta.equals(0)) copy_into(outs[0], c.in[0]);
  product_into(outs[0], c.in[1], c.in[2], a.alpha, a.beta);
}

void added_vjp(Vjp& c) {
  const auto& a = c.as<BetaAlpha>();
  if (c.needs(0)) c.set(0, scaled(c.grad(), conj_scalar(a.beta)));
  if (c.needs(1) || c.needs(2)) product_grads(c, scaled(c.grad(), conj_scalar(a.alpha)), 1);
}

constexpr Saves keep_factors = {.when = {0, in(2), in(1)}};

constexpr OpDef addmm_op = general({
    .signature =
        "addmm(Tensor input, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .doc = R"(A matrix plus a product of two matrices: beta * input + alpha * (mat1 @ mat2).

Args:
    input: broadcasts to (n, p); ignored, NaN included, when beta is 0.
    mat1: a matrix (n, m).
    mat2: a matrix (m, p).
    beta: factor of input.
    alpha: factor of the product.

Returns:
    The matrix (n, p).

>>> clew.addmm(clew.ones(1), clew.tensor([[2.]]), clew.tensor([[3.]]))
tensor([[7.]])
)",
    .shape = added_shape<2, 2>,
    .cpu = added_cpu,
    .saves = keep_factors,
    .vjp = added_vjp,
    .attrs = &attr_info<BetaAlpha>,
    .inplace = true,
    .autocast = Autocast::lower,
    .out_memory = OutMemory::aligned,
    .is_product = true,
    .flops = "2 * numel(result) * mat1[-1]",
    .backward_flops = "wanted(mat1, mat2) * flops",
});

constexpr OpDef addmv_op = general({
    .signature =
        "addmv(Tensor input, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .doc = R"(A vector plus a product of a matrix and a vector: beta * input + alpha * (mat @ vec).

Args:
    input: broadcasts to (n); ignored, NaN included, when beta is 0.
    mat: a matrix (n, m).
    vec: a vector (m).
    beta: factor of input.
    alpha: factor of the product.

Returns:
    The vector (n).

>>> clew.addmv(clew.ones(1), clew.tensor([[2.]]), clew.tensor([3.]))
tensor([7.])
)",
    .shape = added_shape<2, 1>,
    .cpu = added_cpu,
    .saves = keep_factors,
    .vjp = added_vjp,
    .attrs = &attr_info<BetaAlpha>,
    .inplace = true,
    .is_product = true,
    .flops = "2 * numel(result) * mat[-1]",
    .backward_flops = "wanted(mat, vec) * flops",
});

constexpr OpDef baddbmm_op = general({
    .signature = "baddbmm(Tensor input, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar "
                 "alpha=1) -> Tensor",
    .doc =
        R"(Matrices plus products of batches: beta * input + alpha * (batch1 @ batch2).

Args:
    input: broadcasts to (b, n, p); ignored, NaN included, when beta is 0.
    batch1: matrices (b, n, m).
    batch2: matrices (b, m, p).
    beta: factor of input.
    alpha: factor of the products.

Returns:
    The matrices (b, n, p).

>>> clew.baddbmm(clew.ones(1), clew.ones(2, 1, 3), clew.ones(2, 3, 1)).flatten()
tensor([4., 4.])
)",
    .shape = added_shape<3, 3>,
    .cpu = added_cpu,
    .saves = keep_factors,
    .vjp = added_vjp,
    .attrs = &attr_info<BetaAlpha>,
    .inplace = true,
    .autocast = Autocast::lower,
    .out_memory = OutMemory::aligned,
    .is_product = true,
    .flops = "2 * numel(result) * batch1[-1]",
    .backward_flops = "wanted(batch1, batch2) * flops",
});

constexpr const OpDef* matmul_list[] = {&matmul_op, &mm_op,    &bmm_op,   &mv_op,
                                        &dot_op,    &addmm_op, &addmv_op, &baddbmm_op};

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) { return apply(matmul_op, {a, b}); }
Tensor mm(const Tensor& a, const Tensor& b) { return apply(mm_op, {a, b}); }
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha) {
  return apply(addmm_op, {input, a, b}, BetaAlpha{beta, alpha});
}
Tensor addmv(const Tensor& input, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  return apply(addmv_op, {input, mat, vec}, BetaAlpha{beta, alpha});
}
Tensor baddbmm(const Tensor& input, const Tensor& a, const Tensor& b, const Scalar& beta,
               const Scalar& alpha) {
  return apply(baddbmm_op, {input, a, b}, BetaAlpha{beta, alpha});
}

extern const OpList matmul_ops;
const OpList matmul_ops = op_list(matmul_list);

}  // namespace clew
