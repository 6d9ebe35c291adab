// One recurrent layer in one direction over a whole sequence, and its gradient.
// May include: ops, kernels/sequence/recurrent.h.
// Invariant: recorded backward is written with other ops; the native one makes no graph.
#include "ops/sequence/recurrent.h"

#include "graph/deferral.h"
#include "graph/node.h"
#include "ops/calls/joining.h"
#include "ops/calls/matmul.h"
#include "ops/calls/product.h"
#include "ops/calls/shape.h"

namespace clew {

namespace {

using kernels::RecurrentCell;

int64_t gate_count(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}

// Sizes of one call, and where each step's rows lie.
struct Layout {
  RecurrentCell cell;
  int64_t steps, batch, rows, features, hidden, state, width;
  bool projected;
  std::vector<int64_t> sizes, first;
  Dims lead;  // of input and output: (steps, batch) or (rows)

  Layout(const Dims& input, const Dims& w_hh, bool has_projection, const RecurrentAttrs& a)
      : cell(a.kind()), projected(has_projection) {
    features = input.back();
    lead = Dims(input.data(), input.size() - 1);
    steps = a.batch_sizes ? a.batch_sizes->size() : input[0];
    batch = a.batch_sizes ? (*a.batch_sizes)[0] : input[1];
    rows = numel_of(lead);
    hidden = w_hh[0] / gate_count(cell);
    state = w_hh[1];
    width = kernels::recurrent_width(cell, hidden);
    int64_t at = 0;
    for (int64_t t = 0; t < steps; ++t) {
      sizes.push_back(a.batch_sizes ? (*a.batch_sizes)[static_cast<int>(t)] : batch);
      first.push_back(at);
      at += sizes.back();
    }
  }
  bool simple() const { return width == hidden; }
  int64_t gate_elements() const { return simple() ? 0 : rows * width; }
  int64_t cell_elements() const { return cell == RecurrentCell::lstm ? rows * hidden : 0; }
  Dims out_sizes() const {
    Dims s = lead;
    s.push_back(state);
    return s;
  }
};

Tensor matrix(const Tensor& flat, int64_t offset, int64_t rows, int64_t columns, int64_t step) {
  return alias(flat, {rows, columns}, {step, 1}, offset);
}

kernels::Recurrence task(const Layout& l, DType dtype, const RecurrentAttrs& a, const Tensor& out,
                         const Tensor& work) {
  kernels::Recurrence r{};
  r.dtype = dtype, r.cell = l.cell, r.reverse = a.reverse;
  r.steps = l.steps, r.batch = l.batch, r.hidden = l.hidden, r.state = l.state;
  r.rows = l.sizes.data(), r.first = l.first.data();
  r.out = out.data<char>();
  r.gates = l.simple() ? r.out : work.data<char>();
  r.cells = work.data<char>() + l.gate_elements() * static_cast<int64_t>(itemsize(dtype));
  r.pieces = kernels::recurrent_pieces(r);
  return r;
}

// Rows of w_hh.
Tensor state_rows(const Layout& l, const Tensor& w_hh, int64_t from, int64_t count) {
  return alias(w_hh, {count, l.state}, w_hh.strides(), from * w_hh.stride(0));
}
// The products with h0 that a single step needs: gates += h0 @ w_hh^T.
void add_state(const Layout& l, const Tensor& gates, const Tensor& h0, const Tensor& w_hh) {
  const bool gru = l.cell == RecurrentCell::gru;
  const int64_t joint = gru ? 2 * l.hidden : l.width, step = gates.stride(0);
  const Tensor apart = gru ? matrix(gates, 3 * l.hidden, l.rows, l.hidden, step) : Tensor();
  if (!h0) {
    if (gru) fill_(apart, Scalar(0));
    return;
  }
  const Tensor h = matrix(h0, 0, l.rows, l.state, l.state);
  product_into(matrix(gates, 0, l.rows, joint, step), h, state_rows(l, w_hh, 0, joint), Scalar(1),
               Scalar(1), true);
  if (gru) product_into(apart, h, state_rows(l, w_hh, joint, l.hidden), Scalar(1), Scalar(0), true);
}
// dh (+)= d_gates @ w_hh.
void add_state_grad(const Layout& l, const Tensor& dh, const Tensor& d, const Tensor& w_hh) {
  const bool gru = l.cell == RecurrentCell::gru;
  const int64_t joint = gru ? 2 * l.hidden : l.width;
  const Tensor to = matrix(dh, 0, l.rows, l.state, l.state);
  product_into(to, matrix(d, 0, l.rows, joint, l.width), state_rows(l, w_hh, 0, joint), Scalar(1),
               Scalar(gru ? 1 : 0));
  if (gru) {
    product_into(to, matrix(d, 3 * l.hidden, l.rows, l.hidden, l.width),
                 state_rows(l, w_hh, joint, l.hidden), Scalar(1), Scalar(1));
  }
}

void layer_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<RecurrentAttrs>();
  const Tensor &x = c.in[r_input], &w_ih = c.in[r_w_ih], &w_hh = c.in[r_w_hh];
  const DType d = x.dtype();
  require((d == DType::Float32 || d == DType::Float64) && a.cell >= 0 && a.cell < 4 &&
              x.ndim() == (a.batch_sizes ? 2 : 3) && w_ih.ndim() == 2 && w_hh.ndim() == 2 &&
              w_ih.size(1) == x.size(-1) && w_ih.size(0) == w_hh.size(0) &&
              w_hh.size(0) % gate_count(a.kind()) == 0 &&
              (a.batch_sizes ? !a.batch_sizes->empty() : x.size(0) > 0),
          "recurrent: input and weights do not fit; got ", x, ", ", w_ih, " and ", w_hh);
  const Layout l(x.sizes(), w_hh.sizes(), c.in[r_w_hr].defined(), a);
  int64_t total = 0;
  for (int64_t t = 0; t < l.steps; ++t) {
    require(l.sizes[t] >= 0 && (t == 0 || l.sizes[t] <= l.sizes[t - 1]),
            "recurrent: batch_sizes must not grow");
    total += l.sizes[t];
  }
  const Dims bias{w_hh.size(0)}, h{1, l.batch, l.state}, cell{1, l.batch, l.hidden};
  auto fits = [&](int i, const Dims& sizes) {
    return !c.in[i] || (c.in[i].sizes() == sizes && c.in[i].dtype() == d);
  };
  require(total == l.rows && fits(r_h0, h) && fits(r_c0, cell) && fits(r_b_ih, bias) &&
              fits(r_b_hh, bias) && w_ih.dtype() == d && w_hh.dtype() == d &&
              (l.projected ? l.cell == RecurrentCell::lstm : l.state == l.hidden) &&
              fits(r_w_hr, {l.state, l.hidden}),
          "recurrent: states, biases or batch_sizes do not fit the input and the weights; got ", x,
          " and ", w_hh);
  out.add(d, l.out_sizes());
  out.add(d, h);
  out.add(d, l.cell == RecurrentCell::lstm ? cell : Dims{0});
  out.add(d, Dims{l.gate_elements() + l.cell_elements()});
}

void layer_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<RecurrentAttrs>();
  const Tensor x = dense(c.in[r_input]), w_ih = c.in[r_w_ih];
  const Layout l(x.sizes(), c.in[r_w_hh].sizes(), c.in[r_w_hr].defined(), a);
  kernels::Recurrence r = task(l, x.dtype(), a, outs[0], outs[3]);
  const Tensor gates = l.simple() ? matrix(outs[0], 0, l.rows, l.hidden, l.hidden)
                                  : matrix(outs[3], 0, l.rows, w_ih.size(0), l.width);
  product_into(gates, matrix(x, 0, l.rows, l.features, l.features), w_ih, Scalar(1), Scalar(0),
               true);
  Tensor kept[r_inputs];
  for (int i = r_h0; i < r_inputs; ++i) kept[i] = i == r_w_ih ? Tensor() : dense(c.in[i]);
  r.h0 = data_or_null(kept[r_h0]), r.c0 = data_or_null(kept[r_c0]),
  r.w_hh = data_or_null(kept[r_w_hh]);
  r.b_ih = data_or_null(kept[r_b_ih]), r.b_hh = data_or_null(kept[r_b_hh]),
  r.w_hr = data_or_null(kept[r_w_hr]);
  if (l.steps == 1)
    add_state(l, matrix(gates, 0, l.rows, l.width, l.width), kept[r_h0], c.in[r_w_hh]);
  const Tensor scratch = empty({kernels::recurrent_scratch(r)}, DType::UInt8);
  r.scratch = scratch.data<char>();
  char *h_n = outs[1].data<char>(), *c_n = outs[2].data<char>();
  kernels::recurrent_forward(r, h_n, c_n);
}

