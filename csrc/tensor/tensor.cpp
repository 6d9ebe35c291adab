// Making tensor objects and the shape arithmetic every op needs.
// May include: base, base/ndview.h, tensor.
// Invariant: sizes, strides, numel and `contiguous` of a TensorObj always agree.
#include "tensor/tensor.h"

#include <vector>

#include "base/kept_blocks.h"
#include "tensor/census.h"
#include "tensor/extent.h"
#include "tensor/kernel_frame.h"

namespace clew {

PyTypeObject* tensor_type = nullptr;
void (*release_graph_state)(TensorObj*) = nullptr;
void (*forget_gathered)(TensorObj*) = nullptr;
void (*settle_storage)(Storage*) = nullptr;
bool (*defer_copy)(const Tensor& dst, const Tensor& src) = nullptr;

namespace {
// Freed objects, linked through `base`.
TensorObj* free_objects = nullptr;
size_t free_objects_count = 0;
constexpr size_t free_objects_limit = 65536;
DType default_float = DType::Float32;

// Every tensor object there is, those in the free list too; never destroyed, since tensors may die
// after main. Objects enter when they are allocated, not when they are used again, so that it
// costs the commonest operations nothing.
std::vector<TensorObj*>& all_objects() {
  static auto& all = *new std::vector<TensorObj*>();
  return all;
}
void strike(TensorObj* t) {
  std::vector<TensorObj*>& all = all_objects();
  if (t->place >= all.size() || all[t->place] != t) return;
  all[t->place] = all.back();
  all[t->place]->place = t->place;
  all.pop_back();
}

// Objects queued by release_in_turn().
struct Release {
  void (*release)(void*);
  void* what;
};
constexpr int nested_most = 32;
constinit thread_local int nested_releases = 0;
constinit thread_local std::vector<Release>* waiting_releases = nullptr;

// The collector must not run where an operation is half done: finalizers could change its tensors.
// It will at the next allocation that Python makes.
class NoCollection {
#if PY_VERSION_HEX < 0x030c0000  // later ones collect between instructions only
  bool was_on_ = PyGC_Disable() == 1;

 public:
  NoCollection() = default;
  ~NoCollection() {
    if (was_on_) PyGC_Enable();
  }
#else
 public:
  NoCollection() = default;
  ~NoCollection() {}
#endif
  NoCollection(const NoCollection&) = delete;
};

}  // namespace

void release_in_turn(void (*release)(void*), void* what) {
  if (nested_releases == nested_most) {
    if (!waiting_releases) waiting_releases = new std::vector<Release>();
    waiting_releases->push_back({release, what});
    return;
  }
  ++nested_releases;
  release(what);
  --nested_releases;
  while (nested_releases == 0 && waiting_releases && !waiting_releases->empty()) {
    const Release next = waiting_releases->back();
    waiting_releases->pop_back();
    ++nested_releases;
    next.release(next.what);
    --nested_releases;
  }
}

void enlist(TensorObj* t) {
  std::vector<TensorObj*>& all = all_objects();
  t->place = static_cast<uint32_t>(all.size());
  all.push_back(t);
}

void move_tensors(Storage* from, Storage* to) {
  to->version = from->version;
  to->moved = 1;
  std::swap(to->writer, from->writer);
  from->incref();
  for (TensorObj* t : all_objects()) {
    if (t->storage != from) continue;
    t->storage = to;
    to->incref();
    from->decref();
    if (from->refs == 1) break;
  }
  from->decref();
}

std::vector<Tensor> live_tensors() {
  std::vector<Tensor> alive;
  for (TensorObj* t : all_objects())
    // Objects in the free list have no storage; one that is being freed has a count of 0.
    if (t->storage && t->shape && Py_REFCNT(reinterpret_cast<PyObject*>(t)) > 0)
      alive.push_back(Tensor::borrow(t));
  return alive;
}

DType default_dtype() { return default_float; }
void set_default_dtype(DType dtype) { default_float = dtype; }

TensorObj* new_tensor_obj() {
  TensorObj* t;
  if (free_objects) {
    t = free_objects;
    free_objects = t->base;
    --free_objects_count;
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(t), 1);
  } else {
    const NoCollection off;
    t = PyObject_GC_New(TensorObj, tensor_type);
    if (!t) {
      PyErr_Clear();
      fail(ErrorKind::OutOfMemory, "allocation: no memory for a tensor object");
    }
    t->storage = nullptr;
    enlist(t);
  }
  t->storage = nullptr;
  t->offset = 0;
  t->dtype = DType::Float32;
  t->flags = 0;
  t->view_kind = ViewKind::plain;
  t->output_nr = 0;
  t->view_version = 0;
  t->shape = nullptr;
  t->grad_fn = nullptr;
  t->grad = nullptr;
  t->base = nullptr;
  t->extra = nullptr;
  t->cut = nullptr;
  t->dict = nullptr;
  t->weakrefs = nullptr;
  return t;
}

