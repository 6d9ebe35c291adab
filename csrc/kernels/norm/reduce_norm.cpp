// Vector norms, variance and logsumexp.
// May include: base, kernels.
// Invariant: variance subtracts the mean before squaring, logsumexp the maximum before exp():
// neither cancels nor overflows.
#include <cmath>
#include <limits>
#include <vector>

#include "base/long_work.h"
#include "base/scratch.h"
#include "kernels/norm/norm_loops.h"
#include "kernels/norm/softmax_columns.h"
#include "kernels/norm/softmax_exp.h"
#include "kernels/norm/softmax_rows.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_driver.h"

namespace clew::kernels {
namespace {

template <class T> struct real_type { using type = T; };
template <class R> struct real_type<std::complex<R>> { using type = R; };
template <class T> using real_t = typename real_type<T>::type;

template <class T, int Kind> auto norm_sums() {
  const ReduceTable& table = reduce_table();
  if constexpr (std::is_same_v<T, float> && (Kind == 1 || Kind == 2))
    return Kind == 1 ? &table.abs_float : &table.squares_float;
  else if constexpr (std::is_same_v<T, double> && (Kind == 1 || Kind == 2))
    return Kind == 1 ? &table.abs_double : &table.squares_double;
  else if constexpr (std::is_same_v<T, bf16> && (Kind == 1 || Kind == 2))
    return Kind == 1 ? &table.abs_bf16 : &table.squares_bf16;
  else if constexpr (std::is_same_v<T, f16> && (Kind == 1 || Kind == 2))
    return Kind == 1 ? &table.abs_f16 : &table.squares_f16;
  else
    return nullptr;
}

// Kind: 0 counts nonzero, 1 adds, 2 adds squares, 3 adds powers, 4 and 5 the largest and smallest.
template <class T, int Kind> struct Norm {
  using C = compute_t<T>;
  using In = T;
  using Aux = char;
  using Small = C;
  using Big = double;
  using Out = T;
  double p;
  decltype(norm_sums<T, Kind>()) loops = norm_sums<T, Kind>();
  Small zero() const { return Kind == 5 ? std::numeric_limits<C>::infinity() : C(0); }
  Big start() const { return Kind == 5 ? std::numeric_limits<double>::infinity() : 0.0; }
  void add(Small& s, In v, Aux) const {
    const C x = std::abs(static_cast<C>(v));
    if constexpr (Kind == 0)
      s += convert<bool>(x);
    else if constexpr (Kind == 1)
      s += x;
    else if constexpr (Kind == 2)
      s += x * x;
    else if constexpr (Kind == 3)
      s += std::pow(x, static_cast<C>(p));
    else
      extreme(s, x);
  }
  void merge(Big& b, Small s) const {
    if constexpr (Kind >= 4)
      extreme(b, static_cast<double>(s));
    else
      b += s;
  }
  void join(Big& b, const Big& o) const {
    if constexpr (Kind >= 4)
      extreme(b, o);
    else
      b += o;
  }
  Out finish(const Big& b) const {
    if constexpr (Kind == 2)
      return static_cast<Out>(static_cast<C>(std::sqrt(b)));
    else if constexpr (Kind == 3)
      return static_cast<Out>(static_cast<C>(std::pow(b, 1.0 / p)));
    else
      return static_cast<Out>(static_cast<C>(b));
  }

 private:
  template <class V> static void extreme(V& s, V x) {
    if constexpr (Kind == 4)
      s = (x > s) | (x != x) ? x : s;
    else
      s = (x < s) | (x != x) ? x : s;
  }
};

template <class T> struct Total {
  using In = T;
  using Aux = char;
  using Small =
      std::conditional_t<is_complex_v<T>, c128, double>;  // a rounded mean would spoil the variance
  using Big = Small;
  using Out = Big;
  double n;
  Small zero() const { return Small(0); }
  Big start() const { return Big(0); }
  void add(Small& s, In v, Aux) const { s += static_cast<Small>(static_cast<compute_t<T>>(v)); }
  void merge(Big& b, Small s) const { b += static_cast<Big>(s); }
  void join(Big& b, const Big& o) const { b += o; }
  Out finish(const Big& b) const { return b / n; }
};

template <class T> struct SquaredDeviation {
  using In = T;
  using Aux = std::conditional_t<is_complex_v<T>, c128, double>;
  using Small = double;
  using Big = double;
  using Out = real_t<T>;
  double divisor;
  bool root;
  Small zero() const { return 0; }
  Big start() const { return 0; }
  void add(Small& s, In v, Aux mean) const {
    if constexpr (is_complex_v<T>) {
      double re = v.real() - mean.real(), im = v.imag() - mean.imag();
      s += re * re + im * im;
    } else {
      double d = static_cast<double>(static_cast<compute_t<T>>(v)) - mean;
      s += d * d;
    }
  }
  void merge(Big& b, Small s) const { b += s; }
  void join(Big& b, const Big& o) const { b += o; }
  Out finish(const Big& b) const {
    double v = b / divisor;
    if (root) v = std::sqrt(v);
    return static_cast<Out>(static_cast<compute_t<Out>>(v));
  }
};

// The shift of logsumexp: the maximum, or 0 where that is not finite.
template <class T> struct Shift {
  using In = T;
  using Aux = char;
  using Small = T;
  using Big = T;
  using Out = T;
  T zero() const { return -std::numeric_limits<T>::infinity(); }
  T start() const { return zero(); }
  void add(T& s, In v, Aux) const { s = v > s ? v : s; }
  void merge(T& b, T s) const { b = s > b ? s : b; }
  void join(T& b, const T& o) const { merge(b, o); }
  T finish(const T& b) const { return std::abs(b) <= std::numeric_limits<T>::max() ? b : T(0); }
};

template <class T> struct SumExp {
  using In = T;
  using Aux = T;
  using Small = T;
  using Big = double;
  using Out = double;
  Small zero() const { return 0; }
  Big start() const { return 0; }
  void add(Small& s, In v, Aux shift) const { s += exp_fast(v - shift); }
  void merge(Big& b, Small s) const { b += s; }
  void join(Big& b, const Big& o) const { b += o; }
  Out finish(const Big& b) const { return b; }
};

// A scratch operand of dst's shape.
template <class A> struct Scratch {
  std::vector<A> values;
  Dims strides;
  NdView view;
  explicit Scratch(const NdView& like) : strides(strides_in_order(like)) {
    values.resize(static_cast<size_t>(like.numel()) + 1);
    view = {reinterpret_cast<char*>(values.data()), like.sizes, strides.data(), like.ndim,
            dtype_of<A>()};
  }
};

// The elements as floats, next to each other, in memory that the thread keeps for its next call.
const LocalScratch floats;
class Widened {
  Dims strides_;

