// The negative log likelihood that nll_loss and cross_entropy are made of.
// May include: ops, graph, tensor, kernels.
// Invariant: backward keeps the targets and the sum of the weights, and the input only for the
// weights' gradient.
#include "kernels/norm/loss.h"
#include "graph/batch.h"
#include "graph/modes.h"
#include "ops/batch_rules.h"
#include "ops/calls/comparison.h"
#include "ops/calls/indexing.h"
#include "ops/calls/joining.h"
#include "ops/calls/rules.h"
#include "ops/calls/shape.h"
#include "ops/calls/softmax.h"
#include "ops/calls/unary.h"
#include "ops/normalization/normalization_common.h"

namespace clew {
namespace {

struct NllAttrs {
  int64_t ignore_index = -100;
  Str reduction = "mean";
  static constexpr auto members() {
    return std::tuple(&NllAttrs::ignore_index, &NllAttrs::reduction);
  }
};
struct NllBackwardAttrs {
  Dims size;
  int64_t ignore_index = -100;
  Str reduction = "mean";
  static constexpr auto members() {
    return std::tuple(&NllBackwardAttrs::size, &NllBackwardAttrs::ignore_index,
                      &NllBackwardAttrs::reduction);
  }
};

kernels::NllShape nll_shape(const Dims& x, int64_t ignore) {
  if (x.size() == 1) return {1, x[0], 1, ignore};
  int64_t s = 1;
  for (int d = 2; d < x.size(); ++d) s *= x[d];
  return {x[0], x[1], s, ignore};
}
Dims target_sizes(const Dims& x) {
  Dims t;
  for (int d = 0; d < x.size(); ++d) {
    if (d != 1 && x.size() > 1) t.push_back(x[d]);
  }
  return t;
}
void check(const Call& c, const Dims& x, const Tensor& target, const Tensor& weight,
           const Str& reduction) {
  if (!(reduction == "mean" || reduction == "sum" || reduction == "none")) {
    fail_value(c.name(), ": reduction must be 'mean', 'sum' or 'none'; got '",
               std::string_view(reduction), "'");
  }
  require(x.size() >= 1, c.name(), ": input must have a dimension of classes; got shape ", x);
  require(target.dtype() == DType::Int64 || target.dtype() == DType::UInt8, c.name(),
          ": expected target dtype to be int64 or uint8; got ", target,
          "; convert it with .long()");
  Dims expect = target_sizes(x);
  if (!expect.empty() && target.ndim() > 0 && target.sizes()[0] != expect[0]) {
    fail_value(c.name(), ": expected input batch size (", expect[0],
               ") to match target batch size (", target.sizes()[0], ")");
  }
  require(target.sizes() == expect, c.name(), ": expected target of shape ", expect,
          " for input of shape ", x, "; got ", target);
  int64_t classes = x[x.size() == 1 ? 0 : 1];
  require(!weight.defined() ||
              (weight.ndim() == 1 && weight.numel() == classes && weight.is_floating()),
          c.name(), ": weight must be floating point with one element for each of the ", classes,
          " classes; got ", weight);
}

// A private copy of the targets: kernels read them more than once, and no other thread can write to
// the copy in between.
Tensor own_targets(const Tensor& target, const kernels::NllShape& sh) {
  Tensor own = empty(target.sizes(), DType::Int64);
  require(own.numel() == sh.n * sh.s, "nll_loss: there must be a target for each loss; got ",
          target);
  copy_into(own, target);
  kernels::check_targets(own.data<const int64_t>(), sh);
  return own;
}

// vmap: losses of single targets, samples folded into the batch, are summed within each sample.
Dims folded(const Batch& b, const Dims& x) {
  Dims sizes{numel_of(b.lead) * (x.size() == 1 ? 1 : x[0])};
  for (int d = x.size() == 1 ? 0 : 1; d < x.size(); ++d) sizes.push_back(x[d]);
  return sizes;
}
void nll_batch(const Batch& b, Tensors& outs);
void nll_backward_batch(const Batch& b, Tensors& outs);
void nll_backward_vjp(Vjp& c);

constexpr OpDef nll_backward_op = general({
    .signature = "_nll_loss_backward(Tensor grad, Tensor target, Tensor? weight, Tensor "
                 "total_weight, int[] size, "
                 "int ignore_index, str reduction) -> Tensor",
    .doc =
        "Gradient of the negative log likelihood: -weight[t] * grad at the targets, 0 elsewhere.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<NllBackwardAttrs>();
          check(c, a.size, c.in[1], c.in[2], a.reduction);
          const Tensor& g = c.in[0];
          require(g.is_floating() && g.numel() == (a.reduction == "none" ? c.in[1].numel() : 1),
                  c.name(), ": grad has the wrong size; got ", g);
          require(c.in[3].is_floating() && c.in[3].numel() == 1, c.name(),
                  ": total_weight must be one number; got ", c.in[3]);
          out.add(g.dtype(), a.size);
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<NllBackwardAttrs>();
          DType d = norm_dtype(outs[0].dtype());
          StagedOut dx(outs[0], d);
          Tensor g = dense(c.in[0], d), w = dense(c.in[2], d);
          double scale = a.reduction == "mean" ? 1 / item(c.in[3]).to_double() : 1.0;
          kernels::NllShape sh = nll_shape(a.size, a.ignore_index);
          const Tensor t = own_targets(c.in[1], sh);
          with_norm_type(d, [&]<class T>() {
            std::fill_n(dx.data<T>(), sh.n * sh.c * sh.s, T(0));
            kernels::nll_backward(dx.data<T>(), g.data<const T>(), !(a.reduction == "none"), scale,
                                  t.data<const int64_t>(), data_or_null<T>(w), sh);
          });
        },
    .saves = {.always = in(0) | in(1) | in(2) | in(3)},
    .vjp = nll_backward_vjp,
    .batch = nll_backward_batch,
    .attrs = &attr_info<NllBackwardAttrs>,
    .offer = Offer::function,
    .flops = "numel(target)",
});

Tensor nll_loss(const Tensor& x, const Tensor& target, const Tensor& weight, int64_t ignore,
                Str reduction);

// Sums one number a target into the classes: the shape of every gradient of the weights.
Tensor by_class(const Tensor& each, const Tensor& target, int64_t ignore, int64_t classes) {
  Tensor t = reshape(to_dtype(target, DType::Int64), Dims{target.numel()});
  Tensor ignored = eq(t, number(ignore));
  Tensor flat = where(ignored, number(0), reshape(each, Dims{target.numel()}));
  return index_add(zero_of(each, Dims{classes}), 0, where(ignored, number(0), t), flat);
}
Tensor over_targets(const Tensor& g, const Tensor& target) { return expand(g, target.sizes()); }

void nll_vjp(Vjp& c) {
  const auto& a = c.as<NllAttrs>();
  Tensor g = c.grad(0), target = c.in(1), total = c.out(1);
  if (c.needs(0) && g.defined()) {
    c.set(0, apply(nll_backward_op, {g, target, c.has_in(2) ? c.in(2) : Tensor(), total},
                   NllBackwardAttrs{c.sizes(0), a.ignore_index, a.reduction}));
  }
  if (c.inputs() < 3 || !c.needs(2)) return;
  int64_t classes = c.sizes(2)[0];
  Tensor dw;
  if (g.defined()) {
    Tensor each = nll_loss(c.in(0), target, Tensor(), a.ignore_index, "none");
    if (a.reduction == "mean") each = (each - c.out(0)) / total;
    dw = by_class(over_targets(g, target) * each, target, a.ignore_index, classes);
  }
  if (c.grad(1).defined()) {
    Tensor part = by_class(over_targets(c.grad(1), target), target, a.ignore_index, classes);
    dw = dw.defined() ? dw + part : part;
  }
  if (dw.defined()) c.set(2, dw);
}
constexpr OpDef nll_op = general({
    .signature = "_nll_loss(Tensor input, Tensor target, Tensor? weight, int ignore_index, str "
                 "reduction) -> "
                 "(Tensor output, Tensor total_weight)",
    .doc = "Negative log likelihood -weight[t] * input[t] of log-probabilities [N, C, ...] or [C], "
           "and the weights' sum.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<NllAttrs>();
          const Tensor& x = c.in[0];
          check(c, x.sizes(), c.in[1], c.in[2], a.reduction);
          require(x.is_floating(), c.name(), ": input must be floating point; got ", x);
          out.add(x.dtype(), a.reduction == "none" ? c.in[1].sizes() : Dims{});
          out.add(norm_dtype(x.dtype()), Dims{});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<NllAttrs>();
          DType d = norm_dtype(outs[0].dtype());
          bool each = a.reduction == "none";
          StagedOut out(outs[0], d), total_out(outs[1], d);
          Tensor x = dense(c.in[0], d), w = dense(c.in[2], d);
          kernels::NllShape sh = nll_shape(x.sizes(), a.ignore_index);
          const Tensor t = own_targets(c.in[1], sh);
          with_norm_type(d, [&]<class T>() {
            double sum, total;
            kernels::nll(x.data<const T>(), t.data<const int64_t>(), data_or_null<T>(w), sh,
                         each ? out.data<T>() : nullptr, &sum, &total);
            if (!each) *out.data<T>() = static_cast<T>(a.reduction == "mean" ? sum / total : sum);
            *total_out.data<T>() = static_cast<T>(total);
          });
        },
    .saves = {.always = in(1) | in(2) | out(1), .when = {0, 0, in(0) | out(0)}},
    .vjp = nll_vjp,
    .batch = nll_batch,
    .attrs = &attr_info<NllAttrs>,
    .offer = Offer::function,
    .flops = "2 * numel(target)",
});

