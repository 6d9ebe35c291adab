// Running gathered calls on the rows of samples of different lengths.
// May include: program, graph, tensor.
// Invariant: as batch_run.h; a call finds in the joined rows those of its own operands, in order.
#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "program/batch_run.h"
#include "program/gather_rows.h"
#include "program/joined.h"

namespace clew::program {

namespace {

std::vector<int64_t> numbers_repeated(std::span<const int64_t> counts,
                                      std::span<const int64_t> numbers) {
  std::vector<int64_t> all;
  for (size_t i = 0; i < counts.size(); ++i)
    all.insert(all.end(), static_cast<size_t>(counts[i]), numbers[i]);
  return all;
}

// Numbers that count each sample's rows as such that count the rows of all; none where one of them
// lies outside of its sample. `given`: how many each sample has; `rows`: its rows.
std::optional<Tensor> among_all(const Tensor& index, std::span<const int64_t> given,
                                std::span<const int64_t> rows) {
  std::vector<int64_t> all = int64_values(index);
  int64_t start = 0;
  size_t at = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    for (const size_t end = at + static_cast<size_t>(given[i]); at < end; ++at) {
      if (all[at] < 0 || all[at] >= rows[i]) return std::nullopt;
      all[at] += start;
    }
    start += rows[i];
  }
  return int64_tensor(all);
}

// Rows of all samples, [m, n, ...], as those of one tensor.
Tensor as_rows(Tensor t) {
  Dims sizes{t.size(0) * t.size(1)};
  for (int d = 2; d < t.ndim(); ++d) sizes.push_back(t.size(d));
  if (!t.is_contiguous()) {
    std::vector<int64_t> all(static_cast<size_t>(t.size(0)));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    t = builtins.take_rows(t, int64_tensor(all));
  }
  return builtins.view(t, sizes);
}

}  // namespace

bool BatchRun::is_joined(std::span<const uint32_t> members) const {
  const uint64_t kind = calls_[members[0]].kind;
  return std::any_of(members.begin(), members.end(),
                     [&](uint32_t call) { return calls_[call].kind != kind; });
}

// Each kind by itself.
void BatchRun::run_kinds(std::vector<uint32_t>& members) {
  std::unordered_map<uint64_t, size_t> known;
  std::vector<std::vector<uint32_t>> kinds;
  for (const uint32_t m : members) {
    const auto [at, fresh] = known.try_emplace(calls_[m].kind, kinds.size());
    if (fresh) kinds.emplace_back();
    kinds[at->second].push_back(m);
  }
  for (std::vector<uint32_t>& own : kinds) run_members(own);
}

void BatchRun::run_joined(std::vector<uint32_t>& members) {
  if (!is_joined(members)) return run_members(members);
  std::vector<bool> not_finite;
  const Together how = run_rows(members, not_finite);
  if (how == Together::done) return;
  if (how == Together::failed) return run_kinds(members);
  std::vector<uint32_t> finite, others;
  for (size_t i = 0; i < members.size(); ++i)
    (not_finite[i] ? others : finite).push_back(members[i]);
  run_joined(finite);
  run_joined(others);
}

const Dims& BatchRun::sizes_of(uint32_t call, uint32_t at) const {
  static const Dims none;
  const Given& g = given(call, at);
  if (g.value < 0 && !g.outer.defined()) return none;
  return g.value < 0 ? g.outer.sizes() : values_[static_cast<size_t>(g.value)].shape->sizes;
}
std::vector<int64_t> BatchRun::row_counts(std::span<const uint32_t> members, uint32_t at) const {
  std::vector<int64_t> counts;
  for (const uint32_t m : members) counts.push_back(sizes_of(m, at)[0]);
  return counts;
}

int64_t BatchRun::rows_of(const Place& p) const {
  if (p.rows >= 0) return p.rows;
  return wholes_[static_cast<size_t>(p.whole)].size(p.row < 0 ? 0 : 1);
}

