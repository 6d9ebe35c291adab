// The loops behind ops/calls/lists.h: every list is cut into pieces, which threads share.
// May include: ops, kernels.
// Invariant: a piece is done by one thread; which elements it has does not depend on their number.
#include "ops/calls/lists.h"

#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/train/gradients.h"
#include "tensor/kernel_frame.h"

namespace clew {

namespace {

constexpr int64_t piece_size = 8192;

// The pieces of all tensors, one after the other.
class Pieces {
  std::vector<int64_t> first_{0};  // of each tensor, and behind the last

 public:
  void add(int64_t elements) {
    first_.push_back(first_.back() + (elements + piece_size - 1) / piece_size);
  }
  int64_t count() const { return first_.back(); }
  // f(number of the tensor, its first element, number of the piece) of pieces [begin, end).
  template <class F> void each(int64_t begin, int64_t end, F&& f) const {
    auto k = static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), begin) -
                                 first_.begin() - 1);
    for (int64_t piece = begin; piece < end; ++piece) {
      while (piece >= first_[k + 1]) ++k;
      f(k, (piece - first_[k]) * piece_size, piece);
    }
  }
};

// f(loops, data, count, number of the piece) of every piece of the tensors.
template <class F> void each_piece_cpu(std::span<const Tensor> all, F&& f) {
  struct Block {
    char* data;
    int64_t n, width;
    const kernels::GradientLoops* loops;
  };
  Pieces pieces;
  std::vector<Block> blocks;
  blocks.reserve(all.size());
  const Held held(all);
  for (const Tensor& t : all) {
    blocks.push_back({t->address(), t.numel(), static_cast<int64_t>(itemsize(t.dtype())),
                      &kernels::gradient_loops(t.dtype())});
    pieces.add(t.numel());
  }
  parallel_for(pieces.count(), std::max<int64_t>(grain_default / piece_size, 1),
               [&](int64_t begin, int64_t end) {
                 pieces.each(begin, end, [&](size_t k, int64_t at, int64_t piece) {
                   const Block& b = blocks[k];
                   f(*b.loops, b.data + at * b.width, std::min(piece_size, b.n - at), piece);
                 });
               });
}

int64_t pieces_of(std::span<const Tensor> all) {
  Pieces pieces;
  for (const Tensor& t : all) pieces.add(t.numel());
  return pieces.count();
}

void optimizer_step_cpu(kernels::Optimizer kind, std::span<const StepArrays> all, const char* rules,
                        size_t rule_size) {
  Pieces pieces;
  for (const StepArrays& s : all) {
    const auto bytes = s.n * static_cast<int64_t>(itemsize(s.dtype));
    for (const StepArrays::Part& p : s.part)
      require(!p.storage || p.offset + bytes <= static_cast<int64_t>(p.storage->nbytes),
              "optimizer: a parameter, its gradient or its state was resized during the step");
    pieces.add(s.n);
  }
  // Ctrl-C waits for the end: half a step would leave states and parameters at odds.
  const WithPauses pauses;
  const LongWork work(pieces.count() * piece_size / 2);
  auto some = [&](int64_t begin, int64_t end) {
    pieces.each(begin, end, [&](size_t k, int64_t at, int64_t) {
      const StepArrays& s = all[k];
      const auto bytes = at * static_cast<int64_t>(itemsize(s.dtype));
      void* arrays[kernels::most_optimizer_arrays];
      for (size_t i = 0; i < s.part.size(); ++i) {
        const StepArrays::Part& p = s.part[i];
        arrays[i] = p.storage ? p.storage->at(p.offset + bytes) : nullptr;
      }
      kernels::optimizer_update(kind, s.dtype)(rules + static_cast<size_t>(s.rule) * rule_size,
                                               std::min(piece_size, s.n - at), arrays);
    });
  };
  split_for(pieces.count(), std::max<int64_t>(2 * grain_default / piece_size, 1), some);
}

}  // namespace

void optimizer_step(kernels::Optimizer kind, std::span<const StepArrays> all, const void* rules,
                    size_t rule_size) {
  if (!all.empty()) optimizer_step_cpu(kind, all, static_cast<const char*>(rules), rule_size);
}

double norm_of_all(std::span<const Tensor> all, double order) {
  std::vector<double> part(static_cast<size_t>(pieces_of(all)));
  each_piece_cpu(all, [&](const auto& loops, const char* data, int64_t n, int64_t piece) {
    auto f = order == 2 ? loops.sum_squares : order == 1 ? loops.sum_sizes : loops.greatest;
    part[static_cast<size_t>(piece)] = f(data, n);
  });
  double whole = 0;
  for (double p : part)
    if (order != HUGE_VAL)
      whole += p;
    else if (p > whole || p != p)
      whole = p != p || whole != whole ? NAN : p;
  return order == 2 ? std::sqrt(whole) : whole;
}

void scale_all(std::span<const Tensor> all, double factor) {
  each_piece_cpu(all, [&](const auto& loops, char* data, int64_t n, int64_t) {
    loops.scale(data, n, factor);
  });
}
void clamp_all(std::span<const Tensor> all, double bound) {
  each_piece_cpu(
      all, [&](const auto& loops, char* data, int64_t n, int64_t) { loops.clamp(data, n, bound); });
}

bool unscale_all(std::span<const Tensor> all, double factor) {
  std::vector<char> finite(static_cast<size_t>(pieces_of(all)), 1);
  each_piece_cpu(all, [&](const auto& loops, char* data, int64_t n, int64_t piece) {
    finite[static_cast<size_t>(piece)] = loops.unscale(data, n, factor);
  });
  return std::ranges::all_of(finite, [](char f) { return f != 0; });
}

}  // namespace clew
