// Attention in blocks with a running maximum; its gradient recomputes the weights.
// May include: base, kernels.
// Invariant: a task owns a key head with its query heads: no two threads write one gradient.
#include "kernels/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/gemm.h"
#include "kernels/softmax_rows.h"

namespace clew::kernels {

namespace {

constexpr int64_t key_block = 512;
// Queries at a time: many, as each block packs the keys anew; fewer where half of a block is
// masked.
int64_t query_block_of(const AttentionShape& s) { return s.causal ? 128 : 256; }

const char* at(const AttentionOperand& o, int64_t item, int64_t b, int64_t h, int64_t row) {
  return o.data + (b * o.stride[0] + h * o.stride[1] + row * o.stride[2]) * item;
}

// C = alpha * A @ B + beta * C on blocks.
struct Block {
  const char* data;
  int64_t rs, cs;
  Block t() const { return {data, cs, rs}; }
};
void multiply(DType dtype, int64_t m, int64_t n, int64_t k, const Block& a, const Block& b, void* c,
              int64_t c_rs, double alpha, double beta) {
  Gemm g;
  g.dtype = dtype;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data, g.a_rs = a.rs, g.a_cs = a.cs;
  g.b = b.data, g.b_rs = b.rs, g.b_cs = b.cs;
  g.c = static_cast<char*>(c), g.c_rs = c_rs, g.c_cs = 1;
  g.alpha = Scalar(alpha), g.beta = Scalar(beta);
  gemm(g);
}

// One block: queries [i0, i1) of head h against keys [j0, j1).
template <class T> struct Pass {
  const AttentionShape& s;
  int64_t b, h, i0, i1, j0, j1;
  static constexpr int64_t item = sizeof(T);

  int64_t rows() const { return i1 - i0; }
  int64_t cols() const { return j1 - j0; }
  int64_t kv() const { return h / (s.heads / s.kv_heads); }
  Block q() const { return {at(s.q, item, b, h, i0), s.q.stride[2], s.q.stride[3]}; }
  Block k() const { return {at(s.k, item, b, kv(), j0), s.k.stride[2], s.k.stride[3]}; }
  Block v() const { return {at(s.v, item, b, kv(), j0), s.v.stride[2], s.v.stride[3]}; }

  // scores[rows][cols] = scale * q @ k^T with what is masked at -infinity.
  void scores(T* to) const {
    multiply(s.dtype, rows(), cols(), s.width, q(), k().t(), to, cols(), s.scale, 0);
    constexpr T never = -std::numeric_limits<T>::infinity();
    const int64_t n = cols();
    for (int64_t i = 0; i < rows(); ++i) {
      T* row = to + i * n;
      if (s.mask.data && s.mask_is_bool) {
        const char* m = at(s.mask, 1, b, h, i0 + i) + j0 * s.mask.stride[3];
        for (int64_t j = 0; j < n; ++j) row[j] = m[j * s.mask.stride[3]] ? row[j] : never;
      } else if (s.mask.data) {
        const T* m =
            reinterpret_cast<const T*>(at(s.mask, item, b, h, i0 + i)) + j0 * s.mask.stride[3];
        for (int64_t j = 0; j < n; ++j) row[j] += m[j * s.mask.stride[3]];
      }
      if (s.causal) {
        for (int64_t j = std::max<int64_t>(0, i0 + i + 1 - j0); j < n; ++j) row[j] = never;
      }
    }
  }
};

int64_t last_key(const AttentionShape& s, int64_t i1) {
  return s.causal ? std::min(s.keys, i1) : s.keys;
}

// Tasks over threads when there are enough of them; otherwise the products inside use the threads.
template <class F> void each_task(int64_t tasks, F&& f) {
  if (tasks >= num_threads()) {
    parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t q = begin; q < end; ++q) f(q);
    });
  } else {
    for (int64_t q = 0; q < tasks; ++q) f(q);
  }
}

