// Single steps of recurrent cells, as the modules call them: two products and a fused step.
// May include: ops, kernels/sequence/recurrent.h.
// Invariant: arguments are checked here, in the words of the modules that users know.
#include "graph/modes.h"
#include "ops/batch_rules.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/joining.h"
#include "ops/calls/matmul.h"
#include "ops/calls/reduction.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/sequence/recurrent.h"

namespace clew {

namespace {

using kernels::RecurrentCell;

Tensor cast(const Tensor& t, DType d) { return t ? to_dtype(t, d) : t; }
// --- Cells ---------------------------------------------------------------------------------------

// The gates of one LSTM step. Inputs: both products, both biases, c.
void gates_shape(const Call& c, OutSpecs& out) {
  const Tensor &x = c.in[0], &h = c.in[1], &before = c.in[4];
  const DType d = x.dtype();
  require((d == DType::Float32 || d == DType::Float64) && x.ndim() == 2 && x.sizes() == h.sizes() &&
              h.dtype() == d && before.dtype() == d &&
              before.sizes() == Dims{x.size(0), x.size(1) / 4} && x.size(1) % 4 == 0,
          "lstm_gates: operands do not fit; got ", x, ", ", h, " and ", before);
  for (int i : {2, 3}) {
    require(!c.in[i] || (c.in[i].dtype() == d && c.in[i].sizes() == Dims{x.size(1)}),
            "lstm_gates: a bias does not fit; got ", x, " and ", c.in[i]);
  }
  out.add(d, before.sizes());
  out.add(d, before.sizes());
  out.add(d, x.sizes());
}
kernels::CellStep step_of(const Tensor& gates, const Tensor& before) {
  kernels::CellStep s{};
  s.dtype = gates.dtype(), s.rows = gates.size(0), s.hidden = gates.size(1) / 4;
  s.before = before.data<char>();
  return s;
}
void gates_cpu(const Call& c, Tensors& outs) {
  Tensor in[5];
  for (int i = 0; i < 5; ++i) in[i] = c.in[i] ? contiguous(c.in[i]) : Tensor();
  kernels::CellStep s = step_of(in[0], in[4]);
  s.x = in[0].data<char>(), s.h = in[1].data<char>();
  s.b_ih = in[2] ? in[2].data<char>() : nullptr;
  s.b_hh = in[3] ? in[3].data<char>() : nullptr;
  kernels::lstm_step(s, outs[0].data<char>(), outs[1].data<char>(), outs[2].data<char>());
}

// Inputs: the gradients of h and c (which may be missing); c before and after, the gates.
void gates_back_shape(const Call& c, OutSpecs& out) {
  const Tensor &g = c.in[0], &before = c.in[2], &gates = c.in[4];
  require(gates.ndim() == 2 && before.ndim() == 2 &&
              gates.sizes() == Dims{before.size(0), 4 * before.size(1)} &&
              g.sizes() == before.sizes() && c.in[3].sizes() == before.sizes() &&
              (!c.in[1] || (c.in[1].sizes() == g.sizes() && c.in[1].dtype() == g.dtype())) &&
              (g.dtype() == DType::Float32 || g.dtype() == DType::Float64) &&
              before.dtype() == g.dtype() && c.in[3].dtype() == g.dtype() &&
              gates.dtype() == g.dtype(),
          "lstm_gates_backward: operands do not fit; got ", g, " and ", gates);
  out.add(g.dtype(), gates.sizes());
  out.add(g.dtype(), before.sizes());
  out.add(g.dtype(), Dims{gates.size(1)});
}
void gates_back_cpu(const Call& c, Tensors& outs) {
  Tensor in[5];
  for (int i = 0; i < 5; ++i) in[i] = c.in[i] ? contiguous(c.in[i]) : Tensor();
  kernels::lstm_step_backward(step_of(in[4], in[2]), in[4].data<char>(), in[3].data<char>(),
                              in[0].data<char>(), in[1] ? in[1].data<char>() : nullptr,
                              outs[0].data<char>(), outs[1].data<char>(), outs[2].data<char>());
}
constexpr OpDef gates_back_op = general({
    .signature = "_lstm_gates_backward(Tensor grad, Tensor? grad_c, Tensor before, Tensor after, "
                 "Tensor gates) -> (Tensor gates, Tensor cx, Tensor bias)",
    .doc = "Gradients of one LSTM step's gates.",
    .shape = gates_back_shape,
    .cpu = gates_back_cpu,
    .no_vjp = no_rule("it runs only where no graph is recorded; otherwise the gradient is written "
                      "with other ops"),
    .offer = Offer::function,
    .flops = "26 * numel(results[1])",
});

void gates_vjp(Vjp& c) {
  const Tensor before = c.in(4), after = c.out(1), gates = c.out(2);
  const Tensor &g_h = c.grad(0), &g_c = c.grad(1), &g_gates = c.grad(2);
  Tensor d, d_before, bias;
  if (!modes.grad && !g_gates) {
    const Tensor in[] = {g_h ? g_h : zero_block(before.sizes(), before.dtype(), before.device()),
                         g_c, before, after, gates};
    Tensors grads;
    apply(gates_back_op, in, nullptr, grads);
    d = grads[0], d_before = grads[1], bias = grads[2];
  } else {
    // With other ops; the gates are outputs like the others and have their own history.
    const Scalar one(1);
    const Tensors g = chunk(gates, 4, 1);
    const Tensor squashed = tanh(after);
    Tensor total = g_c, d_out;
    if (g_h) {
      total = both(total, g_h * g[3] * (one - squashed * squashed));
      d_out = g_h * squashed;
    }
    if (!total) total = zero_block(before.sizes(), before.dtype(), before.device());
    if (!d_out) d_out = zero_block(before.sizes(), before.dtype(), before.device());
    Tensor parts[] = {total * g[2], total * before, total * g[0], d_out};
    if (g_gates) {
      const Tensors more = chunk(g_gates, 4, 1);
      for (int i = 0; i < 4; ++i) parts[i] = parts[i] + more[i];
    }
    for (int i = 0; i < 4; ++i)
      parts[i] = parts[i] * (i == 2 ? one - g[i] * g[i] : g[i] * (one - g[i]));
    d = cat(parts, 1);
    d_before = total * g[1];
    bias = sum(d, {0});
  }
  for (int i : {0, 1})
    if (c.needs(i)) c.set(i, d);
  for (int i : {2, 3})
    if (c.needs(i)) c.set(i, bias);
  if (c.needs(4)) c.set(4, d_before);
}
constexpr OpDef gates_op = general({
    .signature = "_lstm_gates(Tensor input, Tensor hidden, Tensor? b_ih, Tensor? b_hh, Tensor cx) "
                 "-> (Tensor hx, Tensor cx, Tensor gates)",
    .doc = "One LSTM step after its two products: h, c, and the gates.",
    .shape = gates_shape,
    .cpu = gates_cpu,
    .saves = {.always = in(4) | out(1) | out(2)},
    .vjp = gates_vjp,
    .batch = batch_fold<0b10011>,
    .offer = Offer::function,
    .flops = "13 * numel(result)",
});

// The gates of one GRU step. Inputs: both products, both biases, h.
void gru_gates_shape(const Call& c, OutSpecs& out) {
  const Tensor &x = c.in[0], &h = c.in[1], &before = c.in[4];
  const DType d = x.dtype();
  require((d == DType::Float32 || d == DType::Float64) && x.ndim() == 2 && x.sizes() == h.sizes() &&
              h.dtype() == d && before.dtype() == d && x.size(1) % 3 == 0 &&
              before.sizes() == Dims{x.size(0), x.size(1) / 3},
          "gru_gates: operands do not fit; got ", x, ", ", h, " and ", before);
  for (int i : {2, 3}) {
    require(!c.in[i] || (c.in[i].dtype() == d && c.in[i].sizes() == Dims{x.size(1)}),
            "gru_gates: a bias does not fit; got ", x, " and ", c.in[i]);
  }
  out.add(d, before.sizes());
  out.add(d, Dims{x.size(0), x.size(1) / 3 * 4});
}
void gru_gates_cpu(const Call& c, Tensors& outs) {
  Tensor in[5];
  for (int i = 0; i < 5; ++i) in[i] = c.in[i] ? contiguous(c.in[i]) : Tensor();
  kernels::CellStep s = step_of(outs[1], in[4]);
  s.x = in[0].data<char>(), s.h = in[1].data<char>();
  s.b_ih = in[2] ? in[2].data<char>() : nullptr;
  s.b_hh = in[3] ? in[3].data<char>() : nullptr;
  kernels::gru_step(s, outs[0].data<char>(), outs[1].data<char>());
}

// Inputs: the gradient of h; h before, the gates.
void gru_back_shape(const Call& c, OutSpecs& out) {
  const Tensor &g = c.in[0], &before = c.in[1], &gates = c.in[2];
  require(gates.ndim() == 2 && before.ndim() == 2 &&
              gates.sizes() == Dims{before.size(0), 4 * before.size(1)} &&
              g.sizes() == before.sizes() &&
              (g.dtype() == DType::Float32 || g.dtype() == DType::Float64) &&
              before.dtype() == g.dtype() && gates.dtype() == g.dtype(),
          "gru_gates_backward: operands do not fit; got ", g, " and ", gates);
  const Dims product{before.size(0), 3 * before.size(1)};
  out.add(g.dtype(), product);
  out.add(g.dtype(), product);
  out.add(g.dtype(), before.sizes());
  out.add(g.dtype(), Dims{gates.size(1)});
}
void gru_back_cpu(const Call& c, Tensors& outs) {
  const Tensor g = contiguous(c.in[0]), before = contiguous(c.in[1]), gates = contiguous(c.in[2]);
  kernels::gru_step_backward(step_of(gates, before), gates.data<char>(), g.data<char>(),
                             outs[0].data<char>(), outs[1].data<char>(), outs[2].data<char>(),
                             outs[3].data<char>());
}
constexpr OpDef gru_back_op = general({
    .signature = "_gru_gates_backward(Tensor grad, Tensor before, Tensor gates) "
                 "-> (Tensor input, Tensor hidden, Tensor hx, Tensor bias)",
    .doc = "Gradients of one GRU step's gates.",
    .shape = gru_back_shape,
    .cpu = gru_back_cpu,
    .no_vjp = no_rule("it runs only where no graph is recorded; otherwise the gradient is written "
                      "with other ops"),
    .offer = Offer::function,
    .flops = "20 * numel(results[2])",
});

void gru_gates_vjp(Vjp& c) {
  const Tensor before = c.in(4), gates = c.out(1);
  const Tensor &g_h = c.grad(0), &g_gates = c.grad(1);
  const int64_t n = before.size(1);
  Tensor d_x, d_h, d_before, b_ih, b_hh;
  if (!modes.grad && !g_gates) {
    const Tensor in[] = {g_h, before, gates};
    Tensors grads;
    apply(gru_back_op, in, nullptr, grads);
    d_x = grads[0], d_h = grads[1], d_before = grads[2];
    b_ih = narrow(grads[3], 0, 0, 3 * n);
    if (c.needs(3)) {
      const Tensor parts[] = {narrow(grads[3], 0, 0, 2 * n), narrow(grads[3], 0, 3 * n, n)};
      b_hh = cat(parts, 0);
    }
  } else {
    // With other ops; the gates are an output like h and have their own history.
    const Scalar one(1);
    const Tensors g = chunk(gates, 4, 1);
    const Tensor &reset = g[0], &update = g[1], &fresh = g[2], &state = g[3];
    const Tensor total = g_h ? g_h : zero_block(before.sizes(), before.dtype(), before.device());
    auto with = [&](const Tensor& t, int i) {
      return g_gates ? t + narrow(g_gates, 1, i * n, n) : t;
    };
    const Tensor d_fresh = with(total * (one - update), 2) * (one - fresh * fresh);
    const Tensor d_update = with(total * (before - fresh), 1) * update * (one - update);
    const Tensor d_reset = with(d_fresh * state, 0) * reset * (one - reset);
    const Tensor of_x[] = {d_reset, d_update, d_fresh},
                 of_h[] = {d_reset, d_update, with(d_fresh * reset, 3)};
    d_x = cat(of_x, 1), d_h = cat(of_h, 1), d_before = total * update;
    b_ih = sum(d_x, {0}), b_hh = sum(d_h, {0});
  }
  const Tensor all[] = {d_x, d_h, b_ih, b_hh, d_before};
  for (int i = 0; i < 5; ++i)
    if (c.needs(i)) c.set(i, all[i]);
}
constexpr OpDef gru_gates_op = general({
    .signature = "_gru_gates(Tensor input, Tensor hidden, Tensor? b_ih, Tensor? b_hh, Tensor hx) "
                 "-> (Tensor hx, Tensor gates)",
    .doc = "One GRU step after its two products: h, and the gates.",
    .shape = gru_gates_shape,
    .cpu = gru_gates_cpu,
    .saves = {.always = in(4) | out(1)},
    .vjp = gru_gates_vjp,
    .batch = batch_fold<0b10011>,
    .offer = Offer::function,
    .flops = "10 * numel(result)",
});

// Inputs of every cell: input, h, (c,) w_ih, w_hh, b_ih, b_hh. States and biases may be missing.
struct CellCall {
  const char* name;
  RecurrentCell cell;
  Tensor x, w_ih, w_hh, b_ih, b_hh;
  CellState before;
  bool single;
  DType outer;

