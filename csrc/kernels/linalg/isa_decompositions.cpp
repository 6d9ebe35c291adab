// Decompositions of small real matrices, compiled once for each instruction set.
// May include: kernels.
// Invariant: everything lies in the namespace CLEW_ISA or has internal linkage; matrices are
// scaled, so that no square overflows, and computed in double.
#include <algorithm>
#include <cmath>
#include <functional>

#include "kernels/core/lanes.h"
#include "kernels/linalg/decompositions.h"

namespace clew::kernels::CLEW_ISA {
namespace {

using V = Lanes_t<double>;
constexpr int64_t L = lane_count<double>;
constexpr double eps = 0x1p-53;

// Lines begin at multiples of a vector's size and have zeros behind what counts.
int64_t padded(int64_t n) { return (n + L - 1) / L * L; }

[[gnu::always_inline]] inline double dot(const double* a, const double* b, int64_t from,
                                         int64_t to) {
  V sum{};
  for (int64_t j = from; j < to; j += L) sum += load(a + j) * load(b + j);
  return sum_of_doubles(sum);
}
[[gnu::always_inline]] inline void add(double* a, double f, const double* b, int64_t from,
                                       int64_t to) {
  const V factor = spread(f);
  for (int64_t j = from; j < to; j += L) store(a + j, load(a + j) + factor * load(b + j));
}
// a becomes c a - s b, and b s a + c b.
[[gnu::always_inline]] inline void rotate(double* a, double* b, double c, double s, int64_t n) {
  const V cosine = spread(c), sine = spread(s);
  for (int64_t j = 0; j < n; j += L) {
    const V x = load(a + j), y = load(b + j);
    store(a + j, cosine * x - sine * y);
    store(b + j, sine * x + cosine * y);
  }
}
// The power of two that brings `most` close to 1.
double scale_for(double most) {
  int exponent = 0;
  std::frexp(most, &exponent);
  return std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
}

// The reflection I - tau v v^T that makes x (from k on, up to n) a multiple of e_k, as LAPACK
// chooses it: v[k] is 1, `made` what stands at k then; v, zero elsewhere, may be x.
struct Reflection {
  double tau, made;
};
[[gnu::always_inline]] inline Reflection reflection(const double* x, int64_t k, int64_t n,
                                                    int64_t w, double* v) {
  const double first = x[k];
  for (int64_t j = 0; j < w; ++j) v[j] = j > k && j < n ? x[j] : 0.0;
  const double rest = dot(v, v, 0, w);
  v[k] = 1.0;
  if (rest == 0) {
    for (int64_t j = k + 1; j < n; ++j) v[j] = 0.0;
    return {0.0, first};
  }
  const double made = -std::copysign(std::sqrt(first * first + rest), first);
  const double factor = 1.0 / (first - made);
  for (int64_t j = k + 1; j < n; ++j) v[j] *= factor;
  return {(made - first) / made, made};
}

// Eigenvalues of a tridiagonal matrix of `count` rows, by QL steps with implicit shifts: diagonal
// d, beside it e, both with steps of `way` (1 or -1), which the lines z of w numbers follow.
// Whether they converged.
bool diagonalize(int64_t count, double* d, double* e, int64_t way, double* z, int64_t w) {
  for (int64_t l = 0; l < count; ++l) {
    for (int turns = 0;; ++turns) {
      int64_t m = l;
      for (; m + 1 < count; ++m) {
        const double size = std::fabs(d[way * m]) * std::fabs(d[way * (m + 1)]);
        const double off = e[way * m];
        if (off * off <= eps * eps * size || std::fabs(off) < 0x1p-500) break;
      }
      if (m + 1 < count) e[way * m] = 0.0;
      if (m == l) break;
      if (turns == 60) return false;
      // The eigenvalue of the upper 2 by 2 block that is closer to its corner is the shift.
      const double half = (d[way * (l + 1)] - d[way * l]) / (2.0 * e[way * l]);
      const double root = std::sqrt(half * half + 1.0);
      double g = d[way * m] - d[way * l] + e[way * l] / (half + std::copysign(root, half));
      double s = 1.0, c = 1.0, moved = 0.0;
      int64_t i = m - 1;
      for (; i >= l; --i) {
        const double f = s * e[way * i], b = c * e[way * i];
        // The root and the quotient do not wait for each other.
        const double square = f * f + g * g;
        if (square < 0x1p-1000) {
          d[way * (i + 1)] -= moved;
          break;
        }
        const double r = std::sqrt(square), inverse = r * (1.0 / square);
        if (i + 1 < m) e[way * (i + 1)] = r;
        s = f * inverse;
        c = g * inverse;
        g = d[way * (i + 1)] - moved;
        const double t = (d[way * i] - g) * s + 2.0 * c * b;
        moved = s * t;
        d[way * (i + 1)] = g + moved;
        g = c * t - b;
        if (z) rotate(z + way * i * w, z + way * (i + 1) * w, c, s, w);
      }
      if (i >= l) continue;
      d[way * l] -= moved;
      e[way * l] = g;
    }
  }
  return true;
}

template <class T>
Outcome eigh(int64_t n, const T* a, int64_t row, int64_t column, double* room, T* values,
             T* vectors) {
  const int64_t w = padded(n);
  double *lines = room, *q = lines + n * w, *d = q + n * w, *e = d + w, *tau = e + w, *p = tau + w;
  double most = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = n; j < w; ++j) lines[i * w + j] = 0.0;
    for (int64_t j = 0; j <= i; ++j) {
      const auto x = static_cast<double>(a[i * row + j * column]);
      most = std::max(most, std::fabs(x));
      sum += x * 0;
      lines[i * w + j] = lines[j * w + i] = x;
    }
  }
  if (sum != 0) return Outcome::not_finite;
  const double scale = scale_for(most), back = 1.0 / scale;
  for (int64_t j = 0; j < n * w; j += L) store(lines + j, load(lines + j) * spread(scale));

