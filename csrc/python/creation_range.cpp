// Creation functions whose elements follow from their places: ranges, the identity, triangle
// indices.
// May include: everything below python/.
// Invariant: all arguments are read and checked before memory is allocated.
#include <cmath>

#include "graph/batch.h"
#include "graph/inplace.h"
#include "kernels/core/range.h"
#include "ops/calls/arithmetic.h"
#include "ops/calls/shape.h"
#include "ops/calls/unary.h"
#include "python/arguments.h"
#include "python/convert.h"
#include "python/creation_docs.h"
#include "tensor/kernel_frame.h"

namespace clew::python {

namespace {

using Args = PyObject* const*;

// ---- ranges ----

constexpr unsigned range_options = opt_factory | opt_out;

// Fills t by position. An out= tensor with the right number of elements keeps its shape and is
// filled in row-major order.
template <class F> PyObject* filled(const Arguments& a, Tensor t, F&& fill) {
  if (!t.is_meta() && t.numel()) fill(t.nd());
  if (a.out && borrow(a.out).numel() == t.numel()) t = reshape(t, borrow(a.out).sizes());
  return a.finish(std::move(t));
}

void need_number_dtype(const char* fn, DType d) {
  if (d == DType::Bool) fail(ErrorKind::NotImplemented, fn, ": dtype must be a number's; got bool");
}

DType range_dtype(const Arguments& a, std::initializer_list<Scalar> values) {
  if (a.dtype) return *a.dtype;
  if (a.out) return borrow(a.out).dtype();
  for (const Scalar& v : values) {
    if (!v.is_integral()) return default_dtype();
  }
  return DType::Int64;
}

void check_range(const char* fn, const Scalar& start, const Scalar& end, const Scalar& step) {
  for (const Scalar* v : {&start, &end, &step}) {
    require(!v->is_complex(), fn, ": start, end and step must be real");
  }
  double a = start.to_double(), b = end.to_double(), s = step.to_double();
  require(s != 0 && s == s, fn, ": step must be nonzero");
  require(std::isfinite(a) && std::isfinite(b), fn, ": unsupported range: ", a, " -> ", b);
  require((s > 0 && b >= a) || (s < 0 && b <= a), fn,
          ": upper bound and lower bound inconsistent with step sign; got start=", a, ", end=", b,
          ", step=", s);
}

PyObject* arange(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* one[] = {"end", "start", "step"};
    static constexpr const char* more[] = {"start", "end", "step"};
    // One positional argument is the end, unless end is named beside it.
    bool single = nargs <= 1;
    for (Py_ssize_t k = 0; nargs == 1 && names && k < PyTuple_GET_SIZE(names); ++k) {
      if (is_named(PyTuple_GET_ITEM(names, k), "end")) single = false;
    }
    Arguments a("arange", single ? std::span<const char* const>(one) : more, -1, range_options,
                args, nargs, names);
    Scalar start = 0, step = 1;
    int at_start = single ? 1 : 0, at_end = single ? 0 : 1;
    if (a.has(at_start)) start = a.number(at_start, "start");
    Scalar end = a.number(at_end, "end");
    if (a.has(2)) step = a.number(2, "step");
    check_range("arange", start, end, step);
    DType d = range_dtype(a, {start, end, step});
    need_number_dtype("arange", d);
    int64_t n;
    // An int64 result has start, end and step cut to whole numbers first, as PyTorch has it.
    if (d == DType::Int64 || (start.is_integral() && end.is_integral() && step.is_integral())) {
      if (step.to_int() == 0) fail_value("arange: step must be nonzero");
      auto low = static_cast<__int128>(start.to_int()), high = static_cast<__int128>(end.to_int());
      auto s = static_cast<__int128>(step.to_int());
      __int128 count = s > 0 ? (high - low + s - 1) / s : (low - high - s - 1) / -s;
      require(count <= INT64_MAX, "arange: too many elements");
      n = static_cast<int64_t>(count);
    } else {
      double count = std::ceil((end.to_double() - start.to_double()) / step.to_double());
      require(count >= 0 && count < 9e18, "arange: too many elements: ", count);
      n = static_cast<int64_t>(count);
    }
    return filled(a, empty({n}, d, a.where()),
                  [&](const kernels::NdView& to) { kernels::range(to, start, step); });
  });
}

