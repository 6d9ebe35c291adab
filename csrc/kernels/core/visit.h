// One element after another of one to three equally sized views, in the first view's memory order.
// May include: base, base/ndview.h.
// Invariant: each element is visited once, serially; dims of size one and empty views are fine.
#pragma once
#include <utility>

#include "base/ndview.h"

namespace clew::kernels {

// Calls f(char*, ...) with the address of each element.
template <class F, class... Views>
void visit_bytes(const NdView& lead, F&& f, const Views&... more) {
  constexpr int count = 1 + sizeof...(Views);
  const NdView all[] = {lead, more...};
  if (lead.numel() == 0) return;
  int order[max_dims];
  int dims = 0;
  for (int i = 0; i < lead.ndim; ++i) {
    if (lead.sizes[i] != 1) order[dims++] = i;
  }
  // Insertion sort: few dims, equal strides keep their order.
  for (int i = 1; i < dims; ++i) {
    int d = order[i], j = i;
    for (; j > 0 && lead.strides[order[j - 1]] < lead.strides[d]; --j) order[j] = order[j - 1];
    order[j] = d;
  }
  char* at[count];
  int64_t step[count][max_dims + 1] = {};
  int64_t index[max_dims] = {};
  for (int k = 0; k < count; ++k) {
    at[k] = all[k].data;
    for (int i = 0; i < dims; ++i) {
      step[k][i] = all[k].strides[order[i]] * static_cast<int64_t>(itemsize(all[k].dtype));
    }
  }
  int last = dims ? dims - 1 : 0;
  int64_t inner = dims ? lead.sizes[order[last]] : 1;
  for (;;) {
    for (int64_t i = 0; i < inner; ++i) {
      [&]<size_t... K>(std::index_sequence<K...>) { f(at[K] + i * step[K][last]...); }
      (std::make_index_sequence<count>{});
    }
    int d = dims - 2;
    for (; d >= 0; --d) {
      int64_t size = lead.sizes[order[d]];
      if (++index[d] < size) {
        for (int k = 0; k < count; ++k) at[k] += step[k][d];
        break;
      }
      for (int k = 0; k < count; ++k) at[k] -= (size - 1) * step[k][d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

// The same with references to the elements, whose types must be the views' dtypes.
template <class A, class F> void visit(const NdView& a, F&& f) {
  visit_bytes(a, [&](char* x) { f(*reinterpret_cast<A*>(x)); });
}
template <class A, class B, class F> void visit(const NdView& a, const NdView& b, F&& f) {
  visit_bytes(
      a, [&](char* x, char* y) { f(*reinterpret_cast<A*>(x), *reinterpret_cast<B*>(y)); }, b);
}
template <class A, class B, class C, class F>
void visit(const NdView& a, const NdView& b, const NdView& c, F&& f) {
  visit_bytes(
      a,
      [&](char* x, char* y, char* z) {
        f(*reinterpret_cast<A*>(x), *reinterpret_cast<B*>(y), *reinterpret_cast<C*>(z));
      },
      b, c);
}

// A complex view seen as its parts: one more dim of size 2 and the real dtype.
struct ComplexParts {
  Dims sizes;
  Dims strides;
  NdView view;
  explicit ComplexParts(const NdView& v) {
    for (int i = 0; i < v.ndim; ++i) {
      sizes.push_back(v.sizes[i]);
      strides.push_back(v.strides[i] * 2);
    }
    sizes.push_back(2);
    strides.push_back(1);
    view = NdView{v.data, sizes.data(), strides.data(), v.ndim + 1, real_of(v.dtype)};
  }
  ComplexParts(const ComplexParts&) = delete;
  ComplexParts& operator=(const ComplexParts&) = delete;
};

}  // namespace clew::kernels
