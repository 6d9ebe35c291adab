// Chooses which values are given up when there is no room, and manages the file for values that are
// cheaper to read than to recompute.
// May include: program, tensor.
// Invariant: bytes read from the file equal the bytes written.
#include "program/budget.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "graph/budget.h"
#include "graph/modes.h"
#include "program/pool.h"
#include "tensor/allocator.h"

namespace clew::program {

namespace {

constexpr double file_bytes_per_ns = 0.5;  // written and read back
constinit thread_local int regions = 0;    // budgets that this thread has open
constinit bool notes_late = false;
constinit bool noting = false;  // all calls; else at most the first ones
// Enough calls were noted: they go on when little is left of what they made and can go.
constinit bool rests = false;
constinit int64_t look_at = 0, given_before = 0;

void note_calls() { modes.intercept |= intercept_budget; }
void note_no_calls() { modes.intercept &= static_cast<uint8_t>(~intercept_budget); }

// This thread hears whether calls are noted now. Not amid gradient rules and what is recomputed,
// which are not noted, and around which modes are restored.
void hear() {
  if (!modes.grad || makes_again()) return;
  heard = the_allocator.news;
  if (noting || budget().first_left > 0)
    note_calls();
  else
    note_no_calls();
}
void tell_threads() {
  ++the_allocator.news;
  if (modes.grad) heard = the_allocator.news;
}

double file_price(const Content& v) { return static_cast<double>(v.nbytes) / file_bytes_per_ns; }
// The cost of getting the value back, by recomputing or from the file.
double price(const Content& v) {
  if (!v.recipe) return file_price(v);
  const double again = cost_of(v);
  return budget().file ? std::min(again, file_price(v)) : again;
}

// Calls met(output) for all outputs that are computed of a constant, also through values that
// nobody has but those who read them, until it returns true. True then, and where there are too
// many.
template <class F> bool any_made_of(const Content& constant, int most, F&& met) {
  static uint32_t search = 0;
  ++search;
  std::vector<const Content*> todo{&constant};
  while (!todo.empty()) {
    const Content* v = todo.back();
    todo.pop_back();
    for (const auto& [user, at] : v->users) {
      if (std::exchange(user->seen, search) == search) continue;
      if (--most < 0) return true;
      for (const Recipe::Output& out : user->outputs) {
        if (!out.value) continue;
        if (met(*out.value)) return true;
        if (!out.value->storage) todo.push_back(out.value);
      }
    }
  }
  return false;
}
// Whether a storage that waits for its bytes needs the constant; also where that takes long to say.
bool is_needed(const Content& constant) {
  return any_made_of(constant, 1000, [](const Content& made) {
    return made.storage && !made.has_bytes() && !made.file;
  });
}
// Whether tensors of more bytes could not be given up any more without the constant; also where
// that takes long to say.
bool loses_more(const Content& constant, size_t bytes) {
  size_t lost = 0;
  return any_made_of(constant, 100, [&](const Content& made) {
    lost += made.storage ? made.nbytes : 0;
    return lost > bytes;
  });
}

enum class Constants : uint8_t {
  all,
  cheap,  // those half as large as what they let be given up; of many some are looked at
};
// Forgets constants that only recipes hold: at least so many bytes, if there are. While nothing was
// given up they are all that lives longer than without a budget.
bool forget_constants(int64_t bytes, Constants which) {
  const bool all_there = without_bytes() == 0;
  const auto& held = held_values();
  const bool all = which == Constants::all;
  const size_t most = all ? held.size() : std::min<size_t>(held.size(), 64);
  static size_t from = 0;
  from = all || held.empty() ? 0 : (from + 7919) % held.size();
  std::vector<Content*> chosen;
  for (size_t k = 0; k < most; ++k) {
    Content* v = held[(from + k) % held.size()];
    if (!v->is_held() || v->recipe || v->pins || !v->storage || v->storage->refs != 1) continue;
    if (!all && loses_more(*v, 2 * v->nbytes)) continue;
    v->incref();
    chosen.push_back(v);
  }
  int64_t left = bytes;
  for (Content* v : chosen) {
    if (left > 0 && v->is_held() && !v->pins && (all_there || !is_needed(*v))) {
      const auto own = static_cast<int64_t>(v->nbytes);
      lose_users(v);
      if (v->users.empty()) left -= own;
    }
    v->decref();
  }
  return left < bytes;
}

void make_room(size_t nbytes) {
  if (nbytes == 0) return;
  Allocator& a = the_allocator;
  Budget& b = budget();
  const auto more = static_cast<int64_t>(nbytes);
  if (notes_late && !rests) {
    const bool on = noting && (modes.intercept & intercept_budget);
    b.first_left = 0;
    // Results of gradient rules are not recomputed, so their calls are not noted.
    if (!on && (!modes.running || modes.grad)) {
      note_calls();
      if (!std::exchange(noting, true)) tell_threads();
    }
    // Looks again before the limit if the bit may be cleared: other code may restore earlier modes.
    const int64_t now = a.stats.live_bytes + more;
    a.room_limit = on || now >= b.limit ? b.limit : now + (b.limit - now) / 2;
    if (b.limit - a.room_limit < b.limit / 64) a.room_limit = b.limit;
  }
  // Many small tensors are not asked for one by one.
  const int64_t together = b.limit / 256;
  if (const int64_t over = a.stats.live_bytes + more - b.limit; over > 0)
    forget_constants(over + together, Constants::cheap);
  int64_t freed = 0;
  while (a.stats.live_bytes + more > b.limit || (freed > 0 && freed < together)) {
    Content* c = pool().first(price);
    if (!c) {
      if (a.stats.live_bytes + more <= b.limit) break;
      if (forget_constants(1, Constants::all)) continue;
      break;
    }
    const auto bytes = static_cast<int64_t>(c->nbytes);
    if (a.stats.live_bytes + more <= b.limit && freed + bytes > together) break;
    if (b.file && (!c->recipe || file_price(*c) < cost_of(*c)) && !write_to_file(c) && !c->recipe) {
      pool().leave(c);  // the file is full: such contents no longer can
      continue;
    }
    ++b.counts.given_up;
    b.counts.given_up_bytes += bytes;
    freed += bytes;
    give_up(c);
  }
  const int64_t needed = a.stats.live_bytes + more;
  if (needed <= b.limit) return;
  last_refusal() = {.needed = needed,
                    .more = more,
                    .in_backward = modes.running || makes_again(),
                    .recomputed = makes_again(),
                    .late = b.early.missed};
  // What would do is said behind it (clew._program.enough).
  fail(ErrorKind::OutOfMemory, "memory_budget: ", more, " bytes more are needed, but ",
       a.stats.live_bytes, " of the budget's ", b.limit,
       " bytes are held by what cannot be given up",
       b.file && b.file->full ? concat("; the file ", b.file->name(), " takes no more") : "");
}

}  // namespace

constinit Budget the_budget;

Refusal& last_refusal() {
  static thread_local Refusal last;
  return last;
}

SpillFile::~SpillFile() { close(fd); }
std::string SpillFile::name() const {
  char path[4096];
  const ssize_t n = readlink(concat("/proc/self/fd/", fd).c_str(), path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : "without a name";
}
bool SpillFile::is_cut_off() const {
  struct stat found;
  return fstat(fd, &found) == 0 && found.st_size < end;
}

bool write_to_file(Content* v) {
  SpillFile& f = *budget().file;
  if (f.full || v->is_held() || v->saved == 0) return false;  // its storage would die
  if (f.is_cut_off()) {  // what is written now would make it long enough again, with zeros before
    f.full = true;
    return false;
  }
  int64_t at = f.end;
  const auto same = std::find_if(f.free.begin(), f.free.end(),
                                 [&](const auto& place) { return place.first == v->nbytes; });
  if (same != f.free.end()) {
    at = same->second;
    *same = f.free.back();
    f.free.pop_back();
  }
  const char* from = static_cast<const char*>(v->storage->data);
  for (size_t done = 0; done < v->nbytes;) {
    const auto to = static_cast<off_t>(at + static_cast<int64_t>(done));
    const ssize_t n = pwrite(f.fd, from + done, v->nbytes - done, to);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      f.full = true;
      return false;
    }
    done += static_cast<size_t>(n);
  }
  if (at == f.end) f.end += static_cast<int64_t>(v->nbytes);
  v->file = new InFile{&f, at};
  f.incref();
  ++budget().counts.written;
  budget().counts.written_bytes += static_cast<int64_t>(v->nbytes);
  return true;
}

void read_from_file(const Content* v) {
  char* to = static_cast<char*>(v->storage->data);
  for (size_t done = 0; done < v->nbytes;) {
    const auto from = static_cast<off_t>(v->file->at + static_cast<int64_t>(done));
    const ssize_t n = pread(v->file->file->fd, to + done, v->nbytes - done, from);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      fail(ErrorKind::Os, "memory_budget: the file ", v->file->file->name(),
           n < 0 ? concat(" cannot be read: ", std::strerror(errno)).c_str()
                 : " ends before the saved tensor does",
           "; run forward again, with a directory whose files nobody else changes");
    done += static_cast<size_t>(n);
  }
  ++budget().counts.read;
}

void leave_file(Content* v) {
  const std::unique_ptr<InFile> place(std::exchange(v->file, nullptr));
  if (!place) return;
  place->file->free.emplace_back(v->nbytes, place->at);
  place->file->decref();
}

namespace {

struct Region {
  uint64_t number;
  int64_t limit;
  SpillFile* file;  // counted, or null
  int64_t peak_before;
  EarlyCalls early_before;  // of the region that was open when it began
};
std::vector<Region>& open_regions() {
  static auto& all = *new std::vector<Region>();
  return all;
}
uint64_t last_region = 0;

void apply_regions() {
  Budget& b = budget();
  b.limit = INT64_MAX;
  b.file = nullptr;
  for (const Region& r : open_regions()) {
    b.limit = std::min(b.limit, r.limit);
    if (r.file) b.file = r.file;
  }
  b.least = open_regions().empty() ? 0 : b.limit >> 15;
}

// No value will be given up any more: keeps only the recipes of values that have no bytes, and what
// these recipes read.
void forget_what_is_there() {
  std::vector<Content*> all;
  pool().each_known([&](Content* v) {
    v->incref();
    all.push_back(v);
  });
  const auto is_needed_again = [](const Content& v) {
    for (const auto& [user, at] : v.users)
      for (const Recipe::Output& out : user->outputs)
        if (out.value && !out.value->has_bytes()) return true;
    return false;
  };
  // The last ones first: what only led to them is gone then, and what that read is not needed.
  for (bool any = true; any;) {
    any = false;
    for (size_t k = all.size(); k-- > 0;) {
      if (!all[k]->recipe || is_needed_again(*all[k])) continue;
      forget_recipe(all[k]);
      any = true;
    }
  }
  for (Content* v : all) v->decref();
}

}  // namespace

uint64_t begin_budget(int64_t limit, SpillFile* file, const Noting& when) {
  if (file) file->incref();
  if (open_regions().empty()) budget().widest = 0;
  look_at = budget().enough = open_regions().empty() ? when.enough : 0;
  budget().first_most = when.first_most;
  given_before = budget().counts.given_up_bytes;
  rests = false;
  pool().tell_nobody();
  know_the_clock();
  open_regions().push_back({++last_region, limit, file, memory_stats().peak_bytes, budget().early});
  reset_peak_memory_stats();
  budgets_open = static_cast<int>(open_regions().size());
  apply_regions();
  ++regions;
  notes_late = when.from > 0;
  noting = noting || !notes_late;
  const int64_t limit_now = budget().limit;
  the_allocator.make_room = make_room;
  the_allocator.tell = hear;
  the_allocator.room_limit = noting ? limit_now : std::min(when.from, limit_now);
  Budget& b = budget();
  if (noting) {
    b.first_left = 0;
  } else if (when.first > b.first_left) {  // else those of the region around it go on
    b.first_left = when.first;
    b.first_least = when.first / EarlyCalls::most + 1;  // they suffice
  }
  // A region without a limit refuses nothing.
  const bool late = limit != INT64_MAX && !noting && b.first_left == 0;
  b.early = {.missed = b.early.missed || late};
  tell_threads();
  if (noting || b.first_left > 0) note_calls();
  return last_region;
}

bool note_second_run(bool on) {
  const bool before = modes.intercept & intercept_budget;
  if (!on)
    note_no_calls();
  else if (budgets_open > 0)
    note_calls();
  return before;
}

void noted_first(int64_t nbytes) {
  int64_t& left = budget().first_left;
  left = std::max<int64_t>(left - std::max(nbytes, budget().first_least), 0);
  if (left > 0) return;
  budget().early.missed = true;
  note_no_calls();
  tell_threads();
}

void look_whether_enough() {
  Budget& b = budget();
  if (b.early.calls < EarlyCalls::first) return;
  if (b.early.bytes > b.first_most) {
    b.enough = 0;
    return;
  }
  const int64_t given = b.counts.given_up_bytes - given_before;
  if (!noting || pool().bytes() + given < look_at) return;
  int64_t seen = 1, fixed = 0;  // of some contents
  pool().each(pool().size() / 128 + 1, [&](const Content* v) {
    const auto bytes = static_cast<int64_t>(v->nbytes);
    seen += bytes;
    if (!may_be_given_up(*v)) fixed += bytes;
  });
  const double share = static_cast<double>(fixed) / static_cast<double>(seen);
  const auto stays = static_cast<int64_t>(share * static_cast<double>(pool().bytes()));
  if (const int64_t missing = b.enough - (pool().bytes() + given - stays); missing > 0) {
    look_at = pool().bytes() + given + std::max(missing, b.enough / 16);
    return;
  }
  rests = notes_late = b.early.missed = true;
  noting = false;
  note_no_calls();
  tell_threads();
  // Given up, or gone with a backward, after which another forward may come. It may be amid a call,
  // so each thread hears of it later.
  pool().tell_below(stays + b.enough / 8, [] {
    rests = false;
    noting = true;
    budget().enough = 0;
    ++the_allocator.news;
  });
}

void end_budget(uint64_t number) {
  auto& all = open_regions();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const Region& r) { return r.number == number; });
  if (at == all.end()) return;
  SpillFile* file = at->file;
  if (all.size() == 1) {
    budget().early = {};
  } else if (at + 1 == all.end()) {
    // What an inner region did not note is missing in the one around it, too.
    const bool missed = budget().early.missed || at->early_before.missed;
    budget().early = at->early_before;
    budget().early.missed = missed;
  }
  // A region that began inside and is still open counts from its own beginning.
  if (at + 1 != all.end())
    at[1].peak_before = std::max(at[1].peak_before, at->peak_before);
  else
    raise_peak_memory_stats(at->peak_before);
  all.erase(at);
  apply_regions();
  if (file) file->decref();
  --regions;
  noting = noting && !all.empty();
  if (all.empty()) tell_threads();
  if (!noting && (all.empty() || regions == 0)) {
    note_no_calls();
    budget().first_left = 0;
  }
  the_allocator.room_limit = budget().limit;
  budgets_open = static_cast<int>(all.size());
  if (all.empty()) {
    budget().enough = 0;
    pool().tell_nobody();
    forget_what_is_there();
  }
}

int64_t peak_in_budget(uint64_t number) {
  int64_t peak = memory_stats().peak_bytes;
  for (const Region& r : open_regions())
    if (r.number > number) peak = std::max(peak, r.peak_before);
  return peak;
}

// A forked child has no budget: the limit was set for the parent. It may read the file but writes
// nothing to it.
static void after_fork() {
  for (const Region& r : open_regions())
    if (r.file) r.file->full = true;
  open_regions().clear();
  apply_regions();
  budgets_open = regions = 0;
  noting = false;
  pool().tell_nobody();
  note_no_calls();
  the_allocator.room_limit = INT64_MAX;
}
[[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, after_fork);

}  // namespace clew::program
