// Quotas of control groups, of both versions.
// May include: base.
// Invariant: a file that is missing or reads otherwise than expected sets no limit.
#include "base/processors.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

namespace clew {

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Processors' worth of time of one group: the second version has quota and period in one file
// ("max 100000" where there is none), the first in two (-1).
double quota(const std::string& group, bool second) {
  std::istringstream text(second ? first_line(group + "/cpu.max")
                                 : first_line(group + "/cpu.cfs_quota_us") + " " +
                                       first_line(group + "/cpu.cfs_period_us"));
  double time = 0, period = 0;
  if (!(text >> time >> period) || !(time > 0) || !(period > 0)) return unlimited;
  return time / period;
}

bool lists(const std::string& names, const std::string& name) {
  return ("," + names + ",").find("," + name + ",") != std::string::npos;
}

// Where a hierarchy is mounted, and which of its groups is found there.
struct Mount {
  std::string at, group;
  bool second;
};

// Lines of mountinfo: "36 35 0:30 /group /where options - type source its-options".
std::vector<Mount> mounts(const std::string& root) {
  std::vector<Mount> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string skipped, group, at, type, source, options;
    if (!(head >> skipped >> skipped >> skipped >> group >> at)) continue;
    tail >> type >> source >> options;
    if (type == "cgroup2" || (type == "cgroup" && lists(options, "cpu")))
      found.push_back({at, group == "/" ? "" : group, type == "cgroup2"});
  }
  return found;
}

// This process's group in a hierarchy, below what is mounted: lines of "3:cpu,cpuacct:/group",
// "0::/group" in the second version.
std::string group_in(const Mount& mount, const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t a = line.find(':'), b = line.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    const std::string names = line.substr(a + 1, b - a - 1);
    if (mount.second ? !names.empty() : !lists(names, "cpu")) continue;
    std::string path = line.substr(b + 1);
    // A container may see its own group as the mounted one, under the name that it has outside.
    if (path.compare(0, mount.group.size(), mount.group) != 0) return "";
    path = path.substr(mount.group.size());
    return path == "/" ? "" : path;
  }
  return "";
}

double quota_of_process(const std::string& root) {
  double least = unlimited;
  for (const Mount& mount : mounts(root)) {
    // The limits of parent groups apply as well.
    for (std::string group = group_in(mount, root);; group.erase(group.rfind('/'))) {
      least = std::min(least, quota(root + mount.at + group, mount.second));
      if (group.find('/') == std::string::npos) break;
    }
  }
  return least;
}

// The number of processors that this process may run on.
int processors() {
#ifdef __linux__
  constexpr size_t most = 8192;
  cpu_set_t* set = CPU_ALLOC(most);
  if (set) {
    const bool known = sched_getaffinity(0, CPU_ALLOC_SIZE(most), set) == 0;
    const int count = known ? CPU_COUNT_S(CPU_ALLOC_SIZE(most), set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

int usable_processors(const std::string& root) {
  const int count = processors();
  const double quota = quota_of_process(root);
  return quota < count ? std::max(1, static_cast<int>(std::lround(quota))) : count;
}

int initial_threads() {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    const long count = std::strtol(text, nullptr, 10);
    if (count > 0 && count <= std::numeric_limits<int>::max()) return static_cast<int>(count);
  }
  return usable_processors();
}

}  // namespace clew
