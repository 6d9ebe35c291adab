// The fused steps of optimizers: all parameters of a group in one pass over memory.
// May include: everything below python/.
// Invariant: a parameter is updated whole or left alone and reported; nothing is recorded.
#include <cmath>
#include <unordered_set>
#include <vector>

#include "graph/inplace.h"
#include "graph/trace.h"
#include "ops/calls/lists.h"
#include "python/bridge.h"
#include "tensor/bits.h"

namespace clew::python {

namespace {

constexpr int most_states = kernels::most_optimizer_arrays - 2;

StepArrays::Part part_of(const TensorObj* t) { return {t->storage, t->offset}; }

// The keys of the states, made once: looking them up compares pointers.
struct Keys {
  PyObject *step, *exp_avg, *exp_avg_sq, *max_exp_avg_sq, *momentum_buffer, *square_avg, *grad_avg,
      *sum, *mu_product, *exp_inf, *acc_delta;
} keys;

// Whether t can be one of the arrays: of the parameter's shape, dtype and layout.
bool fits(PyObject* o, TensorObj* param) {
  if (!o || !is_tensor(o)) return false;
  auto* t = reinterpret_cast<TensorObj*>(o);
  settle_before_write(borrow(o));
  return t->dtype == param->dtype && t->shape->sizes == param->shape->sizes &&
         t->shape->strides == param->shape->strides && t->storage->is_ready() && !t->grad_fn &&
         !(t->flags & (flag_batched | flag_conj)) &&
         !((t->flags & flag_inference) && !modes.inference);
}

// The one element of a tensor that counts or multiplies, or null.
template <class F> bool change_number(PyObject* o, F&& f) {
  if (!o || !is_tensor(o)) return false;
  Tensor t = borrow(o);
  if (t.numel() != 1 || t.is_meta() || t->grad_fn || (t->flags & flag_batched)) return false;
  settle_before_write(t);
  auto change = [&]<class T>(T x) {
    const std::span<std::byte> bytes = bytes_of(t);
    std::memcpy(&x, bytes.data(), sizeof x);
    f(x);
    std::memcpy(bytes.data(), &x, sizeof x);
  };
  if (t.dtype() == DType::Float32)
    change(float{});
  else if (t.dtype() == DType::Float64)
    change(double{});
  else
    return false;
  if (!(t->flags & flag_own_version)) ++t->storage->version;  // not attributed to a line
  return true;
}

// One step of a group. `params` is a list, `states` the optimizer's dict, or None for rules without
// states.
template <class Rule> class Group {
  PyObject *params_, *states_;
  std::vector<Rule> rules_;
  std::vector<StepArrays> jobs_;
  // Keeps the storages alive: other threads, or code run while states are looked up, may replace or
  // resize the tensors before the loops run.
  std::vector<Storage*> held_;  // owned
  std::vector<Storage*> written_;
  std::unordered_set<const void*> many_;
  PyObject* left_ = nullptr;            // owned
  Origin* here_ = kept(origin_here());  // owned

  // False if the memory is written by an earlier job already. Jobs run at the same time, so a
  // second write to it runs after them.
  bool first_in(Storage* memory) {
    if (PyList_GET_SIZE(params_) > 32) return many_.insert(memory).second;
    for (Storage* s : written_)
      if (s == memory) return false;
    written_.push_back(memory);
    return true;
  }
  void leave(Py_ssize_t i) {
    if (!left_) left_ = checked(PyList_New(0));
    Ref index(checked(PyLong_FromSsize_t(i)));
    if (PyList_Append(left_, index.get()) < 0) throw PythonError();
  }
  bool parameter(PyObject* o, StepArrays& job) {
    auto* param = reinterpret_cast<TensorObj*>(o);
    if (!is_floating(param->dtype) || !fits(o, param) || param->base ||
        !fits(reinterpret_cast<PyObject*>(param->grad), param))
      return false;
    if (!param->shape->contiguous &&
        !is_non_overlapping_and_dense(param->shape->sizes, param->shape->strides))
      return false;
    if (!first_in(param->storage)) return false;
    job.part[0] = part_of(param);
    job.part[1] = part_of(param->grad);
    job.n = param->shape->numel;
    job.dtype = param->dtype;
    return true;
  }
  void count_write(const Tensor& t) {
    if (t->flags & flag_own_version) return;
    ++t->storage->version;
    note_write(t->storage, here_);
  }
  void hold(Storage* s) {
    held_.push_back(s);
    s->incref();
  }
  void take(PyObject* o, const StepArrays& job, const Ref (&arrays)[most_states]) {
    auto* param = reinterpret_cast<TensorObj*>(o);
    hold(param->storage);
    hold(param->grad->storage);
    count_write(borrow(o));
    for (const Ref& array : arrays) {
      if (!array) continue;
      hold(reinterpret_cast<TensorObj*>(array.get())->storage);
      count_write(borrow(array.get()));
    }
    jobs_.push_back(job);
  }
  // The dict's value for a key, or null. Comparing its keys may run Python code.
  static Ref found(PyObject* dict, PyObject* key) {
    PyObject* value = PyDict_GetItemWithError(dict, key);
    if (!value && PyErr_Occurred()) throw PythonError();
    return Ref(Py_XNewRef(value));
  }

 public:
  Group(PyObject* params, PyObject* states) : params_(params), states_(states) {
    if (states_ == Py_None) states_ = nullptr;
    if (states_ && !PyDict_Check(states_)) fail_type("optimizer: the state must be a dict");
  }
  ~Group() {
    for (Storage* s : held_) s->decref();
    Py_XDECREF(left_);
    if (here_) here_->decref();
  }
  Group(const Group&) = delete;

  // Updates all parameters that it can handle. `names` are the states' keys in the order of the
  // rule, null for those that are not used; with `counts` the state's step goes up. make(step,
  // state) gives the rule, or nothing where the parameter has to be left; `own` if it differs
  // between parameters of one step. Returns the numbers of the parameters that were not updated;
  // None if there are none.
  template <class Make>
  PyObject* step(const std::array<PyObject*, most_states>& names, bool counts, bool own,
                 Make&& make) {
    double last = -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params_); ++i) {
      const Ref param(Py_NewRef(PyList_GET_ITEM(params_, i)));
      PyObject* o = param.get();
      if (!is_tensor(o)) fail_type("optimizer: parameters must be tensors");
      if (!reinterpret_cast<TensorObj*>(o)->grad) continue;
      // Looks up everything before it uses anything.
      const Ref state(states_ ? found(states_, o) : Ref());
      bool ok = !states_ || (state && PyDict_Check(state.get()));
      Ref arrays[most_states];
      for (int k = 0; ok && k < most_states; ++k)
        if (PyObject* name = names[static_cast<size_t>(k)]; name && state)
          arrays[k] = found(state.get(), name);
      const Ref count(ok && counts && state ? found(state.get(), keys.step) : Ref());
      StepArrays job;
      ok = ok && parameter(o, job);
      for (int k = 0; ok && k < most_states; ++k) {
        if (!names[static_cast<size_t>(k)]) continue;
        ok = fits(arrays[k].get(), reinterpret_cast<TensorObj*>(o));
        if (ok)
          job.part[static_cast<size_t>(k) + 2] =
              part_of(reinterpret_cast<TensorObj*>(arrays[k].get()));
      }
      double step = 0;
      ok = ok && (!counts || change_number(count.get(), [&](auto& x) { step = (x += 1); }));
      if (!ok) {
        leave(i);
        continue;
      }
      take(o, job, arrays);
      if (own || rules_.empty() || step != last) {
        rules_.push_back(make(step, state.get()));
        last = step;
      }
      jobs_.back().rule = static_cast<int>(rules_.size()) - 1;
    }
    optimizer_step(Rule::kind, jobs_, rules_.data(), sizeof(Rule));
    if (!left_) Py_RETURN_NONE;
    return std::exchange(left_, nullptr);
  }
};