void free_tensor_obj(TensorObj* t) {
  PyTypeObject* type = Py_TYPE(reinterpret_cast<PyObject*>(t));
  // One of a subclass comes here tracked whatever its flag says, for instance after `__class__` was
  // set.
  if ((t->flags & flag_tracked) || type != tensor_type) PyObject_GC_UnTrack(t);
  // Done before code runs that could read values: results would be delivered to this dying tensor.
  if (t->flags & flag_gathered) [[unlikely]]
    forget_gathered(t);
  if (t->weakrefs) PyObject_ClearWeakRefs(reinterpret_cast<PyObject*>(t));
  clear_in_turn(t->dict);
  if (t->grad_fn || t->extra || t->cut) release_graph_state(t);
  if (TensorObj* grad = std::exchange(t->grad, nullptr))
    decref_in_turn(reinterpret_cast<PyObject*>(grad));
  Py_CLEAR(t->base);  // which has no base itself
  if (t->storage) {
    t->storage->decref();
    t->storage = nullptr;
  }
  if (t->shape) {
    t->shape->decref();
    t->shape = nullptr;
  }
  if (keeps_freed_blocks && type == tensor_type && free_objects_count < free_objects_limit) {
    t->base = free_objects;  // keeps its reference to the type
    free_objects = t;
    ++free_objects_count;
    return;
  }
  strike(t);
  type->tp_free(t);
  Py_DECREF(type);
}

static size_t bytes_for(int64_t numel, DType dtype) {
  const Checked bytes = Checked(numel) * byte_count(itemsize(dtype));
  if (!bytes.fits)
    fail(ErrorKind::OutOfMemory, "allocation: ", numel, " elements of ", dtype,
         " are more bytes than an int64 can count");
  return static_cast<size_t>(bytes.value);
}

// A tensor object over s, which it takes over, from its first byte on.
static Tensor over(Storage* s, DType dtype, ShapeRef shape) {
  TensorObj* t;
  try {
    t = new_tensor_obj();
  } catch (...) {
    s->decref();
    throw;
  }
  t->storage = s;
  t->dtype = dtype;
  t->shape = shape.release();
  return Tensor::steal(t);
}

Tensor empty(const Dims& sizes, DType dtype, NewBytes what) {
  if (sizes.size() > max_dims)
    fail("tensors have at most ", max_dims, " dimensions; got ", sizes.size());
  ShapeRef shape = Shape::dense(sizes);
  Storage* storage = Storage::allocate(bytes_for(shape->numel, dtype), what);
  return over(storage, dtype, std::move(shape));
}

Tensor empty_dense(Shape* like, DType dtype) {
  ShapeRef shape = Shape::dense_like(like);
  Storage* storage = Storage::allocate(static_cast<size_t>(shape->numel) * itemsize(dtype));
  return over(storage, dtype, std::move(shape));
}

