// sort, argsort, msort, topk, kthvalue, median, nanmedian, mode.
// May include: ops, graph, tensor, kernels.
// Invariant: NaN sorts last; sorting is stable whether asked for or not; gradients go to the
// elements that were picked.
#include <limits>

#include "kernels/sort/sort.h"
#include "ops/attributes.h"
#include "ops/batch_rules.h"
#include "ops/calls/indexing.h"
#include "ops/reduction/reduction_dims.h"
#include "tensor/layout.h"

namespace clew {
namespace {

struct SortAttrs {
  int64_t dim = -1;
  bool descending = false;
  std::optional<bool> stable;
  static constexpr auto members() {
    return std::tuple(&SortAttrs::dim, &SortAttrs::descending, &SortAttrs::stable);
  }
};
struct TopkAttrs {
  int64_t k = 0;
  int64_t dim = -1;
  bool largest = true;
  bool sorted = true;
  static constexpr auto members() {
    return std::tuple(&TopkAttrs::k, &TopkAttrs::dim, &TopkAttrs::largest, &TopkAttrs::sorted);
  }
};
struct KthAttrs {
  int64_t k = 1;
  int64_t dim = -1;
  bool keepdim = false;
  static constexpr auto members() {
    return std::tuple(&KthAttrs::k, &KthAttrs::dim, &KthAttrs::keepdim);
  }
};
void require_order(const Call& c) {
  require(!c.in[0].is_complex(), c.name(), ": complex numbers have no order; got ", c.in[0]);
}
int64_t line_length(const Tensor& x, int dim) { return x.ndim() ? x.sizes()[dim] : 1; }

// The gradient of values picked by indices of the same rank.
Tensor placed_grad(const Tensor& g, const Tensor& indices, const Dims& sizes, int64_t dim) {
  if (sizes.empty()) return reshape(g, sizes);
  return scatter_add(zero_of(g, sizes), dim, indices, written_out(g));
}
template <class A> void placed_vjp(Vjp& c) {
  if (c.grad().defined()) c.set(0, placed_grad(c.grad(), c.out(1), c.sizes(0), c.as<A>().dim));
}

// ---- sort
// -----------------------------------------------------------------------------------------

constexpr OpDef sort_op = general({
    .signature = "sort(Tensor input, int dim=-1, bool descending=False, bool? stable=None) -> "
                 "(Tensor values, Tensor indices)",
    .doc = R"(Sorts along an axis, and says where each element was.

values[i] = input[indices[i]]

Args:
    input: a real tensor.
    dim: the axis.
    descending: whether the largest come first.
    stable: whether equal elements keep their order; they always do here.
Returns:
    values and int64 indices, of the input's shape; NaN counts as largest.

>>> clew.sort(clew.tensor([3., 1., 2.])).indices
tensor([1, 2, 0])
)",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const Tensor& x = c.in[0];
          axis_of(c.as<SortAttrs>().dim, x.ndim(), c.name());
          require_order(c);
          const Dims strides = kept_strides(x);
          out.add(x.dtype(), x.sizes()).strides = strides;
          out.add(DType::Int64, x.sizes()).strides = strides;
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<SortAttrs>();
          const Tensor& x = c.in[0];
          kernels::sort(outs[0].nd(), outs[1].nd(), x.nd(), axis_of(a.dim, x.ndim(), c.name()),
                        a.descending);
        },
    .saves = {.always = out(1)},
    .vjp = placed_vjp<SortAttrs>,
    .batch = batch_dims,
    .attrs = &attr_info<SortAttrs>,
    .out_memory = OutMemory::aligned,
});
constexpr OpDef argsort_op = composite({
    .signature =
        "argsort(Tensor input, int dim=-1, bool descending=False, bool? stable=None) -> Tensor",
    .doc = R"(The indices that sort along an axis.

input[out[i]] is sorted

Args:
    input: a real tensor.
    dim: the axis.
    descending: whether the largest come first.
    stable: whether equal elements keep their order; they always do here.
Returns:
    int64 indices, of the input's shape.

>>> clew.argsort(clew.tensor([3., 1., 2.]))
tensor([1, 2, 0])
)",
    .run =
        [](const Call& c, Tensors& outs) {
          Tensors both;
          apply(sort_op, c.in, c.attrs, both);
          outs.push_back(std::move(both[1]));
        },
    .attrs = &attr_info<SortAttrs>,
});
constexpr OpDef msort_op = composite({
    .signature = "msort(Tensor input) -> Tensor",
    .doc = R"(Sorts along the first axis.

out = sort(input, 0).values

Args:
    input: a real tensor.
Returns:
    the sorted values.

>>> clew.msort(clew.tensor([3., 1., 2.]))
tensor([1., 2., 3.])
)",
    .run =
        [](const Call& c, Tensors& outs) {
          Tensors both;
          SortAttrs a{0, false, {}};
          apply(sort_op, c.in, &a, both);
          outs.push_back(std::move(both[0]));
        },
    .out_memory = OutMemory::aligned,
});

