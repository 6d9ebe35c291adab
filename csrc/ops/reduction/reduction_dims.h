// Which axes a reduction takes, and the shapes that follow; shared by the reduction family.
// May include: ops, tensor, kernels.
// Invariant: bit d of a mask means that axis d is reduced; a 0-d tensor accepts axis 0 and -1,
// which reduce nothing.
#pragma once
#include <bit>
#include <optional>
#include <string>
#include <string_view>

#include "base/ndview.h"
#include "ops/calls/shape.h"
#include "ops/ops.h"

namespace clew {

using OpName = std::string_view;
using DimMask = uint64_t;

// wrap_dim() with its common case inline.
inline int axis_of(int64_t dim, int ndim, OpName op) {
  if (dim >= 0 && dim < ndim) return static_cast<int>(dim);
  return wrap_dim(dim, ndim, std::string(op).c_str());
}

inline DimMask all_dims(int ndim) { return ndim >= 64 ? ~DimMask{0} : (DimMask{1} << ndim) - 1; }

inline DimMask mask_of(const Dims& dims, int ndim, OpName op) {
  DimMask mask = 0;
  for (int64_t d : dims) {
    int k = axis_of(d, ndim, op);
    require(!(mask >> k & 1), op, ": dim ", k, " appears multiple times in the list of dims");
    mask |= DimMask{1} << k;
  }
  return ndim == 0 ? 0 : mask;
}
// None and an empty list mean all axes.
inline DimMask mask_of(const std::optional<Dims>& dims, int ndim, OpName op) {
  return !dims || dims->empty() ? all_dims(ndim) : mask_of(*dims, ndim, op);
}
inline DimMask mask_of(const std::optional<int64_t>& dim, int ndim, OpName op) {
  return dim ? mask_of(Dims{*dim}, ndim, op) : all_dims(ndim);
}

inline Dims reduced_sizes(const Dims& sizes, DimMask mask, bool keepdim) {
  Dims out;
  for (int d = 0; d < sizes.size(); ++d) {
    if (!(mask >> d & 1))
      out.push_back(sizes[d]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

inline int64_t reduced_count(const Dims& sizes, DimMask mask) {
  int64_t n = 1;
  for (int d = 0; d < sizes.size(); ++d) n *= mask >> d & 1 ? sizes[d] : 1;
  return n;
}

// A result as the kernels want it: the source's rank, size 1 where reduced, with or without
// keepdim.
struct KeptView {
  Dims sizes, strides;
  kernels::NdView nd;
  KeptView(const Tensor& out, int ndim, DimMask mask) {
    bool kept = out.ndim() == ndim;
    int k = 0;
    for (int d = 0; d < ndim; ++d) {
      bool gone = mask >> d & 1;
      sizes.push_back(gone ? 1 : out.sizes()[kept ? d : k]);
      strides.push_back(gone ? 1 : out.strides()[kept ? d : k]);
      if (!gone) ++k;
    }
    nd = {out->address(), sizes.data(), strides.data(), ndim, out.dtype()};
  }
  KeptView(const KeptView&) = delete;
  KeptView& operator=(const KeptView&) = delete;
};

// A result (or its gradient) with size-1 axes put back where they were reduced away.
inline Tensor with_kept_dims(const Tensor& g, const Dims& sizes, DimMask mask) {
  if (g.ndim() == sizes.size()) return g;
  return reshape(g, reduced_sizes(sizes, mask, true));
}
// The same, spread over the reduced axes.
inline Tensor spread(const Tensor& g, const Dims& sizes, DimMask mask) {
  return expand(with_kept_dims(g, sizes, mask), sizes);
}

inline void require_nonempty(const Dims& sizes, DimMask mask, OpName op) {
  for (int d = 0; d < sizes.size(); ++d) {
    if ((mask >> d & 1) && sizes[d] == 0) {
      fail_index(op, ": expected reduction dim ", d, " to have non-zero size; got shape ", sizes);
    }
  }
}

// A few float32 elements and neighbouring axes of them to reduce, which a plain loop does in less
// time than a plan takes: element k of result (o, i) is from[(o * count + k) * inner + i].
struct FewLines {
  int64_t outer = 1, count = 1, inner = 1;
  const float* from = nullptr;
  Tensor out;  // undefined where it is another case

  FewLines(const Tensor& x, const std::optional<Dims>& dims, bool keepdim, int64_t most = 512) {
    const Dims& sizes = x.sizes();
    const int n = x.ndim();
    if (x.dtype() != DType::Float32 || x.is_meta() || !x.is_contiguous() || x.numel() == 0 ||
        x.numel() > most || n >= 64)
      return;
    DimMask mask = !dims || dims->empty() ? all_dims(n) : 0;
    const int listed = mask ? 0 : static_cast<int>(dims ? dims->size() : 0);
    for (int i = 0; i < listed; ++i) {
      const int64_t dim = (*dims)[i] < 0 ? (*dims)[i] + n : (*dims)[i];
      if (dim < 0 || dim >= n || mask >> dim & 1) return;
      mask |= DimMask{1} << dim;
    }
    int d = 0;
    for (; d < n && !(mask >> d & 1); ++d) outer *= sizes[d];
    for (; d < n && (mask >> d & 1); ++d) count *= sizes[d];
    for (; d < n; ++d) {
      if (mask >> d & 1) return;
      inner *= sizes[d];
    }
    from = x.data<const float>();
    out = empty(reduced_sizes(sizes, mask, keepdim), DType::Float32);
  }
  // Writes f(first element of a line) for all lines.
  template <class F> void each(F&& f) const {
    auto* to = out.data<float>();
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) *to++ = f(from + o * count * inner + i);
  }
};

// Describes a reduction over the dims of `mask` as OpDef::passes does (graph/op.h): over the last
// dims or, for a sum or a `mean`, over the first dims or all. Empty for all other masks.
inline Passes passes_over(int ndim, DimMask mask, std::optional<bool> mean,
                          void (*run)(const void*, const kernels::NdView&,
                                      const kernels::NdView&)) {
  int last = 0, first = 0;
  while (last < ndim && (mask >> (ndim - 1 - last) & 1)) ++last;
  while (first < ndim && (mask >> first & 1)) ++first;
  const int reduced = std::popcount(mask & all_dims(ndim));
  if (reduced == 0) return {};
  if (reduced == ndim && mean) return {.over = Passes::Over::all, .mean = *mean};
  if (reduced == ndim) return {};
  if (reduced == last) return {.over = Passes::Over::columns, .dims = last, .run = run};
  if (reduced == first && mean)
    return {.over = Passes::Over::rows, .mean = *mean, .dims = ndim - first};
  return {};
}

// Fresh zeros of like's dtype, outside the graph.
Tensor zero_of(const Tensor& like, const Dims& sizes);
// Gradient of picking one element of each line along dim: g written to the places that were picked.
Tensor picked_grad(const Tensor& g, const Tensor& indices, const Dims& sizes, int64_t dim);
// The rule of values that stand where output 1 says, along the dim in the attributes.
template <class A> void picked_vjp(Vjp& c) {
  if (c.grad().defined()) c.set(0, picked_grad(c.grad(), c.out(1), c.sizes(0), c.as<A>().dim));
}
// Gradient of an extremum-like result over the axes of `mask`: equal parts to all elements that
// equal the result (to all NaN ones, when it is NaN).
// g divided by the number of hits along dims.
Tensor shared(const Tensor& g, const Tensor& hit, const Dims& dims);
Tensor shared_grad(const Tensor& g, const Tensor& x, const Tensor& result, DimMask mask);
// The rule of one element of all, of which input 0 and the result are saved.
void one_of_all_vjp(Vjp& c);
// Whether any element is zero; false on the meta device, where it is unknown.
bool has_zero(const Tensor& x);

}  // namespace clew
