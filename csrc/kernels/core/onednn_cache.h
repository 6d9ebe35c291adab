// Owners of oneDNN's C handles and a bounded cache of ready primitives; for onednn*.cpp only.
// May include: base; oneapi/dnnl/dnnl.h.
// Invariant: a cached primitive is shared and immutable; what one execution needs is its thread's.
#pragma once
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <initializer_list>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/parallel.h"
#include "base/scratch.h"

namespace clew::kernels::onednn {

// While one lives, oneDNN computes in the thread that calls it: work is already cut into pieces
// before it reaches oneDNN. OpenMP starts no threads; they would wait for one another when other
// processes have the processors.
class OneThread {
  const int before_ = omp_get_max_threads();

 public:
  OneThread() {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
};

struct Unsupported {};
inline void check(dnnl_status_t s) {
  if (s != dnnl_success) throw Unsupported{};
}

template <class H, dnnl_status_t (*destroy)(H)> class Handle {
  H h_ = nullptr;

 public:
  Handle() = default;
  explicit Handle(H h) : h_(h) {}
  Handle(Handle&& o) noexcept : h_(o.h_) { o.h_ = nullptr; }
  Handle& operator=(Handle&& o) noexcept {
    std::swap(h_, o.h_);
    return *this;
  }
  ~Handle() {
    if (h_) destroy(h_);
  }
  H get() const { return h_; }
  H* out() { return &h_; }
};
using Desc = Handle<dnnl_memory_desc_t, dnnl_memory_desc_destroy>;
using Attr = Handle<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;
using PrimitiveDesc = Handle<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using Memory = Handle<dnnl_memory_t, dnnl_memory_destroy>;

// The one CPU engine, and a stream for each thread.
dnnl_engine_t engine();
dnnl_stream_t stream();
// The attributes of every primitive. The scratchpad comes from the thread that runs it, because
// several threads may run one primitive at the same time. The destination becomes alpha times the
// result and beta times what it held.
Attr attributes(float alpha = 1, float beta = 0);

inline const LocalScratch scratchpad;
constexpr size_t kept_megabytes = 256;

struct Argument {
  int index;
  void* data;
};

// A primitive with its description.
class Primitive {
  PrimitiveDesc desc_;
  Handle<dnnl_primitive_t, dnnl_primitive_destroy> primitive_;
  const_dnnl_memory_desc_t scratchpad_desc_;

 public:
  explicit Primitive(dnnl_primitive_desc_t pd)
      : desc_(pd), scratchpad_desc_(dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0)) {
    check(dnnl_primitive_create(primitive_.out(), pd));
  }
  const_dnnl_memory_desc_t argument(int index) const {
    return dnnl_primitive_desc_query_md(desc_.get(), dnnl_query_exec_arg_md, index);
  }
  void run(std::initializer_list<Argument> args) const {
    Memory held[6];
    dnnl_exec_arg_t list[6];
    int n = 0;
    auto add = [&](int index, const_dnnl_memory_desc_t desc, void* data) {
      check(dnnl_memory_create(held[n].out(), desc, engine(), data));
      list[n] = {index, held[n].get()};
      ++n;
    };
    for (const Argument& a : args) add(a.index, argument(a.index), a.data);
    if (const size_t bytes = dnnl_memory_desc_get_size(scratchpad_desc_))
      add(DNNL_ARG_SCRATCHPAD, scratchpad_desc_, scratchpad.get(bytes));
    check(dnnl_primitive_execute(primitive_.get(), stream(), n, list));
    check(dnnl_stream_wait(stream()));
    scratchpad.trim(kept_megabytes);
  }
};
using PrimitiveRef = std::shared_ptr<const Primitive>;

// Key is a struct without padding. Never destroyed: a thread may be computing when the process
// ends. A primitive that cannot be made is remembered as null.
template <class Key, class Value = Primitive> class Cache {
  static_assert(std::has_unique_object_representations_v<Key>);
  static constexpr size_t limit = 512;
  struct Hash {
    size_t operator()(const Key& k) const {
      return std::hash<std::string_view>{}({reinterpret_cast<const char*>(&k), sizeof k});
    }
  };
  std::mutex lock_;
  std::unordered_map<Key, std::shared_ptr<const Value>, Hash> map_;

 public:
  template <class Make> std::shared_ptr<const Value> get(const Key& key, Make make) {
    std::lock_guard guard(lock_);
    auto found = map_.find(key);
    if (found != map_.end()) return found->second;
    if (map_.size() >= limit) map_.clear();
    std::shared_ptr<const Value> fresh;
    try {
      fresh = std::make_shared<const Value>(make(key));
    } catch (const Unsupported&) {
    }
    map_.emplace(key, fresh);
    return fresh;
  }
};

}  // namespace clew::kernels::onednn