// The gradient is linear in grad, and its transpose is the loss itself.
void nll_backward_vjp(Vjp& c) {
  const auto& a = c.as<NllBackwardAttrs>();
  Tensor v = c.grad(), g = c.in(0), target = c.in(1), total = c.in(3);
  bool mean = a.reduction == "mean";
  Tensor w = c.has_in(2) ? c.in(2) : Tensor();
  if (c.needs(0) || (c.needs(3) && mean)) {
    Tensor back = nll_loss(v, target, w, a.ignore_index, mean ? Str("sum") : a.reduction);
    if (mean) back = back / total;
    if (c.needs(0)) c.set(0, reshape(back, c.sizes(0)));
    if (c.needs(3) && mean) c.set(3, reshape(-(g * back / total), c.sizes(3)));
  }
  if (w.defined() && c.needs(2)) {
    Tensor each = nll_loss(v, target, Tensor(), a.ignore_index, "none") * over_targets(g, target);
    c.set(2, by_class(mean ? each / total : each, target, a.ignore_index, w.sizes()[0]));
  }
}

Tensor nll_loss(const Tensor& x, const Tensor& target, const Tensor& weight, int64_t ignore,
                Str reduction) {
  return apply(nll_op, {x, target, weight}, NllAttrs{ignore, reduction});
}