  CellCall(const Call& c, const char* module, RecurrentCell kind) : name(module), cell(kind) {
    const bool lstm = cell == RecurrentCell::lstm;
    const auto w = c.in.subspan(lstm ? 3 : 2);
    x = c.in[0];
    if (x.ndim() != 1 && x.ndim() != 2)
      fail_value(name, ": Expected input to be 1D or 2D, got ", x.ndim(), "D instead");
    require(x.size(-1) == w[0].size(1), "input has inconsistent input_size: got ", x.size(-1),
            " expected ", w[0].size(1));
    single = x.ndim() == 1;
    outer = w[0].dtype();
    require(x.dtype() == outer, name, ": input must have the weights' dtype; got ", x, " and ",
            w[0]);
    if (single) x = unsqueeze(x, 0);
    const int64_t hidden = w[1].size(1);
    before.h = state(c.in[1], "hidden0", hidden);
    if (lstm) before.c = state(c.in[2], "hidden1", hidden);
    w_ih = w[0], w_hh = w[1], b_ih = w[2], b_hh = w[3];
    if (!is_half(outer)) return;
    for (Tensor* t : {&x, &w_ih, &w_hh, &b_ih, &b_hh, &before.h, &before.c})
      *t = cast(*t, DType::Float32);
  }
  Tensor state(const Tensor& given, const char* which, int64_t hidden) const {
    const Dims want{x.size(0), hidden};
    if (!given) return zero_block(want, outer, x.device());
    if (given.ndim() != 1 && given.ndim() != 2)
      fail_value(name, ": Expected hidden to be 1D or 2D, got ", given.ndim(), "D instead");
    Tensor s = single ? unsqueeze(given, 0) : given;
    require(s.size(-1) == hidden, name, ": ", which, " has inconsistent hidden_size: got ",
            s.size(-1), ", expected ", hidden);
    require(s.sizes() == want, name, ": Input batch size ", want[0], " doesn't match ", which,
            " batch size ", s.size(0), "; it must have shape ", tuple_text(want));
    require(s.dtype() == outer, name, ": ", which, " must have the weights' dtype; got ", s,
            " and ", outer);
    return s;
  }
  void finish(const CellState& after, Tensors& outs) const {
    for (const Tensor& t : {after.h, after.c}) {
      if (t) outs.push_back(single ? squeeze(to_dtype(t, outer), Dims{0}) : to_dtype(t, outer));
    }
  }
  // With other ops.
  void run(Tensors& outs) const {
    const Tensor projected = recurrent_projection(cell, x, w_ih, b_ih, b_hh);
    finish(recurrent_step(cell, projected, before, w_hh, b_hh, Tensor()), outs);
  }
};

void lstm_cell_run(const Call& c, Tensors& outs) {
  const CellCall call(c, "LSTMCell", RecurrentCell::lstm);
  if (call.x.dtype() != DType::Float32 && call.x.dtype() != DType::Float64) return call.run(outs);
  const Tensor in[] = {linear(call.x, call.w_ih, Tensor()),
                       linear(call.before.h, call.w_hh, Tensor()), call.b_ih, call.b_hh,
                       call.before.c};
  Tensors results;
  apply(gates_op, in, nullptr, results);
  call.finish({results[0], results[1]}, outs);
}
void gru_cell_run(const Call& c, Tensors& outs) {
  const CellCall call(c, "GRUCell", RecurrentCell::gru);
  if (call.x.dtype() != DType::Float32 && call.x.dtype() != DType::Float64) return call.run(outs);
  const Tensor in[] = {linear(call.x, call.w_ih, Tensor()),
                       linear(call.before.h, call.w_hh, Tensor()), call.b_ih, call.b_hh,
                       call.before.h};
  Tensors results;
  apply(gru_gates_op, in, nullptr, results);
  call.finish({results[0], Tensor()}, outs);
}
struct SimpleAttrs {
  bool relu = false;
  static constexpr auto members() { return std::tuple(&SimpleAttrs::relu); }
};
void rnn_cell_run(const Call& c, Tensors& outs) {
  const bool relu = c.as<SimpleAttrs>().relu;
  CellCall(c, "RNNCell", relu ? RecurrentCell::relu : RecurrentCell::tanh).run(outs);
}

constexpr OpDef lstm_cell_op = composite({
    .signature = "_lstm_cell(Tensor input, Tensor? hx, Tensor? cx, Tensor w_ih, Tensor w_hh, "
                 "Tensor? b_ih, Tensor? b_hh) -> (Tensor, Tensor)",
    .doc = "One step of an LSTM: h and c. States that are missing are zeros.",
    .run = lstm_cell_run,
    .autocast = Autocast::float32,
    .offer = Offer::function,
});
constexpr OpDef gru_cell_op = composite({
    .signature = "_gru_cell(Tensor input, Tensor? hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, "
                 "Tensor? b_hh) -> Tensor",
    .doc = "One step of a GRU. A state that is missing is zeros.",
    .run = gru_cell_run,
    .autocast = Autocast::float32,
    .offer = Offer::function,
});
constexpr OpDef rnn_cell_op = composite({
    .signature = "_rnn_cell(Tensor input, Tensor? hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, "
                 "Tensor? b_hh, bool relu) -> Tensor",
    .doc = "One step of a simple recurrent layer. A state that is missing is zeros.",
    .run = rnn_cell_run,
    .attrs = &attr_info<SimpleAttrs>,
    .autocast = Autocast::lower,
    .offer = Offer::function,
});

constexpr const OpDef* recurrent_cell_list[] = {&gates_op,    &gates_back_op, &gru_gates_op,
                                                &gru_back_op, &lstm_cell_op,  &gru_cell_op,
                                                &rnn_cell_op};

}  // namespace

extern const OpList recurrent_cell_ops;
const OpList recurrent_cell_ops = op_list(recurrent_cell_list);

}  // namespace clew
