// The memory budget: a bound on the allocator's live bytes, kept by giving up what can be made
// again or lies in a file.
// May include: program/recipe.h.
// Invariant: one budget holds for the whole process; it is looked at with the GIL held.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "program/recipe.h"

namespace clew::program {

// A file that takes contents: counted by the values that lie in it and by regions.
struct SpillFile {
  uint32_t refs = 1;
  int fd;  // owned
  int64_t end = 0;
  bool full = false;  // a write failed, or others cut it off: it takes no more
  std::vector<std::pair<size_t, int64_t>> free;  // bytes, place
  explicit SpillFile(int owned) : fd(owned) {}
  SpillFile(const SpillFile&) = delete;
  void incref() { ++refs; }
  void decref() {
    if (--refs == 0) delete this;
  }
  std::string name() const;
  bool is_cut_off() const;  // shorter than what was written to it

 private:
  ~SpillFile();
};

// Where a value lies in a file.
struct InFile {
  SpillFile* file;  // counted
  int64_t at;
};

struct BudgetCounts {
  int64_t given_up = 0, given_up_bytes = 0;
  int64_t made_again = 0, made_again_ns = 0;
  int64_t written = 0, written_bytes = 0, read = 0;
  int64_t unmade = 0;               // calls whose results cannot be made again
  int64_t noted = 0, noted_ns = 0;  // calls, and what they took
  int64_t noted_in_backward = 0;    // of these, calls of gradient rules and of what runs again
};

// The first calls of the region that began last and is open: how many were noted, up to `most`; the
// bytes of the results of the `first` ones; and whether others were not noted.
struct EarlyCalls {
  static constexpr int64_t most = 512, first = 32;
  int64_t calls = 0, bytes = 0;
  bool missed = false;
};

struct Budget {
  int64_t limit = INT64_MAX;  // of live bytes
  int64_t least = 0;          // results of fewer bytes are not noted
  SpillFile* file = nullptr;
  // Where notes begin late: bytes of results that are still noted, and what a call takes at least.
  int64_t first_left = 0, first_least = 0;
  EarlyCalls early;
  int64_t enough = 0;      // bytes that can go; once so many are noted, calls are not (0: all are)
  int64_t first_most = 0;  // where early.bytes are more, all calls are noted
  BudgetCounts counts;
  int64_t widest = 0;  // bytes of activations that one noted call read and made, at most
};
extern constinit Budget the_budget;
inline Budget& budget() { return the_budget; }

// Of this thread's last refusal: bytes that would have had to be live, those asked for, whether a
// gradient rule asked, and whether something was recomputed: with more room less would have been
// missing; whether calls were noted late, so that less than usual could be given up.
struct Refusal {
  int64_t needed = 0, more = 0;
  bool in_backward = false, recomputed = false, late = false;
};
Refusal& last_refusal();

// From when on calls are noted, in all threads.
struct Noting {
  int64_t from = 0;    // once so many bytes are live; 0: at once
  int64_t first = 0;   // and the first ones, up to so many bytes of results and some hundred calls
  int64_t enough = 0;  // until what can go is so many bytes, and again when little is left; 0: all
  int64_t first_most = 0;  // all where the first few results have more bytes: it is a larger step
};
// With regions around it the least limit holds. Returns the region's number.
uint64_t begin_budget(int64_t limit, SpillFile* file, const Noting& when);
// Whether calls are noted from now on, where what ran before runs again inside of backward; what
// was so before is returned.
bool note_second_run(bool on);
// One of the first calls was noted, with results of so many bytes.
void noted_first(int64_t nbytes);
// A call was noted, where some suffice.
void look_whether_enough();
// If no other region is open, values that are not needed any more are forgotten.
void end_budget(uint64_t region);
// The most bytes that were live since the region began, which is open.
int64_t peak_in_budget(uint64_t region);

// Writes the contents to the file and returns whether that succeeded; the value is then read from
// there when needed.
bool write_to_file(Content* v);
// Into the value's storage, which has bytes.
void read_from_file(const Content* v);
void leave_file(Content* v);

}  // namespace clew::program