// The numbers of one call: (params, states, number ..., flag ...).
template <int numbers, int flags> struct Options {
  PyObject *params = nullptr, *states = nullptr;
  double number[numbers];
  bool flag[flags];
  TraceSpan trace;

  Options(const char* name, PyObject* const* args, Py_ssize_t count) : trace(name) {
    if (count != 2 + numbers + flags || !PyList_Check(args[0]))
      fail_type(name, ": expected a list, the states, ", numbers, " numbers and ", flags, " flags");
    params = args[0];
    states = args[1];
    for (int i = 0; i < numbers; ++i) {
      number[i] = PyFloat_AsDouble(args[2 + i]);
      if (number[i] == -1 && PyErr_Occurred()) throw PythonError();
    }
    for (int i = 0; i < flags; ++i) {
      int on = PyObject_IsTrue(args[2 + numbers + i]);
      if (on < 0) throw PythonError();
      flag[i] = on != 0;
    }
  }
};

double decayed(bool decoupled, double weight_decay) { return decoupled ? 0 : weight_decay; }
double shrunk(bool decoupled, double lr, double weight_decay) {
  return decoupled ? 1 - lr * weight_decay : 1;
}

// lr, momentum, dampening, weight_decay; nesterov, maximize
PyObject* sgd(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    const Options<4, 2> o("_fused_sgd", args, count);
    Group<kernels::SgdRule> group(o.params, o.states);
    const bool buffered = o.number[1] != 0;
    return group.step({buffered ? keys.momentum_buffer : nullptr}, false, false,
                      [&](double, PyObject*) {
                        return kernels::SgdRule{o.number[0], o.number[1], o.number[2],
                                                o.number[3], o.flag[0],   o.flag[1]};
                      });
  });
}

