// Going on in a thread of one's own when calls are nested deeply.
// May include: base, graph/modes.h.
// Invariant: the caller waits, so that only one of both runs; modes pass to the thread.
#pragma once
#include <functional>

namespace clew {

// Runs f in another thread, with this one's modes, and passes on what it throws. False, without
// running f, if the system gives no thread or a vmap is open (its levels belong to this thread).
bool run_on_another_stack(const std::function<void()>& f);

}  // namespace clew
