// Distinct elements and counts of integers: results whose size depends on the data.
// May include: ops, graph, tensor, kernels.
// Invariant: what is read twice is read from a copy that nobody else can write to.
#include <vector>

#include "base/long_work.h"
#include "base/read_once.h"
#include "graph/modes.h"
#include "kernels/reduce/reduce.h"
#include "kernels/sort/distinct.h"
#include "ops/calls/indexing.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/reduction/reduction_dims.h"

namespace clew {
namespace {

struct UniqueAttrs {
  bool sorted = true;
  bool return_inverse = false;
  bool return_counts = false;
  static constexpr auto members() {
    return std::tuple(&UniqueAttrs::sorted, &UniqueAttrs::return_inverse,
                      &UniqueAttrs::return_counts);
  }
};
struct UniqueDimAttrs {
  int64_t dim = 0;
  bool sorted = true;
  bool return_inverse = false;
  bool return_counts = false;
  static constexpr auto members() {
    return std::tuple(&UniqueDimAttrs::dim, &UniqueDimAttrs::sorted,
                      &UniqueDimAttrs::return_inverse, &UniqueDimAttrs::return_counts);
  }
};
struct ConsecutiveAttrs {
  bool return_inverse = false;
  bool return_counts = false;
  std::optional<int64_t> dim;
  static constexpr auto members() {
    return std::tuple(&ConsecutiveAttrs::return_inverse, &ConsecutiveAttrs::return_counts,
                      &ConsecutiveAttrs::dim);
  }
};

void refuse_complex(const Call& c) {
  require(!c.in[0].is_complex(), c.name(), ": complex input is not supported; got ", c.in[0]);
}

// The distinct elements of x in ascending order or, if only neighbours are compared, in their given
// order.
void unique_elements(const Call& c, Tensors& outs, bool sorted, bool inverse, bool counts) {
  refuse_complex(c);
  // Elements that are compared twice must not change in between, so they are copied. (Sorting
  // copies the elements itself.)
  const Tensor flat = sorted ? dense(c.in[0]) : dense_copy(c.in[0]);
  const int64_t n = flat.numel();
  const Tensor elements = alias(flat, {n}, {1});
  const kernels::NdView view = elements.nd();
  int64_t found = 0;
  std::unique_ptr<kernels::DistinctElements> distinct;
  Tensor room;
  if (n > 0 && !sorted) {
    distinct = kernels::consecutive_elements(view);
    found = distinct->count();
  } else if (n > 0) {
    room = empty(Dims{static_cast<int64_t>(kernels::distinct_room(view, inverse))}, DType::UInt8);
    distinct = kernels::distinct_elements(view, inverse, room->address());
    found = distinct->count();
  }
  Tensor values = empty(Dims{found}, flat.dtype());
  Tensor places = empty(inverse ? flat.sizes() : Dims{0}, DType::Int64);
  Tensor times = empty(Dims{counts ? found : 0}, DType::Int64);
  if (distinct) {
    distinct->write(values->address(), inverse ? places.data<int64_t>() : nullptr,
                    counts ? times.data<int64_t>() : nullptr);
  }
  outs.push_back(std::move(values));
  outs.push_back(std::move(places));
  outs.push_back(std::move(times));
}

// The distinct rows of x along dim, by content or, next to each other, in order of appearance.
void unique_slices(const Call& c, Tensors& outs, int64_t dim, bool sorted, bool inverse,
                   bool counts) {
  refuse_complex(c);
  const Tensor& x = c.in[0];
  int axis = axis_of(dim, x.ndim(), c.name());
  bool whole = x.ndim() == 0;
  int64_t n = whole ? x.numel() : x.sizes()[axis], m = 1;
  if (!whole) {
    for (int d = 0; d < x.ndim(); ++d) {
      if (d != axis) m *= x.sizes()[d];
    }
    require(m > 0 || n == 0, c.name(), ": there are no elements to compare along dim ", axis,
            "; got ", x);
  }
  // A contiguous [n, m] copy with the axis in front.
  Dims strides, sizes;
  if (whole) {
    sizes = x.sizes();
    strides = x.strides();
  } else {
    sizes.push_back(n);
    strides.push_back(x.strides()[axis]);
    for (int d = 0; d < x.ndim(); ++d) {
      if (d == axis) continue;
      sizes.push_back(x.sizes()[d]);
      strides.push_back(x.strides()[d]);
    }
  }
  // Always a copy: sorting relies on elements that do not change in between.
  const Tensor rows = empty(sizes, x.dtype());
  copy_into(rows, alias(x, sizes, strides));
  int64_t flat_sizes[] = {n, m}, flat_strides[] = {m, 1};
  std::vector<int64_t> order(static_cast<size_t>(n)), starts;
  if (n > 0) {
    starts = kernels::equal_runs({rows->address(), flat_sizes, flat_strides, 2, x.dtype()},
                                 order.data(), sorted);
  }
  auto found = static_cast<int64_t>(starts.size());

  sizes = whole ? Dims{found} : sizes;
  if (!whole) sizes[0] = found;
  Tensor picked = empty(sizes, x.dtype());
  const size_t row_bytes = static_cast<size_t>(m) * itemsize(x.dtype());
  for (size_t i = 0; row_bytes > 0 && i < starts.size(); ++i) {
    const auto row = static_cast<size_t>(order[static_cast<size_t>(starts[i])]);
    std::memcpy(picked->address() + i * row_bytes, rows->address() + row * row_bytes, row_bytes);
  }
  if (!whole && axis != 0) {
    Dims out_sizes = x.sizes(), from;
    out_sizes[axis] = found;
    for (int d = 0; d < x.ndim(); ++d)
      from.push_back(picked.strides()[d == axis ? 0 : d < axis ? d + 1 : d]);
    Tensor moved = empty(out_sizes, x.dtype());
    copy_into(moved, alias(picked, out_sizes, from));
    picked = moved;
  }
  outs.push_back(picked);

  Tensor back = empty(!inverse ? Dims{0} : whole ? x.sizes() : Dims{n}, DType::Int64);
  Tensor times = empty(!counts ? Dims{0} : Dims{found}, DType::Int64);
  for (int64_t i = 0; i < found; ++i) {
    int64_t begin = starts[static_cast<size_t>(i)],
            end = i + 1 < found ? starts[static_cast<size_t>(i) + 1] : n;
    if (counts) times.data<int64_t>()[i] = end - begin;
    for (int64_t k = begin; inverse && k < end; ++k)
      back.data<int64_t>()[order[static_cast<size_t>(k)]] = i;
  }
  outs.push_back(back);
  outs.push_back(times);
}

constexpr OpDef unique_op = finding({
    .signature = "_unique(Tensor input, bool sorted=True, bool return_inverse=False, bool "
                 "return_counts=False) -> "
                 "(Tensor output, Tensor inverse, Tensor counts)",
    .doc = "The distinct elements in rising order, where each element went, and how often each "
           "stands; the last two are "
           "empty unless asked for.",
    .find =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<UniqueAttrs>();
          unique_elements(c, outs, true, a.return_inverse, a.return_counts);
        },
    .attrs = &attr_info<UniqueAttrs>,
    .offer = Offer::function,
});
constexpr OpDef unique_dim_op = finding({
    .signature = "_unique_dim(Tensor input, int dim, bool sorted=True, bool return_inverse=False, "
                 "bool return_counts=False) -> (Tensor output, Tensor inverse, Tensor counts)",
    .doc = "The distinct slices along an axis in lexicographic order, where each went, and how "
           "often each stands.",
    .find =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<UniqueDimAttrs>();
          unique_slices(c, outs, a.dim, true, a.return_inverse, a.return_counts);
        },
    .attrs = &attr_info<UniqueDimAttrs>,
    .offer = Offer::function,
});
constexpr OpDef unique_consecutive_op = finding({
    .signature =
        "_unique_consecutive(Tensor input, bool return_inverse=False, bool return_counts=False, "
        "int? dim=None) -> (Tensor output, Tensor inverse, Tensor counts)",
    .doc = "The first element (or slice along dim) of every run of equal ones, where each went, "
           "and the runs' lengths.",
    .find =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<ConsecutiveAttrs>();
          if (a.dim)
            unique_slices(c, outs, *a.dim, false, a.return_inverse, a.return_counts);
          else
            unique_elements(c, outs, false, a.return_inverse, a.return_counts);
        },
    .attrs = &attr_info<ConsecutiveAttrs>,
    .offer = Offer::function,
});

