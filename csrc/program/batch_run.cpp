// Running gathered calls in groups: operands are gathered into rows, one call runs on all of them.
// May include: program, graph, tensor.
// Invariant: nodes are recorded on the tensors that hold all rows; a single result's history begins
// with the choice of its row.
#include "program/batch_run.h"

#include <algorithm>
#include <numeric>

#include "graph/explain.h"
#include "graph/watch.h"
#include "program/gather_rows.h"
#include "tensor/bits.h"

namespace clew::program {

namespace {

class Level {
  int level_;

 public:
  explicit Level(int64_t size) : level_(enter_vmap(size, Randomness::error)) {}
  ~Level() { exit_vmap(); }
  Level(const Level&) = delete;
  uint32_t bit() const { return uint32_t{1} << level_; }
};

// Where an operand of one sample is this large, a call on many gains nothing over many calls.
constexpr int64_t large_elements = int64_t{1} << 16;

// Whether the operation can run on many samples as one call.
bool has_batched_form(const OpDef& op) {
  return op.kind == OpKind::Elementwise || op.kind == OpKind::View || op.batch;
}

}  // namespace

bool same_place(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return true;
  if (a.is_wrapped_number() && b.is_wrapped_number())
    return a.dtype() == b.dtype() && bits_of_first(a) == bits_of_first(b);
  return a->storage == b->storage && a->offset == b->offset && a.dtype() == b.dtype() &&
         a.sizes() == b.sizes() && a.strides() == b.strides() && history_of(a) == history_of(b);
}

BatchRun::BatchRun(std::span<const Gathered> calls, std::span<const Given> givens,
                   std::span<Value> values)
    : calls_(calls),
      givens_(givens),
      values_(values),
      places_(values.size()),
      failed_(calls.size(), -1),
      apart_(values.size(), false),
      uses_(values.size(), 0) {}

void BatchRun::count_uses() {
  for (const Given& g : givens_)
    if (g.value >= 0) ++uses_[static_cast<size_t>(g.value)];
  // Views are shown of what they are views of.
  for (size_t i = calls_.size(); i-- > 0;) {
    const Gathered& c = calls_[i];
    bool live = false;
    for (uint32_t k = 0; k < c.values; ++k) {
      const bool here = values_[c.first_value + k].is_held() || uses_[c.first_value + k] >= shown;
      if (here && uses_[c.first_value + k] < shown) uses_[c.first_value + k] += shown;
      live = live || here;
    }
    if (!live || c.op->kind != OpKind::View) continue;
    const int32_t base = givens_[c.first_given].value;
    if (base >= 0 && uses_[static_cast<size_t>(base)] < shown)
      uses_[static_cast<size_t>(base)] += shown;
  }
}

std::exception_ptr BatchRun::execute() {
  count_uses();
  for (std::vector<uint32_t>& members : make_groups(calls_, givens_, values_)) {
    if (!failures_.empty())
      std::erase_if(members, [&](uint32_t call) { return fails_with_operand(call); });
    if (!members.empty()) run_group(members);
  }
  deliver();
  return first_failure_;
}

bool BatchRun::fails_with_operand(uint32_t call) {
  const Gathered& c = calls_[call];
  for (uint32_t i = 0; i < c.given; ++i) {
    const int32_t v = given(call, i).value;
    if (v < 0 || places_[static_cast<size_t>(v)].whole >= 0) continue;
    // Only what a failed call should have made has no place by now.
    const auto maker = std::partition_point(calls_.begin(), calls_.end(), [&](const Gathered& m) {
      return m.first_value + m.values <= static_cast<uint32_t>(v);
    });
    failed_[call] = failed_[static_cast<size_t>(maker - calls_.begin())];
    release_operands({&call, 1});
    return true;
  }
  return false;
}

void BatchRun::note(uint32_t call, uint32_t members, const char* why_alone,
                    int64_t weight_bytes) const {
  constexpr size_t most_told = 65536;
  // Measured with small operands: what a group costs more than one call, and what one more member
  // gains, which is a node less in backward. A call on a few rows takes as long as its weights are
  // read, in backward again.
  constexpr double group_ns = 2000, member_ns = 150, bytes_a_ns = 100;
  bool recorded = false;
  for (uint32_t i = 0; i < calls_[call].given; ++i) recorded |= given(call, i).recorded;
  BatchReport& r = batch_report();
  r.lost_ns += group_ns;
  if (recorded && calls_[call].grad) r.saved_ns += members * member_ns;
  r.saved_ns += (members - 1) * static_cast<double>(weight_bytes) / bytes_a_ns;
  if (r.calls.size() < most_told)
    r.calls.push_back({calls_[call].op, kept(calls_[call].origin), members, why_alone});
}

// Of operands that all members share and that are much larger than their own.
int64_t BatchRun::weight_bytes(uint32_t call, std::span<const Tensor> shared) const {
  int64_t own = 0, bytes = 0;
  for (uint32_t i = 0; i < calls_[call].given; ++i)
    if (!shared[i].defined()) own = std::max(own, numel_of(sizes_of(call, i)));
  for (const Tensor& t : shared)
    if (t.defined() && t.numel() > 4 * own)
      bytes += t.numel() * static_cast<int64_t>(itemsize(t.dtype()));
  return bytes;
}

void BatchRun::run_group(std::vector<uint32_t>& members) {
  const Gathered& c = calls_[members[0]];
  bool large = false;
  for (uint32_t i = 0; i < c.given; ++i)
    if (const Given& g = given(members[0], i); g.value >= 0)
      large = large || values_[static_cast<size_t>(g.value)].shape->numel >= large_elements;
  for (uint32_t k = 0; k < c.values; ++k)
    large = large || values_[c.first_value + k].shape->numel >= large_elements;
  const char* why = members.size() == 1        ? "no other call like it could run with it"
                    : !has_batched_form(*c.op) ? "it has no form for many samples"
                    : large                    ? "its tensors are large enough by themselves"
                                               : nullptr;
  if (!why) {
    // Rows that are neighbours in memory need not be gathered.
    for (uint32_t i = 0; i < c.given; ++i) {
      if (given(members[0], i).value < 0) continue;
      const auto place = [&](uint32_t call) {
        return places_[static_cast<size_t>(given(call, i).value)];
      };
      const auto before = [&](uint32_t a, uint32_t b) {
        const Place p = place(a), q = place(b);
        return p.whole != q.whole ? p.whole < q.whole : p.row < q.row;
      };
      if (!std::is_sorted(members.begin(), members.end(), before))
        std::sort(members.begin(), members.end(), before);
      break;
    }
    const auto is_apart = [&](uint32_t call) { return has_operand_apart(call); };
    std::vector<uint32_t> others;
    if (std::any_of(members.begin(), members.end(), is_apart)) others = split(members, is_apart);
    run_joined(members);
    if (!others.empty()) run_joined(others);
    return;
  }
  for (const uint32_t call : members) run_alone(call, why);
}

// Removes the members for which `apart` is true and returns them, unless that is all of them.
template <class Predicate>
std::vector<uint32_t> BatchRun::split(std::vector<uint32_t>& members, Predicate apart) {
  const auto middle = std::stable_partition(members.begin(), members.end(),
                                            [&](uint32_t call) { return !apart(call); });
  std::vector<uint32_t> taken(middle, members.end());
  members.erase(middle, members.end());
  if (members.empty()) std::swap(members, taken);
  return taken;
}

bool BatchRun::has_operand_apart(uint32_t call) const {
  for (uint32_t i = 0; i < calls_[call].given; ++i)
    if (const int32_t v = given(call, i).value; v >= 0 && apart_[static_cast<size_t>(v)])
      return true;
  return false;
}

void BatchRun::run_members(std::vector<uint32_t>& members) {
  if (members.size() == 1) return run_alone(members[0], "no other call like it could run with it");
  std::vector<bool> not_finite;
  const Together how = run_together(members, not_finite);
  if (how == Together::done) return;
  if (how == Together::failed) {
    for (const uint32_t call : members) run_alone(call, "as one call they failed");
    return;
  }
  std::vector<uint32_t> finite, others;
  for (size_t i = 0; i < members.size(); ++i)
    (not_finite[i] ? others : finite).push_back(members[i]);
  run_members(finite);
  run_members(others);
}

// Which samples' rows, of results that have a history, hold infinity or NaN. The results have as
// many rows for each sample as `counts` says, or a multiple.
std::vector<bool> BatchRun::not_finite_of(std::span<const Tensor> outs,
                                          std::span<const int64_t> counts) {
  std::vector<bool> found;
  const GradMode unrecorded(false);
  const InterceptWithout pause(intercept_trace | intercept_watch | intercept_anomaly);
  for (const Tensor& t : outs) {
    if (!t.requires_grad() || t.numel() == 0 || all_finite({&t, 1})) continue;
    found.resize(counts.size(), false);
    const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    int64_t row = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const int64_t rows = t.size(0) / total * counts[i];
      const Tensor own = builtins.narrow(t, row, rows);
      row += rows;
      if (!found[i]) found[i] = !all_finite({&own, 1});
    }
  }
  return found;
}

