// Splitting a range over the OpenMP threads, and the thread count the user set.
// May include: base; <omp.h>.
// Invariant: the split depends on n, grain and thread count only, so equal settings give equal
// bits, whichever threads run the pieces.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace clew {

int num_threads();
void set_num_threads(int n);

// Whether the calling thread is at a piece of a range.
bool in_parallel();

// While one lives, its thread computes alone: for work in the midst of small operations, whose
// other threads sleep, and which is done before they wake.
class Alone {
 public:
  Alone();
  ~Alone();
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  bool before_;
};

constexpr int64_t grain_default = 32768;

// Which thread runs the pieces: any, or one each, because what they call asks OpenMP for threads.
enum class Pieces : uint8_t { by_any_thread, by_a_thread_each };

// A range to be split: its pieces have `step` elements, the last one fewer.
struct Split {
  int64_t n, step, grain;
  int pieces;
  Pieces who;
};
using Piece = void (*)(void* f, int64_t begin, int64_t end);
void run_pieces(const Split& split, Piece piece, void* f);

// Calls f(begin, end) over disjoint pieces of [0, n); serial when n is small or when already inside
// a parallel region.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f, Pieces who = Pieces::by_any_thread) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t pieces = std::min<int64_t>(num_threads(), (n + grain - 1) / grain);
  if (pieces <= 1 || in_parallel()) {
    f(int64_t{0}, n);
    return;
  }
  // One way in for all f: what a region is made of stands in one place of the program.
  using Function = std::remove_reference_t<F>;
  run_pieces(
      {n, (n + pieces - 1) / pieces, grain, static_cast<int>(pieces), who},
      [](void* at, int64_t begin, int64_t end) { (*static_cast<Function*>(at))(begin, end); },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace clew
