// The order in which a backward call runs nodes.
// May include: graph/node.h.
// Invariant: pop() gives the node that was made last of those that wait.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "graph/node.h"

namespace clew {

// The nodes that gradients are on their way to; the latest leaves first. Most come later than
// nearly all that wait (a branch is run to its end before the one made before it) and are put in
// their place; for the others there is a heap.
class Waiting {
  using Entry = std::pair<uint64_t, Node*>;  // by sequence
  static constexpr size_t near = 6;
  std::vector<Entry> sorted_, heap_;

  [[gnu::noinline]] void push_below(Node* n) {
    const Entry entry(n->sequence, n);
    size_t at = sorted_.size() - 1;
    const size_t least = at > near ? at - near : 0;
    while (at > least && sorted_[at - 1].first > entry.first) --at;
    if (at > 0 && sorted_[at - 1].first > entry.first) {
      heap_.push_back(entry);
      std::push_heap(heap_.begin(), heap_.end());
      return;
    }
    sorted_.insert(sorted_.begin() + static_cast<std::ptrdiff_t>(at), entry);
  }

 public:
  Waiting() { sorted_.reserve(64); }
  void push(Node* n) {
    if (!sorted_.empty() && sorted_.back().first > n->sequence) return push_below(n);
    sorted_.emplace_back(n->sequence, n);
  }
  // Null when there is none.
  Node* pop() {
    if (!heap_.empty() && (sorted_.empty() || heap_.front().first > sorted_.back().first)) {
      std::pop_heap(heap_.begin(), heap_.end());
      sorted_.push_back(heap_.back());
      heap_.pop_back();
    }
    if (sorted_.empty()) return nullptr;
    Node* n = sorted_.back().second;
    sorted_.pop_back();
    return n;
  }
  template <class F> void for_each(F f) const {
    for (const Entry& e : sorted_) f(e.second);
    for (const Entry& e : heap_) f(e.second);
  }
};

}  // namespace clew
