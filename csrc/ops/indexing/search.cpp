// Finding: nonzero, argwhere, where(condition), bucketize, searchsorted, one_hot.
// May include: ops, graph, tensor, kernels.
// Invariant: results are indices or masks; nothing here has a derivative.
#include "kernels/indexing/index.h"

#include <algorithm>

#include "ops/calls/indexing.h"
#include "ops/calls/shape.h"
#include "ops/widened.h"

namespace clew {

namespace {

constexpr NoRule indices_only = no_rule("indices are not a differentiable function of the input");

// Coordinates of the nonzero elements, a row each.
Tensor coordinates(const Tensor& input) {
  const Tensor x = for_zeros(input);
  kernels::NonzeroCounts counts = kernels::count_nonzero(x.nd());
  Tensor out = empty({counts.back(), x.ndim()}, DType::Int64);
  if (out.numel()) kernels::nonzero(x.nd(), counts, out.data<int64_t>(), x.ndim(), 1);
  return out;
}
void coordinates_by_dim(const Tensor& input, Tensors& outs) {
  const Tensor x = for_zeros(input);
  const Tensor at = x.ndim() ? x : alias(x, {1}, {1});
  kernels::NonzeroCounts counts = kernels::count_nonzero(at.nd());
  int64_t count = counts.back();
  Tensor columns = empty({at.ndim(), count}, DType::Int64);
  if (count) kernels::nonzero(at.nd(), counts, columns.data<int64_t>(), 1, count);
  for (int d = 0; d < at.ndim(); ++d) outs.push_back(alias(columns, {count}, {1}, d * count));
}

struct TupleAttrs {
  bool as_tuple = false;
  static constexpr auto members() { return std::tuple(&TupleAttrs::as_tuple); }
};
constexpr const char* nonzero_doc = R"(Where the elements are not zero.

Args:
    as_tuple: give one vector of indices for each dimension instead of one row for each element.
Returns: int64, a row of indices for each nonzero element in order; or a tuple of vectors.

>>> clew.nonzero(clew.tensor([[0, 5], [6, 0]])).tolist()
[[0, 1], [1, 0]]
)";
void find_nonzero(const Call& c, Tensors& outs) { outs.push_back(coordinates(c.in[0])); }
constexpr OpDef nonzero_op = finding({
    .signature = "nonzero(Tensor input) -> Tensor",
    .doc = nonzero_doc,
    .find = find_nonzero,
    .takes_stored = true,
    .out_memory = OutMemory::apart,
});
void find_nonzero_tuple(const Call& c, Tensors& outs) {
  if (!c.as<TupleAttrs>().as_tuple) return find_nonzero(c, outs);
  coordinates_by_dim(c.in[0], outs);
}
constexpr OpDef nonzero_tuple_op = finding({
    .signature = "nonzero(Tensor input, *, bool as_tuple) -> Tensor[]",
    .doc = nonzero_doc,
    .find = find_nonzero_tuple,
    .attrs = &attr_info<TupleAttrs>,
    .takes_stored = true,
    .out_memory = OutMemory::apart,
});
constexpr OpDef argwhere_op = finding({
    .signature = "argwhere(Tensor input) -> Tensor",
    .doc = R"(Where the elements are not zero; the same as `nonzero`.

>>> clew.argwhere(clew.tensor([0, 5, 6])).tolist()
[[1], [2]]
)",
    .find = find_nonzero,
    .takes_stored = true,
});
void find_where(const Call& c, Tensors& outs) { coordinates_by_dim(c.in[0], outs); }
constexpr OpDef where_op = finding({
    .signature = "where(Tensor condition) -> Tensor[]",
    .doc = R"(Where a condition holds: the same as `nonzero(condition, as_tuple=True)`.

>>> [i.tolist() for i in clew.where(clew.tensor([False, True, True]))]
[[1, 2]]
)",
    .find = find_where,
    .takes_stored = true,
    .offer = Offer::function,
    .out_memory = OutMemory::aligned,
});

// ---- searching in sorted rows -------------------------------------------------------------------

