// Norms, clipping and unscaling of all gradients of a model, each in one parallel pass.
// May include: everything below python/.
// Invariant: a call does all of its gradients or none of them; sums do not depend on the number of
// threads.
#include "kernels/train/gradients.h"

#include <cmath>
#include <unordered_set>
#include <vector>

#include "base/parallel.h"
#include "graph/inplace.h"
#include "python/bridge.h"
#include "tensor/kernel_frame.h"

namespace clew::python {

namespace {

constexpr int64_t chunk = 8192;

// A tensor's elements, whatever order they lie in.
struct Block {
  char* data;
  int64_t n;
  size_t width;
  const kernels::GradientLoops* loops;
};

class Blocks {
  std::vector<Block> blocks_;
  std::vector<Tensor> held_;  // other threads may release them while the loops run
  std::vector<int64_t> first_{0};

 public:
  // False when one of them needs an operation's care: its layout, dtype, graph or history.
  bool gather(PyObject* list, bool written) {
    std::unordered_set<const void*> shared;
    Py_ssize_t count = PyList_GET_SIZE(list);
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* o = PyList_GET_ITEM(list, i);
      if (!is_tensor(o)) return false;
      Tensor t = borrow(o);
      if (!is_floating(t.dtype()) || t.is_meta() || (t->flags & flag_batched)) return false;
      if (!t.is_contiguous() && !is_non_overlapping_and_dense(t.sizes(), t.strides())) return false;
      if (written) {
        if (t->flags & flag_conj) return false;
        if (t->grad_fn || t.requires_grad() || t->base) return false;
        if ((t->flags & flag_inference) && !modes.inference) return false;
        // Another tensor, or the same one again, in the same memory: one after the other. One
        // that its parameter, the list and `t` hold is here once.
        bool again = t->storage->refs > 1 || Py_REFCNT(o) > 3;
        if (again && !shared.insert(t->storage).second) return false;
      }
      if (written) settle_before_write(t);
      blocks_.push_back(
          {t->address(), t.numel(), itemsize(t.dtype()), &kernels::gradient_loops(t.dtype())});
      first_.push_back(first_.back() + (t.numel() + chunk - 1) / chunk);
      held_.push_back(std::move(t));
    }
    return true;
  }
  int64_t chunks() const { return first_.back(); }

  // f(block, data, count, number of the chunk), in parallel.
  template <class F> void each(F&& f) const {
    const Held held(held_);
    parallel_for(chunks(), std::max<int64_t>(grain_default / chunk, 1), [&](int64_t b, int64_t e) {
      size_t k = static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), b) -
                                     first_.begin() - 1);
      for (int64_t piece = b; piece < e; ++piece) {
        while (piece >= first_[k + 1]) ++k;
        const Block& block = blocks_[k];
        int64_t at = (piece - first_[k]) * chunk;
        f(block, block.data + at * static_cast<int64_t>(block.width), std::min(chunk, block.n - at),
          piece);
      }
    });
  }
  void written() const {
    for (const Tensor& t : held_) bump_version(t);
  }
};

// The gradients that the parameters have; an iterable of them, or one tensor.
PyObject* gradients_of(PyObject*, PyObject* parameters) {
  return guarded([&]() -> PyObject* {
    Ref list(checked(PyList_New(0)));
    auto take = [&](PyObject* p) {
      if (!is_tensor(p)) fail_type("expected Tensors; got ", Py_TYPE(p)->tp_name);
      auto* grad = reinterpret_cast<PyObject*>(reinterpret_cast<TensorObj*>(p)->grad);
      if (grad && PyList_Append(list.get(), grad) < 0) throw PythonError();
    };
    if (is_tensor(parameters)) {
      take(parameters);
      return list.release();
    }
    Ref items(checked(PySequence_Fast(parameters, "expected Tensors or an iterable of Tensors")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      take(PySequence_Fast_GET_ITEM(items.get(), i));
    return list.release();
  });
}

// (list, order): the norm of all as one vector, as a float; None when they or the order need an
// operation.
PyObject* norm(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* list;
    double order;
    if (!PyArg_ParseTuple(args, "O!d:_norm_of_gradients", &PyList_Type, &list, &order))
      return nullptr;
    Blocks blocks;
    if ((order != 1 && order != 2 && order != HUGE_VAL) || !blocks.gather(list, false))
      Py_RETURN_NONE;
    std::vector<double> part(static_cast<size_t>(blocks.chunks()));
    blocks.each([&](const Block& b, const char* data, int64_t n, int64_t k) {
      auto f = order == 2   ? b.loops->sum_squares
               : order == 1 ? b.loops->sum_sizes
                            : b.loops->greatest;
      part[static_cast<size_t>(k)] = f(data, n);
    });
    double all = 0;
    for (double p : part)
      if (order != HUGE_VAL)
        all += p;
      else if (p > all || p != p)
        all = p != p || all != all ? NAN : p;
    return PyFloat_FromDouble(order == 2 ? std::sqrt(all) : all);
  });
}

// (list, number): whether it was done.
template <class F> PyObject* change(PyObject* args, const char* format, F&& f) {
  return guarded([&]() -> PyObject* {
    PyObject* list;
    double number;
    if (!PyArg_ParseTuple(args, format, &PyList_Type, &list, &number)) return nullptr;
    Blocks blocks;
    if (!blocks.gather(list, true)) Py_RETURN_FALSE;
    blocks.each([&](const Block& b, char* data, int64_t n, int64_t) { f(b, data, n, number); });
    blocks.written();
    Py_RETURN_TRUE;
  });
}
PyObject* scale(PyObject*, PyObject* args) {
  return change(args, "O!d:_scale_gradients", [](const Block& b, char* data, int64_t n, double x) {
    b.loops->scale(data, n, x);
  });
}
PyObject* clamp(PyObject*, PyObject* args) {
  return change(args, "O!d:_clamp_gradients", [](const Block& b, char* data, int64_t n, double x) {
    b.loops->clamp(data, n, x);
  });
}

// (list, factor): whether all were finite before they were multiplied by it; None when they need
// operations.
PyObject* unscale(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* list;
    double factor;
    if (!PyArg_ParseTuple(args, "O!d:_unscale_gradients", &PyList_Type, &list, &factor))
      return nullptr;
    Blocks blocks;
    if (!blocks.gather(list, true)) Py_RETURN_NONE;
    std::vector<char> finite(static_cast<size_t>(blocks.chunks()), 1);
    blocks.each([&](const Block& b, char* data, int64_t n, int64_t k) {
      finite[static_cast<size_t>(k)] = b.loops->unscale(data, n, factor);
    });
    blocks.written();
    bool all = true;
    for (char f : finite) all = all && f;
    return PyBool_FromLong(all);
  });
}

PyMethodDef gradients_functions[] = {{"_gradients_of", gradients_of, METH_O, nullptr},
                                     {"_norm_of_gradients", norm, METH_VARARGS, nullptr},
                                     {"_scale_gradients", scale, METH_VARARGS, nullptr},
                                     {"_clamp_gradients", clamp, METH_VARARGS, nullptr},
                                     {"_unscale_gradients", unscale, METH_VARARGS, nullptr},
                                     {}};

}  // namespace

void add_gradients(PyObject* module) {
  if (PyModule_AddFunctions(module, gradients_functions) < 0) throw PythonError();
}

}  // namespace clew::python