  // Reflections make the matrix tridiagonal; row k keeps the vector of the k-th.
  for (int64_t k = 0; k + 2 < n; ++k) {
    double* v = lines + k * w;
    d[k] = v[k];
    const Reflection made = reflection(v, k + 1, n, w, v);
    tau[k] = made.tau;
    e[k] = made.made;
    if (made.tau == 0) continue;
    const int64_t from = (k + 1) / L * L;
    for (int64_t j = from; j < w; j += L) store(p + j, V{});
    for (int64_t i = k + 1; i < n; ++i) add(p, v[i] * made.tau, lines + i * w, from, w);
    for (int64_t j = from; j <= k; ++j) p[j] = 0.0;
    add(p, -0.5 * made.tau * dot(p, v, from, w), v, from, w);
    for (int64_t i = k + 1; i < n; ++i) {
      double* x = lines + i * w;
      const V f = spread(v[i]), g = spread(p[i]);
      for (int64_t j = from; j < w; j += L)
        store(x + j, load(x + j) - (f * load(p + j) + g * load(v + j)));
    }
  }
  for (int64_t k = std::max<int64_t>(n - 2, 0); k < n; ++k) {
    d[k] = lines[k * w + k];
    e[k] = k + 1 < n ? lines[k * w + k + 1] : 0.0;
  }
  double* z = nullptr;
  if (vectors) {
    std::fill_n(q, n * w, 0.0);
    for (int64_t i = 0; i < n; ++i) q[i * w + i] = 1.0;
    for (int64_t k = n - 3; k >= 0; --k) {
      if (tau[k] == 0) continue;
      const double* v = lines + k * w;
      const int64_t from = (k + 1) / L * L;
      for (int64_t j = from; j < w; j += L) store(p + j, V{});
      for (int64_t i = k + 1; i < n; ++i) add(p, v[i] * tau[k], q + i * w, from, w);
      for (int64_t i = k + 1; i < n; ++i) add(q + i * w, -v[i], p, from, w);
    }
    z = lines;  // the columns of q as lines
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) z[j * w + i] = q[i * w + j];
      for (int64_t j = n; j < w; ++j) z[i * w + j] = 0.0;
    }
  }
  for (int64_t begin = 0; begin < n;) {
    int64_t end = begin;
    while (end + 1 < n && e[end] != 0) ++end;
    const int64_t count = end - begin + 1;
    // From the end whose numbers are smaller.
    const bool down = std::fabs(d[end]) >= std::fabs(d[begin]);
    const int64_t first = down ? begin : end, beside = down ? begin : end - 1;
    if (count > 1 &&
        !diagonalize(count, d + first, e + beside, down ? 1 : -1, z ? z + first * w : nullptr, w))
      return Outcome::not_converged;
    begin = end + 1;
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t least = std::min_element(d + i, d + n) - d;
    if (least != i) {
      std::swap(d[i], d[least]);
      if (z) std::swap_ranges(z + i * w, z + i * w + n, z + least * w);
    }
    values[i] = static_cast<T>(d[i] * back);
    for (int64_t j = 0; z && j < n; ++j) vectors[i * n + j] = static_cast<T>(z[i * w + j]);
  }
  return Outcome::done;
}

