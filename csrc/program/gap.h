// Gaps: the cost of values that have no bytes now, joined with that of their neighbours.
// May include: base.
// Invariant: a gap that was joined with another leads to it, and its cost is counted there.
#pragma once
#include <cstdint>
#include <vector>

namespace clew::program {

// Neighbouring values without bytes, which are recomputed together: what one of them needs is
// recomputed first. Nobody asks for values that no storage waits for, until one is given up that
// is computed from them: so long such a gap is not wanted, and the wanted ones that it reads are
// only noted. Gaps are numbers, and what is known of them lies close together: each candidate that
// may be given up asks for those of its neighbours.
class Gaps {
  struct Gap {
    uint32_t refs = 0;   // values, gaps that lead here, and those that note it
    uint32_t into = 0;   // counted: what it was joined with; of a free one: the next free one
    uint32_t below = 0;  // the first of the wanted ones that it reads while it is not, in notes_
    bool wanted = false;
    double cost = 0;  // nanoseconds
    double bytes = 0;
  };
  struct Note {
    uint32_t gap = 0;  // counted
    uint32_t next = 0;
  };
  std::vector<Gap> all_ = std::vector<Gap>(1);  // 0 is none
  std::vector<Note> notes_ = std::vector<Note>(1);
  uint32_t free_ = 0, free_note_ = 0, live_ = 0;

 public:
  // Counted, and not wanted.
  uint32_t open();
  void add(uint32_t g, double cost, double bytes) {
    Gap& to = all_[root(g)];
    to.cost += cost;
    to.bytes += bytes;
  }
  void count(uint32_t g) { ++all_[g].refs; }
  void release(uint32_t g);
  uint32_t root(uint32_t g) { return all_[g].into ? shorter(g) : g; }
  // Of roots.
  bool is_wanted(uint32_t g) const { return all_[g].wanted; }
  double cost(uint32_t g) const { return all_[g].cost; }
  double bytes(uint32_t g) const { return all_[g].bytes; }
  // Calls met(root) for those that g reads.
  template <class F> void each_below(uint32_t g, F&& met) {
    for (uint32_t at = all_[g].below; at; at = notes_[at].next) met(root(notes_[at].gap));
  }
  // The joined root of two, of which one may be none.
  uint32_t join(uint32_t a, uint32_t b);
  // A root is wanted from now on, and joined with the wanted ones that it reads.
  void want(uint32_t g);
  // `upper`, which is not wanted, reads `lower`, which is.
  void note(uint32_t upper, uint32_t lower);

 private:
  uint32_t shorter(uint32_t g);
  void leave_note(uint32_t at);
};

}  // namespace clew::program
