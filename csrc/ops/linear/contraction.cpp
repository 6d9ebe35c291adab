// Linear maps and sums over pairs of dimensions: linear, bilinear, tensordot, outer, kron ...
// May include: ops, kernels/matmul/gemm.h.
// Invariant: everything but linear is written with other ops and has no kernel of its own.
#include "kernels/matmul/gemm.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/comparison.h"
#include "ops/calls/matmul.h"
#include "ops/calls/product.h"
#include "ops/calls/reduction.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"

namespace clew {

namespace {

void linear_shape(const Call& c, OutSpecs& out) {
  const Tensor &x = c.in[0], &w = c.in[1], &bias = c.in[2];
  require(w.ndim() == 1 || w.ndim() == 2, "linear: weight must have 1 or 2 dimensions; got ", w);
  require(x.ndim() >= 1 && x.size(-1) == w.size(-1),
          "linear: input.shape[-1] must equal weight.shape[-1]; got ", x, " and ", w);
  require_multipliable(x, w, "linear");
  Dims sizes(x.sizes().data(), x.ndim() - 1);
  if (w.ndim() == 2) sizes.push_back(w.size(0));
  if (bias) {
    require(bias.dtype() == x.dtype(), "linear: bias must have the input's dtype; got ", bias,
            " and ", x);
    require(expandable(bias.sizes(), sizes), "linear: bias must broadcast to the result's shape ",
            sizes, "; got ", bias);
  }
  out.add(x.dtype(), std::move(sizes));
}

void linear_cpu(const Call& c, Tensors& outs) {
  const Tensor& bias = c.in[2];
  const bool in_kernel = bias && c.in[1].ndim() == 2 && bias_fits(bias, outs[0]);
  if (bias && !in_kernel) copy_into(outs[0], bias);
  product_into(outs[0], c.in[0], c.in[1], Scalar(1), Scalar(bias && !in_kernel ? 1 : 0), true,
               in_kernel ? bias : Tensor());
}

Tensor linear_quick(const Call& c) { return product_of_matrices(c.in[0], c.in[1], true, c.in[2]); }
void linear_vjp(Vjp& c) {
  const Tensor& g = c.grad();
  if (c.needs(0)) {
    Tensor w = c.in(1);
    if (w.ndim() == 1) {
      c.set(0, matmul(unsqueeze(g, -1), unsqueeze(conj(w), 0)));
    } else if (plain_matrices(g, w, c.sizes(0).size())) {
      Tensor out = c.empty_like_input(0, g.dtype());
      product_into(out, g, w, Scalar(1), Scalar(0));
      c.set(0, std::move(out));
    } else {
      c.set(0, matmul(g, conj(w)));
    }
  }
  if (c.needs(1)) {
    const Dims& ws = c.sizes(1);
    const int64_t k = ws.back(), n = ws.size() == 2 ? ws[0] : 1;
    Tensor x = c.in(0);
    int64_t rows = 1;
    for (int d = 0; d + 1 < x.ndim(); ++d) rows *= x.size(d);
    Tensor gw = mm(adjoint(reshape(g, {rows, n})), reshape(x, {rows, k}));
    // g^H x is the conjugate of the wanted sum of g times conj(x).
    gw = conj(gw);
    c.set(1, ws.size() == 2 ? std::move(gw) : reshape(gw, ws));
  }
  if (c.needs(2)) c.set(2, g);
}

// weight.grad += g^T x, in the product itself.
void linear_accumulate(Vjp& c, const Tensor& into) {
  const Tensor& g = c.grad();
  Tensor x = c.in(0);
  const int64_t k = into.size(-1), n = into.ndim() == 2 ? into.size(0) : 1;
  const int64_t rows = k ? x.numel() / k : 0;
  if (rows == 0) return;
  Tensor left = transpose(reshape(g, {rows, n}), 0, 1);
  Tensor right = conj(reshape(x, {rows, k}));
  product_into(reshape(into, {n, k}), left, right, Scalar(1), Scalar(1));
}

// A few rows are collected with those of other calls: their product alone would read and write all
// of the weight's gradient.
bool linear_stage(Vjp& c, Staged& into) {
  const Dims& sizes = c.sizes(1);
  const Tensor& g = c.grad();
  if (sizes.size() != 2 || g.is_complex()) return false;
  return into.append(g, sizes[0], c.in(0), sizes[1]);
}

constexpr OpDef linear_op = general({
    .signature = "nn.functional.linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    .doc = R"(Applies a linear map to the last dimension: input @ weight^T + bias.

Args:
    input: any leading dimensions, then in_features.
    weight: (out_features, in_features), or (in_features) for one output without a dimension.
    bias: (out_features).

Returns:
    The input's leading dimensions, then out_features.

>>> clew.nn.functional.linear(clew.ones(2), clew.tensor([[1., 2.]]), clew.tensor([5.]))
tensor([8.])
)",
    .shape = linear_shape,
    .cpu = linear_cpu,
    .quick = linear_quick,
    .saves = {.when = {in(1), in(0)}},
    .vjp = linear_vjp,
    .batch = batch_linear,
    .accumulate = linear_accumulate,
    .accumulates = 1,
    .accumulates_part = false,
    .stage = linear_stage,
    .autocast = Autocast::lower,
    .offer = Offer::function,
    .is_product = true,
    .flops = "2 * numel(result) * weight[-1]",
    .backward_flops = "wanted(input, weight) * flops",
});

// --- Written with other ops ----------------------------------------------------------------------

void bilinear_run(const Call& c, Tensors& outs) {
  const Tensor &x1 = c.in[0], &x2 = c.in[1], &w = c.in[2], &bias = c.in[3];
  require(w.ndim() == 3, "bilinear: weight must have 3 dimensions; got ", w);
  require(x1.ndim() >= 1 && x1.ndim() == x2.ndim(),
          "bilinear: both inputs must have the same number of dimensions; got ", x1, " and ", x2);
  for (int d = 0; d + 1 < x1.ndim(); ++d) {
    require(x1.size(d) == x2.size(d), "bilinear: the inputs' leading sizes must be equal; got ", x1,
            " and ", x2);
  }
  require(x1.size(-1) == w.size(1) && x2.size(-1) == w.size(2),
          "bilinear: the inputs' last sizes must be weight.shape[1] and weight.shape[2]; got ", x1,
          ", ", x2, " and ", w);
  const int64_t o = w.size(0), i = w.size(1), j = w.size(2);
  Dims lead(x1.sizes().data(), x1.ndim() - 1);
  Dims split = lead;
  split.push_back(o);
  split.push_back(j);
  Tensor rows = matmul(x1, reshape(permute(w, {1, 0, 2}), {i, o * j}));
  Tensor y = squeeze(matmul(reshape(rows, split), unsqueeze(x2, -1)), Dims{-1});
  outs.push_back(bias ? y + bias : y);
}
constexpr OpDef bilinear_op = composite({
    .signature = "nn.functional.bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? "
                 "bias=None) -> Tensor",
    .doc = R"(Applies a bilinear map to two inputs: y[o] = input1^T weight[o] input2 + bias[o].

Args:
    input1: any leading dimensions, then in1_features.
    input2: the same leading dimensions, then in2_features.
    weight: (out_features, in1_features, in2_features).
    bias: (out_features).

Returns:
    The leading dimensions, then out_features.

>>> clew.nn.functional.bilinear(clew.ones(1, 2), clew.ones(1, 3), clew.ones(1, 2, 3))
tensor([[6.]])
)",
    .run = bilinear_run,
    .autocast = Autocast::as_given,
    .offer = Offer::function,
});

void require_vectors(const Call& c, const Tensor& a, const Tensor& b) {
  require(a.ndim() == 1 && b.ndim() == 1, c.name(), ": both operands must have 1 dimension; got ",
          a, " and ", b);
}

void outer_run(const Call& c, Tensors& outs) {
  require_vectors(c, c.in[0], c.in[1]);
  outs.push_back(unsqueeze(c.in[0], 1) * c.in[1]);
}
constexpr OpDef outer_op = composite({
    .signature = "outer(Tensor input, Tensor vec2) -> Tensor",
    .doc = R"(Outer product of two vectors: out[i, j] = input[i] * vec2[j].

Args:
    input: a vector (n).
    vec2: a vector (m).

Returns:
    The matrix (n, m).

>>> clew.outer(clew.tensor([1, 2]), clew.tensor([3, 4]))
tensor([[3, 4],
        [6, 8]])
)",
    .run = outer_run,
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::aligned,
    .flops = "numel(result)",
});
constexpr OpDef ger_op = also(outer_op, "ger(Tensor input, Tensor vec2) -> Tensor",
                              R"(Outer product of two vectors; another name of outer.

>>> clew.ger(clew.tensor([1, 2]), clew.tensor([3, 4]))
tensor([[3, 4],
        [6, 8]])
)");