template <class T> void forward(const AttentionShape& s, T* out, T* logsum) {
  const RowOps<T>& ops = row_ops<T>();
  const int64_t query_block = query_block_of(s);
  const int64_t blocks = (s.queries + query_block - 1) / query_block;
  const int64_t wide = std::min(s.keys, key_block);
  each_task(s.batch * s.heads * blocks, [&](int64_t task) {
    const int64_t i0 = task % blocks * query_block, h = task / blocks % s.heads,
                  b = task / blocks / s.heads;
    const int64_t i1 = std::min(s.queries, i0 + query_block), rows = i1 - i0;
    thread_local std::vector<T> room;
    room.resize(static_cast<size_t>(rows * wide + 2 * rows));
    T* scores = room.data();
    T* top = scores + rows * wide;
    T* total = top + rows;
    std::fill_n(top, rows, -std::numeric_limits<T>::infinity());
    std::fill_n(total, rows, T(0));
    T* to = out + ((b * s.heads + h) * s.queries + i0) * s.value_width;
    std::fill_n(to, rows * s.value_width, T(0));
    const int64_t end = last_key(s, i1);
    for (int64_t j0 = 0; j0 < end; j0 += key_block) {
      const Pass<T> pass{s, b, h, i0, i1, j0, std::min(end, j0 + key_block)};
      const int64_t n = pass.cols();
      pass.scores(scores);
      for (int64_t i = 0; i < rows; ++i) {
        T* row = scores + i * n;
        const T best = std::max(top[i], ops.max(row, n));
        const T shift = std::isinf(best) && best < 0 ? T(0) : best;
        const T sum = static_cast<T>(ops.exp_store(row, row, n, shift));
        if (j0 > 0 && best != top[i]) {
          const T shrink = std::exp(top[i] - shift);
          total[i] *= shrink;
          ops.affine(to + i * s.value_width, to + i * s.value_width, s.value_width, shrink, T(0));
        }
        total[i] += sum;
        top[i] = best;
      }
      const Block weights{reinterpret_cast<const char*>(scores), n, 1};
      multiply(s.dtype, rows, s.value_width, n, weights, pass.v(), to, s.value_width, 1,
               j0 > 0 ? 1 : 0);
    }
    T* log_to = logsum + (b * s.heads + h) * s.queries + i0;
    for (int64_t i = 0; i < rows; ++i) {
      const bool dead = total[i] == 0;
      log_to[i] = dead ? std::numeric_limits<T>::infinity() : top[i] + std::log(total[i]);
      T* row = to + i * s.value_width;
      ops.affine(row, row, s.value_width, dead ? T(0) : T(1) / total[i], T(0));
    }
  });
}

template <class T>
void backward(const AttentionShape& s, const T* out, const T* logsum, const T* g, T* dq, T* dk,
              T* dv) {
  const RowOps<T>& ops = row_ops<T>();
  const int64_t wide = std::min(s.keys, key_block), share = s.heads / s.kv_heads;
  const int64_t query_block = query_block_of(s);
  std::fill_n(dq, s.batch * s.heads * s.queries * s.width, T(0));
  std::fill_n(dk, s.batch * s.kv_heads * s.keys * s.width, T(0));
  std::fill_n(dv, s.batch * s.kv_heads * s.keys * s.value_width, T(0));
  each_task(s.batch * s.kv_heads, [&](int64_t task) {
    const int64_t kv = task % s.kv_heads, b = task / s.kv_heads;
    const int64_t rows_max = std::min(s.queries, query_block);
    thread_local std::vector<T> room;
    room.resize(static_cast<size_t>(2 * rows_max * wide));
    T* weights = room.data();
    T* slope = weights + rows_max * wide;
    T* dk_head = dk + task * s.keys * s.width;
    T* dv_head = dv + task * s.keys * s.value_width;
    for (int64_t h = kv * share; h < (kv + 1) * share; ++h) {
      for (int64_t i0 = 0; i0 < s.queries; i0 += query_block) {
        const int64_t i1 = std::min(s.queries, i0 + query_block), rows = i1 - i0;
        const int64_t first = (b * s.heads + h) * s.queries + i0;
        const T* g_rows = g + first * s.value_width;
        const T* out_rows = out + first * s.value_width;
        const Block g_block{reinterpret_cast<const char*>(g_rows), s.value_width, 1};
        const int64_t end = last_key(s, i1);
        for (int64_t j0 = 0; j0 < end; j0 += key_block) {
          const Pass<T> pass{s, b, h, i0, i1, j0, std::min(end, j0 + key_block)};
          const int64_t n = pass.cols();
          pass.scores(weights);
          multiply(s.dtype, rows, n, s.value_width, g_block, pass.v().t(), slope, n, 1, 0);
          for (int64_t i = 0; i < rows; ++i) {
            T* w = weights + i * n;
            ops.exp_store(w, w, n, logsum[first + i]);
            const T mean = static_cast<T>(
                ops.dot(g_rows + i * s.value_width, out_rows + i * s.value_width, s.value_width));
            ops.softmax_grad(slope + i * n, slope + i * n, w, n, mean);
          }
          const Block w_block{reinterpret_cast<const char*>(weights), n, 1};
          const Block s_block{reinterpret_cast<const char*>(slope), n, 1};
          multiply(s.dtype, n, s.value_width, rows, w_block.t(), g_block,
                   dv_head + j0 * s.value_width, s.value_width, 1, 1);
          multiply(s.dtype, rows, s.width, n, s_block, pass.k(), dq + first * s.width, s.width,
                   s.scale, 1);
          multiply(s.dtype, n, s.width, rows, s_block.t(), pass.q(), dk_head + j0 * s.width,
                   s.width, s.scale, 1);
        }
      }
    }
  });
}

}  // namespace

void attention(const AttentionShape& s, void* out, void* logsum) {
  dispatch(s.dtype, TypeList<float, double>{},
           [&]<class T> { forward<T>(s, static_cast<T*>(out), static_cast<T*>(logsum)); });
}

void attention_backward(const AttentionShape& s, const void* out, const void* logsum, const void* g,
                        void* dq, void* dk, void* dv) {
  dispatch(s.dtype, TypeList<float, double>{}, [&]<class T> {
    backward<T>(s, static_cast<const T*>(out), static_cast<const T*>(logsum),
                static_cast<const T*>(g), static_cast<T*>(dq), static_cast<T*>(dk),
                static_cast<T*>(dv));
  });
}

}  // namespace clew::kernels
