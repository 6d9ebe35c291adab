// Gaps: the cost of values that have no bytes now, joined with that of their neighbours.
// May include: base.
// Invariant: a gap that was joined with another leads to it, and its cost is counted there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/slots.h"

namespace clew::program {

// A base of T: thousands of these come and go with each step.
template <class T> struct InSlots {
  static void* operator new(size_t) { return slots().take(); }
  static void operator delete(void* p) { slots().give(p); }

 private:
  static Slots<T>& slots() {
    static auto& all = *new Slots<T>();
    return all;
  }
};

// Neighbouring values without bytes, which are recomputed together: what one of them needs is
// recomputed first. Nobody asks for values that no storage waits for, until one is given up that
// is computed from them: so long such a gap is not wanted, and the wanted ones that it reads are
// only noted.
struct Gap : InSlots<Gap> {
  uint32_t refs = 1;
  bool wanted;
  Gap* into = nullptr;           // owned: what it was joined with
  double cost;                   // nanoseconds
  std::vector<Gap*> below = {};  // owned: wanted ones that it reads while it is not
  Gap(double its_cost, bool is_wanted) : wanted(is_wanted), cost(its_cost) {}
  Gap(const Gap&) = delete;
  static Gap* root(Gap* g);
  // `upper` reads `lower`.
  static void connect(Gap* upper, Gap* lower);
  static void release(Gap* g);

 private:
  static void join(Gap* a, Gap* b);
};

}  // namespace clew::program
