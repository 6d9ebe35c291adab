// Taylor polynomials of matrices with few products (Bader, Blanes, Casas, Computing the matrix
// exponential with an optimized Taylor polynomial approximation, 2019), scaling and squaring.
// May include: base, kernels.
// Invariant: a matrix's polynomial depends on its own norm only.
#include "kernels/linalg/exponential.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/scratch.h"
#include "kernels/matmul/gemm.h"

namespace clew::kernels {

using lapack::Real;

namespace {

LocalScratch exponential_scratch;

template <class T> class Exponential {
  using R = Real<T>;
  int64_t n_, all_;
  T *x_, *square_, *cube_, *sixth_, *part_[5], *product_;

 public:
  explicit Exponential(int64_t n) : n_(n), all_(n * n) {
    T* room = exponential_scratch.of<T>(10 * all_);
    for (T** at : {&x_, &square_, &cube_, &sixth_, &part_[0], &part_[1], &part_[2], &part_[3],
                   &part_[4], &product_}) {
      *at = room;
      room += all_;
    }
  }

  void run(const T* a, bool columns, T* y) {
    double norm = 0;  // the greatest sum of a row's sizes
    bool finite = true;
    for (int64_t i = 0; i < n_; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < n_; ++j) {
        const T value = columns ? a[j * n_ + i] : a[i * n_ + j];
        x_[i * n_ + j] = value;
        sum += static_cast<double>(std::abs(value));
      }
      finite &= std::isfinite(sum);
      norm = std::max(norm, sum);
    }
    if (!finite) return std::fill_n(y, all_, T(std::numeric_limits<R>::quiet_NaN())), void();
    // Up to these norms the polynomials of degree 1, 2, 4, 8, 12 and 18 are right to rounding.
    constexpr bool narrow = std::is_same_v<R, float>;
    constexpr double most[] = {narrow ? 1.19e-7 : 2.22e-16,
                               narrow ? 5.978858893805233e-4 : 2.580956802971767e-8,
                               narrow ? 5.116619363445086e-2 : 3.397168839976962e-4,
                               narrow ? 5.800524627688768e-1 : 4.991228871115323e-2,
                               narrow ? 1.461661507209034 : 2.996158913811580e-1,
                               narrow ? 3.010066362817634 : 1.090863719290036};
    if (norm <= most[2]) return few(norm <= most[0] ? 1 : norm <= most[1] ? 2 : 4, y);
    if (norm <= most[3]) return eight(y);
    if (norm <= most[4]) return twelve(y);
    int halvings = 0;
    for (double rest = norm; rest > most[5]; rest *= 0.5) ++halvings;
    const R scale = static_cast<R>(std::ldexp(1.0, -halvings));
    for (int64_t e = 0; e < all_; ++e) x_[e] *= scale;
    eighteen(y);
    T *from = y, *to = product_;
    for (int k = 0; k < halvings; ++k) {
      multiply(from, from, to);
      std::swap(from, to);
    }
    if (from != y) std::copy_n(from, all_, y);
  }

 private:
  void multiply(const T* a, const T* b, T* c) const {
    gemm({dtype_of<T>(), n_, n_, n_, reinterpret_cast<const char*>(a), n_, 1,
          reinterpret_cast<const char*>(b), n_, 1, reinterpret_cast<char*>(c), n_, 1});
  }
  // Sums of 1, x, x^2 ... with the coefficients of each row.
  template <int rows, int terms>
  void combine(const double (&c)[rows][terms], const T* const (&powers)[terms - 1],
               T* const (&to)[rows]) const {
    for (int k = 0; k < rows; ++k) {
      for (int64_t e = 0; e < all_; ++e) {
        T sum = powers[0][e] * static_cast<R>(c[k][1]);
        for (int p = 2; p < terms; ++p) sum += powers[p - 1][e] * static_cast<R>(c[k][p]);
        to[k][e] = sum;
      }
      for (int64_t i = 0; i < n_; ++i) to[k][i * (n_ + 1)] += static_cast<R>(c[k][0]);
    }
  }
  void add(const T* a, T* to) const {
    for (int64_t e = 0; e < all_; ++e) to[e] += a[e];
  }