// lr, beta1, beta2, eps, weight_decay; amsgrad, maximize, decoupled
PyObject* adam(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    const Options<5, 3> o("_fused_adam", args, count);
    const auto [lr, beta1, beta2, eps, weight_decay] = o.number;
    Group<kernels::AdamRule> group(o.params, o.states);
    return group.step({keys.exp_avg, keys.exp_avg_sq, o.flag[0] ? keys.max_exp_avg_sq : nullptr},
                      true, false, [&](double step, PyObject*) {
                        return kernels::AdamRule{.beta1 = beta1,
                                                 .beta2 = beta2,
                                                 .eps = eps,
                                                 .weight_decay = decayed(o.flag[2], weight_decay),
                                                 .shrink = shrunk(o.flag[2], lr, weight_decay),
                                                 .step_size = lr / (1 - std::pow(beta1, step)),
                                                 .root = std::sqrt(1 - std::pow(beta2, step)),
                                                 .maximize = o.flag[1]};
                      });
  });
}

// lr, alpha, eps, weight_decay, momentum; centered, maximize
PyObject* rmsprop(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    const Options<5, 2> o("_fused_rmsprop", args, count);
    Group<kernels::RmspropRule> group(o.params, o.states);
    return group.step({keys.square_avg, o.number[4] > 0 ? keys.momentum_buffer : nullptr,
                       o.flag[0] ? keys.grad_avg : nullptr},
                      true, false, [&](double, PyObject*) {
                        return kernels::RmspropRule{o.number[0], o.number[1], o.number[2],
                                                    o.number[3], o.number[4], o.flag[1]};
                      });
  });
}

// lr, lr_decay, eps, weight_decay; maximize
PyObject* adagrad(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    const Options<4, 1> o("_fused_adagrad", args, count);
    Group<kernels::AdagradRule> group(o.params, o.states);
    return group.step({keys.sum}, true, false, [&](double step, PyObject*) {
      return kernels::AdagradRule{o.number[0] / (1 + (step - 1) * o.number[1]), o.number[2],
                                  o.number[3], o.flag[0]};
    });
  });
}

// lr, beta1, beta2, eps, weight_decay, momentum_decay; decoupled, maximize
PyObject* nadam(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    const Options<6, 2> o("_fused_nadam", args, count);
    const auto [lr, beta1, beta2, eps, weight_decay, momentum_decay] = o.number;
    Group<kernels::NadamRule> group(o.params, o.states);
    auto momentum = [&](double step) {
      return beta1 * (1 - 0.5 * std::pow(0.96, step * momentum_decay));
    };
    return group.step(
        {keys.exp_avg, keys.exp_avg_sq}, true, true, [&](double step, PyObject* state) {
          double mu = momentum(step), next = momentum(step + 1), product = 0;
          if (!change_number(PyDict_GetItemWithError(state, keys.mu_product), [&](auto& x) {
                product = (x *= static_cast<std::remove_cvref_t<decltype(x)>>(mu));
              }))
            fail("NAdam: the state's mu_product must be a tensor with one element");
          return kernels::NadamRule{.beta1 = beta1,
                                    .beta2 = beta2,
                                    .eps = eps,
                                    .weight_decay = decayed(o.flag[0], weight_decay),
                                    .shrink = shrunk(o.flag[0], lr, weight_decay),
                                    .grad_size = lr * (1 - mu) / (1 - product),
                                    .mean_size = lr * next / (1 - product * next),
                                    .root2 = 1 - std::pow(beta2, step),
                                    .maximize = o.flag[1]};
        });
  });
}