 public:
  NdView view;
  explicit Widened(const NdView& from) : strides_(strides_in_order(from)) {
    view = {reinterpret_cast<char*>(floats.of<float>(from.numel() + 1)), from.sizes,
            strides_.data(), from.ndim, DType::Float32};
    copy(view, from);
  }
  Widened(const Widened&) = delete;
  ~Widened() { floats.trim(64); }
};

int64_t terms(const NdView& dst, const NdView& src) {
  int64_t n = 1;
  for (int d = 0; d < src.ndim; ++d) n *= dst.sizes[d] == 1 ? src.sizes[d] : 1;
  return n;
}

// Norms of float or double elements.
template <class T> void norm_of_reals(const NdView& dst, const NdView& src, double p) {
  if (p == 2)
    reduce_with(Norm<T, 2>{p}, dst, src);
  else if (p == 1)
    reduce_with(Norm<T, 1>{p}, dst, src);
  else if (p == 0)
    reduce_with(Norm<T, 0>{p}, dst, src);
  else if (p == std::numeric_limits<double>::infinity())
    reduce_with(Norm<T, 4>{p}, dst, src);
  else if (p == -std::numeric_limits<double>::infinity())
    reduce_with(Norm<T, 5>{p}, dst, src);
  else
    reduce_with(Norm<T, 3>{p}, dst, src);
}

// Norms of 16-bit floats by those of float.
void norm_of_halves(const NdView& dst, const NdView& src, double p) {
  dispatch(src.dtype, TypeList<f16, bf16>{}, [&]<class T>() {
    if (p == 2) return reduce_with(Norm<T, 2>{p}, dst, src);
    if (p == 1) return reduce_with(Norm<T, 1>{p}, dst, src);
    const Widened wide(src);
    Scratch<float> made(dst);
    norm_of_reals<float>(made.view, wide.view, p);
    copy(dst, made.view);
  });
}

// Norms of complex numbers z: squares are those of the parts, the others see |z|.
template <class R> void norm_of_complex(const NdView& dst, const NdView& src, double p) {
  if (p == 2) {
    Dims from_sizes, from_strides, to_sizes(dst.sizes, dst.ndim), to_strides(dst.strides, dst.ndim);
    for (int d = 0; d < src.ndim; ++d) {
      from_sizes.push_back(src.sizes[d]);
      from_strides.push_back(2 * src.strides[d]);
    }
    from_sizes.push_back(2);
    from_strides.push_back(1);
    to_sizes.push_back(1);
    to_strides.push_back(1);
    const int n = src.ndim + 1;
    return norm_of_reals<R>({dst.data, to_sizes.data(), to_strides.data(), n, dst.dtype},
                            {src.data, from_sizes.data(), from_strides.data(), n, dtype_of<R>()},
                            p);
  }
  Scratch<R> magnitudes(src);
  const int64_t n = src.numel();
  auto measure = [&](const std::complex<R>* from) {
    parallel_for(n, grain_default / 4, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) magnitudes.values[static_cast<size_t>(i)] = std::abs(from[i]);
    });
  };
  if (src.contiguous()) {
    measure(src.ptr<const std::complex<R>>());
  } else {
    Scratch<std::complex<R>> together(src);
    copy(together.view, src);
    measure(together.values.data());
  }
  norm_of_reals<R>(dst, magnitudes.view, p);
}

}  // namespace

