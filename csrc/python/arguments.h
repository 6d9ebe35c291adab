// Reading the arguments of creation functions: positional-or-keyword values, then the options
// they all share.
// May include: python/bridge.h.
// Invariant: an argument that is accepted has an effect; anything else is an error that names
// it.
#pragma once
#include <array>
#include <span>
#include <string_view>

#include "base/fits.h"
#include "base/generator.h"
#include "graph/modes.h"
#include "graph/promotion.h"
#include "graph/trace.h"
#include "ops/calls/random.h"
#include "python/bridge.h"

namespace clew::python {

enum class MemoryFormat : uint8_t { contiguous, preserve, channels_last, channels_last_3d };

enum Option : unsigned {
  opt_dtype = 1,
  opt_device = 2,
  opt_requires_grad = 4,
  opt_out = 8,
  opt_generator = 16,
  opt_memory_format = 32,
  opt_layout = 64,          // layout and pin_memory
  opt_sparse_layout = 128,  // with opt_layout: other layouts than strided
  opt_factory = opt_dtype | opt_device | opt_requires_grad | opt_layout,
};

Device default_device();
void set_default_device(Device d);

struct Arguments {
  static constexpr int max_values = 10;
  const char* fn;
  PyObject* value[max_values] = {};
  PyObject* const* rest = nullptr;  // varargs: zeros(2, 3)
  Py_ssize_t rest_count = 0;
  std::optional<DType> dtype;
  std::optional<Device> device;
  bool requires_grad = false;
  PyObject* out = nullptr;
  Generator* generator = nullptr;
  std::optional<MemoryFormat> memory_format;
  PyObject* layout = nullptr;  // where it is not strided
  TraceSpan trace;

  // `names` are the positional-or-keyword parameters. With `size_at` >= 0 that parameter is a size
  // and may be given as several ints, which end the positional arguments.
  Arguments(const char* fn, std::span<const char* const> names, int size_at, unsigned options,
            PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

  PyObject* need(int i, const char* name) const {
    if (!value[i]) fail_type(fn, "() missing 1 required positional arguments: \"", name, "\"");
    return value[i];
  }
  bool has(int i) const { return value[i] && value[i] != Py_None; }
  Dims size(int i) const;
  // Dense strides in the memory format that was given.
  Dims strides_of(const Dims& sizes) const;
  int64_t integer(int i, const char* name) const;
  int64_t integer_or(int i, const char* name, int64_t otherwise) const {
    return has(i) ? integer(i, name) : otherwise;
  }
  double real(int i, const char* name) const { return number(i, name).to_double(); }
  double real_or(int i, const char* name, double otherwise) const {
    return has(i) ? real(i, name) : otherwise;
  }
  Scalar number(int i, const char* name) const;
  bool boolean_or(int i, const char* name, bool otherwise) const;
  DType dtype_or(DType d) const { return dtype.value_or(d); }
  Device device_or(Device d) const { return device.value_or(d); }
  DType float_dtype() const { return dtype.value_or(default_dtype()); }
  Device where() const { return device.value_or(default_device()); }

  // A fresh tensor for the result, in the wanted memory format.
  Tensor fresh(const Dims& sizes, DType dtype, Device device) const;
  // The result goes into out=, gets its flags and becomes a Python object.
  PyObject* finish(Tensor t) const;

 private:
  bool take_option(PyObject* key, PyObject* v, unsigned options);
};

inline constexpr const char* size_name[] = {"size"};  // the parameters of zeros(), rand() ...
// A fresh tensor like x, but for what the arguments say otherwise.
Tensor fresh_like(const Arguments& a, const Tensor& x);
// t, or as many of it as the vmap that x belongs to has samples, which may be written apart.
Tensor room_for_samples(const Tensor& t, const Tensor& x);
inline void fill_fresh(const Tensor& t, const Scalar& v) {
  NotedFresh noted(t, Fill::value, v, nullptr);
  if (!t.is_meta()) kernels::fill(t.nd(), v);
  noted.filled(t);
}

}  // namespace clew::python
