// Shape: sizes and strides that tensors, nodes and saved tensors of one shape share.
// May include: base; Python.h for a reference that it keeps.
// Invariant: one that is handed out never changes; counted, and looked up, with the GIL held only.
#pragma once
#include <Python.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/smallvec.h"

namespace clew {

struct Shape;
using ShapeRef = Counted<Shape>;

struct Shape {
  uint32_t refs = 1;
  bool contiguous = true;
  bool dense_strides = true;  // the strides of a fresh tensor; dims of size 1 may have any stride
  int64_t numel = 1;
  Dims sizes;
  Dims strides;                     // in elements
  PyObject* size_object = nullptr;  // owned; the clew.Size of `sizes`, once requested

  // Recent ones are handed out again. dense() throws where the sizes are negative or their product
  // overflows.
  static ShapeRef dense(const Dims& sizes);
  static ShapeRef strided(const Dims& sizes, const Dims& strides);
  // Of the same sizes.
  static ShapeRef dense_like(Shape* like);

  void incref() { ++refs; }
  void decref() {
    if (--refs == 0) destroy(this);
  }

 private:
  static void destroy(Shape*);
};

inline ShapeRef Shape::dense_like(Shape* like) {
  return like->dense_strides ? ShapeRef::borrow(like) : dense(like->sizes);
}

int64_t numel_of(const Dims& sizes);  // throws on overflow
Dims contiguous_strides(const Dims& sizes);
bool is_contiguous(const Dims& sizes, const Dims& strides);
bool is_non_overlapping_and_dense(const Dims& sizes, const Dims& strides);

}  // namespace clew
