// Random tensors from Python: creation functions and the in-place fills of Tensor.
// May include: everything below python/.
// Invariant: on the meta device no numbers are drawn.
#include "kernels/random/random.h"
#include "graph/batch.h"
#include "graph/inplace.h"
#include "ops/calls/apart.h"
#include "ops/calls/random.h"
#include "ops/calls/shape.h"
#include "python/arguments.h"
#include "python/convert.h"
#include "python/creation_docs.h"
#include "python/overrides.h"
#include "tensor/kernel_frame.h"
#include "tensor/layout.h"

namespace clew::python {

namespace {

using Args = PyObject* const*;
constexpr unsigned random_options = opt_factory | opt_out | opt_generator;
constexpr unsigned random_like_options = opt_factory | opt_generator | opt_memory_format;
constexpr const char* only_input[] = {"input"};

Generator& generator_of(const Arguments& a) {
  return a.generator ? *a.generator : default_generator();
}

void need_inexact(const char* fn, DType d) {
  if (!is_inexact(d)) {
    fail(ErrorKind::NotImplemented, fn, ": dtype must be floating point or complex; got ", d);
  }
}
void fill(const Tensor& t, bool normal, Generator& g) {
  if (t.is_meta() || t.numel() == 0) return;
  NotedFresh noted(t, normal ? Fill::normal : Fill::uniform, 0, &g);
  {
    const Held held{t};
    if (normal)
      kernels::random_normal(t.nd(), 0, 1, g);
    else
      kernels::random_uniform(t.nd(), 0, 1, g);
  }
  noted.filled(t);
}
// A tensor shaped like `fresh` and filled by f; inside vmap with randomness "different" one that
// has draws of its own for every sample.
template <class F> Tensor drawn(const char* fn, const Tensor& fresh, F&& f) {
  uint32_t levels = modes.vmap ? random_levels(fn, 0) : 0;
  if (!levels) {
    f(fresh);
    return fresh;
  }
  Dims sizes = level_sizes(levels);
  for (int64_t n : fresh.sizes()) sizes.push_back(n);
  Tensor whole = empty(sizes, fresh.dtype(), fresh.device());
  f(whole);
  return make_batched(whole, levels);
}
Tensor tensor_argument(const Arguments& a, int i, const char* name) {
  PyObject* x = a.need(i, name);
  if (!is_tensor(x))
    fail_type(a.fn, "(): argument '", name, "' must be Tensor, not ", Py_TYPE(x)->tp_name);
  return borrow(x);
}

PyObject* random_shape(const char* fn, bool normal, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    Arguments a(fn, size_name, 0, random_options, args, nargs, names);
    DType d = a.dtype_or(a.out ? borrow(a.out).dtype() : default_dtype());
    need_inexact(fn, d);
    const Dims sizes = a.size(0);
    Tensor t = a.fresh(sizes, d, a.where());
    // A strided `out` is filled one by one in its memory order, so draw into the same strides.
    if (a.out && borrow(a.out).sizes() == sizes && !borrow(a.out).is_contiguous())
      t = empty_strided(sizes, borrow(a.out).strides(), d, t.device());
    return a.finish(drawn(fn, t, [&](const Tensor& x) { fill(x, normal, generator_of(a)); }));
  });
}
PyObject* rand(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return random_shape("rand", false, args, n, names);
}
PyObject* randn(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return random_shape("randn", true, args, n, names);
}

PyObject* random_like(const char* fn, bool normal, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    if (overriding)
      if (PyObject* made = overridden_by_name(fn, args, nargs, names)) return made;
    Arguments a(fn, only_input, -1, random_like_options, args, nargs, names);
    Tensor x = tensor_argument(a, 0, "input");
    need_inexact(fn, a.dtype_or(x.dtype()));
    Tensor t = fresh_like(a, x);
    return a.finish(drawn(fn, t, [&](const Tensor& y) { fill(y, normal, generator_of(a)); }));
  });
}
PyObject* rand_like(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return random_like("rand_like", false, args, n, names);
}
PyObject* randn_like(PyObject*, Args args, Py_ssize_t n, PyObject* names) {
  return random_like("randn_like", true, args, n, names);
}

