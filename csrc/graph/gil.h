// The interpreter's side of long work: its lock, its signals, its end.
// May include: the standard library only.
// Invariant: a thread that comes back after the interpreter has begun to end never runs on.
#pragma once

namespace clew {

// Tells base/long_work.h how the interpreter is let go of. Once, at import.
void init_interpreter();
// Called by Python's atexit: threads that are inside a kernel stay there from now on.
void interpreter_ends();

}  // namespace clew
