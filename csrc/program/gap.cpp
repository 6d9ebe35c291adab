// Joining gaps, and following them to what they were joined with.
// May include: base.
// Invariant: a gap's number is free again once nothing counts it; no chain of gaps is recursed
// over.
#include "program/gap.h"

#include <utility>

namespace clew::program {

// A free entry, or a new one.
template <class T>
static uint32_t take(std::vector<T>& all, uint32_t& free, uint32_t T::*next_free) {
  const uint32_t at = free;
  if (at) {
    free = all[at].*next_free;
    return at;
  }
  all.emplace_back();
  return static_cast<uint32_t>(all.size() - 1);
}

uint32_t Gaps::open() {
  const uint32_t g = take(all_, free_, &Gap::into);
  all_[g] = {.refs = 1};
  ++live_;
  return g;
}
void Gaps::release(uint32_t g) {
  std::vector<uint32_t> dying;  // those that a dying one noted
  while (g) {
    uint32_t next = 0;
    if (--all_[g].refs == 0) {
      next = all_[g].into;
      for (uint32_t at = std::exchange(all_[g].below, 0); at;) {
        dying.push_back(notes_[at].gap);
        leave_note(std::exchange(at, notes_[at].next));
      }
      all_[g].into = std::exchange(free_, g);
      --live_;
    }
    if (!next && !dying.empty()) {
      next = dying.back();
      dying.pop_back();
    }
    g = next;
  }
  if (live_ > 0) return;
  // In order again, so that values that follow one another have gaps that do.
  all_.resize(1);
  notes_.resize(1);
  free_ = free_note_ = 0;
}
void Gaps::leave_note(uint32_t at) { notes_[at].next = std::exchange(free_note_, at); }

uint32_t Gaps::shorter(uint32_t g) {
  while (const uint32_t next = all_[g].into) {
    if (const uint32_t further = all_[next].into) {
      ++all_[further].refs;
      all_[g].into = further;
      release(next);
    }
    g = all_[g].into;
  }
  return g;
}

uint32_t Gaps::join(uint32_t a, uint32_t b) {
  if (!a || !b) return a ? root(a) : root(b);
  a = root(a);
  b = root(b);
  if (a == b) return a;
  Gap& from = all_[b];
  Gap& to = all_[a];
  to.cost += from.cost;
  to.bytes += from.bytes;
  const bool wanted = to.wanted || from.wanted;
  to.wanted = to.wanted && from.wanted;
  if (uint32_t last = from.below) {
    while (notes_[last].next) last = notes_[last].next;
    notes_[last].next = std::exchange(to.below, std::exchange(from.below, 0));
  }
  from.into = a;
  ++to.refs;
  if (wanted) want(a);
  return a;
}
void Gaps::want(uint32_t g) {
  if (std::exchange(all_[g].wanted, true)) return;
  for (uint32_t at = std::exchange(all_[g].below, 0); at;) {
    const uint32_t lower = notes_[at].gap;  // wanted, so this goes no deeper
    leave_note(std::exchange(at, notes_[at].next));
    join(g, lower);
    release(lower);
  }
}

void Gaps::note(uint32_t upper, uint32_t lower) {
  for (uint32_t at = all_[upper].below; at; at = notes_[at].next)
    if (notes_[at].gap == lower) return;
  const uint32_t at = take(notes_, free_note_, &Note::next);
  ++all_[lower].refs;
  notes_[at] = {lower, std::exchange(all_[upper].below, at)};
}

}  // namespace clew::program
