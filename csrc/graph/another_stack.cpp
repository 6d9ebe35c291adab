// Going on in a thread of one's own when calls are nested deeply.
// May include: graph.
// Invariant: what the thread took from the caller's modes is as before when it ends.
#include "graph/another_stack.h"

#include <exception>
#include <system_error>
#include <thread>

#include "graph/autocast.h"
#include "graph/batch.h"
#include "graph/node.h"
#include "graph/watch.h"

namespace clew {

namespace {

// A Python exception on its way from one thread to another.
struct Raised {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
};

}  // namespace

bool run_on_another_stack(const std::function<void()>& f) {
  if (vmap_depth() > 0) return false;
  const Modes callers = modes;
  const AutocastSettings casts = autocast;
  const Watch watched = watch;
  const Skip skipped = skip;
  std::exception_ptr failed;
  Raised raised;
  auto work = [&] {
    PyGILState_STATE state = PyGILState_Ensure();
    modes = callers;
    kept(modes.unrecorded_since);  // counted: setting another one releases it
    autocast = casts;
    watch = watched;
    skip = skipped;
    try {
      f();
    } catch (...) {
      failed = std::current_exception();
      PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
    }
    if (modes.unrecorded_since) modes.unrecorded_since->decref();
    modes = Modes();
    watch = Watch();
    PyGILState_Release(state);
  };
  PyThreadState* own = PyEval_SaveThread();
  try {
    std::thread(work).join();
  } catch (const std::system_error&) {
    PyEval_RestoreThread(own);
    return false;
  }
  PyEval_RestoreThread(own);
  if (!failed) return true;
  if (raised.type) PyErr_Restore(raised.type, raised.value, raised.traceback);
  std::rethrow_exception(failed);
}

}  // namespace clew
