// The interpreter's side of long work: its lock, its signals, its end.
// May include: the standard library only.
// Invariant: a thread that comes back after the interpreter has begun to end never runs on.
#pragma once

namespace clew {

// Gives base/long_work.h the functions that release and take the GIL. Called once, at import.
void init_interpreter();
// Called by Python's atexit: threads that are inside a kernel stay there from now on.
void interpreter_ends();

}  // namespace clew
