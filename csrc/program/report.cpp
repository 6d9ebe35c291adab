// The report of a region.
// May include: program, graph.
// Invariant: as report.h.
#include "program/report.h"

#include "graph/provenance.h"

namespace clew::program {

Report& report() {
  static auto& one = *new Report();  // the interpreter is gone before it would be destroyed
  return one;
}

Report::Report(const Report& r)
    : calls(r.calls), passes(r.passes), ends(r.ends), cut_short(r.cut_short), thread(r.thread) {
  for (const Ran& ran : calls) kept(ran.origin);
  for (const End& e : ends) kept(e.where);
}

void Report::clear() {
  for (const Ran& ran : calls)
    if (ran.origin) ran.origin->decref();
  for (const End& e : ends)
    if (e.where) e.where->decref();
  calls.clear();
  passes.clear();
  ends.clear();
  cut_short = false;
}

void begin_report() {
  report().clear();
  report().thread = pthread_self();
}

}  // namespace clew::program
