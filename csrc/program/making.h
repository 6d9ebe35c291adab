// What making values again shares with noting them.
// May include: base, program/recipe.h.
// Invariant: for recipe.cpp and making.cpp only.
#pragma once
#include "program/recipe.h"

namespace clew::program {

// Stays until the end of a block, also where making a value throws.
class Stays {
  Content* v_;

 public:
  explicit Stays(Content* v) : v_(v) { v->incref(); }
  ~Stays() { v_->decref(); }
  Stays(const Stays&) = delete;
};

// Nanoseconds since that number of ticks.
int64_t since(int64_t ticks);
// The clock of computing time goes on.
void spend(int64_t nanoseconds);
// Gives a recomputed value without an owner its own storage, which is kept until the room is
// needed.
void keep_in(Content* v, Storage* s);
void has_bytes_again(Content* v);

}  // namespace clew::program