// Jacobi's rotations make the columns of A V orthogonal; what they are long are the singular
// values. Columns are lines here. (Vectors are LAPACK's: their signs are those of PyTorch.)
template <class T>
Outcome svdvals(int64_t m, int64_t n, const T* a, int64_t row, int64_t column, double* room,
                T* values) {
  const int64_t wm = padded(m);
  double *g = room, *squares = g + n * wm;
  double most = 0, sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      const auto x = static_cast<double>(a[i * row + j * column]);
      most = std::max(most, std::fabs(x));
      sum += x * 0;
      g[j * wm + i] = x;
    }
    for (int64_t i = m; i < wm; ++i) g[j * wm + i] = 0.0;
  }
  if (sum != 0) return Outcome::not_finite;
  const double scale = scale_for(most), back = 1.0 / scale;
  for (int64_t j = 0; j < n * wm; j += L) store(g + j, load(g + j) * spread(scale));
  // Angles converge quadratically: where results are rounded to float, the last turn is spared.
  constexpr double tolerance = sizeof(T) == 4 ? 0x1p-36 : 0x1p-51;
  // As in a tournament, whose games of one round do not wait for each other.
  const int64_t others = n - 1 + n % 2;  // the last player stays, the others go around
  bool settled = n < 2;
  for (int turn = 0; !settled; ++turn) {
    if (turn == 40) return Outcome::not_converged;
    settled = true;
    for (int64_t j = 0; j < n; ++j) squares[j] = dot(g + j * wm, g + j * wm, 0, wm);
    for (int64_t round = 0; round < others; ++round) {
      for (int64_t game = 0; 2 * game < others; ++game) {
        int64_t one = round + game, other = game == 0 ? others : round - game;
        one -= one >= others ? others : 0;
        other += other < 0 ? others : 0;
        const int64_t p = std::min(one, other), q = std::max(one, other);
        if (q == n) continue;
        double *x = g + p * wm, *y = g + q * wm;
        const double product = dot(x, y, 0, wm), both = product * product;
        if (both <= tolerance * tolerance * (squares[p] * squares[q])) continue;
        settled = false;
        const double apart = squares[q] - squares[p];
        const double root = std::sqrt(apart * apart + 4.0 * both);
        const double t = 2.0 * std::copysign(product, product * apart) / (std::fabs(apart) + root);
        const double c = 1.0 / std::sqrt(1.0 + t * t), s = c * t;
        rotate(x, y, c, s, wm);
        squares[p] -= t * product;
        squares[q] += t * product;
      }
    }
  }
  for (int64_t j = 0; j < n; ++j) squares[j] = dot(g + j * wm, g + j * wm, 0, wm);
  std::sort(squares, squares + n, std::greater<>());
  for (int64_t j = 0; j < n; ++j) values[j] = static_cast<T>(std::sqrt(squares[j]) * back);
  return Outcome::done;
}

// Columns of a (m, n) as lines, and back; returns the lines' length.
template <class T> int64_t load_lines(int64_t m, int64_t n, const T* a, double* lines) {
  const int64_t w = padded(m);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) lines[j * w + i] = static_cast<double>(a[j * m + i]);
    for (int64_t i = m; i < w; ++i) lines[j * w + i] = 0.0;
  }
  return w;
}
template <class T> void store_lines(int64_t m, int64_t n, const double* lines, T* a) {
  const int64_t w = padded(m);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) a[j * m + i] = static_cast<T>(lines[j * w + i]);
  }
}
[[gnu::always_inline]] inline void reflect_line(double* x, const double* v, double tau, int64_t k,
                                                int64_t w) {
  const int64_t from = k / L * L;
  add(x, -tau * dot(v, x, from, w), v, from, w);
}

