// What calls gave before, found again by their operation, attributes and operands' types.
// May include: program, graph, tensor.
// Invariant: as known_results.h.
#include "program/known_results.h"

#include <algorithm>

#include "program/batching.h"

namespace clew::program {

namespace {

// What shape rules ask about an operand besides its shape.
uint16_t type_of(const Tensor& t) {
  return static_cast<uint16_t>(static_cast<unsigned>(t->dtype) | (t->flags & kept_flags) << 8);
}

size_t slot_of(uint64_t call, std::span<const Tensor> in) {
  uint64_t h = call;
  for (const Tensor& t : in) {
    const auto address = t.defined() ? reinterpret_cast<uintptr_t>(t->shape) : 0;
    h = (h ^ address) * 0x9E3779B97F4A7C15u;
  }
  return static_cast<size_t>(h >> 56);
}

// Whether the result's shape and dtype follow from the operands' types alone. They do for views and
// for floating operands of operations without value checks. An integer operand may be an index or a
// mask that decides a shape, a number may be checked, and the dtype of results of integers depends
// on a setting.
bool asks_for_types_only(const OpDef& op, std::span<const Tensor> in) {
  if (op.kind == OpKind::View) return true;
  const bool floating = std::ranges::all_of(
      in, [](const Tensor& t) { return !t || is_inexact(t.dtype()) || t.is_wrapped_number(); });
  return floating && (op.kind == OpKind::Elementwise ? !op.check_number : op.batch != nullptr);
}

}  // namespace

const KnownResults::Entry* KnownResults::find(uint64_t call, std::span<const Tensor> in) {
  if (in.size() > most_operands) return nullptr;
  const Entry& e = table_[slot_of(call, in)];
  if (e.call_ != call || e.operands_ != in.size()) return nullptr;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].defined()) {
      if (e.shapes_[i]) return nullptr;
    } else if (e.shapes_[i].get() != in[i]->shape || e.types_[i] != type_of(in[i])) {
      return nullptr;
    }
  }
  return &e;
}

void KnownResults::learn(const OpDef& op, uint64_t call, std::span<const Tensor> in,
                         std::span<const Tensor> results) {
  if (in.size() > most_operands || results.size() > most_results || !asks_for_types_only(op, in))
    return;
  Entry& e = table_[slot_of(call, in)];
  e = {};
  e.call_ = call;
  e.operands_ = static_cast<uint32_t>(in.size());
  e.results_ = static_cast<uint32_t>(results.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].defined()) continue;
    e.shapes_[i] = ShapeRef::borrow(in[i]->shape);
    e.types_[i] = type_of(in[i]);
  }
  for (size_t k = 0; k < results.size(); ++k) {
    const Tensor& t = results[k];
    e.made_[k] = {ShapeRef::borrow(t->shape), t.dtype(), t->storage->nbytes,
                  hash_of_type(t.dtype(), t.sizes())};
  }
}

}  // namespace clew::program