// --- Backward ------------------------------------------------------------------------------------

// Inputs: the gradients of output, h and c; h0, c0, w_hh, w_hr, output, work.
void back_shape(const Call& c, OutSpecs& out) {
  const auto& a = c.as<RecurrentAttrs>();
  const Tensor &w_hh = c.in[5], &y = c.in[7];
  require(a.cell >= 0 && a.cell < 4 && y.ndim() == (a.batch_sizes ? 2 : 3) && w_hh.ndim() == 2 &&
              (y.dtype() == DType::Float32 || y.dtype() == DType::Float64) &&
              (!a.batch_sizes || !a.batch_sizes->empty()),
          "recurrent_backward: operands do not fit; got ", y, " and ", w_hh);
  const Layout l(y.sizes(), w_hh.sizes(), c.in[6].defined(), a);
  const Dims h{1, l.batch, l.state}, cell{1, l.batch, l.hidden};
  auto fits = [&](int i, const Dims& sizes) {
    return !c.in[i] || (c.in[i].sizes() == sizes && c.in[i].dtype() == y.dtype());
  };
  require(fits(0, y.sizes()) && fits(1, h) && fits(2, cell) && fits(3, h) && fits(4, cell) &&
              w_hh.dtype() == y.dtype() && fits(6, {l.state, l.hidden}) &&
              fits(8, {l.gate_elements() + l.cell_elements()}) && y.sizes() == l.out_sizes() &&
              (l.projected || l.state == l.hidden),
          "recurrent_backward: operands do not fit; got ", y, " and ", w_hh);
  const int64_t extra = l.projected ? l.rows * (l.hidden + l.state) : 0;
  out.add(y.dtype(), Dims{l.rows * l.width + extra});
  out.add(y.dtype(), h);
  out.add(y.dtype(), l.cell == RecurrentCell::lstm ? cell : Dims{0});
  out.add(y.dtype(), Dims{l.width});
}