void vdot_run(const Call& c, Tensors& outs) {
  require_vectors(c, c.in[0], c.in[1]);
  outs.push_back(matmul(conj(c.in[0]), c.in[1]));
}
constexpr OpDef vdot_op = composite({
    .signature = "vdot(Tensor input, Tensor other) -> Tensor",
    .doc = R"(Dot product of two vectors, the first one conjugated.

Args:
    input: a vector, conjugated when it is complex.
    other: a vector of the same length.

Returns:
    A 0-d tensor.

>>> clew.vdot(clew.tensor([1j]), clew.tensor([1j]))
tensor(1.+0.j)
)",
    .run = vdot_run,
    .autocast = Autocast::as_given,
    .is_product = true,
    .flops = "2 * numel(result) * input[-1]",
    .backward_flops = "wanted(input, other) * flops",
});

void inner_run(const Call& c, Tensors& outs) {
  const Tensor &a = c.in[0], &b = c.in[1];
  if (a.ndim() == 0 || b.ndim() == 0) {
    outs.push_back(a * b);
    return;
  }
  require(a.size(-1) == b.size(-1), "inner: last sizes must be equal; got ", a, " and ", b);
  outs.push_back(tensordot(a, b, {-1}, {-1}));
}
constexpr OpDef inner_op = composite({
    .signature = "inner(Tensor input, Tensor other) -> Tensor",
    .doc = R"(Sum of products over the last dimensions of two tensors.

Args:
    input: any leading dimensions, then n.
    other: any leading dimensions, then n.

Returns:
    The leading dimensions of input, then those of other; the plain product when one of them is 0-d.

>>> clew.inner(clew.tensor([1, 2]), clew.tensor([[3, 4], [5, 6]]))
tensor([11, 17])
)",
    .run = inner_run,
    .is_product = true,
    .flops = "2 * numel(result) * (input[-1] if input and other else 1)",
    .backward_flops = "wanted(input, other) * flops",
});

