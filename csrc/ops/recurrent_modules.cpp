// What the recurrent modules call: stacks of layers, and single steps of cells.
// May include: ops, kernels/recurrent.h.
// Invariant: arguments are checked here, in the words of the modules that users know.
#include "graph/modes.h"
#include "ops/activation.h"
#include "ops/arithmetic.h"
#include "ops/joining.h"
#include "ops/matmul.h"
#include "ops/product.h"
#include "ops/random.h"
#include "ops/recurrent.h"
#include "ops/reduction.h"
#include "ops/shape.h"
#include "ops/unary.h"

namespace clew {

namespace {

using kernels::RecurrentCell;

bool is_half(DType d) { return d == DType::Float16 || d == DType::BFloat16; }
Tensor cast(const Tensor& t, DType d) { return t ? to_dtype(t, d) : t; }
Tensor both(const Tensor& a, const Tensor& b) { return a && b ? a + b : a ? a : b; }

}  // namespace

// --- With other ops ------------------------------------------------------------------------------

Tensor recurrent_projection(RecurrentCell cell, const Tensor& x, const Tensor& w_ih,
                            const Tensor& b_ih, const Tensor& b_hh) {
  return linear(x, w_ih, cell == RecurrentCell::gru ? b_ih : both(b_ih, b_hh));
}

CellState recurrent_step(RecurrentCell cell, const Tensor& x, const CellState& before,
                         const Tensor& w_hh, const Tensor& b_hh, const Tensor& w_hr) {
  if (cell == RecurrentCell::gru) {
    const int64_t n = w_hh.size(0) / 3;
    const Tensors in = split_with_sizes(x, {2 * n, n}, 1),
                  own = split_with_sizes(linear(before.h, w_hh, b_hh), {2 * n, n}, 1);
    const Tensors gates = chunk(sigmoid(in[0] + own[0]), 2, 1);
    const Tensor fresh = tanh(in[1] + gates[0] * own[1]);
    return {fresh + gates[1] * (before.h - fresh), Tensor()};
  }
  const Tensor sums = addmm(x, before.h, t(w_hh));
  if (cell != RecurrentCell::lstm)
    return {cell == RecurrentCell::relu ? relu(sums) : tanh(sums), Tensor()};
  const Tensors parts = chunk(sums, 4, 1);
  CellState after;
  after.c = sigmoid(parts[1]) * before.c + sigmoid(parts[0]) * tanh(parts[2]);
  after.h = sigmoid(parts[3]) * tanh(after.c);
  if (w_hr) after.h = linear(after.h, w_hr, Tensor());
  return after;
}

void recurrent_composed(std::span<const Tensor> in, const RecurrentAttrs& a, Tensors& outs) {
  const Tensor &x = in[r_input], &w_hh = in[r_w_hh];
  const RecurrentCell cell = a.kind();
  const bool lstm = cell == RecurrentCell::lstm;
  const int64_t gates = w_hh.size(0), state = w_hh.size(1);
  const int64_t hidden = gates / (lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1);
  Dims sizes = a.batch_sizes ? *a.batch_sizes : Dims(static_cast<int>(x.size(0)), x.size(1));
  const int steps = sizes.size();
  const int64_t batch = sizes[0], rows = x.numel() / std::max<int64_t>(1, x.size(-1));
  auto start = [&](const Tensor& given, int64_t width) {
    return given ? reshape(given, {batch, width})
                 : zero_block({batch, width}, x.dtype(), x.device());
  };
  CellState first{start(in[r_h0], state), lstm ? start(in[r_c0], hidden) : Tensor()};
  const Tensor projected =
      reshape(recurrent_projection(cell, x, in[r_w_ih], in[r_b_ih], in[r_b_hh]), {rows, gates});
  const Tensors each = split_with_sizes(projected, sizes, 0);
  auto part = [](const CellState& s, int64_t from, int64_t count) {
    return CellState{narrow(s.h, 0, from, count), s.c ? narrow(s.c, 0, from, count) : Tensor()};
  };
  auto join = [](const CellState& s, const CellState& more) {
    const Tensor h[] = {s.h, more.h}, c[] = {s.c, more.c};
    return CellState{cat(h, 0), s.c ? cat(c, 0) : Tensor()};
  };
  // A packed batch shrinks (grows, backwards): the states of sequences that end are put aside,
  // those that begin start from the first states.
  auto at = [&](int s) { return a.reverse ? steps - 1 - s : s; };
  int64_t now = sizes[at(0)];
  CellState current = now == batch ? first : part(first, 0, now);
  std::vector<CellState> ended;
  Tensors kept(steps);
  for (int s = 0; s < steps; ++s) {
    const int64_t n = sizes[at(s)];
    if (n < now) {
      ended.push_back(part(current, n, now - n));
      current = part(current, 0, n);
    } else if (n > now) {
      current = join(current, part(first, now, n - now));
    }
    now = n;
    current = recurrent_step(cell, each[at(s)], current, w_hh, in[r_b_hh], in[r_w_hr]);
    kept[at(s)] = current.h;
  }
  for (; !ended.empty(); ended.pop_back()) current = join(current, ended.back());
  Dims out_sizes = x.sizes();
  out_sizes.back() = state;
  outs.resize(3);
  outs[0] = reshape(cat(kept, 0), out_sizes);
  outs[1] = unsqueeze(current.h, 0);
  outs[2] = lstm ? unsqueeze(current.c, 0) : Tensor();
}

namespace {

// --- Stacks of layers ----------------------------------------------------------------------------

struct StackAttrs {
  int64_t cell = 0, layers = 1;
  bool biases = true, bidirectional = false, batch_first = false;
  double dropout = 0;
  int64_t input_size = 0, hidden_size = 0, proj_size = 0;
  std::optional<Dims> batch_sizes;
  static constexpr auto members() {
    return std::tuple(&StackAttrs::cell, &StackAttrs::layers, &StackAttrs::biases,
                      &StackAttrs::bidirectional, &StackAttrs::batch_first, &StackAttrs::dropout,
                      &StackAttrs::input_size, &StackAttrs::hidden_size, &StackAttrs::proj_size,
                      &StackAttrs::batch_sizes);
  }
};

constexpr const char* module_names[] = {"LSTM", "GRU", "RNN", "RNN"};

// As Python shows the size of a tensor.
std::string tuple_text(const Dims& sizes) {
  std::string text = "(";
  for (int d = 0; d < sizes.size(); ++d) text += (d ? ", " : "") + std::to_string(sizes[d]);
  return text + (sizes.size() == 1 ? ",)" : ")");
}
std::string list_text(const Dims& sizes) {
  std::string text = "[";
  for (int d = 0; d < sizes.size(); ++d) text += (d ? ", " : "") + std::to_string(sizes[d]);
  return text + "]";
}

void check_states(const StackAttrs& a, std::span<const Tensor> states, bool single, int64_t batch) {
  const bool lstm = a.cell == 0;
  const int want = single ? 2 : 3;
  const char* kind = single ? "unbatched 2-D" : "batched 3-D";
  bool fits = true;
  for (const Tensor& s : states) fits = fits && s.ndim() == want;
  if (!fits && lstm) {
    fail("For ", kind, " input, hx and cx should also be ", want, "-D but got (", states[0].ndim(),
         "-D, ", states[1].ndim(), "-D) tensors");
  }
  require(fits, "For ", kind, " input, hx should also be ", want, "-D but got ", states[0].ndim(),
          "-D tensor");
  const int64_t count = a.layers * (a.bidirectional ? 2 : 1);
  const int64_t widths[] = {a.proj_size ? a.proj_size : a.hidden_size, a.hidden_size};
  for (size_t k = 0; k < states.size(); ++k) {
    Dims sizes = states[k].sizes();
    if (single) sizes.insert(1, 1);
    const Dims expected{count, batch, widths[k]};
    if (sizes == expected) continue;
    const char* name = !lstm ? "hidden" : k == 0 ? "hidden[0]" : "hidden[1]";
    fail("Expected ", name, " size ", tuple_text(expected), ", got ", list_text(sizes));
  }
}

void stack_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<StackAttrs>();
  const char* name = module_names[a.cell & 3];
  const bool packed = a.batch_sizes.has_value(), lstm = a.cell == 0;
  const int directions = a.bidirectional ? 2 : 1;
  const int per = 2 + (a.biases ? 2 : 0) + (a.proj_size ? 1 : 0);
  const int weights = static_cast<int>(a.layers) * directions * per;
  const int state_count = static_cast<int>(c.in.size()) - 1 - weights;
  require(state_count == 0 || state_count == (lstm ? 2 : 1), name,
          lstm ? ": hx must be a tuple of two tensors (h_0, c_0)" : ": hx must be one tensor");
  Tensor x = c.in[0];
  if (!packed && x.ndim() != 2 && x.ndim() != 3)
    fail_value(name, ": Expected input to be 2D or 3D, got ", x.ndim(), "D instead");
  require(!packed || x.ndim() == 2, "input must have 2 dimensions, got ", x.ndim());
  require(x.size(-1) == a.input_size, "input.size(-1) must be equal to input_size. Expected ",
          a.input_size, ", got ", x.size(-1));
  const bool single = !packed && x.ndim() == 2;
  if (single) x = unsqueeze(x, 1);
  if (a.batch_first && !single && !packed) x = transpose(x, 0, 1);
  require(packed ? !a.batch_sizes->empty() : x.size(0) > 0,
          "Expected sequence length to be larger than 0 in RNN");
  const int64_t batch = packed ? (*a.batch_sizes)[0] : x.size(1);
  const auto given = c.in.subspan(1, static_cast<size_t>(state_count));
  if (state_count) check_states(a, given, single, batch);

