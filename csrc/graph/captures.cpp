// The gradients that a backward call is to return, and the nodes that they pass through.
// May include: base, graph.
// Invariant: nothing here recurses over the graph.
#include "graph/captures.h"

#include <algorithm>
#include <unordered_set>

namespace clew {

void Captures::find(const BackwardArgs& args) {
  any = true;
  found.resize(args.captures.size());
  std::vector<Node*> order;
  std::unordered_set<Node*> seen;
  auto visit = [&](Node* n) {
    if (n && seen.insert(n).second) order.push_back(n);
  };
  for (const OwnedEdge& r : args.roots) visit(r.fn.get());
  for (size_t next = 0; next < order.size(); ++next)
    for (uint32_t i = 0; i < order[next]->edge_count; ++i) visit(order[next]->edges[i].fn);
  for (size_t i = 0; i < args.captures.size(); ++i)
    if (Node* n = args.captures[i].fn.get()) at[n].push_back(i);
  // Edges point to earlier nodes (leaves first of all), so this order sees a node's inputs before
  // it.
  std::sort(order.begin(), order.end(), [](Node* a, Node* b) {
    if (a->is_accumulator != b->is_accumulator) return a->is_accumulator;
    return a->sequence < b->sequence;
  });
  for (Node* n : order) {
    bool reaches = false;
    for (uint32_t i = 0; i < n->edge_count && !reaches; ++i) {
      Node* next = n->edges[i].fn;
      reaches = next && (passed[next] || at.count(next));
    }
    passed[n] = reaches;
  }
}

uint64_t Captures::unwanted_inputs(const Node* n) const {
  uint64_t unwanted = 0;
  for (uint32_t i = 0; i < n->edge_count && i < 64; ++i) {
    Node* next = n->edges[i].fn;
    if (!next || at.count(next)) continue;
    const auto it = passed.find(next);
    if (it == passed.end() || !it->second) unwanted |= uint64_t{1} << i;
  }
  return unwanted;
}

}  // namespace clew