void nll_batch(const Batch& b, Tensors& outs) {
  const auto& a = b.as<NllAttrs>();
  const Tensor& x = b.in[0];
  const Tensor& weight = b.in[2];
  if (is_batched(weight) || !numel_of(b.lead)) return batch_each(b, outs);
  DType d = norm_dtype(x.dtype());
  Dims sizes = folded(b, x.sizes()), targets = target_sizes(sizes);
  Dims each = with_lead(b, b.in[1].sizes());
  Tensor target = reshape(b.full(1), targets);
  Tensor loss =
      nll_loss(reshape(to_dtype(b.full(0), d), sizes), target, weight, a.ignore_index, "none");
  loss = reshape(loss, each);
  Tensor counted;
  if (weight.defined()) {
    counted = nll_loss(expand(scalar_tensor(Scalar(-1.0), d), sizes), target, weight,
                       a.ignore_index, "none");
  } else {
    counted = to_dtype(ne(target, number(a.ignore_index)), d);
  }
  Dims over;
  for (int i = b.k(); i < each.size(); ++i) over.push_back(i);
  auto total = [&](const Tensor& t) { return over.empty() ? t : sum(t, over, false); };
  counted = total(reshape(counted, each));
  if (!(a.reduction == "none")) loss = total(loss);
  if (a.reduction == "mean") loss = loss / counted;
  outs.push_back(to_dtype(loss, x.dtype()));
  outs.push_back(counted);
}
void nll_backward_batch(const Batch& b, Tensors& outs) {
  const auto& a = b.as<NllBackwardAttrs>();
  if (is_batched(b.in[2]) || !numel_of(b.lead)) return batch_each(b, outs);
  Dims sizes = folded(b, a.size), targets = target_sizes(sizes);
  Tensor g = b.full(0);
  if (!(a.reduction == "none")) {
    Dims ones = with_lead(b, Dims(b.in[1].ndim(), 1));
    g = reshape(g, ones);
    if (a.reduction == "mean") g = to_dtype(g / reshape(b.full(3), ones), g.dtype());
    g = expand(g, with_lead(b, b.in[1].sizes()));
  }
  Tensor in[] = {reshape(g, targets), reshape(b.full(1), targets), b.in[2],
                 scalar_tensor(Scalar(1.0), norm_dtype(g.dtype()))};
  NllBackwardAttrs attrs{sizes, a.ignore_index, "none"};
  apply(b.op, in, &attrs, outs);
  outs[0] = view(outs[0], with_lead(b, a.size));
}

