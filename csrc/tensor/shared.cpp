// Mapping files in memory: memfd where the system has it, shm_open otherwise and for names.
// May include: base, tensor/storage.h.
// Invariant: a mapping is never larger than its file, which has all its pages (no SIGBUS).
#include "tensor/shared.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

namespace clew {

namespace {

// In front of the bytes of a file with a name.
struct alignas(64) Head {
  uint64_t magic;
  int64_t users;  // in all processes, and messages on their way; changed atomically
  uint64_t keeper;
};
constexpr uint64_t head_magic = 0x636c65772d73686d;

using FileId = std::pair<dev_t, ino_t>;

struct Mapping {
  SharedFile file;
  FileId id;
  void* start = nullptr;
  size_t length = 0;
  Storage* beside = nullptr;  // owned
  bool counted = false;       // among the users of a file with a name
  Head* head() const { return static_cast<Head*>(start); }
};

// Never destroyed: tensors may die after main.
std::map<FileId, Storage*>& mapped_files() {
  static auto& files = *new std::map<FileId, Storage*>();
  return files;
}
std::vector<RemovedName>& removed() {
  static auto& names = *new std::vector<RemovedName>();
  return names;
}

Mapping& mapping_of(const Storage* s) { return *static_cast<Mapping*>(s->owner); }

void stop_using(Mapping& m) {
  if (!std::exchange(m.counted, false)) return;
  if (__atomic_sub_fetch(&m.head()->users, 1, __ATOMIC_ACQ_REL) > 0) return;
  shm_unlink(m.file.name.c_str());
  removed().push_back({m.file.name, m.head()->keeper});
}

void release_mapping(Storage* s) {
  Mapping* m = &mapping_of(s);
  auto found = mapped_files().find(m->id);
  if (found != mapped_files().end() && found->second == s) mapped_files().erase(found);
  if (!m->file.name.empty()) stop_using(*m);
  if (m->start) munmap(m->start, m->length);
  if (m->file.descriptor >= 0) close(m->file.descriptor);
  if (m->beside) m->beside->decref();
  delete m;
}

[[noreturn]] void fail_system(const char* what, size_t nbytes, int error) {
  if (error == EMFILE || error == ENFILE)
    fail("shared memory: ", what, ": too many open files. Every shared tensor keeps a file ",
         "descriptor: raise the limit (ulimit -n), share fewer and larger tensors, or call ",
         "clew.multiprocessing.set_sharing_strategy('file_system')");
  if (error == ENOSPC || error == ENOMEM || error == EFBIG)
    fail("shared memory: no room for ", nbytes, " bytes (", std::strerror(error),
         "); the memory or the file system of shared memory (/dev/shm) is full: free tensors or "
         "files there, or make it larger");
  fail("shared memory: ", what, ": ", std::strerror(error));
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

int open_nameless() {
#ifdef MFD_ALLOW_SEALING
  int fd = memfd_create("clew", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd >= 0 || errno != ENOSYS) return fd;
#endif
  static unsigned count = 0;
  std::string name = "/clew-" + std::to_string(getpid()) + "-" + std::to_string(++count);
  int shm = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (shm >= 0) shm_unlink(name.c_str());
  return shm;
}

// All pages at once: where there is no room, this fails here and does not kill a process later.
int reserve(int fd, size_t length) {
#ifdef __linux__
  int error;
  do error = posix_fallocate(fd, 0, static_cast<off_t>(length));
  while (error == EINTR);
#ifdef F_ADD_SEALS
  // Seals the file, so that no process can remove pages which others map.
  if (!error) fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
#endif
  return error;
#else
  return ftruncate(fd, static_cast<off_t>(length)) < 0 ? errno : 0;
#endif
}

FileId id_of(int fd, size_t nbytes, size_t least) {
  struct stat about;
  if (fstat(fd, &about) < 0) fail_system("a file cannot be asked for its size", nbytes, errno);
  if (static_cast<uint64_t>(about.st_size) < least)
    fail("shared memory: a file of ", about.st_size, " bytes was sent for a storage of ", nbytes,
         " bytes");
  return {about.st_dev, about.st_ino};
}

// A storage over the file; the descriptor stays the caller's.
Storage* map_file(int fd, size_t nbytes, size_t before, const FileId& id) {
  size_t length = before + nbytes;
  void* at = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) fail_system("mmap failed", nbytes, errno);
  auto* m = new Mapping();
  m->id = id;
  m->start = at;
  m->length = length;
  Storage* s = Storage::wrap(static_cast<char*>(at) + before, nbytes, m, release_mapping);
  mapped_files()[id] = s;
  return s;
}

}  // namespace

bool is_shared(const Storage* s) { return s->release == release_mapping; }
const SharedFile& shared_file(const Storage* s) { return mapping_of(s).file; }

Storage* create_shared(size_t nbytes, const std::string& name, uint64_t keeper) {
  if (nbytes == 0) return Storage::wrap(nullptr, 0, new Mapping(), release_mapping);
  if (nbytes > size_t{1} << 46) fail_system("fallocate failed", nbytes, ENOMEM);
  const bool named = !name.empty();
  Descriptor file{named ? shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                        : open_nameless()};
  if (file.fd < 0) fail_system(named ? "shm_open failed" : "memfd_create failed", nbytes, errno);
  const size_t before = named ? sizeof(Head) : 0;
  Storage* s;
  try {
    if (int error = reserve(file.fd, before + nbytes))
      fail_system("fallocate failed", nbytes, error);
    s = map_file(file.fd, nbytes, before, id_of(file.fd, nbytes, before + nbytes));
  } catch (...) {
    if (named) shm_unlink(name.c_str());
    throw;
  }
  Mapping& m = mapping_of(s);
  if (named) {
    m.file.name = name;
    m.counted = true;
    *m.head() = {head_magic, 1, keeper};
  } else {
    m.file.descriptor = std::exchange(file.fd, -1);
  }
  return s;
}

Storage* attach_shared(int descriptor, size_t nbytes) {
  Descriptor file{descriptor};
  FileId id = id_of(file.fd, nbytes, nbytes);
  if (auto found = mapped_files().find(id); found != mapped_files().end()) {
    Storage* s = found->second;
    if (s->nbytes != nbytes)
      fail("shared memory: a storage of ", s->nbytes, " bytes was sent as one of ", nbytes);
    s->incref();
    return s;
  }
  Storage* s = map_file(file.fd, nbytes, 0, id);
  mapping_of(s).file.descriptor = std::exchange(file.fd, -1);
  return s;
}

Storage* attach_shared(const std::string& name, size_t nbytes) {
  Descriptor file{shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600)};
  if (file.fd < 0) {
    if (errno == ENOENT)
      fail("shared memory: the file ", name, " of a tensor that was sent is gone; the process ",
           "that made it, and all others that used it, have ended");
    fail_system("shm_open failed", nbytes, errno);
  }
  FileId id = id_of(file.fd, nbytes, sizeof(Head) + nbytes);
  auto found = mapped_files().find(id);
  if (found != mapped_files().end()) {
    Storage* s = found->second;
    if (s->nbytes != nbytes)
      fail("shared memory: a storage of ", s->nbytes, " bytes was sent as one of ", nbytes);
    // The message's count is one too many: this process counts once.
    __atomic_sub_fetch(&mapping_of(s).head()->users, 1, __ATOMIC_ACQ_REL);
    s->incref();
    return s;
  }
  Storage* s = map_file(file.fd, nbytes, sizeof(Head), id);
  Mapping& m = mapping_of(s);
  m.file.name = name;
  if (m.head()->magic != head_magic) {
    s->decref();
    fail("shared memory: the file ", name, " was not made by clew");
  }
  m.counted = true;
  return s;
}

void lend_name(const Storage* s) {
  __atomic_add_fetch(&mapping_of(s).head()->users, 1, __ATOMIC_ACQ_REL);
}

void keep_beside(Storage* shared, Storage* other) {
  other->incref();
  mapping_of(shared).beside = other;
}

void before_fork() {
  for (auto& [id, s] : mapped_files())
    if (mapping_of(s).counted) lend_name(s);
}
// The child's mappings are as the parent's, and the counts of before_fork theirs: nothing is left
// to do but to forget the names whose removal the parent reports.
void after_fork_in_child() { removed().clear(); }

void give_names_back() {
  for (auto& [id, s] : mapped_files()) stop_using(mapping_of(s));
}

std::vector<RemovedName> removed_names() { return std::exchange(removed(), {}); }

}  // namespace clew
