// How a matrix product runs: the blocked kernel, or a library where that is faster.
// May include: base, kernels.
// Invariant: the choice depends on dtype, shape and strides only, so equal calls give equal bits.
#include "kernels/matmul/gemm.h"

#include <limits>

#include "kernels/core/instruction_set.h"
#include "kernels/core/loop_tables.h"
#include "kernels/matmul/gemm_isa.h"
#include "kernels/matmul/library_gemm.h"

namespace clew::kernels {

namespace {

struct Kernels {
  void (*blocked)(const GemmTask&);
  void (*small)(const SmallGemm&);
  void (*row)(const SmallGemm&);
  void (*thin)(const ThinBatch&);
};
const Kernels chosen = {CLEW_CHOSEN(gemm_blocked), CLEW_CHOSEN(gemm_small), CLEW_CHOSEN(gemm_row),
                        CLEW_CHOSEN(gemm_thin)};

// Rows of A that make up for packing B: where its rows are contiguous, and where its columns are.
constexpr int64_t few_rows = 48, many_rows = 512;
// Rows up to which sums along the depth, which need no packing, are faster.
constexpr int64_t rows_of_dots = 8;

// Whether the library is faster: it uses instructions that the blocked kernel does not, or packs B
// faster. As measured with oneDNN, for float32 that is so with AVX-512 if B's rows are contiguous,
// and with AVX2 if A's rows are contiguous and few, but enough to make packing B worthwhile. For
// many rows both run at the processor's peak rate, and the blocked kernel adds the bias as well.
bool library_is_faster(const Gemm& g) {
  if (itemsize(g.dtype) == 2) return library::has_units_for(g.dtype);
  const InstructionSet own = instruction_set();
  if (own == InstructionSet::baseline) return true;
  if (g.dtype != DType::Float32) return false;
  if (own == InstructionSet::avx512) return g.b_cs == 1;
  if (g.b_cs != 1 && g.b_rs == 1 && g.m <= rows_of_dots) return false;
  return g.a_cs == 1 && g.m < (g.b_cs == 1 ? few_rows : many_rows);
}

bool goes_to_library(const Gemm& g) {
  return g.m > 1 && g.n > 1 && g.k > 0 && g.m * g.n >= library::least_work(g.dtype) / g.k &&
         library_is_faster(g) && library::takes(g);
}

template <class T> void scale_c(const Gemm& g) {
  if (g.beta.equals(1)) return;
  const bool zero = g.beta.equals(0);
  const auto factor = g.beta.to<compute_t<T>>();
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      T* at = reinterpret_cast<T*>(g.c) + i * g.c_rs + j * g.c_cs;
      if (zero)
        *at = g.bias ? reinterpret_cast<const T*>(g.bias)[j] : T{};
      else if constexpr (std::is_integral_v<T>)
        *at = static_cast<T>(static_cast<uint64_t>(*at) * static_cast<uint64_t>(factor));
      else
        *at = static_cast<T>(static_cast<compute_t<T>>(*at) * factor);
    }
  }
}

void store_factor(char* to, DType d, const Scalar& v) {
  if (d == DType::Complex64) {
    const c64 x = v.to<c64>();
    std::memcpy(to, &x, sizeof x);
  } else if (d == DType::Complex128) {
    const c128 x = v.to<c128>();
    std::memcpy(to, &x, sizeof x);
  } else if (d == DType::Float64) {
    const double x = v.to<double>();
    std::memcpy(to, &x, sizeof x);
  } else if (is_floating(d)) {
    const float x = v.to<float>();
    std::memcpy(to, &x, sizeof x);
  } else if (as_signed(d) == DType::Int64) {
    const int64_t x = v.to<int64_t>();
    std::memcpy(to, &x, sizeof x);
  } else {
    const int32_t x = static_cast<int32_t>(static_cast<uint32_t>(v.to<int64_t>()));
    std::memcpy(to, &x, sizeof x);
  }
}

