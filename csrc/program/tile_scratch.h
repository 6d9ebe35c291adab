// What one thread works with when it carries out a group's steps on tiles.
// May include: program, kernels.
// Invariant: what it points to is valid until the thread's next use of the same scratch.
#pragma once
#include <vector>

#include "kernels/reduce/reduce.h"
#include "program/group.h"

namespace clew::program {

// Of a step: where its operands lie for the chunk that is next, and how far apart their elements.
struct Group::Operands {
  char* data[most_operands];
  int64_t inner[most_operands];
  int64_t down[most_operands];  // from row to row; -1 where it differs
};

struct Group::Scratch {
  char* full = nullptr;
  char* by_row = nullptr;
  char* brief = nullptr;
  std::vector<Operands> operands;  // of each step of a segment that goes by chunks
  struct Ahead {
    const char* from;
    int64_t bytes;
  };
  std::vector<Ahead> ahead;  // what the next chunk uses of memory
  std::vector<kernels::ColumnSums> sums;
  std::vector<kernels::TotalSum> totals;
  void take(const Group& g);
};

}  // namespace clew::program
