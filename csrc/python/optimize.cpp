// The fused steps of optimizers: all parameters of a group in one pass over memory.
// May include: everything below python/.
// Invariant: a parameter is updated whole or left alone and reported; nothing is recorded.
#include "kernels/optimize.h"

#include <cmath>
#include <unordered_set>
#include <vector>

#include "base/parallel.h"
#include "graph/gil.h"
#include "graph/inplace.h"
#include "python/bridge.h"

namespace clew::python {

namespace {

constexpr int most_arrays = 5;
constexpr int64_t chunk = 8192;

// One parameter's arrays, each with the same number of elements.
struct Job {
  void* array[most_arrays] = {};
  int64_t n = 0;
  int rule = 0;  // index into the rules of the call
};

// Whether t can be one of the arrays: dense, of the parameter's shape and dtype.
bool fits(PyObject* o, const Tensor& param) {
  if (!o || !is_tensor(o)) return false;
  Tensor t = borrow(o);
  return t.is_contiguous() && t.dtype() == param.dtype() && t.sizes() == param.sizes() &&
         !t.is_meta() && !t->grad_fn && !(t->flags & flag_batched) &&
         !((t->flags & flag_inference) && !modes.inference);
}

PyObject* of_state(PyObject* state, const char* key) {
  return PyDict_GetItemString(state, key);  // borrowed, null when absent
}

// Splits all jobs of a dtype over the threads, piece by piece.
template <class C, class F> void run_all(const std::vector<Job>& jobs, F&& f) {
  if (jobs.empty()) return;
  std::vector<int64_t> first{0};
  for (const Job& j : jobs) first.push_back(first.back() + (j.n + chunk - 1) / chunk);
  int64_t total = 0;
  for (const Job& j : jobs) total += j.n;
  ReleaseGil gil(total);
  parallel_for(first.back(), std::max<int64_t>(grain_default / chunk, 1),
               [&](int64_t b, int64_t e) {
                 size_t k = static_cast<size_t>(std::upper_bound(first.begin(), first.end(), b) -
                                                first.begin() - 1);
                 for (int64_t piece = b; piece < e; ++piece) {
                   while (piece >= first[k + 1]) ++k;
                   const Job& j = jobs[k];
                   int64_t at = (piece - first[k]) * chunk;
                   C* arrays[most_arrays];
                   for (int i = 0; i < most_arrays; ++i)
                     arrays[i] = j.array[i] ? static_cast<C*>(j.array[i]) + at : nullptr;
                   f(j, std::min(chunk, j.n - at), arrays);
                 }
               });
}

struct Group {
  PyObject *params, *grads, *states;
  Py_ssize_t count;
  std::vector<Job> singles, doubles;
  std::vector<Tensor> held;  // other threads may replace them while the loops run
  Ref left{checked(PyList_New(0))};
  // Memory that other tensors show too: only the first parameter in it goes with the rest, which
  // run at the same time.
  std::unordered_set<const void*> shared;