// One row as a tensor.
Tensor BatchRun::row(Place p) const {
  const Tensor& whole = wholes_[static_cast<size_t>(p.whole)];
  if (p.rows >= 0) return builtins.narrow(whole, p.row, p.rows);
  return p.row < 0 ? whole : builtins.select(whole, 0, p.row);
}

// Joins rows of several tensors.
Tensor BatchRun::gather(std::span<const Place> places) {
  const Place first = places[0];
  if (std::any_of(places.begin(), places.end(), [](const Place& p) { return p.rows >= 0; })) {
    const Tensor rows = gather_joined(places);
    const auto n = static_cast<int64_t>(places.size());
    Dims sizes{n, rows.size(0) / n};
    for (int d = 1; d < rows.ndim(); ++d) sizes.push_back(rows.size(d));
    return builtins.view(rows, sizes);
  }
  bool rising = first.row >= 0;
  for (size_t i = 1; rising && i < places.size(); ++i)
    rising = places[i].whole == first.whole && places[i].row == first.row + static_cast<int32_t>(i);
  if (rising) {
    const Tensor& whole = wholes_[static_cast<size_t>(first.whole)];
    const auto n = static_cast<int64_t>(places.size());
    return n == whole.size(0) ? whole : builtins.narrow(whole, first.row, n);
  }
  RowGatherer all(part_of_, wholes_.size());
  for (const Place& p : places) {
    const auto whole = [&] { return wholes_[static_cast<size_t>(p.whole)]; };
    all.add(p.whole, whole, p.row < 0, std::max(p.row, int32_t{0}), 1);
  }
  return all.join();
}