// What both are compared in.
DType search_dtype(const Tensor& sorted, const Tensor& values) {
  return values.is_wrapped_number() &&
                 !(is_floating(values.dtype()) && !is_floating(sorted.dtype()))
             ? sorted.dtype()
             : promote(sorted.dtype(), values.dtype());
}
void search(const Tensor& sorted, const Tensor& sorter, const Tensor& values, bool right,
            const Tensor& out) {
  const DType dtype = search_dtype(sorted, values);
  Tensor rows = dense(sorted, dtype);
  Tensor v = dense(values, dtype);
  Tensor order;
  if (sorter) {
    order = dense(sorter, DType::Int64);
    int64_t bad = kernels::find_bad_index(order.nd(), sorted.size(-1), false);
    if (bad >= 0)
      fail_index("searchsorted: sorter index ", order.data<int64_t>()[bad],
                 " is out of range for a row of ", sorted.size(-1));
  }
  if (out.numel() == 0) return;
  kernels::search_sorted(rows.nd(), order ? order.data<int64_t>() : nullptr, v.nd(), out.nd(),
                         right);
}
void check_search(const Call& c, const Tensor& sorted, const Tensor& values) {
  require(sorted.ndim() > 0, c.name(), ": boundaries must have at least one dimension; got ",
          sorted);
  require(!sorted.is_complex() && !values.is_complex(), c.name(),
          ": complex numbers have no order");
  if (search_dtype(sorted, values) == DType::Bool)
    fail(ErrorKind::NotImplemented, c.name(), ": not implemented for bool; got ", sorted, " and ",
         values, ". Convert one of them first, e.g. with .long()");
  if (sorted.ndim() == 1) return;
  bool same = sorted.ndim() == values.ndim();
  for (int d = 0; same && d + 1 < sorted.ndim(); ++d) same = sorted.size(d) == values.size(d);
  require(same, c.name(),
          ": boundaries must have one dimension, or equal the values in all but the last; got ",
          sorted, " and ", values);
}

struct BucketAttrs {
  bool out_int32 = false;
  bool right = false;
  static constexpr auto members() {
    return std::tuple(&BucketAttrs::out_int32, &BucketAttrs::right);
  }
};
void bucketize_shape(const Call& c, OutSpecs& out) {
  require(c.in[1].ndim() == 1, c.name(), ": boundaries must have one dimension; got ", c.in[1]);
  check_search(c, c.in[1], c.in[0]);
  out.add(c.as<BucketAttrs>().out_int32 ? DType::Int32 : DType::Int64, c.in[0].sizes());
}
void bucketize_cpu(const Call& c, Tensors& outs) {
  search(c.in[1], {}, c.in[0], c.as<BucketAttrs>().right, outs[0]);
}
constexpr OpDef bucketize_op = general({
    .signature = "bucketize(Tensor input, Tensor boundaries, *, bool out_int32=False, bool "
                 "right=False) -> Tensor",
    .doc = R"(The number of the bucket, between sorted boundaries, that each element falls into.

Args:
    boundaries: sorted, one dimension.
    out_int32: give int32 instead of int64.
    right: an element equal to a boundary falls behind it instead of before it.
Returns: integers of the input's shape.

>>> clew.bucketize(clew.tensor([3, 6, 9]), clew.tensor([1, 3, 5, 7, 9])).tolist()
[1, 3, 4]
)",
    .shape = bucketize_shape,
    .cpu = bucketize_cpu,
    .no_vjp = indices_only,
    .attrs = &attr_info<BucketAttrs>,
    .offer = Offer::function,
});

struct BucketNumberAttrs {
  Scalar input;
  bool out_int32 = false;
  bool right = false;
  static constexpr auto members() {
    return std::tuple(&BucketNumberAttrs::input, &BucketNumberAttrs::out_int32,
                      &BucketNumberAttrs::right);
  }
};
void bucketize_number_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<BucketNumberAttrs>();
  Tensor value = scalar_tensor(a.input, a.input.dtype(), true);
  outs.push_back(apply(bucketize_op, {value, c.in[0]}, BucketAttrs{a.out_int32, a.right}));
}
constexpr OpDef bucketize_number_op = composite({
    .signature = "bucketize(Scalar input, Tensor boundaries, *, bool out_int32=False, bool "
                 "right=False) -> Tensor",
    .doc = "The number of the bucket, between sorted boundaries, that a number falls into.",
    .run = bucketize_number_run,
    .attrs = &attr_info<BucketNumberAttrs>,
    .offer = Offer::function,
});

