// Reading /proc/meminfo and the files of control groups.
// May include: base.
// Invariant: files that are missing, as in containers, are passed over.
#include "base/available.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

namespace clew {

namespace {

// The number behind a name in a file of lines "name number ...".
int64_t entry(const std::string& text, const char* name) {
  const size_t length = std::strlen(name);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.compare(0, length, name) == 0) return std::strtoll(line.c_str() + length, nullptr, 10);
  return 0;
}
std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}
int64_t number(const std::string& path) {  // "max" and nothing: unlimited
  const std::string text = contents(path);
  if (text.empty() || text[0] < '0' || text[0] > '9') return unlimited;
  return std::strtoll(text.c_str(), nullptr, 10);
}

struct Version {
  const char *limit, *usage, *inactive_file, *active_file;
};
constexpr Version v1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ",
                     "total_active_file "};
constexpr Version v2{"memory.max", "memory.current", "inactive_file ", "active_file "};

void look_at(const std::string& group, const Version& v, int64_t swap, Available& a) {
  const int64_t limit = number(group + "/" + v.limit);
  // Version 1 says "none" with a number beyond all memory.
  if (limit > INT64_MAX / 2) return;
  const int64_t usage = number(group + "/" + v.usage);
  if (usage == unlimited) return;
  const std::string stat = contents(group + "/memory.stat");
  // Pages of files are dropped before the limit is felt.
  const int64_t files = entry(stat, v.inactive_file) + entry(stat, v.active_file);
  const int64_t left = std::clamp<int64_t>(limit - usage + files, 0, limit);
  a.total = std::min(a.total, limit);
  a.bytes = std::min(a.bytes, left);
  a.granted = std::min(a.granted, left + swap);
}

}  // namespace

Available available_memory(const std::string& root) {
  Available a;
  const std::string machine = contents(root + "/proc/meminfo");
  if (const int64_t kib = entry(machine, "MemTotal:")) a.total = kib * 1024;
  if (const int64_t kib = entry(machine, "MemAvailable:")) a.bytes = kib * 1024;
  const int64_t swap = entry(machine, "SwapFree:") * 1024;
  std::istringstream groups(contents(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/path", "0::/path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool memory = ("," + controllers + ",").find(",memory,") != std::string::npos;
    if (!memory && !controllers.empty()) continue;
    const std::string base = root + "/sys/fs/cgroup" + (memory ? "/memory" : "");
    std::string path = line.substr(second + 1);
    if (path.empty() || path[0] != '/') continue;
    if (path == "/") path.clear();
    for (;;) {
      look_at(base + path, memory ? v1 : v2, swap, a);
      if (path.empty()) break;
      path.erase(path.rfind('/'));
    }
  }
  return a;
}

}  // namespace clew