namespace {

// Whether rows of t lie as `want` does, or so that each view of `want` is one of theirs.
bool lies_as(const Tensor& t, const Shape& want, int lead) {
  const bool dense = is_non_overlapping_and_dense(want.sizes, want.strides);
  int before = -1;
  for (int d = 0; d < want.sizes.size(); ++d) {
    if (want.sizes[d] == 1) continue;
    const int64_t stride = t.stride(d + lead);
    if (dense && stride != want.strides[d]) return false;
    if (before >= 0 && want.strides[before] == want.sizes[d] * want.strides[d] &&
        t.stride(before + lead) != want.sizes[d] * stride)
      return false;
    before = d;
  }
  return true;
}

}  // namespace

// A result, or one for each row, in the memory order that its callers were told: they chose views
// by it. Rows that were gathered lie one after the other.
Tensor BatchRun::as_promised(Tensor t, int32_t value, bool rows) const {
  const Shape& want = *values_[static_cast<size_t>(value)].shape;
  if (want.contiguous && t.is_contiguous()) return t;
  if (t.numel() == 0 || lies_as(t, want, rows ? 1 : 0)) return t;
  const int n = want.sizes.size();
  std::vector<int> order(static_cast<size_t>(n)), now(static_cast<size_t>(n));
  std::iota(now.begin(), now.end(), 0);
  order = now;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return want.strides[a] > want.strides[b]; });
  if (!rows) t = builtins.unsqueeze(t, 0);
  std::vector<std::pair<int, int>> moves;
  for (int k = 0; k < n; ++k) {
    const auto at = std::find(now.begin() + k, now.end(), order[static_cast<size_t>(k)]);
    const int from = static_cast<int>(at - now.begin());
    if (from == k) continue;
    now.erase(at);
    now.insert(now.begin() + k, order[static_cast<size_t>(k)]);
    t = builtins.movedim(t, from + 1, k + 1);
    moves.emplace_back(k + 1, from + 1);
  }
  std::vector<int64_t> all(static_cast<size_t>(t.size(0)));
  std::iota(all.begin(), all.end(), 0);
  t = builtins.take_rows(t, int64_tensor(all));
  for (size_t k = moves.size(); k-- > 0;) t = builtins.movedim(t, moves[k].first, moves[k].second);
  return rows ? t : builtins.select(t, 0, 0);
}

