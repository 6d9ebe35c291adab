// Stacks of recurrent layers, as the modules call them; and layers written with other ops.
// May include: ops, kernels/sequence/recurrent.h.
// Invariant: arguments are checked here, in the words of the modules that users know.
#include "ops/calls/activation.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/joining.h"
#include "ops/calls/matmul.h"
#include "ops/calls/random.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "ops/sequence/recurrent.h"

namespace clew {

namespace {

using kernels::RecurrentCell;

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
  // A packed batch shrinks from step to step (in the reverse direction it grows). States of
  // sequences that end are put aside; sequences that begin use their first states.
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

std::string list_text(const Dims& sizes) {
  std::string text = "[";
  for (int d = 0; d < sizes.size(); ++d) text += (d ? ", " : "") + std::to_string(sizes[d]);
  return text + "]";
}

void check_states(const char* module, const StackAttrs& a, std::span<const Tensor> states,
                  bool single, int64_t batch) {
  const bool lstm = a.cell == 0;
  const int want = single ? 2 : 3;
  const char* kind = single ? "unbatched 2-D" : "batched 3-D";
  bool fits = true;
  for (const Tensor& s : states) fits = fits && s.ndim() == want;
  if (!fits && lstm) {
    fail(module, ": For ", kind, " input, hx and cx should also be ", want, "-D but got (",
         states[0].ndim(), "-D, ", states[1].ndim(), "-D) tensors");
  }
  require(fits, module, ": For ", kind, " input, hx should also be ", want, "-D but got ",
          states[0].ndim(), "-D tensor");
  const int64_t count = a.layers * (a.bidirectional ? 2 : 1);
  const int64_t widths[] = {a.proj_size ? a.proj_size : a.hidden_size, a.hidden_size};
  for (size_t k = 0; k < states.size(); ++k) {
    Dims sizes = states[k].sizes();
    if (single) sizes.insert(1, 1);
    const Dims expected{count, batch, widths[k]};
    if (sizes == expected) continue;
    const char* name = !lstm ? "hidden" : k == 0 ? "hidden[0]" : "hidden[1]";
    fail(module, ": Expected ", name, " size ", tuple_text(expected), ", got ", list_text(sizes));
  }
}

void stack_run(const Call& c, Tensors& outs) {
  const auto& a = c.as<StackAttrs>();
  const char* name = module_names[a.cell & 3];
  require(a.cell >= 0 && a.cell < 4 && a.layers > 0 && a.layers < static_cast<int64_t>(c.in.size()),
          name, ": cell must be 0 to 3, and each layer needs weights; got cell ", a.cell, ", ",
          a.layers, " layers and ", c.in.size() - 1, " tensors");
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
  require(!packed || x.ndim() == 2, name, ": input must have 2 dimensions, got ", x.ndim());
  require(x.size(-1) == a.input_size, name,
          ": input.size(-1) must be equal to input_size. Expected ", a.input_size, ", got ",
          x.size(-1));
  const bool single = !packed && x.ndim() == 2;
  if (single) x = unsqueeze(x, 1);
  if (a.batch_first && !single && !packed) x = transpose(x, 0, 1);
  require(packed ? !a.batch_sizes->empty() : x.size(0) > 0, name,
          ": Expected sequence length to be larger than 0 in RNN");
  const int64_t batch = packed ? (*a.batch_sizes)[0] : x.size(1);
  const auto given = c.in.subspan(1, static_cast<size_t>(state_count));
  if (state_count) check_states(name, a, given, single, batch);

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
  x = to_dtype(x, outer);
  if (single)
    x = squeeze(x, Dims{1});
  else if (a.batch_first && !packed)
    x = transpose(x, 0, 1);
  // As in PyTorch, the output may be written to in place; except for LSTM, backward must not see
  // the write, so the output is copied. A result of cat is not shared and needs no copy.
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
    .autocast = Autocast::as_given,
    .offer = Offer::function,
});

constexpr const OpDef* recurrent_module_list[] = {&stack_op};

}  // namespace

extern const OpList recurrent_module_ops;
const OpList recurrent_module_ops = op_list(recurrent_module_list);

}  // namespace clew