constexpr OpDef topk_op = general({
    .signature = "topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True) -> "
                 "(Tensor values, Tensor indices)",
    .doc = R"(The k largest (or smallest) elements along an axis, and where they stand.

values = sort(input, dim, descending=largest).values[:k]

Args:
    input: a real tensor.
    k: how many.
    dim: the axis.
    largest: True for the largest, False for the smallest.
    sorted: whether they come in order.
Returns:
    values and int64 indices, with size k along the axis; NaN counts as largest.

>>> clew.topk(clew.tensor([1., 4., 3.]), 2).values
tensor([4., 3.])
)",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<TopkAttrs>();
          const Tensor& x = c.in[0];
          int dim = axis_of(a.dim, x.ndim(), c.name());
          require_order(c);
          require(x.dtype() != DType::Bool, c.name(), ": not supported for bool; got ", x,
                  ". Convert it first, e.g. with .long()");
          require(a.k >= 0 && a.k <= line_length(x, dim), c.name(),
                  ": selected index k out of range; got k=", a.k, " for ", x, " along dim ", dim);
          Dims sizes = x.sizes();
          if (!sizes.empty()) sizes[dim] = a.k;
          out.add(x.dtype(), sizes);
          out.add(DType::Int64, sizes);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<TopkAttrs>();
          const Tensor& x = c.in[0];
          if (x.ndim() == 0 && a.k == 0) return copy_into(outs[0], x), fill_(outs[1], 0);
          kernels::topk(outs[0].nd(), outs[1].nd(), x.nd(), axis_of(a.dim, x.ndim(), c.name()),
                        a.largest, a.sorted);
        },
    .saves = {.always = out(1)},
    .vjp = placed_vjp<TopkAttrs>,
    .batch = batch_dims,
    .attrs = &attr_info<TopkAttrs>,
    .out_memory = OutMemory::aligned,
});

// ---- one element of each line
// -----------------------------------------------------------------------

void refuse_bool(const Call& c) {
  if (c.in[0].dtype() == DType::Bool)
    fail(ErrorKind::NotImplemented, c.name(), ": not implemented for bool; got ", c.in[0],
         ". Convert it first, e.g. with .long()");
}
template <class A, kernels::Pick What> void pick_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<A>();
  const Tensor& x = c.in[0];
  DimMask mask = mask_of(Dims{a.dim}, x.ndim(), c.name());
  require_order(c);
  if (What != kernels::Pick::mode && x.ndim() > 0) refuse_bool(c);
  require_nonempty(x.sizes(), mask, c.name());
  if constexpr (std::is_same_v<A, KthAttrs>) {
    int64_t n = line_length(x, axis_of(a.dim, x.ndim(), c.name()));
    require(a.k >= 1 && a.k <= n, c.name(), ": selected number k out of range for dimension ",
            a.dim, "; got k=", a.k, " for ", x);
  }
  Dims sizes = reduced_sizes(x.sizes(), mask, a.keepdim);
  out.add(x.dtype(), sizes);
  out.add(DType::Int64, sizes);
}
template <class A, kernels::Pick What> void pick_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<A>();
  const Tensor& x = c.in[0];
  int dim = axis_of(a.dim, x.ndim(), c.name());
  DimMask mask = mask_of(Dims{a.dim}, x.ndim(), c.name());
  KeptView values(outs[0], x.ndim(), mask), indices(outs[1], x.ndim(), mask);
  int64_t k = 0;
  if constexpr (std::is_same_v<A, KthAttrs>) k = a.k - 1;
  kernels::pick(values.nd, indices.nd, x.nd(), dim, What, k);
}
template <class A, kernels::Pick What>
consteval OpDef picking(const char* signature, const char* doc, OutMemory out_memory) {
  return general({.signature = signature,
                  .doc = doc,
                  .shape = pick_shape<A, What>,
                  .cpu = pick_cpu<A, What>,
                  .saves = {.always = out(1)},
                  .vjp = picked_vjp<A>,
                  .attrs = &attr_info<A>,
                  .out_memory = out_memory});
}