Tensor empty_matrix(int64_t rows, int64_t columns, const Tensor& a) {
  const Dims& sizes = a->shape->sizes;
  if (a->shape->dense_strides && sizes.size() == 2 && sizes[0] == rows && sizes[1] == columns)
    return empty_dense_like(a, a.dtype());
  return empty({rows, columns}, a.dtype());
}

Tensor empty_strided(const Dims& sizes, const Dims& strides, DType dtype, NewBytes what) {
  require(sizes.size() == strides.size(),
          "empty_strided: sizes and strides must have equal length; got ", sizes, " and ", strides);
  if (sizes.size() > max_dims)
    fail("tensors have at most ", max_dims, " dimensions; got ", sizes.size());
  for (int64_t s : strides)
    require(s >= 0, "empty_strided: strides must not be negative; got ", strides);
  ShapeRef shape = Shape::strided(sizes, strides);
  const Checked span = span_of(sizes, strides);
  require(span.fits, "empty_strided: sizes ", sizes, " with strides ", strides,
          " reach beyond what an int64 can count");
  Storage* storage = Storage::allocate(bytes_for(span.value, dtype), what);
  return over(storage, dtype, std::move(shape));
}

void Tensor::fail_batched() {
  throw ElementsOfBatch(
      ErrorKind::Runtime,
      "vmap: the elements of a batched tensor were asked for (by .item(), bool(), an if or while, "
      "numpy(), tolist() ...), but they differ from sample to sample. Use where() instead of if, "
      "or loop over the samples without vmap");
}
void require_elements(const Tensor& t, const char* what) {
  if (t->flags & flag_batched)
    throw ElementsOfBatch(ErrorKind::Runtime,
                          concat("vmap: ", what,
                                 " cannot be called on a batched tensor, whose elements differ "
                                 "from sample to sample; use where() instead of if, or call it on "
                                 "what vmap returns"));
}

Tensor alias(const Tensor& src, const Dims& sizes, const Dims& strides, int64_t offset) {
  require_elements(src, "alias");
  ShapeRef shape = Shape::strided(sizes, strides);
  src->storage->incref();
  Tensor t = over(src->storage, src->dtype, std::move(shape));
  t->offset = src->offset + offset * static_cast<int64_t>(itemsize(src->dtype));
  t->flags = src->flags & kept_flags;
  return t;
}

Tensor over_parts(Storage* storage, Shape* shape, int64_t offset, DType dtype, uint8_t flags) {
  storage->incref();
  Tensor t = over(storage, dtype, ShapeRef::borrow(shape));
  t->offset = offset;
  t->flags = flags;
  return t;
}

Tensor alias(const Tensor& src) {
  Tensor t = over_parts(src->storage, src->shape, src->offset, src->dtype, src->flags & kept_flags);
  if (src->flags & flag_batched) [[unlikely]] {
    t->flags |= flag_batched;
    t->view_version = src->view_version;
    t->output_nr = src->output_nr;
    t->base = alias(src.view_as_base()).release();
  }
  return t;
}

Tensor scalar_tensor(const Scalar& value, DType dtype, bool wrapped) {
  static const Dims none;
  Tensor t = empty(none, dtype);
  dispatch(dtype, EveryType{}, [&]<class T>() { *t.data<T>() = value.to<T>(); });
  if (wrapped) t->flags |= flag_wrapped_number;
  return t;
}

Tensor dense_copy(const Tensor& t, DType d) {
  Tensor copy = empty(t.sizes(), d);
  copy_into(copy, t);
  return copy;
}

void fill_(const Tensor& t, const Scalar& value) {
  if (t.is_meta()) return;
  settle_before_write(t);
  const Held held{t};
  kernels::fill(t.nd(), value);
}

