// Fourier transforms along some dims, and their gradients; src/clew/fft checks and pads.
// May include: ops, graph, tensor, kernels.
// Invariant: results are contiguous; one axis after the other is transformed in them.
#include "kernels/fft/fft.h"

#include "base/long_work.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"

namespace clew {

namespace {

struct AxesAttrs {
  Dims axes;
  bool inverse = false;
  double scale = 1;
  static constexpr auto members() {
    return std::tuple(&AxesAttrs::axes, &AxesAttrs::inverse, &AxesAttrs::scale);
  }
};
struct ToRealAttrs {
  Dims axes;
  int64_t n = 0;
  double scale = 1;
  static constexpr auto members() {
    return std::tuple(&ToRealAttrs::axes, &ToRealAttrs::n, &ToRealAttrs::scale);
  }
};

void check_axes(const Call& c, const Tensor& x, const Dims& axes, bool complex) {
  require(complex ? x.is_complex() : x.dtype() == DType::Float32 || x.dtype() == DType::Float64,
          c.name(), ": expected a ", complex ? "complex" : "float32 or float64", " tensor; got ",
          x);
  require(axes.size() > 0, c.name(), ": no axis is given");
  for (int i = 0; i < axes.size(); ++i) wrapped(axes[i], x.ndim(), c.name());
}
int64_t product(const Tensor& x, int begin, int end) {
  int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= x.size(d);
  return n;
}
int64_t work(const Tensor& x) { return x.numel() * 16; }

// Pairs of `from` into `to`, contiguous both, perhaps the same.
void transform(const Tensor& from, const Tensor& to, int axis, bool inverse, double scale) {
  const int64_t outer = product(to, 0, axis), inner = product(to, axis + 1, to.ndim());
  auto run = [&]<class T>() {
    kernels::fft(from.data<const T>(), to.data<T>(), outer, to.size(axis), inner, inverse,
                 static_cast<T>(scale));
  };
  const LongWork long_work(work(to));
  if (to.dtype() == DType::Complex64)
    run.template operator()<float>();
  else
    run.template operator()<double>();
}
Tensor c2c(const Tensor& x, const AxesAttrs& a);
Tensor r2c(const Tensor& x, const AxesAttrs& a);
Tensor c2r(const Tensor& x, const ToRealAttrs& a);

// Factors for a half spectrum of n points: one for the entries that are their own mirror image,
// another for those that stand for two.
Tensor mirror_factors(const Tensor& like, int64_t axis, int64_t n, double ends, double inside) {
  const int64_t m = n / 2 + 1;
  Dims sizes;
  for (int64_t d = axis; d < 0; ++d) sizes.push_back(d == axis ? m : 1);
  const Tensor factors = empty(sizes, real_of(like.dtype()));
  fill_(factors, Scalar(inside));
  fill_(alias(factors, {1}, {1}), Scalar(ends));
  if (n % 2 == 0) fill_(alias(factors, {1}, {1}, m - 1), Scalar(ends));
  return factors;
}
int64_t last_of(const Dims& axes, int ndim) {
  const int64_t last = axes[axes.size() - 1];
  return last < 0 ? last : last - ndim;
}

void c2c_vjp(Vjp& c) {
  AxesAttrs a = c.as<AxesAttrs>();
  a.inverse = !a.inverse;
  const Tensor g = c2c(c.grad(), a);
  c.set(0, is_complex(c.dtype(0)) ? g : real(g));
}
void r2c_vjp(Vjp& c) {
  const auto& a = c.as<AxesAttrs>();
  const int64_t last = last_of(a.axes, c.sizes(0).size());
  const int64_t n = c.sizes(0)[c.sizes(0).size() + static_cast<int>(last)];
  const Tensor g = a.inverse ? conj(c.grad()) : c.grad();
  c.set(0, c2r(g * mirror_factors(g, last, n, 1, 0.5), {a.axes, n, a.scale}));
}
void c2r_vjp(Vjp& c) {
  const auto& a = c.as<ToRealAttrs>();
  const Tensor g = r2c(c.grad(), {a.axes, false, a.scale});
  c.set(0, g * mirror_factors(g, last_of(a.axes, c.sizes(0).size()), a.n, 1, 2));
}

// All axes but the last `left` ones of the list.
void transform_all(const Tensor& from, const Tensor& to, const Dims& axes, int left, bool inverse,
                   double scale) {
  for (int i = axes.size() - left - 1; i >= 0; --i) {
    transform(i == axes.size() - left - 1 ? from : to, to, wrapped(axes[i], to.ndim(), "fft"),
              inverse, scale);
    scale = 1;
  }
}

constexpr OpDef c2c_op = general({
    .signature = "_fft_c2c(Tensor x, int[] axes, bool inverse, float scale) -> Tensor",
    .doc = "fft.fftn and fft.ifftn without checks and padding.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor& x = c.in[0];
          check_axes(c, x, c.as<AxesAttrs>().axes, x.is_complex());
          outs.add(complex_of(x.dtype()), x.sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<AxesAttrs>();
          const Tensor& x = c.in[0];
          const Tensor& to = outs[0];
          if (to.numel() == 0) return;
          if (x.is_complex())
            return transform_all(contiguous(x), to, a.axes, 0, a.inverse, a.scale);
          // Half of the last dim's spectrum is computed, and mirrored, if that is one of them.
          int last = a.axes.size() - 1;
          while (last >= 0 && wrapped(a.axes[last], x.ndim(), "fft") != x.ndim() - 1) --last;
          if (last < 0) {
            copy_into(to, x);
            return transform_all(to, to, a.axes, 0, a.inverse, a.scale);
          }
          const Tensor real = contiguous(x);
          const int64_t n = x.size(-1), lines = x.numel() / n;
          {
            const LongWork long_work(work(x));
            if (real.dtype() == DType::Float32)
              kernels::fft_real(real.data<const float>(), to.data<float>(), lines, n, true,
                                a.inverse, static_cast<float>(a.scale));
            else
              kernels::fft_real(real.data<const double>(), to.data<double>(), lines, n, true,
                                a.inverse, a.scale);
          }
          Dims others;
          for (int i = 0; i < a.axes.size(); ++i) {
            if (i != last) others.push_back(a.axes[i]);
          }
          transform_all(to, to, others, 0, a.inverse, 1);
        },
    .vjp = c2c_vjp,
    .batch = batch_leading,
    .attrs = &attr_info<AxesAttrs>,
    .offer = Offer::function,
});

// A view with an axis last, and the same for the result of an operation there.
Tensor with_last(const Tensor& x, int axis) { return transpose(x, axis, x.ndim() - 1); }

constexpr OpDef r2c_op = general({
    .signature = "_fft_r2c(Tensor x, int[] axes, bool inverse, float scale) -> Tensor",
    .doc = "fft.rfftn without checks and padding.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor& x = c.in[0];
          const Dims& axes = c.as<AxesAttrs>().axes;
          check_axes(c, x, axes, false);
          Dims sizes = x.sizes();
          int64_t& last = sizes[wrapped(axes[axes.size() - 1], x.ndim(), c.name())];
          last = last / 2 + 1;
          outs.add(complex_of(x.dtype()), sizes);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<AxesAttrs>();
          const Tensor& to = outs[0];
          if (c.in[0].numel() == 0) {
            if (to.numel()) fill_(to, 0);
            return;
          }
          const int axis = wrapped(a.axes[a.axes.size() - 1], to.ndim(), "fft");
          const bool at_end = axis == to.ndim() - 1;
          const Tensor x = contiguous(at_end ? c.in[0] : with_last(c.in[0], axis));
          const Tensor made = at_end ? to : empty(with_last(to, axis).sizes(), to.dtype());
          const int64_t n = x.size(-1), lines = x.numel() / n;
          {
            const LongWork long_work(work(x));
            if (x.dtype() == DType::Float32)
              kernels::fft_real(x.data<const float>(), made.data<float>(), lines, n, false,
                                a.inverse, static_cast<float>(a.scale));
            else
              kernels::fft_real(x.data<const double>(), made.data<double>(), lines, n, false,
                                a.inverse, a.scale);
          }
          if (!at_end) copy_into(to, with_last(made, axis));
          transform_all(to, to, a.axes, 1, a.inverse, 1);
        },
    .vjp = r2c_vjp,
    .batch = batch_leading,
    .attrs = &attr_info<AxesAttrs>,
    .offer = Offer::function,
});

constexpr OpDef c2r_op = general({
    .signature = "_fft_c2r(Tensor x, int[] axes, int n, float scale) -> Tensor",
    .doc = "fft.irfftn without checks and padding; n real values along the last axis.",
    .shape =
        [](const Call& c, OutSpecs& outs) {
          const Tensor& x = c.in[0];
          const auto& a = c.as<ToRealAttrs>();
          check_axes(c, x, a.axes, true);
          Dims sizes = x.sizes();
          int64_t& last = sizes[wrapped(a.axes[a.axes.size() - 1], x.ndim(), c.name())];
          require(a.n >= 1 && last == a.n / 2 + 1, c.name(), ": ", a.n, " values need ",
                  a.n / 2 + 1, " of the spectrum; got ", x);
          last = a.n;
          outs.add(real_of(x.dtype()), sizes);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<ToRealAttrs>();
          const Tensor& to = outs[0];
          if (to.numel() == 0) return;
          const int axis = wrapped(a.axes[a.axes.size() - 1], to.ndim(), "fft");
          const bool at_end = axis == to.ndim() - 1;
          Tensor x = contiguous(c.in[0]);
          if (a.axes.size() > 1) {
            const Tensor made = empty(x.sizes(), x.dtype());
            transform_all(x, made, a.axes, 1, true, 1);
            x = made;
          }
          if (!at_end) x = contiguous(with_last(x, axis));
          const Tensor made = at_end ? to : empty(with_last(to, axis).sizes(), to.dtype());
          {
            const LongWork long_work(work(to));
            const int64_t lines = to.numel() / a.n;
            if (to.dtype() == DType::Float32)
              kernels::fft_to_real(x.data<const float>(), made.data<float>(), lines, a.n,
                                   static_cast<float>(a.scale));
            else
              kernels::fft_to_real(x.data<const double>(), made.data<double>(), lines, a.n,
                                   a.scale);
          }
          if (!at_end) copy_into(to, with_last(made, axis));
        },
    .vjp = c2r_vjp,
    .batch = batch_leading,
    .attrs = &attr_info<ToRealAttrs>,
    .offer = Offer::function,
});

Tensor c2c(const Tensor& x, const AxesAttrs& a) { return apply(c2c_op, {x}, a); }
Tensor r2c(const Tensor& x, const AxesAttrs& a) { return apply(r2c_op, {x}, a); }
Tensor c2r(const Tensor& x, const ToRealAttrs& a) { return apply(c2r_op, {x}, a); }

constexpr const OpDef* fft_list[] = {&c2c_op, &r2c_op, &c2r_op};

}  // namespace

extern const OpList fft_ops;
const OpList fft_ops = op_list(fft_list);

}  // namespace clew
