// Batching rules that many ops share, named in their declarations as `.batch = batch_...`.
// May include: graph.
// Invariant: a rule gives physical results, with the dims of all levels in front.
#pragma once
#include <vector>

#include "graph/batch.h"
#include "graph/rows.h"

namespace clew {

// Which of the op's attributes are dims, from its signature.
const std::vector<int>& dim_fields(const OpDef& op);
// Sample by sample, after all.
void batch_each(const Batch& b, Tensors& outs);
// The levels' sizes and then these.
Dims with_lead(const Batch& b, const Dims& sizes);
// Every dim argument counts from one sample: moves them behind the dims of the levels. Arguments
// called dim, dims, dim0 ..., source, start_dim ... are dims; None and an empty list are all dims.
void batch_dims(const Batch& b, Tensors& outs);
// The same for an op without a dim argument that works on the last `core` dims of every input and
// takes any number before them, and for an op whose inputs all have the same dims.
void batch_leading(const Batch& b, Tensors& outs);
// view, expand and the like: sizes get the levels' sizes in front.
void batch_sizes(const Batch& b, Tensors& outs);
void batch_expand(const Batch& b, Tensors& outs);
void batch_unsqueeze(const Batch& b, Tensors& outs);
void batch_permute(const Batch& b, Tensors& outs);
void batch_transpose_last(const Batch& b, Tensors& outs);  // t, mT
void batch_squeeze(const Batch& b, Tensors& outs);
void batch_getitem(const Batch& b, Tensors& outs);
void batch_matmul(const Batch& b, Tensors& outs);
void batch_linear(const Batch& b, Tensors& outs);
void batch_stack(const Batch& b, Tensors& outs);
void batch_index(const Batch& b, Tensors& outs);
void batch_embedding(const Batch& b, Tensors& outs);
void batch_where(const Batch& b, Tensors& outs);
// Ops whose first dim numbers independent samples already (convolution, pooling): the levels are
// folded into it. The inputs whose bits are set have it; where another one is batched, samples run
// one by one.
template <uint32_t folded> void batch_fold(const Batch& b, Tensors& outs);

// A row rule (graph/rows.h): the only input's rows, of any sizes, become those of the result.
RowWise rows_of_first(const Call& c, void* attrs, int64_t rows);

}  // namespace clew
