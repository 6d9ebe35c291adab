// Joining gaps, and following them to what they were joined with.
// May include: base.
// Invariant: a gap is deleted by the last that counts it, in a loop: chains of them may be long.
#include "program/gap.h"

#include <utility>

namespace clew::program {

Gap* Gap::root(Gap* g) {
  while (g->into) {
    if (Gap* next = g->into->into) {  // the way becomes shorter
      ++next->refs;
      release(std::exchange(g->into, next));
    }
    g = g->into;
  }
  return g;
}
void Gap::connect(Gap* upper, Gap* lower) {
  upper = root(upper);
  lower = root(lower);
  if (upper == lower) return;
  if (upper->wanted || !lower->wanted) return join(lower, upper);
  upper->below.push_back(lower);
  ++lower->refs;
}
void Gap::join(Gap* a, Gap* b) {
  std::vector<Gap*> left = std::exchange(a->below, {});
  const auto merge = [&](Gap* other) {
    a->cost += other->cost;
    a->wanted = a->wanted || other->wanted;
    left.insert(left.end(), other->below.begin(), other->below.end());
    other->below.clear();
    other->into = a;
    ++a->refs;
  };
  merge(b);
  if (!a->wanted) {
    a->below = std::move(left);
    return;
  }
  while (!left.empty()) {
    Gap* next = left.back();
    left.pop_back();
    if (Gap* other = root(next); other != a) merge(other);
    release(next);
  }
}
void Gap::release(Gap* g) {
  while (g && --g->refs == 0) {
    Gap* next = g->into;
    for (Gap* lower : g->below) release(lower);
    delete g;
    g = next;
  }
}

}  // namespace clew::program
