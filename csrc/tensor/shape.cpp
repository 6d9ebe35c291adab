// Making shapes, and finding again those that were made lately.
// May include: base, tensor/shape.h.
// Invariant: the tables own one reference to each entry; freed shapes keep their memory, since a
// kernel without the GIL may still read what another thread has just replaced.
#include "tensor/shape.h"

#include <array>
#include <utility>
#include <vector>

#include "tensor/extent.h"

namespace clew {

namespace {

// Direct-mapped: most programs use few shapes at a time.
using Table = std::array<Shape*, 256>;
Table dense_shapes;
Table strided_shapes;
std::vector<Shape*>& freed() {
  static auto* list = new std::vector<Shape*>;
  return *list;
}

class Hash {
  uint64_t h_;

 public:
  explicit Hash(int n) : h_(static_cast<uint64_t>(n)) {}
  void mix(const Dims& d) {
    for (int64_t x : d) h_ = (h_ ^ static_cast<uint64_t>(x)) * 0x9E3779B97F4A7C15u;
  }
  size_t slot() const { return static_cast<size_t>((h_ ^ h_ >> 29) * 0xC2B2AE3D27D4EB4Fu >> 56); }
};

ShapeRef make(const Dims& sizes, const Dims& strides, int64_t numel) {
  Shape* s;
  if (auto& list = freed(); !list.empty()) {
    s = list.back();
    list.pop_back();
    s->refs = 1;
  } else {
    s = new Shape();
  }
  ShapeRef made = ShapeRef::steal(s);
  s->sizes = sizes;
  s->strides = strides;
  s->numel = numel;
  return made;
}

ShapeRef keep(Shape*& slot, ShapeRef s) {
  s->incref();
  if (Shape* before = std::exchange(slot, s.get())) before->decref();
  return s;
}

}  // namespace

void Shape::destroy(Shape* s) {
  Py_CLEAR(s->size_object);
  freed().push_back(s);
}

ShapeRef Shape::dense(const Dims& sizes) {
  Hash hash(sizes.size());
  hash.mix(sizes);
  Shape*& slot = dense_shapes[hash.slot()];
  if (slot && slot->sizes == sizes) [[likely]]
    return ShapeRef::borrow(slot);
  const int64_t numel = numel_of(sizes);  // before strides, whose products are part of it
  ShapeRef s = make(sizes, contiguous_strides(sizes), numel);
  s->contiguous = s->dense_strides = true;
  return keep(slot, std::move(s));
}

ShapeRef Shape::strided(const Dims& sizes, const Dims& strides) {
  Hash hash(sizes.size());
  hash.mix(sizes);
  hash.mix(strides);
  Shape*& slot = strided_shapes[hash.slot()];
  if (slot && slot->sizes == sizes && slot->strides == strides) [[likely]]
    return ShapeRef::borrow(slot);
  const int64_t numel = numel_of(sizes);
  bool contiguous = is_contiguous(sizes, strides);
  // If these are the strides of a fresh tensor, the shape from the table of dense ones: equal
  // shapes are then mostly one object.
  if (contiguous && strides == contiguous_strides(sizes)) return keep(slot, dense(sizes));
  ShapeRef s = make(sizes, strides, numel);
  s->contiguous = contiguous;
  s->dense_strides = false;
  return keep(slot, std::move(s));
}

int64_t numel_of(const Dims& sizes) {
  Checked n = 1;
  bool zero = false;
  for (int64_t s : sizes) {
    if (s == 0)
      zero = true;
    else if (s < 0)
      fail("negative dimension ", s, " in size ", sizes);
    else
      n *= s;
  }
  require(n.fits, "size ", sizes, " has more elements than an int64 can count");
  return zero ? 0 : n.value;
}

Checked span_of(const Dims& sizes, const Dims& strides) {
  for (int64_t s : sizes)
    if (s == 0) return 0;
  Checked span = 1;
  for (int i = 0; i < sizes.size(); ++i) span += Checked(sizes[i] - 1) * strides[i];
  return span;
}

Dims contiguous_strides(const Dims& sizes) {
  Dims strides(sizes.size());
  int64_t step = 1;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= sizes[i] > 1 ? sizes[i] : 1;
  }
  return strides;
}

bool is_contiguous(const Dims& sizes, const Dims& strides) {
  int64_t expect = 1;
  for (int64_t s : sizes)
    if (s == 0) return true;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    if (sizes[i] != 1) {
      if (strides[i] != expect) return false;
      expect *= sizes[i];
    }
  }
  return true;
}

bool is_non_overlapping_and_dense(const Dims& sizes, const Dims& strides) {
  int n = sizes.size();
  SmallVec<int, 8> order;
  for (int i = 0; i < n; ++i)
    if (sizes[i] != 1) order.push_back(i);
  for (int64_t s : sizes)
    if (s == 0) return true;
  std::sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] < strides[b]; });
  int64_t expect = 1;
  for (int i : order) {
    if (strides[i] != expect) return false;
    expect *= sizes[i];
  }
  return true;
}

}  // namespace clew