// ---- cross-entropy in one pass
// --------------------------------------------------------------------

struct CrossEntropyAttrs {
  int64_t ignore_index = -100;
  Str reduction = "mean";
  double label_smoothing = 0;
  static constexpr auto members() {
    return std::tuple(&CrossEntropyAttrs::ignore_index, &CrossEntropyAttrs::reduction,
                      &CrossEntropyAttrs::label_smoothing);
  }
};
kernels::CrossEntropy cross_shape(const Dims& x, const CrossEntropyAttrs& a) {
  return {nll_shape(x, a.ignore_index), a.label_smoothing};
}
int class_dim(int ndim) { return ndim == 1 ? 0 : 1; }
// A weight for each class, seen to broadcast against the scores.
Tensor beside_classes(const Tensor& w, int ndim) {
  Dims sizes(ndim, 1);
  sizes[class_dim(ndim)] = w.numel();
  return reshape(w, sizes);
}

constexpr OpDef cross_entropy_backward_op = general({
    .signature = "_cross_entropy_backward(Tensor grad, Tensor input, Tensor target, Tensor? "
                 "weight, Tensor log_sum, Tensor total_weight, int ignore_index, str reduction, "
                 "float label_smoothing) -> Tensor",
    .doc = "Gradient of the scores of _cross_entropy(), which gave log_sum and total_weight.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<CrossEntropyAttrs>();
          const Tensor &g = c.in[0], &x = c.in[1], &target = c.in[2];
          check(c, x.sizes(), target, c.in[3], a.reduction);
          const DType d = norm_dtype(x.dtype());
          require(x.is_floating() && g.is_floating() &&
                      g.numel() == (a.reduction == "none" ? target.numel() : 1),
                  c.name(),
                  ": grad and input must be floating point and of the losses' shape; got ", g,
                  " and ", x);
          require(c.in[4].dtype() == d && c.in[4].numel() == 2 * target.numel() &&
                      c.in[5].is_floating() && c.in[5].numel() == 1,
                  c.name(), ": log_sum and total_weight must come from _cross_entropy(); got ",
                  c.in[4], " and ", c.in[5]);
          out.add(x.dtype(), x.sizes());
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<CrossEntropyAttrs>();
          const DType d = norm_dtype(c.in[1].dtype());
          StagedOut dx(outs[0], d);
          const Tensor g = dense(c.in[0], d), x = dense(c.in[1], d), w = dense(c.in[3], d),
                       log_sum = dense(c.in[4], d);
          const kernels::CrossEntropy of = cross_shape(x.sizes(), a);
          const Tensor t = own_targets(c.in[2], of.shape);
          const double scale = a.reduction == "mean" ? 1 / item(c.in[5]).to_double() : 1.0;
          with_norm_type(d, [&]<class T>() {
            kernels::cross_entropy_backward(
                dx.data<T>(), x.data<const T>(), log_sum.data<const T>(), g.data<const T>(),
                !(a.reduction == "none"), scale, t.data<const int64_t>(), data_or_null<T>(w), of);
          });
        },
    .no_vjp = composed_when_recorded,
    .attrs = &attr_info<CrossEntropyAttrs>,
    .at_once = true,
    .offer = Offer::function,
    .flops = "3 * numel(input)",
});