  Group(PyObject* p, PyObject* g, PyObject* s)
      : params(p), grads(g), states(s), count(PyList_GET_SIZE(p)) {
    require(PyList_GET_SIZE(g) == count && PyList_GET_SIZE(s) == count,
            "optimizer: params, grads and states must be equally many");
  }
  void leave(Py_ssize_t i) {
    Ref index(checked(PyLong_FromSsize_t(i)));
    if (PyList_Append(left.get(), index.get()) < 0) throw PythonError();
  }
  // A job with the parameter and its gradient; nothing when they do not fit.
  bool begin(Py_ssize_t i, Tensor& param, Job& job) {
    PyObject* o = PyList_GET_ITEM(params, i);
    if (!is_tensor(o)) return false;
    param = borrow(o);
    bool real = param.dtype() == DType::Float32 || param.dtype() == DType::Float64;
    if (!real || !fits(o, param) || !fits(PyList_GET_ITEM(grads, i), param)) return false;
    if (param->base || !PyDict_Check(PyList_GET_ITEM(states, i))) return false;
    if (param->storage->refs > 1 && !shared.insert(param->storage).second) return false;
    job.array[0] = param->data;
    held.push_back(param);
    held.push_back(borrow(PyList_GET_ITEM(grads, i)));
    job.array[1] = borrow(PyList_GET_ITEM(grads, i))->data;
    job.n = param.numel();
    return true;
  }
  bool add(const Tensor& param, Job& job, int slot, PyObject* o) {
    if (!fits(o, param)) return false;
    Tensor t = borrow(o);
    job.array[slot] = t->data;
    bump_version(t);
    held.push_back(std::move(t));
    return true;
  }
  void take(const Tensor& param, const Job& job) {
    (param.dtype() == DType::Float32 ? singles : doubles).push_back(job);
  }
};

// Counts one more step; the count is a 0-d float tensor, as PyTorch keeps it.
bool next_step(PyObject* o, double& step) {
  if (!o || !is_tensor(o)) return false;
  Tensor t = borrow(o);
  if (t.numel() != 1 || t.is_meta() || t->grad_fn || (t->flags & flag_batched)) return false;
  if (t.dtype() == DType::Float32)
    step = (*t.data<float>() += 1);
  else if (t.dtype() == DType::Float64)
    step = (*t.data<double>() += 1);
  else
    return false;
  bump_version(t);
  return true;
}

// (params, grads, states, lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled): the
// numbers of those that were left alone.
PyObject* adam(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *params, *grads, *states;
    double lr, beta1, beta2, eps, weight_decay;
    int amsgrad, maximize, decoupled;
    if (!PyArg_ParseTuple(args, "O!O!O!dddddppp:_fused_adam", &PyList_Type, &params, &PyList_Type,
                          &grads, &PyList_Type, &states, &lr, &beta1, &beta2, &eps, &weight_decay,
                          &amsgrad, &maximize, &decoupled))
      return nullptr;
    Group group(params, grads, states);
    std::vector<kernels::AdamRule> rules;
    double last_step = -1;
    for (Py_ssize_t i = 0; i < group.count; ++i) {
      Tensor param;
      Job job;
      PyObject* state = PyList_GET_ITEM(states, i);
      double step = 0;
      bool ok = group.begin(i, param, job) &&
                group.add(param, job, 2, of_state(state, "exp_avg")) &&
                group.add(param, job, 3, of_state(state, "exp_avg_sq")) &&
                (!amsgrad || group.add(param, job, 4, of_state(state, "max_exp_avg_sq"))) &&
                next_step(of_state(state, "step"), step);
      if (!ok) {
        group.leave(i);
        continue;
      }
      if (step != last_step) {
        last_step = step;
        rules.push_back({.beta1 = beta1,
                         .beta2 = beta2,
                         .eps = eps,
                         .weight_decay = decoupled ? 0 : weight_decay,
                         .shrink = decoupled ? 1 - lr * weight_decay : 1,
                         .step_size = lr / (1 - std::pow(beta1, step)),
                         .root = std::sqrt(1 - std::pow(beta2, step)),
                         .maximize = maximize != 0});
      }
      job.rule = static_cast<int>(rules.size()) - 1;
      bump_version(param);
      group.take(param, job);
    }
    auto run = [&]<class C>(const std::vector<Job>& jobs) {
      run_all<C>(jobs, [&](const Job& j, int64_t n, C** a) {
        kernels::optimizer_loops<C>().adam(rules[static_cast<size_t>(j.rule)], n, a[0], a[1], a[2],
                                           a[3], a[4]);
      });
    };
    run.template operator()<float>(group.singles);
    run.template operator()<double>(group.doubles);
    return group.left.release();
  });
}

// (params, grads, states, lr, momentum, dampening, weight_decay, nesterov, maximize)
PyObject* sgd(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *params, *grads, *states;
    kernels::SgdRule rule{};
    int nesterov, maximize;
    if (!PyArg_ParseTuple(args, "O!O!O!ddddpp:_fused_sgd", &PyList_Type, &params, &PyList_Type,
                          &grads, &PyList_Type, &states, &rule.lr, &rule.momentum, &rule.dampening,
                          &rule.weight_decay, &nesterov, &maximize))
      return nullptr;
    rule.nesterov = nesterov != 0;
    rule.maximize = maximize != 0;
    Group group(params, grads, states);
    for (Py_ssize_t i = 0; i < group.count; ++i) {
      Tensor param;
      Job job;
      bool ok = group.begin(i, param, job) &&
                (rule.momentum == 0 ||
                 group.add(param, job, 2, of_state(PyList_GET_ITEM(states, i), "momentum_buffer")));
      if (!ok) {
        group.leave(i);
        continue;
      }
      bump_version(param);
      group.take(param, job);
    }
    auto run = [&]<class C>(const std::vector<Job>& jobs) {
      run_all<C>(jobs, [&](const Job&, int64_t n, C** a) {
        kernels::optimizer_loops<C>().sgd(rule, n, a[0], a[1], a[2]);
      });
    };
    run.template operator()<float>(group.singles);
    run.template operator()<double>(group.doubles);
    return group.left.release();
  });
}

PyMethodDef functions[] = {
    {"_fused_adam", adam, METH_VARARGS, nullptr}, {"_fused_sgd", sgd, METH_VARARGS, nullptr}, {}};

}  // namespace

void add_optimize(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError();
}

}  // namespace clew::python
