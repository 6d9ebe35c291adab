// TensorObj, which is at once the Python object and the C++ tensor, and Tensor, the counted
// handle to it.
// May include: base, base/ndview.h, tensor; Python.h for the object header.
// Invariant: everything here happens with the GIL held; kernels get NdViews and never a Tensor.
#pragma once
#include <Python.h>

#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/ndview.h"
#include "base/scalar.h"
#include "base/smallvec.h"
#include "tensor/shape.h"
#include "tensor/storage.h"

namespace clew {

struct Node;           // graph/node.h
struct AutogradExtra;  // graph/node.h: hooks, gradient accumulator; absent on most tensors
struct Cut;            // graph/provenance.h: where a value lost its history

enum TensorFlag : uint8_t {
  flag_requires_grad = 1,   // a leaf that asked for a gradient (a non-leaf has grad_fn instead)
  flag_wrapped_number = 2,  // a 0-d tensor made from a Python number: weak in type promotion
  flag_own_version = 4,     // reached through .data: writes do not count on the storage's version
  flag_inference = 8,       // made in inference_mode
  flag_batched = 16,        // stands for one sample of `base` inside vmap (graph/batch.h)
  flag_tracked = 32,        // the garbage collector knows it
  flag_conj = 64,           // what conj() gave, or shows part of it: a copy that is not written to
  flag_gathered = 128,      // a result that waits, known by its object (program/batching.h)
};

// How a view came to be, which decides whether an in-place write through it may be recorded.
enum class ViewKind : uint8_t { plain, no_grad, multi_output, custom_function };

// Runs what has to run before the bytes may be read or written (set by program/).
extern void (*settle_storage)(Storage*);

struct TensorObj {
  PyObject_HEAD Storage* storage;
  int64_t offset;  // bytes from the storage's first to those of the first element
  DType dtype;
  uint8_t flags;
  ViewKind view_kind;
  uint32_t output_nr;     // which output of grad_fn this is
  uint32_t view_version;  // of a view: the storage version that grad_fn belongs to
  uint32_t place;         // in the list of all tensor objects
  Shape* shape;           // owned, never null; take_shape() puts another in its place
  Node* grad_fn;          // owned; null for leaves
  TensorObj* grad;        // owned
  TensorObj* base;        // owned; the tensor this one is a view of (never itself a view)
  AutogradExtra* extra;
  Cut* cut;  // owned; null on most
  PyObject* dict;
  PyObject* weakrefs;

  // Of the first element. Only kernels and what hands bytes out ask for it.
  char* address() const {
    if (storage->is_pending()) [[unlikely]]
      settle_storage(storage);
    return storage->at(offset);
  }
};

// Told when a tensor object with flag_gathered dies (set by program/).
extern void (*forget_gathered)(TensorObj*);

extern PyTypeObject* tensor_type;

// Returns a fresh object of the Tensor type with empty shape fields; never fails but by throwing
// OutOfMemory.
TensorObj* new_tensor_obj();
void free_tensor_obj(TensorObj* t);  // the type's tp_dealloc
// Code that allocates a tensor object in another way must put it into the list of all.
void enlist(TensorObj* t);
// Lets the garbage collector track t, which may be part of a cycle from now on.
inline void track(TensorObj* t) {
  t->flags |= flag_tracked;
  auto* o = reinterpret_cast<PyObject*>(t);
  if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
}
// Releases an object whose last owner may have been a tensor or storage. Chains of any length are
// freed by a loop: beyond a few nested calls, the inner objects are queued for the outermost call.
void release_in_turn(void (*release)(void*), void* what);
inline void decref_in_turn(PyObject* o) {
  release_in_turn([](void* p) { Py_DECREF(static_cast<PyObject*>(p)); }, o);
}
// Not left to Python, which bounds the depth of nested releases by their number: from 3.13 on there
// may be more than a small stack holds.
inline void clear_in_turn(PyObject*& o) {
  if (PyObject* was = std::exchange(o, nullptr)) decref_in_turn(was);
}
// Cuts a tensor off the graph objects it owns (set by graph/).
extern void (*release_graph_state)(TensorObj* t);
inline void take_shape(TensorObj* t, ShapeRef shape) {
  if (Shape* before = std::exchange(t->shape, shape.release())) before->decref();
}

class Tensor {
  TensorObj* p_ = nullptr;

