// Generator: the random number source, mt19937 seeded with 32 bits, with the pending half of a
// pair of normals.
// May include: base, the standard library.
// Invariant: equal seeds and equal calls give equal numbers; the stream does not depend on the
// thread count.
#pragma once
#include <cstdint>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "base/mersenne.h"

namespace clew {

struct Generator {
  static constexpr int words = mersenne::words;
  static constexpr int middle = mersenne::middle;
  static constexpr uint64_t default_seed = 67280421310721ull;
  // PyTorch's layout, so that checkpoints can be exchanged: seed, words left, a flag, next word,
  // the words in 64 bits each, pending normal and its flag, and a pending float that is never used.
  static constexpr int64_t state_bytes = 5056;
  static constexpr int at_left = 8, at_seeded = 12, at_next = 16, at_words = 24,
                       at_normal = at_words + 8 * words + 8, at_valid = at_normal + 16;

  uint32_t state[words];
  uint32_t position = words;
  uint32_t has_pending = 0;
  double pending_normal = 0;
  uint64_t seed_value = 0;
  std::mutex mutex;  // held by a kernel for a whole fill

  explicit Generator(uint64_t seed = default_seed) { set_seed(seed); }

  void set_seed(uint64_t seed) {
    seed_value = seed;
    state[0] = static_cast<uint32_t>(seed);
    for (uint32_t i = 1; i < words; ++i) {
      state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
    }
    position = words;
    has_pending = 0;
    pending_normal = 0;
  }

  uint32_t next32() {
    if (position == words) advance();
    return mersenne::temper(state[position++]);
  }
  // Two words, the first one on top.
  uint64_t next64() {
    uint64_t high = next32();
    return high << 32 | next32();
  }

  static double to_double(uint64_t bits) {
    return static_cast<double>(bits & ((1ull << 53) - 1)) * 0x1p-53;
  }
  static float to_float(uint32_t bits) {
    return static_cast<float>(bits & ((1u << 24) - 1)) * 0x1p-24f;
  }

  void save(uint8_t* out) const {
    std::memset(out, 0, state_bytes);
    uint32_t left = words + 1 - position, one = 1, valid = has_pending;
    uint64_t next = position;
    std::memcpy(out, &seed_value, 8);
    std::memcpy(out + at_left, &left, 4);
    std::memcpy(out + at_seeded, &one, 4);
    std::memcpy(out + at_next, &next, 8);
    for (int i = 0; i < words; ++i) {
      uint64_t word = state[i];
      std::memcpy(out + at_words + 8 * i, &word, 8);
    }
    if (has_pending) std::memcpy(out + at_normal, &pending_normal, 8);
    std::memcpy(out + at_valid, &valid, 4);
  }
  void load(const uint8_t* in, int64_t size) {
    require(size == state_bytes, "set_state: the state must be a uint8 tensor of ", state_bytes,
            " elements; got ", size);
    uint32_t left = 0, seeded = 0, valid = 0;
    uint64_t next = 0;
    std::memcpy(&left, in + at_left, 4);
    std::memcpy(&seeded, in + at_seeded, 4);
    std::memcpy(&next, in + at_next, 8);
    std::memcpy(&valid, in + at_valid, 4);
    // One word left means that the next one comes from a new block, wherever `next` points.
    require(left >= 1 && left <= words && seeded == 1 && valid <= 1 &&
                (left == 1 ? next <= words : next == words + 1 - left),
            "set_state: these bytes are not a generator's state");
    std::memcpy(&seed_value, in, 8);
    position = words + 1 - left;
    has_pending = valid;
    std::memcpy(&pending_normal, in + at_normal, 8);
    for (int i = 0; i < words; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, in + at_words + 8 * i, 8);
      state[i] = static_cast<uint32_t>(word);
    }
  }

 private:
  void advance() {
    using mersenne::twist;
    for (int i = 0; i < words - middle; ++i)
      state[i] = state[i + middle] ^ twist(state[i], state[i + 1]);
    for (int i = words - middle; i < words - 1; ++i) {
      state[i] = state[i + middle - words] ^ twist(state[i], state[i + 1]);
    }
    state[words - 1] = state[middle - 1] ^ twist(state[words - 1], state[0]);
    position = 0;
  }
};

uint64_t random_seed();  // from the system

// The generator that functions use when none is given; its first seed comes from the system.
inline Generator& default_generator() {
  static Generator generator(random_seed());
  return generator;
}

}  // namespace clew
