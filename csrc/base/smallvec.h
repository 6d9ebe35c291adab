// A vector of trivially copyable elements that keeps the first N inside itself; shapes and
// strides live in it.
// May include: the standard library only.
// Invariant: data() points at the inline buffer exactly when capacity is N.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>

namespace clew {

template <class T, int N> class SmallVec {
  static_assert(std::is_trivially_copyable_v<T>);
  T* data_ = inline_;
  int32_t size_ = 0;
  int32_t capacity_ = N;
  T inline_[N];

  void grow(int32_t need) {
    int32_t cap = std::max(need, capacity_ * 2);
    T* fresh = static_cast<T*>(std::malloc(sizeof(T) * static_cast<size_t>(cap)));
    if (!fresh) throw std::bad_alloc();
    std::memcpy(static_cast<void*>(fresh), data_, sizeof(T) * static_cast<size_t>(size_));
    if (data_ != inline_) std::free(data_);
    data_ = fresh;
    capacity_ = cap;
  }

 public:
  using value_type = T;
  SmallVec() {}
  SmallVec(std::initializer_list<T> xs) { assign(xs.begin(), static_cast<int>(xs.size())); }
  explicit SmallVec(int n, T fill = T{}) { resize(n, fill); }
  SmallVec(const T* p, int n) { assign(p, n); }
  SmallVec(std::span<const T> s) { assign(s.data(), static_cast<int>(s.size())); }
  SmallVec(const SmallVec& o) { assign(o.data_, o.size_); }
  SmallVec(SmallVec&& o) noexcept { take(o); }
  SmallVec& operator=(const SmallVec& o) {
    if (this != &o) assign(o.data_, o.size_);
    return *this;
  }
  SmallVec& operator=(SmallVec&& o) noexcept {
    if (this != &o) {
      if (data_ != inline_) std::free(data_);
      data_ = inline_;
      capacity_ = N;
      take(o);
    }
    return *this;
  }
  ~SmallVec() {
    if (data_ != inline_) std::free(data_);
  }
  void take(SmallVec& o) noexcept {
    size_ = o.size_;
    if (o.data_ == o.inline_) {
      for (int i = 0; i < size_; ++i) inline_[i] = o.inline_[i];
    } else {
      data_ = o.data_;
      capacity_ = o.capacity_;
      o.data_ = o.inline_;
      o.capacity_ = N;
    }
    o.size_ = 0;
  }
  void assign(const T* p, int n) {
    if (n > capacity_) {
      size_ = 0;
      grow(n);
    }
    for (int i = 0; i < n; ++i) data_[i] = p[i];
    size_ = n;
  }
  void push_back(T v) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = v;
  }
  // One more, all zeros, to be filled in where it lies.
  T& emplace_back() {
    if (size_ == capacity_) grow(size_ + 1);
    return data_[size_++] = T{};
  }
  void resize(int n, T fill = T{}) {
    if (n > capacity_) grow(n);
    for (int i = size_; i < n; ++i) data_[i] = fill;
    size_ = n;
  }
  void insert(int at, T v) {
    push_back(v);
    for (int i = size_ - 1; i > at; --i) data_[i] = data_[i - 1];
    data_[at] = v;
  }
  void erase(int at) {
    for (int i = at; i + 1 < size_; ++i) data_[i] = data_[i + 1];
    --size_;
  }
  void clear() { size_ = 0; }
  void pop_back() { --size_; }
  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](int i) { return data_[i]; }
  const T& operator[](int i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  bool operator==(const SmallVec& o) const {
    if (size_ != o.size_) return false;
    for (int i = 0; i < size_; ++i)  // short: a call of memcmp would cost more
      if (data_[i] != o.data_[i]) return false;
    return true;
  }
};

using Dims = SmallVec<int64_t, 6>;
constexpr int max_dims = 64;

}  // namespace clew
