// Sum, nansum, mean and product, counting nonzero elements, any and all.
// May include: base, kernels.
// Invariant: float sums run in blocks that are added up in double; integer sums wrap as two's
// complement does.
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "base/long_work.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_driver.h"

namespace clew::kernels {

ReducePlan::ReducePlan(const NdView& dst, const NdView& src, const int64_t* aux_strides) {
  for (int d = 0; d < src.ndim; ++d) {
    int64_t n = src.sizes[d];
    bool is_reduced = dst.sizes[d] == 1;
    (is_reduced ? count : outputs) *= n;
    if (n == 1) continue;
    ReduceAxis a{n, src.strides[d], dst.strides[d], aux_strides ? aux_strides[d] : 0};
    auto& list = is_reduced ? reduced : kept;
    int at = list.size();
    while (at > 0 && list[at - 1].src < a.src) --at;
    list.insert(at, a);
  }
  auto coalesce = [](SmallVec<ReduceAxis, 6>& list, bool result_too) {
    for (int d = list.size() - 1; d > 0; --d) {
      ReduceAxis &o = list[d - 1], &i = list[d];
      bool fits = o.src == i.src * i.size;
      if (result_too) fits = fits && o.dst == i.dst * i.size && o.aux == i.aux * i.size;
      if (!fits) continue;
      i.size *= o.size;
      list.erase(d - 1);
    }
  };
  coalesce(kept, true);
  coalesce(reduced, false);
}

TwoSteps::TwoSteps(const NdView& dst, const NdView& src) : dtype_(src.dtype) {
  constexpr int64_t short_row = 256, least = 2048;
  if (src.ndim < 3) return;
  const ReducePlan plan(dst, src);
  if (plan.reduced.size() < 2 || plan.kept.empty() || plan.outputs * plan.count < least) return;
  const ReduceAxis &row = plan.reduced.back(), &next = plan.kept.back();
  if (row.src != 1 || row.size >= short_row || next.src != row.size || next.size < 2) return;
  // Of windows that overlap another axis has its elements within the row.
  if (plan.reduced[plan.reduced.size() - 2].src < row.size) return;
  for (int d = 0; d < src.ndim; ++d) {
    const bool stays = dst.sizes[d] > 1 || (src.sizes[d] > 1 && src.strides[d] < row.size);
    sizes_.push_back(stays ? src.sizes[d] : 1);
  }
  strides_ = strides_in_order({nullptr, sizes_.data(), nullptr, src.ndim, dtype_});
  const int64_t count = plan.outputs * row.size;
  room_.reset(new char[static_cast<size_t>(count) * itemsize(dtype_)]);
}
NdView TwoSteps::middle() const {
  return {room_.get(), sizes_.data(), strides_.data(), sizes_.size(), dtype_};
}

DistinctOutputs::DistinctOutputs(const NdView& dst, const NdView& src)
    : dst_(dst), src_(src), dst_sizes_(dst.sizes, dst.ndim), src_sizes_(src.sizes, src.ndim) {
  for (int d = 0; d < src.ndim; ++d)
    if (src.strides[d] == 0 && dst.sizes[d] > 1) dst_sizes_[d] = src_sizes_[d] = 1;
}
NdView DistinctOutputs::dst() const {
  NdView v = dst_;
  v.sizes = dst_sizes_.data();
  return v;
}
NdView DistinctOutputs::src() const {
  NdView v = src_;
  v.sizes = src_sizes_.data();
  return v;
}
void DistinctOutputs::copy() const {
  Dims sizes = dst_sizes_;
  for (int d = 0; d < dst_.ndim; ++d) {
    if (sizes[d] == dst_.sizes[d]) continue;
    Dims once(dst_.strides, dst_.ndim);
    once[d] = 0;
    sizes[d] = dst_.sizes[d] - 1;
    NdView from = dst_, to = dst_;
    from.sizes = to.sizes = sizes.data();
    from.strides = once.data();
    to.data += dst_.strides[d] * static_cast<int64_t>(itemsize(dst_.dtype));
    kernels::copy(to, from);
    sizes[d] = dst_.sizes[d];
  }
}

void reduce_plan(const Reducer& reducer, const ReducePlan& plan) {
  if (plan.outputs == 0) return;
  if (plan.count == 0) return reducer.finish(reducer, plan, nullptr, 0);
  const bool cols = plan.by_columns(reducer.shortest) || plan.is_one_row();
  const bool wide = reducer.fast_lines && cols && plan.kept.back().src == 1;
  const int64_t width = wide ? wide_columns : reduce_columns;
  const int64_t blocks = cols ? (plan.kept.back().size + width - 1) / width : 1;
  const int64_t units = cols ? plan.outputs / plan.kept.back().size * blocks : plan.outputs;
  const int64_t range = plan.reduced.empty() ? 1 : plan.reduced[0].size;
  const int64_t total = plan.outputs * plan.count;
  const LongWork work(total);
  const int64_t pieces = std::min<int64_t>({num_threads(), range, total / grain_default + 1});
  if (pieces > 1 && units < pieces) {
    // Few outputs of many terms: the threads share the terms.
    const size_t list = static_cast<size_t>(plan.outputs) * reducer.item;
    const std::unique_ptr<char[]> partial(new char[static_cast<size_t>(pieces) * list]);
    parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
      for (int64_t k = first; k < last; ++k) {
        reducer.run(reducer, plan, k * range / pieces, (k + 1) * range / pieces, 0, units,
                    partial.get() + static_cast<size_t>(k) * list);
      }
    });
    reducer.finish(reducer, plan, partial.get(), pieces);
    return;
  }
  const int64_t per_unit = std::max<int64_t>(1, total / units);
  parallel_for(units, std::max<int64_t>(1, grain_default / per_unit), [&](int64_t u0, int64_t u1) {
    reducer.run(reducer, plan, 0, range, u0, u1, nullptr);
  });
}

