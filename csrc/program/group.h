// Group: calls that one pass over tiles carries out, and what the pass reads and writes.
// May include: program, graph, kernels.
// Invariant: a call of the group finds each operand either complete before the pass begins, or
// made by the group at the same elements or rows.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "kernels/core/loop_tables.h"
#include "program/program.h"

namespace clew::program {

constexpr int most_operands = 5;

// An operand of the group: memory, or a piece of scratch that lives for one tile. R rows of C
// elements make the group's shape, where a call works on rows.
struct Source {
  enum class Extent : uint8_t {
    full,      // an element for each of the group's
    row,       // one for each row
    spread,    // memory that is broadcast to the group's shape, or lies in another order
    constant,  // one number
  };
  const Operand* of = nullptr;
  Storage* storage = nullptr;
  Extent extent = Extent::full;
  bool written = false;    // by a call of the group
  bool temporary = false;  // used only by calls of the group
  bool late = false;       // complete only when the pass is
  bool brief = false;      // temporary, and used in one segment only
  int16_t slot = -1;       // of scratch, among those of its extent, or of brief ones
  int16_t last = -1;       // the last segment that uses it
  int16_t before = -1;     // an earlier source in its storage's bucket
  uint32_t uses = 0;       // of its storage by calls of the group
  int64_t item = 0;
  char* data = nullptr;
  int64_t steps[max_dims] = {};  // bytes along the group's merged dims, innermost first
};

// One call of a loop for a chunk of a tile, or of a reduction for its rows.
struct Step {
  kernels::Loop loop = nullptr;
  const Scalar* params = nullptr;
  int count = 0;
  bool by_rows = false;                // the loop runs over an element a row
  bool within_rows = false;            // an operand is not the same way through neighbouring rows
  int16_t source[most_operands] = {};  // [0] is written
  Passes passes;                       // of a reduction
  const void* attrs = nullptr;         // likewise
  int sum = -1;                        // the number of the sum over rows or all it adds to
};

// Steps that go through a tile together. Loops over elements do so chunk by chunk: what one leaves
// the next finds in the nearest cache, which is too small for a tile of all operands. A reduction
// takes the tile as a whole, as does a loop over an element a row.
struct Segment {
  int16_t first, end;  // steps
  bool by_chunks;
  bool within_rows = false;  // one of its steps is
  bool fetches = false;      // memory ahead of its use
  int64_t chunk = 0;         // elements
  struct Move {
    int16_t source, step, operand;
  };
  std::vector<Move> moves = {};  // operands that lie elsewhere for each chunk, by source
};

class Group {
 public:
  Group(const Program& p, size_t first) : p_(p), first_(first) { newest_.fill(-1); }
  // A quick test whether a group may begin at this call.
  static bool begins(const Program& p, size_t first);
  // The first call that does not belong to it.
  size_t gather();
  // Calls before the one that gather() returned which run after the pass.
  const std::vector<size_t>& put_off() const { return put_off_; }
  void place_sources();
  void run();
  // Whether a pass that was begun must be finished.
  bool is_whole() const { return in_place_; }
  // Results of calls that never get memory.
  int64_t bytes_saved() const { return bytes_saved_; }
  // Why the group did not take the call, a text that lives as long as the program.
  const char* why_not(const Call& c) const;

