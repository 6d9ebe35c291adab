// Reading and writing dense tensors at a few places.
// May include: base, kernels.
// Invariant: every place is read once and followed only if it is in range.
#include "kernels/indexing/index_few.h"

#include <cstring>

#include "base/read_once.h"

namespace clew::kernels {

namespace {

// The n places of an index; false where one is out of range.
bool own_places(int64_t* own, const DenseBlocks& b, const int64_t* index, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    own[k] = read_once(index[k]);
    if (!within(own[k], b.total)) return false;
  }
  return true;
}

// A row's bytes, where their number is known when this is compiled.
template <size_t bytes> struct Fixed {
  static void copy(char* to, const char* from, size_t) { std::memcpy(to, from, bytes); }
};
struct Any {
  static void copy(char* to, const char* from, size_t bytes) { std::memcpy(to, from, bytes); }
};
template <class F> auto with_row(size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f.template operator()<Fixed<1>>();
    case 2: return f.template operator()<Fixed<2>>();
    case 4: return f.template operator()<Fixed<4>>();
    case 8: return f.template operator()<Fixed<8>>();
    case 16: return f.template operator()<Fixed<16>>();
    case 32: return f.template operator()<Fixed<32>>();
    default: return f.template operator()<Any>();
  }
}

}  // namespace

bool take_few(char* out, const char* src, const DenseBlocks& b, const int64_t* places, int64_t n) {
  const size_t row = static_cast<size_t>(b.inner) * b.item;
  return with_row(row, [&]<class Row>() {
    for (int64_t o = 0; o < b.outer; ++o, src += static_cast<size_t>(b.total) * row) {
      for (int64_t k = 0; k < n; ++k, out += row) {
        const int64_t place = read_once(places[k]);
        if (!within(place, b.total)) return false;
        Row::copy(out, src + static_cast<size_t>(place) * row, row);
      }
    }
    return true;
  });
}

bool gather_few(char* out, const char* src, const DenseBlocks& b, const int64_t* index, int64_t n) {
  return with_row(b.item, [&]<class Item>() {
    const auto inner = static_cast<size_t>(b.inner);
    for (int64_t o = 0; o < b.outer; ++o, src += static_cast<size_t>(b.total) * inner * b.item) {
      for (int64_t k = 0; k < n; ++k) {
        for (size_t i = 0; i < inner; ++i, out += b.item) {
          const int64_t place = read_once(*index++);
          if (!within(place, b.total)) return false;
          Item::copy(out, src + (static_cast<size_t>(place) * inner + i) * b.item, b.item);
        }
      }
    }
    return true;
  });
}

bool put_few(char* dst, const char* values, bool one, const DenseBlocks& b, const int64_t* places,
             int64_t n) {
  int64_t own[few_places];
  if (!own_places(own, b, places, n)) return false;
  const int64_t inner = one ? b.inner : 1;  // the one value is as long as an element
  const size_t row = static_cast<size_t>(b.inner) * b.item, part = one ? b.item : row;
  with_row(part, [&]<class Row>() {
    for (int64_t o = 0; o < b.outer; ++o, dst += static_cast<size_t>(b.total) * row) {
      for (int64_t k = 0; k < n; ++k) {
        char* to = dst + static_cast<size_t>(own[k]) * row;
        for (int64_t i = 0; i < inner; ++i)
          Row::copy(to + static_cast<size_t>(i) * part, values, part);
        if (!one) values += part;
      }
    }
  });
  return true;
}

namespace {

// Calls f.operator()<T>() where sums of the dtype are made in it; false for others.
template <class F> bool with_sum_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32: return f.template operator()<float>();
    case DType::Float64: return f.template operator()<double>();
    // Sums wrap around.
    case DType::Int32: return f.template operator()<uint32_t>();
    case DType::Int64: return f.template operator()<uint64_t>();
    default: return false;
  }
}

// put(place in dst, place in values) for each element of an index.
template <class F>
void each_scattered(const DenseBlocks& b, const int64_t* own, int64_t n, F&& put) {
  int64_t from = 0;
  for (int64_t o = 0; o < b.outer; ++o)
    for (int64_t k = 0; k < n; ++k)
      for (int64_t i = 0; i < b.inner; ++i, ++from)
        put((o * b.total + own[from]) * b.inner + i, from);
}

}  // namespace

bool add_few(DType dtype, char* dst, const char* values, bool one, const DenseBlocks& b,
             const int64_t* places, int64_t n) {
  int64_t own[few_places];
  return with_sum_type(dtype, [&]<class T>() {
    if (!own_places(own, b, places, n)) return false;
    auto* to = reinterpret_cast<T*>(dst);
    const auto* from = reinterpret_cast<const T*>(values);
    for (int64_t o = 0; o < b.outer; ++o, to += b.total * b.inner)
      for (int64_t k = 0; k < n; ++k) {
        T* row = to + own[k] * b.inner;
        if (one) {
          for (int64_t i = 0; i < b.inner; ++i) row[i] += *from;
        } else {
          for (int64_t i = 0; i < b.inner; ++i) row[i] += from[i];
          from += b.inner;
        }
      }
    return true;
  });
}

bool scatter_few(char* dst, const char* values, const DenseBlocks& b, const int64_t* index,
                 int64_t n) {
  int64_t own[few_places];
  if (!own_places(own, b, index, b.outer * n * b.inner)) return false;
  return with_row(b.item, [&]<class Item>() {
    each_scattered(b, own, n, [&](int64_t to, int64_t from) {
      Item::copy(dst + static_cast<size_t>(to) * b.item,
                 values + static_cast<size_t>(from) * b.item, b.item);
    });
    return true;
  });
}

bool scatter_add_few(DType dtype, char* dst, const char* values, const DenseBlocks& b,
                     const int64_t* index, int64_t n) {
  int64_t own[few_places];
  return with_sum_type(dtype, [&]<class T>() {
    if (!own_places(own, b, index, b.outer * n * b.inner)) return false;
    each_scattered(b, own, n, [&](int64_t to, int64_t from) {
      reinterpret_cast<T*>(dst)[to] += reinterpret_cast<const T*>(values)[from];
    });
    return true;
  });
}

bool append_few(int64_t* out, std::span<const int64_t> index, int64_t size) {
  bool good = true;
  for (const int64_t& i : index) {
    int64_t place = read_once(i);
    if (place < 0) place += size;
    good = good && within(place, size);
    *out = *out * size + place;
    ++out;
  }
  return good;
}

bool all_within(std::span<const int64_t> index, int64_t size) {
  bool good = true;
  for (const int64_t place : index) good = good && within(place, size);
  return good;
}

int64_t mask_places(int64_t* out, std::span<const uint8_t> mask) {
  int64_t found = 0;
  for (size_t k = 0; k < mask.size(); ++k) {
    out[found] = static_cast<int64_t>(k);
    found += mask[k] != 0;
  }
  return found;
}

}  // namespace clew::kernels