namespace {

// Integers are added as unsigned, whose overflow is defined.
template <class T> struct SumTypes {
  using Small = std::conditional_t<std::is_integral_v<T>, uint64_t, compute_t<T>>;
  using Big = std::conditional_t<std::is_integral_v<T>, uint64_t,
                                 std::conditional_t<is_complex_v<T>, c128, double>>;
  using Out = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
};

template <class T> bool is_nan(T v) {
  if constexpr (is_complex_v<T>)
    return v.real() != v.real() || v.imag() != v.imag();
  else
    return v != v;
}

// The vector loops for T; nullptr_t where there are none.
template <class T> auto sum_loops() {
  const ReduceTable& table = reduce_table();
  if constexpr (std::is_same_v<T, float>)
    return &table.sum_float;
  else if constexpr (std::is_same_v<T, double>)
    return &table.sum_double;
  else if constexpr (std::is_same_v<T, bf16>)
    return &table.sum_bf16;
  else if constexpr (std::is_same_v<T, f16>)
    return &table.sum_f16;
  else if constexpr (std::is_same_v<T, c64>)
    return &table.sum_complex64;
  else if constexpr (std::is_same_v<T, c128>)
    return &table.sum_complex128;
  else if constexpr (std::is_same_v<T, int64_t>)
    return &table.sum_int64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return &table.sum_int32;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return &table.sum_uint8;
  else if constexpr (std::is_same_v<T, bool>)
    return &table.sum_bool;
  else
    return nullptr;
}

// The same for what is not NaN.
template <class T> auto present_loops() {
  if constexpr (std::is_same_v<T, float>)
    return &reduce_table().present_float;
  else if constexpr (std::is_same_v<T, double>)
    return &reduce_table().present_double;
  else if constexpr (std::is_same_v<T, bf16>)
    return &reduce_table().present_bf16;
  else if constexpr (std::is_same_v<T, f16>)
    return &reduce_table().present_f16;
  else
    return nullptr;
}

template <class T> auto product_loops() {
  if constexpr (std::is_same_v<T, float>)
    return &reduce_table().product_float;
  else if constexpr (std::is_same_v<T, double>)
    return &reduce_table().product_double;
  else
    return nullptr;
}

template <class T, bool SkipNan> struct Sum {
  using In = T;
  using Aux = char;
  using Small = typename SumTypes<T>::Small;
  using Big = typename SumTypes<T>::Big;
  using Out = typename SumTypes<T>::Out;
  static auto loops_of() {
    if constexpr (SkipNan)
      return present_loops<T>();
    else
      return sum_loops<T>();
  }
  double divisor = 1;  // of a mean; of inexact dtypes only
  decltype(loops_of()) loops = loops_of();
  Small zero() const { return Small(0); }
  Big start() const { return Big(0); }
  void add(Small& s, In v, Aux) const {
    auto x = static_cast<Small>(v);
    if constexpr (SkipNan && !std::is_integral_v<T>) x = is_nan(x) ? Small(0) : x;
    s += x;
  }
  void merge(Big& b, Small s) const { b += static_cast<Big>(s); }
  void join(Big& b, const Big& o) const { b += o; }
  Out finish(const Big& b) const {
    if constexpr (std::is_integral_v<T>)
      return convert<Out>(b);
    else
      return convert<Out>(divisor == 1 ? b : b / divisor);
  }
};

template <class T> struct Prod {
  using In = T;
  using Aux = char;
  using Small = typename SumTypes<T>::Small;
  using Big = typename SumTypes<T>::Big;
  using Out = typename SumTypes<T>::Out;
  decltype(product_loops<T>()) loops = product_loops<T>();
  Small zero() const { return Small(1); }
  Big start() const { return Big(1); }
  void add(Small& s, In v, Aux) const { s *= static_cast<Small>(v); }
  void merge(Big& b, Small s) const { b *= static_cast<Big>(s); }
  void join(Big& b, const Big& o) const { b *= o; }
  Out finish(const Big& b) const { return convert<Out>(b); }
};

// Which elements are not zero. A floating-point number is zero where no bit but its sign is set, so
// integers of its width serve it, too.
template <class T> struct Truth {
  T bits;  // those that count
  bool operator()(T v) const { return (v & bits) != 0; }
};
template <class T>
requires is_complex_v<T>
struct Truth<T> {
  bool operator()(T v) const { return v != T(0); }
};

template <class T> struct CountNonzero {
  using In = T;
  using Aux = char;
  using Small = uint32_t;  // a block holds far fewer terms than this counts
  using Big = int64_t;
  using Out = int64_t;
  Truth<T> nonzero;
  Small zero() const { return 0; }
  Big start() const { return 0; }
  void add(Small& s, In v, Aux) const { s += nonzero(v); }
  void merge(Big& b, Small s) const { b += s; }
  void join(Big& b, const Big& o) const { b += o; }
  Out finish(const Big& b) const { return b; }
};

// any(): whether a term is nonzero. all(): whether no term is zero, computed as any() of the
// negation.
template <class T> struct AnyAll {
  using In = T;
  using Aux = char;
  using Small = uint8_t;
  using Big = uint8_t;
  using Out = uint8_t;
  Truth<T> nonzero;
  bool all;
  Small zero() const { return 0; }
  Big start() const { return 0; }
  void add(Small& s, In v, Aux) const { s = static_cast<uint8_t>(s | (nonzero(v) != all)); }
  void merge(Big& b, Small s) const { b |= s; }
  void join(Big& b, const Big& o) const { b |= o; }
  Out finish(const Big& b) const { return all ? !b : b; }
};

// Runs `body` with src, or with a converted contiguous copy of it when dst's dtype is not src's
// natural result.
template <class Body> void with_natural(const NdView& dst, const NdView& src, Body&& body) {
  DType natural = is_integral(src.dtype) ? DType::Int64 : src.dtype;
  // The wider unsigned types have no loops of their own: they are converted first.
  if (dst.dtype == natural && as_signed(src.dtype) == src.dtype) {
    body(dst, src);
    return;
  }
  int64_t n = src.numel();
  const Dims strides = strides_in_order(src);
  std::unique_ptr<char[]> room(
      new char[std::max<size_t>(1, static_cast<size_t>(n) * itemsize(dst.dtype))]);
  NdView converted{room.get(), src.sizes, strides.data(), src.ndim, dst.dtype};
  copy(converted, src);
  converted.dtype = as_signed(dst.dtype);
  if (dst.dtype == DType::Int64 || !is_integral(dst.dtype)) {
    body(dst, converted);
    return;
  }
  if (dst.dtype == DType::UInt64) {
    NdView out = dst;
    out.dtype = DType::Int64;
    body(out, converted);
    return;
  }
  // A narrow integer result: sum in int64, then convert.
  int64_t outs = dst.numel();
  const Dims dst_strides = strides_in_order(dst);
  std::vector<int64_t> wide(static_cast<size_t>(outs) + 1);
  NdView tmp{reinterpret_cast<char*>(wide.data()), dst.sizes, dst_strides.data(), dst.ndim,
             DType::Int64};
  body(tmp, converted);
  copy(dst, tmp);
}

}  // namespace

