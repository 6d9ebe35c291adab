// Factorizations, systems and decompositions of batches of matrices; src/clew/linalg checks what
// the public functions promise and has the gradients.
// May include: ops, graph, tensor, kernels.
// Invariant: an operation that may call LAPACK runs only after lapack::load().
#include "ops/linalg/matrices.h"

#include <algorithm>

#include "kernels/linalg/exponential.h"

namespace clew {

namespace {

constexpr OpDef lu_factor_op = general({
    .signature = "_lu_factor(Tensor A) -> (Tensor LU, Tensor pivots, Tensor info)",
    .doc = "linalg.lu_factor_ex.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor& a = c.in[0];
          check_matrix(c, a);
          add_columns(outs, a.dtype(), a.sizes());
          outs.add(DType::Int32, with_batch(a, {std::min(a.size(-1), a.size(-2))}));
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          each_matrix(a, cube(a.m, a.n, std::min(a.m, a.n)), [&]<class T>(Range r) {
            kernels::lu_factor(r, a.of<T>(), outs[0].data<T>(), outs[1].data<int32_t>(),
                               outs[2].data<int32_t>());
          });
        },
    .no_vjp = written_in_python,
    .offer = Offer::function,
});

constexpr OpDef solve_op = general({
    .signature = "_solve(Tensor A, Tensor B) -> (Tensor result, Tensor info)",
    .doc = "linalg.solve_ex.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &a = c.in[0], &b = c.in[1];
          check_matrix(c, a, true);
          check_beside(c, a, b, 2, a.dtype());
          require(b.size(-2) == a.size(-1), c.name(), ": the rows of A and B differ; got ", a,
                  " and ", b);
          outs.add(a.dtype(), b.sizes());
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          const Tensor b = contiguous(c.in[1]);
          const int64_t k = b.size(-1);
          with_type(b, [&]<class T>() {
            over_batch(a.count, cube(a.n, a.n, a.n / 3 + k), [&](Range r) {
              kernels::solve(r, a.of<T>(), b.data<const T>(), k, outs[0].data<T>(),
                             outs[1].data<int32_t>());
            });
          });
        },
    .no_vjp = written_in_python,
    .offer = Offer::function,
});

constexpr OpDef inverse_op = general({
    .signature = "_inverse(Tensor A) -> (Tensor inverse, Tensor info)",
    .doc = "linalg.inv_ex.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          check_matrix(c, c.in[0], true);
          add_columns(outs, c.in[0].dtype(), c.in[0].sizes());
          add_info(outs, c.in[0]);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          each_matrix(a, cube(a.n, a.n, a.n), [&]<class T>(Range r) {
            kernels::inverse(r, a.of<T>(), outs[0].data<T>(), outs[1].data<int32_t>());
          });
        },
    .no_vjp = written_in_python,
    .offer = Offer::function,
});

constexpr OpDef det_op = general({
    .signature = "_det(Tensor A) -> Tensor",
    .doc = "linalg.det.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          check_matrix(c, c.in[0], true);
          outs.add(c.in[0].dtype(), with_batch(c.in[0], {}));
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          each_matrix(a, cube(a.n, a.n, a.n) / 3, [&]<class T>(Range r) {
            kernels::determinant(r, a.of<T>(), outs[0].data<T>());
          });
        },
    .no_vjp = written_in_python,
    .offer = Offer::function,
});

constexpr OpDef slogdet_op = general({
    .signature = "_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    .doc = "linalg.slogdet.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          check_matrix(c, c.in[0], true);
          outs.add(c.in[0].dtype(), with_batch(c.in[0], {}));
          outs.add(real_of(c.in[0].dtype()), with_batch(c.in[0], {}));
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          each_matrix(a, cube(a.n, a.n, a.n) / 3, [&]<class T>(Range r) {
            kernels::log_determinant(r, a.of<T>(), outs[0].data<T>(),
                                     outs[1].data<kernels::lapack::Real<T>>());
          });
        },
    .no_vjp = written_in_python,
    .offer = Offer::function,
});

constexpr OpDef exponential_op = general({
    .signature = "_matrix_exp(Tensor A) -> Tensor",
    .doc = "linalg.matrix_exp.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          check_matrix(c, c.in[0], true);
          outs.add(c.in[0].dtype(), c.in[0].sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = batch_of(c.in[0]);
          const double cost = 8 * cube(a.n, a.n, a.n);
          each_matrix(a, cost, [&]<class T>(Range r) {
            kernels::matrix_exp(r, a.of<T>(), outs[0].data<T>());
            if (cost > for_threads) kernels::trim_exponential_scratch();
          });
        },
    .no_vjp = written_in_python,
    .offer = Offer::function,
});