void reduce_norm(const NdView& dst, const NdView& src, double p) {
  const LongWork work(src.numel());
  switch (src.dtype) {
    case DType::Float32: return norm_of_reals<float>(dst, src, p);
    case DType::Float64: return norm_of_reals<double>(dst, src, p);
    case DType::Complex64: return norm_of_complex<float>(dst, src, p);
    case DType::Complex128: return norm_of_complex<double>(dst, src, p);
    default: return norm_of_halves(dst, src, p);
  }
}

namespace {

// Variance and mean in one pass by the vector loops of normalisation, for neighbours in memory.
// False if the reduced elements are not neighbours.
template <class T>
bool var_by_loops(const NdView* var, const NdView* mean, const NdView& src, double divisor,
                  bool root) {
  const NdView& shape = var ? *var : *mean;
  ReducePlan plan(shape, src, mean ? mean->strides : nullptr);
  if (plan.outputs == 0 || plan.reduced.empty() || plan.count == 0) return false;
  const NormLoops<T>& loops = norm_loops<T>();
  const int axes = plan.reduced.size();
  bool cols = plan.by_columns();
  if (cols ? plan.kept.back().src != 1 || axes != 1 : plan.reduced.back().src != 1 || axes > 2)
    return false;
  T* out = var ? var->ptr<T>() : nullptr;
  T* mean_out = mean ? mean->ptr<T>() : nullptr;
  auto put = [&](int64_t k, double m, double squares) {
    ReducePlan::Place at = plan.place(k);
    double v = squares / divisor;
    if (out) out[at.dst] = static_cast<T>(root ? std::sqrt(v) : v);
    if (mean_out) mean_out[at.aux] = static_cast<T>(m);
  };
  const ReduceAxis outer = plan.reduced[0];
  int64_t work = plan.outputs * plan.count;
  // Columns are done a few thousand at a time, rows one by one; few of them are cut into pieces.
  int64_t width = cols ? std::min<int64_t>(plan.kept.back().size, 2048) : 1;
  int64_t blocks = cols ? (plan.kept.back().size + width - 1) / width : 1;
  int64_t units = cols ? plan.outputs / plan.kept.back().size * blocks : plan.outputs;
  int64_t pieces = std::min<int64_t>({num_threads(), outer.size, work / grain_default + 1});
  if (units >= pieces) pieces = 1;
  auto room = static_cast<size_t>(plan.outputs * pieces);
  std::vector<double> means(room), squares(room);
  const T* in = src.ptr<const T>();
  parallel_for(pieces * units,
               std::max<int64_t>(1, grain_default * units * pieces / std::max<int64_t>(work, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   int64_t u = i % units, p = i / units;
                   int64_t lo = p * outer.size / pieces, hi = (p + 1) * outer.size / pieces;
                   int64_t inner = cols ? plan.kept.back().size : 1;
                   int64_t k = u / blocks * inner + u % blocks * width;
                   auto at = static_cast<size_t>(p * plan.outputs + k);
                   const T* from = in + plan.place(k).src + lo * outer.src;
                   if (cols) {
                     int64_t w = std::min(width, inner - u % blocks * width);
                     loops.column_moments(from, hi - lo, w, outer.src, &means[at], &squares[at]);
                   } else {
                     Planes planes{1, 0, hi - lo};
                     if (axes == 2) planes = {hi - lo, outer.src, plan.reduced[1].size};
                     loops.moments(from, planes, &means[at], &squares[at]);
                   }
                 }
               });
  for (int64_t k = 0; k < plan.outputs; ++k) {
    double m = 0, q = 0, n = 0;
    for (int64_t p = 0; p < pieces; ++p) {
      auto at = static_cast<size_t>(p * plan.outputs + k);
      auto terms = static_cast<double>(((p + 1) * outer.size / pieces - p * outer.size / pieces) *
                                       (plan.count / outer.size));
      join_moments(m, q, n, means[at], squares[at], terms);
      n += terms;
    }
    put(k, m, q);
  }
  return true;
}

}  // namespace

