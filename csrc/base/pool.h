// Threads of our own that help a calling thread with the pieces of a job.
// May include: the standard library only.
// Invariant: the caller runs pieces too and waits only for pieces that a thread has taken, so a job
// ends whether or not others come; results do not depend on which thread runs a piece.
#pragma once
#include <cstdint>

namespace clew::pool {

using Nanoseconds = int64_t;
Nanoseconds now();

// Runs piece `number` of a job; it must not throw.
using Run = void (*)(void* what, int64_t number);

// More pieces than this are no job.
constexpr int64_t pieces_most = int64_t{1} << 20;

// Runs the pieces [first, count) of a job on this thread and up to `helpers` others. These are
// started when they are first needed; if the system refuses some, there are fewer. Returns how long
// this thread waited, with nothing left to do, for pieces that others had taken.
Nanoseconds run(int64_t first, int64_t count, int64_t helpers, Run run, void* what);

// Which thread of the pool this is, from 1; 0 for all others.
int worker();

}  // namespace clew::pool
