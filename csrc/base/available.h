// How much memory this process may still take: the machine's, and that of its control groups.
// May include: the standard library only.
// Invariant: what cannot be read limits nothing.
#pragma once
#include <cstdint>
#include <string>

namespace clew {

constexpr int64_t unlimited = INT64_MAX;

struct Available {
  int64_t total = unlimited;    // the smallest limit
  int64_t bytes = unlimited;    // still to be had
  int64_t granted = unlimited;  // the same of the control groups alone, swap included
};

// Reads /proc and /sys/fs/cgroup (versions 1 and 2, all groups up to the root) under `root`.
Available available_memory(const std::string& root = "");

}  // namespace clew
