// Values and recipes: the contents of storages under a memory budget, and the calls that make
// them again.
// May include: base, graph, program/waiting.h.
// Invariant: a value without bytes has a recipe or lies in a file; what a recipe reads can
// itself be had, and is what the call read when it was made.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "base/smallvec.h"
#include "graph/op.h"
#include "program/gap.h"
#include "program/waiting.h"

namespace clew::program {

struct Recipe;
class Content;
struct SpillFile;  // program/budget.h

// Prefetches all cache lines of an object.
template <class T> void prefetch(const T& t) {
  for (size_t at = 0; at < sizeof(T); at += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(&t) + at);
}

// Counted (Waiting) by the storage that has its contents, and by each recipe that reads it.
class Content final : public Waiting, public InSlots<Content> {
 public:
  Storage* storage = nullptr;  // that has the contents, or waits for them; null: nothing has
  Recipe* recipe = nullptr;    // counted; null: it cannot be made again
  struct User {
    Recipe* recipe;
    uint32_t input;  // its number
  };
  SmallVec<User, 2> users;    // that read it
  int64_t used_at = 0;        // on the clock of spent nanoseconds
  SpillFile* file = nullptr;  // counted: what has the contents instead of the storage
  int64_t file_at = 0;
  size_t nbytes = 0;
  Gap* gap = nullptr;  // owned; of one without bytes
  uint32_t saved = 0;  // saved tensors that hold the storage
  uint32_t pins = 0;
  uint32_t pool_at = UINT32_MAX;
  uint32_t held_at = UINT32_MAX;
  uint32_t version = 0;  // the storage's
  uint32_t depth = 0;    // of the recipes in a row
  bool held = false;     // a reference to the storage is its own

  explicit Content(Storage* s);
  void run(Ending why) override;
  size_t waiting() const override { return has_bytes() ? 0 : 1; }
  bool has_bytes() const { return storage && storage->is_ready(); }
  void hold();
  void let_go() { let_go(storage); }
  void let_go(Storage* s);

 protected:
  ~Content() override;
};

struct Recipe : InSlots<Recipe> {
  struct Input {
    Content* value = nullptr;  // counted; null: not given, or a number
    Shape* shape = nullptr;    // owned
    union {
      int64_t offset = 0;
      std::byte number[16];  // the bytes of one small element
    };
    uint32_t place = 0;  // in value->users
    bool is_number = false;
    bool is_wrapped = false;  // it was a Python number
    DType dtype = DType::Float32;
    uint8_t flags = 0;
  };
  struct Output {
    Content* value = nullptr;  // weak: null once it is not needed any more
    Shape* shape = nullptr;    // owned
    int64_t offset = 0;
    DType dtype = DType::Float32;
  };
  uint32_t refs = 1;  // counted by its outputs' values and while it runs
  bool writes = false;
  bool spoiled = false;  // what it reads has changed
  const OpDef* op = nullptr;
  void* attrs = nullptr;                                // owned
  alignas(std::max_align_t) std::byte small_attrs[32];  // where they lie if they fit
  SmallVec<Input, 3> inputs;
  SmallVec<Output, 1> outputs;
  int64_t began = 0;  // ticks
  int64_t cost = 0;   // nanoseconds
  uint32_t depth = 0;
  uint32_t saved_before = 0;         // of a write: saved tensors that hold what is written
  uint32_t seen = 0;                 // by which search
  std::unique_ptr<uint8_t[]> draws;  // the random source's state before the call

  Recipe() = default;
  Recipe(const Recipe&) = delete;
  static void release(Recipe* r);
  void forget_inputs();

 private:
  friend class Graveyard;
  ~Recipe();
};

// Of the storage's contents, or null.
Content* content_of(const Storage* s);
// The value has no bytes: makes them.
void make_again(Content* v);
// Takes the bytes of a value with a recipe or a place in a file.
void give_up(Content* v);
// Whether values are being made again.
bool makes_again();
// The recipe is forgotten: from now on the value is a constant.
void forget_recipe(Content* v);
// Values that were computed from it lose their recipes. Those without bytes are recomputed first;
// those without an owner are dropped.
void lose_users(Content* v);
// Whether only saved tensors hold it, so that its bytes can be given up unnoticed.
bool may_be_given_up(const Content& v);
// Nanoseconds to recompute it, including missing neighbours.
double cost_of(const Content& v);
// Values with bytes that could be given up.
std::vector<Content*>& pool();
// Values that keep a reference to their storage.
std::vector<Content*>& held_values();
// How many storages wait for their bytes.
int64_t without_bytes();
// The clock of computing time in nanoseconds, and its calibration.
int64_t spent();
void know_the_clock();
// Before the storage of a value is written by anybody.
void contents_change(Content* v);
void init_retention();

}  // namespace clew::program
