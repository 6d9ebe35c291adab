// autocast: the table of policies, casting the inputs of one call, and the casts that are kept.
// May include: graph.
// Invariant: a kept cast is used only for the tensor object, bytes and version it was made from.
#include "graph/autocast.h"

#include <algorithm>
#include <unordered_map>

#include "graph/batch.h"
#include "graph/modes.h"
#include "graph/node.h"
#include "graph/trace.h"

namespace clew {

constinit thread_local AutocastSettings autocast;

namespace {

enum class Policy : uint8_t {
  none,      // runs in what it is given; a composite's parts follow their own policies
  as_given,  // a composite whose parts have none
  lower,     // the dtype of the region
  float32,
  widest,  // float32 if any input has it
};
struct Named {
  std::string_view name;
  Policy policy;
};

// PyTorch's lists for the CPU, by clew's names. What is written in Python asks by itself
// (clew.amp._policy).
constexpr Named policies[] = {
    {"_gru_cell", Policy::float32},
    {"_lstm_cell", Policy::float32},
    {"_rnn", Policy::as_given},  // the module casts
    {"_rnn_cell", Policy::lower},
    {"adaptive_avg_pool3d", Policy::float32},
    {"addbmm", Policy::lower},
    {"addmm", Policy::lower},
    {"addr", Policy::as_given},
    {"avg_pool3d", Policy::float32},
    {"baddbmm", Policy::lower},
    {"bilinear", Policy::as_given},
    {"bmm", Policy::lower},
    {"cat", Policy::widest},
    {"conv1d", Policy::lower},
    {"conv2d", Policy::lower},
    {"conv3d", Policy::lower},
    {"conv_transpose1d", Policy::lower},
    {"conv_transpose2d", Policy::lower},
    {"conv_transpose3d", Policy::lower},
    {"index_copy", Policy::widest},
    {"linear", Policy::lower},
    {"matmul", Policy::lower},
    {"mm", Policy::lower},
    {"polar", Policy::float32},
    {"prelu", Policy::lower},
    {"prod", Policy::float32},
    {"scaled_dot_product_attention", Policy::lower},
    {"stack", Policy::widest},
    {"vdot", Policy::as_given},
    {"view_as_complex", Policy::float32},
};

Policy find_policy(const OpDef& op) {
  std::string_view name = op_name(op);
  name.remove_prefix(name.rfind('.') + 1);  // "nn.functional.linear"; nothing where there is no dot
  const Named* found =
      std::lower_bound(std::begin(policies), std::end(policies), name,
                       [](const Named& a, std::string_view b) { return a.name < b; });
  return found != std::end(policies) && found->name == name ? found->policy : Policy::none;
}

Policy policy_of(const OpDef& op) {
  static std::unordered_map<const OpDef*, Policy> known;  // guarded by the GIL, as all of apply()
  auto [at, fresh] = known.try_emplace(&op, Policy::none);
  if (fresh) at->second = find_policy(op);
  return at->second;
}

bool eligible(const Tensor& t) {
  if (!t.defined() || t.is_meta()) return false;
  DType d = t.dtype();
  return d == DType::Float32 || d == DType::BFloat16 || d == DType::Float16;
}

// A parameter's cast, for every use of it in the region: one conversion, and one gradient to bring
// back.
struct Kept {
  Tensor source;
  const Storage* storage;
  int64_t offset;
  uint32_t version;
  Tensor cast;
};
struct Region {
  int depth = 0;
  std::unordered_map<const TensorObj*, Kept> casts;
};
// Never freed: a thread that ends inside a region may not touch counts without the GIL.
Region& region() {
  thread_local Region* r = new Region();
  return *r;
}

bool may_keep(const Tensor& t, DType dtype) {
  return autocast.keeps_casts && dtype == autocast.dtype && t.dtype() == DType::Float32 &&
         t.requires_grad() && !t->grad_fn && !t->base && !is_batched(t);
}
// Whether the cast can stand for its source now: one made without recording has no way back.
bool usable(const Kept& k, const Tensor& t) {
  return k.storage == t->storage && k.offset == t->offset && k.version == t->storage->version &&
         (!modes.grad || k.cast->grad_fn) &&
         (modes.inference || !(k.cast->flags & flag_inference)) && k.cast.dtype() == autocast.dtype;
}

Tensor cast(const Tensor& t, DType dtype) {
  if (!may_keep(t, dtype)) return builtins.to_dtype(t, dtype);
  auto& casts = region().casts;
  auto at = casts.find(t.get());
  if (at != casts.end() && usable(at->second, t)) return at->second.cast;
  Kept kept{t, t->storage, t->offset, t->storage->version, builtins.to_dtype(t, dtype)};
  Tensor result = kept.cast;
  casts.insert_or_assign(t.get(), std::move(kept));
  return result;
}

DType widest(std::span<const Tensor> in) {
  for (const Tensor& t : in)
    if (eligible(t) && t.dtype() == DType::Float32) return DType::Float32;
  return autocast.dtype;
}

}  // namespace

Tensor autocast_to(const Tensor& t, DType dtype) {
  if (!eligible(t) || t.dtype() == dtype) return t;
  AutocastMode off(false);
  return cast(t, dtype);
}

void apply_autocast(const OpDef& op, std::span<const Tensor> in, const void* attrs, Tensors& outs) {
  Policy policy = policy_of(op);
  if (policy == Policy::none && op.kind == OpKind::Composite) {
    // As apply() does, with autocast on for the parts.
    TraceOp trace(op);
    if (levels_of(in))
      apply_batched(op, in, attrs, outs);
    else
      op.composite(Call{op, in, attrs}, outs);
    return trace.results(op, in, attrs, outs);
  }
  AutocastMode off(false);
  if (policy == Policy::none || policy == Policy::as_given) return apply(op, in, attrs, outs);
  DType dtype = policy == Policy::lower     ? autocast.dtype
                : policy == Policy::float32 ? DType::Float32
                                            : widest(in);
  Tensors args;
  for (const Tensor& t : in) args.push_back(eligible(t) && t.dtype() != dtype ? cast(t, dtype) : t);
  apply(op, args, attrs, outs);
}

void enter_autocast_region() { ++region().depth; }
void exit_autocast_region() {
  if (--region().depth == 0) forget_casts();
}
int autocast_depth() { return region().depth; }
void forget_casts() {
  // Taken out first: a tensor's end may run Python code that comes back here.
  auto casts = std::move(region().casts);
  region().casts.clear();
}

}  // namespace clew
