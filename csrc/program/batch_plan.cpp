// Which gathered calls run together, and in which order.
// May include: program, graph, tensor.
// Invariant: a group comes after the groups of all results that its members need.
#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/node.h"
#include "program/batching.h"
#include "program/joined.h"

namespace clew::program {

// Not symmetric, so that swapped values of an address and an offset give different hashes.
uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = hash * 0x9e3779b97f4a7c15 + value + 0x632be59bd9b4e019;
  hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93;
  hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93;
  return hash ^ (hash >> 32);
}

namespace {

uint64_t bits_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }
uint64_t bits_of(double v) {
  uint64_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits;
}
uint64_t hash_of(const Dims& d) {
  uint64_t h = static_cast<uint64_t>(d.size()) + 1;
  for (const int64_t n : d) h = mixed(h, static_cast<uint64_t>(n));
  return h;
}
uint64_t hash_of(const Scalar& s) {
  return mixed(mixed(static_cast<uint64_t>(s.kind), s.u), bits_of(s.im));
}

// A number for each attribute; equal attributes give equal numbers.
template <class T> uint64_t told(const T& v) {
  if constexpr (is_optional<T>) {
    return v ? mixed(1, told(*v)) : 0;
  } else if constexpr (std::is_same_v<T, Dims> || std::is_same_v<T, Scalar>) {
    return hash_of(v);
  } else if constexpr (std::is_same_v<T, double> || std::is_pointer_v<T>) {
    return bits_of(v);
  } else if constexpr (std::is_same_v<T, Str>) {
    uint64_t h = 0;
    for (size_t i = 0; i < sizeof v.text / 8; ++i) {
      uint64_t word;
      std::memcpy(&word, v.text + 8 * i, 8);
      h = mixed(h, word);
    }
    return h;
  } else {
    return static_cast<uint64_t>(v);
  }
}

}  // namespace

namespace {

// Whether somebody looks at the gradient of that output.
bool is_watched(const Node& node, uint32_t nr) {
  if (!node.extra) return false;
  const NodeExtra& e = *node.extra;
  if (e.pre_hooks || e.post_hooks) return true;
  for (const auto& hooks : e.tensor_hooks)
    if (hooks.nr == nr) return true;
  for (const auto& [output, tensor] : e.retains_grad)
    if (output == nr) return true;
  return false;
}

}  // namespace

uint64_t history_of(const Tensor& t) {
  if (!t.requires_grad()) return 0;
  const Node* node = t->grad_fn;
  uint32_t nr = t->output_nr;
  if (!node) return bits_of(t.get());
  while (!is_watched(*node, nr)) {
    const auto* view = dynamic_cast<const OpNode*>(node);
    if (!view || view->op->kind != OpKind::View || view->edge_count == 0 || !view->edges[0].fn)
      break;
    nr = view->edges[0].nr;
    node = view->edges[0].fn;
  }
  if (node->is_accumulator)
    return bits_of(static_cast<const AccumulateGrad*>(node)->variable.get());
  return mixed(bits_of(node), nr);
}
uint64_t place_of(const Tensor& t) {
  const uint64_t place =
      mixed(mixed(bits_of(t->storage), static_cast<uint64_t>(t->offset)), hash_of(t.strides()));
  return t.requires_grad() ? mixed(place, history_of(t)) : place;
}

uint64_t hash_of_call(const OpDef& op, const void* attrs, size_t operands) {
  uint64_t h =
      mixed(bits_of(&op), operands * 4 + static_cast<uint64_t>(modes.grad) * 2 + modes.inference);
  if (attrs && op.attrs)
    op.attrs->visit(attrs, [&](int, const auto& field) { h = mixed(h, told(field)); });
  return h;
}
uint64_t hash_of_type(DType dtype, const Dims& sizes) {
  return mixed(static_cast<uint64_t>(dtype), hash_of(sizes));
}

namespace {

// Numbers 0, 1, ... of the different keys that were asked about. Keys are hashes.
class Numbering {
  struct Slot {
    uint64_t key;
    uint32_t number_and_one;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(64, Slot{0, 0});
  uint32_t count_ = 0;