struct PairDims {
  Dims dims_input, dims_other;
  static constexpr auto members() {
    return std::tuple(&PairDims::dims_input, &PairDims::dims_other);
  }
};
void tensordot_run(const Call& c, Tensors& outs) {
  Tensor a = c.in[0], b = c.in[1];
  const auto& p = c.as<PairDims>();
  require(p.dims_input.size() == p.dims_other.size(),
          "tensordot: both dimension lists must be equally long; got ", p.dims_input, " and ",
          p.dims_other);
  auto arrange = [](const Tensor& t, const Dims& dims, Dims& gone, Dims& kept) {
    bool seen[max_dims] = {};
    for (int64_t d : dims) {
      const int at = wrap_dim(d, t.ndim(), "tensordot");
      require(!seen[at], "tensordot: dimension ", at, " is listed twice; got ", t);
      seen[at] = true;
      gone.push_back(at);
    }
    for (int d = 0; d < t.ndim(); ++d) {
      if (!seen[d]) kept.push_back(d);
    }
  };
  if (p.dims_input.empty() && a.ndim() == 0 && b.ndim() == 0) {
    outs.push_back(a * b);
    return;
  }
  Dims gone_a, kept_a, gone_b, kept_b;
  arrange(a, p.dims_input, gone_a, kept_a);
  arrange(b, p.dims_other, gone_b, kept_b);
  int64_t k = 1, m = 1, n = 1;
  Dims alone_a, alone_b;  // paired with a size of one, which stands for any size
  for (int i = 0; i < gone_a.size(); ++i) {
    const int64_t size_a = a.size(static_cast<int>(gone_a[i]));
    const int64_t size_b = b.size(static_cast<int>(gone_b[i]));
    require(size_a == size_b || size_a == 1 || size_b == 1,
            "tensordot: paired dimensions must have equal sizes; got ", a, " over ", gone_a,
            " and ", b, " over ", gone_b);
    if (size_a != size_b && size_b == 1) alone_a.push_back(gone_a[i]);
    if (size_a != size_b && size_a == 1) alone_b.push_back(gone_b[i]);
    k *= size_a == size_b ? size_a : 1;
  }
  if (!alone_a.empty()) a = sum(a, alone_a, true, a.dtype());
  if (!alone_b.empty()) b = sum(b, alone_b, true, b.dtype());
  Dims order_a = kept_a, order_b = gone_b, sizes;
  for (int64_t d : gone_a) order_a.push_back(d);
  for (int64_t d : kept_b) order_b.push_back(d);
  for (int64_t d : kept_a) sizes.push_back(a.size(static_cast<int>(d))), m *= sizes.back();
  for (int64_t d : kept_b) sizes.push_back(b.size(static_cast<int>(d))), n *= sizes.back();
  outs.push_back(reshape(
      mm(reshape(permute(a, order_a), {m, k}), reshape(permute(b, order_b), {k, n})), sizes));
}
constexpr OpDef tensordot_op = composite({
    .signature =
        "_tensordot(Tensor input, Tensor other, int[] dims_input, int[] dims_other) -> Tensor",
    .doc = R"(Sum of products over pairs of dimensions.

>>> clew._C.ops._tensordot(clew.ones(2, 3), clew.ones(3), [1], [0])
tensor([3., 3.])
)",
    .run = tensordot_run,
    .attrs = &attr_info<PairDims>,
    .offer = Offer::function,
});

