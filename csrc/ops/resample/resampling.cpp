// Weighted sums along one dim at given places: what resizing an image comes down to, dim by dim.
// May include: ops, graph, tensor, kernels.
// Invariant: the two operations are linear, and one another's derivatives; weights have none.
#include "kernels/resample/resampling.h"

#include "ops/batch_rules.h"
#include "ops/calls/shape.h"

namespace clew {

namespace {

struct LineAttrs {
  int64_t size = 0;  // of the dim in the result
  int64_t dim = -1;  // from the end
  static constexpr auto members() { return std::tuple(&LineAttrs::size, &LineAttrs::dim); }
};

int checked_dim(const Call& c, const Tensor& x) {
  const int64_t dim = c.as<LineAttrs>().dim;
  require(dim < 0 && dim >= -x.ndim(), c.name(), ": dim must count from the end; got ", dim,
          " for ", x);
  return x.ndim() + static_cast<int>(dim);
}
template <bool transposed> void line_shape(const Call& c, OutSpecs& outs) {
  const Tensor &x = c.in[0], &index = c.in[1], &weight = c.in[2];
  require(x.dtype() == DType::Float32 || x.dtype() == DType::Float64, c.name(),
          ": input must be float32 or float64; got ", x);
  const int d = checked_dim(c, x);
  const int64_t size = c.as<LineAttrs>().size;
  require(index.ndim() == 2 && index.dtype() == DType::Int64 && weight.dtype() == x.dtype() &&
              weight.sizes() == index.sizes() && size >= 0 &&
              index.size(0) == (transposed ? x.size(d) : size),
          c.name(), ": index (int64) and weight must be (points, terms); got ", index, " and ",
          weight, " for ", x, " and size ", size);
  Dims sizes = x.sizes();
  sizes[d] = size;
  outs.add(x.dtype(), sizes);
}
template <bool transposed> void line_cpu(const Call& c, Tensors& outs) {
  const Tensor x = contiguous(c.in[0]), weight = contiguous(c.in[2]);
  // A private copy: it is read again after the check, and no other thread can change it.
  const Tensor index = dense_copy(c.in[1], DType::Int64);
  const Tensor& out = outs[0];
  const int d = checked_dim(c, x);
  kernels::LineShape s{1, transposed ? out.size(d) : x.size(d), 1, index.size(0), index.size(1)};
  for (int i = 0; i < d; ++i) s.outer *= x.size(i);
  for (int i = d + 1; i < x.ndim(); ++i) s.inner *= x.size(i);
  const auto* at = index.data<const int64_t>();
  for (int64_t k = 0; k < index.numel(); ++k) {
    if (at[k] < -1 || at[k] >= s.size)
      fail(ErrorKind::Index, c.name(), ": index ", at[k], " is out of bounds for size ", s.size);
  }
  if (out.numel() == 0) return;
  dispatch(x.dtype(), TypeList<float, double>{}, [&]<class T>() {
    auto* run = transposed ? kernels::resample_backward<T> : kernels::resample<T>;
    run(out.data<T>(), x.data<const T>(), at, weight.data<const T>(), s);
  });
}
void line_batch(const Batch& b, Tensors& outs) {
  if (b.batched(1) || b.batched(2)) return batch_each(b, outs);
  Tensors args;
  args.push_back(b.value(0));
  args.push_back(b.in[1]);
  args.push_back(b.in[2]);
  apply(b.op, args, b.attrs, outs);
}
void line_vjp(Vjp& c);
void transpose_vjp(Vjp& c);

constexpr OpDef line_op = general({
    .signature = "_resample(Tensor input, Tensor index, Tensor weight, int size, int dim) -> "
                 "Tensor",
    .doc = "out[..., p, ...] = sum over k of weight[p, k] * input[..., index[p, k], ...]; an index "
           "of -1 counts for nothing.",
    .shape = line_shape<false>,
    .cpu = line_cpu<false>,
    .saves = {.always = in(1) | in(2)},
    .vjp = line_vjp,
    .batch = line_batch,
    .attrs = &attr_info<LineAttrs>,
    .offer = Offer::function,
    .flops = "2 * numel(result) * index[1]",
});
constexpr OpDef transpose_op = general({
    .signature = "_resample_backward(Tensor input, Tensor index, Tensor weight, int size, int dim) "
                 "-> Tensor",
    .doc =
        "out[..., index[p, k], ...] += weight[p, k] * input[..., p, ...], from zeros on; an index "
        "of -1 counts for nothing.",
    .shape = line_shape<true>,
    .cpu = line_cpu<true>,
    .saves = {.always = in(1) | in(2)},
    .vjp = transpose_vjp,
    .batch = line_batch,
    .attrs = &attr_info<LineAttrs>,
    .offer = Offer::function,
    .flops = "2 * numel(input) * index[1]",
});

void other_way(Vjp& c, const OpDef& op) {
  require(!c.needs(2), "_resample: weights have no derivative");
  const int64_t dim = c.as<LineAttrs>().dim;
  const int64_t size = c.sizes(0)[c.sizes(0).size() + static_cast<int>(dim)];
  c.set(0, apply(op, {c.grad(), c.in(1), c.in(2)}, LineAttrs{size, dim}));
}
void line_vjp(Vjp& c) { other_way(c, transpose_op); }
void transpose_vjp(Vjp& c) { other_way(c, line_op); }

constexpr const OpDef* list[] = {&line_op, &transpose_op};

}  // namespace

extern const OpList resampling_ops;
const OpList resampling_ops = op_list(list);

}  // namespace clew