bool named(PyObject* names, const char* wanted) {
  for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k) {
    if (is_named(PyTuple_GET_ITEM(names, k), wanted)) return true;
  }
  return false;
}

// randint(high, size), randint(low, high, size)
PyObject* randint(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* two[] = {"high", "size", "low"};
    static constexpr const char* three[] = {"low", "high", "size"};
    bool has_low = nargs >= 3 || named(names, "low") || (nargs == 2 && named(names, "size")) ||
                   (nargs == 1 && named(names, "high"));
    Arguments a("randint", has_low ? std::span<const char* const>(three) : two, -1,
                opt_factory | opt_out | opt_generator, args, nargs, names);
    int64_t low = has_low ? a.integer_or(0, "low", 0) : 0,
            high = a.integer(has_low ? 1 : 0, "high");
    int at_size = has_low ? 2 : 1;
    if (is_int(a.need(at_size, "size")))
      fail_type("randint(): argument 'size' must be tuple of ints, not int");
    Tensor t =
        empty(a.size(at_size), a.dtype_or(a.out ? borrow(a.out).dtype() : DType::Int64), a.where());
    return a.finish(
        drawn("randint", t, [&](const Tensor& y) { fill_randint(y, low, high, a.generator); }));
  });
}
PyObject* randint_like(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    if (overriding)
      if (PyObject* made = overridden_by_name("randint_like", args, nargs, names)) return made;
    static constexpr const char* two[] = {"input", "high"};
    static constexpr const char* three[] = {"input", "low", "high"};
    bool has_low = nargs >= 3 || named(names, "low") || (nargs == 2 && named(names, "high"));
    Arguments a("randint_like", has_low ? std::span<const char* const>(three) : two, -1,
                random_like_options, args, nargs, names);
    Tensor x = tensor_argument(a, 0, "input");
    int64_t low = has_low ? a.integer_or(1, "low", 0) : 0,
            high = a.integer(has_low ? 2 : 1, "high");
    Tensor t = fresh_like(a, x);
    return a.finish(
        drawn("randint", t, [&](const Tensor& y) { fill_randint(y, low, high, a.generator); }));
  });
}
PyObject* randperm_(PyObject*, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"n"};
    Arguments a("randperm", params, -1, opt_factory | opt_out | opt_generator, args, nargs, names);
    DType d = a.dtype_or(a.out ? borrow(a.out).dtype() : DType::Int64);
    int64_t n = a.integer(0, "n");
    Tensor t = empty({std::max<int64_t>(n, 0)}, d, a.where());
    return a.finish(drawn("randperm", t, [&](const Tensor& y) {
      Tensor rows = y.ndim() > 1 ? reshape(y, {-1, n}) : unsqueeze(y, 0);
      for (int64_t i = 0; i < rows.size(0); ++i)
        copy_into(select(rows, 0, i), randperm(n, d, a.where(), a.generator));
    }));
  });
}

// ---- in place ----

PyObject* self_again(PyObject* self) {
  Py_INCREF(self);
  return self;
}

using TwoNumbers = void (*)(const Tensor&, double, double, Generator*);
struct Fill {
  const char* name;
  const char* first;
  const char* second;
  double default_first, default_second;
  TwoNumbers run;
};
PyObject* run_fill(const Fill& f, PyObject* self, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    const char* params[] = {f.first, f.second};
    Arguments a(f.name, params, -1, opt_generator, args, nargs, names);
    f.run(borrow(self), a.real_or(0, f.first, f.default_first),
          a.real_or(1, f.second, f.default_second), a.generator);
    return self_again(self);
  });
}
constexpr Fill uniform_fill{"uniform_", "from", "to", 0, 1, clew::uniform_};
constexpr Fill normal_fill{"normal_", "mean", "std", 0, 1, clew::normal_};
constexpr Fill cauchy_fill{"cauchy_", "median", "sigma", 0, 1, clew::cauchy_};
constexpr Fill log_normal_fill{"log_normal_", "mean", "std", 1, 2, clew::log_normal_};
PyObject* method_uniform(PyObject* s, Args a, Py_ssize_t n, PyObject* k) {
  return run_fill(uniform_fill, s, a, n, k);
}
PyObject* method_normal(PyObject* s, Args a, Py_ssize_t n, PyObject* k) {
  return run_fill(normal_fill, s, a, n, k);
}
PyObject* method_cauchy(PyObject* s, Args a, Py_ssize_t n, PyObject* k) {
  return run_fill(cauchy_fill, s, a, n, k);
}
PyObject* method_log_normal(PyObject* s, Args a, Py_ssize_t n, PyObject* k) {
  return run_fill(log_normal_fill, s, a, n, k);
}

