// Orthogonal and eigenvalue decompositions of batches of matrices, and least squares;
// src/clew/linalg has the public functions and gradients.
// May include: ops, graph, tensor, kernels.
// Invariant: no kernel runs before LAPACK has been loaded; where none is, Python takes NumPy.
#include <algorithm>

#include "ops/calls/finite.h"
#include "ops/linalg/matrices.h"

namespace clew {

namespace {

int32_t* info_of(const Tensor& t) { return t.data<int32_t>(); }

struct ModeAttrs {
  bool complete = false, with_q = true;
  static constexpr auto members() { return std::tuple(&ModeAttrs::complete, &ModeAttrs::with_q); }
};
constexpr OpDef qr_op = general({
    .signature = "_qr(Tensor A, bool complete, bool with_q) -> (Tensor Q, Tensor R, Tensor info)",
    .doc = "linalg.qr.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor& a = c.in[0];
          check_matrix(c, a);
          const auto& mode = c.as<ModeAttrs>();
          const int64_t m = a.size(-2), n = a.size(-1), k = mode.complete ? m : std::min(m, n);
          if (mode.with_q)
            add_columns(outs, a.dtype(), with_batch(a, {m, k}));
          else
            outs.add(a.dtype(), {0});
          add_columns(outs, a.dtype(), with_batch(a, {k, n}));
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          const auto& mode = c.as<ModeAttrs>();
          const int64_t k = mode.complete ? a.m : std::min(a.m, a.n);
          with_type(a.tensor, [&]<class T>() {
            T* q = mode.with_q ? outs[0].data<T>() : nullptr;
            over_batch(a.count, 3 * cube(a.m, std::max(a.n, k), std::min(a.m, a.n)), [&](Range r) {
              kernels::qr(r, a.of<T>(), q, k, outs[1].data<T>(), k, info_of(outs[2]));
            });
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<ModeAttrs>,
    .offer = Offer::function,
});

constexpr OpDef geqrf_op = general({
    .signature = "_geqrf(Tensor A) -> (Tensor a, Tensor tau, Tensor info)",
    .doc = "geqrf.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor& a = c.in[0];
          check_matrix(c, a);
          add_columns(outs, a.dtype(), a.sizes());
          outs.add(a.dtype(), with_batch(a, {std::min(a.size(-1), a.size(-2))}));
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          each_matrix(a, 2 * cube(a.m, a.n, std::min(a.m, a.n)), [&]<class T>(Range r) {
            kernels::reflections(r, a.of<T>(), outs[0].data<T>(), outs[1].data<T>(),
                                 info_of(outs[2]));
          });
        },
    .no_vjp = written_in_python,
    .offer = Offer::function,
});

constexpr OpDef householder_op = general({
    .signature = "_householder_product(Tensor A, Tensor tau) -> (Tensor Q, Tensor info)",
    .doc = "linalg.householder_product.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &a = c.in[0], &tau = c.in[1];
          check_matrix(c, a);
          check_beside(c, a, tau, 1, a.dtype());
          require(a.size(-2) >= a.size(-1) && tau.size(-1) <= a.size(-1), c.name(),
                  ": expected at least as many rows as columns, and no more factors than columns; "
                  "got ",
                  a, " and ", tau);
          add_columns(outs, a.dtype(), a.sizes());
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          const Tensor tau = contiguous(c.in[1]);
          each_matrix(a, 2 * cube(a.m, a.n, a.n), [&]<class T>(Range r) {
            kernels::reflection_product(r, a.of<T>(), tau.data<const T>(), tau.size(-1),
                                        outs[0].data<T>(), info_of(outs[1]));
          });
        },
    .no_vjp = written_in_python,
    .offer = Offer::function,
});

struct SideAttrs {
  bool left = true, adjoint = false;
  static constexpr auto members() { return std::tuple(&SideAttrs::left, &SideAttrs::adjoint); }
};
constexpr OpDef ormqr_op = general({
    .signature = "_ormqr(Tensor A, Tensor tau, Tensor other, bool left, bool adjoint) -> (Tensor "
                 "result, Tensor info)",
    .doc = "ormqr.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &a = c.in[0], &tau = c.in[1], &x = c.in[2];
          check_matrix(c, a);
          check_beside(c, a, tau, 1, a.dtype());
          check_beside(c, a, x, 2, a.dtype());
          require(x.size(c.as<SideAttrs>().left ? -2 : -1) == a.size(-2) &&
                      tau.size(-1) <= std::min(a.size(-1), a.size(-2)),
                  c.name(), ": the sizes do not fit; got ", a, ", ", tau, " and ", x);
          add_columns(outs, a.dtype(), x.sizes());
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          const Tensor tau = contiguous(c.in[1]);
          copy_into(outs[0], c.in[2]);
          const auto& side = c.as<SideAttrs>();
          const int64_t rows = outs[0].size(-2), width = outs[0].size(-1);
          each_matrix(a, 2 * cube(rows, width, tau.size(-1)), [&]<class T>(Range r) {
            kernels::reflect(r, a.of<T>(), tau.data<const T>(), tau.size(-1), side.left,
                             side.adjoint, rows, width, outs[0].data<T>(), info_of(outs[1]));
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<SideAttrs>,
    .offer = Offer::function,
});

struct EighAttrs {
  bool upper = false, vectors = true;
  static constexpr auto members() { return std::tuple(&EighAttrs::upper, &EighAttrs::vectors); }
};
constexpr OpDef eigh_op = general({
    .signature = "_eigh(Tensor A, bool upper, bool vectors) -> (Tensor values, Tensor vectors, "
                 "Tensor info)",
    .doc = "linalg.eigh.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor& a = c.in[0];
          check_matrix(c, a, true);
          outs.add(real_of(a.dtype()), with_batch(a, {a.size(-1)}));
          if (c.as<EighAttrs>().vectors)
            add_columns(outs, a.dtype(), a.sizes());
          else
            outs.add(a.dtype(), {0});
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          const auto& attrs = c.as<EighAttrs>();
          with_type(a.tensor, [&]<class T>() {
            T* vectors = attrs.vectors ? outs[1].data<T>() : nullptr;
            over_batch(a.count, (vectors ? 9 : 3) * cube(a.n, a.n, a.n), [&](Range r) {
              kernels::eigh(r, a.of<T>(), attrs.upper, outs[0].data<kernels::lapack::Real<T>>(),
                            vectors, info_of(outs[2]));
            });
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<EighAttrs>,
    .offer = Offer::function,
});

struct VectorsAttrs {
  bool vectors = true;
  static constexpr auto members() { return std::tuple(&VectorsAttrs::vectors); }
};
constexpr OpDef eig_op = general({
    .signature = "_eig(Tensor A, bool vectors) -> (Tensor values, Tensor vectors, Tensor info)",
    .doc = "linalg.eig.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor& a = c.in[0];
          check_matrix(c, a, true);
          outs.add(complex_of(a.dtype()), with_batch(a, {a.size(-1)}));
          if (c.as<VectorsAttrs>().vectors)
            add_columns(outs, complex_of(a.dtype()), a.sizes());
          else
            outs.add(complex_of(a.dtype()), {0});
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          need_lapack(c);
          // The library's routine for these writes out of bounds.
          require(c.in[0].numel() == 0 || non_finite(c.in[0]) == NonFinite::none, c.name(),
                  ": input must hold neither inf nor nan");
          const MatrixBatch a = batch_of(c.in[0]);
          const bool with_vectors = c.as<VectorsAttrs>().vectors;
          with_type(a.tensor, [&]<class T>() {
            using Z = kernels::lapack::Complex<T>;
            Z* vectors = with_vectors ? outs[1].data<Z>() : nullptr;
            over_batch(a.count, 25 * cube(a.n, a.n, a.n), [&](Range r) {
              kernels::eig(r, a.of<T>(), outs[0].data<Z>(), vectors, info_of(outs[2]));
            });
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<VectorsAttrs>,
    .offer = Offer::function,
});

struct SvdAttrs {
  bool full = false, vectors = true;
  static constexpr auto members() { return std::tuple(&SvdAttrs::full, &SvdAttrs::vectors); }
};
constexpr OpDef svd_op = general({
    .signature = "_svd(Tensor A, bool full, bool vectors) -> (Tensor U, Tensor S, Tensor Vh, "
                 "Tensor info)",
    .doc = "linalg.svd.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor& a = c.in[0];
          check_matrix(c, a);
          const auto& attrs = c.as<SvdAttrs>();
          const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
          auto add_vectors = [&](Dims sizes) {
            if (attrs.vectors)
              add_columns(outs, a.dtype(), std::move(sizes));
            else
              outs.add(a.dtype(), {0});
          };
          add_vectors(with_batch(a, {m, attrs.full ? m : k}));
          outs.add(real_of(a.dtype()), with_batch(a, {k}));
          add_vectors(with_batch(a, {attrs.full ? n : k, n}));
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          const auto& attrs = c.as<SvdAttrs>();
          with_type(a.tensor, [&]<class T>() {
            T* u = attrs.vectors ? outs[0].data<T>() : nullptr;
            const double cost = cube(a.m, a.n, std::min(a.m, a.n));
            over_batch(a.count, (attrs.vectors ? 20 : 4) * cost, [&](Range r) {
              kernels::svd(r, a.of<T>(), attrs.full, u, outs[1].data<kernels::lapack::Real<T>>(),
                           attrs.vectors ? outs[2].data<T>() : nullptr, info_of(outs[3]));
            });
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<SvdAttrs>,
    .offer = Offer::function,
});

struct HermitianAttrs {
  bool hermitian = false;
  static constexpr auto members() { return std::tuple(&HermitianAttrs::hermitian); }
};
constexpr OpDef ldl_op = general({
    .signature = "_ldl_factor(Tensor A, bool hermitian) -> (Tensor LD, Tensor pivots, Tensor "
                 "info)",
    .doc = "linalg.ldl_factor_ex.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor& a = c.in[0];
          check_matrix(c, a, true);
          add_columns(outs, a.dtype(), a.sizes());
          outs.add(DType::Int32, with_batch(a, {a.size(-1)}));
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          each_matrix(a, cube(a.n, a.n, a.n) / 3, [&]<class T>(Range r) {
            kernels::ldl(r, a.of<T>(), c.as<HermitianAttrs>().hermitian, outs[0].data<T>(),
                         outs[1].data<int32_t>(), info_of(outs[2]));
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<HermitianAttrs>,
    .offer = Offer::function,
});

// LAPACK follows them: a negative one stands for a block of two rows, twice.
void check_ldl_pivots(const Tensor& pivots, int64_t n) {
  const auto* all = pivots.data<const int32_t>();
  for (int64_t i = 0; i < pivots.numel(); ++i) {
    const int64_t p = all[i], left = n - i % n;
    const bool block = p < 0 && left > 1 && all[i + 1] == p;
    require((p > 0 || block) && p <= n && p >= -n,
            "linalg.ldl_solve: pivots must be those that ldl_factor gives; got ", p, " at ", i % n);
    i += block;
  }
}
constexpr OpDef ldl_solve_op = general({
    .signature = "_ldl_solve(Tensor LD, Tensor pivots, Tensor B, bool hermitian) -> (Tensor "
                 "result, Tensor info)",
    .doc = "linalg.ldl_solve.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &a = c.in[0], &pivots = c.in[1], &b = c.in[2];
          check_matrix(c, a, true);
          check_beside(c, a, pivots, 1, DType::Int32);
          check_beside(c, a, b, 2, a.dtype());
          require(pivots.size(-1) == a.size(-1) && b.size(-2) == a.size(-1), c.name(),
                  ": the rows of LD, pivots and B differ; got ", a, ", ", pivots, " and ", b);
          add_columns(outs, a.dtype(), b.sizes());
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          const Tensor pivots = own_pivots(c.in[1]);
          check_ldl_pivots(pivots, a.n);
          copy_into(outs[0], c.in[2]);
          const int64_t k = outs[0].size(-1);
          each_matrix(a, cube(a.n, a.n, k), [&]<class T>(Range r) {
            kernels::ldl_solve(r, a.of<T>(), pivots.data<const int32_t>(),
                               c.as<HermitianAttrs>().hermitian, k, outs[0].data<T>(),
                               info_of(outs[1]));
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<HermitianAttrs>,
    .offer = Offer::function,
});

struct DriverAttrs {
  int64_t driver = 0;
  double rcond = 0;
  static constexpr auto members() { return std::tuple(&DriverAttrs::driver, &DriverAttrs::rcond); }
};
constexpr OpDef lstsq_op = general({
    .signature = "_lstsq(Tensor A, Tensor B, int driver, float rcond) -> (Tensor solution, Tensor "
                 "rank, Tensor singular_values, Tensor info)",
    .doc = "What linalg.lstsq is made of: the solution's rows stand above those of the residuals. "
           "driver: 0 gels, 1 gelsy, 2 gelsd, 3 gelss.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor &a = c.in[0], &b = c.in[1];
          check_matrix(c, a);
          check_beside(c, a, b, 2, a.dtype());
          const int64_t driver = c.as<DriverAttrs>().driver, m = a.size(-2), n = a.size(-1);
          require(b.size(-2) == m && driver >= 0 && driver < 4, c.name(),
                  ": the rows of A and B must be as many, and driver 0 to 3; got ", a, ", ", b,
                  " and ", driver);
          add_columns(outs, a.dtype(), with_batch(a, {std::max(m, n), b.size(-1)}));
          outs.add(DType::Int64, with_batch(a, {}));
          outs.add(real_of(a.dtype()), with_batch(a, {std::min(m, n)}));
          add_info(outs, a);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const MatrixBatch a = lapack_batch(c, c.in[0]);
          const auto& attrs = c.as<DriverAttrs>();
          const int64_t k = outs[0].size(-1);
          copy_into(a.m < a.n ? narrow(outs[0], -2, 0, a.m) : outs[0], c.in[1]);
          fill_(outs[1], 0);
          fill_(outs[2], 0);
          with_type(a.tensor, [&]<class T>() {
            using R = kernels::lapack::Real<T>;
            over_batch(a.count, 3 * cube(a.m, a.n, std::min(a.m, a.n) + k), [&](Range r) {
              kernels::least_squares(
                  r, a.of<T>(), static_cast<kernels::lapack::Driver>(attrs.driver), attrs.rcond, k,
                  outs[0].data<T>(), outs[2].data<R>(), outs[1].data<int64_t>(), info_of(outs[3]));
            });
          });
        },
    .no_vjp = written_in_python,
    .attrs = &attr_info<DriverAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* matrix_decompositions_list[] = {
    &qr_op,  &geqrf_op, &householder_op, &ormqr_op,     &eigh_op,
    &eig_op, &svd_op,   &ldl_op,         &ldl_solve_op, &lstsq_op};

}  // namespace

extern const OpList matrix_decompositions_ops;
const OpList matrix_decompositions_ops = op_list(matrix_decompositions_list);

}  // namespace clew