void run_blocked(const Gemm& g) {
  GemmTask t;
  t.dtype = g.dtype;
  t.m = g.m, t.n = g.n, t.k = g.k;
  t.a = g.a, t.a_rs = g.a_rs, t.a_cs = g.a_cs;
  t.b = g.b, t.b_rs = g.b_rs, t.b_cs = g.b_cs;
  t.c = g.c, t.c_rs = g.c_rs, t.c_cs = g.c_cs;
  t.bias = g.beta.equals(0) ? g.bias : nullptr;
  t.alpha_one = g.alpha.equals(1);
  t.beta_kind = g.beta.equals(0) ? Beta::zero : g.beta.equals(1) ? Beta::one : Beta::other;
  std::memset(t.alpha, 0, sizeof t.alpha);
  std::memset(t.beta, 0, sizeof t.beta);
  if (!t.alpha_one) store_factor(t.alpha, g.dtype, g.alpha);
  if (t.beta_kind == Beta::other) store_factor(t.beta, g.dtype, g.beta);
  chosen.blocked(t);
}

// Splits C into one block for each thread. A thread packs its rows of A and columns of B, so blocks
// are as square as possible, and consist of whole oneDNN tiles.
struct Blocks {
  static constexpr int64_t row_tile = 16, column_tile = 48, worth = 1 << 20;
  int64_t down = 1, across = 1, rows, columns;

  explicit Blocks(const Gemm& g) {
    const int64_t tall = (g.m - 1) / row_tile + 1, wide = (g.n - 1) / column_tile + 1;
    const int64_t most = std::min<int64_t>(num_threads(), g.m * g.n / (1 + worth / g.k));
    double best = std::numeric_limits<double>::infinity();
    for (int64_t d = std::min(most, tall); d >= 1; --d) {
      const int64_t a = std::min(most / d, wide);
      const auto r = static_cast<double>(((tall - 1) / d + 1) * row_tile),
                 c = static_cast<double>(((wide - 1) / a + 1) * column_tile);
      const double cost = r * c + packing * (r + c);
      if (cost < best) best = cost, down = d, across = a;
    }
    rows = ((tall - 1) / down + 1) * row_tile;
    columns = ((wide - 1) / across + 1) * column_tile;
  }

 private:
  static constexpr double packing = 16;  // of a row or column costs as much as so many products
};

void run_by_library(const Gemm& g) {
  const Blocks blocks(g);
  const auto item = static_cast<int64_t>(itemsize(g.dtype));
  parallel_for(blocks.down * blocks.across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t i = k / blocks.across * blocks.rows, j = k % blocks.across * blocks.columns;
      if (i >= g.m || j >= g.n) continue;
      Gemm some = g;
      some.m = std::min(blocks.rows, g.m - i), some.n = std::min(blocks.columns, g.n - j);
      some.a += i * g.a_rs * item;
      some.b += j * g.b_cs * item;
      some.c += (i * g.c_rs + j) * item;
      if (g.bias) {
        // The library adds to C: the bias is there first.
        for (int64_t row = 0; row < some.m; ++row)
          std::memcpy(some.c + row * g.c_rs * item, static_cast<const char*>(g.bias) + j * item,
                      static_cast<size_t>(some.n * item));
        some.bias = nullptr;
        some.beta = Scalar(1);
      }
      if (!library::gemm(some)) run_blocked(some);
    }
  });
}

}  // namespace

bool gemm_if_small(const SmallGemm& g) {
  if ((g.dtype != DType::Float32 && g.dtype != DType::Float64) || (g.b_cs != 1 && g.b_rs != 1) ||
      g.n < 2 || g.m == 0)
    return false;
  if (g.n <= small_columns && g.k <= small_depth && g.m <= small_rows) {
    chosen.small(g);
    return true;
  }
  if (g.m != 1 || g.k == 0 || g.n > row_work / g.k || (g.b_cs != 1 && g.a_cs != 1)) return false;
  chosen.row(g);
  return true;
}

