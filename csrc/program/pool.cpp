// Queues of values that could be given up, and which of them goes first.
// May include: base, program.
// Invariant: looking for the first one ends: values only move to dearer queues meanwhile.
#include "program/pool.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace clew::program {

namespace {

constexpr int queues_below_one = 16;     // powers of two below a nanosecond a byte
constexpr int together = 16;             // values of one queue that are looked at before another
constexpr int dearer_if_held = 4;        // queues
constexpr double look_at_all_ns = 1000;  // a value; eight times what it takes

// Without a recipe it lies in a file soon, at about the cost of two nanoseconds a byte.
double own_cost(const Content& v) {
  return static_cast<double>(v.recipe ? v.recipe->cost : 2 * static_cast<int64_t>(v.nbytes));
}
int queue_for(double price, size_t nbytes) {
  // A call costs a little more than its kernel.
  const double each = (std::max(price, 0.0) + 100) / static_cast<double>(nbytes);
  const int power = static_cast<int>(std::bit_cast<uint64_t>(each) >> 52) - 1023;
  return std::max(power + queues_below_one, 0);
}

}  // namespace

Pool& pool() {
  static auto& all = *new Pool();
  return all;
}

void Pool::put(Content* v, int queue) {
  Queue& q = queues_[queue];
  v->pool_at = static_cast<uint32_t>(q.values.size());
  v->pool_queue = static_cast<uint8_t>(queue);
  q.values.push_back(v);
  if (queue != unsaved) filled_ |= uint64_t{1} << queue;
}
void Pool::take(Content* v) {
  Queue& q = queues_[v->pool_queue];
  const uint32_t at = std::exchange(v->pool_at, UINT32_MAX);
  if (at + 1 == q.values.size()) return q.values.pop_back();
  q.values[at] = nullptr;
  if (++q.holes < 64 || q.holes * 2 < q.values.size()) return;
  std::erase(q.values, nullptr);
  for (size_t i = 0; i < q.values.size(); ++i) q.values[i]->pool_at = static_cast<uint32_t>(i);
  q.front = q.holes = 0;
}

void Pool::enter(Content* v) {
  if (v->pool_at != UINT32_MAX) {
    if (v->pool_queue != unsaved) return;
    take(v);
  }
  put(v, std::min(queue_for(own_cost(*v), v->nbytes), most - 1));
  bytes_ += static_cast<int64_t>(v->nbytes);
  ++count_;
}
void Pool::know(Content* v) {
  if (v->pool_at == UINT32_MAX) put(v, unsaved);
}
void Pool::leave(Content* v) {
  if (v->pool_at == UINT32_MAX) return;
  take(v);
  if (v->pool_queue == unsaved) return;
  bytes_ -= static_cast<int64_t>(v->nbytes);
  --count_;
  if (bytes_ >= low_) return;
  tell_nobody();
  ran_low_();
}

Content* Pool::front_of(Queue& q) {
  while (q.front < q.values.size() && !q.values[q.front]) ++q.front;
  if (q.front < q.values.size()) return q.values[q.front];
  q.values.clear();
  q.front = q.holes = 0;
  return nullptr;
}
// What is asked of the next values is scattered in memory and was last used long ago, so it is
// prefetched for all of them, in the order in which cost_of() comes to it.
void Pool::fetch(const Queue& q) {
  const size_t end = std::min(q.front + together, q.values.size());
  const auto each = [&](auto&& met) {
    for (size_t i = q.front; i < end; ++i)
      if (const Content* v = q.values[i]) met(*v);
  };
  each([](const Content& v) { prefetch(v); });
  each([](const Content& v) {
    if (v.storage) __builtin_prefetch(v.storage);
    if (v.recipe) prefetch(*v.recipe, 3);
    for (const auto& [user, place] : v.users) prefetch(*user, 1);
  });
  each([](const Content& v) {
    if (v.recipe)
      for (const Recipe::Input& in : v.recipe->inputs)
        if (in.value) prefetch(*in.value, 1);
    for (const auto& [user, place] : v.users)
      for (const Recipe::Output& out : user->outputs)
        if (out.value) prefetch(*out.value, 1);
  });
}

// The queue whose front is cheap for its age; -1 where all are empty.
int Pool::best_queue() {
  const int64_t now = spent();
  int best = -1;
  double least = std::numeric_limits<double>::infinity();
  for (uint64_t left = filled_; left; left &= left - 1) {
    const int k = std::countr_zero(left);
    const Content* v = front_of(queues_[k]);
    if (!v) {
      filled_ &= ~(uint64_t{1} << k);
      continue;
    }
    const double age = static_cast<double>(now - v->used_at) + 1000;
    const double score = static_cast<double>(uint64_t{1} << k) / age;
    if (score >= least) continue;
    least = score;
    best = k;
  }
  return best;
}

// Where making a value again takes longer than looking at all.
Content* Pool::best_of_all(double (*price)(const Content&)) const {
  const int64_t now = spent();
  Content* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  each(1, [&](Content* v) {
    if (!may_be_given_up(*v)) return;
    const double age = static_cast<double>(now - v->used_at) + 1000;
    const double score = (price(*v) + 100) / (static_cast<double>(v->nbytes) * age);
    if (score >= least) return;
    least = score;
    best = v;
  });
  return best;
}

Content* Pool::first(double (*price)(const Content&)) {
  // One that is held moves up until it is in the last queue.
  const size_t most_held = (most / dearer_if_held + 1) * count_;
  for (size_t held = 0; held <= most_held;) {
    if (turn_ == 0) {
      queue_ = best_queue();
      if (queue_ < 0) return nullptr;
      turn_ = together;
      fetch(queues_[queue_]);
    }
    --turn_;
    const int k = queue_;
    Queue& q = queues_[k];
    Content* best = front_of(q);
    if (!best) {
      turn_ = 0;
      continue;
    }
    int right = k + dearer_if_held;
    if (may_be_given_up(*best)) {
      if (own_cost(*best) > look_at_all_ns * static_cast<double>(count_)) return best_of_all(price);
      right = queue_for(price(*best), best->nbytes);
      if (right <= k + 1 || k == most - 1) return best;
    } else {
      ++held;
    }
    take(best);
    put(best, std::min(right, most - 1));
  }
  // Those that are held are so old that the others' queues did not come to the turn.
  return best_of_all(price);
}

}  // namespace clew::program
