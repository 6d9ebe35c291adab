// Weighted sums of elements at given places: what sampling of images and volumes comes down to.
// May include: ops, graph, tensor, kernels.
// Invariant: the three operations are linear in two inputs each, and one another's derivatives.
#include "kernels/resample/sampling.h"

#include "ops/calls/arithmetic.h"
#include "ops/calls/shape.h"

namespace clew {

namespace {

// N samples, C channels, S elements of a channel, K places of each of P points.
struct LengthAttrs {
  int64_t size = 0;
  static constexpr auto members() { return std::tuple(&LengthAttrs::size); }
};

// Checks values of [N, C, *] against places (and weights) [N, K, P].
void check_places(const Call& c, const Tensor& values, const Tensor& index) {
  require(values.ndim() == 3 && index.ndim() == 3 && values.size(0) == index.size(0), c.name(),
          ": input and index must have 3 dimensions and the same first one; got ", values, " and ",
          index);
  require(index.dtype() == DType::Int64, c.name(), ": index must be int64; got ", index);
  require(values.dtype() == DType::Float32 || values.dtype() == DType::Float64, c.name(),
          ": input must be float32 or float64; got ", values);
}
void check_sizes(const Call& c, const char* what, const Tensor& t, const Tensor& like,
                 std::initializer_list<int64_t> sizes) {
  bool fits = t.dtype() == like.dtype() && t.ndim() == static_cast<int>(sizes.size());
  for (int d = 0; fits && d < t.ndim(); ++d) fits = t.size(d) == sizes.begin()[d];
  require(fits, c.name(), ": ", what, " does not fit input and index; got ", t);
}

// input [N, C, S], index and weight [N, K, P]
void gather_shape(const Call& c, OutSpecs& outs) {
  const Tensor &x = c.in[0], &index = c.in[1];
  check_places(c, x, index);
  check_sizes(c, "weight", c.in[2], x, {x.size(0), index.size(1), index.size(2)});
  outs.add(x.dtype(), {x.size(0), x.size(1), index.size(2)});
}
// input [N, C, P], index and weight [N, K, P]
void scatter_shape(const Call& c, OutSpecs& outs) {
  const Tensor &x = c.in[0], &index = c.in[1];
  check_places(c, x, index);
  check_sizes(c, "input", x, x, {x.size(0), x.size(1), index.size(2)});
  check_sizes(c, "weight", c.in[2], x, {x.size(0), index.size(1), index.size(2)});
  const int64_t size = c.as<LengthAttrs>().size;
  require(size >= 0, c.name(), ": size must not be negative; got ", size);
  outs.add(x.dtype(), {x.size(0), x.size(1), size});
}
// input [N, C, S], index [N, K, P], other [N, C, P]
void dots_shape(const Call& c, OutSpecs& outs) {
  const Tensor &x = c.in[0], &index = c.in[1];
  check_places(c, x, index);
  check_sizes(c, "other", c.in[2], x, {x.size(0), x.size(1), index.size(2)});
  outs.add(x.dtype(), {x.size(0), index.size(1), index.size(2)});
}

// Calls f(out, input, index, third) with pointers of the element type.
template <class F> void with_elements(const Call& c, Tensors& outs, F&& f) {
  const Tensor x = contiguous(c.in[0]), index = contiguous(c.in[1]), third = contiguous(c.in[2]);
  auto typed = [&]<class T>() {
    f(outs[0].data<T>(), x.data<T>(), index.data<int64_t>(), third.data<T>());
  };
  if (x.dtype() == DType::Float64)
    typed.template operator()<double>();
  else
    typed.template operator()<float>();
}
void gather_cpu(const Call& c, Tensors& outs) {
  const Tensor &x = c.in[0], &index = c.in[1];
  with_elements(c, outs, [&]<class T>(T* out, const T* from, const int64_t* at, const T* weight) {
    kernels::gather_weighted(out, from, at, weight,
                             {x.size(0), x.size(1), x.size(2), index.size(1), index.size(2)});
  });
}
void scatter_cpu(const Call& c, Tensors& outs) {
  const Tensor &x = c.in[0], &index = c.in[1];
  with_elements(c, outs, [&]<class T>(T* out, const T* points, const int64_t* at, const T* weight) {
    kernels::scatter_weighted(
        out, points, at, weight,
        {x.size(0), x.size(1), c.as<LengthAttrs>().size, index.size(1), index.size(2)});
  });
}
void dots_cpu(const Call& c, Tensors& outs) {
  const Tensor &x = c.in[0], &index = c.in[1];
  with_elements(c, outs, [&]<class T>(T* out, const T* from, const int64_t* at, const T* points) {
    kernels::gather_dots(out, from, at, points,
                         {x.size(0), x.size(1), x.size(2), index.size(1), index.size(2)});
  });
}

Tensor gather_weighted(const Tensor& x, const Tensor& index, const Tensor& weight);
Tensor scatter_weighted(const Tensor& x, const Tensor& index, const Tensor& weight, int64_t size);
Tensor gather_dots(const Tensor& x, const Tensor& index, const Tensor& other);

// Input 0 needs the others, input 2 the others.
constexpr Saves the_others = {.when = {in(1) | in(2), 0, in(0) | in(1)}};

void gather_vjp(Vjp& c) {
  const Tensor& g = c.grad();
  if (c.needs(0)) c.set(0, scatter_weighted(g, c.in(1), c.in(2), c.sizes(0)[2]));
  if (c.needs(2)) c.set(2, gather_dots(c.in(0), c.in(1), g));
}
constexpr OpDef gather_op = general({
    .signature = "_gather_weighted(Tensor input, Tensor index, Tensor weight) -> Tensor",
    .doc = "out[n, c, p] = sum over k of weight[n, k, p] * input[n, c, index[n, k, p]]; an index "
           "that is out of range adds nothing.",
    .shape = gather_shape,
    .cpu = gather_cpu,
    .saves = the_others,
    .vjp = gather_vjp,
    .offer = Offer::function,
    .flops = "2 * input[1] * numel(index)",
});

void scatter_vjp(Vjp& c) {
  const Tensor& g = c.grad();
  if (c.needs(0)) c.set(0, gather_weighted(g, c.in(1), c.in(2)));
  if (c.needs(2)) c.set(2, gather_dots(g, c.in(1), c.in(0)));
}
constexpr OpDef scatter_op = general({
    .signature = "_scatter_weighted(Tensor input, Tensor index, Tensor weight, int size) -> Tensor",
    .doc = "out[n, c, index[n, k, p]] += weight[n, k, p] * input[n, c, p], from zeros on; an index "
           "that is out of range is passed over.",
    .shape = scatter_shape,
    .cpu = scatter_cpu,
    .saves = the_others,
    .vjp = scatter_vjp,
    .attrs = &attr_info<LengthAttrs>,
    .offer = Offer::function,
    .flops = "2 * input[1] * numel(index)",
});

void dots_vjp(Vjp& c) {
  const Tensor& g = c.grad();
  if (c.needs(0)) c.set(0, scatter_weighted(c.in(2), c.in(1), g, c.sizes(0)[2]));
  if (c.needs(2)) c.set(2, gather_weighted(c.in(0), c.in(1), g));
}
constexpr OpDef dots_op = general({
    .signature = "_gather_dots(Tensor input, Tensor index, Tensor other) -> Tensor",
    .doc = "out[n, k, p] = sum over c of input[n, c, index[n, k, p]] * other[n, c, p], 0 where the "
           "index is out of range.",
    .shape = dots_shape,
    .cpu = dots_cpu,
    .saves = the_others,
    .vjp = dots_vjp,
    .offer = Offer::function,
    .flops = "2 * input[1] * numel(index)",
});

Tensor gather_weighted(const Tensor& x, const Tensor& index, const Tensor& weight) {
  return apply(gather_op, {x, index, weight});
}
Tensor scatter_weighted(const Tensor& x, const Tensor& index, const Tensor& weight, int64_t size) {
  return apply(scatter_op, {x, index, weight}, LengthAttrs{size});
}
Tensor gather_dots(const Tensor& x, const Tensor& index, const Tensor& other) {
  return apply(dots_op, {x, index, other});
}

constexpr const OpDef* sampling_list[] = {&gather_op, &scatter_op, &dots_op};

}  // namespace

extern const OpList sampling_ops;
const OpList sampling_ops = op_list(sampling_list);

}  // namespace clew