void kron_run(const Call& c, Tensors& outs) {
  const Tensor &a = c.in[0], &b = c.in[1];
  const int dims = std::max(a.ndim(), b.ndim());
  Dims sa, sb, sizes;
  for (int d = 0; d < dims; ++d) {
    const int da = d - dims + a.ndim(), db = d - dims + b.ndim();
    const int64_t na = da >= 0 ? a.size(da) : 1, nb = db >= 0 ? b.size(db) : 1;
    sa.push_back(na), sa.push_back(1);
    sb.push_back(1), sb.push_back(nb);
    sizes.push_back(na * nb);
  }
  outs.push_back(reshape(reshape(a, sa) * reshape(b, sb), sizes));
}
constexpr OpDef kron_op = composite({
    .signature = "kron(Tensor input, Tensor other) -> Tensor",
    .doc =
        R"(Kronecker product: every element of input times the whole of other, laid out in blocks.

Args:
    input: any tensor.
    other: any tensor; the one with fewer dimensions gets leading ones.

Returns:
    A tensor whose sizes are the products of the operands' sizes.

>>> clew.kron(clew.tensor([1, 10]), clew.tensor([1, 2]))
tensor([ 1,  2, 10, 20])
)",
    .run = kron_run,
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::aligned,
});

void addr_run(const Call& c, Tensors& outs) {
  require_vectors(c, c.in[1], c.in[2]);
  const auto& p = c.as<BetaAlpha>();
  const Dims sizes{c.in[1].size(0), c.in[2].size(0)};
  require(expandable(c.in[0].sizes(), sizes), "addr: input must broadcast to the product's shape ",
          sizes, "; got ", c.in[0]);
  const DType common = promote(c.in[0].dtype(), promote(c.in[1].dtype(), c.in[2].dtype()));
  require(!is_integral(common) || (p.beta.is_integral() && p.alpha.is_integral()),
          "addr: beta and alpha must be integers for integer operands; got ", c.in[0]);
  for (const Scalar& factor : {p.beta, p.alpha})
    require(factor.kind != Scalar::Kind::Bool || common == DType::Bool,
            "addr: beta and alpha must be numbers for ", common,
            " tensors; bools are taken for bool results only");
  if (common == DType::Bool) {
    Tensor product = mul(unsqueeze(c.in[1], 1), unsqueeze(c.in[2], 0));
    if (p.alpha.to_double() == 0) product = logical_and(product, logical_not(product));
    bool kept = p.beta.to_double() != 0;
    return outs.push_back(kept ? logical_or(c.in[0], product) : product);
  }
  outs.push_back(addmm(to_dtype(c.in[0], common), unsqueeze(to_dtype(c.in[1], common), 1),
                       unsqueeze(to_dtype(c.in[2], common), 0), p.beta, p.alpha));
}
constexpr OpDef addr_op = composite({
    .signature =
        "addr(Tensor input, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .doc = R"(A matrix plus an outer product: beta * input + alpha * outer(vec1, vec2).

Args:
    input: broadcasts to (n, m); ignored, NaN included, when beta is 0.
    vec1: a vector (n).
    vec2: a vector (m).
    beta: factor of input.
    alpha: factor of the product.

Returns:
    The matrix (n, m), of the operands' promoted dtype.

>>> clew.addr(clew.ones(1, 2), clew.tensor([2.]), clew.tensor([3., 4.]))
tensor([[7., 9.]])
)",
    .run = addr_run,
    .attrs = &attr_info<BetaAlpha>,
    .inplace = true,
    .autocast = Autocast::as_given,
    .out_dtype = OutDtype::converted,
    .out_memory = OutMemory::aligned,
});