void cross_entropy_vjp(Vjp& c) {
  const auto& a = c.as<CrossEntropyAttrs>();
  Tensor x = c.in(0), target = c.in(1), w = c.has_in(2) ? c.in(2) : Tensor(), g = c.grad(0);
  if (!c.needs(0)) return;
  Tensor log_sum = c.out(1), total = c.out(2);
  const bool mean = a.reduction == "mean";
  if (!modes.grad && g.defined() && !c.grad(1).defined() &&
      !levels_of(std::initializer_list<Tensor>{x, target, w, g}))
    return c.set(0, apply(cross_entropy_backward_op, {g, x, target, w, log_sum, total}, a));
  // Recorded: the gradient of log_softmax, of what flows into the log-probabilities.
  int dim = class_dim(x.ndim());
  Tensor p = softmax(x, dim, std::nullopt), into;
  if (g.defined()) {
    Tensor each = mean ? g / to_dtype(total, g.dtype()) : g;
    each = over_targets(each, target);
    Tensor one = scalar_tensor(Scalar(1.0), norm_dtype(g.dtype()));
    into = apply(nll_backward_op, {each, target, w, one},
                 NllBackwardAttrs{x.sizes(), a.ignore_index, "none"});
    if (a.label_smoothing != 0) {
      double share = a.label_smoothing / static_cast<double>(x.size(dim));
      Tensor kept = where(eq(target, number(a.ignore_index)), number(0), each);
      Tensor spread = builtins.unsqueeze(kept, dim) * Scalar(-share);
      spread = w.defined() ? spread * to_dtype(beside_classes(w, x.ndim()), g.dtype())
                           : expand(spread, x.sizes());
      into = into * Scalar(1 - a.label_smoothing) + spread;
    }
    into = into - p * sum(into, Dims{dim}, true);
  }
  if (c.grad(1).defined()) {
    Tensor part = p * builtins.unsqueeze(to_dtype(select(c.grad(1), 0, 0), p.dtype()), dim);
    into = into.defined() ? into + part : part;
  }
  if (into.defined()) c.set(0, into);
}

