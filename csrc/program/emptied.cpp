// Giving the bytes of a storage back before its tensors die.
// May include: program, tensor.
// Invariant: as emptied.h.
#include "program/emptied.h"

#include <cstring>
#include <utility>
#include <vector>

#include "base/long_work.h"
#include "program/program.h"
#include "program/waiting.h"
#include "tensor/tensor.h"

namespace clew::program {

namespace {

// The owner of emptied storages: it cannot bring the bytes back.
class Emptied final : public Waiting {
 public:
  void run(Ending) override {
    fail(
        "this tensor's memory was given back by resize_(0) of its storage; resize the storage and "
        "write its elements before they are read");
  }
  size_t waiting() const override { return 0; }
  void keep(Storage* s) { await(s); }
};
Emptied& emptied() {
  static auto& one = *new Emptied();
  return one;
}

}  // namespace

bool is_emptied(const Storage* s) {
  return s->is_pending() && s->owner == static_cast<Waiting*>(&emptied());
}

void empty_storage(Storage* s) {
  if (is_emptied(s) || s->nbytes == 0 || s->is_meta()) return;
  if (s->is_looked_after()) settle_storage(s);
  if (!s->resizable)
    fail(
        "resize_: cannot resize storage that others hold too (NumPy, DLPack, or other processes); "
        "make a copy with clone()");
  Storage* bytes = Storage::allocate(s->nbytes, NewBytes::pending());
  s->take_bytes_of(bytes);
  bytes->state = Bytes::ready;
  emptied().keep(s);
  // Another thread's kernel may be reading them: then they go with the next ones.
  static auto& left = *new std::vector<Storage*>();
  left.push_back(bytes);
  if (at_long_work.load() > 0) return;
  for (Storage* each : std::exchange(left, {})) each->decref();
}

void fill_again(Storage* s, size_t nbytes) {
  if (nbytes < s->nbytes)
    fail("resize_: tensors over this storage need ", s->nbytes, " bytes, which it had; got ",
         nbytes);
  Storage* fresh = Storage::allocate(s->nbytes);
  std::memset(fresh->data, 0, s->nbytes);
  leave(s);
  s->take_bytes_of(fresh);
  fresh->decref();
  if (nbytes > s->nbytes) s->resize(nbytes);
}

}  // namespace clew::program
