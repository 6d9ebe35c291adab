// Values and recipes: the contents of storages under a memory budget, and the calls that make
// them again.
// May include: base, graph, program/waiting.h.
// Invariant: a value without bytes has a recipe or lies in a file; what a recipe reads can
// itself be had, and is what the call read when it was made.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "base/lines.h"
#include "base/slots.h"
#include "base/smallvec.h"
#include "graph/op.h"
#include "program/waiting.h"

namespace clew::program {

struct Recipe;
class Content;
struct InFile;  // program/budget.h

// A base of T: thousands of these come and go with each step.
template <class T> struct InSlots {
  static void* operator new(size_t) { return slots().take(); }
  static void operator delete(void* p) { slots().give(p); }

 private:
  static Slots<T>& slots() {
    static auto& all = *new Slots<T>();
    return all;
  }
};

// Prefetches the first cache lines of an object; all.
template <class T> void prefetch(const T& t, size_t lines = sizeof(T) / line_bytes) {
  for (size_t k = 0; k < lines; ++k)
    __builtin_prefetch(reinterpret_cast<const char*>(&t) + k * line_bytes);
}

// Counted (Waiting) by the storage that has its contents, and by each recipe that reads it.
// Thousands of these and of recipes are in no cache when they are needed: both begin at a cache
// line and take as few as they can.
class alignas(line_bytes) Content final : public Waiting, public InSlots<Content> {
 public:
  uint32_t gap = 0;            // counted; of one without bytes (program/gap.h)
  Storage* storage = nullptr;  // that has the contents, or waits for them; null: nothing has
  Recipe* recipe = nullptr;    // counted; null: it cannot be made again
  struct User {
    Recipe* recipe;
    uint32_t input;  // its number
  };
  SmallVec<User, 2> users;  // that read it
  int64_t used_at = 0;      // on the clock of spent nanoseconds
  InFile* file = nullptr;   // owned: where the contents are instead of in the storage
  size_t nbytes = 0;
  uint32_t saved = 0;  // saved tensors that hold the storage
  uint32_t pins = 0;
  uint32_t pool_at = UINT32_MAX;
  uint32_t held_at = UINT32_MAX;
  uint32_t version = 0;  // the storage's
  uint16_t depth = 0;    // of the recipes in a row
  uint8_t pool_queue = 0;

  explicit Content(Storage* s);
  void run(Ending why) override;
  size_t waiting() const override { return has_bytes() ? 0 : 1; }
  bool has_bytes() const { return storage && storage->is_ready(); }
  // A reference to the storage is its own.
  bool is_held() const { return held_at != UINT32_MAX; }
  void hold();
  void let_go() { let_go(storage); }
  void let_go(Storage* s);

 protected:
  ~Content() override;
};

struct alignas(line_bytes) Recipe : InSlots<Recipe> {
  struct Input {
    Content* value;  // counted; null: not given, or a number
    Shape* shape;    // owned
    union {
      int64_t offset;
      std::byte number[8];  // the bytes of one small element
    };
    uint32_t place;  // in value->users
    bool is_number : 1;
    bool is_wrapped : 1;  // it was a Python number
    DType dtype;
    uint8_t flags;
  };
  struct Output {
    Content* value;  // weak: null once it is not needed any more
    Shape* shape;    // owned
    int64_t offset;
    DType dtype;
  };
  // The order spares lines of the cache: who asks for neighbours and costs reads the first three.
  uint32_t refs = 1;  // counted by its outputs' values and while it runs
  bool writes = false;
  bool spoiled = false;  // what it reads has changed
  uint16_t depth = 0;
  int64_t cost = 0;  // nanoseconds; before it has run: ticks when it began
  SmallVec<Output, 1> outputs;
  SmallVec<Input, 3> inputs;
  const OpDef* op = nullptr;
  void* attrs = nullptr;                                // owned
  std::unique_ptr<uint8_t[]> draws;                     // the random source's state before the call
  alignas(std::max_align_t) std::byte small_attrs[32];  // where they lie if they fit
  uint32_t saved_before = 0;  // of a write: saved tensors that hold what is written
  uint32_t seen = 0;          // by which search

  Recipe() = default;
  Recipe(const Recipe&) = delete;
  static void release(Recipe* r);
  void forget_inputs();

 private:
  friend class Graveyard;
  ~Recipe();
};

static_assert(sizeof(Content) == 2 * line_bytes && sizeof(Recipe) == 4 * line_bytes);
static_assert(offsetof(Recipe, inputs) == line_bytes);

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
// Nanoseconds to recompute it and those missing neighbours that would not be recomputed otherwise.
double cost_of(const Content& v);
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
