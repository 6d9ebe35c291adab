// The profiler's recorder: what ran when, on which line, and what memory it took and gave back.
// May include: base, tensor, graph.
// Invariant: everything happens with the GIL held; a span that outlives its recording writes
// nothing.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "graph/modes.h"
#include "graph/node.h"

namespace clew {

// The numbers are those of clew.autograd._recording.Kind.
enum class TraceKind : uint8_t { op, node, range, module, call, allocation, free };
constexpr uint8_t trace_inplace = 1;
constexpr uint8_t trace_backward = 2;

// What records that one place of the program writes have in common.
struct TraceSite {
  const void* what = nullptr;  // OpDef, Scope (counted) or nothing; a name otherwise is in `name`
  Origin* origin = nullptr;    // counted
  int64_t extra = 0;           // a node's inputs that want gradients, one bit each
  int32_t name = -1;           // index into names; -1 where `what` tells it
  uint32_t thread : 26 = 0;
  TraceKind kind : 3 = TraceKind::op;
  uint8_t flags : 2 = 0;
};

// The rest. Little is written while the program runs, and it is put together afterwards.
struct TraceRecord {
  static constexpr uint32_t running = UINT32_MAX;  // as a length
  static constexpr uint32_t longer = running - 1;  // than fits; see Tracer::end_of()
  static constexpr int32_t none = INT32_MIN;       // as a value

  int64_t begin;    // in ticks, see Tracer::nanoseconds()
  uint32_t length;  // in ticks
  int32_t site;     // index into sites
  int32_t parent;   // the record that it lies in; -1 at the top
  int32_t value;    // see Tracer::value_of()
};
static_assert(sizeof(TraceRecord) == 24);

// Memory for records. The system clears a new page at its first touch: few large pages cost less.
class TraceChunk {
  struct Free {
    void operator()(TraceRecord* p) const;
  };
  std::unique_ptr<TraceRecord, Free> records_;

 public:
  static constexpr int bits = 18;
  static constexpr size_t size = size_t{1} << bits;
  TraceChunk();
  TraceRecord* begin() const { return records_.get(); }
};

struct TraceOptions {
  bool shapes = false;
  bool memory = false;
};

// One recording at a time; all threads of the process write into it.
class Tracer {
 public:
  // The number of the current recording; 0 if none runs.
  uint32_t session() const { return session_; }
  bool running() const { return session_ != 0; }
  void start(TraceOptions options);
  void stop();  // the records stay until the next start or clear()
  void clear();

  // A record that begins, at an instant that is known or now. The thread has joined.
  TraceRecord* begin(int32_t site, int64_t ticks = 0);
  void end(TraceRecord& r, int32_t index, int64_t ticks);
  bool withdraw(TraceRecord* r);  // unless something has been recorded since
  void memory(void* address, int64_t bytes);
  int32_t last() const { return count_ - 1; }

  // The site of the current line or, in backward, of the forward operation whose gradient is
  // computed.
  int32_t site_here(TraceKind kind, const void* what, int32_t name, uint8_t flags = 0);
  int32_t site_at(TraceKind kind, const void* what, int32_t name, Origin* origin, uint8_t flags = 0,
                  int64_t extra = 0);
  // Forgets remembered instruction addresses: other instructions may be there by now.
  void forget_lines() { lines_ = {}; }
  int32_t intern(std::string_view name);
  int32_t accumulation();  // the name of the nodes that add to leaves
  int32_t value(uint64_t sequence) const;
  // Shapes, dtypes and numbers of a call; see clew.autograd._recording.
  void add_details(int32_t index, const OpDef& op, std::span<const Tensor> in, const void* attrs,
                   std::span<const Tensor> outs);
  bool shapes() const { return options_.shapes; }

  int32_t count() const { return count_; }
  TraceRecord& at(int32_t i) const {
    return chunks_[static_cast<size_t>(i >> TraceChunk::bits)].begin()[i & mask];
  }
  const std::vector<TraceSite>& sites() const { return sites_; }
  const std::deque<std::string>& names() const { return names_; }
  const std::vector<int64_t>& details() const { return details_; }
  // Records and where their details begin.
  const std::vector<std::pair<int32_t, int32_t>>& detailed() const { return detailed_; }
  int64_t end_of(int32_t index) const;           // in ticks; 0 as long as it runs
  int64_t value_of(const TraceRecord& r) const;  // the node's number, or -1; bytes
  int64_t extra_of(const TraceRecord& r) const;  // that of its site; an address
  // Converts a tick to nanoseconds of the monotonic clock. Call it when the recording has stopped.
  int64_t nanoseconds(int64_t ticks) const;
  int64_t started = 0, stopped = 0, live_bytes = 0;

