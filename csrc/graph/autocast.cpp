// autocast: casting the inputs of one call as its op asks, and the casts that are kept.
// May include: graph.
// Invariant: a kept cast is used only for the tensor object, bytes and version it was made from.
#include "graph/autocast.h"

#include <unordered_map>

#include "graph/batch.h"
#include "graph/modes.h"
#include "graph/node.h"
#include "graph/trace.h"

namespace clew {

constinit thread_local AutocastSettings autocast;

namespace {

bool eligible(const Tensor& t) {
  if (!t.defined() || t.is_meta()) return false;
  DType d = t.dtype();
  return d == DType::Float32 || d == DType::BFloat16 || d == DType::Float16;
}

// A parameter's cast, for every use of it in the region: one conversion, and one gradient to bring
// back.
struct KeptCast {
  Tensor source;
  const Storage* storage;
  int64_t offset;
  uint32_t version;
  Tensor cast;
};
struct Region {
  int depth = 0;
  std::unordered_map<const TensorObj*, KeptCast> casts;
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
bool usable(const KeptCast& k, const Tensor& t) {
  return k.storage == t->storage && k.offset == t->offset && k.version == t->storage->version &&
         (!modes.grad || k.cast->grad_fn) &&
         (modes.inference || !(k.cast->flags & flag_inference)) && k.cast.dtype() == autocast.dtype;
}

Tensor cast(const Tensor& t, DType dtype) {
  if (!may_keep(t, dtype)) return builtins.to_dtype(t, dtype);
  auto& casts = region().casts;
  auto at = casts.find(t.get());
  if (at != casts.end() && usable(at->second, t)) return at->second.cast;
  KeptCast kept{t, t->storage, t->offset, t->storage->version, builtins.to_dtype(t, dtype)};
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
  const Autocast policy = op.autocast;
  if (policy == Autocast::none && op.kind == OpKind::Composite) {
    // As apply() does, with autocast on for the parts.
    TraceOp trace(op);
    if (levels_of(in))
      apply_batched(op, in, attrs, outs);
    else
      op.run(Call{op, in, attrs}, outs);
    return trace.results(op, in, attrs, outs);
  }
  AutocastMode off(false);
  if (policy == Autocast::none || policy == Autocast::as_given) return apply(op, in, attrs, outs);
  DType dtype = policy == Autocast::lower     ? autocast.dtype
                : policy == Autocast::float32 ? DType::Float32
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