// ---- bincount
// ---------------------------------------------------------------------------------------

struct BincountAttrs {
  int64_t minlength = 0;
  static constexpr auto members() { return std::tuple(&BincountAttrs::minlength); }
};
void find_counts(const Call& c, Tensors& outs) {
  const Tensor &x = c.in[0], &w = c.in[1];
  const Tensor values = dense(x, DType::Int64);
  const int64_t n = x.numel();
  int64_t smallest = 0, largest = -1;
  if (n > 0) {
    const int64_t all[] = {1}, dense[] = {1};
    kernels::reduce_amin({reinterpret_cast<char*>(&smallest), all, dense, 1, DType::Int64},
                         values.nd());
    kernels::reduce_amax({reinterpret_cast<char*>(&largest), all, dense, 1, DType::Int64},
                         values.nd());
  }
  require(smallest >= 0, c.name(), ": input must be at least 0; got ", smallest);
  require(largest < INT64_MAX, c.name(), ": input is too large; got ", largest);
  const int64_t size = std::max(c.as<BincountAttrs>().minlength, largest + 1);
  const bool weighs = w.defined() && n > 0;  // as in PyTorch: nothing is counted, not summed
  const bool single = weighs && w.dtype() == DType::Float32;
  const Tensor out = empty(Dims{size}, !weighs  ? DType::Int64
                                       : single ? DType::Float32
                                                : DType::Float64);
  outs.push_back(out);
  const int64_t* p = values.data<const int64_t>();
  if (!weighs) return kernels::count_values(out.data<int64_t>(), size, p, n);
  fill_(out, 0);
  // Another thread may write larger numbers meanwhile.
  auto add = [&]<class T>(T* to, const T* each) {
    const auto last = static_cast<uint64_t>(size - 1);
    for (int64_t i = 0; i < n; ++i)
      to[std::min(static_cast<uint64_t>(read_once(p[i])), last)] += each[i];
  };
  const Tensor weights = dense(w, out.dtype());
  const LongWork work(n);
  if (single)
    add(out.data<float>(), weights.data<const float>());
  else
    add(out.data<double>(), weights.data<const double>());
}
void check_counted(const Call& c) {
  const int64_t least = c.as<BincountAttrs>().minlength;
  const Tensor &x = c.in[0], &w = c.in[1];
  if (!is_integral(x.dtype()) || x.dtype() == DType::Bool)
    fail(ErrorKind::NotImplemented, c.name(), ": input must be integers; got ", x);
  require(x.ndim() == 1, c.name(), ": input must be a vector; got ", x);
  require(least >= 0, c.name(), ": minlength must be at least 0; got ", least);
  require(!w.defined() || w.sizes() == x.sizes(), c.name(),
          ": weights must have the input's shape; got ", w, " for ", x);
  require(!w.defined() || w.device() == x.device(), c.name(),
          ": input and weights must be on one device; got ", x, " and ", w);
}
constexpr OpDef counts_op = finding({
    .signature = "_bincount(Tensor input, Tensor? weights, int minlength) -> Tensor",
    .doc = "bincount() of weights that get no gradient.",
    .find =
        [](const Call& c, Tensors& outs) {
          check_counted(c);
          find_counts(c, outs);
        },
    .attrs = &attr_info<BincountAttrs>,
    .offer = Offer::function,
    .flops = "numel(input)",
});
constexpr OpDef bincount_op = composite({
    .signature = "bincount(Tensor input, Tensor? weights=None, int minlength=0) -> Tensor",
    .doc =
        R"(Counts how often each integer from 0 stands in a vector, or sums weights instead of ones.

out[k] = sum_i weights[i] over the i with input[i] = k

Args:
    input: a vector of integers that are at least 0.
    weights: what each element counts for; gradients go to them.
    minlength: the least size of the result.
Returns:
    an int64 vector, or a float one with weights, unless the input is empty.

>>> clew.bincount(clew.tensor([1, 3, 1]))
tensor([0, 2, 0, 1])
)",
    .run =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<BincountAttrs>();
          const Tensor &x = c.in[0], &w = c.in[1];
          const bool records = w.defined() && modes.grad && w.requires_grad() && x.numel() > 0;
          if (records) check_counted(c);
          const Tensor counts = apply(counts_op, {x, records ? Tensor() : w}, a);
          if (!records) return outs.push_back(counts);
          const DType d = w.dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
          outs.push_back(index_add(zero_block(counts.sizes(), d, Device::CPU), 0,
                                   to_dtype(x, DType::Int64), to_dtype(w, d)));
        },
    .attrs = &attr_info<BincountAttrs>,
});

constexpr const OpDef* sorting_unique_list[] = {&unique_op, &unique_dim_op, &unique_consecutive_op,
                                                &counts_op, &bincount_op};

}  // namespace

extern const OpList sorting_unique_ops;
const OpList sorting_unique_ops = op_list(sorting_unique_list);

}  // namespace clew