void copy_into(const Tensor& dst, const Tensor& src) {
  require_elements(src, "copy_into");
  if (dst.is_meta() || src.is_meta() || dst.numel() == 0) return;
  if (defer_copy(dst, src)) return;
  settle_before_write(dst);
  const Held held{dst, src};
  if (dst.sizes() == src.sizes()) {
    kernels::copy(dst.nd(), src.nd());
    return;
  }
  Dims strides = broadcast_strides(src.sizes(), src.strides(), dst.sizes());
  kernels::copy(dst.nd(),
                {src->address(), dst.sizes().data(), strides.data(), dst.ndim(), src.dtype()});
}

Tensor int64_tensor(std::span<const int64_t> values) {
  return int64_tensor(static_cast<int64_t>(values.size()), [&](std::span<int64_t> to) {
    std::copy(values.begin(), values.end(), to.begin());
  });
}
Tensor int64_tensor(std::span<const int64_t> values, Shape* shape) {
  Tensor t = empty_dense(shape, DType::Int64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}
Tensor float64_tensor(std::span<const double> values) {
  Tensor t = empty({static_cast<int64_t>(values.size())}, DType::Float64);
  std::copy(values.begin(), values.end(), t.data<double>());
  return t;
}
std::vector<int64_t> int64_values(const Tensor& t) {
  require(t.dtype() == DType::Int64 || t.dtype() == DType::Int32,
          "int64_values: the tensor must be int64 or int32; got ", t);
  require(!t.is_meta(), "int64_values: a meta tensor has no values");
  Tensor dense = empty(t.sizes(), DType::Int64);
  copy_into(dense, t);
  const auto* p = dense.data<const int64_t>();
  return {p, p + dense.numel()};
}

Scalar item(const Tensor& t) {
  require(t.numel() == 1, "item: a tensor with ", t.numel(),
          " elements cannot be converted to a number; it must have exactly one");
  require(!t.is_meta(), "item: a meta tensor has no values");
  Scalar out;
  dispatch(t.dtype(), EveryType{}, [&]<class T>() {
    T v = *t.data<T>();
    if constexpr (std::is_same_v<T, bool>)
      out = Scalar(v);
    else if constexpr (is_complex_v<T>)
      out = Scalar(convert<c128>(v));
    else if constexpr (std::is_integral_v<T>)
      out = Scalar(static_cast<std::conditional_t<std::is_same_v<T, uint64_t>, T, int64_t>>(v));
    else
      out = Scalar(static_cast<double>(static_cast<compute_t<T>>(v)));
  });
  return out;
}

void resize_(const Tensor& t, const Dims& sizes) {
  require_elements(t, "resize_");
  if (t.sizes() == sizes) return;  // its strides stay, whatever they are
  if (t->storage->is_looked_after() || (t->flags & flag_gathered)) settle_storage(t->storage);
  ShapeRef shape = Shape::dense(sizes);
  const Checked end = Checked(shape->numel) + t.storage_offset();
  require(end.fits, "resize_: size ", sizes, " at storage offset ", t.storage_offset(),
          " has more elements than an int64 can count");
  const size_t need = bytes_for(end.value, t.dtype());
  if (need > t->storage->nbytes) {
    settle_before_write(t);
    if (t->storage->refs > 1 && t->storage->resizable) {
      // Another thread's kernel may hold addresses into the old bytes: views keep those, and the
      // tensor moves to new ones.
      Storage* fresh = Storage::allocate(need, t.device());
      fresh->version = t->storage->version;
      if (fresh->data && t->storage->data)
        std::memcpy(fresh->data, t->storage->data, t->storage->nbytes);
      t->storage->decref();
      t->storage = fresh;
    } else {
      t->storage->resize(need);
    }
  }
  take_shape(t.get(), std::move(shape));
}

void grow_storage(const Tensor& t, size_t nbytes) {
  if (nbytes <= t->storage->nbytes) return;
  if (t->storage->is_looked_after() || (t->flags & flag_gathered)) settle_storage(t->storage);
  settle_before_write(t);
  Storage* from = t->storage;
  if (!from->resizable || from->refs == 1) {
    from->resize(nbytes);  // or says why it may not
    return;
  }
  Storage* to = Storage::allocate(nbytes, {from->device, from->state});
  if (to->data && from->data) std::memcpy(to->data, from->data, from->nbytes);
  move_tensors(from, to);  // what the graph or another thread's kernel holds keeps the old bytes
  to->decref();
}

void grow_to_hold(const Tensor& source, int64_t offset_bytes, const Dims& sizes,
                  const Dims& strides) {
  const Checked span = span_of(sizes, strides) * byte_count(itemsize(source.dtype()));
  const Checked end = span + offset_bytes;
  if (end.fits && span.value > 0) grow_storage(source, static_cast<size_t>(end.value));
}

void set_storage(const Tensor& t, Storage* storage, int64_t offset_bytes, const Dims& sizes,
                 const Dims& strides) {
  require_elements(t, "set_");
  if (t->storage->awaited || (t->flags & flag_gathered)) settle_storage(t->storage);
  require(offset_bytes >= 0, "set_: storage_offset must not be negative");
  const Checked span = span_of(sizes, strides) * byte_count(itemsize(t.dtype()));
  const Checked end = span + offset_bytes;
  require(end.fits, "set_: sizes ", sizes, " with strides ", strides,
          " reach beyond what an int64 can count");
  // Where there are no elements, none lies beyond the end, wherever the first would be.
  require(span.value == 0 || end.at_most(static_cast<int64_t>(storage->nbytes)), "set_: sizes ",
          sizes, " with strides ", strides, " need ", end.value, " bytes; the storage has ",
          storage->nbytes);
  ShapeRef shape = Shape::strided(sizes, strides);
  storage->incref();
  Storage* before = std::exchange(t->storage, storage);
  t->offset = offset_bytes;
  take_shape(t.get(), std::move(shape));
  before->decref();  // the owner of its memory may run Python code, which may look at t
}

int wrap_dim(int64_t dim, int ndim, const char* op) {
  int64_t n = ndim == 0 ? 1 : ndim;
  if (dim < -n || dim >= n)
    fail_index(op, ": dim must be in [", -n, ", ", n - 1, "]; got ", dim,
               " (Dimension out of range)");
  return static_cast<int>(dim < 0 ? dim + n : dim);
}

Dims broadcast_shapes(const Dims& a, const Dims& b, const char* op) {
  if (a == b) return a;
  int na = a.size(), nb = b.size(), n = std::max(na, nb);
  Dims out(n);
  for (int i = 0; i < n; ++i) {
    int64_t x = i < n - na ? 1 : a[i - (n - na)];
    int64_t y = i < n - nb ? 1 : b[i - (n - nb)];
    if (x != y && x != 1 && y != 1)
      fail(op,
           ": shapes must broadcast (sizes equal, or one of them 1, counted from the last dim); "
           "got ",
           a, " and ", b, " which differ at dim ", i, ": ", x, " and ", y);
    out[i] = x == 1 ? y : x;
  }
  return out;
}

Dims broadcast_strides(const Dims& sizes, const Dims& strides, const Dims& target) {
  int n = target.size(), lead = n - sizes.size();
  if (lead < 0) fail("cannot broadcast ", sizes, " to ", target, ": too many dims");
  Dims out(n, 0);
  for (int i = lead; i < n; ++i) {
    int64_t s = sizes[i - lead];
    if (s == target[i])
      out[i] = s == 1 ? 0 : strides[i - lead];
    else if (s != 1)
      fail("cannot broadcast ", sizes, " to ", target, ": sizes differ at dim ", i);
  }
  return out;
}

std::ostream& operator<<(std::ostream& o, const Tensor& t) {
  if (!t.defined()) return o << "None";
  return o << t.dtype() << t.sizes();
}

}  // namespace clew