void start_from(const Tensor& to, const Tensor& gradient) {
  if (gradient)
    copy_into(to, gradient);
  else
    fill_(to, Scalar(0));
}

void back_cpu(const Call& c, Tensors& outs) {
  const auto& a = c.as<RecurrentAttrs>();
  Tensor in[9];
  for (int i = 0; i < 9; ++i) in[i] = i == 1 || i == 2 ? c.in[i] : dense(c.in[i]);
  const Layout l(in[7].sizes(), in[5].sizes(), in[6].defined(), a);
  kernels::Recurrence r = task(l, in[7].dtype(), a, in[7], in[8]);
  r.h0 = data_or_null(in[3]), r.c0 = data_or_null(in[4]), r.w_hh = data_or_null(in[5]),
  r.w_hr = data_or_null(in[6]);
  const Tensor scratch = empty({kernels::recurrent_scratch(r)}, DType::UInt8);
  r.scratch = scratch.data<char>();
  start_from(outs[1], in[1]);
  start_from(outs[2], in[2]);
  const auto size = static_cast<int64_t>(itemsize(r.dtype));
  kernels::RecurrentGrads g{};
  g.g_out = data_or_null(in[0]);
  g.dh = outs[1].data<char>(), g.dc = outs[2].data<char>();
  g.d_gates = outs[0].data<char>(), g.d_bias = outs[3].data<char>();
  if (l.projected) {
    g.full = g.d_gates + l.rows * l.width * size;
    g.d_out = g.full + l.rows * l.hidden * size;
  }
  { kernels::recurrent_backward(r, g); }
  if (l.steps == 1 && in[3]) add_state_grad(l, outs[1], outs[0], in[5]);
}

