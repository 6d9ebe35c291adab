// The rules are PyTorch's: elementwise operations convert, most others do not.
// May include: graph.
// Invariant: what an operation allows stands in its OpDef.
#include "python/out_rules.h"

#include "graph/inplace.h"

namespace clew::python {

void check_out_written(const Tensor& out, std::string_view op) {
  if (is_freely_written(out)) return;
  check_kind_written(out, op);
  if (!modes.grad) return;
  const bool itself = out.requires_grad();
  fail(op, "(): functions with out=... arguments don't support automatic differentiation, but out ",
       itself ? "requires grad" : "is a view of a tensor that requires grad",
       "; call it without out=, or inside no_grad()");
}

void check_out_memory(const OpDef& op, std::span<const Tensor> in, const Tensor& out) {
  if (op.out_memory == OutMemory::anywhere) return;
  for (const Tensor& t : in) {
    if (!t.defined() || t->storage != out->storage) continue;
    const Overlap how = overlap(out, t);
    if (how == Overlap::partly || (how == Overlap::whole && op.out_memory == OutMemory::apart))
      fail_overlap(op_name(op));
  }
}

}  // namespace clew::python
