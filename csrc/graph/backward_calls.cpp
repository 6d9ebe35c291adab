// The backward calls that run: their numbers, and what is told of the last few hundred of them.
// May include: base, graph.
// Invariant: what is kept of a call is given up for that of a later one, never while it is read.
#include "graph/backward_calls.h"

#include <array>
#include <utility>

#include "graph/provenance.h"

namespace clew {

namespace {
uint64_t last_backward = 0;
constinit thread_local uint64_t running_backward = 0;

struct BackwardCall {
  uint32_t id = 0;
  uint64_t root = 0;
  Node* node = nullptr;      // borrowed: the node that runs, while the call is running
  Origin* origin = nullptr;  // owned
  Cut* cut = nullptr;        // owned; the cut of its gradients, once requested
};
std::array<BackwardCall, 256> calls;
BackwardCall& call_at(uint32_t id) { return calls[id % calls.size()]; }
BackwardCall& call_here() { return call_at(static_cast<uint32_t>(running_backward)); }
}  // namespace

BackwardNumber::BackwardNumber() : before_(running_backward) { running_backward = ++last_backward; }
// Delegates, so that the number is given back if this fails.
BackwardNumber::BackwardNumber(const BackwardArgs& args) : BackwardNumber() {
  BackwardCall& call = call_here();
  call.id = static_cast<uint32_t>(running_backward);
  if (Cut* before = std::exchange(call.cut, nullptr)) before->decref();
  call.root = args.roots.empty() ? 0 : args.roots[0].fn->sequence;
  if (Origin* before = std::exchange(call.origin, kept(origin_here()))) before->decref();
}
BackwardNumber::~BackwardNumber() { running_backward = before_; }
void enter_backward(uint64_t number) { running_backward = number; }

BackwardTurn::BackwardTurn() : id_(static_cast<uint32_t>(running_backward)) { *node() = nullptr; }
BackwardTurn::~BackwardTurn() {
  if (call_at(id_).id == id_) *node() = nullptr;
}
Node** BackwardTurn::node() const { return &call_at(id_).node; }

uint64_t backward_id() { return running_backward; }
Node* backward_node() {
  const BackwardCall& call = call_here();
  return running_backward && call.id == static_cast<uint32_t>(running_backward) ? call.node
                                                                                : nullptr;
}
uint32_t consuming_id() {
  auto id = static_cast<uint32_t>(running_backward);
  return id ? id : 1;
}
Origin* backward_origin(uint32_t id) {
  const BackwardCall& call = call_at(id);
  return call.id == id ? call.origin : nullptr;
}
std::vector<uint64_t> backward_roots() {
  std::vector<uint64_t> found;
  for (const BackwardCall& call : calls)
    if (call.id) found.push_back(call.root);
  return found;
}
Cut* cut_of_backward() {
  const auto id = static_cast<uint32_t>(running_backward);
  BackwardCall& call = call_here();
  if (call.id != id || !call.origin) return nullptr;
  if (!call.cut) call.cut = new_backward_cut(call.origin);
  return call.cut;
}
uint64_t backward_root(uint32_t id) {
  const BackwardCall& call = call_at(id);
  return call.id == id ? call.root : 0;
}

}  // namespace clew