// Whether sums may be rounded to the result's dtype on the way.
static bool rounds_alike(const NdView& dst, const NdView& src) {
  return dst.dtype == src.dtype && is_inexact(dst.dtype) && itemsize(dst.dtype) > 2;
}

void reduce_sum(const NdView& dst, const NdView& src) {
  if (rounds_alike(dst, src))
    if (const TwoSteps steps(dst, src); steps) {
      reduce_sum(steps.middle(), src);
      return reduce_sum(dst, steps.middle());
    }
  with_natural(dst, src, [](const NdView& d, const NdView& s) {
    dispatch(s.dtype, PlainTypes{}, [&]<class T>() { reduce_with(Sum<T, false>{}, d, s); });
  });
}

// Integers have no NaN, which is 0 before it is converted.
static void sum_present_as_integers(const NdView& dst, const NdView& src) {
  const auto n = static_cast<size_t>(src.numel());
  const Dims strides = strides_in_order(src);
  const std::unique_ptr<char[]> room(new char[std::max<size_t>(1, n * itemsize(src.dtype))]);
  const NdView present{room.get(), src.sizes, strides.data(), src.ndim, src.dtype};
  copy(present, src);
  dispatch(src.dtype, FloatTypes{}, [&]<class T>() {
    for (T& v : std::span(reinterpret_cast<T*>(room.get()), n))
      if (std::isnan(static_cast<double>(v))) v = T(0);
  });
  reduce_sum(dst, present);
}