  Slot& slot_of(uint64_t key) {
    size_t i = key & (slots_.size() - 1);
    while (slots_[i].number_and_one && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }

 public:
  uint32_t operator[](uint64_t key) {
    Slot& s = slot_of(key);
    if (s.number_and_one) return s.number_and_one - 1;
    s = {key, ++count_};
    if (2 * count_ > slots_.size()) {
      const auto before = std::exchange(slots_, std::vector<Slot>(4 * slots_.size(), Slot{0, 0}));
      for (const Slot& old : before)
        if (old.number_and_one) slot_of(old.key) = old;
    }
    return count_ - 1;
  }
};

// A tensor that was there, as an operand of calls of one kind: the same for all, one of a few that
// many share (weights), or another one for each.
struct Position {
  const TensorObj* last = nullptr;
  uint64_t last_place = 0;
  std::unordered_set<uint64_t> places;
};
struct Kind {
  uint32_t first;  // call
  uint32_t calls = 0;
  std::vector<Position> positions = {};
  int32_t joined = -1;  // the number of what it has in common with other kinds
};
// Kinds whose rows run together.
struct Joint {
  JoinedKind what;
  uint32_t kinds = 0, calls = 0;
  std::vector<std::unordered_set<uint64_t>> places;  // as Position's, of all kinds
  bool fits = true;

  bool has_rows(size_t i) const { return i < 32 && (what.inputs >> i & 1) != 0; }
};

class Plan {
  std::span<const Gathered> calls_;
  std::span<const Given> givens_;
  std::span<const Value> values_;
  std::vector<uint32_t> kind_;  // of each call
  std::vector<Kind> kinds_;
  std::vector<Joint> joints_;

  std::span<const Given> of(const Gathered& c) const {
    return givens_.subspan(c.first_given, c.given);
  }
  void find_kinds();
  void join_kinds();
  uint64_t signature(uint32_t call) const;

