// The profiler's recorder: what ran when, on which line, and what memory it took and gave back.
// May include: base, tensor, graph.
// Invariant: everything happens with the GIL held; a span that outlives its recording writes
// nothing.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/modes.h"
#include "graph/node.h"

namespace clew {

// The numbers are those of clew.autograd._recording.Kind.
enum class TraceKind : uint8_t { op, node, range, module, call, allocation, free };
constexpr uint8_t trace_inplace = 1;
constexpr uint8_t trace_backward = 2;

struct TraceRecord {
  int64_t begin;     // in ticks, see Tracer::nanoseconds()
  int64_t end;       // 0 as long as it runs
  int64_t value;     // the node's sequence number; bytes
  int64_t extra;     // a node's inputs that want gradients, one bit each; an address
  const void* what;  // OpDef, Scope (counted) or nothing; a name otherwise is in `name`
  Origin* origin;    // counted
  int32_t name;      // index into names; -1 where `what` tells it
  int32_t parent;    // the record that it lies in; -1 at the top
  int32_t detail;    // index into details; -1 without
  uint32_t thread : 26;
  TraceKind kind : 4;
  uint8_t flags : 2;
};
static_assert(sizeof(TraceRecord) == 64);

// Memory for records. The system clears a new page at its first touch: few large pages cost less.
class TraceChunk {
  struct Free {
    void operator()(TraceRecord* p) const;
  };
  std::unique_ptr<TraceRecord, Free> records_;

 public:
  static constexpr int bits = 15;
  static constexpr size_t size = size_t{1} << bits;
  TraceChunk();
  TraceRecord& operator[](int32_t i) const { return records_.get()[i]; }
};

struct TraceOptions {
  bool shapes = false;
  bool memory = false;
};

// One recording at a time; all threads of the process write into it.
class Tracer {
 public:
  uint32_t session() const { return session_; }
  bool running() const { return running_; }
  void start(TraceOptions options);
  void stop();  // the records stay until the next start or clear()
  void clear();

  int32_t begin(TraceKind kind, const void* what, int32_t name, Origin* origin);
  void end(int32_t index);
  void memory(void* address, int64_t bytes);
  int32_t intern(std::string_view name);
  int32_t accumulation();  // the name of the nodes that add to leaves
  // Shapes, dtypes and numbers of a call; see clew.autograd._recording.
  void add_details(int32_t index, const OpDef& op, std::span<const Tensor> in, const void* attrs,
                   std::span<const Tensor> outs);
  bool shapes() const { return options_.shapes; }

  int32_t count() const { return count_; }
  TraceRecord& at(int32_t i) {
    return chunks_[static_cast<size_t>(i >> TraceChunk::bits)][i & mask];
  }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<int64_t>& details() const { return details_; }
  // Of a tick, by the monotonic clock; when it has stopped.
  int64_t nanoseconds(int64_t ticks) const;
  int64_t started = 0, stopped = 0, live_bytes = 0;

 private:
  static constexpr int mask = static_cast<int>(TraceChunk::size) - 1;
  TraceRecord& add(TraceKind kind);
  void add_shapes(std::span<const Tensor> ts);
  void add_arguments(const OpDef& op, const void* attrs);

  bool running_ = false;
  uint32_t session_ = 0;
  int32_t count_ = 0;
  int64_t started_ticks_ = 0;
  double rate_ = 1;  // nanoseconds a tick
  TraceOptions options_;
  std::vector<TraceChunk> chunks_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> name_index_;
  int32_t accumulation_ = -1;
  std::vector<int64_t> details_;
};
extern Tracer tracer;

inline bool traces() { return modes.intercept & intercept_trace; }

// Writes one record around a scope, when a recording runs.
class TraceSpan {
  int32_t index_ = -1;
  uint32_t session_ = 0;

 protected:
  void open(TraceKind kind, const void* what, int32_t name, Origin* origin);
  TraceRecord* record() const;  // null when there is none (any more)

 public:
  TraceSpan() = default;
  // Work of the library that is no operation.
  explicit TraceSpan(const char* call) {
    if (traces()) [[unlikely]]
      open_call(call);
  }
  ~TraceSpan() {
    if (index_ >= 0) [[unlikely]]
      close();
  }
  TraceSpan(const TraceSpan&) = delete;
  int32_t index() const { return index_; }

 private:
  void open_call(const char* call);
  void close();
};

class TraceOp : public TraceSpan {
 public:
  explicit TraceOp(const OpDef& op, bool inplace = false) {
    if (traces()) [[unlikely]]
      open_op(op, inplace);
  }
  // After it ran: which node it recorded, what went in and came out.
  void results(const OpDef& op, std::span<const Tensor> in, const void* attrs,
               std::span<const Tensor> outs) const {
    if (index() >= 0) [[unlikely]]
      note_results(op, in, attrs, outs);
  }

 private:
  void open_op(const OpDef& op, bool inplace);
  void note_results(const OpDef& op, std::span<const Tensor> in, const void* attrs,
                    std::span<const Tensor> outs) const;
};

class TraceNode : public TraceSpan {
 public:
  // `unwanted`: inputs, as bits, whose gradients nobody asked for.
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
