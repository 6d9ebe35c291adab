// Storages whose bytes other processes map too: files in memory, known by a descriptor or a name.
// May include: base, tensor/storage.h.
// Invariant: a process maps a file at most once, so that equal bytes are one storage here as well.
#pragma once
#include <string>
#include <vector>

#include "tensor/storage.h"

namespace clew {

// How other processes reach a shared storage. Of no bytes: neither.
struct SharedFile {
  int descriptor = -1;  // open as long as the storage lives; of a file without a name
  std::string name;     // in the file system of shared memory, begins with '/'
};

bool is_shared(const Storage* s);
const SharedFile& shared_file(const Storage* s);  // s must be shared

// A new storage without bytes of its own in it yet; with a name, or with "" without one. `keeper`
// tells which process watches over names. Throws when memory, descriptors or
// permissions are missing. The caller owns the reference.
Storage* create_shared(size_t nbytes, const std::string& name, uint64_t keeper);
// The storage of another process. `descriptor` is taken over, also when this throws.
Storage* attach_shared(int descriptor, size_t nbytes);
// The same by name; takes over one count of lend_name.
Storage* attach_shared(const std::string& name, size_t nbytes);
// Counts a future user that will open the file by its name.
void lend_name(const Storage* s);

// Makes a shared storage keep alive another storage whose bytes are still in use.
void keep_beside(Storage* shared, Storage* other);

// Files by name count their users over all processes; the last one removes the name.
void before_fork();          // the child's use counts
void after_fork_in_child();  // which is then the child's
void give_names_back();      // at exit: this process uses none any more
struct RemovedName {
  std::string name;
  uint64_t keeper;
};
std::vector<RemovedName> removed_names();  // since the last call

}  // namespace clew