// An operand of 16-bit floats as float32, its rows one after the other, or its columns where these
// are contiguous. Strides in elements.
static void widen(DType d, const char* from, int64_t rows, int64_t columns, int64_t& rs,
                  int64_t& cs, float* to) {
  const bool by_columns = cs != 1 && rs == 1;
  const int64_t lines = by_columns ? columns : rows, n = by_columns ? rows : columns;
  const int64_t apart = by_columns ? cs : rs, step = by_columns ? rs : cs;
  const Loop loop = cast_loop_of(d, DType::Float32);
  const int64_t steps[] = {sizeof(float), step * 2};
  const bool adjoin = step == 1 && apart == n;
  for (int64_t i = 0; i < (adjoin ? 1 : lines); ++i) {
    char* const places[] = {reinterpret_cast<char*>(to + i * n),
                            const_cast<char*>(from) + i * apart * 2};
    loop(places, steps, adjoin ? lines * n : n, nullptr);
  }
  rs = by_columns ? 1 : n;
  cs = by_columns ? n : 1;
}
// A small product of 16-bit floats, a piece of its depth after the other: conversions cost less
// than what blocks and packing need.
static bool widened_small(const Gemm& g) {
  constexpr int64_t most_depth = 4 * small_depth;
  if (!is_half(g.dtype) || g.bias || !g.alpha.equals(1) || !g.beta.equals(0) || g.k == 0)
    return false;
  if (g.n < 2 || g.n > small_columns || g.k > most_depth || g.m > small_rows) return false;
  float a[small_rows * small_depth], b[small_depth * small_columns];
  float c[small_rows * small_columns], more[small_rows * small_columns];
  for (int64_t k = 0; k < g.k; k += small_depth) {
    const int64_t depth = std::min(small_depth, g.k - k);
    int64_t a_rs = g.a_rs, a_cs = g.a_cs, b_rs = g.b_rs, b_cs = g.b_cs;
    widen(g.dtype, g.a + k * a_cs * 2, g.m, depth, a_rs, a_cs, a);
    widen(g.dtype, g.b + k * b_rs * 2, depth, g.n, b_rs, b_cs, b);
    chosen.small({DType::Float32, g.m, g.n, depth, reinterpret_cast<const char*>(a), a_rs, a_cs,
                  reinterpret_cast<const char*>(b), b_rs, b_cs,
                  reinterpret_cast<char*>(k == 0 ? c : more), g.n, nullptr});
    if (k > 0)
      for (int64_t i = 0; i < g.m * g.n; ++i) c[i] += more[i];
  }
  const Loop loop = cast_loop_of(DType::Float32, g.dtype);
  const int64_t steps[] = {g.c_cs * 2, sizeof(float)};
  const bool adjoin = g.c_cs == 1 && g.c_rs == g.n;
  for (int64_t i = 0; i < (adjoin ? 1 : g.m); ++i) {
    char* const places[] = {g.c + i * g.c_rs * 2, reinterpret_cast<char*>(c + i * g.n)};
    loop(places, steps, adjoin ? g.m * g.n : g.n, nullptr);
  }
  return true;
}

// A small product that is scaled, or added to what C holds: it is made apart, and then joined.
template <class T> static bool join_small(const Gemm& g) {
  if (g.n > small_columns || g.k > small_depth || g.m > small_rows) return false;
  T product[small_rows * small_columns];
  if (!gemm_if_small({g.dtype, g.m, g.n, g.k, g.a, g.a_rs, g.a_cs, g.b, g.b_rs, g.b_cs,
                      reinterpret_cast<char*>(product), g.n, nullptr}))
    return false;
  const T alpha = g.alpha.to<T>(), beta = g.beta.to<T>();
  T* to = reinterpret_cast<T*>(g.c);
  const T* from = product;
  for (int64_t i = 0; i < g.m; ++i, to += g.c_rs, from += g.n) {
    if (beta == T(0))  // what C held is ignored, NaN included
      for (int64_t j = 0; j < g.n; ++j) to[j * g.c_cs] = alpha * from[j];
    else
      for (int64_t j = 0; j < g.n; ++j) to[j * g.c_cs] = alpha * from[j] + beta * to[j * g.c_cs];
  }
  return true;
}

void gemm(const Gemm& g) {
  if (g.m == 0 || g.n == 0) return;
  if (g.c_cs == 1 && g.alpha.equals(1) && g.beta.equals(0) &&
      gemm_if_small(
          {g.dtype, g.m, g.n, g.k, g.a, g.a_rs, g.a_cs, g.b, g.b_rs, g.b_cs, g.c, g.c_rs, g.bias}))
    return;
  // A product times 0 is not made, as in BLAS: it might be NaN.
  const bool none = g.k == 0 || (g.alpha.equals(0) && itemsize(g.dtype) > 2);
  if (!none && widened_small(g)) return;
  if (!none && !g.bias && g.dtype == DType::Float32 && join_small<float>(g)) return;
  if (!none && !g.bias && g.dtype == DType::Float64 && join_small<double>(g)) return;
  if (none) {
    dispatch(as_signed(g.dtype), PlainNumericTypes{}, [&]<class T> { scale_c<T>(g); });
    return;
  }
  const LongWork work(g.m * g.n * std::max<int64_t>(1, g.k / 16));
  if (goes_to_library(g)) return run_by_library(g);
  run_blocked(g);
}

