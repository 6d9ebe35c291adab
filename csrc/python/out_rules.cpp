// The rules are PyTorch's: elementwise operations convert, most others do not.
// May include: graph.
// Invariant: what an operation allows stands in its OpDef.
#include "python/out_rules.h"

#include "graph/inplace.h"

namespace clew::python {

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