constexpr OpDef back_op = general({
    .signature =
        "_recurrent_backward(Tensor? grad, Tensor? grad_h, Tensor? grad_c, Tensor? hx, Tensor? cx, "
        "Tensor w_hh, Tensor? w_hr, Tensor output, Tensor work, int cell, bool reverse, "
        "int[]? batch_sizes) -> (Tensor gates, Tensor hx, Tensor cx, Tensor bias)",
    .doc = "Gradients of the sums in the gates, of the first states, and of the biases.",
    .shape = back_shape,
    .cpu = back_cpu,
    .no_vjp = no_rule("it runs only where no graph is recorded; otherwise the gradient is written "
                      "with other ops"),
    .attrs = &attr_info<RecurrentAttrs>,
    .offer = Offer::function,
    .is_product = true,
    .flops = "recurrent_backward(output, w_hh, w_hr)",
});

// The state that every row starts from: a matrix of h0's and the output's rows.
Tensor states_before(const Layout& l, bool reverse, const Tensor& h0, const Tensor& out) {
  const Tensor rows = reshape(out, {l.rows, l.state});
  Tensors parts;
  int64_t from = 0, until = 0;  // rows of the output that were not yet taken
  auto flush = [&] {
    if (until > from) parts.push_back(narrow(rows, 0, from, until - from));
    from = until = 0;
  };
  for (int64_t t = 0; t < l.steps; ++t) {
    const int64_t before = reverse ? t + 1 : t - 1;
    const bool starts = before < 0 || before == l.steps;
    const int64_t known = starts ? 0 : std::min(l.sizes[t], l.sizes[before]);
    if (known > 0) {
      if (until != l.first[before]) {
        flush();
        from = l.first[before];
      }
      until = l.first[before] + known;
    }
    if (known < l.sizes[t]) {
      flush();
      parts.push_back(narrow(h0, 0, known, l.sizes[t] - known));
    }
  }
  flush();
  if (parts.size() == 0) return rows;
  return parts.size() == 1 ? parts[0] : cat(parts, 0);
}

void layer_vjp_composed(Vjp& c) {
  // Computes the forward pass again on detached copies of the inputs, so that the graph before them
  // is left out.
  const auto& a = c.as<RecurrentAttrs>();
  Tensor in[r_inputs];
  for (int i = 0; i < r_inputs; ++i) {
    if (c.has_in(i)) {
      const Tensor saved = c.in(i);
      in[i] = view(saved, saved.sizes());
    }
  }
  Tensors outs;
  recurrent_composed(in, a, outs);
  BackwardArgs args;
  for (int k = 0; k < outs.size(); ++k) {
    if (!c.grad(k).defined() || !outs[k].defined() || !outs[k].requires_grad()) continue;
    args.roots.push_back(gradient_edge(outs[k]));
    args.grads.push_back(c.grad(k));
  }
  if (args.roots.empty()) return;
  std::vector<int> wanted;
  for (int i = 0; i < r_inputs; ++i) {
    if (!c.needs(i)) continue;
    wanted.push_back(i);
    args.captures.push_back(gradient_edge(in[i]));
  }
  args.keep_graph = args.create_graph = true;
  args.accumulate = false;
  const std::vector<Tensor> grads = run_backward(args);
  for (size_t k = 0; k < wanted.size(); ++k) c.set(wanted[k], grads[k]);
}