  void few(int degree, T* y) const {
    if (degree == 1) return combine({{1, 1}}, {x_}, {y});
    multiply(x_, x_, square_);
    if (degree == 2) return combine({{1, 1, 0.5}}, {x_, square_}, {y});
    combine({{0.5, 1. / 6, 1. / 24}, {1, 1, 0}}, {x_, square_}, {part_[0], y});
    multiply(square_, part_[0], product_);
    add(product_, y);
  }
  void eight(T* y) const {
    multiply(x_, x_, square_);
    combine({{0, 0.10836465678522780852, 0.027091164196306952131}}, {x_, square_}, {part_[0]});
    T* fourth = cube_;
    multiply(square_, part_[0], fourth);
    combine({{0, 0, 2. / 3, 1},
             {0.54676145797072405251, 0.16112557339541759283, 0.014090917158378207731,
              0.033792797010870504141},
             {1, 1, 0.13549236135285063166, 0}},
            {x_, square_, fourth}, {part_[0], part_[1], y});
    multiply(part_[0], part_[1], product_);
    add(product_, y);
  }
  void twelve(T* y) const {
    multiply(x_, x_, square_);
    multiply(square_, x_, cube_);
    combine({{9.0198e-16, 0.46932117595418237389, -0.20099424927047284052, -0.04623946134063071740},
             {5.31597895759871264183, 1.19926790417132231573, 0.01179296240992997031,
              0.01108844528519167989},
             {0.18188869982170434744, 0.05502798439925399070, 0.09351590770535414968,
              0.00610700528898058230},
             {-2.0861320e-13, -0.13181061013830184015, -0.02027855540589259079,
              -0.00675951846863086359}},
            {x_, square_, cube_}, {y, part_[0], part_[1], part_[2]});
    multiply(part_[2], part_[2], product_);
    add(product_, part_[1]);
    add(part_[1], part_[0]);
    multiply(part_[0], part_[1], product_);
    add(product_, y);
  }
  void eighteen(T* y) const {
    multiply(x_, x_, square_);
    multiply(square_, x_, cube_);
    multiply(cube_, cube_, sixth_);
    combine({{0, -1.00365581030144618291e-01, -8.02924648241156932449e-03,
              -8.92138498045729985177e-04, 0},
             {0, 3.97849749499645077844e-01, 1.36783778460411720168e+00, 4.98289622525382669416e-01,
              -6.37898194594723280150e-04},
             {-1.09676396052962061844e+01, 1.68015813878906206114e+00, 5.71779846478865511061e-02,
              -6.98210122488052056106e-03, 3.34975017086070470649e-05},
             {-9.04316832390810593223e-02, -6.76404519071381882256e-02, 6.75961301770459654925e-02,
              2.95552570429315521194e-02, -1.39180257516060693404e-05},
             {0, 0, -9.23364619367118555360e-02, -1.69364939002081722752e-02,
              -1.40086798182036094347e-05}},
            {x_, square_, cube_, sixth_}, {part_[0], y, part_[1], part_[2], part_[3]});
    multiply(part_[0], part_[3], product_);
    add(product_, part_[2]);
    add(part_[2], part_[1]);
    multiply(part_[1], part_[2], product_);
    add(product_, y);
  }
};

}  // namespace

template <class T> void matrix_exp(Range of, const Stack<T>& a, T* y) {
  for (int64_t i = of.begin; i < of.end; ++i)
    Exponential<T>(a.n).run(a[i], a.columns, y + i * a.n * a.n);
}
template void matrix_exp(Range, const Stack<float>&, float*);
template void matrix_exp(Range, const Stack<double>&, double*);
template void matrix_exp(Range, const Stack<c64>&, c64*);
template void matrix_exp(Range, const Stack<c128>&, c128*);

void trim_exponential_scratch() { exponential_scratch.trim(1); }

}  // namespace clew::kernels
