// How many processors this process may use, and how many threads the user wants.
// May include: the standard library only.
// Invariant: at least 1, whatever the system's files say.
#pragma once
#include <string>

namespace clew {

// The thread count that was set, or initial_threads(). What it is cut to is num_threads().
int threads_set();

// OMP_NUM_THREADS where it is set, otherwise usable_processors().
int initial_threads();

// The processors that the process may run on, at most as many as its control group's quota of time
// is worth (to the nearest, for a thread that is throttled half of the time is no gain). `root` is
// in front of the paths of the system's files.
int usable_processors(const std::string& root = "");

}  // namespace clew