 private:
  struct Scratch;
  struct Operands;
  // Rows [row, row + rows) of the merged dims, of each the elements [from, from + length).
  struct Band {
    int64_t row, rows, from, length;
    int64_t before = 0;  // elements of the tile that come first in scratch
    int64_t elements() const { return rows * length; }
  };
  const Program& p_;
  size_t first_;
  Dims sizes_, strides_;   // of the results: dense, in some order of dims
  bool in_order_ = false;  // contiguous
  int64_t numel_ = 0;
  int64_t columns_ = 0;  // of a row; 0 where no call works on rows
  std::vector<size_t> put_off_;
  std::vector<Source> sources_;
  static constexpr size_t buckets = 128;
  std::array<int16_t, buckets> newest_;  // source by bucket of its storage
  std::vector<Step> steps_;
  std::vector<std::unique_ptr<std::array<Scalar, most_operands>>> numbers_;
  std::vector<std::unique_ptr<std::array<char, 16>>> constants_;
  int sums_ = 0;    // over rows
  int totals_ = 0;  // sums of everything, which may go through the elements in another order
  DType total_dtype_ = DType::Float32;
  // What is left of the dims when neighbours are merged, innermost first.
  int ndim_ = 0;
  int64_t extent_[max_dims] = {};
  std::vector<Segment> segments_;
  std::vector<int16_t> deferred_;  // sums that add what a tile has left for them at its end
  int slots_ = 0, row_slots_ = 0, brief_slots_ = 0;
  int64_t widest_ = 1;
  int64_t slot_bytes_ = 0, row_slot_bytes_ = 0, brief_bytes_ = 0;
  int64_t bytes_saved_ = 0;
  // A write in place cannot be restarted, so such a group is not interrupted by signals.
  bool in_place_ = false;
  // Results that lie in the bytes of an operand which nobody needs after the group.
  struct Takeover {
    Storage *result, *from;
  };
  std::vector<Takeover> takeovers_;

  bool takes(const Call& c);
  bool takes_loop(const Call& c);
  bool takes_kernel(const Call& c);
  bool takes_indexed(const Call& c, const Passes& passes);
  bool takes_reduction(const Call& c, const Passes& passes);
  bool takes_total(const Call& c, const Passes& passes);
  bool may_be_put_off(const Call& c) const;
  bool totals_fit(int64_t columns, DType d) const;
  bool totals_go_by_rows(int64_t columns, DType d) const;
  bool is_still() const;
  bool begins_with(const Shape& s);
  bool is_full(const Shape& s) const;
  int64_t columns_of(const Shape& s) const;
  bool works_on_rows(int64_t columns) const;
  bool is_a_value_a_row(const Operand& o, const Shape& result) const;
  bool may_read(const Operand& o) const;
  bool may_write(const Operand& o, Source::Extent extent) const;
  static size_t bucket(const Storage* s) {
    return (reinterpret_cast<uintptr_t>(s) * 0x9E3779B97F4A7C15u) >> 57;
  }
  int over(const Storage* s, int i) const;
  int first_over(const Storage* s) const;
  int next_over(const Storage* s, int i) const;
  int find(const Operand& o, Source::Extent extent) const;
  int16_t source_of(const Operand& o, Source::Extent extent);
  int16_t constant(const Scalar& v, DType d);
  int16_t cast(int16_t from, DType to);
  void written(Step& step, const Operand& result, Source::Extent extent);
  void merge_dims();
  int64_t rows() const { return numel_ / columns_; }
  bool is_rewritten(size_t k) const;
  void cut_segments();
  void take_over_bytes();
  void give_slots();
  void plan_chunks(Segment& g);
  // Of a band among the rows of its tile.
  int64_t first_row(const Band& b) const { return b.before ? b.before / columns_ : 0; }
  int64_t line() const { return columns_ ? columns_ : ndim_ ? extent_[0] : 1; }
  char* place(const Source& s, int64_t row, int64_t from) const;
  char* part(const Source& s, const Band& band, int64_t row, int64_t from, const Scratch& at) const;
  void run_tile(std::span<const Band> bands, Scratch& at) const;
  void run_segment(const Segment& g, const Band& band, Scratch& at) const;
  void run_chunk(const Segment& g, const Band& band, const Band& chunk, Scratch& at) const;
  void run_rows_of_chunk(const Step& step, const Band& band, const Band& chunk,
                         const Operands& at) const;
  void run_by_rows(const Step& step, const Band& band, const Scratch& at) const;
  void run_reduction(const Step& step, const Band& band, Scratch& at) const;
  void run_total(const Step& step, std::span<const Band> bands, Scratch& at) const;
  void run_indexed(const Step& step, const Band& band, const Scratch& at) const;
  void run_sum(const Step& step, std::span<const Band> bands, Scratch& at) const;
  void run_piece(int64_t begin, int64_t end, int64_t tile, Scratch& at) const;
  void size_scratch(int64_t elements);
  void run_lines(int64_t tile);
  void run_totals(int64_t tile);
  void run_rows(int64_t tile);
  void finish_totals(std::vector<Scratch>& parts) const;
};

}  // namespace clew::program
