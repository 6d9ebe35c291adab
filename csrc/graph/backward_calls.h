// The backward calls that run: their numbers, and what is told of the last few hundred of them.
// May include: base, graph/node.h.
// Invariant: a thread's number is that of its innermost call, 0 outside of one.
#pragma once
#include "graph/node.h"

namespace clew {

// Gives a backward call a number, which is this thread's while it lives. Remembers where it began
// and the line that called it.
class BackwardNumber {
  uint64_t before_;
  BackwardNumber();

 public:
  explicit BackwardNumber(const BackwardArgs& args);
  ~BackwardNumber();
  BackwardNumber(const BackwardNumber&) = delete;
};
// In a thread that goes on with another one's work: the number of the call around it.
void enter_backward(uint64_t number);

// Where this thread's call tells other code which of its nodes runs: nothing at first, and nothing
// any more when this ends.
class BackwardTurn {
  uint32_t id_;

 public:
  BackwardTurn();
  ~BackwardTurn();
  BackwardTurn(const BackwardTurn&) = delete;
  Node** node() const;
};

}  // namespace clew
