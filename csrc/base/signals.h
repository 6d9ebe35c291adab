// Signals kept from a thread for a while.
// May include: the standard library, <signal.h>.
// Invariant: signals for a fault in the thread itself are never blocked.
#pragma once
#include <csignal>

namespace clew {

// While one lives, other signals wait or go to other threads. Threads that are started meanwhile
// never get any.
class WithoutSignals {
  sigset_t before_;

 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
};

}  // namespace clew