template <class T> void reflections(int64_t m, int64_t n, T* a, T* tau, double* room) {
  double* lines = room;
  const int64_t w = load_lines(m, n, a, lines);
  double *v = lines + n * w, scale = 1.0;
  if constexpr (sizeof(T) == 8) {  // float's squares fit into double as they are
    double most = 0;
    for (int64_t j = 0; j < n * w; ++j) most = std::max(most, std::fabs(lines[j]));
    scale = scale_for(most);
    if (scale != 1) {
      for (int64_t j = 0; j < n * w; j += L) store(lines + j, load(lines + j) * spread(scale));
    }
  }
  for (int64_t i = 0; i < std::min(m, n); ++i) {
    double* x = lines + i * w;
    const Reflection made = reflection(x, i, m, w, v);
    tau[i] = static_cast<T>(made.tau);
    x[i] = made.made;
    for (int64_t j = i + 1; j < n && made.tau != 0; ++j)
      reflect_line(lines + j * w, v, made.tau, i, w);
    // What stands above is scaled back, below it stand factors.
    for (int64_t j = i + 1; j < m; ++j) x[j] = v[j] * scale;
  }
  const double back = 1.0 / scale;
  for (int64_t j = 0; scale != 1 && j < n * w; j += L)
    store(lines + j, load(lines + j) * spread(back));
  store_lines(m, n, lines, a);
}
// The vectors of k reflections as lines.
template <class T> void load_vectors(int64_t m, int64_t k, const T* a, double* v) {
  const int64_t w = load_lines(m, k, a, v);
  for (int64_t i = 0; i < k; ++i) {
    std::fill_n(v + i * w, i, 0.0);
    v[i * w + i] = 1.0;
  }
}
template <class T>
void product_of(int64_t m, int64_t n, int64_t k, T* a, const T* tau, double* room) {
  const int64_t w = padded(m);
  double *v = room, *lines = v + k * w;
  load_vectors(m, k, a, v);
  std::fill_n(lines, n * w, 0.0);
  for (int64_t j = 0; j < n; ++j) lines[j * w + j] = 1.0;
  for (int64_t i = k - 1; i >= 0; --i) {
    // Columns before the i-th are zero where the vector is not.
    for (int64_t j = i; j < n && tau[i] != T(0); ++j)
      reflect_line(lines + j * w, v + i * w, static_cast<double>(tau[i]), i, w);
  }
  store_lines(m, n, lines, a);
}
template <class T>
void reflect(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a, const T* tau,
             T* c, double* room) {
  // x Q is (Q^T x^T)^T: rows are the lines then.
  const int64_t length = left ? m : n, count = left ? n : m, w = padded(length);
  double *v = room, *lines = v + k * w;
  load_vectors(length, k, a, v);
  const int64_t row = left ? 1 : m, column = left ? m : 1;
  for (int64_t j = 0; j < count; ++j) {
    double* x = lines + j * w;
    for (int64_t i = 0; i < length; ++i) x[i] = static_cast<double>(c[i * row + j * column]);
    for (int64_t i = length; i < w; ++i) x[i] = 0.0;
    for (int64_t s = 0; s < k; ++s) {
      const int64_t i = adjoint == left ? s : k - 1 - s;
      reflect_line(x, v + i * w, static_cast<double>(tau[i]), i, w);
    }
    for (int64_t i = 0; i < length; ++i) c[i * row + j * column] = static_cast<T>(x[i]);
  }
}

}  // namespace

#define CLEW_LOOPS(T, name)                                                               \
  extern const DecompositionLoops<T> name;                                                \
  const DecompositionLoops<T> name = {eigh<T>, svdvals<T>, reflections<T>, product_of<T>, \
                                      reflect<T>};
CLEW_LOOPS(float, decompositions_float)
CLEW_LOOPS(double, decompositions_double)
#undef CLEW_LOOPS

}  // namespace clew::kernels::CLEW_ISA