  const auto params = c.in.subspan(1 + static_cast<size_t>(state_count));
  const DType outer = params[0].dtype(), inner = is_half(outer) ? DType::Float32 : outer;
  x = to_dtype(x, inner);
  Tensor states[2];
  for (int k = 0; k < state_count; ++k) {
    require(given[static_cast<size_t>(k)].dtype() == outer, name,
            ": states must have the weights' dtype; got ", given[static_cast<size_t>(k)], " and ",
            params[0]);
    states[k] = to_dtype(given[static_cast<size_t>(k)], inner);
    if (single) states[k] = unsqueeze(states[k], 1);
  }
  Tensors finals[2];
  for (int64_t layer = 0; layer < a.layers; ++layer) {
    if (layer > 0 && a.dropout > 0) x = dropout(x, a.dropout, true);
    Tensors sides;
    for (int side = 0; side < directions; ++side) {
      const int64_t k = layer * directions + side;
      Tensor in[r_inputs];
      in[r_input] = x;
      for (int s = 0; s < state_count; ++s) {
        in[r_h0 + s] = a.layers * directions == 1 ? states[s] : narrow(states[s], 0, k, 1);
      }
      const auto own = params.subspan(static_cast<size_t>(k * per), static_cast<size_t>(per));
      in[r_w_ih] = to_dtype(own[0], inner);
      in[r_w_hh] = to_dtype(own[1], inner);
      if (a.biases) in[r_b_ih] = to_dtype(own[2], inner), in[r_b_hh] = to_dtype(own[3], inner);
      if (a.proj_size) in[r_w_hr] = to_dtype(own[static_cast<size_t>(per) - 1], inner);
      Tensors results;
      recurrent_layer(in, RecurrentAttrs{a.cell, side == 1, a.batch_sizes}, results);
      sides.push_back(results[0]);
      finals[0].push_back(results[1]);
      if (lstm) finals[1].push_back(results[2]);
    }
    x = directions == 1 ? sides[0] : cat(sides, -1);
  }
  x = cast(x, outer);
  if (single)
    x = squeeze(x, Dims{1});
  else if (a.batch_first && !packed)
    x = transpose(x, 0, 1);
  // As in PyTorch, the output may be written to; but for LSTM backward must not see that. A result
  // of cat is nobody else's already.
  if (!lstm && directions == 1 && x.requires_grad()) x = clone(x);
  outs.push_back(std::move(x));
  for (int k = 0; k < (lstm ? 2 : 1); ++k) {
    Tensor s = finals[k].size() == 1 ? finals[k][0] : cat(finals[k], 0);
    s = to_dtype(s, outer);
    outs.push_back(single ? squeeze(s, Dims{1}) : std::move(s));
  }
}

constexpr OpDef stack_op = composite({
    .signature =
        "_rnn(Tensor input, Tensor[] tensors, int cell, int layers, bool biases, "
        "bool bidirectional, bool batch_first, float dropout, int input_size, int hidden_size, "
        "int proj_size, int[]? batch_sizes) -> (Tensor, Tensor, Tensor)",
    .doc = R"(Recurrent layers, one on the other: output, last h, and of an LSTM last c.

Args:
    input: (L, N, features), (N, L, features), (L, features), or a packed sequence's data.
    tensors: first states, if any, then each layer's and direction's weights.
    cell: 0 LSTM, 1 GRU, 2 tanh, 3 relu.
    layers: how many.
    biases: whether the weights have biases.
    bidirectional: run backwards too.
    batch_first: whether N comes first.
    dropout: dropped part between layers.
    input_size: features of the input.
    hidden_size: features of the hidden state.
    proj_size: of the projected one, or 0.
    batch_sizes: a packed sequence's.
)",
    .run = stack_run,
    .attrs = &attr_info<StackAttrs>,
    .offer = Offer::function,
});

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
kernels::LstmStep step_of(const Tensor& gates, const Tensor& before) {
  kernels::LstmStep s{};
  s.dtype = gates.dtype(), s.rows = gates.size(0), s.hidden = gates.size(1) / 4;
  s.c = before.data<char>();
  return s;
}
void gates_cpu(const Call& c, Tensors& outs) {
  Tensor in[5];
  for (int i = 0; i < 5; ++i) in[i] = c.in[i] ? contiguous(c.in[i]) : Tensor();
  kernels::LstmStep s = step_of(in[0], in[4]);
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
    .offer = Offer::function,
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
  CellCall(c, "GRUCell", RecurrentCell::gru).run(outs);
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
    .offer = Offer::function,
});
constexpr OpDef gru_cell_op = composite({
    .signature = "_gru_cell(Tensor input, Tensor? hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, "
                 "Tensor? b_hh) -> Tensor",
    .doc = "One step of a GRU. A state that is missing is zeros.",
    .run = gru_cell_run,
    .offer = Offer::function,
});
constexpr OpDef rnn_cell_op = composite({
    .signature = "_rnn_cell(Tensor input, Tensor? hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, "
                 "Tensor? b_hh, bool relu) -> Tensor",
    .doc = "One step of a simple recurrent layer. A state that is missing is zeros.",
    .run = rnn_cell_run,
    .attrs = &attr_info<SimpleAttrs>,
    .offer = Offer::function,
});

constexpr const OpDef* listed[] = {&stack_op,     &gates_op,    &gates_back_op,
                                   &lstm_cell_op, &gru_cell_op, &rnn_cell_op};

}  // namespace

extern const OpList recurrent_module_ops;
const OpList recurrent_module_ops = op_list(listed);

}  // namespace clew