struct SearchAttrs {
  bool out_int32 = false;
  bool right = false;
  Str side;
  static constexpr auto members() {
    return std::tuple(&SearchAttrs::out_int32, &SearchAttrs::right, &SearchAttrs::side);
  }
};
void searchsorted_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<SearchAttrs>();
  require(!a.side.given() || a.side == "left" || a.side == "right", c.name(),
          ": side must be 'left' or 'right'; got '", std::string_view(a.side), "'");
  require(!(a.right && a.side == "left"), c.name(),
          ": side and right must not contradict each other");
  const Tensor& sorted = c.in[0];
  check_search(c, sorted, c.in[1]);
  if (c.in.size() > 2 && c.in[2]) {
    require(c.in[2].sizes() == sorted.sizes() && c.in[2].dtype() == DType::Int64, c.name(),
            ": sorter must be int64 and have the shape of sorted_sequence; got ", c.in[2], " for ",
            sorted);
  }
  out.add(a.out_int32 ? DType::Int32 : DType::Int64, c.in[1].sizes());
}
void searchsorted_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<SearchAttrs>();
  Tensor sorter = c.in.size() > 2 ? c.in[2] : Tensor();
  search(c.in[0], sorter, c.in[1], a.right || a.side == "right", outs[0]);
}
constexpr OpDef searchsorted_op = general({
    .signature =
        "searchsorted(Tensor sorted_sequence, Operand input, *, bool out_int32=False, bool "
        "right=False, "
        "str? side=None, Tensor? sorter=None) -> Tensor",
    .doc = R"(Where elements could be put into sorted rows without breaking their order.

Args:
    sorted_sequence: sorted along its last dimension; one row for all, or one for each of the input.
    input: a tensor or a number.
    out_int32: give int32 instead of int64.
    right: put an element behind its equals instead of before them.
    side: 'left' or 'right', the same in words.
    sorter: indices that sort sorted_sequence when it is not.
Returns: integers of the input's shape.

>>> clew.searchsorted(clew.tensor([1, 3, 5]), clew.tensor([3, 4])).tolist()
[1, 2]
)",
    .shape = searchsorted_shape,
    .cpu = searchsorted_cpu,
    .no_vjp = indices_only,
    .attrs = &attr_info<SearchAttrs>,
    .offer = Offer::function,
});

// ---- one_hot ------------------------------------------------------------------------------------

struct ClassesAttrs {
  int64_t num_classes = -1;
  static constexpr auto members() { return std::tuple(&ClassesAttrs::num_classes); }
};
void one_hot_run(const Call& c, Tensors& outs) {
  const Tensor& x = c.in[0];
  int64_t classes = c.as<ClassesAttrs>().num_classes;
  require(x.dtype() == DType::Int64, c.name(), ": input must be int64; got ", x,
          "; convert it with .long()");
  require(classes >= -1, c.name(), ": num_classes must not be negative; got ", classes);
  // Read more than once, so a copy that nobody else writes to.
  const auto values = x.is_meta() ? std::vector<int64_t>() : int64_values(x);
  if (classes == -1) {
    require(!x.is_meta(), c.name(), ": num_classes cannot be inferred for a meta tensor");
    require(x.numel() > 0, c.name(), ": num_classes cannot be inferred from an empty tensor");
    classes = *std::ranges::max_element(values);
    require(classes < INT64_MAX, c.name(), ": class value ", classes, " is too large");
    ++classes;
  }
  require(classes > 0, c.name(),
          ": num_classes must be positive; class values must be non-negative");
  Dims sizes = x.sizes();
  sizes.push_back(classes);
  const int64_t all = numel_of(sizes);
  if (x.is_meta()) return outs.push_back(empty(sizes, DType::Int64, Device::Meta));
  for (const int64_t v : values) {
    require(v >= 0, c.name(), ": class values must be non-negative; got ", v);
    require(v < classes, c.name(), ": class values must be smaller than num_classes; got ", v,
            " for ", classes);
  }
  const Tensor rows = int64_tensor(all, [&](std::span<int64_t> row) {
    std::ranges::fill(row, 0);
    for (const int64_t v : values) {
      row[static_cast<size_t>(v)] = 1;
      row = row.subspan(static_cast<size_t>(classes));
    }
  });
  outs.push_back(alias(rows, sizes, contiguous_strides(sizes)));
}
constexpr OpDef one_hot_op = composite({
    .signature = "nn.functional.one_hot(Tensor tensor, int num_classes=-1) -> Tensor",
    .doc = R"(A row for each class value, 1 at the place of the class and 0 elsewhere.

Args:
    tensor: any shape (*), int64 class values.
    num_classes: the length of a row; one more than the largest value when -1.
Returns: (*, num_classes), int64.

>>> clew.nn.functional.one_hot(clew.tensor([0, 2])).tolist()
[[1, 0, 0], [0, 0, 1]]
)",
    .run = one_hot_run,
    .attrs = &attr_info<ClassesAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* search_list[] = {
    &nonzero_op,   &nonzero_tuple_op,    &argwhere_op,     &where_op,
    &bucketize_op, &bucketize_number_op, &searchsorted_op, &one_hot_op,
};

}  // namespace

extern const OpList search_ops;
const OpList search_ops = op_list(search_list);

}  // namespace clew