 public:
  Plan(std::span<const Gathered> calls, std::span<const Given> givens,
       std::span<const Value> values)
      : calls_(calls), givens_(givens), values_(values) {}
  std::vector<std::vector<uint32_t>> groups();
};

void Plan::find_kinds() {
  Numbering known;
  kind_.reserve(calls_.size());
  for (const Gathered& c : calls_) {
    const auto own = of(c);
    const uint32_t number = known[c.kind];
    if (number == kinds_.size())
      kinds_.push_back({.first = static_cast<uint32_t>(&c - calls_.data()),
                        .positions = std::vector<Position>(c.given)});
    Kind& k = kinds_[number];
    kind_.push_back(number);
    ++k.calls;
    for (size_t i = 0; i < own.size(); ++i) {
      const Tensor& t = own[i].outer;
      if (!t.defined() || t.is_wrapped_number()) continue;
      Position& p = k.positions[i];
      if (t.get() == p.last) continue;
      p.last = t.get();
      const uint64_t place = place_of(t);
      if (place == std::exchange(p.last_place, place)) continue;
      // Past so many, calls do not share it.
      if (p.places.size() <= k.calls / 4 + 1) p.places.insert(place);
    }
  }
}

// Whether calls have one of a few tensors in common there.
bool is_weight(const Tensor& t, size_t different, uint32_t calls) {
  return (t->flags & flag_requires_grad) || different * 4 <= calls;
}

// joined_kind() of a kind, which is all that it depends on.
const JoinedKind& joined_kind_of(const Gathered& c, std::span<const Given> givens,
                                 std::span<const Value> values) {
  struct Known {
    uint64_t kind = 0;
    JoinedKind joined;
  };
  static auto& table = *new std::array<Known, 4096>();
  Known& k = table[c.kind % table.size()];
  if (k.kind != c.kind) k = {c.kind, joined_kind(c, givens, values)};
  return k.joined;
}

// Finds kinds that differ only in the number of rows.
void Plan::join_kinds() {
  std::unordered_map<const OpDef*, uint32_t> kinds_of;
  for (const Kind& k : kinds_) ++kinds_of[calls_[k.first].op];
  Numbering known;
  for (Kind& k : kinds_) {
    const Gathered& c = calls_[k.first];
    if (kinds_of[c.op] < 2) continue;
    const JoinedKind& what = joined_kind_of(c, givens_, values_);
    if (!what.hash) continue;
    const uint32_t number = known[what.hash];
    if (number == joints_.size()) joints_.push_back({.what = what, .places = {}});
    Joint& joint = joints_[number];
    k.joined = static_cast<int32_t>(number);
    ++joint.kinds;
    joint.calls += k.calls;
    joint.places.resize(k.positions.size());
    for (size_t i = 0; i < k.positions.size(); ++i)
      if (!joint.has_rows(i))
        joint.places[i].insert(k.positions[i].places.begin(), k.positions[i].places.end());
  }
  for (Kind& k : kinds_) {
    if (k.joined < 0) continue;
    Joint& joint = joints_[static_cast<size_t>(k.joined)];
    const auto own = of(calls_[k.first]);
    for (size_t i = 0; i < own.size() && !joint.what.broadcasts; ++i) {
      const Tensor& t = own[i].outer;
      if (t.defined() && !t.is_wrapped_number() && !joint.has_rows(i))
        joint.fits = joint.fits && is_weight(t, joint.places[i].size(), joint.calls);
    }
  }
  for (Kind& k : kinds_)
    if (k.joined >= 0)
      if (const Joint& joint = joints_[static_cast<size_t>(k.joined)];
          joint.kinds < 2 || !joint.fits)
        k.joined = -1;
}

// The kind, and which weights.
uint64_t Plan::signature(uint32_t call) const {
  const Gathered& c = calls_[call];
  const Kind& k = kinds_[kind_[call]];
  const Joint* joint = k.joined < 0 ? nullptr : &joints_[static_cast<size_t>(k.joined)];
  uint64_t h = joint ? joint->what.hash : c.kind;
  const auto own = of(c);
  for (size_t i = 0; i < own.size(); ++i) {
    const Tensor& t = own[i].outer;
    if (!t.defined() || t.is_wrapped_number() || (joint && joint->has_rows(i))) continue;
    const size_t different = joint ? joint->places[i].size() : k.positions[i].places.size();
    if (different > 1 && is_weight(t, different, joint ? joint->calls : k.calls))
      h = mixed(h, place_of(t));
  }
  return h;
}

// A signature's calls that have not run. A call's level is how many calls of its signature, one
// needing the other, come before it.
struct Sort {
  std::vector<uint32_t> ready;
  std::vector<uint32_t> left_at, ready_at;  // by level
  uint32_t lowest = 0;                      // level of a call that is left
  uint64_t depths = 0;                      // sum over those left
  uint32_t left = 0;
  bool is_product = false;