// The operand of all members: `shared` where it is one tensor for all, else with a first dim.
Tensor BatchRun::operand(std::span<const uint32_t> members, uint32_t at, bool& shared) {
  const Given& first = given(members[0], at);
  shared = true;
  if (first.value < 0) {
    if (!first.outer.defined()) return {};
    for (const uint32_t m : members) shared = shared && same_place(given(m, at).outer, first.outer);
    if (shared) return first.outer;
    Tensors all;
    for (const uint32_t m : members) all.push_back(given(m, at).outer);
    return builtins.stack(all);
  }
  std::vector<Place> places;
  places.reserve(members.size());
  for (const uint32_t m : members) {
    const Place p = places_[static_cast<size_t>(given(m, at).value)];
    shared = shared && (places.empty() || (p.whole == places[0].whole && p.row == places[0].row));
    places.push_back(p);
  }
  return as_promised(shared ? row(places[0]) : gather(places), first.value, !shared);
}

// Where the rows of some members are not finite and those of others are, nothing is kept: rows that
// the loss turns out not to need get gradients of zero, and zero times infinity would reach what
// all members share.
BatchRun::Together BatchRun::run_together(std::span<const uint32_t> members,
                                          std::vector<bool>& not_finite) {
  const Gathered& c = calls_[members[0]];
  const ModesOf as_gathered(c);
  Tensors weights;
  try {
    Tensors args, outs, whole;
    std::vector<bool> shared(c.given);
    bool all_shared = true;
    for (const uint32_t m : members)
      if (calls_[m].op != c.op || calls_[m].given != c.given)
        fail_internal("calls of several operations in one group");
    for (uint32_t i = 0; i < c.given; ++i) {
      bool one = true;
      args.push_back(operand(members, i, one));
      shared[i] = one;
      weights.push_back(one ? args[static_cast<int>(i)] : Tensor());
      all_shared = all_shared && one;
    }
    if (all_shared) {
      apply(*c.op, args, c.attrs, whole);
    } else {
      const Level level(static_cast<int64_t>(members.size()));
      Tensors rows;
      for (uint32_t i = 0; i < c.given; ++i) {
        Tensor& t = args[static_cast<int>(i)];
        rows.push_back(shared[i] ? t : make_batched(t, level.bit()));
      }
      apply(*c.op, rows, c.attrs, outs);
      for (const Tensor& t : outs) whole.push_back(physical(t));
    }
    for (uint32_t k = 0; k < c.values; ++k) {
      const Dims& want = values_[c.first_value + k].shape->sizes;
      const Dims& have = whole[static_cast<int>(k)].sizes();
      const int lead = all_shared ? 0 : 1;
      if (have.size() != want.size() + lead ||
          !std::equal(want.begin(), want.end(), have.begin() + lead))
        return Together::failed;
    }
    if (!all_shared) not_finite = not_finite_of(whole, std::vector<int64_t>(members.size(), 1));
    const auto bad = std::count(not_finite.begin(), not_finite.end(), true);
    if (bad > 0 && static_cast<size_t>(bad) < members.size()) return Together::to_split;
    for (const Tensor& t : whole) {
      set_origin(t, c.origin);
      if (t->grad_fn) t->grad_fn->batched = true;
    }
    keep_results(members, whole, all_shared);
    if (bad > 0) set_apart(members);
  } catch (const Error&) {
    return Together::failed;  // one by one, which finds the member that fails
  }
  note(members[0], static_cast<uint32_t>(members.size()), nullptr,
       weight_bytes(members[0], weights));
  release_operands(members);
  return Together::done;
}

