// Storages whose bytes the program has given back: storage.resize_(0).
// May include: tensor.
// Invariant: tensors over them keep their shapes; who asks for their elements is told.
#pragma once
#include <cstddef>

#include "tensor/storage.h"

namespace clew::program {

bool is_emptied(const Storage* s);
// What waits runs before. Throws where others hold the bytes.
void empty_storage(Storage* s);
// Bytes, zeros, for one that was emptied; as many as it had, or more.
void fill_again(Storage* s, size_t nbytes);

}  // namespace clew::program