 private:
  static constexpr int mask = static_cast<int>(TraceChunk::size) - 1;
  struct Key {
    const void* what = nullptr;
    const void* place = nullptr;  // an Origin; an instruction
    uint64_t more = 0;            // TraceSite::extra; a Scope
    int32_t name = -1;
    uint32_t tag = 0;  // thread, kind and flags
    bool operator==(const Key&) const = default;
    size_t hash() const;
  };
  struct Known {
    Key key;
    int32_t site = -1;
  };
  struct Block {
    int64_t bytes, address;
  };
  struct Hash {
    size_t operator()(const Key& key) const { return key.hash(); }
  };
  TraceRecord* add(int32_t site);
  void add_chunk();
  int32_t new_site(const Key& key, TraceKind kind, Origin* origin, uint8_t flags);
  void add_shapes(std::span<const Tensor> ts);
  void add_arguments(const OpDef& op, const void* attrs);

  uint32_t session_ = 0, last_session_ = 0;
  int32_t count_ = 0;
  TraceRecord *next_ = nullptr, *chunk_end_ = nullptr;
  bool strayed_ = false;  // a record that was not the innermost has ended
  TraceOptions options_;
  Instant begun_;
  int64_t base_ = 0;  // the latest node's number at the start
  double rate_ = 1;   // nanoseconds a tick
  // Sites found lately, by origin and by instruction.
  std::array<Known, 512> lately_, lines_;
  std::unordered_map<Key, int32_t, Hash> site_of_;
  std::vector<TraceSite> sites_;
  std::vector<TraceChunk> chunks_;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, int32_t> name_index_;  // of texts in names_
  int32_t accumulation_ = -1;
  std::vector<int64_t> details_;
  std::vector<std::pair<int32_t, int32_t>> detailed_;
  std::deque<Block> blocks_;
  std::unordered_map<int32_t, int64_t> long_ends_;
};
extern Tracer tracer;

inline bool traces() { return modes.intercept & intercept_trace; }
// Whether only a profiler intercepts calls, so that the short ways of small operations may be
// taken.
inline bool only_traces() { return (modes.intercept & ~intercept_anomaly) == intercept_trace; }

// Writes one record around a scope, when a recording runs.
class TraceSpan {
  TraceRecord* record_ = nullptr;
  int32_t index_ = -1;
  uint32_t session_ = 0;

 protected:
  // Whether there is a recording. If so, this thread joins it.
  static bool joins();
  void open(int32_t site, int64_t ticks = 0) {
    record_ = tracer.begin(site, ticks);
    index_ = tracer.last();
    session_ = tracer.session();
  }
  TraceRecord* record() const {  // null when there is none (any more)
    return session_ == tracer.session() ? record_ : nullptr;
  }
  int32_t index() const { return index_; }
  bool is_open() const { return record_ != nullptr; }
  void forget() { record_ = nullptr; }
  int64_t close();  // returns when that was; 0 when the recording is over

 public:
  TraceSpan() = default;
  // Work of the library that is no operation.
  explicit TraceSpan(const char* call) {
    if (traces()) [[unlikely]]
      open_call(call);
  }
  ~TraceSpan() {
    if (record_) [[unlikely]]
      close();
  }
  TraceSpan(const TraceSpan&) = delete;

 private:
  void open_call(const char* call);
};

class TraceOp : public TraceSpan {
 public:
  explicit TraceOp(const OpDef& op, bool inplace = false) {
    if (traces()) [[unlikely]]
      open_op(op, inplace ? trace_inplace : uint8_t{0});
  }
  // Tag of a gradient rule's first operation, whose record begins when the rule does.
  struct First {};
  TraceOp(const OpDef& op, First) { open_first(op); }
  // To be called after the operation ran: notes its node, inputs and outputs.
  void results(const OpDef& op, std::span<const Tensor> in, const void* attrs,
               std::span<const Tensor> outs) const {
    if (is_open()) [[unlikely]]
      note_results(op, in, attrs, outs);
  }
  // Drops the record: the operation did nothing and another path is tried.
  void withdraw();

 private:
  void open_op(const OpDef& op, uint8_t flags);
  void open_first(const OpDef& op);
  void note_results(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                    std::span<const Tensor> outs) const;
};

class TraceNode : public TraceSpan {
  int64_t& turn_;

 public:
  // `turn`: when the node before it ended, as long as nothing else has happened since; else 0.
  explicit TraceNode(int64_t& turn) : turn_(turn) {}
  ~TraceNode() {
    if (is_open()) [[unlikely]]
      turn_ = close();
  }
  // `unwanted`: bits of the inputs whose gradients are not wanted.
  void open_for(const Node& node, uint64_t unwanted) {
    if (traces()) [[unlikely]]
      open_node(node, unwanted);
  }

 private:
  void open_node(const Node& node, uint64_t unwanted);
};

class TraceModule : public TraceSpan {
 public:
  // When modes.scope has become the module's.
  void enter() {
    if (traces()) [[unlikely]]
      open_module();
  }

 private:
  void open_module();
};

// For record_function, whose begin and end are two calls.
struct TraceRange {
  int32_t index = -1;
  uint32_t session = 0;
};
TraceRange open_range(std::string_view name, TraceKind kind);
void close_range(TraceRange range);

}  // namespace clew