void reduce_var(const NdView* var, const NdView* mean, const NdView& src, double correction,
                bool root) {
  const LongWork work(src.numel());
  const NdView& shape = var ? *var : *mean;
  const auto n = static_cast<double>(terms(shape, src));
  const double divisor = n > 0 ? std::max(0.0, n - correction) : 0;  // of no terms: 0 / 0
  if (is_half(src.dtype)) {
    const Widened wide(src);
    Scratch<float> variances(shape), means(shape);
    reduce_var(var ? &variances.view : nullptr, mean ? &means.view : nullptr, wide.view, correction,
               root);
    if (var) copy(*var, variances.view);
    if (mean) copy(*mean, means.view);
    return;
  }
  if (src.dtype == DType::Float32 && var_by_loops<float>(var, mean, src, divisor, root)) return;
  if (src.dtype == DType::Float64 && var_by_loops<double>(var, mean, src, divisor, root)) return;
  dispatch(src.dtype, TypeList<float, double, c64, c128>{}, [&]<class T>() {
    Scratch<typename Total<T>::Out> centre(shape);
    reduce_with(Total<T>{n}, centre.view, src);
    if (mean) copy(*mean, centre.view);
    if (var) {
      reduce_with(SquaredDeviation<T>{divisor, root}, *var, src, centre.values.data(),
                  centre.strides.data());
    }
  });
}

// Rows of 16-bit floats that lie next to each other in memory, each as floats.
static void logsumexp_of_half_rows(const NdView& dst, const NdView& src, const ReducePlan& plan) {
  dispatch(src.dtype, TypeList<f16, bf16>{}, [&]<class T>() {
    parallel_for(plan.outputs, std::max<int64_t>(1, grain_default / 4 / plan.count),
                 [&](int64_t k0, int64_t k1) {
                   const int64_t one = 1;
                   std::vector<float> row(static_cast<size_t>(plan.count));
                   const NdView wide{reinterpret_cast<char*>(row.data()), &plan.count, &one, 1,
                                     DType::Float32};
                   for (int64_t k = k0; k < k1; ++k) {
                     const ReducePlan::Place at = plan.place(k);
                     copy(wide, {reinterpret_cast<char*>(src.ptr<T>() + at.src), &plan.count, &one,
                                 1, src.dtype});
                     double sum;
                     row_ops<float>().log_sums(&sum, row.data(), 1, plan.count);
                     dst.ptr<T>()[at.dst] = static_cast<T>(static_cast<float>(sum));
                   }
                 });
  });
}

