// What became of the calls that waited in a region: in which passes they ran, and what ended it.
// May include: program, graph.
// Invariant: one for the process, of the region that began last; kept until the next; bounded.
#pragma once
#include <pthread.h>

#include <vector>

#include "graph/op.h"

namespace clew::program {

enum class Ending : uint8_t {
  observed,   // a value was read
  region,     // the region ended, or the program asked to run everything
  full,       // no more calls may wait
  elsewhere,  // another thread asked, or another program's calls use the same memory
};

struct Ran {
  const OpDef* op;
  Origin* origin;  // owned
};
struct Pass {
  uint32_t calls = 0;
  int64_t bytes_saved = 0;          // results that never became memory
  const char* why_ended = nullptr;  // why the next call, if any, is not part of it
};
struct End {
  Ending why;
  uint32_t calls;
  Origin* where;  // owned: the line that asked
};

struct Report {
  std::vector<Ran> calls;    // in the order in which they ran
  std::vector<Pass> passes;  // of so many calls each
  std::vector<End> ends;
  bool cut_short = false;
  pthread_t thread = {};  // whose region it is

  Report() = default;
  Report(const Report& r);  // counts its places again
  Report& operator=(const Report&) = delete;
  ~Report() { clear(); }
  void clear();
  bool is_of_this_thread() const { return pthread_equal(thread, pthread_self()); }
};
Report& report();

// A region of this thread begins.
void begin_report();

}  // namespace clew::program
