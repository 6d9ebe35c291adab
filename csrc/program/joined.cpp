// Which calls can be joined, and sums of each sample's rows.
// May include: base, tensor, graph, program.
// Invariant: as joined.h.
#include "program/joined.h"

#include "program/batch_run.h"
#include "tensor/bits.h"

namespace clew::program {

namespace {

// Larger ones gain nothing.
constexpr int64_t most_elements = int64_t{1} << 16;

uint64_t hash_of_number(const Tensor& t) {
  const auto bits = bits_of_first(t);
  return mixed(bits[0], bits[1]);
}

struct SumOfRows final : Node {
  std::vector<int64_t> counts;
  ShapeRef rows;
  bool mean = false;

  std::string name() const override { return mean ? "MeanOfRowsBackward" : "SumOfRowsBackward"; }

  // Each row's gradient is that of its sample's sum.
  void run(std::span<const Tensor> grads, Tensor* out) override {
    if (!edges[0].fn) return;
    const auto samples = static_cast<int64_t>(counts.size());
    const Dims& sizes = rows->sizes;
    Dims of_sums{samples}, spread{sizes[0]};
    const bool all = grads[0].numel() == samples;
    int64_t each = 1;
    for (int d = 1; d < sizes.size(); ++d) {
      each *= all ? sizes[d] : 1;
      of_sums.push_back(all ? 1 : sizes[d]);
    }
    Tensor g = builtins.view(grads[0], of_sums);
    std::vector<int64_t> sample;
    for (int64_t i = 0; i < samples; ++i)
      sample.insert(sample.end(), static_cast<size_t>(counts[static_cast<size_t>(i)]), i);
    if (mean) {
      std::vector<double> shares;
      for (const int64_t n : counts) shares.push_back(1.0 / static_cast<double>(n * each));
      Tensor share = float64_tensor(shares);
      for (int d = 1; d < sizes.size(); ++d) share = builtins.unsqueeze(share, d);
      g = builtins.mul(g, builtins.to_dtype(share, g.dtype()));
    }
    g = builtins.take_rows(g, int64_tensor(sample));
    out[0] = all ? builtins.expand(g, sizes) : g;
  }
};

}  // namespace

std::vector<Tensor> operands_of(const Gathered& c, std::span<const Given> givens,
                                std::span<const Value> values) {
  std::vector<Tensor> all;
  for (const Given& g : givens.subspan(c.first_given, c.given)) {
    if (g.value < 0) {
      all.push_back(g.outer);
      continue;
    }
    const Value& v = values[static_cast<size_t>(g.value)];
    all.push_back(empty_strided(v.shape->sizes, v.shape->strides, v.dtype, NewBytes::pending()));
  }
  return all;
}

JoinedKind joined_kind(const Gathered& c, std::span<const Given> givens,
                       std::span<const Value> values) {
  const ModesOf as_gathered(c);  // the hash is of them, too
  const std::vector<Tensor> in = operands_of(c, givens, values);
  AttrsCopy attrs(c.op->attrs, c.attrs);
  const RowWise form = builtins.rows(clew::Call{*c.op, in, c.attrs}, attrs.data(), 0);
  if (form.makes == RowWise::Makes::nothing) return {};
  uint64_t h = hash_of_call(*c.op, attrs.data(), c.given);
  h = mixed(mixed(h, static_cast<uint64_t>(form.makes)), form.inputs);
  h = mixed(h,
            static_cast<uint64_t>(form.index + 1) * 64 + static_cast<uint64_t>(form.counted + 1));
  h = mixed(h, c.values);
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor& t = in[i];
    const Given& g = givens[c.first_given + i];
    const bool rows = i < 32 && (form.inputs >> i & 1) != 0;
    h = mixed(h, uint64_t{t.defined()} * 8 + uint64_t{rows} * 4 + uint64_t{g.value >= 0} * 2 +
                     uint64_t{g.recorded});
    if (!t.defined()) continue;
    if (rows) {
      // None has no rows, so that no two lie at the same place.
      if (t.size(0) == 0 || t.numel() >= most_elements) return {};
      h = mixed(h, hash_of_type(t.dtype(), Dims(t.sizes().data() + 1, t.ndim() - 1)));
      continue;
    }
    h = mixed(h, hash_of_type(t.dtype(), t.sizes()));
    if (t.is_wrapped_number()) h = mixed(h, hash_of_number(t));
    // Which weight it is depends on the call, but that result is another one for each.
    if (g.value >= 0 && !form.broadcasts) return {};
  }
  for (uint32_t k = 0; k < c.values; ++k)
    if (values[c.first_value + k].shape->numel >= most_elements) return {};
  return {h ? h : 1, form.inputs, form.broadcasts};
}

Tensor reduce_rows(const OpDef& op, const void* attrs, const Tensor& rows,
                   std::span<const int64_t> counts, bool mean) {
  Tensors sums;
  {
    const GradMode unrecorded(false);
    int64_t begin = 0;
    for (const int64_t n : counts) {
      const Tensor own = builtins.narrow(rows, begin, n);
      Tensors outs;
      apply(op, {&own, 1}, attrs, outs);
      sums.push_back(outs[0]);
      begin += n;
    }
  }
  Tensor out = [&] {
    const GradMode unrecorded(false);
    return builtins.stack(sums);
  }();
  if (!modes.grad || !rows.requires_grad()) return out;
  auto* node = new SumOfRows();
  const NodeRef guard = NodeRef::steal(node);
  node->counts.assign(counts.begin(), counts.end());
  node->rows = ShapeRef::borrow(rows->shape);
  node->mean = mean;
  node->allocate_edges(1);
  node->set_edge(0, rows);
  node->add_meta(0, out);
  set_grad_fn(out, node, 0);
  return out;
}

}  // namespace clew::program
