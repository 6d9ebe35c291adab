// Batching rules that many ops share.
// May include: ops.
// Invariant: a rule gives physical results, with the dims of all levels in front.
#include "ops/batch_rules.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "graph/signature.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/indexing.h"
#include "ops/calls/joining.h"
#include "ops/calls/matmul.h"
#include "ops/calls/shape.h"

namespace clew {

namespace {

bool names_a_dim(std::string_view name) {
  for (std::string_view known : {"dim", "dims", "dim0", "dim1", "dim2", "axis0", "axis1", "source",
                                 "destination", "dimension", "start_dim", "end_dim"})
    if (name == known) return true;
  return false;
}

}  // namespace

const std::vector<int>& dim_fields(const OpDef& op) {
  static std::unordered_map<const OpDef*, std::vector<int>> known;
  auto [it, fresh] = known.try_emplace(&op);
  if (!fresh) return it->second;
  const SignatureText text = read_signature(op.signature);
  int attribute = 0;
  for (const SignatureParam& p : text.params) {
    if (p.word == "Tensor" || p.word == "Operand" || p.name == "inplace") continue;
    if (names_a_dim(p.name)) it->second.push_back(attribute);
    ++attribute;
  }
  return it->second;
}

namespace {

void run(const Batch& b, const Tensors& args, const void* attrs, Tensors& outs) {
  apply(b.op, args, attrs, outs);
}

// The inputs with the dims of all levels in front. A number is left unchanged.
Tensors tensors_of(const Batch& b) {
  int given = 0;
  for (const Tensor& t : b.in) given += t.defined();
  Tensors args;
  for (size_t i = 0; i < b.in.size(); ++i) {
    int n = static_cast<int>(i);
    bool number = b.in[i].defined() && b.in[i].is_wrapped_number() && !b.batched(n);
    args.push_back(number ? b.in[i] : given == 1 ? b.value(n) : b.full(n));
  }
  return args;
}

}  // namespace

Dims with_lead(const Batch& b, const Dims& sizes) {
  Dims out = b.lead;
  for (int64_t n : sizes) out.push_back(n);
  return out;
}

void batch_each(const Batch& b, Tensors& outs) {
  for_each_sample(b.in, b.levels, outs,
                  [&](std::span<const Tensor> in, Tensors& o) { apply(b.op, in, b.attrs, o); });
  for (Tensor& t : outs) t = physical(t);
}

void batch_dims(const Batch& b, Tensors& outs) {
  int k = b.k(), n = b.in[0].ndim();
  std::string name(op_name(b.op));
  Tensors args = tensors_of(b);
  bool scalar = n == 0;
  if (scalar) {
    for (Tensor& t : args)
      if (t.defined() && t.ndim() >= k) t = unsqueeze(t, k);
    n = 1;
  }
  AttrsCopy attrs(b.op.attrs, b.attrs);
  bool flat = false;
  auto shift = [&](Dims& dims, bool all) {
    if (all)
      for (int i = 0; i < n; ++i) dims.push_back(k + i);
    else
      for (int64_t& d : dims) d = wrap_dim(d, n, name.c_str()) + k;
  };
  for (int f : dim_fields(b.op)) {
    switch (b.op.attrs->fields[static_cast<size_t>(f)].kind) {
      case FieldKind::Int: {
        auto& d = attrs.field<int64_t>(f);
        d = wrap_dim(d, n, name.c_str()) + k;
        break;
      }
      case FieldKind::OptInt: {
        auto& d = attrs.field<std::optional<int64_t>>(f);
        if (!d) {
          flat = true;
          args[0] = reshape(args[0], with_lead(b, {b.in[0].numel()}));
          d = 0;
        }
        d = wrap_dim(*d, n, name.c_str()) + k;
        break;
      }
      case FieldKind::Ints: {
        auto& d = attrs.field<Dims>(f);
        shift(d, d.empty() && !b.op.no_dims_are_none);
        break;
      }
      case FieldKind::OptInts: {
        auto& d = attrs.field<std::optional<Dims>>(f);
        const bool all = !d || (d->empty() && !b.op.no_dims_are_none);
        if (!d) d = Dims();
        shift(*d, all);
        break;
      }
      default: fail_internal(name, ": an argument that names a dim must hold ints");
    }
  }
  run(b, args, attrs.data(), outs);
  for (Tensor& t : outs) {
    if (scalar && t.ndim() > k) t = squeeze(t, {k});
    if (flat && t.ndim() > k) t = view(t, with_lead(b, Dims(b.in[0].ndim(), 1)));
  }
}

void batch_leading(const Batch& b, Tensors& outs) { run(b, tensors_of(b), b.attrs, outs); }

void batch_sizes(const Batch& b, Tensors& outs) {
  AttrsCopy attrs(b.op.attrs, b.attrs);
  Dims sizes = infer_size(attrs.field<Dims>(0), b.in[0].numel(), op_name(b.op));
  attrs.field<Dims>(0) = with_lead(b, sizes);
  Tensors args;
  args.push_back(b.value(0));
  run(b, args, attrs.data(), outs);
}

void batch_expand(const Batch& b, Tensors& outs) {
  AttrsCopy attrs(b.op.attrs, b.attrs);
  Dims sizes = attrs.field<Dims>(0);
  Tensor x = b.value(0);
  int n = b.in[0].ndim();
  require(sizes.size() >= n, op_name(b.op), ": the number of sizes provided (", sizes.size(),
          ") must be greater or equal to the number of dimensions in the tensor (", n, ")");
  for (int i = n; i < sizes.size(); ++i) x = unsqueeze(x, b.k());
  attrs.field<Dims>(0) = with_lead(b, sizes);
  Tensors args;
  args.push_back(x);
  run(b, args, attrs.data(), outs);
}

void batch_unsqueeze(const Batch& b, Tensors& outs) {
  AttrsCopy attrs(b.op.attrs, b.attrs);
  auto& d = attrs.field<int64_t>(0);
  d = wrap_dim(d, b.in[0].ndim() + 1, "unsqueeze") + b.k();
  Tensors args;
  args.push_back(b.value(0));
  run(b, args, attrs.data(), outs);
}

void batch_permute(const Batch& b, Tensors& outs) {
  AttrsCopy attrs(b.op.attrs, b.attrs);
  int n = b.in[0].ndim();
  const Dims dims = attrs.field<Dims>(0);
  require(dims.size() == n, op_name(b.op), ": the number of dims must be that of the tensor, ", n,
          "; got ", dims);
  Dims moved;
  for (int i = 0; i < b.k(); ++i) moved.push_back(i);
  for (int64_t d : dims) moved.push_back(wrap_dim(d, n, "permute") + b.k());
  attrs.field<Dims>(0) = moved;
  Tensors args;
  args.push_back(b.value(0));
  run(b, args, attrs.data(), outs);
}

void batch_transpose_last(const Batch& b, Tensors& outs) {
  int n = b.in[0].ndim();
  Tensor x = b.value(0);
  require(n <= 2, op_name(b.op), ": expects a tensor with <= 2 dimensions, but self is ", n, "D");
  outs.push_back(n < 2 ? x : transpose(x, -1, -2));
}

void batch_squeeze(const Batch& b, Tensors& outs) {
  AttrsCopy attrs(b.op.attrs, b.attrs);
  auto& dims = attrs.field<std::optional<Dims>>(0);
  int n = b.in[0].ndim();
  Dims chosen;
  if (!dims) {
    for (int i = 0; i < n; ++i) chosen.push_back(b.k() + i);
  } else {
    for (int64_t d : *dims) {
      int at = wrap_dim(d, n, "squeeze");
      if (n > 0) chosen.push_back(at + b.k());
    }
  }
  if (chosen.empty()) {
    outs.push_back(view(b.value(0), b.value(0).sizes()));
    return;
  }
  dims = chosen;
  Tensors args;
  args.push_back(b.value(0));
  run(b, args, attrs.data(), outs);
}

void batch_getitem(const Batch& b, Tensors& outs) {
  const auto& part = b.as<BasicIndex>();
  BasicIndex all;
  for (int64_t n : b.lead) {
    all.start.push_back(0);
    all.step.push_back(1);
    all.length.push_back(n);
  }
  for (int i = 0; i < part.start.size(); ++i) {
    all.start.push_back(part.start[i]);
    all.step.push_back(part.step[i]);
    all.length.push_back(part.length[i]);
  }
  all.added = static_cast<int64_t>(static_cast<uint64_t>(part.added) << b.k());
  outs.push_back(basic_index(b.value(0), all));
}

void batch_matmul(const Batch& b, Tensors& outs) {
  const Tensor& a = b.in[0];
  const Tensor& c = b.in[1];
  require(a.ndim() > 0 && c.ndim() > 0, op_name(b.op),
          ": both inputs must have at least one dim; got ", a, " and ", c);
  bool row = a.ndim() == 1, column = c.ndim() == 1;
  int64_t inner = c.size(column ? 0 : -2);
  require(a.size(-1) == inner, op_name(b.op), ": input.shape[-1] must equal other.shape[-2]; got ",
          a, " and ", c);
  // Vectors of all samples are the rows of one product, and so are the gradients.
  if (row && b.batched(0) && c.ndim() == 2 && !b.batched(1))
    return outs.push_back(matmul(b.value(0), c));
  if (column && b.batched(1) && a.ndim() > 1 && !b.batched(0) && a.dtype() == c.dtype()) {
    const Tensor vectors = b.value(1);
    Dims sizes = vectors.sizes();
    sizes.resize(sizes.size() - 1);
    int64_t rows = 1;
    for (int d = 0; d + 1 < a.ndim(); ++d) {
      rows *= a.size(d);
      sizes.push_back(a.size(d));
    }
    return outs.push_back(view(linear(vectors, reshape(a, {rows, inner}), {}), sizes));
  }
  int ndim = std::max({a.ndim(), c.ndim(), 2});
  auto matrix = [&](int i, bool vector, int dim) {
    Tensor t = b.batched(i) ? b.value(i) : b.in[static_cast<size_t>(i)];
    if (vector) t = unsqueeze(t, dim);
    while (b.batched(i) && t.ndim() - b.k() < ndim) t = unsqueeze(t, b.k());
    return t;
  };
  Tensor x = matrix(0, row, -2);
  Tensor y = matrix(1, column, -1);
  Tensor z = matmul(x, y);
  if (column) z = squeeze(z, {z.ndim() - 1});
  if (row) z = squeeze(z, {z.ndim() - (column ? 1 : 2)});
  outs.push_back(z);
}

void batch_linear(const Batch& b, Tensors& outs) {
  if (!b.batched(1) && !(b.in[2].defined() && b.batched(2)) && b.in[0].ndim() > 0) {
    Tensors args;
    args.push_back(b.value(0));
    args.push_back(b.in[1]);
    args.push_back(b.in[2]);
    return run(b, args, b.attrs, outs);
  }
  Batch product{b.op, b.in.first(2), nullptr, b.levels, b.lead};
  Tensor weight = b.in[1].ndim() < 2 ? b.in[1] : transpose(b.in[1], -1, -2);
  const Tensor pair[2] = {b.in[0], weight};
  product.in = pair;
  batch_matmul(product, outs);
  if (!b.in[2].defined()) return;
  Tensor bias = b.value(2);
  int ndim = std::max(b.in[0].ndim() - 1, 0) + (b.in[1].ndim() > 1 ? 1 : 0);
  while (bias.ndim() - b.k() < ndim) bias = unsqueeze(bias, b.k());
  outs[0] = add(outs[0], bias);
}

void batch_stack(const Batch& b, Tensors& outs) {
  AttrsCopy attrs(b.op.attrs, b.attrs);
  auto& d = attrs.field<int64_t>(0);
  d = wrap_dim(d, b.in[0].ndim() + 1, "stack") + b.k();
  Tensors args;
  for (size_t i = 0; i < b.in.size(); ++i) args.push_back(b.full(static_cast<int>(i)));
  run(b, args, attrs.data(), outs);
}

void batch_index(const Batch& b, Tensors& outs) {
  if (b.batched(1)) return batch_each(b, outs);
  Dims dims = b.as<IndexAttrs>().dims;
  for (int i = 1; i < dims.size(); ++i)
    if (dims[i] != dims[i - 1] + 1) return batch_each(b, outs);
  for (int64_t& d : dims) d += b.k();
  outs.push_back(index_at(b.value(0), b.in[1], dims));
}

void batch_embedding(const Batch& b, Tensors& outs) {
  if (b.batched(0)) return batch_each(b, outs);
  Tensors args;
  args.push_back(b.in[0]);
  args.push_back(b.value(1));
  run(b, args, b.attrs, outs);
}

void batch_where(const Batch& b, Tensors& outs) {
  int ndim = 0;
  for (const Tensor& t : b.in) ndim = std::max(ndim, t.ndim());
  Tensors args;
  for (size_t i = 0; i < b.in.size(); ++i) {
    Tensor v = b.batched(static_cast<int>(i)) ? b.value(static_cast<int>(i)) : b.in[i];
    while (b.batched(static_cast<int>(i)) && v.ndim() - b.k() < ndim) v = unsqueeze(v, b.k());
    args.push_back(v);
  }
  run(b, args, b.attrs, outs);
}

void fold_levels(const Batch& b, uint32_t folded, Tensors& outs) {
  Tensors args;
  for (size_t i = 0; i < b.in.size(); ++i) {
    if (!b.in[i].defined()) {
      args.push_back({});
    } else if ((folded >> i & 1) != 0) {
      Tensor full = b.full(static_cast<int>(i));
      Dims sizes{numel_of(b.lead) * b.in[i].size(0)};
      for (int d = 1; d < b.in[i].ndim(); ++d) sizes.push_back(b.in[i].size(d));
      args.push_back(reshape(full, sizes));
    } else if (b.batched(static_cast<int>(i))) {
      return batch_each(b, outs);
    } else {
      args.push_back(b.in[i]);
    }
  }
  run(b, args, b.attrs, outs);
  int64_t count = numel_of(b.lead);
  for (Tensor& t : outs) {
    Dims sizes = b.lead;
    sizes.push_back(count ? t.size(0) / count : 0);
    for (int d = 1; d < t.ndim(); ++d) sizes.push_back(t.size(d));
    t = view(t, sizes);
  }
}

template <uint32_t folded> void batch_fold(const Batch& b, Tensors& outs) {
  fold_levels(b, folded, outs);
}
template void batch_fold<0b1>(const Batch&, Tensors&);
template void batch_fold<0b11>(const Batch&, Tensors&);
template void batch_fold<0b10011>(const Batch&, Tensors&);

}  // namespace clew
