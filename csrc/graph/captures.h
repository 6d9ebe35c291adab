// The gradients that a backward call is to return, and the nodes that they pass through.
// May include: base, graph/node.h.
// Invariant: all of it is found before the first node runs; only `found` changes after that.
#pragma once
#include <unordered_map>
#include <vector>

#include "graph/node.h"

namespace clew {

struct Captures {
  bool any = false;
  std::vector<Tensor> found;
  std::unordered_map<Node*, std::vector<size_t>> at;  // which of them are of a node
  std::unordered_map<Node*, bool> passed;             // whether one of them passes through a node

  // Most calls capture nothing, which costs no call.
  void begin(const BackwardArgs& args) {
    if (!args.captures.empty()) find(args);
  }
  void find(const BackwardArgs& args);
  bool lets_run(Node* n) { return !any || passed[n]; }
  // The first inputs of n whose gradients reach nothing that is captured.
  uint64_t unwanted_inputs(const Node* n) const;
  void take(const BackwardArgs& args, Node* n, std::span<const Tensor> grads) {
    if (const auto it = at.find(n); it != at.end())
      for (size_t i : it->second) found[i] = grads[args.captures[i].nr];
  }
};

}  // namespace clew
