// Vector norms, variance and logsumexp.
// May include: base, kernels.
// Invariant: variance subtracts the mean before squaring, logsumexp the maximum before exp():
// neither cancels nor overflows. Comparisons may become selections: nobody reads the floating-point
// exception flags.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reduce.h"
#include "kernels/reduce_driver.h"
#include "kernels/softmax_exp.h"
#include "kernels/softmax_rows.h"

namespace clew::kernels {
namespace {

template <class T> struct real_type { using type = T; };
template <class R> struct real_type<std::complex<R>> { using type = R; };
template <class T> using real_t = typename real_type<T>::type;

template <class T> inline compute_t<real_t<T>> magnitude(T v) {
  if constexpr (is_complex_v<T>)
    return std::abs(v);
  else
    return std::abs(static_cast<compute_t<T>>(v));
}

// Kind: 0 counts nonzero, 1 adds, 2 adds squares, 3 adds powers, 4 and 5 the largest and smallest.
template <class T, int Kind> struct Norm {
  using C = compute_t<real_t<T>>;
  using In = T;
  using Aux = char;
  using Small = C;
  using Big = double;
  using Out = real_t<T>;
  double p;
  Small zero() const { return Kind == 5 ? std::numeric_limits<C>::infinity() : C(0); }
  Big start() const { return Kind == 5 ? std::numeric_limits<double>::infinity() : 0.0; }
  void add(Small& s, In v, Aux) const {
    if constexpr (Kind == 0)
      s += convert<bool>(v);
    else if constexpr (Kind == 1)
      s += magnitude(v);
    else if constexpr (Kind == 2) {
      if constexpr (is_complex_v<T>)
        s += v.real() * v.real() + v.imag() * v.imag();
      else
        s += static_cast<C>(v) * static_cast<C>(v);
    } else if constexpr (Kind == 3)
      s += std::pow(magnitude(v), static_cast<C>(p));
    else
      extreme(s, magnitude(v));
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
  using C = compute_t<T>;
  using In = T;
  using Aux = char;
  using Small = C;
  using Big = C;
  using Out = C;
  C zero() const { return -std::numeric_limits<C>::infinity(); }
  C start() const { return zero(); }
  void add(C& s, In v, Aux) const {
    C x = static_cast<C>(v);
    s = x > s ? x : s;
  }
  void merge(C& b, C s) const { b = s > b ? s : b; }
  void join(C& b, const C& o) const { merge(b, o); }
  C finish(const C& b) const { return std::abs(b) <= std::numeric_limits<C>::max() ? b : C(0); }
};

template <class T> struct SumExp {
  using C = compute_t<T>;
  using In = T;
  using Aux = C;
  using Small = C;
  using Big = double;
  using Out = double;
  Small zero() const { return 0; }
  Big start() const { return 0; }
  void add(Small& s, In v, Aux shift) const { s += exp_fast(static_cast<C>(v) - shift); }
  void merge(Big& b, Small s) const { b += s; }
  void join(Big& b, const Big& o) const { b += o; }
  Out finish(const Big& b) const { return b; }
};

// A scratch operand of dst's shape.
template <class A> struct Scratch {
  std::vector<A> values;
  Dims strides;
  NdView view;
  explicit Scratch(const NdView& like) : strides(like.ndim, 1) {
    for (int d = like.ndim - 2; d >= 0; --d) {
      strides[d] = strides[d + 1] * std::max<int64_t>(like.sizes[d + 1], 1);
    }
    values.resize(static_cast<size_t>(like.numel()) + 1);
    view = {reinterpret_cast<char*>(values.data()), like.sizes, strides.data(), like.ndim,
            dtype_of<A>()};
  }
};

int64_t terms(const NdView& dst, const NdView& src) {
  int64_t n = 1;
  for (int d = 0; d < src.ndim; ++d) n *= dst.sizes[d] == 1 ? src.sizes[d] : 1;
  return n;
}

}  // namespace

void reduce_norm(const NdView& dst, const NdView& src, double p) {
  dispatch(src.dtype, InexactTypes{}, [&]<class T>() {
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
  });
}

void reduce_var(const NdView* var, const NdView* mean, const NdView& src, double correction,
                bool root) {
  const NdView& shape = var ? *var : *mean;
  double n = static_cast<double>(terms(shape, src));
  dispatch(src.dtype, InexactTypes{}, [&]<class T>() {
    Scratch<typename Total<T>::Out> centre(shape);
    reduce_with(Total<T>{n}, centre.view, src);
    if (mean) copy(*mean, centre.view);
    if (var) {
      reduce_with(SquaredDeviation<T>{std::max(0.0, n - correction), root}, *var, src,
                  centre.values.data(), centre.strides.data());
    }
  });
}

void reduce_logsumexp(const NdView& dst, const NdView& src) {
  ReducePlan plan(dst, src);
  bool rows = plan.reduced.size() == 1 && plan.reduced[0].src == 1 && plan.count > 0;
  if (rows && (src.dtype == DType::Float32 || src.dtype == DType::Float64)) {
    dispatch(src.dtype, TypeList<float, double>{}, [&]<class T>() {
      const RowOps<T>& ops = row_ops<T>();
      parallel_for(plan.outputs, std::max<int64_t>(1, grain_default / 4 / plan.count),
                   [&](int64_t k0, int64_t k1) {
                     for (int64_t k = k0; k < k1; ++k) {
                       ReducePlan::Place at = plan.place(k);
                       const T* row = src.ptr<const T>() + at.src;
                       T top = ops.max(row, plan.count);
                       if (!(std::abs(top) <= std::numeric_limits<T>::max())) top = 0;
                       double sum = ops.exp_sum(row, plan.count, top);
                       dst.ptr<T>()[at.dst] =
                           static_cast<T>(std::log(sum) + static_cast<double>(top));
                     }
                   });
    });
    return;
  }
  dispatch(src.dtype, FloatTypes{}, [&]<class T>() {
    Scratch<compute_t<T>> shift(dst);
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