// The rows of results one after the other.
Tensor BatchRun::gather_joined(std::span<const Place> places) {
  const Place first = places[0];
  bool rising = first.rows >= 0;
  int64_t total = rows_of(first);
  for (size_t i = 1; i < places.size(); ++i) {
    const Place &p = places[i], &before = places[i - 1];
    rising = rising && p.whole == first.whole && p.row == before.row + before.rows;
    total += rows_of(p);
  }
  if (rising) {
    const Tensor& whole = wholes_[static_cast<size_t>(first.whole)];
    return total == whole.size(0) ? whole : builtins.narrow(whole, first.row, total);
  }
  RowGatherer all(part_of_, wholes_.size());
  for (const Place& p : places) {
    const Tensor& whole = wholes_[static_cast<size_t>(p.whole)];
    const bool stacked = p.rows < 0 && p.row >= 0;
    const auto part = [&] { return stacked ? as_rows(whole) : whole; };
    const int64_t n = rows_of(p), from = p.row < 0 ? 0 : stacked ? p.row * n : p.row;
    all.add(p.whole, part, false, static_cast<int32_t>(from), static_cast<int32_t>(n));
  }
  return all.join();
}

Tensor BatchRun::joined_operand(std::span<const uint32_t> members, uint32_t at) {
  if (given(members[0], at).value < 0) {
    Tensors all;
    for (const uint32_t m : members) all.push_back(given(m, at).outer);
    return builtins.cat(all);
  }
  std::vector<Place> places;
  for (const uint32_t m : members)
    places.push_back(places_[static_cast<size_t>(given(m, at).value)]);
  return gather_joined(places);
}

// An operand that is broadcast to the rows of its sample, once for each of them.
Tensor BatchRun::spread_operand(std::span<const uint32_t> members, uint32_t at,
                                std::span<const int64_t> counts, int ndim) {
  bool shared = true;
  Tensor t = operand(members, at, shared);
  if (shared) return t;
  const int own = t.ndim() - 1;
  if (own == ndim) t = builtins.select(t, 1, 0);
  for (int d = own; d < ndim - 1; ++d) t = builtins.unsqueeze(t, 1);
  std::vector<int64_t> samples(members.size());
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<int64_t>(i);
  return builtins.take_rows(t, int64_tensor(numbers_repeated(counts, samples)));
}

// Of each result, how many rows one row of the operands has made; nothing where the results are not
// what their callers were told.
std::vector<int64_t> BatchRun::rows_made(std::span<const uint32_t> members,
                                         std::span<const int64_t> counts,
                                         std::span<const Tensor> whole) const {
  const Gathered& c = calls_[members[0]];
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  std::vector<int64_t> each;
  for (uint32_t k = 0; k < c.values; ++k) {
    const Value& v = values_[c.first_value + k];
    const Tensor& t = whole[k];
    const Dims& want = v.shape->sizes;
    if (want.size() == 0 || want.size() != t.ndim() || t.dtype() != v.dtype ||
        !std::equal(want.begin() + 1, want.end(), t.sizes().begin() + 1))
      return {};
    each.push_back(want[0] / counts[0]);
    for (size_t i = 0; i < members.size(); ++i)
      if (values_[calls_[members[i]].first_value + k].shape->sizes[0] != each[k] * counts[i])
        return {};
    if (t.size(0) != each[k] * total || t.size(0) > std::numeric_limits<int32_t>::max()) return {};
  }
  return each;
}

// Says where the members' rows of their k-th result lie, `each` for one row of the operands.
void BatchRun::place_rows(std::span<const uint32_t> members, uint32_t k, int64_t each,
                          std::span<const int64_t> counts) {
  int64_t row = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    Place& p = places_[calls_[members[i]].first_value + k];
    p.row = static_cast<int32_t>(row);
    p.rows = static_cast<int32_t>(each * counts[i]);
    row += p.rows;
  }
}

