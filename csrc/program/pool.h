// The pool: values with a recipe, and those whose bytes could be given up by what it costs to get a
// byte back.
// May include: base, program/recipe.h.
// Invariant: a value knows its queue and its place there; those that are gone leave holes.
#pragma once
#include <cstdint>
#include <vector>

#include "program/recipe.h"

namespace clew::program {

// One queue for each power of two of nanoseconds a byte; in each the values that came first stand
// in front. A value enters by what its own call took. What else would have to run is found when it
// comes to the front: it goes to the end of a dearer queue then, so that few are looked at more
// than once.
class Pool {
  static constexpr int most = 40;
  static constexpr int unsaved = most;  // behind them: no saved tensor had the value yet
  struct Queue {
    std::vector<Content*> values;  // null: a hole
    size_t front = 0, holes = 0;
  };
  Queue queues_[most + 1];
  uint64_t filled_ = 0;  // which queues may have values
  int64_t bytes_ = 0;
  size_t count_ = 0;
  int64_t low_ = INT64_MIN;
  void (*ran_low_)() = nullptr;
  int queue_ = 0, turn_ = 0;  // that is looked at, and for how many values still

 public:
  void enter(Content* v);
  // It has a recipe and may enter later.
  void know(Content* v);
  void leave(Content* v);
  int64_t bytes() const { return bytes_; }
  size_t size() const { return count_; }
  // Calls it once there are fewer bytes.
  void tell_below(int64_t bytes, void (*ran_low)()) {
    low_ = bytes;
    ran_low_ = ran_low;
  }
  void tell_nobody() { low_ = INT64_MIN; }
  // The value that should go first: small, dear and just used ones stay. Null where none may go.
  Content* first(double (*price)(const Content&));
  // Calls met(content) for every step-th value that has entered.
  template <class F> void each(size_t step, F&& met) const {
    size_t at = 0;
    for (int k = 0; k < most; ++k)
      for (Content* v : queues_[k].values)
        if (v && at++ % step == 0) met(v);
  }
  // Also for those that are only known.
  template <class F> void each_known(F&& met) const {
    each(1, met);
    for (Content* v : queues_[unsaved].values)
      if (v) met(v);
  }

 private:
  Content* best_of_all(double (*price)(const Content&)) const;
  int best_queue();
  void put(Content* v, int queue);
  void take(Content* v);
  Content* front_of(Queue& q);
  static void fetch(const Queue& q);
};

Pool& pool();

}  // namespace clew::program