struct AdjointAttrs {
  bool adjoint = false;
  static constexpr auto members() { return std::tuple(&AdjointAttrs::adjoint); }
};
void check_pivots(const Tensor& pivots, int64_t rows, std::string_view what) {
  for (int64_t i = 0; i < pivots.numel(); ++i) {
    const int64_t p = pivots.data<const int32_t>()[i];
    require(p >= 1 && p <= rows, what, ": Pivots must lie between 1 and LU.size(-2) = ", rows,
            "; got ", p, ". Are they the result of lu_factor?");
  }
}
constexpr OpDef lu_solve_op = general({
    .signature = "_lu_solve(Tensor LU, Tensor pivots, Tensor B, bool adjoint) -> Tensor",
    .doc = "linalg.lu_solve.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &a = c.in[0], &pivots = c.in[1], &b = c.in[2];
          check_matrix(c, a, true);
          check_beside(c, a, pivots, 1, DType::Int32);
          check_beside(c, a, b, 2, a.dtype());
          require(pivots.size(-1) == a.size(-1) && b.size(-2) == a.size(-1), c.name(),
                  ": the rows of LU, pivots and B differ; got ", a, ", ", pivots, " and ", b);
          outs.add(a.dtype(), b.sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          const Tensor pivots = own_pivots(c.in[1]);
          check_pivots(pivots, a.n, "linalg.lu_solve");
          copy_into(outs[0], c.in[2]);
          const int64_t k = outs[0].size(-1);
          each_matrix(a, cube(a.n, a.n, k), [&]<class T>(Range r) {
            kernels::lu_solve(r, a.of<T>(), pivots.data<const int32_t>(),
                              c.as<AdjointAttrs>().adjoint, k, outs[0].data<T>());
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<AdjointAttrs>,
    .offer = Offer::function,
});

struct UpperAttrs {
  bool upper = false;
  static constexpr auto members() { return std::tuple(&UpperAttrs::upper); }
};
constexpr OpDef cholesky_op = general({
    .signature = "_cholesky(Tensor A, bool upper) -> (Tensor factor, Tensor info)",
    .doc = "linalg.cholesky_ex.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          check_matrix(c, c.in[0], true);
          outs.add(c.in[0].dtype(), c.in[0].sizes());
          add_info(outs, c.in[0]);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          each_matrix(a, cube(a.n, a.n, a.n) / 6, [&]<class T>(Range r) {
            kernels::cholesky(r, a.of<T>(), c.as<UpperAttrs>().upper, outs[0].data<T>(),
                              outs[1].data<int32_t>());
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<UpperAttrs>,
    .offer = Offer::function,
});

constexpr OpDef cholesky_solve_op = general({
    .signature = "_cholesky_solve(Tensor B, Tensor L, bool upper) -> Tensor",
    .doc = "cholesky_solve.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &b = c.in[0], &a = c.in[1];
          check_matrix(c, a, true);
          check_beside(c, a, b, 2, a.dtype());
          require(b.size(-2) == a.size(-1), c.name(), ": the rows of B and L differ; got ", b,
                  " and ", a);
          outs.add(a.dtype(), b.sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[1]);
          copy_into(outs[0], c.in[0]);
          const int64_t k = outs[0].size(-1);
          each_matrix(a, cube(a.n, a.n, k), [&]<class T>(Range r) {
            kernels::cholesky_solve(r, a.of<T>(), c.as<UpperAttrs>().upper, k, outs[0].data<T>());
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<UpperAttrs>,
    .offer = Offer::function,
});

struct TriangleAttrs {
  bool upper = false, unitriangular = false;
  static constexpr auto members() {
    return std::tuple(&TriangleAttrs::upper, &TriangleAttrs::unitriangular);
  }
};
constexpr OpDef triangular_op = general({
    .signature = "_solve_triangular(Tensor A, Tensor B, bool upper, bool unitriangular) -> Tensor",
    .doc = "linalg.solve_triangular.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &a = c.in[0], &b = c.in[1];
          check_matrix(c, a, true);
          check_beside(c, a, b, 2, a.dtype());
          require(b.size(-2) == a.size(-1), c.name(), ": the rows of A and B differ; got ", a,
                  " and ", b);
          outs.add(a.dtype(), b.sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          copy_into(outs[0], c.in[1]);
          const int64_t k = outs[0].size(-1);
          const auto& attrs = c.as<TriangleAttrs>();
          each_matrix(a, cube(a.n, a.n, k) / 2, [&]<class T>(Range r) {
            kernels::triangular(r, a.of<T>(), attrs.upper, attrs.unitriangular, k,
                                outs[0].data<T>());
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<TriangleAttrs>,
    .offer = Offer::function,
});

struct RowsAttrs {
  int64_t rows = 0;
  static constexpr auto members() { return std::tuple(&RowsAttrs::rows); }
};
// order becomes the rows in which those of A stand in P^T A.
void exchange(const int32_t* pivots, int64_t k, int64_t rows, int64_t* order) {
  for (int64_t i = 0; i < rows; ++i) order[i] = i;
  for (int64_t i = 0; i < k; ++i) std::swap(order[i], order[pivots[i] - 1]);
}
constexpr OpDef permutation_op = general({
    .signature = "_lu_permutation(Tensor pivots, int rows) -> Tensor",
    .doc = "The row of A that stands in each row of P^T A = L U.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor& pivots = c.in[0];
          const int64_t rows = c.as<RowsAttrs>().rows;
          require(pivots.ndim() >= 1 && pivots.dtype() == DType::Int32 && rows >= pivots.size(-1),
                  c.name(), ": expected int32 pivots, no more than rows; got ", pivots, " and ",
                  rows);
          outs.add(DType::Int64, with_batch(pivots, {rows}, 1));
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor pivots = own_pivots(c.in[0]);
          const int64_t rows = c.as<RowsAttrs>().rows, k = pivots.size(-1);
          check_pivots(pivots, rows, "linalg.lu");
          for (int64_t i = 0; i < count_of(pivots, 1); ++i)
            exchange(pivots.data<const int32_t>() + i * k, k, rows,
                     outs[0].data<int64_t>() + i * rows);
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<RowsAttrs>,
    .offer = Offer::function,
});

constexpr OpDef unpack_op = general({
    .signature = "_lu_unpack(Tensor LU, Tensor pivots) -> (Tensor P, Tensor L, Tensor U)",
    .doc = "lu_unpack.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &a = c.in[0], &pivots = c.in[1];
          check_matrix(c, a);
          check_beside(c, a, pivots, 1, DType::Int32);
          const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
          require(pivots.size(-1) == k, c.name(), ": expected ", k, " pivots; got ", pivots);
          outs.add(a.dtype(), with_batch(a, {m, m}));
          outs.add(a.dtype(), with_batch(a, {m, k}));
          outs.add(a.dtype(), with_batch(a, {k, n}));
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const Tensor a = contiguous(c.in[0]);
          const Tensor pivots = own_pivots(c.in[1]);
          const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
          check_pivots(pivots, m, "lu_unpack");
          const int64_t count = count_of(a, 2);
          const Tensor orders = empty({count, m}, DType::Int64);
          with_type(a, [&]<class T>() {
            over_batch(count, cube(m, m + 2 * n, 1), [&](Range r) {
              for (int64_t i = r.begin; i < r.end; ++i) {
                const T* lu = a.data<const T>() + i * m * n;
                T *p = outs[0].data<T>() + i * m * m, *l = outs[1].data<T>() + i * m * k,
                  *u = outs[2].data<T>() + i * k * n;
                int64_t* order = orders.data<int64_t>() + i * m;
                exchange(pivots.data<const int32_t>() + i * k, k, m, order);
                std::fill_n(p, m * m, T(0));
                for (int64_t j = 0; j < m; ++j) p[order[j] * m + j] = T(1);
                for (int64_t x = 0; x < m; ++x, lu += n, l += k) {
                  const int64_t below = std::min(x, k);
                  std::copy_n(lu, below, l);
                  std::fill_n(l + below, k - below, T(0));
                  if (x >= k) continue;
                  l[x] = T(1);
                  std::fill_n(u, x, T(0));
                  std::copy_n(lu + x, n - x, u + x);
                  u += n;
                }
              }
            });
          });
        },
    .no_vjp = written_in_python,
    .offer = Offer::function,
});

constexpr const OpDef* matrices_list[] = {
    &lu_factor_op, &solve_op,    &inverse_op,        &det_op,        &exponential_op, &slogdet_op,
    &lu_solve_op,  &cholesky_op, &cholesky_solve_op, &triangular_op, &permutation_op, &unpack_op};

}  // namespace

extern const OpList matrices_ops;
const OpList matrices_ops = op_list(matrices_list);

}  // namespace clew