// lr, beta1, beta2, eps, weight_decay; decoupled, maximize
PyObject* radam(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    const Options<5, 2> o("_fused_radam", args, count);
    const auto [lr, beta1, beta2, eps, weight_decay] = o.number;
    Group<kernels::RadamRule> group(o.params, o.states);
    return group.step({keys.exp_avg, keys.exp_avg_sq}, true, false, [&](double step, PyObject*) {
      const double bias2 = 1 - std::pow(beta2, step);
      // The length of the average's memory: after infinitely many steps, and now.
      const double limit = 2 / (1 - beta2) - 1;
      const double rho = limit - 2 * step * std::pow(beta2, step) / bias2;
      const bool adapted = rho > 5;
      const double rectified =
          adapted ? std::sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))
                  : 1;
      return kernels::RadamRule{.beta1 = beta1,
                                .beta2 = beta2,
                                .eps = eps,
                                .weight_decay = decayed(o.flag[0], weight_decay),
                                .shrink = shrunk(o.flag[0], lr, weight_decay),
                                .step_size = lr / (1 - std::pow(beta1, step)),
                                .root = rectified * std::sqrt(bias2),
                                .adapted = adapted,
                                .maximize = o.flag[1]};
    });
  });
}

// lr, beta1, beta2, eps, weight_decay; maximize
PyObject* adamax(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    const Options<5, 1> o("_fused_adamax", args, count);
    const auto [lr, beta1, beta2, eps, weight_decay] = o.number;
    Group<kernels::AdamaxRule> group(o.params, o.states);
    return group.step({keys.exp_avg, keys.exp_inf}, true, false, [&](double step, PyObject*) {
      return kernels::AdamaxRule{
          beta1, beta2, eps, weight_decay, lr / (1 - std::pow(beta1, step)), o.flag[0]};
    });
  });
}

// lr, rho, eps, weight_decay; maximize
PyObject* adadelta(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    const Options<4, 1> o("_fused_adadelta", args, count);
    Group<kernels::AdadeltaRule> group(o.params, o.states);
    return group.step({keys.square_avg, keys.acc_delta}, true, false, [&](double, PyObject*) {
      return kernels::AdadeltaRule{o.number[0], o.number[1], o.number[2], o.number[3], o.flag[0]};
    });
  });
}

// Lets go of the gradients of a list of parameters.
PyObject* drop_gradients(PyObject*, PyObject* params) {
  return guarded([&]() -> PyObject* {
    if (!PyList_Check(params)) fail_type("zero_grad: parameters must be a list");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i) {
      const Ref param(Py_NewRef(PyList_GET_ITEM(params, i)));  // a gradient may take code along
      PyObject* o = param.get();
      if (!is_tensor(o)) fail_type("zero_grad: parameters must be tensors");
      TensorObj* grad = std::exchange(reinterpret_cast<TensorObj*>(o)->grad, nullptr);
      Tensor::steal(grad);
    }
    Py_RETURN_NONE;
  });
}

PyMethodDef method(const char* name, PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL, nullptr};
}
PyMethodDef optimize_functions[] = {method("_fused_sgd", sgd),
                                    method("_fused_adam", adam),
                                    method("_fused_rmsprop", rmsprop),
                                    method("_fused_adagrad", adagrad),
                                    method("_fused_nadam", nadam),
                                    method("_fused_radam", radam),
                                    method("_fused_adamax", adamax),
                                    method("_fused_adadelta", adadelta),
                                    {"_drop_gradients", drop_gradients, METH_O, nullptr},
                                    {}};

}  // namespace

void add_optimize(PyObject* module) {
  auto key = [](const char* text) { return checked(PyUnicode_InternFromString(text)); };
  keys = {key("step"),
          key("exp_avg"),
          key("exp_avg_sq"),
          key("max_exp_avg_sq"),
          key("momentum_buffer"),
          key("square_avg"),
          key("grad_avg"),
          key("sum"),
          key("mu_product"),
          key("exp_inf"),
          key("acc_delta")};
  if (PyModule_AddFunctions(module, optimize_functions) < 0) throw PythonError();
}

}  // namespace clew::python