void reduce_nansum(const NdView& dst, const NdView& src) {
  if (is_integral(src.dtype)) return reduce_sum(dst, src);
  if (is_integral(dst.dtype)) return sum_present_as_integers(dst, src);
  with_natural(dst, src, [](const NdView& d, const NdView& s) {
    dispatch(s.dtype, FloatTypes{}, [&]<class T>() { reduce_with(Sum<T, true>{}, d, s); });
  });
}

void reduce_prod(const NdView& dst, const NdView& src) {
  with_natural(dst, src, [](const NdView& d, const NdView& s) {
    dispatch(s.dtype, PlainTypes{}, [&]<class T>() { reduce_with(Prod<T>{}, d, s); });
  });
}

static void sum_over(const NdView& dst, const NdView& src, double divisor) {
  with_natural(dst, src, [=](const NdView& d, const NdView& s) {
    dispatch(s.dtype, InexactTypes{},
             [&]<class T>() { reduce_with(Sum<T, false>{divisor}, d, s); });
  });
}
void reduce_mean(const NdView& dst, const NdView& src) {
  double n = 1;
  for (int k = 0; k < src.ndim; ++k)
    n *= dst.sizes[k] == 1 ? static_cast<double>(src.sizes[k]) : 1.0;
  if (rounds_alike(dst, src))
    if (const TwoSteps steps(dst, src); steps) {
      reduce_sum(steps.middle(), src);
      return sum_over(dst, steps.middle(), n);
    }
  sum_over(dst, src, n);
}

static_assert(ColumnSums::batch == reduce_batch);

bool ColumnSums::adds(DType d) { return d == DType::Float32 || d == DType::Float64; }