void addbmm_run(const Call& c, Tensors& outs) {
  const Tensor &a = c.in[1], &b = c.in[2];
  const auto& p = c.as<BetaAlpha>();
  require(a.ndim() == 3 && b.ndim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1),
          "addbmm: batches must be (b, n, m) and (b, m, p); got ", a, " and ", b);
  const int64_t count = a.size(0), n = a.size(1), m = a.size(2), q = b.size(2);
  Tensor left = reshape(permute(a, {1, 0, 2}), {n, count * m});
  outs.push_back(addmm(c.in[0], left, reshape(b, {count * m, q}), p.beta, p.alpha));
}
constexpr OpDef addbmm_op = composite({
    .signature = "addbmm(Tensor input, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar "
                 "alpha=1) -> Tensor",
    .doc =
        R"(A matrix plus a sum of products: beta * input + alpha * sum(batch1 @ batch2).

Args:
    input: broadcasts to (n, p); ignored, NaN included, when beta is 0.
    batch1: matrices (b, n, m).
    batch2: matrices (b, m, p).
    beta: factor of input.
    alpha: factor of the sum.

Returns:
    The matrix (n, p).

>>> clew.addbmm(clew.ones(1, 1), clew.ones(2, 1, 3), clew.ones(2, 3, 1))
tensor([[7.]])
)",
    .run = addbmm_run,
    .attrs = &attr_info<BetaAlpha>,
    .inplace = true,
    .autocast = Autocast::lower,
    .is_product = true,
    .flops = "2 * numel(batch1) * batch2[-1]",
    .backward_flops = "wanted(batch1, batch2) * flops",
});

constexpr const OpDef* contraction_list[] = {&linear_op, &bilinear_op, &outer_op,     &ger_op,
                                             &vdot_op,   &inner_op,    &tensordot_op, &kron_op,
                                             &addr_op,   &addbmm_op};

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return apply(linear_op, {input, weight, bias});
}
Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b) {
  Tensors outs;
  const PairDims attrs{dims_a, dims_b};
  const Tensor operands[] = {a, b};
  apply(tensordot_op, operands, &attrs, outs);
  return std::move(outs[0]);
}

extern const OpList contraction_ops;
const OpList contraction_ops = op_list(contraction_list);

Tensor addr(const Tensor& input, const Tensor& a, const Tensor& b, const Scalar& beta,
            const Scalar& alpha) {
  return apply(addr_op, {input, a, b}, BetaAlpha{beta, alpha});
}
Tensor addbmm(const Tensor& input, const Tensor& a, const Tensor& b, const Scalar& beta,
              const Scalar& alpha) {
  return apply(addbmm_op, {input, a, b}, BetaAlpha{beta, alpha});
}

}  // namespace clew
