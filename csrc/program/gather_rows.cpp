// Joins rows of several tensors as one recorded operation.
// May include: program, graph, tensor.
// Invariant: as gather_rows.h.
#include "program/gather_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/parallel.h"
#include "tensor/layout.h"

namespace clew::program {

namespace {

constexpr int64_t zero_row = 0;

// Where a row lies, in bytes from the tensor's first element.
int64_t step_of(const Tensor& part) {
  return part.stride(0) * static_cast<int64_t>(itemsize(part.dtype()));
}
// Whether the elements of each row are contiguous.
bool has_dense_rows(const Tensor& part, bool alone) {
  int64_t expected = 1;
  for (int d = part.ndim() - 1; d >= (alone ? 0 : 1); --d) {
    if (part.size(d) != 1 && part.stride(d) != expected) return false;
    expected *= part.size(d);
  }
  return true;
}

template <class T> void add_elements(T* into, const T* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) into[i] = static_cast<T>(into[i] + from[i]);
}

struct GatherRows final : Node {
  std::vector<RowOf> rows;
  std::vector<bool> alone;
  int64_t elements = 1;
  std::vector<ShapeRef> part_shapes;

  std::string name() const override { return "GatherRowsBackward"; }
  bool accumulates_all() const override { return true; }

  // into is dense and in the part's shape.
  void run_into_input(std::span<const Tensor> grads, const Tensor& into, uint32_t input) override {
    const Tensor g = dense(grads[0]);
    dispatch(into.dtype(), InexactTypes{}, [&]<class T>() {
      T* to = into.data<T>();
      const T* from = g.data<T>();
      for (size_t i = 0; i < rows.size(); ++i)
        if (rows[i].part == input)
          add_elements(to + rows[i].row * elements, from + static_cast<int64_t>(i) * elements,
                       elements);
    });
  }

  // With recorded operations, for each part: its rows of the gradient, added to zeros.
  void run(std::span<const Tensor> grads, Tensor* out) override {
    for (uint32_t k = 0; k < edge_count; ++k) {
      if (!edges[k].fn || (skip.node == this && skip.has(static_cast<int>(k)))) continue;
      std::vector<int64_t> at, to;
      for (size_t i = 0; i < rows.size(); ++i)
        if (rows[i].part == k) {
          at.push_back(static_cast<int64_t>(i));
          to.push_back(rows[i].row);
        }
      const Tensor own = builtins.take_rows(grads[0], int64_tensor(at));
      Dims sizes = part_shapes[k]->sizes;
      if (alone[k]) {
        Dims with_row{1};
        for (const int64_t n : sizes) with_row.push_back(n);
        out[k] = builtins.view(builtins.add_rows(with_row, int64_tensor(to), own), sizes);
      } else {
        out[k] = builtins.add_rows(sizes, int64_tensor(to), own);
      }
    }
  }
};

}  // namespace

Tensor gather_rows(std::span<const Tensor> parts, const std::vector<bool>& alone,
                   std::vector<RowOf> rows) {
  Tensors own;  // with dense rows
  for (size_t k = 0; k < parts.size(); ++k) {
    Tensor t = parts[k];
    if (!has_dense_rows(t, alone[k])) {
      std::vector<int64_t> all;
      if (alone[k]) {
        t = builtins.view(
            builtins.take_rows(builtins.unsqueeze(t, 0), int64_tensor({&zero_row, 1})), t.sizes());
      } else {
        for (int64_t i = 0; i < t.size(0); ++i) all.push_back(i);
        t = builtins.take_rows(t, int64_tensor(all));
      }
    }
    own.push_back(std::move(t));
  }
  Dims sizes{static_cast<int64_t>(rows.size())};
  const int first = alone[0] ? 0 : 1;
  int64_t elements = 1;
  for (int d = first; d < own[0].ndim(); ++d) {
    sizes.push_back(own[0].size(d));
    elements *= own[0].size(d);
  }
  Tensor out = empty(sizes, own[0].dtype());
  const int64_t bytes = elements * static_cast<int64_t>(itemsize(out.dtype()));
  std::vector<std::pair<const char*, int64_t>> starts;
  for (int k = 0; k < own.size(); ++k)
    starts.emplace_back(own[k]->address(), alone[static_cast<size_t>(k)] ? 0 : step_of(own[k]));
  char* to = out->address();
  if (bytes > 0)
    parallel_for(static_cast<int64_t>(rows.size()), std::max<int64_t>(1, (1 << 17) / bytes),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const auto& [from, step] = starts[rows[static_cast<size_t>(i)].part];
                     std::memcpy(to + i * bytes, from + rows[static_cast<size_t>(i)].row * step,
                                 static_cast<size_t>(bytes));
                   }
                 });
  if (modes.inference) out->flags |= flag_inference;
  if (!modes.grad || !is_inexact(out.dtype()) || !any_requires_grad(own)) return out;
  auto* node = new GatherRows();
  const NodeRef guard = NodeRef::steal(node);
  node->rows = std::move(rows);
  node->alone = alone;
  node->elements = elements;
  node->accumulates = true;
  node->allocate_edges(static_cast<uint32_t>(own.size()));
  for (int k = 0; k < own.size(); ++k) {
    if (own[k].requires_grad()) node->set_edge(static_cast<uint32_t>(k), own[k]);
    node->part_shapes.push_back(ShapeRef::borrow(own[k]->shape));
  }
  node->add_meta(0, out);
  set_grad_fn(out, node, 0);
  return out;
}

void RowGatherer::finish() {
  for (const int32_t n : used_) part_of_[static_cast<size_t>(n)] = -1;
  used_.clear();
  pieces_.push_back(gather_rows(parts_, alone_, std::exchange(rows_, {})));
  parts_.resize(0);
  alone_.clear();
  last_ = -1;
}

Tensor RowGatherer::join() {
  finish();
  return pieces_.size() == 1 ? pieces_[0] : builtins.cat(pieces_);
}

}  // namespace clew::program