void layer_vjp(Vjp& c) {
  if (c.grad(3).defined()) fail("recurrent: the workspace has no gradient of its own");
  if (modes.grad) return layer_vjp_composed(c);
  const auto& a = c.as<RecurrentAttrs>();
  auto given = [&](int i) { return c.has_in(i) ? c.in(i) : Tensor(); };
  const Tensor x = c.in(r_input), h0 = given(r_h0), w_hh = c.in(r_w_hh), out = c.out(0);
  const Layout l(x.sizes(), w_hh.sizes(), c.has_in(r_w_hr), a);
  const bool lstm = l.cell == RecurrentCell::lstm, gru = l.cell == RecurrentCell::gru;
  Tensors grads;
  {
    const Tensor operands[] = {
        c.grad(0), c.grad(1), lstm ? c.grad(2) : Tensor(), h0, given(r_c0), w_hh, given(r_w_hr),
        out,       c.out(3)};
    apply(back_op, operands, &a, grads);
    settle(grads);  // or waiting calls would keep their operands beside the copies made below
  }
  const int64_t in_width = gate_count(l.cell) * l.hidden;
  const Tensor all = view(narrow(grads[0], 0, 0, l.rows * l.width), {l.rows, l.width});
  const Tensor d_in = gru ? narrow(all, 1, 0, in_width) : all;
  if (c.needs(r_input)) c.set(r_input, reshape(mm(d_in, c.in(r_w_ih)), x.sizes()));
  if (c.needs(r_w_ih)) c.set(r_w_ih, mm(t(d_in), reshape(x, {l.rows, l.features})));
  if (c.needs(r_w_hh)) {
    Tensor d = all, before;
    if (h0 || a.batch_sizes) {
      const Dims first{l.batch, l.state};
      before = states_before(
          l, a.reverse, h0 ? reshape(h0, first) : zero_block(first, x.dtype(), x.device()), out);
    } else {
      // The first step starts from zeros.
      const int64_t later = l.rows - l.batch;
      d = narrow(all, 0, a.reverse ? 0 : l.batch, later);
      before = narrow(reshape(out, {l.rows, l.state}), 0, a.reverse ? l.batch : 0, later);
    }
    if (gru) {
      const Tensor parts[] = {mm(t(narrow(d, 1, 0, 2 * l.hidden)), before),
                              mm(t(narrow(d, 1, 3 * l.hidden, l.hidden)), before)};
      c.set(r_w_hh, cat(parts, 0));
    } else {
      c.set(r_w_hh, mm(t(d), before));
    }
  }
  if (c.needs(r_h0)) c.set(r_h0, grads[1]);
  if (c.needs(r_c0)) c.set(r_c0, grads[2]);
  if (c.needs(r_b_ih)) c.set(r_b_ih, gru ? narrow(grads[3], 0, 0, in_width) : grads[3]);
  if (c.needs(r_b_hh)) {
    const Tensor parts[] = {narrow(grads[3], 0, 0, gru ? 2 * l.hidden : 0),
                            gru ? narrow(grads[3], 0, 3 * l.hidden, l.hidden) : grads[3]};
    c.set(r_b_hh, gru ? cat(parts, 0) : grads[3]);
  }
  if (c.needs(r_w_hr)) {
    const int64_t at = l.rows * l.width;
    const Tensor full = view(narrow(grads[0], 0, at, l.rows * l.hidden), {l.rows, l.hidden});
    const Tensor d_out =
        view(narrow(grads[0], 0, at + l.rows * l.hidden, l.rows * l.state), {l.rows, l.state});
    c.set(r_w_hr, mm(t(d_out), full));
  }
}

constexpr OpDef layer_op = general({
    .signature =
        "_recurrent(Tensor input, Tensor? hx, Tensor? cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, "
        "Tensor? b_hh, Tensor? w_hr, int cell, bool reverse, int[]? batch_sizes) "
        "-> (Tensor output, Tensor hx, Tensor cx, Tensor work)",
    .doc = "One recurrent layer in one direction; also what its gradient needs.",
    .shape = layer_shape,
    .cpu = layer_cpu,
    .saves = {.always = in(r_input) | in(r_h0) | in(r_c0) | in(r_w_ih) | in(r_w_hh) | in(r_b_ih) |
                        in(r_b_hh) | in(r_w_hr) | out(0) | out(3)},
    .vjp = layer_vjp,
    .attrs = &attr_info<RecurrentAttrs>,
    .offer = Offer::function,
    .is_product = true,
    .flops = "recurrent(input, w_ih, w_hh, w_hr)",
    // Every weight is used twice: for its own gradient and for what lies before it.
    .backward_flops = "2 * flops",
});

constexpr const OpDef* recurrent_list[] = {&layer_op, &back_op};

}  // namespace

void recurrent_layer(std::span<const Tensor> in, const RecurrentAttrs& a, Tensors& outs) {
  const DType d = in[r_input].dtype();
  if (d != DType::Float32 && d != DType::Float64) return recurrent_composed(in, a, outs);
  apply(layer_op, in, &a, outs);
  outs.resize(3);
  if (a.kind() != RecurrentCell::lstm) outs[2] = Tensor();
}

extern const OpList recurrent_ops;
const OpList recurrent_ops = op_list(recurrent_list);

}  // namespace clew