void reduce_logsumexp(const NdView& dst, const NdView& src) {
  const LongWork work(src.numel());
  ReducePlan plan(dst, src);
  bool rows = plan.reduced.size() == 1 && plan.reduced[0].src == 1 && plan.count > 0;
  if (is_half(src.dtype)) {
    constexpr int64_t long_row = 256;  // worth being widened by itself
    if (rows && plan.count >= long_row) return logsumexp_of_half_rows(dst, src, plan);
    const Widened wide(src);
    Scratch<float> made(dst);
    reduce_logsumexp(made.view, wide.view);
    return copy(dst, made.view);
  }
  if (rows && (src.dtype == DType::Float32 || src.dtype == DType::Float64)) {
    constexpr int64_t short_row = 16;  // are turned, for as columns they are done side by side
    dispatch(src.dtype, TypeList<float, double>{}, [&]<class T>() {
      if (plan.count <= short_row) {
        return parallel_for(
            plan.outputs, std::max<int64_t>(column_tile, grain_default / 4 / plan.count),
            [&](int64_t k0, int64_t k1) {
              T turned[short_row * column_tile];
              double sums[column_tile];
              int64_t to[column_tile];
              for (int64_t first = k0; first < k1; first += column_tile) {
                const int64_t w = std::min(column_tile, k1 - first);
                for (int64_t j = 0; j < w; ++j) {
                  const ReducePlan::Place at = plan.place(first + j);
                  const T* row = src.ptr<const T>() + at.src;
                  to[j] = at.dst;
                  for (int64_t i = 0; i < plan.count; ++i) turned[i * column_tile + j] = row[i];
                }
                column_softmax<T>().log_sum(sums, turned, column_tile, plan.count, w);
                for (int64_t j = 0; j < w; ++j) dst.ptr<T>()[to[j]] = static_cast<T>(sums[j]);
              }
            });
      }
      const bool adjoin = !plan.kept.empty() && plan.kept.back().src == plan.count;
      parallel_for(plan.outputs, std::max<int64_t>(1, grain_default / 4 / plan.count),
                   [&](int64_t k0, int64_t k1) {
                     constexpr int64_t together = 64;
                     double sums[together];
                     for (int64_t k = k0, many; k < k1; k += many) {
                       const ReducePlan::Place at = plan.place(k);
                       many = 1;
                       if (adjoin) {
                         const int64_t size = plan.kept.back().size;
                         many = std::min({together, k1 - k, size - k % size});
                       }
                       row_ops<T>().log_sums(sums, src.ptr<const T>() + at.src, many, plan.count);
                       const int64_t step = adjoin ? plan.kept.back().dst : 0;
                       for (int64_t j = 0; j < many; ++j)
                         dst.ptr<T>()[at.dst + j * step] = static_cast<T>(sums[j]);
                     }
                   });
    });
    return;
  }
  bool columns = plan.by_columns() && plan.reduced.size() == 1 && plan.kept.back().src == 1 &&
                 plan.kept.back().dst == 1 && plan.count > 0;
  if (columns && (src.dtype == DType::Float32 || src.dtype == DType::Float64)) {
    dispatch(src.dtype, TypeList<float, double>{}, [&]<class T>() {
      int64_t inner = plan.kept.back().size, tiles = (inner + column_tile - 1) / column_tile;
      parallel_for(plan.outputs / std::max<int64_t>(inner, 1) * tiles,
                   std::max<int64_t>(1, grain_default / 4 / (plan.count * column_tile)),
                   [&](int64_t u0, int64_t u1) {
                     for (int64_t u = u0; u < u1; ++u) {
                       int64_t first = u % tiles * column_tile;
                       ReducePlan::Place at = plan.place(u / tiles * inner + first);
                       int64_t w = std::min(column_tile, inner - first);
                       double sums[column_tile];
                       column_softmax<T>().log_sum(sums, src.ptr<const T>() + at.src,
                                                   plan.reduced[0].src, plan.count, w);
                       for (int64_t j = 0; j < w; ++j)
                         dst.ptr<T>()[at.dst + j] = static_cast<T>(sums[j]);
                     }
                   });
    });
    return;
  }
  dispatch(src.dtype, TypeList<float, double>{}, [&]<class T>() {
    Scratch<T> shift(dst);
    Scratch<double> sum(dst);
    reduce_with(Shift<T>{}, shift.view, src);
    reduce_with(SumExp<T>{}, sum.view, src, shift.values.data(), shift.strides.data());
    for (size_t i = 0; i + 1 < sum.values.size(); ++i) {
      sum.values[i] = std::log(sum.values[i]) + static_cast<double>(shift.values[i]);
    }
    copy(dst, sum.view);
  });
}

}  // namespace clew::kernels