// vmap: the composition, of operations that have rules.
void cross_entropy_batch(const Batch& b, Tensors& outs) {
  const auto& a = b.as<CrossEntropyAttrs>();
  const Tensor &x = b.in[0], &target = b.in[1], &w = b.in[2];
  int dim = class_dim(x.ndim());
  Tensor logp = log_softmax(x, dim, std::nullopt);
  Tensor each = nll_loss(logp, target, w, a.ignore_index, "none");
  Tensor kept = ne(target, number(a.ignore_index));
  if (a.label_smoothing != 0) {
    Tensor smooth = w.defined() ? logp * beside_classes(w, x.ndim()) : logp;
    smooth = where(kept, -sum(smooth, Dims{dim}, false), number(0));
    each = each * Scalar(1 - a.label_smoothing) +
           smooth * Scalar(a.label_smoothing / static_cast<double>(x.size(dim)));
  }
  Dims all;
  for (int d = 0; d < target.ndim(); ++d) all.push_back(d);
  auto total = [&](const Tensor& t) { return all.empty() ? t : sum(t, all, false); };
  DType d = norm_dtype(x.dtype());
  Tensor ones = expand(scalar_tensor(Scalar(-1.0), d), x.sizes());
  Tensor counted =
      w.defined() ? nll_loss(ones, target, w, a.ignore_index, "none") : to_dtype(kept, d);
  counted = total(counted);
  if (!(a.reduction == "none")) each = total(each);
  if (a.reduction == "mean") each = each / counted;
  Tensor log_sum = logsumexp(to_dtype(x, d), Dims{dim});
  log_sum = stack(std::initializer_list<Tensor>{log_sum, log_sum * Scalar(0)}, 0);
  for (const Tensor& t : {to_dtype(each, x.dtype()), log_sum, counted})
    outs.push_back(physical_at(t, b.levels, true));
}

constexpr OpDef cross_entropy_op = general({
    .signature = "_cross_entropy(Tensor input, Tensor target, Tensor? weight, int ignore_index, "
                 "str reduction, float label_smoothing) -> "
                 "(Tensor output, Tensor log_sum, Tensor total_weight)",
    .doc = "Cross-entropy of scores [N, C, ...] or [C] and class indices, the logarithm of each "
           "sum of exp in two numbers, and the weights' sum. The weights get no gradient.",
    .shape =
        [](const Call& c, OutSpecs& out) {
          const auto& a = c.as<CrossEntropyAttrs>();
          const Tensor& x = c.in[0];
          check(c, x.sizes(), c.in[1], c.in[2], a.reduction);
          require(x.is_floating(), c.name(), ": input must be floating point; got ", x);
          out.add(x.dtype(), a.reduction == "none" ? c.in[1].sizes() : Dims{});
          Dims pairs{2};
          for (int64_t size : c.in[1].sizes()) pairs.push_back(size);
          out.add(norm_dtype(x.dtype()), pairs);
          out.add(norm_dtype(x.dtype()), Dims{});
        },
    .cpu =
        [](const Call& c, Tensors& outs) {
          const auto& a = c.as<CrossEntropyAttrs>();
          DType d = norm_dtype(outs[0].dtype());
          bool each = a.reduction == "none";
          StagedOut out(outs[0], d);
          Tensor x = dense(c.in[0], d), w = dense(c.in[2], d);
          kernels::CrossEntropy of = cross_shape(x.sizes(), a);
          const Tensor t = own_targets(c.in[1], of.shape);
          with_norm_type(d, [&]<class T>() {
            double sum, total;
            kernels::cross_entropy(x.data<const T>(), t.data<const int64_t>(), data_or_null<T>(w),
                                   of, outs[1].data<T>(), each ? out.data<T>() : nullptr, &sum,
                                   &total);
            if (!each) *out.data<T>() = static_cast<T>(a.reduction == "mean" ? sum / total : sum);
            *outs[2].data<T>() = static_cast<T>(total);
          });
        },
    .saves = {.always = in(0) | in(1) | in(2) | out(1) | out(2)},
    .vjp = cross_entropy_vjp,
    .batch = cross_entropy_batch,
    .attrs = &attr_info<CrossEntropyAttrs>,
    .offer = Offer::function,
    .flops = "4 * numel(input)",
    .backward_flops = "3 * numel(input)",
});

constexpr const OpDef* loss_list[] = {&nll_op, &nll_backward_op, &cross_entropy_op,
                                      &cross_entropy_backward_op};

}  // namespace

extern const OpList loss_ops;
const OpList loss_ops = op_list(loss_list);

}  // namespace clew