namespace {

void drop_dim(GemmBatch& b, int at) {
  for (Dims* dims : {&b.sizes, &b.a, &b.b, &b.c}) dims->erase(at);
}
// One dim instead of two where each operand's indices go on from one to the other.
void join_dims(GemmBatch& b) {
  for (int d = b.sizes.size() - 1; d >= 0; --d)
    if (b.sizes[d] == 1) drop_dim(b, d);
  for (int d = b.sizes.size() - 2; d >= 0; --d) {
    const int64_t size = b.sizes[d + 1];
    if (b.a[d] != b.a[d + 1] * size || b.b[d] != b.b[d + 1] * size || b.c[d] != b.c[d + 1] * size)
      continue;
    b.sizes[d + 1] *= b.sizes[d];
    drop_dim(b, d);
  }
}

Gemm transposed(const Gemm& g) {
  Gemm t = g;
  t.m = g.n, t.n = g.m;
  t.a = g.b, t.a_rs = g.b_cs, t.a_cs = g.b_rs;
  t.b = g.a, t.b_rs = g.a_cs, t.b_cs = g.a_rs;
  t.c_rs = g.c_cs, t.c_cs = g.c_rs;
  return t;
}
bool is_thin(const Gemm& g) {
  return g.n == 1 && (g.dtype == DType::Float32 || g.dtype == DType::Float64) && g.k > 0 &&
         g.m <= thin_work / g.k && !g.bias && g.alpha.equals(1) && g.beta.equals(0) &&
         (g.m == 1 || g.a_rs == 1 || (g.a_cs == 1 && g.b_rs == 1));
}

}  // namespace

void gemm_batched(const Gemm& first, const GemmBatch& given) {
  GemmBatch batch = given;
  join_dims(batch);
  int64_t count = 1;
  for (int64_t s : batch.sizes) count *= s;
  if (count == 0) return;
  if (count == 1) return gemm(first);
  const auto size = static_cast<int64_t>(itemsize(first.dtype));
  const int dims = batch.sizes.size();
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end && !stopped(); ++q) {
      Gemm g = first;
      int64_t left = q;
      for (int d = dims - 1; d >= 0; --d) {
        const int64_t at = left % batch.sizes[d];
        left /= batch.sizes[d];
        g.a += at * batch.a[d] * size;
        g.b += at * batch.b[d] * size;
        g.c += at * batch.c[d] * size;
      }
      gemm(g);
    }
  };
  const int64_t work = std::max<int64_t>(1, first.m * first.n) * std::max<int64_t>(1, first.k);
  const LongWork all(count * work / 16);
  if (dims == 1) {
    // C^T = B^T A^T: a row times a matrix is a matrix times a column.
    const bool turned = first.m == 1 && first.n > 1;
    const Gemm g = turned ? transposed(first) : first;
    const int64_t a = (turned ? batch.b : batch.a)[0], b = (turned ? batch.a : batch.b)[0];
    if (is_thin(g)) {
      parallel_for(count, (1 << 18) / (work + 4), [&](int64_t begin, int64_t end) {
        chosen.thin({g.dtype, end - begin, g.m, g.k, g.a + begin * a * size, a, g.a_rs, g.a_cs,
                     g.b + begin * b * size, b, g.b_rs, g.c + begin * batch.c[0] * size, batch.c[0],
                     g.c_rs});
      });
      return end_if_stopped();
    }
  }
  // Few large products: threads inside each one; otherwise threads over the batch.
  if (count < num_threads() && work > (1 << 20))
    run(0, count);
  else
    parallel_for(count, std::max<int64_t>(1, (1 << 18) / work), run);
  end_if_stopped();
}

}  // namespace clew::kernels