// PyTorch's old range, whose end is included.
PyObject* range(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"start", "end", "step"};
    if (PyErr_WarnEx(PyExc_UserWarning,
                     "clew.range includes its end, unlike Python's range; use clew.arange",
                     1) < 0) {
      throw PythonError();
    }
    Arguments a("range", params, -1, range_options, args, nargs, names);
    if (nargs == 1 && !a.value[1]) std::swap(a.value[0], a.value[1]);
    Scalar start = a.has(0) ? a.number(0, "start") : Scalar(0), end = a.number(1, "end");
    Scalar step = a.has(2) ? a.number(2, "step") : Scalar(1);
    check_range("range", start, end, step);
    DType d = a.dtype_or(a.out ? borrow(a.out).dtype() : default_dtype());
    need_number_dtype("range", d);
    double low = start.to_double(), high = end.to_double(), by = step.to_double();
    if (is_integral(d)) {  // cut to whole numbers first, as PyTorch has it
      low = std::trunc(low), high = std::trunc(high), by = std::trunc(by);
      if (by == 0) fail_value("range: step must be nonzero");
    }
    double count = (high - low) / by;
    if (itemsize(d) == 2 && !is_integral(d))  // PyTorch counts these in single precision
      count = (static_cast<float>(high) - static_cast<float>(low)) / static_cast<float>(by);
    count = std::floor(count) + 1;
    require(count < 9e18, "range: too many elements: ", count);
    return filled(a, empty({static_cast<int64_t>(count)}, d, a.where()),
                  [&](const kernels::NdView& to) { kernels::range(to, start, step); });
  });
}

DType spaced_dtype(const Arguments& a, const Scalar& start, const Scalar& end) {
  bool complex_ends = start.is_complex() || end.is_complex();
  DType inferred = complex_ends ? complex_of(default_dtype()) : default_dtype();
  if (a.dtype) need_number_dtype(a.fn, *a.dtype);
  if (a.out) need_number_dtype(a.fn, borrow(a.out).dtype());
  if (!a.dtype) return a.out ? borrow(a.out).dtype() : inferred;
  require(!complex_ends || is_complex(*a.dtype), a.fn, "(): inferred dtype ", inferred,
          " can't be safely cast to passed dtype ", *a.dtype);
  return *a.dtype;
}
// The ends may be tensors without dimensions.
void need_ends(const Arguments& a) {
  for (int i = 0; i < 2; ++i) {
    if (a.value[i] && is_tensor(a.value[i]) && borrow(a.value[i]).ndim() > 0)
      fail(a.fn, ": only supports 0-dimensional start and end tensors; got ", borrow(a.value[i]));
  }
}
int64_t steps_of(const Arguments& a) {
  int64_t n = a.integer(2, "steps");
  require(n >= 0, a.fn, ": number of steps must be non-negative; got ", n);
  return n;
}

// Inside vmap, ends that differ from sample to sample.
bool differs(const Arguments& a, int i) {
  return a.has(i) && is_tensor(a.value[i]) && is_batched(borrow(a.value[i]));
}
// An end may be a tensor, whose gradient ends here, as in PyTorch.
Scalar end_from(const Arguments& a, int i, const char* name) {
  return is_tensor(a.need(i, name)) ? number_in(a.value[i]) : a.number(i, name);
}
Tensor spaced_by_sample(const Arguments& a) {
  require(!a.out, a.fn, ": out= is shared by all samples of a vmap, whose results differ");
  auto end_of = [&](int i, const char* name) {
    if (!differs(a, i)) {
      const Scalar v = end_from(a, i, name);
      return scalar_tensor(v, v.dtype(), true);
    }
    Tensor t = detach(borrow(a.value[i]));
    require(t.ndim() == 0, a.fn, ": argument '", name, "' must have no dims; got ", t);
    return t;
  };
  const Tensor start = end_of(0, "start"), end = end_of(1, "end");
  const DType promoted =
      start.is_complex() || end.is_complex() ? complex_of(default_dtype()) : default_dtype();
  const DType d = a.dtype_or(promoted);
  const Tensor part = empty({steps_of(a)}, is_floating(d) ? d : default_dtype());
  if (part.numel() > 0) kernels::linspace(part.nd(), Scalar(0.0), Scalar(1.0));
  const Tensor rest = sub(scalar_tensor(Scalar(1), DType::Int64, true), part);
  return to_dtype(add(mul(start, rest), mul(end, part)), d);
}