constexpr OpDef kthvalue_op = picking<KthAttrs, kernels::Pick::kth>(
    "kthvalue(Tensor input, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor "
    "indices)",
    R"(The k-th smallest elements along an axis, and where they stand.

values = sort(input, dim).values[k - 1]

Args:
    input: a real tensor.
    k: which element, from 1.
    dim: the axis.
    keepdim: whether the axis stays, with size 1.
Returns:
    values and int64 indices; NaN counts as largest.

>>> clew.kthvalue(clew.tensor([3., 1., 2.]), 2).values
tensor(2.)
)",
    OutMemory::apart);
constexpr OpDef median_op = picking<KeepDimAttrs, kernels::Pick::median>(
    "median(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    R"(The medians along an axis (the lower of the two middle elements), and where they stand.

values = sort(input, dim).values[(n - 1) // 2]

Args:
    input: a real tensor.
    dim: the axis.
    keepdim: whether the axis stays, with size 1.
Returns:
    values and int64 indices; NaN where an element is NaN.

>>> clew.median(clew.tensor([[1., 5., 3.]]), 1).values
tensor([3.])
)",
    OutMemory::aligned);
constexpr OpDef nanmedian_op = picking<KeepDimAttrs, kernels::Pick::nan_median>(
    "nanmedian(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    R"(The medians along an axis of the elements that are not NaN, and where they stand.

values = median of input[input == input]

Args:
    input: a real tensor.
    dim: the axis.
    keepdim: whether the axis stays, with size 1.
Returns:
    values and int64 indices; NaN where all elements are NaN.

>>> clew.nanmedian(clew.tensor([[1., float('nan'), 3.]]), 1).values
tensor([1.])
)",
    OutMemory::aligned);
constexpr OpDef mode_op = picking<KeepDimAttrs, kernels::Pick::mode>(
    "mode(Tensor input, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    R"(The most frequent elements along an axis (the smallest of equals), and where they last stand.

values[i] = the element that stands most often in input[i]

Args:
    input: a real tensor.
    dim: the axis.
    keepdim: whether the axis stays, with size 1.
Returns:
    values and int64 indices.

>>> clew.mode(clew.tensor([2, 1, 2])).values
tensor(2)
)",
    OutMemory::apart);

template <kernels::Pick What> void median_all_cpu(const Call& c, Tensors& outs) {
  Tensor x = c.in[0];
  int64_t n = x.numel(), one = 1, index = 0;
  if (n == 0) return fill_(outs[0], Scalar(std::numeric_limits<double>::quiet_NaN()));
  if (!x.is_contiguous()) {
    x = empty(x.sizes(), x.dtype());
    copy_into(x, c.in[0]);
  }
  kernels::pick({outs[0]->address(), &one, &one, 1, x.dtype()},
                {reinterpret_cast<char*>(&index), &one, &one, 1, DType::Int64},
                {x->address(), &n, &one, 1, x.dtype()}, 0, What, 0);
}
template <kernels::Pick What>
consteval OpDef median_of_all(const char* signature, const char* doc) {
  return general({.signature = signature,
                  .doc = doc,
                  .shape =
                      [](const Call& c, OutSpecs& out) {
                        require_order(c);
                        if (c.in[0].numel() > 0) refuse_bool(c);
                        out.add(c.in[0].dtype(), Dims{});
                      },
                  .cpu = median_all_cpu<What>,
                  .saves = {.always = in(0) | out(0)},
                  .vjp = one_of_all_vjp,
                  .out_memory = OutMemory::aligned});
}
constexpr OpDef median_all_op = median_of_all<kernels::Pick::median>(
    "median(Tensor input) -> Tensor",
    R"(The median of all elements (the lower of the two middle ones).

out = sort(flatten(input)).values[(n - 1) // 2]

Args:
    input: a real tensor.
Returns:
    a 0-d tensor; NaN when an element is NaN or there is none.

>>> clew.median(clew.tensor([1., 5., 3., 4.]))
tensor(3.)
)");
constexpr OpDef nanmedian_all_op =
    median_of_all<kernels::Pick::nan_median>("nanmedian(Tensor input) -> Tensor",
                                             R"(The median of all elements that are not NaN.

out = median(input[input == input])

Args:
    input: a real tensor.
Returns:
    a 0-d tensor; NaN when no element is left.

>>> clew.nanmedian(clew.tensor([1., float('nan'), 3.]))
tensor(1.)
)");

constexpr const OpDef* sorting_list[] = {
    &sort_op,   &argsort_op,    &msort_op,     &topk_op,          &kthvalue_op,
    &median_op, &median_all_op, &nanmedian_op, &nanmedian_all_op, &mode_op};

}  // namespace

extern const OpList sorting_ops;
const OpList sorting_ops = op_list(sorting_list);

}  // namespace clew