 public:
  Tensor() = default;
  Tensor(const Tensor& o) : p_(o.p_) { Py_XINCREF(reinterpret_cast<PyObject*>(p_)); }
  Tensor(Tensor&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Tensor& operator=(const Tensor& o) {
    Tensor copy(o);
    std::swap(p_, copy.p_);
    return *this;
  }
  Tensor& operator=(Tensor&& o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Tensor() { Py_XDECREF(reinterpret_cast<PyObject*>(p_)); }

  static Tensor steal(TensorObj* p) {
    Tensor t;
    t.p_ = p;
    return t;
  }
  static Tensor borrow(TensorObj* p) {
    Py_XINCREF(reinterpret_cast<PyObject*>(p));
    return steal(p);
  }
  TensorObj* release() { return std::exchange(p_, nullptr); }
  TensorObj* get() const { return p_; }
  TensorObj* operator->() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool defined() const { return p_ != nullptr; }

  DType dtype() const { return p_->dtype; }
  Device device() const { return p_->storage->device; }
  bool is_meta() const { return p_->storage->is_meta(); }
  const Dims& sizes() const { return p_->shape->sizes; }
  const Dims& strides() const { return p_->shape->strides; }
  int ndim() const { return sizes().size(); }
  int64_t size(int d) const { return sizes()[d < 0 ? d + ndim() : d]; }
  int64_t stride(int d) const { return strides()[d < 0 ? d + ndim() : d]; }
  int64_t numel() const { return p_->shape->numel; }
  bool is_contiguous() const { return p_->shape->contiguous; }
  bool is_wrapped_number() const { return p_->flags & flag_wrapped_number; }
  // A leaf that asked for it, or a recorded result; also a view whose base was rewritten by a
  // recorded operation, or was written to and then became a leaf that requires grad.
  bool requires_grad() const {
    return p_->grad_fn != nullptr || (p_->flags & flag_requires_grad) || is_stale_view();
  }
  bool is_stale_view() const {
    if (!p_->base) return false;
    if (p_->flags & flag_batched) return view_as_base().requires_grad();
    const bool recorded = p_->base->grad_fn ||
                          (p_->view_kind == ViewKind::plain && p_->storage == p_->base->storage &&
                           (p_->base->flags & flag_requires_grad));
    return recorded && p_->view_version != p_->storage->version && is_inexact(p_->dtype);
  }
  const Tensor& view_as_base() const { return reinterpret_cast<const Tensor&>(p_->base); }
  bool is_floating() const { return clew::is_floating(p_->dtype); }
  bool is_complex() const { return clew::is_complex(p_->dtype); }
  int64_t storage_offset() const { return p_->offset / static_cast<int64_t>(itemsize(p_->dtype)); }
  template <class T> T* data() const {
    if (p_->flags & flag_batched) [[unlikely]]
      fail_batched();
    return reinterpret_cast<T*>(p_->address());
  }
  kernels::NdView nd() const {
    if (p_->flags & flag_batched) [[unlikely]]
      fail_batched();
    return {p_->address(), sizes().data(), strides().data(), ndim(), p_->dtype};
  }
  bool is_same(const Tensor& o) const { return p_ == o.p_; }
  bool has_sizes_of(const Tensor& o) const {
    return p_->shape == o.p_->shape || sizes() == o.sizes();
  }

 private:
  [[noreturn]] static void fail_batched();
};
static_assert(sizeof(Tensor) == sizeof(TensorObj*));

// Thrown where code asks for the elements of a tensor that stands for many samples.
struct ElementsOfBatch : Error {
  using Error::Error;
};
// Call before writing bytes at once: waiting calls may read them, and recipes may recompute values
// from their old contents.
inline void settle_before_write(const Tensor& t) {
  if (t->storage->is_looked_after()) [[unlikely]]
    settle_storage(t->storage);
}

// Throws ElementsOfBatch when t is batched; `what` is the public name of what reads.
void require_elements(const Tensor& t, const char* what);

// Uninitialised, contiguous (or with the given strides).
Tensor empty(const Dims& sizes, DType dtype, NewBytes what = Device::CPU);
Tensor empty_strided(const Dims& sizes, const Dims& strides, DType dtype,
                     NewBytes what = Device::CPU);
// The same on the CPU in the shape of a contiguous tensor, whose numel is known to have fitted.
Tensor empty_dense(Shape* like, DType dtype);
inline Tensor empty_dense_like(const Tensor& a, DType dtype) {
  return empty_dense(a->shape, dtype);
}
// A matrix on the CPU of a's dtype, and perhaps in its shape.
Tensor empty_matrix(int64_t rows, int64_t columns, const Tensor& a);
// Another tensor object over the same storage, without history: no grad_fn, not requiring grad.
Tensor alias(const Tensor& t, const Dims& sizes, const Dims& strides,
             int64_t offset_elements_from_t = 0);
Tensor alias(const Tensor& t);
constexpr uint8_t kept_flags = flag_own_version | flag_inference | flag_wrapped_number | flag_conj;
// The same, made from the parts of a tensor.
Tensor over_parts(Storage* storage, Shape* shape, int64_t offset, DType dtype, uint8_t flags);
// A CPU 0-d tensor with the value; `wrapped` marks it as a Python number for promotion.
Tensor scalar_tensor(const Scalar& value, DType dtype, bool wrapped = false);
// How code outside of kernels passes values in and out, with item(): a vector of n numbers that
// fill(std::span<int64_t>) writes, or of given ones; the numbers of a tensor of int64 or int32, in
// order; those of a contiguous tensor, which another thread may change meanwhile.
template <class F> Tensor int64_tensor(int64_t n, F&& fill) {
  Tensor t = empty({n}, DType::Int64);
  fill(std::span<int64_t>(t.data<int64_t>(), static_cast<size_t>(n)));
  return t;
}
Tensor int64_tensor(std::span<const int64_t> values);
Tensor int64_tensor(std::span<const int64_t> values, Shape* shape);  // contiguous
template <class T> std::span<const T> values_of(const Tensor& t) {
  return {t.data<const T>(), static_cast<size_t>(t.numel())};
}
template <class T = char> const T* data_or_null(const Tensor& t) {
  return t ? t.data<const T>() : nullptr;
}
Tensor float64_tensor(std::span<const double> values);
std::vector<int64_t> int64_values(const Tensor& t);
// Writes value into every element; not recorded.
void fill_(const Tensor& t, const Scalar& value);
// dst[...] = src[...] converting dtype, broadcasting src; not recorded, does not bump versions.
void copy_into(const Tensor& dst, const Tensor& src);
// What kernels read that want rows in order, or another dtype; not recorded. A fresh contiguous
// tensor of t's elements, in dtype d; t itself, or an undefined one, where it lies so already; t
// itself where only the dtype must fit.
Tensor dense_copy(const Tensor& t, DType d);
inline Tensor dense_copy(const Tensor& t) { return dense_copy(t, t.dtype()); }
inline Tensor dense(const Tensor& t, DType d) {
  return !t || (t.dtype() == d && t.is_contiguous()) ? t : dense_copy(t, d);
}
inline Tensor dense(const Tensor& t) { return !t || t.is_contiguous() ? t : dense_copy(t); }
inline Tensor converted(const Tensor& t, DType d) { return t.dtype() == d ? t : dense_copy(t, d); }
// Lets the copy wait if it should, as a call does; returns whether it waits (set by program/).
extern bool (*defer_copy)(const Tensor& dst, const Tensor& src);
// The value of a one-element tensor.
Scalar item(const Tensor& t);
// Gives `t` other sizes in place (contiguous), growing its storage when needed; not recorded.
void resize_(const Tensor& t, const Dims& sizes);
// Gives the storage of t so many bytes if it has fewer; all tensors over it go on sharing them.
void grow_storage(const Tensor& t, size_t nbytes);
// The same, for a tensor of these sizes and strides over it, of source's dtype.
void grow_to_hold(const Tensor& source, int64_t offset_bytes, const Dims& sizes,
                  const Dims& strides);
// Makes `t` look at another storage, shape included; not recorded.
void set_storage(const Tensor& t, Storage* storage, int64_t offset_bytes, const Dims& sizes,
                 const Dims& strides);
// Has every tensor over `from` look at the same place of `to` instead, which takes over its
// version. What the graph saved stays with the bytes that it saved.
void move_tensors(Storage* from, Storage* to);
DType default_dtype();
void set_default_dtype(DType dtype);

// Maps a possibly negative dim into [0, ndim); a 0-d tensor accepts -1 and 0. Throws IndexError
// naming `op`.
int wrap_dim(int64_t dim, int ndim, const char* op);
Dims broadcast_shapes(const Dims& a, const Dims& b, const char* op);
// Strides that make a tensor of `sizes`/`strides` look like `target` (0 where it broadcasts).
Dims broadcast_strides(const Dims& sizes, const Dims& strides, const Dims& target);
std::ostream& operator<<(std::ostream& o, const Tensor& t);  // "float32[2, 3]", for error messages

}  // namespace clew