void BatchRun::set_apart(std::span<const uint32_t> members) {
  for (const uint32_t m : members)
    for (uint32_t k = 0; k < calls_[m].values; ++k) apart_[calls_[m].first_value + k] = true;
}

void BatchRun::run_alone(uint32_t call, const char* why) {
  const Gathered& c = calls_[call];
  const ModesOf as_gathered(c);
  try {
    Tensors args, outs;
    for (uint32_t i = 0; i < c.given; ++i) {
      const Given& g = given(call, i);
      args.push_back(g.value < 0
                         ? g.outer
                         : as_promised(row(places_[static_cast<size_t>(g.value)]), g.value, false));
    }
    apply(*c.op, args, c.attrs, outs);
    for (const Tensor& t : outs) set_origin(t, c.origin);
    keep_results({&call, 1}, outs, true);
    for (const Tensor& t : outs)
      if (t.requires_grad() && t.numel() < large_elements && t.numel() > 0 && !all_finite({&t, 1}))
        set_apart({&call, 1});
  } catch (const Error&) {
    failed_[call] = static_cast<int32_t>(failures_.size());
    try {
      rethrow_made_at(c.origin);
    } catch (...) {
      failures_.push_back(std::current_exception());
    }
    if (call < first_failed_) {
      first_failed_ = call;
      first_failure_ = failures_.back();
    }
  }
  note(call, 1, why);
  release_operands({&call, 1});
}

void BatchRun::keep_results(std::span<const uint32_t> members, std::span<const Tensor> outs,
                            bool shared) {
  for (size_t k = 0; k < outs.size(); ++k) {
    const auto at = static_cast<int32_t>(wholes_.size());
    uint32_t uses = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      const size_t v = calls_[members[i]].first_value + k;
      places_[v] = {at, shared ? -1 : static_cast<int32_t>(i)};
      uses += uses_[v] > 0;
    }
    wholes_.push_back(uses ? outs[k] : Tensor());
    whole_uses_.push_back(uses);
    whole_shared_.push_back(shared && uses > 1);
  }
}

// Releases tensors whose rows are not needed any more.
void BatchRun::release_operands(std::span<const uint32_t> members) {
  for (const uint32_t m : members) {
    for (uint32_t i = 0; i < calls_[m].given; ++i) {
      const int32_t v = given(m, i).value;
      if (v < 0 || --uses_[static_cast<size_t>(v)] > 0) continue;
      const int32_t whole = places_[static_cast<size_t>(v)].whole;
      if (whole >= 0 && --whole_uses_[static_cast<size_t>(whole)] == 0)
        wholes_[static_cast<size_t>(whole)] = Tensor();
    }
  }
}

}  // namespace clew::program