BatchRun::Together BatchRun::run_rows(std::span<const uint32_t> members,
                                      std::vector<bool>& not_finite) {
  using Makes = RowWise::Makes;
  const Gathered& c = calls_[members[0]];
  const ModesOf as_gathered(c);
  std::vector<Tensor> weights(c.given);
  try {
    const std::vector<Tensor> one = operands_of(c, givens_, values_);
    const clew::Call call{*c.op, one, c.attrs};
    const auto form_of = [&](AttrsCopy& attrs, int64_t rows) {
      return builtins.rows(call, attrs.data(), rows);
    };
    AttrsCopy tried(c.op->attrs, c.attrs), attrs(c.op->attrs, c.attrs);
    const RowWise form = form_of(tried, 0);
    if (form.makes == Makes::nothing) return Together::failed;
    const auto counted =
        static_cast<uint32_t>(form.counted < 0 ? std::countr_zero(form.inputs) : form.counted);
    const std::vector<int64_t> counts = row_counts(members, counted);
    int64_t total = 0, widest = 0;
    for (const int64_t n : counts) total += n;
    if (total > std::numeric_limits<int32_t>::max()) return Together::failed;
    form_of(attrs, total);
    for (const Tensor& t : one) widest = std::max<int64_t>(widest, t.defined() ? t.ndim() : 0);

    Tensors args, whole;
    for (uint32_t i = 0; i < c.given; ++i) {
      const Tensor& t = one[i];
      if (!t.defined()) {
        args.push_back({});
      } else if (i < 32 && (form.inputs >> i & 1) != 0) {
        args.push_back(joined_operand(members, i));
      } else if (form.broadcasts) {
        args.push_back(spread_operand(members, i, counts, static_cast<int>(widest)));
        // It counts less in the choice of a dtype than the tensor of its repetitions.
        if (t.ndim() == 0 && args[static_cast<int>(i)].ndim() > 0 &&
            t.dtype() != one[counted].dtype())
          return Together::failed;
      } else {
        args.push_back(t);
        weights[i] = t;
        for (const uint32_t m : members)
          if (!same_place(given(m, i).outer, t)) return Together::failed;
      }
    }
    if (form.index >= 0) {
      Tensor& index = args[form.index];
      const auto each = row_counts(members, static_cast<uint32_t>(form.index));
      const std::optional<Tensor> of_all = among_all(index, each, row_counts(members, 0));
      if (!of_all) return Together::failed;
      index = *of_all;
    }
    const bool reduced = form.makes == Makes::sum || form.makes == Makes::mean;
    if (reduced)
      whole.push_back(reduce_rows(*c.op, c.attrs, args[0], counts, form.makes == Makes::mean));
    else
      apply(*c.op, args, attrs.data(), whole);

    std::vector<int64_t> each;
    if (!reduced) each = rows_made(members, counts, whole);
    if (!reduced && each.empty()) return Together::failed;
    if (reduced)
      not_finite = not_finite_of(whole, std::vector<int64_t>(members.size(), 1));
    else
      not_finite = not_finite_of(whole, counts);
    const auto bad = std::count(not_finite.begin(), not_finite.end(), true);
    if (bad > 0 && static_cast<size_t>(bad) < members.size()) return Together::to_split;
    for (const Tensor& t : whole) {
      set_origin(t, c.origin);
      if (t->grad_fn) t->grad_fn->batched = true;
    }
    keep_results(members, whole, false);
    for (uint32_t k = 0; k < each.size(); ++k) place_rows(members, k, each[k], counts);
    if (bad > 0) set_apart(members);
  } catch (const Error&) {
    return Together::failed;  // kind by kind, which finds the member that fails
  }
  note(members[0], static_cast<uint32_t>(members.size()), nullptr,
       weight_bytes(members[0], weights));
  release_operands(members);
  return Together::done;
}

}  // namespace clew::program