PyObject* method_exponential(PyObject* self, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"lambd"};
    Arguments a("exponential_", params, -1, opt_generator, args, nargs, names);
    exponential_(borrow(self), a.real_or(0, "lambd", 1), a.generator);
    return self_again(self);
  });
}
PyObject* method_geometric(PyObject* self, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"p"};
    Arguments a("geometric_", params, -1, opt_generator, args, nargs, names);
    geometric_(borrow(self), a.real(0, "p"), a.generator);
    return self_again(self);
  });
}
PyObject* method_bernoulli(PyObject* self, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"p"};
    Arguments a("bernoulli_", params, -1, opt_generator, args, nargs, names);
    if (a.value[0] && is_tensor(a.value[0]))
      bernoulli_(borrow(self), borrow(a.value[0]), a.generator);
    else
      bernoulli_(borrow(self), a.real_or(0, "p", 0.5), a.generator);
    return self_again(self);
  });
}
// random_(), random_(to), random_(from, to)
PyObject* method_random(PyObject* self, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* one[] = {"to", "from"};
    static constexpr const char* two[] = {"from", "to"};
    bool has_from = nargs >= 2 || named(names, "from") || (nargs == 1 && named(names, "to"));
    Arguments a("random_", has_from ? two : one, -1, opt_generator, args, nargs, names);
    std::optional<int64_t> from, to;
    if (has_from && a.has(0)) from = a.integer(0, "from");
    if (a.has(has_from ? 1 : 0)) to = a.integer(has_from ? 1 : 0, "to");
    random_(borrow(self), from, to, a.generator);
    return self_again(self);
  });
}

PyObject* method_fill(PyObject* self, Args args, Py_ssize_t nargs, PyObject* names) {
  return guarded([&] {
    static constexpr const char* params[] = {"value"};
    Arguments a("fill_", params, -1, 0, args, nargs, names);
    PyObject* v = a.need(0, "value");
    if (is_tensor(v)) {
      if (overriding && Py_TYPE(v) != tensor_type) {
        PyObject* all[2] = {self, v};
        if (PyObject* result = overridden_method("fill_", all, 2)) return result;
      }
      Tensor value = borrow(v);
      require(value.ndim() == 0,
              "fill_: fill_ only supports 0-dimension value tensor but got tensor with ",
              value.ndim(), " dimensions.");
      // Elements that share memory would each count its gradient.
      if (modes.grad && value.requires_grad()) refuse_self_overlap(borrow(self), "fill_");
      copy_(borrow(self), apart_from(value, borrow(self)));
    } else {
      fill_recorded_(borrow(self), a.number(0, "value"));
    }
    return self_again(self);
  });
}
PyObject* method_zero(PyObject* self, PyObject*) {
  return guarded([&] {
    fill_recorded_(borrow(self), Scalar(0));
    return self_again(self);
  });
}

}  // namespace