PyObject* linspace(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"start", "end", "steps"};
    Arguments a("linspace", params, -1, range_options, args, nargs, names);
    need_ends(a);
    if (differs(a, 0) || differs(a, 1)) return a.finish(spaced_by_sample(a));
    Scalar start = end_from(a, 0, "start"), end = end_from(a, 1, "end");
    return filled(a, empty({steps_of(a)}, spaced_dtype(a, start, end), a.where()),
                  [&](const kernels::NdView& to) { kernels::linspace(to, start, end); });
  });
}
PyObject* logspace(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"start", "end", "steps", "base"};
    Arguments a("logspace", params, -1, range_options, args, nargs, names);
    need_ends(a);
    if (differs(a, 0) || differs(a, 1)) {
      const Tensor base = scalar_tensor(a.real_or(3, "base", 10.0), DType::Float64, true);
      return a.finish(pow(base, spaced_by_sample(a)));
    }
    Scalar start = end_from(a, 0, "start"), end = end_from(a, 1, "end");
    double base = a.real_or(3, "base", 10.0);
    return filled(a, empty({steps_of(a)}, spaced_dtype(a, start, end), a.where()),
                  [&](const kernels::NdView& to) { kernels::logspace(to, start, end, base); });
  });
}

PyObject* eye(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"n", "m"};
    Arguments a("eye", params, -1, range_options, args, nargs, names);
    int64_t n = a.integer(0, "n"), m = a.integer_or(1, "m", n);
    require(n >= 0, "eye: n must be greater or equal to 0, got ", n);
    require(m >= 0, "eye: m must be greater or equal to 0, got ", m);
    Tensor t =
        empty({n, m}, a.dtype_or(a.out ? borrow(a.out).dtype() : default_dtype()), a.where());
    const Held held{t};
    if (!t.is_meta()) kernels::eye(t.nd());
    return a.finish(std::move(t));
  });
}

PyObject* triangle(const char* fn, bool lower, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"row", "col", "offset"};
    Arguments a(fn, params, -1, opt_dtype | opt_device | opt_layout, args, nargs, names);
    int64_t rows = a.integer(0, "row"), cols = a.integer(1, "col"),
            offset = a.integer_or(2, "offset", 0);
    require(rows >= 0 && cols >= 0, fn, ": row and col must not be negative; got ", rows, " and ",
            cols);
    // Beyond the matrix an offset changes nothing more, and the sums below cannot overflow.
    offset = std::clamp(offset, -rows, cols);
    DType d = a.dtype_or(DType::Int64);
    require(d == DType::Int64 || d == DType::Int32, fn, ": dtype must be int64 or int32; got ", d);
    const int64_t count = kernels::triangle_count(rows, cols, offset, lower);
    require(count >= 0, fn, ": the triangle of ", rows, " by ", cols,
            " has more elements than an int64 can count");
    Tensor t = empty({2, count}, d, a.where());
    const Held held{t};
    if (!t.is_meta()) kernels::triangle_indices(t.nd(), cols, offset, lower);
    return a.finish(std::move(t));
  });
}
PyObject* tril_indices(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return triangle("tril_indices", true, args, n, names);
}
PyObject* triu_indices(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return triangle("triu_indices", false, args, n, names);
}

}  // namespace

void add_creation_range(PyObject* module) {
  static PyMethodDef functions[] = {fast_method("arange", arange, docs::arange),
                                    fast_method("range", range, docs::range),
                                    fast_method("linspace", linspace, docs::linspace),
                                    fast_method("logspace", logspace, docs::logspace),
                                    fast_method("eye", eye, docs::eye),
                                    fast_method("tril_indices", tril_indices, docs::tril_indices),
                                    fast_method("triu_indices", triu_indices, docs::triu_indices),
                                    {}};
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace clew::python
