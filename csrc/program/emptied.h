// Storages whose bytes the program has given back: storage.resize_(0).
// May include: tensor.
// Invariant: tensors over them keep their shapes; reading their elements raises.
#pragma once
#include <cstddef>

#include "tensor/storage.h"

namespace clew::program {

bool is_emptied(const Storage* s);
// Runs waiting calls first. Throws if another owner holds the bytes.
void empty_storage(Storage* s);
// Gives an emptied storage zeroed bytes again: at least as many as it had.
void fill_again(Storage* s, size_t nbytes);

}  // namespace clew::program