std::span<const PyMethodDef> random_methods() {
  static const PyMethodDef methods[] = {
      fast_method("uniform_", method_uniform,
                  "uniform_($self, from_=0, /, to=1, *, generator=None)\n--\n\n"
                  R"(Fills the tensor with numbers drawn uniformly from [from, to).

Args:
    from_: the lowest number.
    to: the limit.
    generator: where the random numbers come from; the default generator when None.
Returns:
    the tensor itself.

>>> bool((clew.empty(100).uniform_(1, 2) >= 1).all())
True
)"),
      fast_method("normal_", method_normal,
                  "normal_($self, mean=0, std=1, *, generator=None)\n--\n\n"
                  R"(Fills the tensor with normally distributed numbers.

Args:
    mean: their mean.
    std: their standard deviation.
    generator: where the random numbers come from; the default generator when None.
Returns:
    the tensor itself.

>>> clew.empty(2, 3).normal_(0, 1).shape
clew.Size([2, 3])
)"),
      fast_method("cauchy_", method_cauchy,
                  "cauchy_($self, median=0, sigma=1, *, generator=None)\n--\n\n"
                  R"(Fills the tensor with numbers of the Cauchy distribution.

Args:
    median: their median.
    sigma: half the distance between the quartiles.
    generator: where the random numbers come from; the default generator when None.
Returns:
    the tensor itself.

>>> clew.empty(2, 3).cauchy_().shape
clew.Size([2, 3])
)"),
      fast_method("log_normal_", method_log_normal,
                  "log_normal_($self, mean=1, std=2, *, generator=None)\n--\n\n"
                  R"(Fills the tensor with exponentials of normally distributed numbers.

Args:
    mean: the mean of the normal numbers.
    std: their standard deviation.
    generator: where the random numbers come from; the default generator when None.
Returns:
    the tensor itself.

>>> bool((clew.empty(100).log_normal_() > 0).all())
True
)"),
      fast_method("exponential_", method_exponential,
                  "exponential_($self, lambd=1, *, generator=None)\n--\n\n"
                  R"(Fills the tensor with numbers of the exponential distribution.

Args:
    lambd: the rate, one over the mean.
    generator: where the random numbers come from; the default generator when None.
Returns:
    the tensor itself.

>>> bool((clew.empty(100).exponential_(2) >= 0).all())
True
)"),
      fast_method("geometric_", method_geometric,
                  "geometric_($self, p, *, generator=None)\n--\n\n"
                  R"(Fills the tensor with numbers of trials up to the first success.

Args:
    p: the probability of a success.
    generator: where the random numbers come from; the default generator when None.
Returns:
    the tensor itself.

>>> bool((clew.empty(100).geometric_(0.5) >= 1).all())
True
)"),
      fast_method("bernoulli_", method_bernoulli,
                  "bernoulli_($self, p=0.5, *, generator=None)\n--\n\n"
                  R"(Fills the tensor with ones, with probability p, and zeros.

Args:
    p: the probability of a one: a number, or a tensor with one for each element.
    generator: where the random numbers come from; the default generator when None.
Returns:
    the tensor itself.

>>> clew.empty(3).bernoulli_(1.0)
tensor([1., 1., 1.])
)"),
      fast_method("random_", method_random,
                  "random_($self, from_=0, /, to=None, *, generator=None)\n--\n\n"
                  R"(Fills the tensor with whole numbers from [from, to).

Args:
    from_: the lowest number; with one argument alone, that is the limit.
    to: the limit; what the dtype holds when None.
    generator: where the random numbers come from; the default generator when None.
Returns:
    the tensor itself.

>>> bool((clew.empty(100).random_(2, 5) < 5).all())
True
)"),
      fast_method("fill_", method_fill,
                  "fill_($self, value)\n--\n\n"
                  R"(Writes value into every element.

>>> clew.empty(2).fill_(3)
tensor([3., 3.])
)"),
      {"zero_", method_zero, METH_NOARGS,
       "zero_($self)\n--\n\n"
       R"(Writes 0 into every element.

>>> clew.ones(2).zero_()
tensor([0., 0.])
)"},
  };
  return methods;
}

void add_random(PyObject* module) {
  static PyMethodDef functions[] = {fast_method("rand", rand, docs::rand),
                                    fast_method("randn", randn, docs::randn),
                                    fast_method("rand_like", rand_like, docs::rand_like),
                                    fast_method("randn_like", randn_like, docs::randn_like),
                                    fast_method("randint", randint, docs::randint),
                                    fast_method("randint_like", randint_like, docs::randint_like),
                                    fast_method("randperm", randperm_, docs::randperm),
                                    {}};
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace clew::python