int64_t ColumnSums::pieces(int64_t rows, int64_t columns) {
  return std::min<int64_t>({num_threads(), rows, rows * columns / grain_default + 1});
}

void ColumnSums::add(const char* rows, int64_t count) {
  const auto columns = static_cast<int64_t>(totals_.size());
  dispatch(dtype_, TypeList<float, double>{}, [&]<class T>() {
    const T* at[reduce_batch];
    for (int64_t first = 0; first < count; first += reduce_batch) {
      const int64_t n = std::min(reduce_batch, count - first);
      for (int64_t r = 0; r < n; ++r)
        at[r] = reinterpret_cast<const T*>(rows) + (first + r) * columns;
      sum_loops<T>()->columns(at, n, columns, totals_.data());
    }
  });
}

void ColumnSums::join(const ColumnSums& next) {
  for (size_t j = 0; j < totals_.size(); ++j) totals_[j] += next.totals_[j];
}

void ColumnSums::finish(char* out, double divisor) const {
  dispatch(dtype_, TypeList<float, double>{}, [&]<class T>() {
    T* to = reinterpret_cast<T*>(out);
    for (double total : totals_) *to++ = convert<T>(divisor != 0 ? total / divisor : total);
  });
}

int64_t TotalSum::pieces(int64_t n) {
  return std::min<int64_t>({num_threads(), n, n / grain_default + 1});
}

TotalSum::Cut TotalSum::cut(DType d, int64_t n) {
  Cut found{};
  dispatch(d, TypeList<float, double>{}, [&]<class T>() {
    const auto& loops = *sum_loops<T>();
    found = {1, 0, loops.block, row_places * loops.block};
    if (n < loops.long_row) return;
    found.places = row_places;
    found.each = n / row_places / loops.step * loops.step;
  });
  return found;
}

void TotalSum::add_places(const char* p, int64_t apart, int64_t count) {
  dispatch(dtype_, TypeList<float, double>{}, [&]<class T>() {
    sum_loops<T>()->at_places(reinterpret_cast<const T*>(p), apart, count, total_);
  });
}

void TotalSum::add(const char* p, int64_t count) {
  dispatch(dtype_, TypeList<float, double>{},
           [&]<class T>() { sum_loops<T>()->row(reinterpret_cast<const T*>(p), count, total_); });
}

void TotalSum::finish(char* out, double divisor) const {
  dispatch(dtype_, TypeList<float, double>{}, [&]<class T>() {
    *reinterpret_cast<T*>(out) = convert<T>(divisor != 0 ? total_ / divisor : total_);
  });
}

// f(elements, which of them are not zero).
template <class F> static void with_truth(const NdView& src, F&& f) {
  NdView v = src;
  if (is_complex(v.dtype)) {
    dispatch(v.dtype, TypeList<c64, c128>{}, [&]<class T>() { f(v, Truth<T>{}); });
    return;
  }
  const size_t width = itemsize(v.dtype);
  const uint64_t bits = is_floating(v.dtype) ? ~(uint64_t{1} << (8 * width - 1)) : ~uint64_t{0};
  v.dtype = width == 1   ? DType::UInt8
            : width == 2 ? DType::Int16
            : width == 4 ? DType::Int32
                         : DType::Int64;
  dispatch(v.dtype, TypeList<uint8_t, int16_t, int32_t, int64_t>{},
           [&]<class T>() { f(v, Truth<T>{static_cast<T>(bits)}); });
}

static void reduce_truth(const NdView& dst, const NdView& src, bool all) {
  with_truth(src, [&]<class T>(const NdView& v, Truth<T> nonzero) {
    reduce_with(AnyAll<T>{nonzero, all}, dst, v);
  });
}
void reduce_any(const NdView& dst, const NdView& src) { reduce_truth(dst, src, false); }
void reduce_all(const NdView& dst, const NdView& src) { reduce_truth(dst, src, true); }

void reduce_count_nonzero(const NdView& dst, const NdView& src) {
  with_truth(src, [&]<class T>(const NdView& v, Truth<T> nonzero) {
    reduce_with(CountNonzero<T>{nonzero}, dst, v);
  });
}

}  // namespace clew::kernels
