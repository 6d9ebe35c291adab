// Provenance: the user's line and the module call that a node, a write or a cut came from.
// May include: base; Python.h for frames and code objects.
// Invariant: everything here is counted and happens with the GIL held; text is made only when
// asked.
#pragma once
#include <Python.h>

#include <cstdint>
#include <span>
#include <string>

namespace clew {

struct OpDef;
struct Node;
struct Storage;
class Tensor;
struct TensorObj;

// One module in the call that is in progress. Names are kept, modules are not: a node must not keep
// a module alive that may keep the node.
struct Scope {
  uint32_t refs = 1;
  Scope* parent = nullptr;  // owned
  std::string name;         // as the parent knows it: "blocks.3.attn"; of a root empty
  std::string type;         // its class

  void incref() { ++refs; }
  void decref() {
    if (--refs == 0) destroy(this);
  }

 private:
  static void destroy(Scope*);
};
std::string path_of(const Scope* scope);  // "blocks.3.attn.qkv"; empty for a root

// A place in the user's program. Equal ones are mostly one object, handed out again and again.
struct Origin {
  uint32_t refs = 1;
  int32_t instruction = 0;  // offset in bytes into the code
  const void* at = nullptr;
  PyCodeObject* code = nullptr;  // owned
  Scope* scope = nullptr;        // owned; null outside of modules
  Origin* caller = nullptr;      // owned; the frame that called, where whole stacks are kept

  void incref() { ++refs; }
  void decref() {
    if (--refs == 0) destroy(this);
  }

 private:
  static void destroy(Origin*);
};

// The line that runs now, frames of this library left out. Lent until the next call of this
// function; null where there is no Python frame or provenance is switched off.
Origin* origin_here();
inline Origin* kept(Origin* o) {
  if (o) o->incref();
  return o;
}
// The same, counted, for a node that is being made. Inside of a recorded backward it is where the
// node came from whose gradient is computed, unless a line of the program computes it.
Origin* origin_for_node();

// How a value lost its way back to what it was computed from.
enum class CutKind : uint8_t { no_grad, inference, detach, data, dtype, gradient, made };
struct Cut {
  uint32_t refs = 1;
  CutKind kind = CutKind::no_grad;
  const OpDef* op = nullptr;  // the operation, where it was one
  Origin* where = nullptr;    // owned
  Origin* source = nullptr;   // owned; where the value that was cut off came from, if recorded; of
                              // `made`, where the numbers seem to have left a graph
  Origin* region = nullptr;   // owned; where recording was switched off

  void incref() { ++refs; }
  void decref() {
    if (--refs == 0) destroy(this);
  }

 private:
  static void destroy(Cut*);
};
// Notes that t, which does not require grad, was made from `from`, which did (or, for `made`, from
// nothing).
void mark_cut(TensorObj* t, CutKind kind, const OpDef* op, const Node* from);
// For out, a plain copy or alias of t: records where the history ends, here or where t's ended.
void carry_cut(TensorObj* out, const TensorObj* t, CutKind kind);
// Notes on each input with requires_grad set that it is used here without being recorded. Returns
// the cut that mark_cut() would give to a result of leaves alone (borrowed), or null if none was
// needed.
Cut* note_unrecorded_uses(std::span<const Tensor> in, CutKind kind, const OpDef* op);
// Marks t as made from plain numbers, and says so if they look like numbers that left a graph
// before.
void mark_made(TensorObj* t);
// The cut of gradients that an unrecorded backward gave (borrowed); made once for each backward
// call.
Cut* cut_of_backward();
Cut* new_backward_cut(Origin* where);

// A tensor with a history gave its value to Python: item(), tolist(), numpy(); or to a tensor that
// has none: detach(), argmax().
struct Leaving {
  const char* how = nullptr;
  const OpDef* op = nullptr;
  Origin* where = nullptr;   // owned
  Origin* source = nullptr;  // owned; where the value was made, if that was recorded
  uint64_t sequence = 0;     // of the latest node at that time
  double value = 0;          // of a single number that left as such
  int64_t count = 0;         // of elements
};
void note_leaving(const TensorObj* t, const char* how, double value = 0);
// The last few, the latest first; fewer than `most` where there were fewer.
constexpr size_t kept_leavings = 16;
const Leaving* leaving_before(size_t rank);

// Notes the line that runs now, or another, as the last that wrote into the storage.
void note_write(Storage* storage);
void note_write(Storage* storage, Origin* writer);

// Frames whose code lies below one of these folders belong to the library.
void set_library_folder(PyObject* folder);  // a str
bool provenance_enabled();
void enable_provenance(bool on);

// "train.py:12 in forward: `h = h * mask` (module blocks.3.attn: Attention)"; for messages.
std::string describe(const Origin* o);
// The calls that led there, as a traceback; empty where they were not kept.
std::string describe_callers(const Origin* o);
// Asks a function of clew._insight.explain for a text. The text is empty if that fails, because
// another error is about to be raised.
std::string ask(const char* function, const char* format, ...);
// The same of a place.
std::string ask_of(const char* function, const Origin* o);

// Whether frames of this code are left out of places.
bool from_library(PyCodeObject* code);
// Recording was switched off here, or on again.
void note_recording(bool on);
void note_recording(Origin* off_since);  // or goes on as it was; null where it is on

}  // namespace clew
