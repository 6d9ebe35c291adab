// In-place writes: what is allowed, version counting, and how history continues, also through
// views.
// May include: graph.
// Invariant: a write that backward could notice always raises the storage's version.
#pragma once
#include "graph/node.h"
#include "graph/provenance.h"

namespace clew {

// Throws when autograd forbids writing into t now.
void check_inplace(const Tensor& t, const char* op, bool records);
// Whether nothing forbids a write that is not recorded.
inline bool is_freely_written(const Tensor& t) {
  if (t->flags & (flag_inference | flag_conj)) [[unlikely]] {
    if ((t->flags & flag_conj) || !modes.inference) return false;
  }
  return !modes.grad ||
         !(t.requires_grad() || (t->base && Tensor::borrow(t->base).requires_grad()));
}
// Throws when t is an inference tensor, outside inference mode, or the result of conj(), or a view
// of it: PyTorch would write through to the input, which here is other memory.
void check_kind_written(const Tensor& t, std::string_view op);
inline void bump_version(const Tensor& t) {
  if (t->flags & flag_own_version) return;
  ++t->storage->version;
  if (!modes.accumulating) note_write(t->storage);
}
// Whether two elements of t are certainly the same memory (a stride is 0); refuses that.
bool overlaps_itself(const Tensor& t);
void refuse_self_overlap(const Tensor& t, std::string_view op);
// PyTorch's warning of a write that is done nevertheless.
void warn_expanded(std::string_view op);
// check_inplace() and refuse_self_overlap(), for an operation of this name.
void check_written(const Tensor& t, const std::string& op, bool records);
// How a tensor that is written lies to one that is read: `partly` where both are dense and share
// some memory without being the same elements in the same order.
enum class Overlap : uint8_t { none, partly, whole, unknown };
Overlap overlap(const Tensor& written, const Tensor& read);
// Refuses what PyTorch refuses: the result would depend on the order of reading and writing.
[[noreturn]] void fail_overlap(std::string_view op);
inline void refuse_partial_overlap(const Tensor& written, const Tensor& read, std::string_view op) {
  if (written->storage == read->storage && overlap(written, read) == Overlap::partly) [[unlikely]]
    fail_overlap(op);
}
// Writes an op's results into tensors that are there already, unrecorded. False, and nothing is
// done, where they do not fit as they are: dtype, shape, layout, memory shared with an input,
// composites.
bool apply_into(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                std::span<const Tensor> outs);
// A copy of t that stands for its value before an in-place write, with t's place in the graph.
Tensor keep_old(const Tensor& t);
// t was overwritten by the recorded node (node's edge 0 is t's old history).
void rebase_history(const Tensor& t, NodeRef node);
// One write into `self`, of an operation of this name on `in`: refused at once where autograd
// forbids it, its version and history told when the elements are written.
class InplaceWrite {
  const Tensor& self_;
  bool records_;

 public:
  InplaceWrite(const Tensor& self, const char* name, std::span<const Tensor> in)
      : self_(self), records_(modes.grad && any_requires_grad(in)) {
    check_inplace(self, name, records_);
  }
  bool records() const { return records_; }
  void written() const { bump_version(self_); }
  // `args`: what backward may save; for a tensor that is overwritten, its old value if needed.
  void record_as(const OpDef& op, std::span<const Tensor> args, const void* attrs) const {
    if (!records_ || !is_inexact(self_.dtype())) return;
    Tensors outs;
    outs.push_back(self_);
    rebase_history(self_, record(op, args, attrs, outs, false));
  }
};
// dst[...] = src, broadcasting and converting; recorded.
void copy_(const Tensor& dst, const Tensor& src);
// The part of base with these sizes, strides and offset from the storage's beginning, in elements
// of dtype: base's own, or that of complex numbers' parts, or that of what base has the parts of.
Tensor part_of(const Tensor& base, DType dtype, const Dims& sizes, const Dims& strides,
               int64_t offset);
// Makes `view` a view of t: base, version and kind.
void mark_view(const Tensor& view, const Tensor& t, bool multi_output);
void detach_(const Tensor& t);
Tensor detach(const Tensor& t);

}  // namespace clew