  void add(uint32_t level, uint32_t depth) {
    if (level >= left_at.size()) {
      left_at.resize(level + 1);
      ready_at.resize(level + 1);
    }
    ++left_at[level];
    depths += depth;
    ++left;
  }
  void took(uint32_t level, uint32_t depth) {
    --left_at[level];
    --ready_at[level];
    depths -= depth;
    --left;
  }
  void climb() {
    while (lowest < left_at.size() && left_at[lowest] == 0) ++lowest;
  }
  // Calls of the lowest level need no other call of their signature that is left. Where all of them
  // are ready, waiting gains none (Chen et al., ED-Batch, 2023). Otherwise products, which gain
  // most by larger groups, wait for the others.
  int rank() const { return ready_at[lowest] == left_at[lowest] ? 0 : is_product ? 2 : 1; }
  bool goes_before(const Sort& other) const {
    if (rank() != other.rank()) return rank() < other.rank();
    const uint64_t own = uint64_t{ready_at[lowest]} * other.left_at[other.lowest];
    const uint64_t others = uint64_t{other.ready_at[other.lowest]} * left_at[lowest];
    return own != others ? own > others : depths * other.left < other.depths * left;
  }
};

// Of each call, the level among those of its signature.
std::vector<int16_t> levels_of(std::span<const uint32_t> sort_of, size_t sorts,
                               std::span<const uint32_t> first_need,
                               std::span<const uint32_t> needs) {
  // For each call, the longest chain of calls of each signature up to it. Signatures beyond so many
  // share a count, which makes more levels than there are.
  constexpr size_t most = 64;
  const size_t width = std::min(most, (sorts + 7) / 8 * 8);
  std::vector<int16_t> chains(sort_of.size() * width, 0), levels(sort_of.size());
  for (size_t i = 0; i < sort_of.size(); ++i) {
    int16_t* own = chains.data() + i * width;
    for (uint32_t k = first_need[i]; k < first_need[i + 1]; ++k) {
      const int16_t* before = chains.data() + needs[k] * width;
      for (size_t s = 0; s < width; ++s) own[s] = std::max(own[s], before[s]);
    }
    int16_t& chain = own[sort_of[i] % width];
    levels[i] = chain;
    if (chain < INT16_MAX) ++chain;
  }
  return levels;
}

std::vector<std::vector<uint32_t>> Plan::groups() {
  find_kinds();
  join_kinds();
  const auto n = static_cast<uint32_t>(calls_.size());
  std::vector<uint32_t> sort_of(n), depth(n, 0), open_needs(n, 0), maker(values_.size());
  std::vector<uint32_t> first_need(n + 1, 0), needs, first_user(n + 1, 0);
  needs.reserve(givens_.size());
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t k = 0; k < calls_[i].values; ++k) maker[calls_[i].first_value + k] = i;
  Numbering known;
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; ++i) {
    for (const Given& g : of(calls_[i])) {
      if (g.value < 0) continue;
      const uint32_t m = maker[static_cast<size_t>(g.value)];
      depth[i] = std::max(depth[i], depth[m] + 1);
      needs.push_back(m);
      ++first_user[m + 1];
    }
    first_need[i + 1] = static_cast<uint32_t>(needs.size());
    open_needs[i] = first_need[i + 1] - first_need[i];
    sort_of[i] = known[signature(i)];
    count = std::max(count, sort_of[i] + 1);
  }
  const std::vector<int16_t> level = levels_of(sort_of, count, first_need, needs);
  std::vector<Sort> sorts(count);
  std::vector<uint32_t> open;  // signatures of which calls are ready
  const auto get_ready = [&](uint32_t call) {
    Sort& s = sorts[sort_of[call]];
    if (s.ready.empty()) open.push_back(sort_of[call]);
    s.ready.push_back(call);
    ++s.ready_at[level[call]];
  };
  for (uint32_t i = 0; i < n; ++i) {
    sorts[sort_of[i]].add(level[i], depth[i]);
    sorts[sort_of[i]].is_product = calls_[i].op->is_product;
  }
  for (uint32_t i = 0; i < n; ++i)
    if (open_needs[i] == 0) get_ready(i);
  for (uint32_t i = 0; i < n; ++i) first_user[i + 1] += first_user[i];
  std::vector<uint32_t> users(first_user[n]), filled(first_user.begin(), first_user.end() - 1);
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t k = first_need[i]; k < first_need[i + 1]; ++k) users[filled[needs[k]]++] = i;
  std::vector<std::vector<uint32_t>> groups;
  while (!open.empty()) {
    size_t best = 0;
    for (size_t k = 1; k < open.size(); ++k)
      if (sorts[open[k]].goes_before(sorts[open[best]])) best = k;
    Sort& s = sorts[open[best]];
    open[best] = open.back();
    open.pop_back();
    groups.push_back(std::exchange(s.ready, {}));
    for (const uint32_t call : groups.back()) s.took(level[call], depth[call]);
    s.climb();
    for (const uint32_t call : groups.back())
      for (uint32_t u = first_user[call]; u < first_user[call + 1]; ++u)
        if (--open_needs[users[u]] == 0) get_ready(users[u]);
  }
  return groups;
}

}  // namespace

std::vector<std::vector<uint32_t>> make_groups(std::span<const Gathered> calls,
                                               std::span<const Given> givens,
                                               std::span<const Value> values) {
  return Plan(calls, givens, values).groups();
}

}  // namespace clew::program
